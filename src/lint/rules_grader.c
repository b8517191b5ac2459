/* Commands that run the agent's code in the grader's own cell, where the private half is readable.
 */
#include <string.h>

#include "lint/internal.h"
#include "lint/shell.h"

#define WORD_ENDS " \t\n;&|()<>`"

/* What runs code that the agent wrote, in its own process. */
static const char *const runners[] = {"pytest", "make", "npm",    "npx", "yarn", "jest",
                                      "cargo",  "go",   "gradle", "mvn", "tox",  "nox"};
static const char *const interpreters[] = {"python", "python3", "node", "ruby", "perl",
                                           "deno",   "bun",     "bash", "sh"};
/* Modules that come with Python: a -c or -m with these alone is the grader's own. */
static const char *const known_modules[] = {
    "json", "sys",      "os",         "re",          "pathlib",   "csv",     "math",   "io",
    "time", "hashlib",  "datetime",   "collections", "itertools", "tomllib", "string", "glob",
    "ast",  "base64",   "sqlite3",    "xml",         "html",      "zipfile", "struct", "decimal",
    "yaml", "shutil",   "tempfile",   "functools",   "textwrap",  "filecmp", "gzip",   "statistics",
    "venv", "zoneinfo", "py_compile", "compileall",  "difflib",   "tarfile"};

static bool is_one_of(const char *word, size_t length, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == length && strncmp(list[i], word, length) == 0)
            return true;
    }
    return false;
}

static bool is_known_module(const char *name)
{
    return is_one_of(name, strcspn(name, " .\t\n;,'\""), known_modules, ARRAY_SIZE(known_modules));
}

/* Of Python code: a module that is not Python's own. */
static bool imports_foreign(const char *code)
{
    static const char *const words[] = {"import ", "from "};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        for (const char *at = strstr(code, words[i]); at != NULL; at = strstr(at + 1, words[i])) {
            bool begins = at == code || strchr(" \t\n;'\"", at[-1]) != NULL;
            /* "from x import y": the first word says it all. */
            bool is_second = i == 0 && at > code && strstr(code, "from ") != NULL;

            if (begins && !is_second && !is_known_module(at + strlen(words[i])))
                return true;
        }
    }
    return false;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* What an interpreter is given: a file of the workspace, or code that imports from it. */
static bool runs_workspace(const char *at)
{
    static const char *const own[] = {
        "$TASK_DIR", "${TASK_DIR", "$REFERENCE_DIR", "${REFERENCE_DIR", "/", "-", "<"};

    at = skip_blanks(at);
    while (at[0] == '-' && strchr("cme", at[1]) == NULL)
        at = skip_blanks(at + strcspn(at, WORD_ENDS));
    if (at[0] == '-' && at[1] == 'm')
        return !is_known_module(skip_blanks(at + 2));
    if (at[0] == '-' && at[1] != '\0')
        return imports_foreign(at + 2);
    at += at[0] == '"' || at[0] == '\'';
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (str_starts(at, own[i]))
            return false;
    }
    return at[0] != '\0' && strchr(WORD_ENDS, at[0]) == NULL;
}

/* Behind NAME=value, which may stand before a command. */
static const char *skip_settings(const char *at)
{
    for (;;) {
        size_t length = strcspn(at, WORD_ENDS "=\"'$/");

        if (length == 0 || at[length] != '=')
            return at;
        at = skip_blanks(at + strcspn(at, WORD_ENDS));
    }
}

/* The command there runs what the agent wrote; *ret is how long what says so is. */
static bool runs_agents_code(const char *at, size_t *ret)
{
    size_t length = strcspn(at, WORD_ENDS "\"'");

    *ret = length;
    if (str_starts(at, "./"))
        return length > 2;
    if (is_one_of(at, length, runners, ARRAY_SIZE(runners)))
        return true;
    if (!is_one_of(at, length, interpreters, ARRAY_SIZE(interpreters)) ||
        !runs_workspace(at + length))
        return false;
    *ret += strcspn(at + length, "\n;&|()<>`");
    return true;
}

static bool has_private_half(const struct target *target, const char *command)
{
    scoped(mem_freep) char *reference = NULL;
    const struct node *node;

    if (strstr(command, "TASK_DIR") != NULL)
        return true;
    reference = reference_path(target, &node);
    return reference != NULL;
}

void check_in_process(struct target *target)
{
    struct criterion_seen criterion;
    size_t position = 0;

    while (next_criterion(target, &position, &criterion)) {
        const struct node *command = node_get(criterion.node, "command");
        const char *as = node_get_text(criterion.node, "as");
        scoped(mem_freep) char *place = str_format("%s.command", criterion.place);
        size_t length = 0;

        if (strcmp(criterion.type, "run_command") != 0 || command == NULL ||
            command->kind != NODE_TEXT || strstr(command->text, "as-candidate") != NULL ||
            (as != NULL && strcmp(as, "candidate") == 0) ||
            !has_private_half(target, command->text))
            continue;
        for (const char *at = shell_next_command(command->text, command->text);
             at != NULL && *at != '\0'; at = shell_next_command(command->text, at + 1)) {
            at = skip_settings(at);
            if (!runs_agents_code(at, &length))
                continue;
            found(target, command->mark, place,
                  "'%.*s' runs the agent's code where it can read %s and change the verdict",
                  (int)size_min(length, 60), at,
                  strstr(command->text, "TASK_DIR") != NULL ? "$TASK_DIR" : "the reference");
            break;
        }
    }
}
