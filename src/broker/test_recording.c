/* Recordings: what is the same request, what answers it, what is no recording. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/recording.h"

static struct recorded_request ask(const char *body)
{
    return (struct recorded_request){.api = MODEL_ANTHROPIC,
                                     .method = "POST",
                                     .path = "/v1/messages",
                                     .body = body,
                                     .body_size = strlen(body)};
}

static bool is_same(const char *a, const char *b)
{
    const struct recorded_request one = ask(a), other = ask(b);
    scoped(json_freep) json_t *x = recording_normal(&one);
    scoped(json_freep) json_t *y = recording_normal(&other);

    return json_equal(x, y) != 0;
}

static void what_two_runs_differ_in_is_the_same_request(void **state)
{
    static const char *const pairs[][2] = {
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"},
        {"{\"a\":\"on 2026-12-01, ok\"}", "{\"a\":\"on 2027-01-31, ok\"}"},
        {"{\"a\":\"2026-12-01T10:11:12.123Z\"}", "{\"a\":\"2026-12-01T10:11:13Z\"}"},
        {"{\"a\":\"Today's date is Tue Dec 01 2026.\"}",
         "{\"a\":\"Today's date is Wed Dec 02 2026.\"}"},
        {"{\"a\":\"12/1/2026 at 10:11\"}", "{\"a\":\"1/12/2027 at 09:00\"}"},
        {"{\"a\":\"123e4567-e89b-12d3-a456-426614174000\"}",
         "{\"a\":\"00000000-e89b-12d3-a456-4266141740ff\"}"},
        {"{\"a\":\"[main 1a2b3c4] did\"}", "{\"a\":\"[main 4d5e6f7] did\"}"},
        {"{\"a\":\"Chunk ID: aabbcc, 1\"}", "{\"a\":\"Chunk ID: 123456, 1\"}"},
        {"{\"a\":\"ran in 0.03s\"}", "{\"a\":\"ran in 12.1s\"}"},
        {"{\"a\":\"tool-1712345678901-abc\"}", "{\"a\":\"tool-1712345699999-abc\"}"},
        {"{\"a\":1,\"metadata\":{\"user_id\":\"x\"}}",
         "{\"a\":1,\"metadata\":{\"user_id\":\"y\"}}"},
        {"{\"a\":1,\"prompt_cache_key\":\"x\"}", "{\"a\":1}"},
        {"{\"a\":[{\"b\":\"k 0123456789abcdef0123456789abcdef\"}]}",
         "{\"a\":[{\"b\":\"k ffffffffffffffffffffffffffffffff\"}]}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        if (!is_same(pairs[i][0], pairs[i][1]))
            fail_msg("%s and %s", pairs[i][0], pairs[i][1]);
    }
}

static void what_is_asked_stays_another_request(void **state)
{
    static const char *const pairs[][2] = {
        {"{\"a\":\"fix 3 bugs\"}", "{\"a\":\"fix 4 bugs\"}"},
        {"{\"a\":\"may I\"}", "{\"a\":\"can I\"}"},
        {"{\"a\":\"deadbee\"}", "{\"a\":\"defaced\"}"},
        {"{\"a\":[1,2]}", "{\"a\":[2,1]}"},
        {"{\"a\":1}", "{\"a\":1.5}"},
        {"{\"a\":{\"metadata\":1}}", "{\"a\":{\"metadata\":2}}"},
        {"{\"a\":\"x\"}", "{\"a\":\"x \"}"},
        {"not json", "not JSON"},
        {"{\"max_tokens\":100}", "{\"max_tokens\":200}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        if (is_same(pairs[i][0], pairs[i][1]))
            fail_msg("%s and %s", pairs[i][0], pairs[i][1]);
    }
}

static void keep(struct recording *recording, const char *body, const char *answer)
{
    const struct recorded_request request = ask(body);
    const struct recorded_answer what = {.end = "answered",
                                         .status = 200,
                                         .content_type = "text/event-stream",
                                         .body = answer,
                                         .body_size = strlen(answer),
                                         .streamed = true};

    assert_true(recording_end(recording, recording_request(recording, &request), &what));
}

static void find(struct recording *recording, const char *body, const char *expected)
{
    const struct recorded_request request = ask(body);
    struct recorded_answer answer = {0};
    struct error *err = NULL;

    if (recording_find(recording, &request, &answer, &err) < 0)
        fail_msg("%s", error_message(err));
    assert_string_equal(answer.body, expected);
    assert_int_equal(answer.body_size, strlen(expected));
    assert_string_equal(answer.end, "answered");
    assert_string_equal(answer.content_type, "text/event-stream");
    assert_int_equal(answer.status, 200);
    assert_true(answer.streamed);
}

/* Keeps three exchanges, two of them equal; *ret is their text. */
static void record_three(struct buf *ret)
{
    struct recording *recording = NULL;
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    scoped(fd_closep) int copy = dup(fd);

    assert_int_equal(recording_begin(fd, &recording, NULL), 0);
    assert_false(recording_answers(recording));
    keep(recording, "{\"x\":\"one\"}", "data: 1\n\n");
    keep(recording, "{\"x\":\"two\",\"y\":{\"z\":[1]}}", "data: 2\n\n");
    keep(recording, "{\"x\":\"one\"}", "data: 3\n\n");
    assert_null(recording_problem(recording));
    recording_free(recording);
    assert_int_equal(lseek(copy, 0, SEEK_SET), 0);
    assert_int_equal(fs_read_fd(copy, "t", 1 << 20, ret, NULL), 0);
}

static void equal_requests_are_answered_in_the_order_of_the_recording(void **state)
{
    scoped(recording_freep) struct recording *recording = NULL;
    scoped(buf_done) struct buf text = {0};
    struct error *err = NULL;

    (void)state;
    record_three(&text);
    if (recording_parse(text.data, text.size_bytes, &recording, &err) < 0)
        fail_msg("%s", error_message(err));
    assert_true(recording_answers(recording));
    find(recording, "{\"x\":\"two\",\"y\":{\"z\":[1]}}", "data: 2\n\n");
    find(recording, "{\"x\":\"one\"}", "data: 1\n\n");
    find(recording, "{\"x\":\"one\"}", "data: 3\n\n");
    assert_null(recording_problem(recording));
}

static void expect_miss(struct recording *recording, const char *body, const char *part)
{
    scoped(error_freep) struct error *err = NULL;
    const struct recorded_request request = ask(body);
    struct recorded_answer answer;

    assert_int_equal(recording_find(recording, &request, &answer, &err), -ERROR_SYSTEM);
    if (strstr(error_message(err), part) == NULL)
        fail_msg("'%s' is not in: %s", part, error_message(err));
    assert_non_null(recording_problem(recording));
}

static void a_miss_says_which_part_differs_and_not_what_stands_there(void **state)
{
    scoped(recording_freep) struct recording *recording = NULL;
    scoped(buf_done) struct buf text = {0};

    (void)state;
    record_three(&text);
    assert_int_equal(recording_parse(text.data, text.size_bytes, &recording, NULL), 0);
    expect_miss(recording, "{\"x\":\"two\",\"y\":{\"z\":[2]}}", "request.body.y.z[0]");
    expect_miss(recording, "{\"x\":\"onf\"}", "request.body.x from byte 2 on");
    assert_null(strstr(recording_problem(recording), "onf"));
    expect_miss(recording, "{\"x\":\"two\",\"y\":{\"z\":[1,2]}}", "has 2 items instead of 1");
    expect_miss(recording, "{\"x\":\"two\",\"y\":{\"z\":[1]},\"w\":1}", "request.body.w is new");
    expect_miss(recording, "{\"x\":\"two\"}", "request.body.y is missing");
    find(recording, "{\"x\":\"one\"}", "data: 1\n\n");
    find(recording, "{\"x\":\"one\"}", "data: 3\n\n");
    find(recording, "{\"x\":\"two\",\"y\":{\"z\":[1]}}", "data: 2\n\n");
    expect_miss(recording, "{\"x\":\"one\"}", "all of its 3 answers were given");
}

static void an_empty_recording_answers_nothing(void **state)
{
    scoped(recording_freep) struct recording *recording = NULL;

    (void)state;
    assert_int_equal(recording_parse("", 0, &recording, NULL), 0);
    expect_miss(recording, "{}", "no exchange of this trial");
}

/* The text of record_three() with one change. */
static void expect_no_recording(const char *was, const char *is, const char *part)
{
    scoped(recording_freep) struct recording *recording = NULL;
    scoped(error_freep) struct error *err = NULL;
    scoped(buf_done) struct buf text = {0}, changed = {0};

    record_three(&text);
    const char *at = strstr(text.data, was);

    assert_non_null(at);
    buf_append(&changed, text.data, (size_t)(at - text.data));
    buf_text_append(&changed, is);
    buf_text_append(&changed, at + strlen(was));
    assert_true(recording_parse(changed.data, changed.size_bytes, &recording, &err) < 0);
    if (strstr(error_message(err), part) == NULL)
        fail_msg("'%s' is not in: %s", part, error_message(err));
}

static void what_is_no_recording_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_no_recording("\"closedbook_recording\": 1", "\"closedbook_recording\": 2",
                        "line 1: version 2 found");
    expect_no_recording("{\"closedbook_recording\": 1}", "{}", "line 1: expected");
    expect_no_recording("\"x\"", "\"v\"", "line 2: digest");
    expect_no_recording("\"end\"", "\"und\"", "line 2: end");
    expect_no_recording("\"seq\"", "\"more\": 1, \"seq\"", "line 2: an exchange has");
    expect_no_recording("\"answered\"", "\"maybe\"", "line 2: end is none");
    expect_no_recording("text/event-stream", "a\\r\\nb", "line 2: content_type");
    expect_no_recording("200", "99", "line 2: status");
    expect_no_recording("200", "0", "line 2: an exchange that was answered");
    expect_no_recording("\"data: 1\\n\\n\"", "7", "line 2: streamed");
    expect_no_recording("\n{", "\n[{", "line 2");
}

static void a_recording_that_was_cut_off_is_none(void **state)
{
    scoped(recording_freep) struct recording *recording = NULL;
    scoped(error_freep) struct error *err = NULL;
    scoped(buf_done) struct buf text = {0};

    (void)state;
    record_three(&text);
    assert_true(recording_parse(text.data, text.size_bytes - 1, &recording, &err) < 0);
    assert_non_null(strstr(error_message(err), "line 4: it has no end"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_two_runs_differ_in_is_the_same_request),
        cmocka_unit_test(what_is_asked_stays_another_request),
        cmocka_unit_test(equal_requests_are_answered_in_the_order_of_the_recording),
        cmocka_unit_test(a_miss_says_which_part_differs_and_not_what_stands_there),
        cmocka_unit_test(an_empty_recording_answers_nothing),
        cmocka_unit_test(what_is_no_recording_is_refused_with_its_line),
        cmocka_unit_test(a_recording_that_was_cut_off_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
