/* Regular expressions: whether they compile, and what they may cost. */
#include <string.h>

#include "lint/internal.h"

#define SUBJECT_REPEATS 300
#define SAMPLES_MAX 12

struct pattern_seen {
    const struct node *node, *flags;
    char place[96];
};

typedef void look_at_pattern(struct target *target, const struct pattern_seen *pattern);

static void look_at(struct target *target, const struct node *holder, const char *field,
                    const char *place, look_at_pattern *look)
{
    struct pattern_seen pattern = {.node = node_get(holder, field),
                                   .flags = node_get(holder, "flags")};

    if (pattern.node == NULL || pattern.node->kind != NODE_TEXT)
        return;
    (void)snprintf(pattern.place, sizeof(pattern.place), "%.60s.%.30s", place, field); /* fits */
    look(target, &pattern);
}

static void each_pattern_of(struct target *target, const struct criterion_seen *criterion,
                            look_at_pattern *look)
{
    static const char *const fields[] = {"pattern", "command_pattern", "exclude_pattern"};
    const struct node *patterns = node_get(criterion->node, "patterns");
    const struct node *assertions = node_get(criterion->node, "assertions");
    char place[96];

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        look_at(target, criterion->node, fields[i], criterion->place, look);
    if (str_equal(node_get_text(criterion->node, "stdout_match"), "regex"))
        look_at(target, criterion->node, "expected_stdout", criterion->place, look);
    for (size_t i = 0; patterns != NULL && patterns->kind == NODE_LIST && i < patterns->count;
         i++) {
        (void)snprintf(place, sizeof(place), "%s.patterns[%zu]", criterion->place, i);
        look_at(target, patterns->items[i], "pattern", place, look);
    }
    for (size_t i = 0; assertions != NULL && assertions->kind == NODE_LIST && i < assertions->count;
         i++) {
        (void)snprintf(place, sizeof(place), "%s.assertions[%zu]", criterion->place, i);
        if (str_equal(node_get_text(assertions->items[i], "operator"), "regex"))
            look_at(target, assertions->items[i], "expected", place, look);
    }
}

static void each_pattern(struct target *target, look_at_pattern *look)
{
    struct criterion_seen criterion;
    size_t position = 0;

    while (target->lint->options->try_pattern != NULL &&
           next_criterion(target, &position, &criterion))
        each_pattern_of(target, &criterion, look);
}

static int try_on(const struct target *target, const struct pattern_seen *pattern,
                  const char *subject, size_t size, struct error **err)
{
    scoped(json_freep) json_t *flags = pattern->flags == NULL ? NULL : node_to_json(pattern->flags);

    return target->lint->options->try_pattern(pattern->node->text, flags, subject, size, err);
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;

    for (const char *s = text; *s != '\0'; s++)
        hash = (hash ^ (unsigned char)*s) * 1099511628211u;
    return hash;
}

/* What is known of the pattern; the first time it is compiled. Valid until the next call. */
static struct pattern_known *known(const struct target *target, const struct pattern_seen *pattern)
{
    struct lint *lint = target->lint;
    const char *flags =
        pattern->flags == NULL || pattern->flags->text == NULL ? "" : pattern->flags->text;
    scoped(mem_freep) char *key = str_format("%s\n%s", flags, pattern->node->text);
    scoped(error_freep) struct error *error = NULL;
    struct pattern_known new = {.hash = hash_of(key)};

    for (size_t i = 0; i < lint->pattern_count; i++)
        if (lint->patterns[i].hash == new.hash && strcmp(lint->patterns[i].key, key) == 0)
            return &lint->patterns[i];
    if (strstr(pattern->node->text, "${row.") == NULL && try_on(target, pattern, "", 0, &error) < 0)
        new.mistake = str_dup(error_message(error));
    new.key = take(key);
    if ((lint->pattern_count & (lint->pattern_count - 1)) == 0)
        lint->patterns =
            mem_resize(lint->patterns, lint->pattern_count == 0 ? 1 : lint->pattern_count * 2,
                       sizeof(*lint->patterns));
    lint->patterns[lint->pattern_count++] = new;
    return &lint->patterns[lint->pattern_count - 1];
}

static void compile(struct target *target, const struct pattern_seen *pattern)
{
    const char *mistake = known(target, pattern)->mistake;

    if (mistake != NULL)
        found(target, pattern->node->mark, pattern->place, "%s", mistake);
}

void check_pattern_compiles(struct target *target)
{
    each_pattern(target, compile);
}

/* An unbounded repetition at s: '*', '+' or '{n,}'. */
static bool is_unbounded(const char *s)
{
    if (*s == '*' || *s == '+')
        return true;
    if (*s != '{')
        return false;
    s += 1 + strspn(s + 1, "0123456789");
    return s[0] == ',' && s[1] == '}';
}

/* Behind a character class. */
static const char *skip_class(const char *s)
{
    s += s[1] == '^' ? 2 : 1;
    s += *s == ']';
    for (; *s != '\0' && *s != ']'; s++)
        s += *s == '\\' && s[1] != '\0';
    return *s == '\0' ? s : s + 1;
}

/* A group that is repeated without bounds and has such a repetition or a choice in it: what can be
 * costly at all. Others are not tried. */
static bool repeats_a_repetition(const char *pattern)
{
    bool inside[64] = {false};
    size_t depth = 0;

    for (const char *s = pattern; *s != '\0';) {
        if (*s == '\\') {
            s += s[1] == '\0' ? 1 : 2;
        } else if (*s == '[') {
            s = skip_class(s);
        } else if (*s == '(') {
            depth += depth + 1 < ARRAY_SIZE(inside);
            inside[depth] = false;
            s++;
        } else if (*s == ')') {
            bool had = inside[depth];

            s++;
            if (had && is_unbounded(s))
                return true;
            depth -= depth > 0;
            inside[depth] = inside[depth] || had;
        } else {
            inside[depth] = inside[depth] || is_unbounded(s) || *s == '|';
            s++;
        }
    }
    return false;
}

/* One text for each kind of character that the pattern speaks of, repeated, with an end that no
 * pattern wants. */
static void take_samples(const char *pattern, struct str_list *ret)
{
    static const char standard[] = "a0 x,/";
    char seen[SAMPLES_MAX + 1] = "";
    size_t count = 0;

    for (const char *s = pattern; *s != '\0' && count < SAMPLES_MAX - 6; s++)
        if (strchr("\\()[]{}|*+?^$.", *s) == NULL && (unsigned char)*s < 0x80 &&
            strchr(seen, *s) == NULL && (s == pattern || s[-1] != '\\'))
            seen[count++] = *s;
    for (const char *s = standard; *s != '\0' && count < SAMPLES_MAX; s++)
        if (strchr(seen, *s) == NULL)
            seen[count++] = *s;
    for (size_t i = 0; i < count; i++) {
        scoped(buf_done) struct buf text = {0};

        for (size_t j = 0; j < SUBJECT_REPEATS; j++)
            buf_char(&text, seen[i]);
        buf_text_append(&text, "\x01");
        str_list_add(ret, buf_text(&text));
    }
}

/* The character whose repetition the pattern gives up on; 0: none of those tried. */
static char costly_character(const struct target *target, const struct pattern_seen *pattern)
{
    struct str_list samples = {0};
    char costly = '\0';

    take_samples(pattern->node->text, &samples);
    for (size_t i = 0; i < samples.count && costly == '\0'; i++)
        if (try_on(target, pattern, samples.items[i], strlen(samples.items[i]), NULL) == 1)
            costly = samples.items[i][0];
    str_list_done(&samples);
    return costly;
}

static void measure(struct target *target, const struct pattern_seen *pattern)
{
    if (!repeats_a_repetition(pattern->node->text))
        return;
    struct pattern_known *what = known(target, pattern);

    if (!what->is_tried && what->mistake == NULL)
        what->costly = costly_character(target, pattern);
    what->is_tried = true;
    if (what->costly != '\0')
        found(target, pattern->node->mark, pattern->place,
              "gives up on %d times '%c' followed by something else", SUBJECT_REPEATS,
              what->costly);
}

void check_pattern_cost(struct target *target)
{
    each_pattern(target, measure);
}
