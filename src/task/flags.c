/* The command line as a layer: -T TYPE[:ARG], -m MODEL, --driver NAME and -D path=value. */
#include "task/internal.h"

/* The layer being made, and which paths a flag has taken already. */
struct flag_reader {
    struct loader_context schema;
    const char *cwd;
    struct node *layer;
    struct str_list paths, flags; /* parallel: a path, and the flag that set it */
};

static struct origin *new_origin(const struct flag_reader *reader, const char *source,
                                 const char *flag)
{
    struct arena *arena = reader->schema.arena;
    struct origin *origin = arena_new(arena, 1, sizeof(*origin));

    origin->source = source;
    origin->file = flag;
    origin->dir = reader->cwd;
    return origin;
}

static bool overlaps(const char *a, const char *b)
{
    size_t length = size_min(strlen(a), strlen(b));

    return strncmp(a, b, length) == 0 && (a[length] == '\0' || a[length] == '.') &&
           (b[length] == '\0' || b[length] == '.');
}

/* True: the path was free; it is now taken by the flag. */
static bool claim(struct flag_reader *reader, const char *path, struct mark mark)
{
    for (size_t i = 0; i < reader->paths.count; i++) {
        if (!overlaps(reader->paths.items[i], path))
            continue;
        problems_error(reader->schema.problems, mark, NULL, "'%.80s' is already set by '%.80s'",
                       path, reader->flags.items[i]);
        return false;
    }
    str_list_add(&reader->paths, path);
    str_list_add(&reader->flags, mark.origin->file);
    return true;
}

/* {a: {b: value}} for "a.b". NULL: complained. */
static struct node *nest(const struct flag_reader *reader, const char *path, struct node *value)
{
    struct arena *arena = reader->schema.arena;
    const char *dot = strrchr(path, '.');
    struct member member = {.mark = value->mark, .value = value};
    struct node *map = node_new(arena, NODE_MAP, value->mark);

    member.key = dot == NULL ? path : dot + 1;
    if (member.key[0] == '\0' || value->height > TASK_DEPTH_MAX) {
        problems_error(reader->schema.problems, value->mark, NULL,
                       "'%.80s' is no path like sandbox.limits.timeout", path);
        return NULL;
    }
    node_put(arena, map, &member);
    if (dot == NULL)
        return map;
    return nest(reader, arena_text(arena, path, (size_t)(dot - path)), map);
}

static void put(struct flag_reader *reader, const char *path, struct node *value)
{
    if (!claim(reader, path, value->mark))
        return;
    const struct node *nested = nest(reader, path, value);

    if (nested == NULL)
        return;
    const struct node *loaded = schema_load(&reader->schema, &set_block, nested, NULL);

    reader->layer = merge_layers(reader->schema.arena, &set_block, reader->layer, loaded);
}

static void put_flag(struct flag_reader *reader, const char *flag, const char *path,
                     const char *value)
{
    if (value == NULL)
        return;
    char *text = arena_format(reader->schema.arena, "%s %s", flag, value);
    struct mark mark = {.origin = new_origin(reader, flag, text)};

    put(reader, path, node_new_text(reader->schema.arena, value, mark));
}

static void put_agent(struct flag_reader *reader, const char *agent)
{
    if (agent == NULL)
        return;
    struct arena *arena = reader->schema.arena;
    struct mark mark = {.origin = new_origin(reader, "-T", arena_format(arena, "-T %s", agent))};
    const char *colon = strchr(agent, ':'), *argument = colon == NULL ? NULL : colon + 1;
    char *type = arena_text(arena, agent, colon == NULL ? strlen(agent) : (size_t)(colon - agent));
    bool is_script = strcmp(type, "script") == 0, is_exec = strcmp(type, "exec") == 0;

    put(reader, "agent.type", node_new_text(arena, type, mark));
    if (argument == NULL)
        return;
    if ((!is_script && !is_exec) || argument[0] == '\0') {
        problems_error(reader->schema.problems, mark, NULL,
                       is_script || is_exec ? "'%s:' wants something after the ':'"
                                            : "the agent type '%.60s' takes no ':ARG'",
                       type);
        return;
    }
    put(reader, is_script ? "agent.script" : "agent.command", node_new_text(arena, argument, mark));
}

static void put_set(struct flag_reader *reader, const char *set)
{
    struct arena *arena = reader->schema.arena;
    struct origin *origin = new_origin(reader, "-D", arena_format(arena, "-D %s", set));
    struct mark mark = {.origin = origin};
    const char *equals = strchr(set, '=');

    if (equals == NULL || equals == set) {
        problems_error(reader->schema.problems, mark, NULL,
                       "path=value expected, as in sandbox.limits.timeout=60");
        return;
    }
    struct origin *text = arena_new(arena, 1, sizeof(*text));

    *text = *origin;
    text->text = equals + 1;
    text->length = strlen(equals + 1);
    struct node *value = yaml_read(arena, text, reader->schema.problems);

    if (value == NULL)
        return;
    if (value->kind == NODE_NULL) {
        problems_error(reader->schema.problems, mark, NULL, "a value expected, found nothing");
        return;
    }
    value->mark = mark;
    put(reader, arena_text(arena, set, (size_t)(equals - set)), value);
}

struct node *flags_layer(struct arena *arena, const struct task_overrides *overrides,
                         const char *cwd, struct problems *problems)
{
    static const struct origin none = {.source = "flags"};
    struct flag_reader reader = {.schema = {arena, problems}, .cwd = cwd};

    reader.layer = node_new(arena, NODE_MAP, (struct mark){.origin = &none});
    put_agent(&reader, overrides->agent);
    put_flag(&reader, "-m", "agent.model", overrides->model);
    put_flag(&reader, "--driver", "sandbox.driver", overrides->driver);
    for (size_t i = 0; overrides->sets != NULL && i < overrides->sets->count; i++)
        put_set(&reader, overrides->sets->items[i]);
    str_list_done(&reader.paths);
    str_list_done(&reader.flags);
    return reader.layer;
}
