#include "stage/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/term.h"
#include "stage/internal.h"
#include "stage/repo_script.h"
#include "stage/stage.h"

#define OBJECTS_TARGET "/run/closedbook/objects" /* as repo.sh has it */
#define SAID_BYTES_MAX ((size_t)64 << 10)
#define TAIL_BYTES_MAX 400
#define NS_PER_MS UINT64_C(1000000)
#define EXIT_REFUSED 3 /* of repo.sh */
/* In every key: a change of what is made must not find what an older version made. */
#define KEY_FORMAT "closedbook/repo/2"

static const char *const history_names[] = {
    [HISTORY_BASE] = "base",
    [HISTORY_ANCESTORS] = "ancestors",
    [HISTORY_NONE] = "none",
};

/* Nobody's configuration, no other repository, no prompt, and names that say nothing. */
static const char *const git_env[] = {
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_ALLOW_PROTOCOL=",
    "GIT_AUTHOR_NAME=base",
    "GIT_AUTHOR_EMAIL=base@localhost",
    "GIT_COMMITTER_NAME=base",
    "GIT_COMMITTER_EMAIL=base@localhost",
    "GIT_OPTIONAL_LOCKS=0",
};

/* --- what was made before */

static void make_key(const struct task_source *source, char ret[static SHA256_HEX_CHARS + 1])
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    const char *const texts[] = {KEY_FORMAT, source->commit, history_names[source->history]};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        sha256_stream_add(stream, texts[i], strlen(texts[i]) + 1);
    struct sha256 digest = sha256_stream_end(stream);

    sha256_format(&digest, ret);
}

/* --- the objects */

static int open_objects(const struct repo_source *from, int *ret, struct error **err)
{
    static const char *const places[] = {".git/objects", "objects"};
    const struct task_reader *reader = from->reader;
    int fd = -ENOENT;

    for (size_t i = 0; i < ARRAY_SIZE(places) && fd == -ENOENT; i++) {
        scoped(mem_freep) char *path = path_join(from->source->path, places[i]);

        fd = reader->open(reader->context, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd == -ENOENT)
        return error_set(err, ERROR_TASK,
                         "it is no git repository: there is neither .git/objects nor objects");
    if (fd == -ENOTDIR || fd == -ELOOP)
        return error_set(err, ERROR_TASK,
                         "its .git is no folder but leads to another place, as in a worktree or a "
                         "submodule: name the repository that it belongs to");
    if (fd < 0)
        return error_set(err, ERROR_TASK, "its objects cannot be opened: %s", strerror(-fd));
    *ret = fd;
    return 0;
}

/* --- git in its cell */

/* The end of what was printed, in one line; owned. */
static char *tail(int fd)
{
    scoped(buf_done) struct buf text = {.max_bytes = SAID_BYTES_MAX};

    (void)lseek(fd, 0, SEEK_SET); /* of a memfd: cannot fail */
    (void)!fs_read_fd(fd, "git's output", SAID_BYTES_MAX, &text, NULL);
    size_t size = text.size_bytes;

    while (size > 0 && strchr(" \t\r\n", buf_text(&text)[size - 1]) != NULL)
        size--;
    size_t from = size > TAIL_BYTES_MAX ? size - TAIL_BYTES_MAX : 0;
    scoped(mem_freep) char *end =
        size == 0 ? str_dup("it printed nothing") : str_ndup(buf_text(&text) + from, size - from);

    return term_quoted(end);
}

static int judge(enum cell_wait_result end, const struct cell_exit *exit, int said_fd,
                 struct error **err)
{
    if (end == CELL_DEADLINE)
        return error_set(err, ERROR_LIMIT, "git took longer than %ju s",
                         (uintmax_t)(REPO_TIMEOUT_MS / 1000));
    if (exit->term_signal == 0 && exit->exit_code == 0)
        return 0;
    scoped(mem_freep) char *said = tail(said_fd);

    if (exit->term_signal == 0 && exit->exit_code == EXIT_REFUSED)
        return error_set(err, ERROR_TASK, "%s", said);
    if (strstr(said, "No space left on device") != NULL)
        return error_set(err, ERROR_LIMIT, "it needs more than %ju bytes: %s",
                         (uintmax_t)REPO_BYTES_MAX, said);
    return error_set(err, ERROR_SYSTEM, "git failed (%s %d): %s",
                     exit->term_signal != 0 ? "signal" : "exit code",
                     exit->term_signal != 0 ? exit->term_signal : exit->exit_code, said);
}

static int await(struct cell *cell, int said_fd, struct error **err)
{
    const struct cell_patience patience = {.deadline_ns = clock_ns() + REPO_TIMEOUT_MS * NS_PER_MS};
    enum cell_wait_result end = CELL_EXITED;
    struct cell_exit exit = {0};
    struct cell_receipt receipt;
    int r = cell_wait(cell, 0, &patience, &end, &exit, err);

    if (r == 0)
        r = cell_end(cell, &receipt, err);
    return r < 0 ? r : judge(end, &exit, said_fd, err);
}

/* *ret: an ended cell, in whose workspace the repository is. */
static int make(const struct repo_source *from, int objects_fd, struct cell **ret,
                struct error **err)
{
    const struct task_source *source = from->source;
    const char *const argv[] = {"/bin/sh",
                                "-c",
                                repo_script,
                                "repo.sh",
                                source->commit,
                                history_names[source->history],
                                strlen(source->commit) == 40 ? "sha1" : "sha256",
                                NULL};
    scoped(view_freep) struct view *view = NULL;
    scoped(str_list_done) struct str_list env = {0};
    scoped(fd_closep) int said_fd = memfd_create("git", MFD_CLOEXEC);
    scoped(cell_freep) struct cell *cell = NULL;
    struct cell_spec spec = {.etc_fd = -1};

    if (said_fd < 0)
        return error_errno(err, errno, "cannot keep git's output");
    int r = view_build_empty(from->store, &view, err);

    if (r == 0)
        r = view_fill_cell(view, NULL, CELL_AGENT, &spec, err);
    if (r < 0)
        return r;
    ASSERT(spec.mount_count < CELL_MOUNTS_MAX);
    spec.mounts[spec.mount_count++] =
        (struct cell_mount){.fd = objects_fd, .target = OBJECTS_TARGET};
    spec.limits =
        (struct cell_limits){.disk_bytes = REPO_BYTES_MAX, .inodes = 2 * REPO_ENTRIES_MAX};
    cell_env_default(&env);
    for (size_t i = 0; i < ARRAY_SIZE(git_env); i++)
        str_list_add(&env, git_env[i]);
    spec.command = (struct cell_command){
        .argv = argv,
        .envp = (const char *const *)env.items,
        .fds = {-1, said_fd, said_fd},
        .fd_count = 3,
    };
    r = cell_start(from->monitor, &spec, &cell, err);
    if (r == 0)
        r = await(cell, said_fd, err);
    if (r == 0)
        *ret = take(cell);
    return r;
}

/* --- into the store */

static int make_and_add(const struct repo_source *from, struct layer *ret, struct error **err)
{
    scoped(mem_freep) char *bytes = str_format("--max-bytes=%ju", (uintmax_t)REPO_BYTES_MAX);
    scoped(mem_freep) char *entries = str_format("--max-entries=%ju", (uintmax_t)REPO_ENTRIES_MAX);
    const char *const args[] = {"add", "--collected", "--sync", bytes, entries, NULL};
    scoped(cell_freep) struct cell *cell = NULL;
    scoped(fd_closep) int objects_fd = -1;

    if (from->monitor == NULL)
        return error_set(err, ERROR_BUG, "a repository that cannot be made here");
    if (monitor_facts(from->monitor)->driver != CELL_NATIVE)
        return error_set(err, ERROR_SYSTEM,
                         "git only runs in a cell of tier A, B or B-, which this machine has not: "
                         "see closedbook doctor");
    int r = open_objects(from, &objects_fd, err);

    if (r == 0)
        r = make(from, objects_fd, &cell, err);
    return r < 0 ? r
                 : store_add_collected(&(struct collected){from->store, from->monitor, cell, args},
                                       ret, err);
}

int repo_add(const struct repo_source *source, struct layer *ret, struct error **err)
{
    char key[SHA256_HEX_CHARS + 1];
    struct sha256 root;

    make_key(source->source, key);
    const struct lookup lookup = {.half = STORE_PUBLIC, .root = &root};
    int r = store_key_read(source->store, key, &root) != 0
                ? 1
                : store_find(source->store, &lookup, ret, err);

    if (r == 1) {
        r = make_and_add(source, ret, err);
        if (r == 0)
            r = store_key_save(source->store, key, &ret->root, err);
    }
    return r < 0 ? error_wrap(err, r, "cannot stage the repository '%s'", source->source->path) : 0;
}
