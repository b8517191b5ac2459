#include "agent/tools.h"

#include "base/str.h"

struct tool_names {
    const char *theirs, *canonical;
};

/* Claude Code's own names are the canonical ones, but for these. */
static const struct tool_names claude[] = {{"Agent", "Task"}, {NULL, NULL}};

/* The first part are kinds of items of its stream, the second tools that it declares. */
static const struct tool_names codex[] = {
    {"command_execution", "Bash"},
    {"file_change", "Edit"},
    {"web_search", "WebSearch"},
    {"todo_list", "TodoWrite"},
    {"exec_command", "Bash"},
    {"shell", "Bash"},
    {"shell_command", "Bash"},
    {"local_shell", "Bash"},
    {"apply_patch", "Edit"},
    {"update_plan", "TodoWrite"},
    {"request_user_input", "AskUserQuestion"},
    {NULL, NULL},
};

static const struct tool_names gemini[] = {
    {"run_shell_command", "Bash"},
    {"read_file", "Read"},
    {"write_file", "Write"},
    {"replace", "Edit"},
    {"glob", "Glob"},
    {"grep_search", "Grep"},
    {"search_file_content", "Grep"},
    {"activate_skill", "Skill"},
    {"invoke_agent", "Task"},
    {"web_fetch", "WebFetch"},
    {"google_web_search", "WebSearch"},
    {"write_todos", "TodoWrite"},
    {"ask_user", "AskUserQuestion"},
    {NULL, NULL},
};

/* Those that differ from the canonical ones by more than case. */
static const struct tool_names opencode[] = {
    {"patch", "Edit"}, {"apply_patch", "Edit"}, {"question", "AskUserQuestion"}, {NULL, NULL}};

static const struct tool_names pi[] = {{"find", "Glob"}, {NULL, NULL}};

static const struct tool_names *const tables[STREAM_KIND_COUNT] = {
    [STREAM_CLAUDE] = claude,     [STREAM_CODEX] = codex, [STREAM_GEMINI] = gemini,
    [STREAM_OPENCODE] = opencode, [STREAM_PI] = pi,
};

const char *tool_canonical(enum stream_kind kind, const char *name)
{
    ASSERT((size_t)kind < STREAM_KIND_COUNT);
    for (const struct tool_names *i = tables[kind]; i->theirs != NULL; i++) {
        if (str_equal(i->theirs, name))
            return i->canonical;
    }
    return event_tool_canonical(name);
}
