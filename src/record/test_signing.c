/* Keys and signatures: the first example of RFC 8032, files as openssl writes them, and forgeries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/signing.h"

/* The seed of RFC 8032, 7.1, test 1, as `openssl pkey` writes it, and the public key there. */
static const char secret_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
static const char public_text[] =
    "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

static void a_key_file_is_read_and_written(void **state)
{
    (void)state;
    scoped(signing_key_freep) struct signing_key *key = NULL;
    scoped(buf_done) struct buf text = {0};
    scoped(buf_done) struct buf pem = {0};
    char name[SIGNING_PUBLIC_CHARS + 1];
    struct signing_public again;

    assert_int_equal(signing_key_parse("k", secret_pem, &key, NULL), 0);
    const struct signing_public public = signing_key_public(key);

    signing_public_format(&public, name);
    assert_string_equal(name, public_text);
    signing_key_write(key, &text);
    assert_string_equal(buf_text(&text), secret_pem);
    signing_public_write(&public, &pem);
    assert_int_equal(signing_public_parse("p", buf_text(&pem), &again, NULL), 0);
    assert_memory_equal(&again, &public, sizeof(public));
    assert_int_equal(signing_public_parse("p", public_text, &again, NULL), 0);
    assert_memory_equal(&again, &public, sizeof(public));
    signing_clean(&text);
    assert_int_equal(text.size_bytes, 0);
}

static void what_is_no_key_is_refused(void **state)
{
    (void)state;
    static const char x25519[] =
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VuBCIEIJ1hsZ3v/VpgwGRcSbrspJVs8EkQrARMHEp7a0/8bbSg\n"
        "-----END PRIVATE KEY-----\n";
    static const char *const bad[] = {
        "",
        "ed25519:00",
        "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v\n-----END PRIVATE KEY-----\n",
        x25519,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMC4C\n-----END ENCRYPTED PRIVATE KEY-----\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct signing_key *key = NULL;
        struct signing_public public;

        assert_int_equal(signing_key_parse("k", bad[i], &key, NULL), -ERROR_USER);
        assert_int_equal(signing_public_parse("k", bad[i], &public, NULL), -ERROR_USER);
    }
}

static void a_signature_is_of_one_key_and_one_digest(void **state)
{
    (void)state;
    scoped(signing_key_freep) struct signing_key *key = NULL, *other = NULL;
    uint8_t signature[SIGNING_BYTES], again[SIGNING_BYTES];
    struct sha256 digest = sha256_of("abc", 3), another = sha256_of("abd", 3);
    char text[SIGNING_CHARS + 1];

    assert_int_equal(signing_key_make(&key, NULL), 0);
    assert_int_equal(signing_key_make(&other, NULL), 0);
    const struct signing_public public = signing_key_public(key),
                                strange = signing_key_public(other);

    signing_sign(key, &digest, signature);
    assert_true(signing_verify(&public, &digest, signature));
    assert_false(signing_verify(&public, &another, signature));
    assert_false(signing_verify(&strange, &digest, signature));
    signing_format(signature, text);
    assert_true(signing_parse(text, again));
    assert_memory_equal(signature, again, SIGNING_BYTES);
    for (size_t i = 0; i < SIGNING_BYTES; i++) {
        signature[i] ^= 1;
        assert_false(signing_verify(&public, &digest, signature));
        signature[i] ^= 1;
    }
    text[5] = 'x';
    assert_false(signing_parse(text, again));
    assert_false(signing_parse("00", again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_file_is_read_and_written),
        cmocka_unit_test(what_is_no_key_is_refused),
        cmocka_unit_test(a_signature_is_of_one_key_and_one_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
