/* closedbook.yaml of the suite root and the user's config.yaml, as layers below a task. */
#include <errno.h>

#include "task/internal.h"

struct config {
    struct arena arena;
    char *texts[2];
    struct node *user, *suite; /* layers of the shape of set_block; NULL: absent */
    const char *experiment;    /* of the suite's file */
    json_t *routes;            /* of the user's file; NULL: none */
    const char *judge;         /* of the suite's file, else of the user's */
};

const struct node *config_user_layer(const struct config *config)
{
    return config->user;
}

const struct node *config_suite_layer(const struct config *config)
{
    return config->suite;
}

void config_freep(struct config **config)
{
    if (*config == NULL)
        return;
    free((*config)->texts[0]);
    free((*config)->texts[1]);
    json_decref((*config)->routes);
    arena_done(&(*config)->arena);
    free(*config);
    *config = NULL;
}

const char *config_experiment(const struct config *config)
{
    return config->experiment;
}

const json_t *config_routes(const struct config *config)
{
    return config->routes;
}

const char *config_judge(const struct config *config)
{
    return config->judge;
}

struct node *layer_alias(const struct loader_context *schema, struct node *layer, const char *block,
                         const char *key, struct node *value)
{
    if (value == NULL)
        return layer;
    struct node *inner = node_new(schema->arena, NODE_MAP, value->mark);
    struct node *outer = node_new(schema->arena, NODE_MAP, value->mark);
    struct member member = {.key = key, .mark = value->mark, .value = value};

    node_put(schema->arena, inner, &member);
    member = (struct member){.key = block, .mark = value->mark, .value = inner};
    node_put(schema->arena, outer, &member);
    return merge_layers(schema->arena, &set_block, layer,
                        schema_load(schema, &set_block, outer, NULL));
}

/* The configuration's own words to the layer that they mean. */
static struct node *to_layer(const struct loader_context *schema, const struct node *checked)
{
    struct node *agent = node_get(checked, "agent");
    struct node *layer = merge_layers(schema->arena, &set_block, NULL, checked);

    if (agent != NULL && agent->kind == NODE_TEXT) {
        struct member none = {.key = "agent", .mark = agent->mark};

        none.value = node_new(schema->arena, NODE_MAP, agent->mark);
        node_put(schema->arena, layer, &none);
        layer = layer_alias(schema, layer, "agent", "type", agent);
    }
    layer = layer_alias(schema, layer, "agent", "model", node_get(checked, "model"));
    layer = layer_alias(schema, layer, "sandbox", "driver", node_get(checked, "driver"));
    return layer_alias(schema, layer, "sandbox", "limits", node_get(checked, "limits"));
}

/* Which file: its name in messages and lineage, its path. */
struct config_file {
    const char *source, *path;
    char **text;
};

/* A suite that named an endpoint could have the user's key sent there. */
static void take_routes(struct config *config, const struct origin *origin,
                        const struct node *routes, struct problems *problems)
{
    if (routes == NULL)
        return;
    if (strcmp(origin->source, "config.yaml") == 0)
        config->routes = node_to_json(routes);
    else
        problems_error(problems, routes->mark, NULL,
                       "routes: endpoints and their keys are the user's: name them in config.yaml");
}

static struct node *load_file(struct config *config, const struct config_file *file,
                              const struct task_reader *reader, struct problems *problems)
{
    if (file->path == NULL)
        return NULL;
    scoped(buf_done) struct buf buf = {0};
    scoped(mem_freep) char *wrong = NULL;
    struct loader_context schema = {&config->arena, problems};
    struct origin *origin = arena_new(&config->arena, 1, sizeof(*origin));
    scoped(mem_freep) char *dir = path_dir(file->path);
    int r = source_read(reader, file->path, TASK_BYTES_MAX, &buf, &wrong);

    *origin = (struct origin){.source = file->source};
    origin->file = arena_text(&config->arena, file->path, strlen(file->path));
    origin->path = origin->file;
    origin->dir = arena_text(&config->arena, dir, strlen(dir));
    if (r == -ENOENT)
        return NULL;
    if (r < 0) {
        problems_error(problems, (struct mark){.origin = origin}, NULL, "%s", wrong);
        return NULL;
    }
    origin->length = buf.size_bytes;
    *file->text = buf_take(&buf);
    origin->text = *file->text;
    const struct node *root = yaml_read(&config->arena, origin, problems);

    if (root == NULL)
        return NULL;
    const struct node *checked = schema_load(&schema, &config_block, root, NULL);

    config->experiment = node_get_text(checked, "experiment");
    const char *judge = node_get_text(checked, "judge");

    config->judge = judge == NULL ? config->judge : judge;
    take_routes(config, origin, node_get(checked, "routes"), problems);
    return to_layer(&schema, checked);
}

int config_load(const char *suite_root, const char *user_config, const struct task_reader *reader,
                struct config **ret, struct problems *problems, struct error **err)
{
    struct config *config = mem_new(1, sizeof(*config));
    size_t errors_before = problems->error_count;
    scoped(mem_freep) char *suite =
        suite_root == NULL ? NULL : path_join(suite_root, "closedbook.yaml");
    struct config_file user_file = {"config.yaml", user_config, &config->texts[0]};
    struct config_file suite_file = {"closedbook.yaml", suite, &config->texts[1]};

    config->user = load_file(config, &user_file, reader, problems);
    config->suite = load_file(config, &suite_file, reader, problems);
    *ret = config;
    if (problems->error_count > errors_before)
        return error_set(err, ERROR_USER, "the configuration has errors");
    return 0;
}

json_t *config_to_json(const struct config *config)
{
    static const struct origin built_in = {.source = "default"};
    scoped(arena_done) struct arena arena = {0};
    struct node *merged = schema_defaults(&arena, &set_block, (struct mark){.origin = &built_in});

    if (config->user != NULL)
        merged = merge_layers(&arena, &set_block, merged, config->user);
    if (config->suite != NULL)
        merged = merge_layers(&arena, &set_block, merged, config->suite);
    scoped(json_freep) json_t *lineage = merge_lineage(merged, NULL);
    json_t *array = json_array(), *entry;
    const char *path;

    json_object_foreach (lineage, path, entry) {
        json_t *item = json_object();

        json_put_text(item, "path", path);
        (void)json_object_update(item, entry); /* both are objects */
        json_push(array, item);
    }
    return array;
}
