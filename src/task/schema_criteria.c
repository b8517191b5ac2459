/* The tables of success_criteria: what all kinds share, and the parameters of each. */
#include "task/schema.h"

#define SECONDS_MAX (7.0 * 24 * 3600)
#define COUNT_MAX 1e9

static const struct field common_fields[] = {
    {.name = "type", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "which kind"},
    {.name = "description",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "one line for people"},
    {.name = "weight",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = 1e9,
     .standard = "1",
     .doc = "part of the score; 0: informational, neither score nor gate"},
    {.name = "pass_threshold",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = 1,
     .standard = "0.9",
     .doc = "score from which the criterion passes"},
    {.name = "suite_thresholds",
     .types = TYPE_MAP,
     .doc =
         "metric: least value, over the rows of a dataset: count, mean, median, std, min, max; "
         "of classifications also accuracy, macro_f1, weighted_f1, micro_f1 and precision.LABEL, "
         "recall.LABEL, f1.LABEL"},
    {.name = "stop_early",
     .types = TYPE_BLOCK,
     .block = &stop_early_block,
     .doc = "arms the criterion to end the run while the agent works: of skill_triggered, "
            "command_executed and command_not_executed"},
    {0},
};

#define PATH_FIELD                                                                                 \
    {                                                                                              \
        .name = "path", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .form = FORM_INSIDE,          \
        .doc = "a path in the workspace, or a glob where no file has that very name"               \
    }
#define TEXTS(field_name, text)                                                                    \
    {                                                                                              \
        .name = (field_name), .types = TYPE_LIST, .items = TYPE_TEXT, .standard = "[]",            \
        .doc = (text)                                                                              \
    }
#define PATTERN_FLAGS                                                                              \
    {                                                                                              \
        .name = "flags", .types = TYPE_INT | TYPE_TEXT, .flags = FIELD_RANGE, .min = 0,            \
        .max = 511, .standard = "0",                                                               \
        .doc = "letters of imsx, or the number that Python's re flags make"                        \
    }
#define MUST_MATCH                                                                                 \
    {                                                                                              \
        .name = "must_match", .types = TYPE_BOOL, .standard = "true",                              \
        .doc = "false: the pattern must not be found"                                              \
    }

static const struct field file_exists_fields[] = {PATH_FIELD, {0}};
static const struct block file_exists_block = {.fields = file_exists_fields};

static const struct field file_contains_fields[] = {
    PATH_FIELD,
    TEXTS("includes", "texts that must be in the file"),
    TEXTS("excludes", "texts that must not be"),
    {0},
};
static const struct block file_contains_block = {.fields = file_contains_fields};

static const struct field file_matches_regex_fields[] = {
    PATH_FIELD,
    {.name = "pattern",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .doc = "a regex that is searched for"},
    MUST_MATCH,
    PATTERN_FLAGS,
    {0},
};
static const struct block file_matches_regex_block = {.fields = file_matches_regex_fields};

static const struct field pattern_fields[] = {
    {.name = "pattern",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .doc = "a regex that is searched for"},
    MUST_MATCH,
    PATTERN_FLAGS,
    {0},
};
static const struct block pattern_block = {.title = "pattern", .fields = pattern_fields};
static const struct field file_check_fields[] = {
    PATH_FIELD,
    TEXTS("includes", "texts that must be in the file"),
    TEXTS("excludes", "texts that must not be"),
    {.name = "patterns",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &pattern_block,
     .standard = "[]",
     .doc = "regexes"},
    {0},
};
static const struct block file_check_block = {.fields = file_check_fields};

static const char *const operators[] = {"equals", "not_equals", "contains", "gt",     "gte", "lt",
                                        "lte",    "type",       "regex",    "exists", NULL};
static const struct field assertion_fields[] = {
    {.name = "expression",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "JMESPath into the document"},
    {.name = "operator",
     .types = TYPE_TEXT,
     .choices = operators,
     .standard = "equals",
     .doc = "how the result is compared"},
    {.name = "expected", .types = TYPE_ANY, .doc = "what it is compared with"},
    {0},
};
static const struct block assertion_block = {.title = "assertion", .fields = assertion_fields};
static const struct field json_check_fields[] = {
    PATH_FIELD,
    {.name = "json_schema", .types = TYPE_MAP, .doc = "a JSON Schema that the document must fit"},
    {.name = "assertions",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &assertion_block,
     .standard = "[]",
     .doc = "assertions on parts of the document"},
    {0},
};
static const struct block json_check_block = {.fields = json_check_fields};

static const char *const as_choices[] = {"grader", "candidate", NULL};
static const char *const match_choices[] = {"exact", "contains", "regex", NULL};
static const struct field run_command_fields[] = {
    {.name = "command",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "for a shell in a grading cell, the workspace as its folder; $TASK_DIR and "
            "$REFERENCE_DIR are set there"},
    {.name = "timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE | FIELD_ABOVE_MIN,
     .min = 0,
     .max = SECONDS_MAX,
     .doc = "seconds; without it the smaller of 30 and sandbox.limits.timeout"},
    {.name = "expected_exit_code",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = 255,
     .standard = "0",
     .doc = "the exit status that passes"},
    {.name = "expected_stdout", .types = TYPE_TEXT, .doc = "what it must print"},
    {.name = "stdout_match",
     .types = TYPE_TEXT,
     .choices = match_choices,
     .standard = "exact",
     .doc = "how that is compared, trailing white space aside"},
    {.name = "score_from_stdout",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "the first line printed is the score, 0 to 1"},
    {.name = "read_only",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "what the command does to the workspace is undone after it"},
    {.name = "as",
     .types = TYPE_TEXT,
     .choices = as_choices,
     .standard = "grader",
     .doc = "candidate: the whole command runs as as-candidate runs one, without the task's folder "
            "and the reference"},
    {.name = "fresh",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "the command begins with what the agent left, whatever commands before it made of "
            "that, and none after it sees what it does"},
    {0},
};
static const struct block run_command_block = {.fields = run_command_fields};

#define COMMAND_FIELDS                                                                             \
    {.name = "tool_name",                                                                          \
     .types = TYPE_TEXT,                                                                           \
     .flags = FIELD_NOT_EMPTY,                                                                     \
     .doc = "only calls of this tool: Bash, Read, Write, Edit ..."},                               \
        {.name = "command_pattern",                                                                \
         .types = TYPE_TEXT,                                                                       \
         .flags = FIELD_NOT_EMPTY,                                                                 \
         .doc = "a regex for the command, or for the JSON of other tools' parameters"},            \
        {.name = "exclude_pattern",                                                                \
         .types = TYPE_TEXT,                                                                       \
         .flags = FIELD_NOT_EMPTY,                                                                 \
         .doc = "calls that match this do not count"},                                             \
    {                                                                                              \
        .name = "require_success", .types = TYPE_BOOL, .standard = "false",                        \
        .doc = "only calls that succeeded count"                                                   \
    }

static const struct field command_executed_fields[] = {
    COMMAND_FIELDS,
    {.name = "min_count",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = COUNT_MAX,
     .standard = "1",
     .doc = "calls at least"},
    {.name = "max_count",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = COUNT_MAX,
     .doc = "calls at most"},
    {0},
};
static const struct block command_executed_block = {.fields = command_executed_fields};
static const struct field command_not_executed_fields[] = {COMMAND_FIELDS, {0}};
static const struct block command_not_executed_block = {.fields = command_not_executed_fields};

static const struct field skill_triggered_fields[] = {
    {.name = "skill_name",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "the skill, without its plugin"},
    {.name = "expected_skill",
     .types = TYPE_TEXT,
     .doc = "the skill that should be triggered: when it is another one, or empty, this one must "
            "not be; skill_name when not given"},
    {0},
};
static const struct block skill_triggered_block = {.fields = skill_triggered_fields};

/* --- kinds that are not built yet --------------------------------------------------------------
 */

#define JUDGE_FIELDS                                                                               \
    {.name = "prompt", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "the rubric"},          \
        TEXTS("files",                                                                             \
              "files that the judge reads: of the workspace, $TASK_DIR/, $REFERENCE_DIR/"),        \
        {.name = "include_reference",                                                              \
         .types = TYPE_BOOL,                                                                       \
         .standard = "true",                                                                       \
         .doc = "whether the judge reads the reference"},                                          \
        {.name = "include_agent_output",                                                           \
         .types = TYPE_BOOL,                                                                       \
         .standard = "false",                                                                      \
         .doc = "whether it reads the agent's last message"},                                      \
        {.name = "include_tool_calls",                                                             \
         .types = TYPE_BOOL,                                                                       \
         .standard = "false",                                                                      \
         .doc = "whether it reads the tool calls"},                                                \
        {.name = "include_dialog",                                                                 \
         .types = TYPE_BOOL,                                                                       \
         .standard = "false",                                                                      \
         .doc = "whether it reads the dialog"},                                                    \
        {.name = "model",                                                                          \
         .types = TYPE_TEXT,                                                                       \
         .flags = FIELD_NOT_EMPTY,                                                                 \
         .doc = "the judge's model: MODEL, or ROUTE/MODEL; when absent, that of closedbook.yaml, " \
                "else the default of the first key there is"},                                     \
        {.name = "temperature",                                                                    \
         .types = TYPE_REAL,                                                                       \
         .flags = FIELD_RANGE,                                                                     \
         .min = 0,                                                                                 \
         .max = 2,                                                                                 \
         .standard = "0",                                                                          \
         .doc = "its temperature; models that refuse one are sent none"},                          \
        COUNT_FIELD("max_tokens", "2000", "tokens of its answer at most"),                         \
        COUNT_FIELD("max_file_chars", "20000",                                                     \
                    "characters of each file at most; what is left out is said to the judge"),     \
        COUNT_FIELD("max_dialog_chars", "80000",                                                   \
                    "characters at most of the dialog, and of the tool calls")

#define COUNT_FIELD(field_name, value, text)                                                       \
    {                                                                                              \
        .name = (field_name), .types = TYPE_INT, .flags = FIELD_RANGE, .min = 1, .max = COUNT_MAX, \
        .standard = (value), .doc = (text)                                                         \
    }

static const char *const vote_choices[] = {"mean", "majority", NULL};
static const struct field llm_judge_fields[] = {
    JUDGE_FIELDS,
    {.name = "n",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 15,
     .standard = "1",
     .doc = "how often it is asked"},
    {.name = "votes",
     .types = TYPE_TEXT,
     .choices = vote_choices,
     .standard = "mean",
     .doc = "the score of several answers: their mean, or 1 when more than half of them reach "
            "pass_threshold, else 0"},
    {.name = "timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 0.1,
     .max = SECONDS_MAX,
     .standard = "300",
     .doc = "seconds for all answers, retries included"},
    {0},
};
static const struct block llm_judge_block = {.fields = llm_judge_fields};
static const struct field agent_judge_fields[] = {
    JUDGE_FIELDS,
    {.name = "agent", .types = TYPE_BLOCK, .block = &agent_block, .doc = "the judging agent"},
    {.name = "max_turns", .types = TYPE_INT, .standard = "50", .doc = "its turns"},
    {.name = "turn_timeout", .types = TYPE_REAL, .standard = "300", .doc = "seconds for it"},
    {0},
};
static const struct block agent_judge_block = {.fields = agent_judge_fields};

static const struct field cli_called_fields[] = {
    {.name = "log",
     .types = TYPE_TEXT,
     .form = FORM_INSIDE,
     .standard = "cli_mocks/calls.jsonl",
     .doc = "a file of the workspace: a JSON object a line, with the program as tool and its "
            "arguments as argv; the calls that record_cli kept stand at the default. Without it, "
            "or with a line that is none, the criterion fails"},
    {.name = "tool", .types = TYPE_TEXT, .doc = "the program; default: any"},
    {.name = "verb",
     .types = TYPE_TEXT,
     .doc = "the words that the arguments begin with, flags left aside; or verb_any_of"},
    TEXTS("verb_any_of", "several, of which one; or verb"),
    TEXTS("positional", "the arguments after the verb, in their places; more may follow"),
    {.name = "flags",
     .types = TYPE_MAP,
     .doc = "name: condition. A condition is a value, true (given), false (not given), or a map of "
            "equals, contains, matches_regex (with flags), any_of, present, absent, and aliases"},
    TEXTS("value_flags", "further flags whose value is the next argument"),
    {.name = "ignore_flags",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .doc = "flags that are left aside, with their values; default: output"},
    {.name = "min_count",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = COUNT_MAX,
     .doc = "calls at least; default: 1, and 0 beside max_count: 0"},
    {.name = "max_count",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = COUNT_MAX,
     .doc = "calls at most; default: any number"},
    {0},
};
static const struct block cli_called_block = {.fields = cli_called_fields};

static const struct field classification_match_fields[] = {
    PATH_FIELD,
    {.name = "expected_label", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "the label"},
    {.name = "allowed_labels",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "all labels"},
    {.name = "case_sensitive",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "whether case counts"},
    {0},
};
static const struct block classification_match_block = {.fields = classification_match_fields};

static const struct field commands_efficiency_fields[] = {
    {.name = "expected_commands",
     .types = TYPE_INT,
     .flags = FIELD_REQUIRED | FIELD_RANGE,
     .min = 1,
     .max = COUNT_MAX,
     .doc = "commands that a good run takes"},
    {0},
};
static const struct block commands_efficiency_block = {.fields = commands_efficiency_fields};

static const char *const comparison_choices[] = {"token", "line",       "structure",
                                                 "ast",   "complexity", NULL};
static const struct field reference_comparison_fields[] = {
    {.name = "agent_file",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_INSIDE,
     .doc = "a file of the workspace"},
    {.name = "reference_file",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_INSIDE,
     .doc = "a file of the reference"},
    {.name = "comparison_method",
     .types = TYPE_TEXT,
     .choices = comparison_choices,
     .standard = "ast",
     .doc = "how they are compared (docs/formats/similarity.md); ast: Python files by their syntax "
            "tree, with python3 in the grading cell, others as structure"},
    {.name = "similarity_threshold",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = 1,
     .standard = "0.8",
     .doc = "for the report only"},
    {0},
};
static const struct block reference_comparison_block = {.fields = reference_comparison_fields};

static const struct field harbor_tests_fields[] = {
    {.name = "tests", .types = TYPE_TEXT, .doc = "the folder with test.sh"},
    {0},
};
static const struct block harbor_tests_block = {.fields = harbor_tests_fields};

static const struct field exec_fields[] = {
    {.name = "params",
     .types = TYPE_MAP,
     .standard = "{}",
     .doc = "what the program is given; checked against the schema that it describes, in the "
            "grading cell"},
    {.name = "timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE | FIELD_ABOVE_MIN,
     .min = 0,
     .max = SECONDS_MAX,
     .doc = "seconds; without it the smaller of 30 and sandbox.limits.timeout"},
    {0},
};
static const struct block exec_block = {.fields = exec_fields};

static const struct kind criterion_kind_rows[] = {
    {.name = "file_exists", .block = &file_exists_block, .doc = "a file or folder is there"},
    {.name = "file_contains",
     .block = &file_contains_block,
     .doc = "mean of the ratio of includes found and of excludes not found"},
    {.name = "file_matches_regex",
     .block = &file_matches_regex_block,
     .doc = "a pattern is found in a file, or not"},
    {.name = "file_check",
     .block = &file_check_block,
     .doc = "mean over the kinds of check that are given"},
    {.name = "json_check",
     .block = &json_check_block,
     .doc = "mean of the schema (0 or 1) and the ratio of assertions that hold"},
    {.name = "run_command",
     .block = &run_command_block,
     .doc = "a command ends and prints as expected"},
    {.name = "command_executed",
     .block = &command_executed_block,
     .doc = "the agent called a tool: min(1, n / min_count), or 0 or 1 when bounded"},
    {.name = "command_not_executed",
     .block = &command_not_executed_block,
     .doc = "the agent never made such a call"},
    {.name = "skill_triggered",
     .block = &skill_triggered_block,
     .doc = "the agent used a skill, by a call of the Skill tool or by a path skills/NAME/ in a "
            "call's parameters, exactly when it should"},
    {.name = "llm_judge",
     .block = &llm_judge_block,
     .doc = "a model's verdict by a rubric, from 0 to 1; no verdict is an error of the criterion"},
    {.name = "agent_judge",
     .state = FIELD_LATER,
     .block = &agent_judge_block,
     .doc = "an agent judges, in a grading cell"},
    {.name = "cli_called", .block = &cli_called_block, .doc = "a mocked program was called so"},
    {.name = "classification_match",
     .block = &classification_match_block,
     .doc = "a file holds the expected label and nothing else; a file that is absent or empty "
            "counts as (none), any other text as (other)"},
    {.name = "commands_efficiency",
     .block = &commands_efficiency_block,
     .doc = "tool calls: expected / max(actual, expected)"},
    {.name = "reference_comparison",
     .block = &reference_comparison_block,
     .doc = "how like a file of the reference a file is"},
    {.name = "harbor_tests",
     .state = FIELD_LATER,
     .block = &harbor_tests_block,
     .doc = "tests/test.sh and its reward file"},
    {.name = "exec:",
     .is_prefix = true,
     .block = &exec_block,
     .doc = "a program of the suite judges, in a grading cell: PATH is relative to the task file "
            "and leads to an executable file of the suite (docs/formats/criterion.md)"},
    {.name = "program_stdout_equals",
     .state = FIELD_REMOVED,
     .hint = "use run_command with expected_stdout"},
    {.name = "code_lints",
     .state = FIELD_REMOVED,
     .hint = "use run_command with the linter's command"},
    {.name = "scored_command",
     .state = FIELD_REMOVED,
     .hint = "use run_command with score_from_stdout: true"},
    {.name = "pytest",
     .state = FIELD_REMOVED,
     .hint = "use run_command with 'python3 -m pytest PATH'"},
    {.name = "uipath_eval", .state = FIELD_REMOVED, .hint = "use run_command with that program"},
    {.name = "system_one_judge", .state = FIELD_REMOVED, .hint = "use llm_judge"},
    {0},
};
const struct kinds criterion_kinds = {
    .title = "criterion", .common = common_fields, .kinds = criterion_kind_rows};
