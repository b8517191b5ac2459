#include "broker/mock_table.h"

#define TOOL_EXIT_CODE 1 /* what nobody recorded did not succeed */

static void fill(const json_t *source, int exit_code, struct mock_reply *ret)
{
    const char *out = json_get_text(source, "stdout");
    const char *err = json_get_text(source, "stderr");

    ret->passes = json_get_bool(source, "passthrough", false);
    ret->exit_code = (int)json_get_int(source, "exit_code", exit_code) & 0xff;
    ret->out = out == NULL ? "" : out;
    ret->err = err == NULL ? "" : err;
}

static const json_t *find_tool(const struct mock_table *table, const char *tool)
{
    size_t i;
    json_t *entry;

    json_array_foreach (table->tools, i, entry) {
        const char *name = json_get_text(entry, "tool");

        if (name != NULL && strcmp(name, tool) == 0)
            return entry;
    }
    return NULL;
}

void mock_answer(const struct mock_table *table, const char *tool, const struct call_args *args,
                 struct mock_reply *ret)
{
    const json_t *entry = find_tool(table, tool);
    size_t i;
    json_t *response;

    *ret = (struct mock_reply){.rule = -1, .out = "", .err = ""};
    if (entry == NULL)
        return;
    ret->is_known = true;
    fill(entry, TOOL_EXIT_CODE, ret);
    json_array_foreach (json_object_get(entry, "responses"), i, response) {
        const json_t *when = json_object_get(response, "when");

        /* Without a pattern it fits every call. No regex, so nothing can go wrong. */
        if (when != NULL && !json_is_null(when) && call_matches(when, args, NULL, NULL) != 1)
            continue;
        fill(response, 0, ret);
        ret->rule = (long)i;
        return;
    }
}
