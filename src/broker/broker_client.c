#include "broker/broker.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/spawn.h"
#include "broker/broker_wire.h"

struct broker {
    int control;
    int pidfd; /* -1: not ours to wait for */
};

static int make_pair(int ends[2], struct error **err)
{
    int r = message_pair(ends);

    return r < 0 ? error_errno(err, -r, "cannot make a socket for the broker") : 0;
}

static int start(const char *program, int fds[static BROKER_FDS_END], struct broker **ret,
                 struct error **err)
{
    const char *const argv[] = {program, NULL};
    int ends[2];
    int r = make_pair(ends, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int ours = ends[0];
    scoped(fd_closep) int theirs = ends[1];
    int pidfd = -1;
    pid_t pid = 0;

    fds[STDIN_FILENO] = fds[STDOUT_FILENO] = -1;
    fds[STDERR_FILENO] = STDERR_FILENO;
    fds[BROKER_CONTROL_FD] = theirs;
    const struct spawn_options options = {
        .argv = argv, .cwd_fd = -1, .fds = fds, .fd_count = BROKER_FDS_END, .new_session = true};

    r = spawn_start(&options, &pidfd, &pid, err);
    if (r < 0)
        return error_wrap(err, r, "broker");
    struct broker *broker = mem_new(1, sizeof(*broker));

    *broker = (struct broker){.control = take_fd(&ours), .pidfd = pidfd};
    *ret = broker;
    return 0;
}

int broker_start(const char *program, struct broker **ret, struct error **err)
{
    int fds[BROKER_FDS_END] = {[BROKER_SETUP_FD] = -1,
                               [BROKER_ENV_KEYS_FD] = -1,
                               [BROKER_DOTENV_FD] = -1,
                               [BROKER_KEYS_YAML_FD] = -1};

    return start(program, fds, ret, err);
}

static int seal_json(const char *name, const json_t *value, int *ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, value);
    return fs_memfd(name, buf_text(&text), text.size_bytes, ret, err);
}

int broker_start_upstream(const struct broker_options *options, struct broker **ret,
                          struct error **err)
{
    scoped(fd_closep) int setup_fd = -1;
    int r = seal_json("setup", options->setup, &setup_fd, err);
    int fds[BROKER_FDS_END] = {[BROKER_SETUP_FD] = setup_fd,
                               [BROKER_ENV_KEYS_FD] = options->env_keys_fd,
                               [BROKER_DOTENV_FD] = options->dotenv_fd,
                               [BROKER_KEYS_YAML_FD] = options->keys_yaml_fd};

    return r < 0 ? r : start(options->program, fds, ret, err);
}

int broker_connect(struct broker *broker, int *ret, struct error **err)
{
    const struct broker_request hello = {.magic = BROKER_MAGIC};
    int ends[2];
    int r = make_pair(ends, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int ours = ends[0];
    scoped(fd_closep) int theirs = ends[1];

    r = message_send(broker->control, &hello, sizeof(hello), &theirs, 1);
    if (r < 0)
        return error_errno(err, -r, "the broker is gone");
    *ret = take_fd(&ours);
    return 0;
}

void broker_forget(struct broker *broker)
{
    if (broker == NULL)
        return;
    fd_closep(&broker->control);
    fd_closep(&broker->pidfd);
    broker->control = broker->pidfd = -1;
}

void broker_free(struct broker *broker)
{
    int status = 0;

    if (broker == NULL)
        return;
    fd_closep(&broker->control);
    if (broker->pidfd >= 0)
        (void)!spawn_wait(broker->pidfd, &status, NULL); /* it ends with its connection */
    fd_closep(&broker->pidfd);
    free(broker);
}

/* --- a trial's side */

/* What a trial says, with its descriptors. */
struct words {
    enum broker_kind kind;
    const int *fds;
    size_t fd_count;
};

/* *ret_fd: what came with the reply, -1: nothing; NULL: nothing may. */
static int say(int connection, const struct words *words, struct broker_reply *ret, int *ret_fd,
               struct error **err)
{
    const struct broker_request request = {.magic = BROKER_MAGIC, .kind = words->kind};
    int received[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r = message_send(connection, &request, sizeof(request), words->fds, words->fd_count);

    if (r == 0)
        r = message_receive(connection, ret, sizeof(*ret), received, &count);
    if (r < 0)
        return error_errno(err, -r, "the broker is gone");
    scoped(fd_closep) int fd = count == 1 ? received[0] : -1;

    if (ret->magic != BROKER_MAGIC || count > (ret_fd == NULL ? 0u : 1u))
        return error_set(err, ERROR_BUG, "the broker's reply makes no sense");
    ret->text[sizeof(ret->text) - 1] = '\0';
    if (ret->failed != 0)
        return error_set(err, ret->failed <= ERROR_BUG ? (enum error_code)ret->failed : ERROR_BUG,
                         "broker: %s", ret->text);
    if (ret_fd != NULL)
        *ret_fd = take_fd(&fd);
    return 0;
}

/* The same, for replies that bring JSON. */
static int say_for_json(int connection, const struct words *words, json_t **ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = -1;
    struct broker_reply reply = {0};
    int r = say(connection, words, &reply, &fd, err);

    if (r == 0)
        r = fs_read_fd(fd, "the broker's answer", BUF_BYTES_MAX - 1, &text, err);
    return r < 0 ? r
                 : json_parse("the broker's answer", buf_text(&text), text.size_bytes, ret, err);
}

int broker_open(int connection, const struct broker_mocks *mocks, struct error **err)
{
    scoped(fd_closep) int table_fd = -1;
    struct broker_reply reply = {0};
    int r = seal_json("mocks", mocks->tools, &table_fd, err);

    if (r < 0)
        return r;
    const int fds[BROKER_OPEN_FDS] = {[BROKER_TABLE] = table_fd,
                                      [BROKER_LISTENER] = mocks->listener,
                                      [BROKER_LOG] = mocks->log_fd};
    const struct words words = {BROKER_OPEN, fds, BROKER_OPEN_FDS};

    return say(connection, &words, &reply, NULL, err);
}

int broker_close(int connection, struct broker_result *ret, struct error **err)
{
    struct broker_reply reply = {0};
    const struct words words = {BROKER_CLOSE, NULL, 0};
    int r = say(connection, &words, &reply, NULL, err);

    if (r < 0)
        return r;
    *ret = (struct broker_result){.calls = reply.calls,
                                  .refused = reply.refused,
                                  .unreported = reply.unreported,
                                  .cut = reply.cut != 0};
    return 0;
}

/* --- questions to endpoints */

static json_t *list_json(const struct str_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; list != NULL && i < list->count; i++)
        json_push(array, json_text(list->items[i], strlen(list->items[i])));
    return array;
}

int broker_ask(int connection, const struct broker_question *question, json_t **ret,
               struct error **err)
{
    scoped(json_freep) json_t *text = json_object();
    scoped(fd_closep) int fd = -1;

    json_put_text(text, "route", question->route);
    json_put_text(text, "path", question->path);
    json_put(text, "headers", list_json(question->headers));
    json_put(text, "body", json_deep_copy(question->body));
    json_put_int(text, "timeout_ms", (int64_t)question->timeout_ms);
    json_put_int(text, "answer_max_bytes", (int64_t)question->answer_max_bytes);
    json_put_int(text, "attempts_max", question->attempts_max);
    int r = seal_json("question", text, &fd, err);

    if (r < 0)
        return r;
    const struct words words = {BROKER_ASK, &fd, 1};

    return say_for_json(connection, &words, ret, err);
}

int broker_facts(int connection, json_t **ret, struct error **err)
{
    const struct words words = {BROKER_FACTS, NULL, 0};

    return say_for_json(connection, &words, ret, err);
}

/* --- recordings */

int broker_record(int connection, int log_fd, struct error **err)
{
    const struct words words = {BROKER_RECORD, &log_fd, 1};
    struct broker_reply reply = {0};

    return say(connection, &words, &reply, NULL, err);
}

int broker_replay(int connection, int log_fd, struct error **err)
{
    const struct words words = {BROKER_REPLAY, &log_fd, log_fd < 0 ? 0 : 1};
    struct broker_reply reply = {0};

    return say(connection, &words, &reply, NULL, err);
}

int broker_recording_check(int connection, struct error **err)
{
    const struct words words = {BROKER_RECORDING_END, NULL, 0};
    struct broker_reply reply = {0};

    return say(connection, &words, &reply, NULL, err);
}

/* --- endpoints for an agent */

int broker_models_open(int connection, const struct broker_models *models, struct error **err)
{
    scoped(fd_closep) int spec_fd = -1;
    struct broker_reply reply = {0};
    int r = seal_json("models", models->spec, &spec_fd, err);

    if (r < 0)
        return r;
    const int fds[BROKER_OPEN_FDS] = {[BROKER_TABLE] = spec_fd,
                                      [BROKER_LISTENER] = models->listener,
                                      [BROKER_LOG] = models->log_fd};
    const struct words words = {BROKER_MODELS, fds, BROKER_OPEN_FDS};

    return say(connection, &words, &reply, NULL, err);
}

int broker_models_next(int connection, const char *prompt, json_t **ret, struct error **err)
{
    scoped(json_freep) json_t *text = json_object();
    scoped(fd_closep) int fd = -1;

    json_put(text, "prompt", json_text_or_null(prompt));
    int r = seal_json("prompt", text, &fd, err);

    if (r < 0)
        return r;
    const struct words words = {BROKER_MODELS_NEXT, &fd, 1};

    return say_for_json(connection, &words, ret, err);
}

int broker_models_close(int connection, json_t **ret, struct error **err)
{
    const struct words words = {BROKER_MODELS_END, NULL, 0};

    return say_for_json(connection, &words, ret, err);
}
