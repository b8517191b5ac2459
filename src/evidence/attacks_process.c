/* Class C: environment, processes, descriptors, memory. */

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"
#include "evidence/attack.h"

#define PATH_BYTES 128
#define TEXT_BYTES 65536
#define FDS_MAX 4096
#define FIRST_OTHER_FD (5 + LIFELINES) /* below are the battery's own */
#define BURST_MAX 256                  /* larger limits are looked at, not tried */

static char text[TEXT_BYTES];

/* --- other processes */

static void read_words(struct attack_context *context, int pid)
{
    static const char *const files[] = {"environ", "cmdline"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[PATH_BYTES];

        (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
        long size = attack_read(path, text, sizeof(text));

        if (size > 0 && secret_in(context->targets, text, (size_t)size))
            attack_found(context, "%s of another process", files[i]);
    }
}

static void read_all_words(struct attack_context *context)
{
    attack_processes(context, read_words);
}

static void read_open_files(struct attack_context *context, int pid)
{
    for (int fd = 0; fd < 32; fd++) {
        char path[PATH_BYTES];
        struct stat status;

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
        if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
            continue;
        if (secret_in_file(context, AT_FDCWD, path))
            attack_found(context, "a file that another process holds open");
    }
}

static void read_all_open_files(struct attack_context *context)
{
    attack_processes(context, read_open_files);
}

static bool is_writable_part(const char *line)
{
    const char *mode = strchr(line, ' ');

    return mode != NULL && strncmp(mode + 1, "rw", 2) == 0;
}

static void read_part(struct attack_context *context, int fd, const char *line)
{
    char *rest;
    unsigned long long from = strtoull(line, &rest, 16);
    unsigned long long to = rest[0] == '-' ? strtoull(rest + 1, NULL, 16) : 0;

    for (; from < to && !attack_late(context); from += sizeof(text)) {
        ssize_t n = pread(fd, text, sizeof(text), (off_t)from);

        if (n <= 0)
            return;
        if (secret_in(context->targets, text, (size_t)n))
            attack_found(context, "memory of another process");
    }
}

static void read_memory(struct attack_context *context, int pid)
{
    char path[PATH_BYTES], line[PATH_BYTES * 2];

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");

    (void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (maps != NULL && fd >= 0 && fgets(line, sizeof(line), maps) != NULL)
        if (is_writable_part(line) && context->result.verdict != ATTACK_FOUND)
            read_part(context, fd, line);
    if (maps != NULL)
        (void)fclose(maps); /* read only */
    if (fd >= 0)
        (void)close(fd); /* read only */
}

static void read_all_memory(struct attack_context *context)
{
    attack_processes(context, read_memory);
}

/* Attaches without stopping it, and lets go by ending. */
static void trace(struct attack_context *context, int pid)
{
    attack_looked(context, 1);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return;
    attack_found(context, "another process could be traced");
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static void trace_all(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;
    uint64_t pid;

    while ((target = targets_next(context->targets, NULL, "pid", &index)) != NULL)
        if (str_to_u64(target->value, &pid) && !attack_is_own((int)pid))
            trace(context, (int)pid);
    attack_processes(context, trace);
    trace(context, 1);
}

/* ESRCH: there is none for us. EPERM tells that there is one. */
static void signal_all(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;
    uint64_t pid;

    while ((target = targets_next(context->targets, "host", "pid", &index)) != NULL) {
        attack_looked(context, 1);
        /* A number that a process of its own has, or its PID 1, says nothing. */
        if (!str_to_u64(target->value, &pid) || pid == 1 || attack_is_own((int)pid))
            continue;
        if (kill((pid_t)pid, 0) == 0 || errno == EPERM)
            attack_found(context, "a process of the host can be named: %s",
                         attack_errno_name(errno));
    }
}

/* PID 1 is hidden: it cannot even be seen. */
static void look_at_init(struct attack_context *context)
{
    static const char *const files[] = {"", "/status", "/environ", "/exe", "/root", "/fd", "/mem"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[PATH_BYTES];
        struct stat status;

        (void)snprintf(path, sizeof(path), "/proc/1%s", files[i]);
        attack_looked(context, 1);
        if (stat(path, &status) == 0)
            attack_found(context, "%s is there", path);
    }
}

void attack_read_others(struct attack_context *context)
{
    read_all_words(context);
    read_all_open_files(context);
    read_all_memory(context);
    look_at_init(context);
}

/* --- its own */

static void look_at_descriptors(struct attack_context *context)
{
    for (int fd = FIRST_OTHER_FD; fd < FDS_MAX; fd++) {
        char path[PATH_BYTES], name[PATH_BYTES] = "";

        attack_looked(context, 1);
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof(name) - 1) > 0 && strncmp(name, "pipe:", 5) == 0 &&
            (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0)
            continue; /* of this program itself */
        attack_found(context, "descriptor %d: %.100s", fd, name);
    }
}

static int steal_input(void *unused)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
    char name[PATH_BYTES], byte = 'x';

    (void)unused;
    if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0 ||
        setsid() < 0)
        return 0;
    slave = open(name, O_RDWR | O_CLOEXEC);
    if (slave < 0 || ioctl(slave, TIOCSTI, &byte) == 0 || errno != EPERM)
        return slave < 0 ? 0 : 1;
    return 0;
}

static void look_for_terminal(struct attack_context *context)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    attack_looked(context, 3);
    if (fd >= 0)
        attack_found(context, "there is a controlling terminal");
    if (getsid(0) != getppid())
        attack_found(context, "the session is somebody else's");
    if (attack_child(steal_input, NULL) != 0)
        attack_found(context, "TIOCSTI reaches the kernel");
}

/* --- what is shared by name */

static void read_shared_memory(struct attack_context *context)
{
    size_t index = 0;
    const struct target *target;
    uint64_t key;

    while ((target = targets_next(context->targets, NULL, "shm", &index)) != NULL) {
        attack_looked(context, 1);
        int id = str_to_u64(target->value, &key) ? shmget((key_t)key, 0, 0) : -1;

        if (id < 0)
            continue;
        const char *bytes = shmat(id, NULL, SHM_RDONLY);

        if (bytes != (void *)-1 && secret_in(context->targets, bytes, 64))
            attack_found(context, "shared memory of another %s", target->where);
    }
    index = 0;
    while ((target = targets_next(context->targets, NULL, "queue", &index)) != NULL) {
        mqd_t queue = mq_open(target->value, O_RDONLY | O_CLOEXEC);

        attack_looked(context, 1);
        if (queue != (mqd_t)-1)
            attack_found(context, "a message queue of another %s", target->where);
    }
}

static void use_keyrings(struct attack_context *context)
{
    static const long rings[] = {-1, -2, -3, -4, -5}; /* thread to user session */

    for (size_t i = 0; i < ARRAY_SIZE(rings); i++) {
        attack_looked(context, 1);
        long id = syscall(SYS_keyctl, 10, rings[i], "user", "probe", 0); /* search */

        if (id > 0 && syscall(SYS_keyctl, 11, id, text, sizeof(text), 0) > 0 &&
            secret_in(context->targets, text, sizeof(text)))
            attack_found(context, "a key of the operator's");
        id = syscall(SYS_add_key, "user", "probe-note", "note", 4, rings[i]);
        if (id > 0) {
            attack_found(context, "a note in keyring %ld", rings[i]);
            (void)syscall(SYS_keyctl, 9, id, rings[i]); /* unlink */
        }
    }
}

/* --- numbers */

static void flood(struct attack_context *context)
{
    uint64_t most = targets_number(context->targets, "pids", 0);
    struct rlimit limit;
    pid_t pids[BURST_MAX];
    size_t count = 0;

    attack_looked(context, 1);
    if (getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_max > most)
        attack_found(context, "more processes than the task allows");
    if (context->fast || most >= BURST_MAX)
        return;
    while (count < BURST_MAX && !attack_late(context) && (pids[count] = fork()) >= 0) {
        if (pids[count] == 0) {
            (void)pause();
            _exit(0);
        }
        count++;
    }
    attack_looked(context, count);
    for (size_t i = 0; i < count; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    if (count > most)
        attack_found(context, "%zu processes at a time", count);
}

static const struct attack attacks[] = {
    {"process.words", 'C', PHASE_AGENT, CONTROL_LEAKY, true,
     "read environments and arguments of other processes", read_all_words},
    {"process.files", 'C', PHASE_AGENT, CONTROL_LEAKY, true, "read files that others hold open",
     read_all_open_files},
    {"process.memory", 'C', PHASE_AGENT, CONTROL_LEAKY, true, "read the memory of other processes",
     read_all_memory},
    {"process.trace", 'C', PHASE_AGENT, CONTROL_LEAKY, true, "trace another process", trace_all},
    {"process.signals", 'C', PHASE_AGENT, CONTROL_LEAKY, true,
     "signal processes of the host, or learn that they exist", signal_all},
    {"process.init", 'C', PHASE_AGENT, CONTROL_LEAKY, true, "look at PID 1", look_at_init},
    {"process.descriptors", 'C', PHASE_AGENT, CONTROL_MUTANT, true,
     "use descriptors that were left open", look_at_descriptors},
    {"process.terminal", 'C', PHASE_AGENT, CONTROL_LEAKY, true,
     "reach the operator's terminal, type into one", look_for_terminal},
    {"process.shared", 'C', PHASE_AGENT, CONTROL_LEAKY, true,
     "read shared memory and message queues of others", read_shared_memory},
    {"process.keys", 'C', PHASE_AGENT, CONTROL_LEAKY, true,
     "read the operator's keys, leave a note in a keyring", use_keyrings},
    {"process.flood", 'C', PHASE_AGENT, CONTROL_LEAKY, true, "start more processes than allowed",
     flood},
};
const struct attack_table attacks_process = {attacks, ARRAY_SIZE(attacks)};
