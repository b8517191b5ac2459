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

int broker_start(const char *program, struct broker **ret, struct error **err)
{
    const char *const argv[] = {program, NULL};
    int ends[2];
    int r = make_pair(ends, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int ours = ends[0];
    scoped(fd_closep) int theirs = ends[1];
    const int fds[] = {-1, -1, STDERR_FILENO, theirs};
    const struct spawn_options options = {
        .argv = argv, .cwd_fd = -1, .fds = fds, .fd_count = ARRAY_SIZE(fds), .new_session = true};
    int pidfd = -1;
    pid_t pid = 0;

    r = spawn_start(&options, &pidfd, &pid, err);
    if (r < 0)
        return error_wrap(err, r, "broker");
    struct broker *broker = mem_new(1, sizeof(*broker));

    *broker = (struct broker){.control = take_fd(&ours), .pidfd = pidfd};
    *ret = broker;
    return 0;
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

static int ask(int connection, enum broker_kind kind, const int *fds, struct broker_reply *ret,
               struct error **err)
{
    const struct broker_request request = {.magic = BROKER_MAGIC, .kind = kind};
    int received[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r =
        message_send(connection, &request, sizeof(request), fds, fds == NULL ? 0 : BROKER_OPEN_FDS);

    if (r == 0)
        r = message_receive(connection, ret, sizeof(*ret), received, &count);
    if (r < 0)
        return error_errno(err, -r, "the broker is gone");
    if (ret->magic != BROKER_MAGIC || count > 0)
        return error_set(err, ERROR_BUG, "the broker's reply makes no sense");
    ret->text[sizeof(ret->text) - 1] = '\0';
    return ret->failed == 0 ? 0 : error_set(err, ERROR_SYSTEM, "broker: %s", ret->text);
}

int broker_open(int connection, const struct broker_mocks *mocks, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int table_fd = -1;
    struct broker_reply reply = {0};

    json_write_line(&text, mocks->tools);
    int r = fs_memfd("mocks", buf_text(&text), text.size_bytes, &table_fd, err);

    if (r < 0)
        return r;
    const int fds[BROKER_OPEN_FDS] = {[BROKER_TABLE] = table_fd,
                                      [BROKER_LISTENER] = mocks->listener,
                                      [BROKER_LOG] = mocks->log_fd};

    return ask(connection, BROKER_OPEN, fds, &reply, err);
}

int broker_close(int connection, struct broker_result *ret, struct error **err)
{
    struct broker_reply reply = {0};
    int r = ask(connection, BROKER_CLOSE, NULL, &reply, err);

    if (r < 0)
        return r;
    *ret = (struct broker_result){.calls = reply.calls,
                                  .refused = reply.refused,
                                  .unreported = reply.unreported,
                                  .cut = reply.cut != 0};
    return 0;
}
