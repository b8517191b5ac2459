/* The python and node environments of a cell: sandbox and grading alike. */
#include <fcntl.h>

#include "task/internal.h"

void task_env_done(struct task_env *env)
{
    str_list_done(&env->packages);
    free(env->field);
    *env = (struct task_env){.want = ENV_NONE};
}

/* A file or folder as one writes it in a shell; anything else is a name for a registry. */
static bool is_path(const char *text)
{
    static const char *const prefixes[] = {"./", "../", "/", "~", "$"};
    static const char *const suffixes[] = {".whl", ".tar.gz", ".tgz", ".zip"};

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (str_starts(text, prefixes[i]))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (str_ends(text, suffixes[i]) && strstr(text, "://") == NULL && text[0] != '-')
            return true;
    return strcmp(text, ".") == 0 || strcmp(text, "..") == 0;
}

static void add_package(const struct build *build, const struct node *node, const char *name,
                        struct task_env *env)
{
    const struct task_reader *reader = build->loader->reader;

    if (!is_path(node->text)) {
        build_later(build, node->mark, name,
                    "a package of a registry ('%.200s') is not in this version, for want of a "
                    "network policy (sandbox.setup_network): a file or folder of the package "
                    "expected, as in ./NAME.whl",
                    node->text);
        return;
    }
    scoped(mem_freep) char *path = build_path(build, node, name, true);

    if (path == NULL)
        return;
    scoped(fd_closep) int fd =
        reader->open(reader->context, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        build_error(build, node->mark, name, "'%s' cannot be opened: %s", path, strerror(-fd));
    else
        str_list_add(&env->packages, path);
}

static void read_packages(const struct build *build, const struct node *list, struct task_env *env)
{
    const struct node *driver = node_find(build->root, "sandbox.driver");

    if (list == NULL || list->count == 0)
        return;
    scoped(mem_freep) char *whole = str_format("%s.env_packages", env->field);

    if (driver != NULL && strcmp(driver->text, "tempdir") == 0)
        build_error(build, list->mark, whole,
                    "the driver 'tempdir' has no cell to install packages in: the driver native "
                    "expected");
    if (list->count > TASK_PACKAGES_MAX)
        build_error(build, list->mark, whole, "at most %d packages, found %zu", TASK_PACKAGES_MAX,
                    list->count);
    for (size_t i = 0; i < list->count && list->count <= TASK_PACKAGES_MAX; i++) {
        scoped(mem_freep) char *name = str_format("%s[%zu]", whole, i);

        add_package(build, list->items[i], name, env);
    }
}

static void copy_env(const struct task_env *from, struct task_env *to)
{
    to->want = from->want;
    to->field = from->field == NULL ? NULL : str_dup(from->field);
    str_list_copy(&to->packages, &from->packages);
}

void build_env(const struct build *build, const char *block, const char *key, struct task_env *env)
{
    const struct node *node = node_get(node_get(build->root, block), key);
    const struct task_root *agent = &build->task->public_half->root;
    bool is_python = strcmp(key, "python") == 0;

    /* Graders have what the agent has, unless they say otherwise. */
    if (node == NULL && strcmp(block, "grading") == 0) {
        copy_env(is_python ? &agent->python : &agent->node, env);
        return;
    }
    env->field = str_format("%s.%s", block, key);
    if (node == NULL) {
        env->want = is_python ? ENV_USUAL : ENV_NONE;
        return;
    }
    env->want = node->kind == NODE_MAP ? ENV_ASKED : ENV_NONE;
    read_packages(build, node_get(node, "env_packages"), env);
}
