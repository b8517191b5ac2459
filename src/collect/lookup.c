#include "collect/lookup.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/glob.h"
#include "collect/manifest.h"
#include "collect/walk.h"

#define COPY_BYTES ((size_t)64 << 10)

const char *lookup_state_name(enum lookup_state state)
{
    static const char *const names[LOOKUP_STATE_COUNT] = {
        [LOOKUP_OK] = "ok",
        [LOOKUP_ABSENT] = "absent",
        [LOOKUP_NOT_REGULAR] = "not_regular",
        [LOOKUP_TOO_LARGE] = "too_large",
        [LOOKUP_AMBIGUOUS] = "ambiguous",
    };

    return names[state];
}

void lookup_done(struct lookup *lookup)
{
    free(lookup->resolved);
    str_list_done(&lookup->matches);
    fd_closep(&lookup->fd);
}

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

/* What stands at path, links followed inside. An error is the machine's. */
static int look_at(int workspace_fd, const char *path, struct lookup *ret, struct error **err)
{
    scoped(fd_closep) int fd = fs_open_beneath(workspace_fd, path, O_PATH, 0, FS_LINKS_BENEATH);
    struct stat status;

    if (fd < 0 && walk_is_system_error(-fd))
        return error_errno(err, -fd, "cannot look at '%s'", path);
    ret->state = LOOKUP_NOT_REGULAR;
    if (fd == -EXDEV)
        ret->what = "a link that leads out of the workspace";
    else if (fd == -ELOOP)
        ret->what = "a link that leads nowhere";
    else if (fd == -EACCES)
        ret->what = "in a folder that cannot be read";
    else if (fd < 0 || fstat(fd, &status) < 0)
        ret->state = LOOKUP_ABSENT;
    else if (!S_ISREG(status.st_mode))
        ret->what = kind_of(status.st_mode);
    else {
        ret->state = LOOKUP_OK;
        ret->size_bytes = (uint64_t)status.st_size;
    }
    return 0;
}

static int open_content(int workspace_fd, const char *path, uint64_t max_bytes, struct lookup *ret,
                        struct error **err)
{
    if (ret->state != LOOKUP_OK)
        return 0;
    if (ret->size_bytes > max_bytes) {
        ret->state = LOOKUP_TOO_LARGE;
        return 0;
    }
    scoped(fd_closep) int fd =
        fs_open_beneath(workspace_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, FS_LINKS_BENEATH);
    struct stat status;

    if (fd < 0 && walk_is_system_error(-fd))
        return error_errno(err, -fd, "cannot open '%s'", path);
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        ret->state = LOOKUP_NOT_REGULAR;
        ret->what = fd == -EACCES ? "a file that its mode forbids to read" : "a file that changes";
        return 0;
    }
    ret->fd = take_fd(&fd);
    return 0;
}

/* Looking for the matches of a pattern. */
struct search {
    struct glob glob;
    bool files_only;
    struct lookup *found;
    uint64_t states[WALK_DEPTH_MAX + 2]; /* per depth; [0] is the root's */
};

static bool holds_no_work(const char *name)
{
    static const char *const names[] = {".git",        "node_modules", ".venv",
                                        "__pycache__", "dist",         "build"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int is_file(const struct walk_entry *entry, bool *ret, struct error **err)
{
    struct lookup target = {.fd = -1};

    *ret = S_ISREG(entry->status.st_mode);
    if (!S_ISLNK(entry->status.st_mode))
        return 0;

    /* A link may lead up and down again, but only below its own folder: else it is no match. */
    int r = look_at(entry->parent_fd, entry->name, &target, err);

    *ret = r == 0 && target.state == LOOKUP_OK;
    return r;
}

static int visit(void *context, const struct walk_entry *entry, struct error **err)
{
    struct search *search = context;
    bool is_dir = S_ISDIR(entry->status.st_mode);
    uint64_t states = glob_step(&search->glob, search->states[entry->depth - 1], entry->name,
                                is_dir && holds_no_work(entry->name));

    bool counts = glob_accepts(&search->glob, states);

    search->states[entry->depth] = states;
    if (counts && search->files_only) {
        int r = is_file(entry, &counts, err);

        if (r < 0)
            return r;
    }
    if (counts) {
        search->found->match_count++;
        if (search->found->matches.count < LOOKUP_MATCHES_MAX)
            str_list_add(&search->found->matches, entry->path);
    }
    return states == 0 ? WALK_SKIP : WALK_ENTER;
}

static int pass_over(void *context, const char *path, int errno_value, const char *reason,
                     struct error **err)
{
    (void)context;
    (void)path;
    (void)reason;
    if (walk_is_system_error(errno_value))
        return error_errno(err, errno_value, "cannot read the workspace");
    return 0; /* what cannot be looked into has no matches */
}

static int find_matches(int workspace_fd, const char *pattern, bool content, struct lookup *ret,
                        struct error **err)
{
    struct search search = {.files_only = content, .found = ret};
    struct walk walk = {.context = &search, .visit = visit, .refuse = pass_over};

    if (!glob_parse(pattern, &search.glob))
        return 0;
    search.states[0] = glob_start(&search.glob);
    int r = walk_tree(workspace_fd, &walk, err);

    glob_done(&search.glob);
    return r;
}

int lookup_path(int workspace_fd, const char *path, bool content, uint64_t max_bytes,
                struct lookup *ret, struct error **err)
{
    scoped(lookup_done) struct lookup found = {.fd = -1};
    scoped(mem_freep) char *normal = path_normal(path);

    if (!path_is_inside(normal) && strcmp(normal, ".") != 0)
        return error_set(err, ERROR_TASK, "'%s' is no path inside the workspace", path);
    const char *literal = normal;
    int r = look_at(workspace_fd, normal, &found, err);

    if (r == 0 && found.state == LOOKUP_ABSENT && glob_is_pattern(normal))
        r = find_matches(workspace_fd, normal, content, &found, err);
    if (r == 0 && found.match_count > 0) {
        literal = found.matches.items[0];
        found.resolved = str_dup(literal);
        r = look_at(workspace_fd, literal, &found, err);
    }
    if (content && found.match_count > 1)
        found.state = LOOKUP_AMBIGUOUS;
    if (r == 0 && content)
        r = open_content(workspace_fd, literal, max_bytes, &found, err);
    if (r < 0)
        return r;
    *ret = found;
    found = (struct lookup){.fd = -1};
    return 0;
}

static void put_text(struct buf *buf, const char *key, const char *text)
{
    buf_format(buf, ",\"%s\":", key);
    if (text == NULL) {
        buf_text_append(buf, "null");
        return;
    }
    buf_char(buf, '"');
    manifest_escape(buf, text);
    buf_char(buf, '"');
}

static void put_header(struct buf *buf, const struct lookup *found)
{
    buf_format(buf, "{\"state\":\"%s\"", lookup_state_name(found->state));
    put_text(buf, "resolved", found->resolved);
    put_text(buf, "what", found->what);
    buf_format(buf, ",\"size\":%llu,\"match_count\":%llu,\"matches\":[",
               (unsigned long long)found->size_bytes, (unsigned long long)found->match_count);
    for (size_t i = 0; i < found->matches.count; i++) {
        buf_text_append(buf, i > 0 ? ",\"" : "\"");
        manifest_escape(buf, found->matches.items[i]);
        buf_char(buf, '"');
    }
    buf_text_append(buf, "]}\n");
}

static int print_bytes(int fd, uint64_t max_bytes, int output_fd, struct error **err)
{
    char bytes[COPY_BYTES];

    for (uint64_t left = max_bytes; left > 0;) {
        ssize_t n = read(fd, bytes, size_min(left, sizeof(bytes)));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read the file");
        if (n == 0)
            return 0;
        int r = fs_write_all(output_fd, "the output", bytes, (size_t)n, err);

        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return 0;
}

int lookup_print(int workspace_fd, const char *path, bool content, uint64_t max_bytes,
                 int output_fd, struct error **err)
{
    scoped(lookup_done) struct lookup found = {.fd = -1};
    scoped(buf_done) struct buf header = {0};
    int r = lookup_path(workspace_fd, path, content, max_bytes, &found, err);

    if (r < 0)
        return r;
    put_header(&header, &found);
    r = fs_write_all(output_fd, "the output", header.data, header.size_bytes, err);
    if (r == 0 && found.fd >= 0)
        r = print_bytes(found.fd, max_bytes, output_fd, err);
    return r;
}
