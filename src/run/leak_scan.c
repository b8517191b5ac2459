#include "run/leak_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "run/leak_roots.h"
#include "run/staged_overlap_internal.h"
#include "stage/plugins.h"
#include "task/task_public.h"

#define READ_BYTES ((size_t)256 << 10)
#define UNPACKED_BYTES_MAX ((size_t)128 << 20) /* contents, and names of them all */

int leak_unpack(void *context, const char *bytes, size_t size, struct buf *ret, struct error **err)
{
    const struct leak_opener *opener = context;
    scoped(fd_closep) int archive_fd = -1;
    int r = fs_memfd("archive", bytes, size, &archive_fd, err);

    if (r < 0)
        return r;
    const struct worker_job job = {
        .args = (const char *const[]){"members", NULL},
        .fds = {-1, -1, -1, archive_fd},
        .fd_count = 4,
        .output_max_bytes = UNPACKED_BYTES_MAX,
        .program_fd = &opener->program_fd,
        .timeout_ms = LEAK_UNPACK_TIMEOUT_MS,
    };

    return worker_run(opener->monitor, &job, ret, err);
}

int leak_read(int fd, const char *name, size_t max_bytes, struct buf *ret, struct error **err)
{
    scoped(mem_freep) char *piece = mem_new(READ_BYTES, 1);

    while (ret->size_bytes < max_bytes) {
        ssize_t n = read(fd, piece, size_min(READ_BYTES, max_bytes - ret->size_bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s'", name);
        if (n == 0)
            break;
        buf_append(ret, piece, (size_t)n);
    }
    return 0;
}

/* --- what the agent is given -------------------------------------------------------------------
 */

struct looking {
    struct leak_search *search;
    struct leaks *leaks;
};

static int look_at_text(const struct looking *looking, const char *place, const char *text,
                        struct error **err)
{
    return text == NULL
               ? 0
               : leak_search_text(looking->search, place, text, strlen(text), looking->leaks, err);
}

static void unmap(void *bytes, size_t size)
{
    (void)munmap(bytes, size); /* cannot fail for what was mapped */
}

static int look_at_file(const struct looking *looking, const struct staged_layers *layers,
                        const struct manifest_entry *entry, const char *place, struct error **err)
{
    size_t size = size_min(entry->size_bytes, LEAK_FILE_BYTES_MAX);
    scoped(fd_closep) int fd = staged_layers_open(layers, entry->path);

    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, "the staged '%s' cannot be opened", entry->path);
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);

    if (bytes == MAP_FAILED)
        return error_errno(err, errno, "cannot read the staged '%s'", entry->path);
    int r = leak_search_text(looking->search, place, bytes, size, looking->leaks, err);

    unmap(bytes, size);
    return r;
}

/* Names are read, too: a listing alone may tell an answer. */
static int look_at_tree(const struct looking *looking, const struct staged_layers *layers,
                        const char *name, struct error **err)
{
    scoped(buf_done) struct buf names = {0};
    scoped(mem_freep) char *names_place = str_format("names of the %s", name);
    int r = 0;

    for (size_t i = 0; r == 0 && i < layers->manifest->count; i++) {
        const struct manifest_entry *entry = &layers->manifest->entries[i];
        scoped(mem_freep) char *place = str_format("%s: %s", name, entry->path);

        buf_format(&names, "%s\n%s\n", entry->path, entry->target != NULL ? entry->target : "");
        if (entry->type == MANIFEST_FILE && entry->size_bytes > 0)
            r = look_at_file(looking, layers, entry, place, err);
    }
    return r < 0 ? r : look_at_text(looking, names_place, buf_text(&names), err);
}

static int look_at_texts(const struct looking *looking, const struct task_public *half,
                         struct error **err)
{
    scoped(buf_done) struct buf environment = {0};
    const struct {
        const char *place, *text;
    } texts[] = {
        {"the prompt", half->prompt},
        {"the system prompt", half->agent.system_prompt},
        {"claude_settings", half->agent.claude_settings},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
        r = look_at_text(looking, texts[i].place, texts[i].text, err);
    for (size_t i = 0; i < half->agent.env.count; i++)
        buf_format(&environment, "%s\n", half->agent.env.items[i]);
    for (size_t i = 0; i < half->agent.command.count; i++)
        buf_format(&environment, "%s\n", half->agent.command.items[i]);
    return r < 0 ? r
                 : look_at_text(looking, "the environment and the command line",
                                buf_text(&environment), err);
}

void leak_view_done(struct leak_view *view)
{
    leaks_done(&view->leaks);
    fingerprint_marks_free(view->seen);
    *view = (struct leak_view){.seen = NULL};
}

int leak_scan_view(struct leak_scan *scan, const struct fingerprint_index *index,
                   struct leak_view *ret, struct error **err)
{
    const struct collect_source collect = view_collect_source(scan->view);
    const struct plugins *plugins = view_plugins(scan->view);
    const struct staged_layers workspace = {view_manifest(scan->view), collect.layer_fds,
                                            collect.layer_count};
    const struct staged_layers projected = {&plugins->layer.manifest, &plugins->layer.tree_fd, 1};
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(leak_search_freep) struct leak_search *search =
        leak_search_new(index, scan->opener.monitor == NULL ? NULL : leak_unpack, &scan->opener);
    const struct looking looking = {search, &ret->leaks};

    task_split(scan->task, &public_half, &private_half);
    int r = look_at_tree(&looking, &workspace, "workspace", err);

    if (r == 0)
        r = look_at_tree(&looking, &projected, "plugins", err);
    if (r == 0)
        r = look_at_texts(&looking, public_half, err);
    if (r == 0)
        r = leak_roots_search(scan, search, &ret->leaks, scan->left_out, err);
    if (r == 0)
        ret->seen = leak_search_take_seen(search);
    return r;
}
