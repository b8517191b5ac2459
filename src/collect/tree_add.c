#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/tree_internal.h"

#define COPY_BYTES ((size_t)256 << 10)
#define LINKS_NAMED_MAX 5 /* in the error about links that lead out */

struct adding {
    const struct tree_rules *rules;
    int source_fd, tree_fd;
    const char *prefix; /* the mount point, "" for the root */
    uid_t uid;          /* of the destination */
    gid_t gid;
    bool gives_away; /* what is made belongs to somebody else at first */
    struct manifest manifest;
    struct buf bad_links;
    size_t bad_link_count;
    int parent_fd; /* of the entry made last */
    char *parent;
    char *bytes; /* COPY_BYTES */
};

static void adding_done(struct adding *adding)
{
    manifest_done(&adding->manifest);
    buf_done(&adding->bad_links);
    fd_closep(&adding->parent_fd);
    fd_closep(&adding->tree_fd);
    free(adding->parent);
    free(adding->bytes);
}

static int system_error(int errno_value, const char *what, const char *path, struct error **err)
{
    scoped(buf_done) struct buf name = {0};

    manifest_escape(&name, path);
    return error_errno(err, errno_value, "cannot %s '%s'", what, buf_text(&name));
}

/* The directory in the copy that path belongs into, opened once for a run of siblings. */
static int parent_of(struct adding *adding, const char *path, struct error **err)
{
    scoped(mem_freep) char *parent = path_dir(path);

    if (str_equal(parent, adding->parent))
        return 0;
    int fd = fs_open_beneath(adding->tree_fd, parent, O_PATH | O_DIRECTORY, 0, FS_NO_LINKS);

    if (fd < 0)
        return system_error(-fd, "open in the store", parent, err);
    fd_closep(&adding->parent_fd);
    adding->parent_fd = fd;
    free(adding->parent);
    adding->parent = take(parent);
    return 0;
}

static int give_away(const struct adding *adding, const char *path, struct error **err)
{
    if (adding->gives_away && fchownat(adding->parent_fd, path_base(path), adding->uid, adding->gid,
                                       AT_SYMLINK_NOFOLLOW) < 0)
        return system_error(errno, "give away", path, err);
    return 0;
}

static int add_dir(struct adding *adding, char *path, mode_t mode, struct error **err)
{
    /* The mode comes when the directory is done: until then it must be writable. */
    if (mkdirat(adding->parent_fd, path_base(path), 0700) < 0)
        return system_error(errno, "make in the store", path, err);
    int r = give_away(adding, path, err);

    if (r < 0)
        return r;
    manifest_add(&adding->manifest,
                 &(struct manifest_entry){.path = path, .type = MANIFEST_DIR, .mode = mode});
    return 0;
}

/* "." is below every other directory, "" is the text of none. */
static bool leads_out(int source_fd, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    long fd = syscall(SYS_openat2, source_fd, path, &how, sizeof(how));

    if (fd >= 0)
        (void)close((int)fd); /* only looked at */
    else if (errno == EXDEV)
        return true;
    return false; /* a link that dangles inside, or in a circle, harms nobody */
}

static int add_link(struct adding *adding, const struct walk_entry *entry, char *path,
                    struct error **err)
{
    char target[WALK_PATH_BYTES_MAX + 1];
    ssize_t length = readlinkat(entry->parent_fd, entry->name, target, sizeof(target) - 1);

    if (length <= 0)
        return tree_refuse(NULL, entry->path, length < 0 ? errno : 0,
                           length < 0 ? strerror(errno) : "an empty link", err);
    target[length] = '\0';
    if (!adding->rules->keep_links && leads_out(adding->source_fd, entry->path)) {
        if (adding->bad_link_count++ < LINKS_NAMED_MAX) {
            buf_text_append(&adding->bad_links, adding->bad_link_count > 1 ? ", '" : "'");
            manifest_escape(&adding->bad_links, entry->path);
            buf_text_append(&adding->bad_links, "' -> '");
            manifest_escape(&adding->bad_links, target);
            buf_char(&adding->bad_links, '\'');
        }
        return 0;
    }
    if (symlinkat(target, adding->parent_fd, path_base(path)) < 0)
        return system_error(errno, "make in the store", path, err);
    manifest_add(&adding->manifest,
                 &(struct manifest_entry){.path = path,
                                          .type = MANIFEST_LINK,
                                          .mode = 0777,
                                          .size_bytes = (uint64_t)length,
                                          .digest = sha256_of(target, (size_t)length),
                                          .target = target});
    return give_away(adding, path, err);
}

/* Copies exactly size bytes and hashes them. */
static int copy_bytes(struct adding *adding, int from, int to, struct manifest_entry *entry,
                      struct error **err)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();

    for (uint64_t left = entry->size_bytes; left > 0;) {
        ssize_t n = read(from, adding->bytes, size_min(left, COPY_BYTES));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return tree_refuse(NULL, entry->path, n < 0 ? errno : 0,
                               n < 0 ? strerror(errno) : "it shrinks", err);
        sha256_stream_add(stream, adding->bytes, (size_t)n);
        int r = fs_write_all(to, entry->path, adding->bytes, (size_t)n, err);

        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    entry->digest = sha256_stream_end(stream);
    return 0;
}

/* What runs in place of a program may lack the bit where it comes from. */
static mode_t mode_of(const struct adding *adding, mode_t mode, const char *path)
{
    const struct str_list *list = adding->rules->executable;

    if (list == NULL || list->count == 0)
        return mode & MANIFEST_MODE_BITS;
    scoped(mem_freep) char *parent = path_dir(path);

    return (mode | (str_list_has(list, parent) ? 0111 : 0)) & MANIFEST_MODE_BITS;
}

static int add_file(struct adding *adding, int from, const struct stat *status, char *path,
                    struct error **err)
{
    struct manifest_entry entry = {.path = path,
                                   .type = MANIFEST_FILE,
                                   .mode = mode_of(adding, status->st_mode, path),
                                   .size_bytes = (uint64_t)status->st_size};
    const struct timespec times[2] = {status->st_mtim, status->st_mtim};
    uint64_t max = adding->rules->max_bytes;

    if (max != 0 && entry.size_bytes > max - size_min(adding->manifest.bytes, max))
        return error_set(err, ERROR_LIMIT, "more than %llu bytes", (unsigned long long)max);
    scoped(fd_closep) int to = openat(adding->parent_fd, path_base(path),
                                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (to < 0)
        return system_error(errno, "make in the store", path, err);
    int r = copy_bytes(adding, from, to, &entry, err);

    if (r == 0)
        r = give_away(adding, path, err);
    if (r < 0)
        return r;
    if (fchmod(to, entry.mode) < 0 || futimens(to, times) < 0)
        return system_error(errno, "seal", path, err);
    manifest_add(&adding->manifest, &entry);
    return 0;
}

static const char *kind_of(mode_t mode)
{
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

static int add_entry(struct adding *adding, const struct walk_entry *entry, char *path,
                     struct error **err)
{
    mode_t mode = entry->status.st_mode;

    if (S_ISDIR(mode))
        return add_dir(adding, path, mode & MANIFEST_MODE_BITS, err);
    if (S_ISLNK(mode))
        return add_link(adding, entry, path, err);
    if (!S_ISREG(mode))
        return tree_refuse(NULL, entry->path, 0, kind_of(mode), err);
    scoped(fd_closep) int fd = walk_open_file(entry->parent_fd, entry->name, &entry->status);

    if (fd < 0)
        return tree_refuse(NULL, entry->path, -fd, fd == -ESTALE ? "it changes" : strerror(-fd),
                           err);
    return add_file(adding, fd, &entry->status, path, err);
}

/* Only the name and the mode: something is mounted there, or nobody is to see what it holds. */
static int add_hollow(struct adding *adding, const struct walk_entry *entry, char *path,
                      struct error **err)
{
    mode_t mode = entry->status.st_mode & MANIFEST_MODE_BITS;
    int r;

    if (!S_ISDIR(entry->status.st_mode)) {
        struct stat status = {.st_mode = S_IFREG | mode, .st_mtim = entry->status.st_mtim};

        r = add_file(adding, -1, &status, path, err);
        return r < 0 ? r : WALK_SKIP;
    }
    r = add_dir(adding, path, mode, err);
    if (r == 0 && fchmodat(adding->parent_fd, path_base(path), mode, 0) < 0)
        return system_error(errno, "seal", path, err);
    return r < 0 ? r : WALK_SKIP;
}

/* Where something of the source goes in the copy; owned. */
static char *placed(const struct adding *adding, const char *path)
{
    return *adding->prefix == '\0' ? str_dup(path) : path_join(adding->prefix, path);
}

static int visit(void *context, const struct walk_entry *entry, struct error **err)
{
    struct adding *adding = context;

    if (tree_leaves_out(adding->rules, entry))
        return WALK_SKIP;
    uint64_t max = adding->rules->max_entries;

    if (max != 0 && adding->manifest.count >= max)
        return error_set(err, ERROR_LIMIT, "more than %llu entries", (unsigned long long)max);
    scoped(mem_freep) char *path = placed(adding, entry->path);
    const struct str_list *hollow = adding->rules->hollow;
    int r = parent_of(adding, path, err);

    if (r < 0)
        return r;
    if (hollow != NULL && str_list_has(hollow, entry->path))
        r = add_hollow(adding, entry, path, err);
    else
        r = add_entry(adding, entry, path, err);
    return r;
}

static int leave(void *context, const char *source_path, struct error **err)
{
    struct adding *adding = context;
    scoped(mem_freep) char *path = placed(adding, source_path);
    int r = parent_of(adding, path, err);

    if (r < 0)
        return r;
    /* The source's entry cannot be missing: visit() made it. It is found from the end. */
    size_t i = adding->manifest.count;

    while (strcmp(adding->manifest.entries[--i].path, path) != 0)
        ASSERT(i > 0);
    if (fchmodat(adding->parent_fd, path_base(path), adding->manifest.entries[i].mode, 0) < 0)
        return system_error(errno, "seal", path, err);
    return 0;
}

/* The directories of the mount point. */
static int add_prefix(struct adding *adding, struct error **err)
{
    for (const char *slash = adding->prefix; *slash != '\0';) {
        slash += *slash == '/';
        slash += strcspn(slash, "/");
        scoped(mem_freep) char *path = str_ndup(adding->prefix, (size_t)(slash - adding->prefix));
        int r = parent_of(adding, path, err);

        if (r == 0)
            r = add_dir(adding, path, 0755, err);
        if (r < 0)
            return r;
        if (fchmodat(adding->parent_fd, path_base(path), 0755, 0) < 0)
            return system_error(errno, "seal", path, err);
    }
    return 0;
}

static int add_single(struct adding *adding, int source_fd, const char *name, struct error **err)
{
    scoped(mem_freep) char *path = placed(adding, name);
    struct stat status;
    int r = parent_of(adding, path, err);

    if (r < 0)
        return r;
    if (fstat(source_fd, &status) < 0)
        return system_error(errno, "look at", name, err);
    if (!S_ISREG(status.st_mode))
        return tree_refuse(NULL, name, 0, "not a regular file", err);
    return add_file(adding, source_fd, &status, path, err);
}

static int open_tree_dir(struct adding *adding, int destination_fd, struct error **err)
{
    struct stat status;

    if (fstat(destination_fd, &status) < 0)
        return error_errno(err, errno, "cannot look at the destination");
    adding->uid = status.st_uid;
    adding->gid = status.st_gid;
    adding->gives_away = status.st_uid != geteuid();
    if (mkdirat(destination_fd, "tree", 0755) < 0)
        return error_errno(err, errno, "cannot make the copy's root");
    adding->tree_fd = openat(destination_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (adding->tree_fd < 0)
        return error_errno(err, errno, "cannot open the copy's root");
    /* Whatever the umask says. */
    if (fchmod(adding->tree_fd, 0755) < 0 ||
        (adding->gives_away && fchown(adding->tree_fd, adding->uid, adding->gid) < 0))
        return error_errno(err, errno, "cannot prepare the copy's root");
    return 0;
}

static int write_manifest(struct adding *adding, int destination_fd, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = openat(destination_fd, "manifest.jsonl",
                                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return error_errno(err, errno, "cannot write the manifest");
    manifest_write(&text, &adding->manifest);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "the manifest is larger than %zu bytes", BUF_BYTES_MAX);
    if (adding->gives_away && fchown(fd, adding->uid, adding->gid) < 0)
        return error_errno(err, errno, "cannot give the manifest away");
    return fs_write_all(fd, "manifest.jsonl", buf_text(&text), text.size_bytes, err);
}

static int check_links(const struct adding *adding, struct error **err)
{
    size_t count = adding->bad_link_count;

    if (count == 0)
        return 0;
    return error_set(err, ERROR_TASK, "%zu link%s out of it: %s%s", count,
                     count == 1 ? " leads" : "s lead", buf_text(&adding->bad_links),
                     count > LINKS_NAMED_MAX ? ", ..." : "");
}

int tree_add(int source_fd, int destination_fd, const struct tree_rules *rules,
             const struct tree_copy *copy, struct manifest *ret, struct error **err)
{
    scoped(adding_done) struct adding adding = {
        .rules = rules,
        .source_fd = source_fd,
        .tree_fd = -1,
        .parent_fd = -1,
        .prefix = strcmp(copy->mount_point, ".") == 0 ? "" : copy->mount_point,
        .bytes = mem_new(COPY_BYTES, 1),
    };
    struct walk walk = {.context = &adding, .visit = visit, .leave = leave, .refuse = tree_refuse};

    if (*adding.prefix != '\0' && !path_is_inside(adding.prefix))
        return error_set(err, ERROR_TASK, "the mount point '%s' leads out of the workspace",
                         adding.prefix);
    int r = open_tree_dir(&adding, destination_fd, err);

    if (r == 0)
        r = add_prefix(&adding, err);
    if (r == 0)
        r = copy->file_name != NULL ? add_single(&adding, source_fd, copy->file_name, err)
                                    : walk_tree(source_fd, &walk, err);
    if (r == 0)
        r = check_links(&adding, err);
    if (r < 0)
        return r;
    manifest_sort(&adding.manifest);
    r = write_manifest(&adding, destination_fd, err);
    if (r < 0)
        return r;
    if (copy->sync && syncfs(destination_fd) < 0)
        return error_errno(err, errno, "cannot sync the store");
    *ret = adding.manifest;
    adding.manifest = (struct manifest){0};
    return 0;
}
