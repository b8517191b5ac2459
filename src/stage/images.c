#include "stage/images.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/term.h"
#include "image/layout.h"
#include "stage/internal.h"

#define FACTS_BYTES_MAX ((size_t)32 << 20)
#define IMAGES_MAX 100000
#define COMPLAINT_BYTES_MAX ((size_t)4096)
#define LOCK_SUFFIX ".lock"
/* In every key: a change of what unpacking does must not find what an older version unpacked. */
#define KEY_FORMAT "closedbook/image/1"

static const char *const skopeo_paths[] = {"/usr/bin/skopeo", "/usr/local/bin/skopeo"};

void image_done(struct image *image)
{
    image_facts_done(&image->facts);
    fd_closep(&image->rootfs_fd);
    fd_closep(&image->lock_fd);
}

/* The two folders; opened for each use, as only tasks with images need them. */
struct folders {
    int images_fd, keys_fd;
};

static void folders_donep(struct folders *folders)
{
    fd_closep(&folders->keys_fd);
    fd_closep(&folders->images_fd);
}

static int open_folders(const struct store *store, struct folders *ret, struct error **err)
{
    int r = fs_open_dir(store->root_fd, "images", 0700, &ret->images_fd, err);

    return r < 0 ? r : fs_open_dir(ret->images_fd, "keys", 0700, &ret->keys_fd, err);
}

/* --- entries */

static int lock_entry(const struct folders *folders, const char *chain_id, int how, int *ret)
{
    scoped(mem_freep) char *name = str_format("%s" LOCK_SUFFIX, chain_id);
    scoped(fd_closep) int fd =
        openat(folders->images_fd, name, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : 0;

    while (r == 0 && flock(fd, how) < 0)
        r = errno == EINTR ? 0 : -errno;
    if (r == 0)
        *ret = take_fd(&fd);
    return r;
}

/* Takes over facts and lock. 0, or 1 when the entry is not there. */
static int open_entry(const struct folders *folders, struct image *image, struct error **err)
{
    char name[SHA256_HEX_CHARS + 1];

    sha256_format(&image->facts.chain_id, name);
    if (image->lock_fd < 0) {
        int r = lock_entry(folders, name, LOCK_SH, &image->lock_fd);

        if (r < 0)
            return error_errno(err, -r, "cannot lock the image %s", name);
    }
    scoped(mem_freep) char *path = str_format("%s/rootfs", name);
    int fd = fs_open_beneath(folders->images_fd, path, O_RDONLY | O_DIRECTORY, 0, FS_NO_LINKS);

    if (fd == -ENOENT)
        return 1;
    if (fd < 0)
        return error_errno(err, -fd, "cannot open the image %s", name);
    image->rootfs_fd = fd;
    /* The time of the last use; a store that cannot be written still serves. */
    (void)futimens(image->lock_fd, NULL);
    return 0;
}

/* 0: found; 1: not. A key that leads nowhere is as good as none. */
static int find_by_key(const struct folders *folders, const char *key, struct image *ret,
                       struct error **err)
{
    scoped(image_done) struct image image = {.rootfs_fd = -1, .lock_fd = -1};
    scoped(buf_done) struct buf text = {0};

    if (fs_read_file(folders->keys_fd, key, FACTS_BYTES_MAX, &text, NULL) < 0 ||
        image_facts_parse(buf_text(&text), text.size_bytes, &image.facts, NULL) < 0)
        return 1;
    int r = open_entry(folders, &image, err);

    if (r == 0) {
        *ret = image;
        image = (struct image){.rootfs_fd = -1, .lock_fd = -1};
    }
    return r;
}

static int save(int dir_fd, const char *name, const struct image_facts *facts, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    image_facts_write(&text, facts);
    return fs_write_atomic(dir_fd, name,
                           &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_NO_SYNC},
                           err);
}

/* --- unpacking */

static void lease_donep(struct lease *lease)
{
    scoped(error_freep) struct error *err = NULL;

    /* What stays is removed by the next command that opens the store. */
    (void)!lease_drop(lease, &err);
}

static int publish(const struct folders *folders, const struct lease *draft, int draft_fd,
                   const struct image_facts *facts, struct error **err)
{
    char name[SHA256_HEX_CHARS + 1];

    sha256_format(&facts->chain_id, name);
    int r = save(draft_fd, "facts", facts, err);

    if (r < 0)
        return r;
    if (syncfs(draft_fd) < 0)
        return error_errno(err, errno, "cannot sync the store");
    if (renameat2(draft->parent_fd, draft->name, folders->images_fd, name, RENAME_NOREPLACE) < 0)
        return error_errno(err, errno, "cannot publish the image %s", name);
    return fsync(folders->images_fd) < 0 ? error_errno(err, errno, "cannot sync the store") : 0;
}

static int unpack(const struct images_source *source, const struct folders *folders,
                  const struct image_source *from, struct image *image, struct error **err)
{
    scoped(lease_donep) struct lease draft = LEASE_NONE;
    scoped(fd_closep) int draft_fd = -1;
    scoped(mem_freep) char *name = random_hex(8);
    struct sha256 expected = image->facts.chain_id;
    int r = lease_take(source->store->tmp_fd, name, &draft, err);

    if (r == 0)
        r = fs_open_dir(source->store->tmp_fd, name, 0700, &draft_fd, err);
    image_facts_done(&image->facts);
    if (r == 0)
        r = image_unpack(from, draft_fd, &image->facts, err);
    if (r == 0 && !sha256_equal(&expected, &image->facts.chain_id))
        r = error_set(err, ERROR_TASK, "the image changed while it was read");
    return r < 0 ? r : publish(folders, &draft, draft_fd, &image->facts, err);
}

/* Finds what the source holds by its layers' identity, or unpacks it. */
static int find_or_unpack(const struct images_source *source, const struct folders *folders,
                          const struct image_source *from, struct image *ret, struct error **err)
{
    scoped(image_done) struct image image = {.rootfs_fd = -1, .lock_fd = -1};
    char name[SHA256_HEX_CHARS + 1];
    int r = image_unpack(from, -1, &image.facts, err);

    if (r < 0)
        return r;
    sha256_format(&image.facts.chain_id, name);
    r = lock_entry(folders, name, LOCK_EX, &image.lock_fd);
    if (r < 0)
        return error_errno(err, -r, "cannot lock the image %s", name);
    r = open_entry(folders, &image, err);
    if (r == 1) {
        r = unpack(source, folders, from, &image, err);
        if (r == 0)
            r = open_entry(folders, &image, err);
        if (r == 1)
            r = error_set(err, ERROR_SYSTEM, "the image %s vanished", name);
    }
    if (r == 0 && flock(image.lock_fd, LOCK_SH) < 0)
        r = error_errno(err, errno, "cannot share the image %s", name);
    if (r < 0)
        return r;
    *ret = image;
    image = (struct image){.rootfs_fd = -1, .lock_fd = -1};
    return 0;
}

/* --- sources */

static int open_by(const struct images_source *source, const char *path, int flags, int *ret,
                   struct error **err)
{
    int fd = source->reader->open(source->reader->context, path, flags | O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_set(err, ERROR_TASK, "'%s': %s", path, strerror(-fd));
    *ret = fd;
    return 0;
}

static char *key_name(const char *kind, const char *tag, const void *identity, size_t size)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    const char *const texts[] = {KEY_FORMAT, kind, layout_architecture(), tag != NULL ? tag : ""};
    char hex[SHA256_HEX_CHARS + 1];

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        sha256_stream_add(stream, texts[i], strlen(texts[i]) + 1);
    sha256_stream_add(stream, identity, size);
    struct sha256 digest = sha256_stream_end(stream);

    sha256_format(&digest, hex);
    return str_dup(hex);
}

/* The index names everything below it by digest: its bytes stand for the whole. */
static int open_layout(const struct images_source *source, const struct image_reference *reference,
                       int *ret_fd, char **ret_key, struct error **err)
{
    scoped(mem_freep) char *path = path_join(reference->path, "index.json");
    scoped(buf_done) struct buf index = {0};
    scoped(fd_closep) int index_fd = -1;
    int r = open_by(source, reference->path, O_DIRECTORY, ret_fd, err);

    if (r == 0)
        r = open_by(source, path, 0, &index_fd, err);
    if (r == 0)
        r = fs_read_fd(index_fd, path, LAYOUT_BYTES_MAX, &index, err);
    if (r == 0)
        *ret_key = key_name("oci", reference->tag, buf_text(&index), index.size_bytes);
    return r;
}

static int open_archive(const struct images_source *source, const struct image_reference *reference,
                        int *ret_fd, char **ret_key, struct error **err)
{
    struct stat status;
    int r = open_by(source, reference->path, 0, ret_fd, err);

    if (r < 0)
        return r;
    if (fstat(*ret_fd, &status) < 0 || !S_ISREG(status.st_mode))
        return error_set(err, ERROR_TASK, "'%s' is no regular file", reference->path);
    const uint64_t identity[] = {
        status.st_dev,
        status.st_ino,
        (uint64_t)status.st_size,
        (uint64_t)status.st_mtim.tv_sec,
        (uint64_t)status.st_mtim.tv_nsec,
        (uint64_t)status.st_ctim.tv_sec,
        (uint64_t)status.st_ctim.tv_nsec,
    };

    *ret_key = key_name("docker-archive", reference->tag, identity, sizeof(identity));
    return 0;
}

static const char *find_skopeo(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(skopeo_paths); i++) {
        if (access(skopeo_paths[i], X_OK) == 0)
            return skopeo_paths[i];
    }
    return NULL;
}

static int run_skopeo(const char *skopeo, const char *name, int draft_fd, struct error **err)
{
    scoped(mem_freep) char *target = str_format("oci:/proc/self/fd/3/layout:image");
    const char *const argv[] = {skopeo, "copy", "--quiet", "--override-os=linux",
                                "--",   name,   target,    NULL};
    const char *home = getenv("HOME");
    scoped(mem_freep) char *home_text = str_format("HOME=%s", home != NULL ? home : "/");
    const char *const envp[] = {"PATH=/usr/bin:/bin", home_text, NULL};
    scoped(fd_closep) int log_fd = memfd_create("skopeo", MFD_CLOEXEC);
    const int fds[] = {-1, log_fd, log_fd, draft_fd};
    scoped(fd_closep) int pidfd = -1;
    scoped(buf_done) struct buf log = {.max_bytes = COMPLAINT_BYTES_MAX};
    int status = 0;
    pid_t pid;

    if (log_fd < 0)
        return error_errno(err, errno, "cannot make a log for skopeo");
    int r = spawn_start(
        &(struct spawn_options){
            .argv = argv, .envp = envp, .cwd_fd = -1, .fds = fds, .fd_count = ARRAY_SIZE(fds)},
        &pidfd, &pid, err);

    if (r == 0)
        r = spawn_wait(pidfd, &status, err);
    if (r < 0 || status == 0)
        return r;
    (void)lseek(log_fd, 0, SEEK_SET); /* of a memfd: cannot fail */
    (void)!fs_read_fd(log_fd, "skopeo's output", COMPLAINT_BYTES_MAX, &log, NULL);
    scoped(mem_freep) char *said = term_quoted(buf_text(&log));

    return error_set(err, ERROR_SYSTEM, "skopeo failed: %s", said);
}

/* Has skopeo make a layout of it, unpacks that, and throws the layout away. */
static int fetch(const struct images_source *source, const struct folders *folders,
                 const char *name, struct image *ret, struct error **err)
{
    const char *skopeo = find_skopeo();
    scoped(lease_donep) struct lease draft = LEASE_NONE;
    scoped(fd_closep) int draft_fd = -1;
    scoped(fd_closep) int layout_fd = -1;
    scoped(mem_freep) char *draft_name = random_hex(8);

    if (skopeo == NULL)
        return error_set(err, ERROR_SYSTEM,
                         "only skopeo can fetch it, and that is not installed: apt-get install "
                         "skopeo, or name an oci: or docker-archive: image");
    int r = lease_take(source->store->tmp_fd, draft_name, &draft, err);

    if (r == 0)
        r = fs_open_dir(source->store->tmp_fd, draft_name, 0700, &draft_fd, err);
    if (r == 0)
        r = run_skopeo(skopeo, name, draft_fd, err);
    if (r == 0)
        r = fs_open_dir(draft_fd, "layout", 0700, &layout_fd, err);
    if (r < 0)
        return r;
    const struct image_source from = {
        .monitor = source->monitor,
        .program = source->program,
        .kind = IMAGE_OCI,
        .fd = layout_fd,
    };

    return find_or_unpack(source, folders, &from, ret, err);
}

static int get(const struct images_source *source, const struct image_reference *reference,
               struct image *ret, struct error **err)
{
    scoped(folders_donep) struct folders folders = {-1, -1};
    scoped(fd_closep) int fd = -1;
    scoped(mem_freep) char *key = NULL;
    bool fetched = reference->kind == IMAGE_FETCHED;
    int r = open_folders(source->store, &folders, err);

    if (r == 0 && fetched)
        key = key_name("fetched", NULL, reference->path, strlen(reference->path));
    else if (r == 0)
        r = reference->kind == IMAGE_OCI ? open_layout(source, reference, &fd, &key, err)
                                         : open_archive(source, reference, &fd, &key, err);
    if (r == 0)
        r = find_by_key(&folders, key, ret, err);
    if (r != 1)
        return r;
    if (source->program == NULL || source->monitor == NULL)
        return error_set(err, ERROR_BUG, "an image that cannot be unpacked here");
    const struct image_source from = {
        .monitor = source->monitor,
        .program = source->program,
        .kind = reference->kind,
        .fd = fd,
        .tag = reference->tag,
    };

    r = fetched ? fetch(source, &folders, reference->path, ret, err)
                : find_or_unpack(source, &folders, &from, ret, err);
    return r < 0 ? r : save(folders.keys_fd, key, &ret->facts, err);
}

int images_get(const struct images_source *source, const char *reference, struct image *ret,
               struct error **err)
{
    scoped(image_reference_done) struct image_reference parsed = {.path = NULL};
    int r = image_reference_parse(reference, &parsed, err);

    if (r == 0)
        r = get(source, &parsed, ret, err);
    return r < 0 ? error_wrap(err, r, "the image '%s' cannot be used", reference) : 0;
}

/* --- what is kept */

void image_list_done(struct image_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].chain_id);
    free(list->items);
    *list = (struct image_list){.items = NULL};
}

struct listing {
    const struct folders *folders;
    struct image_list list;
};

static int list_one(void *context, int dir_fd, const char *name, struct error **err)
{
    struct listing *listing = context;
    scoped(mem_freep) char *facts_path = str_format("%s/facts", name);
    scoped(mem_freep) char *lock_path = str_format("%s" LOCK_SUFFIX, name);
    scoped(image_facts_done) struct image_facts facts = {.workdir = NULL};
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int lock_fd = -1;
    struct sha256 digest;
    struct stat status;

    if (strlen(name) != SHA256_HEX_CHARS || !sha256_parse(name, &digest))
        return 0;
    if (listing->list.count == IMAGES_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d images", IMAGES_MAX);
    if (fs_read_file(dir_fd, facts_path, FACTS_BYTES_MAX, &text, NULL) < 0 ||
        image_facts_parse(buf_text(&text), text.size_bytes, &facts, NULL) < 0)
        facts.bytes = 0; /* damaged: still there to be removed */
    bool in_use = lock_entry(listing->folders, name, LOCK_EX | LOCK_NB, &lock_fd) < 0;
    uint64_t used_ms =
        fstatat(dir_fd, lock_path, &status, 0) < 0
            ? 0
            : (uint64_t)status.st_mtim.tv_sec * 1000u + (uint64_t)status.st_mtim.tv_nsec / 1000000u;

    listing->list.items =
        mem_resize(listing->list.items, listing->list.count + 1, sizeof(*listing->list.items));
    listing->list.items[listing->list.count++] = (struct image_entry){
        .chain_id = str_dup(name),
        .bytes = facts.bytes,
        .entries = facts.entries,
        .used_unix_ms = used_ms,
        .in_use = in_use,
    };
    return 0;
}

int images_list(struct store *store, struct image_list *ret, struct error **err)
{
    scoped(folders_donep) struct folders folders = {-1, -1};
    struct listing listing = {.folders = &folders};
    int r = open_folders(store, &folders, err);

    if (r == 0)
        r = fs_each(folders.images_fd, list_one, &listing, err);
    if (r < 0) {
        image_list_done(&listing.list);
        return r;
    }
    *ret = listing.list;
    return 0;
}

int images_remove(struct store *store, const char *chain_id, bool *ret_removed, struct error **err)
{
    scoped(folders_donep) struct folders folders = {-1, -1};
    scoped(fd_closep) int lock_fd = -1;
    scoped(mem_freep) char *draft = random_hex(8);
    int r = open_folders(store, &folders, err);

    if (r < 0)
        return r;
    r = lock_entry(&folders, chain_id, LOCK_EX | LOCK_NB, &lock_fd);
    *ret_removed = r == 0;
    if (r == -EWOULDBLOCK)
        return 0;
    if (r < 0)
        return error_errno(err, -r, "cannot lock the image %s", chain_id);
    /* Out of the way first: what is removed by half must not be found. */
    if (renameat(folders.images_fd, chain_id, store->tmp_fd, draft) < 0)
        return errno == ENOENT ? 0
                               : error_errno(err, errno, "cannot remove the image %s", chain_id);
    return fs_remove_tree(store->tmp_fd, draft, err);
}
