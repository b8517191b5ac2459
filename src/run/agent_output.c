#include "run/agent_output.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"

#define CUT_MARK "\n[closedbook: output cut here, limit reached]\n"

void agent_pipes_init(struct agent_pipes *pipes)
{
    for (size_t i = 0; i < AGENT_PIPES; i++)
        pipes->read[i] = pipes->write[i] = -1;
}

void agent_pipes_done(struct agent_pipes *pipes)
{
    for (size_t i = 0; i < AGENT_PIPES; i++) {
        fd_closep(&pipes->read[i]);
        fd_closep(&pipes->write[i]);
    }
}

void agent_pipes_close_write(struct agent_pipes *pipes)
{
    for (size_t i = 0; i < AGENT_PIPES; i++)
        fd_closep(&pipes->write[i]);
}

int agent_pipes_open(struct agent_pipes *pipes, const struct agent_turn *turn, struct error **err)
{
    for (size_t i = 1; i < AGENT_PIPES; i++) {
        int ends[2];

        if (i == 3 && !turn->events_on_fd3)
            continue;
        if (pipe2(ends, O_CLOEXEC) != 0)
            return error_errno(err, errno, "cannot make a pipe");
        pipes->read[i] = ends[0];
        pipes->write[i] = ends[1];
    }
    if (turn->stdin_text == NULL)
        return 0;
    return fs_memfd("prompt", turn->stdin_text, strlen(turn->stdin_text), &pipes->write[0], err);
}

/* --- what comes --------------------------------------------------------------------------------
 */

static void look(struct agent_output *output)
{
    event_show_new(&output->show);
    if (output->look != NULL && output->look(output->look_context))
        output->captures[0].enough = true;
}

static void feed_events(void *context, const char *bytes, size_t size)
{
    struct agent_output *output = context;

    event_reader_feed(output->reader, bytes, size);
    look(output);
}

static void feed_stream(void *context, const char *bytes, size_t size)
{
    struct agent_output *output = context;

    stream_feed(output->stream, bytes, size);
    look(output);
}

void agent_output_init(struct agent_output *output, size_t max_bytes, struct event_reader *reader,
                       struct stream *stream)
{
    *output = (struct agent_output){.reader = reader, .stream = stream};
    output->out.max_bytes = output->err.max_bytes = max_bytes;
    output->captures[0] = (struct cell_capture){.fd = -1, .buf = &output->out};
    if (stream != NULL) {
        output->captures[0].on_bytes = feed_stream;
        output->captures[0].context = output;
    }
    output->captures[1] = (struct cell_capture){.fd = -1, .buf = &output->err};
    output->captures[2] =
        (struct cell_capture){.fd = -1, .on_bytes = feed_events, .context = output};
}

void agent_output_done(struct agent_output *output)
{
    buf_done(&output->out);
    buf_done(&output->err);
}

void agent_output_attach(struct agent_output *output, const struct agent_pipes *pipes)
{
    output->exchange = output->out.size_bytes;
    for (size_t i = 0; i < ARRAY_SIZE(output->captures); i++)
        output->captures[i].fd = pipes->read[i + 1];
}

void agent_output_sync(struct agent_output *output, struct agent_pipes *pipes)
{
    for (size_t i = 0; i < ARRAY_SIZE(output->captures); i++)
        pipes->read[i + 1] = output->captures[i].fd;
    event_reader_end(output->reader);
    event_show_new(&output->show);
}

/* --- what is kept ------------------------------------------------------------------------------
 */

static int save(int dir_fd, const char *name, const struct buf *buf, uint64_t seen,
                struct error **err)
{
    scoped(buf_done) struct buf whole = {0};

    if (seen == 0)
        return 0;
    buf_append(&whole, buf->data, buf->size_bytes);
    if (seen > buf->size_bytes)
        buf_text_append(&whole, CUT_MARK);
    return fs_write_atomic(
        dir_fd, name, &(struct fs_content){whole.data, whole.size_bytes, 0600, FS_NO_SYNC}, err);
}

int agent_output_save(int dir_fd, const struct agent_output *output, struct trial_record *record,
                      struct error **err)
{
    const struct cell_capture *captures = output->captures;
    int r = save(dir_fd, "agent.stdout", &output->out, captures[0].bytes_seen, err);

    if (r == 0)
        r = save(dir_fd, "agent.stderr", &output->err, captures[1].bytes_seen, err);
    record->agent.output_bytes = captures[0].bytes_seen + captures[1].bytes_seen;
    record->agent.output_cut = captures[0].bytes_seen > output->out.size_bytes ||
                               captures[1].bytes_seen > output->err.size_bytes;
    return r;
}
