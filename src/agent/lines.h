#pragma once
/*
 * lines: JSON lines that an agent wrote, as hostile input: cut at newlines, kept up to a limit,
 * invalid UTF-8 replaced, values counted before any is built.
 *
 * Depends on: base.
 */

#include "base/buf.h"
#include "base/json.h"

/* One line without its newline; text is good during the call only. */
struct line {
    const char *text;
    size_t size;     /* kept */
    size_t bytes;    /* that came */
    uint64_t offset; /* of its first byte in all that came */
    bool last;       /* no newline followed */
};

struct line_cutter {
    struct buf line; /* max_bytes is the limit of one line */
    size_t line_bytes;
    uint64_t offset; /* where the next line begins */
};

/* Calls on_line for each whole line, until it returns false. */
void line_cutter_feed(struct line_cutter *cutter, const char *bytes, size_t size,
                      bool (*on_line)(void *context, const struct line *line), void *context)
    nonnull(1, 2, 4);
/* The last line, when it lacks its newline. */
void line_cutter_end(struct line_cutter *cutter,
                     bool (*on_line)(void *context, const struct line *line), void *context)
    nonnull(1, 2);
void line_cutter_done(struct line_cutter *cutter) nonnull(1);

bool line_is_blank(const struct line *line) nonnull(1);

/*
 * The line as JSON; new. NULL: *ret_reason says what is wrong with it, *ret_nodes is then not
 * meant. nodes_max bounds the values of the line.
 */
json_t *line_parse(const struct line *line, size_t nodes_max, size_t *ret_nodes,
                   const char **ret_reason) nonnull(1, 3, 4);

/* What is kept of a line that is no event: {reason, text, cut, bytes}; new. */
json_t *line_invalid(const struct line *line, const char *reason) nonnull(1, 2);
