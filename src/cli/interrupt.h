#pragma once
/*
 * interrupt: Ctrl-C and SIGTERM become a flag that loops look at.
 *
 * The first signal asks for a clean end; the third ends the program at once (cells die with it).
 */

#include "base/base.h"

/* Installs the handlers; the flag is 0 until a signal came, then the number of them. */
const volatile int *interrupt_watch(void);
