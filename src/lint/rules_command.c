/* Commands of criteria and steps: what they reach for, and whether they can fail. */
#include <string.h>

#include "lint/internal.h"
#include "lint/shell.h"

/* A command and where it stands. */
struct command_seen {
    const struct node *node, *holder;
    bool is_criterion;
    char place[64];
};

struct commands {
    size_t criterion, pre_run, post_run;
};

static bool next_step(const struct target *target, const char *field, size_t *position,
                      struct command_seen *ret)
{
    const struct node *list = node_get(target->file, field);

    while (list != NULL && list->kind == NODE_LIST && *position < list->count) {
        size_t i = (*position)++;
        const struct node *node = node_get(list->items[i], "command");

        if (node == NULL || node->kind != NODE_TEXT)
            continue;
        *ret = (struct command_seen){.node = node, .holder = list->items[i]};
        (void)snprintf(ret->place, sizeof(ret->place), "%s[%zu].command", field, i); /* fits */
        return true;
    }
    return false;
}

static bool next_command(const struct target *target, struct commands *at, struct command_seen *ret)
{
    struct criterion_seen criterion;

    while (next_criterion(target, &at->criterion, &criterion)) {
        const struct node *node = node_get(criterion.node, "command");

        if (strcmp(criterion.type, "run_command") != 0 || node == NULL || node->kind != NODE_TEXT)
            continue;
        *ret = (struct command_seen){.node = node, .holder = criterion.node, .is_criterion = true};
        (void)snprintf(ret->place, sizeof(ret->place), "%s.command", criterion.place); /* fits */
        return true;
    }
    return next_step(target, "pre_run", &at->pre_run, ret) ||
           next_step(target, "post_run", &at->post_run, ret);
}

void check_network(struct target *target)
{
    static const char *const words[] = {
        "curl",   "wget",  "pip install", "pip3 install", "npm install",
        "npm ci", "npx",   "git clone",   "git fetch",    "apt-get",
        "ssh",    "rsync", "uv pip",      "cargo fetch",  "go mod download"};
    const struct node *network = setting(target, "grading.network");
    struct commands at = {0};
    struct command_seen command;

    if (network != NULL && network->kind == NODE_TEXT && strcmp(network->text, "none") != 0)
        return;
    while (next_command(target, &at, &command)) {
        const char *text = command.node->text;

        for (size_t i = 0; command.is_criterion && i < ARRAY_SIZE(words); i++) {
            if (!shell_runs(text, words[i]) || strstr(text, "localhost") != NULL ||
                strstr(text, "127.0.0.1") != NULL)
                continue;
            found(target, command.node->mark, command.place, "'%s' reaches for the network",
                  words[i]);
            break;
        }
    }
}

void check_host_path(struct target *target)
{
    static const char *const starts[] = {"/home/", "/Users/", "/root/",
                                         "/mnt/",  "/media/", "/srv/"};
    struct commands at = {0};
    struct command_seen command;

    while (next_command(target, &at, &command)) {
        for (size_t i = 0; command.is_criterion && i < ARRAY_SIZE(starts); i++) {
            const char *text = command.node->text, *hit = strstr(text, starts[i]);

            if (hit == NULL || str_starts(hit, "/home/agent") ||
                (hit > text && strchr(" \t\n\"'=:(", hit[-1]) == NULL))
                continue;
            found(target, command.node->mark, command.place, "'%.*s' is a path of one machine",
                  (int)size_min(strcspn(hit, " \t\n\"');|&"), 80), hit);
            break;
        }
    }
}

void check_unconditional(struct target *target)
{
    struct commands at = {0};
    struct command_seen command;

    while (next_command(target, &at, &command)) {
        const struct node *scores = node_get(command.holder, "score_from_stdout");
        const char *how;

        if (!command.is_criterion || node_get_real(command.holder, "expected_exit_code", 0) != 0 ||
            node_get(command.holder, "expected_stdout") != NULL ||
            (scores != NULL && scores->kind == NODE_BOOL && scores->truth))
            continue;
        how = shell_always_succeeds(command.node->text);
        if (how != NULL)
            found(target, command.node->mark, command.place, "ends with '%s', so it never fails",
                  how);
    }
}

/* What a cell sets, and what a shell has of its own. */
static bool is_set_by_cell(const char *name)
{
    static const char *const names[] = {
        "HOME",        "PATH",     "PWD",         "OLDPWD",       "USER",
        "LOGNAME",     "SHELL",    "LANG",        "LC_ALL",       "TERM",
        "TMPDIR",      "TZ",       "IFS",         "RANDOM",       "SECONDS",
        "LINENO",      "BASH",     "BASH_SOURCE", "BASH_REMATCH", "BASH_VERSION",
        "PIPESTATUS",  "FUNCNAME", "UID",         "EUID",         "PPID",
        "HOSTNAME",    "REPLY",    "OPTARG",      "OPTIND",       "EPOCHSECONDS",
        "VIRTUAL_ENV", "_"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return str_starts(name, "CLOSEDBOOK_");
}

static bool is_suite_variable_of(const struct target *target, const char *name)
{
    char *const *environment = target->lint->options->query.overrides->environment;
    size_t length = strlen(name);

    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        const char *item = environment[i];

        if (strncmp(item, name, length) == 0 && item[length] == '=' && item[length + 1] == '/' &&
            is_below(target->origin->dir, item + length + 1))
            return true;
    }
    return false;
}

/* agent.env, env_passthrough and their kin name it. */
static bool is_passed(const struct target *target, const char *name)
{
    static const char *const lists[] = {"agent.env", "sandbox.env_passthrough",
                                        "sandbox.env_passthrough_extra", "grading.env_passthrough"};

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const struct node *list = setting(target, lists[i]);

        for (size_t j = 0; list != NULL && list->kind == NODE_LIST && j < list->count; j++)
            if (list->items[j]->text != NULL &&
                strncmp(list->items[j]->text, name, strlen(name)) == 0 &&
                strchr("=", list->items[j]->text[strlen(name)]) != NULL)
                return true;
    }
    return false;
}

static void check_command_variables(struct target *target, const struct command_seen *command)
{
    const char *text = command->node->text;
    struct str_list said = {0};
    size_t position = 0;
    char *found_name;

    while (shell_next_variable(text, &position, &found_name)) {
        scoped(mem_freep) char *name = found_name;

        if (strcmp(name, "TASK_DIR") == 0 || strcmp(name, "REFERENCE_DIR") == 0 ||
            strcmp(name, "INPUT_DIR") == 0 || is_set_by_cell(name) || shell_sets(text, name) ||
            is_suite_variable_of(target, name) || is_passed(target, name) ||
            str_list_has(&said, name))
            continue;
        str_list_add(&said, name);
        found(target, command->node->mark, command->place, "$%s is set by nothing", name);
    }
    str_list_done(&said);
}

void check_variables(struct target *target)
{
    struct commands at = {0};
    struct command_seen command;

    while (next_command(target, &at, &command))
        check_command_variables(target, &command);
}
