/* What a grading or harness cell is made of. */
#include "broker/broker.h"
#include "broker/call_frame.h"
#include "run/grade_cell_internal.h"

/* For the kept file, its folders, and what of a page each of them takes. */
#define KEPT_ROOM_BYTES (BROKER_LOG_BYTES_MAX + ((uint64_t)1 << 20))
#define KEPT_ROOM_INODES 16

enum cell_role grade_cell_role(const struct grade_cell *cell)
{
    return cell->options.is_harness ? CELL_AGENT : CELL_GRADER;
}

bool grade_cell_has_candidates(const struct grade_cell *cell)
{
    return grade_cell_role(cell) == CELL_GRADER &&
           monitor_candidate_mount(cell->options.monitor).fd >= 0;
}

int grade_cell_add_mount(struct cell_spec *spec, struct cell_mount mount, struct error **err)
{
    if (spec->mount_count >= CELL_MOUNTS_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d trees in a grading cell", CELL_MOUNTS_MAX);
    spec->mounts[spec->mount_count++] = mount;
    return 0;
}

static int add_text(struct cell_spec *spec, const char *target, const char *text,
                    struct error **err)
{
    if (spec->text_count >= CELL_TEXTS_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d texts in a grading cell", CELL_TEXTS_MAX);
    if (text == NULL)
        text = "";
    spec->texts[spec->text_count++] =
        (struct cell_text){.target = target, .bytes = text, .size_bytes = strlen(text)};
    return 0;
}

static int add_private(const struct grade_cell *cell, struct cell_spec *spec, struct error **err)
{
    const struct private_stage *stage = cell->options.private_stage;
    struct cell_mount mount = {.hidden_parent = true};
    int r = 0;

    if (stage == NULL)
        return 0;
    if (stage->has_suite) {
        mount.fd = stage->suite.tree_fd;
        mount.target = cell->suite_path;
        r = grade_cell_add_mount(spec, mount, err);
    }
    if (r == 0 && stage->has_reference) {
        mount.fd = stage->reference.tree_fd;
        mount.target = cell->reference_path;
        r = grade_cell_add_mount(spec, mount, err);
    }
    /* Where the suite's copy is hollow: the task's own reference, at its place in the suite. */
    if (r == 0 && cell->reference_place != NULL) {
        mount.fd = stage->reference_mount_fd;
        mount.target = cell->reference_place;
        mount.hidden_parent = false;
        r = grade_cell_add_mount(spec, mount, err);
    }
    return r;
}

static int add_events(const struct grade_cell *cell, struct cell_spec *spec, struct error **err)
{
    const struct grade_cell_options *options = &cell->options;
    bool is_large =
        options->events != NULL && strlen(options->events) > GRADE_CELL_EVENTS_BYTES_MAX;

    if (is_large && options->events_fd >= 0)
        return grade_cell_add_mount(
            spec, (struct cell_mount){.fd = options->events_fd, .target = cell->events_path}, err);
    return add_text(spec, cell->events_path, options->events, err);
}

/*
 * The tempdir driver has no cells, so what it calls as-candidate runs the command where it is asked
 * for. Its trials are UNPROTECTED, and say so.
 */
static const char plain_candidate[] = "#!/bin/sh\n"
                                      "limit=\n"
                                      "unset TASK_DIR REFERENCE_DIR INPUT_DIR CLOSEDBOOK_TRIAL\n"
                                      "while :; do\n"
                                      "  case $1 in\n"
                                      "    --timeout) limit=$2; shift 2 ;;\n"
                                      "    --timeout=*) limit=${1#*=}; shift ;;\n"
                                      "    --env) export \"$2\"; shift 2 ;;\n"
                                      "    --env=*) export \"${1#*=}\"; shift ;;\n"
                                      "    --) shift; break ;;\n"
                                      "    *) break ;;\n"
                                      "  esac\n"
                                      "done\n"
                                      "exec ${limit:+timeout -s KILL} $limit \"$@\"\n";

static int add_candidate(const struct grade_cell *cell, struct cell_spec *spec, struct error **err)
{
    /* A native cell's is the program, which view_fill_cell() has mounted. */
    if (monitor_facts(cell->options.monitor)->driver != CELL_TEMPDIR)
        return 0;
    int r = add_text(spec, CELL_CANDIDATE_PATH, plain_candidate, err);

    if (r == 0)
        spec->texts[spec->text_count - 1].executable = true;
    return r;
}

bool grade_cell_has_nothing_to_apply(const struct grade_cell *cell)
{
    return cell->applied || (cell->options.tar_fd < 0 && cell->options.kept_path == NULL &&
                             cell->options.sealed_fd == NULL);
}

/* The worker is copied into the cell, a megabyte: only where it has something to do. */
static int fill_system(const struct grade_cell *cell, struct cell_spec *spec, struct error **err)
{
    const struct grade_cell_options *options = &cell->options;
    bool has_work = options->reads_files || !grade_cell_has_nothing_to_apply(cell);
    int r = view_fill_cell(options->view, has_work ? options->monitor : NULL, grade_cell_role(cell),
                           spec, err);

    view_fit_limits(options->view, options->monitor, &spec->limits);
    /* A step of the harness acts on the workspace; of what is outside nothing would stay. */
    spec->identity_root = false;
    /* A harness cell is made like an agent's, which has no worker. */
    if (r == 0 && options->is_harness && !grade_cell_has_nothing_to_apply(cell))
        return grade_cell_add_mount(spec, monitor_worker_mount(options->monitor), err);
    if (r < 0 || has_work || !grade_cell_has_candidates(cell))
        return r;
    return grade_cell_add_mount(spec, monitor_candidate_mount(options->monitor), err);
}

int grade_cell_fill(const struct grade_cell *cell, struct cell_spec *spec, struct error **err)
{
    const struct grade_cell_options *options = &cell->options;
    int r = fill_system(cell, spec, err);

    /* An agent that fills its workspace must not keep the log of its calls out. */
    if (options->kept_path != NULL) {
        spec->limits.disk_bytes += KEPT_ROOM_BYTES;
        spec->limits.inodes += KEPT_ROOM_INODES;
    }
    if (options->sealed_fd != NULL) {
        spec->limits.disk_bytes += KEPT_BYTES_MAX + KEPT_ROOM_BYTES;
        spec->limits.inodes += KEPT_FILES_MAX * KEPT_ROOM_INODES;
    }
    if (r == 0)
        r = add_private(cell, spec, err);
    if (r == 0 && options->program != NULL)
        r = grade_cell_add_mount(spec, *options->program, err);
    if (r == 0)
        r = add_candidate(cell, spec, err);
    if (r == 0)
        r = add_events(cell, spec, err);
    if (r == 0)
        r = add_text(spec, cell->final_path, options->final_text, err);
    return r < 0 ? r : add_text(spec, cell->dialog_path, options->dialog, err);
}
