#pragma once
/*
 * schema: the task language as tables. One row a field: its name, type, range, default, merge rule,
 * whether this version has it, and the line that the manual prints.
 *
 * Loading (schema_load.c), the JSON Schema (schema_json.c) and the reference (schema_doc.c) are all
 * made from these rows, so that they cannot disagree. The tables are constant.
 * Depends on: base, node, problems.
 */

#include "task/node.h"

/* What a value may be; several may be allowed. */
enum field_types {
    TYPE_TEXT = 1 << 0,
    TYPE_BOOL = 1 << 1,
    TYPE_INT = 1 << 2,
    TYPE_REAL = 1 << 3,  /* any finite number */
    TYPE_BLOCK = 1 << 4, /* a map with the fields of row.block */
    TYPE_UNION = 1 << 5, /* a map whose "type" chooses one of row.kinds */
    TYPE_MAP = 1 << 6,   /* a map with free keys */
    TYPE_LIST = 1 << 7,  /* of row.items */
    TYPE_ANY = 1 << 8,
};

enum field_flags {
    FIELD_REQUIRED = 1 << 0,
    FIELD_NOT_EMPTY = 1 << 1,    /* a text not blank, a list or map not empty */
    FIELD_RANGE = 1 << 2,        /* min <= value <= max */
    FIELD_ABOVE_MIN = 1 << 3,    /* min < value */
    FIELD_APPEND = 1 << 4,       /* lists of several layers are joined, the task's items first */
    FIELD_OPEN_CHOICES = 1 << 5, /* choices, or a path to a file */
    FIELD_KEEPS_NULL = 1 << 6,   /* null is a value of its own, not the default */
};

enum field_state {
    FIELD_HERE,
    FIELD_LATER,   /* known, not built yet: a task that uses it is an error */
    FIELD_LEGACY,  /* accepted with a warning that says row.hint, and has no effect */
    FIELD_UNUSED,  /* accepted, no effect in this version */
    FIELD_CLI,     /* for agents that are programs on the host: the others remark on it */
    FIELD_REMOVED, /* an error that says row.hint */
};

/* Rules for the text itself, each with a regex for the manual and the JSON Schema. */
enum text_form {
    FORM_ANY,
    FORM_TASK_ID,
    FORM_TAG,
    FORM_INSIDE,   /* a relative path that stays inside: no leading '/', no '..' */
    FORM_ENV,      /* NAME or NAME=value */
    FORM_KEBAB,    /* words of lower-case letters and digits joined by '-' */
    FORM_VERSIONS, /* ">= 1.2, < 2" */
    FORM_COMMIT,   /* a whole SHA-1 or SHA-256 hash in lower case */
    FORM_COUNT,
};
const char *form_regex(enum text_form form);    /* "" for FORM_ANY */
const char *form_expected(enum text_form form); /* "a relative path without '..'" */
bool form_accepts(enum text_form form, const char *text) nonnull(2);

struct block;
struct kinds;

struct field {
    const char *name;
    unsigned types, items; /* enum field_types; items: of a list */
    unsigned flags;        /* enum field_flags */
    enum field_state state;
    enum text_form form;
    const char *const *choices; /* NULL-terminated */
    double min, max;
    const char *standard; /* the default as YAML: a scalar, "[]" or "{}"; NULL: none */
    const char *idle;     /* FIELD_LATER: a value that means what this version does anyway */
    const struct block *block;
    const struct kinds *kinds;
    const char *hint; /* the replacement, or what to know */
    const char *doc;  /* one line for the manual */
};

struct block {
    const char *title;
    const struct field *fields; /* ends with a row without a name */
    bool layered;               /* defaults come as a layer of their own, not while loading */
    bool unknown_is_fine;       /* an unknown key is a warning, not an error */
};

/* One kind of a union: "template_dir", "file_exists" ... */
struct kind {
    const char *name;
    enum field_state state;
    const struct block *block;
    const char *hint;
    const char *doc;
    bool is_prefix; /* any longer name that begins so */
};

struct kinds {
    const char *title; /* "criterion", for complaints */
    const struct field *common;
    const struct kind *kinds; /* ends with a row without a name */
};

extern const struct block packages_block;
extern const struct block task_block;   /* a task file */
extern const struct block set_block;    /* what -D may reach */
extern const struct block config_block; /* closedbook.yaml and config.yaml */
extern const struct block agent_block, sandbox_block, limits_block, run_limits_block;
extern const struct block pre_run_block, post_run_block, leak_ok_block, simulation_block,
    dataset_block, grading_block;
extern const struct block record_cli_block;
extern const struct block requires_block, docker_block, stop_early_block;
extern const struct block experiment_block, experiment_defaults_block, variant_block;
extern const struct kinds mutation_kinds;  /* of an experiment: prompt_mutations */
extern const struct kinds source_kinds;    /* sandbox.template_sources */
extern const struct kinds criterion_kinds; /* success_criteria */
/* Agent types that are not here: a name, and what to say. Ends with a row without a name. */
struct agent_name {
    const char *name;
    enum field_state state;
    const char *hint;
};
extern const struct agent_name agent_names[];
extern const char *const agent_type_choices[];

const struct field *block_field(const struct block *block, const char *name) nonnull(1, 2);
const struct kind *kinds_find(const struct kinds *kinds, const char *name) nonnull(1, 2);

struct loader_context {
    struct arena *arena;
    struct problems *problems;
};

/*
 * Checks node, a map, against the block; every mistake becomes a problem. Returns a new map with
 * what is valid and built, coerced to its type, defaults filled in except in layered blocks. Never
 * NULL: a node that is no map gives a complaint and an empty map.
 */
struct node *schema_load(const struct loader_context *context, const struct block *block,
                         const struct node *node, const struct path *path) nonnull(1, 2, 3);
/* A map of the defaults of a layered block (and of layered blocks in it), marked as given. */
struct node *schema_defaults(struct arena *arena, const struct block *block, struct mark mark)
    nonnull(1, 2);
/* The value that a row's text means. */
struct node *schema_value(struct arena *arena, const char *text, struct mark mark) nonnull(1, 2);
/* "one of 'a', 'b'", "a number from 1 to 5" ...: what a row expects; in the arena. */
const char *schema_expected(struct arena *arena, const struct field *field) nonnull(1, 2);
