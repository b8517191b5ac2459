#include "grade/test_workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/value.h"

static char folder[] = "/tmp/closedbook-grade-XXXXXX";
static int folder_fd = -1;
uint64_t test_timeout_ms;
struct grade_command test_last_command;

/* --- the folder ------------------------------------------------------------------------------ */

static void put(const char *path, const void *bytes, size_t size)
{
    assert_int_equal(
        fs_write_atomic(folder_fd, path, &(struct fs_content){bytes, size, 0644, FS_NO_SYNC}, NULL),
        0);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

int workspace_setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder_fd >= 0);
    assert_int_equal(mkdirat(folder_fd, "sub", 0755), 0);
    assert_int_equal(mkfifoat(folder_fd, "fifo", 0644), 0);
    assert_int_equal(symlinkat("/etc/passwd", folder_fd, "link-out"), 0);
    put_text("text.txt", "alpha beta\ngamma delta eta\n");
    put_text("sub/one.py", "print(1)\n");
    put_text("sub/x", "x"); /* what "[literal].txt" stands for: a name that is a pattern, too */
    put_text("bad.json", "{\"a\": }");
    put_text("data.json",
             "{\"n\":3,\"t\":true,\"z\":null,\"e\":\"\",\"list\":[1,2,\"x\"],\"o\":{\"k\":1},"
             "\"date\":\"2024-06-01\",\"s\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"}");
    put_text("schema.json", "{\"type\":\"object\"}");
    put_text("aaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    put("binary", "\xFF\xFE\0after", 8);
    return 0;
}

int workspace_teardown(void **state)
{
    (void)state;
    (void)close(folder_fd);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
    return 0;
}

struct matching {
    const char *pattern;
    struct grade_file *file;
};

static int add_match(void *context, int dir_fd, const char *name, struct error **err)
{
    struct matching *matching = context;
    struct stat entry;

    (void)err;
    if (fnmatch(matching->pattern, name, 0) == 0 &&
        fstatat(dir_fd, name, &entry, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(entry.st_mode))
        str_list_add(&matching->file->matches, name);
    return 0;
}

/* Globs of the folder itself only. */
static int find(const char *path, struct grade_file *file, struct error **err)
{
    struct matching matching = {.pattern = path, .file = file};
    scoped(fd_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fs_each(fd, add_match, &matching, err);

    if (file->matches.count == 1)
        file->resolved = str_dup(file->matches.items[0]);
    file->state = file->matches.count == 0   ? GRADE_FILE_ABSENT
                  : file->matches.count == 1 ? GRADE_FILE_OK
                                             : GRADE_FILE_AMBIGUOUS;
    return r;
}

static int read_file(void *context, const char *path, bool content, struct grade_file *ret,
                     struct error **err)
{
    struct stat entry;

    (void)context;
    if (str_equal(path, "broken"))
        return error_set(err, ERROR_SYSTEM, "cannot read '%s'", path);
    if (str_equal(path, "huge")) {
        ret->state = GRADE_FILE_TOO_LARGE;
        return 0;
    }
    if (str_equal(path, "[literal].txt"))
        path = "sub/x";
    if (fstatat(folder_fd, path, &entry, AT_SYMLINK_NOFOLLOW) < 0) {
        int r = find(path, ret, err);

        if (r < 0 || ret->state != GRADE_FILE_OK)
            return r;
        path = ret->resolved;
    } else if (S_ISDIR(entry.st_mode)) {
        ret->state = GRADE_FILE_DIRECTORY;
        return 0;
    } else if (!S_ISREG(entry.st_mode)) {
        ret->state = GRADE_FILE_NOT_REGULAR;
        if (S_ISLNK(entry.st_mode))
            buf_text_append(&ret->content, "a link that leads out of the workspace");
        return 0;
    }
    ret->state = GRADE_FILE_OK;
    return content ? fs_read_file(folder_fd, path, GRADE_FILE_BYTES_MAX, &ret->content, err) : 0;
}

/* --- commands -------------------------------------------------------------------------------- */

static const struct {
    const char *command;
    int exit_code, term_signal;
    const char *out, *err;
    const char *missing;
    bool timed_out, cut;
} commands[] = {
    {.command = "true"},
    {.command = "false", .exit_code = 1, .err = "no\n"},
    {.command = "three", .exit_code = 3},
    {.command = "segfault", .exit_code = -1, .term_signal = 11},
    {.command = "hello", .out = "hello world \n\n"},
    {.command = "indented", .out = "  hello\n"},
    {.command = "slow", .exit_code = -1, .term_signal = 9, .out = "partial\n", .timed_out = true},
    {.command = "score", .out = "0.75\nmore\n"},
    {.command = "score spaces", .out = "  1 \r\n"},
    {.command = "score fails", .exit_code = 2, .out = "1.0\n"},
    {.command = "score high", .out = "1.5\n"},
    {.command = "score low", .out = "-0.1\n"},
    {.command = "score nan", .out = "nan\n"},
    {.command = "score text", .out = "passed 3\n"},
    {.command = "score empty", .out = "\n0.5\n"},
    {.command = "silent"},
    {.command = "pytest", .exit_code = 127, .err = "not found\n", .missing = "pytest"},
    {.command = "./agent.sh", .exit_code = 127, .err = "not found\n"},
    {.command = "binary", .out = "\xFF\xFE ok\n"},
    {.command = "aaaa", .out = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
    {.command = "flood", .out = "flood\n", .cut = true},
};

static int run(void *context, const struct grade_command *command, struct grade_command_result *ret,
               struct error **err)
{
    (void)context;
    test_timeout_ms = command->timeout_ms;
    test_last_command = *command;
    assert_true(command->output_max_bytes > 0);
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (!str_equal(command->command, commands[i].command))
            continue;
        ret->exit_code = commands[i].exit_code;
        ret->term_signal = commands[i].term_signal;
        ret->timed_out = commands[i].timed_out;
        ret->out_cut = commands[i].cut;
        ret->missing_tool = commands[i].missing != NULL;
        if (commands[i].missing != NULL)
            ret->missing_name = str_dup(commands[i].missing);
        if (commands[i].out != NULL)
            buf_text_append(&ret->out, commands[i].out);
        if (commands[i].err != NULL)
            buf_text_append(&ret->err, commands[i].err);
        return 0;
    }
    return error_set(err, ERROR_SYSTEM, "cannot start '%s'", command->command);
}

/* The reference is the folder, too. */
static int reference(void *context, enum grade_private place, const char *path,
                     struct grade_file *ret, struct error **err)
{
    assert_int_equal(place, GRADE_REFERENCE_DIR);
    return read_file(context, path, true, ret, err);
}

struct grade_workspace test_workspace(void)
{
    return (struct grade_workspace){.read = read_file, .run = run, .private_file = reference};
}

/* --- one criterion --------------------------------------------------------------------------- */

json_t *test_json(const char *text)
{
    json_t *value = NULL;

    if (value_parse(text, strlen(text), &value, NULL) < 0)
        fail_msg("the test's own JSON is wrong: %s", text);
    return value;
}

void judged_done(struct judged *judged)
{
    verdict_done(&judged->verdict);
    error_free(judged->err);
}

static void fill(struct criterion *criterion, enum criterion_kind kind, const char *params)
{
    static char description[] = "a criterion under test";

    *criterion = (struct criterion){
        .kind = kind,
        .type_name = criterion_types[kind].name,
        .description = description,
        .weight = 1,
        .pass_threshold = 0.9,
        .params = test_json(params),
    };
}

int try_judge(enum criterion_kind kind, const char *params, struct judged *ret)
{
    struct criterion criterion;
    struct grade_workspace workspace = test_workspace();
    struct event_log events = {0};
    struct grade_input input = {
        .workspace = &workspace,
        .events = &events,
        .command_timeout_ms = 30000,
    };

    fill(&criterion, kind, params);
    int r = criterion_types[kind].evaluate(&criterion, &input, &ret->verdict, &ret->err);

    json_decref(criterion.params);
    return r;
}

void judge(enum criterion_kind kind, const char *params, struct judged *ret)
{
    if (try_judge(kind, params, ret) < 0)
        fail_msg("%s: %s", params, error_message(ret->err));
    assert_non_null(ret->verdict.details);
    assert_true(ret->verdict.score >= 0 && ret->verdict.score <= 1);
}

static void note_complaint(void *context, const struct criterion_mistake *mistake)
{
    buf_format(context, "%s: %s\n", mistake->place, mistake->message);
}

char *load_complaint(enum criterion_kind kind, const char *params)
{
    scoped(buf_done) struct buf complaints = {0};
    struct criterion criterion;

    fill(&criterion, kind, params);
    grade_check(&criterion, note_complaint, &complaints);
    json_decref(criterion.params);
    return complaints.size_bytes == 0 ? NULL : buf_take(&complaints);
}
