/* The text: what is legacy in it, and the edits that make it new. */
#include "lint/migrate.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "task/yaml.h"

struct rewrite {
    const char *text;
    size_t size;
    const struct origin *origin;
    const struct node *root;
    const char *folder;
    struct edits edits;
    struct migration *migration;
};

static size_t at(const struct rewrite *rewrite, unsigned character)
{
    return edit_byte_of(rewrite->text, rewrite->size, character);
}

static void note(struct str_list *list, struct mark mark, const char *what)
{
    str_list_add_take(list, str_format("%u: %s", mark.line, what));
}

static void refuse(struct rewrite *rewrite, struct mark mark, const char *why)
{
    note(&rewrite->migration->refused, mark, why);
}

/* Behind the line that holds a byte, its line end not counted. */
static size_t line_end(const struct rewrite *rewrite, size_t byte)
{
    while (byte < rewrite->size && rewrite->text[byte] != '\n')
        byte++;
    return byte > 0 && byte < rewrite->size && rewrite->text[byte - 1] == '\r' ? byte - 1 : byte;
}

static size_t line_start(const struct rewrite *rewrite, size_t byte)
{
    while (byte > 0 && rewrite->text[byte - 1] != '\n')
        byte--;
    return byte == 0 && rewrite->size >= 3 && memcmp(rewrite->text, "\xef\xbb\xbf", 3) == 0 ? 3
                                                                                            : byte;
}

static const char *line_break(const struct rewrite *rewrite)
{
    const char *first = memchr(rewrite->text, '\n', rewrite->size);

    return first != NULL && first > rewrite->text && first[-1] == '\r' ? "\r\n" : "\n";
}

static bool is_flow(const struct rewrite *rewrite, const struct node *map)
{
    size_t start = at(rewrite, map->start);

    return start < rewrite->size && rewrite->text[start] == '{';
}

/* The member stands here itself: not by '<<', and its value is no alias of something before. */
static bool is_written_here(const struct member *member)
{
    return !member->merged && member->value->start >= member->end;
}

/* The first byte of the line behind its blanks, where the key should be. */
static bool begins_line(const struct rewrite *rewrite, const struct member *member)
{
    size_t key = at(rewrite, member->start);

    for (size_t i = line_start(rewrite, key); i < key; i++)
        if (rewrite->text[i] != ' ')
            return false;
    return true;
}

/* A member that has no effect: it goes with its line, or, to be kept or with a comment, becomes a
 * comment. */
static void retire(struct rewrite *rewrite, const char *name, bool keep, const char *what)
{
    const struct member *member = node_member(rewrite->root, name);

    if (member == NULL)
        return;
    if (!is_written_here(member) || is_flow(rewrite, rewrite->root) ||
        !begins_line(rewrite, member)) {
        refuse(rewrite, member->mark, "the field is not on a line of its own; take it out by hand");
        return;
    }
    size_t start = line_start(rewrite, at(rewrite, member->start));
    size_t last = at(rewrite, member->value->end);

    while (last > start && strchr(" \r\n", rewrite->text[last - 1]) != NULL)
        last--;
    size_t end = line_end(rewrite, last);

    if (!keep && memchr(rewrite->text + start, '\n', end - start) == NULL &&
        memchr(rewrite->text + last, '#', end - last) == NULL) {
        end += end < rewrite->size && rewrite->text[end] == '\r';
        end += end < rewrite->size && rewrite->text[end] == '\n';
        edits_add(&rewrite->edits, start, end, str_dup(""));
    } else {
        for (size_t line = start; line < end; line = line_end(rewrite, line) + 1) {
            while (line < end && strchr("\r\n", rewrite->text[line]) != NULL)
                line++;
            if (line < end)
                edits_add(&rewrite->edits, line, line, str_dup("# "));
        }
    }
    note(&rewrite->migration->changes, member->mark, what);
}

/* --- command_not_executed ----------------------------------------------------------------------*/

static void rewrite_criterion(struct rewrite *rewrite, const struct node *criterion)
{
    const struct member *type = node_member(criterion, "type");
    const char *newline = line_break(rewrite);

    if (type == NULL || !str_equal(node_get_text(criterion, "type"), "command_not_executed"))
        return;
    if (!is_written_here(type) || node_get(criterion, "min_count") != NULL ||
        node_get(criterion, "max_count") != NULL) {
        refuse(rewrite, criterion->mark, "command_not_executed by way of an alias, or with counts");
        return;
    }
    size_t start = at(rewrite, type->value->start), end = at(rewrite, type->value->end);

    note(&rewrite->migration->changes, type->mark,
         "command_not_executed becomes command_executed with no call allowed");
    if (is_flow(rewrite, criterion)) {
        edits_add(&rewrite->edits, start, end,
                  str_dup("command_executed, min_count: 0, max_count: 0"));
        return;
    }
    int indent = (int)type->mark.column - 1;
    size_t behind = line_end(rewrite, end);

    edits_add(&rewrite->edits, start, end, str_dup("command_executed"));
    edits_add(
        &rewrite->edits, behind, behind,
        str_format("%s%*smin_count: 0%s%*smax_count: 0", newline, indent, "", newline, indent, ""));
}

/* --- reference.file ----------------------------------------------------------------------------*/

static bool is_path_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_-/", c) != NULL;
}

/* The path goes on at s: what stands before it is the start of another one. */
static bool goes_on(const char *s, size_t left)
{
    return left > 0 && (is_path_char(s[0]) || (s[0] == '.' && left > 1 && is_path_char(s[1])));
}

/* How long "$TASK_DIR/", "${TASK_DIR}/" or either with a quote before the slash is at s; 0: it is
 * not. */
static size_t token_length(const char *s, size_t left)
{
    static const char *const forms[] = {"$TASK_DIR/", "${TASK_DIR}/", "$TASK_DIR\"/",
                                        "${TASK_DIR}\"/"};

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (left > strlen(forms[i]) && strncmp(s, forms[i], strlen(forms[i])) == 0)
            return strlen(forms[i]);
    return 0;
}

/* $TASK_DIR/F, wherever the file says it, comments included. */
static void rewrite_mentions(struct rewrite *rewrite, const char *file, const char *moved)
{
    size_t length = strlen(file);

    for (size_t i = 0; i < rewrite->size; i++) {
        size_t token =
            rewrite->text[i] == '$' ? token_length(rewrite->text + i, rewrite->size - i) : 0;
        size_t start = i + token, end = start + length;

        if (token == 0 || end > rewrite->size ||
            strncmp(rewrite->text + start, file, length) != 0 ||
            goes_on(rewrite->text + end, rewrite->size - end))
            continue;
        edits_add(&rewrite->edits, start, end, str_dup(moved));
    }
}

static void rewrite_reference(struct rewrite *rewrite)
{
    const struct node *block = node_get(rewrite->root, "reference");
    const struct member *file = node_member(block, "file");
    const struct member *code = node_member(block, "code");

    if (code != NULL)
        refuse(rewrite, code->mark,
               "reference.code: write the code into a file of a folder by hand");
    if (file == NULL)
        return;
    const struct member *holder = node_member(rewrite->root, "reference");
    const char *text = file->value->kind == NODE_TEXT ? file->value->text : "";
    scoped(mem_freep) char *normal = path_normal(text);

    if (!is_written_here(file) || !is_written_here(holder) ||
        node_get(block, "directory") != NULL || node_get(rewrite->root, "reference_dir") != NULL) {
        refuse(rewrite, file->mark, "reference.file by way of an alias, or beside a directory");
        return;
    }
    if (!path_is_inside(normal) || strcmp(normal, ".") == 0 ||
        strpbrk(normal, "$~'\"\\\n#") != NULL) {
        refuse(rewrite, file->mark, "reference.file is not a plain path below the task's folder");
        return;
    }
    scoped(mem_freep) char *moved = str_format("%s/%s", rewrite->folder, path_base(normal));

    edits_add(&rewrite->edits, at(rewrite, file->start), at(rewrite, file->end),
              str_dup("directory"));
    edits_add(&rewrite->edits, at(rewrite, file->value->start), at(rewrite, file->value->end),
              str_dup(rewrite->folder));
    rewrite_mentions(rewrite, normal, moved);
    rewrite->migration->reference_file = take(normal);
    rewrite->migration->reference_folder = str_dup(rewrite->folder);
    scoped(mem_freep) char *what =
        str_format("reference.file becomes reference.directory: %s", rewrite->folder);

    note(&rewrite->migration->changes, file->mark, what);
}

/* --- the whole ---------------------------------------------------------------------------------*/

static int read_yaml(const struct origin *origin, struct arena *arena, const struct node **ret,
                     struct error **err)
{
    scoped(problems_done) struct problems problems = {0};
    const struct node *root = yaml_read(arena, origin, &problems);

    if (root == NULL)
        return error_set(err, ERROR_TASK, "%s:%u:%u: %s", origin->file, problems.items[0].line,
                         problems.items[0].column, problems.items[0].message);
    *ret = root;
    return 0;
}

static bool mentions_old(const struct node *node, const char *token)
{
    const char *text = node->kind == NODE_TEXT ? node->text : NULL;

    for (const char *s = text; s != NULL && (s = strstr(s, token)) != NULL; s++)
        if (!goes_on(s + strlen(token), strlen(s) - strlen(token)))
            return true;
    for (size_t i = 0; (node->kind == NODE_LIST || node->kind == NODE_MAP) && i < node->count; i++)
        if (mentions_old(node->kind == NODE_MAP ? node->members[i].value : node->items[i], token))
            return true;
    return false;
}

static bool has_legacy(const struct node *root)
{
    const struct node *criteria = node_get(root, "success_criteria");

    for (size_t i = 0; criteria != NULL && criteria->kind == NODE_LIST && i < criteria->count; i++)
        if (str_equal(node_get_text(criteria->items[i], "type"), "command_not_executed"))
            return true;
    return node_get(root, "max_iterations") != NULL || node_get(root, "llm_reviewer") != NULL ||
           node_find(root, "reference.file") != NULL;
}

/* Reads what came out: a YAML file still, the same task, nothing legacy in it. */
static void verify(struct rewrite *rewrite)
{
    scoped(arena_done) struct arena arena = {0};
    struct migration *migration = rewrite->migration;
    struct origin origin = *rewrite->origin;
    const struct node *root = NULL;

    origin.text = buf_text(&migration->text);
    origin.length = migration->text.size_bytes;
    if (read_yaml(&origin, &arena, &root, NULL) < 0 || has_legacy(root) ||
        !str_equal(node_get_text(root, "task_id"), node_get_text(rewrite->root, "task_id"))) {
        str_list_add(&migration->refused,
                     "the result would not be the same task; rewrite it by hand");
        return;
    }
    if (migration->reference_file == NULL)
        return;
    scoped(mem_freep) char *token = str_format("TASK_DIR/%s", migration->reference_file);
    scoped(mem_freep) char *braced = str_format("TASK_DIR}/%s", migration->reference_file);
    bool same = strncmp(migration->reference_file, migration->reference_folder,
                        strlen(migration->reference_folder)) == 0;

    if (!same && (mentions_old(root, token) || mentions_old(root, braced)))
        str_list_add(&migration->refused,
                     "the reference's file is named in a way that is not followed");
}

int migrate_text(const struct task_text *text, const char *folder, struct migration *ret,
                 struct error **err)
{
    scoped(arena_done) struct arena arena = {0};
    scoped(migration_done) struct migration migration = {0};
    struct origin origin = {
        .source = "task", .file = text->name, .text = text->bytes, .length = text->size_bytes};
    struct rewrite rewrite = {.text = text->bytes,
                              .size = text->size_bytes,
                              .origin = &origin,
                              .folder = folder,
                              .migration = &migration};
    int r = read_yaml(&origin, &arena, &rewrite.root, err);
    const struct node *criteria = r < 0 ? NULL : node_get(rewrite.root, "success_criteria");

    if (r < 0)
        return r;
    retire(&rewrite, "max_iterations", false, "max_iterations had no effect and is gone");
    retire(
        &rewrite, "llm_reviewer", true,
        "llm_reviewer had no effect and is a comment; a criterion of type llm_judge replaces it");
    rewrite_reference(&rewrite);
    for (size_t i = 0; criteria != NULL && criteria->kind == NODE_LIST && i < criteria->count; i++)
        rewrite_criterion(&rewrite, criteria->items[i]);
    if (edits_apply(&rewrite.edits, text->bytes, text->size_bytes, &migration.text) > 0)
        str_list_add(&migration.refused, "two changes of one place; rewrite it by hand");
    edits_done(&rewrite.edits);
    if (migration.refused.count == 0 && migration.changes.count > 0)
        verify(&rewrite);
    *ret = migration;
    migration = (struct migration){0};
    return 0;
}

void migration_done(struct migration *migration)
{
    buf_done(&migration->text);
    str_list_done(&migration->changes);
    str_list_done(&migration->refused);
    free(migration->reference_file);
    free(migration->reference_folder);
    *migration = (struct migration){0};
}
