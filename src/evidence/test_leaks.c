/* Leaks: a private text is found under each coding, two deep, and an innocent one is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "evidence/leaks.h"

static const char secret[] = "def settle(accounts, rates):\n"
                             "    total_in_cents = 0\n"
                             "    for account, balance in sorted(accounts.items()):\n"
                             "        if account.startswith('closed-'):\n"
                             "            continue\n"
                             "        rate = rates.get(account, rates['default'])\n"
                             "        total_in_cents += round(balance * (1 + rate) ** 12)\n"
                             "    return total_in_cents % 1000003\n";

struct fixture {
    struct fingerprint_index *index;
    struct leak_search *search;
    struct leaks leaks;
};

#define SCRAMBLE 0x80 /* so that the content cannot be read without unpacking */

/* An archive of ours: its only member begins after the magic, scrambled. */
static int unpack(void *context, const char *bytes, size_t size, struct buf *ret,
                  struct error **err)
{
    const bool *is_broken = context;

    (void)err;
    if (*is_broken) {
        buf_text_append(ret, "0000000100000000ffffffff");
        return 0;
    }
    buf_format(ret, READING_MEMBER_FORMAT, (size_t)1, size - 4);
    buf_char(ret, 'm');
    for (size_t i = 4; i < size; i++)
        buf_char(ret, (char)(bytes[i] ^ SCRAMBLE));
    return 0;
}

static void start(struct fixture *fixture, bool *is_broken)
{
    *fixture = (struct fixture){.index = fingerprint_index_new()};
    fingerprint_file_begin(fixture->index, "reference/settle.py");
    fingerprint_file_add(fixture->index, secret, strlen(secret));
    fingerprint_index_seal(fixture->index);
    fixture->search = leak_search_new(fixture->index, unpack, is_broken);
}

static void stop(struct fixture *fixture)
{
    leaks_done(&fixture->leaks);
    leak_search_free(fixture->search);
    fingerprint_index_free(fixture->index);
}

/* --- codings -----------------------------------------------------------------------------------
 */

static void as_base64(const char *text, size_t size, struct buf *ret)
{
    buf_text_append(ret, "data = \"");
    buf_base64(ret, text, size);
    buf_text_append(ret, "\"\n");
}

static void as_wrapped_base64(const char *text, size_t size, struct buf *ret)
{
    scoped(buf_done) struct buf line = {0};

    buf_base64(&line, text, size);
    buf_text_append(ret, "one word of prose\n");
    for (size_t i = 0; i < line.size_bytes; i += 60) {
        buf_text_append(ret, "    \"");
        buf_append(ret, line.data + i, size_min(60, line.size_bytes - i));
        buf_text_append(ret, "\"\n");
    }
}

static void as_hex(const char *text, size_t size, struct buf *ret)
{
    for (size_t i = 0; i < size; i++)
        buf_format(ret, "%02x%s", (unsigned)(uint8_t)text[i], i % 32 == 31 ? "\n" : "");
}

static void as_spaced_hex(const char *text, size_t size, struct buf *ret)
{
    for (size_t i = 0; i < size; i++)
        buf_format(ret, "0x%02X,%s", (unsigned)(uint8_t)text[i], i % 12 == 11 ? "\n    " : " ");
}

static void as_json(const char *text, size_t size, struct buf *ret)
{
    buf_text_append(ret, "{\"source\":\"");
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n')
            buf_text_append(ret, "\\n");
        else if (text[i] == 't')
            buf_text_append(ret, "\\u0074");
        else
            buf_char(ret, text[i]);
    }
    buf_text_append(ret, "\"}");
}

static void as_numbered(const char *text, size_t size, struct buf *ret)
{
    unsigned line = 1;

    buf_format(ret, "%6u\t", line);
    for (size_t i = 0; i < size; i++) {
        buf_char(ret, text[i]);
        if (text[i] == '\n')
            buf_format(ret, "%6u\t", ++line);
    }
}

static void as_coloured(const char *text, size_t size, struct buf *ret)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ')
            buf_text_append(ret, "\x1b[01;31m\x1b[K");
        buf_char(ret, text[i]);
    }
}

static void as_archive(const char *text, size_t size, struct buf *ret)
{
    buf_text_append(ret, "PK\x03\x04");
    for (size_t i = 0; i < size; i++)
        buf_char(ret, (char)(text[i] ^ SCRAMBLE));
}

typedef void coding(const char *text, size_t size, struct buf *ret);
static const struct {
    coding *make;
    const char *how;
} codings[] = {
    {as_base64, "base64"},          {as_wrapped_base64, "base64"}, {as_hex, "hexadecimal"},
    {as_spaced_hex, "hexadecimal"}, {as_json, "escapes"},          {as_numbered, "numbered lines"},
    {as_coloured, "escapes"},       {as_archive, "'m' of zip"},
};

static void each_coding_is_seen_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codings); i++) {
        scoped(buf_done) struct buf text = {0};
        struct fixture fixture;
        bool is_broken = false;

        start(&fixture, &is_broken);
        codings[i].make(secret, strlen(secret), &text);
        assert_int_equal(
            leak_search_text(fixture.search, "x", text.data, text.size_bytes, &fixture.leaks, NULL),
            0);
        assert_int_equal(fixture.leaks.count, 1);
        assert_true(fixture.leaks.items[0].severe);
        if (!str_equal(fixture.leaks.items[0].how, codings[i].how))
            fail_msg("%s: seen by %s", codings[i].how, fixture.leaks.items[0].how);
        assert_true(fixture.leaks.items[0].found * 100 >= fixture.leaks.items[0].all * 90);
        stop(&fixture);
    }
}

static void two_codings_on_each_other_are_seen_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codings); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(codings); k++) {
            scoped(buf_done) struct buf inner = {0};
            scoped(buf_done) struct buf text = {0};
            struct fixture fixture;
            bool is_broken = false;

            /* An archive begins where its bytes do, not within a sentence. */
            if (codings[i].make == as_archive &&
                (codings[k].make == as_json || codings[k].make == as_numbered))
                continue;
            start(&fixture, &is_broken);
            codings[i].make(secret, strlen(secret), &inner);
            codings[k].make(inner.data, inner.size_bytes, &text);
            assert_int_equal(leak_search_text(fixture.search, "x", text.data, text.size_bytes,
                                              &fixture.leaks, NULL),
                             0);
            if (fixture.leaks.severe_count != 1)
                fail_msg("%s in %s: not seen", codings[i].how, codings[k].how);
            stop(&fixture);
        }
    }
}

static void an_innocent_text_is_no_leak(void **state)
{
    (void)state;
    static const char innocent[] =
        "The accounts are settled each month: read rates from rates.csv, and print the total.\n"
        "aGVsbG8sIHRoaXMgaXMgbm90aGluZyBidXQgYSBmcmllbmRseSBncmVldGluZyBmcm9tIHVzIGFsbA==\n";
    struct fixture fixture;
    bool is_broken = false;

    start(&fixture, &is_broken);
    assert_int_equal(leak_search_text(fixture.search, "README", innocent, strlen(innocent),
                                      &fixture.leaks, NULL),
                     0);
    assert_int_equal(fixture.leaks.count, 0);
    assert_int_equal(fixture.leaks.places, 1);
    assert_int_equal(fixture.leaks.bytes, strlen(innocent));
    stop(&fixture);
}

static void a_piece_is_told_but_not_severe(void **state)
{
    (void)state;
    struct fixture fixture;
    bool is_broken = false;
    scoped(json_freep) json_t *json = NULL;

    start(&fixture, &is_broken);
    assert_int_equal(
        leak_search_text(fixture.search, "notes", secret + 60, 90, &fixture.leaks, NULL), 0);
    assert_int_equal(fixture.leaks.count, 1);
    assert_false(fixture.leaks.items[0].severe);
    assert_null(fixture.leaks.items[0].how);
    json = leaks_to_json(&fixture.leaks, fixture.index);
    const json_t *finding = json_array_get(json_get_array(json, "findings"), 0);

    assert_string_equal(json_get_text(finding, "private"), "reference/settle.py");
    assert_string_equal(json_get_text(finding, "place"), "notes");
    assert_int_equal(strlen(json_get_text(finding, "id")), 12);
    stop(&fixture);
}

static void what_the_author_wrote_before_is_no_leak(void **state)
{
    (void)state;
    scoped(buf_done) struct buf call = {0};
    struct fixture fixture;
    bool is_broken = false;

    start(&fixture, &is_broken);
    as_json(secret, strlen(secret), &call);
    assert_int_equal(leak_search_except(fixture.search, call.data, call.size_bytes, NULL), 0);
    assert_int_equal(
        leak_search_text(fixture.search, "result", secret, strlen(secret), &fixture.leaks, NULL),
        0);
    assert_int_equal(fixture.leaks.count, 0);
    stop(&fixture);
}

/* Nobody floods the list with pieces to hide a whole file behind them. */
static void a_severe_leak_is_listed_whatever_came_before(void **state)
{
    (void)state;
    struct fixture fixture;
    bool is_broken = false;

    start(&fixture, &is_broken);
    for (size_t i = 0; i < LEAKS_MAX + 5; i++)
        assert_int_equal(
            leak_search_text(fixture.search, "piece", secret + 60, 90, &fixture.leaks, NULL), 0);
    assert_int_equal(
        leak_search_text(fixture.search, "whole", secret, strlen(secret), &fixture.leaks, NULL), 0);
    assert_int_equal(fixture.leaks.count, LEAKS_MAX);
    assert_int_equal(fixture.leaks.dropped, 6);
    assert_int_equal(fixture.leaks.severe_dropped, 0);
    assert_true(fixture.leaks.items[LEAKS_MAX - 1].severe);
    assert_string_equal(fixture.leaks.items[LEAKS_MAX - 1].place, "whole");
    for (size_t i = 0; i < LEAKS_MAX; i++)
        assert_int_equal(
            leak_search_text(fixture.search, "whole", secret, strlen(secret), &fixture.leaks, NULL),
            0);
    assert_int_equal(fixture.leaks.severe_count, LEAKS_MAX + 1);
    assert_int_equal(fixture.leaks.severe_dropped, 1);
    stop(&fixture);
}

static void an_unpacker_that_lies_about_sizes_is_an_error(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};
    scoped(error_freep) struct error *err = NULL;
    struct fixture fixture;
    bool is_broken = true;

    start(&fixture, &is_broken);
    as_archive(secret, strlen(secret), &text);
    assert_int_equal(
        leak_search_text(fixture.search, "x", text.data, text.size_bytes, &fixture.leaks, &err),
        -ERROR_BUG);
    stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_coding_is_seen_through),
        cmocka_unit_test(two_codings_on_each_other_are_seen_through),
        cmocka_unit_test(an_innocent_text_is_no_leak),
        cmocka_unit_test(a_piece_is_told_but_not_severe),
        cmocka_unit_test(what_the_author_wrote_before_is_no_leak),
        cmocka_unit_test(a_severe_leak_is_listed_whatever_came_before),
        cmocka_unit_test(an_unpacker_that_lies_about_sizes_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
