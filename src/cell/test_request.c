#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cell/request.h"
#include "cell/tempdir.h"

#define STRINGS "/bin/true\0A=b"

enum { DIR_FD, FILE_FD, BLOB_FD, SOCKET_LIKE_FD, FD_COUNT };

static int fds[FD_COUNT];

static int open_fds(void **state)
{
    (void)state;
    fds[DIR_FD] = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    fds[FILE_FD] = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    fds[SOCKET_LIKE_FD] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fs_memfd("blob", STRINGS, sizeof(STRINGS), &fds[BLOB_FD], NULL);
}

static int close_fds(void **state)
{
    (void)state;
    for (size_t i = 0; i < FD_COUNT; i++)
        fd_closep(&fds[i]);
    return 0;
}

static void set_text(char *to, const char *text)
{
    memcpy(to, text, strlen(text) + 1);
}

/* An agent's cell with one tree, one text, one layer. */
static void fill_agent(struct request_start *request)
{
    *request = (struct request_start){
        .header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_START},
        .role = CELL_AGENT,
        .workspace_kind = CELL_WORKSPACE_COPY,
        .layer_count = 1,
        .layer_fds = {DIR_FD},
        .blob_fd = BLOB_FD,
        .etc_fd = -1,
        .root_fd = -1,
        .program_fd = -1,
        .mount_count = 1,
        .text_count = 1,
        .limits = {.disk_bytes = 1 << 20, .inodes = 100, .pids = 10, .open_files = 100},
        .mounts = {{.fd = DIR_FD}},
        .texts = {{.offset = 0, .size_bytes = 4}},
        .command = {.argc = 1, .envc = 1, .strings_bytes = sizeof(STRINGS), .fd_count = 3},
    };
    for (size_t i = 0; i < CELL_FDS_MAX; i++)
        request->command.fds[i] = -1;
    set_text(request->mounts[0].target, "/usr");
    set_text(request->mounts[0].masks[0], "local");
    set_text(request->texts[0].target, "/etc/hosts");
}

/* A worker's cell with one tree. */
static void fill_worker(struct request_start *request)
{
    fill_agent(request);
    request->role = CELL_WORKER;
    request->workspace_kind = CELL_WORKSPACE_NONE;
    request->layer_count = 0;
    request->text_count = 0;
    request->program_fd = FILE_FD;
    request->mounts[0].flags = WIRE_MOUNT_WRITABLE;
    set_text(request->mounts[0].target, "/src0");
}

static void takes_what_the_client_makes(void **state)
{
    struct request_start request;

    (void)state;
    fill_agent(&request);
    assert_int_equal(request_check_start(&request, fds, FD_COUNT), 0);
    fill_worker(&request);
    assert_int_equal(request_check_start(&request, fds, FD_COUNT), 0);
}

/* What candidates are made of: the trees and texts of an agent, but no layer and no command. */
static void fill_recipe(struct request_start *request)
{
    fill_agent(request);
    request->role = CELL_CANDIDATE;
    request->workspace_kind = CELL_WORKSPACE_SHARED;
    request->layer_count = 0;
    request->command.argc = request->command.envc = 0;
}

static void fill_candidate(struct request_exec *request)
{
    *request = (struct request_exec){
        .header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_CANDIDATE},
        .blob_fd = BLOB_FD,
        .command = {.argc = 1, .envc = 1, .strings_bytes = sizeof(STRINGS), .fd_count = 3},
    };
    for (size_t i = 0; i < CELL_FDS_MAX; i++)
        request->command.fds[i] = -1;
    request->command.fds[0] = FILE_FD;
    request->command.fds[1] = SOCKET_LIKE_FD;
    set_text(request->command.cwd, "/workspace/a");
}

/* A change to a good request that makes it a bad one. */
struct patch {
    size_t offset, size;
    uint64_t value;
    const char *text; /* instead of value */
};

#define AT(field, number)                                                                          \
    {                                                                                              \
        offsetof(struct request_start, field), sizeof(((struct request_start *)0)->field),         \
            (uint64_t)(number), NULL                                                               \
    }
#define TEXT_AT(field, words)                                                                      \
    {                                                                                              \
        offsetof(struct request_start, field), 0, 0, words                                         \
    }

static void apply(struct request_start *request, const struct patch *patch)
{
    char *bytes = (char *)request;

    if (patch->text != NULL)
        memcpy(bytes + patch->offset, patch->text, strlen(patch->text) + 1);
    else
        memcpy(bytes + patch->offset, &patch->value, patch->size); /* little-endian */
}

static const struct patch bad_for_agents[] = {
    AT(role, 9),
    AT(role, CELL_WORKER),
    AT(role, CELL_CANDIDATE),
    AT(ptrace_denied, 2),
    AT(identity_root, 2),
    AT(reserved, 1),
    AT(mounts[0].flags, WIRE_MOUNT_OWN), /* without identity_root */
    AT(root_fd, FILE_FD),
    AT(root_fd, FD_COUNT),
    AT(workspace_kind, CELL_WORKSPACE_NONE),
    AT(workspace_kind, CELL_WORKSPACE_KEEP),
    AT(workspace_kind, CELL_WORKSPACE_SHARED),
    AT(workspace_kind, 9),
    AT(layer_count, CELL_LAYERS_MAX + 1),
    AT(layer_count, 2), /* the second is no descriptor */
    AT(layer_fds[0], FILE_FD),
    AT(layer_fds[0], FD_COUNT),
    AT(layer_fds[0], -1),
    AT(keep_cell_id, 1),
    AT(collect_cell_id, 1),
    AT(blob_fd, FILE_FD),
    AT(blob_fd, -1),
    AT(etc_fd, FILE_FD),
    AT(etc_fd, -2),
    AT(program_fd, FILE_FD),
    AT(mount_count, CELL_MOUNTS_MAX + 1),
    AT(mount_count, 2),
    AT(text_count, CELL_TEXTS_MAX + 1),
    AT(text_count, 2),
    AT(limits.disk_bytes, 0),
    AT(limits.disk_bytes, UINT64_MAX),
    AT(limits.inodes, 0),
    AT(limits.pids, 0),
    AT(limits.pids, UINT64_MAX),
    AT(limits.open_files, 3),
    AT(mounts[0].fd, -1),
    AT(mounts[0].fd, FD_COUNT),
    AT(mounts[0].fd, SOCKET_LIKE_FD),
    AT(mounts[0].flags, WIRE_MOUNT_WRITABLE),
    AT(mounts[0].flags, WIRE_MOUNT_NO_DESCRIPTOR),
    AT(mounts[0].flags, 1 << 9),
    TEXT_AT(mounts[0].target, "usr"),
    TEXT_AT(mounts[0].target, "/"),
    TEXT_AT(mounts[0].target, ""),
    TEXT_AT(mounts[0].target, "//usr"),
    TEXT_AT(mounts[0].target, "/usr/"),
    TEXT_AT(mounts[0].target, "/a/../b"),
    TEXT_AT(mounts[0].target, "/a/./b"),
    TEXT_AT(mounts[0].target, "/.."),
    TEXT_AT(mounts[0].target, "/proc"),
    TEXT_AT(mounts[0].target, "/proc/x"),
    TEXT_AT(mounts[0].target, "/dev/x"),
    TEXT_AT(mounts[0].target, "/workspace"),
    TEXT_AT(mounts[0].target, "/workspace/x"),
    TEXT_AT(mounts[0].target, "/home/agent"),
    TEXT_AT(mounts[0].target, "/tmp"),
    TEXT_AT(mounts[0].masks[1], "a/b"),
    TEXT_AT(mounts[0].masks[1], ".."),
    TEXT_AT(mounts[0].masks[1], "."),
    AT(texts[0].offset, UINT64_MAX),
    AT(texts[0].offset, 1000),
    AT(texts[0].size_bytes, UINT64_MAX),
    AT(texts[0].size_bytes, WIRE_TEXTS_BYTES_MAX + 1),
    AT(texts[0].size_bytes, 1000),
    AT(texts[0].executable, 2),
    AT(texts[0].reserved, 1),
    TEXT_AT(texts[0].target, "/proc/self"),
    TEXT_AT(texts[0].target, "/workspace/x"),
    TEXT_AT(texts[0].target, "etc/hosts"),
    AT(command.argc, WIRE_ARGS_COUNT_MAX + 1),
    AT(command.envc, UINT32_MAX),
    AT(command.strings_bytes, UINT64_MAX),
    AT(command.strings_bytes, sizeof(STRINGS) + 1),
    AT(command.fd_count, CELL_FDS_MAX + 1),
    AT(command.fds[2], FD_COUNT),
    AT(command.fds[2], -2),
    AT(command.controlling_tty, 1),
    AT(command.controlling_tty, 2),
    TEXT_AT(command.cwd, "relative"),
};

static void refuses_each_bad_field_of_an_agents_cell(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_for_agents); i++) {
        struct request_start request;

        fill_agent(&request);
        request.layer_fds[1] = -1;
        request.mounts[1].fd = -1;
        apply(&request, &bad_for_agents[i]);
        if (request_check_start(&request, fds, FD_COUNT) == 0)
            fail_msg("patch %zu at %zu was taken", i, bad_for_agents[i].offset);
    }
}

static void refuses_each_bad_field_of_a_workers_cell(void **state)
{
    static const struct patch patches[] = {
        AT(program_fd, -1),       AT(program_fd, DIR_FD),
        AT(program_fd, FD_COUNT), AT(workspace_kind, CELL_WORKSPACE_COPY),
        AT(text_count, 1),        AT(etc_fd, DIR_FD),
        AT(root_fd, DIR_FD),      AT(command.argc, 0),
        AT(layer_count, 1),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(patches); i++) {
        struct request_start request;

        fill_worker(&request);
        apply(&request, &patches[i]);
        if (request_check_start(&request, fds, FD_COUNT) == 0)
            fail_msg("patch %zu at %zu was taken", i, patches[i].offset);
    }
}

static void takes_a_look_at_another_cell_for_graders_alone(void **state)
{
    static const struct patch bad[] = {
        AT(role, CELL_AGENT), AT(role, CELL_WORKER), AT(role, CELL_CANDIDATE),
        AT(keep_cell_id, 0),  AT(layer_count, 1),    AT(identity_root, 1),
    };
    struct request_start request;

    (void)state;
    for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
        fill_agent(&request);
        request.role = CELL_GRADER;
        request.workspace_kind = CELL_WORKSPACE_SHARED;
        request.keep_cell_id = 1;
        request.layer_count = 0;
        if (i < ARRAY_SIZE(bad))
            apply(&request, &bad[i]);
        if ((request_check_start(&request, fds, FD_COUNT) == 0) != (i == ARRAY_SIZE(bad)))
            fail_msg("request %zu", i);
    }
}

static void takes_recipes_of_what_agents_see_alone(void **state)
{
    static const struct patch bad[] = {
        AT(role, CELL_AGENT),
        AT(role, CELL_GRADER),
        AT(workspace_kind, CELL_WORKSPACE_COPY),
        AT(workspace_kind, CELL_WORKSPACE_KEEP),
        AT(keep_cell_id, 1),
        AT(collect_cell_id, 1),
        AT(layer_count, 1),
        AT(command.argc, 1),
        AT(program_fd, FILE_FD),
        AT(mounts[0].flags, WIRE_MOUNT_WRITABLE),
        AT(mounts[0].flags, WIRE_MOUNT_HIDDEN_PARENT),
        TEXT_AT(mounts[0].target, "/workspace"),
        TEXT_AT(texts[0].target, "/home/agent/x"),
    };
    struct request_start request;

    (void)state;
    fill_recipe(&request);
    assert_int_equal(request_check_recipe(&request, fds, FD_COUNT), 0);
    assert_int_not_equal(request_check_start(&request, fds, FD_COUNT), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        fill_recipe(&request);
        apply(&request, &bad[i]);
        if (request_check_recipe(&request, fds, FD_COUNT) == 0)
            fail_msg("bad recipe %zu was taken", i);
    }
}

static int check_candidate(const char *cwd, int32_t stdin_fd, uint32_t fd_count, uint32_t cell)
{
    struct request_exec request;

    fill_candidate(&request);
    set_text(request.command.cwd, cwd);
    request.command.fds[0] = stdin_fd;
    request.command.fd_count = fd_count;
    request.header.cell_id = cell;
    return request_check_candidate(&request, fds, FD_COUNT);
}

static void takes_of_a_grading_cell_a_command_alone(void **state)
{
    struct request_exec request;

    (void)state;
    assert_int_equal(check_candidate("/workspace/a", FILE_FD, 3, 0), 0);
    assert_int_equal(check_candidate("", -1, 3, 0), 0);
    /* A directory, or a mere path, would lead out of the candidate's cell. */
    assert_int_equal(check_candidate("", DIR_FD, 3, 0), -EBADMSG);
    assert_int_equal(check_candidate("", FD_COUNT, 3, 0), -EBADMSG);
    assert_int_equal(check_candidate("", FILE_FD, 4, 0), -EBADMSG);
    assert_int_equal(check_candidate("", FILE_FD, 3, 1), -EBADMSG);
    assert_int_equal(check_candidate("/", FILE_FD, 3, 0), -EBADMSG);
    assert_int_equal(check_candidate("/workspaces", FILE_FD, 3, 0), -EBADMSG);
    assert_int_equal(check_candidate("/workspace/../graders", FILE_FD, 3, 0), -EBADMSG);
    assert_int_equal(check_candidate("workspace", FILE_FD, 3, 0), -EBADMSG);
    fill_candidate(&request);
    request.command.controlling_tty = 1;
    assert_int_equal(request_check_candidate(&request, fds, FD_COUNT), -EBADMSG);
    fill_candidate(&request);
    request.command.argc = 0;
    assert_int_equal(request_check_candidate(&request, fds, FD_COUNT), -EBADMSG);
    fill_candidate(&request);
    request.blob_fd = FILE_FD;
    assert_int_equal(request_check_candidate(&request, fds, FD_COUNT), -EBADMSG);
    fill_candidate(&request);
    assert_int_equal(request_check_candidate(&request, fds, CANDIDATE_FDS_MAX + 1), -EBADMSG);
}

static void refuses_strings_that_do_not_end(void **state)
{
    struct request_start request;

    (void)state;
    fill_agent(&request);
    memset(request.mounts[0].target, 'x', sizeof(request.mounts[0].target));
    request.mounts[0].target[0] = '/';
    assert_int_not_equal(request_check_start(&request, fds, FD_COUNT), 0);
    fill_agent(&request);
    memset(request.mounts[0].masks[0], 'x', WIRE_NAME_BYTES);
    assert_int_not_equal(request_check_start(&request, fds, FD_COUNT), 0);
    fill_agent(&request);
    memset(request.command.cwd, '/', WIRE_CWD_BYTES);
    assert_int_not_equal(request_check_start(&request, fds, FD_COUNT), 0);
}

static void refuses_a_blob_that_can_still_change(void **state)
{
    struct request_start request;
    int sealed = fds[BLOB_FD];

    (void)state;
    fds[BLOB_FD] = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(fds[BLOB_FD], STRINGS, sizeof(STRINGS)), sizeof(STRINGS));
    fill_agent(&request);
    assert_int_not_equal(request_check_start(&request, fds, FD_COUNT), 0);
    (void)close(fds[BLOB_FD]);
    fds[BLOB_FD] = sealed;
}

static void knows_the_sizes_of_requests(void **state)
{
    (void)state;
    assert_int_equal(request_size(REQUEST_START), sizeof(struct request_start));
    assert_int_equal(request_size(REQUEST_EXEC), sizeof(struct request_exec));
    assert_int_equal(request_size(REQUEST_END), sizeof(struct request_plain));
    assert_int_equal(request_size(0), 0);
    assert_int_equal(request_size(77), 0);
}

static void names_every_step_and_tier(void **state)
{
    enum cell_tier tier;

    (void)state;
    for (uint32_t i = 0; i < STEP_COUNT; i++)
        assert_non_null(cell_step_name(i));
    assert_string_equal(cell_step_name(STEP_COUNT), "?");
    for (enum cell_tier i = TIER_NONE; i < TIER_COUNT; i++) {
        assert_true(cell_tier_parse(cell_tier_name(i), &tier));
        assert_int_equal(tier, i);
        assert_int_equal(cell_tier_rows[i].tier, i);
    }
    assert_false(cell_tier_parse("D", &tier));
    assert_true(cell_tier_is_enough(TIER_A, TIER_B));
    assert_true(cell_tier_is_enough(TIER_B_MINUS, TIER_B_MINUS));
    assert_false(cell_tier_is_enough(TIER_B_MINUS, TIER_B));
    assert_false(cell_tier_is_enough(TIER_NONE, TIER_C));
    for (size_t i = 0; i < cell_protection_count; i++)
        assert_int_equal(cell_protection_rows[i].bit, 1 << i);
}

static void rewrites_paths_that_lie_elsewhere(void **state)
{
    static const char places[] = "/workspace\0/home/agent\0/opt/x\0/opt/x/deep\0";
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"/workspace", "/T/workspace"},
        {"/workspace/a b", "/T/workspace/a b"},
        {"/workspaces", "/workspaces"},
        {"/other/workspace", "/other/workspace"},
        {"A=/home/agent:/opt/x/deep/y", "A=/T/home:/T/root/opt/x/deep/y"},
        {"cat /opt/x/a;ls '/opt/x'", "cat /T/root/opt/x/a;ls '/T/root/opt/x'"},
        {"x/workspace //workspace /opt", "x/workspace //workspace /opt"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text = tempdir_rewrite(cases[i].text, places, "/T");

        assert_string_equal(text, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_the_client_makes),
        cmocka_unit_test(refuses_each_bad_field_of_an_agents_cell),
        cmocka_unit_test(refuses_each_bad_field_of_a_workers_cell),
        cmocka_unit_test(takes_a_look_at_another_cell_for_graders_alone),
        cmocka_unit_test(takes_recipes_of_what_agents_see_alone),
        cmocka_unit_test(takes_of_a_grading_cell_a_command_alone),
        cmocka_unit_test(refuses_strings_that_do_not_end),
        cmocka_unit_test(refuses_a_blob_that_can_still_change),
        cmocka_unit_test(knows_the_sizes_of_requests),
        cmocka_unit_test(names_every_step_and_tier),
        cmocka_unit_test(rewrites_paths_that_lie_elsewhere),
    };

    return cmocka_run_group_tests(tests, open_fds, close_fds);
}
