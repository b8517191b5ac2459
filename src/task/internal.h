#pragma once
/*
 * internal: what the files of task/ share and nobody else sees.
 */

#include "base/fs.h"
#include "base/mem.h"
#include "task/merge.h"
#include "task/schema.h"
#include "task/task.h"
#include "task/task_private.h"
#include "task/task_public.h"
#include "task/tokens.h"
#include "task/yaml.h"

#define TASK_DIGEST_COUNT 3
#define TASK_SCRIPT_BYTES_MAX ((size_t)64 << 20)

struct task {
    struct task_public *public_half;
    struct task_private *private_half;
    char *digests[TASK_DIGEST_COUNT]; /* enum task_digest */
    char *variant_id, *key;           /* as task_variant(), task_key() */
    uint64_t repeats;                 /* 0: not set */
    json_t *lineage, *resolved;
};
struct task *task_new(void) malloc_like;

/* --- source.c: reading through the reader ----------------------------------------------------- */

/*
 * The bytes of a regular file, at most max_bytes. Returns 0, or -1 with what is wrong as an owned
 * text ("cannot be opened: Permission denied") in *ret_wrong; -ENOENT (and no text) when it is
 * absent.
 */
must_check int source_read(const struct task_reader *reader, const char *path, size_t max_bytes,
                           struct buf *ret, char **ret_wrong) nonnull(1, 2, 4, 5);
/* NULL: a folder that can be listed. Else what is wrong, owned. *ret_empty: nothing in it. */
char *source_check_dir(const struct task_reader *reader, const char *path, bool *ret_empty)
    nonnull(1, 2, 3);
/* NULL: a regular file that can be read. Else what is wrong, owned. */
char *source_check_file(const struct task_reader *reader, const char *path) nonnull(1, 2);
/* The same of a file that must be executable. */
char *source_check_program(const struct task_reader *reader, const char *path) nonnull(1, 2);
/* Something of that name can be opened. */
bool source_exists(const struct task_reader *reader, const char *path) nonnull(1, 2);
/* The value of a variable; NULL when unset. environment may be NULL. */
const char *environment_get(char *const *environment, const char *name) nonnull(2);

/* --- loader.c: what many tasks share ------------------------------------------------------------
 */

struct experiment; /* experiment.h */
struct variant;
struct dataset; /* dataset.h */
struct dataset_row;
struct suite {
    char *root;
    struct config *config;
    struct experiment *experiment; /* NULL: none; the loader's */
    bool experiment_broken;        /* there is one, and it cannot be used */
};

struct loader {
    const struct task_reader *reader;
    const struct task_overrides *overrides;
    const struct task_selection *selection; /* NULL: everything, skipped tasks too */
    char *cwd;                              /* absolute */
    struct arena arena;
    struct node *defaults, *flags; /* layers */
    struct suite *suites;
    size_t suite_count;
    struct str_list dirs, dir_roots; /* folders looked at, and their roots */
    struct str_list names;           /* of experiments: "NAME" or "NAME\nFOLDER" */
    struct experiment **experiments; /* of these names; NULL: cannot be used */
    char *script;                    /* of an agent, the last one seen to be there; or NULL */
    task_visit *visit;               /* as in struct task_query */
    void *visit_context;
    size_t task_count, task_max; /* made so far, of rows and variants, too; how many may be */
};

/* Reads flags and -D; mistakes become problems. */
void loader_init(struct loader *loader, const struct task_reader *reader,
                 const struct task_overrides *overrides, struct problems *problems)
    nonnull(1, 2, 4);
void loader_done(struct loader *loader) nonnull(1);
/* The suite of the task file in dir (absolute), its configuration read once. */
const struct suite *loader_suite(struct loader *loader, const char *dir, struct problems *problems)
    nonnull(1, 2, 3);

/* flags.c: -T, -m, --driver and -D as a layer. */
struct node *flags_layer(struct arena *arena, const struct task_overrides *overrides,
                         const char *cwd, struct problems *problems) nonnull(1, 2, 3, 4);
/* words.c: splits as a shell would: blanks, '...', "...", \x. False: a quote is not closed. */
must_check bool words_split(const char *text, struct str_list *ret) nonnull(1, 2);

/* config.c: the two files as layers, lower first; NULL: absent. */
const struct node *config_user_layer(const struct config *config) nonnull(1);
const struct node *config_suite_layer(const struct config *config) nonnull(1);
/* The suite's default experiment, NULL when there is none. */
const char *config_experiment(const struct config *config) nonnull(1);
/* The model of judges, NULL when none is named. */
const char *config_judge(const struct config *config) nonnull(1);
/* Puts {block: {key: value}} over the layer, checked by the table of that block; value may be NULL.
 */
struct node *layer_alias(const struct loader_context *schema, struct node *layer, const char *block,
                         const char *key, struct node *value) nonnull(1, 3, 4);

/* requires.c: why this version or host cannot run a task that asks for this; owned, NULL: it can.
 * requires and version may be NULL. */
char *requires_unmet(const struct node *requires, const char *version);

/* --- load.c: one task ---------------------------------------------------------------------------
 */

/* One task being made. Everything borrowed but task. */
struct build {
    struct loader *loader;
    const struct suite *suite;
    const struct origin *origin; /* the task file */
    struct loader_context schema;
    const struct node *raw;                 /* as read */
    struct node *file;                      /* the task as its file says, checked */
    struct node *root;                      /* the layers merged */
    const struct node *first_root;          /* of the first row and variant; NULL: none yet */
    const struct dataset_row *row;          /* NULL: no dataset */
    const struct dataset *dataset;          /* of the row */
    const struct variant *variant;          /* NULL: no experiment */
    const struct node *prompt;              /* the field that gave the prompt; NULL: none did */
    const char *prompt_name, *plain_prompt; /* that field, and its text before mutations */
    struct task *task;
};

enum load_outcome {
    LOAD_NO_TASK,    /* a map without a task_id: nothing was complained about, *ret untouched */
    LOAD_BROKEN,     /* no task could be made; there are errors; *ret untouched */
    LOAD_UNSELECTED, /* its identity only */
    LOAD_SKIPPED,    /* its identity only */
    LOAD_TASK,       /* a task, whole when there was no error */
};
/* Tasks of one file: one for each row and variant. Owned. */
struct task_list {
    struct task **items; /* the first stands for the file: its identity only; then its tasks */
    size_t count;
};
void task_list_done(struct task_list *list) nonnull(1);
/* Loads origin->text; *ret is the caller's. *ret_line: where its task_id stands. */
enum load_outcome load_tasks(struct loader *loader, const struct origin *origin,
                             struct task_list *ret, unsigned *ret_line, struct problems *problems)
    nonnull(1, 2, 3, 4, 5);
/* select.c: whether --only and the tags take a task; selection may be NULL. */
bool selection_matches(const struct task_selection *selection, const struct task_private *half)
    nonnull(2);
/* Errors for each --variant that no experiment has. */
void selection_check_variants(const struct loader *loader, struct problems *problems) nonnull(1, 2);
/* Errors for each --only that none of the ids is, with the nearest. */
void selection_check(const struct task_selection *selection, const struct str_list *ids,
                     struct problems *problems) nonnull(1, 2, 3);
/* walk.c: the files below the paths, sorted, each once. named[i]: given itself, not found. */
struct file_list {
    char **paths;
    bool *named;
    size_t count;
};
void walk_paths(const struct task_reader *reader, const struct str_list *paths,
                struct file_list *ret, struct problems *problems) nonnull(1, 2, 3, 4);
void file_list_done(struct file_list *list) nonnull(1);

/* Adds a problem at a place, the field's path written out ("" for none). */
void build_error(const struct build *build, struct mark mark, const char *path, const char *fmt,
                 ...) printf_like(4, 5) nonnull(1, 3, 4);
/* The same, of what this version does not have yet. */
void build_later(const struct build *build, struct mark mark, const char *path, const char *fmt,
                 ...) printf_like(4, 5) nonnull(1, 3, 4);
void build_warning(const struct build *build, struct mark mark, const char *path, const char *fmt,
                   ...) printf_like(4, 5) nonnull(1, 3, 4);
void build_note(const struct build *build, struct mark mark, const char *path, const char *fmt, ...)
    printf_like(4, 5) nonnull(1, 3, 4);
/* The file gave a value there, valid or not: what is wrong with it has been said. */
/* After its type and model: what an agent program on the host is told. */
void build_agent_cli(const struct build *build, const struct node *block) nonnull(1, 2);
bool build_is_given(const struct build *build, const char *path) nonnull(1, 2);
/* A text node's path: expanded ($VAR, ~), absolute by the folder of its file; owned. NULL:
 * complained. */
char *build_path(const struct build *build, const struct node *node, const char *path, bool expand)
    nonnull(1, 2, 3);

/* block: "sandbox" or "grading". */
void build_root(const struct build *build, const char *block, struct task_root *root)
    nonnull(1, 2, 3);
void task_root_done(struct task_root *root) nonnull(1);
/* key: "python" or "node". The agent's are read before the graders'. */
void build_env(const struct build *build, const char *block, const char *key, struct task_env *env)
    nonnull(1, 2, 3, 4);
void task_env_done(struct task_env *env) nonnull(1);
/* digest.c: 64 hex digits, owned. */
char *digest_text(const void *bytes, size_t size);
/* The program that an exec:PATH criterion names, among the private files. */
void build_exec(const struct build *build, struct criterion *criterion, const struct node *type,
                size_t index) nonnull(1, 2, 3);
/* criterion.c: what overrides->check_criterion finds, at its place in the file. */
void build_check_criterion(const struct build *build, const struct criterion *criterion,
                           const struct node *item, size_t index) nonnull(1, 2, 3);
/* The same of what else has the parameters of one, at path. */
void build_check_parameters(const struct build *build, const struct criterion *criterion,
                            const struct node *item, const char *path) nonnull(1, 2, 3, 4);
/* The place of a byte of a scalar's text: in it when it is written on one line and ours to follow,
 * else where the scalar starts. */
struct mark mark_inside(const struct node *node, size_t offset) nonnull(1);

void build_public(struct build *build) nonnull(1);
struct task_source *build_add_source(struct task_public *half, enum task_source_kind kind)
    nonnull(1);
/* The index-th of the template sources, of type repo. */
void build_repo(const struct build *build, const struct node *source, size_t index) nonnull(1, 2);
void build_prompt(struct build *build) nonnull(1);
void build_private(struct build *build) nonnull(1);
void build_agent(struct build *build) nonnull(1);
void build_steps(struct build *build) nonnull(1);
/* After the agent's type. */
void build_simulation(const struct build *build) nonnull(1);
void task_simulation_free(struct task_simulation *simulation);
/* simulation.enabled is true, wherever it is said. */
bool build_is_dialog(const struct build *build) nonnull(1);
/* stop_early of one criterion, and of all with their limits. After the simulation. */
void build_stop_early(const struct build *build, struct criterion *criterion,
                      const struct node *item, size_t index) nonnull(1, 2, 3);
void build_stop_limits(const struct build *build) nonnull(1);
/* After both halves. */
void build_mocks(struct build *build) nonnull(1);
/* After the private half, whose reference no plugin may lie in. */
void build_plugins(const struct build *build) nonnull(1);
void task_plugins_done(struct task_agent *agent) nonnull(1);
/* What the agent would read: no token or variable of the private half in it. */
void build_check_text(const struct build *build, struct mark mark, const char *path,
                      const char *text) nonnull(1, 3, 4);
/* What involves several fields; after both halves are made. */
void build_check(struct build *build) nonnull(1);
void build_digests(struct build *build) nonnull(1);

/* Text equal to word, bounded by what is no letter, digit or '_'. */
bool text_has_word(const char *text, const char *word) nonnull(1, 2);
/* The variable's value is the suite root or a path in it, and it is not one that every cell sets.
 */
bool is_suite_variable(const char *suite_root, const char *name, const char *value)
    nonnull(1, 2, 3);
/* path is root or below it; both absolute and normal. */
bool path_is_below(const char *path, const char *root) nonnull(1, 2);
