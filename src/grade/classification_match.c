/* classification_match: a file holds one label, the expected one. */
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "grade/internal.h"

/* What a file observes that says nothing, and one that says what nobody asked for. */
#define LABEL_NONE "(none)"
#define LABEL_OTHER "(other)"
#define SHOWN_BYTES_MAX 120

static bool is_same(const char *a, const char *b, bool case_sensitive)
{
    return case_sensitive ? strcmp(a, b) == 0 : strcasecmp(a, b) == 0;
}

/* The label of the list, as the list spells it; NULL: it is not there. */
static const char *find_label(const json_t *labels, const char *label, bool case_sensitive)
{
    size_t i;
    json_t *item;

    json_array_foreach (labels, i, item) {
        if (json_is_string(item) && is_same(json_string_value(item), label, case_sensitive))
            return json_string_value(item);
    }
    return NULL;
}

void classification_match_check(const struct criterion *criterion,
                                const struct complaints *complaints)
{
    const json_t *labels = json_object_get(criterion->params, "allowed_labels");
    const char *expected = json_get_text(criterion->params, "expected_label");
    bool case_sensitive = json_get_bool(criterion->params, "case_sensitive", false);

    config_path(criterion, complaints);
    if (json_array_size(labels) == 0)
        complain(complaints, "/allowed_labels", "expected at least one label");
    else if (expected == NULL)
        complain(complaints, "/expected_label", "expected a label");
    else if (!str_equal(expected, LABEL_NONE) && !str_equal(expected, LABEL_OTHER) &&
             find_label(labels, expected, case_sensitive) == NULL)
        complain(complaints, "/expected_label", "'%s' is none of the allowed_labels", expected);
}

/* The file's text without white space around it; owned. */
static char *trimmed(const struct buf *content)
{
    static const char blanks[] = " \t\r\n\v\f";
    const char *text = buf_text(content);
    size_t start = strspn(text, blanks), end = strlen(text);

    while (end > start && strchr(blanks, text[end - 1]) != NULL)
        end--;
    return str_ndup(text + start, end - start);
}

/* Which label the file stands for. */
static const char *observe(const struct criterion *criterion, const struct grade_file *file,
                           struct buf *details)
{
    const json_t *labels = json_object_get(criterion->params, "allowed_labels");

    if (file->state != GRADE_FILE_OK) {
        content_explain(json_get_text(criterion->params, "path"), file, details);
        buf_char(details, '\n');
        return LABEL_NONE;
    }
    scoped(mem_freep) char *text = trimmed(&file->content);

    if (text[0] == '\0')
        return LABEL_NONE;
    const char *label =
        find_label(labels, text, json_get_bool(criterion->params, "case_sensitive", false));

    if (label != NULL)
        return label;
    buf_text_append(details, "the file holds ");
    details_quote(details, text, strlen(text), SHOWN_BYTES_MAX);
    buf_text_append(details, ", which is none of the allowed labels\n");
    return LABEL_OTHER;
}

int classification_match_evaluate(const struct criterion *criterion,
                                  const struct grade_input *input, struct verdict *ret,
                                  struct error **err)
{
    const char *path = json_get_text(criterion->params, "path");
    const char *expected = json_get_text(criterion->params, "expected_label");
    bool case_sensitive = json_get_bool(criterion->params, "case_sensitive", false);
    const json_t *labels = json_object_get(criterion->params, "allowed_labels");
    scoped(grade_file_done) struct grade_file file = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    int r = input->workspace->read(input->workspace->context, path, true, &file, err);

    if (r < 0)
        return r;
    const char *observed = observe(criterion, &file, &details);
    const char *spelt = find_label(labels, expected, case_sensitive);

    if (spelt != NULL)
        expected = spelt;
    buf_format(&details, "label '%s', expected '%s'", observed, expected);
    verdict_label(ret, observed, expected);
    verdict_score(ret, is_same(observed, expected, case_sensitive) ? 1 : 0, &details);
    return 0;
}
