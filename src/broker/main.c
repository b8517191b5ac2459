/*
 * closedbook-broker: answers, outside of every cell, for what tasks recorded. Started by
 * closedbook, with its control connection as descriptor 3; it ends with that.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

/* Before the process is confined: what it reads for that, it reads now. */
static void prepare_models(struct server *server)
{
    const struct models_sources sources = {BROKER_SETUP_FD, BROKER_ENV_KEYS_FD, BROKER_DOTENV_FD,
                                           BROKER_KEYS_YAML_FD};
    struct stat status;

    if (fstat(BROKER_SETUP_FD, &status) == 0 && S_ISREG(status.st_mode))
        (void)!models_new(&sources, &server->models, &server->models_error); /* said when asked */
    for (int fd = BROKER_SETUP_FD; fd < BROKER_FDS_END; fd++)
        (void)close(fd); /* nothing was written */
}

static int confine(const struct server *server, struct error **err)
{
    uint16_t ports[MODELS_PORTS_MAX];
    struct confine_needs needs = {.speaks = server->models != NULL, .ports = ports};

    if (needs.speaks)
        needs.port_count = models_ports(server->models, ports);
    return broker_confine(&needs, err);
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
    /* A cell or an endpoint that hangs up is no end of ours. */
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL); /* it is a signal */
    /* First of all: from the moment on that there are keys here, nobody looks in. */
    int r = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
                ? error_errno(&err, errno, "cannot protect what the broker holds")
                : 0;

    if (r == 0)
        prepare_models(&server);
    if (r == 0)
        r = confine(&server, &err);
    if (r == 0)
        r = server_run(&server, &err);
    for (size_t i = 0; i < server.trial_count; i++)
        trial_free(server.trials[i]);
    models_free(server.models);
    error_free(server.models_error);
    free(server.trials);
    free(server.frame);
    /* Not by exit(): a sanitizer would look for leaks by files that it can no longer open. */
    _exit(r < 0 ? say(err) : 0);
}
