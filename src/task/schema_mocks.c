/* The tables of sandbox.record_cli. */
#include "task/schema.h"

#define TEXTS(field_name, text)                                                                    \
    {                                                                                              \
        .name = (field_name), .types = TYPE_LIST, .items = TYPE_TEXT, .doc = (text)                \
    }
#define ANSWER(code)                                                                               \
    {.name = "exit_code",                                                                          \
     .types = TYPE_INT,                                                                            \
     .flags = FIELD_RANGE,                                                                         \
     .min = 0,                                                                                     \
     .max = 255,                                                                                   \
     .standard = (code),                                                                           \
     .doc = "its exit status"},                                                                    \
        {.name = "stdout", .types = TYPE_TEXT, .doc = "what it prints"},                           \
        {.name = "stderr", .types = TYPE_TEXT, .doc = "what it says on standard error"},           \
    {                                                                                              \
        .name = "passthrough", .types = TYPE_BOOL, .standard = "false",                            \
        .doc = "the real program runs instead, in the agent's cell, with its standard streams"     \
    }

static const struct field when_fields[] = {
    {.name = "verb",
     .types = TYPE_TEXT,
     .doc = "the words that the arguments begin with, flags left aside; or verb_any_of"},
    TEXTS("verb_any_of", "several, of which one; or verb"),
    TEXTS("positional", "the arguments after the verb, in their places"),
    {.name = "flags", .types = TYPE_MAP, .doc = "as of cli_called, without matches_regex"},
    TEXTS("value_flags", "further flags whose value is the next argument"),
    TEXTS("ignore_flags", "flags that are left aside, with their values; default: output"),
    {0},
};
static const struct block when_block = {.title = "when", .fields = when_fields};

static const struct field response_fields[] = {
    {.name = "when",
     .types = TYPE_BLOCK,
     .block = &when_block,
     .doc = "which calls it answers; default: every one"},
    ANSWER("0"),
    {0},
};
static const struct block response_block = {.title = "response", .fields = response_fields};

static const struct field record_cli_fields[] = {
    {.name = "tool",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "the program's name; none of python, python3, env, sh, bash, node, git, uv, cmd"},
    ANSWER("1"),
    {.name = "responses",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &response_block,
     .standard = "[]",
     .doc = "what it answers to some calls; the first that fits counts, and nothing is remembered "
            "from one call to the next"},
    {0},
};
const struct block record_cli_block = {.title = "recorded program", .fields = record_cli_fields};
