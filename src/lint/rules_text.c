/* What the prompt gives away: words of the reference, expected values, labels. */
#include <string.h>

#include "lint/internal.h"

#define RUN_WORDS 16
#define LITERAL_BYTES_MIN 24
#define REFERENCE_FILE_BYTES_MAX ((size_t)512 << 10)
#define REFERENCE_BYTES_MAX ((size_t)8 << 20)
#define WORDS_MAX 200000 /* of the prompt */

/* Letters and digits, in any alphabet; case does not count in ASCII. */
static bool is_word_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

/* The hash of the next word at *position; false: no more. */
static bool next_word(const char *text, size_t size, size_t *position, uint64_t *ret)
{
    size_t i = *position;
    uint64_t hash = 14695981039346656037u;

    while (i < size && !is_word_byte((unsigned char)text[i]))
        i++;
    if (i == size)
        return false;
    for (; i < size && is_word_byte((unsigned char)text[i]); i++) {
        unsigned char c = (unsigned char)text[i];

        hash = (hash ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * 1099511628211u;
    }
    *position = i;
    *ret = hash;
    return true;
}

/* RUN_WORDS words that follow each other, as one number. */
struct window {
    uint64_t words[RUN_WORDS];
    size_t count;
};

static bool window_add(struct window *window, uint64_t word, uint64_t *ret)
{
    uint64_t hash = 0;

    window->words[window->count++ % RUN_WORDS] = word;
    if (window->count < RUN_WORDS)
        return false;
    for (size_t i = 0; i < RUN_WORDS; i++)
        hash = (hash ^ window->words[(window->count + i) % RUN_WORDS]) * 0x9e3779b97f4a7c15u +
               (hash >> 29);
    *ret = hash;
    return true;
}

struct comparison {
    struct target *target;
    uint64_t *runs; /* of the prompt, sorted */
    size_t run_count, read_bytes;
    char *file; /* the first that has one; owned */
};

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static void take_runs(struct comparison *comparison, const char *prompt)
{
    struct window window = {0};
    size_t position = 0, size = strlen(prompt);
    uint64_t word, run;

    while (comparison->run_count < WORDS_MAX && next_word(prompt, size, &position, &word)) {
        if (!window_add(&window, word, &run))
            continue;
        if ((comparison->run_count & (comparison->run_count - 1)) == 0)
            comparison->runs =
                mem_resize(comparison->runs,
                           comparison->run_count == 0 ? 1 : comparison->run_count * 2, sizeof(run));
        comparison->runs[comparison->run_count++] = run;
    }
    if (comparison->run_count > 1)
        qsort(comparison->runs, comparison->run_count, sizeof(run), compare_numbers);
}

static bool has_run(const struct comparison *comparison, const char *text, size_t size)
{
    struct window window = {0};
    size_t position = 0;
    uint64_t word, run;

    while (next_word(text, size, &position, &word))
        if (window_add(&window, word, &run) &&
            bsearch(&run, comparison->runs, comparison->run_count, sizeof(run), compare_numbers) !=
                NULL)
            return true;
    return false;
}

static bool compare_file(void *context, const char *path)
{
    struct comparison *comparison = context;
    scoped(buf_done) struct buf text = {0};

    if (!read_file(comparison->target, path, REFERENCE_FILE_BYTES_MAX, &text))
        return true;
    comparison->read_bytes += text.size_bytes;
    if (has_run(comparison, buf_text(&text), text.size_bytes))
        comparison->file = str_dup(path_base(path));
    return comparison->file == NULL && comparison->read_bytes < REFERENCE_BYTES_MAX;
}

void check_reference_words(struct target *target)
{
    const struct node *node = NULL;
    scoped(mem_freep) char *reference = reference_path(target, &node);
    struct comparison comparison = {.target = target};

    if (reference == NULL || target->prompt == NULL)
        return;
    take_runs(&comparison, target->prompt);
    if (comparison.run_count > 0) {
        each_file(target, reference, compare_file, &comparison);
        if (comparison.file == NULL)
            (void)compare_file(&comparison, reference); /* a reference that is one file */
    }
    if (comparison.file != NULL)
        found(target, target->prompt_mark, target->prompt_field,
              "%d or more consecutive words stand in '%s' of the reference, too", RUN_WORDS,
              comparison.file);
    free(comparison.runs);
    free(comparison.file);
}

/* --- expected values ---------------------------------------------------------------------------*/

static const char *const expected_fields[] = {"includes",       "expected_stdout", "expected",
                                              "expected_label", "expected_skill",  "assertions"};

typedef void look_at_text(struct target *target, const struct node *text, const char *place);

static void each_text(struct target *target, const struct node *node, const char *place,
                      look_at_text *look)
{
    if (node == NULL)
        return;
    if (node->kind == NODE_TEXT)
        look(target, node, place);
    for (size_t i = 0; node->kind == NODE_LIST && i < node->count; i++)
        each_text(target, node->items[i], place, look);
    for (size_t i = 0; node->kind == NODE_MAP && i < node->count; i++)
        if (strcmp(node->members[i].key, "expression") != 0)
            each_text(target, node->members[i].value, place, look);
}

/* Every text that a criterion expects. */
static void each_expected(struct target *target, look_at_text *look)
{
    struct criterion_seen criterion;
    size_t position = 0;

    while (next_criterion(target, &position, &criterion)) {
        for (size_t i = 0; i < ARRAY_SIZE(expected_fields); i++) {
            scoped(mem_freep) char *place =
                str_format("%s.%s", criterion.place, expected_fields[i]);

            each_text(target, node_get(criterion.node, expected_fields[i]), place, look);
        }
    }
}

static void look_for_literal(struct target *target, const struct node *text, const char *place)
{
    size_t length = strlen(text->text);

    while (length > 0 && strchr(" \t\r\n", text->text[length - 1]) != NULL)
        length--;
    scoped(mem_freep) char *literal = str_ndup(text->text, length);

    if (length >= LITERAL_BYTES_MIN && strstr(target->prompt, literal) != NULL)
        found(target, text->mark, place, "the prompt has this value of %zu bytes, too", length);
}

void check_expected_literal(struct target *target)
{
    if (target->prompt != NULL)
        each_expected(target, look_for_literal);
}

/* "${row.NAME}" at or after *position; *ret is NAME, owned. */
static bool next_row_field(const char *text, size_t *position, char **ret)
{
    const char *start = strstr(text + *position, "${row.");
    const char *end = start == NULL ? NULL : strchr(start, '}');

    if (end == NULL)
        return false;
    *position = (size_t)(end + 1 - text);
    *ret = str_ndup(start + 6, (size_t)(end - start - 6));
    return true;
}

static void look_for_label(struct target *target, const struct node *text, const char *place)
{
    const struct node *prompt = node_get(target->file, "initial_prompt");
    size_t position = 0;
    char *name;

    while (next_row_field(text->text, &position, &name)) {
        scoped(mem_freep) char *field = name;
        scoped(mem_freep) char *token = str_format("${row.%s}", field);

        if (strstr(prompt->text, token) != NULL)
            found(target, prompt->mark, "initial_prompt", "%s, which %s expects", token, place);
    }
}

void check_label(struct target *target)
{
    const struct node *prompt = node_get(target->file, "initial_prompt");

    if (prompt != NULL && prompt->kind == NODE_TEXT)
        each_expected(target, look_for_label);
}
