#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cli/cell_target.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/terminal.h"

/* Exit statuses of our own failures: the command's own pass through. */
enum { STATUS_CELL = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

static const struct cli_option rows[] = {
    TASK_FLAG_ROWS(struct cell_values),
    ALLOW_TIER_ROW(struct cell_values),
    {.kind = OPTION_FLAG,
     .long_name = "grader",
     .offset = offsetof(struct cell_values, grader),
     .help = "the cell that the task's graders get: with the suite and the reference"},
    {.kind = OPTION_NUMBER,
     .long_name = "criterion",
     .value = "N",
     .offset = offsetof(struct cell_values, criterion),
     .min = 1,
     .max = 100000,
     .help = "with RUN/TRIAL or --grader: run criterion N's command when no CMD is given"},
};

/* The descriptors of the command: ours, or the pseudo-terminal's. */
static void command_fds(const struct terminal *terminal, struct cell_command *command)
{
    for (int fd = 0; fd < 3; fd++)
        command->fds[fd] = terminal->slave >= 0 ? terminal->slave : fd;
    command->fd_count = 3;
    command->controlling_tty = terminal->slave >= 0;
}

static int wait_command(struct cell *cell, uint32_t process, struct terminal *terminal,
                        struct cell_exit *status, bool *interrupted, struct error **err)
{
    struct cell_capture capture = {.fd = terminal->master, .on_bytes = terminal_echo};
    enum cell_wait_result end = CELL_EXITED;
    int r = cell_wait(
        cell, process,
        &(struct cell_patience){&capture, terminal->master >= 0 ? 1 : 0, 0, interrupt_watch()},
        &end, status, err);

    if (terminal->master >= 0)
        terminal->master = capture.fd;
    *interrupted = end != CELL_EXITED;
    return r;
}

static int run_in_cell(struct cell_target *target, struct cell_command *command,
                       struct terminal *terminal, struct error **err)
{
    struct cell_exit status = {0};
    struct cell_receipt receipt;
    struct cell *cell = NULL;
    bool interrupted = false;
    uint32_t process = 0;

    command_fds(terminal, command);

    int r = cell_target_start(target, command, &cell, &process, err);

    if (r == 0 && terminal->master >= 0)
        r = terminal_relay(terminal, err);
    if (r == 0)
        r = wait_command(cell, process, terminal, &status, &interrupted, err);
    if (r == 0)
        r = cell_end(cell, &receipt, err);
    if (r < 0)
        return r;
    if (interrupted)
        return 130;
    return status.term_signal != 0 ? 128 + status.term_signal : status.exit_code;
}

static int work(const struct arguments *arguments, struct error **err)
{
    scoped(cell_target_done) struct cell_target target = {0};
    scoped(terminal_close) struct terminal terminal = {.master = -1, .slave = -1, .typist = -1};
    struct cell_command command = {0};
    int r = cell_target_open(arguments, &target, err);

    if (r == 0)
        r = cell_target_command(&target, arguments, &command, err);
    if (r == 0 && terminal_is_interactive())
        r = terminal_open(&terminal, err);
    return r < 0 ? r : run_in_cell(&target, &command, &terminal, err);
}

static int status_of(const struct error *error)
{
    if (error_code_of(error) != ERROR_AGENT)
        return STATUS_CELL;
    return error_errno_of(error) == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(error_freep) struct error *problem = NULL;
    int r = work(arguments, &problem);

    if (r >= 0)
        return r;
    (void)err; /* the statuses of this command are its own */
    print_error(problem);
    return status_of(problem);
}

static const struct cell_values defaults = {0};

const struct command command_cell = {
    .name = "cell",
    .summary = "run a command, or a shell, in the cell that a task's agent or grader gets",
    .operands = "[TASK | RUN/TRIAL] [-- CMD...]",
    .description =
        "Without a task the workspace is empty. With a recorded trial it is the grading cell with "
        "what the agent left. The command's exit status passes through; failures of the cell are "
        "125, a command that cannot be executed 126, one that is not there 127.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct cell_values),
    .defaults = &defaults,
    .operands_max = 1,
    .takes_program = true,
    .run = run,
};
