/* The broker as a process, over real sockets, spoken to as a cell would, and as no cell should. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/broker.h"
#include "broker/call_frame.h"
#include "broker/confine.h"

static const char table[] =
    "[{\"tool\":\"uip\",\"exit_code\":3,\"stderr\":\"unknown\\n\",\"responses\":["
    "{\"when\":{\"verb\":\"list\"},\"stdout\":\"secret-0451\\n\",\"exit_code\":0},"
    "{\"when\":{\"flags\":{\"id\":7}},\"stdout\":\"seven\\n\",\"exit_code\":9}]},"
    "{\"tool\":\"real\",\"passthrough\":true}]";

/* One trial: its connection, its socket, its log. */
struct fixture {
    struct broker *broker;
    int connection, listener, log_fd;
    struct sockaddr_un address; /* abstract */
    socklen_t address_size;
};

static void start(struct fixture *fixture)
{
    struct error *err = NULL;
    json_t *tools = NULL;

    *fixture =
        (struct fixture){.address = {.sun_family = AF_UNIX}, .address_size = sizeof(sa_family_t)};
    if (broker_start(getenv("CLOSEDBOOK_BROKER_PROGRAM"), &fixture->broker, &err) < 0 ||
        broker_connect(fixture->broker, &fixture->connection, &err) < 0)
        fail_msg("%s", error_message(err));
    fixture->log_fd = memfd_create("log", MFD_CLOEXEC);
    fixture->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* The kernel gives it a name of its own. */
    assert_int_equal(
        bind(fixture->listener, (struct sockaddr *)&fixture->address, sizeof(sa_family_t)), 0);
    fixture->address_size = sizeof(fixture->address);
    assert_int_equal(getsockname(fixture->listener, (struct sockaddr *)&fixture->address,
                                 &fixture->address_size),
                     0);
    assert_int_equal(listen(fixture->listener, 128), 0);
    assert_int_equal(json_parse("table", table, strlen(table), &tools, NULL), 0);
    const struct broker_mocks mocks = {tools, fixture->listener, fixture->log_fd};

    if (broker_open(fixture->connection, &mocks, &err) < 0)
        fail_msg("%s", error_message(err));
    json_decref(tools);
}

static void stop(struct fixture *fixture)
{
    (void)close(fixture->connection); /* the test is over */
    (void)close(fixture->listener);   /* as above */
    (void)close(fixture->log_fd);     /* as above */
    broker_free(fixture->broker);
}

static struct broker_result finish(struct fixture *fixture, struct buf *ret_log)
{
    struct broker_result result = {0};
    struct error *err = NULL;

    if (broker_close(fixture->connection, &result, &err) < 0)
        fail_msg("%s", error_message(err));
    if (ret_log != NULL) {
        assert_int_equal(lseek(fixture->log_fd, 0, SEEK_SET), 0);
        assert_int_equal(fs_read_fd(fixture->log_fd, "log", SIZE_MAX / 2, ret_log, NULL), 0);
    }
    return result;
}

static int connect_cell(const struct fixture *fixture)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&fixture->address, fixture->address_size),
                     0);
    return fd;
}

/* words: parted by blanks, the tool first; the working directory is put in. */
static void send_call(int fd, const char *words)
{
    scoped(buf_done) struct buf frame = {0};
    struct call_header header = {.magic = CALL_MAGIC, .kind = CALL_MADE, .word_count = 2};
    scoped(mem_freep) char *copy = str_dup(words);
    char *save = NULL;

    for (const char *s = words; *s != '\0'; s++)
        header.word_count += *s == ' ';
    buf_append(&frame, &header, sizeof(header));
    for (char *word = strtok_r(copy, " ", &save), *first = word; word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        buf_append(&frame, word, strlen(word) + 1);
        if (word == first)
            buf_append(&frame, "/workspace", sizeof("/workspace"));
    }
    assert_int_equal(send(fd, frame.data, frame.size_bytes, MSG_NOSIGNAL), frame.size_bytes);
}

/* The answer's kind; text gets "EXIT OUT|ERR". */
static uint32_t receive(int fd, char *text, size_t size)
{
    static char bytes[CALL_FRAME_BYTES_MAX];
    struct answer_header answer = {0};
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

    if (n < (ssize_t)sizeof(answer)) {
        text[0] = '\0';
        return 0;
    }
    memcpy(&answer, bytes, sizeof(answer));
    assert_int_equal((size_t)n, sizeof(answer) + answer.out_bytes + answer.err_bytes);
    (void)snprintf(text, size, "%u %.*s|%.*s", answer.exit_code, (int)answer.out_bytes,
                   bytes + sizeof(answer), (int)answer.err_bytes,
                   bytes + sizeof(answer) + answer.out_bytes);
    return answer.kind;
}

static void answers_by_the_table_and_logs_each_call(void **state)
{
    static const struct {
        const char *words, *answer;
    } cases[] = {
        {"uip list", "0 secret-0451\n|"},
        {"uip --output json list x", "0 secret-0451\n|"},
        {"uip get --id 7", "9 seven\n|"},
        {"uip get --id 8", "3 |unknown\n"},
    };
    struct fixture fixture;
    scoped(buf_done) struct buf log = {0};

    (void)state;
    start(&fixture);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = connect_cell(&fixture);
        char text[256];

        send_call(fd, cases[i].words);
        assert_int_equal(receive(fd, text, sizeof(text)), ANSWER_TEXT);
        assert_string_equal(text, cases[i].answer);
        (void)close(fd); /* the answer came */
    }
    struct broker_result result = finish(&fixture, &log);

    assert_int_equal(result.calls, 4);
    assert_int_equal(result.refused + result.unreported + result.cut, 0);
    assert_non_null(strstr(buf_text(&log), "\"tool\": \"uip\""));
    assert_non_null(strstr(buf_text(&log), "\"argv\": [\"get\", \"--id\", \"7\"]"));
    assert_non_null(strstr(buf_text(&log), "\"exit\": 9"));
    assert_non_null(strstr(buf_text(&log), "\"rule\": 1"));
    assert_non_null(strstr(buf_text(&log), "\"cwd\": \"/workspace\""));
    assert_null(strstr(buf_text(&log), "secret"));
    stop(&fixture);
}

static void hands_on_to_the_real_program_and_hears_of_its_end(void **state)
{
    const struct call_header ended = {.magic = CALL_MAGIC, .kind = CALL_ENDED, .exit_code = 42};
    struct fixture fixture;
    scoped(buf_done) struct buf log = {0};
    char text[256];

    (void)state;
    start(&fixture);
    int told = connect_cell(&fixture), killed = connect_cell(&fixture);

    send_call(told, "real a");
    send_call(killed, "real b");
    assert_int_equal(receive(told, text, sizeof(text)), ANSWER_PASS);
    assert_int_equal(receive(killed, text, sizeof(text)), ANSWER_PASS);
    assert_int_equal(send(told, &ended, sizeof(ended), MSG_NOSIGNAL), sizeof(ended));
    (void)close(killed); /* as when the stand-in is killed */
    struct broker_result result = finish(&fixture, &log);

    (void)close(told); /* no more is said */
    assert_int_equal(result.calls, 2);
    assert_int_equal(result.unreported, 1);
    assert_non_null(strstr(buf_text(&log), "\"exit\": 42"));
    assert_non_null(strstr(buf_text(&log), "\"exit\": null"));
    stop(&fixture);
}

/* Each of these is counted, and none keeps the next call from its answer. */
static void what_is_no_call_is_refused_and_counted(void **state)
{
    static char huge[CALL_FRAME_BYTES_MAX + 64];
    const struct call_header only_ended = {.magic = CALL_MAGIC, .kind = CALL_ENDED};
    const struct call_header too_many = {
        .magic = CALL_MAGIC, .kind = CALL_MADE, .word_count = CALL_WORDS_MAX + 1};
    const struct call_header no_words = {.magic = CALL_MAGIC, .kind = CALL_MADE, .word_count = 2};
    const struct {
        const void *bytes;
        size_t size;
    } cases[] = {
        {"x", 1},
        {"GET / HTTP/1.1\r\n\r\n", 18},
        {&only_ended, sizeof(only_ended)},
        {&too_many, sizeof(too_many)},
        {&no_words, sizeof(no_words)},
        {huge, sizeof(huge)},
    };
    struct fixture fixture;
    char text[256];

    (void)state;
    start(&fixture);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = connect_cell(&fixture);

        assert_int_equal(send(fd, cases[i].bytes, cases[i].size, MSG_NOSIGNAL), cases[i].size);
        assert_int_not_equal(receive(fd, text, sizeof(text)), ANSWER_TEXT);
        (void)close(fd); /* it was refused */
    }
    int stranger = connect_cell(&fixture), silent = connect_cell(&fixture),
        good = connect_cell(&fixture);

    send_call(stranger, "nobody list");
    assert_int_equal(receive(stranger, text, sizeof(text)), ANSWER_REFUSED);
    send_call(good, "uip list");
    assert_int_equal(receive(good, text, sizeof(text)), ANSWER_TEXT);
    struct broker_result result = finish(&fixture, NULL);

    (void)close(stranger); /* done with */
    (void)close(silent);   /* as above */
    (void)close(good);     /* as above */
    assert_int_equal(result.calls, 1);
    assert_int_equal(result.refused, ARRAY_SIZE(cases) + 2); /* the stranger, the silent */
    stop(&fixture);
}

/* More at once than are taken: the rest wait their turn. */
static void many_at_once_are_all_answered(void **state)
{
    enum { COUNT = 100 };
    struct fixture fixture;
    int fds[COUNT];
    char text[256];

    (void)state;
    start(&fixture);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = connect_cell(&fixture);
        send_call(fds[i], "uip list");
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(receive(fds[i], text, sizeof(text)), ANSWER_TEXT);
        (void)close(fds[i]); /* the answer came */
    }
    assert_int_equal(finish(&fixture, NULL).calls, COUNT);
    stop(&fixture);
}

static void a_log_has_an_end_and_says_so(void **state)
{
    enum { ARGUMENT = 100000 };
    struct fixture fixture;
    scoped(buf_done) struct buf log = {0};
    scoped(buf_done) struct buf words = {0};
    uint32_t last = ANSWER_TEXT;
    char text[256];

    (void)state;
    start(&fixture);
    buf_text_append(&words, "uip ");
    for (int i = 0; i < ARGUMENT; i++)
        buf_char(&words, 'x');
    for (size_t i = 0; i < BROKER_LOG_BYTES_MAX / ARGUMENT + 2; i++) {
        int fd = connect_cell(&fixture);

        send_call(fd, buf_text(&words));
        last = receive(fd, text, sizeof(text));
        (void)close(fd); /* answered or refused */
    }
    struct broker_result result = finish(&fixture, &log);

    assert_int_equal(last, ANSWER_REFUSED);
    assert_true(result.cut && result.refused > 0);
    assert_true(log.size_bytes <= BROKER_LOG_BYTES_MAX + 64);
    assert_non_null(strstr(buf_text(&log) + log.size_bytes - 20, "{\"cut\": true}\n"));
    stop(&fixture);
}

/* 1: it can be opened or run; 0: neither. In a child, since there is no way back. */
static int reach_of_child(bool confines)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (confines && broker_confine(&(struct confine_needs){0}, NULL) < 0)
            _exit(2);
        int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

        if (fd >= 0)
            _exit(1);
        (void)execl("/bin/false", "false", NULL); /* 1 when it runs */
        _exit(errno == EACCES ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void the_broker_opens_no_file(void **state)
{
    (void)state;
    assert_int_equal(reach_of_child(false), 1);
    assert_int_equal(reach_of_child(true), 0);
}

/* The only child of this test: what /proc says of it. */
static void tell_of_broker(char *ret, size_t size)
{
    scoped(buf_done) struct buf children = {0};
    scoped(mem_freep) char *list = str_format("/proc/self/task/%d/children", getpid());
    struct buf text = {0};

    assert_int_equal(fs_read_file(AT_FDCWD, list, 100, &children, NULL), 0);
    scoped(mem_freep) char *path = str_format(
        "/proc/%.*s/status", (int)strcspn(buf_text(&children), " "), buf_text(&children));

    assert_int_equal(fs_read_file(AT_FDCWD, path, 65536, &text, NULL), 0);
    (void)snprintf(ret, size, "%.13s", strstr(buf_text(&text), "NoNewPrivs:"));
    buf_done(&text);
}

/* That the program does what the function does: it has answered, so it must be confined. */
static void the_program_confines_itself_before_it_answers(void **state)
{
    struct fixture fixture;
    char given[32];

    (void)state;
    start(&fixture);
    tell_of_broker(given, sizeof(given));
    assert_string_equal(given, "NoNewPrivs:\t1");
    stop(&fixture);
    scoped(buf_done) struct buf own = {0};

    /* The control: it has that from nobody. */
    assert_int_equal(fs_read_file(AT_FDCWD, "/proc/self/status", 65536, &own, NULL), 0);
    assert_non_null(strstr(buf_text(&own), "NoNewPrivs:\t0"));
}

/* More than are served at a time, from a cell that ended before anyone took them. */
static void calls_that_still_waited_count(void **state)
{
    scoped(buf_done) struct buf log = {0};
    struct fixture fixture;
    enum { HELD = BROKER_CLIENTS_MAX, WAITING = 60 };
    int held[HELD], waiting[WAITING];
    char text[64];

    (void)state;
    start(&fixture);
    for (size_t i = 0; i < HELD; i++) {
        held[i] = connect_cell(&fixture);
        send_call(held[i], "real");
        assert_int_equal(receive(held[i], text, sizeof(text)), ANSWER_PASS);
    }
    for (size_t i = 0; i < WAITING; i++) {
        waiting[i] = connect_cell(&fixture);
        send_call(waiting[i], "uip list");
    }
    struct broker_result result = finish(&fixture, &log);

    assert_int_equal(result.calls, HELD + WAITING);
    assert_int_equal(result.unreported, HELD);
    for (size_t i = 0; i < WAITING; i++)
        (void)close(waiting[i]); /* the cell is gone */
    for (size_t i = 0; i < HELD; i++)
        (void)close(held[i]); /* likewise */
    stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_broker_opens_no_file),
        cmocka_unit_test(the_program_confines_itself_before_it_answers),
        cmocka_unit_test(calls_that_still_waited_count),
        cmocka_unit_test(answers_by_the_table_and_logs_each_call),
        cmocka_unit_test(hands_on_to_the_real_program_and_hears_of_its_end),
        cmocka_unit_test(what_is_no_call_is_refused_and_counted),
        cmocka_unit_test(many_at_once_are_all_answered),
        cmocka_unit_test(a_log_has_an_end_and_says_so),
    };

    return cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
