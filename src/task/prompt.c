/* The prompt: the task's or the variant's, then the experiment's mutations. */
#include <errno.h>

#include "base/term.h"
#include "task/experiment.h"

static const char *const names[] = {"initial_prompt", "initial_prompt_file"};

/* The text of a file; NULL: complained. */
static char *read_file(const struct build *build, const struct node *node)
{
    scoped(mem_freep) char *path = build_path(build, node, names[1], false);
    scoped(buf_done) struct buf buf = {0};
    scoped(mem_freep) char *wrong = NULL;
    int r = source_read(build->loader->reader, path, TASK_BYTES_MAX, &buf, &wrong);

    if (r == -ENOENT && wrong == NULL)
        wrong = str_dup("does not exist");
    if (r == 0 && (!utf8_valid(buf_text(&buf), buf.size_bytes) ||
                   memchr(buf_text(&buf), '\0', buf.size_bytes) != NULL))
        wrong = str_dup("is not UTF-8 text");
    if (r == 0 && wrong == NULL && buf.size_bytes == 0)
        wrong = str_dup("is empty");
    if (wrong == NULL)
        return buf_take(&buf);
    build_error(build, node->mark, names[1], "'%s' %s", path, wrong);
    return NULL;
}

static bool declares_no_agent(const struct build *build)
{
    const char *type = node_get_text(node_get(build->file, "agent"), "type");

    return type != NULL && strcmp(type, "none") == 0;
}

/* Which field of a task or a variant gives the prompt: its index in names. */
static const struct node *find_prompt(const struct node *fields, size_t *ret_which)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct node *node = node_get(fields, names[i]);

        *ret_which = i;
        if (node != NULL)
            return node;
    }
    return NULL;
}

/* Exactly one of the two fields, none for an agent that gets none; a simulated user may begin. */
static void check_presence(const struct build *build, const struct node *first, size_t which)
{
    const struct node *text = node_get(build->file, names[0]);
    const struct node *file = node_get(build->file, names[1]);
    enum task_agent_type type = build->task->public_half->agent.type;
    bool no_agent = type == AGENT_NONE;
    bool needs_none =
        no_agent || (declares_no_agent(build) && (type == AGENT_NOP || type == AGENT_ORACLE));

    if (text != NULL && file != NULL)
        build_error(build, file->mark, names[1],
                    "initial_prompt is given as well (line %u): one of the two expected",
                    text->mark.line);
    bool was_given = build_is_given(build, names[0]) || build_is_given(build, names[1]);

    if (first == NULL && !needs_none && !was_given && !build_is_dialog(build))
        build_error(build, (struct mark){.origin = build->origin}, names[0],
                    "required: this or initial_prompt_file expected, found neither");
    if (first != NULL && no_agent)
        build_error(build, first->mark, names[which], "the agent type 'none' gets no prompt");
}

/* --- mutations ---------------------------------------------------------------------------------
 */

/* Every occurrence of a text by another. */
static char *replace_all(const char *text, const char *from, const char *to)
{
    scoped(buf_done) struct buf buf = {0};

    for (const char *s = strstr(text, from); s != NULL; s = strstr(text, from)) {
        buf_append(&buf, text, (size_t)(s - text));
        buf_text_append(&buf, to);
        text = s + strlen(from);
    }
    buf_text_append(&buf, text);
    return buf_take(&buf);
}

/* {name} by its value; what is put in is not looked at again. */
static char *fill_in(const char *text, const struct node *variables)
{
    scoped(buf_done) struct buf buf = {0};
    size_t longest = 0;

    for (size_t i = 0; i < variables->count; i++)
        longest = size_max(longest, strlen(variables->members[i].key) + strlen("{}"));
    while (*text != '\0') {
        const char *end = *text == '{' ? memchr(text, '}', strnlen(text, longest)) : NULL;
        scoped(mem_freep) char *name =
            end == NULL ? NULL : str_ndup(text + 1, (size_t)(end - text - 1));
        const char *value = name == NULL ? NULL : node_get_text(variables, name);

        if (value == NULL) {
            buf_char(&buf, *text++);
            continue;
        }
        buf_text_append(&buf, value);
        text = end + 1;
    }
    return buf_take(&buf);
}

/* NULL: complained. */
static char *replace_matches(const struct build *build, const char *prompt,
                             const struct node *mutation, const char *replacement)
{
    const struct node *pattern = node_get(mutation, "pattern");
    task_replace *replace = build->loader->overrides->replace;
    scoped(error_freep) struct error *err = NULL;
    char *text = NULL;

    if (replace == NULL)
        return str_dup(prompt);
    int r = replace(pattern->text, prompt, replacement, &text, &err);

    if (r == 0)
        return text;
    build_error(build, pattern->mark, "prompt_mutations", "%s", error_message(err));
    return NULL;
}

/* NULL: complained. */
static char *mutate(const struct build *build, const char *prompt, const struct node *mutation)
{
    const char *type = node_get_text(mutation, "type");
    const char *content = node_get_text(mutation, "content");
    const char *separator = node_get_text(mutation, "separator");
    const char *replacement = node_get_text(mutation, "replacement");

    if (separator == NULL)
        separator = "\n\n";

    if (strcmp(type, "prefix") == 0)
        return str_format("%s%s%s", content, separator, prompt);
    if (strcmp(type, "suffix") == 0)
        return str_format("%s%s%s", prompt, separator, content);
    if (strcmp(type, "replace") == 0 && node_get_bool(mutation, "regex"))
        return replace_matches(build, prompt, mutation, replacement == NULL ? "" : replacement);
    if (strcmp(type, "replace") == 0)
        return replace_all(prompt, node_get_text(mutation, "pattern"),
                           replacement == NULL ? "" : replacement);
    ASSERT(strcmp(type, "template") == 0);
    return fill_in(prompt, node_get(mutation, "variables"));
}

/* What was wrong with it has been said: such a mutation is left out. */
static bool is_whole(const struct node *mutation)
{
    return node_get(mutation, "content") != NULL || node_get(mutation, "pattern") != NULL ||
           node_get(mutation, "variables") != NULL;
}

static void apply(struct build *build, const struct node *fields)
{
    const struct node *list = node_get(fields, "prompt_mutations");
    struct task_public *half = build->task->public_half;

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        if (!is_whole(list->items[i]))
            continue;
        char *text = mutate(build, half->prompt, list->items[i]);

        if (text == NULL)
            continue;
        free(half->prompt);
        half->prompt = text;
    }
}

void build_prompt(struct build *build)
{
    struct task_public *half = build->task->public_half;
    const struct node *own = build->variant == NULL ? NULL : build->variant->fields;
    size_t which, replaced;
    const struct node *node = find_prompt(build->file, &which);
    const struct node *instead = find_prompt(own, &replaced);

    check_presence(build, node, which);
    if (instead != NULL && half->agent.type != AGENT_NONE) {
        node = instead;
        which = replaced;
    }
    if (node != NULL)
        half->prompt = which == 0 ? str_dup(node->text) : read_file(build, node);
    if (half->prompt == NULL)
        half->prompt = str_dup("");
    build->prompt = node;
    build->prompt_name = names[which];
    build->plain_prompt = arena_text(build->schema.arena, half->prompt, strlen(half->prompt));
    if (half->prompt[0] == '\0')
        return;
    if (build->suite->experiment != NULL)
        apply(build, build->suite->experiment->fields);
    apply(build, own);
}
