#include "broker/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/message.h"
#include "broker/broker_wire.h"

#define TICK_MS 1000
#define POLLS_OF_TRIAL (3 + BROKER_CLIENTS_MAX) /* channel, listener, proxy, clients */
#define FIRST_TRIAL 2 /* before them: the control connection, the endpoints */

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]); /* nobody's */
}

/* False: the control connection is over. */
static bool take_trial(struct server *server)
{
    struct broker_request hello;
    int fds[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r = message_receive(server->control, &hello, sizeof(hello), fds, &count);

    if (r < 0)
        return r == -EAGAIN || r == -EINTR;
    if (count != 1 || hello.magic != BROKER_MAGIC || server->trial_count >= BROKER_TRIALS_MAX) {
        close_all(fds, count);
        return true;
    }
    struct trial *trial = mem_new(1, sizeof(*trial));

    trial_init(trial, fds[0]);
    server->trials = mem_resize(server->trials, server->trial_count + 1, sizeof(*server->trials));
    server->trials[server->trial_count++] = trial;
    return true;
}

/* --- what a trial asks ------------------------------------------------------------------------ */

static int open_mocks(struct trial *trial, int *fds, size_t count, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    if (count != BROKER_OPEN_FDS || trial->tools != NULL)
        return error_set(err, ERROR_BUG, "a trial opens its mocks once, with three descriptors");
    trial->listener = take_fd(&fds[BROKER_LISTENER]);
    trial->log_fd = take_fd(&fds[BROKER_LOG]);
    int flags = fcntl(trial->listener, F_GETFL);

    if (flags < 0 || fcntl(trial->listener, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_errno(err, errno, "cannot listen in the cell");
    int r = fs_read_fd(fds[BROKER_TABLE], "the table of mocks", BROKER_TABLE_BYTES_MAX, &text, err);

    return r < 0 ? r
                 : json_parse("the table of mocks", buf_text(&text), text.size_bytes, &trial->tools,
                              err);
}

void server_reply(const struct trial *trial, const struct error *problem, int fd)
{
    struct broker_reply message = {
        .magic = BROKER_MAGIC,
        .failed = problem == NULL ? 0 : (uint32_t)error_code_of(problem),
        .calls = trial->result.calls,
        .refused = trial->result.refused,
        .unreported = trial->result.unreported,
        .cut = trial->result.cut,
    };

    if (problem != NULL)
        (void)snprintf(message.text, sizeof(message.text), "%s", error_message(problem));
    /* A trial that is gone sees no reply, and none is missed. */
    (void)!message_send(trial->channel, &message, sizeof(message), &fd, fd < 0 ? 0 : 1);
}

/* --- model endpoints */

static void answered(void *context, const json_t *answer)
{
    struct trial *trial = context;
    scoped(error_freep) struct error *problem = NULL;
    scoped(fd_closep) int fd = -1;

    trial->ask = NULL;
    (void)!models_seal(answer, &fd, &problem); /* said in the reply */
    server_reply(trial, problem, fd);
}

/* Its answer comes later. */
static int start_question(struct server *server, struct trial *trial, const int *fds, size_t count,
                          struct error **err)
{
    if (count != 1 || trial->ask != NULL)
        return error_set(err, ERROR_BUG, "one question at a time, with one descriptor");
    return models_ask(server->models, fds[0], &(struct ask_end){answered, trial, trial->recording},
                      &trial->ask, err);
}

static int tell_facts(const struct server *server, const struct trial *trial, struct error **err)
{
    scoped(json_freep) json_t *facts = models_facts(server->models);
    scoped(fd_closep) int fd = -1;
    int r = models_seal(facts, &fd, err);

    if (r == 0)
        server_reply(trial, NULL, fd);
    return r;
}

static int open_models(struct server *server, struct trial *trial, int *fds, size_t count,
                       struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *spec = NULL;

    if (count != BROKER_OPEN_FDS || trial->proxy != NULL)
        return error_set(err, ERROR_BUG, "a trial opens models once, with three descriptors");
    int r = fs_read_fd(fds[BROKER_TABLE], "what is allowed", BROKER_TABLE_BYTES_MAX, &text, err);

    if (r == 0)
        r = json_parse("what is allowed", buf_text(&text), text.size_bytes, &spec, err);
    if (r == 0)
        r = proxy_new(server->models, spec, take_fd(&fds[BROKER_LISTENER]),
                      take_fd(&fds[BROKER_LOG]), &trial->proxy, err);
    if (r < 0)
        return r;
    proxy_set_recording(trial->proxy, trial->recording);
    server_reply(trial, NULL, -1);
    return 0;
}

/* What it says, and what it is made of, is not the trial's: the run hands it over. */
static int open_recording(struct trial *trial, uint32_t kind, int *fds, size_t count,
                          struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r = 0;

    if (trial->recording != NULL || trial->proxy != NULL || trial->ask != NULL || count > 1 ||
        (kind == BROKER_RECORD && count != 1))
        return error_set(err, ERROR_BUG, "a recording is opened once, before anything is asked");
    if (kind == BROKER_RECORD) {
        r = recording_begin(take_fd(&fds[0]), &trial->recording, err);
    } else {
        if (count == 1)
            r = fs_read_fd(fds[0], "the recording", RECORDING_BYTES_MAX, &text, err);
        if (r == 0)
            r = recording_parse(buf_text(&text), text.size_bytes, &trial->recording, err);
    }
    if (r == 0)
        server_reply(trial, NULL, -1);
    return r;
}

static int check_recording(const struct trial *trial, struct error **err)
{
    const char *problem = recording_problem(trial->recording);

    if (problem != NULL && recording_answers(trial->recording))
        return error_set(err, ERROR_SYSTEM, "the recording has no answer to a request: %s",
                         problem);
    if (problem != NULL)
        return error_set(err, ERROR_SYSTEM, "the recording is not whole: %s", problem);
    server_reply(trial, NULL, -1);
    return 0;
}

static int tell_models(struct trial *trial, const json_t *result, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    int r = models_seal(result, &fd, err);

    if (r == 0)
        server_reply(trial, NULL, fd);
    return r;
}

static int close_models(struct trial *trial, struct error **err)
{
    scoped(json_freep) json_t *result = NULL;

    if (trial->proxy == NULL)
        return error_set(err, ERROR_BUG, "no models are open");
    result = proxy_result(trial->proxy);
    proxy_free(trial->proxy);
    trial->proxy = NULL;
    return tell_models(trial, result, err);
}

static int next_exchange(struct trial *trial, const int *fds, size_t count, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *spec = NULL;
    scoped(json_freep) json_t *result = NULL;

    if (count != 1 || trial->proxy == NULL)
        return error_set(err, ERROR_BUG, "no models are open, or not one descriptor");
    int r = fs_read_fd(fds[0], "the prompt", BROKER_TABLE_BYTES_MAX, &text, err);

    if (r == 0)
        r = json_parse("the prompt", buf_text(&text), text.size_bytes, &spec, err);
    if (r < 0)
        return r;
    const json_t *prompt = json_object_get(spec, "prompt");

    result = proxy_next(trial->proxy, json_is_string(prompt) ? prompt : NULL);
    return tell_models(trial, result, err);
}

static void obey_models(struct server *server, struct trial *trial, uint32_t kind, int *fds,
                        size_t count)
{
    scoped(error_freep) struct error *problem = NULL;
    int r = 0;

    if (server->models_error != NULL)
        r = error_set(&problem, error_code_of(server->models_error), "%s",
                      error_message(server->models_error));
    else if (server->models == NULL)
        r = error_set(&problem, ERROR_BUG, "this broker speaks with no endpoint");
    else if (kind == BROKER_ASK)
        r = start_question(server, trial, fds, count, &problem);
    else if (kind == BROKER_MODELS)
        r = open_models(server, trial, fds, count, &problem);
    else if (kind == BROKER_MODELS_END)
        r = close_models(trial, &problem);
    else if (kind == BROKER_MODELS_NEXT)
        r = next_exchange(trial, fds, count, &problem);
    else if (kind == BROKER_RECORD || kind == BROKER_REPLAY)
        r = open_recording(trial, kind, fds, count, &problem);
    else if (kind == BROKER_RECORDING_END)
        r = check_recording(trial, &problem);
    else
        r = tell_facts(server, trial, &problem);
    if (r < 0)
        server_reply(trial, problem, -1);
}

/* False: the trial is over. */
static bool obey(struct server *server, struct trial *trial)
{
    scoped(error_freep) struct error *problem = NULL;
    struct broker_request request;
    int fds[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r = message_receive(trial->channel, &request, sizeof(request), fds, &count);

    if (r == -EAGAIN || r == -EINTR)
        return true;
    if (r < 0 || request.magic != BROKER_MAGIC) {
        close_all(fds, r < 0 ? 0 : count);
        return false;
    }
    if (request.kind >= BROKER_ASK) {
        obey_models(server, trial, request.kind, fds, count);
    } else if (request.kind == BROKER_OPEN) {
        (void)!open_mocks(trial, fds, count, &problem); /* said in the reply */
        server_reply(trial, problem, -1);
    } else {
        trial_drain(trial, server->frame);
        trial_end(trial);
        server_reply(trial, NULL, -1);
    }
    for (size_t i = 0; i < count; i++)
        fd_closep(&fds[i]);
    return true;
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool has_room(const struct trial *trial)
{
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++) {
        if (trial->clients[i].fd < 0)
            return true;
    }
    return false;
}

static void fill_polls(const struct trial *trial, struct pollfd *polls)
{
    polls[0] = (struct pollfd){.fd = trial->channel, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = has_room(trial) ? trial->listener : -1, .events = POLLIN};
    polls[2] =
        (struct pollfd){.fd = trial->proxy == NULL ? -1 : proxy_fd(trial->proxy), .events = POLLIN};
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++)
        polls[3 + i] = (struct pollfd){.fd = trial->clients[i].fd, .events = POLLIN};
}

/* False: the trial is over. */
static bool serve(struct server *server, struct trial *trial, const struct pollfd *polls)
{
    for (size_t i = 0; i < BROKER_CLIENTS_MAX; i++) {
        if (polls[3 + i].revents != 0 && trial->clients[i].fd == polls[3 + i].fd)
            trial_read(trial, &trial->clients[i], server->frame);
    }
    if (trial->proxy != NULL)
        proxy_run(trial->proxy); /* also when endpoints woke one of its connections */
    if (polls[1].revents != 0)
        (void)trial_accept(trial); /* the rest at the next look */
    return polls[0].revents == 0 || obey(server, trial);
}

static void serve_all(struct server *server, const struct pollfd *polls)
{
    uint64_t now_ns = clock_ns();
    size_t kept = 0;

    for (size_t i = 0; i < server->trial_count; i++) {
        struct trial *trial = server->trials[i];

        if (serve(server, trial, polls + FIRST_TRIAL + i * POLLS_OF_TRIAL)) {
            trial_drop_late(trial, now_ns);
            server->trials[kept++] = trial;
        } else {
            if (trial->ask != NULL)
                models_cancel(trial->ask);
            trial_free(trial);
        }
    }
    server->trial_count = kept;
}

/* How long poll() may wait. */
static int patience_ms(const struct server *server)
{
    int due_ms = server->models == NULL ? -1 : models_timeout_ms(server->models);

    for (size_t i = 0; i < server->trial_count; i++) {
        const struct proxy *proxy = server->trials[i]->proxy;
        int proxy_ms = proxy == NULL ? -1 : proxy_timeout_ms(proxy);

        if (proxy_ms >= 0 && (due_ms < 0 || proxy_ms < due_ms))
            due_ms = proxy_ms;
    }
    return due_ms < 0 || due_ms > TICK_MS ? TICK_MS : due_ms;
}

int server_run(struct server *server, struct error **err)
{
    scoped(mem_freep) struct pollfd *polls = NULL;

    server->frame = mem_new(CALL_FRAME_BYTES_MAX + 1, 1);
    for (;;) {
        size_t count = FIRST_TRIAL + server->trial_count * POLLS_OF_TRIAL;

        polls = mem_resize(polls, count, sizeof(*polls));
        polls[0] = (struct pollfd){.fd = server->control, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = server->models == NULL ? -1 : models_fd(server->models),
                                   .events = POLLIN};
        for (size_t i = 0; i < server->trial_count; i++)
            fill_polls(server->trials[i], polls + FIRST_TRIAL + i * POLLS_OF_TRIAL);
        if (poll(polls, count, patience_ms(server)) < 0) {
            if (errno == EINTR)
                continue;
            return error_errno(err, errno, "cannot wait for calls");
        }
        if (server->models != NULL)
            models_run(server->models);
        serve_all(server, polls);
        if (polls[0].revents != 0 && !take_trial(server))
            return 0;
    }
}
