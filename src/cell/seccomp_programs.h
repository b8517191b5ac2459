#pragma once
/*
 * seccomp_programs: the programs that emit_seccomp.c makes at build time, as a table.
 */

#include <linux/filter.h>

#include "cell/setup.h"

struct seccomp_program {
    const struct sock_filter *first;
    unsigned short count;
};

extern const struct seccomp_program seccomp_programs[]; /* by enum filter */
