/*
 * The marks that overlayfs leaves in an upper layer, as the kernel's documentation gives them.
 *
 * A character device 0:0 is a whiteout: the name is gone. A directory with opaque "y" shows nothing
 * of the layers below. A directory with a redirect shows another directory of them than the one of
 * its own name: an absolute path from the root, or a name beside the parent's. In a user's mount
 * the agent cannot set the marks (the kernel hides user.overlay.* there), in root's it lacks the
 * privilege.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/gather_internal.h"

bool gather_is_whiteout(const struct walk_entry *entry)
{
    return S_ISCHR(entry->status.st_mode) && entry->status.st_rdev == makedev(0, 0);
}

/* One capability set as the kernel hands it out. */
static bool has_sys_admin(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return (data[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

int gather_overlay_check(const struct gather *gather, struct error **err)
{
    /* Without the privilege trusted.* looks as if it were not there, and deletions would be lost.
     */
    if (gather->input->kind == WORKSPACE_UPPER_TRUSTED && !has_sys_admin())
        return error_set(err, ERROR_SYSTEM,
                         "the marks of the overlay cannot be read without CAP_SYS_ADMIN");
    return 0;
}

/* The value of a mark, NULL when there is none; owned. -errno when it cannot be told. */
static int read_mark(const struct gather *gather, const struct walk_entry *entry, const char *mark,
                     char **ret)
{
    bool trusted = gather->input->kind == WORKSPACE_UPPER_TRUSTED;
    bool is_dir = S_ISDIR(entry->status.st_mode);
    int opened = fs_open_beneath(
        entry->parent_fd, entry->name,
        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (is_dir ? O_DIRECTORY : 0), 0, FS_NO_LINKS);
    char value[WALK_PATH_BYTES_MAX + 1];

    *ret = NULL;
    if (opened < 0)
        return opened;
    scoped(fd_closep) int fd = opened;
    scoped(mem_freep) char *name = str_format("%s.overlay.%s", trusted ? "trusted" : "user", mark);
    ssize_t length = fgetxattr(fd, name, value, sizeof(value) - 1);

    if (length < 0)
        return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
    value[length] = '\0';
    *ret = str_dup(value);
    return 0;
}

int gather_overlay_file(const struct gather *gather, const struct walk_entry *entry,
                        struct error **err)
{
    scoped(mem_freep) char *mark = NULL;
    int r = read_mark(gather, entry, "metacopy", &mark);

    if (r < 0 && walk_is_system_error(-r))
        return error_errno(err, -r, "cannot read the marks of the overlay");
    /* Unreadable: the file is refused soon, for that reason. */
    if (r == 0 && mark != NULL)
        return error_set(err, ERROR_SYSTEM, "the overlay was mounted with metacopy");
    return 0;
}

/* The staged directory that a redirect means, seen from the parent's; owned. */
static char *redirected(const char *parent_lower, const char *redirect)
{
    if (*redirect == '/')
        return str_dup(redirect + 1);
    if (parent_lower == NULL)
        return NULL;
    return *parent_lower == '\0' ? str_dup(redirect) : path_join(parent_lower, redirect);
}

/* The staged directory that shows through entry, NULL when none does; owned. */
static char *lower_of(struct gather *gather, const struct walk_entry *entry, const char *opaque,
                      const char *redirect)
{
    const char *parent_lower = gather->lower[entry->depth - 1];

    if (opaque != NULL && strcmp(opaque, "y") == 0)
        return NULL;
    scoped(mem_freep) char *lower =
        redirected(parent_lower, redirect != NULL ? redirect : entry->name);

    if (lower == NULL)
        return NULL;
    const struct manifest_entry *staged = manifest_find(gather->input->staged, lower);

    if (staged == NULL || staged->type != MANIFEST_DIR)
        return NULL;
    if (redirect != NULL && strcmp(lower, entry->path) != 0) {
        gather->redirects =
            mem_resize(gather->redirects, gather->redirect_count + 1, sizeof(*gather->redirects));
        gather->redirects[gather->redirect_count++] =
            (struct redirect){.from = str_dup(lower), .to = str_dup(entry->path)};
    }
    return take(lower);
}

int gather_overlay_dir(struct gather *gather, const struct walk_entry *entry, struct error **err)
{
    scoped(mem_freep) char *opaque = NULL;
    scoped(mem_freep) char *redirect = NULL;
    int r = read_mark(gather, entry, "opaque", &opaque);

    if (r == 0)
        r = read_mark(gather, entry, "redirect", &redirect);
    if (r < 0 && r != -EACCES)
        return error_errno(err, -r, "cannot read the marks of the overlay");
    free(gather->lower[entry->depth]);
    /* A directory that we may not read is refused when the walk wants to enter it. */
    gather->lower[entry->depth] = r < 0 ? NULL : lower_of(gather, entry, opaque, redirect);
    return 0;
}

static unsigned depth_of(const char *path)
{
    unsigned depth = *path != '\0';

    for (; *path != '\0'; path++)
        depth += *path == '/';
    return depth;
}

/* names is sorted by bytes. */
static bool has_name(const struct str_list *names, const char *name)
{
    size_t low = 0, high = names->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(names->items[middle], name);

        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* What shows through at staged entry i, for a directory at path over the staged one at lower. */
static void show_through(struct gather *gather, size_t i, const char *path, const char *lower)
{
    const struct manifest_entry *staged = &gather->input->staged->entries[i];

    if (strcmp(path, lower) == 0) {
        gather->kept[i] = true;
        return;
    }
    const char *rest = staged->path + strlen(lower) + (*lower != '\0');
    scoped(mem_freep) char *to = *path == '\0' ? str_dup(rest) : path_join(path, rest);
    struct manifest_entry entry = *staged;

    entry.path = to;
    gather_entry(gather, &entry, staged->path);
}

void gather_overlay_through(struct gather *gather, const char *path, const struct str_list *names)
{
    const struct manifest *staged = gather->input->staged;
    const char *lower = gather->lower[depth_of(path)];
    size_t i, hidden_length = 0;
    const char *hidden = NULL;

    if (lower == NULL)
        return;
    for (i = *lower == '\0' ? 0 : manifest_lower_bound(staged, lower) + 1; i < staged->count; i++) {
        const char *at = staged->entries[i].path;

        if (*lower != '\0' && !manifest_path_below(at, lower))
            break;
        if (hidden != NULL && strncmp(at, hidden, hidden_length) == 0 && at[hidden_length] == '/')
            continue;
        const char *rest = at + strlen(lower) + (*lower != '\0');

        if (strchr(rest, '/') == NULL && has_name(names, rest)) {
            hidden = at;
            hidden_length = strlen(at);
            continue;
        }
        show_through(gather, i, path, lower);
    }
}
