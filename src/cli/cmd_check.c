#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/check_run.h"
#include "cli/check_scripts.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/print.h"
#include "task/task_private.h"

enum claim_index { CLAIM_FOLDER };

#define ORACLE_RUNS 3
#define MUTANTS 5
#define MUTANTS_MAX 100

struct values {
    struct task_flags tasks;
    const char *allow_tier;
    uint64_t oracle_runs, mutants, parallel;
    bool json;
};

static const struct cli_option rows[] = {
    ALLOW_TIER_ROW(struct values),
    {.kind = OPTION_NUMBER,
     .long_name = "oracle-runs",
     .value = "N",
     .offset = offsetof(struct values, oracle_runs),
     .min = 1,
     .max = 1000,
     .help = "trials of the oracle, which must all pass; default: 3"},
    {.kind = OPTION_NUMBER,
     .long_name = "mutants",
     .value = "N",
     .offset = offsetof(struct values, mutants),
     .max = MUTANTS_MAX,
     .help = "mutations of the reference at most; default: 5"},
    {.kind = OPTION_NUMBER,
     .short_name = 'j',
     .long_name = "jobs",
     .value = "N",
     .offset = offsetof(struct values, parallel),
     .min = 1,
     .max = POOL_PARALLEL_MAX,
     .help = "trials of the oracle at a time"},
    {.kind = OPTION_LIST,
     .long_name = "only",
     .value = "ID",
     .offset = offsetof(struct values, tasks.only),
     .help = "only this task (repeatable)"},
    {.kind = OPTION_TEXT,
     .long_name = "suite-root",
     .value = "DIR",
     .offset = offsetof(struct values, tasks.suite_root),
     .help = "the suite's folder, when it is not the one with .git"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

/* What is known of one task; texts owned. */
struct verdicts {
    const struct task *task;
    struct checked nop, oracle;
    char *no_oracle, *no_mutants; /* why; NULL: there is one, there are some */
    size_t mutants, killed, forgers, held;
    struct str_list survivors, passed_forgers; /* for people */
    bool has_oracle, could_not_tell;
};

static void verdicts_done(struct verdicts *verdicts)
{
    checked_done(&verdicts->nop);
    checked_done(&verdicts->oracle);
    free(verdicts->no_oracle);
    free(verdicts->no_mutants);
    str_list_done(&verdicts->survivors);
    str_list_done(&verdicts->passed_forgers);
}

static bool is_stopped(const struct checker *checker)
{
    return checker->interrupted || *checker->stop != 0;
}

static const struct task_private *private_of(const struct task *task)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(task, &public_half, &private_half);
    return private_half;
}

static int read_reference(struct checker *checker, struct verdicts *verdicts, struct reference *ret,
                          struct error **err)
{
    const struct task_private *half = private_of(verdicts->task);
    bool is_file = half->reference_file != NULL;
    const char *path = is_file ? half->reference_file : half->reference_dir;

    if (path == NULL) {
        verdicts->no_oracle = str_dup("the task has no reference");
        return 0;
    }
    int r = reference_read(&checker->session.reader, path, is_file, ret, err);

    if (r == 0 && ret->is_prose)
        verdicts->no_oracle = str_dup("the reference is prose");
    return r;
}

/* The unchanged copy as a script agent is the control: mutants say something only when it passes.
 */
static int try_mutants(struct checker *checker, struct verdicts *verdicts,
                       const struct reference *reference, size_t max, struct error **err)
{
    scoped(mutations_done) struct mutations mutations = {0};
    scoped(buf_done) struct buf program = {0};
    scoped(checked_done) struct checked control = {0};
    int r = 0;

    mutations_make(reference, max, &mutations);
    if (mutations.count > 0) {
        script_of_reference(reference, NULL, &program);
        r = check_run_script(checker, verdicts->task, &program, &control, err);
    }
    if (r < 0)
        return r;
    if (mutations.count == 0 || control.passed == 0) {
        verdicts->no_mutants =
            mutations.count == 0 ? str_dup("nothing in the reference can be changed")
                                 : str_format("the reference does not pass as an agent: %s",
                                              control.reason == NULL ? "stopped" : control.reason);
        return 0;
    }
    for (size_t i = 0; i < mutations.count && r == 0 && !is_stopped(checker); i++) {
        scoped(checked_done) struct checked checked = {0};

        buf_clear(&program);
        script_of_reference(reference, &mutations.items[i], &program);
        r = check_run_script(checker, verdicts->task, &program, &checked, err);
        verdicts->mutants++;
        verdicts->killed += checked.passed == 0;
        if (checked.passed > 0)
            str_list_add(&verdicts->survivors, mutations.items[i].what);
    }
    return r;
}

/* Names that a forger would think of: those of the reference and of criteria. */
static void take_names(const struct task *task, const struct reference *reference,
                       struct str_list *ret)
{
    const struct task_private *half = private_of(task);

    for (size_t i = 0; i < reference->count; i++)
        str_list_add(ret, reference->files[i].path);
    for (size_t i = 0; i < half->criterion_count; i++) {
        const char *path = json_get_text(half->criteria[i].params, "path");

        if (path != NULL && strpbrk(path, "*?[") == NULL)
            str_list_add(ret, path);
    }
}

static int try_forgers(struct checker *checker, struct verdicts *verdicts,
                       const struct reference *reference, struct error **err)
{
    struct str_list names = {0};
    int r = 0;

    take_names(verdicts->task, reference, &names);
    for (size_t i = 0; i < FORGERS && r == 0 && !is_stopped(checker); i++) {
        scoped(buf_done) struct buf program = {0};
        scoped(checked_done) struct checked checked = {0};

        script_of_forger(i, &names, &program);
        r = check_run_script(checker, verdicts->task, &program, &checked, err);
        verdicts->forgers++;
        verdicts->held += checked.passed == 0;
        verdicts->could_not_tell =
            verdicts->could_not_tell || (checked.errors > 0 && !checked.agent_errors);
        if (checked.passed > 0)
            str_list_add(&verdicts->passed_forgers, forger_name(i));
    }
    str_list_done(&names);
    return r;
}

static int check_task(struct checker *checker, const struct values *values,
                      struct verdicts *verdicts, struct error **err)
{
    scoped(reference_done) struct reference reference = {0};
    int r = read_reference(checker, verdicts, &reference, err);

    verdicts->has_oracle = verdicts->no_oracle == NULL;
    if (r == 0)
        r = check_run(checker, verdicts->task, "nop", 1, &verdicts->nop, err);
    if (r == 0 && verdicts->has_oracle && !is_stopped(checker))
        r = check_run(checker, verdicts->task, "oracle", (unsigned)values->oracle_runs,
                      &verdicts->oracle, err);
    verdicts->could_not_tell = verdicts->nop.errors > 0 && !verdicts->nop.agent_errors;
    if (r == 0 && verdicts->oracle.passed > 0 && values->mutants > 0 && !is_stopped(checker))
        r = try_mutants(checker, verdicts, &reference, values->mutants, err);
    if (r == 0 && !is_stopped(checker))
        r = try_forgers(checker, verdicts, &reference, err);
    return r;
}

/* --- what came of it ---------------------------------------------------------------------------*/

static const char *oracle_word(const struct verdicts *verdicts)
{
    if (!verdicts->has_oracle)
        return "no oracle";
    if (verdicts->oracle.passed == verdicts->oracle.trials && verdicts->oracle.trials > 0)
        return "passes";
    return verdicts->oracle.passed == 0 ? "fails" : "flaky";
}

static bool is_sound(const struct verdicts *verdicts)
{
    const struct checked *oracle = &verdicts->oracle;

    return verdicts->nop.passed == 0 && verdicts->held == verdicts->forgers &&
           (!verdicts->has_oracle || (oracle->trials > 0 && oracle->passed == oracle->trials)) &&
           (verdicts->mutants == 0 || verdicts->killed > 0);
}

static void append_line(struct buf *text, const char *label, const char *detail)
{
    buf_format(text, "    %s: ", label);
    term_quote(text, detail, strlen(detail), TERM_ONE_LINE);
    buf_char(text, '\n');
}

static void show(const struct verdicts *verdicts, struct buf *text)
{
    const struct checked *oracle = &verdicts->oracle;
    const char *word = verdicts->could_not_tell ? "cannot tell"
                       : is_sound(verdicts)     ? "sound"
                                                : "UNSOUND";

    buf_format(text, "%-32s %-11s nop %-6s oracle %s", task_key(verdicts->task), word,
               verdicts->nop.passed > 0   ? "PASSES"
               : verdicts->nop.errors > 0 ? "error"
                                          : "fails",
               oracle_word(verdicts));
    if (verdicts->has_oracle)
        buf_format(text, " %u/%u", oracle->passed, oracle->trials);
    buf_format(text, "  mutants %zu/%zu killed  forgers %zu/%zu held\n", verdicts->killed,
               verdicts->mutants, verdicts->held, verdicts->forgers);
    if (verdicts->no_oracle != NULL)
        append_line(text, "no oracle", verdicts->no_oracle);
    if (verdicts->nop.errors > 0)
        append_line(text, "nop", verdicts->nop.reason);
    if (verdicts->has_oracle && oracle->reason != NULL)
        append_line(text, "oracle", oracle->reason);
    if (verdicts->no_mutants != NULL)
        append_line(text, "no mutants", verdicts->no_mutants);
    for (size_t i = 0; i < verdicts->survivors.count; i++)
        append_line(text, "survives", verdicts->survivors.items[i]);
    for (size_t i = 0; i < verdicts->passed_forgers.count; i++)
        append_line(text, "passes by forging", verdicts->passed_forgers.items[i]);
}

static json_t *list_json(const struct str_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_push(array, json_text(list->items[i], strlen(list->items[i])));
    return array;
}

static json_t *verdicts_json(const struct verdicts *verdicts)
{
    json_t *json = json_object(), *oracle = json_object(), *mutants = json_object();
    json_t *forgers = json_object();

    json_put_text(json, "task", task_key(verdicts->task));
    json_put_bool(json, "sound", is_sound(verdicts) && !verdicts->could_not_tell);
    json_put_bool(json, "nop_passes", verdicts->nop.passed > 0);
    json_put_text(oracle, "verdict", oracle_word(verdicts));
    json_put_int(oracle, "passed", verdicts->oracle.passed);
    json_put_int(oracle, "trials", verdicts->oracle.trials);
    json_put(oracle, "reason",
             json_text_or_null(verdicts->no_oracle != NULL ? verdicts->no_oracle
                                                           : verdicts->oracle.reason));
    json_put(json, "oracle", oracle);
    json_put_int(mutants, "killed", (int64_t)verdicts->killed);
    json_put_int(mutants, "total", (int64_t)verdicts->mutants);
    json_put(mutants, "survivors", list_json(&verdicts->survivors));
    json_put(mutants, "reason", json_text_or_null(verdicts->no_mutants));
    json_put(json, "mutants", mutants);
    json_put_int(forgers, "held", (int64_t)verdicts->held);
    json_put_int(forgers, "total", (int64_t)verdicts->forgers);
    json_put(forgers, "passed", list_json(&verdicts->passed_forgers));
    json_put(json, "forgers", forgers);
    return json;
}

static int check_all(struct checker *checker, const struct arguments *arguments,
                     const struct task_set *set, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(json_freep) json_t *list = json_array();
    int r = 0, status = 0;

    for (size_t i = 0; i < set->count && r == 0 && !is_stopped(checker); i++) {
        scoped(verdicts_done) struct verdicts verdicts = {.task = set->tasks[i]};
        scoped(buf_done) struct buf text = {0};

        r = check_task(checker, values, &verdicts, err);
        if (r < 0 || is_stopped(checker))
            continue;
        if (verdicts.could_not_tell)
            status = 3;
        else if (!is_sound(&verdicts) && status == 0)
            status = 1;
        show(&verdicts, &text);
        json_push(list, verdicts_json(&verdicts));
        if (!values->json && !(arguments->is_quiet && is_sound(&verdicts)))
            r = print_out(&text, err);
    }
    if (r == 0 && values->json)
        r = output_json(list, err);
    return r < 0 ? r : is_stopped(checker) ? 130 : status;
}

static int load_and_check(struct checker *checker, const struct arguments *arguments,
                          struct task_inputs *inputs, struct error **err)
{
    scoped(task_set_done) struct task_set set = {0};
    int r = task_inputs_load(inputs, &checker->session.reader, arguments->verbosity > 0, &set, err);

    for (size_t i = 0; i < set.count && r == 0; i++) {
        const struct task_public *public_half = NULL;
        const struct task_private *private_half = NULL;

        task_split(set.tasks[i], &public_half, &private_half);
        r = session_check_tier(&checker->session, private_half->task_id, public_half, err);
        if (r == 0)
            r = session_check_limits(&checker->session, private_half->task_id, public_half, err);
    }
    if (r == 0)
        r = session_open_store(&checker->session, checker->run_id, err);
    if (r == 0)
        r = claim_make(checker->session.claim, CLAIM_FOLDER, &checker->dir_fd, err);
    return r < 0 ? r : check_all(checker, arguments, &set, err);
}

static void checker_done(struct checker *checker)
{
    scoped(error_freep) struct error *error = NULL;

    if (checker->dir_fd >= 0 && fs_remove_tree(AT_FDCWD, checker->path, &error) < 0)
        print_error(error);
    fd_closep(&checker->dir_fd);
    session_close(&checker->session);
    free(checker->path);
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    const char *temporary = getenv("TMPDIR");
    scoped(mem_freep) char *run_id = run_make_id();
    scoped(mem_freep) char *random = random_hex(16);
    scoped(task_inputs_done) struct task_inputs inputs = {0};
    scoped(checker_done) struct checker checker = {
        .inputs = &inputs,
        .stop = interrupt_watch(),
        .run_id = run_id,
        .path = str_format("%s/closedbook-check-%s",
                           temporary != NULL && temporary[0] == '/' ? temporary : "/tmp", random),
        .dir_fd = -1,
        .parallel = (unsigned)values->parallel,
    };
    struct session_options options = {
        .cells = true,
        .allow_tier = values->allow_tier,
        .claims = {[CLAIM_FOLDER] = {CLAIM_DIR, checker.path}},
        .claim_count = 1,
    };

    task_inputs_init(&values->tasks, arguments->operands, arguments->operand_count, &inputs);
    inputs.overrides.agent_optional = true;
    inputs.overrides.model_optional = true;
    int r = session_open(&options, &checker.session, err);

    return r < 0 ? r : load_and_check(&checker, arguments, &inputs, err);
}

static const struct values defaults = {
    .oracle_runs = ORACLE_RUNS, .mutants = MUTANTS, .parallel = 1};

const struct command command_check = {
    .name = "check",
    .summary = "is a task sound? runs nop, the oracle, mutants of it and forgers",
    .operands = "[PATH]...",
    .description = "Sound: nop and every forger fail, the oracle always passes, and a mutant is\n"
                   "noticed. Exit status 1 when a task is not, 3 when that cannot be told.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = SIZE_MAX,
    .run = run,
};
