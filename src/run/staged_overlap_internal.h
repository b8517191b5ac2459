#pragma once
/* What staged_overlap.c and staged_history.c have in common. */

#include "collect/manifest.h"
#include "run/session.h"
#include "stage/stage.h"

/* One private file: its content and where it lies on the host. Borrowed. */
struct secret {
    struct sha256 digest;
    const char *folder, *path; /* path: below folder; NULL: folder is the file itself */
    const char *staged_path;   /* in the staged reference; NULL: it is not staged */
};

struct secrets {
    struct secret *items;
    size_t count;
};

/* Where the secrets' content is read again. */
struct secret_source {
    const struct task_reader *reader;
    int reference_fd; /* the staged reference */
};

/* A tree that the agent gets. */
struct staged_layers {
    const struct manifest *manifest;
    const int *fds; /* the last is on top */
    size_t count;
};

/* Of the topmost layer that has the path; -1: none has. */
must_check int staged_layers_open(const struct staged_layers *layers, const char *path)
    nonnull(1, 2);

/*
 * ERROR_TASK that names it when the repository in the tree holds the content of a secret, in
 * whichever of its commits and at whatever path.
 */
must_check int staged_history_check(const struct staged_layers *layers,
                                    const struct secrets *secrets,
                                    const struct secret_source *source, struct error **err)
    nonnull(1, 2, 3);
