#include "collect/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/glob.h"
#include "collect/tree_internal.h"

/* One ignore pattern without its '!' and '/' against a path. */
static bool pattern_matches(const char *pattern, const char *path, bool is_dir)
{
    size_t length = strlen(pattern);
    bool dirs_only = length > 1 && pattern[length - 1] == '/';
    scoped(mem_freep) char *bare = str_ndup(pattern, dirs_only ? length - 1 : length);

    if (dirs_only && !is_dir)
        return false;
    if (strchr(bare, '/') == NULL)
        return glob_name_match(bare, path_base(path));
    struct glob glob;
    const char *from_root = bare + strspn(bare, "/");

    if (!glob_parse(from_root, &glob))
        return false;
    bool matches = glob_relate(&glob, path) == GLOB_WITHIN;

    glob_done(&glob);
    return matches;
}

static bool matches_ignore(const struct str_list *patterns, const char *path, bool is_dir)
{
    bool ignored = false;

    for (size_t i = 0; i < patterns->count; i++) {
        const char *pattern = patterns->items[i];
        bool negated = pattern[0] == '!';

        /* Only a pattern that would change the answer needs a look. */
        if (negated == ignored && pattern_matches(pattern + negated, path, is_dir))
            ignored = !negated;
    }
    return ignored;
}

/* True when the first name of a pattern, letter by letter, is not the path's: no need to parse it.
 */
static bool is_elsewhere(const char *pattern, const char *path)
{
    size_t length = strcspn(pattern, "/*?[");
    bool is_plain = length > 0 && (pattern[length] == '/' || pattern[length] == '\0') &&
                    strncmp(pattern, "./", 2) != 0;

    return is_plain &&
           (strncmp(path, pattern, length) != 0 || (path[length] != '/' && path[length] != '\0'));
}

static bool is_outside_only(const struct str_list *only, const char *path, bool is_dir)
{
    for (size_t i = 0; i < only->count; i++) {
        struct glob glob;

        if (is_elsewhere(only->items[i], path) || !glob_parse(only->items[i], &glob))
            continue;
        enum glob_relation relation = glob_relate(&glob, path);

        glob_done(&glob);
        if (relation == GLOB_WITHIN || (relation == GLOB_ABOVE && is_dir))
            return false;
    }
    return true;
}

bool tree_is_ignored(const struct tree_rules *rules, const char *path, bool is_dir)
{
    if (rules->leave_out != NULL && str_list_has(rules->leave_out, path))
        return true;
    if (rules->ignore != NULL && matches_ignore(rules->ignore, path, is_dir))
        return true;
    return rules->only != NULL && is_outside_only(rules->only, path, is_dir);
}

/* A directory that holds the record of a run: what closedbook itself wrote is no input. */
static bool is_run(const struct walk_entry *entry)
{
    scoped(fd_closep) int fd =
        openat(entry->parent_fd, entry->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    return fd >= 0 && fstatat(fd, "run.json", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode);
}

/* What is no secret: a link's mode says nothing. */
static bool is_public(mode_t mode)
{
    if (S_ISDIR(mode))
        return (mode & S_IXOTH) != 0 && (mode & S_IROTH) != 0;
    return S_ISLNK(mode) || (S_ISREG(mode) && (mode & S_IROTH) != 0);
}

bool tree_leaves_out(const struct tree_rules *rules, const struct walk_entry *entry)
{
    bool is_dir = S_ISDIR(entry->status.st_mode);

    return tree_is_ignored(rules, entry->path, is_dir) ||
           (rules->public_only && !is_public(entry->status.st_mode)) ||
           (rules->skip_runs && is_dir && is_run(entry));
}

struct key_context {
    const struct tree_rules *rules;
    struct sha256_stream *stream;
    uint64_t newest_ns, entries;
};

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static int visit_key(void *context, const struct walk_entry *entry, struct error **err)
{
    struct key_context *key = context;
    const struct stat *status = &entry->status;

    if (tree_leaves_out(key->rules, entry))
        return WALK_SKIP;
    if (key->rules->max_entries != 0 && ++key->entries > key->rules->max_entries)
        return error_set(err, ERROR_LIMIT, "more than %llu entries",
                         (unsigned long long)key->rules->max_entries);
    uint64_t facts[] = {
        status->st_mode,         (uint64_t)status->st_size,
        ns_of(&status->st_mtim), ns_of(&status->st_ctim),
        status->st_ino,          status->st_dev,
    };

    sha256_stream_add(key->stream, entry->path, strlen(entry->path) + 1);
    sha256_stream_add(key->stream, facts, sizeof(facts));
    if (facts[3] > key->newest_ns)
        key->newest_ns = facts[3];
    return WALK_ENTER;
}

int tree_refuse(void *context, const char *path, int errno_value, const char *reason,
                struct error **err)
{
    (void)context;
    scoped(buf_done) struct buf name = {0};

    manifest_escape(&name, path);
    if (walk_is_system_error(errno_value))
        return error_errno(err, errno_value, "'%s' cannot be staged", buf_text(&name));
    return error_set(err, ERROR_TASK, "'%s' cannot be staged: %s", buf_text(&name), reason);
}

int tree_stat_key(int source_fd, const struct tree_rules *rules, struct sha256 *ret,
                  uint64_t *ret_newest_ns, struct error **err)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    struct key_context key = {.rules = rules, .stream = stream};
    struct walk walk = {
        .context = &key, .visit = visit_key, .refuse = tree_refuse, .links_by_name = true};
    int r = walk_tree(source_fd, &walk, err);

    if (r < 0)
        return r;
    *ret = sha256_stream_end(stream);
    *ret_newest_ns = key.newest_ns;
    return 0;
}
