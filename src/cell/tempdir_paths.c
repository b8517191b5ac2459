#include "cell/tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define LINK_BYTES 4096

/* The path of the host that a descriptor names; false when it has none. */
static bool host_path(int fd, char ret[static LINK_BYTES])
{
    scoped(mem_freep) char *name = str_format("/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, ret, LINK_BYTES - 1);

    if (n <= 0 || ret[0] != '/')
        return false;
    ret[n] = '\0';
    return true;
}

/* /etc, /proc and the like are the host's. */
static bool is_synthesised(const char *target)
{
    return str_starts(target, "/etc/") || str_starts(target, "/proc/");
}

static bool is_elsewhere(const struct wire_mount *mount, const int *fds)
{
    char path[LINK_BYTES];

    return !host_path(fds[mount->fd], path) || !str_equal(path, mount->target);
}

char *tempdir_places(const struct request_start *request, const int *fds, bool own_tmp)
{
    scoped(buf_done) struct buf places = {0};

    if (own_tmp)
        buf_append(&places, "/tmp", sizeof("/tmp"));
    buf_append(&places, CELL_WORKSPACE_PATH, sizeof(CELL_WORKSPACE_PATH));
    buf_append(&places, CELL_HOME_PATH, sizeof(CELL_HOME_PATH));
    for (uint32_t i = 0; i < request->mount_count; i++) {
        const char *target = request->mounts[i].target;

        if (is_elsewhere(&request->mounts[i], fds))
            buf_append(&places, target, strlen(target) + 1);
    }
    for (uint32_t i = 0; i < request->text_count; i++) {
        const char *target = request->texts[i].target;

        if (is_synthesised(target))
            continue;
        buf_append(&places, target, strlen(target) + 1);
        /* A program may be found by PATH. */
        if (request->texts[i].executable != 0) {
            buf_append(&places, target, (size_t)(strrchr(target, '/') - target));
            buf_append(&places, "", 1);
        }
    }
    buf_append(&places, "", 1);
    return mem_dup(places.data, places.size_bytes);
}

static bool is_path_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-.", c) != NULL);
}

/* The longest place that stands at text, NULL when none does. */
static const char *place_at(const char *text, const char *places)
{
    const char *best = NULL;

    for (const char *place = places; *place != '\0'; place += strlen(place) + 1) {
        size_t length = strlen(place);

        if (strncmp(text, place, length) == 0 && !is_path_char(text[length]) &&
            (best == NULL || length > strlen(best)))
            best = place;
    }
    return best;
}

static void append_true_path(struct buf *buf, const char *place, const char *directory)
{
    buf_text_append(buf, directory);
    if (str_equal(place, CELL_HOME_PATH))
        buf_text_append(buf, TEMPDIR_HOME);
    else if (str_equal(place, CELL_WORKSPACE_PATH))
        buf_text_append(buf, CELL_WORKSPACE_PATH);
    else
        buf_format(buf, TEMPDIR_ROOT "%s", place);
}

char *tempdir_rewrite(const char *text, const char *places, const char *directory)
{
    scoped(buf_done) struct buf buf = {0};
    char before = '\0';

    buf_text_append(&buf, "");
    while (*text != '\0') {
        /* "/x/workspace" is another path than "/workspace". */
        bool starts = *text == '/' && !is_path_char(before) && before != '/';
        const char *place = starts ? place_at(text, places) : NULL;

        before = *text;
        if (place == NULL) {
            buf_char(&buf, *text++);
            continue;
        }
        append_true_path(&buf, place, directory);
        text += strlen(place);
        before = 'x';
    }
    return buf_take(&buf);
}

/* --- what the directory holds */

static int make_parents(int dir_fd, const char *path)
{
    scoped(mem_freep) char *parent = path_dir(path);

    return fs_mkdirs(dir_fd, parent, 0755, NULL) < 0 ? -EIO : 0;
}

/* A file whose folder this user cannot enter: a program in a checkout of root's. */
static int copy_mount(int dir_fd, const char *path, int fd)
{
    scoped(mem_freep) char *name = str_format("/proc/self/fd/%d", fd);
    scoped(fd_closep) int from = open(name, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (from < 0 || fstat(from, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EACCES;
    scoped(fd_closep) int to =
        openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, status.st_mode & 0755);

    return to < 0 ? -errno : copy_file(from, to);
}

static int link_mount(int dir_fd, const struct wire_mount *mount, const int *fds)
{
    scoped(mem_freep) char *path = str_format("%s%s", &TEMPDIR_ROOT[1], mount->target);
    char target[LINK_BYTES];

    if (!is_elsewhere(mount, fds))
        return 0;
    if (!host_path(fds[mount->fd], target))
        return -ESTALE;
    int r = make_parents(dir_fd, path);

    if (r < 0)
        return r;
    if (access(target, R_OK) < 0 && errno == EACCES)
        return copy_mount(dir_fd, path, fds[mount->fd]);
    return symlinkat(target, dir_fd, path) < 0 && errno != EEXIST ? -errno : 0;
}

static int write_text(int dir_fd, const struct wire_text *text, const char *blob)
{
    scoped(mem_freep) char *path = str_format("%s%s", &TEMPDIR_ROOT[1], text->target);

    if (is_synthesised(text->target))
        return 0;
    int r = make_parents(dir_fd, path);

    if (r < 0)
        return r;
    mode_t mode = text->executable != 0 ? 0755 : 0644;

    return fs_write_atomic(
               dir_fd, path,
               &(struct fs_content){blob + text->offset, text->size_bytes, mode, FS_NO_SYNC},
               NULL) < 0
               ? -EIO
               : 0;
}

static int copy_layers(int dir_fd, const struct input *input)
{
    const struct request_start *request = &input->request->start;
    const struct copy_options options = {.set_owner = false};
    scoped(fd_closep) int to = -1;

    if (fs_open_dir(dir_fd, &CELL_WORKSPACE_PATH[1], 0755, &to, NULL) < 0)
        return -EIO;
    for (uint32_t i = 0; i < request->layer_count; i++) {
        int r = copy_tree(input->fds[request->layer_fds[i]], to, &options);

        if (r < 0)
            return r;
    }
    return 0;
}

int tempdir_fill(const char *directory, const struct input *input)
{
    const struct request_start *request = &input->request->start;
    scoped(fd_closep) int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0)
        return -errno;
    int r = copy_layers(dir_fd, input);

    if (r == 0 && fs_mkdirs(dir_fd, &TEMPDIR_HOME[1], 0700, NULL) < 0)
        r = -EIO;
    for (uint32_t i = 0; i < request->mount_count && r == 0; i++)
        r = link_mount(dir_fd, &request->mounts[i], input->fds);
    for (uint32_t i = 0; i < request->text_count && r == 0; i++)
        r = write_text(dir_fd, &request->texts[i], input->blob);
    return r;
}
