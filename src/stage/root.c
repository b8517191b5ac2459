#include "stage/root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/env.h"
#include "stage/images.h"
#include "stage/stage.h"

#define USR_MASKS_MAX CELL_MASKS_MAX
#define PATH_BYTES 4096
#define PACKAGES_DIR "/var/lib/dpkg"

/* Directories of the root that are trees of their own where /usr is not merged. */
static const char *const root_dirs[] = {"/bin", "/sbin", "/lib", "/lib64"};
#define ROOT_DIRS ARRAY_SIZE(root_dirs)

struct exposed {
    char *path;   /* as the task names it */
    char *target; /* in the cell */
    int fd;
};

struct root {
    int system_fd;     /* a directory that is the whole root; -1: the host's trees below */
    char *system_path; /* the directory, or the image's reference */
    struct image image;
    bool has_image;
    struct layer etc;
    int usr_fd;
    int dir_fds[ROOT_DIRS]; /* -1: a link into /usr */
    int packages_fd;        /* dpkg's folder, for who may install packages; -1: none */
    int overrides_fd;       /* in place of its statoverride, which names accounts of the host */
    char *masks[USR_MASKS_MAX];
    size_t mask_count;
    struct exposed exposed[ROOT_EXPOSE_MAX];
    size_t exposed_count;
    const char *shell;            /* NULL: none */
    struct layer envs[ENV_KINDS]; /* tree_fd -1: there is none */
};

void root_free(struct root *root)
{
    if (root == NULL)
        return;
    layer_done(&root->etc);
    image_done(&root->image);
    fd_closep(&root->system_fd);
    for (size_t i = 0; i < ENV_KINDS; i++)
        layer_done(&root->envs[i]);
    free(root->system_path);
    fd_closep(&root->usr_fd);
    fd_closep(&root->packages_fd);
    fd_closep(&root->overrides_fd);
    for (size_t i = 0; i < ROOT_DIRS; i++)
        fd_closep(&root->dir_fds[i]);
    for (size_t i = 0; i < root->mask_count; i++)
        free(root->masks[i]);
    for (size_t i = 0; i < root->exposed_count; i++) {
        free(root->exposed[i].path);
        free(root->exposed[i].target);
        fd_closep(&root->exposed[i].fd);
    }
    free(root);
}

void root_freep(struct root **root)
{
    root_free(*root);
    *root = NULL;
}

static struct root *root_new(void)
{
    struct root *root = mem_new(1, sizeof(*root));

    root->system_fd = root->usr_fd = root->packages_fd = root->overrides_fd = -1;
    root->image.rootfs_fd = root->image.lock_fd = -1;
    root->etc.tree_fd = -1;
    for (size_t i = 0; i < ROOT_DIRS; i++)
        root->dir_fds[i] = -1;
    for (size_t i = 0; i < ENV_KINDS; i++)
        root->envs[i].tree_fd = -1;
    return root;
}

/* --- the host's system */

static void add_mask(struct root *root, const char *name, size_t length)
{
    scoped(mem_freep) char *mask = str_ndup(name, length);

    for (size_t i = 0; i < root->mask_count; i++)
        if (strcmp(root->masks[i], mask) == 0)
            return;
    if (root->mask_count < USR_MASKS_MAX)
        root->masks[root->mask_count++] = take(mask);
}

/* The prefix that this program was installed below, when it is a directory of its own in /usr. */
static void mask_own_prefix(struct root *root)
{
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length <= 0)
        return;
    path[length] = '\0';
    if (!str_starts(path, "/usr/"))
        return;
    const char *name = path + strlen("/usr/");
    size_t size = strcspn(name, "/");
    static const char *const shared[] = {"bin", "sbin", "lib", "lib64", "libexec", "share"};

    for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
        if (strlen(shared[i]) == size && strncmp(name, shared[i], size) == 0)
            return; /* the system's own: hiding it would hide the system */
    add_mask(root, name, size);
}

static int open_host(struct root *root, struct store *store, struct error **err)
{
    root->usr_fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root->usr_fd < 0)
        return error_errno(err, errno, "cannot open /usr");
    for (size_t i = 0; i < ROOT_DIRS; i++) {
        struct stat status;

        if (lstat(root_dirs[i], &status) < 0 || !S_ISDIR(status.st_mode))
            continue;
        root->dir_fds[i] = open(root_dirs[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (root->dir_fds[i] < 0)
            return error_errno(err, errno, "cannot open %s", root_dirs[i]);
    }
    root->packages_fd = open(PACKAGES_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root->packages_fd < 0 && errno != ENOENT)
        return error_errno(err, errno, "cannot open " PACKAGES_DIR);
    int r = fs_memfd("statoverride", "", 0, &root->overrides_fd, err);

    if (r < 0)
        return r;
    add_mask(root, "local", strlen("local"));
    add_mask(root, "src", strlen("src"));
    mask_own_prefix(root);
    return etc_tree(store, &root->etc, err);
}

/* --- what the task names */

static int open_named(const struct root_source *source, const char *what, const char *path,
                      int flags, int *ret, struct error **err)
{
    int fd = source->reader->open(source->reader->context, path, flags | O_RDONLY | O_CLOEXEC);

    if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES || fd == -EINVAL)
        return error_set(err, ERROR_TASK, "%s '%s': %s", what, path, strerror(-fd));
    if (fd < 0)
        return error_errno(err, -fd, "%s '%s'", what, path);
    *ret = fd;
    return 0;
}

/* Where the host's /lib and the like are links into /usr, they are in the cell, too. */
static char *target_of(const struct root *root, const char *path)
{
    for (size_t i = 0; i < ROOT_DIRS && root->system_fd < 0; i++) {
        size_t length = strlen(root_dirs[i]);

        if (root->dir_fds[i] < 0 && str_starts(path, root_dirs[i]) &&
            (path[length] == '/' || path[length] == '\0'))
            return str_format("/usr%s", path);
    }
    return str_dup(path);
}

static int expose(const struct root_source *source, const struct task_root *task, struct root *root,
                  struct error **err)
{
    const struct str_list *paths = source->expose != NULL ? source->expose : &task->expose;

    ASSERT(paths->count <= ARRAY_SIZE(root->exposed));
    for (size_t i = 0; i < paths->count; i++) {
        struct exposed *exposed = &root->exposed[root->exposed_count++];

        *exposed = (struct exposed){.path = str_dup(paths->items[i]), .fd = -1};
        exposed->target = target_of(root, exposed->path);
        int r = open_named(source, "cannot expose", exposed->path, 0, &exposed->fd, err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* A regular file with an execute bit, links resolved as they are in the cell. */
static bool has_program(const struct root *root, const char *path)
{
    struct stat status;

    if (root->system_fd < 0)
        return access(path, X_OK) == 0;
    scoped(fd_closep) int fd = fs_open_beneath(root->system_fd, path, O_PATH, 0, FS_LINKS_IN_ROOT);

    return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_mode & 0111) != 0;
}

static const char *find_shell(const struct root *root)
{
    if (has_program(root, "/bin/bash"))
        return "/bin/bash";
    return has_program(root, "/bin/sh") ? "/bin/sh" : NULL;
}

static int open_image(const struct root_source *source, const char *reference, struct root *root,
                      struct error **err)
{
    const struct images_source from = {
        .store = source->store,
        .monitor = source->monitor,
        .reader = source->reader,
        .program = source->unpack_program,
    };
    int r = images_get(&from, reference, &root->image, err);

    if (r < 0)
        return r;
    root->has_image = true;
    root->system_path = str_dup(reference);
    root->system_fd = take_fd(&root->image.rootfs_fd);
    return 0;
}

static int open_system(const struct root_source *source, const struct task_root *task,
                       struct root *root, struct error **err)
{
    if (task != NULL && task->rootfs != NULL) {
        root->system_path = str_dup(task->rootfs);
        return open_named(source, "cannot use the root", task->rootfs, O_DIRECTORY,
                          &root->system_fd, err);
    }
    if (task != NULL && task->image != NULL)
        return open_image(source, task->image, root, err);
    return open_host(root, source->store, err);
}

char *root_program(const struct root *root, const char *name)
{
    scoped(str_list_done) struct str_list env = {0};

    cell_env_default(&env);
    root_add_env(root, &env);
    for (size_t i = 0; i < env.count; i++) {
        const char *folder = env.items[i] + strlen("PATH=");

        if (!str_starts(env.items[i], "PATH="))
            continue;
        while (*folder != '\0') {
            size_t length = strcspn(folder, ":");
            scoped(mem_freep) char *path = str_format("%.*s/%s", (int)length, folder, name);

            if (path[0] == '/' && has_program(root, path))
                return take(path);
            folder += length + (folder[length] == ':');
        }
    }
    return NULL;
}

int root_stat(const struct root *root, const char *path, struct stat *ret, struct error **err)
{
    scoped(fd_closep) int fd =
        root->system_fd < 0 ? open(path, O_PATH | O_CLOEXEC)
                            : fs_open_beneath(root->system_fd, path, O_PATH, 0, FS_LINKS_IN_ROOT);

    if (fd < 0 || fstat(fd, ret) < 0)
        return error_errno(err, fd < -1 ? -fd : errno, "cannot look at '%s'", path);
    return 0;
}

static int make_envs(const struct root_source *source, const struct task_root *task,
                     struct root *root, struct error **err)
{
    static const struct task_env usual = {.want = ENV_USUAL}, none = {.want = ENV_NONE};
    const struct task_env *wanted[ENV_KINDS] = {
        [ENV_PYTHON] = task == NULL ? &usual : &task->python,
        [ENV_NODE] = task == NULL ? &none : &task->node,
    };

    for (enum env_kind kind = 0; kind < ENV_KINDS; kind++) {
        const struct env_source from = {
            .from = source, .root = root, .wanted = wanted[kind], .kind = kind};
        bool has = false;
        int r = env_make(&from, &root->envs[kind], &has, err);

        if (r < 0)
            return r;
    }
    return 0;
}

int root_build(const struct root_source *source, const struct task_root *task, struct root **ret,
               struct error **err)
{
    scoped(root_freep) struct root *root = root_new();
    int r = open_system(source, task, root, err);

    if (r == 0 && task != NULL)
        r = expose(source, task, root, err);
    if (r < 0)
        return r;
    root->shell = find_shell(root);
    r = make_envs(source, task, root, err);
    if (r < 0)
        return r;
    *ret = take(root);
    return 0;
}

/* --- a cell of it */

static void add_mount(struct cell_spec *spec, int fd, const char *target)
{
    ASSERT(spec->mount_count < CELL_MOUNTS_MAX);
    spec->mounts[spec->mount_count++] = (struct cell_mount){.fd = fd, .target = target};
}

static void fill_host(const struct root *root, struct cell_spec *spec)
{
    size_t first = spec->mount_count;

    add_mount(spec, root->usr_fd, "/usr");
    for (size_t i = 0; i < root->mask_count; i++)
        spec->mounts[spec->mount_count - 1].masks[i] = root->masks[i];
    for (size_t i = 0; i < ROOT_DIRS; i++)
        if (root->dir_fds[i] >= 0)
            add_mount(spec, root->dir_fds[i], root_dirs[i]);
    if (spec->identity_root && root->packages_fd >= 0)
        add_mount(spec, root->packages_fd, PACKAGES_DIR);
    for (size_t i = first; i < spec->mount_count; i++)
        spec->mounts[i].own = true;
    if (spec->identity_root && root->packages_fd >= 0)
        add_mount(spec, root->overrides_fd, PACKAGES_DIR "/statoverride");
    spec->etc_fd = root->etc.tree_fd;
}

void root_fill_cell(const struct root *root, struct cell_spec *spec)
{
    spec->etc_fd = -1;
    spec->has_root = root->system_fd >= 0;
    spec->root_fd = root->system_fd;
    if (root->system_fd < 0)
        fill_host(root, spec);
    for (size_t i = 0; i < root->exposed_count; i++)
        add_mount(spec, root->exposed[i].fd, root->exposed[i].target);
    for (enum env_kind kind = 0; kind < ENV_KINDS; kind++)
        if (root->envs[kind].tree_fd >= 0)
            add_mount(spec, root->envs[kind].tree_fd, env_path(kind));
}

const char *root_shell(const struct root *root)
{
    return root->shell;
}

/* What the cell says itself. */
static bool is_own(const char *variable)
{
    static const char *const names[] = {
        "HOME=", "USER=", "LOGNAME=", "SHELL=", "TMPDIR=", "TERM=", "PWD="};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_starts(variable, names[i]))
            return true;
    return false;
}

/* The folder of its programs before all others; where its modules are, for node, which asks. */
static void add_env_of(enum env_kind kind, struct str_list *env)
{
    for (size_t i = 0; i < env->count; i++) {
        if (!str_starts(env->items[i], "PATH="))
            continue;
        char *longer =
            str_format("PATH=%s/bin:%s", env_path(kind), env->items[i] + strlen("PATH="));

        free(env->items[i]);
        env->items[i] = longer;
    }
    if (kind == ENV_NODE)
        str_list_add_take(env, str_format("NODE_PATH=%s/lib/node_modules", env_path(kind)));
}

void root_add_env(const struct root *root, struct str_list *env)
{
    for (size_t i = 0; i < root->image.facts.env.count; i++) {
        const char *variable = root->image.facts.env.items[i];
        size_t name = strcspn(variable, "=") + 1, at = 0;

        if (is_own(variable))
            continue;
        while (at < env->count && strncmp(env->items[at], variable, name) != 0)
            at++;
        if (at == env->count) {
            str_list_add(env, variable);
            continue;
        }
        free(env->items[at]);
        env->items[at] = str_dup(variable);
    }
    for (enum env_kind kind = ENV_KINDS; kind-- > 0;)
        if (root->envs[kind].tree_fd >= 0)
            add_env_of(kind, env);
}

const char *root_workdir(const struct root *root)
{
    return root->has_image ? root->image.facts.workdir : "";
}

static json_t *image_json(const struct image_facts *facts)
{
    json_t *json = json_object(), *entrypoint = json_array();
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&facts->chain_id, hex);
    scoped(mem_freep) char *chain = str_format("sha256:%s", hex);

    json_put_text(json, "chain_id", chain);
    json_put_text(json, "workdir", facts->workdir);
    json_put_text(json, "user", facts->user);
    for (size_t i = 0; i < facts->entrypoint.count; i++)
        json_push(entrypoint, json_text_or_null(facts->entrypoint.items[i]));
    json_put(json, "entrypoint", entrypoint);
    return json;
}

static json_t *env_json(const struct layer *layer)
{
    json_t *json = json_object();
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&layer->root, hex);
    scoped(mem_freep) char *root = str_format("sha256:%s", hex);

    json_put_text(json, "root", root);
    json_put_int(json, "files", (int64_t)layer->files);
    return json;
}

json_t *root_to_json(const struct root *root)
{
    json_t *json = json_object(), *exposed = json_array();

    json_put_text(json, "kind",
                  root->has_image       ? "image"
                  : root->system_fd < 0 ? "host"
                                        : "rootfs");
    if (root->system_path != NULL)
        json_put_text(json, "source", root->system_path);
    for (size_t i = 0; i < root->exposed_count; i++)
        json_push(exposed, json_text_or_null(root->exposed[i].path));
    json_put(json, "expose", exposed);
    if (root->has_image)
        json_put(json, "image", image_json(&root->image.facts));
    for (enum env_kind kind = 0; kind < ENV_KINDS; kind++)
        if (root->envs[kind].tree_fd >= 0)
            json_put(json, path_base(env_path(kind)), env_json(&root->envs[kind]));
    return json;
}

size_t root_trees(const struct root *root, struct root_tree ret[static ROOT_EXPOSE_MAX + 1])
{
    size_t count = 0;

    /* An image is ours, made of what its layers say and nothing else. */
    if (root->system_fd >= 0 && !root->has_image)
        ret[count++] = (struct root_tree){.path = root->system_path, .fd = root->system_fd};
    for (size_t i = 0; i < root->exposed_count; i++)
        ret[count++] = (struct root_tree){.path = root->exposed[i].path, .fd = root->exposed[i].fd};
    return count;
}
