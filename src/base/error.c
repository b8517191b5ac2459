#include "base/error.h"

#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"

struct error {
    enum error_code code;
    int errno_value; /* 0 when no system call was to blame */
    size_t offset;   /* ERROR_NO_OFFSET when no text was to blame */
    char *message;
};

_Noreturn void assert_failed(const char *expression, const char *file, int line)
{
    /* Nothing is left to do when stderr is gone. */
    (void)fprintf(stderr, "closedbook: bug: %s:%d: '%s' does not hold\n", file, line, expression);
    abort();
}

static int set(struct error **err, enum error_code code, int errno_value, char *message)
{
    if (err == NULL) {
        free(message);
        return -(int)code;
    }
    /* Two causes for one failure: the second would hide the first. */
    ASSERT(*err == NULL);
    struct error *error = mem_new(1, sizeof(*error));

    *error = (struct error){
        .code = code, .errno_value = errno_value, .offset = ERROR_NO_OFFSET, .message = message};
    *err = error;
    return -(int)code;
}

int error_set(struct error **err, enum error_code code, const char *fmt, ...)
{
    scoped(buf_done) struct buf text = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    return set(err, code, 0, buf_take(&text));
}

int error_set_at(struct error **err, enum error_code code, size_t offset, const char *fmt, ...)
{
    scoped(buf_done) struct buf text = {0};
    va_list args;

    buf_format(&text, "offset %zu: ", offset);
    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    int r = set(err, code, 0, buf_take(&text));

    if (err != NULL)
        (*err)->offset = offset;
    return r;
}

static int set_errno(struct error **err, enum error_code code, int errno_value, struct buf *text)
{
    const char *reason = strerrordesc_np(errno_value);

    if (reason != NULL)
        buf_format(text, ": %s", reason);
    else
        buf_format(text, ": error %d", errno_value);
    return set(err, code, errno_value, buf_take(text));
}

int error_errno(struct error **err, int errno_value, const char *fmt, ...)
{
    scoped(buf_done) struct buf text = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    return set_errno(err, ERROR_SYSTEM, errno_value, &text);
}

int error_errno_as(struct error **err, enum error_code code, int errno_value, const char *fmt, ...)
{
    scoped(buf_done) struct buf text = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    return set_errno(err, code, errno_value, &text);
}

int error_wrap(struct error **err, int r, const char *fmt, ...)
{
    if (err == NULL)
        return r;
    /* Called only where something failed, and who fails says why. */
    ASSERT(r < 0 && *err != NULL);
    scoped(buf_done) struct buf text = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    buf_format(&text, ": %s", (*err)->message);
    free((*err)->message);
    (*err)->message = buf_take(&text);
    return r;
}

const char *error_message(const struct error *err)
{
    return err->message;
}

enum error_code error_code_of(const struct error *err)
{
    return err->code;
}

int error_errno_of(const struct error *err)
{
    return err->errno_value;
}

size_t error_offset(const struct error *err)
{
    return err->offset;
}

const char *error_code_name(enum error_code code)
{
    switch (code) {
    case ERROR_USER:
        return "user";
    case ERROR_TASK:
        return "task";
    case ERROR_AGENT:
        return "agent";
    case ERROR_SYSTEM:
        return "system";
    case ERROR_LIMIT:
        return "limit";
    case ERROR_BUG:
        return "bug";
    }
    return "bug";
}

int error_exit_status(enum error_code code)
{
    switch (code) {
    case ERROR_USER:
    case ERROR_TASK:
        return 2;
    case ERROR_AGENT:
        return 1;
    case ERROR_SYSTEM:
    case ERROR_LIMIT:
    case ERROR_BUG:
        return 3;
    }
    return 3;
}

void error_free(struct error *err)
{
    if (err == NULL)
        return;
    free(err->message);
    free(err);
}

void error_freep(struct error **err)
{
    error_free(*err);
    *err = NULL;
}
