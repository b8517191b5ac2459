#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"

void file_check_check(const struct criterion *criterion, const struct complaints *complaints)
{
    const json_t *patterns = json_object_get(criterion->params, "patterns");

    config_path(criterion, complaints);
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        scoped(mem_freep) char *place = str_format("/patterns/%zu", i);

        content_pattern_check(json_array_get(patterns, i), place, complaints);
    }
}

/* *ret_limit: one of them takes too long. */
static int check_patterns(const json_t *patterns, const struct buf *content, struct tally *ret,
                          bool *ret_limit, struct buf *details, struct error **err)
{
    struct tally tally = {.total = json_array_size(patterns)};

    *ret_limit = false;
    for (size_t i = 0; i < tally.total; i++) {
        enum pattern_result result = PATTERN_FAILS;
        int r = content_pattern(json_array_get(patterns, i), content, details, &result, err);

        if (r < 0)
            return r;
        tally.holding += result == PATTERN_HOLDS;
        *ret_limit |= result == PATTERN_LIMIT;
    }
    if (tally.total > 0)
        buf_format(details, "patterns: %zu of %zu hold\n", tally.holding, tally.total);
    *ret = tally;
    return 0;
}

int file_check_evaluate(const struct criterion *criterion, const struct grade_input *input,
                        struct verdict *ret, struct error **err)
{
    scoped(content_done) struct content content = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    bool limit = false;
    int r = content_read(criterion, input, &content, &details, ret, err);

    if (r < 0 || !content.readable)
        return r;
    struct tally tallies[3] = {
        content_texts(&content.file.content, json_object_get(criterion->params, "includes"), true,
                      &details),
        content_texts(&content.file.content, json_object_get(criterion->params, "excludes"), false,
                      &details),
    };

    r = check_patterns(json_object_get(criterion->params, "patterns"), &content.file.content,
                       &tallies[2], &limit, &details, err);
    if (r < 0)
        return r;
    if (limit)
        verdict_agent_error(ret, &details);
    else
        verdict_score(ret, tally_mean(tallies, ARRAY_SIZE(tallies)), &details);
    return 0;
}
