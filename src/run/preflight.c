#include "run/preflight.h"

#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "run/probe.h"

#define CELLS_MAX 1024 /* distinct ones of a run whose results are remembered */

struct checked {
    struct sha256 cell;
    char *digest;  /* of the result; owned */
    char *problem; /* NULL: none; owned */
};

struct preflight {
    struct checked *cells;
    size_t count;
};

struct preflight *preflight_new(void)
{
    return mem_new(1, sizeof(struct preflight));
}

void preflight_free(struct preflight *preflight)
{
    if (preflight == NULL)
        return;
    for (size_t i = 0; i < preflight->count; i++) {
        free(preflight->cells[i].digest);
        free(preflight->cells[i].problem);
    }
    free(preflight->cells);
    free(preflight);
}

static void add_mount(struct buf *text, const struct cell_mount *mount)
{
    struct stat status = {0};

    (void)fstat(mount->fd, &status); /* one that is gone fails when the cell is made */
    buf_format(text, "tree %s %ju:%ju", mount->target, (uintmax_t)status.st_dev,
               (uintmax_t)status.st_ino);
    for (size_t i = 0; i < CELL_MASKS_MAX && mount->masks[i] != NULL; i++)
        buf_format(text, " -%s", mount->masks[i]);
    buf_char(text, '\n');
}

/* All by which one agent's cell differs from another, as text. */
static int describe(const struct staged *staged, struct sha256 *ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    struct cell_spec spec = {.role = CELL_AGENT, .etc_fd = -1};
    int r = view_fill_cell(staged->view, NULL, CELL_AGENT, &spec, err);

    if (r < 0)
        return r;
    buf_format(&text, "driver %d\n", monitor_facts(staged->control)->driver);
    for (size_t i = 0; i < spec.mount_count; i++)
        add_mount(&text, &spec.mounts[i]);
    for (size_t i = 0; i < spec.text_count; i++) {
        buf_format(&text, "text %s %zu ", spec.texts[i].target, spec.texts[i].size_bytes);
        buf_append(&text, spec.texts[i].bytes, spec.texts[i].size_bytes);
    }
    buf_append(&text, &spec.limits, sizeof(spec.limits));
    buf_append(&text, &spec.ptrace_denied, sizeof(spec.ptrace_denied));
    buf_append(&text, &spec.identity_root, sizeof(spec.identity_root));
    *ret = sha256_of(buf_text(&text), text.size_bytes);
    return 0;
}

/* The first row that is neither denied nor posture. NULL: none; owned. */
static char *problem_of(const struct battery *battery)
{
    for (size_t i = 0; i < battery->count; i++) {
        const struct battery_row *row = &battery->rows[i];

        if (row->verdict == ATTACK_FOUND || row->verdict == ATTACK_ERROR)
            return str_format("attack '%s' in a twin of the cell: %s%s%s; 'closedbook probe' tells "
                              "more",
                              row->id, attack_verdict_name(row->verdict),
                              row->detail != NULL ? ", " : "",
                              row->detail != NULL ? row->detail : "");
    }
    return NULL;
}

static int attack(struct session *session, const struct staged *staged, struct checked *ret,
                  struct error **err)
{
    scoped(probe_result_done) struct probe_result result = {0};
    struct probe_options options = {
        .session = session, .control = staged->control, .view = staged->view, .fast = true};
    char digest[SHA256_HEX_CHARS + 1];
    int r = probe_run(&options, &result, err);

    if (r < 0)
        return r;
    struct sha256 bytes = battery_digest(&result.battery);

    sha256_format(&bytes, digest);
    ret->digest = str_format("sha256:%s", digest);
    ret->problem = problem_of(&result.battery);
    return 0;
}

static int find(struct preflight *preflight, struct session *session, const struct staged *staged,
                const struct checked **ret, struct error **err)
{
    struct checked checked = {0};
    int r = describe(staged, &checked.cell, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < preflight->count; i++) {
        *ret = &preflight->cells[i];
        if (sha256_equal(&preflight->cells[i].cell, &checked.cell))
            return 0;
    }
    if (preflight->count == CELLS_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d distinct cells in a run", CELLS_MAX);
    r = attack(session, staged, &checked, err);
    if (r < 0)
        return r;
    preflight->cells =
        mem_resize(preflight->cells, preflight->count + 1, sizeof(*preflight->cells));
    preflight->cells[preflight->count] = checked;
    *ret = &preflight->cells[preflight->count++];
    return 0;
}

void preflight_check(struct preflight *preflight, struct session *session, struct staged *staged)
{
    const struct checked *checked = NULL;

    if (staged->error != NULL)
        return;
    /* A driver that protects nothing has nothing to show. */
    if (monitor_facts(staged->control)->driver == CELL_TEMPDIR)
        return;
    int r = find(preflight, session, staged, &checked, &staged->error);

    if (r < 0)
        (void)error_wrap(&staged->error, r, "preflight");
    else if (checked->problem != NULL)
        (void)error_set(&staged->error, ERROR_SYSTEM, "preflight: %s", checked->problem);
    else
        staged->preflight = str_dup(checked->digest);
}
