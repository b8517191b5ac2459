/* The mistakes in a criterion's own parameters, shown where they stand. */
#include "base/term.h"
#include "task/internal.h"

/* --- places inside a scalar --------------------------------------------------------------------
 */

/* Bytes of the source from the mark to the end of its line; NULL: no source. */
static const char *line_at(struct mark mark, const char **ret_end)
{
    if (mark.origin == NULL || mark.origin->text == NULL || mark.line == 0)
        return NULL;
    const char *s = mark.origin->text, *end = s + mark.origin->length;
    uint32_t rune;

    for (unsigned line = 1; line < mark.line; line++) {
        s = memchr(s, '\n', (size_t)(end - s));
        if (s == NULL)
            return NULL;
        s++;
    }
    const char *newline = memchr(s, '\n', (size_t)(end - s));

    *ret_end = newline == NULL ? end : newline;
    for (unsigned column = 1; column < mark.column && s < *ret_end; column++)
        s += size_max(utf8_next(s, (size_t)(*ret_end - s), &rune), 1);
    return s;
}

/* How many source bytes an escape takes after its backslash, and what it stands for; 0: unknown. */
static size_t escape_size(const char *s, const char *end, uint32_t *ret_rune)
{
    static const char letters[] = "0abt\tnvfre \"/\\N_LP";
    static const uint32_t runes[] = {0,  7,    8,    9,   9,    10,   11,   12,     13,
                                     27, 0x20, 0x22, '/', 0x5c, 0x85, 0xa0, 0x2028, 0x2029};
    size_t digits = *s == 'x' ? 2 : *s == 'u' ? 4 : *s == 'U' ? 8 : 0;
    const char *letter = strchr(letters, *s);
    char hex[9] = "";

    if (digits == 0) {
        if (letter == NULL || *s == '\0')
            return 0;
        *ret_rune = runes[letter - letters];
        return 1;
    }
    if ((size_t)(end - s) <= digits)
        return 0;
    memcpy(hex, s + 1, digits);
    *ret_rune = (uint32_t)strtoul(hex, NULL, 16); /* the YAML reader has seen that they are hex */
    return 1 + digits;
}

static size_t rune_size(uint32_t rune)
{
    return rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
}

/* One character of a scalar in the given quotes (0: plain): its bytes in the source and in the
 * text; false: the scalar ends here, or goes on in a way that is not followed. */
static bool step_over(const char *s, const char *end, char quote, size_t *ret_source,
                      size_t *ret_text)
{
    uint32_t rune = 0;

    if (s >= end)
        return false;
    *ret_source = *ret_text = size_max(utf8_next(s, (size_t)(end - s), &rune), 1);
    if (quote == '\'' && *s == '\'') {
        *ret_source = 2;
        return s + 1 < end && s[1] == '\'';
    }
    if (quote != '"')
        return true;
    if (*s == '\\' && s + 1 < end) {
        size_t size = escape_size(s + 1, end, &rune);

        *ret_source = 1 + size;
        *ret_text = rune_size(rune);
        return size > 0;
    }
    return *s != '"' && *s != '\\';
}

struct mark mark_inside(const struct node *node, size_t offset)
{
    const char *end = NULL, *s = line_at(node->mark, &end);
    struct mark mark = node->mark;
    size_t done = 0, source, text;

    if (s == NULL || s >= end || *s == '|' || *s == '>' || *s == '&' || *s == '!')
        return node->mark;
    char quote = *s == '"' || *s == '\'' ? *s : '\0';

    if (quote != '\0') {
        s++;
        mark.column++;
    }
    while (done < offset) {
        uint32_t rune;

        if (!step_over(s, end, quote, &source, &text))
            return node->mark;
        /* A plain scalar stands there byte for byte, or it is folded over lines. */
        if (quote == '\0' && (done >= strlen(node->text) || node->text[done] != *s))
            return node->mark;
        for (const char *stop = s + source; s < stop; mark.column++)
            s += size_max(utf8_next(s, (size_t)(stop - s), &rune), 1);
        done += text;
    }
    return done == offset ? mark : node->mark;
}

/* --- mistakes ----------------------------------------------------------------------------------
 */

struct complaining {
    const struct build *build;
    const struct node *item;
    const char *path;
};

/* The tables complained about something in this criterion: what follows from that is not said. */
static bool has_complaint(const struct build *build, const char *path)
{
    const struct problems *problems = build->schema.problems;
    size_t length = strlen(path);

    for (size_t i = 0; problems->error_count > 0 && i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];

        if (problem->level == PROBLEM_ERROR && strncmp(problem->path, path, length) == 0 &&
            strcmp(problem->file, build->origin->file) == 0)
            return true;
    }
    return false;
}

/* The next part of a JSON pointer, its escapes undone; NULL at its end. */
static char *next_part(const char **place)
{
    scoped(buf_done) struct buf part = {0};

    if (**place != '/')
        return NULL;
    for ((*place)++; **place != '\0' && **place != '/'; (*place)++) {
        bool escaped = **place == '~' && ((*place)[1] == '0' || (*place)[1] == '1');

        buf_char(&part, !escaped ? **place : (*place)[1] == '0' ? '~' : '/');
        *place += escaped;
    }
    return buf_take(&part);
}

/* Goes as far down as the file has something, and writes the whole path. */
static const struct node *follow(const struct node *node, const char *place, struct buf *path)
{
    bool found = true;

    for (char *part = next_part(&place); part != NULL; part = next_part(&place)) {
        const struct node *child = NULL;
        uint64_t index;

        if (node->kind == NODE_LIST && found) {
            buf_format(path, "[%s]", part);
            if (str_to_u64(part, &index) && index < node->count)
                child = node->items[index];
        } else {
            buf_format(path, ".%.80s", part);
            child = found ? node_get(node, part) : NULL;
        }
        free(part);
        found = child != NULL;
        node = found ? child : node;
    }
    return node;
}

static void complain(void *context, const struct criterion_mistake *mistake)
{
    const struct complaining *complaining = context;
    scoped(buf_done) struct buf path = {0};

    buf_text_append(&path, complaining->path);
    const struct node *node = follow(complaining->item, mistake->place, &path);
    bool inside = mistake->offset != ERROR_NO_OFFSET && node->kind == NODE_TEXT;

    build_error(complaining->build, inside ? mark_inside(node, mistake->offset) : node->mark,
                buf_text(&path), "%s", mistake->message);
}

void build_check_parameters(const struct build *build, const struct criterion *criterion,
                            const struct node *item, const char *path)
{
    struct complaining complaining = {build, item, path};

    if (build->loader->overrides->check_criterion != NULL && !has_complaint(build, path))
        build->loader->overrides->check_criterion(criterion, complain, &complaining);
}

void build_check_criterion(const struct build *build, const struct criterion *criterion,
                           const struct node *item, size_t index)
{
    scoped(mem_freep) char *path = str_format("success_criteria[%zu]", index);

    build_check_parameters(build, criterion, item, path);
}
