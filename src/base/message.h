#pragma once
/*
 * message: one datagram with descriptors over a SOCK_SEQPACKET socket.
 *
 * libc only: the monitor uses this file, too. Returns 0 or -errno; sets no error.
 */

#include "base/base.h"

#define MESSAGE_FDS_MAX 48

/* Both ends close-on-exec. */
must_check int message_pair(int ret[static 2]);
must_check int message_send(int socket, const void *bytes, size_t size, const int *fds,
                            size_t fd_count);
/*
 * Receives exactly one datagram into bytes; -EMSGSIZE when it is not size bytes, -EPIPE at end of
 * stream, -EPROTO when descriptors were cut. Received descriptors are close-on-exec and the
 * caller's; on failure they are closed. Blocks unless the socket is non-blocking (-EAGAIN).
 */
must_check int message_receive(int socket, void *bytes, size_t size,
                               int fds[static MESSAGE_FDS_MAX], size_t *ret_fd_count);
