/* What a cell's root is made of: sandbox and grading alike. */
#include <errno.h>
#include <fcntl.h>

#include "base/term.h"
#include "task/internal.h"

/* Kinds of image references that name a path of this machine; the others are skopeo's. */
static const char *const local_images[] = {"oci:", "docker-archive:"};
static const char *const fetched_images[] = {"docker-daemon:", "docker://"};

void task_root_done(struct task_root *root)
{
    str_list_done(&root->expose);
    free(root->rootfs);
    free(root->image);
    task_env_done(&root->python);
    task_env_done(&root->node);
    *root = (struct task_root){.rootfs = NULL};
}

/* Where the cell has something of its own, and where the host's would be the host's. */
static const char *const taken[] = {
    "/workspace", "/home/agent",     "/tmp",     "/proc",        "/dev",      "/sys", "/etc",
    "/graders",   "/run/closedbook", "/run/env", "/run/plugins", "/run/tools"};

const char *task_expose_taken(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
        if (path_is_below(path, taken[i]) || path_is_below(taken[i], path))
            return taken[i];
    }
    return NULL;
}

static void add_exposed(const struct build *build, const struct node *node, const char *name,
                        struct task_root *root)
{
    scoped(mem_freep) char *path = build_path(build, node, name, true);
    const struct task_reader *reader = build->loader->reader;

    if (path == NULL)
        return;
    const char *taken_path = task_expose_taken(path);

    if (taken_path != NULL) {
        build_error(build, node->mark, name,
                    "'%s' cannot be exposed: it would lie over the cell's own %s", path,
                    taken_path);
        return;
    }
    if (strlen(path) > TASK_EXPOSE_PATH_MAX) {
        build_error(build, node->mark, name, "a path of at most %d bytes expected, found '%s'",
                    TASK_EXPOSE_PATH_MAX, path);
        return;
    }
    scoped(fd_closep) int fd =
        reader->open(reader->context, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd == -EINVAL)
        build_error(build, node->mark, name, "'%s' is neither a folder nor a regular file", path);
    else if (fd < 0)
        build_error(build, node->mark, name, "'%s' cannot be opened: %s", path, strerror(-fd));
    else if (!str_list_has(&root->expose, path))
        str_list_add(&root->expose, path);
}

static void read_expose(const struct build *build, const struct node *list, const char *block,
                        struct task_root *root)
{
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        scoped(mem_freep) char *name = str_format("%s.expose[%zu]", block, i);

        add_exposed(build, list->items[i], name, root);
    }
    /* What holds another comes before it. */
    str_list_sort(&root->expose);
    if (root->expose.count > TASK_EXPOSE_MAX)
        build_error(build, list->mark, block, "at most %d paths can be exposed, found %zu",
                    TASK_EXPOSE_MAX, root->expose.count);
}

static void read_rootfs(const struct build *build, const struct node *node, const char *name,
                        struct task_root *root)
{
    scoped(mem_freep) char *path = build_path(build, node, name, true);
    bool empty = false;

    if (path == NULL)
        return;
    scoped(mem_freep) char *wrong = source_check_dir(build->loader->reader, path, &empty);

    if (wrong == NULL && empty)
        wrong = str_dup("is empty: a root must hold a system");
    if (wrong == NULL && strcmp(path, "/") == 0)
        wrong = str_dup("is this machine's own root: that is what a cell has without rootfs");
    if (wrong != NULL)
        build_error(build, node->mark, name, "'%s' %s", path, wrong);
    else
        root->rootfs = take(path);
}

/* The length of the prefix when text begins with one of them, else 0. */
static size_t prefix_of(const char *text, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_starts(text, prefixes[i]))
            return strlen(prefixes[i]);
    }
    return 0;
}

/* "oci:PATH[:tag]" with PATH made absolute as other paths of the file are. */
static void read_image(const struct build *build, const struct node *node, const char *name,
                       struct task_root *root)
{
    size_t prefix = prefix_of(node->text, local_images, ARRAY_SIZE(local_images));
    size_t fetched = prefix_of(node->text, fetched_images, ARRAY_SIZE(fetched_images));

    if ((prefix == 0 && fetched == 0) || node->text[prefix + fetched] == '\0') {
        build_error(
            build, node->mark, name,
            "oci:PATH[:tag], docker-archive:FILE[:ref], docker-daemon:NAME or docker://NAME "
            "expected, found '%.200s'",
            node->text);
        return;
    }
    if (fetched > 0) {
        root->image = str_dup(node->text);
        return;
    }
    struct node rest = *node;

    rest.text = node->text + prefix;
    scoped(mem_freep) char *path = build_path(build, &rest, name, true);

    if (path != NULL)
        root->image = str_format("%.*s%s", (int)prefix, node->text, path);
}

void build_root(const struct build *build, const char *block, struct task_root *root)
{
    const struct node *map = node_get(build->root, block);
    const struct node *rootfs = node_get(map, "rootfs"), *image = node_get(map, "image");
    const struct node *driver = node_find(build->root, "sandbox.driver");
    scoped(mem_freep) char *rootfs_name = str_format("%s.rootfs", block);
    scoped(mem_freep) char *image_name = str_format("%s.image", block);
    const struct node *either = rootfs != NULL ? rootfs : image;

    read_expose(build, node_get(map, "expose"), block, root);
    build_env(build, block, "python", &root->python);
    build_env(build, block, "node", &root->node);
    if (rootfs != NULL && image != NULL)
        build_error(build, image->mark, image_name,
                    "rootfs is given as well (line %u): one of the two expected",
                    rootfs->mark.line);
    if (rootfs != NULL)
        read_rootfs(build, rootfs, rootfs_name, root);
    else if (image != NULL)
        read_image(build, image, image_name, root);
    if (either != NULL && driver != NULL && strcmp(driver->text, "tempdir") == 0)
        build_error(build, either->mark, rootfs != NULL ? rootfs_name : image_name,
                    "the driver 'tempdir' has no root of its own: the driver native expected");
}
