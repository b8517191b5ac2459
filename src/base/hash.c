/*
 * Digests by OpenSSL's low-level functions, linked statically: only the digest itself is pulled in,
 * and nothing is loaded or set up at the start, which would take longer than a cell does.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* they are deprecated in favour of EVP, not broken */

#include "base/hash.h"

#include <openssl/sha.h>

#include "base/mem.h"
#include "base/str.h"

struct sha256_stream {
    SHA256_CTX context;
};

struct sha256_stream *sha256_stream_new(void)
{
    struct sha256_stream *stream = mem_new(1, sizeof(*stream));

    ASSERT(SHA256_Init(&stream->context) == 1);
    return stream;
}

void sha256_stream_add(struct sha256_stream *stream, const void *bytes, size_t size)
{
    ASSERT(SHA256_Update(&stream->context, bytes, size) == 1);
}

struct sha256 sha256_stream_end(struct sha256_stream *stream)
{
    struct sha256 digest;

    ASSERT(SHA256_Final(digest.bytes, &stream->context) == 1);
    return digest;
}

void sha256_stream_free(struct sha256_stream *stream)
{
    free(stream);
}

void sha256_stream_freep(struct sha256_stream **stream)
{
    sha256_stream_free(*stream);
    *stream = NULL;
}

struct sha256 sha256_of(const void *bytes, size_t size)
{
    struct sha256_stream stream;

    ASSERT(SHA256_Init(&stream.context) == 1);
    sha256_stream_add(&stream, bytes, size);
    return sha256_stream_end(&stream);
}

struct git_blob_names git_blob_names_of(const void *bytes, size_t size)
{
    scoped(mem_freep) char *header = str_format("blob %zu", size);
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    struct git_blob_names names;
    SHA_CTX context;

    /* The NUL belongs to it. */
    ASSERT(SHA1_Init(&context) == 1);
    ASSERT(SHA1_Update(&context, header, strlen(header) + 1) == 1);
    ASSERT(SHA1_Update(&context, bytes, size) == 1);
    ASSERT(SHA1_Final(names.sha1, &context) == 1);
    sha256_stream_add(stream, header, strlen(header) + 1);
    sha256_stream_add(stream, bytes, size);
    names.sha256 = sha256_stream_end(stream);
    return names;
}
