#pragma once
/*
 * request: is a datagram a request that this server may act on? Nothing else of the server looks at
 * a field before this did. libc only.
 */

#include "cell/protocol.h"

/* Sizes that requests of each kind must have; 0: no such kind. */
size_t request_size(uint32_t kind);

/*
 * Checks counts, positions, termination and form of strings, kinds of descriptors, ranges and what
 * the role may ask for. 0, or -EBADMSG and the like: the client is broken or hostile.
 */
must_check int request_check_start(const struct request_start *request, const int *fds,
                                   size_t fd_count) nonnull(1, 2);
/* A recipe names no command, no workspace and nothing that is hidden. */
must_check int request_check_recipe(const struct request_start *request, const int *fds,
                                    size_t fd_count) nonnull(1, 2);
/* The most hostile: its standard streams may be neither directories nor paths. */
must_check int request_check_candidate(const struct request_exec *request, const int *fds,
                                       size_t fd_count) nonnull(1, 2);
must_check int request_check_exec(const struct request_exec *request, const int *fds,
                                  size_t fd_count) nonnull(1, 2);

/* The blob, mapped read-only; size is what the request needs of it. */
must_check int request_map_blob(int fd, uint64_t size_bytes, const char **ret) nonnull(3);
uint64_t request_blob_bytes(const struct wire_command *command, const struct wire_text *texts,
                            uint32_t text_count) nonnull(1);
