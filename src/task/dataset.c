#include "task/dataset.h"

#include "base/hash.h"
#include "base/term.h"

#define KEYS_SHOWN 20

void dataset_done(struct dataset *dataset)
{
    free(dataset->rows);
    str_list_done(&dataset->files);
    str_list_done(&dataset->digests);
    *dataset = (struct dataset){0};
}

/* --- rows --------------------------------------------------------------------------------------
 */

/* What reading needs beside the rows read so far. */
struct reading {
    const struct build *build;
    const struct node *block; /* of the task, checked */
    struct dataset *dataset;
    size_t capacity;
};

static void add_row(struct reading *reading, const struct node *fields)
{
    const char *field = node_get_text(reading->block, "id_field");
    const struct node *id = node_get(fields, field);
    struct dataset *dataset = reading->dataset;

    if (id == NULL || id->kind == NODE_LIST || id->kind == NODE_MAP || id->text == NULL) {
        build_error(reading->build, fields->mark, "dataset",
                    "the row has no id: a text in '%s' expected", field);
        return;
    }
    if (!form_accepts(FORM_TASK_ID, id->text)) {
        build_error(reading->build, id->mark, "dataset", "the row's id '%.60s': %s expected",
                    id->text, form_expected(FORM_TASK_ID));
        return;
    }
    if (dataset->count == reading->capacity) {
        reading->capacity = reading->capacity == 0 ? 16 : reading->capacity * 2;
        dataset->rows = mem_resize(dataset->rows, reading->capacity, sizeof(struct dataset_row));
    }
    dataset->rows[dataset->count++] = (struct dataset_row){id->text, fields};
}

static void read_inline(struct reading *reading, const struct node *rows)
{
    for (size_t i = 0; i < rows->count && reading->dataset->count < TASKS_MAX; i++)
        add_row(reading, rows->items[i]);
}

/* A scalar of a row as a node; what it holds is text in any case. */
static struct node *value_node(struct arena *arena, const json_t *value, struct mark mark)
{
    scoped(buf_done) struct buf buf = {0};

    switch (json_typeof(value)) {
    case JSON_STRING:
        return node_new_text(
            arena, arena_text(arena, json_string_value(value), json_string_length(value)), mark);
    case JSON_OBJECT:
        return node_new(arena, NODE_MAP, mark);
    case JSON_ARRAY:
        return node_new(arena, NODE_LIST, mark);
    case JSON_NULL:
        return node_new(arena, NODE_NULL, mark);
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
    case JSON_FALSE:
        break;
    }
    json_write_line(&buf, value);
    return node_new_plain(arena, arena_text(arena, buf_text(&buf), buf.size_bytes), mark);
}

static struct node *row_node(struct arena *arena, json_t *object, struct mark mark)
{
    struct node *map = node_new(arena, NODE_MAP, mark);
    const char *key;
    json_t *value;

    json_object_foreach (object, key, value) {
        struct member member = {.key = arena_text(arena, key, strlen(key)), .mark = mark};

        member.value = value_node(arena, value, mark);
        node_put(arena, map, &member);
    }
    return map;
}

/* What json_parse() says begins with "row:1:COLUMN: ". */
static void complain_json(const struct build *build, struct mark mark, const struct error *err)
{
    const char *message = error_message(err);
    int length = 0;

    if (sscanf(message, "row:1:%u: %n", &mark.column, &length) == 1 && length > 0)
        message += length;
    build_error(build, mark, "dataset.paths", "a JSON object expected: %s", message);
}

static void read_line(struct reading *reading, const char *line, size_t size, struct mark mark)
{
    scoped(json_freep) json_t *json = NULL;
    scoped(error_freep) struct error *err = NULL;

    if (size > DATASET_LINE_BYTES_MAX) {
        build_error(reading->build, mark, "dataset.paths", "a row of more than %zu bytes",
                    DATASET_LINE_BYTES_MAX);
        return;
    }
    if (json_parse("row", line, size, &json, &err) < 0)
        complain_json(reading->build, mark, err);
    else if (!json_is_object(json))
        build_error(reading->build, mark, "dataset.paths", "a JSON object expected");
    else
        add_row(reading, row_node(reading->build->schema.arena, json, mark));
}

static bool is_blank(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (strchr(" \t\r", line[i]) == NULL)
            return false;
    }
    return true;
}

static void read_lines(struct reading *reading, const struct origin *origin)
{
    const char *line = origin->text, *end = origin->text + origin->length;
    struct mark mark = {origin, 1, 1};

    for (; line < end && reading->dataset->count < TASKS_MAX; mark.line++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop == NULL ? end : stop) - line);

        if (!is_blank(line, size))
            read_line(reading, line, size, mark);
        line += size + 1;
    }
}

static void read_file(struct reading *reading, const struct node *node)
{
    const struct build *build = reading->build;
    struct arena *arena = build->schema.arena;
    scoped(mem_freep) char *path = build_path(build, node, "dataset.paths", true);
    scoped(mem_freep) char *wrong = NULL;
    scoped(buf_done) struct buf text = {0};

    if (path == NULL)
        return;
    int r = source_read(build->loader->reader, path, DATASET_FILE_BYTES_MAX, &text, &wrong);

    if (r == 0 && !utf8_valid(buf_text(&text), text.size_bytes))
        wrong = str_dup("is not UTF-8 text");
    if (r < 0 || wrong != NULL) {
        build_error(build, node->mark, "dataset.paths", "'%s' %s", path,
                    wrong == NULL ? "does not exist" : wrong);
        return;
    }
    struct origin *origin = arena_new(arena, 1, sizeof(*origin));

    struct sha256 digest = sha256_of(buf_text(&text), text.size_bytes);
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, hex);
    str_list_add(&reading->dataset->files, path);
    str_list_add(&reading->dataset->digests, hex);
    *origin = (struct origin){.source = "dataset", .length = text.size_bytes};
    origin->file = origin->path = arena_text(arena, path, strlen(path));
    origin->text = arena_text(arena, buf_text(&text), text.size_bytes);
    read_lines(reading, origin);
}

static int compare_ids(const void *a, const void *b)
{
    const struct dataset_row *left = *(const struct dataset_row *const *)a;
    const struct dataset_row *right = *(const struct dataset_row *const *)b;
    int order = strcmp(left->id, right->id);

    return order != 0 ? order : (left > right) - (left < right);
}

static void check_unique(const struct build *build, const struct dataset *dataset)
{
    const struct dataset_row **sorted = mem_new(dataset->count + 1, sizeof(*sorted));

    for (size_t i = 0; i < dataset->count; i++)
        sorted[i] = &dataset->rows[i];
    qsort(sorted, dataset->count, sizeof(*sorted), compare_ids);
    for (size_t i = 1; i < dataset->count; i++) {
        const struct mark first = sorted[i - 1]->fields->mark;

        if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0)
            build_error(build, sorted[i]->fields->mark, "dataset",
                        "'%s' is also the id of the row at %s:%u", sorted[i]->id,
                        path_base(first.origin->file), first.line);
    }
    free(sorted);
}

/* --- samples -----------------------------------------------------------------------------------
 */

/* A row with its place in the lot that the seed draws. */
struct lot {
    struct sha256 key;
    const char *stratum;
    size_t index;
};

static int compare_lots(const void *a, const void *b)
{
    const struct lot *left = a, *right = b;
    int order = strcmp(left->stratum, right->stratum);

    return order != 0 ? order : memcmp(left->key.bytes, right->key.bytes, SHA256_BYTES);
}

static const char *stratum_of(const struct dataset_row *row, const char *field)
{
    const char *value = field == NULL ? NULL : node_get_text(row->fields, field);
    const struct node *node = field == NULL ? NULL : node_get(row->fields, field);

    if (value == NULL && node != NULL && node->text != NULL)
        value = node->text;
    return value == NULL ? "" : value;
}

/*
 * Keeps n rows of each stratum, in their order: those with the smallest digest of seed and id, so
 * that a row added later replaces one at most.
 */
static void sample(struct dataset *dataset, uint64_t n, const char *field, uint64_t seed)
{
    struct lot *lots = mem_new(dataset->count + 1, sizeof(*lots));
    bool *kept = mem_new(dataset->count + 1, sizeof(*kept));
    uint64_t taken = 0;
    size_t count = 0;

    for (size_t i = 0; i < dataset->count; i++) {
        scoped(mem_freep) char *text = str_format("%ju:%s", (uintmax_t)seed, dataset->rows[i].id);

        lots[i] =
            (struct lot){sha256_of(text, strlen(text)), stratum_of(&dataset->rows[i], field), i};
    }
    qsort(lots, dataset->count, sizeof(*lots), compare_lots);
    for (size_t i = 0; i < dataset->count; i++) {
        taken = i > 0 && strcmp(lots[i - 1].stratum, lots[i].stratum) == 0 ? taken + 1 : 1;
        kept[lots[i].index] = taken <= n;
    }
    for (size_t i = 0; i < dataset->count; i++) {
        if (kept[i])
            dataset->rows[count++] = dataset->rows[i];
    }
    dataset->count = count;
    free(lots);
    free(kept);
}

static void take_samples(const struct build *build, const struct node *block,
                         struct dataset *dataset)
{
    static const struct task_selection nothing;
    const struct task_selection *selection =
        build->loader->selection == NULL ? &nothing : build->loader->selection;
    uint64_t per_stratum = (uint64_t)node_get_real(block, "sample_per_stratum", 0);
    const struct node *own = node_get(block, "sample_seed");
    uint64_t seed =
        own != NULL && !selection->seed_given ? (uint64_t)own->integer : selection->seed;

    if (selection->sample_per_stratum != 0)
        per_stratum = selection->sample_per_stratum;
    if (per_stratum != 0)
        sample(dataset, per_stratum, node_get_text(block, "stratify_field"), seed);
    if (selection->sample != 0)
        sample(dataset, selection->sample, NULL, seed);
}

bool dataset_read(const struct build *build, struct dataset *ret)
{
    scoped(dataset_done) struct dataset dataset = {0};
    size_t errors_before = build->schema.problems->error_count;
    const struct node *block = node_get(build->file, "dataset");
    const struct node *rows = node_get(block, "rows"), *paths = node_get(block, "paths");
    struct reading reading = {.build = build, .block = block, .dataset = &dataset};

    if ((rows == NULL) == (paths == NULL)) {
        build_error(build, block->mark, "dataset", "exactly one of rows and paths expected");
        return false;
    }
    if (rows != NULL)
        read_inline(&reading, rows);
    for (size_t i = 0; paths != NULL && i < paths->count; i++)
        read_file(&reading, paths->items[i]);
    if (build->schema.problems->error_count > errors_before)
        return false;
    if (dataset.count == 0)
        build_error(build, block->mark, "dataset", "it has no rows");
    if (dataset.count >= TASKS_MAX)
        build_error(build, block->mark, "dataset", "%d rows or more", TASKS_MAX);
    check_unique(build, &dataset);
    if (build->schema.problems->error_count > errors_before)
        return false;
    take_samples(build, block, &dataset);
    *ret = dataset;
    dataset = (struct dataset){0};
    return true;
}

/* --- filling in --------------------------------------------------------------------------------
 */

/* "'a', 'b'"; in the arena. */
static const char *keys_of(const struct build *build, const struct node *fields)
{
    scoped(buf_done) struct buf buf = {0};

    for (size_t i = 0; i < fields->count && i < KEYS_SHOWN; i++)
        buf_format(&buf, "%s'%.60s'", i == 0 ? "" : ", ", fields->members[i].key);
    return arena_text(build->schema.arena, buf_text(&buf), buf.size_bytes);
}

/* The text of a field; NULL: complained. */
static const char *value_of(const struct build *build, const struct dataset_row *row,
                            const char *name, struct mark mark)
{
    const struct node *value = node_get(row->fields, name);

    if (value == NULL) {
        build_error(build, mark, "dataset", "${row.%s}: the row '%s' has no such field; it has %s",
                    name, row->id, keys_of(build, row->fields));
        return NULL;
    }
    if (value->kind == NODE_LIST || value->kind == NODE_MAP) {
        build_error(build, mark, "dataset",
                    "${row.%s}: a text or number expected, in the row '%s' it is a %s", name,
                    row->id, value->kind == NODE_LIST ? "list" : "map");
        return NULL;
    }
    return value->kind == NODE_NULL ? "" : value->text;
}

/* A text with the row's values; the same pointer when it names none. NULL: complained. */
static const char *fill_text(const struct build *build, const struct dataset_row *row,
                             const char *text, struct mark mark)
{
    static const char start[] = "${row.";
    scoped(buf_done) struct buf buf = {0};
    const char *at = text;

    for (const char *s = strstr(at, start); s != NULL; s = strstr(at, start)) {
        const char *name = s + sizeof(start) - 1, *end = strchr(name, '}');

        if (end == NULL)
            break;
        scoped(mem_freep) char *key = str_ndup(name, (size_t)(end - name));
        const char *value = value_of(build, row, key, mark);

        if (value == NULL)
            return NULL;
        buf_append(&buf, at, (size_t)(s - at));
        buf_text_append(&buf, value);
        at = end + 1;
    }
    if (at == text)
        return text;
    buf_text_append(&buf, at);
    return arena_text(build->schema.arena, buf_text(&buf), buf.size_bytes);
}

static struct node *fill_node(const struct build *build, const struct dataset_row *row,
                              struct node *node);

static struct node *fill_scalar(const struct build *build, const struct dataset_row *row,
                                struct node *node)
{
    const char *text =
        node->kind == NODE_TEXT ? fill_text(build, row, node->text, node->mark) : NULL;

    if (text == NULL || text == node->text)
        return node;
    return node_new_text(build->schema.arena, text, node->mark);
}

static struct node *fill_list(const struct build *build, const struct dataset_row *row,
                              struct node *node)
{
    struct node *list = node_new(build->schema.arena, NODE_LIST, node->mark);

    for (size_t i = 0; i < node->count; i++)
        node_add_item(build->schema.arena, list, fill_node(build, row, node->items[i]));
    return list;
}

static struct node *fill_map(const struct build *build, const struct dataset_row *row,
                             struct node *node)
{
    struct node *map = node_new(build->schema.arena, NODE_MAP, node->mark);

    for (size_t i = 0; i < node->count; i++) {
        struct member member = node->members[i];

        member.value = fill_node(build, row, member.value);
        node_put(build->schema.arena, map, &member);
    }
    return map;
}

static struct node *fill_node(const struct build *build, const struct dataset_row *row,
                              struct node *node)
{
    switch (node->kind) {
    case NODE_LIST:
        return fill_list(build, row, node);
    case NODE_MAP:
        return fill_map(build, row, node);
    case NODE_TEXT:
    case NODE_NULL:
    case NODE_BOOL:
    case NODE_INT:
    case NODE_REAL:
        break;
    }
    return fill_scalar(build, row, node);
}

const struct node *dataset_fill(const struct build *build, const struct dataset_row *row)
{
    static const char *const names[] = {"initial_prompt", "success_criteria"};
    size_t errors_before = build->schema.problems->error_count;
    struct node *task = node_new(build->schema.arena, NODE_MAP, build->raw->mark);

    for (size_t i = 0; i < build->raw->count; i++) {
        struct member member = build->raw->members[i];

        for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
            if (strcmp(member.key, names[j]) == 0)
                member.value = fill_node(build, row, member.value);
        }
        node_put(build->schema.arena, task, &member);
    }
    return build->schema.problems->error_count == errors_before ? task : NULL;
}
