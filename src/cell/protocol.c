#include "cell/protocol.h"

const char *cell_step_name(uint32_t step)
{
    static const char *const names[STEP_COUNT] = {
        [STEP_NONE] = "nothing",
        [STEP_REQUEST] = "the request",
        [STEP_LEASE] = "a user id of its own",
        [STEP_CGROUP] = "its cgroup",
        [STEP_NAMESPACES] = "namespaces",
        [STEP_USER_NAMESPACE] = "the user namespace's ids",
        [STEP_LIVENESS] = "the tie to the monitor",
        [STEP_ROOT] = "the root",
        [STEP_MOUNT] = "a mount",
        [STEP_ETC] = "/etc",
        [STEP_TEXT] = "a synthesised file",
        [STEP_PROC] = "/proc",
        [STEP_DEV] = "/dev",
        [STEP_WORKSPACE] = "the workspace",
        [STEP_SOCKET] = "the socket for candidates",
        [STEP_PIVOT] = "the change of root",
        [STEP_NETWORK] = "the loopback network",
        [STEP_HOSTNAME] = "the host name",
        [STEP_KEYRING] = "a session keyring",
        [STEP_INIT] = "the init",
        [STEP_DESCRIPTORS] = "the program's descriptors",
        [STEP_TTY] = "the controlling terminal",
        [STEP_LIMITS] = "resource limits",
        [STEP_IDENTITY] = "the program's identity",
        [STEP_LANDLOCK] = "landlock",
        [STEP_SECCOMP] = "seccomp",
        [STEP_JOIN] = "entering the cell",
        [STEP_CWD] = "the working directory",
        [STEP_EXEC] = "the program",
    };

    return step < STEP_COUNT ? names[step] : "?";
}
