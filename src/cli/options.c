#include "cli/options.h"

#include "base/mem.h"
#include "cli/internal.h"

const struct cli_option common_options[COMMON_OPTION_COUNT] = {
    {
        .kind = OPTION_FLAG,
        .short_name = 'h',
        .long_name = "help",
        .help = "show this help",
        .offset = offsetof(struct arguments, wants_help),
    },
    {
        .kind = OPTION_FLAG,
        .short_name = 'q',
        .long_name = "quiet",
        .help = "print results and errors only",
        .offset = offsetof(struct arguments, is_quiet),
    },
    {
        .kind = OPTION_COUNTED,
        .short_name = 'v',
        .long_name = "verbose",
        .help = "say more; given twice, say everything",
        .offset = offsetof(struct arguments, verbosity),
    },
};

/* A walk over the words of a command line. */
struct parser {
    const struct command *command;
    struct arguments *arguments;
    char **words;
    int count, next;
};

const struct cli_option *options_at(const struct command *command, size_t i)
{
    if (i < command->option_count)
        return &command->options[i];
    i -= command->option_count;
    return i < COMMON_OPTION_COUNT ? &common_options[i] : NULL;
}

static bool is_common(const struct cli_option *option)
{
    return option >= common_options && option < common_options + COMMON_OPTION_COUNT;
}

/* The field that an option fills: in the command's values, or in the arguments themselves. */
static void *field_of(const struct parser *parser, const struct cli_option *option)
{
    char *base = is_common(option) ? (char *)parser->arguments : parser->arguments->values;

    return base + option->offset;
}

static bool takes_value(const struct cli_option *option)
{
    return option->kind != OPTION_FLAG && option->kind != OPTION_COUNTED;
}

static int set_number(const struct cli_option *option, const char *value, uint64_t *ret,
                      struct error **err)
{
    uint64_t max = option->max == 0 ? UINT64_MAX : option->max;
    uint64_t number;

    if (str_to_u64(value, &number) && number >= option->min && number <= max) {
        *ret = number;
        return 0;
    }
    if (option->max == 0)
        return error_set(err, ERROR_USER,
                         "option '--%s': a whole number from %llu expected, not '%s'",
                         option->long_name, (unsigned long long)option->min, value);
    return error_set(
        err, ERROR_USER, "option '--%s': a whole number from %llu to %llu expected, not '%s'",
        option->long_name, (unsigned long long)option->min, (unsigned long long)max, value);
}

static size_t choice_count(const struct cli_option *option)
{
    size_t count = 0;

    while (option->choices[count] != NULL)
        count++;
    return count;
}

static int check_choice(const struct cli_option *option, const char *value, struct error **err)
{
    if (option->choices == NULL)
        return 0;
    scoped(buf_done) struct buf all = {0};
    size_t count = choice_count(option);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(option->choices[i], value) == 0)
            return 0;
        buf_format(&all, "%s'%s'",
                   i == 0           ? ""
                   : i + 1 == count ? " or "
                                    : ", ",
                   option->choices[i]);
    }
    return error_set(err, ERROR_USER, "option '--%s': %s expected, not '%s'", option->long_name,
                     buf_text(&all), value);
}

static int add_to_list(const struct cli_option *option, const char *value, struct option_list *list,
                       struct error **err)
{
    if (list->count == OPTION_LIST_MAX)
        return error_set(err, ERROR_USER, "option '--%s' is given more than %d times",
                         option->long_name, OPTION_LIST_MAX);
    if (list->items == NULL)
        list->items = mem_new(OPTION_LIST_MAX, sizeof(*list->items));
    list->items[list->count++] = value;
    return 0;
}

/* Stores what an option says; value is NULL when it has none. */
static int apply(const struct parser *parser, const struct cli_option *option, const char *value,
                 struct error **err)
{
    void *field = field_of(parser, option);

    ASSERT(value != NULL || !takes_value(option) || option->kind == OPTION_OPTIONAL);
    int r = value == NULL ? 0 : check_choice(option, value, err);

    if (r < 0)
        return r;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_COUNTED:
        (*(unsigned *)field)++;
        return 0;
    case OPTION_OPTIONAL:
        *(const char **)field = value == NULL ? option->when_bare : value;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = value;
        return 0;
    case OPTION_LIST:
        return add_to_list(option, value, field, err);
    case OPTION_NUMBER:
        return set_number(option, value, field, err);
    }
    return error_set(err, ERROR_BUG, "option '--%s' has no kind", option->long_name);
}

static int unknown_long(const struct parser *parser, const char *name, struct error **err)
{
    const char *names[OPTIONS_MAX + COMMON_OPTION_COUNT];
    size_t count = 0;

    ASSERT(parser->command->option_count <= OPTIONS_MAX);
    for (const struct cli_option *option; (option = options_at(parser->command, count)) != NULL;)
        names[count++] = option->long_name;
    const char *nearest = str_nearest(name, names, count);

    if (nearest != NULL)
        return error_set(err, ERROR_USER, "unknown option '--%s', did you mean '--%s'?", name,
                         nearest);
    return error_set(err, ERROR_USER, "unknown option '--%s'", name);
}

static const struct cli_option *find_long(const struct command *command, const char *name)
{
    const struct cli_option *option;

    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++) {
        if (strcmp(option->long_name, name) == 0)
            return option;
    }
    return NULL;
}

static const struct cli_option *find_short(const struct command *command, char name)
{
    const struct cli_option *option;

    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++) {
        if (option->short_name == name)
            return option;
    }
    return NULL;
}

/* The value of an option that stands in the next word. */
static int next_value(struct parser *parser, const struct cli_option *option, const char **ret,
                      struct error **err)
{
    if (parser->next == parser->count)
        return error_set(err, ERROR_USER, "option '--%s' needs a value: %s", option->long_name,
                         option->value);
    *ret = parser->words[parser->next++];
    return 0;
}

/* "--name", "--name=value" or "--name value". */
static int parse_long(struct parser *parser, const char *word, struct error **err)
{
    const char *equals = strchr(word, '=');
    size_t length = equals == NULL ? strlen(word) : (size_t)(equals - word);
    scoped(mem_freep) char *name = str_ndup(word, length);
    const struct cli_option *option = find_long(parser->command, name);
    const char *value = equals == NULL ? NULL : equals + 1;

    if (option == NULL)
        return unknown_long(parser, name, err);
    if (value != NULL && !takes_value(option))
        return error_set(err, ERROR_USER, "option '--%s' takes no value", name);
    if (value == NULL && takes_value(option) && option->kind != OPTION_OPTIONAL) {
        int r = next_value(parser, option, &value, err);

        if (r < 0)
            return r;
    }
    return apply(parser, option, value, err);
}

/* "-a", "-ab", "-j4" or "-j 4". An optional value is given to the long name only. */
static int parse_short(struct parser *parser, const char *letters, struct error **err)
{
    for (; *letters != '\0'; letters++) {
        const struct cli_option *option = find_short(parser->command, *letters);
        const char *value = NULL;

        if (option == NULL)
            return error_set(err, ERROR_USER, "unknown option '-%c'", *letters);
        bool ends_word = takes_value(option) && option->kind != OPTION_OPTIONAL;
        int r = 0;

        if (ends_word && letters[1] != '\0')
            value = letters + 1;
        else if (ends_word)
            r = next_value(parser, option, &value, err);
        if (r == 0)
            r = apply(parser, option, value, err);
        if (r < 0 || ends_word)
            return r;
    }
    return 0;
}

/* What follows "--": a program's command line, or more operands. */
static void parse_rest(struct parser *parser)
{
    struct arguments *arguments = parser->arguments;

    if (parser->command->takes_program) {
        arguments->program = (const char *const *)(parser->words + parser->next);
        arguments->program_count = (size_t)(parser->count - parser->next);
        return;
    }
    while (parser->next < parser->count)
        arguments->operands[arguments->operand_count++] = parser->words[parser->next++];
}

static int parse_words(struct parser *parser, struct error **err)
{
    int r = 0;

    while (r == 0 && parser->next < parser->count) {
        const char *word = parser->words[parser->next++];

        if (strcmp(word, "--") == 0) {
            parse_rest(parser);
            return 0;
        }
        if (str_starts(word, "--"))
            r = parse_long(parser, word + 2, err);
        else if (word[0] == '-' && word[1] != '\0')
            r = parse_short(parser, word + 1, err);
        else
            parser->arguments->operands[parser->arguments->operand_count++] = word;
    }
    return r;
}

static int check_operands(const struct arguments *arguments, struct error **err)
{
    const struct command *command = arguments->command;

    if (arguments->operand_count < command->operands_min)
        return error_set(err, ERROR_USER, "an operand is missing: %s", command->operands);
    if (arguments->operand_count > command->operands_max)
        return error_set(err, ERROR_USER, "one operand too many: '%s'",
                         arguments->operands[command->operands_max]);
    return 0;
}

int options_parse(const struct command *command, int argc, char **argv, struct arguments *ret,
                  struct error **err)
{
    struct parser parser = {
        .command = command,
        .arguments = ret,
        .words = argv,
        .count = argc,
    };

    *ret = (struct arguments){
        .command = command,
        .values = mem_new(1, command->values_size),
        .operands = mem_new((size_t)argc + 1, sizeof(*ret->operands)),
    };
    if (command->defaults != NULL)
        memcpy(ret->values, command->defaults, command->values_size);
    int r = parse_words(&parser, err);

    if (r < 0 || ret->wants_help)
        return r;
    return check_operands(ret, err);
}

void arguments_done(struct arguments *arguments)
{
    const struct command *command = arguments->command;

    for (size_t i = 0; command != NULL && i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];

        if (option->kind == OPTION_LIST) {
            struct option_list *list = (void *)((char *)arguments->values + option->offset);

            free(list->items);
        }
    }
    free(arguments->values);
    free(arguments->operands);
    *arguments = (struct arguments){0};
}
