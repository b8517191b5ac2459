#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "evidence/bundle.h"
#include "run/run_open.h"

enum claim_index { CLAIM_OUTPUT };

struct values {
    const char *output;
    bool everything;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .short_name = 'o',
     .long_name = "output",
     .value = "FILE",
     .offset = offsetof(struct values, output),
     .help = "the archive; default: the run's name with .tar"},
    {.kind = OPTION_FLAG,
     .long_name = "with-private",
     .offset = offsetof(struct values, everything),
     .help = "leave nothing out"},
};

static int pack(const struct values *values, const char *path, struct session *session,
                struct error **err)
{
    scoped(run_dir_closep) struct run_dir *run = NULL;
    scoped(fd_closep) int to_fd = -1;
    scoped(buf_done) struct buf text = {0};
    struct bundle facts;
    int r = session_open_run(session, path, false, &run, err);

    if (r == 0)
        r = claim_make(session->claim, CLAIM_OUTPUT, &to_fd, err);
    if (r == 0)
        r = bundle_write(run_dir_fd(run), values->everything, to_fd, &facts, err);
    if (r < 0)
        return r;
    term_quote(&text, values->output, strlen(values->output), TERM_ONE_LINE);
    buf_format(&text, ": %ju files, %ju bytes; left out: %ju of graders, steps and judges\n",
               (uintmax_t)facts.files, (uintmax_t)facts.bytes, (uintmax_t)facts.withheld);
    return print_out(&text, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    struct values values = *(const struct values *)arguments->values;
    const char *path = arguments->operands[0];
    scoped(session_close) struct session session = {0};
    scoped(mem_freep) char *folder = path_normal(path);
    scoped(mem_freep) char *name = str_format("%s.tar", path_base(folder));

    if (values.output == NULL)
        values.output = name;
    struct session_options options = {
        .owner_of = path,
        .claims = {[CLAIM_OUTPUT] = {CLAIM_FILE, values.output}},
        .claim_count = 1,
    };
    int r = session_open(&options, &session, err);

    return r < 0 ? r : pack(&values, path, &session, err);
}

const struct command command_bundle = {
    .name = "bundle",
    .summary = "a run as one file for others, without what graders read and said",
    .operands = "RUN",
    .description =
        "Outputs of graders and steps, judges' transcripts and logs of recorded programs are\n"
        "left out and named; 'audit FILE' proves the rest, and their digests.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
