#include "report/report.h"
#include "report/suites.h"
#include "report/trial_text.h"

static void count_status(struct report_totals *totals, enum trial_status status)
{
    switch (status) {
    case STATUS_SUCCESS:
        totals->success++;
        return;
    case STATUS_FAILURE:
        totals->failure++;
        return;
    case STATUS_MAX_TURNS_EXHAUSTED:
        totals->max_turns++;
        return;
    case STATUS_TIMEOUT:
        totals->timeout++;
        return;
    case STATUS_TOKEN_BUDGET_EXCEEDED:
    case STATUS_COST_BUDGET_EXCEEDED:
        totals->budget++;
        return;
    case STATUS_ERROR:
    case STATUS_BUILD_FAILED:
        totals->error++;
        return;
    case STATUS_NOT_GRADED:
        totals->not_graded++;
        return;
    case STATUS_SKIPPED:
        totals->skipped++;
        return;
    case STATUS_COUNT:
        break;
    }
    ASSERT(false);
}

struct report_totals report_totals(const struct run_trials *trials)
{
    struct report_totals totals = {.trials = trials->count,
                                   .host_compromised = trials->host.count > 0};
    uint64_t first_ms = UINT64_MAX;
    uint64_t last_ms = 0;

    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];

        count_status(&totals, record->status);
        totals.compromised += record->integrity == INTEGRITY_COMPROMISED;
        totals.suspect += record->integrity == INTEGRITY_SUSPECT;
        totals.unprotected += record->integrity == INTEGRITY_UNPROTECTED;
        totals.unstable += trial_is_unstable(record);
        totals.decided += record->has_verdict;
        totals.passed += trial_has_passed(record);
        if (record->started_unix_ms != 0 && record->started_unix_ms < first_ms)
            first_ms = record->started_unix_ms;
        if (record->ended_unix_ms > last_ms)
            last_ms = record->ended_unix_ms;
    }
    scoped(suites_done) struct suites suites = {0};

    suites_make(trials, &suites);
    totals.suites_missed = suites.missed;
    if (last_ms > first_ms)
        totals.elapsed_ms = last_ms - first_ms;
    return totals;
}

double report_pass_rate(const struct report_totals *totals)
{
    return totals->decided == 0 ? 0.0 : (double)totals->passed / (double)totals->decided;
}

static bool has_missed(const struct report_totals *totals, const struct exit_rules *rules)
{
    if (totals->suites_missed > 0 || (rules->fail_on_unstable && totals->unstable > 0))
        return true;
    if (rules->min_pass_rate >= 0)
        return report_pass_rate(totals) < rules->min_pass_rate;
    return totals->failure + totals->max_turns + totals->timeout + totals->budget > 0;
}

static bool has_too_many_errors(const struct report_totals *totals, const struct exit_rules *rules)
{
    size_t errors = totals->error + (rules->grading_expected ? totals->not_graded : 0);

    return errors > (rules->max_errors < 0 ? 0 : (uint64_t)rules->max_errors);
}

int report_exit_status(const struct report_totals *totals, const struct exit_rules *rules)
{
    if (rules->interrupted)
        return 130;
    if (totals->trials == totals->skipped)
        return rules->allow_empty ? 0 : 2;
    if (totals->compromised > 0 || totals->host_compromised ||
        (rules->fail_on_suspect && totals->suspect > 0))
        return 4;
    if (has_too_many_errors(totals, rules))
        return 3;
    return has_missed(totals, rules) ? 1 : 0;
}
