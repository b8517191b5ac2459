#pragma once
/*
 * opener: a process that may read what root may read, and does nothing but open.
 *
 * It is forked before closedbook drops its privileges and keeps CAP_DAC_READ_SEARCH alone. It takes
 * path strings and returns read-only descriptors of regular files and directories; it parses
 * nothing and reads nothing. It ends when its socket closes. Depends on: base.
 */

#include <sys/types.h>

#include "base/error.h"

struct opener; /* opaque */

/* uid and gid: what the opener becomes. Call as root, before dropping. */
must_check int opener_start(uid_t uid, gid_t gid, struct opener **ret, struct error **err)
    nonnull(3);
/* An opener without a process: plain open(2) with the caller's own rights (user mode). */
struct opener *opener_plain(void);
void opener_free(struct opener *opener);
void opener_freep(struct opener **opener);

/*
 * The shape of task_open (task/task.h); context is a struct opener. flags: O_DIRECTORY or 0 count,
 * the rest is fixed (O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY). Returns a descriptor or -errno;
 * -EINVAL for what is neither a regular file nor a directory, -ENAMETOOLONG past PATH_MAX.
 */
int opener_open(void *context, const char *path, int flags);
