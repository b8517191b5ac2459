#include "cell/client.h"

#include <errno.h>

#include "base/fs.h"
#include "base/mem.h"

/* What went wrong while a cell or a program was made, and whose fault it is. */
static int blame(const struct message *reply, const struct cell_spec *spec, const char *program,
                 struct error **err)
{
    bool is_command = reply->step == STEP_EXEC || reply->step == STEP_CWD;
    bool is_worker = spec != NULL && spec->role == CELL_WORKER;

    if (is_command && !is_worker)
        return error_errno_as(err, ERROR_AGENT, reply->error, "cannot run '%s'%s", program,
                              reply->step == STEP_CWD ? " in its working directory" : "");
    if (reply->step == STEP_MOUNT && spec != NULL && reply->detail < spec->mount_count)
        return error_errno(err, reply->error, "cannot make the cell: mounting '%s'",
                           spec->mounts[reply->detail].target);
    if (reply->step == STEP_TEXT && spec != NULL && reply->detail < spec->text_count)
        return error_errno(err, reply->error, "cannot make the cell: writing '%s'",
                           spec->texts[reply->detail].target);
    return error_errno(err, reply->error, "cannot make the cell: %s", cell_step_name(reply->step));
}

static void add_process(struct cell *cell, uint32_t number)
{
    if (number == 0)
        return;
    cell->processes =
        mem_resize(cell->processes, cell->process_count + 1, sizeof(cell->processes[0]));
    cell->processes[cell->process_count++] = (struct cell_process){.number = number};
}

static struct cell *new_cell(struct monitor *monitor, const struct cell_spec *spec,
                             const struct message *reply)
{
    struct cell *cell = mem_new(1, sizeof(*cell));

    *cell = (struct cell){
        .monitor = monitor,
        .next = monitor->cells,
        .id = reply->cell_id,
        .uid = reply->uid,
        .init_pid = reply->init_pid,
        .role = spec->role,
        .identity_root = spec->identity_root,
        .protections = reply->protections,
        .layered = reply->layered != 0,
    };
    monitor->cells = cell;
    add_process(cell, reply->process);
    return cell;
}

/* Never a cell, or a program of one, with less than its tier promises. */
static int require(const struct cell *cell, uint64_t got, uint64_t of, struct error **err)
{
    enum cell_tier tier = cell->monitor->facts.tier;
    uint64_t mandatory = cell->identity_root ? cell_mandatory_as_root(tier)
                                             : cell_mandatory(tier, cell->role == CELL_WORKER);
    uint64_t missing = mandatory & of & ~got;

    for (size_t i = 0; i < cell_protection_count; i++) {
        if ((missing & cell_protection_rows[i].bit) != 0)
            return error_set(err, ERROR_SYSTEM, "the cell lacks a protection: %s",
                             cell_protection_rows[i].name);
    }
    return 0;
}

int cell_start(struct monitor *monitor, const struct cell_spec *spec, struct cell **ret,
               struct error **err)
{
    struct request_start request = {0};
    struct wire_fds fds = {0};
    struct message reply;
    scoped(fd_closep) int blob_fd = -1;
    int r = client_fill_start(monitor, spec, &request, &fds, &blob_fd, err);

    if (r < 0)
        return r;
    r = client_call(monitor, &request, sizeof(request), &fds, &reply, err);
    if (r < 0)
        return r;
    if (reply.error != 0)
        return blame(&reply, spec, spec->command.argv != NULL ? spec->command.argv[0] : "", err);
    scoped(cell_freep) struct cell *cell = new_cell(monitor, spec, &reply);
    uint64_t programs = PROTECTS_PROGRAM | (spec->identity_root ? (uint64_t)PROTECT_USER_NS : 0);

    r = require(cell, cell->protections, spec->command.argv != NULL ? UINT64_MAX : ~programs, err);
    if (r < 0)
        return r;
    *ret = take(cell);
    return 0;
}

int cell_exec(struct cell *cell, const struct cell_command *command, uint32_t *ret_process,
              struct error **err)
{
    scoped(buf_done) struct buf blob = {.max_bytes = CELL_ARGS_BYTES_MAX + 1};
    struct request_exec request = {
        .header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_EXEC, .cell_id = cell->id}};
    struct wire_fds fds = {0};
    struct message reply;
    scoped(fd_closep) int blob_fd = -1;

    if (cell->monitor == NULL || cell->ended)
        return error_set(err, ERROR_BUG, "a program for a cell that has ended");
    int r = client_fill_command(command, &request.command, &fds, &blob, err);

    if (r == 0)
        r = client_seal_blob(&blob, &blob_fd, err);
    if (r < 0)
        return r;
    request.blob_fd = wire_fds_add(&fds, blob_fd);
    r = client_call(cell->monitor, &request, sizeof(request), &fds, &reply, err);
    if (r < 0)
        return r;
    if (reply.error != 0)
        return blame(&reply, NULL, command->argv[0], err);
    add_process(cell, reply.process);
    uint64_t programs = PROTECTS_PROGRAM | (cell->identity_root ? (uint64_t)PROTECT_USER_NS : 0);

    r = require(cell, reply.protections, programs, err);
    if (r < 0)
        return r;
    cell->protections |= reply.protections & programs;
    *ret_process = reply.process;
    return 0;
}

int cell_allow_candidates(struct cell *grading, const struct cell_spec *recipe, struct error **err)
{
    struct cell_spec spec = *recipe;
    struct request_start request = {0};
    struct wire_fds fds = {0};
    struct message reply;
    scoped(fd_closep) int blob_fd = -1;

    if (grading->monitor == NULL || grading->ended)
        return error_set(err, ERROR_BUG, "candidates for a cell that has ended");
    spec.role = CELL_CANDIDATE;
    spec.workspace = (struct cell_workspace){.kind = CELL_WORKSPACE_SHARED};
    spec.command = (struct cell_command){0};
    int r = client_fill_start(grading->monitor, &spec, &request, &fds, &blob_fd, err);

    if (r < 0)
        return r;
    request.header.kind = REQUEST_RECIPE;
    request.header.cell_id = grading->id;
    /* Where it runs under the grader's id, as it must over an overlay, both count as one user's. */
    request.limits.pids = (request.limits.pids + 1) / 2;
    r = client_call(grading->monitor, &request, sizeof(request), &fds, &reply, err);
    if (r < 0)
        return r;
    if (reply.error != 0)
        return error_errno(err, reply.error, "the monitor takes no recipe for candidates");
    return 0;
}

static int call_plain(struct cell *cell, enum request_kind kind, struct message *ret,
                      struct error **err)
{
    const struct request_plain request = {
        .header = {.magic = PROTOCOL_MAGIC, .kind = kind, .cell_id = cell->id}};
    int r = client_call(cell->monitor, &request, sizeof(request), NULL, ret, err);

    if (r < 0)
        return r;
    if (ret->error != 0)
        return error_errno(err, ret->error, "cannot end the cell");
    return 0;
}

int cell_end(struct cell *cell, struct cell_receipt *ret, struct error **err)
{
    struct message reply;

    if (!cell->ended) {
        if (cell->monitor == NULL)
            return error_set(err, ERROR_BUG, "the monitor of this cell was freed");
        int r = call_plain(cell, REQUEST_END, &reply, err);

        if (r < 0)
            return r;
        cell->receipt = (struct cell_receipt){
            .processes = reply.processes,
            .kill_ns = reply.kill_ns,
            .empty = true,
            .cpu_us = reply.usage.cpu_us,
            .has_memory = reply.usage.has_memory != 0,
            .memory_peak_bytes = reply.usage.memory_peak_bytes,
            .oom_kills = reply.usage.oom_kills,
            .memory_looks = reply.usage.looks,
            .private_peak_bytes = reply.usage.private_peak_bytes,
            .shared_peak_bytes = reply.usage.shared_peak_bytes,
        };
        cell->ended = true;
        cell->workspace_empty = reply.workspace_empty != 0;
    }
    *ret = cell->receipt;
    return 0;
}

uint32_t cell_candidate_failures(const struct cell *cell)
{
    return cell->candidate_failures;
}

uint32_t cell_id(const struct cell *cell)
{
    return cell->id;
}

uid_t cell_uid(const struct cell *cell)
{
    return cell->uid;
}

uint64_t cell_protections(const struct cell *cell)
{
    return cell->protections;
}

bool cell_workspace_layered(const struct cell *cell)
{
    return cell->layered;
}

bool cell_workspace_empty(const struct cell *cell)
{
    return cell->workspace_empty;
}

void cell_free(struct cell *cell)
{
    struct cell_receipt receipt;
    struct message reply;

    if (cell == NULL)
        return;
    struct monitor *monitor = cell->monitor;

    if (monitor != NULL) {
        /* A monitor that does not answer is gone, and the cell with it. */
        if (cell_end(cell, &receipt, NULL) == 0)
            (void)!call_plain(cell, REQUEST_RELEASE, &reply, NULL);
        struct cell **link = &monitor->cells;

        while (*link != cell)
            link = &(*link)->next;
        *link = cell->next;
    }
    free(cell->processes);
    free(cell);
}

void cell_freep(struct cell **cell)
{
    cell_free(*cell);
    *cell = NULL;
}
