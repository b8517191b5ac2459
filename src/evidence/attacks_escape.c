/* Class E: ways out: the root, devices, settings, sockets. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/str.h"
#include "evidence/attack.h"

#define TEXT_BYTES 16384
#define PATH_BYTES 512
#define SOCKET_ENTRIES 3000

static char text[TEXT_BYTES];

static void climb_out(struct attack_context *context)
{
    static const char *const above[] = {"/..", "/../..", "/proc/self/root/..",
                                        "/proc/self/cwd/../../.."};
    static const char *const hosts[] = {"/boot",       "/var/lib/dpkg", "/lost+found",
                                        "/.dockerenv", "/etc/shadow",   "/etc/machine-id",
                                        "/etc/ssh"};
    struct stat root, found;

    if (stat("/", &root) < 0)
        return attack_failed(context, "no root");
    for (size_t i = 0; i < ARRAY_SIZE(above); i++) {
        attack_looked(context, 1);
        if (stat(above[i], &found) == 0 &&
            (found.st_dev != root.st_dev || found.st_ino != root.st_ino))
            attack_found(context, "%s is another place", above[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        attack_looked(context, 1);
        if (targets_say_root(context->targets) && attack_is_own_system(hosts[i]))
            continue;
        if (stat(hosts[i], &found) == 0)
            attack_found(context, "%s is there", hosts[i]);
    }
}

static bool is_expected_device(dev_t device)
{
    static const unsigned expected[][2] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}};

    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        if (device == makedev(expected[i][0], expected[i][1]))
            return true;
    return major(device) >= 136 && major(device) <= 143; /* pseudo-terminals of its own */
}

static void look_at_node(struct attack_context *context, const char *path, unsigned char type)
{
    struct stat status;

    attack_looked(context, 1);
    if ((type != DT_CHR && type != DT_BLK) || lstat(path, &status) < 0 ||
        is_expected_device(status.st_rdev))
        return;
    attack_found(context, "the device %.60s (%u:%u)", path, major(status.st_rdev),
                 minor(status.st_rdev));
}

static void find_devices(struct attack_context *context)
{
    static const char *const roots[] = {"/dev", NULL};

    walk_for_secret(context,
                    &(struct walk){.roots = roots, .entries_max = 2000, .visit = look_at_node});
    attack_looked(context, 1);
    if (mknod(".probe-disk", S_IFBLK | 0600, makedev(254, 0)) == 0) {
        attack_found(context, "a disk's node could be made");
        (void)unlink(".probe-disk");
    }
}

/* Every mount without device nodes and set-id bits; /dev alone has nodes. */
static void look_at_mounts(struct attack_context *context)
{
    char *rest = text;

    if (attack_read("/proc/self/mountinfo", text, sizeof(text)) <= 0)
        return attack_failed(context, "no mount table");
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *fields[6];
        size_t count = 0;

        while (count < ARRAY_SIZE(fields) && line != NULL)
            fields[count++] = strsep(&line, " ");
        if (count < ARRAY_SIZE(fields) || line == NULL)
            continue;
        attack_looked(context, 1);
        bool is_dev = str_starts(fields[4], "/dev");

        if (strstr(fields[5], "nosuid") == NULL || (!is_dev && strstr(fields[5], "nodev") == NULL))
            attack_found(context, "%.80s is mounted %.60s", fields[4], fields[5]);
    }
}

static void change_settings(struct attack_context *context)
{
    static const char *const files[] = {
        "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
        "/proc/sys/kernel/modprobe",     "/proc/sys/vm/drop_caches",
        "/proc/sys/kernel/hostname",     "/proc/sys/fs/binfmt_misc/register"};
    struct statvfs about;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        int fd = open(files[i], O_WRONLY | O_CLOEXEC);

        attack_looked(context, 1);
        if (fd >= 0) {
            attack_found(context, "%s can be written", files[i]);
            (void)close(fd); /* nothing was written */
        }
    }
    attack_looked(context, 1);
    if (statvfs("/proc/sys", &about) == 0 && (about.f_flag & ST_RDONLY) == 0)
        attack_found(context, "/proc/sys is not read-only");
}

static void look_for_sysfs(struct attack_context *context)
{
    static const char *const places[] = {"/sys/kernel",   "/sys/fs/cgroup",
                                         "/sys/class",    "/sys/kernel/debug",
                                         "/sys/firmware", "/sys/fs/cgroup/memory/release_agent"};
    struct stat status;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        attack_looked(context, 1);
        if (stat(places[i], &status) == 0)
            attack_found(context, "%s is there", places[i]);
    }
}

static void connect_to(struct attack_context *context, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char bytes[128];

    if (strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    attack_looked(context, 1);
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        attack_found(context, "somebody answers at %.80s%s", path,
                     n > 0 && secret_in(context->targets, bytes, (size_t)n) ? ", with the secret"
                                                                            : "");
    }
    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
}

static void try_socket(struct attack_context *context, const char *path, unsigned char type)
{
    if (type == DT_SOCK)
        connect_to(context, path);
}

static void call_sockets(struct attack_context *context)
{
    static const char *const known[] = {"/var/run/docker.sock",
                                        "/run/docker.sock",
                                        "/run/containerd/containerd.sock",
                                        "/run/podman/podman.sock",
                                        "/run/dbus/system_bus_socket",
                                        "/run/systemd/private",
                                        "/run/systemd/notify",
                                        "/run/snapd.socket"};
    static const char *const roots[] = {".", "/run", "/tmp", "/var/run", NULL};
    size_t index = 0;
    const struct target *target;

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        connect_to(context, known[i]);
    while ((target = targets_next(context->targets, "host", "socket", &index)) != NULL)
        connect_to(context, target->value);
    walk_for_secret(
        context,
        &(struct walk){.roots = roots, .entries_max = SOCKET_ENTRIES, .visit = try_socket});
}

static const struct attack attacks[] = {
    {"escape.root", 'E', PHASE_AGENT, CONTROL_LEAKY, true, "leave the root, or find the host's",
     climb_out},
    {"escape.devices", 'E', PHASE_AGENT, CONTROL_LEAKY, true, "find or make a device",
     find_devices},
    {"escape.mount-flags", 'E', PHASE_AGENT, CONTROL_LEAKY, true,
     "find a mount with device nodes or set-id programs", look_at_mounts},
    {"escape.settings", 'E', PHASE_AGENT, CONTROL_LEAKY, true,
     "change the kernel's settings: handlers that it runs", change_settings},
    {"escape.sysfs", 'E', PHASE_AGENT, CONTROL_LEAKY, true, "find /sys and control groups",
     look_for_sysfs},
    {"escape.sockets", 'E', PHASE_AGENT, CONTROL_LEAKY, true,
     "talk to a container engine, a service manager, an operator's socket", call_sockets},
};
const struct attack_table attacks_escape = {attacks, ARRAY_SIZE(attacks)};
