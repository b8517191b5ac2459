/* SHA-256 of both backends against the published examples of FIPS 180-2, and random names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

static void the_examples_of_the_standard_hold(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[SHA256_HEX_CHARS + 1];
        struct sha256 digest = sha256_of(cases[i].text, strlen(cases[i].text));

        sha256_format(&digest, text);
        assert_string_equal(text, cases[i].digest);
    }
}

static void a_million_letters_in_pieces(void **state)
{
    (void)state;
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    char piece[1000], text[SHA256_HEX_CHARS + 1];

    memset(piece, 'a', sizeof(piece));
    for (size_t i = 0; i < 1000; i++)
        sha256_stream_add(stream, piece, sizeof(piece));
    struct sha256 digest = sha256_stream_end(stream);

    sha256_format(&digest, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void a_digest_is_read_back(void **state)
{
    (void)state;
    struct sha256 digest = sha256_of("x", 1), back = {{0}};
    char text[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, text);
    assert_true(sha256_parse(text, &back));
    assert_true(sha256_equal(&digest, &back));
    scoped(mem_freep) char *prefixed = str_format("sha256:%s", text);

    back.bytes[31] ^= 1;
    assert_false(sha256_equal(&digest, &back));
    assert_true(sha256_parse(prefixed, &back));
    assert_true(sha256_equal(&digest, &back));
}

static void what_is_no_digest_is_refused(void **state)
{
    (void)state;
    struct sha256 digest = sha256_of("x", 1), before = digest;
    char text[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, text);
    scoped(mem_freep) char *longer = str_format("%s0", text);
    scoped(mem_freep) char *shorter = str_dup(text + 1);
    scoped(mem_freep) char *wrong = str_format("g%s", text + 1);
    scoped(mem_freep) char *other = str_format("sha512:%s", text);

    assert_false(sha256_parse(longer, &digest));
    assert_false(sha256_parse(shorter, &digest));
    assert_false(sha256_parse(wrong, &digest));
    assert_false(sha256_parse(other, &digest));
    assert_false(sha256_parse("", &digest));
    assert_true(sha256_equal(&digest, &before));
}

static void random_names_differ(void **state)
{
    (void)state;
    scoped(mem_freep) char *a = random_hex(16);
    scoped(mem_freep) char *b = random_hex(16);

    assert_int_equal(strlen(a), 32);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_hold),
        cmocka_unit_test(a_million_letters_in_pieces),
        cmocka_unit_test(a_digest_is_read_back),
        cmocka_unit_test(what_is_no_digest_is_refused),
        cmocka_unit_test(random_names_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
