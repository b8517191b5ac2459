#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/stage.h"

#define USR_MASKS_MAX CELL_MASKS_MAX
#define PATH_BYTES 4096

/* Directories of the root that are trees of their own where /usr is not merged. */
static const char *const root_dirs[] = {"/bin", "/sbin", "/lib", "/lib64"};
#define ROOT_DIRS ARRAY_SIZE(root_dirs)

struct view {
    struct layer *layers; /* first at the bottom */
    size_t layer_count;
    bool layered;
    struct manifest manifest; /* composed */
    struct sha256 root;
    struct layer etc;
    int usr_fd;
    int root_dir_fds[ROOT_DIRS]; /* -1: a link into /usr */
    char *masks[USR_MASKS_MAX];
    size_t mask_count;
    struct cell_limits limits;
    char *meminfo, *cpuinfo;
};

void view_free(struct view *view)
{
    if (view == NULL)
        return;
    for (size_t i = 0; i < view->layer_count; i++)
        layer_done(&view->layers[i]);
    free(view->layers);
    manifest_done(&view->manifest);
    layer_done(&view->etc);
    fd_closep(&view->usr_fd);
    for (size_t i = 0; i < ROOT_DIRS; i++)
        fd_closep(&view->root_dir_fds[i]);
    for (size_t i = 0; i < view->mask_count; i++)
        free(view->masks[i]);
    free(view->meminfo);
    free(view->cpuinfo);
    free(view);
}

void view_freep(struct view **view)
{
    view_free(*view);
    *view = NULL;
}

static void add_mask(struct view *view, const char *name, size_t length)
{
    scoped(mem_freep) char *mask = str_ndup(name, length);

    for (size_t i = 0; i < view->mask_count; i++)
        if (strcmp(view->masks[i], mask) == 0)
            return;
    if (view->mask_count < USR_MASKS_MAX)
        view->masks[view->mask_count++] = take(mask);
}

/* The prefix that this program was installed below, when it is a directory of its own in /usr. */
static void mask_own_prefix(struct view *view)
{
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length <= 0)
        return;
    path[length] = '\0';
    if (!str_starts(path, "/usr/"))
        return;
    const char *name = path + strlen("/usr/");
    size_t size = strcspn(name, "/");
    static const char *const shared[] = {"bin", "sbin", "lib", "lib64", "libexec", "share"};

    for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
        if (strlen(shared[i]) == size && strncmp(name, shared[i], size) == 0)
            return; /* the system's own: hiding it would hide the system */
    add_mask(view, name, size);
}

static int open_system(struct view *view, struct error **err)
{
    view->usr_fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (view->usr_fd < 0)
        return error_errno(err, errno, "cannot open /usr");
    for (size_t i = 0; i < ROOT_DIRS; i++) {
        struct stat status;

        if (lstat(root_dirs[i], &status) < 0 || !S_ISDIR(status.st_mode))
            continue;
        view->root_dir_fds[i] = open(root_dirs[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (view->root_dir_fds[i] < 0)
            return error_errno(err, errno, "cannot open %s", root_dirs[i]);
    }
    add_mask(view, "local", strlen("local"));
    add_mask(view, "src", strlen("src"));
    mask_own_prefix(view);
    return 0;
}

static struct cell_limits cell_limits_of(const struct task_limits *limits)
{
    return (struct cell_limits){
        .disk_bytes = limits->max_disk_mb << 20,
        .inodes = limits->max_inodes,
        .pids = limits->max_pids,
    };
}

static struct view *view_new(void)
{
    struct view *view = mem_new(1, sizeof(*view));

    view->usr_fd = -1;
    view->etc.tree_fd = -1;
    for (size_t i = 0; i < ROOT_DIRS; i++)
        view->root_dir_fds[i] = -1;
    return view;
}

static void push_layer(struct view *view, struct layer *layer)
{
    view->layers = mem_resize(view->layers, view->layer_count + 1, sizeof(*view->layers));
    view->layers[view->layer_count++] = *layer;
    *layer = (struct layer){.tree_fd = -1};
}

static int open_source(const struct task_reader *reader, const struct task_source *source, int *ret,
                       struct error **err)
{
    int fd = reader->open(reader->context, source->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES)
        return error_set(err, ERROR_TASK, "cannot stage '%s': %s", source->path, strerror(-fd));
    if (fd < 0)
        return error_errno(err, -fd, "cannot stage '%s'", source->path);
    *ret = fd;
    return 0;
}

static int stage_starter_files(struct store *store, const struct task_source *source,
                               struct layer *ret, struct error **err)
{
    scoped(mem_freep) struct store_file *items = mem_new(source->file_count + 1, sizeof(*items));
    struct store_files files = {.items = items,
                                .count = source->file_count,
                                .mount_point =
                                    source->mount_point != NULL ? source->mount_point : "."};

    for (size_t i = 0; i < source->file_count; i++)
        items[i] =
            (struct store_file){.path = source->files[i].path, .content = source->files[i].content};
    return store_add_files(store, STORE_PUBLIC, &files, ret, err);
}

/* What staging a task's sources needs. */
struct staging {
    struct store *store;
    struct monitor *monitor;
    const struct task_reader *reader;
    const struct task_public *task;
};

static int stage_source(const struct staging *staging, const struct task_source *source,
                        struct layer *ret, struct error **err)
{
    scoped(fd_closep) int fd = -1;

    if (source->kind == SOURCE_STARTER_FILES)
        return stage_starter_files(staging->store, source, ret, err);
    int r = open_source(staging->reader, source, &fd, err);

    if (r < 0)
        return r;
    struct store_source stored = {
        .fd = fd,
        .label = source->path,
        .mount_point = source->mount_point != NULL ? source->mount_point : ".",
        .ignore = &staging->task->ignore_patterns,
    };

    return store_add(staging->store, STORE_PUBLIC, staging->monitor, &stored, ret, err);
}

/* Overlays and cells take only so many layers: the last ones become one. */
static int merge_surplus(struct view *view, struct store *store, struct error **err)
{
    size_t kept = STAGE_LAYERS_MAX - 1;
    struct layer merged = {.tree_fd = -1};

    if (view->layer_count <= STAGE_LAYERS_MAX)
        return 0;
    int r = store_merge(store, STORE_PUBLIC, view->layers + kept, view->layer_count - kept, &merged,
                        err);

    if (r < 0)
        return r;
    while (view->layer_count > kept)
        layer_done(&view->layers[--view->layer_count]);
    push_layer(view, &merged);
    return 0;
}

/* Composes the layers and decides how the workspace is made from them. */
static void seal(struct view *view)
{
    for (size_t i = 0; i < view->layer_count; i++) {
        struct manifest below = view->manifest;

        view->manifest = (struct manifest){0};
        manifest_compose(&below, &view->layers[i].manifest, &view->manifest);
        manifest_done(&below);
    }
    view->root = manifest_root(&view->manifest);
    view->layered = view->manifest.bytes > STAGE_COPY_BYTES_MAX ||
                    view->manifest.count > STAGE_COPY_ENTRIES_MAX;
}

static void set_limits(struct view *view, const struct task_limits *limits)
{
    view->limits = cell_limits_of(limits);
    /* Plausible and the same on every machine: what a program sizes its pools by. */
    view->meminfo = str_dup("MemTotal:        8388608 kB\n"
                            "MemFree:         6291456 kB\n"
                            "MemAvailable:    7340032 kB\n"
                            "Buffers:          131072 kB\n"
                            "Cached:          1048576 kB\n"
                            "SwapCached:            0 kB\n"
                            "SwapTotal:             0 kB\n"
                            "SwapFree:              0 kB\n"
                            "Shmem:                 0 kB\n");
    scoped(buf_done) struct buf cpus = {0};
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    for (long i = 0; i < count; i++)
        buf_format(&cpus, "processor\t: %ld\nmodel name\t: CPU\ncpu cores\t: %ld\n\n", i, count);
    view->cpuinfo = buf_take(&cpus);
}

/* What every view has: the system, /etc, limits; then it is sealed. */
static int complete(struct view *view, struct store *store, const struct task_limits *limits,
                    struct error **err)
{
    int r = open_system(view, err);

    if (r == 0)
        r = etc_tree(store, &view->etc, err);
    if (r < 0)
        return r;
    set_limits(view, limits);
    seal(view);
    return 0;
}

int view_build(struct store *store, struct monitor *monitor, const struct task_reader *reader,
               const struct task_public *task, struct view **ret, struct error **err)
{
    scoped(view_freep) struct view *view = view_new();
    const struct staging staging = {
        .store = store, .monitor = monitor, .reader = reader, .task = task};

    for (size_t i = 0; i < task->source_count; i++) {
        struct layer layer = {.tree_fd = -1};
        int r = stage_source(&staging, &task->sources[i], &layer, err);

        if (r < 0)
            return r;
        push_layer(view, &layer);
    }
    int r = merge_surplus(view, store, err);

    if (r == 0)
        r = complete(view, store, &task->limits, err);
    if (r < 0)
        return r;
    *ret = take(view);
    return 0;
}

int view_build_empty(struct store *store, struct view **ret, struct error **err)
{
    static const struct task_limits defaults;
    scoped(view_freep) struct view *view = view_new();
    int r = complete(view, store, &defaults, err);

    if (r == 0)
        *ret = take(view);
    return r;
}

int view_restore(struct store *store, const json_t *layers, const struct task_limits *limits,
                 struct view **ret, struct error **err)
{
    scoped(view_freep) struct view *view = view_new();
    size_t count = json_array_size(layers);

    if (count > STAGE_LAYERS_MAX)
        return error_set(err, ERROR_SYSTEM, "the record names %zu layers", count);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_get_text(json_array_get(layers, i), "root");
        struct layer layer = {.tree_fd = -1};
        struct sha256 root;

        if (text == NULL || !sha256_parse(text, &root))
            return error_set(err, ERROR_SYSTEM, "the record's layer %zu has no digest", i);
        int r = store_get(store, STORE_PUBLIC, &root, &layer, err);

        if (r < 0)
            return r;
        push_layer(view, &layer);
    }
    int r = complete(view, store, limits, err);

    if (r == 0)
        *ret = take(view);
    return r;
}

const struct manifest *view_manifest(const struct view *view)
{
    return &view->manifest;
}

struct sha256 view_root(const struct view *view)
{
    return view->root;
}

bool view_is_layered(const struct view *view)
{
    return view->layered;
}

json_t *view_layers_json(const struct view *view)
{
    json_t *layers = json_array();

    for (size_t i = 0; i < view->layer_count; i++) {
        const struct layer *layer = &view->layers[i];
        char hex[SHA256_HEX_CHARS + 1];
        json_t *item = json_object();

        sha256_format(&layer->root, hex);
        scoped(mem_freep) char *root = str_format("sha256:%s", hex);

        json_put_text(item, "root", root);
        json_put_int(item, "files", (int64_t)layer->files);
        json_put_int(item, "bytes", (int64_t)layer->bytes);
        json_push(layers, item);
    }
    return layers;
}

struct collect_source view_collect_source(const struct view *view)
{
    struct collect_source source = {.staged = &view->manifest, .layer_count = view->layer_count};

    ASSERT(view->layer_count <= ARRAY_SIZE(source.layer_fds));
    for (size_t i = 0; i < view->layer_count; i++)
        source.layer_fds[i] = view->layers[i].tree_fd;
    return source;
}

static void add_mount(struct cell_spec *spec, int fd, const char *target)
{
    ASSERT(spec->mount_count < CELL_MOUNTS_MAX);
    spec->mounts[spec->mount_count++] = (struct cell_mount){.fd = fd, .target = target};
}

static void add_text(struct cell_spec *spec, const char *target, const char *text)
{
    ASSERT(spec->text_count < CELL_TEXTS_MAX);
    spec->texts[spec->text_count++] =
        (struct cell_text){.target = target, .bytes = text, .size_bytes = strlen(text)};
}

static void add_texts(const struct view *view, struct cell_spec *spec)
{
    add_text(spec, "/etc/passwd",
             "root:x:0:0:root:/root:/usr/sbin/nologin\n"
             "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    add_text(spec, "/etc/group", "root:x:0:\nnogroup:x:65534:\n");
    add_text(spec, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 cell\n");
    /* A name server that refuses at once: a look-up fails fast instead of waiting. */
    add_text(spec, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    add_text(spec, "/etc/nsswitch.conf",
             "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
             "services: files\nprotocols: files\n");
    add_text(spec, "/etc/hostname", "cell\n");
    add_text(spec, "/proc/meminfo", view->meminfo);
    add_text(spec, "/proc/cpuinfo", view->cpuinfo);
}

static void add_workspace(const struct view *view, struct cell_spec *spec)
{
    spec->workspace.kind = view->layered ? CELL_WORKSPACE_OVERLAY : CELL_WORKSPACE_COPY;
    spec->workspace.layer_count = view->layer_count;
    for (size_t i = 0; i < view->layer_count; i++)
        spec->workspace.layer_fds[i] = view->layers[i].tree_fd;
}

int view_fill_cell(const struct view *view, const struct monitor *monitor, enum cell_role role,
                   struct cell_spec *spec, struct error **err)
{
    if (role == CELL_WORKER)
        return error_set(err, ERROR_BUG, "a worker's cell has no view");
    spec->role = role;
    add_mount(spec, view->usr_fd, "/usr");
    for (size_t i = 0; i < view->mask_count; i++)
        spec->mounts[spec->mount_count - 1].masks[i] = view->masks[i];
    for (size_t i = 0; i < ROOT_DIRS; i++)
        if (view->root_dir_fds[i] >= 0)
            add_mount(spec, view->root_dir_fds[i], root_dirs[i]);
    if (role == CELL_GRADER && monitor != NULL)
        spec->mounts[spec->mount_count++] = monitor_worker_mount(monitor);
    spec->etc_fd = view->etc.tree_fd;
    add_texts(view, spec);
    add_workspace(view, spec);
    spec->limits = view->limits;
    return 0;
}

void cell_env_default(struct str_list *ret)
{
    static const char *const items[] = {
        "PATH=/usr/bin:/bin", "HOME=/home/agent", "LANG=C.UTF-8",  "TERM=dumb",
        "TMPDIR=/tmp",        "USER=agent",       "SHELL=/bin/sh",
    };

    for (size_t i = 0; i < ARRAY_SIZE(items); i++)
        str_list_add(ret, items[i]);
}
