/* Blocks that the language has and this version does not build: for the manual and the JSON Schema.
 */
#include "task/schema.h"

static const struct field requires_fields[] = {
    {.name = "closedbook", .types = TYPE_TEXT, .state = FIELD_LATER, .doc = "versions: \">= 1.2\""},
    {.name = "os", .types = TYPE_TEXT, .state = FIELD_LATER, .doc = "linux"},
    {0},
};
const struct block requires_block = {.title = "requires", .fields = requires_fields};

static const char *const runs_in_choices[] = {"host", "agent", NULL};
static const struct field pre_run_fields[] = {
    {.name = "command", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "for a shell"},
    {.name = "timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 300,
     .standard = "30",
     .doc = "seconds"},
    {.name = "fail_on_error",
     .types = TYPE_BOOL,
     .standard = "true",
     .doc = "whether a failure ends the trial as ERROR"},
    {.name = "runs_in",
     .types = TYPE_TEXT,
     .choices = runs_in_choices,
     .standard = "host",
     .doc = "a harness cell, or the agent's"},
    {0},
};
const struct block pre_run_block = {.title = "step", .fields = pre_run_fields};

static const struct field dataset_fields[] = {
    {.name = "rows", .types = TYPE_LIST, .items = TYPE_MAP, .doc = "the rows; or paths"},
    {.name = "paths", .types = TYPE_LIST, .items = TYPE_TEXT, .doc = "JSON Lines files; or rows"},
    {.name = "id_field", .types = TYPE_TEXT, .standard = "id", .doc = "which field names a row"},
    {.name = "sample_per_stratum", .types = TYPE_INT, .doc = "rows taken of each stratum"},
    {.name = "stratify_field",
     .types = TYPE_TEXT,
     .standard = "expected_skill",
     .doc = "which field makes the strata"},
    {.name = "sample_seed", .types = TYPE_INT, .doc = "makes the sample repeatable"},
    {0},
};
const struct block dataset_block = {.title = "dataset", .fields = dataset_fields};

static const char *const check_choices[] = {"end_of_dialog", "every_turn", "both", NULL};
static const struct field simulation_fields[] = {
    {.name = "enabled", .types = TYPE_BOOL, .standard = "false", .doc = "whether there is one"},
    {.name = "persona", .types = TYPE_TEXT, .doc = "who the user is"},
    {.name = "goal", .types = TYPE_TEXT, .doc = "what the user wants"},
    {.name = "constraints",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .standard = "[]",
     .doc = "what the user must keep to"},
    {.name = "max_turns",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 100,
     .standard = "8",
     .doc = "exchanges at most"},
    {.name = "stop_token", .types = TYPE_TEXT, .standard = "<<<END>>>", .doc = "ends the dialog"},
    {.name = "stop_on_criteria_pass",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "whether passing criteria end it"},
    {.name = "check_criteria",
     .types = TYPE_TEXT,
     .choices = check_choices,
     .standard = "end_of_dialog",
     .doc = "when criteria are looked at"},
    {.name = "n_trials",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 100,
     .standard = "1",
     .doc = "trials"},
    {.name = "max_total_tokens", .types = TYPE_INT, .doc = "budget of the dialog"},
    {.name = "model", .types = TYPE_TEXT, .doc = "the simulator's model"},
    {.name = "script", .types = TYPE_LIST, .items = TYPE_TEXT, .doc = "what the user says, fixed"},
    {.name = "share_description",
     .types = TYPE_BOOL,
     .standard = "true",
     .doc = "whether the simulator reads the description"},
    {0},
};
const struct block simulation_block = {.title = "simulation", .fields = simulation_fields};

static const struct field grading_fields[] = {
    {.name = "network",
     .types = TYPE_TEXT,
     .state = FIELD_LATER,
     .idle = "none",
     .doc = "as sandbox.network"},
    {.name = "env_passthrough",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .state = FIELD_LATER,
     .doc = "as sandbox.env_passthrough"},
    {.name = "host_state",
     .types = TYPE_LIST,
     .items = TYPE_MAP,
     .state = FIELD_LATER,
     .doc = "as sandbox.host_state"},
    {.name = "expose",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .standard = "[]",
     .doc = "as sandbox.expose"},
    {.name = "image", .types = TYPE_TEXT, .state = FIELD_LATER, .doc = "as sandbox.image"},
    {.name = "rootfs",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "as sandbox.rootfs; the agent's is not taken over"},
    {.name = "python", .types = TYPE_MAP, .state = FIELD_LATER, .doc = "as sandbox.python"},
    {.name = "node", .types = TYPE_MAP, .state = FIELD_LATER, .doc = "as sandbox.node"},
    {.name = "limits",
     .types = TYPE_BLOCK,
     .block = &limits_block,
     .state = FIELD_LATER,
     .doc = "as sandbox.limits"},
    {0},
};
const struct block grading_block = {.title = "grading", .fields = grading_fields};
