#include "evidence/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/manifest.h"
#include "collect/tar.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define TRIAL_PARTS 4 /* trials/VARIANT/TASK/NN */

struct packing {
    bool everything;
    const char *below; /* of the folder that is walked; "": the top */
    struct manifest files;
    json_t *withheld; /* list of paths */
    struct bundle *facts;
};

/* What graders and steps made, below a trial's directory. */
static bool is_private(const char *path)
{
    static const char *const folders[] = {"grade", "steps", "mocks", "pre_run"};

    for (unsigned i = 0; i < TRIAL_PARTS; i++) {
        path = strchr(path, '/');
        if (path == NULL)
            return false;
        path++;
    }
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (str_starts(path, folders[i]) && path[strlen(folders[i])] != '\0' &&
            strpbrk(path + strlen(folders[i]), "/") != NULL)
            return true;
    return false;
}

static int list(void *context, int dir_fd, const char *name, struct error **err)
{
    struct packing *packing = context;
    const char *above = packing->below;
    scoped(mem_freep) char *path = above[0] == '\0' ? str_dup(name) : path_join(above, name);
    struct stat status;

    if (str_equal(path, "lock") || str_equal(path, BUNDLE_FILE) || str_starts(name, ".tmp-"))
        return 0;
    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_errno(err, errno, "cannot look at '%s'", path);
    if (S_ISDIR(status.st_mode)) {
        scoped(fd_closep) int fd =
            openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
            return error_errno(err, errno, "cannot open '%s'", path);
        packing->below = path;
        int r = fs_each(fd, list, packing, err);

        packing->below = above;
        return r;
    }
    if (!S_ISREG(status.st_mode) || !tar_text_is_clean(path))
        return error_set(err, ERROR_USER, "'%s' is nothing that a run holds", path);
    if (!packing->everything && is_private(path)) {
        json_push(packing->withheld, json_text(path, strlen(path)));
        packing->facts->withheld++;
        return 0;
    }
    if (packing->files.count == BUNDLE_FILES_MAX)
        return error_set(err, ERROR_LIMIT, "more than %zu files", BUNDLE_FILES_MAX);
    manifest_add(&packing->files, &(struct manifest_entry){.path = path,
                                                           .type = MANIFEST_FILE,
                                                           .mode = 0600,
                                                           .size_bytes = (uint64_t)status.st_size});
    return 0;
}

static int copy_file(struct tar_writer *writer, int run_dir_fd, const struct manifest_entry *entry,
                     struct error **err)
{
    scoped(fd_closep) int fd = fs_open_beneath(run_dir_fd, entry->path, O_RDONLY, 0, FS_NO_LINKS);
    scoped(mem_freep) char *piece = mem_new(PIECE_BYTES, 1);
    uint64_t left = entry->size_bytes;

    if (fd < 0)
        return error_errno(err, -fd, "cannot open '%s'", entry->path);
    while (left > 0) {
        ssize_t n = read(fd, piece, size_min(PIECE_BYTES, left));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(err, ERROR_SYSTEM, "'%s' changed while it was read", entry->path);
        int r = tar_writer_bytes(writer, piece, (size_t)n, err);

        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return tar_writer_pad(writer, entry->size_bytes, err);
}

static int write_entry(struct tar_writer *writer, int run_dir_fd, const struct buf *list_text,
                       const struct manifest_entry *entry, struct error **err)
{
    int r = tar_writer_add(writer,
                           &(struct tar_entry){.path = entry->path,
                                               .type = entry->type,
                                               .mode = entry->type == MANIFEST_DIR ? 0700 : 0600,
                                               .size_bytes = entry->size_bytes},
                           err);

    if (r < 0 || entry->type != MANIFEST_FILE)
        return r;
    if (strcmp(entry->path, BUNDLE_FILE) != 0)
        return copy_file(writer, run_dir_fd, entry, err);
    r = tar_writer_bytes(writer, list_text->data, list_text->size_bytes, err);
    return r < 0 ? r : tar_writer_pad(writer, list_text->size_bytes, err);
}

static int pack(struct packing *packing, int run_dir_fd, struct tar_writer *writer,
                struct error **err)
{
    scoped(json_freep) json_t *json = json_object();
    scoped(buf_done) struct buf text = {0};
    struct sha256 digest;
    int r = 0;

    json_put_text(json, "schema", BUNDLE_SCHEMA);
    json_put(json, "withheld", json_incref(packing->withheld));
    json_write_pretty(&text, json);
    manifest_add(&packing->files, &(struct manifest_entry){.path = (char[]){BUNDLE_FILE},
                                                           .type = MANIFEST_FILE,
                                                           .mode = 0600,
                                                           .size_bytes = text.size_bytes});
    manifest_sort(&packing->files);
    for (size_t i = 0; r == 0 && i < packing->files.count; i++) {
        const struct manifest_entry *entry = &packing->files.entries[i];

        r = write_entry(writer, run_dir_fd, &text, entry, err);
        packing->facts->files += entry->type == MANIFEST_FILE;
        packing->facts->bytes += entry->size_bytes;
    }
    return r < 0 ? r : tar_writer_end(writer, &digest, err);
}

int bundle_write(int run_dir_fd, bool everything, int to_fd, struct bundle *ret, struct error **err)
{
    scoped(json_freep) json_t *withheld = json_array();
    struct packing packing = {
        .everything = everything, .below = "", .withheld = withheld, .facts = ret};
    struct tar_writer writer;

    *ret = (struct bundle){0};
    int r = fs_each(run_dir_fd, list, &packing, err);

    tar_writer_init(&writer, to_fd, "the bundle");
    if (r == 0)
        r = pack(&packing, run_dir_fd, &writer, err);
    tar_writer_done(&writer);
    manifest_done(&packing.files);
    return r;
}

int bundle_withheld(int run_dir_fd, json_t **ret, struct error **err)
{
    scoped(error_freep) struct error *problem = NULL;
    scoped(json_freep) json_t *json = NULL;
    json_t *paths = NULL, *item;
    size_t i;

    *ret = NULL;
    if (json_load(run_dir_fd, BUNDLE_FILE, (size_t)64 << 20, &json, &problem) < 0)
        return error_errno_of(problem) == ENOENT
                   ? 0
                   : error_set(err, ERROR_USER, BUNDLE_FILE ": %s", error_message(problem));
    if (!str_equal(json_get_text(json, "schema"), BUNDLE_SCHEMA))
        return error_set(err, ERROR_USER, BUNDLE_FILE ": schema '" BUNDLE_SCHEMA "' expected");
    paths = json_object();
    json_array_foreach (json_get_array(json, "withheld"), i, item)
        if (json_is_string(item))
            json_put_bool(paths, json_string_value(item), true);
    *ret = paths;
    return 0;
}
