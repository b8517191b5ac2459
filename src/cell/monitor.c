/*
 * closedbook-cell: the monitor. The only program of the project that may hold privilege.
 *
 * It reads nothing but fixed-size structs from the socket that it is started with, and never a byte
 * of a task, an agent or a configuration. See server.h, native.h and setup.h.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cell/native.h"

#define EXIT_LACKING 3

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &action, NULL);  /* KILL and STOP refuse, rightly */
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
}

/* One descriptor per connection, four or so per cell. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* else there can be fewer cells at a time */
}

static int prepare(struct server *server, struct native *native, enum cell_step *step)
{
    int r = machine_find(&server->machine, step);

    if (r < 0)
        return r;
    native->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *step = STEP_PROC;
    if (native->proc_fd < 0)
        return -errno;
    if (server->machine.tier != TIER_A)
        return 0;
    *step = STEP_IDENTITY;
    r = identity_bound();
    *step = r < 0 ? STEP_IDENTITY : STEP_LEASE;
    return r < 0 ? r : lease_open(&native->pool);
}

int main(int argc, char **argv)
{
    static struct native native;
    static struct server server = {.driver = &native_driver, .state = &native};
    enum cell_step step = STEP_NONE;
    struct stat status;

    /* Its children are its image: neither it nor an init may be looked into. */
    if (fstat(SERVER_CONTROL_FD, &status) < 0 || !S_ISSOCK(status.st_mode) ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
        (void)fputs("closedbook-cell: started by closedbook, not by hand\n", stderr);
        return 2;
    }
    (void)umask(022);
    (void)!chdir("/"); /* so that it holds no other directory; there always is one */
    reset_signals();
    raise_limits();
    cgroup_init(&native.cgroups);
    for (int i = 1; i < argc && i <= SERVER_WORKERS_MAX; i++)
        server.worker_count += stat(argv[i], &server.workers[server.worker_count]) == 0;
    int r = prepare(&server, &native, &step);

    if (r < 0) {
        (void)!server_say_ready(&server, SERVER_CONTROL_FD, -r, step);
        return EXIT_LACKING;
    }
    r = server_run(&server, SERVER_CONTROL_FD);
    cgroup_close(&native.cgroups);
    return r < 0 ? 1 : 0;
}
