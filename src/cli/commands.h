#pragma once
/*
 * commands: the table of the program's commands. One line here and one file cmd_NAME.c each.
 */

#include "cli/options.h"

/* In the order of the help; ends with NULL. */
extern const struct command *const commands[];

/* NULL when there is none of that name. */
const struct command *command_find(const char *name) nonnull(1);
/* ERROR_USER: "unknown command 'rnu', did you mean 'run'?" */
must_check int command_unknown(const char *name, struct error **err) nonnull(1);
/* The help of the program as a whole. */
void commands_help(struct buf *buf) nonnull(1);

extern const struct command command_run, command_execute, command_grade, command_plan;
extern const struct command command_lint, command_migrate, command_new, command_check;
extern const struct command command_stats, command_compare, command_audit, command_keygen,
    command_bundle, command_view_diff;
extern const struct command command_report, command_cell, command_probe, command_scan, command_show;
extern const struct command command_extract, command_config, command_cache, command_doctor,
    command_criterion, command_agents, command_help;
