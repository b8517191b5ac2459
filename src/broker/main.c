/*
 * closedbook-broker: answers, outside of every cell, for what tasks recorded. Started by
 * closedbook, with its control connection as descriptor 3; it ends with that.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker_wire.h"
#include "broker/server.h"

static int say(const struct error *err)
{
    (void)fprintf(stderr, "closedbook-broker: %s\n", error_message(err));
    return error_exit_status(error_code_of(err));
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
    /* Nobody of its own user reads its memory, which holds the answers, nor gains by it. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        (void)error_errno(&err, errno, "cannot protect itself");
        return say(err);
    }
    int r = server_run(&server, &err);

    for (size_t i = 0; i < server.trial_count; i++)
        trial_free(server.trials[i]);
    free(server.trials);
    free(server.frame);
    return r < 0 ? say(err) : 0;
}
