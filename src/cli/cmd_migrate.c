#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "lint/migrate.h"
#include "run/session.h"

struct values {
    bool check, diff;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "check",
     .offset = offsetof(struct values, check),
     .help = "write nothing; exit status 1 when there is something to do"},
    {.kind = OPTION_FLAG,
     .long_name = "diff",
     .offset = offsetof(struct values, diff),
     .help = "write nothing; print what would change"},
};

struct counts {
    size_t changed, refused;
};

static void list(struct buf *out, const char *path, const char *word, const struct str_list *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i];

        term_quote(out, path, strlen(path), TERM_ONE_LINE);
        buf_format(out, ": %s", word);
        term_quote(out, line, strlen(line), TERM_ONE_LINE);
        buf_char(out, '\n');
    }
}

static int migrate(const struct session *session, const char *path, const struct values *values,
                   struct buf *out, struct counts *counts, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(migration_done) struct migration migration = {0};
    scoped(fd_closep) int fd =
        session->reader.open(session->reader.context, path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? error_errno_as(err, ERROR_USER, -fd, "cannot open '%s'", path)
                   : fs_read_fd(fd, path, TASK_BYTES_MAX, &text, err);

    if (r == 0)
        r = migrate_plan(path, &text, &migration, err);
    if (r < 0)
        return r;
    if (migration.refused.count > 0) {
        list(out, path, "refused: ", &migration.refused);
        counts->refused++;
        return 0;
    }
    if (migration.changes.count == 0)
        return 0;
    if (!values->diff && !values->check && (r = migrate_apply(path, &migration, err)) < 0)
        return r;
    counts->changed++;
    if (values->diff)
        edit_diff(path, buf_text(&text), buf_text(&migration.text), out);
    else
        list(out, path, "", &migration.changes);
    if (values->diff && migration.reference_file != NULL)
        buf_format(out, "# the file '%s' moves into '%s'\n", migration.reference_file,
                   migration.reference_folder);
    return 0;
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(session_close) struct session session = {0};
    scoped(buf_done) struct buf out = {0};
    struct session_options options = {.owner_of = arguments->operands[0]};
    struct counts counts = {0};
    int status = 0, r = session_open(&options, &session, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < arguments->operand_count; i++) {
        scoped(error_freep) struct error *error = NULL;

        /* One file that cannot be read leaves the others to be done. */
        r = migrate(&session, arguments->operands[i], values, &out, &counts, &error);
        if (r < 0) {
            print_error(error);
            status = error_exit_status(error_code_of(error));
        }
    }
    if (!arguments->is_quiet && !values->diff)
        buf_format(&out, "%zu of %zu file%s %s, %zu refused\n", counts.changed,
                   arguments->operand_count, arguments->operand_count == 1 ? "" : "s",
                   values->check ? "to migrate" : "migrated", counts.refused);
    r = print_out(&out, err);
    if (r < 0 || status != 0)
        return r < 0 ? r : status;
    return counts.refused > 0 || (values->check && counts.changed > 0);
}

const struct command command_migrate = {
    .name = "migrate",
    .summary = "rewrite legacy fields of task files in place, comments and layout kept",
    .operands = "FILE...",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = run,
};
