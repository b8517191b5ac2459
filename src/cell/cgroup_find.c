#include "cell/cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define FIELDS_MAX 24 /* of a line of mountinfo; more are optional fields of no use */
#define HOME_NAME "closedbook-main"

static const char *const controllers[CELL_CGROUP_KINDS] = {
    [CELL_CGROUP_MEMORY] = "memory", [CELL_CGROUP_PIDS] = "pids", [CELL_CGROUP_CPU] = "cpu"};

/* --- the two texts */

/* True when the word stands in the list, which ends at any of stops. */
static bool has_word(const char *list, char separator, const char *word)
{
    size_t length = strlen(word);

    while (list != NULL && *list != '\0' && *list != '\n') {
        size_t size = strcspn(list, (const char[]){separator, '\n', '\0'});

        if (size == length && strncmp(list, word, length) == 0)
            return true;
        list += size;
        list += *list == separator ? 1 : 0;
    }
    return false;
}

/* The kernel writes blanks and backslashes of a path as three octal digits. */
static char *unescape(const char *text)
{
    char *result = str_dup(text);
    size_t to = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        const char *digits = text + i + 1;

        if (text[i] == '\\' && strspn(digits, "01234567") >= 3) {
            result[to++] =
                (char)((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0'));
            i += 3;
        } else {
            result[to++] = text[i];
        }
    }
    result[to] = '\0';
    return result;
}

struct mount_line {
    char *root, *point;
    const char *type, *options; /* of the file system; within the line */
};

/* Cuts the line at its blanks. False when it is no line of mountinfo. */
static bool parse_mount(char *line, struct mount_line *ret)
{
    char *fields[FIELDS_MAX];
    size_t count = 0, dash = 0;

    for (char *at = line; *at != '\0' && count < FIELDS_MAX;) {
        size_t length = strcspn(at, " ");

        fields[count] = at;
        if (length == 1 && at[0] == '-' && dash == 0 && count >= 6)
            dash = count;
        count++;
        at += length;
        if (*at == ' ')
            *at++ = '\0';
    }
    if (dash == 0 || count < dash + 4)
        return false;
    ret->root = fields[3];
    ret->point = fields[4];
    ret->type = fields[dash + 1];
    ret->options = fields[dash + 3];
    return true;
}

/* The path of the line "N:controllers:path" for the controller ("": version 2). */
static char *find_membership(const char *membership, const char *controller)
{
    for (const char *line = membership; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        scoped(mem_freep) char *text = str_ndup(line, length);
        char *list = strchr(text, ':');
        char *path = list == NULL ? NULL : strchr(list + 1, ':');

        if (path != NULL) {
            *path++ = '\0';
            list++;
            if (controller[0] == '\0' ? list[0] == '\0' : has_word(list, ',', controller))
                return str_dup(path);
        }
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    return NULL;
}

/* Where the cgroup lies below the mount, whose root may be a cgroup itself. NULL: outside. */
static char *place_of(const struct mount_line *mount, const char *membership,
                      const char *controller)
{
    scoped(mem_freep) char *path = find_membership(membership, controller);
    scoped(mem_freep) char *root = unescape(mount->root);
    scoped(mem_freep) char *point = unescape(mount->point);
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (path == NULL || path[0] != '/' || point[0] != '/' || strstr(path, "/..") != NULL ||
        strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return str_format("%s%s", point, strcmp(path + length, "/") == 0 ? "" : path + length);
}

static void set(char **place, char *value)
{
    if (value == NULL)
        return;
    free(*place); /* what is mounted later covers */
    *place = value;
}

static void add_mount(const struct mount_line *mount, const char *membership,
                      struct cgroup_places *places)
{
    if (strcmp(mount->type, "cgroup2") == 0) {
        char *place = place_of(mount, membership, "");

        if (place != NULL)
            set(&places->unified_top, unescape(mount->point));
        set(&places->unified, place);
    }
    for (size_t i = 0; i < CELL_CGROUP_KINDS && strcmp(mount->type, "cgroup") == 0; i++) {
        if (has_word(mount->options, ',', controllers[i]))
            set(&places->plain[i], place_of(mount, membership, controllers[i]));
    }
}

void cgroup_places_parse(const char *mountinfo, const char *membership, struct cgroup_places *ret)
{
    *ret = (struct cgroup_places){0};
    for (const char *line = mountinfo; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        scoped(mem_freep) char *text = str_ndup(line, length);
        struct mount_line mount;

        if (parse_mount(text, &mount))
            add_mount(&mount, membership, ret);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
}

void cgroup_places_done(struct cgroup_places *places)
{
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++)
        free(places->plain[i]);
    free(places->unified);
    free(places->unified_top);
    *places = (struct cgroup_places){0};
}

/* --- what of that is ours to use */

static void explain(struct cgroup_bases *bases, const char *what, const char *problem)
{
    scoped(mem_freep) char *text = str_format("%s %s", what, problem);

    (void)snprintf(bases->reason, sizeof(bases->reason), "%s", text); /* cut is good enough */
}

/* Its files are ours to write and its children ours to make. */
static int open_own(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
        faccessat(fd, ".", W_OK, AT_EACCESS) == 0)
        return fd;
    fd_closep(&fd);
    return -1;
}

static void find_plain(const struct cgroup_places *places, struct cgroup_bases *bases)
{
    const char *refused = NULL;

    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        if (places->plain[i] == NULL)
            continue;
        bases->fds[i] = open_own(places->plain[i]);
        if (bases->fds[i] < 0 && refused == NULL)
            refused = places->plain[i];
    }
    if (bases->fds[CELL_CGROUP_MEMORY] < 0 && refused != NULL)
        explain(bases, refused, "is not this user's to divide");
}

/* The small text of a file of a cgroup; empty when it cannot be read. */
static void read_text(int dir_fd, const char *name, struct buf *ret)
{
    ret->max_bytes = CGROUP_TEXT_BYTES_MAX;
    if (fs_read_file(dir_fd, name, CGROUP_TEXT_BYTES_MAX, ret, NULL) < 0)
        buf_clear(ret);
}

static bool passes_on(int dir_fd, const char *name, const char *controller)
{
    scoped(buf_done) struct buf text = {0};

    read_text(dir_fd, name, &text);
    return has_word(buf_text(&text), ' ', controller);
}

static bool write_text(int dir_fd, const char *name, const char *text)
{
    scoped(fd_closep) int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A cgroup with processes cannot limit its children: the only one, this one, moves into a child. */
static bool vacate(int dir_fd)
{
    scoped(buf_done) struct buf text = {0};
    scoped(mem_freep) char *alone = str_format("%d\n", getpid());

    read_text(dir_fd, "cgroup.procs", &text);
    if (!str_equal(buf_text(&text), alone) ||
        (mkdirat(dir_fd, HOME_NAME, 0755) < 0 && errno != EEXIST) ||
        !write_text(dir_fd, HOME_NAME "/cgroup.procs", "0"))
        return false;
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        scoped(mem_freep) char *word = str_format("+%s", controllers[i]);

        (void)!write_text(dir_fd, "cgroup.subtree_control", word); /* some are better than none */
    }
    return true;
}

static void find_unified(const struct cgroup_places *places, struct cgroup_bases *bases)
{
    scoped(mem_freep) char *path = str_dup(places->unified);
    scoped(fd_closep) int own = open_own(path);

    while (str_starts(path, places->unified_top)) {
        scoped(fd_closep) int fd = open_own(path);

        if (fd >= 0 && passes_on(fd, "cgroup.subtree_control", "memory")) {
            bases->fds[0] = take_fd(&fd);
            return;
        }
        char *upper = path_dir(path);
        bool is_top = strlen(path) <= strlen(places->unified_top);

        free(path);
        path = upper;
        if (is_top)
            break;
    }
    if (own >= 0 && passes_on(own, "cgroup.controllers", "memory") && vacate(own))
        bases->fds[0] = take_fd(&own);
    else
        explain(bases, places->unified,
                "is not delegated: systemd-run --user --scope -p Delegate=yes CMD");
}

void cgroup_find(struct cgroup_bases *ret)
{
    scoped(cgroup_places_done) struct cgroup_places places = {0};
    scoped(buf_done) struct buf mounts = {0};
    scoped(buf_done) struct buf membership = {0};
    scoped(fd_closep) int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

    *ret = (struct cgroup_bases){.fds = {-1, -1, -1}};
    read_text(proc, "mountinfo", &mounts);
    read_text(proc, "cgroup", &membership);
    cgroup_places_parse(buf_text(&mounts), buf_text(&membership), &places);
    scoped(fd_closep) int top = places.unified_top == NULL
                                    ? -1
                                    : open(places.unified_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (top >= 0 && passes_on(top, "cgroup.controllers", "memory"))
        find_unified(&places, ret);
    else if (places.plain[CELL_CGROUP_MEMORY] != NULL || places.plain[CELL_CGROUP_CPU] != NULL)
        find_plain(&places, ret);
    else
        explain(ret, "memory:", "no cgroup hierarchy with this controller is mounted");
}

void cgroup_bases_done(struct cgroup_bases *bases)
{
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++)
        fd_closep(&bases->fds[i]);
}
