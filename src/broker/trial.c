/* One trial's calls: what comes from its cell, and what it is told. */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/server.h"

#define NS_PER_MS UINT64_C(1000000)
#define ACCEPT_AT_ONCE 16 /* before others get their turn */

void trial_init(struct trial *trial, int channel)
{
    *trial = (struct trial){.channel = channel, .listener = -1, .log_fd = -1};
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++)
        trial->clients[i].fd = -1;
}

/* --- the log ---------------------------------------------------------------------------------- */

/* What cannot be written is as if the log were full: the grader is told that it is not whole. */
static void write_line(struct trial *trial, const char *text, size_t size)
{
    if (fs_write_all(trial->log_fd, "calls.jsonl", text, size, NULL) < 0)
        trial->result.cut = true;
    trial->log_bytes += size;
}

/* A last line that is no call makes criteria fail that would count on the whole. */
static void cut_log(struct trial *trial)
{
    static const char line[] = "{\"cut\": true}\n";

    if (trial->result.cut)
        return;
    write_line(trial, line, strlen(line));
    trial->result.cut = true;
}

static void log_call(struct trial *trial, const json_t *call)
{
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, call);
    if (text.size_bytes > 0 && buf_text(&text)[text.size_bytes - 1] != '\n')
        buf_char(&text, '\n');
    if (trial->result.cut || trial->log_bytes + text.size_bytes > BROKER_LOG_BYTES_MAX) {
        cut_log(trial);
        trial->result.refused++;
        return;
    }
    write_line(trial, buf_text(&text), text.size_bytes);
    trial->result.calls++;
}

static json_t *call_json(const struct call_frame *frame)
{
    const char *tool = call_frame_word(frame, 0);
    const char *word = tool;
    json_t *call = json_object();
    json_t *argv = json_array();

    json_put_real(call, "ts", (double)clock_unix_ms() / 1000);
    json_put(call, "tool", json_text(tool, strlen(tool)));
    for (size_t i = 0; i < frame->word_count; i++) {
        if (i == 1)
            json_put(call, "cwd", json_text(word, strlen(word)));
        else if (i > 1)
            json_push(argv, json_text(word, strlen(word)));
        word += strlen(word) + 1;
    }
    json_put(call, "argv", argv);
    return call;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void drop(struct client *client)
{
    fd_closep(&client->fd);
    json_decref(client->call);
    *client = (struct client){.fd = -1};
}

/* The socket of one that sent a single datagram has room for one, so this never waits. */
static bool answer(const struct client *client, enum answer_kind kind, int exit_code,
                   const char *out, const char *err)
{
    scoped(buf_done) struct buf bytes = {0};
    size_t out_bytes = strlen(out), err_bytes = strlen(err);
    const struct answer_header header = {
        .magic = CALL_MAGIC,
        .kind = kind,
        .exit_code = (uint32_t)exit_code,
        .out_bytes = (uint32_t)out_bytes,
        .err_bytes = (uint32_t)err_bytes,
    };

    if (out_bytes + err_bytes > CALL_ANSWER_BYTES_MAX)
        return false; /* loading does not let it come to this */
    buf_append(&bytes, &header, sizeof(header));
    buf_append(&bytes, out, out_bytes);
    buf_append(&bytes, err, err_bytes);
    return send(client->fd, bytes.data, bytes.size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)bytes.size_bytes;
}

static void refuse(struct trial *trial, struct client *client, const char *why)
{
    trial->result.refused++;
    (void)answer(client, ANSWER_REFUSED, 0, "", why); /* who does not listen misses it */
    drop(client);
}

static void pass(struct client *client, json_t *call)
{
    client->call = call;
    client->passes = true;
    client->deadline_ns = 0;
    if (!answer(client, ANSWER_PASS, 0, "", ""))
        client->passes = false;
}

static void take_call(struct trial *trial, struct client *client, const struct call_frame *frame)
{
    const struct mock_table table = {trial->tools};
    size_t count = frame->word_count - 2;
    scoped(mem_freep) const char **items = mem_new(count + 1, sizeof(*items));
    const struct call_args args = {items, count};
    struct mock_reply reply;

    for (size_t i = 0; i < count; i++)
        items[i] = i == 0 ? call_frame_word(frame, 2) : items[i - 1] + strlen(items[i - 1]) + 1;
    mock_answer(&table, call_frame_word(frame, 0), &args, &reply);
    if (!reply.is_known) {
        refuse(trial, client, "no such recorded program\n");
        return;
    }
    if (trial->result.cut) {
        refuse(trial, client, "the recorder takes no more calls\n");
        return;
    }
    json_t *call = call_json(frame);

    if (reply.rule >= 0)
        json_put_int(call, "rule", reply.rule);
    if (reply.passes) {
        pass(client, call);
        return;
    }
    json_put_int(call, "exit", reply.exit_code);
    log_call(trial, call);
    json_decref(call);
    (void)answer(client, ANSWER_TEXT, reply.exit_code, reply.out, reply.err); /* as above */
    drop(client);
}

static void take_end(struct trial *trial, struct client *client, const struct call_frame *frame)
{
    json_put_bool(client->call, "passthrough", true);
    json_put_int(client->call, "exit", frame->exit_code);
    log_call(trial, client->call);
    drop(client);
}

/* Its end was never told: it was killed, or the agent spoke by hand. It was called all the same. */
static void lose(struct trial *trial, struct client *client)
{
    if (client->call != NULL) {
        json_put_bool(client->call, "passthrough", true);
        json_put(client->call, "exit", json_null());
        log_call(trial, client->call);
        trial->result.unreported++;
    } else if (client->deadline_ns != 0) {
        trial->result.refused++; /* it connected, and said nothing */
    }
    drop(client);
}

/* --- what comes from the cell ----------------------------------------------------------------- */

static struct client *free_client(struct trial *trial)
{
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++) {
        if (trial->clients[i].fd < 0)
            return &trial->clients[i];
    }
    return NULL;
}

size_t trial_accept(struct trial *trial)
{
    size_t count = 0;

    for (; count < ACCEPT_AT_ONCE; count++) {
        struct client *client = free_client(trial);

        if (client == NULL)
            return count;
        int fd = accept4(trial->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
            return count;
        *client =
            (struct client){.fd = fd, .deadline_ns = clock_ns() + BROKER_PATIENCE_MS * NS_PER_MS};
    }
    return count;
}

void trial_read(struct trial *trial, struct client *client, char *frame_bytes)
{
    struct call_frame frame;
    /* Descriptors that come along are not taken: without a control buffer the kernel drops them. */
    ssize_t n = recv(client->fd, frame_bytes, CALL_FRAME_BYTES_MAX + 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lose(trial, client);
        return;
    }
    if (!call_frame_parse(frame_bytes, (size_t)n, &frame)) {
        if (client->call != NULL)
            lose(trial, client);
        else
            refuse(trial, client, "no call\n");
    } else if (frame.kind == CALL_TOO_LARGE && client->call == NULL) {
        refuse(trial, client, "the arguments are too long for the recorder\n");
    } else if (frame.kind == CALL_MADE && client->call == NULL) {
        take_call(trial, client, &frame);
    } else if (frame.kind == CALL_ENDED && client->call != NULL) {
        take_end(trial, client, &frame);
    } else {
        lose(trial, client);
    }
}

void trial_drop_late(struct trial *trial, uint64_t now_ns)
{
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++) {
        struct client *client = &trial->clients[i];

        if (client->fd >= 0 && client->deadline_ns != 0 && client->deadline_ns <= now_ns)
            lose(trial, client);
    }
}

static void lose_all(struct trial *trial)
{
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++) {
        if (trial->clients[i].fd >= 0)
            lose(trial, &trial->clients[i]);
    }
}

void trial_drain(struct trial *trial, char *frame)
{
    do {
        for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++) {
            if (trial->clients[i].fd >= 0)
                trial_read(trial, &trial->clients[i], frame);
        }
        lose_all(trial);
    } while (trial->listener >= 0 && trial_accept(trial) > 0);
}

void trial_end(struct trial *trial)
{
    lose_all(trial);
    fd_closep(&trial->listener);
    fd_closep(&trial->log_fd);
    trial->listener = trial->log_fd = -1;
}

void trial_free(struct trial *trial)
{
    trial_end(trial);
    proxy_free(trial->proxy);
    recording_free(trial->recording);
    fd_closep(&trial->channel);
    json_decref(trial->tools);
    free(trial);
}
