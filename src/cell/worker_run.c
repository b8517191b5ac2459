#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/client.h"

#define COMPLAINT_BYTES_MAX ((size_t)65536)
#define TARGET_BYTES 32
#define NS_PER_MS UINT64_C(1000000)

struct pipe_ends {
    int read_end, write_end;
};

static void pipe_donep(struct pipe_ends *ends)
{
    fd_closep(&ends->read_end);
    fd_closep(&ends->write_end);
}

static int pipe_open(struct pipe_ends *ret, struct error **err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    *ret = (struct pipe_ends){ends[0], ends[1]};
    return 0;
}

/* "code: message", the code as error_code_name() has it. Anything else is ours to mend. */
static int complain(const struct buf *text, const struct cell_exit *exit, struct error **err)
{
    scoped(mem_freep) char *line = str_dup(buf_text(text));
    size_t length = strlen(line);

    while (length > 0 && line[length - 1] == '\n')
        line[--length] = '\0';
    for (enum error_code code = ERROR_USER; code <= ERROR_BUG; code++) {
        const char *name = error_code_name(code);
        size_t size = strlen(name);

        if (strncmp(line, name, size) == 0 && strncmp(line + size, ": ", 2) == 0)
            return error_set(err, code, "%s", line + size + 2);
    }
    if (exit->term_signal != 0)
        return error_set(err, ERROR_SYSTEM, "the worker was killed by signal %d%s%s",
                         exit->term_signal, length > 0 ? ": " : "", line);
    return error_set(err, ERROR_BUG, "the worker failed with status %d%s%s", exit->exit_code,
                     length > 0 ? ": " : "", line);
}

static void
fill_spec(const struct worker_job *job, const struct pipe_ends *out,
          const struct pipe_ends *complaint,
          char targets[static ARRAY_SIZE(((struct worker_job *)0)->mounts)][TARGET_BYTES],
          struct cell_spec *spec)
{
    *spec = (struct cell_spec){
        .role = CELL_WORKER,
        .mount_count = job->mount_count,
        .etc_fd = -1,
        .workspace = {.kind = CELL_WORKSPACE_NONE},
        .collect_cell_id = job->collect_cell_id,
        .program_fd = job->program_fd,
    };
    ASSERT(job->mount_count <= ARRAY_SIZE(job->mounts) && job->fd_count <= CELL_FDS_MAX);
    for (size_t i = 0; i < job->mount_count; i++) {
        (void)snprintf(targets[i], TARGET_BYTES, "/src%zu", i); /* always fits */
        spec->mounts[i] = job->mounts[i];
        spec->mounts[i].target = targets[i];
    }
    spec->command.fd_count = job->fd_count > 3 ? job->fd_count : 3;
    for (size_t i = 3; i < spec->command.fd_count; i++)
        spec->command.fds[i] = job->fds[i];
    spec->command.fds[0] = -1;
    spec->command.fds[1] = out->write_end;
    spec->command.fds[2] = complaint->write_end;
}

/* A worker's two pipes and what came through them. */
struct exchange {
    struct pipe_ends out, complaint;
    struct buf output, text;
    struct cell_exit exit;
};

static void exchange_done(struct exchange *exchange)
{
    pipe_donep(&exchange->out);
    pipe_donep(&exchange->complaint);
    buf_done(&exchange->output);
    buf_done(&exchange->text);
}

static int await(struct cell *cell, uint64_t timeout_ms, struct exchange *exchange,
                 struct error **err)
{
    struct cell_capture captures[] = {
        {.fd = take_fd(&exchange->out.read_end), .buf = &exchange->output},
        {.fd = take_fd(&exchange->complaint.read_end), .buf = &exchange->text},
    };
    enum cell_wait_result result;
    struct cell_receipt receipt;
    const struct cell_patience patience = {
        .captures = captures,
        .capture_count = ARRAY_SIZE(captures),
        .deadline_ns = timeout_ms == 0 ? 0 : clock_ns() + timeout_ms * NS_PER_MS,
    };
    int r = cell_wait(cell, 0, &patience, &result, &exchange->exit, err);

    fd_closep(&captures[0].fd);
    fd_closep(&captures[1].fd);
    if (r == 0)
        r = cell_end(cell, &receipt, err);
    if (r == 0 && result == CELL_DEADLINE)
        r = error_set(err, ERROR_LIMIT, "the worker took longer than %ju ms",
                      (uintmax_t)timeout_ms);
    return r;
}

int worker_run(struct monitor *monitor, const struct worker_job *job, struct buf *ret_output,
               struct error **err)
{
    char targets[ARRAY_SIZE(job->mounts)][TARGET_BYTES];
    scoped(exchange_done) struct exchange exchange = {
        .out = {-1, -1},
        .complaint = {-1, -1},
        .output = {.max_bytes = job->output_max_bytes},
        .text = {.max_bytes = COMPLAINT_BYTES_MAX},
    };
    scoped(str_list_done) struct str_list argv = {0};
    scoped(cell_freep) struct cell *cell = NULL;
    struct cell_spec spec;

    if (monitor->worker_fd < 0 && job->program_fd == NULL)
        return error_set(err, ERROR_BUG, "no worker program was named");
    int r = pipe_open(&exchange.out, err);

    if (r == 0)
        r = pipe_open(&exchange.complaint, err);
    if (r < 0)
        return r;
    str_list_add(&argv, "closedbook-worker");
    for (size_t i = 0; job->args[i] != NULL; i++)
        str_list_add(&argv, job->args[i]);
    fill_spec(job, &exchange.out, &exchange.complaint, targets, &spec);
    spec.command.argv = (const char *const *)argv.items;
    r = cell_start(monitor, &spec, &cell, err);
    if (r < 0)
        return error_wrap(err, r, "cannot start the worker");
    fd_closep(&exchange.out.write_end);
    fd_closep(&exchange.complaint.write_end);
    r = await(cell, job->timeout_ms, &exchange, err);
    if (r < 0)
        return r;
    if (exchange.exit.exit_code != 0)
        return complain(&exchange.text, &exchange.exit, err);
    if (exchange.output.overflowed)
        return error_set(err, ERROR_LIMIT, "the worker printed more than %zu bytes",
                         job->output_max_bytes);
    buf_append(ret_output, exchange.output.data, exchange.output.size_bytes);
    return 0;
}
