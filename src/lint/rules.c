/* The table of rules. An id stays; a rule that goes leaves its id unused. */
#include "lint/internal.h"

/* clang-format off */
const struct rule lint_rules[] = {
    {{"CB000", "load", LINT_ERROR, "the task does not load, or loading remarks on it",
      "a run that selects the task does not start",
      "do what the message says", false}, NULL},
    {{"CB001", "task-material-visible", LINT_ERROR,
      "a task file lies in a folder that the agent sees",
      "the agent reads criteria and expected answers",
      "move tasks out of plugins' and templates' folders, or list what a plugin needs in its include", false}, check_task_material},
    {{"CB002", "reference-staged", LINT_ERROR,
      "the reference lies in a folder that the agent sees",
      "the agent reads the solution",
      "keep reference and input in folders beside each other", false}, check_reference_staged},
    {{"CB003", "private-token", LINT_ERROR,
      "a text for the agent names $REFERENCE_DIR or $TASK_DIR",
      "the agent has neither, and learns where the answer lies",
      "give it files by input_dir and name $INPUT_DIR", false}, check_private_token},
    {{"CB004", "prompt-quotes-reference", LINT_WARNING,
      "the prompt has 16 or more consecutive words of the reference",
      "the task measures copying",
      "describe what is wanted in words that the reference does not use", false}, check_reference_words},
    {{"CB005", "prompt-has-expected", LINT_NOTE,
      "the prompt has an expected value of 24 bytes or more, word for word",
      "the agent need not find it out",
      "leave it out of the prompt unless the instructions need it", false}, check_expected_literal},
    {{"CB006", "label-in-prompt", LINT_WARNING,
      "the prompt shows a field of the row that a criterion expects as the answer",
      "the label is in the question",
      "show other fields of the row", false}, check_label},
    {{"CB007", "git-history", LINT_WARNING,
      "a staged repository holds commits that its HEAD does not have",
      "the agent finds the fix in the history",
      "stage it with one branch and without reflogs", false}, check_history},
    {{"CB008", "absolute-path", LINT_ERROR,
      "a criterion's path is absolute or leaves the workspace",
      "it names nothing that the agent makes",
      "write it relative to the workspace", true}, check_absolute_path},
    {{"CB009", "pattern-broken", LINT_ERROR, "a regular expression cannot be compiled",
      "the task does not load",
      "correct it at the offset named", false}, check_pattern_compiles},
    {{"CB010", "pattern-costly", LINT_WARNING,
      "a regular expression backtracks without bounds",
      "a text of the agent's makes it give up, which counts as not passed",
      "do not repeat a group that may match the same text in several ways", false}, check_pattern_cost},
    {{"CB011", "threshold-zero", LINT_WARNING, "a pass_threshold of 0",
      "the criterion passes whatever the agent does",
      "set the score that is good enough, or weight: 0 for what only informs", false}, check_threshold},
    {{"CB012", "no-weight", LINT_ERROR, "every criterion has weight 0",
      "nothing is graded: NOT_GRADED",
      "give at least one criterion a weight", false}, check_weights},
    {{"CB013", "turn-timeout-dead", LINT_WARNING, "turn_timeout is not below task_timeout",
      "it never ends a turn",
      "lower turn_timeout, or leave it out", false}, check_timeouts},
    {{"CB014", "grader-network", LINT_WARNING, "a grading command uses the network",
      "grading cells have none, so it fails",
      "stage what it needs, or compare with a file of the reference", false}, check_network},
    {{"CB015", "grader-host-path", LINT_WARNING, "a grading command names a path of somebody's machine",
      "it is not in the cell",
      "use $TASK_DIR, $REFERENCE_DIR or a path in the workspace", false}, check_host_path},
    {{"CB016", "always-passes", LINT_ERROR, "a grading command succeeds whatever happens",
      "the criterion passes for everybody",
      "let the command's own exit status decide", false}, check_unconditional},
    {{"CB017", "judge-without-rubric", LINT_WARNING, "a judge is told nothing to judge by",
      "its verdict is a matter of taste",
      "write what earns which score, or let it read a reference", false}, check_rubric},
    {{"CB018", "stop-early-unreachable", LINT_WARNING, "an early stop can never happen",
      "turns are spent that the author meant to save",
      "give the armed criterion a weight, and take run_limits.stop_early: false out", false}, check_stop_early},
    {{"CB019", "duplicate-id", LINT_ERROR, "two files have one task_id",
      "a run that selects both does not start",
      "rename one", false}, check_duplicate_id},
    {{"CB020", "variable-unset", LINT_WARNING, "a command uses a variable that nothing sets",
      "it is empty in the cell",
      "set it in the command, or use $TASK_DIR or $REFERENCE_DIR", false}, check_variables},
    {{"CB021", "skill-unknown", LINT_WARNING, "no plugin of the task has the skill that a criterion names",
      "it can never be triggered",
      "correct the name, or add the plugin", false}, check_skills},
    {{"CB022", "old-boolean", LINT_NOTE, "a truth value in the spelling of YAML 1.1",
      "other readers take it for a text",
      "write true or false", true}, check_old_booleans},
    {{"CB023", "grader-runs-agent-code", LINT_WARNING,
      "a grading command runs the agent's code in its own cell, where the task's folder or the reference is readable",
      "that code can read the answers and forge what the command says",
      "run it by as-candidate, and compare what it says outside: as-candidate ./prog | diff - \"$TASK_DIR/expected.txt\"; "
      "or, where nothing private is needed, give the criterion as: candidate", false}, check_in_process},
    {{NULL, NULL, LINT_NOTE, NULL, NULL, NULL, false}, NULL},
};
/* clang-format on */

const struct lint_rule *lint_rule_at(size_t i)
{
    return i + 1 < ARRAY_SIZE(lint_rules) ? &lint_rules[i].shown : NULL;
}

const struct lint_rule *lint_rule_find(const char *id)
{
    for (size_t i = 0; lint_rule_at(i) != NULL; i++)
        if (strcmp(lint_rule_at(i)->id, id) == 0 || strcmp(lint_rule_at(i)->name, id) == 0)
            return lint_rule_at(i);
    return NULL;
}

const char *lint_severity_name(enum lint_severity severity)
{
    static const char *const names[] = {"error", "warning", "note"};

    return names[severity];
}
