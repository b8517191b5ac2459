#include "grade/internal.h"

void file_matches_regex_check(const struct criterion *criterion,
                              const struct complaints *complaints)
{
    config_path(criterion, complaints);
    content_pattern_check(criterion->params, "", complaints);
}

int file_matches_regex_evaluate(const struct criterion *criterion, const struct grade_input *input,
                                struct verdict *ret, struct error **err)
{
    scoped(content_done) struct content content = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    enum pattern_result result = PATTERN_FAILS;
    int r = content_read(criterion, input, &content, &details, ret, err);

    if (r < 0 || !content.readable)
        return r;
    r = content_pattern(criterion->params, &content.file.content, &details, &result, err);
    if (r < 0)
        return r;
    if (result == PATTERN_LIMIT) {
        verdict_agent_error(ret, &details);
        return 0;
    }
    if (result == PATTERN_HOLDS)
        buf_format(&details, "/%s/ %s", json_get_text(criterion->params, "pattern"),
                   json_get_bool(criterion->params, "must_match", true) ? "has a match"
                                                                        : "has no match");
    verdict_score(ret, result == PATTERN_HOLDS ? 1 : 0, &details);
    return 0;
}
