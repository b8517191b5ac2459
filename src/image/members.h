#pragma once
/*
 * members: what is in a compressed file or an archive, printed for who looks for texts in it.
 *
 * For closedbook-unpack, in its cell: the bytes are hostile. Each member stands as eight digits of
 * hexadecimal with the size of its name, sixteen with that of its content, then both. What cannot
 * be read ends the list; what came before it counts. Depends on: base, libarchive.
 */

#include "base/error.h"

#define MEMBERS_BYTES_MAX ((size_t)64 << 20) /* of all contents */
#define MEMBERS_COUNT_MAX 10000
#define MEMBERS_NAME_BYTES_MAX 4096

/* From a file to another; ERROR_SYSTEM when that cannot be written. */
must_check int members_print(int archive_fd, int to_fd, struct error **err);
