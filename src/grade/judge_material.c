/* The material that a judge is given, from the workspace, the private half and the events. */
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "grade/judge_internal.h"

/* The reading of one criterion. */
struct gathering {
    const struct grade_input *input;
    const struct grade_judges *judges;
    const json_t *params;
    size_t max_file_chars;
    struct material *material;
    char **problem;
};

void material_done(struct material *material)
{
    for (size_t i = 0; i < material->count; i++) {
        free(material->blocks[i].kind);
        free(material->blocks[i].name);
        free(material->blocks[i].absent);
        buf_done(&material->blocks[i].content);
    }
    free(material->blocks);
    *material = (struct material){0};
}

static struct material_block *add_block(struct material *material, const char *kind,
                                        const char *name)
{
    material->blocks = mem_resize(material->blocks, material->count + 1, sizeof(*material->blocks));
    struct material_block *block = &material->blocks[material->count++];

    *block = (struct material_block){
        .kind = str_dup(kind),
        .name = name == NULL ? NULL : str_dup(name),
    };
    return block;
}

static bool is_text(const struct buf *bytes)
{
    uint32_t rune;

    for (size_t at = 0; at < bytes->size_bytes;) {
        size_t size = utf8_next(bytes->data + at, bytes->size_bytes - at, &rune);

        if (size == 0 || rune == 0)
            return false;
        at += size;
    }
    return true;
}

/* Takes the content over. */
static void fill_block(struct material *material, struct material_block *block, struct buf *content,
                       size_t max_chars)
{
    block->max_chars = max_chars;
    if (!is_text(content)) {
        block->absent = str_format("%zu bytes that are no text", content->size_bytes);
    } else if (content->size_bytes > MATERIAL_BYTES_MAX - material->bytes) {
        block->absent = str_dup("left out: the material is too large as a whole");
    } else {
        material->bytes += content->size_bytes;
        block->content = *content;
        *content = (struct buf){0};
    }
}

/* --- private files ---------------------------------------------------------------------------- */

/* What follows "$NAME" or "${NAME}" as a whole token: "" or "/..."; NULL: it is not that. */
static const char *after_variable(const char *path, const char *name)
{
    size_t length = strlen(name);
    bool braced = str_starts(path, "${");

    if (path[0] != '$')
        return NULL;
    path += braced ? 2 : 1;
    if (strncmp(path, name, length) != 0 || (braced && path[length] != '}'))
        return NULL;
    path += length + braced;
    return *path == '\0' || *path == '/' ? path : NULL;
}

/* What follows the name of a private place: "" or "/..."; NULL: it is not of the private half. */
static const char *private_rest(const char *path, enum grade_private *ret)
{
    const char *rest = after_variable(path, "TASK_DIR");

    *ret = rest != NULL ? GRADE_TASK_DIR : GRADE_REFERENCE_DIR;
    return rest != NULL ? rest : after_variable(path, "REFERENCE_DIR");
}

bool is_private_path(const char *path)
{
    enum grade_private place;

    return private_rest(path, &place) != NULL;
}

static void set_problem(const struct gathering *gathering, char *problem)
{
    if (*gathering->problem == NULL)
        *gathering->problem = problem;
    else
        free(problem);
}

/* The author's file, with its bytes as keys of the scrub. */
static int read_private(const struct gathering *gathering, const char *path,
                        struct grade_file *file, struct error **err)
{
    const struct grade_workspace *workspace = gathering->input->workspace;
    enum grade_private place;
    const char *rest = private_rest(path, &place);
    scoped(buf_done) struct buf why = {0};
    int r = workspace->private_file(workspace->context, place, rest + strspn(rest, "/"), file, err);

    if (r < 0)
        return r;
    if (file->state != GRADE_FILE_OK) {
        content_explain(path, file, &why);
        set_problem(gathering, buf_take(&why));
        return 0;
    }
    if (!scrub_add(gathering->judges->scrub, buf_text(&file->content), file->content.size_bytes))
        set_problem(gathering,
                    str_format("'%s' is too large: what a judge reads of the private half is kept "
                               "out of records, up to %zu bytes",
                               path, SCRUB_KEYS_BYTES_MAX));
    return 0;
}

static int add_private(const struct gathering *gathering, const char *kind, const char *path,
                       struct error **err)
{
    scoped(grade_file_done) struct grade_file file = {0};
    int r = read_private(gathering, path, &file, err);

    if (r < 0 || *gathering->problem != NULL)
        return r;
    struct material_block *block = add_block(gathering->material, kind, path);

    fill_block(gathering->material, block, &file.content, gathering->max_file_chars);
    return 0;
}

static int add_reference(const struct gathering *gathering, struct error **err)
{
    scoped(str_list_done) struct str_list names = {0};
    struct material *material = gathering->material;
    size_t left = 0, begin = material->bytes;
    int r = gathering->judges->reference(gathering->judges->context, &names, &left, err);

    for (size_t i = 0; r == 0 && i < names.count; i++) {
        scoped(mem_freep) char *path = str_format("$REFERENCE_DIR/%s", names.items[i]);

        if (material->bytes - begin > JUDGE_REFERENCE_CHARS_MAX) {
            left += names.count - i;
            break;
        }
        r = add_private(gathering, "reference", path, err);
    }
    if (r == 0 && left > 0)
        add_block(material, "reference", NULL)->absent =
            str_format("%zu further files of the reference are left out", left);
    return r;
}

/* --- the agent's ------------------------------------------------------------------------------ */

static int add_workspace(const struct gathering *gathering, const char *path, struct error **err)
{
    const struct grade_workspace *workspace = gathering->input->workspace;
    scoped(grade_file_done) struct grade_file file = {0};
    int r = workspace->read(workspace->context, path, true, &file, err);

    if (r < 0)
        return r;
    struct material_block *block =
        add_block(gathering->material, "file", file.resolved == NULL ? path : file.resolved);

    if (file.state == GRADE_FILE_OK) {
        fill_block(gathering->material, block, &file.content, gathering->max_file_chars);
    } else {
        scoped(buf_done) struct buf why = {0};

        content_explain(path, &file, &why);
        block->absent = buf_take(&why);
    }
    return 0;
}

static int add_file(const struct gathering *gathering, const char *path, struct error **err)
{
    const char *rest = after_variable(path, "REFERENCE_DIR");

    if (rest != NULL && rest[strspn(rest, "/")] == '\0')
        return add_reference(gathering, err);
    return is_private_path(path) ? add_private(gathering, "file", path, err)
                                 : add_workspace(gathering, path, err);
}

static void add_text(const struct gathering *gathering, const char *kind, struct buf *text,
                     size_t max_chars)
{
    struct material_block *block = add_block(gathering->material, kind, NULL);

    if (text->size_bytes == 0)
        block->absent = str_dup("there is none");
    else
        fill_block(gathering->material, block, text, max_chars);
}

static size_t chars_of(const json_t *params, const char *key)
{
    int64_t n = json_get_int(params, key, 0);

    return n < 1 ? 1 : (size_t)n;
}

/* What it said and did, as far as it is asked for. */
static void add_events(const struct gathering *gathering)
{
    const json_t *params = gathering->params;
    const struct event_log *events = gathering->input->events;
    size_t dialog_chars = chars_of(params, "max_dialog_chars");

    if (events == NULL)
        return;
    if (json_get_bool(params, "include_agent_output", false)) {
        scoped(buf_done) struct buf text = {0};
        const char *final = judge_prompt_final(events);

        if (final != NULL)
            buf_text_append(&text, final);
        add_text(gathering, "the agent's last message", &text, gathering->max_file_chars);
    }
    if (json_get_bool(params, "include_tool_calls", false)) {
        scoped(buf_done) struct buf text = {0};

        judge_prompt_calls(&text, events, gathering->max_file_chars);
        add_text(gathering, "the agent's tool calls", &text, dialog_chars);
    }
    if (json_get_bool(params, "include_dialog", false)) {
        scoped(buf_done) struct buf text = {0};

        judge_prompt_dialog(&text, gathering->judges->task_prompt, events,
                            gathering->max_file_chars);
        add_text(gathering, "the dialog", &text, dialog_chars);
    }
}

int material_gather(const struct criterion *criterion, const struct grade_input *input,
                    struct material *ret, char **problem, struct error **err)
{
    const json_t *files = json_get_array(criterion->params, "files"), *file;
    const struct gathering gathering = {
        .input = input,
        .judges = input->judges,
        .params = criterion->params,
        .max_file_chars = chars_of(criterion->params, "max_file_chars"),
        .material = ret,
        .problem = problem,
    };
    size_t i;
    int r = 0;

    json_array_foreach (files, i, file) {
        r = add_file(&gathering, json_string_value(file), err);
        if (r < 0 || *problem != NULL)
            return r;
    }
    if (json_get_bool(criterion->params, "include_reference", true))
        r = add_reference(&gathering, err);
    if (r == 0 && *problem == NULL)
        add_events(&gathering);
    return r;
}

void material_render(const struct material *material, const char *rubric, const char *marker,
                     struct buf *ret)
{
    judge_prompt_rubric(ret, rubric);
    for (size_t i = 0; i < material->count; i++) {
        const struct material_block *block = &material->blocks[i];

        judge_prompt_block(ret, marker,
                           &(struct judge_block){
                               .kind = block->kind,
                               .name = block->name,
                               .bytes = block->absent == NULL ? buf_text(&block->content) : NULL,
                               .size = block->content.size_bytes,
                               .absent = block->absent,
                               .max_chars = block->max_chars,
                           });
    }
    judge_prompt_end(ret);
}
