#pragma once
/*
 * log: what the program says about itself on stderr. Only cli/ and report/ print results.
 *
 * The level is the only global state of the program. Messages pass through term_quote() when they
 * hold bytes that came from outside; log_* does not quote.
 */

#include "base/base.h"

enum log_level { LOG_QUIET, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_warn(const char *fmt, ...) printf_like(1, 2);
void log_info(const char *fmt, ...) printf_like(1, 2);
void log_debug(const char *fmt, ...) printf_like(1, 2);
