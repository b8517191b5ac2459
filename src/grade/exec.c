/* The criterion that is a program of its own: asks what it is, then what it says. */
#include "grade/exec.h"

#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"

#define SHOWN_BYTES_MAX 4000

void exec_check(const struct criterion *criterion, const struct complaints *complaints)
{
    (void)criterion; /* its parameters are its own: the grading cell asks the program for them */
    (void)complaints;
}

static void show(struct buf *details, const char *name, const struct buf *stream)
{
    size_t shown = size_min(stream->size_bytes, SHOWN_BYTES_MAX);

    if (shown == 0)
        return;
    buf_format(details, "\n%s:\n", name);
    buf_append(details, buf_text(stream), shown);
}

/* How it ended, when that is not by exit 0. */
static bool is_ended_well(const struct grade_command_result *result, uint64_t timeout_ms,
                          struct buf *details)
{
    if (result->timed_out)
        buf_format(details, "it ran longer than %.3g s", (double)timeout_ms / 1000.0);
    else if (result->exit_code < 0)
        buf_format(details, "it was ended by signal %d", result->term_signal);
    else if (result->exit_code != 0)
        buf_format(details, "exit code %d, expected 0", result->exit_code);
    else if (result->out_cut)
        buf_format(details, "it printed more than %zu bytes", result->out.size_bytes);
    else
        return true;
    show(details, "stderr", &result->err);
    return false;
}

/* --- what it is ------------------------------------------------------------------------------ */

/* Where things stand in the cell, as its environment says: texts of printed. */
struct places {
    struct buf printed; /* the three, each with its end, then the description */
    const char *workspace, *task_dir, *reference_dir;
    const char *rest;
    size_t rest_bytes;
};

static bool read_places(struct places *places)
{
    const char *text = buf_text(&places->printed), *end = text + places->printed.size_bytes;
    const char **const names[] = {&places->workspace, &places->task_dir, &places->reference_dir};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (memchr(text, '\0', (size_t)(end - text)) == NULL)
            return false;
        *names[i] = text[0] == '\0' ? NULL : text;
        text += strlen(text) + 1;
    }
    places->rest = text;
    places->rest_bytes = (size_t)(end - text);
    return true;
}

/* From '/', where nothing is the agent's. */
static int ask_description(const struct grade_input *input, const char *path, struct places *places,
                           struct exec_description *ret, struct buf *details, struct error **err)
{
    scoped(mem_freep) char *start = exec_command(path, "--describe");
    scoped(mem_freep) char *text = str_format(
        "printf '%%s\\0' \"$PWD\" \"$TASK_DIR\" \"${REFERENCE_DIR-}\" && cd / && %s", start);
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    scoped(error_freep) struct error *wrong = NULL;
    struct grade_command command = {.command = text,
                                    .timeout_ms = EXEC_DESCRIBE_TIMEOUT_MS,
                                    .output_max_bytes = EXEC_DESCRIPTION_BYTES_MAX};
    int r = input->workspace->run(input->workspace->context, &command, &result, err);

    if (r < 0)
        return r;
    buf_text_append(details, "--describe: ");
    if (!is_ended_well(&result, EXEC_DESCRIBE_TIMEOUT_MS, details))
        return 0;
    places->printed = result.out;
    result.out = (struct buf){0};
    if (!read_places(places))
        return error_set(err, ERROR_BUG, "the grading cell does not say where things stand");
    if (exec_description_parse(places->rest, places->rest_bytes, ret, &wrong) < 0) {
        buf_format(details, "%s\nstdout:\n", error_message(wrong));
        buf_append(details, places->rest, size_min(places->rest_bytes, SHOWN_BYTES_MAX));
        return 0;
    }
    buf_clear(details);
    return 0;
}

/* The first program that it needs and the cell has not; details says so. */
static int find_programs(const struct grade_input *input, const struct exec_description *is,
                         struct buf *details, struct error **err)
{
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    scoped(buf_done) struct buf text = {0};
    int r;

    if (is->programs.count == 0)
        return 0;
    buf_text_append(&text, "cd / && for program in");
    for (size_t i = 0; i < is->programs.count; i++) {
        buf_char(&text, ' ');
        exec_quote(&text, is->programs.items[i]);
    }
    buf_text_append(&text, "; do command -v -- \"$program\" >/dev/null || "
                           "{ printf %s \"$program\"; exit 1; }; done");
    struct grade_command command = {.command = buf_text(&text),
                                    .timeout_ms = EXEC_DESCRIBE_TIMEOUT_MS,
                                    .output_max_bytes = 4096};

    r = input->workspace->run(input->workspace->context, &command, &result, err);
    if (r == 0 && result.exit_code != 0)
        buf_format(details, "it needs the program '%s', which the grading cell has not",
                   buf_text(&result.out));
    return r;
}

/* Anything in details: it cannot be asked, and the agent has no part in that. */
static int prepare(const struct criterion *criterion, const struct grade_input *input,
                   struct places *places, struct buf *details, struct error **err)
{
    scoped(exec_description_done) struct exec_description is = {0};
    scoped(error_freep) struct error *wrong = NULL;
    int r = ask_description(input, json_get_text(criterion->params, "program"), places, &is,
                            details, err);

    if (r < 0 || details->size_bytes > 0)
        return r;
    if (exec_params_check(&is, json_object_get(criterion->params, "params"), &wrong) < 0)
        buf_text_append(details, error_message(wrong));
    else if (is.reference && places->reference_dir == NULL)
        buf_text_append(details, "it needs a reference, and the task has none");
    else
        return find_programs(input, &is, details, err);
    return 0;
}

/* --- what it says ---------------------------------------------------------------------------- */

static void write_request(const struct criterion *criterion, const struct grade_input *input,
                          const struct places *places, struct buf *ret)
{
    scoped(json_freep) json_t *dialog = NULL;

    /* Ours, so that it is JSON. */
    if (input->dialog != NULL &&
        json_parse("dialog", input->dialog, strlen(input->dialog), &dialog, NULL) < 0)
        dialog = NULL;
    exec_request_write(
        ret, &(struct exec_request){.protocol = EXEC_PROTOCOL,
                                    .params = json_object_get(criterion->params, "params"),
                                    .workspace = places->workspace,
                                    .task_dir = places->task_dir,
                                    .reference_dir = places->reference_dir,
                                    .final_message = input->final_message,
                                    .dialog = dialog,
                                    .events = input->events});
}

static void keep_output(struct verdict *verdict, const struct grade_command_result *result)
{
    verdict->output.max_bytes = GRADE_OUTPUT_BYTES_MAX;
    buf_format(&verdict->output, "--- stdout, %zu bytes ---\n", result->out.size_bytes);
    buf_append(&verdict->output, buf_text(&result->out), result->out.size_bytes);
    buf_format(&verdict->output, "\n--- stderr, %zu bytes ---\n", result->err.size_bytes);
    buf_append(&verdict->output, buf_text(&result->err), result->err.size_bytes);
}

/*
 * It said what it is a moment ago, away from the agent's files: what goes wrong now may be the
 * doing of those files, so that it counts as not passed.
 */
static int ask(const struct criterion *criterion, const struct grade_input *input,
               const struct places *places, struct verdict *ret, struct error **err)
{
    double seconds = json_get_real(criterion->params, "timeout", 0);
    scoped(mem_freep) char *text = exec_command(json_get_text(criterion->params, "program"), NULL);
    scoped(buf_done) struct buf request = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    scoped(grade_command_result_done) struct grade_command_result result = {0};
    scoped(error_freep) struct error *wrong = NULL;

    write_request(criterion, input, places, &request);
    struct grade_command command = {
        .command = text,
        .timeout_ms = seconds > 0 ? (uint64_t)(seconds * 1000.0) + 1 : input->command_timeout_ms,
        .output_max_bytes = EXEC_ANSWER_BYTES_MAX,
        .input = buf_text(&request),
        .input_bytes = request.size_bytes,
    };
    int r = input->workspace->run(input->workspace->context, &command, &result, err);

    if (r < 0)
        return r;
    keep_output(ret, &result);
    if (!is_ended_well(&result, command.timeout_ms, &details)) {
        verdict_agent_error(ret, &details);
    } else if (exec_answer_parse(buf_text(&result.out), result.out.size_bytes, ret, &wrong) < 0) {
        buf_text_append(&details, error_message(wrong));
        show(&details, "stdout", &result.out);
        show(&details, "stderr", &result.err);
        verdict_agent_error(ret, &details);
    }
    return 0;
}

int exec_evaluate(const struct criterion *criterion, const struct grade_input *input,
                  struct verdict *ret, struct error **err)
{
    scoped(buf_done) struct buf details = DETAILS_INIT;
    struct places places = {0};
    int r = prepare(criterion, input, &places, &details, err);

    if (r == 0 && details.size_bytes == 0)
        r = ask(criterion, input, &places, ret, err);
    else if (r == 0)
        verdict_error(ret, &details);
    buf_done(&places.printed);
    return r;
}
