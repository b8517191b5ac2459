#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/shell_text.h"
#include "grade/value.h"

#define EXAMPLES_MAX 3
#define EXAMPLE_BYTES_MAX 120

/* --- configuration --------------------------------------------------------------------------- */

void command_executed_check(const struct criterion *criterion, const struct complaints *complaints)
{
    const json_t *params = criterion->params;
    const json_t *maximum = json_object_get(params, "max_count");
    int64_t least = json_get_int(params, "min_count", 1),
            most = json_get_int(params, "max_count", 0);

    config_pattern(params, "", "command_pattern", REGEX_DOT_ALL, complaints);
    config_pattern(params, "", "exclude_pattern", REGEX_DOT_ALL, complaints);
    if (least < 0 || most < 0)
        complain(complaints, least < 0 ? "/min_count" : "/max_count", "expected a number from 0");
    else if (maximum != NULL && !json_is_null(maximum) && most < least)
        complain(complaints, "/max_count", "%lld is below min_count, %lld", (long long)most,
                 (long long)least);
}

/* --- results of calls ------------------------------------------------------------------------ */

/* Results that succeeded, sorted by call_id. */
struct successes {
    const char **call_ids; /* the events own them */
    size_t count;
};

static void successes_done(struct successes *successes)
{
    free(successes->call_ids);
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect_successes(const struct event_log *log, struct successes *ret)
{
    ret->call_ids = mem_new(log->count + 1, sizeof(*ret->call_ids));
    for (size_t i = 0; i < log->count; i++) {
        const struct event *event = &log->events[i];

        if (event->kind == EVENT_TOOL_RESULT && event->call_id != NULL && !event->is_error &&
            (!event->has_exit_code || event->exit_code == 0))
            ret->call_ids[ret->count++] = event->call_id;
    }
    qsort(ret->call_ids, ret->count, sizeof(*ret->call_ids), compare_ids);
}

static bool succeeded(const struct successes *successes, const struct event *call)
{
    return call->call_id != NULL && bsearch(&call->call_id, successes->call_ids, successes->count,
                                            sizeof(*successes->call_ids), compare_ids) != NULL;
}

/* --- one call -------------------------------------------------------------------------------- */

/* What calls are looked for, compiled. */
struct filter {
    const char *tool_name; /* NULL: any */
    struct regex *pattern, *exclude;
    bool require_success;
    struct successes successes;
};

static void filter_done(struct filter *filter)
{
    regex_free(filter->pattern);
    regex_free(filter->exclude);
    successes_done(&filter->successes);
}

static int compile_pattern(const json_t *params, const char *key, struct regex **ret,
                           struct error **err)
{
    const char *pattern = json_get_text(params, key);

    if (pattern == NULL)
        return 0;
    int r = regex_compile(pattern, REGEX_DOT_ALL, ret, err);

    return r < 0 ? error_wrap(err, r, "%s", key) : 0;
}

static const char *bash_command(const struct event *call)
{
    const char *command = json_get_text(call->input, "command");

    return str_equal(call->tool, "Bash") && command != NULL && command[0] != '\0' ? command : NULL;
}

/* What patterns are matched against: the command, or the JSON of the parameters; owned. */
static char *text_of(const struct event *call)
{
    struct budget budget = {.left = UINT64_MAX};
    const char *command = bash_command(call);
    struct buf text = {0};

    if (command != NULL)
        return str_dup(command);
    if (call->input == NULL)
        return str_dup("{}");
    value_write(&text, call->input, VALUE_SPACED, &budget);
    return buf_take(&text);
}

/* NULL when it has none, or none of its own. */
static char *normal_text_of(const struct event *call)
{
    const char *command = bash_command(call);
    scoped(mem_freep) char *normal = command == NULL ? NULL : shell_normal(command);

    return normal == NULL || str_equal(normal, command) ? NULL : take(normal);
}

static enum regex_outcome find_in_either(struct regex *regex, const char *text, const char *normal)
{
    enum regex_outcome outcome = regex_search(regex, text, strlen(text));

    if (outcome == REGEX_NO_MATCH && normal != NULL)
        outcome = regex_search(regex, normal, strlen(normal));
    return outcome;
}

/* Whether a call counts; REGEX_LIMIT when a pattern takes too long on it. */
static enum regex_outcome filter_call(const struct filter *filter, const struct event *call)
{
    if (filter->tool_name != NULL && !str_equal(call->tool, filter->tool_name))
        return REGEX_NO_MATCH;
    if (filter->require_success && !succeeded(&filter->successes, call))
        return REGEX_NO_MATCH;
    scoped(mem_freep) char *text = text_of(call);
    scoped(mem_freep) char *normal = normal_text_of(call);
    enum regex_outcome wanted = REGEX_MATCH, excluded = REGEX_NO_MATCH;

    if (filter->pattern != NULL)
        wanted = find_in_either(filter->pattern, text, normal);
    if (wanted != REGEX_MATCH)
        return wanted;
    if (filter->exclude != NULL)
        excluded = find_in_either(filter->exclude, text, normal);
    if (excluded == REGEX_LIMIT)
        return REGEX_LIMIT;
    return excluded == REGEX_MATCH ? REGEX_NO_MATCH : REGEX_MATCH;
}

/* --- all calls ------------------------------------------------------------------------------- */

/*
 * What the log shows. A call that only the agent's output shows while its traffic does not is an
 * attempt: it never counts, as anything in the cell can print such a line.
 */
struct count {
    size_t calls, attempts, examples;
    bool limit; /* a pattern took too long on some call */
};

static void add_example(const struct event *call, size_t number, struct buf *details)
{
    scoped(mem_freep) char *text = text_of(call);

    buf_text_append(details, number == 0 ? "for example: " : ", ");
    if (bash_command(call) == NULL)
        buf_format(details, "%s ", call->tool == NULL ? "?" : call->tool);
    details_quote(details, text, strlen(text), EXAMPLE_BYTES_MAX);
}

static struct count count_calls(const struct filter *filter, const struct event_log *log,
                                struct buf *examples)
{
    struct count count = {0};

    for (size_t i = 0; i < log->count && !count.limit; i++) {
        const struct event *event = &log->events[i];

        if (event->kind != EVENT_TOOL_CALL)
            continue;
        enum regex_outcome outcome = filter_call(filter, event);

        count.limit = outcome == REGEX_LIMIT;
        if (outcome != REGEX_MATCH)
            continue;
        if (event->source == EVENT_STREAM) {
            count.attempts++;
            continue;
        }
        if (count.calls++ < EXAMPLES_MAX)
            add_example(event, count.examples++, examples);
    }
    return count;
}

static void describe(const json_t *params, struct buf *details)
{
    static const char *const keys[] = {"tool_name", "command_pattern", "exclude_pattern"};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *value = json_get_text(params, keys[i]);

        if (value != NULL)
            buf_format(details, ", %s %s", keys[i], value);
    }
    if (json_get_bool(params, "require_success", false))
        buf_text_append(details, ", succeeded");
    buf_char(details, '\n');
}

/* Sets the verdict from the count: a fraction, or 0 or 1 when bounded. */
static void decide(const json_t *params, const struct event_log *log, const struct count *count,
                   struct buf *details, struct verdict *verdict)
{
    int64_t least = json_get_int(params, "min_count", 1),
            most = json_get_int(params, "max_count", -1);
    bool bounded = most >= 0;
    bool within = (int64_t)count->calls >= least && (int64_t)count->calls <= most;

    if (count->limit) {
        buf_text_append(details, "a pattern takes too long on one of the calls\n");
        verdict_agent_error(verdict, details);
        return;
    }
    /* What was not recorded, or not by a witness, may be what the bound forbids. */
    if (bounded && within && (log->cut || (int64_t)(count->calls + count->attempts) > most)) {
        buf_text_append(details,
                        log->cut ? "the record of events is cut: the calls cannot be counted\n"
                                 : "the agent's output shows calls that its traffic does not\n");
        verdict_agent_error(verdict, details);
        return;
    }
    if (bounded)
        verdict_score(verdict, within ? 1 : 0, details);
    else if (least == 0)
        verdict_score(verdict, 1, details);
    else
        verdict_score(verdict,
                      count->calls >= (size_t)least ? 1 : (double)count->calls / (double)least,
                      details);
}

static void tell_count(const json_t *params, const struct count *count, struct buf *details)
{
    int64_t least = json_get_int(params, "min_count", 1),
            most = json_get_int(params, "max_count", -1);

    buf_format(details, "%zu call%s, expected ", count->calls, count->calls == 1 ? "" : "s");
    if (most < 0)
        buf_format(details, "at least %lld", (long long)least);
    else if (least == most)
        buf_format(details, "%lld", (long long)least);
    else
        buf_format(details, "%lld to %lld", (long long)least, (long long)most);
    describe(params, details);
    if (count->attempts > 0)
        buf_format(details, "not counted: %zu that only the agent's output shows\n",
                   count->attempts);
}

int command_executed_evaluate(const struct criterion *criterion, const struct grade_input *input,
                              struct verdict *ret, struct error **err)
{
    const json_t *params = criterion->params;
    scoped(buf_done) struct buf details = DETAILS_INIT;
    scoped(buf_done) struct buf examples = {0};
    scoped(filter_done) struct filter filter = {
        .tool_name = json_get_text(params, "tool_name"),
        .require_success = json_get_bool(params, "require_success", false),
    };
    int r = compile_pattern(params, "command_pattern", &filter.pattern, err);

    if (r == 0)
        r = compile_pattern(params, "exclude_pattern", &filter.exclude, err);
    if (r < 0)
        return r;
    collect_successes(input->events, &filter.successes);
    struct count count = count_calls(&filter, input->events, &examples);

    tell_count(params, &count, &details);
    if (examples.size_bytes > 0)
        buf_format(&details, "%s\n", buf_text(&examples));
    if (!input->events_trusted) {
        buf_text_append(&details, "informational: the agent reported these calls itself\n");
        ret->informational = true;
    }
    decide(params, input->events, &count, &details, ret);
    return 0;
}

bool command_executed_calls(const struct criterion *criterion, const struct event_log *events,
                            size_t *ret)
{
    scoped(buf_done) struct buf examples = {0};
    scoped(error_freep) struct error *problem = NULL;
    scoped(filter_done) struct filter filter = {
        .tool_name = json_get_text(criterion->params, "tool_name"),
        .require_success = json_get_bool(criterion->params, "require_success", false),
    };

    if (compile_pattern(criterion->params, "command_pattern", &filter.pattern, &problem) < 0 ||
        compile_pattern(criterion->params, "exclude_pattern", &filter.exclude, &problem) < 0)
        return false;
    collect_successes(events, &filter.successes);
    const struct count count = count_calls(&filter, events, &examples);

    *ret = count.calls + count.attempts;
    return !count.limit;
}
