#pragma once
/*
 * tar: the one archive format of the project: POSIX ustar with pax headers, made deterministically.
 *
 * Writer and reader are each other's inverse: entries in tree order, mtime, uid and gid 0, no names
 * of owners, a pax header exactly when a path or link text is longer than 100 bytes or not ASCII or
 * a size needs it, two zero blocks at the end and nothing after them. The reader takes nothing
 * else. GNU tar and bsdtar read the archives. Normative: docs/formats/artifacts.md. Used by the
 * worker (static) and by closedbook, so: base only.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "collect/manifest.h"

#define TAR_BLOCK_BYTES 512

struct tar_entry {
    const char *path; /* clean UTF-8 below the archive's root, see tar_text_is_clean() */
    enum manifest_type type;
    mode_t mode;         /* MANIFEST_MODE_BITS */
    uint64_t size_bytes; /* MANIFEST_FILE */
    const char *target;  /* MANIFEST_LINK */
};

/* True for non-empty UTF-8 without control characters: what paths and link texts may be. */
bool tar_text_is_clean(const char *text) nonnull(1);

/* Appends the header blocks of an entry, the pax ones included. */
void tar_write_header(struct buf *buf, const struct tar_entry *entry) nonnull(1, 2);
/* How many zero bytes follow size bytes of content. */
static inline size_t tar_padding(uint64_t size)
{
    return (size_t)((TAR_BLOCK_BYTES - size % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES);
}

/* Writes an archive to fd, hashing what it writes. */
struct tar_writer {
    int fd;
    const char *name; /* for errors */
    struct sha256_stream *stream;
    struct buf pending;
};
void tar_writer_init(struct tar_writer *writer, int fd, const char *name) nonnull(1, 3);
must_check int tar_writer_add(struct tar_writer *writer, const struct tar_entry *entry,
                              struct error **err) nonnull(1, 2);
/* Content of the file that was added last: in all its size_bytes, then tar_writer_pad(). */
must_check int tar_writer_bytes(struct tar_writer *writer, const void *bytes, size_t size,
                                struct error **err) nonnull(1);
must_check int tar_writer_pad(struct tar_writer *writer, uint64_t size, struct error **err)
    nonnull(1);
/* The two zero blocks; *ret is the digest of the whole archive. */
must_check int tar_writer_end(struct tar_writer *writer, struct sha256 *ret, struct error **err)
    nonnull(1, 2);
void tar_writer_done(struct tar_writer *writer) nonnull(1);

/* Reads an archive by offset. */
struct tar_reader {
    int fd; /* seekable; borrowed */
    const char *name;
    uint64_t size_bytes; /* of the archive */
    uint64_t next;       /* offset of the next header */
    struct buf path, target;
    struct buf last_path; /* to see the order */
    struct buf header;
};
must_check int tar_reader_init(struct tar_reader *reader, int fd, const char *name,
                               struct error **err) nonnull(1, 3);
/*
 * The next entry and the offset of its content: 1, or 0 at the end. *ret lives until the next call.
 * ERROR_SYSTEM with the offset when the archive is not what our writer emits.
 */
must_check int tar_reader_next(struct tar_reader *reader, struct tar_entry *ret,
                               uint64_t *ret_offset, struct error **err) nonnull(1, 2, 3);
void tar_reader_done(struct tar_reader *reader) nonnull(1);
