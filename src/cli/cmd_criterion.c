/* closedbook criterion test: whether a program keeps to the protocol of criteria. */
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/criterion_cases.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/task_flags.h"
#include "grade/exec.h"
#include "run/grade_cell.h"
#include "run/session.h"

#define CASE_TIMEOUT_MS 5000u
#define MESSAGE_BYTES ((size_t)1 << 20)

struct values {
    const char *allow_tier, *params, *suite_root;
    bool json;
};

static const struct cli_option rows[] = {
    ALLOW_TIER_ROW(struct values),
    {.kind = OPTION_TEXT,
     .long_name = "params",
     .value = "JSON",
     .offset = offsetof(struct values, params),
     .help = "parameters to try; default: the first of the schema's examples, else none"},
    {.kind = OPTION_TEXT,
     .long_name = "suite-root",
     .value = "DIR",
     .offset = offsetof(struct values, suite_root),
     .help = "the suite's folder; default: the program's own"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

struct tester {
    struct session session;
    struct view *view;
    struct monitor *monitor;
    struct private_stage stage;
    bool has_stage;
    char *folder, *name, *suite_root; /* of the program */
    struct exec_description is;
    json_t *params;
    json_t *results; /* [{case, passed, reason}] */
    size_t failures;
    const volatile int *stop;
};

static void tester_done(struct tester *tester)
{
    exec_description_done(&tester->is);
    json_freep(&tester->params);
    json_freep(&tester->results);
    if (tester->has_stage)
        private_stage_done(&tester->stage);
    if (tester->monitor != NULL)
        monitor_free(tester->monitor);
    view_free(tester->view);
    session_close(&tester->session);
    free(tester->folder);
    free(tester->name);
    free(tester->suite_root);
}

/* --- one case -------------------------------------------------------------------------------- */

/* reason NULL: passed. */
static void note(struct tester *tester, const char *name, const char *reason)
{
    json_t *result = json_object();

    json_put_text(result, "case", name);
    json_put_bool(result, "passed", reason == NULL);
    json_put(result, "reason",
             reason == NULL ? json_null() : json_text(reason, size_min(strlen(reason), 2000)));
    json_push(tester->results, result);
    tester->failures += reason != NULL;
}

static struct grade_cell *new_cell(struct tester *tester, const char *message)
{
    static const struct str_list no_variables;
    struct grade_cell_options options = {
        .monitor = tester->monitor,
        .view = tester->view,
        .private_stage = &tester->stage,
        .suite_variables = &no_variables,
        .tar_fd = -1,
        .changes_fd = -1,
        .events_fd = -1,
        .final_text = message,
        .dialog = "[]\n",
        .stop = tester->stop,
    };

    return grade_cell_new(&options);
}

static const char *variable(const struct grade_cell *cell, const char *name)
{
    const struct str_list *env = grade_cell_env(cell);
    size_t length = strlen(name);

    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
            return env->items[i] + length + 1;
    }
    return NULL;
}

/* How it ended, owned; NULL: with 0. */
static char *ending(const struct grade_command_result *result)
{
    size_t shown = size_min(result->err.size_bytes, 1000);
    const char *err = buf_text(&result->err);

    if (result->timed_out)
        return str_format("it ran longer than %u s", CASE_TIMEOUT_MS / 1000);
    if (result->exit_code < 0)
        return str_format("it was ended by signal %d: %.*s", result->term_signal, (int)shown, err);
    if (result->exit_code != 0)
        return str_format("exit code %d, expected 0: %.*s", result->exit_code, (int)shown, err);
    return NULL;
}

static int run_one(struct grade_cell *cell, const char *text, const struct buf *input,
                   struct grade_command_result *ret, struct error **err)
{
    struct grade_workspace workspace = grade_cell_workspace(cell);
    struct grade_command command = {.command = text,
                                    .timeout_ms = CASE_TIMEOUT_MS,
                                    .output_max_bytes = EXEC_ANSWER_BYTES_MAX,
                                    .input = input == NULL ? NULL : buf_text(input),
                                    .input_bytes = input == NULL ? 0 : input->size_bytes};

    return workspace.run(workspace.context, &command, ret, err);
}

struct asked {
    const struct criterion_case *one;
    struct grade_cell *cell;
    const char *message;
};

static void write_request(const struct tester *tester, const struct asked *asked, struct buf *ret)
{
    const struct criterion_case *one = asked->one;

    exec_request_write(
        ret, &(struct exec_request){
                 .protocol = one->other_protocol ? "closedbook/criterion/999999" : EXEC_PROTOCOL,
                 .params = tester->params,
                 .workspace = "/workspace",
                 .task_dir = variable(asked->cell, "TASK_DIR"),
                 .final_message = asked->message,
                 .unknown_member = one->unknown_member,
             });
}

/* *ret_reason: what was wrong, owned; NULL: nothing. */
static int ask(const struct tester *tester, const struct asked *asked, double *ret_score,
               char **ret_reason, struct error **err)
{
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    scoped(verdict_done) struct verdict verdict = {0};
    scoped(buf_done) struct buf request = {0};
    scoped(error_freep) struct error *wrong = NULL;
    scoped(mem_freep) char *command = exec_command(tester->name, NULL);

    write_request(tester, asked, &request);
    int r = run_one(asked->cell, command, &request, &result, err);

    if (r < 0)
        return r;
    *ret_reason = ending(&result);
    if (asked->one->other_protocol) {
        bool refused = result.exit_code > 0 && !result.timed_out;

        free(*ret_reason);
        *ret_reason = refused ? NULL : str_dup("it did not end with a status other than 0");
        return 0;
    }
    if (*ret_reason == NULL &&
        exec_answer_parse(buf_text(&result.out), result.out.size_bytes, &verdict, &wrong) < 0)
        *ret_reason = str_dup(error_message(wrong));
    *ret_score = verdict.score;
    return 0;
}

static int set_up(const struct tester *tester, const struct criterion_case *one,
                  struct grade_cell *cell, struct error **err)
{
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    scoped(buf_done) struct buf setup = {0};

    criterion_case_setup(one, tester->params, &setup);
    return setup.size_bytes == 0 ? 0 : run_one(cell, buf_text(&setup), NULL, &result, err);
}

static int try_case(struct tester *tester, const struct criterion_case *one, struct error **err)
{
    scoped(buf_done) struct buf message = {0};
    scoped(mem_freep) char *reason = NULL;
    double score = 0, again = 0;

    buf_text_append(&message, one->message == NULL ? "" : one->message);
    while (one->is_long && message.size_bytes < MESSAGE_BYTES)
        buf_text_append(&message, one->message);
    scoped(grade_cell_freep) struct grade_cell *cell = new_cell(tester, buf_text(&message));
    const struct asked asked = {one, cell, buf_text(&message)};
    int r = set_up(tester, one, cell, err);

    if (r == 0)
        r = ask(tester, &asked, &score, &reason, err);
    if (r == 0 && one->twice && reason == NULL)
        r = ask(tester, &asked, &again, &reason, err);
    if (r < 0)
        return error_wrap(err, r, "%s", one->name);
    if (one->twice && reason == NULL && (score < again || score > again))
        reason = str_format("%g, then %g", score, again);
    note(tester, one->name, reason);
    return 0;
}

/* --- what it says of itself ------------------------------------------------------------------ */

static int describe(struct tester *tester, struct error **err)
{
    scoped(grade_cell_freep) struct grade_cell *cell = new_cell(tester, "");
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    scoped(mem_freep) char *command = exec_command(tester->name, "--describe");
    scoped(mem_freep) char *from_root = str_format("cd / && %s", command);
    scoped(mem_freep) char *reason = NULL;
    scoped(error_freep) struct error *wrong = NULL;
    int r = run_one(cell, from_root, NULL, &result, err);

    if (r < 0)
        return r;
    reason = ending(&result);
    if (reason == NULL && exec_description_parse(buf_text(&result.out), result.out.size_bytes,
                                                 &tester->is, &wrong) < 0)
        reason = str_dup(error_message(wrong));
    note(tester, "describes itself", reason);
    return 0;
}

static int choose_params(struct tester *tester, const char *given, struct error **err)
{
    scoped(error_freep) struct error *wrong = NULL;
    json_t *schema = json_object_get(tester->is.document, "params");
    json_t *example = json_array_get(json_object_get(schema, "examples"), 0);
    int r = 0;

    if (given != NULL)
        r = json_parse("--params", given, strlen(given), &tester->params, &wrong);
    else
        tester->params = example != NULL ? json_incref(example) : json_object();
    if (r < 0)
        return error_set(err, ERROR_USER, "--params: JSON expected, found '%s'", given);
    scoped(mem_freep) char *reason = NULL;

    if (exec_params_check(&tester->is, tester->params, &wrong) < 0)
        reason = str_format("%s%s", error_message(wrong),
                            given == NULL ? " (give --params, or an example in the schema)" : "");
    note(tester, "takes the parameters", reason);
    return 0;
}

static int try_all(struct tester *tester, const struct values *values, struct error **err)
{
    int r = describe(tester, err);

    if (r == 0 && tester->failures == 0)
        r = choose_params(tester, values->params, err);
    for (size_t i = 0; i < criterion_case_count && r == 0 && *tester->stop == 0; i++) {
        if (tester->params == NULL || json_array_size(tester->results) < 2 ||
            (i == 0 && tester->failures > 0))
            break;
        r = try_case(tester, &criterion_cases[i], err);
    }
    return r;
}

/* --- the command ----------------------------------------------------------------------------- */

static int open_tester(struct tester *tester, const struct values *values, struct error **err)
{
    struct session_options options = {.cells = true, .allow_tier = values->allow_tier};
    scoped(mem_freep) char *run_id = random_hex(8);
    struct monitor *control = NULL;
    int r = session_open(&options, &tester->session, err);

    if (r == 0)
        r = session_open_store(&tester->session, run_id, err);
    if (r == 0)
        r = session_monitor(&tester->session, CELL_NATIVE, &control, err);
    if (r == 0)
        r = view_build_empty(tester->session.store, &tester->view, err);
    if (r == 0)
        r = monitor_connect(control, &tester->monitor, err);
    if (r < 0)
        return r;
    const struct private_source source = {.suite_root = tester->suite_root,
                                          .task_dir = tester->folder};

    r = private_stage_make(tester->session.store, control, &tester->session.reader, &source,
                           &tester->stage, err);
    tester->has_stage = r == 0;
    return r;
}

static int print_results(const struct tester *tester, const struct values *values,
                         struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    const json_t *result;
    size_t i;

    if (values->json)
        return output_json(tester->results, err);
    json_array_foreach (tester->results, i, result) {
        const char *reason = json_get_text(result, "reason");

        buf_format(&text, "%-8s%s\n", reason == NULL ? "ok" : "not ok",
                   json_get_text(result, "case"));
        if (reason == NULL)
            continue;
        buf_text_append(&text, "        ");
        term_quote(&text, reason, strlen(reason), TERM_ONE_LINE);
        buf_char(&text, '\n');
    }
    return print_out(&text, err);
}

static char *absolute(const char *path)
{
    scoped(mem_freep) char *cwd = getcwd(NULL, 0);
    scoped(mem_freep) char *joined = path_join(cwd == NULL ? "/" : cwd, path);

    return path_normal(joined);
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(tester_done) struct tester tester = {.results = json_array(), .stop = interrupt_watch()};

    if (arguments->operand_count != 2 || strcmp(arguments->operands[0], "test") != 0)
        return error_set(err, ERROR_USER, "'criterion test PROGRAM' expected");
    scoped(mem_freep) char *program = absolute(arguments->operands[1]);

    tester.folder = path_dir(program);
    tester.name = str_dup(path_base(program));
    tester.suite_root =
        values->suite_root == NULL ? str_dup(tester.folder) : absolute(values->suite_root);
    int r = open_tester(&tester, values, err);

    if (r == 0)
        r = try_all(&tester, values, err);
    if (r == 0)
        r = print_results(&tester, values, err);
    if (r < 0)
        return r;
    return *tester.stop != 0 ? 130 : tester.failures > 0 ? 1 : 0;
}

static const struct values defaults = {0};

const struct command command_criterion = {
    .name = "criterion",
    .summary = "does a program keep to the protocol of criteria? (type: exec:PATH)",
    .operands = "test PROGRAM",
    .description = "Runs the program in grading cells, over workspaces and messages that an agent "
                   "could leave.\nExit status 1 when a case fails.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = 2,
    .run = run,
};
