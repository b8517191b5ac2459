#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/mocks.h"
#include "stage/plugins.h"
#include "stage/repo.h"
#include "stage/stage.h"

#define MEMORY_MB_SHOWN 8192

struct view {
    struct layer *layers; /* first at the bottom */
    size_t layer_count;
    bool layered;
    struct manifest manifest; /* composed */
    struct sha256 root;
    struct root *agent_root, *grader_root;
    struct plugins plugins;
    struct mocks_staged mocks;
    struct cell_limits limits;
    bool best_effort, agent_is_root;
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
    plugins_done(&view->plugins);
    mocks_staged_done(&view->mocks);
    root_free(view->agent_root);
    root_free(view->grader_root);
    free(view->meminfo);
    free(view->cpuinfo);
    free(view);
}

static struct view *view_new(void)
{
    struct view *view = mem_new(1, sizeof(*view));

    view->plugins.layer.tree_fd = -1;
    mocks_staged_init(&view->mocks);
    return view;
}

void view_freep(struct view **view)
{
    view_free(*view);
    *view = NULL;
}

static struct cell_limits cell_limits_of(const struct task_limits *limits)
{
    return (struct cell_limits){
        .disk_bytes = limits->max_disk_mb << 20,
        .inodes = limits->max_inodes,
        .pids = limits->max_pids,
        .memory_bytes = limits->max_memory_mb << 20,
        .cpu_millis = limits->max_cpu_millis,
    };
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

static int stage_starter_files(const struct view_source *from, const struct task_source *source,
                               struct layer *ret, struct error **err)
{
    scoped(mem_freep) struct store_file *items = mem_new(source->file_count + 1, sizeof(*items));
    scoped(str_list_done) struct str_list sealed = {0};
    bool whole =
        from->task->mocks_sealed && mocks_in_source(from->task, source->mount_point, &sealed);
    struct store_files files = {.items = items,
                                .executable = &from->task->mock_dirs,
                                .mount_point =
                                    source->mount_point != NULL ? source->mount_point : "."};

    for (size_t i = 0; i < source->file_count && !whole; i++) {
        if (!from->task->mocks_sealed || !mocks_hold(&sealed, source->files[i].path))
            items[files.count++] = (struct store_file){.path = source->files[i].path,
                                                       .content = source->files[i].content};
    }
    return store_add_files(from->store, STORE_PUBLIC, &files, ret, err);
}

static int stage_source(const struct view_source *from, const struct task_source *source,
                        struct layer *ret, struct error **err)
{
    scoped(fd_closep) int fd = -1;

    if (source->kind == SOURCE_STARTER_FILES)
        return stage_starter_files(from, source, ret, err);
    if (source->kind == SOURCE_REPO)
        return repo_add(&(struct repo_source){.store = from->store,
                                              .monitor = from->monitor,
                                              .reader = from->reader,
                                              .source = source},
                        ret, err);
    scoped(str_list_done) struct str_list sealed = {0};

    /* All of it is sealed: what is visible of it is nothing. */
    if (from->task->mocks_sealed && mocks_in_source(from->task, source->mount_point, &sealed))
        return store_add_files(from->store, STORE_PUBLIC, &(struct store_files){.mount_point = "."},
                               ret, err);
    int r = open_source(from->reader, source, &fd, err);

    if (r < 0)
        return r;
    struct store_source stored = {
        .fd = fd,
        .label = source->path,
        .mount_point = source->mount_point != NULL ? source->mount_point : ".",
        .ignore = &from->task->ignore_patterns,
        .leave_out = from->task->mocks_sealed ? &sealed : NULL,
        .executable = &from->task->mock_dirs,
    };

    return store_add(from->store, STORE_PUBLIC, from->monitor, &stored, ret, err);
}

static int stage_plugins(const struct view_source *from, struct plugins *ret, struct error **err)
{
    const struct plugins_source source = {
        .store = from->store,
        .monitor = from->monitor,
        .reader = from->reader,
        .agent = &from->task->agent,
    };

    return plugins_make(&source, ret, err);
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

/* What a program sizes its pools by: the limit; without one plausible and the same everywhere. */
static char *meminfo_of(uint64_t limit_mb)
{
    unsigned long long total = (limit_mb > 0 ? limit_mb : MEMORY_MB_SHOWN) * 1024;

    return str_format("MemTotal:       %8llu kB\n"
                      "MemFree:        %8llu kB\n"
                      "MemAvailable:   %8llu kB\n"
                      "Buffers:               0 kB\n"
                      "Cached:         %8llu kB\n"
                      "SwapCached:            0 kB\n"
                      "SwapTotal:             0 kB\n"
                      "SwapFree:              0 kB\n"
                      "Shmem:                 0 kB\n",
                      total, total / 4 * 3, total / 8 * 7, total / 8);
}

/* As many processors as the limit has whole ones, and no more than there are. */
static char *cpuinfo_of(uint64_t limit_millis)
{
    scoped(buf_done) struct buf cpus = {0};
    uint64_t count = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), wanted = (limit_millis + 999) / 1000;

    count = wanted > 0 && wanted < count ? wanted : count;
    for (uint64_t i = 0; i < count; i++)
        buf_format(&cpus, "processor\t: %llu\nmodel name\t: CPU\ncpu cores\t: %llu\n\n",
                   (unsigned long long)i, (unsigned long long)count);
    return buf_take(&cpus);
}

static void set_limits(struct view *view, const struct task_limits *limits)
{
    view->limits = cell_limits_of(limits);
    view->best_effort = limits->best_effort;
    view->meminfo = meminfo_of(limits->max_memory_mb);
    view->cpuinfo = cpuinfo_of(limits->max_cpu_millis);
}

/* What every view has: two roots, limits; then it is sealed. */
static int complete(struct view *view, const struct view_source *source,
                    const struct task_limits *limits, struct error **err)
{
    struct root_source from = {.store = source->store,
                               .monitor = source->monitor,
                               .reader = source->reader,
                               .unpack_program = source->unpack_program,
                               .expose = source->agent_expose};
    const struct task_root *agent = source->task != NULL ? &source->task->root : NULL;
    int r = root_build(&from, agent, &view->agent_root, err);

    from.expose = NULL;
    if (r == 0)
        r = root_build(&from, source->grader_root, &view->grader_root, err);
    if (r < 0)
        return r;
    view->agent_is_root = source->task != NULL && source->task->identity_root;
    set_limits(view, limits);
    seal(view);
    return 0;
}

int view_build(const struct view_source *source, struct view **ret, struct error **err)
{
    scoped(view_freep) struct view *view = view_new();
    const struct task_public *task = source->task;
    static const struct task_limits defaults;

    for (size_t i = 0; task != NULL && i < task->source_count; i++) {
        struct layer layer = {.tree_fd = -1};
        int r = stage_source(source, &task->sources[i], &layer, err);

        if (r < 0)
            return r;
        push_layer(view, &layer);
    }
    int r = merge_surplus(view, source->store, err);

    if (r == 0 && task != NULL)
        r = stage_plugins(source, &view->plugins, err);
    if (r == 0)
        r = complete(view, source, task != NULL ? &task->limits : &defaults, err);
    if (r == 0 && task != NULL && (task->mocks_sealed || task->mock_tools.count > 0))
        r = mocks_stage(source, &view->manifest, &view->mocks, err);
    if (r < 0)
        return r;
    *ret = take(view);
    return 0;
}

int view_build_empty(struct store *store, struct view **ret, struct error **err)
{
    return view_build(&(struct view_source){.store = store}, ret, err);
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
    int r = complete(view, &(struct view_source){.store = store}, limits, err);

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

int view_sealed_mocks(const struct view *view)
{
    return view->mocks.sealed.tree_fd;
}

int view_mock_tools(const struct view *view)
{
    return view->mocks.tools.tree_fd;
}

const struct plugins *view_plugins(const struct view *view)
{
    return &view->plugins;
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

static void add_text(struct cell_spec *spec, const char *target, const char *text)
{
    ASSERT(spec->text_count < CELL_TEXTS_MAX);
    spec->texts[spec->text_count++] =
        (struct cell_text){.target = target, .bytes = text, .size_bytes = strlen(text)};
}

/* Who installs packages needs the accounts that these count on; the ids are a system's fixed ones.
 */
static const char packages_passwd[] =
    "root:x:0:0:root:/home/agent:/bin/sh\n"
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nbin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
    "sys:x:3:3:sys:/dev:/usr/sbin/nologin\ngames:x:5:60:games:/usr/games:/usr/sbin/nologin\n"
    "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\nmail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
    "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
    "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char packages_group[] =
    "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nmail:x:8:\nman:x:"
    "12:\n"
    "www-data:x:33:\nsrc:x:40:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\ngames:x:60:\nusers:x:100:\n"
    "nogroup:x:65534:\n";

static void add_accounts(struct cell_spec *spec)
{
    add_text(spec, "/etc/passwd",
             spec->identity_root ? packages_passwd
                                 : "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    add_text(spec, "/etc/group",
             spec->identity_root ? packages_group : "root:x:0:\nnogroup:x:65534:\n");
}

static void add_texts(const struct view *view, struct cell_spec *spec)
{
    add_accounts(spec);
    add_text(spec, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 cell\n");
    /* A name server that refuses at once: a look-up fails fast instead of waiting. */
    add_text(spec, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    add_text(spec, "/etc/nsswitch.conf",
             "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
             "services: files\nprotocols: files\n");
    add_text(spec, "/etc/hostname", "cell\n");
    add_text(spec, "/proc/meminfo", view->meminfo);
    add_text(spec, "/proc/cpuinfo", view->cpuinfo);
    if (spec->identity_root)
        add_text(spec, "/var/log/dpkg.log", "");
}

static void add_workspace(const struct view *view, struct cell_spec *spec)
{
    spec->workspace.kind = view->layered ? CELL_WORKSPACE_OVERLAY : CELL_WORKSPACE_COPY;
    spec->workspace.layer_count = view->layer_count;
    for (size_t i = 0; i < view->layer_count; i++)
        spec->workspace.layer_fds[i] = view->layers[i].tree_fd;
}

const struct root *view_system(const struct view *view, enum cell_role role)
{
    return role == CELL_GRADER ? view->grader_root : view->agent_root;
}

void view_fit_limits(const struct view *view, const struct monitor *monitor,
                     struct cell_limits *limits)
{
    const struct monitor_facts *facts = monitor_facts(monitor);

    if (!view->best_effort)
        return;
    if ((facts->limits & 1u << CELL_CGROUP_MEMORY) == 0)
        limits->memory_bytes = 0;
    if ((facts->limits & 1u << CELL_CGROUP_CPU) == 0)
        limits->cpu_millis = 0;
}

int view_fill_cell(const struct view *view, const struct monitor *monitor, enum cell_role role,
                   struct cell_spec *spec, struct error **err)
{
    if (role == CELL_WORKER)
        return error_set(err, ERROR_BUG, "a worker's cell has no view");
    spec->role = role;
    spec->identity_root = role == CELL_AGENT && view->agent_is_root;
    root_fill_cell(view_system(view, role), spec);
    if (role == CELL_GRADER && monitor != NULL)
        spec->mounts[spec->mount_count++] = monitor_worker_mount(monitor);
    if (role == CELL_GRADER && monitor != NULL && monitor_candidate_mount(monitor).fd >= 0)
        spec->mounts[spec->mount_count++] = monitor_candidate_mount(monitor);
    if (role != CELL_GRADER && view->plugins.layer.tree_fd >= 0) {
        ASSERT(spec->mount_count < CELL_MOUNTS_MAX);
        spec->mounts[spec->mount_count++] =
            (struct cell_mount){.fd = view->plugins.layer.tree_fd, .target = PLUGINS_PATH};
    }
    add_texts(view, spec);
    add_workspace(view, spec);
    spec->limits = view->limits;
    if (monitor != NULL)
        view_fit_limits(view, monitor, &spec->limits);
    return 0;
}

json_t *view_systems_json(const struct view *view)
{
    json_t *json = json_object();

    json_t *agent = root_to_json(view->agent_root);

    if (view->plugins.names.count > 0)
        json_put(agent, "plugins", plugins_to_json(&view->plugins));
    json_put(json, "agent", agent);
    json_put(json, "grading", root_to_json(view->grader_root));
    return json;
}

/* In place of the one of the same name. */
static void cell_env_set(struct str_list *env, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->items[i], variable, name) != 0)
            continue;
        free(env->items[i]);
        env->items[i] = str_dup(variable);
        return;
    }
    str_list_add(env, variable);
}

void view_env(const struct view *view, enum cell_role role, struct str_list *ret,
              const char **ret_cwd)
{
    static const char workspace[] = "/workspace/";
    const struct root *root = view_system(view, role);
    const char *workdir = root_workdir(root);

    cell_env_default(ret);
    if (role == CELL_AGENT && view->agent_is_root) {
        cell_env_set(ret, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        cell_env_set(ret, "USER=root");
    }
    root_add_env(root, ret);
    if (role == CELL_AGENT && view->plugins.names.count > 0)
        str_list_add_take(ret, plugins_variable(&view->plugins));
    if (ret_cwd == NULL || !str_starts(workdir, workspace))
        return;
    const struct manifest_entry *entry =
        manifest_find(&view->manifest, workdir + strlen(workspace));

    if (entry != NULL && entry->type == MANIFEST_DIR)
        *ret_cwd = workdir;
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
