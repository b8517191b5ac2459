/* The broker towards a cell, spoken to as a CLI would, and by hand, as an agent could. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "broker/broker.h"
#include "broker/keys.h"
#include "broker/policy.h"
#include "broker/test_endpoint.h"
#include "broker/usage.h"

#define KEY "sk-real-0451"
#define PLACEHOLDER "placeholder-0123456789"
#define HEAD(path)                                                                                 \
    "POST " path " HTTP/1.1\r\nHost: x\r\nX-Api-Key: " PLACEHOLDER "\r\nConnection: close\r\n"
#define TOOLS "\"tools\":[{\"name\":\"Bash\",\"input_schema\":{}}]"
#define FIRST "{\"role\":\"user\",\"content\":\"hi\"}"
#define BODY(messages)                                                                             \
    "{\"model\":\"claude-haiku-4-5\",\"max_tokens\":100,\"messages\":[" messages "]," TOOLS "}"

static const char stream_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-haiku-4-5-x\",\"usage\":"
    "{\"input_tokens\":1000,\"cache_read_input_tokens\":500,\"output_tokens\":1}}}\n\n"
    "\001data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":200}}\n\n";

struct fixture {
    struct endpoint endpoint;
    struct broker *broker;
    int connection, log_fd;
    uint16_t port;
};

static json_t *load(const char *path)
{
    json_t *value = NULL;
    struct error *err = NULL;

    if (json_load(AT_FDCWD, path, 1 << 20, &value, &err) < 0)
        fail_msg("%s", error_message(err));
    return value;
}

static json_t *setup_json(const struct fixture *fixture)
{
    scoped(mem_freep) char *url = str_format("http://127.0.0.1:%u", fixture->endpoint.port);
    json_t *setup = json_object(), *routes = json_array(), *route = json_object();

    json_put_text(route, "name", "anthropic");
    json_put_text(route, "api", "anthropic");
    json_put_text(route, "base_url", url);
    json_push(routes, route);
    json_put(setup, "routes", routes);
    json_put(setup, "policy", load("share/models/policy.json"));
    json_put(setup, "prices", load("share/models/prices.json"));
    return setup;
}

static int listen_on_loopback(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* limits: further members of the spec, beginning with a comma, or "". */
static void start_with(struct fixture *fixture, const char *const *answers, const char *limits,
                       int log_fd)
{
    static const char *const names[] = {"ANTHROPIC_API_KEY", NULL};
    scoped(mem_freep) char *text =
        str_format("{\"routes\":[\"anthropic\"],\"models\":[\"claude-haiku-4-5\"],"
                   "\"placeholder\":\"" PLACEHOLDER "\"%s}",
                   limits);
    scoped(json_freep) json_t *spec = NULL;
    scoped(json_freep) json_t *setup = NULL;
    scoped(fd_closep) int keys_fd = -1;
    struct error *err = NULL;

    *fixture = (struct fixture){.log_fd = log_fd};
    endpoint_start(&fixture->endpoint, answers);
    setup = setup_json(fixture);
    assert_int_equal(setenv("ANTHROPIC_API_KEY", KEY, 1), 0);
    assert_int_equal(keys_take_env(names, &keys_fd, NULL), 0);
    assert_int_equal(json_parse("spec", text, strlen(text), &spec, NULL), 0);
    const struct broker_options options = {.program = getenv("CLOSEDBOOK_BROKER_PROGRAM"),
                                           .setup = setup,
                                           .env_keys_fd = keys_fd,
                                           .dotenv_fd = -1,
                                           .keys_yaml_fd = -1};
    scoped(fd_closep) int listener = listen_on_loopback(&fixture->port);
    const struct broker_models models = {spec, listener, log_fd};

    if (broker_start_upstream(&options, &fixture->broker, &err) < 0 ||
        broker_connect(fixture->broker, &fixture->connection, &err) < 0 ||
        broker_models_open(fixture->connection, &models, &err) < 0)
        fail_msg("%s", error_message(err));
}

static void start(struct fixture *fixture, const char *const *answers, const char *limits)
{
    start_with(fixture, answers, limits, memfd_create("wire", MFD_CLOEXEC));
}

/* *ret_log: wire.jsonl; *ret_requests: what the endpoint was sent. Either may be NULL. */
static json_t *stop(struct fixture *fixture, struct buf *ret_log, struct buf *ret_requests)
{
    json_t *result = NULL;
    struct error *err = NULL;

    if (broker_models_close(fixture->connection, &result, &err) < 0)
        fail_msg("%s", error_message(err));
    if (ret_log != NULL) {
        assert_int_equal(lseek(fixture->log_fd, 0, SEEK_SET), 0);
        assert_int_equal(fs_read_fd(fixture->log_fd, "wire", 1 << 24, ret_log, NULL), 0);
    }
    (void)close(fixture->connection); /* done */
    (void)close(fixture->log_fd);     /* read */
    broker_free(fixture->broker);
    endpoint_stop(&fixture->endpoint, ret_requests);
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

static void send_text(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, text, size, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* it hung up, as it may */
        text += n;
        size -= (size_t)n;
    }
}

/* The status of the answer, 0: none came. ret: all of it. */
static int receive_all(int fd, struct buf *ret)
{
    char chunk[4096];
    ssize_t n;

    while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0)
        buf_append(ret, chunk, (size_t)n);
    (void)close(fd); /* read to its end */
    return str_starts(buf_text(ret), "HTTP/1.1 ") ? (int)strtol(buf_text(ret) + 9, NULL, 10) : 0;
}

static int talk(const struct fixture *fixture, const char *text, struct buf *ret)
{
    int fd = connect_port(fixture->port);

    send_text(fd, text, strlen(text));
    return receive_all(fd, ret);
}

/* A whole request with this body. */
static char *post(const char *head, const char *body)
{
    return str_format("%sContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
}

static int ask(const struct fixture *fixture, const char *body)
{
    scoped(mem_freep) char *text = post(HEAD("/v1/messages?beta=true"), body);
    scoped(buf_done) struct buf answer = {0};

    return talk(fixture, text, &answer);
}

/* --- what is let through ---------------------------------------------------------------------- */

static void a_stream_passes_as_it_comes_with_the_real_key(void **state)
{
    static const char *const answers[] = {stream_answer, NULL};
    scoped(mem_freep) char *text = post(HEAD("/v1/messages?beta=true"), BODY(FIRST));
    scoped(buf_done) struct buf answer = {0};
    scoped(buf_done) struct buf log = {0};
    scoped(buf_done) struct buf requests = {0};
    struct fixture fixture;
    char chunk[4096];

    (void)state;
    start(&fixture, answers, "");
    int fd = connect_port(fixture.port);

    send_text(fd, text, strlen(text));
    while (strstr(buf_text(&answer), "message_start") == NULL) {
        ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

        assert_true(n > 0);
        buf_append(&answer, chunk, (size_t)n);
    }
    assert_null(strstr(buf_text(&answer), "message_delta")); /* that was not sent yet */
    endpoint_go(&fixture.endpoint);
    assert_int_equal(receive_all(fd, &answer), 200);
    assert_non_null(strstr(buf_text(&answer), "message_delta"));
    assert_non_null(strstr(buf_text(&answer), "text/event-stream"));
    scoped(json_freep) json_t *result = stop(&fixture, &log, &requests);

    assert_int_equal(json_get_int(result, "turns", -1), 1);
    assert_int_equal(json_get_int(result, "refused", -1), 0);
    assert_int_equal(json_get_int(json_get_object(result, "usage"), "input_tokens", 0), 1000);
    assert_int_equal(json_get_int(json_get_object(result, "usage"), "cache_read_tokens", 0), 500);
    assert_int_equal(json_get_int(json_get_object(result, "usage"), "output_tokens", 0), 200);
    /* 1000 x 1 + 500 x 0.1 + 200 x 5 dollars a million */
    assert_int_equal(json_get_int(result, "cost_microusd", 0), 2050);
    assert_string_equal(json_get_text(result, "model"), "claude-haiku-4-5-x");
    assert_true(json_get_bool(result, "recorded", false));
    assert_non_null(strstr(buf_text(&requests), "x-api-key: " KEY "\r\n"));
    assert_null(strstr(buf_text(&requests), PLACEHOLDER));
    assert_non_null(strstr(buf_text(&log), "\"kind\": \"request\""));
    assert_non_null(strstr(buf_text(&log), "message_delta"));
    assert_null(strstr(buf_text(&log), KEY));
}

static void clients_that_only_look_are_answered_here(void **state)
{
    static const char *const answers[] = {NULL};
    struct fixture fixture;
    scoped(buf_done) struct buf hello = {0};
    scoped(buf_done) struct buf upgrade = {0};

    (void)state;
    start(&fixture, answers, "");
    assert_int_equal(
        talk(&fixture, "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &hello), 200);
    assert_int_equal(talk(&fixture,
                          "GET /v1/responses HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                          "Authorization: Bearer " PLACEHOLDER "\r\nConnection: close\r\n\r\n",
                          &upgrade),
                     426);
    scoped(json_freep) json_t *result = stop(&fixture, NULL, NULL);

    assert_int_equal(json_get_int(result, "requests", -1), 2);
    assert_int_equal(json_get_int(result, "refused", -1), 0);
}

/* --- what is refused -------------------------------------------------------------------------- */

#define ASK(inner) "{\"model\":\"claude-haiku-4-5\",\"max_tokens\":9," inner "}"
#define USER(part) "\"messages\":[{\"role\":\"user\",\"content\":[" part "]}]"

static void what_a_task_did_not_allow_is_refused_and_recorded(void **state)
{
    static const char *const answers[] = {NULL};
    static const struct {
        const char *head, *body, *reason;
        int status;
    } cases[] = {
        {HEAD("/v1/messages"), "{\"model\":\"claude-opus-5\",\"messages\":[]}", "the model", 400},
        {HEAD("/v1/files"), "{}", "method and path", 403},
        {HEAD("/v1/messages?key=1"), "{}", "query", 403},
        {HEAD("http://h/v1/messages"), "{}", "plain path", 400},
        {HEAD("/v1/../v1/messages%20"), "{}", "plain path", 400},
        {"PUT /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", "{}", "method", 400},
        {HEAD("/v1/messages") "Host: y\r\n", "{}", "Host", 400},
        {HEAD("/v1/messages") "Content-Length: 2\r\n", "{}", "two lengths", 400},
        {HEAD("/v1/messages") "Transfer-Encoding: chunked\r\n", "{}", "two lengths", 400},
        {HEAD("/v1/messages") "Content-Encoding: gzip\r\n", "{}", "two ways", 400},
        {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: placeholder-of-another-1\r\n"
         "Connection: close\r\n",
         "{}", "key", 401},
        {"POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", "{}", "key", 401},
        {HEAD("/v1/messages") "Authorization: Bearer other\r\n", "{}", "key", 401},
        {HEAD("/v1/messages"), "no json", "request:1", 400},
        {HEAD("/v1/messages"), ASK("\"messages\":[],\"mcp_servers\":[]"), "mcp_servers", 400},
        {HEAD("/v1/messages"), ASK("\"messages\":[],\"container\":\"x\""), "container", 400},
        {HEAD("/v1/messages"),
         ASK("\"messages\":[],\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"s\"}]"),
         "web_search_20250305", 400},
        {HEAD("/v1/messages"),
         ASK(USER("{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"http://h\"}}")),
         "a source of type 'url'", 400},
        {HEAD("/v1/messages"),
         ASK(USER("{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":[{\"type\":"
                  "\"document\",\"source\":{\"type\":\"file\",\"file_id\":\"f\"}}]}")),
         "a source of type 'file'", 400},
        {HEAD("/v1/messages"), ASK(USER("{\"type\":\"container_upload\",\"file_id\":\"f\"}")),
         "container_upload", 400},
        {HEAD("/v1/responses"), "{\"model\":\"claude-haiku-4-5\",\"input\":\"x\"}",
         "openai-responses", 400},
    };
    scoped(buf_done) struct buf log = {0};
    scoped(buf_done) struct buf requests = {0};
    struct fixture fixture;

    (void)state;
    start(&fixture, answers, "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text = post(cases[i].head, cases[i].body);
        scoped(buf_done) struct buf answer = {0};
        int status = talk(&fixture, text, &answer);

        if (status != cases[i].status || strstr(buf_text(&answer), "closedbook: ") == NULL)
            fail_msg("case %zu: status %d, %s", i, status, buf_text(&answer));
    }
    scoped(json_freep) json_t *result = stop(&fixture, &log, &requests);
    const char *line = buf_text(&log);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *end = strchr(line, '\n');

        assert_non_null(end);
        scoped(mem_freep) char *one = str_ndup(line, (size_t)(end - line));

        if (strstr(one, "\"refused\"") == NULL || strstr(one, cases[i].reason) == NULL)
            fail_msg("case %zu: %s", i, one);
        line = end + 1;
    }
    assert_int_equal(json_get_int(result, "refused", -1), ARRAY_SIZE(cases));
    assert_int_equal(json_get_int(result, "forwarded", -1), 0);
    assert_int_equal(requests.size_bytes, 0);
}

static void a_head_of_ten_megabytes_is_dropped_and_counted(void **state)
{
    static const char *const answers[] = {NULL};
    static const char start_line[] = "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Long: ";
    scoped(mem_freep) char *blanks = mem_new(10 << 20, 1);
    scoped(buf_done) struct buf answer = {0};
    scoped(buf_done) struct buf log = {0};
    struct fixture fixture;

    (void)state;
    memset(blanks, 'x', 10 << 20);
    start(&fixture, answers, "");
    int fd = connect_port(fixture.port);
    const struct timeval patience = {.tv_usec = 200000};

    /* The server reads no more of it, and may keep the connection until it is closed. */
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    send_text(fd, start_line, strlen(start_line));
    send_text(fd, blanks, 10 << 20);
    assert_int_not_equal(receive_all(fd, &answer), 200);
    scoped(json_freep) json_t *result = stop(&fixture, &log, NULL);

    assert_int_equal(json_get_int(result, "forwarded", -1), 0);
    assert_int_equal(json_get_int(result, "unheard", -1) + json_get_int(result, "refused", -1), 1);
    assert_true(log.size_bytes > 0);
}

/* --- budgets ---------------------------------------------------------------------------------- */

#define WHOLE                                                                                      \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"               \
    "{\"model\":\"m\",\"usage\":{\"input_tokens\":10,\"output_tokens\":90}}"
#define SECOND FIRST ",{\"role\":\"assistant\",\"content\":\"yes\"}," FIRST

static void turns_are_those_of_the_main_thread(void **state)
{
    static const char *const answers[] = {WHOLE, WHOLE, WHOLE, NULL};
    struct fixture fixture;

    (void)state;
    start(&fixture, answers, ",\"max_turns\":2");
    assert_int_equal(ask(&fixture, BODY(FIRST)), 200);
    /* Another conversation is no turn of this one. */
    assert_int_equal(ask(&fixture, BODY("{\"role\":\"user\",\"content\":\"other\"}")), 200);
    assert_int_equal(ask(&fixture, BODY(SECOND)), 200);
    assert_int_equal(ask(&fixture, BODY(SECOND "," FIRST)), 400);
    scoped(json_freep) json_t *result = stop(&fixture, NULL, NULL);

    assert_int_equal(json_get_int(result, "turns", -1), 2);
    assert_int_equal(json_get_int(result, "aside", -1), 1);
    assert_int_equal(json_get_int(result, "refused", -1), 0);
    assert_string_equal(json_get_text(result, "stopped_by"), "max_turns");
}

/* A client that resumes its session tells what was said otherwise than it did before. */
static void an_exchange_of_a_dialog_has_turns_of_its_own(void **state)
{
    static const char *const answers[] = {WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, NULL};
    static const char retold[] = "{\"role\":\"user\",\"content\":\"retold\"},"
                                 "{\"role\":\"assistant\",\"content\":\"yes\"}";
    struct fixture fixture;
    json_t *sums = NULL;

    (void)state;
    start(&fixture, answers, ",\"max_turns\":1");
    assert_int_equal(ask(&fixture, BODY(FIRST)), 200);
    /* Before it is said, whoever ends with it holds another conversation. */
    scoped(mem_freep) char *next =
        str_format("%s,{\"role\":\"user\",\"content\":\"and \\\"more\\\"\"}", retold);
    scoped(mem_freep) char *body = str_format(BODY("%s"), next);

    assert_int_equal(broker_models_next(fixture.connection, NULL, &sums, NULL), 0);
    assert_int_equal(json_get_int(sums, "turns", -1), 1);
    json_decref(sums);
    assert_int_equal(ask(&fixture, body), 200);
    assert_int_equal(broker_models_next(fixture.connection, "and \"more\"", &sums, NULL), 0);
    assert_int_equal(json_get_int(sums, "turns", -1), 1);
    assert_int_equal(json_get_int(sums, "aside", -1), 1);
    json_decref(sums);
    /* Nor is who ends with something else, and then it is the one. */
    scoped(mem_freep) char *other =
        str_format(BODY("%s,{\"role\":\"user\",\"content\":\"and less\"}"), retold);

    assert_int_equal(ask(&fixture, other), 200);
    assert_int_equal(ask(&fixture, body), 200);
    /* That was the one turn of this exchange. */
    scoped(mem_freep) char *further = str_format(BODY("%s," FIRST), next);

    assert_int_equal(ask(&fixture, further), 400);
    scoped(json_freep) json_t *result = stop(&fixture, NULL, NULL);

    assert_int_equal(json_get_int(result, "turns", -1), 2);
    assert_int_equal(json_get_int(result, "aside", -1), 2);
    assert_string_equal(json_get_text(result, "stopped_by"), "max_turns");
}

static void tokens_and_money_come_to_an_end(void **state)
{
    static const char *const answers[] = {WHOLE, WHOLE, NULL};
    static const struct {
        const char *limits, *reason;
        int first;
    } cases[] = {
        {",\"max_output_tokens\":90", "max_output_tokens", 200},
        {",\"max_total_tokens\":100", "max_total_tokens", 200},
        {",\"max_total_tokens\":101", NULL, 200},
        /* 100 tokens of output may cost 500, and the first call cost 460. */
        {",\"max_microusd\":900", "max_usd", 200},
        {",\"max_microusd\":100", "max_usd", 400},
        {",\"max_microusd\":5000", NULL, 200},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture fixture;

        start(&fixture, answers, cases[i].limits);
        assert_int_equal(ask(&fixture, BODY(FIRST)), cases[i].first);
        assert_int_equal(ask(&fixture, BODY(SECOND)), cases[i].reason == NULL ? 200 : 400);
        scoped(json_freep) json_t *result = stop(&fixture, NULL, NULL);

        assert_true(str_equal(json_get_text(result, "stopped_by"), cases[i].reason));
    }
}

static void what_cannot_be_recorded_is_not_sent_on(void **state)
{
    static const char *const answers[] = {WHOLE, NULL};
    scoped(buf_done) struct buf requests = {0};
    struct fixture fixture;

    (void)state;
    start_with(&fixture, answers, "", open("/dev/full", O_WRONLY | O_CLOEXEC));
    assert_int_equal(ask(&fixture, BODY(FIRST)), 400);
    scoped(json_freep) json_t *result = stop(&fixture, NULL, &requests);

    assert_false(json_get_bool(result, "recorded", true));
    assert_int_equal(requests.size_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_passes_as_it_comes_with_the_real_key),
        cmocka_unit_test(clients_that_only_look_are_answered_here),
        cmocka_unit_test(what_a_task_did_not_allow_is_refused_and_recorded),
        cmocka_unit_test(a_head_of_ten_megabytes_is_dropped_and_counted),
        cmocka_unit_test(turns_are_those_of_the_main_thread),
        cmocka_unit_test(an_exchange_of_a_dialog_has_turns_of_its_own),
        cmocka_unit_test(tokens_and_money_come_to_an_end),
        cmocka_unit_test(what_cannot_be_recorded_is_not_sent_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
