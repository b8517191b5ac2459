
#include "grade/regex.h"

#include "base/mem.h"
#include "base/term.h"
#include "grade/regex_code_internal.h"
#include "grade/regex_internal.h"
#include "grade/value.h"

/* Room that PCRE2's compiled code may use for what it has to come back to. */
#define JIT_STACK_START_BYTES ((size_t)32 << 10)
#define JIT_STACK_MAX_BYTES ((size_t)32 << 20)
/* Bytes that a step covers when the matcher moves without stopping. */
#define BYTES_PER_STEP 32

void regex_free(struct regex *regex)
{
    if (regex == NULL)
        return;
    pcre2_jit_stack_free(regex->stack);
    pcre2_match_context_free(regex->context);
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    free(regex);
}

void regex_freep(struct regex **regex)
{
    regex_free(*regex);
    *regex = NULL;
}

static int count_step(pcre2_callout_block *block, void *data)
{
    struct regex *regex = data;
    size_t now = block->current_position;
    size_t distance = now > regex->position ? now - regex->position : regex->position - now;
    uint64_t steps = 1 + distance / BYTES_PER_STEP;

    regex->position = now;
    if (steps > regex->steps_left) {
        regex->steps_left = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    regex->steps_left -= steps;
    return 0;
}

static uint32_t options_of(unsigned flags)
{
    uint32_t options =
        PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_ALT_CIRCUMFLEX | PCRE2_AUTO_CALLOUT;

    if ((flags & REGEX_ASCII) == 0)
        options |= PCRE2_UCP;
    if ((flags & REGEX_IGNORE_CASE) != 0)
        options |= PCRE2_CASELESS;
    if ((flags & REGEX_MULTI_LINE) != 0)
        options |= PCRE2_MULTILINE;
    if ((flags & REGEX_DOT_ALL) != 0)
        options |= PCRE2_DOTALL;
    if ((flags & REGEX_VERBOSE) != 0)
        options |= PCRE2_EXTENDED;
    return options;
}

/*
 * PCRE2 10.42 takes the character of a lookahead for the first one of a match, and then looks for
 * another one behind it: "(?=a)b*a" is not found in "a". Without its search for a starting place it
 * is right.
 */
static bool has_lookahead(const char *text)
{
    return strstr(text, "(?=") != NULL || strstr(text, "(*") != NULL;
}

static void compile_context_freep(pcre2_compile_context **context)
{
    pcre2_compile_context_free(*context);
}

static int compile_code(const struct regex_text *text, unsigned flags, pcre2_code **ret,
                        struct error **err)
{
    scoped(compile_context_freep) pcre2_compile_context *context =
        pcre2_compile_context_create(NULL);
    uint32_t options = options_of(flags);
    int number = 0;
    size_t offset = 0;
    unsigned char message[160];

    ASSERT(context != NULL);
    ASSERT(pcre2_set_newline(context, PCRE2_NEWLINE_LF) == 0);
    ASSERT(pcre2_set_parens_nest_limit(context, REGEX_NESTING_MAX) == 0);
    if (has_lookahead(buf_text(&text->text)))
        options |= PCRE2_NO_START_OPTIMIZE;
    *ret = pcre2_compile((const unsigned char *)buf_text(&text->text), text->text.size_bytes,
                         options, &number, &offset, context);
    if (*ret != NULL)
        return 0;
    (void)pcre2_get_error_message(number, message, sizeof(message)); /* cut when too long */
    return error_set_at(err, ERROR_TASK, regex_text_origin(text, offset), "%s",
                        (const char *)message);
}

/* Code made at run time makes searches several times faster; without it they only take longer. */
void regex_prepare(struct regex *regex)
{
    if (regex->match != NULL)
        return;
    regex->match = pcre2_match_data_create(1, NULL);
    regex->context = pcre2_match_context_create(NULL);
    ASSERT(regex->match != NULL && regex->context != NULL);
    ASSERT(pcre2_set_match_limit(regex->context, REGEX_MATCH_LIMIT) == 0);
    ASSERT(pcre2_set_depth_limit(regex->context, REGEX_DEPTH_LIMIT) == 0);
    ASSERT(pcre2_set_heap_limit(regex->context, REGEX_HEAP_LIMIT_KIB) == 0);
    ASSERT(pcre2_set_callout(regex->context, count_step, regex) == 0);
    if (pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) != 0)
        return;
    regex->stack = pcre2_jit_stack_create(JIT_STACK_START_BYTES, JIT_STACK_MAX_BYTES, NULL);
    if (regex->stack != NULL)
        pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
}

int regex_compile(const char *pattern, unsigned flags, struct regex **ret, struct error **err)
{
    scoped(regex_text_done) struct regex_text text = {0};
    scoped(regex_freep) struct regex *regex = mem_new(1, sizeof(*regex));
    int r = regex_translate(pattern, &flags, &text, err);

    if (r < 0)
        return r;
    r = compile_code(&text, flags, &regex->code, err);
    if (r < 0)
        return r;
    regex->steps_left = REGEX_STEPS_MAX;
    *ret = take(regex);
    return 0;
}

static enum regex_outcome search_valid(struct regex *regex, const char *subject, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)subject;

    regex_prepare(regex);
    regex->position = 0;
    regex->steps_left += STEPS_PER_BYTE * (uint64_t)size;
    int r =
        pcre2_match(regex->code, bytes, size, 0, PCRE2_NO_UTF_CHECK, regex->match, regex->context);

    /* Its stack was too small: the interpreter has the heap instead. */
    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(regex->code, bytes, size, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        regex->match, regex->context);
    if (r == PCRE2_ERROR_NOMATCH)
        return REGEX_NO_MATCH;
    return r >= 0 ? REGEX_MATCH : REGEX_LIMIT;
}

enum regex_outcome regex_search(struct regex *regex, const char *subject, size_t size)
{
    scoped(buf_done) struct buf valid = {0};

    if (size == 0)
        return search_valid(regex, "", 0);
    if (utf8_valid(subject, size))
        return search_valid(regex, subject, size);
    text_append_utf8(&valid, subject, size);
    return search_valid(regex, buf_text(&valid), valid.size_bytes);
}

/* --- flags ----------------------------------------------------------------------------------- */

static int parse_letters(const char *letters, unsigned *ret, struct error **err)
{
    static const struct {
        char letter;
        unsigned flag;
    } known[] = {
        {'a', REGEX_ASCII},   {'i', REGEX_IGNORE_CASE}, {'m', REGEX_MULTI_LINE},
        {'s', REGEX_DOT_ALL}, {'u', REGEX_UNICODE},     {'x', REGEX_VERBOSE},
    };
    unsigned flags = 0;

    for (const char *c = letters; *c != '\0'; c++) {
        unsigned flag = 0;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
            flag |= known[i].letter == *c ? known[i].flag : 0;
        if (flag == 0)
            return error_set(err, ERROR_TASK,
                             "flags: '%s' has an unknown letter, expected some "
                             "of 'aimsux'",
                             letters);
        flags |= flag;
    }
    *ret = flags;
    return 0;
}

int regex_flags_parse(const json_t *value, unsigned *ret, struct error **err)
{
    static const unsigned all = REGEX_IGNORE_CASE | REGEX_MULTI_LINE | REGEX_DOT_ALL |
                                REGEX_UNICODE | REGEX_VERBOSE | REGEX_ASCII;

    if (value == NULL || json_is_null(value)) {
        *ret = 0;
        return 0;
    }
    if (json_is_string(value))
        return parse_letters(json_string_value(value), ret, err);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

    if (number < 0 || (number & ~(json_int_t)all) != 0)
        return error_set(err, ERROR_TASK,
                         "flags: expected letters of 'aimsux', or a sum of 2 (I), 8 (M), 16 (S), "
                         "32 (U), 64 (X) and 256 (A)");
    *ret = (unsigned)number;
    return 0;
}

void regex_library_version(struct buf *buf)
{
    char version[64] = ""; /* "10.42 2022-12-11"; 24 are enough today */

    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof(version))
        (void)pcre2_config(PCRE2_CONFIG_VERSION, version); /* asked for above */
    buf_append(buf, version, strcspn(version, " "));
}
