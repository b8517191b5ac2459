#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "cell/setup.h"

#define NUMBER_BYTES 24
#define PLACE_ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

int workspace_place(const struct setup *setup, bool everybody, mode_t mode)
{
    char size[NUMBER_BYTES], inodes[NUMBER_BYTES], uid[NUMBER_BYTES], gid[NUMBER_BYTES];
    char mode_text[NUMBER_BYTES];

    sys_format(size, sizeof(size), "%llu", (unsigned long long)setup->request->limits.disk_bytes);
    sys_format(inodes, sizeof(inodes), "%llu", (unsigned long long)setup->request->limits.inodes);
    sys_format(uid, sizeof(uid), "%u",
               everybody && setup->machine->tier == TIER_A ? 0 : setup->uid);
    sys_format(gid, sizeof(gid), "%u",
               everybody && setup->machine->tier == TIER_A ? 0 : setup->gid);
    sys_format(mode_text, sizeof(mode_text), "%o", mode);
    const struct mount_option options[] = {
        {.key = "size", .value = size},      {.key = "nr_inodes", .value = inodes},
        {.key = "uid", .value = uid},        {.key = "gid", .value = gid},
        {.key = "mode", .value = mode_text},
    };

    return sys_new_mount("tmpfs", options, ARRAY_SIZE(options), PLACE_ATTRIBUTES);
}

static int make_place(struct setup *setup, const char *target, bool everybody, mode_t mode)
{
    int fd = workspace_place(setup, everybody, mode);

    if (fd < 0)
        return fd;
    int r = view_attach(setup, fd, target, true);

    (void)close(fd); /* attached or failed */
    return r;
}

static int attach_scratch(const struct setup *setup, int fd, const char *name)
{
    if (mkdirat(setup->scratch_fd, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return sys_attach(fd, setup->scratch_fd, name);
}

static int copy_layers(const struct setup *setup, int to_fd)
{
    const struct copy_options options = {.uid = setup->uid, .gid = setup->gid, .set_owner = true};

    for (uint32_t i = 0; i < setup->request->layer_count; i++) {
        int r = copy_tree(setup->fds[setup->request->layer_fds[i]], to_fd, &options);

        if (r < 0)
            return r;
    }
    return 0;
}

/* A clone that outlives this mount namespace, for whoever comes after. */
static int keep(struct setup *setup, int tree_fd, const char *path)
{
    int flags = OPEN_TREE_CLONE | (path[0] == '\0' ? AT_EMPTY_PATH : 0);
    int fd = sys_open_tree(tree_fd, path, (unsigned)flags);

    if (fd < 0)
        return fd;
    setup->kept_fds[setup->kept_count++] = fd;
    return 0;
}

static int make_copy(struct setup *setup, int place_fd)
{
    int r = copy_layers(setup, place_fd);

    if (r == 0)
        r = view_attach(setup, place_fd, CELL_WORKSPACE_PATH, true);
    return r < 0 ? r : keep(setup, place_fd, "");
}

/* Some kernels mount an overlay on a tmpfs that cannot hold its marks; then it loses deletions. */
static bool holds_user_marks(int upper_fd)
{
    static const char name[] = "user.overlay.probe";

    return fsetxattr(upper_fd, name, "y", 1, 0) == 0 && fremovexattr(upper_fd, name) == 0;
}

static int open_overlay(struct setup *setup, int place_fd, struct overlay *overlay)
{
    const int flags = O_RDONLY | O_DIRECTORY;

    if (mkdirat(place_fd, "upper", 0755) < 0 || mkdirat(place_fd, "work", 0755) < 0 ||
        fchownat(place_fd, "upper", setup->uid, setup->gid, 0) < 0)
        return -errno;
    overlay->upper = sys_open_beneath(place_fd, "upper", flags, 0);
    overlay->work = sys_open_beneath(place_fd, "work", flags, 0);
    if (overlay->upper < 0 || overlay->work < 0)
        return -EIO;
    if (overlay->user_xattr && !holds_user_marks(overlay->upper))
        return -EOPNOTSUPP;
    uint32_t count = setup->request->layer_count;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t layer = count - 1 - i; /* overlay names the topmost first */
        char name[NUMBER_BYTES];
        int tree =
            view_clone(setup, setup->fds[setup->request->layer_fds[layer]], setup->layers[layer]);

        if (tree < 0)
            return tree;
        sys_format(name, sizeof(name), "w%u", i);
        int r = sys_set_mount(tree, MOUNT_ATTR_RDONLY | PLACE_ATTRIBUTES, 0, false);

        if (r == 0)
            r = attach_scratch(setup, tree, name);
        if (r < 0)
            return r;
        overlay->lowers[i] = tree;
    }
    overlay->lower_count = count;
    return overlay_mount(overlay, PLACE_ATTRIBUTES);
}

static int make_overlay(struct setup *setup, int place_fd)
{
    bool is_root = setup->machine->tier == TIER_A;
    struct overlay overlay = {.upper = -1, .work = -1, .user_xattr = !is_root, .redirect = is_root};
    int r = attach_scratch(setup, place_fd, "place");

    if (r < 0)
        return r;
    int merged = open_overlay(setup, place_fd, &overlay);

    if (merged < 0)
        return merged;
    r = view_attach(setup, merged, CELL_WORKSPACE_PATH, true);
    if (r == 0)
        r = keep(setup, merged, "");
    return r < 0 ? r : keep(setup, place_fd, "upper");
}

static int keep_workspace(struct setup *setup)
{
    int r = view_attach(setup, setup->workspace_fd, CELL_WORKSPACE_PATH, true);

    return r < 0 ? r : keep(setup, setup->workspace_fd, "");
}

/* A candidate's is its grader's; who looks on at a live cell only looks. */
static int share_workspace(struct setup *setup)
{
    uint64_t attributes = setup->request->role == CELL_CANDIDATE ? 0 : MOUNT_ATTR_RDONLY;
    int r = sys_set_mount(setup->workspace_fd, attributes | PLACE_ATTRIBUTES, 0, false);

    return r < 0 ? r : view_attach(setup, setup->workspace_fd, CELL_WORKSPACE_PATH, true);
}

static int make_layered(struct setup *setup)
{
    int place = workspace_place(setup, false, 0755);

    if (place < 0)
        return place;
    if (setup->request->workspace_kind == CELL_WORKSPACE_OVERLAY && !setup->copy_instead &&
        setup->request->layer_count > 0) {
        int r = make_overlay(setup, place);

        setup->layered = r == 0;
        if (r == 0)
            return 0;
        /* This kernel or file system cannot: copied, and reported so. */
        setup->kept_count = 0;
        place = workspace_place(setup, false, 0755);
        if (place < 0)
            return place;
    }
    return make_copy(setup, place);
}

int workspace_make(struct setup *setup)
{
    int r = 0;

    setup->step = STEP_WORKSPACE;
    if (setup->request->workspace_kind == CELL_WORKSPACE_KEEP)
        r = keep_workspace(setup);
    else if (setup->request->workspace_kind == CELL_WORKSPACE_SHARED)
        r = share_workspace(setup);
    else if (setup->request->workspace_kind != CELL_WORKSPACE_NONE)
        r = make_layered(setup);
    if (r == 0)
        r = make_place(setup, CELL_HOME_PATH, false, 0700);
    if (r == 0)
        r = make_place(setup, "/tmp", true, 01777);
    if (r == 0)
        r = make_place(setup, "/dev/shm", true, 01777);
    if (r < 0)
        return r;
    setup->protections |= PROTECT_DISK;
    return 0;
}

int workspace_collect(struct setup *setup)
{
    setup->step = STEP_WORKSPACE;
    if (setup->collect_fd < 0)
        return 0;
    int r = view_attach(setup, setup->collect_fd, CELL_COLLECT_PATH, true);

    /* The clone stays writable for a cell that keeps the workspace; what the worker sees is not. */
    if (r == 0)
        r = keep(setup, setup->collect_fd, "");
    if (r == 0)
        r = sys_set_mount(setup->collect_fd,
                          MOUNT_ATTR_RDONLY | PLACE_ATTRIBUTES | MOUNT_ATTR_NOEXEC, 0, false);
    return r;
}
