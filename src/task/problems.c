#include "task/problems.h"

#include "base/mem.h"
#include "base/term.h"

#define SOURCE_CHARS_MAX 120 /* of a source line shown */
#define SOURCE_CHARS_BEFORE 60
#define PLACES_SHOWN 3

/* --- collecting ------------------------------------------------------------------------------ */

static void write_path(struct buf *buf, const struct path *path)
{
    if (path == NULL)
        return;
    write_path(buf, path->up);
    if (path->name == NULL) {
        buf_format(buf, "[%zu]", path->index);
        return;
    }
    if (buf->size_bytes > 0)
        buf_char(buf, '.');
    buf_format(buf, "%.80s", path->name);
}

char *path_format(const struct path *path)
{
    scoped(buf_done) struct buf buf = {0};

    write_path(&buf, path);
    return buf_take(&buf);
}

/* The start of a line, counted from 1; NULL past the end. */
static const char *find_line(const struct origin *origin, unsigned line)
{
    const char *s = origin->text, *end = s + origin->length;

    while (--line > 0) {
        s = memchr(s, '\n', (size_t)(end - s));
        if (s == NULL)
            return NULL;
        s++;
    }
    return s;
}

static size_t step(const char *s, const char *end)
{
    uint32_t rune;
    size_t size = utf8_next(s, (size_t)(end - s), &rune);

    return size == 0 ? 1 : size;
}

/* Takes the source line of a mark, at most SOURCE_CHARS_MAX characters around its column. */
static void take_source_line(struct problem *problem, struct mark mark)
{
    const struct origin *origin = mark.origin;

    if (origin->text == NULL || mark.line == 0)
        return;
    const char *s = find_line(origin, mark.line), *end = origin->text + origin->length;

    if (s == NULL)
        return;
    const char *line_end = memchr(s, '\n', (size_t)(end - s));

    if (line_end == NULL)
        line_end = end;
    if (line_end > s && line_end[-1] == '\r')
        line_end--;
    if (line_end == s)
        return; /* nothing to show */
    unsigned skipped =
        mark.column > SOURCE_CHARS_BEFORE + 1 ? mark.column - SOURCE_CHARS_BEFORE - 1 : 0;

    if (skipped < SOURCE_CHARS_BEFORE)
        skipped = 0;
    for (unsigned i = 0; i < skipped && s < line_end; i++)
        s += step(s, line_end);
    const char *stop = s;

    for (unsigned i = 0; i < SOURCE_CHARS_MAX && stop < line_end; i++)
        stop += step(stop, line_end);
    problem->source_line = str_format("%s%.*s%s", skipped > 0 ? "..." : "", (int)(stop - s), s,
                                      stop < line_end ? "..." : "");
    problem->caret = mark.column - 1 - skipped + (skipped > 0 ? 3 : 0);
}

static void append(struct problems *problems, const struct problem *problem)
{
    if ((problems->count & (problems->count - 1)) == 0)
        problems->items =
            mem_resize(problems->items, problems->count == 0 ? 1 : problems->count * 2,
                       sizeof(struct problem));
    problems->items[problems->count++] = *problem;
}

void problems_say(struct problems *problems, enum problem_level level, struct mark mark,
                  const struct path *path, const char *message)
{
    if (level == PROBLEM_ERROR)
        problems->error_count++;
    if (problems->count >= TASK_PROBLEMS_MAX) {
        problems->dropped_count++;
        return;
    }
    bool has_file = mark.origin != NULL && mark.origin->file != NULL;
    struct problem problem = {
        .level = level,
        .file = str_dup(has_file ? mark.origin->file : ""),
        .line = mark.line,
        .column = mark.column,
        .path = path_format(path),
        .message = str_dup(message),
    };

    if (mark.origin != NULL)
        take_source_line(&problem, mark);
    append(problems, &problem);
}

void problems_error(struct problems *problems, struct mark mark, const struct path *path,
                    const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_say(problems, PROBLEM_ERROR, mark, path, buf_text(&message));
}

void problems_warning(struct problems *problems, struct mark mark, const struct path *path,
                      const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_say(problems, PROBLEM_WARNING, mark, path, buf_text(&message));
}

void problems_note(struct problems *problems, struct mark mark, const struct path *path,
                   const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_say(problems, PROBLEM_NOTE, mark, path, buf_text(&message));
}

static int compare(const void *a, const void *b, void *unused)
{
    const struct problem *left = a, *right = b;

    (void)unused;
    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    if (left->column != right->column)
        return left->column < right->column ? -1 : 1;
    return strcmp(left->message, right->message);
}

void problems_sort(struct problems *problems, size_t first)
{
    if (problems->count > first)
        qsort_r(problems->items + first, problems->count - first, sizeof(struct problem), compare,
                NULL);
}

static void problem_done(struct problem *problem)
{
    free(problem->file);
    free(problem->path);
    free(problem->message);
    free(problem->source_line);
}

void problems_move(struct problems *to, struct problems *from)
{
    to->error_count += from->error_count;
    to->dropped_count += from->dropped_count;
    for (size_t i = 0; i < from->count; i++) {
        if (to->count < TASK_PROBLEMS_MAX) {
            append(to, &from->items[i]);
            continue;
        }
        to->dropped_count++;
        problem_done(&from->items[i]);
    }
    free(from->items);
    *from = (struct problems){0};
}

void problems_done(struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        problem_done(&problems->items[i]);
    free(problems->items);
    *problems = (struct problems){0};
}

/* --- showing --------------------------------------------------------------------------------- */

static const char *level_name(enum problem_level level)
{
    switch (level) {
    case PROBLEM_ERROR:
        return "error";
    case PROBLEM_WARNING:
        return "warning";
    case PROBLEM_NOTE:
        return "note";
    }
    return "";
}

static void quote(struct buf *buf, const char *s)
{
    term_quote(buf, s, strlen(s), TERM_ONE_LINE);
}

/* "file:line:column: " as far as it is known. */
static void format_place(struct buf *buf, const struct problem *problem)
{
    if (problem->file[0] == '\0')
        return;
    quote(buf, problem->file);
    if (problem->line > 0)
        buf_format(buf, ":%u:%u", problem->line, problem->column);
    buf_text_append(buf, ": ");
}

static void format_path(struct buf *buf, const struct problem *problem)
{
    if (problem->path[0] == '\0')
        return;
    quote(buf, problem->path);
    buf_text_append(buf, ": ");
}

static void format_source(struct buf *buf, const struct problem *problem)
{
    if (problem->source_line == NULL)
        return;
    scoped(buf_done) struct buf before = {0};
    const char *s = problem->source_line, *end = s + strlen(s);

    for (unsigned i = 0; i < problem->caret && s < end; i++)
        s += step(s, end);
    term_quote(&before, problem->source_line, (size_t)(s - problem->source_line), TERM_ONE_LINE);
    buf_format(buf, "%6u | ", problem->line);
    quote(buf, problem->source_line);
    buf_format(buf, "\n       | %*s^\n", (int)utf8_columns(buf_text(&before)), "");
}

/* "a[3].b" and "a[7].b" are the same field. */
static bool is_same_field(const char *a, const char *b)
{
    for (;;) {
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

static bool is_same(const struct problem *a, const struct problem *b)
{
    return a->level == b->level && strcmp(a->message, b->message) == 0 &&
           is_same_field(a->path, b->path);
}

/* The group that starts at index: its message once, the first places. */
static void format_group(const struct problems *problems, size_t index, size_t size,
                         struct buf *buf)
{
    const struct problem *first = &problems->items[index];
    size_t shown = 0;

    buf_format(buf, "%s, %zu times: ", level_name(first->level), size);
    quote(buf, first->message);
    buf_char(buf, '\n');
    for (size_t i = index; i < problems->count && shown < PLACES_SHOWN; i++) {
        const struct problem *problem = &problems->items[i];

        if (!is_same(problem, first))
            continue;
        buf_text_append(buf, "  ");
        format_place(buf, problem);
        quote(buf, problem->path);
        buf_char(buf, '\n');
        if (shown++ == 0)
            format_source(buf, problem);
    }
    if (size > shown)
        buf_format(buf, "  and %zu more\n", size - shown);
}

static void format_one(const struct problem *problem, struct buf *buf)
{
    format_place(buf, problem);
    if (problem->level != PROBLEM_ERROR)
        buf_format(buf, "%s: ", level_name(problem->level));
    format_path(buf, problem);
    quote(buf, problem->message);
    buf_char(buf, '\n');
    format_source(buf, problem);
}

/* In a workflow command's text or property the characters that end it are percent-encoded. */
static void escape_command(struct buf *buf, const char *s, bool is_property)
{
    for (; *s != '\0'; s++) {
        bool special = *s == '%' || (unsigned char)*s < 0x20 || *s == 0x7f;

        if (special || (is_property && (*s == ':' || *s == ',')))
            buf_format(buf, "%%%02X", (unsigned)(unsigned char)*s);
        else
            buf_char(buf, *s);
    }
}

static void format_annotation(const struct problem *problem, struct buf *buf)
{
    buf_format(
        buf, "::%s file=", problem->level == PROBLEM_NOTE ? "notice" : level_name(problem->level));
    escape_command(buf, problem->file, true);
    if (problem->line > 0)
        buf_format(buf, ",line=%u,col=%u", problem->line, problem->column);
    buf_text_append(buf, "::");
    if (problem->path[0] != '\0') {
        escape_command(buf, problem->path, false);
        buf_text_append(buf, ": ");
    }
    escape_command(buf, problem->message, false);
    buf_char(buf, '\n');
}

void problems_format(const struct problems *problems, bool all, bool github, struct buf *buf)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        bool is_first = true;
        size_t size = 0;

        for (size_t j = 0; j < problems->count && !all; j++) {
            if (!is_same(problem, &problems->items[j]))
                continue;
            is_first = is_first && j >= i;
            size++;
        }
        if (size > 1 && is_first)
            format_group(problems, i, size, buf);
        else if (size <= 1)
            format_one(problem, buf);
    }
    if (problems->dropped_count > 0)
        buf_format(buf, "and %zu more problems that are not listed\n", problems->dropped_count);
    for (size_t i = 0; i < problems->count && github; i++)
        format_annotation(&problems->items[i], buf);
}

static void put_text(json_t *object, const char *key, const char *s)
{
    json_put(object, key, json_text(s, strlen(s)));
}

json_t *problems_to_json(const struct problems *problems)
{
    json_t *array = json_array();

    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        json_t *object = json_object();

        put_text(object, "level", level_name(problem->level));
        put_text(object, "file", problem->file);
        json_put_int(object, "line", problem->line);
        json_put_int(object, "column", problem->column);
        put_text(object, "path", problem->path);
        put_text(object, "message", problem->message);
        json_push(array, object);
    }
    return array;
}
