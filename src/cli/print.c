#include "cli/print.h"

#include "base/fs.h"
#include "base/term.h"

int print_out(const struct buf *text, struct error **err)
{
    return fs_write_all(STDOUT_FILENO, "standard output", buf_text(text), text->size_bytes, err);
}

void print_error(const struct error *err)
{
    scoped(buf_done) struct buf line = {0};
    const char *message = error_message(err);

    buf_text_append(&line, "closedbook: ");
    term_quote(&line, message, strlen(message), TERM_LINES);
    buf_char(&line, '\n');
    if (fs_write_all(STDERR_FILENO, "standard error", line.data, line.size_bytes, NULL) < 0)
        return; /* the exit status tells it, too */
}
