/* Class F: the network. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/str.h"
#include "evidence/attack.h"

#define TEXT_BYTES 8192
#define CONNECT_MS 200
#define HIGH_BIT (UINT64_C(1) << 32)
#define FAMILY_ALG 38
#define FAMILY_VSOCK 40

static char text[TEXT_BYTES];

/* The first bytes that come; 0: none. */
static size_t hear(int fd, char *bytes, size_t size)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    ssize_t n = poll(&watched, 1, CONNECT_MS) > 0 ? recv(fd, bytes, size, MSG_DONTWAIT) : 0;

    return n > 0 ? (size_t)n : 0;
}

static void ask(struct attack_context *context, int type, const char *host, uint64_t port,
                const char *who)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    attack_looked(context, 1);
    if (inet_pton(AF_INET, host, &address.sin_addr) == 1 &&
        connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0) {
        if (type == SOCK_DGRAM)
            (void)send(fd, "?", 1, MSG_NOSIGNAL);
        size_t n = hear(fd, text, sizeof(text));

        if (n > 0)
            attack_found(context, "the %s answers at %s%s", who, host,
                         secret_in(context->targets, text, n) ? ", with the secret" : "");
    }
    if (fd >= 0)
        (void)close(fd); /* nothing more to say */
}

/* Loopback addresses only: to a machine beyond, no test may speak. */
static void ask_all(struct attack_context *context, const char *where, const char *kind, int type)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.1.1", "10.77.0.1"};
    size_t index = 0;
    const struct target *target;
    uint64_t port;

    while ((target = targets_next(context->targets, where, kind, &index)) != NULL)
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
            if (str_to_u64(target->value, &port))
                ask(context, type, addresses[i], port, where);
}

static void call_host(struct attack_context *context)
{
    ask_all(context, "host", "tcp", SOCK_STREAM);
    ask_all(context, "host", "udp", SOCK_DGRAM);
}

/* An interface other than loopback, a route, or a name service that somebody answers. */
static void look_around(struct attack_context *context)
{
    struct if_nameindex *interfaces = if_nameindex();

    for (size_t i = 0; interfaces != NULL && interfaces[i].if_index != 0; i++) {
        attack_looked(context, 1);
        if (strcmp(interfaces[i].if_name, "lo") != 0)
            attack_found(context, "the interface %.20s", interfaces[i].if_name);
    }
    if (interfaces != NULL)
        if_freenameindex(interfaces);
    if (attack_read("/proc/net/route", text, sizeof(text)) > 0) {
        const char *second = strchr(text, '\n');

        attack_looked(context, 1);
        if (second != NULL && second[1] != '\0')
            attack_found(context, "there is a route");
    }
}

static bool is_loopback(const char *word)
{
    return str_starts(word, "127.") || str_starts(word, "::1") || str_starts(word, "10.77.0.1");
}

static void read_names(struct attack_context *context)
{
    char *rest = text;

    if (attack_read("/etc/resolv.conf", text, sizeof(text)) >= 0) {
        attack_looked(context, 1);
        for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
            if (str_starts(line, "nameserver ") && !is_loopback(line + strlen("nameserver ")))
                attack_found(context, "a name server: %.40s", line);
    }
    rest = text;
    if (attack_read("/etc/hosts", text, sizeof(text)) < 0)
        return;
    attack_looked(context, 1);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        size_t words = strcspn(line, " \t");
        const char *name = line + words + strspn(line + words, " \t");
        bool is_neutral = strstr(name, "localhost") != NULL || strcmp(name, "cell") == 0;
        bool is_fixed = !is_loopback(line) && !str_starts(line, "ff0") && !str_starts(line, "fe0");

        if (line[0] >= '0' && line[0] <= '9' && (is_fixed || !is_neutral))
            attack_found(context, "/etc/hosts names %.60s", line);
    }
}

static void open_families(struct attack_context *context)
{
    const struct {
        const char *name;
        long result;
        int error;
    } tries[] = {
        {"vsock", syscall(SYS_socket, FAMILY_VSOCK, SOCK_STREAM, 0), errno},
        {"vsock (high bit)", syscall(SYS_socket, HIGH_BIT | FAMILY_VSOCK, SOCK_STREAM, 0), errno},
        {"alg", syscall(SYS_socket, FAMILY_ALG, SOCK_SEQPACKET, 0), errno},
        {"netlink", syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 2), errno},
        {"bluetooth", syscall(SYS_socket, AF_BLUETOOTH, SOCK_RAW, 0), errno},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        attack_looked(context, 1);
        if (tries[i].result >= 0 || tries[i].error != EPERM)
            attack_found(context, "a socket of family %s: %s", tries[i].name,
                         attack_errno_name(tries[i].result >= 0 ? 0 : tries[i].error));
    }
}

static void find_proxy(struct attack_context *context)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",   "no_proxy"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        attack_looked(context, 1);
        if (getenv(names[i]) != NULL)
            attack_found(context, "the variable %s", names[i]);
    }
}

static const struct attack attacks[] = {
    {"network.host", 'F', PHASE_AGENT, CONTROL_LEAKY, true,
     "connect to the host, by stream and by datagram", call_host},
    {"network.interfaces", 'F', PHASE_AGENT, CONTROL_LEAKY, true,
     "find an interface or a route that leads out", look_around},
    {"network.names", 'F', PHASE_AGENT, CONTROL_LEAKY, true,
     "find a name server, or other machines' names", read_names},
    {"network.families", 'F', PHASE_AGENT, CONTROL_LEAKY, true,
     "use a socket family that no network namespace holds", open_families},
    {"network.proxy", 'F', PHASE_AGENT, CONTROL_LEAKY, true, "find a proxy to go by", find_proxy},
};
const struct attack_table attacks_network = {attacks, ARRAY_SIZE(attacks)};
