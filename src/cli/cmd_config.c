#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "run/session.h"

struct values {
    bool json;
    const char *suite_root;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .long_name = "suite-root",
     .value = "DIR",
     .offset = offsetof(struct values, suite_root),
     .help = "the folder whose closedbook.yaml counts; default: the working directory"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

static void list_values(struct buf *text, const json_t *json)
{
    size_t i;
    json_t *item;

    json_array_foreach (json, i, item) {
        scoped(buf_done) struct buf line = {0};
        const char *file = json_get_text(item, "file");

        buf_format(&line, "%-36s ", json_get_text(item, "path"));
        json_write_line(&line, json_object_get(item, "value"));
        buf_format(&line, "  (%s", json_get_text(item, "source"));
        if (file != NULL)
            buf_format(&line, " %s:%jd", file, (intmax_t)json_get_int(item, "line", 0));
        buf_char(&line, ')');
        term_quote(text, line.data, line.size_bytes, TERM_ONE_LINE);
        buf_char(text, '\n');
    }
}

static int show(const struct values *values, const struct session *session, struct error **err)
{
    scoped(config_freep) struct config *config = NULL;
    scoped(problems_done) struct problems problems = {0};
    scoped(buf_done) struct buf text = {0};
    const char *root = values->suite_root != NULL ? values->suite_root : ".";
    int r = config_load(root, NULL, &session->reader, &config, &problems, err);

    if (problems.count > 0) {
        problems_format(&problems, true, false, &text);
        (void)fputs(buf_text(&text), stderr); /* nothing can be told when stderr is gone */
        buf_clear(&text);
    }
    if (r < 0)
        return r;

    scoped(json_freep) json_t *json = config_to_json(config);

    if (values->json)
        return output_json(json, err);
    list_values(&text, json);
    return print_out(&text, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {0};
    int r = session_open(&options, &session, err);

    return r < 0 ? r : show(arguments->values, &session, err);
}

const struct command command_config = {
    .name = "config",
    .summary = "show each configured value and where it came from",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .run = run,
};
