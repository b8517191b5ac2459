/* Criteria that grade nothing, or the wrong thing. */
#include <string.h>

#include "lint/internal.h"

#define WORKSPACE "/workspace/"
#define RUBRIC_WORDS_MIN 8

static void check_path(struct target *target, const struct criterion_seen *criterion,
                       const char *field)
{
    const struct node *node = node_get(criterion->node, field);
    const char *text = node != NULL && node->kind == NODE_TEXT ? node->text : NULL;

    if (text == NULL)
        return;
    scoped(mem_freep) char *place = str_format("%s.%s", criterion->place, field);
    scoped(mem_freep) char *message = str_format("'%.200s'", text);

    if (str_starts(text, WORKSPACE) && text[strlen(WORKSPACE)] != '\0' &&
        strpbrk(text, "'\"\n\\") == NULL && strstr(text, "..") == NULL) {
        scoped(mem_freep) char *fixed = str_format("'%s'", text + strlen(WORKSPACE));

        found_fixable(target, node, place, fixed, message);
    } else if (text[0] == '/' || strcmp(text, "..") == 0 || str_starts(text, "../") ||
               strstr(text, "/../") != NULL || str_ends(text, "/..")) {
        found(target, node->mark, place, "%s", message);
    }
}

void check_absolute_path(struct target *target)
{
    static const char *const fields[] = {"path", "log", "agent_file"};
    struct criterion_seen criterion;
    size_t position = 0;

    while (next_criterion(target, &position, &criterion))
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
            check_path(target, &criterion, fields[i]);
}

void check_threshold(struct target *target)
{
    struct criterion_seen criterion;
    size_t position = 0;

    while (next_criterion(target, &position, &criterion)) {
        const struct node *node = node_get(criterion.node, "pass_threshold");
        scoped(mem_freep) char *place = str_format("%s.pass_threshold", criterion.place);

        if (node != NULL && node_get_real(criterion.node, "pass_threshold", 1) <= 0)
            found(target, node->mark, place, "a pass_threshold of 0: any score passes");
    }
}

void check_weights(struct target *target)
{
    struct criterion_seen criterion;
    size_t position = 0, count = 0;
    const struct node *first = NULL;

    while (next_criterion(target, &position, &criterion)) {
        if (node_get_real(criterion.node, "weight", 1) > 0)
            return;
        if (count++ == 0)
            first = node_get(criterion.node, "weight");
    }
    if (first != NULL)
        found(target, first->mark, "success_criteria", "all %zu criteria have weight 0", count);
}

static size_t word_count(const char *text)
{
    size_t count = 0;
    bool inside = false;

    for (const char *s = text; *s != '\0'; s++) {
        bool is_blank = strchr(" \t\r\n", *s) != NULL;

        count += !is_blank && !inside;
        inside = !is_blank;
    }
    return count;
}

void check_rubric(struct target *target)
{
    struct criterion_seen criterion;
    size_t position = 0;
    bool has_reference = node_get(target->file, "reference") != NULL ||
                         node_get(target->file, "reference_dir") != NULL;

    while (next_criterion(target, &position, &criterion)) {
        const char *prompt = node_get_text(criterion.node, "prompt");
        const struct node *files = node_get(criterion.node, "files");
        const struct node *reads = node_get(criterion.node, "include_reference");
        bool has_files = files != NULL && files->kind == NODE_LIST && files->count > 0;
        bool compares =
            has_reference && (reads == NULL || reads->kind != NODE_BOOL || reads->truth);
        size_t words = prompt == NULL ? 0 : word_count(prompt);

        if (!is_judge(criterion.type) || words >= RUBRIC_WORDS_MIN)
            continue;
        if (words == 0 || (!has_files && !compares))
            found(target, criterion.node->mark, criterion.place,
                  "the judge is told %zu word%s, and reads neither reference nor files", words,
                  words == 1 ? "" : "s");
    }
}

static bool is_on(const struct node *node)
{
    return node != NULL && (node->kind == NODE_MAP || (node->kind == NODE_BOOL && node->truth));
}

void check_stop_early(struct target *target)
{
    const struct node *stop = setting(target, "run_limits.stop_early");
    struct criterion_seen criterion;
    size_t position = 0;

    while (next_criterion(target, &position, &criterion)) {
        const struct node *node = node_get(criterion.node, "stop_early");
        scoped(mem_freep) char *place = str_format("%s.stop_early", criterion.place);

        if (!is_on(node))
            continue;
        if (node_get_real(criterion.node, "weight", 1) <= 0)
            found(target, node->mark, place, "a criterion of weight 0 ends no run");
        else if (stop != NULL && !is_on(stop))
            found(target, node->mark, place, "run_limits.stop_early is off");
    }
}
