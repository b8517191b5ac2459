#include "run/regrade.h"

#include "base/mem.h"
#include "run/staged.h"
#include "task/task_private.h"
#include "task/task_public.h"

bool regrade_may_change(enum trial_status status)
{
    return status == STATUS_SUCCESS || status == STATUS_FAILURE ||
           status == STATUS_MAX_TURNS_EXHAUSTED || status == STATUS_NOT_GRADED ||
           status == STATUS_TIMEOUT;
}

static int look(struct regrade_references *references, const struct task *task, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(layer_done) struct layer layer = {.tree_fd = -1};
    struct monitor *monitor = NULL;
    char text[SHA256_HEX_CHARS + 1];

    task_split(task, &public_half, &private_half);
    free(take(references->now));
    references->task = task;
    references->has_now = staged_needs_private(task, true);

    const struct private_source source = {
        .reference_dir = private_half->reference_dir,
        .reference_file = private_half->reference_file,
    };

    if (!references->has_now || (source.reference_dir == NULL && source.reference_file == NULL))
        return 0;
    int r = session_monitor(references->session,
                            public_half->driver == DRIVER_TEMPDIR ? CELL_TEMPDIR : CELL_NATIVE,
                            &monitor, err);

    if (r == 0)
        r = private_reference_make(references->session->store, monitor,
                                   &references->session->reader, &source, &layer, err);
    if (r < 0)
        return error_wrap(err, r, "task '%s'", private_half->task_id);
    sha256_format(&layer.root, text);
    references->now = str_format("sha256:%s", text);
    return 0;
}

static const char *name_of(const char *reference)
{
    return reference == NULL ? "no reference" : reference;
}

int regrade_references_add(struct regrade_references *references, const struct task *task,
                           const char *trial_path, const struct trial_record *record,
                           struct error **err)
{
    if (!json_is_object(record->graded_with) || !regrade_may_change(record->status))
        return 0;
    int r = references->task == task ? 0 : look(references, task, err);
    const char *was = json_get_text(record->graded_with, "reference");

    if (r < 0 || !references->has_now || str_equal(was, references->now))
        return r;
    if (references->changed++ == 0)
        references->first = str_format("'%s' was graded with %s, and its task has %s now",
                                       trial_path, name_of(was), name_of(references->now));
    return 0;
}

int regrade_references_check(const struct regrade_references *references, struct error **err)
{
    scoped(mem_freep) char *others = NULL;

    if (references->changed == 0)
        return 0;
    if (references->changed > 1)
        others = str_format(" (and %zu more trials with another)", references->changed - 1);
    return error_set(err, ERROR_USER,
                     "%s%s: nothing was graded; restore the reference, or take --new-reference, "
                     "which records that it changed",
                     references->first, others == NULL ? "" : others);
}

void regrade_references_done(struct regrade_references *references)
{
    free(references->now);
    free(references->first);
    references->now = references->first = NULL;
}
