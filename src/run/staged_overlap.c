#include "run/staged_overlap.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/manifest.h"
#include "task/task_private.h"
#include "task/task_public.h"

/* One private file: its content and where it lies on the host. Borrowed. */
struct secret {
    struct sha256 digest;
    const char *folder, *path; /* path: below folder; NULL: folder is the file itself */
};

/* Sorted by digest before it is searched. */
struct secrets {
    struct secret *items;
    size_t count;
};

static void secrets_done(struct secrets *secrets)
{
    free(secrets->items);
}

static void add_secret(struct secrets *secrets, const struct secret *secret)
{
    if ((secrets->count & (secrets->count - 1)) == 0)
        secrets->items =
            mem_resize(secrets->items, size_max(secrets->count * 2, 1), sizeof(*secrets->items));
    secrets->items[secrets->count++] = *secret;
}

static int compare(const void *a, const void *b)
{
    const struct secret *left = a, *right = b;

    return memcmp(left->digest.bytes, right->digest.bytes, SHA256_BYTES);
}

static const struct secret *find(const struct secrets *secrets, const struct sha256 *digest)
{
    const struct secret key = {.digest = *digest};

    return secrets->count == 0
               ? NULL
               : bsearch(&key, secrets->items, secrets->count, sizeof(key), compare);
}

static bool is_file(const struct manifest_entry *entry)
{
    return entry != NULL && entry->type == MANIFEST_FILE && entry->size_bytes > 0;
}

/* --- what is private ------------------------------------------------------------------------- */

static int add_task_file(const struct task_reader *reader, const struct task_private *half,
                         struct secrets *secrets, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = reader->open(reader->context, half->task_file, O_RDONLY);

    if (fd < 0)
        return error_errno_as(err, ERROR_TASK, -fd, "cannot open '%s'", half->task_file);
    int r = fs_read_fd(fd, half->task_file, TASK_BYTES_MAX, &text, err);

    if (r < 0)
        return r;
    add_secret(secrets, &(struct secret){.digest = sha256_of(buf_text(&text), text.size_bytes),
                                         .folder = half->task_file});
    return 0;
}

/* Experiment and dataset files, as they were when they were read. */
static int add_private_files(const struct task_private *half, struct secrets *secrets,
                             struct error **err)
{
    for (size_t i = 0; i < half->private_files.count; i++) {
        struct secret secret = {.folder = half->private_files.items[i]};

        if (!sha256_parse(half->private_digests.items[i], &secret.digest))
            return error_set(err, ERROR_BUG, "the digest of '%s' is none", secret.folder);
        add_secret(secrets, &secret);
    }
    return 0;
}

/* The files of the reference that the staged view does not have at the same path. */
static int add_reference(const struct task_private *half, const struct manifest *reference,
                         const struct manifest *staged, struct secrets *secrets, struct error **err)
{
    const char *root = half->reference_dir != NULL ? half->reference_dir : half->reference_file;
    size_t before = secrets->count;

    for (size_t i = 0; i < reference->count; i++) {
        const struct manifest_entry *entry = &reference->entries[i];
        const struct manifest_entry *same = manifest_find(staged, entry->path);

        if (!is_file(entry) || (is_file(same) && sha256_equal(&same->digest, &entry->digest)))
            continue;
        add_secret(secrets, &(struct secret){
                                .digest = entry->digest,
                                .folder = root,
                                .path = half->reference_dir != NULL ? entry->path : NULL,
                            });
    }
    if (secrets->count == before)
        return error_set(err, ERROR_TASK,
                         "the agent would get all of the reference '%s': each of its files stands "
                         "in the workspace at the same path with the same content; a reference "
                         "must differ from what the agent is given",
                         root);
    return 0;
}

/* --- where it was staged from ---------------------------------------------------------------- */

/* path below the mount point of a source; NULL when it does not lie there. */
static const char *below(const char *path, const char *mount_point)
{
    if (mount_point == NULL || str_equal(mount_point, "."))
        return path;
    if (!manifest_path_below(path, mount_point) || path[strlen(mount_point)] == '\0')
        return NULL;
    return path + strlen(mount_point) + 1;
}

/* The host's path of a staged file: of the last source that has it; owned. */
static char *source_of(const struct task_reader *reader, const struct task_public *half,
                       const char *path)
{
    for (size_t i = half->source_count; i-- > 0;) {
        const struct task_source *source = &half->sources[i];
        const char *rest = below(path, source->mount_point);

        if (rest == NULL || source->path == NULL)
            continue;
        scoped(mem_freep) char *whole = path_join(source->path, rest);
        scoped(fd_closep) int fd = reader->open(reader->context, whole, O_RDONLY | O_NONBLOCK);

        if (fd >= 0)
            return take(whole);
    }
    return str_format("starter_files: %s", path);
}

static int complain(const struct task_reader *reader, const struct task_public *half,
                    const struct manifest_entry *entry, const struct secret *secret,
                    struct error **err)
{
    scoped(mem_freep) char *from = source_of(reader, half, entry->path);
    scoped(mem_freep) char *private_path =
        secret->path == NULL ? str_dup(secret->folder) : path_join(secret->folder, secret->path);

    return error_set(err, ERROR_TASK,
                     "'%s' would be in the agent's workspace as '%s', and has the content of '%s', "
                     "which the agent must not get: take it out, or name it in "
                     "sandbox.ignore_patterns",
                     from, entry->path, private_path);
}

/* --- the check ------------------------------------------------------------------------------- */

static int search(const struct task_reader *reader, const struct task_public *half,
                  const struct manifest *staged, struct secrets *secrets, struct error **err)
{
    if (secrets->count > 0)
        qsort(secrets->items, secrets->count, sizeof(*secrets->items), compare);
    for (size_t i = 0; i < staged->count; i++) {
        const struct manifest_entry *entry = &staged->entries[i];
        const struct secret *secret = is_file(entry) ? find(secrets, &entry->digest) : NULL;

        if (secret != NULL)
            return complain(reader, half, entry, secret, err);
    }
    return 0;
}

int staged_overlap_check(const struct session *session, struct monitor *monitor,
                         const struct task *task, const struct view *view, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(secrets_done) struct secrets secrets = {0};
    scoped(layer_done) struct layer reference = {.tree_fd = -1};

    task_split(task, &public_half, &private_half);
    if (view_manifest(view)->count == 0)
        return 0;
    int r = add_task_file(&session->reader, private_half, &secrets, err);

    if (r == 0)
        r = add_private_files(private_half, &secrets, err);
    const struct private_source source = {
        .reference_dir = private_half->reference_dir,
        .reference_file = private_half->reference_file,
    };

    if (r == 0 && (source.reference_dir != NULL || source.reference_file != NULL)) {
        r = private_reference_make(session->store, monitor, &session->reader, &source, &reference,
                                   err);
        if (r == 0)
            r = add_reference(private_half, &reference.manifest, view_manifest(view), &secrets,
                              err);
    }
    return r < 0 ? r : search(&session->reader, public_half, view_manifest(view), &secrets, err);
}
