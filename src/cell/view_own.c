#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cell/setup.h"

#define OWN_DIR "own"
#define NAME_BYTES 64

int view_own_make(struct setup *setup)
{
    int fd = workspace_place(setup, false, 0755);

    if (fd < 0)
        return fd;
    setup->own_fd = fd;
    /* Before 6.15 overlay takes only what is attached. */
    if (mkdirat(setup->scratch_fd, OWN_DIR, 0700) < 0)
        return -errno;
    return sys_attach(fd, setup->scratch_fd, OWN_DIR);
}

static int make_dir(const struct setup *setup, const char *name, const char *what, int *ret)
{
    char path[NAME_BYTES];

    sys_format(path, sizeof(path), "%s%s", name, what);
    if (mkdirat(setup->own_fd, path, 0755) < 0 ||
        fchownat(setup->own_fd, path, setup->uid, setup->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    *ret = sys_open_beneath(setup->own_fd, path, O_RDONLY | O_DIRECTORY, 0);
    return *ret < 0 ? *ret : 0;
}

int view_own_layer(struct setup *setup, struct overlay *overlay, const char *name, int over)
{
    const struct copy_options options = {.uid = setup->uid, .gid = setup->gid, .set_owner = true};
    int r = make_dir(setup, name, "-upper", &overlay->upper);

    if (r == 0)
        r = make_dir(setup, name, "-work", &overlay->work);
    return r < 0 || over < 0 ? r : copy_tree(over, overlay->upper, &options);
}
