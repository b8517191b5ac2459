#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/call_pattern.h"
#include "grade/internal.h"

/* Where the calls of recorded programs are, when a criterion names no log. */
#define LOG_DEFAULT "cli_mocks/calls.jsonl"
#define LINE_BYTES_MAX ((size_t)4 << 20)
#define REGEXES_MAX 64
#define EXAMPLE_BYTES_MAX 120
#define SEEN_MAX 8 /* calls that are told of where those that are meant are missing */

/* --- configuration --------------------------------------------------------------------------- */

struct checking {
    const struct complaints *complaints;
};

static void say(void *context, const char *place, const char *message)
{
    const struct checking *checking = context;

    complain(checking->complaints, place, "%s", message);
}

static const char *log_of(const json_t *params)
{
    const char *log = json_get_text(params, "log");

    return log == NULL ? LOG_DEFAULT : log;
}

/* Counted from 1, but for a criterion that only sets an upper bound of 0. */
static int64_t least_of(const json_t *params)
{
    bool is_guard = json_get_int(params, "max_count", -1) == 0;

    return json_get_int(params, "min_count", is_guard ? 0 : 1);
}

void cli_called_check(const struct criterion *criterion, const struct complaints *complaints)
{
    const json_t *params = criterion->params;
    struct checking checking = {complaints};
    const struct call_complaints patterns = {.say = say, .context = &checking};
    json_t *flags = json_object_get(params, "flags");
    int64_t most = json_get_int(params, "max_count", -1);
    const char *key;
    json_t *predicate;

    call_pattern_check(params, &patterns);
    json_object_foreach (flags, key, predicate) {
        scoped(mem_freep) char *place = str_format("/flags/%s", key);
        scoped(error_freep) struct error *problem = NULL;
        unsigned regex_flags = 0;

        if (json_get_text(predicate, "matches_regex") == NULL)
            continue;
        if (regex_flags_parse(json_object_get(predicate, "flags"), &regex_flags, &problem) < 0)
            complain_of(complaints, place, problem);
        else
            config_pattern(predicate, place, "matches_regex", regex_flags, complaints);
    }
    if (most >= 0 && most < least_of(params))
        complain(complaints, "/max_count", "%lld is below min_count, %lld", (long long)most,
                 (long long)least_of(params));
}

/* --- patterns of flags ------------------------------------------------------------------------ */

/* Each pattern is compiled once for all lines. */
struct regexes {
    struct {
        const json_t *predicate;
        struct regex *regex;
    } items[REGEXES_MAX];
    size_t count;
    bool limit; /* one takes too long on some value */
};

static void regexes_done(struct regexes *regexes)
{
    for (size_t i = 0; i < regexes->count; i++)
        regex_free(regexes->items[i].regex);
}

static int regex_of(struct regexes *regexes, const json_t *predicate, struct regex **ret,
                    struct error **err)
{
    unsigned flags = 0;

    for (size_t i = 0; i < regexes->count; i++) {
        *ret = regexes->items[i].regex;
        if (regexes->items[i].predicate == predicate)
            return 0;
    }
    if (regexes->count == REGEXES_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d patterns of flags", REGEXES_MAX);
    int r = regex_flags_parse(json_object_get(predicate, "flags"), &flags, err);

    if (r == 0)
        r = regex_compile(json_get_text(predicate, "matches_regex"), flags, ret, err);
    if (r < 0)
        return r;
    regexes->items[regexes->count].predicate = predicate;
    regexes->items[regexes->count++].regex = *ret;
    return 0;
}

static int search(void *context, const json_t *predicate, const char *text, struct error **err)
{
    struct regexes *regexes = context;
    struct regex *regex = NULL;
    int r = regex_of(regexes, predicate, &regex, err);

    if (r < 0)
        return r;
    enum regex_outcome outcome = regex_search(regex, text, strlen(text));

    regexes->limit |= outcome == REGEX_LIMIT;
    return outcome == REGEX_MATCH;
}

/* --- the log ---------------------------------------------------------------------------------- */

struct counting {
    const json_t *params;
    const char *tool; /* NULL: any */
    struct regexes regexes;
    size_t lines, calls;
    struct buf examples;
    struct buf seen; /* the first calls that are not meant */
    size_t seen_count;
};

static void counting_done(struct counting *counting)
{
    regexes_done(&counting->regexes);
    buf_done(&counting->examples);
    buf_done(&counting->seen);
}

/* Its arguments; borrowed from the line. False: the line tells of no call. */
static bool args_of(const json_t *line, const char *tool, const char ***ret, size_t *ret_count)
{
    const json_t *list = json_object_get(line, "argv");
    size_t count = json_array_size(list);
    size_t i;
    json_t *item;

    if (!json_is_array(list) || tool == NULL)
        return false;
    const char **args = mem_new(count + 1, sizeof(*args));

    *ret = args;
    *ret_count = count;
    json_array_foreach (list, i, item) {
        if (!json_is_string(item))
            return false;
        args[i] = json_string_value(item);
    }
    /* Some mocks write what they were called by as well. Our own log, which has the folder, does
     * not: there "npm npm" is a call with one argument. */
    if (count > 0 && json_object_get(line, "cwd") == NULL &&
        strcmp(path_base(args[0]), tool) == 0) {
        memmove(args, args + 1, (count - 1) * sizeof(*args));
        (*ret_count)--;
    }
    return true;
}

static void add_call(struct buf *to, const char *word, const char *tool,
                     const struct call_args *args)
{
    scoped(buf_done) struct buf text = {0};

    buf_text_append(&text, tool);
    for (size_t i = 0; i < args->count; i++)
        buf_format(&text, " %s", args->items[i]);
    buf_text_append(to, word);
    details_quote(to, buf_text(&text), text.size_bytes, EXAMPLE_BYTES_MAX);
    buf_char(to, '\n');
}

/* False: the line makes no sense. */
static int count_line(struct counting *counting, const char *text, size_t size, bool *ret_sense,
                      struct error **err)
{
    const struct call_regex regex = {.search = search, .context = &counting->regexes};
    scoped(json_freep) json_t *line = NULL;
    scoped(mem_freep) const char **args = NULL;
    size_t count = 0;

    *ret_sense = false;
    if (size > LINE_BYTES_MAX || json_parse("a line of the log", text, size, &line, NULL) < 0)
        return 0;
    const char *tool = json_get_text(line, "tool");

    *ret_sense = args_of(line, tool, &args, &count);
    if (!*ret_sense)
        return 0;
    const struct call_args call = {args, count};
    bool is_other = counting->tool != NULL && strcmp(counting->tool, tool) != 0;
    int r = is_other ? 0 : call_matches(counting->params, &call, &regex, err);

    if (r == 1 && counting->calls++ == 0)
        add_call(&counting->examples, "for example: ", tool, &call);
    if (r == 0 && counting->seen_count++ < SEEN_MAX)
        add_call(&counting->seen, "seen: ", tool, &call);
    return r < 0 ? r : 0;
}

/* *ret_bad: the number of the first line that is none of a log, 0: all are. */
static int count_lines(struct counting *counting, const struct buf *log, size_t *ret_bad,
                       struct error **err)
{
    const char *text = buf_text(log);
    const char *end = text + log->size_bytes;

    *ret_bad = 0;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((newline == NULL ? end : newline) - text);
        bool sense = true;
        int r = 0;

        counting->lines++;
        if (size > 0)
            r = count_line(counting, text, size, &sense, err);
        if (r < 0)
            return r;
        if (!sense) {
            *ret_bad = counting->lines;
            return 0;
        }
        text += size + 1;
    }
    return 0;
}

static void tell(const struct counting *counting, struct buf *details)
{
    int64_t least = least_of(counting->params);
    int64_t most = json_get_int(counting->params, "max_count", -1);

    buf_format(details, "%zu of %zu calls, expected ", counting->calls, counting->lines);
    if (most < 0)
        buf_format(details, "at least %lld\n", (long long)least);
    else if (least == most)
        buf_format(details, "%lld\n", (long long)least);
    else
        buf_format(details, "%lld to %lld\n", (long long)least, (long long)most);
    buf_append(details, buf_text(&counting->examples), counting->examples.size_bytes);
    if ((int64_t)counting->calls >= least)
        return;
    /* Too few: what was called instead. */
    buf_append(details, buf_text(&counting->seen), counting->seen.size_bytes);
    if (counting->seen_count > SEEN_MAX)
        buf_format(details, "and %zu more\n", counting->seen_count - SEEN_MAX);
}

int cli_called_evaluate(const struct criterion *criterion, const struct grade_input *input,
                        struct verdict *ret, struct error **err)
{
    const json_t *params = criterion->params;
    const char *log = log_of(params);
    scoped(buf_done) struct buf details = DETAILS_INIT;
    scoped(grade_file_done) struct grade_file file = {0};
    scoped(counting_done) struct counting counting = {.params = params,
                                                      .tool = json_get_text(params, "tool")};
    int64_t most = json_get_int(params, "max_count", -1);
    size_t bad = 0;
    int r = input->workspace->read(input->workspace->context, log, true, &file, err);

    if (r < 0)
        return r;
    /* Without a log nothing is known, not even that there was no call. */
    if (file.state != GRADE_FILE_OK) {
        content_explain(log, &file, &details);
        verdict_score(ret, 0, &details);
        return 0;
    }
    r = count_lines(&counting, &file.content, &bad, err);
    if (r < 0)
        return r;
    if (counting.regexes.limit) {
        buf_text_append(&details, "a pattern takes too long on one of the calls\n");
        verdict_agent_error(ret, &details);
        return 0;
    }
    if (bad != 0) {
        buf_format(&details, "line %zu of '%s' is no call: {\"tool\", \"argv\"} expected\n", bad,
                   log);
        verdict_score(ret, 0, &details);
        return 0;
    }
    tell(&counting, &details);
    verdict_score(ret,
                  (int64_t)counting.calls >= least_of(params) &&
                          (most < 0 || (int64_t)counting.calls <= most)
                      ? 1
                      : 0,
                  &details);
    return 0;
}
