#include "run/services.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"

#define PAUSE_NS UINT64_C(30000000) /* between two looks whether a service is ready */
#define TAIL_BYTES 1000
#define NS_PER_MS UINT64_C(1000000)

/* One service that was started. */
struct service {
    struct cell *cell;
    const struct services *all;
    const struct task_service *task;
    uint32_t process;
    int output_fd; /* a file in memory, which never makes the service wait for a reader */
};

static bool is_stopped(const struct services *all)
{
    return all->stop != NULL && *all->stop != 0;
}

static int run_shell(const struct service *service, const char *text, int output_fd,
                     uint32_t *ret_process, struct error **err)
{
    const char *const argv[] = {service->all->shell, "-c", text, NULL};
    const struct cell_command command = {
        .argv = argv,
        .envp = service->all->envp,
        .fds = {-1, output_fd, output_fd},
        .fd_count = 3,
    };

    return cell_exec(service->cell, &command, ret_process, err);
}

static int wait_until(const struct service *service, uint32_t process, uint64_t deadline_ns,
                      enum cell_wait_result *ret, struct cell_exit *ret_exit, struct error **err)
{
    const struct cell_patience patience = {.deadline_ns = deadline_ns, .stop = service->all->stop};

    return cell_wait(service->cell, process, &patience, ret, ret_exit, err);
}

/* The end of what it printed, in one line; owned. */
static char *tail(const struct service *service)
{
    char text[TAIL_BYTES + 1];
    struct stat status;
    ssize_t n = -1;

    if (fstat(service->output_fd, &status) == 0)
        n = pread(service->output_fd, text, TAIL_BYTES,
                  status.st_size > TAIL_BYTES ? status.st_size - TAIL_BYTES : 0);
    if (n <= 0)
        return str_dup("nothing");
    text[n] = '\0';
    return str_dup(text);
}

static int not_ready(const struct service *service, const char *why, struct error **err)
{
    scoped(mem_freep) char *output = tail(service);

    return error_set(err, ERROR_TASK, "the service '%s' %s; the end of its output: %s",
                     service->task->run, why, output);
}

/* *ret: it is ready, or there is nothing to wait for. */
static int ask_ready(const struct service *service, uint64_t deadline_ns, bool *ret,
                     struct error **err)
{
    enum cell_wait_result end = CELL_EXITED;
    struct cell_exit status = {0};
    uint32_t process = 0;

    *ret = service->task->ready == NULL;
    if (*ret)
        return 0;
    int r = run_shell(service, service->task->ready, -1, &process, err);

    if (r == 0)
        r = wait_until(service, process, deadline_ns, &end, &status, err);
    *ret = r == 0 && end == CELL_EXITED && status.term_signal == 0 && status.exit_code == 0;
    return r;
}

static int await_ready(const struct service *service, struct error **err)
{
    uint64_t deadline_ns = clock_ns() + service->task->timeout_ms * NS_PER_MS;

    while (!is_stopped(service->all)) {
        enum cell_wait_result end = CELL_DEADLINE;
        struct cell_exit status = {0};
        uint64_t now_ns = clock_ns();
        bool is_ready = false;
        int r = ask_ready(service, deadline_ns, &is_ready, err);

        if (r < 0 || is_ready)
            return r;
        /* What its end interrupts is the pause as well. */
        r = wait_until(service, service->process, now_ns + PAUSE_NS, &end, &status, err);
        if (r < 0)
            return r;
        if (end == CELL_EXITED)
            return not_ready(service, "ended before it was ready", err);
        if (clock_ns() >= deadline_ns)
            return not_ready(service, "was not ready in time", err);
    }
    return 0;
}

static int start_one(struct service *service, struct error **err)
{
    scoped(fd_closep) int output_fd = memfd_create("service", MFD_CLOEXEC);

    if (output_fd < 0)
        return error_errno(err, errno, "cannot keep a service's output");
    service->output_fd = output_fd;
    int r = run_shell(service, service->task->run, output_fd, &service->process, err);

    return r < 0 ? r : await_ready(service, err);
}

int services_start(struct cell *cell, const struct services *services, struct error **err)
{
    for (size_t i = 0; i < services->count && !is_stopped(services); i++) {
        struct service service = {.cell = cell, .all = services, .task = &services->items[i]};
        int r = start_one(&service, err);

        if (r < 0)
            return r;
    }
    return 0;
}
