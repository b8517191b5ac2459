/* The tables of a task's top level, of run_limits, and of what stands beside the agent and sandbox.
 */
#include "task/schema.h"

#define SECONDS_MAX (7.0 * 24 * 3600)
#define COUNT_MAX 1e9

static const struct field reference_fields[] = {
    {.name = "directory",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "folder with the solution, relative to the file; never in the agent's cell"},
    {.name = "file",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc =
         "legacy: one file, loaded as a folder of that file, with a warning (--strict: an error)"},
    {.name = "code",
     .types = TYPE_ANY,
     .state = FIELD_REMOVED,
     .hint = "put the text in a file of a folder and name the folder as reference.directory",
     .doc = "removed: use directory"},
    {0},
};
static const struct block reference_block = {.title = "reference", .fields = reference_fields};

static const char *const stop_choices[] = {"stop", "continue", NULL};
static const struct field stop_early_fields[] = {
    {.name = "on_pass",
     .types = TYPE_TEXT,
     .choices = stop_choices,
     .standard = "continue",
     .doc = "what a pass of this criterion does to the run"},
    {.name = "decide_within",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = COUNT_MAX,
     .doc = "tool calls after which an undecided criterion has failed"},
    {0},
};
const struct block stop_early_block = {.title = "stop_early", .fields = stop_early_fields};

static const struct field run_limits_fields[] = {
    {.name = "max_turns",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = COUNT_MAX,
     .doc = "model calls of the agent's main thread"},
    {.name = "expected_turns",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = COUNT_MAX,
     .doc = "soft: more turns than this are remarked on in the report"},
    {.name = "task_timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 30,
     .max = SECONDS_MAX,
     .doc = "seconds for the whole trial; then the status is TIMEOUT"},
    {.name = "turn_timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 10,
     .max = SECONDS_MAX,
     .doc = "seconds for one prompt to the agent; then the status is TIMEOUT"},
    {.name = "max_input_tokens",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e15,
     .doc =
         "input tokens that the agent's model may read; then the status is TOKEN_BUDGET_EXCEEDED. "
         "The broker counts them: an agent without it has none to use"},
    {.name = "max_output_tokens",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e15,
     .doc = "output tokens, likewise"},
    {.name = "max_total_tokens",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e15,
     .doc = "both together, likewise"},
    {.name = "max_usd",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE | FIELD_ABOVE_MIN,
     .min = 0,
     .max = 1e9,
     .doc = "US dollars at the prices of share/models; then the status is COST_BUDGET_EXCEEDED. A "
            "model without a price there is an error"},
    {.name = "count_cached_input",
     .types = TYPE_BOOL,
     .doc = "whether input that was read from a cache counts as input"},
    {.name = "count_cache_creation",
     .types = TYPE_BOOL,
     .doc = "whether what a cache was written with counts as input"},
    {.name = "stop_early",
     .types = TYPE_BOOL,
     .doc = "false switches early stop off; true is an error, as criteria are armed one by one"},
    {.name = "stop_early_gate_threshold",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = 1,
     .standard = "1",
     .doc =
         "part of the armed criteria's weight that passes after an early stop; above 0 where one "
         "is armed"},
    {0},
};
const struct block run_limits_block = {
    .title = "run_limits", .fields = run_limits_fields, .layered = true};

static const struct field dataset_fields[] = {
    {.name = "rows",
     .types = TYPE_LIST,
     .items = TYPE_MAP,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the rows; or paths"},
    {.name = "paths",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "JSON Lines files, relative to the file, one after the other; or rows"},
    {.name = "id_field",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .standard = "id",
     .doc = "which field names a row: the task is then TASK_ID/ROW_ID"},
    {.name = "sample_per_stratum",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e9,
     .doc = "rows taken of each stratum; all unless given"},
    {.name = "stratify_field",
     .types = TYPE_TEXT,
     .standard = "expected_skill",
     .doc = "which field makes the strata"},
    {.name = "sample_seed",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 0,
     .max = 4294967295.0,
     .doc = "makes the sample repeatable; another one for each run unless given"},
    {0},
};
const struct block dataset_block = {.title = "dataset", .fields = dataset_fields};

#define STEP_FIELDS                                                                                \
    {.name = "command",                                                                            \
     .types = TYPE_TEXT,                                                                           \
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,                                                    \
     .doc = "for a shell, with the workspace as working directory"},                               \
    {                                                                                              \
        .name = "timeout", .types = TYPE_REAL, .flags = FIELD_RANGE, .min = 1, .max = 300,         \
        .standard = "30", .doc = "seconds"                                                         \
    }

static const char *const runs_in_choices[] = {"host", "agent", NULL};
static const struct field pre_run_fields[] = {
    STEP_FIELDS,
    {.name = "fail_on_error",
     .types = TYPE_BOOL,
     .standard = "true",
     .doc = "whether a failure ends the trial as ERROR"},
    {.name = "runs_in",
     .types = TYPE_TEXT,
     .choices = runs_in_choices,
     .standard = "host",
     .doc =
         "host: in a cell of its own that sees the suite; agent: in the agent's, after all steps "
         "of the host, with nothing but what the agent gets"},
    {0},
};
const struct block pre_run_block = {.title = "step", .fields = pre_run_fields};

static const struct field post_run_fields[] = {STEP_FIELDS, {0}};
const struct block post_run_block = {.title = "step", .fields = post_run_fields};

static const struct field leak_ok_fields[] = {
    {.name = "file",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_INSIDE,
     .doc = "a pattern: of a file that the agent gets or leaves, as the search names it, or of a "
            "private one, from the suite's root"},
    {.name = "reason",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "why it may be; recorded with each finding that it allows"},
    {0},
};
const struct block leak_ok_block = {.title = "leak", .fields = leak_ok_fields};

static const char *const os_choices[] = {"linux", "macos", "windows", NULL};
static const struct field requires_fields[] = {
    {.name = "closedbook",
     .types = TYPE_TEXT,
     .form = FORM_VERSIONS,
     .doc = "versions of this program"},
    {.name = "os", .types = TYPE_TEXT, .choices = os_choices, .doc = "the host's system"},
    {0},
};
const struct block requires_block = {.title = "requires", .fields = requires_fields};

static const struct field task_fields[] = {
    {.name = "task_id",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_TASK_ID,
     .doc = "the name of the task, unique among those loaded"},
    {.name = "description",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "one line for people"},
    {.name = "initial_prompt",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "what the agent is asked; exactly one of this and initial_prompt_file, none for agent "
            "type none"},
    {.name = "initial_prompt_file",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the same from a file, relative to the task file"},
    {.name = "tags",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .form = FORM_TAG,
     .standard = "[]",
     .doc = "words to select by"},
    {.name = "skip",
     .types = TYPE_BOOL | TYPE_TEXT,
     .doc = "true or a reason: the task is listed as skipped and not run"},
    {.name = "agent", .types = TYPE_BLOCK, .block = &agent_block, .doc = "who works on it"},
    {.name = "sandbox", .types = TYPE_BLOCK, .block = &sandbox_block, .doc = "where"},
    {.name = "success_criteria",
     .types = TYPE_LIST,
     .items = TYPE_UNION,
     .kinds = &criterion_kinds,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "what must hold afterwards"},
    {.name = "run_limits", .types = TYPE_BLOCK, .block = &run_limits_block, .doc = "how long"},
    {.name = "reference",
     .types = TYPE_BLOCK,
     .block = &reference_block,
     .doc = "the solution, for graders only"},
    {.name = "reference_dir",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the same as reference.directory"},
    {.name = "input_dir",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "folder whose content the agent gets, relative to the file"},
    {.name = "input_mount",
     .types = TYPE_TEXT,
     .form = FORM_INSIDE,
     .standard = ".",
     .doc = "where in the workspace input_dir goes"},
    {.name = "requires",
     .types = TYPE_BLOCK,
     .block = &requires_block,
     .doc = "versions and hosts that can run it; others skip it, and say why"},
    {.name = "pre_run",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &pre_run_block,
     .doc = "commands before the agent starts, which see the suite; what they leave in the "
            "workspace, deletions included, is what the agent gets"},
    {.name = "post_run",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &post_run_block,
     .doc = "commands after grading, whatever came out; they decide nothing"},
    {.name = "leak_ok",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &leak_ok_block,
     .doc = "findings of the search for private text that are meant: both sides have a generated "
            "file, say"},
    {.name = "dataset",
     .types = TYPE_BLOCK,
     .block = &dataset_block,
     .doc = "one task for each row of data; ${row.x} in initial_prompt and success_criteria"},
    {.name = "simulation",
     .types = TYPE_BLOCK,
     .block = &simulation_block,
     .doc = "a simulated user who answers the agent"},
    {.name = "grading",
     .types = TYPE_BLOCK,
     .block = &grading_block,
     .doc = "what grading cells get beyond the defaults"},
    {.name = "expected_commands",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = COUNT_MAX,
     .state = FIELD_UNUSED,
     .doc = "commands that a good run takes"},
    {.name = "checker_context",
     .types = TYPE_MAP,
     .state = FIELD_UNUSED,
     .doc = "settings for judges, by name space"},
    {.name = "max_iterations",
     .types = TYPE_ANY,
     .state = FIELD_LEGACY,
     .hint = "legacy, has no effect: run_limits.max_turns limits a run",
     .doc = "legacy, no effect"},
    {.name = "llm_reviewer",
     .types = TYPE_ANY,
     .state = FIELD_LEGACY,
     .hint = "legacy, has no effect: a criterion of type llm_judge replaces it",
     .doc = "legacy, no effect"},
    {0},
};
const struct block task_block = {.title = "task", .fields = task_fields, .unknown_is_fine = true};

/* -D reaches these and nothing else: what a task asks and how it is graded is not the operator's.
 */
static const struct field set_fields[] = {
    {.name = "agent", .types = TYPE_BLOCK, .block = &agent_block, .doc = "who works on it"},
    {.name = "run_limits", .types = TYPE_BLOCK, .block = &run_limits_block, .doc = "how long"},
    {.name = "sandbox", .types = TYPE_BLOCK, .block = &sandbox_block, .doc = "where"},
    {0},
};
const struct block set_block = {.title = "what -D may set (agent, run_limits, sandbox)",
                                .fields = set_fields};

static const struct field config_fields[] = {
    {.name = "agent",
     .types = TYPE_BLOCK | TYPE_TEXT,
     .block = &agent_block,
     .doc = "the agent of tasks that name none: its type, or a block"},
    {.name = "model",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the model of tasks that name none"},
    {.name = "driver",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the driver of tasks that name none"},
    {.name = "limits",
     .types = TYPE_BLOCK,
     .block = &limits_block,
     .doc = "defaults of sandbox.limits"},
    {.name = "run_limits",
     .types = TYPE_BLOCK,
     .block = &run_limits_block,
     .doc = "defaults of run_limits"},
    {.name = "sandbox", .types = TYPE_BLOCK, .block = &sandbox_block, .doc = "defaults of sandbox"},
    {.name = "experiment",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the experiment that a run without -e uses: a name or a path"},
    {.name = "judge",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "the model of judges that name none: MODEL, or ROUTE/MODEL"},
    {.name = "simulator",
     .types = TYPE_TEXT | TYPE_MAP,
     .state = FIELD_LATER,
     .doc = "model of simulated users"},
    {.name = "expose",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .state = FIELD_LATER,
     .doc = "host paths for agents, read-only"},
    {.name = "host_state",
     .types = TYPE_LIST,
     .items = TYPE_MAP,
     .state = FIELD_LATER,
     .doc = "throwaway copies of host state"},
    {.name = "allowlist",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .state = FIELD_LATER,
     .doc = "hosts that agents may reach"},
    {.name = "routes",
     .types = TYPE_LIST,
     .items = TYPE_MAP,
     .doc = "of config.yaml only: model endpoints, each {name, api, base_url, key}; api: "
            "anthropic, openai-responses, openai-chat, gemini; key: what its key is called in the "
            "environment, .env or keys.yaml, null for none"},
    {.name = "signing_key",
     .types = TYPE_TEXT,
     .state = FIELD_LATER,
     .doc = "path of the key that signs records"},
    {0},
};
const struct block config_block = {.title = "configuration", .fields = config_fields};
