#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "run/leak_scan.h"
#include "run/staged_overlap_internal.h"
#include "task/task_private.h"
#include "task/task_public.h"

/* While an index is made. */
struct making {
    struct leak_scan *scan;
    const struct task_public *public_half;
    const struct task_private *private_half;
    struct staged_layers staged;
    struct fingerprint_index *index;
    uint64_t bytes; /* of the texts so far */
};

/* A path as people of the suite know it; points into it. */
static const char *short_name(const struct making *making, const char *path)
{
    const char *root = making->private_half->suite_root;

    if (root == NULL || !manifest_path_below(path, root) || str_equal(path, root))
        return path;
    path += strlen(root);
    return path + strspn(path, "/");
}

/* --- one file ----------------------------------------------------------------------------------
 */

static void add_reading(void *context, const char *how, const char *text, size_t size)
{
    (void)how;
    fingerprint_file_add(context, text, size);
}

/* What an archive holds is private, too. */
static int add_members(struct making *making, const struct buf *text, struct error **err)
{
    struct leak_opener *opener = &making->scan->opener;
    const struct readings readings = {.visit = add_reading, .context = making->index};
    scoped(buf_done) struct buf members = {0};

    if (opener->monitor == NULL || reading_archive_kind(buf_text(text), text->size_bytes) == NULL)
        return 0;
    int r = leak_unpack(opener, text->data, text->size_bytes, &members, err);

    /* Heads and names of members among their contents do no harm. */
    if (r == 0)
        fingerprint_file_add(making->index, buf_text(&members), members.size_bytes);
    return r < 0 ? r : readings_each(&readings, buf_text(&members), members.size_bytes, err);
}

/* What the agent gets at the same path anyway; path is relative to its workspace. */
static int subtract_staged(struct making *making, const char *path, struct error **err)
{
    const struct manifest_entry *entry = manifest_find(making->staged.manifest, path);
    scoped(buf_done) struct buf text = {0};

    if (entry == NULL || entry->type != MANIFEST_FILE ||
        entry->size_bytes > FINGERPRINT_FILE_BYTES_MAX)
        return 0;
    scoped(fd_closep) int fd = staged_layers_open(&making->staged, path);

    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, "the staged '%s' cannot be opened", path);
    int r = fs_read_fd(fd, path, FINGERPRINT_FILE_BYTES_MAX, &text, err);

    if (r == 0)
        fingerprint_file_subtract(making->index, buf_text(&text), text.size_bytes);
    return r;
}

static void subtract_text(struct fingerprint_index *index, const char *text)
{
    if (text != NULL)
        fingerprint_file_subtract(index, text, strlen(text));
}

/* Each item, and where one follows the other, as in the task file. */
static void subtract_list(struct fingerprint_index *index, const struct str_list *list)
{
    scoped(buf_done) struct buf joined = {0};

    for (size_t i = 0; i < list->count; i++)
        buf_format(&joined, "%s\n", list->items[i]);
    subtract_text(index, buf_text(&joined));
}

/* What the author gives to the agent in so many words: a task file says all of it. */
static void subtract_declared(struct making *making)
{
    const struct task_public *half = making->public_half;
    const struct task_simulation *user = making->private_half->simulation;

    subtract_text(making->index, half->prompt);
    subtract_text(making->index, half->agent.system_prompt);
    subtract_text(making->index, half->agent.claude_settings);
    for (size_t i = 0; user != NULL && i < user->script.count; i++)
        subtract_text(making->index, user->script.items[i]);
    subtract_list(making->index, &half->agent.env);
    subtract_list(making->index, &half->agent.command);
    for (size_t i = 0; i < half->source_count; i++)
        for (size_t k = 0; k < half->sources[i].file_count; k++)
            subtract_text(making->index, half->sources[i].files[k].content);
}

/* An index takes ten times the memory of its texts. Named, so that nobody takes it for searched. */
static int leave_out(struct making *making, const char *name)
{
    str_list_add_take(making->scan->left_out, str_format(LEAK_PRIVATE_PREFIX "%s", name));
    return 0;
}

static int add_text(struct making *making, const char *name, const struct buf *text,
                    struct error **err)
{
    if (making->bytes + text->size_bytes > LEAK_PRIVATE_BYTES_MAX)
        return leave_out(making, name);
    making->bytes += text->size_bytes;
    if (fingerprint_file_count(making->index) == FINGERPRINT_FILES_MAX)
        return error_set(err, ERROR_LIMIT, "more than %zu private files", FINGERPRINT_FILES_MAX);
    (void)fingerprint_file_begin(making->index, name);
    fingerprint_file_add(making->index, buf_text(text), text->size_bytes);
    return add_members(making, text, err);
}

/* --- the parts of the private half -------------------------------------------------------------
 */

static int add_host_file(struct making *making, const char *path, size_t max_bytes,
                         struct error **err)
{
    const struct task_reader *reader = &making->scan->session->reader;
    struct stat status;
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = reader->open(reader->context, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno_as(err, ERROR_TASK, -fd, "cannot open '%s'", path);
    if (fstat(fd, &status) == 0 && (uint64_t)status.st_size > max_bytes)
        return leave_out(making, short_name(making, path));
    size_t before = fingerprint_file_count(making->index);
    int r = leak_read(fd, path, FINGERPRINT_FILE_BYTES_MAX, &text, err);

    if (r == 0)
        r = add_text(making, short_name(making, path), &text, err);
    if (r == 0 && fingerprint_file_count(making->index) > before)
        subtract_declared(making);
    return r;
}

static int add_host_files(struct making *making, struct error **err)
{
    const struct str_list *files = &making->private_half->private_files;
    int r = add_host_file(making, making->private_half->task_file, TASK_BYTES_MAX, err);

    /* A dataset's file is of all its rows, and would be read for each. */
    for (size_t i = 0; r == 0 && i < files->count; i++)
        r = add_host_file(making, files->items[i], LEAK_SHARED_BYTES_MAX, err);
    return r;
}

static int add_staged_file(struct making *making, int tree_fd, const char *path, const char *name,
                           struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = fs_open_beneath(tree_fd, path, O_RDONLY, 0, FS_NO_LINKS);

    if (fd < 0)
        return error_errno(err, -fd, "the staged '%s' cannot be opened", path);
    int r = leak_read(fd, path, FINGERPRINT_FILE_BYTES_MAX, &text, err);

    return r < 0 ? r : add_text(making, name, &text, err);
}

static int add_tree(struct making *making, const struct layer *reference, struct error **err)
{
    const struct task_private *half = making->private_half;
    bool is_dir = half->reference_dir != NULL;
    const char *root = short_name(making, is_dir ? half->reference_dir : half->reference_file);
    int r = 0;

    for (size_t i = 0; r == 0 && i < reference->manifest.count; i++) {
        const struct manifest_entry *entry = &reference->manifest.entries[i];
        scoped(mem_freep) char *name = is_dir ? path_join(root, entry->path) : str_dup(root);

        if (entry->type != MANIFEST_FILE || entry->size_bytes == 0)
            continue;
        size_t before = fingerprint_file_count(making->index);

        r = add_staged_file(making, reference->tree_fd, entry->path, name, err);
        if (r == 0 && fingerprint_file_count(making->index) > before)
            r = subtract_staged(making, entry->path, err);
    }
    return r;
}

static int add_reference(struct making *making, struct error **err)
{
    const struct task_private *half = making->private_half;
    const struct private_source source = {
        .reference_dir = half->reference_dir,
        .reference_file = half->reference_file,
    };
    const struct private_stage *stage = making->scan->private_stage;
    scoped(layer_done) struct layer reference = {.tree_fd = -1};

    if (source.reference_dir == NULL && source.reference_file == NULL)
        return 0;
    if (stage != NULL && stage->has_reference)
        return add_tree(making, &stage->reference, err);
    int r = private_reference_make(making->scan->session->store, making->scan->control,
                                   &making->scan->session->reader, &source, &reference, err);

    return r < 0 ? r : add_tree(making, &reference, err);
}

/* --- the task's folder -------------------------------------------------------------------------
 */

static bool is_below_any(const char *path, const struct str_list *folders)
{
    for (size_t i = 0; i < folders->count; i++)
        if (manifest_path_below(path, folders->items[i]))
            return true;
    return false;
}

/* What the root of the agent's cell is made of lies open to it. */
static bool is_of_root(const struct task_root *root, const char *path)
{
    const char *slash = root->image == NULL ? NULL : strchr(root->image, '/');
    /* Without its tag. */
    scoped(mem_freep) char *image = slash == NULL ? NULL : str_ndup(slash, strcspn(slash, ":"));

    return (root->rootfs != NULL && manifest_path_below(path, root->rootfs)) ||
           (image != NULL && manifest_path_below(path, image)) ||
           is_below_any(path, &root->expose) || is_below_any(path, &root->python.packages) ||
           is_below_any(path, &root->node.packages);
}

/* Whether a public field declares the file, by its absolute path. */
static bool is_declared(const struct making *making, const char *path)
{
    const struct task_public *half = making->public_half;
    const struct task_private *private_half = making->private_half;

    if (str_equal(half->agent.script, path) || str_equal(private_half->task_file, path) ||
        str_list_has(&private_half->private_files, path))
        return true;
    for (size_t i = 0; i < half->source_count; i++)
        if (half->sources[i].path != NULL && manifest_path_below(path, half->sources[i].path))
            return true;
    for (size_t i = 0; i < half->agent.plugin_count; i++)
        if (manifest_path_below(path, half->agent.plugins[i].path) &&
            !str_equal(half->agent.plugins[i].path, private_half->task_dir) &&
            !manifest_path_below(private_half->task_dir, half->agent.plugins[i].path))
            return true;
    return is_of_root(&half->root, path) ||
           (private_half->reference_dir != NULL &&
            manifest_path_below(path, private_half->reference_dir)) ||
           str_equal(private_half->reference_file, path);
}

/* All that commands and criteria say, in which names of files are looked for. */
static void collect_words(const struct task_private *half, struct buf *ret)
{
    for (size_t i = 0; i < half->criterion_count; i++)
        if (half->criteria[i].params != NULL)
            json_write_line(ret, half->criteria[i].params);
    for (size_t i = 0; i < half->pre_run_count; i++)
        buf_text_append(ret, half->pre_run[i].command);
    for (size_t i = 0; i < half->post_run_count; i++)
        buf_text_append(ret, half->post_run[i].command);
}

/* The files of the folder, as indices of the suite's manifest: first and one past the last. */
static size_t folder_end(const struct manifest *manifest, const char *folder, size_t first)
{
    if (str_equal(folder, "."))
        return manifest->count;
    while (first < manifest->count && manifest_path_below(manifest->entries[first].path, folder))
        first++;
    return first;
}

/* A folder with another YAML file may be that of other tasks, too: not all in it is ours. */
static bool is_of_one_task(const struct making *making, size_t first, size_t end)
{
    const struct manifest *manifest = &making->scan->private_stage->suite.manifest;

    for (size_t i = first; i < end; i++) {
        const struct manifest_entry *entry = &manifest->entries[i];
        scoped(mem_freep) char *path = NULL;

        if (entry->type != MANIFEST_FILE ||
            (!str_ends(entry->path, ".yaml") && !str_ends(entry->path, ".yml")))
            continue;
        path = path_join(making->private_half->suite_root, entry->path);
        if (!is_declared(making, path) && !str_equal(path, making->private_half->task_file))
            return false;
    }
    return end - first <= LEAK_FOLDER_FILES_MAX;
}

/* Whether the words name a file: by its path from the folder, or from the suite's root. */
static bool is_named(const struct buf *words, const char *path, const char *folder)
{
    const char *rest = str_equal(folder, ".") ? path : path + strlen(folder) + 1;

    return strstr(buf_text(words), rest) != NULL || strstr(buf_text(words), path) != NULL;
}

static int add_folder(struct making *making, struct error **err)
{
    const struct private_stage *stage = making->scan->private_stage;
    scoped(buf_done) struct buf words = {0};
    int r = 0;

    if (stage == NULL || !stage->has_suite)
        return 0;
    const struct manifest *manifest = &stage->suite.manifest;
    const char *folder = stage->task_dir_in_suite;
    size_t first = str_equal(folder, ".") ? 0 : manifest_lower_bound(manifest, folder);
    size_t end = folder_end(manifest, folder, first);
    bool takes_all = is_of_one_task(making, first, end);

    collect_words(making->private_half, &words);
    for (size_t i = first; r == 0 && i < end; i++) {
        const struct manifest_entry *entry = &manifest->entries[i];
        scoped(mem_freep) char *path = path_join(making->private_half->suite_root, entry->path);

        if (entry->type != MANIFEST_FILE || entry->size_bytes == 0 || is_declared(making, path))
            continue;
        if (!takes_all && !is_named(&words, entry->path, folder))
            continue;
        size_t before = fingerprint_file_count(making->index);

        r = add_staged_file(making, stage->suite.tree_fd, entry->path, entry->path, err);
        if (r == 0 && fingerprint_file_count(making->index) > before)
            subtract_declared(making);
    }
    return r;
}

int leak_index_make(struct leak_scan *scan, struct fingerprint_index **ret, struct error **err)
{
    const struct collect_source collect = view_collect_source(scan->view);
    scoped(fingerprint_index_freep) struct fingerprint_index *index = fingerprint_index_new();
    struct making making = {
        .scan = scan,
        .staged = {view_manifest(scan->view), collect.layer_fds, collect.layer_count},
        .index = index,
    };

    task_split(scan->task, &making.public_half, &making.private_half);
    if (scan->keeps_texts)
        fingerprint_index_keep_texts(index);
    int r = add_host_files(&making, err);

    if (r == 0)
        r = add_reference(&making, err);
    if (r == 0)
        r = add_folder(&making, err);
    if (r < 0)
        return r;
    fingerprint_index_seal(index);
    *ret = take(index);
    return 0;
}
