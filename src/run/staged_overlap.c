#include "run/staged_overlap.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "run/staged_overlap_internal.h"
#include "stage/plugins.h"
#include "task/task_private.h"
#include "task/task_public.h"

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
                                .staged_path = entry->path,
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

/* --- the check ------------------------------------------------------------------------------- */

/* One of the trees that the agent gets. */
struct staged_tree {
    const struct task_reader *reader;
    const struct task_public *half;
    const struct task_private *secret;
    const struct plugins *plugins; /* the tree is theirs; NULL: it is the workspace */
    struct staged_layers layers;
};

int staged_layers_open(const struct staged_layers *layers, const char *path)
{
    int fd = -1;

    for (size_t i = layers->count; i-- > 0 && fd < 0;)
        fd = fs_open_beneath(layers->fds[i], path, O_RDONLY, 0, FS_NO_LINKS);
    return fd < 0 ? -1 : fd;
}

static char *from_where(const struct staged_tree *tree, const struct manifest_entry *entry)
{
    return tree->plugins != NULL ? plugins_source_of(tree->plugins, entry->path)
                                 : source_of(tree->reader, tree->half, entry->path);
}

static int complain(const struct staged_tree *tree, const struct manifest_entry *entry,
                    const struct secret *secret, struct error **err)
{
    scoped(mem_freep) char *from = from_where(tree, entry);
    scoped(mem_freep) char *private_path =
        secret->path == NULL ? str_dup(secret->folder) : path_join(secret->folder, secret->path);

    return error_set(err, ERROR_TASK,
                     "'%s' would be in the agent's %s as '%s', and has the content of '%s', which "
                     "the agent must not get: take it out, or name it in %s.ignore_patterns",
                     from, tree->plugins != NULL ? "plugins" : "workspace", entry->path,
                     private_path, tree->plugins != NULL ? "agent" : "sandbox");
}

static int read_entry(const struct staged_tree *tree, const struct manifest_entry *entry,
                      struct buf *ret, struct error **err)
{
    scoped(fd_closep) int fd = staged_layers_open(&tree->layers, entry->path);

    return fd < 0 ? 0 : fs_read_fd(fd, entry->path, TASK_BYTES_MAX, ret, err);
}

/* The line of a task_id at the top of a YAML file; 0: it has none. */
static unsigned task_id_line(const char *text)
{
    unsigned line = 1;

    for (; text != NULL; text = strchr(text, '\n'), line++) {
        text += line > 1;
        if (str_starts(text, "task_id") && text[strcspn(text, ":\n")] == ':' &&
            strspn(text + strlen("task_id"), " \t") + strlen("task_id") == strcspn(text, ":\n"))
            return line;
    }
    return 0;
}

/* Whatever suite it belongs to, a task file says how its task is graded. */
static int check_task_file(const struct staged_tree *tree, const struct manifest_entry *entry,
                           struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    if (entry->size_bytes > TASK_BYTES_MAX ||
        (!str_ends(entry->path, ".yaml") && !str_ends(entry->path, ".yml")))
        return 0;
    int r = read_entry(tree, entry, &text, err);
    unsigned line = r < 0 ? 0 : task_id_line(buf_text(&text));

    if (line == 0)
        return r;
    scoped(mem_freep) char *from = from_where(tree, entry);

    return error_set(err, ERROR_TASK,
                     "'%s' would be in the agent's %s as '%s', and is a task file (a task_id in "
                     "line %u), which the agent must not get: take it out, or name it in "
                     "%s.ignore_patterns",
                     from, tree->plugins != NULL ? "plugins" : "workspace", entry->path, line,
                     tree->plugins != NULL ? "agent" : "sandbox");
}

/*
 * A link of a plugin leads nowhere in the cell. One that points at the reference is a mistake all
 * the same: whoever copies the plugin with links followed gives it away.
 */
static int check_link(const struct staged_tree *tree, const struct manifest_entry *entry,
                      struct error **err)
{
    const struct task_private *secret = tree->secret;
    const char *const hidden[] = {secret->task_file, secret->reference_dir, secret->reference_file};
    scoped(mem_freep) char *from = plugins_source_of(tree->plugins, entry->path);
    scoped(mem_freep) char *folder = path_dir(from);
    scoped(mem_freep) char *whole = path_join(folder, entry->target);
    scoped(mem_freep) char *target = path_normal(whole);

    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
        if (hidden[i] != NULL && manifest_path_below(target, hidden[i]))
            return error_set(err, ERROR_TASK,
                             "'%s' would be in the agent's plugins as '%s', a link to '%s', which "
                             "the agent must not get: take it out, or name it in "
                             "agent.ignore_patterns",
                             from, entry->path, target);
    }
    return 0;
}

static int search(const struct staged_tree *tree, const struct secrets *secrets, struct error **err)
{
    int r = 0;

    for (size_t i = 0; i < tree->layers.manifest->count && r == 0; i++) {
        const struct manifest_entry *entry = &tree->layers.manifest->entries[i];
        const struct secret *secret = is_file(entry) ? find(secrets, &entry->digest) : NULL;

        if (secret != NULL)
            r = complain(tree, entry, secret, err);
        else if (is_file(entry))
            r = check_task_file(tree, entry, err);
        else if (entry->type == MANIFEST_LINK && tree->plugins != NULL)
            r = check_link(tree, entry, err);
    }
    return r;
}

static int search_all(const struct task *task, const struct view *view,
                      const struct secrets *secrets, const struct secret_source *source,
                      struct error **err)
{
    const struct collect_source collect = view_collect_source(view);
    const struct plugins *plugins = view_plugins(view);
    struct staged_tree tree = {
        .reader = source->reader,
        .layers = {view_manifest(view), collect.layer_fds, collect.layer_count},
    };

    task_split(task, &tree.half, &tree.secret);
    int r = search(&tree, secrets, err);

    if (r == 0)
        r = staged_history_check(&tree.layers, secrets, source, err);
    tree.plugins = plugins;
    tree.layers = (struct staged_layers){&plugins->layer.manifest, &plugins->layer.tree_fd, 1};
    return r < 0 ? r : search(&tree, secrets, err);
}

int staged_overlap_check(const struct session *session, struct monitor *monitor,
                         const struct task *task, const struct view *view, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(secrets_done) struct secrets secrets = {0};
    scoped(layer_done) struct layer reference = {.tree_fd = -1};

    task_split(task, &public_half, &private_half);
    if (view_manifest(view)->count == 0 && view_plugins(view)->names.count == 0)
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
    if (r < 0)
        return r;
    if (secrets.count > 0)
        qsort(secrets.items, secrets.count, sizeof(*secrets.items), compare);
    return search_all(task, view, &secrets,
                      &(struct secret_source){&session->reader, reference.tree_fd}, err);
}
