/*
 * Class K: as the agent's program that a grader runs by as-candidate. Its cell shares the workspace
 * with the graders' and nothing else. Where their places are it is told: an attacker may know them.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/str.h"
#include "evidence/attack.h"

#define PATH_BYTES 512
#define FDS_MAX 256
#define FIRST_OTHER_FD 3
#define HEAR_MS 200
#define PLACES_ENTRIES_MAX 2000

extern char **environ;

/* Of "NAME=PATH:PATH"; the text is the environment's, which is this process's own. */
static char *next_place(char **rest)
{
    char *place = *rest == NULL ? NULL : strsep(rest, ":");

    while (place != NULL && place[0] == '\0')
        place = strsep(rest, ":");
    return place;
}

static void read_places(struct attack_context *context)
{
    char *rest = getenv("PROBE_PLACES"), *place;

    while ((place = next_place(&rest)) != NULL) {
        const char *const roots[] = {place, NULL};
        struct stat status;

        attack_looked(context, 1);
        if (stat(place, &status) == 0)
            attack_found(context, "a place of the graders is there: %.100s", place);
        walk_for_secret(
            context,
            &(struct walk){.roots = roots, .entries_max = PLACES_ENTRIES_MAX, .contents = true});
    }
}

static void call_monitor(struct attack_context *context, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    attack_looked(context, 1);
    if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0)
        attack_found(context, "the socket that candidates are asked for by");
    if (fd >= 0)
        (void)close(fd); /* nothing was said */
}

static void use_tools(struct attack_context *context)
{
    char *rest = getenv("PROBE_TOOLS"), *place;

    while ((place = next_place(&rest)) != NULL) {
        struct stat status;

        attack_looked(context, 1);
        if (stat(place, &status) == 0)
            attack_found(context, "a tool of the graders is there: %.100s", place);
    }
    call_monitor(context, "/run/closedbook/candidates");
}

/* The numbers are those of the graders' cell; here they may be its own processes'. */
static void signal_graders(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;
    uint64_t pid;

    while ((target = targets_next(context->targets, "peer", "pid", &index)) != NULL) {
        attack_looked(context, 1);
        if (!str_to_u64(target->value, &pid) || pid == 1 || attack_is_own((int)pid))
            continue;
        if (kill((pid_t)pid, 0) == 0)
            attack_found(context, "a program of the graders can be signalled");
        if (ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, NULL) == 0)
            attack_found(context, "a program of the graders can be traced");
        if (setpriority(PRIO_PROCESS, (id_t)pid, 1) == 0)
            attack_found(context, "a program of the graders can be slowed down");
    }
}

static void use_descriptors(struct attack_context *context)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        char path[PATH_BYTES], name[PATH_BYTES] = "";
        struct stat status;

        attack_looked(context, 1);
        if (fstat(fd, &status) < 0)
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, name, sizeof(name) - 1);

        if (S_ISDIR(status.st_mode))
            attack_found(context, "descriptor %d is a directory", fd);
        if (fd < FIRST_OTHER_FD ||
            (n > 0 && S_ISFIFO(status.st_mode) && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0))
            continue; /* its three streams, and pipes of this program itself */
        attack_found(context, "descriptor %d: %.100s", fd, name);
    }
}

static void read_environment(struct attack_context *context)
{
    for (char **item = environ; *item != NULL; item++) {
        attack_looked(context, 1);
        if (secret_in(context->targets, *item, strlen(*item)))
            attack_found(context, "the graders' environment: %.20s", *item);
    }
}

static void hear(struct attack_context *context, int fd, const char *what)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    char text[PATH_BYTES];
    ssize_t n = poll(&watched, 1, HEAR_MS) > 0 ? recv(fd, text, sizeof(text), MSG_DONTWAIT) : 0;

    if (n > 0)
        attack_found(context, "%s of the graders answers", what);
}

static void call_port(struct attack_context *context, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    attack_looked(context, 1);
    if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0)
        hear(context, fd, "a port");
    if (fd >= 0)
        (void)close(fd); /* nothing was said */
}

static void call_name(struct attack_context *context, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = strnlen(name, sizeof(address.sun_path) - 2);

    memcpy(address.sun_path + 1, name, length);
    attack_looked(context, 1);
    if (connect(fd, (const struct sockaddr *)(const void *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 2)) == 0)
        hear(context, fd, "an abstract socket");
    if (fd >= 0)
        (void)close(fd); /* nothing was said */
}

static void call_services(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;
    uint64_t port;

    while ((target = targets_next(context->targets, "peer", "tcp", &index)) != NULL)
        if (str_to_u64(target->value, &port))
            call_port(context, (uint16_t)port);
    index = 0;
    while ((target = targets_next(context->targets, "peer", "abstract", &index)) != NULL)
        call_name(context, target->value);
}

static const struct attack attacks[] = {
    {"candidate.private", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: read tests and reference at their places", read_places},
    {"candidate.tools", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: use the graders' tools, ask for candidates", use_tools},
    {"candidate.signals", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: signal, trace or slow down a program of the graders", signal_graders},
    {"candidate.memory", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: read memory, files and words of the graders, look at PID 1",
     attack_read_others},
    {"candidate.descriptors", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: use the graders' descriptors", use_descriptors},
    {"candidate.environment", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: read the graders' environment", read_environment},
    {"candidate.services", 'K', PHASE_CANDIDATE, CONTROL_LEAKY, false,
     "as a candidate: call what listens in the graders' cell", call_services},
};
const struct attack_table attacks_candidate = {attacks, ARRAY_SIZE(attacks)};
