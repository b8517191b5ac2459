#include "cli/output.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "base/str.h"

const char *const output_colour_choices[] = {"auto", "always", "never", NULL};

int output_text(const struct buf *text, struct error **err)
{
    if ((fwrite(buf_text(text), 1, text->size_bytes, stdout) != text->size_bytes ||
         fflush(stdout) != 0) &&
        errno != EPIPE)
        return error_errno(err, errno, "cannot write to standard output");
    return 0;
}

int output_json(const json_t *json, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    json_write_pretty(&text, json);
    return output_text(&text, err);
}

bool output_colour(const char *choice, int fd)
{
    const char *term = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");

    if (choice != NULL && !str_equal(choice, "auto"))
        return str_equal(choice, "always");
    return isatty(fd) && (no_colour == NULL || no_colour[0] == 0) && !str_equal(term, "dumb");
}

unsigned output_columns(int fd)
{
    struct winsize size = {0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
