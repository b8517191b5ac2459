#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "cell/setup.h"

#define CAPS_MAX 64
#define CAP_BIT(cap) (UINT64_C(1) << (cap))
#define SECUREBITS_BEFORE                                                                          \
    (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                               \
     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED)
#define SECUREBITS_AFTER                                                                           \
    (SECUREBITS_BEFORE | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static int set_caps(uint64_t permitted, uint64_t inheritable)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {(uint32_t)permitted, (uint32_t)permitted, (uint32_t)inheritable},
        {(uint32_t)(permitted >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32)},
    };

    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* LAST_CAP goes last, so that where it is gone all are that were to go with it. */
#define LAST_CAP CAP_CHOWN
_Static_assert(LAST_CAP == 0, "the loop begins after it");

static int drop_bounding(uint64_t gone)
{
    int r = 0;

    for (int cap = LAST_CAP + 1; cap < CAPS_MAX && r == 0; cap++) {
        if ((gone & CAP_BIT(cap)) != 0)
            r = prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 ? -errno : 0;
    }
    /* EINVAL: the first that this kernel does not know. */
    r = r == -EINVAL ? 0 : r;
    if (r == 0 && (gone & CAP_BIT(LAST_CAP)) != 0)
        r = prctl(PR_CAPBSET_DROP, LAST_CAP, 0, 0, 0) < 0 ? -errno : 0;
    return r;
}

int identity_bound(void)
{
    return drop_bounding(~IDENTITY_CAPS);
}

/* Ambient ones survive the exec of a program that is not root's. */
static int raise_ambient(uint64_t keep)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    for (int cap = 0; cap < CAPS_MAX; cap++) {
        if ((keep & CAP_BIT(cap)) != 0 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
            return -errno;
    }
    return 0;
}

/* Raw calls: glibc's would tell threads that do not exist here. */
static int set_ids(const struct identity *identity)
{
    if (!identity->keep_groups && syscall(SYS_setgroups, 0, NULL) < 0)
        return -errno;
    if (syscall(SYS_setresgid, identity->gid, identity->gid, identity->gid) < 0 ||
        syscall(SYS_setresuid, identity->uid, identity->uid, identity->uid) < 0)
        return -errno;
    return 0;
}

int identity_take(const struct identity *identity)
{
    uint64_t keep = identity->keep_caps;
    /* The monitor's own is dropped already; a new user namespace begins with a full one. */
    bool is_full = prctl(PR_CAPBSET_READ, LAST_CAP, 0, 0, 0) != 0;
    int r = drop_bounding(is_full ? ~keep : IDENTITY_CAPS & ~keep);

    if (r < 0)
        return r;
    if (!identity->is_root && prctl(PR_SET_SECUREBITS, SECUREBITS_BEFORE, 0, 0, 0) < 0)
        return -errno;
    r = set_ids(identity);
    /* Root's come with being root, and go with it. */
    if (r == 0 && identity->is_root)
        return set_caps(keep, 0);
    if (r == 0)
        r = set_caps(keep | CAP_BIT(CAP_SETPCAP), keep);
    if (r == 0)
        r = raise_ambient(keep);
    if (r < 0)
        return r;
    if (prctl(PR_SET_SECUREBITS, SECUREBITS_AFTER, 0, 0, 0) < 0)
        return -errno;
    return set_caps(keep, keep);
}
