#include "run/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/dialog.h"
#include "run/judges.h"
#include "run/pool_child.h"
#include "run/preflight.h"
#include "run/replay.h"
#include "run/staged.h"
#include "task/task_private.h"
#include "task/task_public.h"

#define TICK_MS 100
#define COMMIT_NS 20000000u

struct slot {
    pid_t pid; /* 0: free */
    int pidfd, note_fd;
    size_t trial;
};

struct pool {
    const struct pool_options *options;
    struct slot *slots;
    size_t next, running;
    struct staged staged;
    struct preflight *preflight; /* NULL: not asked for */
    uint64_t errors;
    uint64_t pending_since_ns; /* first uncommitted journal line; 0: none */
    struct str_list unsynced;  /* directories of trials whose finish is among those lines */
    bool stopping;             /* start nothing more */
    bool told;                 /* the running trials were asked to stop */
};

/* Takes the line. */
static void journal(struct pool *pool, const char *event, const char *trial, json_t *line)
{
    json_t *whole = json_object();

    json_put_text(whole, "event", event);
    json_put_text(whole, "trial", trial);
    ASSERT(json_object_update(whole, line) == 0);
    json_decref(line);
    run_dir_journal(pool->options->run, whole);
    if (pool->pending_since_ns == 0)
        pool->pending_since_ns = clock_ns();
}

/* With the digest of the record: from here on it cannot change unnoticed. */
static int journal_finish(struct pool *pool, const struct planned_trial *trial,
                          const struct trial_note *note, struct error **err)
{
    json_t *line = json_object();
    scoped(fd_closep) int dir_fd = -1;
    char hex[SHA256_HEX_CHARS + 1];
    struct sha256 digest;
    int r = run_dir_open_trial(pool->options->run, trial->path, false, &dir_fd, err);

    if (r == 0)
        r = trial_record_digest(dir_fd, &digest, err);
    if (r < 0) {
        json_decref(line);
        return error_wrap(err, r, "trial '%s'", trial->id);
    }
    sha256_format(&digest, hex);
    json_put_text(line, "status", trial_status_name((enum trial_status)note->status));
    json_put_text(line, "record", hex);
    journal(pool, "finish", trial->id, line);
    return 0;
}

/*
 * The records of a group become durable together: after the first directory's fsync the others have
 * little left to write.
 */
static int sync_trials(struct pool *pool, struct error **err)
{
    int r = 0;

    for (size_t i = 0; i < pool->unsynced.count && r == 0; i++) {
        scoped(fd_closep) int dir_fd = -1;
        const char *path = pool->unsynced.items[i];

        r = run_dir_open_trial(pool->options->run, path, false, &dir_fd, err);
        if (r == 0 && fsync(dir_fd) < 0)
            r = error_errno(err, errno, "cannot sync the folder of '%s/trial.json'", path);
    }
    str_list_done(&pool->unsynced);
    return r;
}

static int commit_due(struct pool *pool, bool now, struct error **err)
{
    if (pool->pending_since_ns == 0 || (!now && clock_ns() - pool->pending_since_ns < COMMIT_NS))
        return 0;
    pool->pending_since_ns = 0;

    int r = sync_trials(pool, err);

    return r < 0 ? r : run_dir_commit(pool->options->run, err);
}

static const struct planned_trial *trial_of(const struct pool *pool, size_t i)
{
    return &pool->options->plan->trials[i];
}

static void stage_for(struct pool *pool, const struct task *task)
{
    if (pool->staged.task == task)
        return;
    staged_done(&pool->staged);

    struct staged_options options = {
        .session = pool->options->session,
        .task = task,
        .all = &pool->options->plan->tasks,
        .grading = pool->options->work == POOL_GRADE || pool->options->grading,
        .only_grading = pool->options->work == POOL_GRADE,
        .run_path = run_dir_path(pool->options->run),
        .looks_for_leaks = pool->options->work == POOL_RUN,
        .allowed_leaks = pool->options->allowed_leaks,
    };

    staged_make(&options, &pool->staged);
    if (pool->preflight != NULL)
        preflight_check(pool->preflight, pool->options->session, &pool->staged);
}

static void close_slots(const struct pool *pool)
{
    for (unsigned i = 0; i < pool->options->parallel; i++) {
        if (pool->slots[i].pid == 0)
            continue;
        (void)close(pool->slots[i].pidfd); /* the parent's business */
        (void)close(pool->slots[i].note_fd);
    }
}

/* The control connections are the parent's: a trial has one of its own. */
static void forget_controls(const struct session *session)
{
    if (session->native != NULL)
        monitor_forget(session->native);
    if (session->tempdir != NULL)
        monitor_forget(session->tempdir);
    broker_forget(session->broker);
    broker_forget(session->judges);
    if (session->has_env_keys)
        (void)close(session->env_keys_fd); /* a trial has no key */
}

static int connect_trial(struct pool *pool, struct monitor **ret, struct error **err)
{
    struct monitor *control = pool->staged.control;

    if (control == NULL) /* staging failed before a driver was found: any connection will do */
        control = pool->options->session->native != NULL ? pool->options->session->native
                                                         : pool->options->session->tempdir;
    if (control == NULL)
        return session_monitor(pool->options->session, CELL_NATIVE, &control, err);
    return monitor_connect(control, ret, err);
}

/* Steps of the host that are trusted run by the server without walls; most trials have none. */
static int connect_bare_host(struct pool *pool, const struct task *task, struct monitor **ret,
                             struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    struct monitor *control = NULL;

    task_split(task, &public_half, &private_half);
    if (!pool->options->trust_host_steps ||
        private_half->pre_run_count + private_half->post_run_count == 0)
        return 0;
    int r = session_monitor(pool->options->session, CELL_TEMPDIR, &control, err);

    return r < 0 ? r : monitor_connect(control, ret, err);
}

/* Where the task's recorded programs are answered for. */
static int connect_broker(struct pool *pool, const struct task *task, int *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    struct broker *broker = NULL;

    task_split(task, &public_half, &private_half);
    if (pool->options->work != POOL_RUN ||
        (public_half->mock_tools.count == 0 && !public_half->mocks_sealed &&
         !public_half->network_broker))
        return 0;
    int r = session_stand_in(pool->options->session, err);

    if (r < 0 || (public_half->mock_tools.count == 0 && !public_half->network_broker))
        return r;
    r = session_broker(pool->options->session, &broker, err);
    return r < 0 ? r : broker_connect(broker, ret, err);
}

/* To the broker of judges, which was started when the plan was checked. */
static int connect_judges(struct pool *pool, const struct task *task, int *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(task, &public_half, &private_half);
    if (pool->options->session->judges == NULL ||
        !(judges_are_needed(private_half) || dialog_needs_model(public_half, private_half)))
        return 0;
    return broker_connect(pool->options->session->judges, ret, err);
}

/* What the trial asks of models is kept, or answered from what was. */
static int connect_recording(struct pool *pool, const struct planned_trial *trial, int broker_fd,
                             int judges_fd, struct error **err)
{
    const struct replay *replay = pool->options->session->replay;
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(pool->options->plan->tasks.tasks[trial->task_index], &public_half, &private_half);
    if (pool->options->work != POOL_RUN)
        return 0;
    int r = replay_connect(replay, trial->path, REPLAY_AGENT,
                           public_half->network_broker ? broker_fd : -1, err);

    return r < 0 ? r : replay_connect(replay, trial->path, REPLAY_JUDGES, judges_fd, err);
}

/* The connection lives on in the trial's process alone. */
static void let_go(struct monitor *monitor)
{
    if (monitor == NULL)
        return;
    monitor_forget(monitor);
    monitor_free(monitor);
}

static int fork_trial(struct pool *pool, struct slot *slot, const struct pool_child *child,
                      struct error **err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(err, errno, "cannot make a pipe");

    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        (void)close(ends[0]); /* the parent's end */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(1);
        close_slots(pool);
        forget_controls(pool->options->session);
        pool_child_main(child, ends[1]);
    }

    int saved = errno;

    (void)close(ends[1]); /* the child's end */
    if (pid < 0) {
        (void)close(ends[0]); /* nothing was started */
        return error_errno(err, saved, "cannot start a trial process");
    }
    slot->pid = pid;
    slot->note_fd = ends[0];
    slot->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (slot->pidfd < 0)
        return error_errno(err, errno, "cannot watch a trial process");
    return 0;
}

static int start_trial(struct pool *pool, struct slot *slot, size_t index, struct error **err)
{
    const struct pool_options *options = pool->options;
    const struct planned_trial *trial = trial_of(pool, index);
    scoped(fd_closep) int dir_fd = -1;
    const struct task *task = options->plan->tasks.tasks[trial->task_index];
    struct monitor *monitor = NULL, *bare_host = NULL;
    scoped(fd_closep) int broker_fd = -1;
    scoped(fd_closep) int judges_fd = -1;

    stage_for(pool, task);

    int r = run_dir_open_trial(options->run, trial->path, options->work == POOL_RUN, &dir_fd, err);

    if (r == 0)
        r = connect_bare_host(pool, task, &bare_host, err);
    if (r == 0)
        r = connect_broker(pool, task, &broker_fd, err);
    if (r == 0)
        r = connect_judges(pool, task, &judges_fd, err);
    if (r == 0)
        r = connect_recording(pool, trial, broker_fd, judges_fd, err);
    if (r == 0)
        r = connect_trial(pool, &monitor, err);
    if (r < 0)
        return error_wrap(err, r, "trial '%s'", trial->id);

    struct pool_child child = {
        .options = options,
        .staged = &pool->staged,
        .trial = trial,
        .monitor = monitor,
        .bare_host = bare_host,
        .broker_fd = broker_fd,
        .judges_fd = judges_fd,
        .dir_fd = dir_fd,
    };

    journal(pool, options->work == POOL_RUN ? "start" : "grade", trial->id, json_object());
    r = fork_trial(pool, slot, &child, err);
    let_go(monitor);
    let_go(bare_host);
    if (r < 0)
        return r;
    slot->trial = index;
    pool->running++;
    if (options->observer.trial_started != NULL)
        options->observer.trial_started(options->observer.context, trial->id);
    return 0;
}

/* The trial's process left without a word: its crash is an error of this trial alone. */
static int record_crash(struct pool *pool, const struct slot *slot, const struct error *why,
                        struct trial_note *note, struct error **err)
{
    scoped(fd_closep) int dir_fd = -1;
    const struct planned_trial *trial = trial_of(pool, slot->trial);
    int r = run_dir_open_trial(pool->options->run, trial->path, false, &dir_fd, err);

    if (r < 0)
        return r;

    struct pool_child child = {.options = pool->options,
                               .trial = trial,
                               .staged = &pool->staged,
                               .broker_fd = -1,
                               .judges_fd = -1,
                               .dir_fd = dir_fd};

    return pool_child_crashed(&child, why, note, err);
}

static int read_note(struct pool *pool, const struct slot *slot, struct trial_note *note,
                     struct error **err)
{
    int status = 0;
    ssize_t n = read(slot->note_fd, note, sizeof(*note));

    while (waitpid(slot->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (n == (ssize_t)sizeof(*note) && note->outcome != TRIAL_LOST)
        return 0;
    if (*pool->options->stop != 0) {
        *note = (struct trial_note){.outcome = TRIAL_INTERRUPTED};
        return 0;
    }

    scoped(error_freep) struct error *why = NULL;

    note->error[sizeof(note->error) - 1] = 0;
    if (n == (ssize_t)sizeof(*note))
        (void)error_set(&why, ERROR_SYSTEM, "%s", note->error);
    else if (WIFSIGNALED(status))
        (void)error_set(&why, ERROR_BUG, "the trial's process was killed by signal %d",
                        WTERMSIG(status));
    else
        (void)error_set(&why, ERROR_SYSTEM,
                        "the trial's process ended with status %d and without a record",
                        WEXITSTATUS(status));
    return record_crash(pool, slot, why, note, err);
}

static void judge_stop(struct pool *pool, const struct trial_note *note)
{
    const struct pool_options *options = pool->options;

    if (note->status == STATUS_ERROR || note->status == STATUS_BUILD_FAILED)
        pool->errors++;
    if (options->fail_fast && !note->passed)
        pool->stopping = true;
    if (options->stop_after_errors != 0 && pool->errors >= options->stop_after_errors)
        pool->stopping = true;
}

static int finish_trial(struct pool *pool, struct slot *slot, struct error **err)
{
    const struct pool_observer *observer = &pool->options->observer;
    const char *id = trial_of(pool, slot->trial)->id;
    struct trial_note note = {0};
    int r = read_note(pool, slot, &note, err);

    fd_closep(&slot->pidfd);
    fd_closep(&slot->note_fd);
    slot->pid = 0;
    pool->running--;
    if (r < 0 || note.outcome == TRIAL_INTERRUPTED)
        return r;
    note.error[sizeof(note.error) - 1] = 0;
    str_list_add(&pool->unsynced, trial_of(pool, slot->trial)->path);
    r = journal_finish(pool, trial_of(pool, slot->trial), &note, err);
    if (r < 0)
        return r;
    judge_stop(pool, &note);
    if (observer->trial_finished != NULL)
        observer->trial_finished(observer->context, id, &note);
    return 0;
}

/* Ctrl-C reaches the whole foreground group by itself; a plain kill of the parent does not. */
static void tell_children(struct pool *pool)
{
    if (pool->told || *pool->options->stop == 0)
        return;
    pool->told = pool->stopping = true;
    for (unsigned i = 0; i < pool->options->parallel; i++)
        if (pool->slots[i].pid != 0)
            (void)kill(pool->slots[i].pid, SIGTERM); /* one that is gone needs no telling */
}

static int wait_some(struct pool *pool, struct error **err)
{
    struct pollfd polls[POOL_PARALLEL_MAX];
    struct slot *slots[POOL_PARALLEL_MAX];
    nfds_t count = 0;

    for (unsigned i = 0; i < pool->options->parallel; i++) {
        if (pool->slots[i].pid == 0)
            continue;
        slots[count] = &pool->slots[i];
        polls[count++] = (struct pollfd){.fd = pool->slots[i].pidfd, .events = POLLIN};
    }

    int timeout_ms = pool->pending_since_ns != 0 ? (int)(COMMIT_NS / 1000000u) : TICK_MS;
    int r = poll(polls, count, timeout_ms);

    if (r < 0 && errno != EINTR)
        return error_errno(err, errno, "cannot wait for trials");
    tell_children(pool);
    for (nfds_t i = 0; r > 0 && i < count; i++) {
        int finished = polls[i].revents != 0 ? finish_trial(pool, slots[i], err) : 0;

        if (finished < 0)
            return finished;
    }
    if (pool->options->observer.tick != NULL)
        pool->options->observer.tick(pool->options->observer.context);
    return commit_due(pool, false, err);
}

static struct slot *free_slot(struct pool *pool)
{
    for (unsigned i = 0; i < pool->options->parallel; i++)
        if (pool->slots[i].pid == 0)
            return &pool->slots[i];
    return NULL;
}

static void skip_done(struct pool *pool)
{
    const struct run_plan *plan = pool->options->plan;

    while (pool->next < plan->trial_count && plan->trials[pool->next].done)
        pool->next++;
}

static int pump(struct pool *pool, struct error **err)
{
    const struct run_plan *plan = pool->options->plan;
    int r = 0;

    for (;;) {
        tell_children(pool);
        skip_done(pool);

        struct slot *slot = free_slot(pool);
        bool more = !pool->stopping && pool->next < plan->trial_count;

        if (more && slot != NULL)
            r = start_trial(pool, slot, pool->next++, err);
        else if (pool->running > 0)
            r = wait_some(pool, err);
        else
            return 0;
        if (r < 0)
            return r;
    }
}

/* After an error of the pool itself: nothing that was started may go on. */
static void abandon(struct pool *pool)
{
    for (unsigned i = 0; i < pool->options->parallel; i++) {
        struct slot *slot = &pool->slots[i];

        if (slot->pid == 0)
            continue;
        (void)kill(slot->pid, SIGKILL); /* its cells end with its connection */
        (void)waitpid(slot->pid, NULL, 0);
        fd_closep(&slot->pidfd);
        fd_closep(&slot->note_fd);
    }
}

int pool_run(const struct pool_options *options, bool *ret_interrupted, struct error **err)
{
    ASSERT(options->parallel >= 1 && options->parallel <= POOL_PARALLEL_MAX);

    struct pool pool = {.options = options, .staged.script_fd = -1};

    pool.slots = mem_new(options->parallel, sizeof(*pool.slots));
    for (unsigned i = 0; i < options->parallel; i++)
        pool.slots[i].pidfd = pool.slots[i].note_fd = -1;

    if (options->preflight && options->work == POOL_RUN)
        pool.preflight = preflight_new();

    int r = pump(&pool, err);

    if (r < 0)
        abandon(&pool);
    else
        r = commit_due(&pool, true, err);
    if (r == 0)
        r = staged_check_all(options->session, err);
    staged_done(&pool.staged);
    preflight_free(pool.preflight);
    str_list_done(&pool.unsynced);
    free(pool.slots);
    if (r == 0)
        *ret_interrupted = *options->stop != 0;
    return r;
}
