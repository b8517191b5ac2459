#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/manifest.h"
#include "stage/stage.h"

void private_stage_done(struct private_stage *stage)
{
    if (stage->has_suite)
        layer_done(&stage->suite);
    if (stage->has_reference)
        layer_done(&stage->reference);
    free(stage->task_dir_in_suite);
    free(stage->reference_in_suite);
    fd_closep(&stage->reference_mount_fd);
    *stage = (struct private_stage){.reference_mount_fd = -1};
}

static int open_path(const struct task_reader *reader, const char *path, int flags, int *ret,
                     struct error **err)
{
    int fd = reader->open(reader->context, path, flags | O_CLOEXEC);

    if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES || fd == -EISDIR)
        return error_set(err, ERROR_TASK, "cannot open '%s': %s", path, strerror(-fd));
    if (fd < 0)
        return error_errno(err, -fd, "cannot open '%s'", path);
    *ret = fd;
    return 0;
}

/* path relative to root; NULL when it does not lie in it; owned. */
static char *relative_to(const char *root, const char *path)
{
    scoped(mem_freep) char *base = path_normal(root);
    scoped(mem_freep) char *normal = path_normal(path);

    if (!manifest_path_below(normal, base) && strcmp(base, "/") != 0)
        return NULL;
    const char *rest = normal + strlen(base);

    rest += strspn(rest, "/");
    return str_dup(*rest == '\0' ? "." : rest);
}

static int stage_suite(struct store *store, struct monitor *monitor,
                       const struct private_source *source, int fd, struct layer *ret,
                       struct error **err)
{
    scoped(str_list_done) struct str_list hollow = {0};
    scoped(str_list_done) struct str_list ignore = {0};

    str_list_add(&ignore, ".git");
    for (size_t i = 0; source->references != NULL && i < source->references->count; i++) {
        char *path = relative_to(source->suite_root, source->references->items[i]);

        if (path != NULL)
            str_list_add_take(&hollow, path);
    }
    struct store_source stored = {
        .fd = fd,
        .label = source->suite_root,
        .mount_point = ".",
        .ignore = &ignore,
        .hollow = &hollow,
        .skip_runs = true,
        .keep_links = true,
    };

    return store_add(store, STORE_PRIVATE, monitor, &stored, ret, err);
}

/* A directory, or the legacy form: the one file. */
static int stage_reference(struct store *store, struct monitor *monitor, int fd,
                           const struct private_source *source, struct layer *ret,
                           struct error **err)
{
    bool single = source->reference_dir == NULL;
    struct store_source stored = {
        .fd = fd,
        .label = single ? source->reference_file : source->reference_dir,
        .mount_point = ".",
        .file_name = single ? path_base(source->reference_file) : NULL,
    };
    int r = store_add(store, STORE_PRIVATE, monitor, &stored, ret, err);

    if (r == 0 && ret->bytes == 0) {
        layer_done(ret);
        return error_set(err, ERROR_TASK, "the reference '%s' is empty", stored.label);
    }
    return r;
}

static int add_suite(struct store *store, struct monitor *monitor, const struct task_reader *reader,
                     const struct private_source *source, struct private_stage *stage,
                     struct error **err)
{
    scoped(fd_closep) int fd = -1;

    stage->task_dir_in_suite = relative_to(source->suite_root, source->task_dir);
    if (stage->task_dir_in_suite == NULL)
        return error_set(err, ERROR_TASK, "the task's folder '%s' is not in the suite root '%s'",
                         source->task_dir, source->suite_root);
    int r = open_path(reader, source->suite_root, O_RDONLY | O_DIRECTORY, &fd, err);

    if (r == 0)
        r = stage_suite(store, monitor, source, fd, &stage->suite, err);
    stage->has_suite = r == 0;
    return r;
}

int private_reference_make(struct store *store, struct monitor *monitor,
                           const struct task_reader *reader, const struct private_source *source,
                           struct layer *ret, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    bool is_dir = source->reference_dir != NULL;
    const char *path = is_dir ? source->reference_dir : source->reference_file;
    int r = open_path(reader, path, O_RDONLY | (is_dir ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY), &fd,
                      err);

    if (r == 0)
        r = stage_reference(store, monitor, fd, source, ret, err);
    return r < 0 ? error_wrap(err, r, "cannot stage the reference") : 0;
}

static int add_reference(struct store *store, struct monitor *monitor,
                         const struct task_reader *reader, const struct private_source *source,
                         struct private_stage *stage, struct error **err)
{
    if (source->reference_dir == NULL && source->reference_file == NULL)
        return 0;
    int r = private_reference_make(store, monitor, reader, source, &stage->reference, err);

    stage->has_reference = r == 0;
    return r;
}

/* Where the suite's copy is hollow for this task's own reference, and what fills the place. */
static int find_place(const struct private_source *source, struct private_stage *stage,
                      struct error **err)
{
    bool is_dir = source->reference_dir != NULL;
    const char *path = is_dir ? source->reference_dir : source->reference_file;

    if (path == NULL || source->references == NULL || !str_list_has(source->references, path))
        return 0;
    stage->reference_in_suite = relative_to(source->suite_root, path);
    if (stage->reference_in_suite == NULL)
        return 0;
    stage->reference_mount_fd =
        fs_open_beneath(stage->reference.tree_fd, is_dir ? "." : path_base(path),
                        O_RDONLY | (is_dir ? O_DIRECTORY : 0), 0, FS_NO_LINKS);
    if (stage->reference_mount_fd < 0)
        return error_errno(err, -stage->reference_mount_fd, "cannot open the staged reference");
    return 0;
}

int private_stage_make(struct store *store, struct monitor *monitor,
                       const struct task_reader *reader, const struct private_source *source,
                       struct private_stage *ret, struct error **err)
{
    scoped(private_stage_done) struct private_stage stage = {
        .suite.tree_fd = -1,
        .reference.tree_fd = -1,
        .reference_mount_fd = -1,
    };
    int r = add_suite(store, monitor, reader, source, &stage, err);

    if (r == 0)
        r = add_reference(store, monitor, reader, source, &stage, err);
    if (r == 0)
        r = find_place(source, &stage, err);
    if (r < 0)
        return r;
    *ret = stage;
    stage = (struct private_stage){.reference_mount_fd = -1};
    return 0;
}
