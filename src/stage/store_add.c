#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "collect/tree.h"
#include "stage/internal.h"

#define KEY_TEXT_BYTES_MAX 256
/* In every key: a change of what staging does must not find what an older version staged. */
#define KEY_FORMAT "closedbook/stage/1"

/* A source with its limits filled in, and the two keys it may be found by. */
struct request {
    struct store *store;
    enum store_half half;
    struct monitor *monitor;
    const struct store_source *source;
    struct tree_rules rules;
    struct sha256 memo_key, stat_key;
    bool has_stat_key;
};

static void hash_text(struct sha256_stream *stream, const char *text)
{
    sha256_stream_add(stream, text == NULL ? "" : text, text == NULL ? 1 : strlen(text) + 1);
}

static void hash_list(struct sha256_stream *stream, const struct str_list *list)
{
    size_t count = list == NULL ? 0 : list->count;

    sha256_stream_add(stream, &count, sizeof(count));
    for (size_t i = 0; i < count; i++)
        hash_text(stream, list->items[i]);
}

/* How the source is staged, and something that tells it from others. */
static struct sha256 key_of(const struct request *request, const void *identity, size_t size)
{
    const struct store_source *source = request->source;
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    const uint8_t flags[] = {
        (uint8_t)request->half, source->skip_runs,    source->keep_links,
        source->public_only,    source->only != NULL,
    };

    hash_text(stream, KEY_FORMAT);
    hash_text(stream, source->mount_point);
    hash_text(stream, source->file_name);
    hash_list(stream, source->ignore);
    hash_list(stream, source->leave_out);
    hash_list(stream, source->hollow);
    hash_list(stream, source->only);
    hash_list(stream, source->executable);
    sha256_stream_add(stream, flags, sizeof(flags));
    sha256_stream_add(stream, identity, size);
    return sha256_stream_end(stream);
}

static size_t memo_index(const struct store *store, const struct sha256 *key)
{
    size_t low = 0, high = store->memo_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(store->memos[middle].key.bytes, key->bytes, SHA256_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct memo *store_memo_find(const struct store *store, const struct sha256 *key)
{
    size_t i = memo_index(store, key);

    return i < store->memo_count && sha256_equal(&store->memos[i].key, key) ? &store->memos[i]
                                                                            : NULL;
}

void store_memo_add(struct store *store, const struct sha256 *key, const struct sha256 *root)
{
    size_t i = memo_index(store, key);

    if (store_memo_find(store, key) != NULL)
        return;
    store->memos = mem_resize(store->memos, store->memo_count + 1, sizeof(*store->memos));
    memmove(store->memos + i + 1, store->memos + i,
            (store->memo_count - i) * sizeof(*store->memos));
    store->memos[i] = (struct memo){.key = *key, .root = *root};
    store->memo_count++;
}

static void add_list(struct str_list *args, const char *name, const struct str_list *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        str_list_add_take(args, str_format("%s=%s", name, list->items[i]));
}

static void rules_to_args(const struct tree_rules *rules, struct str_list *args)
{
    add_list(args, "--ignore", rules->ignore);
    add_list(args, "--leave-out", rules->leave_out);
    add_list(args, "--hollow", rules->hollow);
    add_list(args, "--only", rules->only);
    add_list(args, "--executable", rules->executable);
    if (rules->skip_runs)
        str_list_add(args, "--skip-runs");
    if (rules->keep_links)
        str_list_add(args, "--keep-links");
    if (rules->public_only)
        str_list_add(args, "--public-only");
    str_list_add_take(args,
                      str_format("--max-entries=%llu", (unsigned long long)rules->max_entries));
    str_list_add_take(args, str_format("--max-bytes=%llu", (unsigned long long)rules->max_bytes));
}

static int run_worker(const struct request *request, const struct str_list *args,
                      const struct draft *draft, struct buf *ret, struct error **err)
{
    bool single = request->source->file_name != NULL;
    struct worker_job job = {
        .args = (const char *const *)args->items,
        .fds = {-1, -1, -1, single ? request->source->fd : -1},
        .fd_count = single ? 4 : 3,
        .output_max_bytes = DRAFT_ANSWER_BYTES_MAX,
    };

    if (!single)
        job.mounts[job.mount_count++] = (struct cell_mount){.fd = request->source->fd};
    if (draft != NULL)
        job.mounts[job.mount_count++] = (struct cell_mount){.fd = draft->fd, .writable = true};
    return worker_run(request->monitor, &job, ret, err);
}

/* "DIGEST NEWEST_NS\n" */
static int parse_stat_key(const char *text, struct sha256 *ret, uint64_t *ret_newest_ns,
                          struct error **err)
{
    char digest[KEY_TEXT_BYTES_MAX];
    const char *space = strchr(text, ' ');

    if (space != NULL && (size_t)(space - text) < sizeof(digest)) {
        memcpy(digest, text, (size_t)(space - text));
        digest[space - text] = '\0';
        scoped(mem_freep) char *number = str_ndup(space + 1, strcspn(space + 1, "\n"));

        if (sha256_parse(digest, ret) && str_to_u64(number, ret_newest_ns))
            return 0;
    }
    return error_set(err, ERROR_BUG, "the worker's answer makes no sense");
}

static int stat_source(const struct request *request, struct sha256 *ret, uint64_t *ret_newest_ns,
                       struct error **err)
{
    scoped(str_list_done) struct str_list args = {0};
    scoped(buf_done) struct buf answer = {.max_bytes = DRAFT_ANSWER_BYTES_MAX};

    if (request->monitor == NULL)
        return tree_stat_key(request->source->fd, &request->rules, ret, ret_newest_ns, err);
    str_list_add(&args, "stat-key");
    rules_to_args(&request->rules, &args);
    int r = run_worker(request, &args, NULL, &answer, err);

    return r < 0 ? r : parse_stat_key(buf_text(&answer), ret, ret_newest_ns, err);
}

/*
 * The key by which an unchanged source is found again. It counts only when the newest change is
 * older than the clock's last tick: a change within that tick would not show in the times.
 */
static int make_stat_key(struct request *request, struct error **err)
{
    struct timespec before;
    struct sha256 stat_digest;
    uint64_t newest_ns = 0;

    /* A single file costs no more to copy; private entries have no keys. */
    if (request->half == STORE_PRIVATE || request->source->file_name != NULL)
        return 0;
    if (clock_gettime(CLOCK_REALTIME_COARSE, &before) < 0)
        return error_errno(err, errno, "cannot read the clock");
    int r = stat_source(request, &stat_digest, &newest_ns, err);

    if (r < 0)
        return r;
    uint64_t before_ns = (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec;

    request->has_stat_key = newest_ns < before_ns;
    request->stat_key = key_of(request, stat_digest.bytes, SHA256_BYTES);
    return 0;
}

static int find(const struct request *request, const struct sha256 *root, struct layer *ret,
                struct error **err)
{
    const struct lookup lookup = {
        .half = request->half, .root = root, .tree_only = request->source->tree_only};

    return store_find(request->store, &lookup, ret, err);
}

/* 0: found; 1: not. A key that leads nowhere is as good as none. */
static int find_by_stat_key(struct request *request, struct layer *ret, struct error **err)
{
    char name[SHA256_HEX_CHARS + 1];
    struct sha256 root;

    if (!request->has_stat_key)
        return 1;
    sha256_format(&request->stat_key, name);
    return store_key_read(request->store, name, &root) != 0 ? 1 : find(request, &root, ret, err);
}

static int save_stat_key(const struct request *request, const struct sha256 *root,
                         struct error **err)
{
    char name[SHA256_HEX_CHARS + 1];

    if (!request->has_stat_key)
        return 0;
    sha256_format(&request->stat_key, name);
    return store_key_save(request->store, name, root, err);
}

static int copy_here(const struct request *request, const struct draft *draft, struct sha256 *ret,
                     struct error **err)
{
    const struct store_source *source = request->source;
    scoped(manifest_done) struct manifest manifest = {0};
    struct tree_copy copy = {
        .mount_point = source->mount_point,
        .file_name = source->file_name,
        .sync = request->half == STORE_PUBLIC,
    };
    int r = tree_add(source->fd, draft->fd, &request->rules, &copy, &manifest, err);

    if (r == 0)
        *ret = manifest_root(&manifest);
    return r;
}

static int copy_in_worker(const struct request *request, const struct draft *draft,
                          struct sha256 *ret, struct error **err)
{
    const struct store_source *source = request->source;
    scoped(str_list_done) struct str_list args = {0};
    scoped(buf_done) struct buf answer = {.max_bytes = DRAFT_ANSWER_BYTES_MAX};

    str_list_add(&args, "add");
    rules_to_args(&request->rules, &args);
    str_list_add_take(&args, str_format("--mount-point=%s", source->mount_point));
    if (source->file_name != NULL)
        str_list_add_take(&args, str_format("--file=%s", source->file_name));
    if (request->half == STORE_PUBLIC)
        str_list_add(&args, "--sync");
    int r = run_worker(request, &args, draft, &answer, err);

    return r < 0 ? r : draft_answer(&answer, ret, err);
}

static int add_copy(const struct request *request, struct layer *ret, struct error **err)
{
    scoped(draft_done) struct draft draft = {.lease = LEASE_NONE, .fd = -1};
    struct sha256 root;
    int r = draft_start(request->store, request->half, &draft, err);

    if (r == 0)
        r = request->monitor == NULL ? copy_here(request, &draft, &root, err)
                                     : copy_in_worker(request, &draft, &root, err);
    if (r == 0)
        r = draft_publish(&draft, &root, ret, err);
    return r;
}

static int find_or_add(struct request *request, struct layer *ret, struct error **err)
{
    const struct memo *memo = store_memo_find(request->store, &request->memo_key);
    int r = memo == NULL ? 1 : find(request, &memo->root, ret, err);

    if (r <= 0)
        return r;
    r = make_stat_key(request, err);
    if (r == 0)
        r = find_by_stat_key(request, ret, err);
    if (r == 1) {
        r = add_copy(request, ret, err);
        if (r == 0)
            r = save_stat_key(request, &ret->root, err);
    }
    if (r == 0)
        store_memo_add(request->store, &request->memo_key, &ret->root);
    return r;
}

int store_add(struct store *store, enum store_half half, struct monitor *monitor,
              const struct store_source *source, struct layer *ret, struct error **err)
{
    scoped(layer_done) struct layer layer = {.tree_fd = -1};
    struct request request = {
        .store = store,
        .half = half,
        .monitor = monitor,
        .source = source,
        .rules =
            {
                .ignore = source->ignore,
                .leave_out = source->leave_out,
                .hollow = source->hollow,
                .only = source->only,
                .executable = source->executable,
                .skip_runs = source->skip_runs,
                .keep_links = source->keep_links,
                .public_only = source->public_only,
                .max_entries = source->max_entries != 0 ? source->max_entries : STORE_ENTRIES_MAX,
                .max_bytes = source->max_bytes != 0 ? source->max_bytes : STORE_BYTES_MAX,
            },
    };
    struct stat status;

    if (fstat(source->fd, &status) < 0)
        return error_errno(err, errno, "cannot stage '%s'", source->label);
    const uint64_t identity[] = {status.st_dev, status.st_ino};

    request.memo_key = key_of(&request, identity, sizeof(identity));
    int r = find_or_add(&request, &layer, err);

    if (r < 0)
        return error_wrap(err, r, "cannot stage '%s'", source->label);
    *ret = layer;
    layer = (struct layer){.tree_fd = -1};
    return 0;
}

int store_add_collected(const struct collected *from, struct layer *ret, struct error **err)
{
    scoped(draft_done) struct draft draft = {.lease = LEASE_NONE, .fd = -1};
    scoped(buf_done) struct buf answer = {.max_bytes = DRAFT_ANSWER_BYTES_MAX};
    struct sha256 root;
    int r = draft_start(from->store, STORE_PUBLIC, &draft, err);

    if (r < 0)
        return r;
    const struct worker_job job = {
        .args = from->args,
        .mounts = {{.fd = draft.fd, .writable = true}},
        .mount_count = 1,
        .collect_cell_id = cell_id(from->cell),
        .output_max_bytes = DRAFT_ANSWER_BYTES_MAX,
    };

    r = worker_run(from->monitor, &job, &answer, err);
    if (r == 0)
        r = draft_answer(&answer, &root, err);
    return r < 0 ? r : draft_publish(&draft, &root, ret, err);
}
