#pragma once
/*
 * hash: SHA-256, the one content identity of the project (libcrypto behind it), and the names that
 * git gives to a file's content.
 *
 * A digest is 32 bytes; its text form is 64 lower-case hex digits, with "sha256:" before it in
 * records.
 */

#include "base/base.h"
#include "base/error.h"

#define SHA256_BYTES 32
#define SHA256_HEX_CHARS 64

struct sha256 {
    uint8_t bytes[SHA256_BYTES];
};

struct sha256_stream; /* opaque */
struct sha256_stream *sha256_stream_new(void);
void sha256_stream_add(struct sha256_stream *stream, const void *bytes, size_t size) nonnull(1);
/* The digest of all added bytes; the stream can only be freed afterwards. */
struct sha256 sha256_stream_end(struct sha256_stream *stream) nonnull(1);
void sha256_stream_free(struct sha256_stream *stream);
void sha256_stream_freep(struct sha256_stream **stream);

struct sha256 sha256_of(const void *bytes, size_t size);
bool sha256_equal(const struct sha256 *a, const struct sha256 *b) nonnull(1, 2);
/* Writes 64 digits and a NUL. */
void sha256_format(const struct sha256 *digest, char text[static SHA256_HEX_CHARS + 1]) nonnull(1);
/* Exactly 64 hex digits, optionally after "sha256:". */
must_check bool sha256_parse(const char *text, struct sha256 *ret) nonnull(1, 2);

/*
 * What git calls a blob of these bytes, in repositories of either object format. To find content in
 * a repository, never to identify any.
 */
#define GIT_SHA1_BYTES 20

struct git_blob_names {
    uint8_t sha1[GIT_SHA1_BYTES];
    struct sha256 sha256;
};
struct git_blob_names git_blob_names_of(const void *bytes, size_t size);

/* n random bytes from the kernel as 2n hex digits; owned. */
char *random_hex(size_t bytes) malloc_like;
