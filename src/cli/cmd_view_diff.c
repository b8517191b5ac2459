#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "run/run_open.h"

#define VIEW_BYTES_MAX ((size_t)1 << 30)

/* The lines of a trial's view. */
struct lines {
    struct str_list items; /* sorted */
};

static void lines_done(struct lines *lines)
{
    str_list_done(&lines->items);
}

static int read_view(const struct session *session, const char *path, struct buf *ret,
                     struct error **err)
{
    scoped(trial_operand_done) struct trial_operand operand = {0};
    scoped(run_dir_closep) struct run_dir *run = NULL;
    scoped(fd_closep) int fd = -1;
    int r = trial_operand_parse(session, path, &operand, err);

    if (r == 0)
        r = session_open_run(session, operand.run_path, false, &run, err);
    if (r < 0)
        return r;
    scoped(mem_freep) char *view = path_join(operand.trial_path, "view.jsonl");

    fd = fs_open_beneath(run_dir_fd(run), view, O_RDONLY, 0, FS_NO_LINKS);
    if (fd < 0)
        return error_errno_as(err, ERROR_USER, -fd, "'%s' has no view.jsonl", path);
    return fs_read_fd(fd, view, VIEW_BYTES_MAX, ret, err);
}

static int load(const struct session *session, const char *path, struct lines *ret,
                struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r = read_view(session, path, &text, err);

    for (const char *at = buf_text(&text); r == 0 && *at != '\0';) {
        size_t size = strcspn(at, "\n");

        str_list_add_take(&ret->items, str_ndup(at, size));
        at += size + (at[size] == '\n');
    }
    str_list_sort(&ret->items);
    return r;
}

static void show(char sign, const char *line, struct buf *text)
{
    buf_format(text, "%c ", sign);
    term_quote(text, line, strlen(line), TERM_ONE_LINE);
    buf_char(text, '\n');
}

/* Both are sorted; returns how many lines only one of them has. */
static size_t compare(const struct str_list *a, const struct str_list *b, struct buf *text)
{
    size_t i = 0, k = 0, count = 0;

    while (i < a->count || k < b->count) {
        int order = i == a->count ? 1 : k == b->count ? -1 : strcmp(a->items[i], b->items[k]);

        if (order < 0)
            show('-', a->items[i], text);
        else if (order > 0)
            show('+', b->items[k], text);
        count += order != 0;
        i += order <= 0;
        k += order >= 0;
    }
    return count;
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    scoped(lines_done) struct lines left = {0};
    scoped(lines_done) struct lines right = {0};
    scoped(mem_freep) char *run_path = run_path_of(arguments->operands[0]);
    scoped(buf_done) struct buf text = {0};
    struct session_options options = {.owner_of = run_path};
    int r = session_open(&options, &session, err);

    if (r == 0)
        r = load(&session, arguments->operands[0], &left, err);
    if (r == 0)
        r = load(&session, arguments->operands[1], &right, err);
    if (r < 0)
        return r;
    size_t count = compare(&left.items, &right.items, &text);

    r = arguments->is_quiet ? 0 : print_out(&text, err);
    return r < 0 ? r : count > 0;
}

const struct command command_view_diff = {
    .name = "view-diff",
    .summary = "what one trial's agent could see and another's could not",
    .operands = "TRIAL TRIAL",
    .description =
        "Compares what their cells were made of, by view.jsonl: lines of the first alone\n"
        "with '-', of the second alone with '+'. Exit status 1 when there are any.",
    .operands_min = 2,
    .operands_max = 2,
    .run = run,
};
