#include "grade/internal.h"

int file_contains_check(const struct criterion *criterion, struct error **err)
{
    return config_path(criterion, err);
}

int file_contains_evaluate(const struct criterion *criterion, const struct grade_input *input,
                           struct verdict *ret, struct error **err)
{
    scoped(grade_file_done) struct grade_file file = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    bool readable = false;
    int r = content_read(criterion, input, &file, &readable, &details, ret, err);

    if (r < 0 || !readable)
        return r;
    struct tally tallies[] = {
        content_texts(&file.content, json_object_get(criterion->params, "includes"), true,
                      &details),
        content_texts(&file.content, json_object_get(criterion->params, "excludes"), false,
                      &details),
    };

    verdict_score(ret, tally_mean(tallies, ARRAY_SIZE(tallies)), &details);
    return 0;
}
