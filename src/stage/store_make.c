/*
 * Entries that we make ourselves: from texts, and from other entries laid over each other.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/internal.h"

#define COPY_BYTES ((size_t)256 << 10)

/* Where a file's bytes come from. */
struct making {
    int tree_fd;
    const struct store_files *files; /* NULL: from layers */
    const struct layer *layers;
    size_t layer_count;
};

static char *placed(const struct store_files *files, const char *path)
{
    return strcmp(files->mount_point, ".") == 0 ? str_dup(path)
                                                : path_join(files->mount_point, path);
}

static int check_parents(const struct manifest *manifest, struct error **err)
{
    for (size_t i = 0; i < manifest->count; i++) {
        scoped(mem_freep) char *parent = path_dir(manifest->entries[i].path);
        const struct manifest_entry *above = manifest_find(manifest, parent);

        if (above != NULL && above->type != MANIFEST_DIR)
            return error_set(err, ERROR_TASK, "'%s' is both a file and a folder", parent);
    }
    return 0;
}

static mode_t mode_of(const struct store_files *files, const char *path)
{
    scoped(mem_freep) char *parent = path_dir(path);

    return files->executable != NULL && str_list_has(files->executable, parent) ? 0755 : 0644;
}

static int describe_files(const struct store_files *files, struct manifest *ret, struct error **err)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct store_file *file = &files->items[i];
        scoped(mem_freep) char *path = placed(files, file->path);
        const char *content = file->target != NULL ? file->target : file->content;
        size_t size = strlen(content);

        if (!path_is_inside(path) || strlen(path) > MANIFEST_PATH_BYTES_MAX)
            return error_set(err, ERROR_TASK, "'%s' is no path inside the workspace", path);
        manifest_add(ret, &(struct manifest_entry){
                              .path = path,
                              .type = file->target != NULL ? MANIFEST_LINK : MANIFEST_FILE,
                              .mode = file->target != NULL ? 0777 : mode_of(files, path),
                              .size_bytes = size,
                              .digest = sha256_of(content, size),
                              .target = (char *)(uintptr_t)file->target});
    }
    manifest_sort(ret);
    return check_parents(ret, err);
}

/* The text of a path: the last one given counts. */
static const char *text_of(const struct store_files *files, const char *path)
{
    for (size_t i = files->count; i-- > 0;) {
        scoped(mem_freep) char *candidate = placed(files, files->items[i].path);

        if (strcmp(candidate, path) == 0)
            return files->items[i].content;
    }
    return "";
}

static int copy_all(int from, int to, const char *path, struct error **err)
{
    scoped(mem_freep) char *bytes = mem_new(COPY_BYTES, 1);

    for (;;) {
        ssize_t n = read(from, bytes, COPY_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s' in the store", path);
        if (n == 0)
            return 0;
        int r = fs_write_all(to, path, bytes, (size_t)n, err);

        if (r < 0)
            return r;
    }
}

/* The topmost layer that has this very entry holds its bytes. */
static int copy_from_layers(const struct making *making, const struct manifest_entry *entry, int to,
                            struct error **err)
{
    for (size_t i = making->layer_count; i-- > 0;) {
        const struct layer *layer = &making->layers[i];
        const struct manifest_entry *found = manifest_find(&layer->manifest, entry->path);

        if (found == NULL || found->type != MANIFEST_FILE ||
            !sha256_equal(&found->digest, &entry->digest))
            continue;
        scoped(fd_closep) int from =
            fs_open_beneath(layer->tree_fd, entry->path, O_RDONLY | O_NOFOLLOW, 0, FS_NO_LINKS);

        if (from < 0)
            return error_errno(err, -from, "cannot read '%s' in the store", entry->path);
        return copy_all(from, to, entry->path, err);
    }
    return error_set(err, ERROR_BUG, "'%s' is in none of the layers", entry->path);
}

static int make_file(const struct making *making, const struct manifest_entry *entry,
                     struct error **err)
{
    scoped(fd_closep) int to = fs_open_beneath(
        making->tree_fd, entry->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, FS_NO_LINKS);
    int r;

    if (to < 0)
        return error_errno(err, -to, "cannot make '%s' in the store", entry->path);
    if (making->files != NULL) {
        const char *text = text_of(making->files, entry->path);

        r = fs_write_all(to, entry->path, text, strlen(text), err);
    } else {
        r = copy_from_layers(making, entry, to, err);
    }
    if (r == 0 && fchmod(to, entry->mode) < 0)
        return error_errno(err, errno, "cannot seal '%s' in the store", entry->path);
    return r;
}

static int make_entry(const struct making *making, const struct manifest_entry *entry,
                      struct error **err)
{
    switch (entry->type) {
    case MANIFEST_FILE:
        return make_file(making, entry, err);
    case MANIFEST_DIR: /* its own mode comes when it is full */
        if (mkdirat(making->tree_fd, entry->path, 0700) < 0)
            return error_errno(err, errno, "cannot make '%s' in the store", entry->path);
        return 0;
    case MANIFEST_LINK:
        if (symlinkat(entry->target, making->tree_fd, entry->path) < 0)
            return error_errno(err, errno, "cannot make '%s' in the store", entry->path);
        return 0;
    }
    return 0;
}

static int make_tree(struct making *making, const struct draft *draft,
                     const struct manifest *manifest, struct error **err)
{
    if (mkdirat(draft->fd, "tree", 0755) < 0)
        return error_errno(err, errno, "cannot make an entry of the store");
    scoped(fd_closep) int tree_fd = openat(draft->fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (tree_fd < 0 || fchmod(tree_fd, 0755) < 0)
        return error_errno(err, errno, "cannot make an entry of the store");
    making->tree_fd = tree_fd;
    for (size_t i = 0; i < manifest->count; i++) {
        int r = make_entry(making, &manifest->entries[i], err);

        if (r < 0)
            return r;
    }
    for (size_t i = manifest->count; i-- > 0;) {
        const struct manifest_entry *entry = &manifest->entries[i];

        if (entry->type == MANIFEST_DIR && fchmodat(tree_fd, entry->path, entry->mode, 0) < 0)
            return error_errno(err, errno, "cannot seal '%s' in the store", entry->path);
    }
    return 0;
}

/* Finds the entry that the manifest describes, or makes it. */
static int find_or_make(struct draft *draft, struct making *making, const struct manifest *manifest,
                        struct layer *ret, struct error **err)
{
    struct sha256 root = manifest_root(manifest);
    struct store *store = draft->store;
    int r = store_find(store, &(struct lookup){.half = draft->half, .root = &root}, ret, err);

    if (r <= 0)
        return r;
    r = draft_start(store, draft->half, draft, err);
    if (r == 0)
        r = make_tree(making, draft, manifest, err);
    if (r == 0)
        r = draft_seal(draft, manifest, err);
    if (r == 0)
        r = draft_publish(draft, &root, ret, err);
    return r;
}

int store_add_files(struct store *store, enum store_half half, const struct store_files *files,
                    struct layer *ret, struct error **err)
{
    scoped(manifest_done) struct manifest manifest = {0};
    scoped(draft_done) struct draft draft = {
        .store = store, .half = half, .lease = LEASE_NONE, .fd = -1};
    struct making making = {.tree_fd = -1, .files = files};
    int r = describe_files(files, &manifest, err);

    return r < 0 ? r : find_or_make(&draft, &making, &manifest, ret, err);
}

int store_merge(struct store *store, enum store_half half, const struct layer *layers, size_t count,
                struct layer *ret, struct error **err)
{
    scoped(manifest_done) struct manifest manifest = {0};
    scoped(draft_done) struct draft draft = {
        .store = store, .half = half, .lease = LEASE_NONE, .fd = -1};
    struct making making = {.tree_fd = -1, .layers = layers, .layer_count = count};

    for (size_t i = 0; i < count; i++) {
        struct manifest below = manifest;

        manifest = (struct manifest){0};
        manifest_compose(&below, &layers[i].manifest, &manifest);
        manifest_done(&below);
    }
    return find_or_make(&draft, &making, &manifest, ret, err);
}
