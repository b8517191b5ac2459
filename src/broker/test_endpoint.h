#pragma once
/*
 * test_endpoint: a model endpoint on loopback that answers as it is told, for the tests of this
 * folder. Included after cmocka.
 */

#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fs.h"

/* A child that gives each connection the next answer, and writes down each request. */
struct endpoint {
    pid_t pid;
    uint16_t port;
    int requests_fd; /* what it was sent, from a pipe */
    int go_fd;       /* a byte lets it go on where an answer has a '\001' */
};

/* A whole request, head and body. */
static inline void endpoint_read(int fd, struct buf *ret)
{
    char chunk[4096];

    for (;;) {
        const char *head = buf_text(ret), *end = strstr(head, "\r\n\r\n");
        const char *length = strcasestr(head, "content-length: ");
        size_t body = length == NULL ? 0 : (size_t)strtoul(length + 16, NULL, 10);

        if (end != NULL && ret->size_bytes >= (size_t)(end - head) + 4 + body)
            return;
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n <= 0)
            return;
        buf_append(ret, chunk, (size_t)n);
    }
}

static inline void endpoint_answer(int fd, const char *answer, int go_fd)
{
    char byte;

    while (*answer != '\0') {
        size_t length = strcspn(answer, "\001");

        (void)!send(fd, answer, length, MSG_NOSIGNAL); /* it may have hung up */
        answer += length;
        if (*answer == '\001') {
            (void)!read(go_fd, &byte, 1); /* the end is as good */
            answer++;
        }
    }
}

static inline _Noreturn void endpoint_serve(int listener, const char *const *answers,
                                            int requests_fd, int go_fd)
{
    for (; *answers != NULL; answers++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        scoped(buf_done) struct buf request = {0};

        endpoint_read(fd, &request);
        (void)!write(requests_fd, buf_text(&request), request.size_bytes); /* small */
        (void)!write(requests_fd, "\n--\n", 4);                            /* likewise */
        endpoint_answer(fd, *answers, go_fd);
        (void)close(fd); /* no more is sent */
    }
    _exit(0);
}

static inline void endpoint_start(struct endpoint *endpoint, const char *const *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), requests[2], go[2];

    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(pipe2(requests, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    endpoint->pid = fork();
    assert_true(endpoint->pid >= 0);
    if (endpoint->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        (void)close(go[1]);                     /* so that our end is the last */
        endpoint_serve(listener, answers, requests[1], go[0]);
    }
    (void)close(requests[1]); /* the child's */
    (void)close(go[0]);       /* likewise */
    (void)close(listener);    /* likewise */
    endpoint->port = ntohs(address.sin_port);
    endpoint->requests_fd = requests[0];
    endpoint->go_fd = go[1];
}

static inline void endpoint_go(const struct endpoint *endpoint)
{
    assert_int_equal(write(endpoint->go_fd, "x", 1), 1);
}

/* All that it was sent. */
static inline void endpoint_stop(struct endpoint *endpoint, struct buf *ret)
{
    (void)kill(endpoint->pid, SIGKILL); /* it may have ended */
    assert_int_equal(waitpid(endpoint->pid, NULL, 0), endpoint->pid);
    if (ret != NULL)
        assert_int_equal(fs_read_fd(endpoint->requests_fd, "requests", 1 << 20, ret, NULL), 0);
    (void)close(endpoint->requests_fd); /* read */
    (void)close(endpoint->go_fd);       /* done */
}
