#include "cli/commands.h"
#include "cli/print.h"

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    if (arguments->operand_count == 0) {
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
    .operands_max = 1,
    .run = run,
};
