#include "cli/commands.h"

#define COMMANDS_MAX 64

const struct command *const commands[] = {
    &command_run,       &command_execute, &command_grade,
    &command_plan,      &command_lint,    &command_migrate,
    &command_new,       &command_check,   &command_report,
    &command_stats,     &command_compare, &command_audit,
    &command_keygen,    &command_bundle,  &command_cell,
    &command_probe,     &command_scan,    &command_show,
    &command_view_diff, &command_extract, &command_config,
    &command_cache,     &command_doctor,  &command_criterion,
    &command_agents,    &command_help,    NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

int command_unknown(const char *name, struct error **err)
{
    const char *names[COMMANDS_MAX];
    size_t count = 0;

    _Static_assert(ARRAY_SIZE(commands) <= COMMANDS_MAX, "the list of names holds all commands");
    for (; commands[count] != NULL; count++)
        names[count] = commands[count]->name;
    const char *nearest = str_nearest(name, names, count);

    if (nearest != NULL)
        return error_set(err, ERROR_USER, "unknown command '%s', did you mean '%s'?", name,
                         nearest);
    return error_set(err, ERROR_USER, "unknown command '%s'; 'closedbook help' lists them", name);
}

void commands_help(struct buf *buf)
{
    buf_text_append(buf, "Usage: closedbook COMMAND [OPTION]... [OPERAND]...\n"
                         "       closedbook --version\n"
                         "\n"
                         "Evaluates agents on tasks whose answers stay closed to them.\n"
                         "\n"
                         "Commands:\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        buf_format(buf, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    buf_text_append(buf, "\n'closedbook help COMMAND' tells the options of one.\n");
}
