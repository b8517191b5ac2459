#include "grade/internal.h"

void file_contains_check(const struct criterion *criterion, const struct complaints *complaints)
{
    config_path(criterion, complaints);
}

int file_contains_evaluate(const struct criterion *criterion, const struct grade_input *input,
                           struct verdict *ret, struct error **err)
{
    scoped(content_done) struct content content = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    int r = content_read(criterion, input, &content, &details, ret, err);

    if (r < 0 || !content.readable)
        return r;
    struct tally tallies[] = {
        content_texts(&content.file.content, json_object_get(criterion->params, "includes"), true,
                      &details),
        content_texts(&content.file.content, json_object_get(criterion->params, "excludes"), false,
                      &details),
    };

    verdict_score(ret, tally_mean(tallies, ARRAY_SIZE(tallies)), &details);
    return 0;
}
