#pragma once
/*
 * signing: Ed25519 (RFC 8032) over a digest, for who must know that a run's record is the
 * operator's.
 *
 * Keys are PEM files as `openssl genpkey -algorithm ed25519` makes them (PKCS #8, unencrypted) and
 * `openssl pkey -pubout` (SubjectPublicKeyInfo). A public key is told in text as "ed25519:" and 64
 * hex digits. Depends on: base, libsodium (docs/decisions/0420).
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

#define SIGNING_KEY_BYTES 32
#define SIGNING_BYTES 64
#define SIGNING_FILE_BYTES_MAX ((size_t)4096)
#define SIGNING_PUBLIC_CHARS (8 + 2 * SIGNING_KEY_BYTES)

struct signing_public {
    uint8_t bytes[SIGNING_KEY_BYTES];
};

struct signing_key; /* opaque: a secret, cleaned when freed */

must_check int signing_key_make(struct signing_key **ret, struct error **err) nonnull(1);
/* From PEM. ERROR_USER for what is no such key; name is for messages. */
must_check int signing_key_parse(const char *name, const char *text, struct signing_key **ret,
                                 struct error **err) nonnull(1, 2, 3);
void signing_key_free(struct signing_key *key);
void signing_key_freep(struct signing_key **key);
/* The private key as PEM; whoever holds the text cleans it: signing_clean(). */
void signing_key_write(const struct signing_key *key, struct buf *ret) nonnull(1, 2);
struct signing_public signing_key_public(const struct signing_key *key) nonnull(1);
/* Overwrites what a buffer holds, and empties it. */
void signing_clean(struct buf *text) nonnull(1);

void signing_public_write(const struct signing_public *key, struct buf *ret) nonnull(1, 2);
/* From PEM, or from "ed25519:...". */
must_check int signing_public_parse(const char *name, const char *text, struct signing_public *ret,
                                    struct error **err) nonnull(1, 2, 3);
/* "ed25519:..." and a NUL. */
void signing_public_format(const struct signing_public *key,
                           char text[static SIGNING_PUBLIC_CHARS + 1]) nonnull(1);

void signing_sign(const struct signing_key *key, const struct sha256 *digest,
                  uint8_t ret[static SIGNING_BYTES]) nonnull(1, 2);
bool signing_verify(const struct signing_public *key, const struct sha256 *digest,
                    const uint8_t signature[static SIGNING_BYTES]) nonnull(1, 2);

/* A signature as 128 lower-case hex digits and a NUL; and back: false for anything else. */
#define SIGNING_CHARS (2 * SIGNING_BYTES)
void signing_format(const uint8_t signature[static SIGNING_BYTES],
                    char text[static SIGNING_CHARS + 1]);
must_check bool signing_parse(const char *text, uint8_t ret[static SIGNING_BYTES]) nonnull(1);
