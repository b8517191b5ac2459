#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "run/staged_overlap_internal.h"
#include "stage/pack_index.h"

/* Where a repository that was made anew has its only pack. */
#define PACKS ".git/objects/pack/"

struct mapped {
    void *bytes; /* NULL: nothing */
    size_t size;
};

static void mapped_done(struct mapped *mapped)
{
    if (mapped->bytes != NULL)
        (void)munmap(mapped->bytes, mapped->size); /* cannot fail for what was mapped */
}

static int map(int fd, const char *name, struct mapped *ret, struct error **err)
{
    struct stat status;

    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return error_set(err, ERROR_SYSTEM, "'%s' is no file any more", name);
    ret->size = (size_t)status.st_size;
    if (ret->size == 0)
        return 0;
    void *bytes = mmap(NULL, ret->size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return error_errno(err, errno, "cannot read '%s'", name);
    ret->bytes = bytes;
    return 0;
}

/* A file of the host may change under us: what is not what was checked says nothing. */
static int read_host_secret(const struct secret *secret, const struct secret_source *source,
                            struct git_blob_names *ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd =
        source->reader->open(source->reader->context, secret->folder, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno_as(err, ERROR_TASK, -fd, "cannot open '%s'", secret->folder);
    int r = fs_read_fd(fd, secret->folder, SIZE_MAX, &text, err);

    if (r < 0)
        return r;
    struct sha256 digest = sha256_of(buf_text(&text), text.size_bytes);

    if (!sha256_equal(&digest, &secret->digest))
        return error_set(err, ERROR_TASK, "'%s' changed since it was read: start again",
                         secret->folder);
    *ret = git_blob_names_of(buf_text(&text), text.size_bytes);
    return 0;
}

static int name_secret(const struct secret *secret, const struct secret_source *source,
                       struct git_blob_names *ret, struct error **err)
{
    scoped(mapped_done) struct mapped content = {0};

    if (secret->staged_path == NULL)
        return read_host_secret(secret, source, ret, err);
    scoped(fd_closep) int fd =
        fs_open_beneath(source->reference_fd, secret->staged_path, O_RDONLY, 0, FS_NO_LINKS);

    if (fd < 0)
        return error_errno(err, -fd, "the staged '%s' cannot be opened", secret->staged_path);
    int r = map(fd, secret->staged_path, &content, err);

    if (r == 0)
        *ret = git_blob_names_of(content.bytes != NULL ? content.bytes : "", content.size);
    return r;
}

static int complain(const struct secret *secret, struct error **err)
{
    scoped(mem_freep) char *path =
        secret->path == NULL ? str_dup(secret->folder) : path_join(secret->folder, secret->path);

    return error_set(
        err, ERROR_TASK,
        "the repository in the agent's workspace has the content of '%s' in one of its "
        "commits, which the agent must not get: say 'history: base', or 'none', or "
        "take a commit that never had it ('git log --all --find-object=$(git "
        "hash-object FILE)' finds where it is)",
        path);
}

static int search_pack(const struct staged_layers *layers, const char *path,
                       const struct git_blob_names *names, const struct secrets *secrets,
                       struct error **err)
{
    scoped(mapped_done) struct mapped bytes = {0};
    scoped(fd_closep) int fd = staged_layers_open(layers, path);
    struct pack_index index;

    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, "the staged '%s' cannot be opened", path);
    int r = map(fd, path, &bytes, err);

    if (r == 0)
        r = pack_index_parse(bytes.bytes, bytes.size, &index, err);
    if (r < 0)
        return error_wrap(err, r, "'%s'", path);
    for (size_t i = 0; i < secrets->count; i++) {
        if (pack_index_has(&index, &names[i]))
            return complain(&secrets->items[i], err);
    }
    return 0;
}

static bool is_index(const struct manifest_entry *entry)
{
    return entry->type == MANIFEST_FILE && str_starts(entry->path, PACKS) &&
           str_ends(entry->path, ".idx");
}

static bool has_index(const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++) {
        if (is_index(&manifest->entries[i]))
            return true;
    }
    return false;
}

int staged_history_check(const struct staged_layers *layers, const struct secrets *secrets,
                         const struct secret_source *source, struct error **err)
{
    scoped(mem_freep) struct git_blob_names *names = NULL;
    int r = 0;

    if (!has_index(layers->manifest))
        return 0;
    names = mem_new(secrets->count + 1, sizeof(*names));
    for (size_t i = 0; i < secrets->count && r == 0; i++)
        r = name_secret(&secrets->items[i], source, &names[i], err);
    for (size_t i = 0; i < layers->manifest->count && r == 0; i++) {
        if (is_index(&layers->manifest->entries[i]))
            r = search_pack(layers, layers->manifest->entries[i].path, names, secrets, err);
    }
    return r;
}
