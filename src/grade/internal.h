#pragma once
/*
 * What the criteria share: verdicts and their details, files of the workspace, texts and patterns
 * in them.
 */

#include "grade/grade.h"
#include "grade/regex.h"

/* --- verdicts -------------------------------------------------------------------------------- */

/* The text of a verdict while it grows: capped below GRADE_DETAILS_BYTES_MAX, the cut is marked. */
#define DETAILS_MARK "\n[cut: details end here]"
#define DETAILS_INIT                                                                               \
    {                                                                                              \
        .max_bytes = GRADE_DETAILS_BYTES_MAX - sizeof(DETAILS_MARK)                                \
    }
/* Appends 'the bytes', after max_bytes the mark and how many there are. */
void details_quote(struct buf *details, const char *bytes, size_t size, size_t max_bytes)
    nonnull(1);

/* Sets score and details; details is empty afterwards. */
void verdict_score(struct verdict *verdict, double score, struct buf *details) nonnull(1, 3);
/* What was seen and what was to be seen, for the figures of a whole dataset. */
void verdict_label(struct verdict *verdict, const char *observed, const char *expected)
    nonnull(1, 2, 3);
/* The criterion could not be evaluated. */
void verdict_error(struct verdict *verdict, struct buf *details) nonnull(1, 2);
/* The same, but for bytes of the agent it could. */
void verdict_agent_error(struct verdict *verdict, struct buf *details) nonnull(1, 2);

/* --- while the agent works (live.c): calls from any source count ------------------------------ */

/* False: a pattern takes too long, or cannot be compiled. */
must_check bool command_executed_calls(const struct criterion *criterion,
                                       const struct event_log *events, size_t *ret)
    nonnull(1, 2, 3);
bool skill_triggered_seen(const struct criterion *criterion, const struct event_log *events)
    nonnull(1, 2);

/* --- configuration --------------------------------------------------------------------------- */

/* Says that the parameter at place (a JSON pointer below the criterion) is wrong. */
void complain(const struct complaints *complaints, const char *place, const char *fmt, ...)
    printf_like(3, 4) nonnull(1, 2);
/* The same with what an error says. */
void complain_of(const struct complaints *complaints, const char *place,
                 const struct error *problem) nonnull(1, 2, 3);
/* The path parameter: a text that stays inside the workspace. */
void config_path(const struct criterion *criterion, const struct complaints *complaints)
    nonnull(1, 2);
/* Compiles the pattern under the key of what stands at place, if any. */
void config_pattern(const json_t *params, const char *place, const char *key, unsigned flags,
                    const struct complaints *complaints) nonnull(2, 3, 5);

/* --- files ----------------------------------------------------------------------------------- */

/* The one file of a criterion. */
struct content {
    struct grade_file file;
    bool readable; /* false: the verdict is set, to 0 */
};
void content_done(struct content *content) nonnull(1);
/* Reads it; details gets the name that a glob led to. */
must_check int content_read(const struct criterion *criterion, const struct grade_input *input,
                            struct content *ret, struct buf *details, struct verdict *verdict,
                            struct error **err) nonnull(1, 2, 3, 4, 5);
/* Why a file is none that can be read: "'x' does not exist". Appended to details. */
void content_explain(const char *path, const struct grade_file *file, struct buf *details)
    nonnull(1, 2, 3);

/* --- checks of one content ------------------------------------------------------------------- */

/* What was asked for and how much of it holds. */
struct tally {
    size_t holding, total;
};
/* 1 when nothing was asked for. */
double tally_ratio(struct tally tally);
/* Mean of the ratios of the tallies in which something was asked for; 1 when there is none. */
double tally_mean(const struct tally *tallies, size_t count) nonnull(1);

/* Each text of the list must (wanted) or must not be in the content; details names those that fail.
 */
struct tally content_texts(const struct buf *content, const json_t *texts, bool wanted,
                           struct buf *details) nonnull(1, 4);

/* One {pattern, must_match, flags} of an author: compiled, searched, explained. */
enum pattern_result { PATTERN_HOLDS, PATTERN_FAILS, PATTERN_LIMIT };
must_check int content_pattern(const json_t *spec, const struct buf *content, struct buf *details,
                               enum pattern_result *ret, struct error **err) nonnull(2, 3, 4);
/* Compiles the one at place only. */
void content_pattern_check(const json_t *spec, const char *place,
                           const struct complaints *complaints) nonnull(2, 3);

/* --- the criteria ---------------------------------------------------------------------------- */

typedef void criterion_check(const struct criterion *criterion,
                             const struct complaints *complaints);
typedef int criterion_evaluate(const struct criterion *criterion, const struct grade_input *input,
                               struct verdict *ret, struct error **err);

criterion_check file_exists_check, file_contains_check, file_matches_regex_check, file_check_check,
    json_check_check, run_command_check, command_executed_check, classification_match_check,
    commands_efficiency_check, skill_triggered_check, cli_called_check, reference_comparison_check,
    exec_check, llm_judge_check;
criterion_evaluate file_exists_evaluate, file_contains_evaluate, file_matches_regex_evaluate,
    file_check_evaluate, json_check_evaluate, run_command_evaluate, command_executed_evaluate,
    classification_match_evaluate, commands_efficiency_evaluate, skill_triggered_evaluate,
    cli_called_evaluate, reference_comparison_evaluate, exec_evaluate, llm_judge_evaluate;
