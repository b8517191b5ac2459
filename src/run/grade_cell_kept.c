/* A file that was kept outside of the cells, in the workspace of a grading cell. */
#include <errno.h>
#include <sys/mman.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "collect/tar.h"
#include "run/grade_cell_internal.h"

static const char no_changes[] = "{\"schema\": \"closedbook/changes/1\", \"deleted\": []}";

/* Its folders, too: the agent may have put something else in their place. */
static int add_folders(struct tar_writer *writer, const char *path, const char *last,
                       struct error **err)
{
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        scoped(mem_freep) char *folder = str_ndup(path, (size_t)(slash - path));
        const struct tar_entry entry = {.path = folder, .type = MANIFEST_DIR, .mode = 0755};
        /* What lies above the last entry is there already. */
        int r = last != NULL && manifest_path_below(last, folder)
                    ? 0
                    : tar_writer_add(writer, &entry, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int write_archive(const char *path, const struct buf *bytes, int fd, struct error **err)
{
    scoped(tar_writer_done) struct tar_writer writer = {0};
    const struct tar_entry entry = {
        .path = path, .type = MANIFEST_FILE, .mode = 0644, .size_bytes = bytes->size_bytes};
    struct sha256 digest;

    tar_writer_init(&writer, fd, "what was kept");
    int r = add_folders(&writer, path, NULL, err);

    if (r == 0)
        r = tar_writer_add(&writer, &entry, err);
    if (r == 0)
        r = tar_writer_bytes(&writer, buf_text(bytes), bytes->size_bytes, err);
    if (r == 0)
        r = tar_writer_pad(&writer, bytes->size_bytes, err);
    return r < 0 ? r : tar_writer_end(&writer, &digest, err);
}

int grade_cell_put_kept(struct grade_cell *cell, struct error **err)
{
    scoped(fd_closep) int tar_fd = memfd_create("kept", MFD_CLOEXEC);
    scoped(fd_closep) int changes_fd = -1;
    scoped(grade_file_done) struct grade_file file = {0};

    if (tar_fd < 0)
        return error_errno(err, errno, "cannot make a file in memory");
    int r = fs_memfd("changes", no_changes, strlen(no_changes), &changes_fd, err);

    if (r == 0)
        r = grade_cell_read_kept(cell, true, &file, err);
    if (r == 0)
        r = write_archive(cell->options.kept_path, &file.content, tar_fd, err);
    if (r == 0)
        r = collect_apply(cell->cell, tar_fd, changes_fd, err);
    return r < 0 ? error_wrap(err, r, "cannot lay out '%s'", cell->options.kept_path) : 0;
}

static int compare_paths(const void *a, const void *b)
{
    return manifest_path_compare(*(const char *const *)a, *(const char *const *)b);
}

/*
 * Whatever the agent left in place of a sealed folder goes, also where no program wrote: a log that
 * is not there must not be the agent's. An archive whose files stand where the folders do: each
 * takes all of it away, and what is laid out next makes a folder of it again.
 */
static int write_clearing(const struct str_list *dirs, int fd, struct error **err)
{
    scoped(tar_writer_done) struct tar_writer writer = {0};
    scoped(str_list_done) struct str_list sorted = {0};
    const char *last = NULL;
    struct sha256 digest;
    int r = 0;

    str_list_copy(&sorted, dirs);
    qsort(sorted.items, sorted.count, sizeof(*sorted.items), compare_paths);
    tar_writer_init(&writer, fd, "sealed folders");
    for (size_t i = 0; r == 0 && i < sorted.count; i++) {
        const char *path = sorted.items[i];
        const struct tar_entry entry = {.path = path, .type = MANIFEST_FILE, .mode = 0644};

        if (last != NULL && manifest_path_below(path, last))
            continue;
        r = add_folders(&writer, path, last, err);
        last = path;
        if (r == 0)
            r = tar_writer_add(&writer, &entry, err);
        if (r == 0)
            r = tar_writer_pad(&writer, 0, err);
    }
    return r < 0 ? r : tar_writer_end(&writer, &digest, err);
}

int grade_cell_put_sealed(struct grade_cell *cell, struct error **err)
{
    scoped(fd_closep) int changes_fd = -1;
    scoped(fd_closep) int clearing_fd = memfd_create("clearing", MFD_CLOEXEC);

    if (clearing_fd < 0)
        return error_errno(err, errno, "cannot make a file in memory");
    int r = fs_memfd("changes", no_changes, strlen(no_changes), &changes_fd, err);

    if (r == 0)
        r = write_clearing(cell->options.sealed_dirs, clearing_fd, err);
    if (r == 0)
        r = collect_apply(cell->cell, clearing_fd, changes_fd, err);
    if (r == 0)
        r = collect_apply(cell->cell, *cell->options.sealed_fd, changes_fd, err);
    return r < 0 ? error_wrap(err, r, "cannot lay out what sealed programs wrote") : 0;
}

bool grade_cell_is_kept(const struct grade_cell *cell, const char *path)
{
    scoped(mem_freep) char *normal = path_normal(path);

    return cell->options.kept_path != NULL && strcmp(normal, cell->options.kept_path) == 0;
}

int grade_cell_read_kept(const struct grade_cell *cell, bool content, struct grade_file *ret,
                         struct error **err)
{
    int fd = cell->options.kept_fd;

    ret->state = GRADE_FILE_OK;
    if (!content)
        return 0;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_errno(err, errno, "cannot read '%s'", cell->options.kept_path);
    return fs_read_fd(fd, cell->options.kept_path, GRADE_FILE_BYTES_MAX, &ret->content, err);
}
