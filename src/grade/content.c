#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/value.h"

#define QUOTED_BYTES_MAX 200

/* --- details and verdicts -------------------------------------------------------------------- */

void details_quote(struct buf *details, const char *bytes, size_t size, size_t max_bytes)
{
    buf_char(details, '\'');
    buf_append(details, bytes, size_min(size, max_bytes));
    buf_char(details, '\'');
    if (size > max_bytes)
        buf_format(details, " [cut, %zu bytes in all]", size);
}

static void set_details(struct verdict *verdict, struct buf *details)
{
    if (details->overflowed) {
        details->max_bytes = GRADE_DETAILS_BYTES_MAX;
        details->overflowed = false;
        buf_text_append(details, DETAILS_MARK);
    }
    /* One line of text needs no newline at its end. */
    while (details->size_bytes > 0 && details->data[details->size_bytes - 1] == '\n')
        details->data[--details->size_bytes] = '\0';
    free(verdict->details);
    verdict->details = buf_take(details);
}

void verdict_score(struct verdict *verdict, double score, struct buf *details)
{
    ASSERT(score >= 0 && score <= 1);
    verdict->score = score;
    set_details(verdict, details);
}

void verdict_label(struct verdict *verdict, const char *observed, const char *expected)
{
    free(verdict->observed);
    free(verdict->expected);
    verdict->observed = str_dup(observed);
    verdict->expected = str_dup(expected);
}

void verdict_error(struct verdict *verdict, struct buf *details)
{
    verdict->errored = true;
    verdict->score = 0;
    set_details(verdict, details);
}

void verdict_agent_error(struct verdict *verdict, struct buf *details)
{
    verdict_error(verdict, details);
    verdict->caused_by_agent = true;
}

/* --- configuration --------------------------------------------------------------------------- */

/* True for an absolute path and for one with "..". */
static bool escapes(const char *path)
{
    size_t length;

    if (path[0] == '/')
        return true;
    for (; *path != '\0'; path += length) {
        path += strspn(path, "/");
        length = strcspn(path, "/");
        if (length == 2 && memcmp(path, "..", 2) == 0)
            return true;
    }
    return false;
}

void complain(const struct complaints *complaints, const char *place, const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    complaints->say(complaints->context,
                    &(struct criterion_mistake){place, ERROR_NO_OFFSET, buf_text(&message)});
}

void complain_of(const struct complaints *complaints, const char *place,
                 const struct error *problem)
{
    complaints->say(complaints->context, &(struct criterion_mistake){place, error_offset(problem),
                                                                     error_message(problem)});
}

void config_path(const struct criterion *criterion, const struct complaints *complaints)
{
    const json_t *path = json_object_get(criterion->params, "path");

    if (!json_is_string(path) || json_string_length(path) == 0)
        complain(complaints, "/path", "expected the path of a file in the workspace");
    else if (strlen(json_string_value(path)) != json_string_length(path))
        complain(complaints, "/path", "holds a NUL character");
    else if (escapes(json_string_value(path)))
        complain(complaints, "/path", "'%s' leads out of the workspace", json_string_value(path));
}

void config_pattern(const json_t *params, const char *place, const char *key, unsigned flags,
                    const struct complaints *complaints)
{
    const json_t *pattern = json_object_get(params, key);
    scoped(mem_freep) char *whole = str_format("%s/%s", place, key);
    scoped(regex_freep) struct regex *regex = NULL;
    scoped(error_freep) struct error *err = NULL;

    if (pattern == NULL || json_is_null(pattern))
        return;
    if (!json_is_string(pattern))
        complain(complaints, whole, "expected a regular expression");
    else if (regex_compile(json_string_value(pattern), flags, &regex, &err) < 0)
        complain_of(complaints, whole, err);
}

/* --- files ----------------------------------------------------------------------------------- */

static void list_matches(const struct grade_file *file, struct buf *details)
{
    for (size_t i = 0; i < file->matches.count; i++)
        buf_format(details, "%s '%s'", i == 0 ? ":" : ",", file->matches.items[i]);
}

void content_explain(const char *path, const struct grade_file *file, struct buf *details)
{
    switch (file->state) {
    case GRADE_FILE_OK:
        buf_format(details, "'%s' is a file", path);
        return;
    case GRADE_FILE_ABSENT:
        buf_format(details, "'%s' does not exist", path);
        return;
    case GRADE_FILE_DIRECTORY:
        buf_format(details, "'%s' is a directory, expected a file", path);
        return;
    case GRADE_FILE_NOT_REGULAR:
        buf_format(details, "'%s' is %s, expected a file", path,
                   file->content.size_bytes > 0 ? buf_text(&file->content)
                                                : "neither a file nor a link to one in the "
                                                  "workspace");
        return;
    case GRADE_FILE_TOO_LARGE:
        buf_format(details, "'%s' is larger than %zu bytes", path, GRADE_FILE_BYTES_MAX);
        return;
    case GRADE_FILE_AMBIGUOUS:
        buf_format(details, "'%s' matches several files, expected exactly one", path);
        list_matches(file, details);
        return;
    }
}

void content_done(struct content *content)
{
    grade_file_done(&content->file);
}

int content_read(const struct criterion *criterion, const struct grade_input *input,
                 struct content *ret, struct buf *details, struct verdict *verdict,
                 struct error **err)
{
    const char *path = json_get_text(criterion->params, "path");
    struct grade_file *file = &ret->file;
    int r = input->workspace->read(input->workspace->context, path, true, file, err);

    if (r < 0)
        return r;
    ret->readable = file->state == GRADE_FILE_OK;
    if (!ret->readable) {
        content_explain(path, file, details);
        verdict_score(verdict, 0, details);
    } else if (file->resolved != NULL) {
        buf_format(details, "'%s' is '%s'\n", path, file->resolved);
    }
    return 0;
}

/* --- checks of one content ------------------------------------------------------------------- */

double tally_ratio(struct tally tally)
{
    return tally.total == 0 ? 1 : (double)tally.holding / (double)tally.total;
}

double tally_mean(const struct tally *tallies, size_t count)
{
    double sum = 0;
    size_t active = 0;

    for (size_t i = 0; i < count; i++) {
        if (tallies[i].total == 0)
            continue;
        sum += tally_ratio(tallies[i]);
        active++;
    }
    return active == 0 ? 1 : sum / (double)active;
}

struct tally content_texts(const struct buf *content, const json_t *texts, bool wanted,
                           struct buf *details)
{
    struct tally tally = {.total = json_array_size(texts)};

    for (size_t i = 0; i < tally.total; i++) {
        const json_t *text = json_array_get(texts, i);
        const char *bytes = json_string_value(text);
        size_t size = json_string_length(text);
        bool found = memmem(buf_text(content), content->size_bytes, bytes, size) != NULL;

        if (found == wanted) {
            tally.holding++;
            continue;
        }
        buf_text_append(details, wanted ? "not in the file: " : "in the file, but excluded: ");
        details_quote(details, bytes, size, QUOTED_BYTES_MAX);
        buf_char(details, '\n');
    }
    if (tally.total > 0)
        buf_format(details, "%s: %zu of %zu hold\n", wanted ? "includes" : "excludes",
                   tally.holding, tally.total);
    return tally;
}

void content_pattern_check(const json_t *spec, const char *place,
                           const struct complaints *complaints)
{
    scoped(mem_freep) char *flags_place = str_format("%s/flags", place);
    scoped(mem_freep) char *pattern_place = str_format("%s/pattern", place);
    scoped(error_freep) struct error *err = NULL;
    unsigned flags = 0;

    if (regex_flags_parse(json_object_get(spec, "flags"), &flags, &err) < 0)
        complain_of(complaints, flags_place, err);
    else if (json_get_text(spec, "pattern") == NULL)
        complain(complaints, pattern_place, "expected a regular expression");
    else
        config_pattern(spec, place, "pattern", flags, complaints);
}

int content_pattern(const json_t *spec, const struct buf *content, struct buf *details,
                    enum pattern_result *ret, struct error **err)
{
    const char *pattern = json_get_text(spec, "pattern");
    bool wanted = json_get_bool(spec, "must_match", true);
    scoped(regex_freep) struct regex *regex = NULL;
    unsigned flags = 0;

    ASSERT(pattern != NULL); /* checked at load */
    int r = regex_flags_parse(json_object_get(spec, "flags"), &flags, err);

    if (r == 0)
        r = regex_compile(pattern, flags, &regex, err);
    if (r < 0)
        return r;
    ASSERT(regex != NULL);
    enum regex_outcome outcome = regex_search(regex, buf_text(content), content->size_bytes);

    if (outcome == REGEX_LIMIT) {
        buf_format(details,
                   "/%s/ takes too long on this file: the limits of a search are reached\n",
                   pattern);
        *ret = PATTERN_LIMIT;
        return 0;
    }
    *ret = (outcome == REGEX_MATCH) == wanted ? PATTERN_HOLDS : PATTERN_FAILS;
    if (*ret == PATTERN_FAILS)
        buf_format(details, "/%s/ %s\n", pattern,
                   wanted ? "has no match, expected one" : "has a match, expected none");
    return 0;
}
