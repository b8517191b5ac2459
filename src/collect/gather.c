#include "collect/gather.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/gather_internal.h"
#include "collect/tar.h"

#define HASH_BYTES 65536 /* on the stack: never more of it is touched than a file is long */

void gather_remark(struct gather_remarks *remarks, const char *path, const char *reason)
{
    remarks->total++;
    if (remarks->count == GATHER_LISTED_MAX)
        return;
    remarks->items[remarks->count++] =
        (struct gather_remark){.path = str_dup(path), .reason = str_dup(reason)};
}

static void remarks_done(struct gather_remarks *remarks)
{
    for (size_t i = 0; i < remarks->count; i++) {
        free(remarks->items[i].path);
        free(remarks->items[i].reason);
    }
}

static void plan_done(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->items[i].entry.path);
        free(plan->items[i].entry.target);
        free(plan->items[i].lower_path);
    }
    free(plan->items);
}

void gather_freep(struct gather **gather_taken)
{
    struct gather *gather = *gather_taken;

    *gather_taken = NULL;
    if (gather == NULL)
        return;
    plan_done(&gather->plan);
    remarks_done(&gather->refused);
    remarks_done(&gather->notes);
    for (size_t i = 0; i < gather->redirect_count; i++) {
        free(gather->redirects[i].from);
        free(gather->redirects[i].to);
    }
    for (size_t i = 0; i < ARRAY_SIZE(gather->lower); i++)
        free(gather->lower[i]);
    free(gather->redirects);
    free(gather->kept);
    free(gather);
}

const struct gather_remarks *gather_refused(const struct gather *gather)
{
    return &gather->refused;
}

static bool equals_staged(const struct manifest_entry *staged, const struct manifest_entry *entry)
{
    if (staged->type != entry->type)
        return false;
    switch (entry->type) {
    case MANIFEST_LINK:
        return strcmp(staged->target, entry->target) == 0;
    case MANIFEST_DIR:
        return staged->mode == entry->mode;
    case MANIFEST_FILE:
        return staged->mode == entry->mode && staged->size_bytes == entry->size_bytes &&
               sha256_equal(&staged->digest, &entry->digest);
    }
    return false;
}

bool gather_needs_digest(const struct gather *gather, const struct manifest_entry *entry)
{
    const struct manifest_entry *staged = manifest_find(gather->input->staged, entry->path);

    return staged != NULL && staged->type == MANIFEST_FILE && entry->type == MANIFEST_FILE &&
           staged->mode == entry->mode && staged->size_bytes == entry->size_bytes;
}

/* Where a link of the workspace leads, by its text alone; owned. */
static char *link_destination(const struct gather *gather, const struct manifest_entry *entry)
{
    scoped(mem_freep) char *folder = path_dir(entry->path);
    scoped(mem_freep) char *from = path_join(gather->input->root_path, folder);
    scoped(mem_freep) char *joined = path_join(from, entry->target);

    return path_normal(joined);
}

static bool link_may_stay(const struct gather *gather, const struct manifest_entry *entry)
{
    static const char *const readable[] = {"/usr", "/bin", "/lib"};
    scoped(mem_freep) char *to = link_destination(gather, entry);

    if (strcmp(to, "/dev/null") == 0 || manifest_path_below(to, gather->input->root_path))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(readable); i++)
        if (manifest_path_below(to, readable[i]))
            return true;
    return false;
}

/* Why an entry that differs cannot be kept; NULL when it can. */
static const char *objection(const struct gather *gather, const struct manifest_entry *entry)
{
    const struct gather_input *input = gather->input;
    uint64_t max_bytes = input->max_bytes != 0 ? input->max_bytes : GATHER_BYTES_MAX;
    uint64_t max_entries = input->max_entries != 0 ? input->max_entries : GATHER_ENTRIES_MAX;

    if (!tar_text_is_clean(entry->path))
        return "a name with control characters or invalid UTF-8";
    if (gather->plan.count >= max_entries)
        return "too many entries";
    if (gather->plan.name_bytes > GATHER_NAME_BYTES_MAX)
        return "too many bytes of names";
    if (entry->type == MANIFEST_FILE && entry->size_bytes > max_bytes - gather->plan.bytes)
        return "too many bytes";
    if (entry->type != MANIFEST_LINK)
        return NULL;
    if (!tar_text_is_clean(entry->target))
        return "a link text with control characters or invalid UTF-8";
    return link_may_stay(gather, entry) ? NULL : "a link that leads out of the workspace";
}

static void plan_entry(struct gather *gather, const struct manifest_entry *entry, bool modified,
                       const char *lower_path)
{
    struct plan *plan = &gather->plan;

    if (plan->count == plan->capacity) {
        plan->capacity = plan->capacity == 0 ? 64 : 2 * plan->capacity;
        plan->items = mem_resize(plan->items, plan->capacity, sizeof(*plan->items));
    }
    struct planned *planned = &plan->items[plan->count++];

    *planned = (struct planned){.entry = *entry, .modified = modified};
    planned->entry.path = str_dup(entry->path);
    if (entry->target != NULL)
        planned->entry.target = str_dup(entry->target);
    if (lower_path != NULL)
        planned->lower_path = str_dup(lower_path);
    plan->name_bytes += strlen(entry->path) + (entry->target == NULL ? 0 : strlen(entry->target));
    if (entry->type == MANIFEST_FILE)
        plan->bytes += entry->size_bytes;
}

void gather_entry(struct gather *gather, const struct manifest_entry *entry, const char *lower_path)
{
    const struct manifest *staged = gather->input->staged;
    const struct manifest_entry *before = manifest_find(staged, entry->path);
    bool same = before != NULL && equals_staged(before, entry);
    const char *reason = same ? NULL : objection(gather, entry);

    if (reason != NULL) {
        gather_remark(&gather->refused, entry->path, reason);
        return;
    }
    if (before != NULL)
        gather->kept[before - staged->entries] = true;
    if (!same)
        plan_entry(gather, entry, before != NULL, lower_path);
}

static int hash_file(int fd, struct sha256 *ret)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    char bytes[HASH_BYTES];

    for (;;) {
        ssize_t n = read(fd, bytes, HASH_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        sha256_stream_add(stream, bytes, (size_t)n);
    }
    *ret = sha256_stream_end(stream);
    return 0;
}

static int visit_file(struct gather *gather, const struct walk_entry *walked,
                      struct manifest_entry *entry, struct error **err)
{
    scoped(fd_closep) int fd = walk_open_file(walked->parent_fd, walked->name, &walked->status);

    if (fd < 0 && walk_is_system_error(-fd))
        return error_errno(err, -fd, "cannot read the workspace");
    if (fd < 0) {
        gather_remark(&gather->refused, entry->path, strerror(-fd));
        return 0;
    }
    int r = gather_needs_digest(gather, entry) ? hash_file(fd, &entry->digest) : 0;

    if (r < 0)
        return error_errno(err, -r, "cannot read the workspace");
    gather_entry(gather, entry, NULL);
    return 0;
}

static int visit_link(struct gather *gather, const struct walk_entry *walked,
                      struct manifest_entry *entry, struct error **err)
{
    char target[WALK_PATH_BYTES_MAX + 1];
    ssize_t length = readlinkat(walked->parent_fd, walked->name, target, sizeof(target) - 1);

    if (length < 0 && walk_is_system_error(errno))
        return error_errno(err, errno, "cannot read the workspace");
    if (length <= 0) {
        gather_remark(&gather->refused, entry->path, "a link that cannot be read");
        return 0;
    }
    target[length] = '\0';
    entry->target = target;
    entry->mode = 0777;
    entry->size_bytes = (uint64_t)length;
    gather_entry(gather, entry, NULL);
    entry->target = NULL; /* it was borrowed from here */
    return 0;
}

static const char *refused_kind(mode_t mode)
{
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    if (S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode))
        return NULL;
    return "a device";
}

static void note_oddities(struct gather *gather, const struct walk_entry *walked)
{
    const struct stat *status = &walked->status;

    if (!S_ISLNK(status->st_mode) && (status->st_mode & (S_ISUID | S_ISGID)) != 0)
        gather_remark(&gather->notes, walked->path, "its set-id bits were dropped");
    if (S_ISREG(status->st_mode) && status->st_nlink > 1)
        gather_remark(&gather->notes, walked->path, "a hard link, kept as a copy");
}

static bool was_planned(const struct gather *gather, const char *path)
{
    size_t count = gather->plan.count;

    return count > 0 && strcmp(gather->plan.items[count - 1].entry.path, path) == 0;
}

static int visit_dir(struct gather *gather, const struct walk_entry *walked,
                     struct manifest_entry *entry, struct error **err)
{
    gather_entry(gather, entry, NULL);
    const struct manifest_entry *staged = manifest_find(gather->input->staged, entry->path);

    /* Neither kept nor planned: refused, and all below it. */
    if (!(staged != NULL && gather->kept[staged - gather->input->staged->entries]) &&
        !was_planned(gather, entry->path))
        return WALK_SKIP;
    if (gather->input->kind == WORKSPACE_TREE)
        return WALK_ENTER;
    int r = gather_overlay_dir(gather, walked, err);

    return r < 0 ? r : WALK_ENTER;
}

static int visit(void *context, const struct walk_entry *walked, struct error **err)
{
    struct gather *gather = context;
    mode_t mode = walked->status.st_mode;
    bool is_upper = gather->input->kind != WORKSPACE_TREE;
    scoped(mem_freep) char *path = str_dup(walked->path);
    struct manifest_entry entry = {.path = path, .mode = mode & MANIFEST_MODE_BITS};

    if (is_upper && gather_is_whiteout(walked))
        return WALK_SKIP; /* what it covers is not marked as kept */
    if (refused_kind(mode) != NULL) {
        gather_remark(&gather->refused, path, refused_kind(mode));
        return WALK_SKIP;
    }
    note_oddities(gather, walked);
    if (S_ISDIR(mode)) {
        entry.type = MANIFEST_DIR;
        return visit_dir(gather, walked, &entry, err);
    }
    if (S_ISLNK(mode)) {
        entry.type = MANIFEST_LINK;
        return visit_link(gather, walked, &entry, err);
    }
    int r = is_upper ? gather_overlay_file(gather, walked, err) : 0;

    if (r < 0)
        return r;
    entry.type = MANIFEST_FILE;
    entry.size_bytes = (uint64_t)walked->status.st_size;
    return visit_file(gather, walked, &entry, err);
}

static int enter(void *context, const char *path, const struct str_list *names, struct error **err)
{
    (void)err;
    gather_overlay_through(context, path, names);
    return 0;
}

static int refuse(void *context, const char *path, int errno_value, const char *reason,
                  struct error **err)
{
    struct gather *gather = context;

    if (walk_is_system_error(errno_value))
        return error_errno(err, errno_value, "cannot read the workspace");
    gather_remark(&gather->refused, *path == '\0' ? "." : path, reason);
    return 0;
}

static int compare_remarks(const void *a, const void *b)
{
    const struct gather_remark *x = a, *y = b;
    int order = manifest_path_compare(x->path, y->path);

    return order != 0 ? order : strcmp(x->reason, y->reason);
}

static void sort_remarks(struct gather_remarks *remarks)
{
    if (remarks->count > 1)
        qsort(remarks->items, remarks->count, sizeof(*remarks->items), compare_remarks);
}

static int compare_planned(const void *a, const void *b)
{
    const struct planned *x = a, *y = b;

    return manifest_path_compare(x->entry.path, y->entry.path);
}

static struct gather *gather_new(const struct gather_input *input)
{
    struct gather *gather = mem_new(1, sizeof(*gather));

    gather->input = input;
    gather->kept = mem_new(size_max(input->staged->count, 1), sizeof(*gather->kept));
    gather->lower[0] = str_dup("");
    return gather;
}

void gather_nothing(const struct gather_input *input, struct gather **ret)
{
    struct gather *gather = gather_new(input);

    for (size_t i = 0; i < input->staged->count; i++)
        gather->kept[i] = true;
    *ret = gather;
}

int gather_find(const struct gather_input *input, struct gather **ret, struct error **err)
{
    scoped(gather_freep) struct gather *gather = gather_new(input);
    bool is_upper = input->kind != WORKSPACE_TREE;
    struct walk walk = {
        .context = gather,
        .visit = visit,
        .enter = is_upper ? enter : NULL,
        .refuse = refuse,
    };

    int r = is_upper ? gather_overlay_check(gather, err) : 0;

    if (r == 0)
        r = walk_tree(input->workspace_fd, &walk, err);
    if (r < 0)
        return r;
    if (gather->plan.count > 1)
        qsort(gather->plan.items, gather->plan.count, sizeof(*gather->plan.items), compare_planned);
    sort_remarks(&gather->refused);
    sort_remarks(&gather->notes);
    *ret = take(gather);
    return 0;
}
