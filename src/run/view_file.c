#include "run/view_file.h"

#include "base/fs.h"
#include "base/mem.h"
#include "stage/plugins.h"

#define VIEW_SCHEMA "closedbook/view/1"

/* Takes the line. */
static void add(struct buf *text, json_t *line)
{
    json_write_line(text, line);
    buf_char(text, '\n');
    json_decref(line);
}

static json_t *line_of(const char *kind)
{
    json_t *line = json_object();

    json_put_text(line, "kind", kind);
    return line;
}

static void put_text(json_t *line, const char *key, const char *text)
{
    json_put(line, key, text == NULL ? json_null() : json_text(text, strlen(text)));
}

static void put_content(json_t *line, const void *bytes, size_t size)
{
    char hex[SHA256_HEX_CHARS + 1];
    struct sha256 digest = sha256_of(bytes, size);

    sha256_format(&digest, hex);
    json_put_int(line, "size", (int64_t)size);
    json_put_text(line, "sha256", hex);
}

/* What it is asked, and by which words: not the words themselves, which hold the prompt again. */
static void add_program(const struct agent_turn *turn, const struct cell_command *command,
                        struct buf *text)
{
    json_t *prompt = line_of("prompt");
    scoped(buf_done) struct buf words = {0};
    json_t *program = line_of("program");

    put_content(prompt, turn->stdin_text == NULL ? "" : turn->stdin_text,
                turn->stdin_text == NULL ? 0 : strlen(turn->stdin_text));
    add(text, prompt);
    for (size_t i = 0; command->argv != NULL && command->argv[i] != NULL; i++)
        buf_append(&words, command->argv[i], strlen(command->argv[i]) + 1);
    put_text(program, "path", command->argv == NULL ? NULL : command->argv[0]);
    put_content(program, buf_text(&words), words.size_bytes);
    add(text, program);
}

/* Values may be keys, or differ from trial to trial. */
static void add_environment(const struct cell_command *command, struct buf *text)
{
    scoped(str_list_done) struct str_list names = {0};

    for (size_t i = 0; command->envp != NULL && command->envp[i] != NULL; i++)
        str_list_add_take(&names, str_ndup(command->envp[i], strcspn(command->envp[i], "=")));
    str_list_sort(&names);
    for (size_t i = 0; i < names.count; i++) {
        json_t *line = line_of("variable");

        put_text(line, "name", names.items[i]);
        add(text, line);
    }
    for (size_t i = 0; i < command->fd_count; i++) {
        json_t *line = line_of("descriptor");

        json_put_int(line, "number", (int64_t)i);
        json_put_text(line, "is", command->fds[i] < 0 ? "/dev/null" : "pipe");
        add(text, line);
    }
}

static const char *workspace_name(enum cell_workspace_kind kind)
{
    switch (kind) {
    case CELL_WORKSPACE_NONE:
        return "none";
    case CELL_WORKSPACE_COPY:
        return "copied";
    case CELL_WORKSPACE_OVERLAY:
        return "layered";
    case CELL_WORKSPACE_KEEP:
        return "of the steps before";
    case CELL_WORKSPACE_SHARED:
        return "shared";
    }
    return "?";
}

static void add_places(const struct cell_spec *spec, struct buf *text)
{
    json_t *workspace = line_of("workspace");

    for (size_t i = 0; i < spec->mount_count; i++) {
        const struct cell_mount *mount = &spec->mounts[i];
        json_t *line = line_of("mount"), *masks = json_array();

        put_text(line, "target", mount->target);
        json_put_bool(line, "writable", mount->writable || (mount->own && spec->identity_root));
        for (size_t k = 0; k < CELL_MASKS_MAX && mount->masks[k] != NULL; k++)
            json_push(masks, json_text_or_null(mount->masks[k]));
        json_put(line, "without", masks);
        add(text, line);
    }
    for (size_t i = 0; i < spec->text_count; i++) {
        json_t *line = line_of("text");

        put_text(line, "target", spec->texts[i].target);
        put_content(line, spec->texts[i].bytes, spec->texts[i].size_bytes);
        add(text, line);
    }
    json_put_text(workspace, "is", workspace_name(spec->workspace.kind));
    json_put_bool(workspace, "root_identity", spec->identity_root);
    add(text, workspace);
}

/* {"kind": "path", "of": "workspace", "entry": LINE OF A MANIFEST} */
static void add_paths(const char *of, const struct manifest *manifest, struct buf *text)
{
    for (size_t i = 0; i < manifest->count; i++) {
        scoped(buf_done) struct buf entry = {0};

        manifest_write_entry(&entry, &manifest->entries[i]);
        buf_format(text, "{\"kind\": \"path\", \"of\": \"%s\", \"entry\": %.*s}\n", of,
                   (int)(entry.size_bytes - 1), buf_text(&entry));
    }
}

int view_file_save(const struct trial_job *job, const struct agent_turn *turn,
                   const struct cell_spec *spec, const struct cell_command *command,
                   struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    json_t *first = line_of("view"), *systems = line_of("systems");

    json_put_text(first, "schema", VIEW_SCHEMA);
    add(&text, first);
    add_program(turn, command, &text);
    add_environment(command, &text);
    json_put(systems, "systems", view_systems_json(job->view));
    add(&text, systems);
    add_places(spec, &text);
    add_paths("workspace", view_manifest(job->view), &text);
    add_paths("plugins", &view_plugins(job->view)->layer.manifest, &text);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "view.jsonl would be larger than %zu bytes",
                         BUF_BYTES_MAX);
    return fs_write_atomic(job->dir_fd, "view.jsonl",
                           &(struct fs_content){text.data, text.size_bytes, 0600, FS_NO_SYNC}, err);
}
