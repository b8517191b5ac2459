#include "cli/interrupt.h"

#include <signal.h>

#define PATIENCE 3

static volatile int interrupts;

static void note_signal(int number)
{
    (void)number; /* SIGINT and SIGTERM mean the same here */
    interrupts++;
    if (interrupts >= PATIENCE)
        _exit(130);
}

const volatile int *interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = note_signal};

    (void)sigaction(SIGINT, &action, NULL);  /* cannot fail for these numbers */
    (void)sigaction(SIGTERM, &action, NULL); /* as above */
    return &interrupts;
}
