#include "cell/request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DISK_BYTES_MIN 4096
#define DISK_BYTES_MAX ((uint64_t)1 << 44)
#define MEMORY_BYTES_MAX ((uint64_t)1 << 50)
#define COUNT_MAX ((uint64_t)1 << 32)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

size_t request_size(uint32_t kind)
{
    switch ((enum request_kind)kind) {
    case REQUEST_START:
    case REQUEST_RECIPE:
        return sizeof(struct request_start);
    case REQUEST_EXEC:
    case REQUEST_CANDIDATE:
        return sizeof(struct request_exec);
    case REQUEST_CGROUPS:
        return sizeof(struct request_cgroups);
    case REQUEST_CONNECT:
    case REQUEST_END:
    case REQUEST_RELEASE:
        return sizeof(struct request_plain);
    }
    return 0;
}

static bool is_terminated(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Absolute, with neither empty, "." nor ".." parts; "/" itself is none. */
static bool is_plain_path(const char *path, size_t size)
{
    if (!is_terminated(path, size) || path[0] != '/')
        return false;
    while (*path == '/') {
        const char *part = path + 1;
        size_t length = strcspn(part, "/");

        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        path = part + length;
    }
    return true;
}

static bool is_at_or_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    return strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool is_place(const char *target)
{
    static const char *const places[] = {CELL_WORKSPACE_PATH, CELL_HOME_PATH, "/tmp", "/dev"};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (is_at_or_below(target, places[i]))
            return true;
    }
    return false;
}

static bool has_type(int position, const int *fds, size_t fd_count, bool directory, bool regular)
{
    struct stat status;

    if (position < 0 || (size_t)position >= fd_count || fstat(fds[position], &status) < 0)
        return false;
    return (directory && S_ISDIR(status.st_mode)) || (regular && S_ISREG(status.st_mode));
}

static bool is_blob(int position, const int *fds, size_t fd_count, uint64_t needed)
{
    struct stat status;

    if (position < 0 || (size_t)position >= fd_count || fstat(fds[position], &status) < 0)
        return false;
    int seals = fcntl(fds[position], F_GET_SEALS);

    return seals >= 0 && (seals & SEALS) == SEALS && (uint64_t)status.st_size >= needed;
}

static bool is_command(const struct wire_command *command, size_t fd_count)
{
    if (command->argc > WIRE_ARGS_COUNT_MAX || command->envc > WIRE_ARGS_COUNT_MAX ||
        command->strings_bytes > CELL_ARGS_BYTES_MAX || command->fd_count > CELL_FDS_MAX ||
        command->controlling_tty > 1)
        return false;
    for (uint32_t i = 0; i < CELL_FDS_MAX; i++) {
        if (command->fds[i] < -1 || command->fds[i] >= (int64_t)fd_count)
            return false;
    }
    if (command->controlling_tty != 0 && (command->fd_count == 0 || command->fds[0] < 0))
        return false;
    return command->cwd[0] == '\0' ||
           (is_terminated(command->cwd, WIRE_CWD_BYTES) && command->cwd[0] == '/');
}

static bool is_mount(const struct wire_mount *mount, uint32_t role, const int *fds, size_t fd_count)
{
    const uint32_t known =
        WIRE_MOUNT_WRITABLE | WIRE_MOUNT_HIDDEN_PARENT | WIRE_MOUNT_NO_DESCRIPTOR | WIRE_MOUNT_OWN;
    const uint32_t workers = WIRE_MOUNT_WRITABLE | WIRE_MOUNT_NO_DESCRIPTOR;

    if ((mount->flags & ~known) != 0 || (role != CELL_WORKER && (mount->flags & workers) != 0))
        return false;
    if (!is_plain_path(mount->target, sizeof(mount->target)) || is_place(mount->target) ||
        is_at_or_below(mount->target, "/proc"))
        return false;
    for (size_t i = 0; i < CELL_MASKS_MAX; i++) {
        if (!is_terminated(mount->masks[i], WIRE_NAME_BYTES) ||
            strchr(mount->masks[i], '/') != NULL || strcmp(mount->masks[i], ".") == 0 ||
            strcmp(mount->masks[i], "..") == 0)
            return false;
    }
    return has_type(mount->fd, fds, fd_count, true, (mount->flags & WIRE_MOUNT_OWN) == 0);
}

static bool is_text(const struct wire_text *text, uint64_t *total)
{
    if (!is_plain_path(text->target, sizeof(text->target)) || is_place(text->target) ||
        text->executable > 1 || text->reserved != 0)
        return false;
    if (is_at_or_below(text->target, "/proc") && strcmp(text->target, "/proc/meminfo") != 0 &&
        strcmp(text->target, "/proc/cpuinfo") != 0)
        return false;
    if (text->size_bytes > WIRE_TEXTS_BYTES_MAX ||
        text->offset > CELL_ARGS_BYTES_MAX + WIRE_TEXTS_BYTES_MAX)
        return false;
    *total += text->size_bytes;
    return *total <= WIRE_TEXTS_BYTES_MAX;
}

static bool are_limits(const struct cell_limits *limits)
{
    return limits->disk_bytes >= DISK_BYTES_MIN && limits->disk_bytes <= DISK_BYTES_MAX &&
           limits->inodes > 0 && limits->inodes <= COUNT_MAX && limits->pids > 0 &&
           limits->pids <= COUNT_MAX && limits->open_files >= 16 &&
           limits->open_files <= COUNT_MAX && limits->memory_bytes <= MEMORY_BYTES_MAX &&
           limits->cpu_millis <= COUNT_MAX &&
           (limits->cpu_millis == 0 || limits->cpu_millis >= CELL_CPU_MILLIS_MIN);
}

/* What only one kind of cell may ask for. */
static bool fits_role(const struct request_start *request, const int *fds, size_t fd_count)
{
    bool none = request->workspace_kind == CELL_WORKSPACE_NONE;
    bool keeps = request->workspace_kind == CELL_WORKSPACE_KEEP ||
                 (request->workspace_kind == CELL_WORKSPACE_SHARED && request->role == CELL_GRADER);

    if (keeps != (request->keep_cell_id != 0) || (keeps && request->layer_count > 0) ||
        request->identity_root > (request->role == CELL_AGENT ? 1 : 0))
        return false;
    if (request->role == CELL_WORKER)
        return none && request->text_count == 0 && request->etc_fd == -1 &&
               request->root_fd == -1 && request->command.argc > 0 && request->layer_count == 0 &&
               has_type(request->program_fd, fds, fd_count, false, true);
    return !none && request->program_fd == -1 && request->collect_cell_id == 0;
}

static int check_start(const struct request_start *request, const int *fds, size_t fd_count)
{
    uint64_t total = 0;

    if (request->ptrace_denied > 1 || request->reserved != 0 ||
        request->layer_count > CELL_LAYERS_MAX || request->mount_count > CELL_MOUNTS_MAX ||
        request->text_count > CELL_TEXTS_MAX || !are_limits(&request->limits) ||
        !is_command(&request->command, fd_count) || !fits_role(request, fds, fd_count))
        return -EBADMSG;
    for (uint32_t i = 0; i < request->layer_count; i++) {
        if (!has_type(request->layer_fds[i], fds, fd_count, true, false))
            return -EBADMSG;
    }
    if ((request->etc_fd != -1 && !has_type(request->etc_fd, fds, fd_count, true, false)) ||
        (request->root_fd != -1 && !has_type(request->root_fd, fds, fd_count, true, false)))
        return -EBADMSG;
    for (uint32_t i = 0; i < request->mount_count; i++) {
        if (!is_mount(&request->mounts[i], request->role, fds, fd_count) ||
            (request->identity_root == 0 && (request->mounts[i].flags & WIRE_MOUNT_OWN) != 0))
            return -EBADMSG;
    }
    for (uint32_t i = 0; i < request->text_count; i++) {
        if (!is_text(&request->texts[i], &total))
            return -EBADMSG;
    }
    uint64_t needed = request_blob_bytes(&request->command, request->texts, request->text_count);

    return is_blob(request->blob_fd, fds, fd_count, needed) ? 0 : -EBADMSG;
}

int request_check_start(const struct request_start *request, const int *fds, size_t fd_count)
{
    if (request->role > CELL_WORKER ||
        request->workspace_kind >
            (request->role == CELL_GRADER ? CELL_WORKSPACE_SHARED : CELL_WORKSPACE_KEEP))
        return -EBADMSG;
    return check_start(request, fds, fd_count);
}

int request_check_recipe(const struct request_start *request, const int *fds, size_t fd_count)
{
    if (request->role != CELL_CANDIDATE || request->workspace_kind != CELL_WORKSPACE_SHARED ||
        request->layer_count > 0 || request->command.argc > 0 ||
        fd_count > WIRE_FDS_MAX - CANDIDATE_FDS_MAX)
        return -EBADMSG;
    int r = check_start(request, fds, fd_count);

    for (uint32_t i = 0; r == 0 && i < request->mount_count; i++)
        r = (request->mounts[i].flags & WIRE_MOUNT_HIDDEN_PARENT) != 0 ? -EBADMSG : 0;
    return r;
}

/* A directory would be a way back to where its other half lies. */
static bool is_stream(int fd)
{
    struct stat status;
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_PATH) == 0 && fstat(fd, &status) == 0 &&
           !S_ISDIR(status.st_mode);
}

int request_check_candidate(const struct request_exec *request, const int *fds, size_t fd_count)
{
    const struct wire_command *command = &request->command;

    if (request->header.cell_id != 0 || fd_count > CANDIDATE_FDS_MAX || command->fd_count > 3 ||
        command->controlling_tty != 0)
        return -EBADMSG;
    int r = request_check_exec(request, fds, fd_count);

    if (r < 0)
        return r;
    if (command->cwd[0] != '\0' && (!is_plain_path(command->cwd, WIRE_CWD_BYTES) ||
                                    !is_at_or_below(command->cwd, CELL_WORKSPACE_PATH)))
        return -EBADMSG;
    for (uint32_t i = 0; i < command->fd_count; i++) {
        if (command->fds[i] >= 0 && !is_stream(fds[command->fds[i]]))
            return -EBADMSG;
    }
    return 0;
}

int request_check_exec(const struct request_exec *request, const int *fds, size_t fd_count)
{
    if (request->reserved != 0 || request->command.argc == 0 ||
        !is_command(&request->command, fd_count))
        return -EBADMSG;
    uint64_t needed = request_blob_bytes(&request->command, NULL, 0);

    return is_blob(request->blob_fd, fds, fd_count, needed) ? 0 : -EBADMSG;
}

uint64_t request_blob_bytes(const struct wire_command *command, const struct wire_text *texts,
                            uint32_t text_count)
{
    uint64_t needed = command->strings_bytes;

    for (uint32_t i = 0; i < text_count; i++) {
        uint64_t end = texts[i].offset + texts[i].size_bytes;

        needed = end > needed ? end : needed;
    }
    return needed;
}

int request_map_blob(int fd, uint64_t size_bytes, const char **ret)
{
    /* At least a byte, so that there is always something to map and to unmap. */
    void *bytes = mmap(NULL, size_bytes > 0 ? size_bytes : 1, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return -errno;
    *ret = bytes;
    return 0;
}
