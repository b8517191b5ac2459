#include "lint/edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

#define DIFF_AROUND 3

void edits_add(struct edits *edits, size_t start, size_t end, char *text)
{
    edits->items = mem_resize(edits->items, edits->count + 1, sizeof(*edits->items));
    edits->items[edits->count++] = (struct lint_edit){start, end, text};
}

void edits_done(struct edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        free(edits->items[i].text);
    free(edits->items);
    *edits = (struct edits){0};
}

static int compare(const void *a, const void *b)
{
    const struct lint_edit *left = a, *right = b;

    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return left->end < right->end ? -1 : left->end > right->end;
}

size_t edits_apply(struct edits *edits, const char *text, size_t size, struct buf *ret)
{
    size_t at = 0, left_out = 0;

    if (edits->count > 1)
        qsort(edits->items, edits->count, sizeof(*edits->items), compare);
    for (size_t i = 0; i < edits->count; i++) {
        const struct lint_edit *edit = &edits->items[i];

        if (edit->start < at || edit->end > size || edit->end < edit->start) {
            left_out++;
            continue;
        }
        buf_append(ret, text + at, edit->start - at);
        buf_text_append(ret, edit->text);
        at = edit->end;
    }
    buf_append(ret, text + at, size - at);
    return left_out;
}

size_t edit_byte_of(const char *text, size_t size, size_t character)
{
    size_t at = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    for (; character > 0 && at < size; character--)
        do
            at++;
        while (at < size && ((unsigned char)text[at] & 0xc0u) == 0x80);
    return at;
}

int edit_write(const char *path, const struct buf *content, struct error **err)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        return error_errno_as(err, ERROR_USER, errno, "cannot write '%s'", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_USER, "'%s' is no regular file; name the file itself", path);
    scoped(error_freep) struct error *cause = NULL;
    struct fs_content whole = {content->data, content->size_bytes, status.st_mode & 0777, FS_SYNC};

    if (fs_write_atomic(AT_FDCWD, path, &whole, &cause) == 0)
        return 0;
    return error_set(err, ERROR_USER,
                     "%s; nothing of it was written; start this as the owner of the file",
                     error_message(cause));
}

/* --- diff --------------------------------------------------------------------------------------*/

struct lines {
    const char **starts;
    size_t count;
};

static struct lines split(const char *text)
{
    struct lines lines = {0};

    for (const char *s = text; *s != '\0';) {
        const char *end = strchr(s, '\n');

        if ((lines.count & (lines.count - 1)) == 0)
            lines.starts = mem_resize(lines.starts, (lines.count == 0 ? 1 : lines.count * 2) + 1,
                                      sizeof(*lines.starts));
        lines.starts[lines.count++] = s;
        s = end == NULL ? s + strlen(s) : end + 1;
        lines.starts[lines.count] = s;
    }
    return lines;
}

static bool same_line(const struct lines *a, size_t i, const struct lines *b, size_t j)
{
    size_t left = (size_t)(a->starts[i + 1] - a->starts[i]);
    size_t right = (size_t)(b->starts[j + 1] - b->starts[j]);

    return left == right && memcmp(a->starts[i], b->starts[j], left) == 0;
}

static void show_lines(struct buf *ret, char sign, const struct lines *lines, size_t from,
                       size_t to)
{
    for (size_t i = from; i < to; i++) {
        size_t size = (size_t)(lines->starts[i + 1] - lines->starts[i]);

        while (size > 0 && strchr("\r\n", lines->starts[i][size - 1]) != NULL)
            size--;
        buf_char(ret, sign);
        term_quote(ret, lines->starts[i], size, TERM_LINES);
        buf_char(ret, '\n');
    }
}

/* The next place from (i, j) on where both have the same line again, the nearest one. */
static void next_same(const struct lines *a, const struct lines *b, size_t *i, size_t *j)
{
    size_t rest = (a->count - *i) + (b->count - *j);

    for (size_t distance = 1; distance <= rest; distance++)
        for (size_t left = 0; left <= distance; left++) {
            size_t x = *i + left, y = *j + distance - left;

            if (x <= a->count && y <= b->count &&
                ((x == a->count && y == b->count) ||
                 (x < a->count && y < b->count && same_line(a, x, b, y)))) {
                *i = x;
                *j = y;
                return;
            }
        }
}

/* One hunk a difference; those that are near are not joined: the edits of a task file are few. */
void edit_diff(const char *path, const char *old, const char *changed, struct buf *ret)
{
    struct lines a = split(old), b = split(changed);
    size_t i = 0, j = 0, shown = 0; /* lines of a that stand in hunks */

    buf_text_append(ret, "--- ");
    term_quote(ret, path, strlen(path), TERM_ONE_LINE);
    buf_text_append(ret, "\n+++ ");
    term_quote(ret, path, strlen(path), TERM_ONE_LINE);
    buf_char(ret, '\n');
    while (i < a.count || j < b.count) {
        size_t from = i, to = j, before;

        if (i < a.count && j < b.count && same_line(&a, i, &b, j)) {
            i++;
            j++;
            continue;
        }
        next_same(&a, &b, &i, &j);
        before = size_min(from - shown, DIFF_AROUND);
        size_t after = 0;

        while (after < DIFF_AROUND && i + after < a.count && j + after < b.count &&
               same_line(&a, i + after, &b, j + after))
            after++;
        buf_format(ret, "@@ -%zu,%zu +%zu,%zu @@\n", from - before + 1, i - from + before + after,
                   to - before + 1, j - to + before + after);
        show_lines(ret, ' ', &a, from - before, from);
        show_lines(ret, '-', &a, from, i);
        show_lines(ret, '+', &b, to, j);
        show_lines(ret, ' ', &a, i, i + after);
        shown = i + after;
    }
    free(a.starts);
    free(b.starts);
}
