#pragma once
/*
 * agent_output: the pipes of an agent's program, and what comes through them. Of the exchanges of a
 * dialog it is one output after the other.
 *
 * Depends on: base, agent/events, agent/stream, cell, record.
 */

#include "agent/agent.h"
#include "record/record.h"
#include "run/event_show.h"

#define AGENT_PIPES 4

/* Ours to read, the cell's to write. Index 3 carries event lines. */
struct agent_pipes {
    int read[AGENT_PIPES], write[AGENT_PIPES];
};
void agent_pipes_init(struct agent_pipes *pipes) nonnull(1);
void agent_pipes_done(struct agent_pipes *pipes) nonnull(1);
must_check int agent_pipes_open(struct agent_pipes *pipes, const struct agent_turn *turn,
                                struct error **err) nonnull(1, 2);
void agent_pipes_close_write(struct agent_pipes *pipes) nonnull(1);

struct agent_output {
    struct buf out, err;
    struct cell_capture captures[3];
    struct event_reader *reader;
    struct stream *stream;
    /* After each piece that may hold events; true: the program has done enough. NULL: none. */
    bool (*look)(void *context);
    void *look_context;
    struct event_show show;
    size_t exchange; /* where in out the exchange at hand begins */
};
/* reader gets the event lines, stream (NULL: none) what is printed; both outlive it. */
void agent_output_init(struct agent_output *output, size_t max_bytes, struct event_reader *reader,
                       struct stream *stream) nonnull(1, 3);
void agent_output_done(struct agent_output *output) nonnull(1);
/* Another program's pipes, whose output follows. */
void agent_output_attach(struct agent_output *output, const struct agent_pipes *pipes)
    nonnull(1, 2);
/* The program ended. cell_wait() closes what reached its end and says so in the captures. */
void agent_output_sync(struct agent_output *output, struct agent_pipes *pipes) nonnull(1, 2);
/* agent.stdout and agent.stderr, and how much there was. */
must_check int agent_output_save(int dir_fd, const struct agent_output *output,
                                 struct trial_record *record, struct error **err) nonnull(2, 3);
