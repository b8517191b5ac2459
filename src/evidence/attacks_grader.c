/* Class K: beside the graders, in their own cell, as a program that they started. */

#include <errno.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "base/str.h"
#include "evidence/attack.h"

#define PATH_BYTES 512
#define TEXT_BYTES 65536
#define SCOPED_ABI 6 /* landlock keeps signals within a program */

/* Other programs of the cell, whose ids they told. */
static int each_peer(struct attack_context *context,
                     void (*visit)(struct attack_context *context, int pid))
{
    size_t index = 0;
    const struct target *target;
    int peers = 0;
    uint64_t number;

    while ((target = targets_next(context->targets, "peer", "pid", &index)) != NULL)
        if (str_to_u64(target->value, &number)) {
            peers++;
            visit(context, (int)number);
        }
    attack_looked(context, (uint64_t)peers);
    return peers;
}

static void signal_peer(struct attack_context *context, int pid)
{
    bool is_scoped = targets_number(context->targets, "landlock", SCOPED_ABI) >= SCOPED_ABI;

    if (kill(pid, 0) == 0 && !is_scoped)
        attack_posture(context, "signals reach other programs of the cell before Linux 6.12");
    else if (kill(pid, 0) == 0)
        attack_found(context, "another program of the graders can be signalled");
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
        attack_found(context, "another program of the graders can be traced");
}

static void signal_peers(struct attack_context *context)
{
    (void)each_peer(context, signal_peer);
}

static void read_peer(struct attack_context *context, int pid)
{
    static const char *const files[] = {"environ", "cmdline", "fd/3", "fd/5", "fd/6"};
    static char text[TEXT_BYTES];

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[PATH_BYTES];

        (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
        long size = attack_read(path, text, sizeof(text));

        if (size > 0 && secret_in(context->targets, text, (size_t)size))
            attack_found(context, "%s of another program of the graders", files[i]);
    }
}

static void read_peers(struct attack_context *context)
{
    (void)each_peer(context, read_peer);
}

static void write_to_peer(struct attack_context *context, int pid)
{
    for (int fd = 0; fd < 8; fd++) {
        char path[PATH_BYTES];

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
        int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

        if (own < 0)
            continue;
        attack_found(context, "descriptor %d of another program of the graders", fd);
        (void)close(own); /* nothing was written */
    }
}

static void write_to_peers(struct attack_context *context)
{
    (void)each_peer(context, write_to_peer);
}

/* --- the private half, which graders may read and nobody change */

static void change_file(struct attack_context *context, const char *path, unsigned char type)
{
    struct stat status;

    if (type != DT_REG)
        return;
    attack_looked(context, 1);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && stat(path, &status) == 0 && chmod(path, 0600) == 0) {
        attack_found(context, "the mode of a file of the private half can be changed");
        (void)chmod(path, status.st_mode & 07777);
    }
    if (fd >= 0) {
        attack_found(context, "a file of the private half can be written");
        (void)close(fd); /* nothing was */
    }
}

static void change_folder(struct attack_context *context, const char *folder)
{
    const char *roots[] = {folder, NULL};
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/.probe-%d", folder, getpid());
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    attack_looked(context, 1);
    if (fd >= 0) {
        attack_found(context, "a file can be added to the private half");
        (void)close(fd); /* nothing was written */
        (void)unlink(path);
    }
    walk_for_secret(context,
                    &(struct walk){.roots = roots, .entries_max = 1000, .visit = change_file});
}

static void change_private_half(struct attack_context *context)
{
    static const char *const variables[] = {"TASK_DIR", "REFERENCE_DIR"};

    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        const char *folder = getenv(variables[i]);

        if (folder != NULL)
            change_folder(context, folder);
    }
}

static const struct attack attacks[] = {
    {"grader.signals", 'K', PHASE_GRADE, CONTROL_LEAKY, false,
     "signal or trace another program of the graders", signal_peers},
    {"grader.words", 'K', PHASE_GRADE, CONTROL_LEAKY, false,
     "read environment, arguments, files of another program of the graders", read_peers},
    {"grader.output", 'K', PHASE_GRADE, CONTROL_LEAKY, false, "write into another grader's output",
     write_to_peers},
    {"grader.private", 'K', PHASE_GRADE, CONTROL_LEAKY, false,
     "change tests or reference while they are used", change_private_half},
};
const struct attack_table attacks_grader = {attacks, ARRAY_SIZE(attacks)};
