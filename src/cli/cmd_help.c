#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/print.h"

struct values {
    const char *completion;
};

static const struct cli_option options[] = {
    {.kind = OPTION_TEXT,
     .long_name = "completion",
     .value = "SHELL",
     .offset = offsetof(struct values, completion),
     .choices = completion_shells,
     .help = "print the script that completes command lines in a shell"},
};

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(buf_done) struct buf text = {0};

    if (values->completion != NULL) {
        completion_write(&text, values->completion);
    } else if (arguments->operand_count == 0) {
        commands_help(&text);
    } else {
        const struct command *command = command_find(arguments->operands[0]);

        if (command == NULL)
            return command_unknown(arguments->operands[0], err);
        options_help(&text, command);
    }
    return print_out(&text, err);
}

const struct command command_help = {
    .name = "help",
    .summary = "tell what a command does and which options it has",
    .operands = "[COMMAND]",
    .description = "For completion in bash, for example: source <(closedbook help --completion "
                   "bash). An installation brings the scripts along.",
    .options = options,
    .option_count = ARRAY_SIZE(options),
    .values_size = sizeof(struct values),
    .operands_max = 1,
    .run = run,
};
