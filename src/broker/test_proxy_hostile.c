/* The broker towards a cell in this process, with bytes that no client would send. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/proxy.h"

#define PLACEHOLDER "placeholder-0123456789"
#define HEAD "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: " PLACEHOLDER "\r\n"
#define BODY                                                                                       \
    "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"

struct fixture {
    int endpoint; /* takes connections, and says nothing */
    struct models *models;
    struct proxy *proxy;
    uint16_t port;
    int log_fd; /* the proxy's */
};

static int listen_on_loopback(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static int memory_file(const char *text)
{
    int fd = -1;

    assert_int_equal(fs_memfd("t", text, strlen(text), &fd, NULL), 0);
    return fd;
}

static void start(struct fixture *fixture, uint64_t max_log_bytes)
{
    scoped(mem_freep) char *spec_text = str_format("{\"routes\":[\"anthropic\"],\"models\":[\"m\"],"
                                                   "\"placeholder\":\"" PLACEHOLDER
                                                   "\",\"max_in_flight\":64,\"max_log_bytes\":%ju}",
                                                   (uintmax_t)max_log_bytes);
    scoped(json_freep) json_t *spec = NULL;
    scoped(json_freep) json_t *policy = NULL;
    scoped(buf_done) struct buf table = {0};
    struct error *err = NULL;
    uint16_t port = 0;

    *fixture = (struct fixture){.endpoint = listen_on_loopback(&port)};
    assert_int_equal(json_load(AT_FDCWD, "share/models/policy.json", 1 << 20, &policy, NULL), 0);
    json_write_line(&table, policy);
    scoped(mem_freep) char *setup =
        str_format("{\"routes\":[{\"name\":\"anthropic\",\"api\":\"anthropic\",\"base_url\":"
                   "\"http://127.0.0.1:%u\",\"key\":\"K\"}],\"policy\":%s,\"prices\":{}}",
                   port, buf_text(&table));
    scoped(fd_closep) int setup_fd = memory_file(setup);
    scoped(fd_closep) int keys_fd = memory_file("K=sk-real\n");
    const struct models_sources sources = {setup_fd, keys_fd, -1, -1};

    assert_int_equal(json_parse("spec", spec_text, strlen(spec_text), &spec, NULL), 0);
    if (models_new(&sources, &fixture->models, &err) < 0)
        fail_msg("%s", error_message(err));
    fixture->log_fd = memfd_create("wire", MFD_CLOEXEC);
    if (proxy_new(fixture->models, spec, listen_on_loopback(&fixture->port), fixture->log_fd,
                  &fixture->proxy, &err) < 0)
        fail_msg("%s", error_message(err));
}

static json_t *stop(struct fixture *fixture)
{
    json_t *result = proxy_result(fixture->proxy);

    proxy_free(fixture->proxy);
    models_free(fixture->models);
    (void)close(fixture->endpoint); /* it heard nothing */
    return result;
}

static int connect_port(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int send_new(const struct fixture *fixture, const void *bytes, size_t size)
{
    int fd = connect_port(fixture->port);

    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    return fd;
}

static void run(const struct fixture *fixture)
{
    for (int i = 0; i < 8; i++) {
        proxy_run(fixture->proxy);
        models_run(fixture->models);
    }
}

static void a_trial_that_ends_amid_requests_takes_nobody_along(void **state)
{
    scoped(mem_freep) char *text =
        str_format("%sContent-Length: %zu\r\n\r\n%s", HEAD, strlen(BODY), BODY);
    struct fixture fixture;
    int waiting, late;

    (void)state;
    start(&fixture, 0);
    waiting = send_new(&fixture, text, strlen(text));
    late = connect_port(fixture.port);
    run(&fixture);
    assert_int_equal(send(late, text, strlen(text), MSG_NOSIGNAL), strlen(text)); /* not seen yet */
    scoped(json_freep) json_t *result = stop(&fixture);

    assert_int_equal(json_get_int(result, "forwarded", -1), 1); /* the control: it is one */
    (void)close(waiting);                                       /* it was cut */
    (void)close(late);                                          /* likewise */
}

static void bytes_that_are_no_request_end_their_connection_alone(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
#define CASE(text) {text, sizeof(text) - 1}
        CASE("GET\r\n\r\n"),
        CASE("\r\n\r\n\r\n"),
        CASE("GET \r\n\r\n"),
        CASE(" / HTTP/1.1\r\nHost: x\r\n\r\n"),
        CASE("POST  HTTP/1.1\r\n\r\n"),
        CASE("POST /v1/messages\r\n\r\n"),
        CASE("POST /v1/messages HTTP/9.9\r\nHost: x\r\n\r\n"),
        CASE("\0\0\0\0\r\n\r\n"),
        CASE("POST /v1\0/messages HTTP/1.1\r\nHost: x\r\n\r\n"),
        CASE(HEAD "Content-Length: 99999999999999999999999\r\n\r\nx"),
        CASE(HEAD "Content-Length: -1\r\n\r\nx"),
        CASE(HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx"),
        CASE(HEAD "Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n"),
        CASE(HEAD "Transfer-Encoding: chunked\r\n\r\n3;x=\"\r\n{}\0\r\n0\r\nA: b\r\n\r\n"),
        CASE(HEAD " folded: x\r\n\tand more\r\nContent-Length: 0\r\n\r\n"),
        CASE(HEAD ":\r\nContent-Length: 0\r\n\r\n"),
        CASE(HEAD "A\0b: c\r\nanthropic-beta: x\0y\r\nContent-Length: 2\r\n\r\n{}"),
        CASE("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nGET"),
        CASE("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"),
        CASE("CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n"),
        CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        CASE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
#undef CASE
    };
    struct fixture fixture;
    int fds[ARRAY_SIZE(cases)];

    (void)state;
    start(&fixture, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fds[i] = send_new(&fixture, cases[i].bytes, cases[i].size);
        run(&fixture);
    }
    scoped(json_freep) json_t *result = stop(&fixture);

    assert_int_equal(json_get_int(result, "forwarded", -1), 0);
    assert_true(json_get_bool(result, "recorded", false));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        (void)close(fds[i]); /* whatever it was told */
}

/* What an agent can do is no failure of ours. */
static void a_full_record_is_a_budget_that_is_used_up(void **state)
{
    scoped(mem_freep) char *text =
        str_format("%sContent-Length: %zu\r\n\r\n%s", HEAD, strlen(BODY), BODY);
    struct fixture fixture;
    int fds[3];

    (void)state;
    start(&fixture, 400); /* room for one request's line */
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = send_new(&fixture, text, strlen(text));
        run(&fixture);
    }
    scoped(json_freep) json_t *result = stop(&fixture);

    assert_int_equal(json_get_int(result, "forwarded", -1), 1);
    assert_string_equal(json_get_text(result, "stopped_by"), "record_full");
    assert_true(json_get_bool(result, "recorded", false));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        (void)close(fds[i]); /* two were told of the budget */
}

static void bodies_of_many_connections_are_bounded_together(void **state)
{
    static const char head[] = HEAD "Content-Length: 33000000\r\n\r\n";
    scoped(mem_freep) char *bytes = mem_new(1 << 20, 1);
    struct fixture fixture;
    int fds[5];

    (void)state;
    memset(bytes, ' ', 1 << 20);
    start(&fixture, 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        size_t sent = 0;

        fds[i] = send_new(&fixture, head, strlen(head));
        while (sent < 31 << 20) {
            ssize_t n = send(fds[i], bytes, 1 << 20, MSG_NOSIGNAL | MSG_DONTWAIT);

            sent += n > 0 ? (size_t)n : 0;
            proxy_run(fixture.proxy);
        }
    }
    run(&fixture);
    assert_true(proxy_held_bytes(fixture.proxy) > 60 << 20); /* the control: it does hold them */
    assert_true(proxy_held_bytes(fixture.proxy) <= PROXY_BODIES_BYTES_MAX);
    scoped(json_freep) json_t *result = stop(&fixture);

    assert_int_equal(json_get_int(result, "forwarded", -1), 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        (void)close(fds[i]); /* it was cut */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trial_that_ends_amid_requests_takes_nobody_along),
        cmocka_unit_test(bytes_that_are_no_request_end_their_connection_alone),
        cmocka_unit_test(a_full_record_is_a_budget_that_is_used_up),
        cmocka_unit_test(bodies_of_many_connections_are_bounded_together),
    };

    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL); /* it is a signal */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
