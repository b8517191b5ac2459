#pragma once
/*
 * leak_roots: the host's paths that a task shows to its agent (expose, rootfs), searched like the
 * rest of what it is given.
 *
 * A tree with more files or bytes than the limits is left out, and said to be; `scan --roots` has
 * none. What nobody but its owner may read, the agent cannot read either: it is passed over. Not
 * looked at: the host's /usr, an image, what an agent's program needs. Depends on: run/leak_scan.
 */

#include "run/leak_scan.h"

#define LEAK_ROOT_FILES_MAX ((size_t)20000)
#define LEAK_ROOT_BYTES_MAX ((uint64_t)256 << 20)
#define LEAK_ROOT_DEPTH_MAX 64

/* *ret_left_out: paths of trees that were too large. */
must_check int leak_roots_search(const struct leak_scan *scan, struct leak_search *search,
                                 struct leaks *leaks, struct str_list *ret_left_out,
                                 struct error **err) nonnull(1, 2, 3, 4);
