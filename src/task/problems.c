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

/* Remarks by the thousand must not crowd out the errors. */
static bool is_full(const struct problems *problems, enum problem_level level)
{
    return problems->count >= (level == PROBLEM_ERROR ? TASK_PROBLEMS_MAX : TASK_PROBLEMS_MAX / 2);
}

void problems_say(struct problems *problems, enum problem_level level, struct mark mark,
                  const struct path *path, const char *message)
{
    if (level == PROBLEM_ERROR)
        problems->error_count++;
    if (is_full(problems, level)) {
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

void problems_later(struct problems *problems, struct mark mark, const struct path *path,
                    const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    size_t count = problems->count;
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_say(problems, PROBLEM_ERROR, mark, path, buf_text(&message));
    problems->later_count++;
    if (problems->count > count)
        problems->items[count].later = true;
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

static bool is_same(const struct problem *a, const struct problem *b)
{
    return a->level == b->level && a->line == b->line && a->column == b->column &&
           strcmp(a->message, b->message) == 0 && strcmp(a->path, b->path) == 0 &&
           strcmp(a->file, b->file) == 0;
}

void problems_unique(struct problems *problems)
{
    size_t kept = 0;

    for (size_t i = 0; i < problems->count; i++) {
        struct problem *problem = &problems->items[i];
        bool known = false;

        /* They are sorted by place and message, not by file and path. */
        for (size_t j = kept; j-- > 0 && compare(&problems->items[j], problem, NULL) == 0;)
            known = known || is_same(&problems->items[j], problem);
        if (!known) {
            problems->items[kept++] = *problem;
            continue;
        }
        problems->error_count -= problem->level == PROBLEM_ERROR;
        problems->later_count -= problem->later;
        problem_done(problem);
    }
    problems->count = kept;
}

void problems_move(struct problems *to, struct problems *from)
{
    to->error_count += from->error_count;
    to->later_count += from->later_count;
    to->dropped_count += from->dropped_count;
    for (size_t i = 0; i < from->count; i++) {
        if (!is_full(to, from->items[i].level)) {
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

/* What two problems must share to be one to the reader: level, message, field ("a[3].b" is
 * "a[7].b"). */
static char *group_key(const struct problem *problem)
{
    scoped(buf_done) struct buf key = {0};

    buf_format(&key, "%d %s\n", (int)problem->level, problem->message);
    for (const char *s = problem->path; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            buf_char(&key, *s);
    }
    return buf_take(&key);
}

/* A problem and its group; next leads to the next of the group in the order of the list. */
struct grouped {
    char *key;
    size_t index, size; /* size: of the group, set at its first; 0: not the first */
    size_t next;        /* SIZE_MAX: the last */
};

static int compare_groups(const void *a, const void *b)
{
    const struct grouped *left = *(struct grouped *const *)a, *right = *(struct grouped *const *)b;
    int order = strcmp(left->key, right->key);

    return order != 0 ? order : left->index < right->index ? -1 : left->index > right->index;
}

static struct grouped *find_groups(const struct problems *problems)
{
    struct grouped *groups = mem_new(problems->count + 1, sizeof(struct grouped));
    scoped(mem_freep) struct grouped **sorted =
        mem_new(problems->count + 1, sizeof(struct grouped *));
    struct grouped *first = NULL;

    for (size_t i = 0; i < problems->count; i++) {
        groups[i] = (struct grouped){group_key(&problems->items[i]), i, 0, SIZE_MAX};
        sorted[i] = &groups[i];
    }
    qsort(sorted, problems->count, sizeof(struct grouped *), compare_groups);
    for (size_t i = 0; i < problems->count; i++) {
        if (first == NULL || strcmp(first->key, sorted[i]->key) != 0)
            first = sorted[i];
        else
            sorted[i - 1]->next = sorted[i]->index;
        first->size++;
    }
    return groups;
}

static void free_groups(struct grouped *groups, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(groups[i].key);
    free(groups);
}

/* The group that starts at first: its message once, the first places. */
static void format_group(const struct problems *problems, const struct grouped *groups,
                         const struct grouped *first, struct buf *buf)
{
    const struct problem *problem = &problems->items[first->index];
    size_t shown = 0;

    buf_format(buf, "%s, %zu times: ", level_name(problem->level), first->size);
    quote(buf, problem->message);
    buf_char(buf, '\n');
    for (size_t i = first->index; i != SIZE_MAX && shown < PLACES_SHOWN; i = groups[i].next) {
        problem = &problems->items[i];
        buf_text_append(buf, "  ");
        format_place(buf, problem);
        quote(buf, problem->path);
        buf_char(buf, '\n');
        if (shown++ == 0)
            format_source(buf, problem);
    }
    if (first->size > shown)
        buf_format(buf, "  and %zu more\n", first->size - shown);
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
    struct grouped *groups = all ? NULL : find_groups(problems);

    for (size_t i = 0; i < problems->count; i++) {
        if (all || groups[i].size == 1)
            format_one(&problems->items[i], buf);
        else if (groups[i].size > 1)
            format_group(problems, groups, &groups[i], buf);
    }
    free_groups(groups, all ? 0 : problems->count);
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
