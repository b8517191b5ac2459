#pragma once
/*
 * lint: what is doubtful in a task, beyond what loading refuses.
 *
 * A rule has an id that stays ("CB003"), and one row in rules.c. Rules look at the tree of a file
 * as written and as merged, and at the folders that it names, so that a file that does not load is
 * looked at as well; what loading says is the rule CB000. Host side, before any trial: sees both
 * halves. Depends on: base, task.
 */

#include "task/task.h"

#define LINT_FINDINGS_MAX 20000

enum lint_severity { LINT_ERROR, LINT_WARNING, LINT_NOTE, LINT_SEVERITY_COUNT };
const char *lint_severity_name(enum lint_severity severity);

/* What is said of a rule; constant. */
struct lint_rule {
    const char *id, *name; /* "CB003", "private-token" */
    enum lint_severity severity;
    const char *what; /* one sentence without a full stop: what is wrong */
    const char *why;  /* one sentence: what comes of it */
    const char *fix;  /* one sentence: what to do */
    bool can_fix;     /* --fix does it, where that is safe */
};
/* Rule number i; NULL: no more. Sorted by id. */
const struct lint_rule *lint_rule_at(size_t i);
const struct lint_rule *lint_rule_find(const char *id) nonnull(1);

/* Bytes start to end of the file become text. */
struct lint_edit {
    size_t start, end;
    char *text;
};

struct lint_finding {
    const struct lint_rule *rule;
    enum lint_severity severity; /* the rule's; CB000: as loading said */
    char *file;
    unsigned line, column; /* from 1; 0: the whole file */
    char *place;           /* "success_criteria[0].pattern"; "" */
    char *message;
    struct lint_edit edit; /* text NULL: no fix by us */
};

struct lint_report {
    struct lint_finding *findings; /* sorted by file, line, column, id; each once */
    size_t count, counts[LINT_SEVERITY_COUNT];
    size_t file_count;    /* task files looked at */
    size_t dropped_count; /* beyond LINT_FINDINGS_MAX */
};

/*
 * Tries a pattern on a subject: 1 when a limit was reached, 0 when not, -code when the pattern
 * cannot compile. What rooms above know of regular expressions, handed in.
 */
typedef int lint_try_pattern(const char *pattern, const json_t *flags, const char *subject,
                             size_t size, struct error **err);

struct lint_options {
    struct task_query query;       /* visit is set here; strict and selection as the caller says */
    lint_try_pattern *try_pattern; /* NULL: patterns are not tried */
    const struct str_list *only;   /* ids; empty or NULL: all */
    const struct str_list *ignore; /* ids */
};

/*
 * Loads and looks at everything of the query. What is wrong with tasks is a finding, never an
 * error: ERROR_USER when there is no task or the command line is wrong, ERROR_LIMIT past a limit.
 */
must_check int lint_run(const struct lint_options *options, struct lint_report *ret,
                        struct error **err) nonnull(1, 2);
void lint_report_done(struct lint_report *report) nonnull(1);

/* "file:line:column: warning CB013: ...", one finding a line with what to do below; quoted. */
void lint_format_text(const struct lint_report *report, bool explain, struct buf *buf)
    nonnull(1, 3);
/* ::error file=,line=:: lines for GitHub Actions. */
void lint_format_github(const struct lint_report *report, struct buf *buf) nonnull(1, 2);
/* {findings: [...], counts: {...}, files: N}; new reference. */
json_t *lint_to_json(const struct lint_report *report) nonnull(1);
/* SARIF 2.1.0; new reference. */
json_t *lint_to_sarif(const struct lint_report *report, const char *version) nonnull(1, 2);
/* The rules as Markdown (what docs/lint.md is made of). */
void lint_format_rules(struct buf *buf) nonnull(1);
