#pragma once
/*
 * staged_overlap: the guard against private material in what the agent is given.
 *
 * Looks at the staged view itself, after ignore patterns, by content: a copy, a hard link and a
 * renamed file are found alike. (A link that leads out of its source does not come this far.)
 * Depends on: stage, task (both halves).
 */

#include "run/session.h"
#include "stage/stage.h"
#include "task/task.h"

/*
 * ERROR_TASK with both places when a staged file, of the workspace or of a plugin, or a file in any
 * commit of a staged repository, holds the bytes of the task file or of a file of the reference, or
 * when a staged file is any task file (in a repository's commits: stage/repo.h). Empty files of the
 * reference, and those that are equal to the staged file of the same path, are not private; when
 * that leaves none, the task gives its reference away: an error, too. monitor stages the reference,
 * which is then found again by private_stage_make().
 */
must_check int staged_overlap_check(const struct session *session, struct monitor *monitor,
                                    const struct task *task, const struct view *view,
                                    struct error **err) nonnull(1, 3, 4);
