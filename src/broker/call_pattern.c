#include "broker/call_pattern.h"

#include "base/mem.h"

static const char *const value_predicates[] = {"equals", "contains", "matches_regex", "any_of"};
static const char *const other_predicates[] = {"present", "absent", "aliases", "flags"};

/* --- texts ------------------------------------------------------------------------------------ */

/* What YAML read as a number or a bool is compared as it is written on a command line; owned. */
static char *text_of(const json_t *value)
{
    if (json_is_string(value))
        return str_dup(json_string_value(value));
    if (json_is_integer(value))
        return str_format("%jd", (intmax_t)json_integer_value(value));
    if (json_is_real(value))
        return str_format("%.17g", json_real_value(value));
    return str_dup(json_is_true(value) ? "true" : json_is_false(value) ? "false" : "");
}

static bool equals(const json_t *value, const char *text)
{
    scoped(mem_freep) char *wanted = text_of(value);

    return strcmp(wanted, text) == 0;
}

/* "--output", "-o" and "output" are the same flag to whoever writes a pattern. */
static const char *bare(const char *name)
{
    return name + strspn(name, "-");
}

static bool list_has_flag(const json_t *list, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        if (json_is_string(item) && strcmp(bare(json_string_value(item)), name) == 0)
            return true;
    }
    return false;
}

/* --- what a flag means ------------------------------------------------------------------------ */

/* The condition on the flag of that name or alias; *ret_key is the name it has in the pattern. */
static const json_t *predicate_of(const json_t *params, const char *name, const char **ret_key)
{
    json_t *flags = json_object_get(params, "flags");
    const char *key;
    json_t *predicate;

    json_object_foreach (flags, key, predicate) {
        if (strcmp(bare(key), name) == 0 ||
            list_has_flag(json_object_get(predicate, "aliases"), name)) {
            *ret_key = key;
            return predicate;
        }
    }
    return NULL;
}

static bool looks_at_value(const json_t *predicate)
{
    if (!json_is_object(predicate))
        return predicate != NULL && !json_is_boolean(predicate);
    for (size_t i = 0; i < ARRAY_SIZE(value_predicates); i++) {
        if (json_object_get(predicate, value_predicates[i]) != NULL)
            return true;
    }
    return false;
}

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && (word[1] < '0' || word[1] > '9');
}

static bool is_ignored(const json_t *params, const char *name)
{
    const json_t *list = json_object_get(params, "ignore_flags");

    return list == NULL || json_is_null(list) ? strcmp(name, "output") == 0
                                              : list_has_flag(list, name);
}

/* --- one call, read --------------------------------------------------------------------------- */

struct flag {
    char *name;        /* without dashes; owned */
    const char *value; /* NULL: none */
    bool ignored;
};

struct call {
    struct flag *flags;
    size_t flag_count;
    const char **words; /* positional; borrowed */
    size_t word_count;
};

static void call_done(struct call *call)
{
    for (size_t i = 0; i < call->flag_count; i++)
        free(call->flags[i].name);
    free(call->flags);
    free(call->words);
}

/* Returns how many words it took. */
static size_t add_flag(const json_t *params, const struct call_args *args, size_t i,
                       struct call *call)
{
    const char *word = bare(args->items[i]);
    const char *equals_sign = strchr(word, '=');
    size_t length = equals_sign == NULL ? strlen(word) : (size_t)(equals_sign - word);
    struct flag *flag = &call->flags[call->flag_count++];
    const char *key = NULL;
    const char *next = i + 1 < args->count ? args->items[i + 1] : NULL;

    *flag = (struct flag){.name = str_ndup(word, length)};
    flag->ignored = is_ignored(params, flag->name);
    if (equals_sign != NULL) {
        flag->value = equals_sign + 1;
        return 1;
    }
    bool takes_value = list_has_flag(json_object_get(params, "value_flags"), flag->name) ||
                       looks_at_value(predicate_of(params, flag->name, &key)) ||
                       (flag->ignored && next != NULL && !is_flag(next));

    if (!takes_value || next == NULL)
        return 1;
    flag->value = next;
    return 2;
}

static void read_call(const json_t *params, const struct call_args *args, struct call *ret)
{
    bool flags_over = false;

    *ret = (struct call){
        .flags = mem_new(args->count + 1, sizeof(*ret->flags)),
        .words = mem_new(args->count + 1, sizeof(*ret->words)),
    };
    for (size_t i = 0; i < args->count;) {
        if (!flags_over && strcmp(args->items[i], "--") == 0) {
            flags_over = true;
            i++;
        } else if (!flags_over && is_flag(args->items[i])) {
            i += add_flag(params, args, i, ret);
        } else {
            ret->words[ret->word_count++] = args->items[i++];
        }
    }
}

/* --- conditions ------------------------------------------------------------------------------- */

/* How many positional words the verb is, when the call begins with it; else -1. */
static long verb_words(const struct call *call, const char *verb)
{
    size_t count = 0;

    while (*verb != '\0') {
        verb += strspn(verb, " \t");
        size_t length = strcspn(verb, " \t");

        if (length == 0)
            break;
        if (count >= call->word_count || strlen(call->words[count]) != length ||
            strncmp(call->words[count], verb, length) != 0)
            return -1;
        count++;
        verb += length;
    }
    return (long)count;
}

/* The longest verb that fits; -1: none does. Without one there is none to look for: 0. */
static long find_verb(const json_t *params, const struct call *call)
{
    const char *verb = json_get_text(params, "verb");
    const json_t *list = json_object_get(params, "verb_any_of");
    long best = -1;
    size_t i;
    json_t *item;

    if (verb != NULL)
        return verb_words(call, verb);
    if (json_array_size(list) == 0)
        return 0;
    json_array_foreach (list, i, item) {
        long words = json_is_string(item) ? verb_words(call, json_string_value(item)) : -1;

        best = words > best ? words : best;
    }
    return best;
}

static bool positional_match(const json_t *list, const struct call *call, size_t from)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        if (from + i >= call->word_count || !equals(item, call->words[from + i]))
            return false;
    }
    return true;
}

static bool is_any_of(const json_t *list, const char *value)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        if (equals(item, value))
            return true;
    }
    return false;
}

/* 1 when the value of one occurrence is what the condition wants. */
static int value_matches(const json_t *predicate, const char *value, const struct call_regex *regex,
                         struct error **err)
{
    const json_t *wanted = json_object_get(predicate, "equals");
    const json_t *part = json_object_get(predicate, "contains");
    const json_t *any = json_object_get(predicate, "any_of");

    if (!json_is_object(predicate))
        return value != NULL && equals(predicate, value);
    if (value == NULL)
        return !looks_at_value(predicate);
    if (wanted != NULL && !equals(wanted, value))
        return 0;
    if (part != NULL) {
        scoped(mem_freep) char *text = text_of(part);

        if (strstr(value, text) == NULL)
            return 0;
    }
    if (any != NULL && !is_any_of(any, value))
        return 0;
    if (json_object_get(predicate, "matches_regex") == NULL)
        return 1;
    return regex == NULL ? 0 : regex->search(regex->context, predicate, value, err);
}

static bool wants_absence(const json_t *predicate)
{
    return json_is_false(predicate) || json_is_true(json_object_get(predicate, "absent")) ||
           json_is_false(json_object_get(predicate, "present"));
}

/* One condition: some occurrence of the flag, or of an alias, fits; or there is none. */
static int flag_matches(const json_t *params, const char *key, const json_t *predicate,
                        const struct call *call, const struct call_regex *regex, struct error **err)
{
    bool absent = wants_absence(predicate);

    for (size_t i = 0; i < call->flag_count; i++) {
        const char *of = NULL;

        if (predicate_of(params, call->flags[i].name, &of) == NULL || strcmp(of, key) != 0)
            continue;
        if (absent)
            return 0;
        int r = json_is_true(predicate)
                    ? 1
                    : value_matches(predicate, call->flags[i].value, regex, err);

        if (r != 0)
            return r;
    }
    return absent ? 1 : 0;
}

int call_matches(const json_t *params, const struct call_args *args, const struct call_regex *regex,
                 struct error **err)
{
    scoped(call_done) struct call call = {0};
    json_t *flags = json_object_get(params, "flags");
    const char *key;
    json_t *predicate;

    read_call(params, args, &call);
    long verb = find_verb(params, &call);

    if (verb < 0 || !positional_match(json_object_get(params, "positional"), &call, (size_t)verb))
        return 0;
    json_object_foreach (flags, key, predicate) {
        int r = flag_matches(params, key, predicate, &call, regex, err);

        if (r != 1)
            return r;
    }
    return 1;
}

/* --- checking a pattern ----------------------------------------------------------------------- */

static bool is_known(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(value_predicates); i++) {
        if (strcmp(value_predicates[i], key) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(other_predicates); i++) {
        if (strcmp(other_predicates[i], key) == 0)
            return true;
    }
    return false;
}

static void complain(const struct call_complaints *complaints, const char *flag,
                     const char *message)
{
    scoped(mem_freep) char *place = str_format("/flags/%s", flag);

    complaints->say(complaints->context, place, message);
}

static void check_flag(const struct call_complaints *complaints, const char *flag,
                       const json_t *predicate)
{
    const char *key;
    json_t *value;

    if (!json_is_object(predicate)) {
        if (json_is_array(predicate) || json_is_null(predicate))
            complain(complaints, flag, "a value or a map with a condition expected");
        return;
    }
    json_object_foreach ((json_t *)(uintptr_t)predicate, key, value) {
        if (!is_known(key))
            complain(complaints, flag,
                     "unknown condition: equals, contains, matches_regex, any_of, present or "
                     "absent expected");
        else if ((strcmp(key, "any_of") == 0 || strcmp(key, "aliases") == 0) &&
                 !json_is_array(value))
            complain(complaints, flag, "any_of and aliases: a list expected");
        else if ((strcmp(key, "present") == 0 || strcmp(key, "absent") == 0) &&
                 !json_is_boolean(value))
            complain(complaints, flag, "present and absent: true or false expected");
        else if (strcmp(key, "matches_regex") == 0 && complaints->no_regex)
            complain(complaints, flag,
                     "matches_regex in a response is not in this version; use equals, contains or "
                     "any_of");
    }
    if (wants_absence(predicate) && looks_at_value(predicate))
        complain(complaints, flag, "a flag that must be absent has no value to look at");
}

void call_pattern_check(const json_t *params, const struct call_complaints *complaints)
{
    json_t *flags = json_object_get(params, "flags");
    const char *verb = json_get_text(params, "verb");
    const char *key;
    json_t *predicate;

    if (verb != NULL && json_array_size(json_object_get(params, "verb_any_of")) > 0)
        complaints->say(complaints->context, "/verb",
                        "one of verb and verb_any_of expected, found both");
    if (flags != NULL && !json_is_null(flags) && !json_is_object(flags))
        complaints->say(complaints->context, "/flags", "a map of conditions expected");
    json_object_foreach (flags, key, predicate)
        check_flag(complaints, key, predicate);
}
