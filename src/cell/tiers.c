#include "cell/tiers.h"

const struct cell_protection_row cell_protection_rows[] = {
    {PROTECT_MOUNT_NS, "mount-ns", "A mount table of its own."},
    {PROTECT_PID_NS, "pid-ns", "Sees and reaches no process but its own; all die with its init."},
    {PROTECT_NET_NS, "net-ns", "No network but its own loopback."},
    {PROTECT_IPC_NS, "ipc-ns", "No System V or POSIX queue, semaphore or memory of the host."},
    {PROTECT_UTS_NS, "uts-ns", "A random host name."},
    {PROTECT_CGROUP_NS, "cgroup-ns", "Does not see where in the cgroup tree it lives."},
    {PROTECT_USER_NS, "user-ns", "Whatever it became inside, outside it is an ordinary user."},
    {PROTECT_ROOT, "root", "A root built from descriptors, entered by pivot_root; none other."},
    {PROTECT_PROC, "proc", "A /proc of its own processes, without what tells of the host."},
    {PROTECT_LEASED_UID, "leased-uid", "Runs under a user id that owns nothing else."},
    {PROTECT_OTHER_INIT_UID, "init-uid", "Its init runs under yet another user id."},
    {PROTECT_INIT_NOT_DUMPABLE, "init-hidden", "Its init can be neither traced nor read."},
    {PROTECT_NO_CAPS, "no-caps", "No capability, and none to be had."},
    {PROTECT_NO_NEW_PRIVS, "no-new-privs", "Set-id programs give nothing."},
    {PROTECT_SECCOMP, "seccomp", "Only system calls from a list."},
    {PROTECT_LANDLOCK, "landlock", "Writes below its own places only."},
    {PROTECT_FDS, "fds", "No descriptor but those of its command."},
    {PROTECT_KEYRING, "keyring", "A fresh session keyring."},
    {PROTECT_LIVENESS, "liveness", "Dies with the monitor."},
    {PROTECT_DISK, "disk", "Sized places to write to."},
    {PROTECT_NPROC, "nproc", "A limit to its number of processes."},
    {PROTECT_STATIC_PROC, "static-proc", "Instead of proc: a /proc that shows no process at all."},
    {PROTECT_NO_PTRACE, "no-ptrace", "No process traces another."},
    {PROTECT_MEMORY, "memory", "A limit to its memory, places included; past it the kernel kills."},
    {PROTECT_CPU, "cpu", "A limit to its processor time."},
    {PROTECT_PIDS, "pids", "Its processes are counted in a cgroup, whatever their ids."},
    {PROTECT_NO_SOCKETS, "no-sockets", "Instead of net-ns: no socket but pairs of its own."},
    {PROTECT_SCOPED, "scoped", "Instead of pid-ns: signals reach its own processes only."},
};
const size_t cell_protection_count = ARRAY_SIZE(cell_protection_rows);

/* Every tier with namespaces. */
#define PROTECT_SPACES                                                                             \
    (PROTECT_MOUNT_NS | PROTECT_PID_NS | PROTECT_NET_NS | PROTECT_IPC_NS | PROTECT_UTS_NS |        \
     PROTECT_CGROUP_NS | PROTECT_ROOT | PROTECT_INIT_NOT_DUMPABLE | PROTECT_NO_CAPS |              \
     PROTECT_NO_NEW_PRIVS | PROTECT_SECCOMP | PROTECT_LANDLOCK | PROTECT_FDS | PROTECT_KEYRING |   \
     PROTECT_LIVENESS | PROTECT_DISK | PROTECT_NPROC)

const struct cell_tier_row cell_tier_rows[TIER_COUNT] = {
    [TIER_NONE] = {TIER_NONE, "none", "No protection at all: the tempdir driver.", 0},
    [TIER_A] = {TIER_A, "A", "Started by root: a leased user id, no user namespace.",
                PROTECT_SPACES | PROTECT_PROC | PROTECT_LEASED_UID | PROTECT_OTHER_INIT_UID},
    [TIER_B] = {TIER_B, "B", "An ordinary user's: inside a user namespace.",
                PROTECT_SPACES | PROTECT_PROC | PROTECT_USER_NS},
    [TIER_B_MINUS] = {TIER_B_MINUS, "B-", "A user namespace without a /proc of its own.",
                      PROTECT_SPACES | PROTECT_USER_NS | PROTECT_STATIC_PROC | PROTECT_NO_PTRACE},
    [TIER_C] = {TIER_C, "C", "Landlock and seccomp only: at best PARTIAL.",
                PROTECT_NO_CAPS | PROTECT_NO_NEW_PRIVS | PROTECT_SECCOMP | PROTECT_LANDLOCK |
                    PROTECT_FDS | PROTECT_LIVENESS | PROTECT_NPROC | PROTECT_NO_PTRACE |
                    PROTECT_NO_SOCKETS | PROTECT_SCOPED},
};

uint64_t cell_mandatory(enum cell_tier tier, bool worker)
{
    /* A worker keeps one capability and its master's id, and has neither /proc nor a workspace. */
    const uint64_t not_in_worker = PROTECT_PROC | PROTECT_STATIC_PROC | PROTECT_NO_PTRACE |
                                   PROTECT_NO_SOCKETS | PROTECT_LEASED_UID | PROTECT_NO_CAPS |
                                   PROTECT_DISK | PROTECT_NPROC;
    uint64_t mandatory = cell_tier_rows[tier].mandatory;

    return worker ? mandatory & ~not_in_worker : mandatory;
}

uint64_t cell_mandatory_as_root(enum cell_tier tier)
{
    uint64_t mandatory = cell_tier_rows[tier].mandatory & ~(uint64_t)PROTECT_NO_CAPS;

    return mandatory | PROTECT_USER_NS | PROTECT_PIDS;
}

bool cell_tier_is_enough(enum cell_tier have, enum cell_tier wanted)
{
    return have != TIER_NONE && have <= wanted;
}

const char *cell_tier_name(enum cell_tier tier)
{
    return (unsigned)tier < TIER_COUNT ? cell_tier_rows[tier].name : "?";
}

bool cell_tier_parse(const char *name, enum cell_tier *ret)
{
    for (size_t i = 0; i < TIER_COUNT; i++) {
        if (strcmp(cell_tier_rows[i].name, name) == 0) {
            *ret = cell_tier_rows[i].tier;
            return true;
        }
    }
    return false;
}
