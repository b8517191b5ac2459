#pragma once
/*
 * terminal: the operator's terminal relayed to one of the cell's own, never handed over.
 *
 * A program in a cell that shares the operator's terminal could stuff input into it; so an
 * interactive cell gets a pseudo-terminal, and bytes are copied between the two.
 */

#include "base/error.h"

struct terminal {
    int master, slave; /* of the pseudo-terminal; -1: not interactive */
    int typist;        /* pid of the process that copies keys to the master */
    void *saved;       /* the operator's settings */
};

/* True when both input and output are a terminal. */
bool terminal_is_interactive(void);
/* Opens the pseudo-terminal with the operator's size, and switches the operator's to raw. */
must_check int terminal_open(struct terminal *ret, struct error **err) nonnull(1);
/* Starts copying keys; call after the cell has its end. Closes the slave. */
must_check int terminal_relay(struct terminal *terminal, struct error **err) nonnull(1);
/* Restores the operator's terminal. */
void terminal_close(struct terminal *terminal) nonnull(1);
/* A cell_capture callback: writes to standard output as it is. */
void terminal_echo(void *context, const char *bytes, size_t size);
