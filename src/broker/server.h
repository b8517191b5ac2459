#pragma once
/*
 * server: the broker's loop: one thread, one poll over all connections.
 */

#include "broker/broker.h"
#include "broker/call_frame.h"
#include "broker/mock_table.h"
#include "broker/models.h"
#include "broker/proxy.h"
#include "broker/recording.h"

/* One that connected from a cell. */
struct client {
    int fd;               /* -1: free */
    uint64_t deadline_ns; /* for its call; 0: it made it */
    bool passes;          /* the real program runs; its end is awaited */
    json_t *call;         /* the log's line, until then */
};

/* One trial: its connection, and what it handed over. */
struct trial {
    int channel;          /* -1: free */
    int listener, log_fd; /* -1: not open */
    json_t *tools;
    uint64_t log_bytes;
    struct broker_result result;
    struct client clients[BROKER_CLIENTS_MAX];
    struct proxy *proxy;         /* model endpoints for its agent; NULL: none */
    struct ask *ask;             /* a question under way; NULL: none */
    struct recording *recording; /* of both; NULL: none */
};

struct server {
    int control; /* where connections of trials come from */
    struct trial **trials;
    size_t trial_count;
    char *frame;                /* CALL_FRAME_BYTES_MAX + 1 */
    struct models *models;      /* NULL: it speaks with no endpoint */
    struct error *models_error; /* why it cannot; NULL */
};

/* Answers a trial, with a descriptor (borrowed) or -1; problem NULL: all is well. */
void server_reply(const struct trial *trial, const struct error *problem, int fd) nonnull(1);

void trial_init(struct trial *trial, int channel) nonnull(1);
void trial_free(struct trial *trial) nonnull(1);
/* Takes new connections from its cell while there is room, some at a time; how many it took. */
size_t trial_accept(struct trial *trial) nonnull(1);
/* A datagram, or the end, of one of them. frame: room for the largest, and a byte. */
void trial_read(struct trial *trial, struct client *client, char *frame) nonnull(1, 2, 3);
/* Drops those that have not made their call in time. */
void trial_drop_late(struct trial *trial, uint64_t now_ns) nonnull(1);
/* The cell is gone: reads what its programs still said, those that nobody had accepted, too. */
void trial_drain(struct trial *trial, char *frame) nonnull(1, 2);
/* Nothing more is answered; what is under way is logged as it is. */
void trial_end(struct trial *trial) nonnull(1);

/* Runs until the control connection ends. */
must_check int server_run(struct server *server, struct error **err) nonnull(1);
