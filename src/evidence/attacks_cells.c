/* Class G: channels between cells that run at the same time or one after the other. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/str.h"
#include "evidence/attack.h"

#define NOTE_ENTRIES 4000
#define TEXT_BYTES 4096
#define ANSWER_MS 200
#define OWN_PIDS_MAX 10000

static char text[TEXT_BYTES];

static void read_note(struct attack_context *context, const char *path, unsigned char type)
{
    if (type == DT_REG && strstr(path, ".probe-note-") != NULL &&
        secret_in_file(context, AT_FDCWD, path))
        attack_found(context, "a note of another's: %.100s", path);
}

static void read_notes(struct attack_context *context)
{
    static const char *const roots[] = {
        ".", "..", "/tmp", "/var/tmp", "/dev/shm", "/run", "/home/agent", "/dev/mqueue", NULL};
    size_t index = 0;
    const struct target *target;

    while ((target = targets_next(context->targets, NULL, "note", &index)) != NULL) {
        attack_looked(context, 1);
        if (target->value[0] == '/' && secret_in_file(context, AT_FDCWD, target->value))
            attack_found(context, "a note of another %s at %.100s", target->where, target->value);
    }
    walk_for_secret(
        context, &(struct walk){.roots = roots, .entries_max = NOTE_ENTRIES, .visit = read_note});
}

/* The other holds exclusive locks on these: they are seen where an inode is shared. */
static void feel_locks(struct attack_context *context)
{
    static const char *const paths[] = {"/usr", "/usr/bin", "/etc/passwd", "/dev/null", "/"};

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            continue;
        attack_looked(context, 1);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            /* A user namespace may not make device nodes: they are the host's own there. */
            if (context->targets->tier[0] == 'B' && str_starts(paths[i], "/dev/"))
                attack_posture(context, "%s, the host's own in this tier, is locked", paths[i]);
            else
                attack_found(context, "%s is locked by another", paths[i]);
        }
        (void)close(fd); /* the lock goes with it */
    }
}

static void call_abstract(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;

    while ((target = targets_next(context->targets, NULL, "abstract", &index)) != NULL) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t length = strlen(target->value);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (length > sizeof(address.sun_path) - 2)
            continue;
        memcpy(address.sun_path + 1, target->value, length);
        attack_looked(context, 1);
        if (connect(fd, (const struct sockaddr *)(const void *)&address,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1)) == 0 ||
            errno == EPERM)
            attack_found(context, "the abstract socket of another %s", target->where);
        if (fd >= 0)
            (void)close(fd); /* nothing was sent */
    }
}

static void call_cells(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;
    uint64_t port;

    while ((target = targets_next(context->targets, "cell", "tcp", &index)) != NULL) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (!str_to_u64(target->value, &port))
            continue;
        address.sin_port = htons((uint16_t)port);
        attack_looked(context, 1);
        if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0)
            attack_found(context, "another cell answers at port %s", target->value);
        if (fd >= 0)
            (void)close(fd); /* nothing was sent */
    }
}

/* Numbers that count what others do: process ids of the whole machine. */
static void count_others(struct attack_context *context)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    attack_looked(context, 1);
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    if (pid > OWN_PIDS_MAX)
        attack_found(context, "process ids are the machine's: %d", pid);
}

static void read_counters(struct attack_context *context)
{
    static const char *const files[] = {"/proc/stat",       "/proc/loadavg", "/proc/diskstats",
                                        "/proc/interrupts", "/proc/vmstat",  "/proc/schedstat",
                                        "/proc/zoneinfo",   "/proc/uptime"};
    int readable = 0;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        attack_looked(context, 1);
        readable += attack_read(files[i], text, sizeof(text)) > 0;
    }
    if (readable > 0)
        attack_posture(context, "%d counters of the whole machine can be read", readable);
}

/* The other's locks, and the inode numbers of the host. */
static void compare_inodes(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;

    while ((target = targets_next(context->targets, "host", "inode", &index)) != NULL) {
        struct stat status;
        char own[64];

        attack_looked(context, 1);
        if (stat("/usr/bin", &status) < 0)
            return attack_failed(context, "no /usr/bin");
        (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)status.st_dev,
                       (uintmax_t)status.st_ino);
        if (strcmp(own, target->value) == 0)
            attack_found(context, "/usr/bin is the host's own directory");
    }
}

static const struct attack attacks[] = {
    {"cells.notes", 'G', PHASE_AGENT, CONTROL_LEAKY, true,
     "read notes that another cell or an earlier one left", read_notes},
    {"cells.locks", 'G', PHASE_AGENT, CONTROL_LEAKY, true,
     "feel another cell's locks on shared files", feel_locks},
    {"cells.abstract", 'G', PHASE_AGENT, CONTROL_LEAKY, true, "call another's abstract socket",
     call_abstract},
    {"cells.loopback", 'G', PHASE_AGENT, CONTROL_LEAKY, true, "call another cell's loopback",
     call_cells},
    {"cells.numbers", 'G', PHASE_AGENT, CONTROL_MUTANT, true,
     "count what others start by process ids", count_others},
    {"cells.inodes", 'G', PHASE_AGENT, CONTROL_LEAKY, true,
     "share an inode, and so its cache and locks", compare_inodes},
    {"cells.counters", 'G', PHASE_AGENT, CONTROL_LEAKY, true, "read counters of the whole machine",
     read_counters},
};
const struct attack_table attacks_cells = {attacks, ARRAY_SIZE(attacks)};
