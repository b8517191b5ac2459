#include <errno.h>

#include "cell/setup.h"

#define OPTIONS_MAX (CELL_LAYERS_MAX + 8)
#define FD_PATH_BYTES 32
#define LOWERS_BYTES ((CELL_LAYERS_MAX + 1) * FD_PATH_BYTES)

static void add(struct mount_option *options, size_t *count, const char *key, const char *value)
{
    ASSERT(*count < OPTIONS_MAX);
    options[(*count)++] = (struct mount_option){.key = key, .value = value};
}

static void add_fd(struct mount_option *options, size_t *count, const char *key, int fd)
{
    ASSERT(*count < OPTIONS_MAX);
    options[(*count)++] = (struct mount_option){.key = key, .fd = fd, .is_fd = true};
}

static void add_switches(const struct overlay *overlay, struct mount_option *options, size_t *count)
{
    if (overlay->user_xattr)
        add(options, count, "userxattr", NULL);
    else
        add(options, count, "redirect_dir", overlay->redirect ? "on" : "nofollow");
    add(options, count, "index", "off");
    add(options, count, "metacopy", "off");
}

/* Linux 6.13 and later: no path is looked up and none is shown. */
static int mount_by_fd(const struct overlay *overlay, uint64_t attributes)
{
    struct mount_option options[OPTIONS_MAX];
    size_t count = 0;

    add_switches(overlay, options, &count);
    for (size_t i = 0; i < overlay->lower_count; i++)
        add_fd(options, &count, "lowerdir+", overlay->lowers[i]);
    if (overlay->upper >= 0) {
        add_fd(options, &count, "upperdir", overlay->upper);
        add_fd(options, &count, "workdir", overlay->work);
    }
    return sys_new_mount("overlay", options, count, attributes);
}

/* Older kernels: option strings that name our descriptors, through the host's /proc. */
static int mount_by_name(const struct overlay *overlay, uint64_t attributes)
{
    struct mount_option options[OPTIONS_MAX];
    char lowers[LOWERS_BYTES] = "", upper[FD_PATH_BYTES], work[FD_PATH_BYTES];
    size_t count = 0, used = 0;

    add_switches(overlay, options, &count);
    for (size_t i = 0; i < overlay->lower_count; i++) {
        sys_format(lowers + used, sizeof(lowers) - used, "%s/proc/self/fd/%d", i > 0 ? ":" : "",
                   overlay->lowers[i]);
        used += strlen(lowers + used);
    }
    add(options, &count, "lowerdir", lowers);
    if (overlay->upper >= 0) {
        sys_format(upper, sizeof(upper), "/proc/self/fd/%d", overlay->upper);
        sys_format(work, sizeof(work), "/proc/self/fd/%d", overlay->work);
        add(options, &count, "upperdir", upper);
        add(options, &count, "workdir", work);
    }
    return sys_new_mount("overlay", options, count, attributes);
}

int overlay_mount(const struct overlay *overlay, uint64_t attributes)
{
    int fd = mount_by_fd(overlay, attributes);

    if (fd >= 0)
        return fd;
    int by_name = mount_by_name(overlay, attributes);

    return by_name >= 0 ? by_name : fd;
}
