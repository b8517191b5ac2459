#include "grade/grade.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/judge.h"

const struct criterion_type criterion_types[CRITERION_COUNT] = {
    [CRITERION_FILE_EXISTS] = {.kind = CRITERION_FILE_EXISTS,
                               .name = "file_exists",
                               .needs_workspace = true,
                               .check_config = file_exists_check,
                               .evaluate = file_exists_evaluate},
    [CRITERION_FILE_CONTAINS] = {.kind = CRITERION_FILE_CONTAINS,
                                 .name = "file_contains",
                                 .needs_workspace = true,
                                 .check_config = file_contains_check,
                                 .evaluate = file_contains_evaluate},
    [CRITERION_FILE_MATCHES_REGEX] = {.kind = CRITERION_FILE_MATCHES_REGEX,
                                      .name = "file_matches_regex",
                                      .needs_workspace = true,
                                      .check_config = file_matches_regex_check,
                                      .evaluate = file_matches_regex_evaluate},
    [CRITERION_FILE_CHECK] = {.kind = CRITERION_FILE_CHECK,
                              .name = "file_check",
                              .needs_workspace = true,
                              .check_config = file_check_check,
                              .evaluate = file_check_evaluate},
    [CRITERION_JSON_CHECK] = {.kind = CRITERION_JSON_CHECK,
                              .name = "json_check",
                              .needs_workspace = true,
                              .check_config = json_check_check,
                              .evaluate = json_check_evaluate},
    [CRITERION_RUN_COMMAND] = {.kind = CRITERION_RUN_COMMAND,
                               .name = "run_command",
                               .needs_workspace = true,
                               .check_config = run_command_check,
                               .evaluate = run_command_evaluate},
    [CRITERION_COMMAND_EXECUTED] = {.kind = CRITERION_COMMAND_EXECUTED,
                                    .name = "command_executed",
                                    .needs_events = true,
                                    .check_config = command_executed_check,
                                    .evaluate = command_executed_evaluate},
    [CRITERION_CLASSIFICATION_MATCH] = {.kind = CRITERION_CLASSIFICATION_MATCH,
                                        .name = "classification_match",
                                        .needs_workspace = true,
                                        .check_config = classification_match_check,
                                        .evaluate = classification_match_evaluate},
    [CRITERION_COMMANDS_EFFICIENCY] = {.kind = CRITERION_COMMANDS_EFFICIENCY,
                                       .name = "commands_efficiency",
                                       .needs_events = true,
                                       .check_config = commands_efficiency_check,
                                       .evaluate = commands_efficiency_evaluate},
    [CRITERION_SKILL_TRIGGERED] = {.kind = CRITERION_SKILL_TRIGGERED,
                                   .name = "skill_triggered",
                                   .needs_events = true,
                                   .check_config = skill_triggered_check,
                                   .evaluate = skill_triggered_evaluate},
    [CRITERION_CLI_CALLED] = {.kind = CRITERION_CLI_CALLED,
                              .name = "cli_called",
                              .needs_workspace = true,
                              .check_config = cli_called_check,
                              .evaluate = cli_called_evaluate},
    [CRITERION_REFERENCE_COMPARISON] = {.kind = CRITERION_REFERENCE_COMPARISON,
                                        .name = "reference_comparison",
                                        .needs_workspace = true,
                                        .check_config = reference_comparison_check,
                                        .evaluate = reference_comparison_evaluate},
    [CRITERION_EXEC] = {.kind = CRITERION_EXEC,
                        .name = "exec",
                        .needs_workspace = true,
                        .check_config = exec_check,
                        .evaluate = exec_evaluate},
    [CRITERION_LLM_JUDGE] = {.kind = CRITERION_LLM_JUDGE,
                             .name = "llm_judge",
                             .needs_workspace = true,
                             .check_config = llm_judge_check,
                             .evaluate = llm_judge_evaluate},
};

/* --- life ------------------------------------------------------------------------------------ */

void verdict_done(struct verdict *verdict)
{
    free(verdict->details);
    free(verdict->observed);
    free(verdict->expected);
    buf_done(&verdict->output);
    json_freep(&verdict->metrics);
    json_decref(verdict->judgement);
    *verdict = (struct verdict){0};
}

void grade_command_result_done(struct grade_command_result *result)
{
    free(result->missing_name);
    buf_done(&result->out);
    buf_done(&result->err);
    *result = (struct grade_command_result){0};
}

void grade_file_done(struct grade_file *file)
{
    free(file->resolved);
    str_list_done(&file->matches);
    buf_done(&file->content);
    *file = (struct grade_file){0};
}

void grade_result_done(struct grade_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        verdict_done(&result->verdicts[i]);
    free(result->verdicts);
    free(result->error);
    *result = (struct grade_result){0};
}

/* --- verdicts -------------------------------------------------------------------------------- */

void grade_check(const struct criterion *criterion, task_complain *say, void *context)
{
    ASSERT(criterion->kind < CRITERION_COUNT);
    criterion_types[criterion->kind].check_config(criterion, &(struct complaints){say, context});
}

static int evaluate(const struct criterion *criterion, const struct grade_input *input,
                    struct verdict *ret, struct error **err)
{
    ASSERT(criterion->kind < CRITERION_COUNT);
    uint64_t start_ns = clock_ns();
    int r = criterion_types[criterion->kind].evaluate(criterion, input, ret, err);

    ret->duration_ns = clock_ns() - start_ns;
    if (!(criterion->weight > 0) || (input->stopped_early && !criterion->armed))
        ret->informational = true;
    if (r < 0)
        return error_wrap(err, r, "cannot evaluate %s '%s'", criterion->type_name,
                          criterion->description);
    return 0;
}

/*
 * Score, gate and error from the verdicts that count. The gate is a strict and; after an early stop
 * a part of the weight is enough.
 */
static void sum_up(const struct grade_input *input, struct grade_result *result)
{
    const struct criterion *criteria = input->task->criteria;
    double least = input->stopped_early ? input->task->stop_early_gate : 1;
    double sum = 0, weights = 0, passed = 0;
    bool all_passed = true;

    for (size_t i = 0; i < result->count; i++) {
        const struct verdict *verdict = &result->verdicts[i];

        if (verdict->informational)
            continue;
        weights += criteria[i].weight;
        /* What the agent broke is not passed; what we broke makes the whole an error. */
        if (verdict->errored || verdict->score < criteria[i].pass_threshold)
            all_passed = false;
        else
            passed += criteria[i].weight;
        sum += verdict->errored ? 0 : verdict->score * criteria[i].weight;
        if (verdict->errored && !verdict->caused_by_agent && result->error == NULL)
            result->error =
                str_format("%s '%s': %s", criteria[i].type_name, criteria[i].description,
                           verdict->details == NULL ? "" : verdict->details);
    }
    result->nothing_gates = !(weights > 0);
    result->has_score = !result->nothing_gates && result->error == NULL;
    result->score = result->has_score ? sum / weights : 0;
    result->gate = result->has_score && (all_passed || (least < 1 && passed / weights >= least));
}

/* What reached a judge of the private half is in nothing that is kept or printed. */
static void scrub_verdict(const struct scrub *scrub, struct verdict *verdict)
{
    scrub_string(scrub, &verdict->details);
    scrub_buf(scrub, &verdict->output);
    scrub_json(scrub, &verdict->judgement);
}

int grade_run(const struct grade_input *input, struct grade_result *ret, struct error **err)
{
    const struct task_private *task = input->task;
    scoped(grade_result_done) struct grade_result result = {0};

    result.verdicts = mem_new(task->criterion_count + 1, sizeof(*result.verdicts));
    result.count = task->criterion_count;
    for (size_t i = 0; i < task->criterion_count; i++) {
        int r = evaluate(&task->criteria[i], input, &result.verdicts[i], err);

        if (r < 0)
            return r;
    }
    for (size_t i = 0; input->judges != NULL && i < result.count; i++)
        scrub_verdict(input->judges->scrub, &result.verdicts[i]);
    sum_up(input, &result);
    *ret = result;
    result = (struct grade_result){0};
    return 0;
}
