#include "cell/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"

#define PIECE_BYTES 65536 /* on the stack: no more of it is touched than there is to read */
#define DRAIN_BYTES_MAX ((uint64_t)2 << 20) /* more than a pipe holds: somebody still writes */
#define STOP_POLL_MS 100
#define CAPTURES_MAX 16
#define NS_PER_MS UINT64_C(1000000)

/* Reads once. Returns the bytes read, 0 when there are none now; closes the capture at its end. */
static size_t read_piece(struct cell_capture *capture)
{
    char piece[PIECE_BYTES];
    ssize_t n = read(capture->fd, piece, sizeof(piece));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        /* EIO is how a terminal says that its other side is gone. */
        fd_closep(&capture->fd);
        return 0;
    }
    capture->bytes_seen += (uint64_t)n;
    if (capture->buf != NULL)
        buf_append(capture->buf, piece, (size_t)n);
    if (capture->on_bytes != NULL)
        capture->on_bytes(capture->context, piece, (size_t)n);
    return (size_t)n;
}

static void drain(struct cell_capture *captures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t drained = 0, n = 1;

        while (captures[i].fd >= 0 && n > 0 && drained < DRAIN_BYTES_MAX) {
            n = read_piece(&captures[i]);
            drained += n;
        }
    }
}

/* Until the deadline, and never long while a signal handler may ask to stop. */
static int poll_ms(uint64_t deadline_ns, const volatile int *stop)
{
    uint64_t now = clock_ns(), ms = UINT64_MAX;

    if (deadline_ns > 0)
        ms = deadline_ns > now ? (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    if (stop != NULL && ms > STOP_POLL_MS)
        ms = STOP_POLL_MS;
    return ms > INT32_MAX ? -1 : (int)ms;
}

static int pump(struct cell *cell, struct cell_capture *captures, size_t count, int timeout_ms,
                struct error **err)
{
    struct pollfd watched[CAPTURES_MAX + 1];
    struct message message;

    watched[0] = (struct pollfd){.fd = cell->monitor->socket, .events = POLLIN};
    for (size_t i = 0; i < count; i++)
        watched[i + 1] = (struct pollfd){.fd = captures[i].fd, .events = POLLIN};
    if (poll(watched, count + 1, timeout_ms) < 0)
        return errno == EINTR ? 0 : error_errno(err, errno, "cannot wait for a cell");
    for (size_t i = 0; i < count; i++) {
        if (watched[i + 1].revents != 0)
            (void)read_piece(&captures[i]);
    }
    return watched[0].revents == 0 ? 0 : client_read(cell->monitor, &message, err);
}

static int prepare(struct cell_capture *captures, size_t count, struct error **err)
{
    ASSERT(count <= CAPTURES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (captures[i].fd < 0)
            continue;
        int flags = fcntl(captures[i].fd, F_GETFL);

        if (flags < 0 || fcntl(captures[i].fd, F_SETFL, flags | O_NONBLOCK) < 0)
            return error_errno(err, errno, "cannot read what a program prints");
    }
    return 0;
}

static bool has_enough(const struct cell_patience *patience)
{
    for (size_t i = 0; i < patience->capture_count; i++) {
        if (patience->captures[i].enough)
            return true;
    }
    return false;
}

int cell_wait(struct cell *cell, uint32_t process, const struct cell_patience *patience,
              enum cell_wait_result *ret, struct cell_exit *ret_exit, struct error **err)
{
    uint32_t number = process > 0 ? process : 1;
    int r = prepare(patience->captures, patience->capture_count, err);

    while (r == 0) {
        const struct cell_process *awaited = client_find_process(cell, number);

        if (awaited == NULL || cell->monitor == NULL)
            return error_set(err, ERROR_BUG, "no such program in the cell");
        if (awaited->exited) {
            drain(patience->captures, patience->capture_count);
            *ret_exit = awaited->exit;
            *ret = CELL_EXITED;
            return 0;
        }
        if ((patience->stop != NULL && *patience->stop != 0) || has_enough(patience)) {
            *ret = CELL_STOPPED;
            return 0;
        }
        if (patience->deadline_ns > 0 && clock_ns() >= patience->deadline_ns) {
            *ret = CELL_DEADLINE;
            return 0;
        }
        r = pump(cell, patience->captures, patience->capture_count,
                 poll_ms(patience->deadline_ns, patience->stop), err);
    }
    return r;
}
