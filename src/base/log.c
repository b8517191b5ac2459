#include "base/log.h"

#include "base/buf.h"

static enum log_level current_level = LOG_WARN;

void log_set_level(enum log_level level)
{
    current_level = level;
}

enum log_level log_get_level(void)
{
    return current_level;
}

/* One write a message, so that the lines of several processes do not mix. */
__attribute__((format(printf, 3, 0))) static void say(enum log_level level, const char *prefix,
                                                      const char *fmt, va_list args)
{
    if (level > current_level)
        return;
    scoped(buf_done) struct buf line = {0};

    buf_text_append(&line, prefix);
    buf_vformat(&line, fmt, args);
    buf_char(&line, '\n');
    if (write(STDERR_FILENO, line.data, line.size_bytes) < 0)
        return; /* nobody listens */
}

void log_warn(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(LOG_WARN, "closedbook: warning: ", fmt, args);
    va_end(args);
}

void log_info(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(LOG_INFO, "closedbook: ", fmt, args);
    va_end(args);
}

void log_debug(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(LOG_DEBUG, "closedbook: debug: ", fmt, args);
    va_end(args);
}
