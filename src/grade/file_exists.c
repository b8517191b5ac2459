#include "grade/internal.h"

void file_exists_check(const struct criterion *criterion, const struct complaints *complaints)
{
    config_path(criterion, complaints);
}

int file_exists_evaluate(const struct criterion *criterion, const struct grade_input *input,
                         struct verdict *ret, struct error **err)
{
    const char *path = json_get_text(criterion->params, "path");
    scoped(grade_file_done) struct grade_file file = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    int r = input->workspace->read(input->workspace->context, path, false, &file, err);

    if (r < 0)
        return r;
    /* One match or more of a glob, and a directory of this very name, too. */
    bool exists = file.state == GRADE_FILE_OK || file.state == GRADE_FILE_AMBIGUOUS ||
                  file.state == GRADE_FILE_TOO_LARGE || file.state == GRADE_FILE_DIRECTORY;

    if (!exists)
        content_explain(path, &file, &details);
    else if (file.resolved != NULL)
        buf_format(&details, "'%s' exists: '%s'", path, file.resolved);
    else if (file.matches.count > 0)
        buf_format(&details, "'%s' exists: '%s' and more", path, file.matches.items[0]);
    else
        buf_format(&details, "'%s' exists", path);
    verdict_score(ret, exists ? 1 : 0, &details);
    return 0;
}
