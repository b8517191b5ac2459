#include "run/regrade.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "run/staged.h"
#include "task/task_private.h"
#include "task/task_public.h"

bool regrade_may_change(enum trial_status status)
{
    return status == STATUS_SUCCESS || status == STATUS_FAILURE ||
           status == STATUS_MAX_TURNS_EXHAUSTED || status == STATUS_NOT_GRADED ||
           trial_status_is_fact(status);
}

/* --- what was before ------------------------------------------------------------------------ */

/* A folder of ours that is being copied, and where its copy goes. */
struct copying {
    int to_fd; /* where the copy's folder is */
    const char *to;
    unsigned depth;
};

static int copy_folder(int fd, const struct copying *copying, struct error **err);

static int copy_file(int from_fd, int to_fd, const char *name, struct error **err)
{
    scoped(buf_done) struct buf bytes = {0};
    int r = fs_read_file(from_fd, name, TRIAL_BYTES_MAX, &bytes, err);

    if (r < 0)
        return r;
    return fs_write_atomic(
        to_fd, name, &(struct fs_content){bytes.data, bytes.size_bytes, 0600, FS_NO_SYNC}, err);
}

static int copy_entry(void *context, int dir_fd, const char *name, struct error **err)
{
    const struct copying *copying = context;
    scoped(fd_closep) int fd = -1, to_fd = -1;
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return error_errno(err, errno, "cannot look at '%s'", name);
    /* Ours are files and folders; what somebody else put there is not kept. */
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;

    int r = fs_open_dir(copying->to_fd, copying->to, 0700, &to_fd, err);

    if (r < 0 || S_ISREG(st.st_mode))
        return r < 0 ? r : copy_file(dir_fd, to_fd, name, err);
    if (copying->depth == TRIAL_DEPTH_MAX)
        return error_set(err, ERROR_LIMIT, "'%s': deeper than %d folders", name, TRIAL_DEPTH_MAX);
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s'", name);
    return copy_folder(
        fd, &(struct copying){.to_fd = to_fd, .to = name, .depth = copying->depth + 1}, err);
}

static int copy_folder(int fd, const struct copying *copying, struct error **err)
{
    return fs_each(fd, copy_entry, (void *)(uintptr_t)copying, err);
}

/* The record comes last: with it the copy is whole. */
static int keep_as(int trial_dir_fd, int previous_fd, int number, struct error **err)
{
    scoped(mem_freep) char *folder = str_format("%03d", number);
    scoped(mem_freep) char *name = str_format("%03d.json", number);
    scoped(buf_done) struct buf bytes = {0};
    scoped(fd_closep) int grade_fd =
        openat(trial_dir_fd, "grade", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fs_read_file(trial_dir_fd, "trial.json", TRIAL_BYTES_MAX, &bytes, err);

    if (r == 0)
        r = fs_remove_tree(previous_fd, folder, err);
    if (r == 0 && grade_fd >= 0)
        r = copy_folder(grade_fd, &(struct copying){.to_fd = previous_fd, .to = folder}, err);
    if (r < 0)
        return error_wrap(err, r, "cannot keep what the grading before left");
    return fs_write_atomic(previous_fd, name,
                           &(struct fs_content){bytes.data, bytes.size_bytes, 0600, FS_NO_SYNC},
                           err);
}

int regrade_keep(int trial_dir_fd, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    int r = fs_open_dir(trial_dir_fd, "previous", 0700, &fd, err);

    if (r < 0)
        return r;
    for (int i = 0; i < REGRADE_KEPT_MAX; i++) {
        scoped(mem_freep) char *name = str_format("%03d.json", i);

        if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return keep_as(trial_dir_fd, fd, i, err);
    }
    return error_set(err, ERROR_LIMIT, "graded %d times: remove 'previous' of the trial",
                     REGRADE_KEPT_MAX);
}

/* --- references ----------------------------------------------------------------------------- */

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
