/* What stands in for other programs: folders of the workspace, and recorded answers. */
#include "task/internal.h"

#define NAME_BYTES_MAX ((size_t)63)         /* as a frame of the broker's takes it */
#define ANSWER_BYTES_MAX ((size_t)96 << 10) /* as one answer of the broker's has room */

static const char *const reserved[] = {"python", "python3", "env", "sh", "bash",
                                       "node",   "git",     "uv",  "cmd"};

static void read_dirs(const struct build *build)
{
    const struct node *dirs = node_find(build->root, "sandbox.mock_path_dirs");

    for (size_t i = 0; dirs != NULL && i < dirs->count; i++) {
        if (strchr(dirs->items[i]->text, ':') != NULL)
            build_error(build, dirs->items[i]->mark, "sandbox.mock_path_dirs",
                        "a path without ':' expected, which would be two on PATH");
        str_list_add_take(&build->task->public_half->mock_dirs, path_normal(dirs->items[i]->text));
    }
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= NAME_BYTES_MAX && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
               length;
}

static void check_tool(const struct build *build, const struct node *tool, const char *path)
{
    scoped(mem_freep) char *place = str_format("%s.tool", path);

    if (!is_name(tool->text))
        build_error(build, tool->mark, place,
                    "the bare name of a program expected: letters, digits and '._+-', at most %zu",
                    NAME_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
        if (strcmp(reserved[i], tool->text) == 0)
            build_error(build, tool->mark, place,
                        "'%s' cannot be recorded: too much else runs by it", tool->text);
    }
    if (str_list_has(&build->task->public_half->mock_tools, tool->text))
        build_error(build, tool->mark, place, "'%s' is recorded twice", tool->text);
}

static void check_answer(const struct build *build, const struct node *node, const char *path)
{
    const char *out = node_get_text(node, "stdout"), *err = node_get_text(node, "stderr");
    size_t size = (out == NULL ? 0 : strlen(out)) + (err == NULL ? 0 : strlen(err));

    if (size > ANSWER_BYTES_MAX)
        build_error(build, node->mark, path, "stdout and stderr of at most %zu bytes expected",
                    ANSWER_BYTES_MAX);
    if (node_get_bool(node, "passthrough") && size > 0)
        build_error(build, node->mark, path,
                    "either passthrough or stdout and stderr: the real program says what it says");
}

/* The broker, which answers, looks at no regex: it takes what hostile programs send. */
static void check_regex(const struct build *build, const struct node *when, const char *path)
{
    const struct node *flags = node_get(when, "flags");

    for (size_t i = 0; flags != NULL && i < flags->count; i++) {
        const struct node *condition = flags->members[i].value;
        scoped(mem_freep) char *place = str_format("%s.flags.%s", path, flags->members[i].key);

        if (condition->kind == NODE_MAP && node_get(condition, "matches_regex") != NULL)
            build_later(build, condition->mark, place,
                        "matches_regex in a response is not in this version: use equals, contains "
                        "or any_of");
    }
}

/* By the rules of the criterion that looks at the same calls. */
static void check_when(const struct build *build, const struct node *when, const char *path)
{
    scoped(json_freep) json_t *params = node_to_json(when);
    const struct criterion criterion = {
        .kind = CRITERION_CLI_CALLED, .type_name = "cli_called", .params = params};

    check_regex(build, when, path);
    build_check_parameters(build, &criterion, when, path);
}

static void check_entry(const struct build *build, const struct node *entry, const char *path)
{
    const struct node *responses = node_get(entry, "responses");

    check_answer(build, entry, path);
    for (size_t i = 0; responses != NULL && i < responses->count; i++) {
        const struct node *when = node_get(responses->items[i], "when");
        scoped(mem_freep) char *place = str_format("%s.responses[%zu]", path, i);
        scoped(mem_freep) char *when_place = str_format("%s.when", place);

        check_answer(build, responses->items[i], place);
        if (when != NULL)
            check_when(build, when, when_place);
    }
}

static void read_recorded(const struct build *build)
{
    const struct node *list = node_find(build->root, "sandbox.record_cli");
    struct task_public *half = build->task->public_half;

    if (list == NULL || list->count == 0)
        return;
    if (list->count > TASK_RECORD_CLI_MAX)
        build_error(build, list->mark, "sandbox.record_cli", "at most %d programs, found %zu",
                    TASK_RECORD_CLI_MAX, list->count);
    if (half->driver == DRIVER_TEMPDIR)
        build_error(build, list->mark, "sandbox.record_cli",
                    "the driver tempdir has no cell outside of which the answers could be");
    for (size_t i = 0; i < list->count; i++) {
        const struct node *tool = node_get(list->items[i], "tool");
        scoped(mem_freep) char *path = str_format("sandbox.record_cli[%zu]", i);

        if (tool == NULL)
            continue; /* complained of already */
        check_tool(build, tool, path);
        check_entry(build, list->items[i], path);
        str_list_add(&half->mock_tools, tool->text);
    }
    build->task->private_half->record_cli = node_to_json(list);
}

/* Those of the experiment, too: they would have to see the folders, and the agent what they leave.
 */
static bool has_host_steps(const struct build *build)
{
    const struct task_private *half = build->task->private_half;

    for (size_t i = 0; i < half->pre_run_count; i++) {
        if (!half->pre_run[i].in_agent)
            return true;
    }
    return false;
}

static void read_sealed(const struct build *build)
{
    static const char path[] = "sandbox.mocks";
    const struct node *node = node_find(build->root, path);
    struct task_public *half = build->task->public_half;

    if (node == NULL)
        return;
    half->mocks_sealed = true;
    if (half->mock_dirs.count == 0)
        build_error(build, node->mark, path,
                    "sealed are the folders of mock_path_dirs, and there are none");
    for (size_t i = 0; i < half->mock_dirs.count; i++) {
        if (strcmp(half->mock_dirs.items[i], ".") == 0)
            build_error(build, node->mark, path,
                        "the workspace itself cannot be sealed: put the programs in a folder");
    }
    if (half->driver == DRIVER_TEMPDIR)
        build_error(build, node->mark, path,
                    "the driver tempdir has no cell beside which the programs could run");
    if (half->identity_root)
        build_later(build, node->mark, path,
                    "sealed programs beside an agent that is root (identity: root) are not in this "
                    "version");
    if (has_host_steps(build))
        build_later(build, node->mark, path,
                    "sealed folders together with pre_run steps of the host are not in this "
                    "version: use runs_in: agent");
}

void build_mocks(struct build *build)
{
    read_dirs(build);
    read_sealed(build);
    read_recorded(build);
}
