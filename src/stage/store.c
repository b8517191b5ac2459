#include "stage/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "stage/internal.h"

#define MANIFEST_BYTES_MAX BUF_BYTES_MAX
#define DRAFT_RANDOM_BYTES 8
#define KEY_TEXT_BYTES_MAX 256

char *store_default_root(void)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    if (geteuid() == 0)
        return str_dup("/var/cache/closedbook");
    if (cache != NULL && *cache == '/')
        return path_join(cache, "closedbook");
    if (home != NULL && *home == '/')
        return path_join(home, ".cache/closedbook");
    return str_format("/tmp/closedbook-%u", (unsigned)geteuid());
}

static void close_fds(struct store *store)
{
    fd_closep(&store->run_fd);
    fd_closep(&store->private_fd);
    fd_closep(&store->tmp_fd);
    fd_closep(&store->keys_fd);
    fd_closep(&store->public_fd);
    fd_closep(&store->root_fd);
}

void store_close(struct store *store)
{
    scoped(error_freep) struct error *err = NULL;

    if (store == NULL)
        return;
    if (store->owner != getpid())
        lease_forget(&store->run);
    else if (lease_drop(&store->run, &err) < 0)
        log_warn("the run's private part stays in the store until the next command: %s",
                 error_message(err));
    close_fds(store);
    free(store->memos);
    free(store);
}

void store_closep(struct store **store)
{
    store_close(*store);
    *store = NULL;
}

/* A root that others can write could be anything. */
static int check_owner(int root_fd, const char *root, struct error **err)
{
    struct stat status;

    if (fstat(root_fd, &status) < 0)
        return error_errno(err, errno, "cannot look at the store '%s'", root);
    if (status.st_uid != geteuid() || (status.st_mode & 022) != 0)
        return error_set(err, ERROR_USER, "the store '%s' must be ours alone to write", root);
    return 0;
}

static int open_folders(struct store *store, const char *root, struct error **err)
{
    int r = fs_open_dir(AT_FDCWD, root, 0700, &store->root_fd, err);

    if (r == 0)
        r = check_owner(store->root_fd, root, err);
    if (r == 0)
        r = fs_open_dir(store->root_fd, "public", 0755, &store->public_fd, err);
    if (r == 0)
        r = fs_open_dir(store->root_fd, "keys", 0700, &store->keys_fd, err);
    if (r == 0)
        r = fs_open_dir(store->root_fd, "tmp", 0700, &store->tmp_fd, err);
    if (r == 0)
        r = fs_open_dir(store->root_fd, "private", 0700, &store->private_fd, err);
    return r;
}

static int open_run(struct store *store, const char *run_id, struct error **err)
{
    if (!path_is_inside(run_id) || strchr(run_id, '/') != NULL || str_ends(run_id, ".lock"))
        return error_set(err, ERROR_USER, "'%s' is no name of a run", run_id);
    int r = lease_take(store->private_fd, run_id, &store->run, err);

    if (r == 0)
        r = fs_open_dir(store->private_fd, run_id, 0700, &store->run_fd, err);
    return r;
}

int store_open(const char *root, const char *run_id, struct store **ret, struct error **err)
{
    scoped(store_closep) struct store *store = mem_new(1, sizeof(*store));
    size_t removed;

    *store = (struct store){
        .root_fd = -1,
        .public_fd = -1,
        .keys_fd = -1,
        .tmp_fd = -1,
        .private_fd = -1,
        .run_fd = -1,
        .run = LEASE_NONE,
        .owner = getpid(),
    };
    int r = open_folders(store, root, err);

    if (r == 0)
        r = store_sweep(store, &removed, err);
    if (r == 0 && run_id != NULL)
        r = open_run(store, run_id, err);
    if (r < 0)
        return error_wrap(err, r, "cannot open the store");
    *ret = take(store);
    return 0;
}

int store_sweep(struct store *store, size_t *ret_removed, struct error **err)
{
    size_t drafts, runs;
    int r = lease_sweep(store->tmp_fd, &drafts, err);

    if (r == 0)
        r = lease_sweep(store->private_fd, &runs, err);
    if (r == 0)
        *ret_removed = runs;
    return r;
}

uint64_t store_copies(const struct store *store)
{
    return store->copies;
}

int store_half_fd(const struct store *store, enum store_half half)
{
    ASSERT(half == STORE_PUBLIC || store->run_fd >= 0);
    return half == STORE_PUBLIC ? store->public_fd : store->run_fd;
}

void layer_done(struct layer *layer)
{
    fd_closep(&layer->tree_fd);
    manifest_done(&layer->manifest);
}

static int open_tree(int entry_fd, struct layer *layer, struct error **err)
{
    layer->tree_fd = fs_open_beneath(entry_fd, "tree", O_RDONLY | O_DIRECTORY, 0, FS_NO_LINKS);
    if (layer->tree_fd < 0)
        return error_errno(err, -layer->tree_fd, "its tree cannot be opened");
    return 0;
}

static int read_entry(int entry_fd, const struct sha256 *root, struct layer *layer,
                      struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r = fs_read_file(entry_fd, "manifest.jsonl", MANIFEST_BYTES_MAX, &text, err);

    if (r == 0)
        r = manifest_read("manifest.jsonl", buf_text(&text), text.size_bytes, &layer->manifest,
                          err);
    if (r < 0)
        return r;
    layer->root = manifest_root(&layer->manifest);
    if (!sha256_equal(&layer->root, root))
        return error_set(err, ERROR_SYSTEM, "its manifest is damaged");
    layer->files = layer->manifest.count;
    layer->bytes = layer->manifest.bytes;
    return open_tree(entry_fd, layer, err);
}

int store_find(struct store *store, const struct lookup *lookup, struct layer *ret,
               struct error **err)
{
    char name[SHA256_HEX_CHARS + 1];

    sha256_format(lookup->root, name);
    scoped(fd_closep) int fd = fs_open_beneath(store_half_fd(store, lookup->half), name,
                                               O_RDONLY | O_DIRECTORY, 0, FS_NO_LINKS);
    scoped(layer_done) struct layer layer = {.root = *lookup->root, .tree_fd = -1};

    if (fd == -ENOENT)
        return 1;
    if (fd < 0)
        return error_errno(err, -fd, "cannot open the store's entry %s", name);
    int r =
        lookup->tree_only ? open_tree(fd, &layer, err) : read_entry(fd, lookup->root, &layer, err);

    if (r < 0)
        return error_wrap(err, r, "the store's entry %s cannot be used", name);
    *ret = layer;
    layer = (struct layer){.tree_fd = -1};
    return 0;
}

int store_get(struct store *store, enum store_half half, const struct sha256 *root,
              struct layer *ret, struct error **err)
{
    int r = store_find(store, &(struct lookup){.half = half, .root = root}, ret, err);
    char name[SHA256_HEX_CHARS + 1];

    if (r <= 0)
        return r;
    sha256_format(root, name);
    return error_set(err, ERROR_SYSTEM, "the store has no entry %s", name);
}

int store_key_read(const struct store *store, const char *name, struct sha256 *ret)
{
    scoped(buf_done) struct buf text = {0};

    if (fs_read_file(store->keys_fd, name, KEY_TEXT_BYTES_MAX, &text, NULL) < 0)
        return 1;
    return sha256_parse(buf_text(&text), ret) ? 0 : 1;
}

int store_key_save(const struct store *store, const char *name, const struct sha256 *root,
                   struct error **err)
{
    char text[SHA256_HEX_CHARS + 1];

    sha256_format(root, text);
    return fs_write_atomic(store->keys_fd, name,
                           &(struct fs_content){text, strlen(text), 0600, FS_NO_SYNC}, err);
}

int draft_start(struct store *store, enum store_half half, struct draft *ret, struct error **err)
{
    scoped(mem_freep) char *name = random_hex(DRAFT_RANDOM_BYTES);
    struct draft draft = {.store = store, .half = half, .lease = LEASE_NONE, .fd = -1};
    int parent_fd = half == STORE_PUBLIC ? store->tmp_fd : store_half_fd(store, half);
    int r = lease_take(parent_fd, name, &draft.lease, err);

    if (r == 0)
        r = fs_open_dir(parent_fd, name, 0700, &draft.fd, err);
    if (r < 0) {
        draft_done(&draft);
        return r;
    }
    *ret = draft;
    return 0;
}

void draft_done(struct draft *draft)
{
    scoped(error_freep) struct error *err = NULL;

    fd_closep(&draft->fd);
    if (lease_drop(&draft->lease, &err) < 0)
        log_warn("a half-made entry stays in the store until the next command: %s",
                 error_message(err));
}

int draft_answer(const struct buf *answer, struct sha256 *ret, struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    int r = json_parse("the worker's answer", buf_text(answer), answer->size_bytes, &json, err);

    if (r < 0)
        return r;
    const char *root = json_get_text(json, "root");

    if (root == NULL || !sha256_parse(root, ret))
        return error_set(err, ERROR_BUG, "the worker's answer makes no sense");
    return 0;
}

int draft_seal(struct draft *draft, const struct manifest *manifest, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    manifest_write(&text, manifest);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "the manifest is too large");
    int r = fs_write_atomic(
        draft->fd, "manifest.jsonl",
        &(struct fs_content){buf_text(&text), text.size_bytes, 0644, FS_NO_SYNC}, err);

    if (r == 0 && draft->half == STORE_PUBLIC && syncfs(draft->fd) < 0)
        return error_errno(err, errno, "cannot sync the store");
    return r;
}

int draft_publish(struct draft *draft, const struct sha256 *root, struct layer *ret,
                  struct error **err)
{
    int to_fd = store_half_fd(draft->store, draft->half);
    char name[SHA256_HEX_CHARS + 1];

    sha256_format(root, name);
    if (fchmod(draft->fd, 0755) < 0)
        return error_errno(err, errno, "cannot seal an entry of the store");
    if (renameat2(draft->lease.parent_fd, draft->lease.name, to_fd, name, RENAME_NOREPLACE) < 0 &&
        errno != EEXIST && errno != ENOTEMPTY)
        return error_errno(err, errno, "cannot publish the store's entry %s", name);
    if (draft->half == STORE_PUBLIC && fsync(to_fd) < 0)
        return error_errno(err, errno, "cannot sync the store");
    draft->store->copies++;
    return store_get(draft->store, draft->half, root, ret, err);
}
