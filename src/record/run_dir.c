#include "record/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "record/run_internal.h"

#define RUN_FILE "run.json"
#define PLAN_FILE "plan.json"
#define LOCK_FILE "lock"

static struct run_dir *run_new(const char *path)
{
    struct run_dir *run = mem_new(1, sizeof(*run));

    run->path = str_dup(path);
    run->dir_fd = run->lock_fd = run->journal_fd = -1;
    return run;
}

void run_dir_close(struct run_dir *run)
{
    if (run == NULL)
        return;
    fd_closep(&run->journal_fd);
    if (run->lock_fd >= 0)
        (void)!ftruncate(run->lock_fd, 0); /* the pid of nobody: the lock itself is the flock */
    fd_closep(&run->lock_fd);
    fd_closep(&run->dir_fd);
    json_decref(run->run);
    json_decref(run->plan);
    buf_done(&run->pending);
    free(run->path);
    free(run);
}

void run_dir_closep(struct run_dir **run)
{
    run_dir_close(*run);
    *run = NULL;
}

const char *run_dir_id(const struct run_dir *run)
{
    return json_get_text(run->run, "run_id");
}

const char *run_dir_path(const struct run_dir *run)
{
    return run->path;
}

int run_dir_fd(const struct run_dir *run)
{
    return run->dir_fd;
}

const json_t *run_dir_plan(const struct run_dir *run)
{
    return run->plan;
}

const json_t *run_dir_run(const struct run_dir *run)
{
    return run->run;
}

/* --- the lock ------------------------------------------------------------------------------- */

/* The pid in the lock file, for the message only: the lock itself is the flock. */
static int lock_is_held(const struct run_dir *run, struct error **err)
{
    char text[32] = "";
    ssize_t n = pread(run->lock_fd, text, sizeof(text) - 1, 0);
    uint64_t pid = 0;

    if (n > 0) {
        text[n] = '\0';
        text[strcspn(text, "\n")] = '\0';
    }
    if (!str_to_u64(text, &pid))
        return error_set(err, ERROR_USER, "run directory '%s' is in use by another closedbook",
                         run->path);
    return error_set(err, ERROR_USER,
                     "run directory '%s' is in use by another closedbook (pid %ju)", run->path,
                     (uintmax_t)pid);
}

static int lock_run(struct run_dir *run, struct error **err)
{
    run->lock_fd = openat(run->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (run->lock_fd < 0)
        return error_errno(err, errno, "cannot write in run directory '%s'", run->path);
    if (flock(run->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return lock_is_held(run, err);
        return error_errno(err, errno, "cannot lock run directory '%s'", run->path);
    }

    scoped(mem_freep) char *pid = str_format("%jd\n", (intmax_t)getpid());

    if (ftruncate(run->lock_fd, 0) < 0)
        return error_errno(err, errno, "cannot write in run directory '%s'", run->path);
    return fs_write_all(run->lock_fd, LOCK_FILE, pid, strlen(pid), err);
}

/* --- creating ------------------------------------------------------------------------------- */

static int take_dir(int dir_fd, struct run_dir *run, struct error **err)
{
    const char *path = run->path;
    struct stat st;

    /* Opened anew: a descriptor of our own, readable whatever the caller's was. */
    run->dir_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->dir_fd < 0)
        return error_errno(err, errno, "cannot open run directory '%s'", path);

    if (fstat(run->dir_fd, &st) < 0)
        return error_errno(err, errno, "cannot look at run directory '%s'", path);
    if ((st.st_mode & 07777) != 0700 && fchmod(run->dir_fd, 0700) < 0)
        return error_errno(err, errno, "cannot make run directory '%s' private", path);
    return 0;
}

/* A directory that someone uses for other things is not ours to fill. */
static int refuse_stranger(void *context, int dir_fd, const char *name, struct error **err)
{
    const struct run_dir *run = context;

    (void)dir_fd;
    if (strcmp(name, RUN_FILE) == 0)
        return error_set(err, ERROR_USER,
                         "run directory '%s' holds a run already: continue it with --resume, or "
                         "choose another --run-dir",
                         run->path);
    if (strcmp(name, LOCK_FILE) == 0 || strcmp(name, PLAN_FILE) == 0 || str_starts(name, ".tmp-") ||
        strcmp(name, JOURNAL_FILE) == 0)
        return 0;
    return error_set(err, ERROR_USER,
                     "run directory '%s' is not empty and holds no run: choose another --run-dir",
                     run->path);
}

static int write_json(const struct run_dir *run, const char *name, const json_t *value,
                      struct error **err)
{
    scoped(buf_done) struct buf text = {.max_bytes = RUN_FILE_BYTES_MAX};

    json_write_pretty(&text, value);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "%s is larger than %zu bytes", name, RUN_FILE_BYTES_MAX);
    return fs_write_atomic(run->dir_fd, name,
                           &(struct fs_content){text.data, text.size_bytes, 0600, FS_SYNC}, err);
}

static json_t *run_json(const struct run_facts *facts)
{
    json_t *json = json_object();
    uint64_t unix_ms = clock_unix_ms();
    scoped(mem_freep) char *date = clock_format_utc(unix_ms);

    json_put_text(json, "schema", RUN_SCHEMA);
    json_put_text(json, "run_id", facts->run_id);
    json_put(json, "version", json_text_or_null(facts->version));
    json_put(json, "command_line", json_text_or_null(facts->command_line));
    json_put_text(json, "started", date);
    json_put_int(json, "started_unix_ms", (int64_t)unix_ms);
    json_put(json, "config", facts->config == NULL ? json_object() : json_incref(facts->config));
    json_put(json, "machine", facts->machine == NULL ? json_object() : json_incref(facts->machine));
    return json;
}

int run_dir_save_suites(struct run_dir *run, const json_t *suites, struct error **err)
{
    ASSERT(run->lock_fd >= 0);
    if (json_array_size(suites) == 0 && json_object_get(run->run, "suites") == NULL)
        return 0;
    if (json_array_size(suites) == 0)
        (void)json_object_del(run->run, "suites"); /* it is there */
    else
        json_put(run->run, "suites", json_deep_copy(suites));

    int r = write_json(run, RUN_FILE, run->run, err);

    return r < 0 ? error_wrap(err, r, "cannot write run directory '%s'", run->path) : 0;
}

static int fill(struct run_dir *run, struct error **err)
{
    int r = write_json(run, PLAN_FILE, run->plan, err);

    if (r < 0)
        return r;
    r = journal_open(run, err);
    if (r < 0)
        return r;
    return write_json(run, RUN_FILE, run->run, err);
}

int run_dir_create(const char *path, const struct run_facts *facts, const json_t *plan,
                   struct run_dir **ret, struct error **err)
{
    scoped(fd_closep) int dir_fd = -1;
    int r = fs_open_dir(AT_FDCWD, path, 0700, &dir_fd, err);

    if (r < 0)
        return error_wrap(err, r, "cannot make run directory '%s'", path);
    return run_dir_create_at(dir_fd, path, facts, plan, ret, err);
}

int run_dir_create_at(int dir_fd, const char *path, const struct run_facts *facts,
                      const json_t *plan, struct run_dir **ret, struct error **err)
{
    scoped(run_dir_closep) struct run_dir *run = run_new(path);
    int r = take_dir(dir_fd, run, err);

    if (r < 0)
        return r;
    r = fs_each(run->dir_fd, refuse_stranger, run, err);
    if (r < 0)
        return r;
    r = lock_run(run, err);
    if (r < 0)
        return r;
    run->run = run_json(facts);
    run->plan = json_deep_copy(plan);
    ASSERT(run->plan != NULL);
    r = fill(run, err);
    if (r < 0)
        return error_wrap(err, r, "cannot write run directory '%s'", path);
    *ret = take(run);
    return 0;
}

/* --- opening -------------------------------------------------------------------------------- */

static int load_json(const struct run_dir *run, const char *name, const char *schema, json_t **ret,
                     struct error **err)
{
    scoped(error_freep) struct error *cause = NULL;
    scoped(json_freep) json_t *json = NULL;
    int r = json_load(run->dir_fd, name, RUN_FILE_BYTES_MAX, &json, &cause);

    if (r < 0 && error_errno_of(cause) == ENOENT)
        return error_set(err, ERROR_USER, "'%s' is no run directory: it has no %s", run->path,
                         name);
    if (r < 0 && error_errno_of(cause) != 0)
        return error_errno(err, error_errno_of(cause), "cannot read '%s/%s'", run->path, name);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, "'%s/%s' is damaged: %s", run->path, name,
                         error_message(cause));
    if (!str_equal(json_get_text(json, "schema"), schema))
        return error_set(err, ERROR_SYSTEM, "'%s/%s': schema '%s' expected", run->path, name,
                         schema);
    *ret = take(json);
    return 0;
}

static int load(struct run_dir *run, struct error **err)
{
    int r = load_json(run, RUN_FILE, RUN_SCHEMA, &run->run, err);

    if (r < 0)
        return r;
    if (json_get_text(run->run, "run_id") == NULL)
        return error_set(err, ERROR_SYSTEM, "'%s/" RUN_FILE "': run_id: a string expected",
                         run->path);
    return load_json(run, PLAN_FILE, PLAN_SCHEMA, &run->plan, err);
}

int run_dir_open(const char *path, bool lock, struct run_dir **ret, struct error **err)
{
    scoped(fd_closep) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_set(err, ERROR_USER, "'%s' is no run directory: it does not exist", path);
    if (dir_fd < 0)
        return error_errno(err, errno, "cannot open run directory '%s'", path);
    return run_dir_open_at(dir_fd, path, lock, ret, err);
}

int run_dir_open_at(int dir_fd, const char *path, bool lock, struct run_dir **ret,
                    struct error **err)
{
    scoped(run_dir_closep) struct run_dir *run = run_new(path);

    run->dir_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->dir_fd < 0)
        return error_errno(err, errno, "cannot open run directory '%s'", path);

    /* First what it is: a directory that is no run gets no lock file. */
    int r = load(run, err);

    if (r == 0 && lock)
        r = lock_run(run, err);
    if (r == 0 && lock)
        r = journal_open(run, err);
    if (r < 0)
        return r;
    *ret = take(run);
    return 0;
}

/* --- trials' directories ---------------------------------------------------------------------- */

/* Removes what a trial left; its record goes first, so that half of it is never taken for whole. */
static int remove_trial(int parent_fd, const char *name, struct error **err)
{
    scoped(mem_freep) char *record = path_join(name, TRIAL_FILE_NAME);

    if (unlinkat(parent_fd, record, 0) < 0 && errno != ENOENT && errno != ENOTDIR)
        return error_errno(err, errno, "cannot remove '%s'", record);
    return fs_remove_tree(parent_fd, name, err);
}

int run_dir_open_trial(struct run_dir *run, const char *trial_path, bool fresh, int *ret,
                       struct error **err)
{
    ASSERT(path_is_inside(trial_path) && str_starts(trial_path, "trials/"));

    scoped(fd_closep) int parent_fd = -1;
    scoped(fd_closep) int fd = -1;
    scoped(mem_freep) char *parent = path_dir(trial_path);
    const char *name = path_base(trial_path);
    int r = fs_open_dir(run->dir_fd, parent, 0700, &parent_fd, err);

    if (r == 0 && fresh)
        r = remove_trial(parent_fd, name, err);
    if (r == 0)
        r = fs_open_dir(parent_fd, name, 0700, &fd, err);
    if (r < 0)
        return error_wrap(err, r, "cannot make '%s/%s'", run->path, trial_path);
    *ret = take_fd(&fd);
    return 0;
}
