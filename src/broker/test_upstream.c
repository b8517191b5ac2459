/* Requests to endpoints, over real sockets, to a server on loopback that answers as it is told. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/retry.h"
#include "broker/test_endpoint.h"
#include "broker/test_exchange.h"

static void ask_to_end(struct fixture *fixture)
{
    const struct upstream_request request = request_of(fixture);

    (void)ask(fixture, &request);
    while (!fixture->ended)
        run_some(fixture);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_request_carries_the_key_and_its_answer_comes_whole(void **state)
{
    static const char *const answers[] = {OK_ANSWER, NULL};
    static const struct {
        enum model_api api;
        const char *line;
    } cases[] = {
        {MODEL_ANTHROPIC, "\r\nx-api-key: " KEY "\r\n"},
        {MODEL_OPENAI_CHAT, "\r\nAuthorization: Bearer " KEY "\r\n"},
        {MODEL_GEMINI, "\r\nx-goog-api-key: " KEY "\r\n"},
    };

    (void)state;
    /* What the environment says of proxies does not count: nothing listens there. */
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf requests = {0};
        struct fixture fixture;

        start(&fixture, cases[i].api, answers);
        ask_to_end(&fixture);
        assert_int_equal(fixture.answer.end, UPSTREAM_ANSWERED);
        assert_int_equal(fixture.answer.status, 200);
        assert_string_equal(buf_text(&fixture.answer.body), "{}");
        assert_string_equal(upstream_header(&fixture.answer, "request-id"), "r7");
        assert_int_equal(fixture.answer.attempt_count, 1);
        stop(&fixture, &requests);
        assert_true(str_starts(buf_text(&requests), "POST /v1/messages HTTP/1.1\r\n"));
        assert_non_null(strstr(buf_text(&requests), cases[i].line));
        assert_non_null(strstr(buf_text(&requests), "\r\n\r\n{\"a\":1}"));
    }
    assert_int_equal(unsetenv("http_proxy"), 0);
}

static void what_passes_is_tried_again_and_each_attempt_is_told(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 429 Slow\r\nRetry-After-Ms: 1\r\nContent-Length: 4\r\n\r\nslow",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbrok", /* and breaks off */
        OK_ANSWER, NULL};
    struct fixture fixture;

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, answers);
    ask_to_end(&fixture);
    assert_int_equal(fixture.answer.status, 200);
    assert_string_equal(buf_text(&fixture.answer.body), "{}");
    assert_int_equal(fixture.answer.attempt_count, 3);
    assert_int_equal(fixture.answer.attempts[0].status, 429);
    assert_int_equal(fixture.answer.attempts[0].wait_ms, 1);
    assert_string_equal(fixture.answer.attempts[0].error, "");
    assert_string_not_equal(fixture.answer.attempts[1].error, "");
    assert_true(fixture.answer.attempts[1].wait_ms >= 750); /* half a second, doubled, less a bit */
    stop(&fixture, NULL);
}

static void what_does_not_pass_is_not_tried_again(void **state)
{
    static const char *const first[] = {
        "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 429 No\r\nContent-Length: 18\r\n\r\ninsufficient_quota",
        "HTTP/1.1 503 No\r\nX-Should-Retry: false\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
        const char *const answers[] = {first[i], OK_ANSWER, NULL};
        struct fixture fixture;

        start(&fixture, MODEL_ANTHROPIC, answers);
        ask_to_end(&fixture);
        assert_int_equal(fixture.answer.end, UPSTREAM_ANSWERED);
        assert_int_equal(fixture.answer.attempt_count, 1);
        assert_int_not_equal(fixture.answer.status, 200);
        stop(&fixture, NULL);
    }
}

static void a_key_that_an_endpoint_quotes_stays_here(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 401 No\r\nConnection: close\r\n\r\nbad " KEY ", '" KEY "'", NULL};
    struct fixture fixture;

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, answers);
    ask_to_end(&fixture);
    assert_int_equal(fixture.answer.status, 401);
    assert_non_null(strstr(buf_text(&fixture.answer.body), "bad **"));
    assert_null(strstr(buf_text(&fixture.answer.body), KEY));
    stop(&fixture, NULL);
}

static void a_stream_is_passed_on_as_it_comes(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst\001again", NULL};
    struct fixture fixture;

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, answers);
    struct upstream_request request = request_of(&fixture);

    request.on_head = on_head;
    request.on_bytes = on_bytes;
    fixture.refusals = 1; /* the first piece comes again */
    struct upstream_exchange *exchange = ask(&fixture, &request);

    while (fixture.refusals > 0)
        run_some(&fixture);
    assert_int_equal(fixture.pieces, 0);
    upstream_resume(exchange);
    while (fixture.streamed.size_bytes < 5)
        run_some(&fixture);
    /* The rest was not sent yet. */
    assert_string_equal(buf_text(&fixture.streamed), "first");
    assert_false(fixture.ended);
    endpoint_go(&fixture.endpoint);
    while (!fixture.ended)
        run_some(&fixture);
    assert_string_equal(buf_text(&fixture.streamed), "firstagain");
    assert_int_equal(fixture.heads, 1);
    assert_true(fixture.answer.streamed);
    stop(&fixture, NULL);
}

static void a_stream_that_breaks_off_is_not_begun_again(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst",
                                          OK_ANSWER, NULL};
    struct fixture fixture;

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, answers);
    struct upstream_request request = request_of(&fixture);

    request.on_head = on_head;
    request.on_bytes = on_bytes;
    (void)ask(&fixture, &request);
    while (!fixture.ended)
        run_some(&fixture);
    assert_int_equal(fixture.answer.end, UPSTREAM_NO_ANSWER);
    assert_int_equal(fixture.answer.attempt_count, 1);
    assert_string_equal(buf_text(&fixture.streamed), "first");
    stop(&fixture, NULL);
}

static void too_much_and_too_late_are_ends(void **state)
{
    static const char *const large[] = {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
                                        OK_ANSWER, NULL};
    static const char *const slow[] = {"\001", NULL};
    struct fixture fixture;

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, large);
    struct upstream_request request = request_of(&fixture);

    request.answer_max_bytes = 9;
    (void)ask(&fixture, &request);
    while (!fixture.ended)
        run_some(&fixture);
    assert_int_equal(fixture.answer.end, UPSTREAM_TOO_LARGE);
    assert_int_equal(fixture.answer.attempt_count, 1);
    stop(&fixture, NULL);

    start(&fixture, MODEL_ANTHROPIC, slow);
    request = request_of(&fixture);
    request.deadline_ns = clock_ns() + 50000000;
    (void)ask(&fixture, &request);
    while (!fixture.ended)
        run_some(&fixture);
    assert_int_equal(fixture.answer.end, UPSTREAM_DEADLINE);
    stop(&fixture, NULL);
}

static void without_its_key_nothing_is_sent(void **state)
{
    static const char *const answers[] = {OK_ANSWER, NULL};
    scoped(error_freep) struct error *err = NULL;
    struct upstream_exchange *exchange = NULL;
    struct fixture fixture;

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, answers);
    const struct upstream_request request = request_of(&fixture);

    keys_done(&fixture.keys);
    assert_int_equal(upstream_start(fixture.upstream, &request, &exchange, &err), -ERROR_USER);
    assert_non_null(strstr(error_message(err), "T_KEY"));
    scoped(buf_done) struct buf requests = {0};

    stop(&fixture, &requests);
    assert_int_equal(requests.size_bytes, 0);
}

static void a_path_is_put_behind_bases_of_both_kinds(void **state)
{
    static const char *const answers[] = {OK_ANSWER, NULL};
    static const struct {
        const char *base, *line;
    } cases[] = {
        {"", "POST /v1/responses HTTP/1.1\r\n"},
        {"/v1", "POST /v1/responses HTTP/1.1\r\n"},
        {"/api/v4", "POST /api/v4/responses HTTP/1.1\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf requests = {0};
        struct fixture fixture;

        start(&fixture, MODEL_OPENAI_RESPONSES, answers);
        char *longer = str_format("%s%s", fixture.route.base_url, cases[i].base);

        free(fixture.route.base_url);
        fixture.route.base_url = longer;
        struct upstream_request request = request_of(&fixture);

        request.path = "/v1/responses";
        (void)ask(&fixture, &request);
        while (!fixture.ended)
            run_some(&fixture);
        stop(&fixture, &requests);
        assert_true(str_starts(buf_text(&requests), cases[i].line));
    }
}

static void waits_are_those_of_the_vendors_clients(void **state)
{
    static const struct {
        struct retry_answer answer;
        unsigned tries;
        uint32_t random;
        uint64_t wait_ms;
    } cases[] = {
        {{.status = 500, .body = ""}, 1, 0, 500},
        {{.status = 500, .body = ""}, 3, 0, 2000},
        {{.status = 500, .body = ""}, 9, 0, 8000},
        {{.status = 500, .body = ""}, 1, UINT32_MAX, 375},
        {{.status = 429, .retry_after = "3", .body = ""}, 1, 9, 3000},
        {{.status = 429, .retry_after = "3", .retry_after_ms = "20", .body = ""}, 1, 9, 20},
        {{.status = 429, .retry_after = "Thu, 01 Jan 1970 00:00:09 GMT", .body = ""}, 1, 9, 4000},
        {{.status = 429, .retry_after = "-1", .body = ""}, 1, 0, 500},
        {{.status = 429, .retry_after = "86400", .body = ""}, 1, 0, 500},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(retry_wait_ms(&cases[i].answer, cases[i].tries, cases[i].random, 5000),
                         cases[i].wait_ms);
}

/* --- the program ------------------------------------------------------------------------------ */

static int key_file(mode_t mode)
{
    static const char text[] = "T_KEY: " KEY "\n";
    char path[] = "/tmp/closedbook-keys-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    return fd;
}

static int start_program(uint16_t port, mode_t mode, struct broker **ret, struct error **err)
{
    scoped(json_freep) json_t *setup =
        json_pack("{s:[{s:s, s:s, s:s, s:o}]}", "routes", "name", "r", "api", "anthropic", "key",
                  "T_KEY", "base_url", json_null());
    scoped(mem_freep) char *url = str_format("http://127.0.0.1:%u", port);
    scoped(fd_closep) int fd = key_file(mode);
    int connection = -1;

    json_put_text(json_array_get(json_object_get(setup, "routes"), 0), "base_url", url);
    const struct broker_options options = {.program = getenv("CLOSEDBOOK_BROKER_PROGRAM"),
                                           .setup = setup,
                                           .env_keys_fd = -1,
                                           .dotenv_fd = -1,
                                           .keys_yaml_fd = fd};

    if (broker_start_upstream(&options, ret, err) < 0 || broker_connect(*ret, &connection, err) < 0)
        fail_msg("%s", error_message(*err));
    return connection;
}

static void the_program_asks_for_those_who_hold_no_key(void **state)
{
    static const char *const answers[] = {OK_ANSWER, NULL};
    scoped(buf_done) struct buf requests = {0};
    scoped(json_freep) json_t *body = json_pack("{s:i}", "a", 1);
    scoped(json_freep) json_t *answer = NULL;
    scoped(json_freep) json_t *facts = NULL;
    struct error *err = NULL;
    struct broker *broker = NULL;
    struct endpoint server;

    (void)state;
    endpoint_start(&server, answers);
    scoped(fd_closep) int connection = start_program(server.port, 0600, &broker, &err);
    struct broker_question question = {.route = "r",
                                       .path = "/v1/messages",
                                       .body = body,
                                       .timeout_ms = 20000,
                                       .answer_max_bytes = 1000,
                                       .attempts_max = 1};

    if (broker_ask(connection, &question, &answer, &err) < 0)
        fail_msg("%s", error_message(err));
    assert_string_equal(json_get_text(answer, "end"), "answered");
    assert_int_equal(json_get_int(answer, "status", 0), 200);
    assert_string_equal(json_get_text(answer, "body"), "{}");
    assert_int_equal(broker_facts(connection, &facts, &err), 0);
    assert_true(
        json_get_bool(json_array_get(json_object_get(facts, "routes"), 0), "has_key", false));
    question.route = "nobody";
    assert_int_equal(broker_ask(connection, &question, &answer, &err), -ERROR_USER);
    assert_non_null(strstr(error_message(err), "'nobody'"));
    error_free(err);
    broker_free(broker);
    endpoint_stop(&server, &requests);
    assert_non_null(strstr(buf_text(&requests), "\r\nx-api-key: " KEY "\r\n"));
}

static void a_key_file_that_others_read_is_said_when_asked(void **state)
{
    scoped(json_freep) json_t *facts = NULL;
    struct error *err = NULL;
    struct broker *broker = NULL;

    (void)state;
    scoped(fd_closep) int connection = start_program(1, 0644, &broker, &err);

    assert_int_equal(broker_facts(connection, &facts, &err), -ERROR_USER);
    assert_non_null(strstr(error_message(err), "0644"));
    error_free(err);
    broker_free(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_carries_the_key_and_its_answer_comes_whole),
        cmocka_unit_test(what_passes_is_tried_again_and_each_attempt_is_told),
        cmocka_unit_test(what_does_not_pass_is_not_tried_again),
        cmocka_unit_test(a_key_that_an_endpoint_quotes_stays_here),
        cmocka_unit_test(a_stream_is_passed_on_as_it_comes),
        cmocka_unit_test(a_stream_that_breaks_off_is_not_begun_again),
        cmocka_unit_test(too_much_and_too_late_are_ends),
        cmocka_unit_test(without_its_key_nothing_is_sent),
        cmocka_unit_test(a_path_is_put_behind_bases_of_both_kinds),
        cmocka_unit_test(waits_are_those_of_the_vendors_clients),
        cmocka_unit_test(the_program_asks_for_those_who_hold_no_key),
        cmocka_unit_test(a_key_file_that_others_read_is_said_when_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
