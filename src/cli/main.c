#include <errno.h>
#include <fcntl.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/version_text.h"

/*
 * A program started without descriptors 0 to 2 would get them for its own files, and messages
 * would be written into those.
 */
static bool has_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The lowest free number is the one that is missing. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    }
    return true;
}

/* Writing to a pipe that nobody reads is an error to handle, not a reason to die. */
static void ignore_broken_pipes(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    ASSERT(sigaction(SIGPIPE, &action, NULL) == 0);
}

static void set_log_level(const struct arguments *arguments)
{
    if (arguments->is_quiet)
        log_set_level(LOG_QUIET);
    else if (arguments->verbosity > 1)
        log_set_level(LOG_DEBUG);
    else if (arguments->verbosity == 1)
        log_set_level(LOG_INFO);
}

static int run_command(const struct command *command, int argc, char **argv, struct error **err)
{
    scoped(arguments_done) struct arguments arguments = {0};
    int r = options_parse(command, argc, argv, &arguments, err);

    if (r < 0)
        return error_wrap(err, r, "%s", command->name);
    set_log_level(&arguments);
    if (!arguments.wants_help)
        return command->run(&arguments, err);
    scoped(buf_done) struct buf text = {0};

    options_help(&text, command);
    return print_out(&text, err);
}

/* What the first word asks for. The exit status, or -enum error_code. */
static int dispatch(int argc, char **argv, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    const char *word = argc < 2 ? "--help" : argv[1];
    const struct command *command = command_find(word);

    if (command != NULL)
        return run_command(command, argc - 2, argv + 2, err);
    if (strcmp(word, "--version") == 0)
        version_text(&text);
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        commands_help(&text);
    else if (word[0] == '-')
        return error_set(err, ERROR_USER, "unknown option '%s'; a command comes first", word);
    else
        return command_unknown(word, err);
    int r = print_out(&text, err);

    if (r == 0 && argc < 2)
        return error_set(err, ERROR_USER, "a command is missing");
    return r;
}

int main(int argc, char **argv)
{
    scoped(error_freep) struct error *err = NULL;

    if (!has_standard_fds())
        return error_exit_status(ERROR_SYSTEM);
    ignore_broken_pipes();
    int r = dispatch(argc, argv, &err);

    if (r >= 0)
        return r;
    /* Who stops reading our output knows it already. */
    if (error_errno_of(err) != EPIPE)
        print_error(err);
    return error_exit_status((enum error_code) - r);
}
