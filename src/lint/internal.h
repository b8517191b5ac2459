#pragma once
/*
 * internal: what the rules share.
 */

#include "base/fs.h"
#include "base/mem.h"
#include "lint/lint.h"
#include "task/node.h"
#include "task/problems.h"
#include "task/tokens.h"

/* What a folder that agents may see holds; found once, however many tasks name it. */
struct folder {
    char *path;                   /* absolute */
    struct str_list tasks;        /* YAML files in it with a task_id, absolute */
    struct str_list plugin_tasks; /* those of them that a plugin's projection takes */
};

struct first_id {
    char *id, *file;
    unsigned line;
};

/* What was found out about a pattern; the same one stands in many tasks. */
struct pattern_known {
    uint64_t hash; /* of pattern and flags */
    char *key;     /* both */
    char *mistake; /* NULL: it compiles */
    bool is_tried; /* for what it costs */
    char costly;   /* the character that it gives up on; 0: none */
};

struct lint {
    const struct lint_options *options;
    struct lint_report *report;
    struct folder **folders;
    size_t folder_count;
    struct first_id *ids; /* in the order of the files */
    size_t id_count;
    struct pattern_known *patterns;
    size_t pattern_count;
};

/* One task file, and the rule that looks at it. */
struct target {
    struct lint *lint;
    const struct lint_rule *rule;
    const struct origin *origin;
    const struct node *file;   /* as written, never NULL */
    const struct node *merged; /* with all layers, else file */
    char *prompt;              /* what the agent reads; NULL: none */
    struct mark prompt_mark;
    const char *prompt_field; /* "initial_prompt" or "initial_prompt_file" */
};

struct rule {
    struct lint_rule shown;
    void (*check)(struct target *target); /* NULL: loading does it */
};
extern const struct rule lint_rules[]; /* ends with a row without an id */

/* A finding of the target's rule at a place of its files. place is "a.b[0]". */
void found(struct target *target, struct mark mark, const char *place, const char *fmt, ...)
    printf_like(4, 5) nonnull(1, 3, 4);
/* The same with a fix: the scalar becomes this text (as YAML). */
void found_fixable(struct target *target, const struct node *scalar, const char *place,
                   const char *text, const char *message) nonnull(1, 2, 3, 4, 5);

/* Criteria as written, one after the other; *position starts at 0. */
struct criterion_seen {
    const struct node *node;
    const char *type; /* "" when it says none */
    char place[48];   /* "success_criteria[3]" */
};
bool next_criterion(const struct target *target, size_t *position, struct criterion_seen *ret)
    nonnull(1, 2, 3);
bool is_judge(const char *type) nonnull(1);

/* A value with all layers, else as written: what this version cannot use is in no layer. */
const struct node *setting(const struct target *target, const char *path) nonnull(1, 2);

/* files.c: through the task's reader. */

/* At most max_bytes of a regular file; false: it cannot be had. */
must_check bool read_file(const struct target *target, const char *path, size_t max_bytes,
                          struct buf *ret) nonnull(1, 2, 4);
/* Calls visit with the absolute path of each regular file below a folder, sorted by nothing. False
 * from visit ends it. Links are not followed, version control is passed over. */
#define FILES_MAX 20000
#define FILES_DEPTH_MAX 24
typedef bool visit_file(void *context, const char *path);
void each_file(const struct target *target, const char *dir, visit_file *visit, void *context)
    nonnull(1, 2, 3);
/* The names in a folder; false: it is none. */
must_check bool list_folder(const struct target *target, const char *dir, struct str_list *ret)
    nonnull(1, 2, 3);
/* A path of the YAML: absolute and normal, variables filled in. NULL: a variable is not set. */
char *yaml_path(const struct target *target, const struct node *node) nonnull(1, 2);
/* path is below folder, or that folder. */
bool is_below(const char *path, const char *folder) nonnull(1, 2);
/* The reference: a folder or a file, absolute. NULL: none. *ret_node: what names it. */
char *reference_path(const struct target *target, const struct node **ret_node) nonnull(1, 2);
/* Folders whose content goes into the workspace, one after the other: template_dir, input_dir. */
struct staged {
    const struct node *node;
    char *path; /* absolute, owned */
    char place[64];
};
bool next_staged(const struct target *target, size_t *position, struct staged *ret)
    nonnull(1, 2, 3);
const struct folder *folder_of(const struct target *target, const char *path) nonnull(1, 2);
void folder_free(struct folder *folder);

/* rules_*.c: one function a rule. */
void check_task_material(struct target *target) nonnull(1);
void check_reference_staged(struct target *target) nonnull(1);
void check_private_token(struct target *target) nonnull(1);
void check_history(struct target *target) nonnull(1);
void check_reference_words(struct target *target) nonnull(1);
void check_expected_literal(struct target *target) nonnull(1);
void check_label(struct target *target) nonnull(1);
void check_absolute_path(struct target *target) nonnull(1);
void check_pattern_compiles(struct target *target) nonnull(1);
void check_pattern_cost(struct target *target) nonnull(1);
void check_threshold(struct target *target) nonnull(1);
void check_weights(struct target *target) nonnull(1);
void check_timeouts(struct target *target) nonnull(1);
void check_in_process(struct target *target) nonnull(1);
void check_network(struct target *target) nonnull(1);
void check_host_path(struct target *target) nonnull(1);
void check_unconditional(struct target *target) nonnull(1);
void check_rubric(struct target *target) nonnull(1);
void check_stop_early(struct target *target) nonnull(1);
void check_duplicate_id(struct target *target) nonnull(1);
void check_variables(struct target *target) nonnull(1);
void check_skills(struct target *target) nonnull(1);
void check_old_booleans(struct target *target) nonnull(1);
