#pragma once
/*
 * broker_wire: what trials and the broker say to each other. Both are ours.
 */

#include "base/base.h"

#define BROKER_MAGIC 0x31524b42u
#define BROKER_CONTROL_FD 3
#define BROKER_TEXT_BYTES 160

enum broker_kind { BROKER_OPEN = 1, BROKER_CLOSE };
/* BROKER_OPEN brings three descriptors: the table as text, the listening socket, the log. */
enum { BROKER_TABLE, BROKER_LISTENER, BROKER_LOG, BROKER_OPEN_FDS };

struct broker_request {
    uint32_t magic, kind;
};

struct broker_reply {
    uint32_t magic;
    uint32_t failed;
    uint64_t calls, refused, unreported;
    uint32_t cut;
    char text[BROKER_TEXT_BYTES]; /* why it failed */
};
