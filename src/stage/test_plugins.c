/* What is taken of a plugin: a folder of files for each case, staged in process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/test_trees.h"
#include "stage/plugins.h"

#define FILES_MAX 16

static int open_plainly(void *context, const char *path, int flags)
{
    int fd = open(path, flags);

    (void)context;
    return fd < 0 ? -errno : fd;
}

static const struct task_reader reader = {.open = open_plainly};

struct place {
    int fd;
    char *base;
    struct store *store;
};

static void place_open(struct place *place)
{
    char path[4096];

    place->fd = temporary_folder();
    scoped(mem_freep) char *link = str_format("/proc/self/fd/%d", place->fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);

    assert_true(length > 0);
    place->base = str_ndup(path, (size_t)length);
    scoped(mem_freep) char *root = path_join(place->base, "store");

    assert_int_equal(store_open(root, "run", &place->store, NULL), 0);
}

static void place_close(struct place *place)
{
    store_close(place->store);
    remove_temporary_folder(&place->fd);
    free(place->base);
}

/* A file of a plugin: "path", or "path -> target"; empty when it has no content. */
struct file {
    const char *path, *content;
};

static void put_files(const struct place *place, const struct file *files)
{
    for (size_t i = 0; i < FILES_MAX && files[i].path != NULL; i++) {
        const char *arrow = strstr(files[i].path, " -> ");
        scoped(mem_freep) char *name =
            arrow == NULL ? str_dup(files[i].path)
                          : str_ndup(files[i].path, (size_t)(arrow - files[i].path));
        scoped(mem_freep) char *path = path_join("p", name);
        scoped(mem_freep) char *folder = path_dir(path);

        assert_int_equal(fs_mkdirs(place->fd, folder, 0755, NULL), 0);
        if (arrow != NULL)
            assert_int_equal(symlinkat(arrow + 4, place->fd, path), 0);
        else
            put_file(place->fd, path, files[i].content == NULL ? "" : files[i].content);
    }
}

static int make(const struct place *place, const char *const *include, const char *ignore,
                struct plugins *ret, struct error **err)
{
    scoped(mem_freep) char *root = path_join(place->base, "p");
    struct task_plugin plugin = {.path = root, .file = (char[]){"task.yaml"}, .line = 7};
    struct task_agent agent = {.plugins = &plugin, .plugin_count = 1};
    struct plugins_source source = {.store = place->store, .reader = &reader, .agent = &agent};

    for (size_t i = 0; include != NULL && include[i] != NULL; i++)
        str_list_add(&plugin.include, include[i]);
    if (ignore != NULL)
        str_list_add(&agent.plugin_ignore, ignore);
    int r = plugins_make(&source, ret, err);

    str_list_done(&plugin.include);
    str_list_done(&agent.plugin_ignore);
    return r;
}

/* Files and links, without the plugin's folder, each behind a blank; owned. */
static char *listing(const struct plugins *plugins)
{
    scoped(buf_done) struct buf text = {0};

    for (size_t i = 0; i < plugins->layer.manifest.count; i++) {
        const struct manifest_entry *entry = &plugins->layer.manifest.entries[i];

        if (entry->type != MANIFEST_DIR)
            buf_format(&text, "%s%s", text.size_bytes > 0 ? " " : "", strchr(entry->path, '/') + 1);
    }
    return buf_take(&text);
}

#define CLAUDE ".claude-plugin/plugin.json"
#define MARKET ".claude-plugin/marketplace.json"

static void only_what_is_named_is_taken(void **state)
{
    static const struct {
        struct file files[FILES_MAX];
        const char *include[3], *ignore;
        const char *taken; /* "!" in front: the error has it */
    } cases[] = {
        {.files = {{CLAUDE, "{\"name\":\"x\"}"},
                   {"skills/a/SKILL.md", 0},
                   {"commands/c.md", 0},
                   {"agents/g.md", 0},
                   {"hooks/hooks.json", "{}"},
                   {"output-styles/s.md", 0},
                   {".mcp.json", "{}"},
                   {".lsp.json", "{}"},
                   {"tests/t/task.yaml", "task_id: t"},
                   {"README.md", 0},
                   {".claude-plugin/notes.md", 0}},
         .taken = CLAUDE " .lsp.json .mcp.json agents/g.md commands/c.md hooks/hooks.json "
                         "output-styles/s.md skills/a/SKILL.md"},
        {.files = {{CLAUDE, "{\"skills\":[\"./more/\"],\"agents\":\"./x.md\",\"commands\":"
                            "{\"c\":{\"source\":\"./cmd.md\"}},\"hooks\":{\"Stop\":[]},"
                            "\"mcpServers\":\"https://a.example/x\"}"},
                   {"more/b/SKILL.md", 0},
                   {"x.md", 0},
                   {"cmd.md", 0},
                   {"other.md", 0}},
         .taken = CLAUDE " cmd.md more/b/SKILL.md x.md"},
        {.files = {{CLAUDE, "{\"skills\":\".\"}"}, {"a", 0}},
         .taken = "!skills: '.' names the whole"},
        {.files = {{CLAUDE, "{\"skills\":[\"./x/..\"]}"}, {"a", 0}}, .taken = "!names the whole"},
        {.files = {{CLAUDE, "{\"skills\":\".\"}"}, {"a/b", 0}, {"c", 0}, {"a/d.md", 0}},
         .include = {"a", "!*.md"},
         .taken = CLAUDE " a/b"},
        {.files = {{CLAUDE, "{\"skills\":\"../x\"}"}}, .taken = "!'../x' leads out of the plugin"},
        {.files = {{CLAUDE, "{\"hooks\":\"/etc\"}"}}, .taken = "!'/etc' leads out of the plugin"},
        {.files = {{CLAUDE, "[]"}}, .taken = "!an object expected"},
        {.files = {{CLAUDE, "{"}}, .taken = "!plugin.json:1:"},
        {.files = {{"skills/a/SKILL.md", 0}, {"t.yaml", 0}}, .taken = "skills/a/SKILL.md"},
        {.files = {{"a/SKILL.md", 0}, {"a/b/c.py", 0}, {"d/e.md", 0}},
         .taken = "a/SKILL.md a/b/c.py"},
        {.files = {{"src/a.c", 0}}, .taken = "!has nothing that an agent gets of a plugin"},
        /* Files that these name, and what those name in turn; folders and what is elsewhere not. */
        {.files = {{CLAUDE, "{}"},
                   {"hooks/hooks.json", "{\"c\":\"${CLAUDE_PLUGIN_ROOT}/bin/a.sh x\"}"},
                   {"bin/a.sh", "\"$CLAUDE_PLUGIN_ROOT\"/lib/b.sh; ls ${CLAUDE_PLUGIN_ROOT}/tests"},
                   {"lib/b.sh", "${CLAUDE_PLUGIN_ROOT}/../out ${CLAUDE_PLUGIN_ROOTS}/lib/c.sh"},
                   {"lib/c.sh", 0},
                   {"tests/t", 0}},
         .taken = CLAUDE " bin/a.sh hooks/hooks.json lib/b.sh"},
        {.files = {{"gemini-extension.json",
                    "{\"contextFileName\":\"CTX.md\",\"mcpServers\":{\"s\":{\"args\":"
                    "[\"${extensionPath}${/}dist${/}s.js\"]}}}"},
                   {"CTX.md", 0},
                   {"dist/s.js", 0},
                   {"dist/t.js", 0}},
         .taken = "CTX.md dist/s.js gemini-extension.json"},
        {.files = {{".codex-plugin/plugin.json", "{}"}, {"skills/a", 0}, {"commands/c", 0}},
         .taken = ".codex-plugin/plugin.json skills/a"},
        {.files = {{".cursor-plugin/plugin.json", "{}"}, {"rules/r.mdc", 0}, {"mcp.json", 0}},
         .taken = ".cursor-plugin/plugin.json mcp.json rules/r.mdc"},
        /* A marketplace brings the plugins that lie in it. */
        {.files = {{MARKET, "{\"plugins\":[{\"name\":\"q\",\"source\":\"./plugins/q\"},{\"name\":"
                            "\"r\",\"source\":{\"source\":\"github\",\"repo\":\"o/r\"}}]}"},
                   {"plugins/q/" CLAUDE, "{}"},
                   {"plugins/q/skills/a/SKILL.md", "${CLAUDE_PLUGIN_ROOT}/x.py"},
                   {"plugins/q/x.py", 0},
                   {"x.py", 0},
                   {"plugins/r/skills/b/SKILL.md", 0},
                   {"plugins/q/tests/t", 0}},
         .taken = MARKET " plugins/q/" CLAUDE " plugins/q/skills/a/SKILL.md plugins/q/x.py"},
        {.files = {{MARKET, "{\"plugins\":[{\"source\":\"./\",\"skills\":[\"./skills/a\"]}]}"},
                   {"skills/a/SKILL.md", 0},
                   {"skills/b/SKILL.md", 0}},
         .taken = MARKET " skills/a/SKILL.md"},
        {.files = {{MARKET, "{\"plugins\":[{\"source\":\"../q\"}]}"}},
         .taken = "!leads out of the marketplace"},
        /* A plugin in a plugin is only there when it is named, or is the one that was meant. */
        {.files = {{CLAUDE, "{}"}, {"sub/" CLAUDE, "{}"}, {"sub/skills/a", 0}, {"skills/b", 0}},
         .taken = CLAUDE " skills/b"},
        {.files =
             {{CLAUDE, "{}"}, {"skills/a/x.md", 0}, {"skills/a/y.pyc", 0}, {"skills/.git/z", 0}},
         .ignore = "x.md",
         .taken = CLAUDE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(error_freep) struct error *err = NULL;
        scoped(plugins_done) struct plugins plugins = {.layer.tree_fd = -1};
        struct place place;

        place_open(&place);
        put_files(&place, cases[i].files);
        int r = make(&place, cases[i].include, cases[i].ignore, &plugins, &err);
        scoped(mem_freep) char *taken = r < 0 ? NULL : listing(&plugins);

        if (cases[i].taken[0] == '!'
                ? r != -ERROR_TASK || strstr(error_message(err), cases[i].taken + 1) == NULL ||
                      !str_starts(error_message(err), "task.yaml:7: agent.plugins[0]: ")
                : !str_equal(taken, cases[i].taken))
            fail_msg("case %zu: %s", i, r < 0 ? error_message(err) : taken);
        place_close(&place);
    }
}

static void links_are_kept_told_and_never_followed(void **state)
{
    static const struct file files[] = {{CLAUDE, "{}"},
                                        {"skills/a/SKILL.md", 0},
                                        {"skills/a/loop -> ../..", 0},
                                        {"skills/a/out -> ../../../outside", 0},
                                        {"skills/a/abs -> /etc/passwd", 0},
                                        {"skills/a/beside -> ../../tests/t", 0},
                                        {"skills/a/fine -> SKILL.md", 0},
                                        {"commands -> tests", 0},
                                        {"tests/t", "secret"},
                                        {NULL, NULL}};
    scoped(plugins_done) struct plugins plugins = {.layer.tree_fd = -1};
    scoped(json_freep) json_t *json = NULL;
    scoped(buf_done) struct buf text = {0};
    struct error *err = NULL;
    struct place place;

    (void)state;
    place_open(&place);
    put_files(&place, files);
    if (make(&place, NULL, NULL, &plugins, &err) < 0)
        fail_msg("%s", error_message(err));
    scoped(mem_freep) char *taken = listing(&plugins);

    assert_string_equal(taken, CLAUDE " commands skills/a/SKILL.md skills/a/abs skills/a/beside "
                                      "skills/a/fine skills/a/loop skills/a/out");
    json = plugins_to_json(&plugins);
    json_write_line(&text, json_object_get(json_array_get(json, 0), "links"));
    assert_string_equal(
        buf_text(&text),
        "[{\"path\": \"p/commands\", \"target\": \"tests\", \"why\": \"leads to what is not taken "
        "of the plugin\"}, {\"path\": \"p/skills/a/abs\", \"target\": \"/etc/passwd\", \"why\": "
        "\"leads out of the plugin\"}, {\"path\": \"p/skills/a/beside\", \"target\": "
        "\"../../tests/t\", \"why\": \"leads to what is not taken of the plugin\"}, {\"path\": "
        "\"p/skills/a/loop\", \"target\": \"../..\", \"why\": \"leads back to a folder that it "
        "lies in\"}, {\"path\": \"p/skills/a/out\", \"target\": \"../../../outside\", \"why\": "
        "\"leads out of the plugin\"}]");
    place_close(&place);
}

static void two_plugins_of_a_name_stand_side_by_side(void **state)
{
    scoped(plugins_done) struct plugins plugins = {.layer.tree_fd = -1};
    struct place place;

    (void)state;
    place_open(&place);
    put_file(place.fd, "one/p/skills/a/SKILL.md", "1");
    put_file(place.fd, "two/p/skills/a/SKILL.md", "2");
    put_file(place.fd, "three/" CLAUDE, "{\"name\":\"named\"}");
    scoped(mem_freep) char *one = path_join(place.base, "one/p");
    scoped(mem_freep) char *two = path_join(place.base, "two/p");
    scoped(mem_freep) char *three = path_join(place.base, "three");
    struct task_plugin list[] = {{.path = one}, {.path = two}, {.path = three}};
    struct task_agent agent = {.plugins = list, .plugin_count = ARRAY_SIZE(list)};
    struct plugins_source source = {.store = place.store, .reader = &reader, .agent = &agent};

    for (size_t i = 0; i < 2; i++) {
        scoped(mem_freep) char *variable = NULL;
        uint64_t copies = store_copies(place.store);

        plugins_done(&plugins);
        assert_int_equal(plugins_make(&source, &plugins, NULL), 0);
        variable = plugins_variable(&plugins);
        assert_string_equal(variable, "AGENT_PLUGINS=" PLUGINS_PATH "/p:" PLUGINS_PATH
                                      "/p-2:" PLUGINS_PATH "/named");
        scoped(mem_freep) char *from = plugins_source_of(&plugins, "p-2/skills/a/SKILL.md");

        assert_true(str_ends(from, "/two/p/skills/a/SKILL.md"));
        assert_non_null(manifest_find(&plugins.layer.manifest, "named/" CLAUDE));
        assert_true(i == 0 || store_copies(place.store) == copies);
    }
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_named_is_taken),
        cmocka_unit_test(links_are_kept_told_and_never_followed),
        cmocka_unit_test(two_plugins_of_a_name_stand_side_by_side),
    };

    return cmocka_run_group_tests_name("stage_plugins", tests, NULL, NULL);
}
