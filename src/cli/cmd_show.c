#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "collect/collect.h"
#include "run/run_open.h"

#define SHOW_BYTES_MAX ((size_t)64 << 20)

/* An opened trial: the run, the trial's directory and its artifacts. */
struct opened {
    struct session session;
    struct run_dir *run;
    struct trial_operand operand;
    int tar_fd;
};

static void opened_done(struct opened *opened)
{
    fd_closep(&opened->tar_fd);
    trial_operand_done(&opened->operand);
    run_dir_close(opened->run);
    session_close(&opened->session);
}

static int open_artifacts(struct opened *opened, struct error **err)
{
    scoped(mem_freep) char *path = path_join(opened->operand.trial_path, "artifacts.tar");

    opened->tar_fd = fs_open_beneath(run_dir_fd(opened->run), path, O_RDONLY, 0, FS_NO_LINKS);
    if (opened->tar_fd >= 0)
        return 0;

    int saved = -opened->tar_fd;

    opened->tar_fd = -1;
    return error_errno(err, saved, "cannot open '%s/%s'", opened->operand.run_path, path);
}

static int open_trial(const char *path, const struct claim_place *place, struct opened *ret,
                      struct error **err)
{
    scoped(mem_freep) char *run_path = run_path_of(path);
    struct session_options options = {.owner_of = run_path};

    if (place != NULL) {
        options.claims[0] = *place;
        options.claim_count = 1;
    }

    int r = session_open(&options, &ret->session, err);

    if (r == 0)
        r = trial_operand_parse(&ret->session, path, &ret->operand, err);
    if (r == 0)
        r = session_open_run(&ret->session, ret->operand.run_path, false, &ret->run, err);
    return r < 0 ? r : open_artifacts(ret, err);
}

static const char *type_name(enum manifest_type type)
{
    switch (type) {
    case MANIFEST_FILE:
        return "file";
    case MANIFEST_DIR:
        return "dir";
    case MANIFEST_LINK:
        return "link";
    }
    return "?";
}

static int list_entry(void *context, int tar_fd, const struct artifact *artifact,
                      struct error **err)
{
    struct buf *text = context;

    (void)tar_fd; /* only names are shown */
    (void)err;
    buf_format(text, "%-4s %04o %10ju  ", type_name(artifact->type), artifact->mode,
               (uintmax_t)artifact->size_bytes);
    term_quote(text, artifact->path, strlen(artifact->path), TERM_ONE_LINE);
    if (artifact->target != NULL) {
        buf_text_append(text, " -> ");
        term_quote(text, artifact->target, strlen(artifact->target), TERM_ONE_LINE);
    }
    buf_char(text, '\n');
    return 0;
}

struct show_values {
    bool out, errors;
};

static const struct cli_option show_rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "stdout",
     .offset = offsetof(struct show_values, out),
     .help = "what the agent wrote to its standard output"},
    {.kind = OPTION_FLAG,
     .long_name = "stderr",
     .offset = offsetof(struct show_values, errors),
     .help = "what the agent wrote to its standard error"},
};

/* One of the record's own files, as it lies in the trial's directory. */
static int show_output(const struct opened *opened, const char *name, struct buf *text,
                       struct error **err)
{
    scoped(fd_closep) int dir_fd = -1;
    scoped(buf_done) struct buf content = {0};
    int r = run_dir_open_trial(opened->run, opened->operand.trial_path, false, &dir_fd, err);

    /* There is none when nothing was said. */
    if (r < 0 || (faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT))
        return r;
    r = fs_read_file(dir_fd, name, SHOW_BYTES_MAX, &content, err);
    if (r == 0)
        term_quote(text, content.data, content.size_bytes, TERM_LINES);
    return r;
}

static int show_outputs(const struct arguments *arguments, const struct opened *opened,
                        struct buf *text, struct error **err)
{
    const struct show_values *values = arguments->values;
    int r = 0;

    if (arguments->operand_count > 1)
        return error_set(err, ERROR_USER, "a PATH and --stdout or --stderr exclude each other");
    if (values->out)
        r = show_output(opened, "agent.stdout", text, err);
    if (r == 0 && values->errors)
        r = show_output(opened, "agent.stderr", text, err);
    return r;
}

static int run_show(const struct arguments *arguments, struct error **err)
{
    const struct show_values *values = arguments->values;
    scoped(opened_done) struct opened opened = {.tar_fd = -1};
    scoped(buf_done) struct buf text = {0};
    scoped(buf_done) struct buf content = {0};
    int r = open_trial(arguments->operands[0], NULL, &opened, err);

    if (r < 0)
        return r;
    if (values->out || values->errors) {
        r = show_outputs(arguments, &opened, &text, err);
    } else if (arguments->operand_count == 1) {
        r = artifacts_each(opened.tar_fd, "artifacts.tar", list_entry, &text, err);
    } else {
        r = artifacts_read(opened.tar_fd, "artifacts.tar", arguments->operands[1], SHOW_BYTES_MAX,
                           &content, err);
        term_quote(&text, content.data, content.size_bytes, TERM_LINES);
    }
    return r < 0 ? r : print_out(&text, err);
}

const struct command command_show = {
    .name = "show",
    .summary = "list what an agent left, or print one file of it or what it said, escaped",
    .operands = "RUN/TRIAL [PATH]",
    .options = show_rows,
    .option_count = ARRAY_SIZE(show_rows),
    .values_size = sizeof(struct show_values),
    .operands_min = 1,
    .operands_max = 2,
    .run = run_show,
};

struct extract_values {
    bool keep_git;
};

static const struct cli_option extract_rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "keep-git",
     .offset = offsetof(struct extract_values, keep_git),
     .help = "keep the name .git; git commands in it can run the agent's programs"},
};

static int run_extract(const struct arguments *arguments, struct error **err)
{
    const struct extract_values *values = arguments->values;
    struct claim_place place = {.kind = CLAIM_DIR, .path = arguments->operands[1]};
    scoped(opened_done) struct opened opened = {.tar_fd = -1};
    scoped(fd_closep) int to_fd = -1;
    scoped(buf_done) struct buf text = {0};
    uint64_t files = 0;
    int r = open_trial(arguments->operands[0], &place, &opened, err);

    if (r == 0)
        r = claim_make(opened.session.claim, 0, &to_fd, err);
    if (r == 0)
        r = artifacts_extract(opened.tar_fd, "artifacts.tar", to_fd, values->keep_git, &files, err);
    if (r < 0)
        return r;
    buf_format(&text, "%ju files\n", (uintmax_t)files);
    return print_out(&text, err);
}

const struct command command_extract = {
    .name = "extract",
    .summary = "write what an agent left into a folder: regular files only, no links",
    .operands = "RUN/TRIAL FOLDER",
    .options = extract_rows,
    .option_count = ARRAY_SIZE(extract_rows),
    .values_size = sizeof(struct extract_values),
    .operands_min = 2,
    .operands_max = 2,
    .run = run_extract,
};
