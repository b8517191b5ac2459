#pragma once
/*
 * confine: what the broker takes from itself before it hears the first word of a cell.
 */

#include "base/error.h"

/* What one that speaks with endpoints keeps: the files that a name is looked up with, and ports. */
struct confine_needs {
    bool speaks;
    const uint16_t *ports; /* of TCP that it connects to, besides that of name servers */
    size_t port_count;
};

/*
 * From here on the process makes, removes and runs no file, and opens none but what names are
 * looked up with; it binds no port of TCP, and connects to those alone where landlock knows of
 * ports (Linux 6.7). What is open stays. Its memory is nobody's of its own user. ERROR_SYSTEM when
 * that cannot be had.
 */
must_check int broker_confine(const struct confine_needs *needs, struct error **err) nonnull(1);
