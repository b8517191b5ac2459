#include <errno.h>

#include "agent/internal.h"
#include "base/fs.h"
#include "base/mem.h"

#define PIECE_BYTES ((size_t)64 << 10)

/* By pread, because trials that are forks of one parent share the descriptor's offset. */
static int read_script(int fd, const char *name, struct buf *ret, struct error **err)
{
    scoped(mem_freep) char *piece = mem_new(PIECE_BYTES, 1);

    for (;;) {
        ssize_t n = pread(fd, piece, PIECE_BYTES, (off_t)ret->size_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read agent.script '%s'", name);
        if (n == 0)
            return 0;
        buf_append(ret, piece, (size_t)n);
        if (ret->overflowed)
            return error_set(err, ERROR_TASK, "agent.script '%s': larger than %zu bytes", name,
                             AGENT_SCRIPT_BYTES_MAX);
    }
}

/* The kernel runs only these; anything else would fail in the cell, after everything was staged. */
static bool can_be_executed(const struct buf *bytes)
{
    return bytes->size_bytes > 4 && (memcmp(bytes->data, "#!", 2) == 0 || memcmp(bytes->data,
                                                                                 "\x7f"
                                                                                 "ELF",
                                                                                 4) == 0);
}

int script_plan_turn(const struct task_public *task, const struct agent_place *place,
                     struct agent_turn *ret, struct error **err)
{
    scoped(buf_done) struct buf bytes = {.max_bytes = AGENT_SCRIPT_BYTES_MAX};
    /* The host's path is not for records: its last part is. */
    const char *name = task->agent.script == NULL ? "" : path_base(task->agent.script);

    ASSERT(place->script_fd >= 0);

    int r = read_script(place->script_fd, name, &bytes, err);

    if (r < 0)
        return r;
    if (!can_be_executed(&bytes))
        return error_set(err, ERROR_TASK,
                         "agent.script '%s' is no program: it starts neither with '#!' nor as an "
                         "ELF file",
                         name);

    struct agent_turn turn = {0};

    turn.script = (struct cell_text){
        .target = AGENT_SCRIPT_PATH,
        .size_bytes = bytes.size_bytes,
        .executable = true,
    };
    turn.script_bytes = buf_take(&bytes);
    turn.script.bytes = turn.script_bytes;
    str_list_add(&turn.argv, AGENT_SCRIPT_PATH);
    turn.stdin_text = str_dup(place->prompt != NULL ? place->prompt : task->prompt);
    turn_offer_events(task, &turn);
    *ret = turn;
    return 0;
}
