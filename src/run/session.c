#include "run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "broker/keys.h"
#include "run/limits.h"
#include "run/replay.h"
#include "task/task_public.h"

#define HELD_FD_MIN 16
#define ROOT_STORE "/var/cache/closedbook"

/*
 * A helper program stands in libexec of the installation that this program belongs to, or, in a
 * build tree, in its module's folder beside ours.
 */
static int find_program(const char *name, const char *module, char **ret, struct error **err)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length <= 0)
        return error_errno(err, errno, "cannot read /proc/self/exe");
    self[length] = 0;

    scoped(mem_freep) char *folder = path_dir(self);
    char *places[] = {
        str_format("%s/../libexec/closedbook/%s", folder, name),
        str_format("%s/../%s/%s", folder, module, name),
        str_format("%s/%s", CLOSEDBOOK_LIBEXECDIR, name),
    };
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (found == NULL && access(places[i], X_OK) == 0)
            found = path_normal(places[i]);
        free(places[i]);
    }
    if (found == NULL)
        return error_set(err, ERROR_SYSTEM,
                         "the program '%s' was not found near '%s'; install closedbook whole", name,
                         self);
    *ret = found;
    return 0;
}

/*
 * The program's path for later, when root has become somebody else who may not be able to go there:
 * a checkout in /root is like that.
 */
static int hold_program(struct session *session, const char *path, char **ret, struct error **err)
{
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s'", path);
    /* High, so that no program is given another descriptor of that number before it executes. */
    int held = fcntl(fd, F_DUPFD_CLOEXEC, HELD_FD_MIN);

    if (held < 0)
        return error_errno(err, errno, "cannot hold '%s'", path);
    session->held_fds[session->held_count++] = held;
    *ret = str_format("/proc/self/fd/%d", held);
    return 0;
}

/* The same in place of the path. */
static int hold_instead(struct session *session, char **path, struct error **err)
{
    char *held = NULL;
    int r = hold_program(session, *path, &held, err);

    if (r < 0)
        return r;
    free(*path);
    *path = held;
    return 0;
}

static int hold_programs(struct session *session, struct error **err)
{
    if (!session->identity.root)
        return 0;
    int r = hold_program(session, session->worker_program, &session->held_worker, err);

    if (r == 0)
        r = hold_instead(session, &session->probe_program, err);
    if (r == 0)
        r = hold_instead(session, &session->broker_program, err);
    if (r == 0)
        r = hold_instead(session, &session->mock_program, err);
    return r < 0 ? r : hold_instead(session, &session->unpack_program, err);
}

/* For a command without cells. */
static int find_broker(struct session *session, struct error **err)
{
    int r = find_program("closedbook-broker", "broker", &session->broker_program, err);

    return r < 0 || !session->identity.root ? r
                                            : hold_instead(session, &session->broker_program, err);
}

/* Root adopts the owner of a run that exists, so that it can read what is 0700. */
static int adopt_owner(const char *path, struct identity *identity, struct error **err)
{
    struct stat st;

    if (!identity->root || path == NULL)
        return 0;
    if (stat(path, &st) != 0)
        return error_set(err, ERROR_USER, "'%s': %s; a run directory was expected", path,
                         strerror(errno));
    if (st.st_uid != 0) {
        identity->uid = st.st_uid;
        identity->gid = st.st_gid;
    }
    return 0;
}

static int prepare_store_root(struct session *session, struct error **err)
{
    const struct identity *identity = &session->identity;

    if (!identity->root) {
        session->store_root = store_default_root();
        return 0;
    }
    session->store_root = str_format("%s/%u", ROOT_STORE, identity->uid);
    if ((mkdir(ROOT_STORE, 0755) != 0 && errno != EEXIST) ||
        (mkdir(session->store_root, 0700) != 0 && errno != EEXIST))
        return error_errno(err, errno, "cannot make the store '%s'", session->store_root);
    if (lchown(session->store_root, identity->uid, identity->gid) != 0)
        return error_errno(err, errno, "cannot give away the store '%s'", session->store_root);
    return 0;
}

/* Whether the identity may be taken. */
struct check {
    const struct identity *identity;
    bool done;
    int r;
    struct error *err;
};

static void check_identity(void *context)
{
    struct check *check = context;

    if (!check->done)
        check->r = identity_check(check->identity, &check->err);
    check->done = true;
}

static int check_result(struct check *check, struct error **err)
{
    check_identity(check);
    if (check->r < 0)
        (void)error_set(err, error_code_of(check->err), "%s", error_message(check->err));
    return check->r;
}

static void check_done(struct check *check)
{
    error_free(check->err);
}

/* The root of a container may have no power to mount; as an ordinary user it may have namespaces.
 */
static void start_without_root(struct session *session, struct monitor_options *options)
{
    struct error *second = NULL;

    options->uid = session->identity.uid;
    options->gid = session->identity.gid;
    if (monitor_start(options, &session->native, &second) == 0) {
        error_free(session->native_error);
        session->native_error = NULL;
        return;
    }
    session->native = NULL;
    (void)error_wrap(&session->native_error, -(int)error_code_of(session->native_error),
                     "not even as an ordinary user (%s); as root", error_message(second));
    error_free(second);
}

/* Landlock and seccomp are left where there are no namespaces. */
static void start_walled(struct session *session)
{
    struct error *second = NULL;
    struct monitor_options options = {
        .driver = CELL_WALLED,
        .worker_program = session->worker_program,
        .unpack_program = session->unpack_path,
        .uid = session->identity.root ? session->identity.uid : 0,
        .gid = session->identity.root ? session->identity.gid : 0,
        .lacking = error_message(session->native_error),
    };

    if (monitor_start(&options, &session->native, &second) == 0) {
        error_free(session->native_error);
        session->native_error = NULL;
        return;
    }
    session->native = NULL;
    (void)error_wrap(&session->native_error, -(int)error_code_of(session->native_error),
                     "nor is there tier C (%s)", error_message(second));
    error_free(second);
}

static int start_native(struct session *session, struct check *check, struct error **err)
{
    struct monitor_options options = {
        .driver = CELL_NATIVE, .meanwhile = check_identity, .meanwhile_context = check};
    int r = find_program("closedbook-cell", "cell", &session->cell_program, err);

    if (r == 0)
        r = find_program("closedbook-worker", "collect", &session->worker_program, err);
    if (r == 0)
        r = find_program("closedbook-unpack", "image", &session->unpack_program, err);
    if (r == 0)
        r = find_program("closedbook-probe", "evidence", &session->probe_program, err);
    if (r == 0)
        r = find_program("as-candidate", "cell", &session->candidate_program, err);
    if (r == 0)
        r = find_program("closedbook-broker", "broker", &session->broker_program, err);
    if (r == 0)
        r = find_program("closedbook-mock", "broker", &session->mock_program, err);
    if (r == 0) {
        session->unpack_path = str_dup(session->unpack_program);
        r = hold_programs(session, err);
    }
    if (r < 0)
        return r;
    options.unpack_program = session->unpack_path;
    options.candidate_program = session->candidate_program;
    options.cell_program = session->cell_program;
    options.worker_program = session->worker_program;
    /* A machine without native cells can still plan, report and run tempdir: kept, not returned. */
    if (monitor_start(&options, &session->native, &session->native_error) == 0)
        return 0;
    session->native = NULL;
    r = session->identity.root ? check_result(check, err) : 0;
    if (r == 0 && session->identity.root)
        start_without_root(session, &options);
    if (r == 0 && session->native == NULL)
        start_walled(session);
    return r;
}

/*
 * The monitor comes last: a process forked after it would hold its control connection open, and it
 * would outlive us.
 */
static int open_with_rights(const struct session_options *options, struct session *session,
                            struct error **err)
{
    const struct identity *identity = &session->identity;
    scoped(check_done) struct check check = {.identity = identity};
    int r = 0;

    /* Nothing is given to an id that may be somebody's; where nothing is, there is time. */
    if (options->claim_count > 0 || !options->cells)
        r = check_result(&check, err);
    if (r == 0)
        r = claim_start(identity, options->claims, options->claim_count, &session->claim, err);

    bool opens = identity->root && !options->reads_nothing;

    if (r == 0 && opens)
        r = opener_start(identity->uid, identity->gid, &session->opener, err);
    if (r == 0 && !opens)
        session->opener = opener_plain();
    if (r == 0 && options->cells)
        r = start_native(session, &check, err);
    if (r == 0 && options->judges && !options->cells)
        r = find_broker(session, err);
    if (r == 0 && options->claim_count == 0 && options->cells)
        r = check_result(&check, err);
    if (r == 0 && (options->cells || options->store))
        r = prepare_store_root(session, err);
    return r;
}

int session_open(const struct session_options *options, struct session *ret, struct error **err)
{
    scoped(session_close) struct session session = {.allow_tier_c = options->allow_tier != NULL};
    int r = identity_find(&session.identity, err);

    if (r == 0)
        r = adopt_owner(options->owner_of, &session.identity, err);
    if (r == 0)
        r = open_with_rights(options, &session, err);
    if (r == 0 && session.identity.root)
        r = identity_become(session.identity.uid, session.identity.gid, 0, err);
    if (r < 0)
        return r;
    session.reader = (struct task_reader){.open = opener_open, .context = session.opener};
    *ret = session;
    session = (struct session){0};
    return 0;
}

int session_open_store(struct session *session, const char *run_id, struct error **err)
{
    return store_open(session->store_root, run_id, &session->store, err);
}

/* Tier C is for those who ask for it. */
static int check_allowed(const struct session *session, struct error **err)
{
    if (session->native == NULL || monitor_facts(session->native)->tier != TIER_C ||
        session->allow_tier_c)
        return 0;
    return error_set(err, ERROR_SYSTEM,
                     "cells here are of tier C (landlock and seccomp only), because %s; "
                     "--allow-tier C accepts that, for results whose integrity is PARTIAL at best",
                     monitor_facts(session->native)->lacking);
}

/* sandbox.identity: root. */
static int check_wish_to_be_root(const struct session *session, const char *name,
                                 const struct task_public *task, struct error **err)
{
    const struct monitor_facts *facts =
        session->native == NULL ? NULL : monitor_facts(session->native);

    if (!task->identity_root)
        return 0;
    if (task->driver == DRIVER_TEMPDIR)
        return error_set(
            err, ERROR_USER,
            "task '%s' wants to be root (sandbox.identity), and the driver tempdir has "
            "no ids to give; use sandbox.driver: native",
            name);
    if (facts == NULL)
        return error_set(err, ERROR_SYSTEM,
                         "task '%s' wants to be root (sandbox.identity), and this machine has no "
                         "native cell: %s",
                         name, error_message(session->native_error));
    if (facts->tier != TIER_A)
        return error_set(
            err, ERROR_SYSTEM,
            "task '%s' wants to be root (sandbox.identity), which takes a range of ids "
            "that only tier A has, and cells here are of tier %s, because %s; start "
            "closedbook by root",
            name, cell_tier_name(facts->tier), facts->lacking);
    if ((facts->limits & 1u << CELL_CGROUP_PIDS) == 0)
        return error_set(
            err, ERROR_SYSTEM,
            "task '%s' wants to be root (sandbox.identity), and no cgroup can count its "
            "processes here: %s",
            name, facts->limits_reason);
    return 0;
}

int session_check_tier(const struct session *session, const char *name,
                       const struct task_public *task, struct error **err)
{
    bool tempdir = task->driver == DRIVER_TEMPDIR;
    const struct monitor *native = session->native;
    enum cell_tier wanted;

    if (!tempdir && check_allowed(session, err) < 0)
        return -ERROR_SYSTEM;
    int r = check_wish_to_be_root(session, name, task, err);

    if (r < 0)
        return r;
    if (task->require_tier == NULL)
        return 0;
    if (!cell_tier_parse(task->require_tier, &wanted))
        return error_set(err, ERROR_BUG, "tier '%s'", task->require_tier);
    if (tempdir)
        return error_set(err, ERROR_USER,
                         "task '%s' requires tier %s (sandbox.require_tier), and the driver "
                         "tempdir protects nothing; use sandbox.driver: native",
                         name, task->require_tier);
    if (native == NULL)
        return error_set(err, ERROR_SYSTEM,
                         "task '%s' requires tier %s (sandbox.require_tier), and this machine has "
                         "no native cell: %s",
                         name, task->require_tier, error_message(session->native_error));
    if (cell_tier_is_enough(monitor_facts(native)->tier, wanted))
        return 0;

    const char *tier_name = cell_tier_name(monitor_facts(native)->tier);

    return error_set(err, ERROR_SYSTEM,
                     "task '%s' requires tier %s (sandbox.require_tier), and cells here are of "
                     "tier %s, because %s; a task that requires %s or less runs here",
                     name, task->require_tier, tier_name, monitor_facts(native)->lacking,
                     tier_name);
}

int session_check_limits(const struct session *session, const char *name,
                         const struct task_public *task, struct error **err)
{
    const struct monitor *native = task->driver == DRIVER_TEMPDIR ? NULL : session->native;

    if (task->driver != DRIVER_TEMPDIR && native == NULL)
        return 0; /* no cell at all: said where one is wanted */
    return limits_check(native == NULL ? NULL : monitor_facts(native), name, &task->limits, err);
}

int session_monitor(struct session *session, enum cell_driver driver, struct monitor **ret,
                    struct error **err)
{
    if (driver == CELL_NATIVE) {
        if (session->native == NULL)
            return error_set(err, ERROR_SYSTEM, "no native cell on this machine: %s",
                             session->native_error != NULL ? error_message(session->native_error)
                                                           : "the monitor was not started");
        *ret = session->native;
        return check_allowed(session, err);
    }
    if (session->tempdir == NULL) {
        struct monitor_options options = {
            .driver = CELL_TEMPDIR,
            .worker_program =
                session->held_worker != NULL ? session->held_worker : session->worker_program,
        };
        int r = monitor_start(&options, &session->tempdir, err);

        if (r < 0)
            return error_wrap(err, r, "tempdir driver");
    }
    *ret = session->tempdir;
    return 0;
}

int session_stand_in(struct session *session, struct error **err)
{
    if (session->has_mock)
        return 0;
    int fd = open(session->mock_program, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s'", session->mock_program);
    session->mock_fd = fd;
    session->has_mock = true;
    return 0;
}

int session_env_keys(struct session *session, const char *const *names, struct error **err)
{
    if (session->has_env_keys)
        return 0;
    int r = keys_take_env(names, &session->env_keys_fd, err);

    session->has_env_keys = r == 0;
    return r;
}

int session_broker(struct session *session, struct broker **ret, struct error **err)
{
    int r =
        session->broker != NULL ? 0 : broker_start(session->broker_program, &session->broker, err);

    if (r == 0)
        *ret = session->broker;
    return r;
}

void session_close(struct session *session)
{
    free(session->private_roots);
    /* The last that was started goes first: it holds copies of the others' sockets. */
    monitor_hang_up(session->tempdir);
    monitor_hang_up(session->native); /* it ends while the store is closed */
    store_close(session->store);
    if (session->has_mock)
        fd_closep(&session->mock_fd);
    broker_free(session->broker);
    broker_free(session->judges);
    replay_free(session->replay);
    if (session->has_env_keys)
        fd_closep(&session->env_keys_fd);
    monitor_free(session->tempdir);
    monitor_free(session->native);
    error_free(session->native_error);
    opener_free(session->opener);
    claim_free(session->claim);
    free(session->store_root);
    free(session->cell_program);
    free(session->unpack_program);
    free(session->unpack_path);
    free(session->worker_program);
    free(session->probe_program);
    free(session->candidate_program);
    free(session->broker_program);
    free(session->mock_program);
    free(session->held_worker);
    for (size_t i = 0; i < session->held_count; i++)
        (void)close(session->held_fds[i]); /* read only */
    *session = (struct session){0};
}
