/*
 * closedbook-broker: answers, outside of every cell, for what tasks recorded. Started by
 * closedbook, with its control connection as descriptor 3; it ends with that.
 */

#include <fcntl.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker_wire.h"
#include "broker/confine.h"
#include "broker/server.h"

static int say(const struct error *err)
{
    (void)fprintf(stderr, "closedbook-broker: %s\n", error_message(err));
    return error_exit_status(error_code_of(err));
}

/* Every trial has a channel, a listener and calls of its own. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* else there can be fewer calls at a time */
}

int main(int argc, char **argv)
{
    scoped(error_freep) struct error *err = NULL;
    struct server server = {.control = BROKER_CONTROL_FD};

    (void)argv;
    if (argc != 1 || fcntl(BROKER_CONTROL_FD, F_GETFD) < 0) {
        (void)fputs("closedbook-broker: started by closedbook, not by hand\n", stderr);
        return 2;
    }
    raise_descriptors();
    int r = broker_confine(&err);

    if (r == 0)
        r = server_run(&server, &err);
    for (size_t i = 0; i < server.trial_count; i++)
        trial_free(server.trials[i]);
    free(server.trials);
    free(server.frame);
    /* Not by exit(): a sanitizer would look for leaks by files that it can no longer open. */
    _exit(r < 0 ? say(err) : 0);
}
