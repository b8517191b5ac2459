#include "base/mem.h"
#include "report/report.h"
#include "report/suites.h"
#include "report/trial_text.h"
#include "report/xml.h"

/* What a test case is to a CI server. */
enum outcome { OUTCOME_PASSED, OUTCOME_FAILURE, OUTCOME_ERROR, OUTCOME_SKIPPED };

/* One suite while it is written: the cases go to a buffer of their own, as their counts come first.
 */
struct suite {
    const char *name;
    struct buf cases;
    size_t tests, failures, errors, skipped;
    double seconds;
};

static void suite_done(struct suite *suite)
{
    buf_done(&suite->cases);
}

static void attribute(struct buf *buf, const char *name, const char *raw)
{
    buf_format(buf, " %s=\"", name);
    xml_attribute(buf, raw);
    buf_char(buf, '"');
}

static void count(struct suite *suite, enum outcome outcome)
{
    suite->tests++;
    suite->failures += outcome == OUTCOME_FAILURE;
    suite->errors += outcome == OUTCOME_ERROR;
    suite->skipped += outcome == OUTCOME_SKIPPED;
}

/* One <testcase>; the texts are raw. */
struct test_case {
    const struct trial_record *record;
    const char *name, *type, *message;
    const struct buf *body; /* NULL: none */
    double seconds;
    enum outcome outcome;
};

static void add_outcome(struct buf *buf, const struct test_case *test)
{
    static const char *const elements[] = {NULL, "failure", "error", "skipped"};
    const char *element = elements[test->outcome];

    buf_format(buf, "      <%s", element);
    if (test->outcome != OUTCOME_SKIPPED)
        attribute(buf, "type", test->type);
    attribute(buf, "message", test->message);
    if (test->body == NULL || test->body->size_bytes == 0) {
        buf_text_append(buf, "/>\n");
        return;
    }
    buf_char(buf, '>');
    xml_content(buf, test->body->data, test->body->size_bytes);
    buf_format(buf, "</%s>\n", element);
}

static void add_case(struct suite *suite, const struct test_case *test)
{
    struct buf *buf = &suite->cases;

    count(suite, test->outcome);
    suite->seconds += test->seconds;
    buf_text_append(buf, "    <testcase");
    attribute(buf, "classname", test->record == NULL ? "run" : test->record->variant_id);
    attribute(buf, "name", test->name);
    buf_format(buf, " time=\"%.3f\"", test->seconds);
    if (test->outcome == OUTCOME_PASSED) {
        buf_text_append(buf, "/>\n");
        return;
    }
    buf_text_append(buf, ">\n");
    add_outcome(buf, test);
    buf_text_append(buf, "    </testcase>\n");
}

static enum outcome outcome_of(const struct trial_record *record)
{
    switch (trial_look(record)) {
    case LOOK_PASSED:
        return OUTCOME_PASSED;
    case LOOK_FAILED:
        return OUTCOME_FAILURE;
    case LOOK_ERROR:
        return OUTCOME_ERROR;
    case LOOK_NEUTRAL:
    case LOOK_COUNT:
        /* `run` was to grade it and did not: its exit status is that of an error, too. */
        return record->status == STATUS_NOT_GRADED ? OUTCOME_ERROR : OUTCOME_SKIPPED;
    }
    return OUTCOME_ERROR;
}

/* Raw: each criterion that failed, with what it said. */
static void trial_body(struct buf *buf, const struct trial_record *record)
{
    if (record->error != NULL)
        buf_format(buf, "%s\n", record->error);
    for (size_t i = 0; i < record->criterion_count; i++) {
        const struct criterion_record *criterion = &record->criteria[i];

        if (!criterion_failed(criterion))
            continue;
        buf_format(buf, "%zu. %s: %s: ", i + 1, criterion->type == NULL ? "" : criterion->type,
                   criterion->description == NULL ? "" : criterion->description);
        criterion_score(buf, criterion);
        buf_char(buf, '\n');
        if (criterion->error != NULL)
            buf_format(buf, "%s\n", criterion->error);
        if (criterion->details != NULL)
            buf_format(buf, "%s\n", criterion->details);
    }
}

static void add_trial(struct suite *suite, const struct trial_record *record, const char *name)
{
    scoped(buf_done) struct buf reason = {0};
    scoped(buf_done) struct buf body = {0};
    struct test_case test = {
        .record = record,
        .name = name,
        .type = trial_status_name(record->status),
        .body = &body,
        .seconds = record->timing_ms.total / 1000,
        .outcome = outcome_of(record),
    };

    trial_reason(&reason, record);
    test.message = buf_text(&reason);
    if (record->integrity == INTEGRITY_COMPROMISED)
        test.type = trial_integrity_name(record->integrity);
    if (test.outcome != OUTCOME_SKIPPED)
        trial_body(&body, record);
    add_case(suite, &test);
}

static void add_integrity(struct suite *suite, const struct trial_record *record, const char *name)
{
    const char *verdict = trial_integrity_name(record->integrity);
    scoped(buf_done) struct buf message = {0};
    struct test_case test = {
        .record = record,
        .name = name,
        .type = verdict == NULL ? "" : verdict,
        .outcome = OUTCOME_SKIPPED,
    };

    if (record->integrity == INTEGRITY_CLEAN)
        test.outcome = OUTCOME_PASSED;
    else if (record->integrity == INTEGRITY_COMPROMISED)
        test.outcome = OUTCOME_FAILURE;
    if (verdict != NULL)
        buf_text_append(&message, verdict);
    for (size_t i = 0; i < record->integrity_reasons.count; i++) {
        const char *between = i > 0 ? ", " : ": ";

        buf_format(&message, "%s%s", message.size_bytes == 0 ? "" : between,
                   record->integrity_reasons.items[i]);
    }
    if (message.size_bytes == 0)
        buf_text_append(&message, "not evaluated");
    test.message = buf_text(&message);
    add_case(suite, &test);
}

/* The run as a whole, when --verify-host looked at it. */
static void add_host(struct suite *suite, const struct host_record *host)
{
    scoped(buf_done) struct buf message = {0};
    scoped(buf_done) struct buf body = {0};
    struct test_case test = {
        .name = "host",
        .type = "COMPROMISED",
        .body = &body,
        .outcome = host->count > 0 ? OUTCOME_FAILURE : OUTCOME_PASSED,
    };

    if (!host->evaluated)
        return;
    host_text(&message, host);
    test.message = buf_text(&message);
    for (size_t i = 0; i < host->changes.count; i++)
        buf_format(&body, "%s\n", host->changes.items[i]);
    add_case(suite, &test);
}

/* A threshold over all rows of a dataset is a test of its own. */
static void add_thresholds(struct suite *suite, const struct run_trials *trials)
{
    scoped(suites_done) struct suites suites = {0};

    suites_make(trials, &suites);
    for (size_t i = 0; i < suites.count; i++) {
        const struct suite_figures *figures = &suites.items[i];

        for (size_t j = 0; j < figures->check_count; j++) {
            const struct suite_check *check = &figures->checks[j];
            scoped(mem_freep) char *message = suite_check_text(check);
            scoped(mem_freep) char *name =
                str_format("%s/%s criterion %zu %s", figures->variant_id, figures->task_id,
                           figures->criterion + 1, check->metric);

            add_case(suite, &(struct test_case){
                                .name = name,
                                .type = "suite_threshold",
                                .message = message,
                                .outcome = check->passed ? OUTCOME_PASSED : OUTCOME_FAILURE,
                            });
        }
    }
}

static void counts(struct buf *buf, const struct suite *suite)
{
    buf_format(buf, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\"",
               suite->tests, suite->failures, suite->errors, suite->skipped, suite->seconds);
}

static void write_suite(struct buf *buf, const struct suite *suite)
{
    buf_format(buf, "  <testsuite name=\"%s\"", suite->name);
    counts(buf, suite);
    buf_text_append(buf, ">\n");
    buf_text_append(buf, buf_text(&suite->cases));
    buf_text_append(buf, "  </testsuite>\n");
}

void report_junit(struct buf *buf, const struct run_trials *trials, const char *run_id)
{
    scoped(suite_done) struct suite results = {.name = "trials"};
    scoped(suite_done) struct suite integrity = {.name = "integrity"};
    scoped(suite_done) struct suite thresholds = {.name = "suite thresholds"};
    const struct trial_naming naming = {.replicates = trial_naming(trials).replicates};

    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];
        scoped(buf_done) struct buf name = {0};

        trial_name(&name, record, &naming);
        add_trial(&results, record, buf_text(&name));
        if (record->status != STATUS_SKIPPED)
            add_integrity(&integrity, record, buf_text(&name));
    }

    add_host(&integrity, &trials->host);
    add_thresholds(&thresholds, trials);

    const struct suite both = {
        .tests = results.tests + integrity.tests + thresholds.tests,
        .failures = results.failures + integrity.failures + thresholds.failures,
        .errors = results.errors + integrity.errors,
        .skipped = results.skipped + integrity.skipped,
        .seconds = results.seconds,
    };

    buf_text_append(buf, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    attribute(buf, "name", run_id);
    counts(buf, &both);
    buf_text_append(buf, ">\n");
    write_suite(buf, &results);
    write_suite(buf, &integrity);
    if (thresholds.tests > 0)
        write_suite(buf, &thresholds);
    buf_text_append(buf, "</testsuites>\n");
}
