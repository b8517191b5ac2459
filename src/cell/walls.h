#pragma once
/*
 * walls: what stands around the programs of tier C, which has no namespaces: landlock rules on the
 * machine's own tree, a seccomp list without sockets, limits.
 *
 * A keeper is in a landlock domain of its own, its program in another one inside that. Landlock
 * lets signals into a domain and not out of it: the program reaches nobody but its own, and one
 * kill(-1) of the keeper reaches all that is left of it, whatever sessions and groups that made.
 */

#include "cell/setup.h"

/* The first version of landlock that keeps signals inside a domain. */
#define WALLS_LANDLOCK_MIN 6

/* What the machine has for it; ENOSYS where landlock is too old. */
must_check int walls_find(struct machine *machine) nonnull(1);
/*
 * The rules of a cell, as a descriptor: reading from what its request mounts and from what every
 * program needs of the machine, writing below directory's own places.
 */
must_check int walls_make(const struct machine *machine, const struct request_start *request,
                          const int *fds, const char *directory) nonnull(1, 2, 3, 4);
/* Puts the calling keeper into a domain of its own. */
must_check int walls_enclose(const struct machine *machine) nonnull(1);
/* In the child: the cell's rules, before its descriptors are closed; then all the rest. */
must_check int walls_enter(struct program *program) nonnull(1);
must_check int walls_confine(struct program *program) nonnull(1);
