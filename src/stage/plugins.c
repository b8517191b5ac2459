#include "stage/plugins.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/internal.h"
#include "stage/plugin_manifest.h"

#define ROUNDS_MAX 4 /* files that name files that name files */
#define SCANNED_BYTES_MAX ((size_t)1 << 20)
#define LINKS_TOLD_MAX 100
#define NAME_BYTES_MAX 64
#define KEY_FORMAT "closedbook/plugin/1"

/* Never of use to an agent. */
static const char *const always_ignored[] = {".git", "__pycache__", "*.pyc", ".DS_Store"};

/* One plugin on its way. */
struct projection {
    const struct plugins_source *source;
    const struct task_plugin *plugin;
    const char *name; /* of its folder in the tree */
    int fd;           /* its root */
    struct plugin_manifest manifest;
    struct str_list only, ignore;
    struct layer layer;
};

static void projection_done(struct projection *projection)
{
    fd_closep(&projection->fd);
    plugin_manifest_done(&projection->manifest);
    str_list_done(&projection->only);
    str_list_done(&projection->ignore);
    layer_done(&projection->layer);
}

void plugins_done(struct plugins *plugins)
{
    layer_done(&plugins->layer);
    str_list_done(&plugins->names);
    str_list_done(&plugins->sources);
    json_decref(plugins->links);
    *plugins = (struct plugins){.layer.tree_fd = -1};
}

/* --- what is taken ---------------------------------------------------------------------------- */

/* A path as the pattern that it alone matches; owned. */
static char *literal(const char *path)
{
    scoped(buf_done) struct buf pattern = {0};

    for (const char *s = path; *s != '\0'; s++) {
        bool special = strchr("*?[", *s) != NULL;

        if (special)
            buf_char(&pattern, '[');
        buf_char(&pattern, *s);
        if (special)
            buf_char(&pattern, ']');
    }
    return buf_take(&pattern);
}

static bool is_manifest(const char *path)
{
    const char *base = path_base(path);

    return strcmp(base, "plugin.json") == 0 || strcmp(base, "marketplace.json") == 0 ||
           strcmp(base, "gemini-extension.json") == 0;
}

static void fill_lists(struct projection *projection)
{
    const struct str_list *include = &projection->plugin->include;
    const struct str_list *more = &projection->source->agent->plugin_ignore;

    str_list_done(&projection->only);
    str_list_done(&projection->ignore);
    projection->only = projection->ignore = (struct str_list){0};
    for (size_t i = 0; i < projection->manifest.paths.count; i++) {
        const char *path = projection->manifest.paths.items[i];

        if (include->count == 0 || is_manifest(path))
            str_list_add_take(&projection->only, literal(path));
    }
    for (size_t i = 0; i < ARRAY_SIZE(always_ignored); i++)
        str_list_add(&projection->ignore, always_ignored[i]);
    for (size_t i = 0; i < include->count; i++) {
        if (include->items[i][0] == '!')
            str_list_add(&projection->ignore, include->items[i] + 1);
        else
            str_list_add(&projection->only, include->items[i]);
    }
    for (size_t i = 0; i < more->count; i++)
        str_list_add(&projection->ignore, more->items[i]);
}

static int stage_round(struct projection *projection, struct error **err)
{
    const struct plugins_source *source = projection->source;

    fill_lists(projection);
    layer_done(&projection->layer);
    projection->layer = (struct layer){.tree_fd = -1};
    struct store_source stored = {
        .fd = projection->fd,
        .label = projection->plugin->path,
        .mount_point = projection->name,
        .ignore = &projection->ignore,
        .only = &projection->only,
        .keep_links = true,
    };

    return store_add(source->store, STORE_PUBLIC, source->monitor, &stored, &projection->layer,
                     err);
}

/* The entry's path below the plugin's root; "" is the root itself. */
static const char *below_root(const struct projection *projection, const char *path)
{
    const char *rest = path + strlen(projection->name);

    return rest[0] == '/' ? rest + 1 : rest;
}

/* --- files that files name -------------------------------------------------------------------- */

/* The folder of the plugin that the file belongs to: the innermost. */
static const char *root_of(const struct projection *projection, const char *path)
{
    const struct str_list *roots = &projection->manifest.roots;
    const char *found = "";

    for (size_t i = 0; i < roots->count; i++) {
        if (strlen(roots->items[i]) > strlen(found) && manifest_path_below(path, roots->items[i]))
            found = roots->items[i];
    }
    return found;
}

/* The length of a name of the plugin's root at text, with the '/' behind it; 0: it is none. */
static size_t root_token(const char *text)
{
    static const char *const names[] = {"CLAUDE_PLUGIN_ROOT", "CURSOR_PLUGIN_ROOT", "PLUGIN_ROOT",
                                        "extensionPath"};
    static const char *const slashes[] = {"/", "${/}"};
    const char *name = text + 1 + (text[1] == '{');

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *end = name + strlen(names[i]);

        if (!str_starts(name, names[i]) || (text[1] == '{' && *end != '}'))
            continue;
        end += text[1] == '{';
        end += *end == '"' || *end == '\'' || (end[0] == '\\' && end[1] == '"');
        for (size_t j = 0; j < ARRAY_SIZE(slashes); j++) {
            if (str_starts(end, slashes[j]))
                return (size_t)(end - text) + strlen(slashes[j]);
        }
    }
    return 0;
}

/* The path that begins at text, "${/}" as '/'; owned; NULL: it stays in no folder. */
static char *named_path(const char *text)
{
    scoped(buf_done) struct buf path = {0};

    while (*text != '\0') {
        if (str_starts(text, "${/}")) {
            buf_char(&path, '/');
            text += strlen("${/}");
        } else if ((unsigned char)*text <= ' ' || strchr("\"'`\\)(<>;|&,$*?", *text) != NULL) {
            break;
        } else {
            buf_char(&path, *text++);
        }
    }
    /* The end of a sentence is none of a path. */
    while (path.size_bytes > 0 && strchr(".:", path.data[path.size_bytes - 1]) != NULL)
        path.data[--path.size_bytes] = '\0';
    scoped(mem_freep) char *normal = path_normal(buf_text(&path));

    return strcmp(normal, ".") == 0 || normal[0] == '/' || !path_is_inside(normal) ? NULL
                                                                                   : take(normal);
}

/* Only files: a folder that is named so says too little. */
static bool is_file(const struct projection *projection, const char *path)
{
    const struct task_reader *reader = projection->source->reader;
    scoped(mem_freep) char *whole = path_join(projection->plugin->path, path);
    scoped(fd_closep) int fd =
        reader->open(reader->context, whole, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static int scan_text(struct projection *projection, const char *text, const char *root,
                     struct error **err)
{
    int r = 0;

    for (const char *at = strchr(text, '$'); at != NULL && r == 0; at = strchr(at + 1, '$')) {
        size_t length = root_token(at);
        scoped(mem_freep) char *named = length == 0 ? NULL : named_path(at + length);
        scoped(mem_freep) char *path = named == NULL ? NULL : path_join(root, named);
        scoped(mem_freep) char *staged = path == NULL ? NULL : path_join(projection->name, path);

        if (path != NULL && manifest_find(&projection->layer.manifest, staged) == NULL &&
            is_file(projection, path))
            r = plugin_manifest_add(&projection->manifest, path, err);
    }
    return r;
}

/* Looks in all that is staged for further files that are named there. */
static int scan_layer(struct projection *projection, struct error **err)
{
    const struct manifest *manifest = &projection->layer.manifest;
    int r = 0;

    for (size_t i = 0; i < manifest->count && r == 0; i++) {
        const struct manifest_entry *entry = &manifest->entries[i];
        scoped(buf_done) struct buf text = {0};

        if (entry->type != MANIFEST_FILE || entry->size_bytes > SCANNED_BYTES_MAX)
            continue;
        scoped(fd_closep) int fd = fs_open_beneath(projection->layer.tree_fd, entry->path,
                                                   O_RDONLY | O_CLOEXEC, 0, FS_NO_LINKS);

        if (fd < 0)
            return error_errno(err, -fd, "cannot read '%s' in the store", entry->path);
        r = fs_read_fd(fd, entry->path, SCANNED_BYTES_MAX, &text, err);
        if (r == 0 && memchr(buf_text(&text), '\0', text.size_bytes) == NULL)
            r = scan_text(projection, buf_text(&text),
                          root_of(projection, below_root(projection, entry->path)), err);
    }
    return r;
}

/* --- one plugin ------------------------------------------------------------------------------- */

/* "<root>/<skill>/SKILL.md": a folder of skills without anything around it. */
static int try_bare_skills(struct projection *projection, struct error **err)
{
    const struct task_plugin bare = {
        .path = projection->plugin->path,
        .include = {.items = (char *[]){(char *)(uintptr_t) "*/SKILL.md", NULL}, .count = 1}};
    const struct task_plugin *plugin = projection->plugin;

    projection->plugin = &bare;
    int r = stage_round(projection, err);

    projection->plugin = plugin;
    for (size_t i = 0; i < projection->layer.manifest.count && r == 0; i++) {
        const struct manifest_entry *entry = &projection->layer.manifest.entries[i];
        scoped(mem_freep) char *folder = path_dir(below_root(projection, entry->path));

        if (entry->type == MANIFEST_FILE)
            r = plugin_manifest_add(&projection->manifest, folder, err);
    }
    return r < 0 ? r : stage_round(projection, err);
}

static size_t count_files(const struct layer *layer)
{
    size_t count = 0;

    for (size_t i = 0; i < layer->manifest.count; i++)
        count += layer->manifest.entries[i].type != MANIFEST_DIR;
    return count;
}

static int project(struct projection *projection, struct error **err)
{
    bool open = projection->plugin->include.count > 0;
    int r = stage_round(projection, err);

    if (r == 0 && count_files(&projection->layer) == 0 && !open &&
        projection->manifest.families.count == 0)
        r = try_bare_skills(projection, err);
    for (size_t i = 0; i < ROUNDS_MAX && r == 0 && !open; i++) {
        size_t before = projection->manifest.paths.count;

        r = scan_layer(projection, err);
        if (r == 0 && projection->manifest.paths.count == before)
            break;
        if (r == 0)
            r = stage_round(projection, err);
    }
    if (r == 0 && count_files(&projection->layer) == 0)
        return error_set(err, ERROR_TASK,
                         "'%s' has nothing that an agent gets of a plugin (skills, commands, "
                         "agents, hooks, a manifest that names them); say what is taken with "
                         "agent.plugins[].include",
                         projection->plugin->path);
    return r;
}

/* One process sees one state of a plugin, whose files need to be looked at only once. */
static struct sha256 key_of(const struct projection *projection, const struct stat *root)
{
    const struct str_list *lists[] = {&projection->plugin->include,
                                      &projection->source->agent->plugin_ignore};
    const uint64_t identity[] = {root->st_dev, root->st_ino};
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();

    sha256_stream_add(stream, KEY_FORMAT, sizeof(KEY_FORMAT));
    sha256_stream_add(stream, identity, sizeof(identity));
    sha256_stream_add(stream, projection->name, strlen(projection->name) + 1);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        sha256_stream_add(stream, &lists[i]->count, sizeof(lists[i]->count));
        for (size_t j = 0; j < lists[i]->count; j++)
            sha256_stream_add(stream, lists[i]->items[j], strlen(lists[i]->items[j]) + 1);
    }
    return sha256_stream_end(stream);
}

static int find_or_project(struct projection *projection, struct error **err)
{
    struct store *store = projection->source->store;
    struct stat status;

    if (fstat(projection->fd, &status) < 0)
        return error_errno(err, errno, "cannot look at '%s'", projection->plugin->path);
    struct sha256 key = key_of(projection, &status);
    const struct memo *memo = store_memo_find(store, &key);

    if (memo != NULL)
        return store_get(store, STORE_PUBLIC, &memo->root, &projection->layer, err);
    int r = project(projection, err);

    if (r == 0)
        store_memo_add(store, &key, &projection->layer.root);
    return r;
}

/* --- links ------------------------------------------------------------------------------------ */

/* Why a link leads to nothing that was staged; NULL: it does lead there. */
static const char *why_not(const struct projection *projection, const struct manifest_entry *entry)
{
    scoped(mem_freep) char *folder = path_dir(entry->path);
    scoped(mem_freep) char *whole = path_join(folder, entry->target);
    scoped(mem_freep) char *normal = path_normal(whole);

    if (normal[0] == '/' || !manifest_path_below(normal, projection->name))
        return "leads out of the plugin";
    if (manifest_path_below(entry->path, normal))
        return "leads back to a folder that it lies in";
    return manifest_find(&projection->layer.manifest, normal) == NULL
               ? "leads to what is not taken of the plugin"
               : NULL;
}

static void tell_links(const struct projection *projection, json_t *links)
{
    for (size_t i = 0; i < projection->layer.manifest.count; i++) {
        const struct manifest_entry *entry = &projection->layer.manifest.entries[i];
        const char *why = entry->type == MANIFEST_LINK ? why_not(projection, entry) : NULL;
        json_t *link;

        if (why == NULL || json_array_size(links) >= LINKS_TOLD_MAX)
            continue;
        scoped(buf_done) struct buf path = {0};
        scoped(buf_done) struct buf target = {0};

        manifest_escape(&path, entry->path);
        manifest_escape(&target, entry->target);
        link = json_object();
        json_put_text(link, "path", buf_text(&path));
        json_put_text(link, "target", buf_text(&target));
        json_put_text(link, "why", why);
        json_push(links, link);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool is_plain_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= NAME_BYTES_MAX && name[0] != '.' &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               length;
}

/* The manifest's name, else the folder's, else "plugin"; told apart by a number. */
static char *choose_name(const struct projection *projection, const struct str_list *taken)
{
    const char *given = projection->manifest.name;
    const char *name = path_base(projection->plugin->path);

    if (given != NULL && is_plain_name(given))
        name = given;
    else if (!is_plain_name(name))
        name = "plugin";
    if (!str_list_has(taken, name))
        return str_dup(name);
    for (size_t i = 2;; i++) {
        scoped(mem_freep) char *other = str_format("%s-%zu", name, i);

        if (!str_list_has(taken, other))
            return take(other);
    }
}

static int add_plugin(const struct plugins_source *source, const struct task_plugin *plugin,
                      struct layer *ret_layer, struct plugins *plugins, struct error **err)
{
    const struct task_reader *reader = source->reader;
    scoped(mem_freep) char *name = NULL;
    scoped(projection_done) struct projection projection = {
        .source = source, .plugin = plugin, .fd = -1, .layer.tree_fd = -1};

    projection.fd = reader->open(reader->context, plugin->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (projection.fd < 0)
        return error_errno_as(err, ERROR_TASK, -projection.fd, "cannot stage the plugin '%s'",
                              plugin->path);
    int r = plugin_manifest_read(reader, plugin->path, plugin->include.count == 0,
                                 &projection.manifest, err);

    if (r < 0)
        return r;
    projection.name = name = choose_name(&projection, &plugins->names);
    r = find_or_project(&projection, err);
    if (r < 0)
        return r;
    tell_links(&projection, plugins->links);
    str_list_add(&plugins->names, name);
    str_list_add(&plugins->sources, plugin->path);
    *ret_layer = projection.layer;
    projection.layer = (struct layer){.tree_fd = -1};
    return 0;
}

/* Layers of at most TASK_PLUGINS_MAX plugins. */
struct layers {
    struct layer items[TASK_PLUGINS_MAX];
    size_t count;
};

static void layers_done(struct layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        layer_done(&layers->items[i]);
}

int plugins_make(const struct plugins_source *source, struct plugins *ret, struct error **err)
{
    const struct task_agent *agent = source->agent;
    scoped(layers_done) struct layers layers = {.count = 0};
    scoped(plugins_done) struct plugins plugins = {.layer.tree_fd = -1};
    int r = 0;

    ASSERT(agent->plugin_count <= TASK_PLUGINS_MAX);
    if (agent->plugin_count > 0)
        plugins.links = json_array();
    for (size_t i = 0; i < agent->plugin_count && r == 0; i++) {
        r = add_plugin(source, &agent->plugins[i], &layers.items[i], &plugins, err);
        if (r < 0)
            return error_wrap(err, r, "%s:%u: agent.plugins[%zu]", agent->plugins[i].file,
                              agent->plugins[i].line, i);
        layers.count++;
    }
    if (layers.count == 1) {
        plugins.layer = layers.items[0];
        layers.count = 0;
    } else if (layers.count > 1) {
        r = store_merge(source->store, STORE_PUBLIC, layers.items, layers.count, &plugins.layer,
                        err);
    }
    if (r < 0)
        return r;
    *ret = plugins;
    plugins = (struct plugins){.layer.tree_fd = -1};
    return 0;
}

char *plugins_source_of(const struct plugins *plugins, const char *path)
{
    for (size_t i = 0; i < plugins->names.count; i++) {
        const char *name = plugins->names.items[i];

        if (manifest_path_below(path, name))
            return path[strlen(name)] == '\0'
                       ? str_dup(plugins->sources.items[i])
                       : path_join(plugins->sources.items[i], path + strlen(name) + 1);
    }
    return str_dup(path);
}

char *plugins_variable(const struct plugins *plugins)
{
    scoped(buf_done) struct buf text = {0};

    if (plugins->names.count == 0)
        return NULL;
    buf_text_append(&text, "AGENT_PLUGINS=");
    for (size_t i = 0; i < plugins->names.count; i++)
        buf_format(&text, "%s" PLUGINS_PATH "/%s", i == 0 ? "" : ":", plugins->names.items[i]);
    return buf_take(&text);
}

json_t *plugins_to_json(const struct plugins *plugins)
{
    json_t *json = json_array();

    for (size_t i = 0; i < plugins->names.count; i++) {
        const char *name = plugins->names.items[i];
        scoped(mem_freep) char *path = str_format(PLUGINS_PATH "/%s", name);
        size_t files = 0;
        json_t *item = json_object(), *links = json_array(), *link;
        size_t j;

        for (size_t k = 0; k < plugins->layer.manifest.count; k++) {
            const struct manifest_entry *entry = &plugins->layer.manifest.entries[k];

            files += entry->type == MANIFEST_FILE && manifest_path_below(entry->path, name);
        }
        json_array_foreach (plugins->links, j, link)
            if (manifest_path_below(json_get_text(link, "path"), name))
                json_push(links, json_incref(link));
        json_put_text(item, "source", plugins->sources.items[i]);
        json_put_text(item, "path", path);
        json_put_int(item, "files", (int64_t)files);
        json_put(item, "links", links);
        json_push(json, item);
    }
    return json;
}
