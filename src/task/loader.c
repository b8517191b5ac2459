/* What many tasks share: the layers of defaults and flags, suite roots and their configuration. */
#include "task/experiment.h"

#define PARENTS_MAX 256

void loader_init(struct loader *loader, const struct task_reader *reader,
                 const struct task_overrides *overrides, struct problems *problems)
{
    static const struct task_overrides nothing;
    static const struct origin built_in = {.source = "default"};

    *loader = (struct loader){.reader = reader, .overrides = overrides, .task_max = TASKS_MAX};
    if (overrides == NULL)
        loader->overrides = &nothing;
    char *cwd = getcwd(NULL, 0);

    loader->cwd = cwd == NULL ? str_dup("/") : cwd;
    loader->defaults =
        schema_defaults(&loader->arena, &set_block, (struct mark){.origin = &built_in});
    loader->flags = flags_layer(&loader->arena, loader->overrides, loader->cwd, problems);
}

void loader_done(struct loader *loader)
{
    for (size_t i = 0; i < loader->suite_count; i++) {
        free(loader->suites[i].root);
        config_freep(&loader->suites[i].config);
    }
    for (size_t i = 0; i < loader->names.count; i++)
        experiment_free(loader->experiments[i]);
    free(loader->experiments);
    str_list_done(&loader->names);
    free(loader->suites);
    free(loader->cwd);
    free(loader->script);
    str_list_done(&loader->dirs);
    str_list_done(&loader->dir_roots);
    arena_done(&loader->arena);
}

static bool is_root(const struct loader *loader, const char *dir)
{
    static const char *const marks[] = {".git", ".claude-plugin/plugin.json",
                                        ".claude-plugin/marketplace.json"};

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        scoped(mem_freep) char *path = path_join(dir, marks[i]);

        if (source_exists(loader->reader, path))
            return true;
    }
    return false;
}

/* --suite-root, else the nearest ancestor with .git or a plugin manifest, else the folder itself.
 */
static char *find_root(const struct loader *loader, const char *start)
{
    if (loader->overrides->suite_root != NULL) {
        scoped(mem_freep) char *path = path_join(loader->cwd, loader->overrides->suite_root);

        return path_normal(path);
    }
    scoped(mem_freep) char *dir = str_dup(start);

    for (int i = 0; i < PARENTS_MAX; i++) {
        if (is_root(loader, dir))
            return take(dir);
        if (strcmp(dir, "/") == 0)
            break;
        char *parent = path_dir(dir);

        free(dir);
        dir = parent;
    }
    return str_dup(start);
}

/* The experiment of -e, else of closedbook.yaml, each read once. NULL: none, or complained. */
static struct experiment *experiment_of(struct loader *loader, struct suite *suite,
                                        struct problems *problems)
{
    const char *name = loader->overrides->experiment != NULL ? loader->overrides->experiment
                                                             : config_experiment(suite->config);

    if (name == NULL)
        return NULL;
    scoped(mem_freep) char *key = str_format("%s\n%s", name, suite->root);

    for (size_t i = 0; i < loader->names.count; i++) {
        if (strcmp(loader->names.items[i], key) != 0)
            continue;
        suite->experiment_broken = loader->experiments[i] == NULL;
        return loader->experiments[i];
    }
    struct experiment *experiment = experiment_load(loader, name, suite->root, problems);

    suite->experiment_broken = experiment == NULL;
    str_list_add(&loader->names, key);
    loader->experiments =
        mem_resize(loader->experiments, loader->names.count, sizeof(*loader->experiments));
    loader->experiments[loader->names.count - 1] = experiment;
    return experiment;
}

static const struct suite *suite_of(struct loader *loader, const char *root,
                                    struct problems *problems)
{
    for (size_t i = 0; i < loader->suite_count; i++) {
        if (strcmp(loader->suites[i].root, root) == 0)
            return &loader->suites[i];
    }
    struct suite suite = {.root = str_dup(root)};

    /* What is wrong with it is among the problems; the rest of it counts. */
    int unused_ok r = config_load(root, loader->overrides->user_config, loader->reader,
                                  &suite.config, problems, NULL);

    suite.experiment = experiment_of(loader, &suite, problems);

    loader->suites = mem_resize(loader->suites, loader->suite_count + 1, sizeof(struct suite));
    loader->suites[loader->suite_count] = suite;
    return &loader->suites[loader->suite_count++];
}

const struct suite *loader_suite(struct loader *loader, const char *dir, struct problems *problems)
{
    for (size_t i = loader->dirs.count; i-- > 0;) {
        if (strcmp(loader->dirs.items[i], dir) == 0)
            return suite_of(loader, loader->dir_roots.items[i], problems);
    }
    scoped(mem_freep) char *root = find_root(loader, dir);

    str_list_add(&loader->dirs, dir);
    str_list_add(&loader->dir_roots, root);
    return suite_of(loader, root, problems);
}
