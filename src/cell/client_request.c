#include "cell/client.h"

#include <errno.h>

#include "base/fs.h"

#define MIB ((uint64_t)1 << 20)
/* As task-format.md, "sandbox.limits". */
#define DEFAULT_DISK_BYTES (2048 * MIB)
#define DEFAULT_INODES 200000
#define DEFAULT_PIDS 1024
#define DEFAULT_OPEN_FILES 65536

static int copy_text(char *to, size_t size, const char *from, const char *what, struct error **err)
{
    size_t length = strlen(from);

    if (length >= size)
        return error_set(err, ERROR_LIMIT, "%s is longer than %zu bytes: '%s'", what, size - 1,
                         from);
    memcpy(to, from, length + 1);
    return 0;
}

static uint32_t add_strings(struct buf *blob, const char *const *strings)
{
    uint32_t count = 0;

    for (; strings != NULL && strings[count] != NULL; count++)
        buf_append(blob, strings[count], strlen(strings[count]) + 1);
    return count;
}

int client_fill_command(const struct cell_command *command, struct wire_command *wire,
                        struct wire_fds *fds, struct buf *blob, struct error **err)
{
    ASSERT(command->fd_count <= CELL_FDS_MAX && blob->size_bytes == 0);
    for (size_t i = 0; i < CELL_FDS_MAX; i++)
        wire->fds[i] = -1;
    if (command->argv == NULL)
        return 0;
    wire->argc = add_strings(blob, command->argv);
    wire->envc = add_strings(blob, command->envp);
    wire->strings_bytes = blob->size_bytes;
    if (wire->argc == 0)
        return error_set(err, ERROR_BUG, "a command without a name");
    if (blob->size_bytes > CELL_ARGS_BYTES_MAX || wire->argc > WIRE_ARGS_COUNT_MAX ||
        wire->envc > WIRE_ARGS_COUNT_MAX)
        return error_set(err, ERROR_LIMIT, "arguments and environment of '%s' are too large",
                         command->argv[0]);
    wire->fd_count = (uint32_t)command->fd_count;
    wire->controlling_tty = command->controlling_tty;
    for (size_t i = 0; i < command->fd_count; i++)
        wire->fds[i] = wire_fds_add(fds, command->fds[i]);
    if (command->cwd == NULL)
        return 0;
    return copy_text(wire->cwd, sizeof(wire->cwd), command->cwd, "a working directory", err);
}

static int fill_mount(const struct cell_mount *mount, struct wire_mount *wire, struct wire_fds *fds,
                      struct error **err)
{
    int r = copy_text(wire->target, sizeof(wire->target), mount->target, "a mount point", err);

    wire->fd = wire_fds_add(fds, mount->fd);
    wire->flags = (mount->writable ? WIRE_MOUNT_WRITABLE : 0u) |
                  (mount->hidden_parent ? WIRE_MOUNT_HIDDEN_PARENT : 0u);
    for (size_t i = 0; i < CELL_MASKS_MAX && r == 0; i++) {
        if (mount->masks[i] != NULL)
            r = copy_text(wire->masks[i], WIRE_NAME_BYTES, mount->masks[i], "a masked name", err);
    }
    return r;
}

/* The loader and libraries of a worker that is not static. */
static int add_worker_roots(const struct monitor *monitor, struct request_start *request,
                            struct wire_fds *fds, struct error **err)
{
    static const char *const targets[] = {"/usr", "/lib", "/lib64", "/lib32"};

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        if (monitor->root_fds[i] < 0)
            continue;
        if (request->mount_count == CELL_MOUNTS_MAX)
            return error_set(err, ERROR_LIMIT, "a worker with too many mounts");
        struct wire_mount *wire = &request->mounts[request->mount_count++];
        const struct cell_mount mount = {.fd = monitor->root_fds[i], .target = targets[i]};
        int r = fill_mount(&mount, wire, fds, err);

        if (r < 0)
            return r;
        wire->flags |= WIRE_MOUNT_NO_DESCRIPTOR;
    }
    return 0;
}

static int fill_texts(const struct cell_spec *spec, struct request_start *request, struct buf *blob,
                      struct error **err)
{
    for (size_t i = 0; i < spec->text_count; i++) {
        const struct cell_text *text = &spec->texts[i];
        struct wire_text *wire = &request->texts[i];
        int r = copy_text(wire->target, sizeof(wire->target), text->target, "a file's path", err);

        if (r < 0)
            return r;
        wire->offset = blob->size_bytes;
        wire->size_bytes = text->size_bytes;
        wire->executable = text->executable;
        buf_append(blob, text->bytes, text->size_bytes);
    }
    request->text_count = (uint32_t)spec->text_count;
    if (blob->overflowed)
        return error_set(err, ERROR_LIMIT, "the cell's synthesised files are too large");
    return 0;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static void fill_limits(const struct cell_limits *limits, struct cell_limits *wire)
{
    *wire = (struct cell_limits){
        .disk_bytes = or_default(limits->disk_bytes, DEFAULT_DISK_BYTES),
        .inodes = or_default(limits->inodes, DEFAULT_INODES),
        .pids = or_default(limits->pids, DEFAULT_PIDS),
        .open_files = or_default(limits->open_files, DEFAULT_OPEN_FILES),
        .file_bytes = limits->file_bytes,
        .memory_bytes = limits->memory_bytes,
        .cpu_millis = limits->cpu_millis,
    };
}

static void fill_workspace(const struct cell_spec *spec, struct request_start *request,
                           struct wire_fds *fds)
{
    const struct cell_workspace *workspace = &spec->workspace;

    request->workspace_kind = workspace->kind;
    request->layer_count = (uint32_t)workspace->layer_count;
    request->keep_cell_id =
        workspace->kind == CELL_WORKSPACE_KEEP || workspace->kind == CELL_WORKSPACE_SHARED
            ? workspace->keep_cell_id
            : 0;
    request->collect_cell_id = spec->collect_cell_id;
    for (size_t i = 0; i < CELL_LAYERS_MAX; i++) {
        request->layer_fds[i] =
            i < workspace->layer_count ? wire_fds_add(fds, workspace->layer_fds[i]) : -1;
    }
}

int client_seal_blob(const struct buf *blob, int *ret, struct error **err)
{
    return fs_memfd("cell", buf_text(blob), blob->size_bytes, ret, err);
}

int client_fill_start(const struct monitor *monitor, const struct cell_spec *spec,
                      struct request_start *request, struct wire_fds *fds, int *ret_blob,
                      struct error **err)
{
    scoped(buf_done) struct buf blob = {.max_bytes = CELL_ARGS_BYTES_MAX + WIRE_TEXTS_BYTES_MAX};
    bool is_worker = spec->role == CELL_WORKER;
    int r = client_fill_command(&spec->command, &request->command, fds, &blob, err);

    ASSERT(spec->mount_count <= CELL_MOUNTS_MAX && spec->text_count <= CELL_TEXTS_MAX &&
           spec->workspace.layer_count <= CELL_LAYERS_MAX);
    request->header = (struct request_header){.magic = PROTOCOL_MAGIC, .kind = REQUEST_START};
    request->role = spec->role;
    request->ptrace_denied = spec->ptrace_denied;
    request->identity_root = spec->identity_root;
    request->etc_fd = is_worker ? -1 : wire_fds_add(fds, spec->etc_fd);
    request->root_fd = spec->has_root ? wire_fds_add(fds, spec->root_fd) : -1;
    request->program_fd =
        !is_worker
            ? -1
            : wire_fds_add(fds, spec->program_fd != NULL ? *spec->program_fd : monitor->worker_fd);
    fill_limits(&spec->limits, &request->limits);
    fill_workspace(spec, request, fds);
    request->mount_count = (uint32_t)spec->mount_count;
    for (size_t i = 0; i < spec->mount_count && r == 0; i++)
        r = fill_mount(&spec->mounts[i], &request->mounts[i], fds, err);
    for (size_t i = 0; i < spec->mount_count && spec->identity_root; i++)
        request->mounts[i].flags |= spec->mounts[i].own ? WIRE_MOUNT_OWN : 0u;
    if (r == 0 && is_worker && (monitor->worker_is_dynamic || spec->program_fd != NULL))
        r = add_worker_roots(monitor, request, fds, err);
    if (r == 0)
        r = fill_texts(spec, request, &blob, err);
    if (r == 0)
        r = client_seal_blob(&blob, ret_blob, err);
    if (r < 0)
        return r;
    request->blob_fd = wire_fds_add(fds, *ret_blob);
    if (fds->overflowed)
        return error_set(err, ERROR_LIMIT, "a cell with more than %d descriptors", WIRE_FDS_MAX);
    return 0;
}
