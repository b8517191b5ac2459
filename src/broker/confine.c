#include "broker/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/fs.h"

/* Every right of the first version of landlock, which every kernel with it knows. */
#define EVERY_RIGHT ((1ull << 13) - 1)
#define READ_FILE (1ull << 2)
/* Of the fourth version, which Debian 12's headers lack. */
#define NET_VERSION 4
#define BIND_TCP (1ull << 0)
#define CONNECT_TCP (1ull << 1)
#define RULE_NET_PORT 2
#define PORT_OF_NAMES 53

struct rules_attr {
    uint64_t files, net;
};
struct port_attr {
    uint64_t allowed, port;
};

/* What glibc reads to find an address, without modules. */
static const char *const name_files[] = {
    "/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf", "/etc/host.conf",
    "/etc/gai.conf",    "/etc/services", "/etc/protocols",
};

static int allow_file(int ruleset, const char *path, struct error **err)
{
    scoped(fd_closep) int fd = open(path, O_PATH | O_CLOEXEC); /* where links lead */
    const struct landlock_path_beneath_attr attr = {.allowed_access = READ_FILE, .parent_fd = fd};

    if (fd < 0)
        return 0; /* then there is nothing to read */
    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) < 0
               ? error_errno(err, errno, "cannot allow the broker '%s'", path)
               : 0;
}

static int allow_port(int ruleset, uint16_t port, struct error **err)
{
    const struct port_attr attr = {.allowed = CONNECT_TCP, .port = port};

    return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &attr, 0) < 0
               ? error_errno(err, errno, "cannot allow the broker port %u", port)
               : 0;
}

static int allow(int ruleset, const struct confine_needs *needs, bool knows_ports,
                 struct error **err)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(name_files) && r == 0; i++)
        r = allow_file(ruleset, name_files[i], err);
    for (size_t i = 0; i < needs->port_count && knows_ports && r == 0; i++)
        r = allow_port(ruleset, needs->ports[i], err);
    return r < 0 || !knows_ports ? r : allow_port(ruleset, PORT_OF_NAMES, err);
}

int broker_confine(const struct confine_needs *needs, struct error **err)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    bool knows_ports = version >= NET_VERSION;
    const struct rules_attr attr = {EVERY_RIGHT, knows_ports ? BIND_TCP | CONNECT_TCP : 0};

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_errno(err, errno, "cannot protect what the broker holds");
    /* A kernel that does not know of ports takes no struct that has them. */
    scoped(fd_closep) int ruleset = (int)syscall(
        SYS_landlock_create_ruleset, &attr, knows_ports ? sizeof(attr) : sizeof(attr.files), 0);

    if (ruleset < 0)
        return error_errno(err, errno,
                           "landlock is not to be had, so the broker cannot be confined");
    int r = needs->speaks ? allow(ruleset, needs, knows_ports, err) : 0;

    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = error_errno(err, errno, "cannot restrict the broker with landlock");
    return r;
}
