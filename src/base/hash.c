/*
 * SHA-256 of OpenSSL by way of EVP. The worker, which is linked statically and started for each
 * cell, uses hash_plain.c instead: the same header, without EVP's start-up cost.
 */
#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/mem.h"

struct sha256_stream {
    EVP_MD_CTX *context;
};

struct sha256_stream *sha256_stream_new(void)
{
    struct sha256_stream *stream = mem_new(1, sizeof(*stream));

    /* Nothing of openssl.cnf may change what a digest is; and reading it costs a millisecond. */
    ASSERT(OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1);
    stream->context = EVP_MD_CTX_new();
    ASSERT(stream->context != NULL);
    ASSERT(EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) == 1);
    return stream;
}

void sha256_stream_add(struct sha256_stream *stream, const void *bytes, size_t size)
{
    ASSERT(EVP_DigestUpdate(stream->context, bytes, size) == 1);
}

struct sha256 sha256_stream_end(struct sha256_stream *stream)
{
    struct sha256 digest;
    unsigned size = 0;

    ASSERT(EVP_DigestFinal_ex(stream->context, digest.bytes, &size) == 1);
    ASSERT(size == SHA256_BYTES);
    return digest;
}

void sha256_stream_free(struct sha256_stream *stream)
{
    if (stream == NULL)
        return;
    EVP_MD_CTX_free(stream->context);
    free(stream);
}

void sha256_stream_freep(struct sha256_stream **stream)
{
    sha256_stream_free(*stream);
    *stream = NULL;
}

struct sha256 sha256_of(const void *bytes, size_t size)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();

    sha256_stream_add(stream, bytes, size);
    return sha256_stream_end(stream);
}
