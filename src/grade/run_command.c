#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/value.h"
#include "task/tokens.h"

#define SHOWN_BYTES_MAX 4000
#define EXPECTED_BYTES_MAX 400

/* --- configuration --------------------------------------------------------------------------- */

static void check_stdout(const json_t *params, const struct complaints *complaints)
{
    const json_t *expected = json_object_get(params, "expected_stdout");
    const char *match = json_get_text(params, "stdout_match");

    if (expected == NULL || json_is_null(expected))
        return;
    if (!json_is_string(expected))
        complain(complaints, "/expected_stdout", "expected a text");
    else if (json_get_bool(params, "score_from_stdout", false))
        complain(complaints, "/expected_stdout",
                 "has no meaning beside score_from_stdout, leave one out");
    else if (str_equal(match, "regex"))
        config_pattern(params, "", "expected_stdout", 0, complaints);
    else if (match != NULL && !str_equal(match, "exact") && !str_equal(match, "contains"))
        complain(complaints, "/stdout_match", "'%s' is unknown, expected exact, contains or regex",
                 match);
}

/* What a candidate has not got, and would take for an empty text. */
static void check_candidate(const json_t *params, const char *command,
                            const struct complaints *complaints)
{
    static const char *const names[] = {"TASK_DIR", "REFERENCE_DIR", "CLOSEDBOOK_TRIAL"};
    size_t position = 0, start, length;

    if (!str_equal(json_get_text(params, "as"), "candidate") || command == NULL)
        return;
    while (variable_next(command, &position, &start, &length)) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            if (length == strlen(names[i]) && memcmp(command + start, names[i], length) == 0)
                complain(complaints, "/command",
                         "a candidate has no $%s: leave 'as' out and start the agent's program "
                         "with as-candidate",
                         names[i]);
        }
    }
}

void run_command_check(const struct criterion *criterion, const struct complaints *complaints)
{
    const json_t *params = criterion->params;
    const json_t *timeout = json_object_get(params, "timeout");
    const char *command = json_get_text(params, "command");

    if (command == NULL || command[strspn(command, " \t\r\n")] == '\0')
        complain(complaints, "/command", "expected a command");
    if (timeout != NULL && !json_is_null(timeout) && !(json_number_value(timeout) > 0))
        complain(complaints, "/timeout", "expected seconds above 0");
    int64_t code = json_get_int(params, "expected_exit_code", 0);

    if (code < 0 || code > 255)
        complain(complaints, "/expected_exit_code", "expected 0 to 255");
    check_stdout(params, complaints);
    check_candidate(params, command, complaints);
}

/* --- what it printed ------------------------------------------------------------------------- */

static size_t without_trailing_space(const char *text, size_t size)
{
    while (size > 0 && strchr(" \t\r\n\v\f", text[size - 1]) != NULL && text[size - 1] != '\0')
        size--;
    return size;
}

enum stdout_result { STDOUT_MATCHES, STDOUT_DIFFERS, STDOUT_LIMIT };

static int match_regex(const char *pattern, const struct buf *out, enum stdout_result *ret,
                       struct error **err)
{
    scoped(regex_freep) struct regex *regex = NULL;
    int r = regex_compile(pattern, 0, &regex, err);

    if (r < 0)
        return error_wrap(err, r, "expected_stdout");
    enum regex_outcome outcome = regex_search(regex, buf_text(out), out->size_bytes);

    if (outcome == REGEX_LIMIT)
        *ret = STDOUT_LIMIT;
    else
        *ret = outcome == REGEX_MATCH ? STDOUT_MATCHES : STDOUT_DIFFERS;
    return 0;
}

/* Trailing white space of both sides does not count, but for a regex. */
static int match_stdout(const json_t *params, const struct buf *out, enum stdout_result *ret,
                        struct error **err)
{
    const json_t *expected = json_object_get(params, "expected_stdout");
    const char *match = json_get_text(params, "stdout_match");
    const char *wanted = json_string_value(expected), *text = buf_text(out);

    if (wanted == NULL) {
        *ret = STDOUT_MATCHES;
        return 0;
    }
    if (match != NULL && str_equal(match, "regex"))
        return match_regex(wanted, out, ret, err);
    size_t wanted_size = without_trailing_space(wanted, json_string_length(expected));
    size_t size = without_trailing_space(text, out->size_bytes);
    bool matches;

    if (match != NULL && str_equal(match, "contains"))
        matches = memmem(text, size, wanted, wanted_size) != NULL;
    else
        matches = size == wanted_size && memcmp(text, wanted, size) == 0;
    *ret = matches ? STDOUT_MATCHES : STDOUT_DIFFERS;
    return 0;
}

/* The number of the first line, 0 to 1. False, with the reason in details, when it is none. */
static bool read_score(const struct buf *out, double *ret, struct buf *details)
{
    const char *text = buf_text(out);
    size_t size = strcspn(text, "\n");
    double score = 0;

    size = without_trailing_space(text, size);
    while (size > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        size--;
    }
    scoped(mem_freep) char *line = str_ndup(text, size);

    if (size == 0) {
        buf_text_append(details, "score: the first line of stdout is empty, expected a number\n");
        return false;
    }
    if (!str_to_double(line, &score)) {
        buf_text_append(details, "score: the first line of stdout is ");
        details_quote(details, text, size, EXPECTED_BYTES_MAX);
        buf_text_append(details, ", expected a number from 0 to 1\n");
        return false;
    }
    if (!(score >= 0 && score <= 1)) {
        buf_format(details, "score: %s is out of range, expected a number from 0 to 1\n", line);
        return false;
    }
    *ret = score;
    return true;
}

/* --- telling it ------------------------------------------------------------------------------ */

static void show_stream(struct buf *details, const char *name, const struct buf *stream, bool cut)
{
    size_t shown = size_min(stream->size_bytes, SHOWN_BYTES_MAX);

    if (stream->size_bytes == 0) {
        buf_format(details, "%s: empty\n", name);
        return;
    }
    buf_format(details, "%s:\n", name);
    buf_append(details, buf_text(stream), shown);
    if (stream->data[shown - 1] != '\n')
        buf_char(details, '\n');
    if (cut || shown < stream->size_bytes)
        buf_format(details, "[cut: %zu bytes shown of %s%zu]\n", shown, cut ? "more than " : "",
                   stream->size_bytes);
}

static void show_exit(struct buf *details, const struct grade_command_result *result,
                      int64_t expected)
{
    if (result->exit_code < 0)
        buf_format(details, "ended by signal %d, expected exit code %lld\n", result->term_signal,
                   (long long)expected);
    else
        buf_format(details, "exit code %d, expected %lld\n", result->exit_code,
                   (long long)expected);
}

static void show_expected(struct buf *details, const json_t *params)
{
    const json_t *expected = json_object_get(params, "expected_stdout");
    const char *match = json_get_text(params, "stdout_match");

    buf_format(details, "stdout differs, expected %s ",
               match == NULL || str_equal(match, "exact") ? "exactly" : match);
    details_quote(details, json_string_value(expected), json_string_length(expected),
                  EXPECTED_BYTES_MAX);
    buf_char(details, '\n');
}

static void append_stream(struct buf *output, const char *name, const struct buf *stream, bool cut)
{
    buf_format(output, "--- %s, %zu bytes%s ---\n", name, stream->size_bytes, cut ? ", cut" : "");
    buf_append(output, buf_text(stream), stream->size_bytes);
    if (stream->size_bytes > 0 && stream->data[stream->size_bytes - 1] != '\n')
        buf_char(output, '\n');
}

/* The whole of what it printed, for the record. */
static void keep_output(struct verdict *verdict, const char *command,
                        const struct grade_command_result *result)
{
    struct buf *output = &verdict->output;

    output->max_bytes = GRADE_OUTPUT_BYTES_MAX;
    buf_format(output, "$ %s\n", command);
    if (result->timed_out)
        buf_text_append(output, "timed out\n");
    else if (result->exit_code < 0)
        buf_format(output, "signal %d\n", result->term_signal);
    else
        buf_format(output, "exit code %d\n", result->exit_code);
    append_stream(output, "stdout", &result->out, result->out_cut);
    append_stream(output, "stderr", &result->err, result->err_cut);
}

/* --- the verdict ----------------------------------------------------------------------------- */

/* 0 or 1, or the printed score. LIMIT of a pattern is the agent's doing. */
static int judge(const json_t *params, const struct grade_command_result *result, double *ret_score,
                 bool *ret_limit, struct buf *details, struct error **err)
{
    int64_t expected = json_get_int(params, "expected_exit_code", 0);
    bool exit_holds = result->exit_code == expected;
    enum stdout_result printed = STDOUT_MATCHES;
    double score = 1;

    show_exit(details, result, expected);
    if (json_get_bool(params, "score_from_stdout", false)) {
        if (!exit_holds || !read_score(&result->out, &score, details))
            score = 0;
        *ret_score = score;
        return 0;
    }
    int r = match_stdout(params, &result->out, &printed, err);

    if (r < 0)
        return r;
    if (printed == STDOUT_DIFFERS)
        show_expected(details, params);
    if (printed == STDOUT_LIMIT)
        buf_text_append(details, "expected_stdout takes too long on this output\n");
    *ret_limit = printed == STDOUT_LIMIT;
    *ret_score = exit_holds && printed == STDOUT_MATCHES ? 1 : 0;
    return 0;
}

static int decide(const json_t *params, const struct grade_command *command,
                  const struct grade_command_result *result, struct verdict *verdict,
                  struct error **err)
{
    scoped(buf_done) struct buf details = DETAILS_INIT;
    double score = 0;
    bool limit = false;

    if (result->missing_tool &&
        result->exit_code != json_get_int(params, "expected_exit_code", 0)) {
        buf_format(&details,
                   "the grading cell has no '%s' (exit code %d): the task's grader is "
                   "missing, not the agent's work\n",
                   result->missing_name == NULL ? "?" : result->missing_name, result->exit_code);
        verdict_error(verdict, &details);
        return 0;
    }
    if (result->timed_out) {
        buf_format(&details, "timed out after %.3g s\n", (double)command->timeout_ms / 1000.0);
    } else {
        int r = judge(params, result, &score, &limit, &details, err);

        if (r < 0)
            return r;
    }
    show_stream(&details, "stdout", &result->out, result->out_cut);
    show_stream(&details, "stderr", &result->err, result->err_cut);
    if (limit)
        verdict_agent_error(verdict, &details);
    else
        verdict_score(verdict, score, &details);
    return 0;
}

static uint64_t timeout_of(const json_t *params, const struct grade_input *input)
{
    double seconds = json_get_real(params, "timeout", 0);

    if (!(seconds > 0))
        return input->command_timeout_ms;
    return seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000.0);
}

int run_command_evaluate(const struct criterion *criterion, const struct grade_input *input,
                         struct verdict *ret, struct error **err)
{
    const json_t *params = criterion->params;
    struct grade_command command = {
        .command = json_get_text(params, "command"),
        .timeout_ms = timeout_of(params, input),
        .output_max_bytes = GRADE_OUTPUT_BYTES_MAX / 2,
        .read_only = json_get_bool(params, "read_only", false),
        .fresh = json_get_bool(params, "fresh", false),
        .as_candidate = str_equal(json_get_text(params, "as"), "candidate"),
    };
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    int r = input->workspace->run(input->workspace->context, &command, &result, err);

    if (r < 0)
        return r;
    keep_output(ret, command.command, &result);
    return decide(params, &command, &result, ret, err);
}
