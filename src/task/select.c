/* Which tasks --only, --tags and --exclude-tags take. */
#include "task/experiment.h"

/* "a,b": any of them is among the tags. */
static bool has_any(const char *words, const struct str_list *tags)
{
    for (const char *s = words; *s != '\0';) {
        size_t length = strcspn(s, ",");
        scoped(mem_freep) char *word = str_ndup(s, length);

        if (length > 0 && str_list_has(tags, word))
            return true;
        s += length + (s[length] == ',' ? 1 : 0);
    }
    return false;
}

/* The task itself, or a row of its. */
static bool is_named(const struct str_list *only, const char *id)
{
    size_t length = strlen(id);

    for (size_t i = 0; i < only->count; i++) {
        const char *item = only->items[i];

        if (strncmp(item, id, length) == 0 && (item[length] == '\0' || item[length] == '/'))
            return true;
    }
    return false;
}

/* Every item is met. */
static bool has_all(const struct str_list *items, const struct str_list *tags)
{
    for (size_t i = 0; i < items->count; i++) {
        if (!has_any(items->items[i], tags))
            return false;
    }
    return true;
}

bool selection_matches(const struct task_selection *selection, const struct task_private *half)
{
    if (selection == NULL)
        return true;
    const struct str_list *only = selection->only, *tags = selection->tags;
    const struct str_list *excluded = selection->exclude_tags;

    if (only != NULL && only->count > 0 && !is_named(only, half->task_id))
        return false;
    if (tags != NULL && !has_all(tags, &half->tags))
        return false;
    return excluded == NULL || excluded->count == 0 || !has_all(excluded, &half->tags);
}

static void complain_variant(const char *id, const struct str_list *known,
                             struct problems *problems)
{
    scoped(mem_freep) char *flag = str_format("--variant %s", id);
    struct origin origin = {.source = "--variant", .file = flag};
    struct mark mark = {.origin = &origin};
    const char *near = str_nearest(id, (const char *const *)known->items, known->count);

    if (known->count == 0)
        problems_error(problems, mark, NULL, "there are no variants without an experiment (-e)");
    else if (near != NULL)
        problems_error(problems, mark, NULL, "no variant has this id, did you mean '%s'?", near);
    else
        problems_error(problems, mark, NULL, "no variant has this id");
}

void selection_check_variants(const struct loader *loader, struct problems *problems)
{
    const struct str_list *wanted = loader->selection->variants;
    scoped(str_list_done) struct str_list known = {0};

    for (size_t i = 0; i < loader->names.count; i++) {
        const struct experiment *experiment = loader->experiments[i];

        if (experiment == NULL)
            return; /* complained about */
        for (size_t j = 0; j < experiment->variant_count; j++)
            str_list_add(&known, experiment->variants[j].id);
    }
    for (size_t i = 0; wanted != NULL && i < wanted->count; i++) {
        bool is_default = known.count == 0 && strcmp(wanted->items[i], "default") == 0;

        if (!is_default && !str_list_has(&known, wanted->items[i]))
            complain_variant(wanted->items[i], &known, problems);
    }
}

void selection_check(const struct task_selection *selection, const struct str_list *ids,
                     struct problems *problems)
{
    const struct str_list *only = selection->only;

    for (size_t i = 0; only != NULL && i < only->count; i++) {
        const char *id = only->items[i];
        scoped(mem_freep) char *flag = str_format("--only %s", id);
        struct origin origin = {.source = "--only", .file = flag};
        struct mark mark = {.origin = &origin};
        const char *near;

        if (str_list_has(ids, id))
            continue;
        near = str_nearest(id, (const char *const *)ids->items, ids->count);
        if (near != NULL)
            problems_error(problems, mark, NULL, "no task has this id, did you mean '%s'?", near);
        else
            problems_error(problems, mark, NULL, "no task has this id");
    }
}
