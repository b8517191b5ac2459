/* Exchanges that are kept, and answered from what was. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "broker/test_exchange.h"

static struct recording *new_recording(int *ret_copy)
{
    struct recording *recording = NULL;
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    *ret_copy = dup(fd);
    assert_int_equal(recording_begin(fd, &recording, NULL), 0);
    return recording;
}

static struct recording *read_recording(int fd, struct buf *text)
{
    struct recording *recording = NULL;
    struct error *err = NULL;

    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(fs_read_fd(fd, "recording", 1 << 20, text, NULL), 0);
    if (recording_parse(buf_text(text), text->size_bytes, &recording, &err) < 0)
        fail_msg("%s", error_message(err));
    return recording;
}

static void stream(struct fixture *fixture, struct recording *recording)
{
    struct upstream_request request = request_of(fixture);

    request.on_head = on_head;
    request.on_bytes = on_bytes;
    request.recording = recording;
    struct upstream_exchange *exchange = ask(fixture, &request);

    while (!fixture->ended) {
        run_some(fixture);
        if (!fixture->ended)
            upstream_resume(exchange);
    }
}

static void a_recording_answers_a_stream_without_key_or_endpoint(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                          "\r\ndata: " KEY "\n\ndata: 2\n\n",
                                          NULL};
    struct fixture recorded, replayed;
    scoped(fd_closep) int fd = -1;
    scoped(buf_done) struct buf text = {0};

    (void)state;
    start(&recorded, MODEL_ANTHROPIC, answers);
    scoped(recording_freep) struct recording *kept = new_recording(&fd);

    stream(&recorded, kept);
    stop(&recorded, NULL);
    assert_null(recording_problem(kept));
    scoped(recording_freep) struct recording *recording = read_recording(fd, &text);

    assert_null(strstr(text.data, KEY));
    start(&replayed, MODEL_ANTHROPIC, (const char *const[]){NULL}); /* which is soon gone */
    keys_done(&replayed.keys);
    replayed.keys = (struct keys){0};
    replayed.refusals = 2; /* whoever takes nothing for a while misses nothing */
    stream(&replayed, recording);
    assert_int_equal(replayed.answer.end, UPSTREAM_ANSWERED);
    assert_int_equal(replayed.answer.status, 200);
    assert_int_equal(replayed.heads, 1);
    assert_string_equal(upstream_header(&replayed.answer, "content-type"), "text/event-stream");
    assert_null(strstr(replayed.streamed.data, KEY));
    assert_non_null(strstr(replayed.streamed.data, "data: *"));
    assert_non_null(strstr(replayed.streamed.data, "\n\ndata: 2\n\n"));
    struct upstream_exchange *exchange = NULL;
    struct upstream_request again = request_of(&replayed);

    again.recording = recording;
    assert_int_equal(upstream_start(replayed.upstream, &again, &exchange, NULL), -ERROR_SYSTEM);
    stop(&replayed, NULL);
}

static void an_exchange_that_nobody_awaited_has_no_answer_in_a_replay(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\n\r\nab\001cd", NULL};
    struct fixture fixture;
    scoped(fd_closep) int fd = -1;
    scoped(buf_done) struct buf text = {0};

    (void)state;
    start(&fixture, MODEL_ANTHROPIC, answers);
    scoped(recording_freep) struct recording *kept = new_recording(&fd);
    struct upstream_request request = request_of(&fixture);

    request.recording = kept;
    upstream_cancel(ask(&fixture, &request));
    scoped(recording_freep) struct recording *recording = read_recording(fd, &text);

    request.recording = recording;
    (void)ask(&fixture, &request);
    while (!fixture.ended)
        run_some(&fixture);
    assert_int_equal(fixture.answer.end, UPSTREAM_NO_ANSWER);
    stop(&fixture, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_answers_a_stream_without_key_or_endpoint),
        cmocka_unit_test(an_exchange_that_nobody_awaited_has_no_answer_in_a_replay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
