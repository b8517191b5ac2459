#include "stage/plugin_manifest.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"

#define LIST_MAX 8 /* keys or places of one kind of manifest, with the NULL */

/* One kind of plugin: where its manifests are, what in them names components, and where those are
 * when nothing names them. */
struct family {
    const char *name;
    const char *manifest, *marketplace;
    const char *keys[LIST_MAX];
    const char *places[LIST_MAX];
};

static const struct family families[] = {
    {
        .name = "claude",
        .manifest = ".claude-plugin/plugin.json",
        .marketplace = ".claude-plugin/marketplace.json",
        .keys = {"skills", "commands", "agents", "hooks", "outputStyles", "mcpServers",
                 "lspServers"},
        .places = {"skills", "commands", "agents", "hooks", "output-styles", ".mcp.json",
                   ".lsp.json"},
    },
    {
        .name = "codex",
        .manifest = ".codex-plugin/plugin.json",
        .marketplace = ".agents/plugins/marketplace.json",
        .keys = {"skills", "commands", "agents", "hooks", "mcpServers"},
        .places = {"skills", "hooks", ".mcp.json"},
    },
    {
        .name = "cursor",
        .manifest = ".cursor-plugin/plugin.json",
        .marketplace = ".cursor-plugin/marketplace.json",
        .keys = {"skills", "commands", "agents", "hooks", "rules", "mcpServers"},
        .places = {"skills", "commands", "agents", "hooks", "rules", "mcp.json", ".mcp.json"},
    },
    {
        .name = "gemini",
        .manifest = "gemini-extension.json",
        .keys = {"contextFileName"},
        .places = {"skills", "commands", "agents", "hooks", "GEMINI.md"},
    },
};

/* What one reading knows. */
struct reading {
    const struct task_reader *reader;
    const char *root;
    bool strict;
    struct plugin_manifest manifest;
};

void plugin_manifest_done(struct plugin_manifest *manifest)
{
    free(manifest->name);
    str_list_done(&manifest->paths);
    str_list_done(&manifest->families);
    str_list_done(&manifest->roots);
    *manifest = (struct plugin_manifest){.name = NULL};
}

static void reading_done(struct reading *reading)
{
    plugin_manifest_done(&reading->manifest);
}

int plugin_manifest_add(struct plugin_manifest *manifest, const char *path, struct error **err)
{
    if (str_list_has(&manifest->paths, path))
        return 0;
    if (manifest->paths.count == PLUGIN_PATHS_MAX)
        return error_set(err, ERROR_LIMIT, "a plugin that names more than %d paths",
                         PLUGIN_PATHS_MAX);
    str_list_add(&manifest->paths, path);
    return 0;
}

/* The JSON of a file below the root. *ret NULL: there is none. */
static int read_json(const struct reading *reading, const char *path, json_t **ret,
                     struct error **err)
{
    scoped(mem_freep) char *whole = path_join(reading->root, path);
    scoped(buf_done) struct buf text = {0};
    const struct task_reader *reader = reading->reader;
    scoped(fd_closep) int fd =
        reader->open(reader->context, whole, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    *ret = NULL;
    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    if (fd < 0)
        return error_errno_as(err, ERROR_TASK, -fd, "cannot read '%s'", whole);
    int r = fs_read_fd(fd, whole, PLUGIN_MANIFEST_BYTES_MAX, &text, err);

    if (r == 0)
        r = json_parse(whole, buf_text(&text), text.size_bytes, ret, err);
    if (r == 0 && !json_is_object(*ret)) {
        json_freep(ret);
        return error_set(err, ERROR_TASK, "%s: an object expected", whole);
    }
    return r;
}

/* --- paths that a manifest names --------------------------------------------------------------
 */

/* Where a manifest's values stand and what they are relative to. */
struct place {
    const char *file; /* the manifest, for errors */
    const char *key;
    const char *base; /* the folder of its plugin, "" is the root */
};

static bool is_remote(const char *text)
{
    return strstr(text, "://") != NULL;
}

static int add_path(struct reading *reading, const struct place *place, const char *text,
                    struct error **err)
{
    scoped(mem_freep) char *normal = path_normal(text);
    bool is_root = strcmp(normal, ".") == 0;

    if (is_remote(text))
        return 0;
    if (text[0] == '\0' || text[0] == '/' || (!is_root && !path_is_inside(normal)))
        return error_set(err, ERROR_TASK,
                         "%s/%s: %s: '%.200s' leads out of the plugin: a path below its root "
                         "expected",
                         reading->root, place->file, place->key, text);
    if (!is_root) {
        scoped(mem_freep) char *whole = path_join(place->base, normal);

        return plugin_manifest_add(&reading->manifest, whole, err);
    }
    if (!reading->strict)
        return 0;
    return error_set(err, ERROR_TASK,
                     "%s/%s: %s: '%.200s' names the whole plugin, so that everything beside it "
                     "would reach the agent: name the folders there, or say in the task what is "
                     "taken (agent.plugins[].include)",
                     reading->root, place->file, place->key, text);
}

/* A path, a list of them, a map of such; what stands inline has no file. */
static int add_value(struct reading *reading, const struct place *place, const json_t *value,
                     struct error **err)
{
    static const char *const path_keys[] = {"path", "source"};
    size_t i;
    json_t *item;
    int r = 0;

    if (json_is_string(value))
        return add_path(reading, place, json_string_value(value), err);
    json_array_foreach (value, i, item) {
        const char *text = json_is_string(item) ? json_string_value(item) : NULL;

        for (size_t j = 0; j < ARRAY_SIZE(path_keys) && text == NULL; j++)
            text = json_get_text(item, path_keys[j]);
        if (text != NULL && r == 0)
            r = add_path(reading, place, text, err);
    }
    return r;
}

static int add_map(struct reading *reading, const struct place *place, const json_t *map,
                   struct error **err)
{
    void *at = json_object_iter((json_t *)(uintptr_t)map);
    int r = 0;

    for (; at != NULL && r == 0; at = json_object_iter_next((json_t *)(uintptr_t)map, at)) {
        const char *text = json_get_text(json_object_iter_value(at), "source");

        if (text != NULL)
            r = add_path(reading, place, text, err);
    }
    return r;
}

static int add_components(struct reading *reading, const struct family *family,
                          const struct place *in, const json_t *manifest, struct error **err)
{
    struct place place = *in;
    int r = 0;

    for (size_t i = 0; i < LIST_MAX && family->keys[i] != NULL && r == 0; i++) {
        const json_t *value = json_object_get(manifest, family->keys[i]);

        place.key = family->keys[i];
        r = json_is_object(value) ? add_map(reading, &place, value, err)
                                  : add_value(reading, &place, value, err);
    }
    return r;
}

/* --- one plugin ------------------------------------------------------------------------------- */

static int add_below(struct reading *reading, const char *base, const char *path,
                     struct error **err)
{
    scoped(mem_freep) char *whole = path_join(base, path);

    return plugin_manifest_add(&reading->manifest, whole, err);
}

static int add_places(struct reading *reading, const struct family *family, const char *base,
                      struct error **err)
{
    int r = 0;

    for (size_t i = 0; i < LIST_MAX && family->places[i] != NULL && r == 0; i++)
        r = add_below(reading, base, family->places[i], err);
    return r;
}

/* The plugin at base: its manifest, its places, and what the manifest names. */
static int add_plugin(struct reading *reading, const struct family *family, const char *base,
                      const json_t *manifest, struct error **err)
{
    scoped(mem_freep) char *file = path_join(base, family->manifest);
    int r = plugin_manifest_add(&reading->manifest, file, err);

    if (!str_list_has(&reading->manifest.roots, base))
        str_list_add(&reading->manifest.roots, base);
    if (r == 0)
        r = add_places(reading, family, base, err);
    return r < 0 ? r
                 : add_components(reading, family, &(struct place){.file = file, .base = base},
                                  manifest, err);
}

/* --- marketplaces ----------------------------------------------------------------------------- */

/* The folder that an entry's plugin lies in; NULL: elsewhere than here. */
static char *entry_base(const json_t *marketplace, const json_t *entry)
{
    const json_t *source = json_object_get(entry, "source");
    const char *kind = json_get_text(source, "source");
    const char *text = json_is_string(source) ? json_string_value(source) : NULL;
    const char *above = json_get_text(json_object_get(marketplace, "metadata"), "pluginRoot");

    if (text == NULL && (kind == NULL || str_equal(kind, "local")))
        text = json_get_text(source, "path");
    if (text == NULL || is_remote(text))
        return NULL;
    scoped(mem_freep) char *whole =
        above != NULL && text[0] != '.' ? path_join(above, text) : str_dup(text);

    return path_normal(whole);
}

static bool names_components(const struct family *family, const json_t *entry)
{
    for (size_t i = 0; i < LIST_MAX && family->keys[i] != NULL; i++) {
        if (json_object_get(entry, family->keys[i]) != NULL)
            return true;
    }
    return false;
}

static int add_entry(struct reading *reading, const struct family *family,
                     const json_t *marketplace, const json_t *entry, struct error **err)
{
    scoped(mem_freep) char *normal = entry_base(marketplace, entry);
    scoped(json_freep) json_t *manifest = NULL;

    if (normal == NULL)
        return 0;
    if (strcmp(normal, ".") != 0 && (normal[0] == '/' || !path_is_inside(normal)))
        return error_set(err, ERROR_TASK, "%s/%s: source: '%.200s' leads out of the marketplace",
                         reading->root, family->marketplace, normal);
    const char *base = strcmp(normal, ".") == 0 ? "" : normal;
    scoped(mem_freep) char *file = path_join(base, family->manifest);
    int r = read_json(reading, file, &manifest, err);

    /* An entry that says all itself needs no places. */
    if (r == 0 && (manifest != NULL || !names_components(family, entry)))
        r = add_plugin(reading, family, base, manifest, err);
    else if (r == 0 && !str_list_has(&reading->manifest.roots, base))
        str_list_add(&reading->manifest.roots, base);
    return r < 0 ? r
                 : add_components(reading, family,
                                  &(struct place){.file = family->marketplace, .base = base}, entry,
                                  err);
}

/* Its plugins, when the root is no plugin itself; else only what it says of that. */
static int add_marketplace(struct reading *reading, const struct family *family, bool is_plugin,
                           const json_t *marketplace, struct error **err)
{
    const json_t *plugins = json_get_array(marketplace, "plugins");
    size_t i;
    json_t *entry;
    int r = plugin_manifest_add(&reading->manifest, family->marketplace, err);

    json_array_foreach (plugins, i, entry) {
        scoped(mem_freep) char *base = entry_base(marketplace, entry);

        if (r == 0 && (!is_plugin || str_equal(base, ".")))
            r = add_entry(reading, family, marketplace, entry, err);
    }
    return r;
}

/* --- all kinds -------------------------------------------------------------------------------- */

static void note_name(struct reading *reading, const json_t *manifest)
{
    const char *name = json_get_text(manifest, "name");

    if (reading->manifest.name == NULL && name != NULL)
        reading->manifest.name = str_dup(name);
}

static int read_family(struct reading *reading, const struct family *family, struct error **err)
{
    scoped(json_freep) json_t *manifest = NULL;
    scoped(json_freep) json_t *marketplace = NULL;
    int r = read_json(reading, family->manifest, &manifest, err);

    if (r == 0 && family->marketplace != NULL)
        r = read_json(reading, family->marketplace, &marketplace, err);
    if (r < 0 || (manifest == NULL && marketplace == NULL))
        return r;
    str_list_add(&reading->manifest.families, family->name);
    if (manifest != NULL) {
        note_name(reading, manifest);
        r = add_plugin(reading, family, "", manifest, err);
    }
    if (r == 0 && marketplace != NULL) {
        note_name(reading, marketplace);
        r = add_marketplace(reading, family, manifest != NULL, marketplace, err);
    }
    return r;
}

int plugin_manifest_read(const struct task_reader *reader, const char *root, bool strict,
                         struct plugin_manifest *ret, struct error **err)
{
    scoped(reading_done) struct reading reading = {
        .reader = reader, .root = root, .strict = strict};
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(families) && r == 0; i++)
        r = read_family(&reading, &families[i], err);
    /* Without a manifest the default places of the first kind. */
    if (r == 0 && reading.manifest.families.count == 0)
        r = add_plugin(&reading, &families[0], "", NULL, err);
    if (r < 0)
        return r;
    *ret = reading.manifest;
    reading.manifest = (struct plugin_manifest){.name = NULL};
    return 0;
}
