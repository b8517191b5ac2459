/* What is said to a criterion's program and what it says, as JSON. */
#include "grade/exec.h"

#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/value.h"

#define NAME_BYTES_MAX 200

/* --- its description ------------------------------------------------------------------------- */

void exec_description_done(struct exec_description *description)
{
    json_freep(&description->document);
    schema_free(description->params);
    str_list_done(&description->programs);
    *description = (struct exec_description){0};
}

/* One JSON object and nothing else. */
static int parse_object(const char *text, size_t size, json_t **ret, struct error **err)
{
    scoped(json_freep) json_t *value = NULL;
    scoped(error_freep) struct error *wrong = NULL;

    if (size == 0)
        return error_set(err, ERROR_TASK, "it printed nothing, one JSON object was expected");
    if (value_parse(text, size, &value, &wrong) < 0)
        return error_set(err, ERROR_TASK, "it printed no JSON object: %s", error_message(wrong));
    if (!json_is_object(value))
        return error_set(err, ERROR_TASK, "it printed %s, one JSON object was expected",
                         value_type_name(value));
    *ret = take(value);
    return 0;
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(name, names[i]))
            return true;
    }
    return false;
}

static int check_members(const json_t *object, const char *const *names, size_t count,
                         const char *of, struct error **err)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        (void)value; /* only the names matter */
        if (!is_one_of(key, names, count))
            return error_set(err, ERROR_TASK, "%s: '%.60s' is not known in " EXEC_PROTOCOL, of,
                             key);
    }
    return 0;
}

static int read_programs(const json_t *list, struct str_list *ret, struct error **err)
{
    if (list == NULL)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > EXEC_PROGRAMS_MAX)
        return error_set(err, ERROR_TASK, "needs.programs: a list of at most %d names expected",
                         EXEC_PROGRAMS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL ||
            strlen(name) > NAME_BYTES_MAX)
            return error_set(err, ERROR_TASK, "needs.programs[%zu]: a program's name expected", i);
        str_list_add(ret, name);
    }
    return 0;
}

static int read_needs(const json_t *needs, struct exec_description *description, struct error **err)
{
    static const char *const names[] = {"programs", "reference"};
    const json_t *reference = json_object_get(needs, "reference");

    if (needs == NULL)
        return 0;
    if (!json_is_object(needs))
        return error_set(err, ERROR_TASK, "needs: an object expected");
    int r = check_members(needs, names, ARRAY_SIZE(names), "needs", err);

    if (r == 0 && reference != NULL && !json_is_boolean(reference))
        r = error_set(err, ERROR_TASK, "needs.reference: true or false expected");
    description->reference = json_is_true(reference);
    return r < 0 ? r
                 : read_programs(json_object_get(needs, "programs"), &description->programs, err);
}

int exec_description_parse(const char *text, size_t size, struct exec_description *ret,
                           struct error **err)
{
    static const char *const names[] = {"protocol", "params", "needs"};
    scoped(exec_description_done) struct exec_description description = {0};
    int r = parse_object(text, size, &description.document, err);

    if (r < 0)
        return r;
    const char *protocol = json_get_text(description.document, "protocol");
    json_t *params = json_object_get(description.document, "params");

    if (!str_equal(protocol, EXEC_PROTOCOL))
        return error_set(err, ERROR_TASK, "protocol: '" EXEC_PROTOCOL "' expected, found %s%.60s%s",
                         protocol == NULL ? "" : "'", protocol == NULL ? "none" : protocol,
                         protocol == NULL ? "" : "'");
    if (params == NULL)
        return error_set(err, ERROR_TASK,
                         "params: the JSON Schema of the parameters expected, "
                         "found nothing; {} takes any");
    r = check_members(description.document, names, ARRAY_SIZE(names), "description", err);
    if (r < 0)
        return r;
    r = schema_compile(params, &description.params, err);
    if (r < 0)
        return error_wrap(err, r, "params");
    r = read_needs(json_object_get(description.document, "needs"), &description, err);
    if (r < 0)
        return r;
    *ret = description;
    description = (struct exec_description){0};
    return 0;
}

int exec_params_check(const struct exec_description *description, json_t *params,
                      struct error **err)
{
    scoped(json_freep) json_t *empty = json_object();
    scoped(buf_done) struct buf complaints = {0};
    bool valid = false;
    int r = schema_validate(description->params, params == NULL ? empty : params, &valid,
                            &complaints, err);

    if (r < 0)
        return error_wrap(err, r, "params");
    size_t size = complaints.size_bytes;

    while (size > 0 && complaints.data[size - 1] == '\n')
        size--;
    return valid ? 0
                 : error_set(err, ERROR_TASK, "params: %.*s", (int)size_min(size, 4000),
                             buf_text(&complaints));
}

/* --- the request ----------------------------------------------------------------------------- */

/* Lines, one event each after the first, which is the head of the file, as items of a list. */
static void write_events(struct buf *buf, const struct event_log *events)
{
    scoped(buf_done) struct buf lines = {0};
    const char *line, *end;

    if (events != NULL)
        event_log_write(&lines, events);
    line = buf_text(&lines);
    line += strcspn(line, "\n");
    line += *line == '\n';
    buf_char(buf, '[');
    for (size_t i = 0; (end = strchr(line, '\n')) != NULL; i++, line = end + 1) {
        if (i > 0)
            buf_char(buf, ',');
        buf_append(buf, line, (size_t)(end - line));
    }
    buf_char(buf, ']');
}

static void write_member(struct buf *buf, const char *name, json_t *value)
{
    struct budget budget = {.left = UINT64_MAX};

    buf_format(buf, ",\"%s\":", name);
    value_write(buf, value, VALUE_COMPACT, &budget);
    json_decref(value);
}

void exec_request_write(struct buf *buf, const struct exec_request *request)
{
    const char *final = request->final_message == NULL ? "" : request->final_message;

    buf_format(buf, "{\"protocol\":\"%s\"", request->protocol);
    write_member(buf, "params",
                 request->params == NULL ? json_object() : json_deep_copy(request->params));
    write_member(buf, "workspace", json_text_or_null(request->workspace));
    write_member(buf, "task_dir", json_text_or_null(request->task_dir));
    write_member(buf, "reference_dir", json_text_or_null(request->reference_dir));
    buf_text_append(buf, ",\"events\":");
    write_events(buf, request->events);
    write_member(buf, "final_message", json_text(final, strlen(final)));
    write_member(buf, "dialog",
                 request->dialog == NULL ? json_array() : json_deep_copy(request->dialog));
    if (request->unknown_member)
        write_member(buf, "x_of_a_later_version", json_pack("{s:[i]}", "any", 1));
    buf_text_append(buf, "}\n");
}

/* --- the answer ------------------------------------------------------------------------------ */

static int read_metrics(json_t *metrics, json_t **ret, struct error **err)
{
    const char *key;
    json_t *value;

    if (metrics == NULL || json_is_null(metrics))
        return 0;
    if (!json_is_object(metrics) || json_object_size(metrics) > EXEC_METRICS_MAX)
        return error_set(err, ERROR_TASK, "metrics: an object of at most %d numbers expected",
                         EXEC_METRICS_MAX);
    json_object_foreach (metrics, key, value) {
        if (!json_is_number(value))
            return error_set(err, ERROR_TASK, "metrics: '%.60s': a number expected", key);
    }
    *ret = json_object_size(metrics) == 0 ? NULL : json_incref(metrics);
    return 0;
}

static int read_label(const json_t *label, struct verdict *verdict, struct error **err)
{
    static const char *const names[] = {"observed", "expected"};
    const char *observed = json_get_text(label, "observed");
    const char *expected = json_get_text(label, "expected");

    if (label == NULL || json_is_null(label))
        return 0;
    if (observed == NULL || expected == NULL)
        return error_set(err, ERROR_TASK, "label: the texts 'observed' and 'expected' expected");
    verdict_label(verdict, observed, expected);
    return check_members(label, names, ARRAY_SIZE(names), "label", err);
}

int exec_answer_parse(const char *text, size_t size, struct verdict *ret, struct error **err)
{
    static const char *const names[] = {"score", "details", "metrics", "label"};
    scoped(json_freep) json_t *answer = NULL;
    scoped(json_freep) json_t *metrics = NULL;
    scoped(buf_done) struct buf details = DETAILS_INIT;
    int r = parse_object(text, size, &answer, err);

    if (r == 0)
        r = check_members(answer, names, ARRAY_SIZE(names), "answer", err);
    if (r < 0)
        return r;
    const json_t *score = json_object_get(answer, "score");
    const json_t *said = json_object_get(answer, "details");

    if (!json_is_number(score) || !(json_number_value(score) >= 0 && json_number_value(score) <= 1))
        return error_set(err, ERROR_TASK, "score: a number from 0 to 1 expected");
    if (said != NULL && !json_is_null(said) && !json_is_string(said))
        return error_set(err, ERROR_TASK, "details: a text expected");
    r = read_metrics(json_object_get(answer, "metrics"), &metrics, err);
    if (r == 0)
        r = read_label(json_object_get(answer, "label"), ret, err);
    if (r < 0)
        return r;
    buf_append(&details, json_is_string(said) ? json_string_value(said) : "",
               json_string_length(said));
    verdict_score(ret, json_number_value(score), &details);
    ret->metrics = take(metrics);
    return 0;
}

/* --- starting it ----------------------------------------------------------------------------- */

void exec_quote(struct buf *buf, const char *word)
{
    buf_char(buf, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            buf_text_append(buf, "'\\''");
        else
            buf_char(buf, *word);
    }
    buf_char(buf, '\'');
}

char *exec_command(const char *path, const char *arguments)
{
    scoped(buf_done) struct buf command = {0};

    buf_text_append(&command, "exec \"$TASK_DIR\"/");
    exec_quote(&command, path);
    if (arguments != NULL)
        buf_format(&command, " %s", arguments);
    return buf_take(&command);
}
