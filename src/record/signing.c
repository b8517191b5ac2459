#include "record/signing.h"

/* Its attributes are made of a word that is ours. */
#pragma push_macro("nonnull")
#undef nonnull
#include <sodium.h>
#pragma pop_macro("nonnull")

#include "base/mem.h"
#include "base/str.h"

#define TEXT_PREFIX "ed25519:"
#define DER_BYTES_MAX 64
#define SEED_BYTES crypto_sign_SEEDBYTES

_Static_assert(SIGNING_BYTES == crypto_sign_BYTES, "a signature of Ed25519");
_Static_assert(SIGNING_KEY_BYTES == crypto_sign_PUBLICKEYBYTES, "a public key of Ed25519");

/*
 * RFC 8410: the DER of either key of Ed25519 has one form without options, a fixed head and the 32
 * bytes. Another form is no key that openssl or keygen writes.
 */
static const uint8_t secret_head[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                      0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
static const uint8_t public_head[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                      0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

struct form {
    const char *begin, *end;
    const uint8_t *head;
    size_t head_size;
};
static const struct form secret_form = {"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
                                        secret_head, sizeof(secret_head)};
static const struct form public_form = {"-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----",
                                        public_head, sizeof(public_head)};

struct signing_key {
    uint8_t secret[crypto_sign_SECRETKEYBYTES]; /* the seed, then the public key */
};

static int prepare(struct error **err)
{
    return sodium_init() < 0 ? error_set(err, ERROR_SYSTEM, "libsodium finds no random numbers")
                             : 0;
}

/* --- PEM ---------------------------------------------------------------------------------------
 */

static void write_pem(const struct form *form, const uint8_t *bytes, struct buf *ret)
{
    uint8_t der[DER_BYTES_MAX];
    char text[2 * DER_BYTES_MAX];
    size_t size = form->head_size + SIGNING_KEY_BYTES;

    memcpy(der, form->head, form->head_size);
    memcpy(der + form->head_size, bytes, SIGNING_KEY_BYTES);
    (void)sodium_bin2base64(text, sizeof(text), der, size, sodium_base64_VARIANT_ORIGINAL);
    buf_format(ret, "%s\n%s\n%s\n", form->begin, text, form->end);
    sodium_memzero(der, sizeof(der));
    sodium_memzero(text, sizeof(text));
}

static bool parse_pem(const struct form *form, const char *text, uint8_t *ret)
{
    const char *begin = strstr(text, form->begin);
    const char *body = begin == NULL ? NULL : begin + strlen(form->begin);
    const char *end = body == NULL ? NULL : strstr(body, form->end);
    uint8_t der[DER_BYTES_MAX];
    size_t size = 0;
    bool fits = end != NULL &&
                sodium_base642bin(der, sizeof(der), body, (size_t)(end - body), " \r\n", &size,
                                  NULL, sodium_base64_VARIANT_ORIGINAL) == 0 &&
                size == form->head_size + SIGNING_KEY_BYTES &&
                memcmp(der, form->head, form->head_size) == 0;

    if (fits)
        memcpy(ret, der + form->head_size, SIGNING_KEY_BYTES);
    sodium_memzero(der, sizeof(der));
    return fits;
}

/* --- keys --------------------------------------------------------------------------------------
 */

static struct signing_key *key_of(const uint8_t seed[static SEED_BYTES])
{
    struct signing_key *key = mem_new(1, sizeof(*key));
    uint8_t public[SIGNING_KEY_BYTES];

    (void)crypto_sign_seed_keypair(public, key->secret, seed); /* cannot fail */
    return key;
}

int signing_key_make(struct signing_key **ret, struct error **err)
{
    uint8_t seed[SEED_BYTES];
    int r = prepare(err);

    if (r < 0)
        return r;
    randombytes_buf(seed, sizeof(seed));
    *ret = key_of(seed);
    sodium_memzero(seed, sizeof(seed));
    return 0;
}

void signing_key_free(struct signing_key *key)
{
    if (key == NULL)
        return;
    sodium_memzero(key, sizeof(*key));
    free(key);
}

void signing_key_freep(struct signing_key **key)
{
    signing_key_free(*key);
}

void signing_clean(struct buf *text)
{
    if (text->data != NULL)
        sodium_memzero(text->data, text->capacity_bytes);
    text->size_bytes = 0;
}

int signing_key_parse(const char *name, const char *text, struct signing_key **ret,
                      struct error **err)
{
    uint8_t seed[SEED_BYTES];
    int r = prepare(err);

    if (r < 0)
        return r;
    if (!parse_pem(&secret_form, text, seed))
        return error_set(err, ERROR_USER,
                         "'%s' is no Ed25519 private key (PEM, not encrypted); 'closedbook keygen' "
                         "makes one",
                         name);
    *ret = key_of(seed);
    sodium_memzero(seed, sizeof(seed));
    return 0;
}

void signing_key_write(const struct signing_key *key, struct buf *ret)
{
    write_pem(&secret_form, key->secret, ret);
}

struct signing_public signing_key_public(const struct signing_key *key)
{
    struct signing_public public;

    memcpy(public.bytes, key->secret + SEED_BYTES, sizeof(public.bytes));
    return public;
}

/* --- hex ---------------------------------------------------------------------------------------
 */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_parse(const char *text, uint8_t *ret, size_t size)
{
    if (strlen(text) != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void signing_format(const uint8_t signature[static SIGNING_BYTES],
                    char text[static SIGNING_CHARS + 1])
{
    (void)sodium_bin2hex(text, SIGNING_CHARS + 1, signature, SIGNING_BYTES);
}

bool signing_parse(const char *text, uint8_t ret[static SIGNING_BYTES])
{
    return hex_parse(text, ret, SIGNING_BYTES);
}

/* --- public keys -------------------------------------------------------------------------------
 */

void signing_public_write(const struct signing_public *key, struct buf *ret)
{
    write_pem(&public_form, key->bytes, ret);
}

int signing_public_parse(const char *name, const char *text, struct signing_public *ret,
                         struct error **err)
{
    scoped(mem_freep) char *line = str_ndup(text, strcspn(text, " \r\n"));

    if (str_starts(line, TEXT_PREFIX) &&
        hex_parse(line + strlen(TEXT_PREFIX), ret->bytes, sizeof(ret->bytes)))
        return 0;
    if (!parse_pem(&public_form, text, ret->bytes))
        return error_set(err, ERROR_USER,
                         "'%s' is no Ed25519 public key: PEM or " TEXT_PREFIX "HEX expected", name);
    return 0;
}

void signing_public_format(const struct signing_public *key,
                           char text[static SIGNING_PUBLIC_CHARS + 1])
{
    memcpy(text, TEXT_PREFIX, strlen(TEXT_PREFIX));
    (void)sodium_bin2hex(text + strlen(TEXT_PREFIX), 2 * SIGNING_KEY_BYTES + 1, key->bytes,
                         sizeof(key->bytes));
}

/* --- signatures --------------------------------------------------------------------------------
 */

void signing_sign(const struct signing_key *key, const struct sha256 *digest,
                  uint8_t ret[static SIGNING_BYTES])
{
    (void)crypto_sign_detached(ret, NULL, digest->bytes, sizeof(digest->bytes),
                               key->secret); /* cannot fail */
}

bool signing_verify(const struct signing_public *key, const struct sha256 *digest,
                    const uint8_t signature[static SIGNING_BYTES])
{
    return crypto_sign_verify_detached(signature, digest->bytes, sizeof(digest->bytes),
                                       key->bytes) == 0;
}
