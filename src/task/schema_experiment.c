/* The tables of an experiment file: what all its variants share, and what each sets. */
#include "task/schema.h"

static const struct field affix_fields[] = {
    {.name = "content", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "what is added"},
    {.name = "separator",
     .types = TYPE_TEXT,
     .doc = "what stands between it and the prompt; an empty line unless given"},
    {0},
};
static const struct block affix_block = {.title = "a prefix or suffix", .fields = affix_fields};

static const struct field replace_fields[] = {
    {.name = "pattern",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "the text to replace, wherever it stands"},
    {.name = "replacement",
     .types = TYPE_TEXT,
     .doc = "what takes its place; nothing unless given"},
    {.name = "regex",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "whether the pattern is a regular expression; the replacement may then use \\1 and "
            "\\g<name>"},
    {0},
};
static const struct block replace_block = {.title = "a replacement", .fields = replace_fields};

static const struct field template_fields[] = {
    {.name = "variables",
     .types = TYPE_MAP,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "name to text: each {name} of the prompt becomes the text; other braces stay"},
    {0},
};
static const struct block template_block = {.title = "a template", .fields = template_fields};

static const struct field mutation_common[] = {
    {.name = "type", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "which kind"},
    {0},
};
static const struct kind mutation_rows[] = {
    {.name = "prefix", .block = &affix_block, .doc = "a text before the prompt"},
    {.name = "suffix", .block = &affix_block, .doc = "a text after the prompt"},
    {.name = "replace", .block = &replace_block, .doc = "one text for another"},
    {.name = "template", .block = &template_block, .doc = "names in braces become texts"},
    {0},
};
const struct kinds mutation_kinds = {
    .title = "prompt mutation", .common = mutation_common, .kinds = mutation_rows};

#define REPEATS_FIELD                                                                              \
    {                                                                                              \
        .name = "repeats", .types = TYPE_INT, .flags = FIELD_RANGE, .min = 1, .max = 65535,        \
        .doc = "trials of each task; --repeats wins"                                               \
    }
#define MUTATIONS_FIELD                                                                            \
    {                                                                                              \
        .name = "prompt_mutations", .types = TYPE_LIST, .items = TYPE_UNION,                       \
        .kinds = &mutation_kinds,                                                                  \
        .doc = "changes of every prompt, in order; those of the defaults come first"               \
    }
#define SHARED_FIELDS                                                                              \
    {.name = "agent", .types = TYPE_BLOCK, .block = &agent_block, .doc = "as in a task"},          \
        {.name = "run_limits",                                                                     \
         .types = TYPE_BLOCK,                                                                      \
         .block = &run_limits_block,                                                               \
         .doc = "as in a task"},                                                                   \
        {.name = "template_sources",                                                               \
         .types = TYPE_LIST,                                                                       \
         .items = TYPE_UNION,                                                                      \
         .kinds = &source_kinds,                                                                   \
         .doc = "after those of the task, which come first; relative to the experiment file"},     \
        {.name = "driver",                                                                         \
         .types = TYPE_TEXT,                                                                       \
         .flags = FIELD_NOT_EMPTY,                                                                 \
         .doc = "as sandbox.driver; the driver of closedbook.yaml wins over it"},                  \
        {.name = "simulation",                                                                     \
         .types = TYPE_BLOCK,                                                                      \
         .block = &simulation_block,                                                               \
         .doc = "as in a task"},                                                                   \
        {.name = "checker_context",                                                                \
         .types = TYPE_MAP,                                                                        \
         .state = FIELD_UNUSED,                                                                    \
         .doc = "settings for judges, by name space"},                                             \
        REPEATS_FIELD, MUTATIONS_FIELD

static const struct field defaults_fields[] = {
    SHARED_FIELDS,
    {.name = "sandbox", .types = TYPE_BLOCK, .block = &sandbox_block, .doc = "as in a task"},
    {.name = "pre_run",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &pre_run_block,
     .doc = "before the task's own"},
    {.name = "post_run",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &post_run_block,
     .doc = "after the task's own"},
    {0},
};
const struct block experiment_defaults_block = {.title = "defaults", .fields = defaults_fields};

static const struct field variant_fields[] = {
    {.name = "variant_id",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_TASK_ID,
     .doc = "the name of the variant, unique in the experiment"},
    {.name = "description", .types = TYPE_TEXT, .doc = "one line for people"},
    SHARED_FIELDS,
    {.name = "initial_prompt",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "takes the place of the task's prompt; at most one of this, initial_prompt_file and "
            "prompt_mutations"},
    {.name = "initial_prompt_file",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the same from a file, relative to the experiment file"},
    {0},
};
const struct block variant_block = {.title = "variant", .fields = variant_fields};

static const struct field experiment_fields[] = {
    {.name = "experiment_id",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_KEBAB,
     .doc = "the name of the experiment"},
    {.name = "description", .types = TYPE_TEXT, .doc = "one line for people"},
    {.name = "defaults",
     .types = TYPE_BLOCK,
     .block = &experiment_defaults_block,
     .doc = "what all variants share; a task's own values win over it"},
    {.name = "variants",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &variant_block,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "each task is run once for each; a variant's values win over a task's"},
    {0},
};
const struct block experiment_block = {.title = "experiment", .fields = experiment_fields};
