#include "task/experiment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/hash.h"

#define NAMES_SHOWN 20

/* --- which file --------------------------------------------------------------------------------
 */

static bool is_path(const char *name)
{
    return strchr(name, '/') != NULL || str_ends(name, ".yaml") || str_ends(name, ".yml");
}

/* The names below experiments/, sorted, at most NAMES_SHOWN: "a, b"; owned. */
static char *known_names(const struct loader *loader, const char *dir)
{
    scoped(fd_closep) int fd =
        loader->reader->open(loader->reader->context, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    scoped(str_list_done) struct str_list names = {0};
    scoped(buf_done) struct buf buf = {0};

    if (list == NULL)
        return str_dup("there is no such folder; --suite-root names where the suite is");
    (void)take_fd(&fd); /* closedir() closes it */
    for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (str_ends(entry->d_name, ".yaml"))
            str_list_add_take(&names,
                              str_ndup(entry->d_name, strlen(entry->d_name) - strlen(".yaml")));
    }
    (void)closedir(list); /* only read from */
    if (names.count == 0)
        return str_dup("it holds none");
    str_list_sort(&names);
    for (size_t i = 0; i < names.count && i < NAMES_SHOWN; i++)
        buf_format(&buf, "%s'%.60s'", i == 0 ? "it holds " : ", ", names.items[i]);
    if (names.count > NAMES_SHOWN)
        buf_format(&buf, " and %zu more", names.count - NAMES_SHOWN);
    return buf_take(&buf);
}

/* The absolute path; NULL: complained. */
static char *find_file(const struct loader *loader, const char *name, const char *folder,
                       struct problems *problems)
{
    scoped(mem_freep) char *base =
        is_path(name) ? str_dup(loader->cwd) : path_join(folder, "experiments");
    scoped(mem_freep) char *file = is_path(name) ? str_dup(name) : str_format("%s.yaml", name);
    scoped(mem_freep) char *joined = path_join(base, file);
    scoped(mem_freep) char *whole = path_normal(joined);
    scoped(mem_freep) char *flag = str_format("-e %s", name);
    struct origin origin = {.source = "-e", .file = flag};

    if (source_exists(loader->reader, whole))
        return take(whole);
    scoped(mem_freep) char *names = is_path(name) ? NULL : known_names(loader, base);

    problems_error(problems, (struct mark){.origin = &origin}, NULL, "no experiment '%s'%s%s",
                   whole, names == NULL ? "" : ": ", names == NULL ? "" : names);
    return NULL;
}

/* --- what it says ------------------------------------------------------------------------------
 */

/* A copy whose marks say that a variant gave it. */
static struct node *mark_as(struct arena *arena, const struct node *node,
                            const struct origin *origin)
{
    struct node *copy = arena_new(arena, 1, sizeof(*copy));

    *copy = *node;
    if (node->mark.origin->path != NULL)
        copy->mark.origin = origin;
    if (node->kind == NODE_LIST && node->count > 0) {
        copy->items = arena_new(arena, node->count, sizeof(*copy->items));
        for (size_t i = 0; i < node->count; i++)
            copy->items[i] = mark_as(arena, node->items[i], origin);
    }
    if (node->kind == NODE_MAP && node->count > 0) {
        copy->members = arena_new(arena, node->count, sizeof(*copy->members));
        for (size_t i = 0; i < node->count; i++) {
            copy->members[i] = node->members[i];
            copy->members[i].value = mark_as(arena, node->members[i].value, origin);
        }
    }
    return copy;
}

/* The experiment's own words to the layer that they mean. */
static struct node *to_layer(const struct loader_context *schema, const struct node *fields)
{
    struct node *layer = merge_layers(schema->arena, &set_block, NULL, fields);

    layer = layer_alias(schema, layer, "sandbox", "driver", node_get(fields, "driver"));
    return layer_alias(schema, layer, "sandbox", "template_sources",
                       node_get(fields, "template_sources"));
}

static uint64_t repeats_of(const struct node *fields)
{
    return (uint64_t)node_get_real(fields, "repeats", 0);
}

static void check_template(const struct node *mutation, const struct path *path,
                           struct problems *problems)
{
    const struct node *variables = node_get(mutation, "variables");
    struct path at = {.up = path, .name = "variables"};

    for (size_t i = 0; variables != NULL && i < variables->count; i++) {
        const struct node *value = variables->members[i].value;
        struct path inside = {.up = &at, .name = variables->members[i].key};

        if (value->kind == NODE_LIST || value->kind == NODE_MAP || value->kind == NODE_NULL)
            problems_error(problems, value->mark, &inside, "a text expected");
    }
}

static void check_mutations(const struct node *fields, const struct path *path,
                            struct problems *problems)
{
    const struct node *mutations = node_get(fields, "prompt_mutations");
    struct path list = {.up = path, .name = "prompt_mutations"};

    for (size_t i = 0; mutations != NULL && i < mutations->count; i++) {
        struct path at = {.up = &list, .index = i};

        check_template(mutations->items[i], &at, problems);
    }
}

/* One prompt, from one place. */
static void check_prompt(const struct node *fields, const struct path *path,
                         struct problems *problems)
{
    static const char *const names[] = {"initial_prompt", "initial_prompt_file",
                                        "prompt_mutations"};
    const char *first = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct node *node = node_get(fields, names[i]);
        struct path at = {.up = path, .name = names[i]};

        if (node == NULL || (node->kind == NODE_LIST && node->count == 0))
            continue;
        if (first != NULL)
            problems_error(problems, node->mark, &at,
                           "'%s' is given as well: at most one of the two expected", first);
        first = names[i];
    }
}

static void check_unique(const struct experiment *experiment, const struct node *id,
                         const struct path *path, struct problems *problems)
{
    struct path at = {.up = path, .name = "variant_id"};

    for (size_t i = 0; i < experiment->variant_count; i++) {
        if (strcmp(experiment->variants[i].id, id->text) == 0)
            problems_error(problems, id->mark, &at, "'%s' is also the id of an earlier variant",
                           id->text);
    }
}

static void read_variants(struct experiment *experiment, const struct node *root,
                          const struct origin *origin, struct problems *problems)
{
    const struct node *list = node_get(root, "variants");
    struct loader_context schema = {&experiment->arena, problems};
    struct path name = {.name = "variants"};
    struct origin *as = arena_new(&experiment->arena, 1, sizeof(*as));

    *as = *origin;
    as->source = "variant";
    if (list == NULL)
        return;
    if (list->count > EXPERIMENT_VARIANTS_MAX) {
        problems_error(problems, list->mark, &name, "at most %d variants expected, found %zu",
                       EXPERIMENT_VARIANTS_MAX, list->count);
        return;
    }
    experiment->variants = mem_new(list->count + 1, sizeof(struct variant));
    for (size_t i = 0; i < list->count; i++) {
        const struct node *fields = mark_as(&experiment->arena, list->items[i], as);
        const struct node *id = node_get(fields, "variant_id");
        struct path path = {.up = &name, .index = i};

        if (id == NULL)
            continue; /* complained about */
        check_unique(experiment, id, &path, problems);
        check_prompt(fields, &path, problems);
        check_mutations(fields, &path, problems);
        experiment->variants[experiment->variant_count++] =
            (struct variant){id->text, fields, to_layer(&schema, fields), repeats_of(fields)};
    }
}

static void read_defaults(struct experiment *experiment, const struct node *root,
                          struct problems *problems)
{
    struct loader_context schema = {&experiment->arena, problems};
    struct path name = {.name = "defaults"};

    experiment->fields = node_get(root, "defaults");
    if (experiment->fields == NULL)
        return;
    check_mutations(experiment->fields, &name, problems);
    experiment->layer = to_layer(&schema, experiment->fields);
    experiment->repeats = repeats_of(experiment->fields);
}

/* The file's bytes as an origin in the arena; NULL: complained. */
static struct origin *read_file(struct experiment *experiment, const struct loader *loader,
                                const char *path, struct problems *problems)
{
    struct origin *origin = arena_new(&experiment->arena, 1, sizeof(*origin));
    scoped(buf_done) struct buf buf = {0};
    scoped(mem_freep) char *dir = path_dir(path), *wrong = NULL;
    int r = source_read(loader->reader, path, TASK_BYTES_MAX, &buf, &wrong);

    *origin = (struct origin){.source = "experiment"};
    origin->file = origin->path = arena_text(&experiment->arena, path, strlen(path));
    origin->dir = arena_text(&experiment->arena, dir, strlen(dir));
    experiment->path = origin->path;
    if (r < 0) {
        problems_error(problems, (struct mark){.origin = origin}, NULL, "%s",
                       wrong == NULL ? "does not exist" : wrong);
        return NULL;
    }
    struct sha256 digest = sha256_of(buf_text(&buf), buf.size_bytes);
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, hex);
    experiment->digest = arena_text(&experiment->arena, hex, strlen(hex));
    origin->length = buf.size_bytes;
    experiment->bytes = buf_take(&buf);
    origin->text = experiment->bytes;
    return origin;
}

struct experiment *experiment_load(const struct loader *loader, const char *name,
                                   const char *folder, struct problems *problems)
{
    scoped(mem_freep) char *path = find_file(loader, name, folder, problems);
    size_t errors_before = problems->error_count;

    if (path == NULL)
        return NULL;
    struct experiment *experiment = mem_new(1, sizeof(*experiment));
    struct loader_context schema = {&experiment->arena, problems};
    const struct origin *origin = read_file(experiment, loader, path, problems);
    const struct node *raw =
        origin == NULL ? NULL : yaml_read(&experiment->arena, origin, problems);

    if (raw == NULL) {
        experiment_free(experiment);
        return NULL;
    }
    const struct node *root = schema_load(&schema, &experiment_block, raw, NULL);

    read_defaults(experiment, root, problems);
    read_variants(experiment, root, origin, problems);
    if (problems->error_count == errors_before)
        return experiment;
    experiment_free(experiment);
    return NULL;
}

void experiment_free(struct experiment *experiment)
{
    if (experiment == NULL)
        return;
    free(experiment->variants);
    free(experiment->bytes);
    arena_done(&experiment->arena);
    free(experiment);
}
