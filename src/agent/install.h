#pragma once
/*
 * install: where an agent's program is on the host, its version, and what of the host its cell must
 * show for it.
 *
 * Nothing is run: links are followed, the first bytes of files and package.json are read. What is
 * found is a name, never a promise: the program runs in a cell only. Depends on: base, task.
 */

#include "base/error.h"
#include "base/str.h"
#include "task/task.h"

#define INSTALL_EXPOSE_MAX 2
#define INSTALL_PACKAGE_BYTES_MAX ((size_t)1 << 20)

struct agent_program;

/* Owned; immutable once found. */
struct agent_install {
    char *path;             /* as PATH has it */
    char *version;          /* as its package says; NULL: unknown */
    struct str_list argv;   /* how it is started in a cell: the file, its interpreter before it */
    struct str_list expose; /* what the cell must show, read-only; what /usr has is there */
};

/*
 * Looks along search, a list as PATH is. ERROR_USER when the program, or node for it, is nowhere,
 * or is no program that can be shown to a cell.
 */
must_check int agent_install_find(const struct agent_program *program, const char *search,
                                  const struct task_reader *reader, struct agent_install *ret,
                                  struct error **err) nonnull(1, 2, 3, 4);
void agent_install_done(struct agent_install *install) nonnull(1);
