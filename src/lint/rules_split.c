/* What the agent sees and must not: tasks, references, tokens, history. */
#include <string.h>

#include "lint/internal.h"

#define GIT_FILE_BYTES_MAX ((size_t)1 << 20)
#define COMMIT_CHARS 40

/* What a plugin's own list lets through is checked where it is staged; here only its usual parts.
 */
static void check_plugins(struct target *target)
{
    const struct node *plugins = setting(target, "agent.plugins");

    for (size_t i = 0; plugins != NULL && plugins->kind == NODE_LIST && i < plugins->count; i++) {
        const struct node *node = node_get(plugins->items[i], "path");
        const struct node *include = node_get(plugins->items[i], "include");
        /* With all layers there is an empty one where nobody wrote it. */
        bool has_include = include != NULL && (include->kind != NODE_LIST || include->count > 0);
        scoped(mem_freep) char *path =
            node != NULL && node->kind == NODE_TEXT ? yaml_path(target, node) : NULL;
        scoped(mem_freep) char *place = str_format("agent.plugins[%zu].path", i);

        if (path == NULL)
            continue;
        const struct folder *folder = folder_of(target, path);
        const struct str_list *tasks = has_include ? &folder->tasks : &folder->plugin_tasks;

        if (tasks->count > 0)
            found(target, node->mark, place,
                  "the plugin '%s' holds %zu task file%s that an agent can read, like '%s'",
                  node->text, tasks->count, tasks->count == 1 ? "" : "s",
                  tasks->items[0] + strlen(path) + 1);
    }
}

void check_task_material(struct target *target)
{
    struct staged staged;
    size_t position = 0;

    check_plugins(target);
    while (next_staged(target, &position, &staged)) {
        scoped(mem_freep) char *path = staged.path;
        const struct folder *folder = folder_of(target, path);

        if (folder->tasks.count > 0)
            found(target, staged.node->mark, staged.place, "'%s' holds the task file '%s'",
                  staged.node->text, folder->tasks.items[0] + strlen(path) + 1);
    }
}

void check_reference_staged(struct target *target)
{
    const struct node *node = NULL;
    scoped(mem_freep) char *reference = reference_path(target, &node);
    struct staged staged;
    size_t position = 0;

    while (reference != NULL && next_staged(target, &position, &staged)) {
        scoped(mem_freep) char *path = staged.path;

        if (is_below(reference, path) || is_below(path, reference))
            found(target, staged.node->mark, staged.place,
                  "the reference '%s' and what is staged, '%s', are one inside the other",
                  node->text, staged.node->text);
    }
}

static void check_text(struct target *target, const struct node *node, const char *place)
{
    static const enum token_kind kinds[] = {TOKEN_REFERENCE_DIR, TOKEN_TASK_DIR};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (node != NULL && node->kind == NODE_TEXT && token_is_in(node->text, kinds[i]))
            found(target, node->mark, place, "$%s in a text for the agent", token_name(kinds[i]));
}

void check_private_token(struct target *target)
{
    static const char *const fields[] = {"initial_prompt", "agent.system_prompt",
                                         "simulation.persona", "simulation.goal"};
    const struct node *files = node_find(target->file, "sandbox.template_sources");

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        check_text(target, node_find(target->file, fields[i]), fields[i]);
    if (target->prompt != NULL && strcmp(target->prompt_field, "initial_prompt_file") == 0 &&
        (token_is_in(target->prompt, TOKEN_REFERENCE_DIR) ||
         token_is_in(target->prompt, TOKEN_TASK_DIR)))
        found(target, target->prompt_mark, "initial_prompt_file",
              "the file names $REFERENCE_DIR or $TASK_DIR");
    for (size_t i = 0; files != NULL && files->kind == NODE_LIST && i < files->count; i++) {
        const struct node *list = node_get(files->items[i], "files");

        for (size_t j = 0; list != NULL && list->kind == NODE_LIST && j < list->count; j++)
            check_text(target, node_get(list->items[j], "content"), "sandbox.template_sources");
    }
}

/* --- git ---------------------------------------------------------------------------------------*/

static bool is_commit(const char *text)
{
    return strspn(text, "0123456789abcdef") >= COMMIT_CHARS;
}

static char *read_git(const struct target *target, const char *git, const char *name)
{
    scoped(buf_done) struct buf text = {0};
    scoped(mem_freep) char *path = path_join(git, name);

    return read_file(target, path, GIT_FILE_BYTES_MAX, &text) ? buf_take(&text) : NULL;
}

/* The commit of a ref in packed-refs; owned, NULL: not there. */
static char *packed_ref(const char *packed, const char *name)
{
    size_t length = strcspn(name, "\r\n");

    for (const char *line = packed; line != NULL && *line != '\0';) {
        if (is_commit(line) && strlen(line) > COMMIT_CHARS + length &&
            strncmp(line + COMMIT_CHARS + 1, name, length) == 0 &&
            line[COMMIT_CHARS + 1 + length] == '\n')
            return str_ndup(line, COMMIT_CHARS);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return NULL;
}

/* The commit that is checked out; owned, NULL: none. */
static char *head_commit(const struct target *target, const char *git)
{
    scoped(mem_freep) char *head = read_git(target, git, "HEAD");

    if (head == NULL)
        return NULL;
    if (is_commit(head))
        return str_ndup(head, COMMIT_CHARS);
    if (!str_starts(head, "ref: "))
        return NULL;
    scoped(mem_freep) char *name = str_ndup(head + 5, strcspn(head + 5, "\r\n"));
    scoped(mem_freep) char *loose = read_git(target, git, name);
    scoped(mem_freep) char *packed = read_git(target, git, "packed-refs");

    if (loose != NULL && is_commit(loose))
        return str_ndup(loose, COMMIT_CHARS);
    return packed == NULL ? NULL : packed_ref(packed, name);
}

struct refs {
    const struct target *target;
    const char *head;
    char *other; /* a file that names another commit; owned */
};

static bool look_at_ref(void *context, const char *path)
{
    struct refs *refs = context;
    scoped(buf_done) struct buf text = {0};

    if (!read_file(refs->target, path, GIT_FILE_BYTES_MAX, &text) || !is_commit(buf_text(&text)) ||
        strncmp(buf_text(&text), refs->head, COMMIT_CHARS) == 0)
        return true;
    refs->other = str_dup(path);
    return false;
}

/* A line of a file that starts with another commit (packed-refs), or, of a reflog, one that was
 * checked out after HEAD's. */
static bool names_another(const char *text, const char *head, bool is_log)
{
    bool met = !is_log;

    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *commit = is_log && strlen(line) > COMMIT_CHARS ? line + COMMIT_CHARS + 1 : line;

        if (is_commit(commit)) {
            bool same = strncmp(commit, head, COMMIT_CHARS) == 0;

            if (met && !same)
                return true;
            met = met || same;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

/* What names a commit that is not HEAD's; owned, NULL: nothing does. */
static char *other_history(const struct target *target, const char *git, const char *head)
{
    static const struct {
        const char *name;
        bool is_log;
    } files[] = {
        {"packed-refs", false}, {"ORIG_HEAD", false}, {"FETCH_HEAD", false}, {"logs/HEAD", true}};
    scoped(mem_freep) char *folder = path_join(git, "refs");
    struct refs refs = {.target = target, .head = head};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        scoped(mem_freep) char *text = read_git(target, git, files[i].name);

        if (text != NULL && names_another(text, head, files[i].is_log))
            return str_dup(files[i].name);
    }
    each_file(target, folder, look_at_ref, &refs);
    if (refs.other == NULL)
        return NULL;
    char *name = str_dup(refs.other + strlen(git) + 1);

    free(refs.other);
    return name;
}

void check_history(struct target *target)
{
    struct staged staged;
    size_t position = 0;

    while (next_staged(target, &position, &staged)) {
        scoped(mem_freep) char *path = staged.path;
        scoped(mem_freep) char *git = path_join(path, ".git");
        scoped(mem_freep) char *head = head_commit(target, git);
        scoped(mem_freep) char *other = head == NULL ? NULL : other_history(target, git, head);

        if (other != NULL)
            found(target, staged.node->mark, staged.place,
                  "'%s/.git/%s' names a commit that is not HEAD's", staged.node->text, other);
    }
}
