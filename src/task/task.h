#pragma once
/*
 * task: one problem for an agent, read from a task.yaml, checked, merged and split in two halves.
 *
 * A task is immutable once loaded; everything it points to lives as long as the task does. Loading
 * collects every mistake of every file (struct problems) instead of stopping at the first.
 * Files are read through a struct task_reader, so that a process without privilege can load what an
 * opener hands it. Depends on: base. Limits: below.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#define TASK_BYTES_MAX ((size_t)1 << 20)
#define TASK_DEPTH_MAX 32
#define TASK_NODES_MAX 200000   /* after alias expansion */
#define TASK_PROBLEMS_MAX 10000 /* warnings and notes at most half, so that errors are heard */
#define TASKS_MAX 100000

enum problem_level { PROBLEM_ERROR, PROBLEM_WARNING, PROBLEM_NOTE };

/* One mistake: "file:line:column: path: message" plus the source line for the caret. */
struct problem {
    enum problem_level level;
    bool later; /* an error only because this version does not have it yet */
    char *file;
    unsigned line, column; /* from 1; 0: the whole file */
    char *path;            /* "sandbox.driver", "" at the top */
    char *message;         /* what was found, what was expected, what to do */
    char *source_line;     /* NULL when there is none; a long line is cut around the place */
    unsigned caret;        /* characters of source_line before the place */
};

/* At most TASK_PROBLEMS_MAX items; the counts go on. */
struct problems {
    struct problem *items;
    size_t count, error_count, dropped_count;
    size_t later_count; /* of the errors */
};

void problems_done(struct problems *problems) nonnull(1);
/*
 * Identical messages grouped (message, count, first three places) unless all is true; each with its
 * source line and a caret; quoted for a terminal. github adds `::error file=,line=::` lines.
 */
void problems_format(const struct problems *problems, bool all, bool github, struct buf *buf)
    nonnull(1, 4);
json_t *problems_to_json(const struct problems *problems) nonnull(1);

/* Opens path for reading (a file or a directory) and returns a descriptor or -errno. */
typedef int task_open(void *context, const char *path, int flags);
struct task_reader {
    task_open *open;
    void *context;
};

struct task_selection {
    const struct str_list *only;         /* --only ID */
    const struct str_list *tags;         /* each item "a,b": any of; items: all of */
    const struct str_list *exclude_tags; /* the same, excluded */
    const struct str_list *variants;     /* --variant ID; of the experiment's */
    bool include_skipped;
    bool
        skip_later; /* a task with no error but what a later version has: skipped with the reason */
    /* Of datasets: rows in all, rows of each stratum (0: all), and the seed that draws them; given:
     * it wins over a task's own. */
    uint64_t sample, sample_per_stratum, seed;
    bool seed_given;
};

/*
 * A criterion's own rules, which the schema tables do not know: patterns compile, expressions
 * parse. Calls complain for each mistake. The types are those of task_private.h.
 */
struct criterion;
struct criterion_mistake;
typedef void task_complain(void *context, const struct criterion_mistake *mistake);
typedef void task_check_criterion(const struct criterion *criterion, task_complain *complain,
                                  void *context);

/* Every match of a regular expression by a replacement; *ret is the caller's. ERROR_TASK,
 * ERROR_LIMIT. */
typedef int task_replace(const char *pattern, const char *text, const char *replacement, char **ret,
                         struct error **err);

/* What flags and configuration say on top of the files; strings are borrowed. */
struct task_overrides {
    const char *agent; /* "-T TYPE[:ARG]" */
    const char *model;
    const char *simulator_model; /* "--simulator-model": of all simulated users; NULL */
    const char *judge_model;     /* "--judge-model": of all judges; NULL */
    const char *driver;          /* "--driver" */
    const char *experiment;      /* "-e NAME|PATH"; NULL: the suite's own */
    const struct str_list *sets; /* -D path=value */
    const char *suite_root;      /* --suite-root, NULL: found */
    const char *user_config;     /* the user's config.yaml, NULL: none; may be absent */
    /* "NAME=value" as in environ, for $VAR, ~, agent.env and suite variables; NULL: empty */
    char *const *environment;
    task_check_criterion *check_criterion; /* NULL: none */
    task_replace *replace;                 /* for prompt_mutations with regex; NULL: none */
    const char *version; /* of this program, for requires.closedbook; NULL: not compared */
    bool strict;         /* what is only remarked on as legacy is an error */
    bool agent_optional; /* a task without any agent loads as AGENT_UNSET (`cell`, `grade`, `plan`)
                          */
    bool model_optional; /* nothing asks it: an agent that needs a model loads without */
};

struct task_public;
struct task_private;
struct task; /* opaque: both halves, lineage, source text digest */

struct task_set {
    struct task **tasks; /* sorted by task_id, then by variant in the experiment's order */
    size_t count;
    size_t skipped_count; /* of tasks */
};

/* A task file as it was read, for who looks at more than what loads. Borrowed during the call. */
struct origin; /* problems.h */
struct node;   /* node.h */
struct task_seen {
    const struct origin *origin;
    const struct node *file;   /* as written; NULL: it cannot be read as YAML */
    const struct node *merged; /* with all layers, of its first row and variant; NULL: none */
};
typedef void task_visit(void *context, const struct task_seen *seen);

/* Which tasks to load and how. Borrowed. */
struct task_query {
    const struct str_list *paths; /* files and directories */
    const struct task_reader *reader;
    const struct task_overrides *overrides;
    const struct task_selection *selection;
    size_t max_tasks;  /* those of rows and variants counted; 0: TASKS_MAX */
    task_visit *visit; /* called for each task file that is selected, broken ones too; NULL: none */
    void *visit_context;
};

/*
 * Loads every task below the query's files and directories (a directory: each *.yaml or *.yml in
 * it, at any depth, that has a task_id). Problems go to *problems. Returns 0 when nothing was an
 * error; then *ret is the caller's. ERROR_TASK or ERROR_USER with a summary when there was any
 * error: *ret stays untouched.
 */
must_check int tasks_load(const struct task_query *query, struct task_set *ret,
                          struct problems *problems, struct error **err) nonnull(1, 2, 3);
/* How many different ids: the tasks, whatever their variants. */
size_t task_set_ids(const struct task_set *set) nonnull(1);
void task_set_done(struct task_set *set) nonnull(1);

/* A task file's bytes; name is what problems call it. */
struct task_text {
    const char *name;
    const char *bytes; /* need no NUL at the end */
    size_t size_bytes;
};
/* One task from text, for tests, fuzzing and `cell`. overrides NULL: none. A skip is not looked at.
 */
must_check int task_parse(const struct task_text *text, const struct task_reader *reader,
                          const struct task_overrides *overrides, struct task **ret,
                          struct problems *problems, struct error **err) nonnull(1, 2, 4, 5, 6);
void task_free(struct task *task);
void task_freep(struct task **task);

/* The two halves. task_split() is the only function that sees both; the task owns them. */
void task_split(const struct task *task, const struct task_public **ret_public,
                const struct task_private **ret_private) nonnull(1, 2, 3);

const char *task_id(const struct task *task) nonnull(1);
/* The variant of the experiment, "default" without one. */
const char *task_variant(const struct task *task) nonnull(1);
/* Names the task among those of a set: its id, in an experiment "VARIANT/ID". */
const char *task_key(const struct task *task) nonnull(1);
/* How many trials its experiment wants; 0: it does not say. */
uint64_t task_repeats(const struct task *task) nonnull(1);
/* NULL: not skipped. */
const char *task_skip_reason(const struct task *task) nonnull(1);
/*
 * Digest text ("sha256:...") over the resolved task: what --resume compares. Three of them, so that
 * the difference can be named: the public half, the graders (criteria, reference paths), the
 * configuration. Contents of folders are not in them: staging makes those digests. "" for a skipped
 * task.
 */
enum task_digest { TASK_DIGEST_PUBLIC, TASK_DIGEST_GRADERS, TASK_DIGEST_CONFIG };
const char *task_digest(const struct task *task, enum task_digest which) nonnull(1);
/* {"sandbox.driver": {"value":..., "source":"task", "file":..., "line":...}}; new reference. */
json_t *task_lineage(const struct task *task) nonnull(1);
/* The merged task as `plan --resolved` prints it; new reference. */
json_t *task_resolved(const struct task *task) nonnull(1);

/* Whether "run_limits.max_turns" or "success_criteria[0]" names a field of the tables. */
bool task_field_exists(const char *path) nonnull(1);

/* JSON Schema of the task language, made from the tables; new reference. */
json_t *task_schema_json(void);
/* The field reference in Markdown (docs/formats/task.md) or mdoc, made from the tables. */
void task_schema_markdown(struct buf *buf) nonnull(1);

/* Configuration: closedbook.yaml of the suite root and the user's config.yaml, with where each
 * value came from. */
struct config; /* opaque */
must_check int config_load(const char *suite_root, const char *user_config,
                           const struct task_reader *reader, struct config **ret,
                           struct problems *problems, struct error **err) nonnull(3, 4, 5);
/* [{"path":..., "value":..., "source":..., "file":..., "line":...}]; new reference. */
json_t *config_to_json(const struct config *config) nonnull(1);
/* The model endpoints of the user's config.yaml, a list; NULL: none are named. Borrowed. */
const json_t *config_routes(const struct config *config) nonnull(1);
void config_freep(struct config **config);
