#include "run/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/str.h"

static int parse_sudo(const char *uid_text, const char *gid_text, struct identity *ret,
                      struct error **err)
{
    uint64_t uid = 0;
    uint64_t gid = 0;

    if (!str_to_u64(uid_text, &uid) || !str_to_u64(gid_text, &gid) || uid > INT32_MAX ||
        gid > INT32_MAX)
        return error_set(err, ERROR_USER,
                         "SUDO_UID and SUDO_GID: '%s' and '%s' found, two numbers expected; unset "
                         "them to run as the fixed id",
                         uid_text, gid_text);
    ret->uid = (uid_t)uid;
    ret->gid = (gid_t)gid;
    return 0;
}

int identity_find(struct identity *ret, struct error **err)
{
    struct identity found = {.root = geteuid() == 0, .uid = geteuid(), .gid = getegid()};

    if (!found.root) {
        *ret = found;
        return 0;
    }

    const char *uid_text = getenv("SUDO_UID");
    const char *gid_text = getenv("SUDO_GID");

    if (uid_text != NULL && gid_text != NULL) {
        int r = parse_sudo(uid_text, gid_text, &found, err);

        if (r < 0)
            return r;
    }
    if (uid_text == NULL || gid_text == NULL || found.uid == 0) {
        found.uid = IDENTITY_FIXED_ID;
        found.gid = IDENTITY_FIXED_ID;
    }
    *ret = found;
    return 0;
}

int identity_check(const struct identity *identity, struct error **err)
{
    if (!identity->root || identity->uid != IDENTITY_FIXED_ID)
        return 0;
    if (getpwuid(IDENTITY_FIXED_ID) == NULL && getgrgid(IDENTITY_FIXED_ID) == NULL)
        return 0;
    return error_set(err, ERROR_SYSTEM,
                     "an account or group of this machine has the id %u that closedbook takes when "
                     "root starts it; start it by sudo from an ordinary account",
                     IDENTITY_FIXED_ID);
}

static int set_capabilities(uint64_t keep)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    data[0].effective = data[0].permitted = (uint32_t)keep;
    data[1].effective = data[1].permitted = (uint32_t)(keep >> 32);
    return (int)syscall(SYS_capset, &header, data);
}

static int drop_bounding(void)
{
    for (int cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL) /* past the kernel's last capability */
            return 0;
        return -1;
    }
    return 0;
}

int identity_keep(uint64_t caps, struct error **err)
{
    if (drop_bounding() != 0 || set_capabilities(caps) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return error_errno(err, errno, "cannot give up privilege");
    return 0;
}

int identity_become(uid_t uid, gid_t gid, uint64_t keep_caps, struct error **err)
{
    if (uid == 0)
        return error_set(err, ERROR_BUG, "identity_become: uid 0");
    if (prctl(PR_SET_KEEPCAPS, keep_caps != 0, 0, 0, 0) != 0 || drop_bounding() != 0)
        return error_errno(err, errno, "cannot give up privilege: bounding set");
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return error_errno(err, errno, "cannot become uid %u, gid %u", uid, gid);
    if (set_capabilities(keep_caps) != 0)
        return error_errno(err, errno, "cannot give up privilege: capset");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return error_errno(err, errno, "cannot give up privilege: prctl");
    /* A protection is checked, not believed. */
    if (setuid(0) == 0 || geteuid() != uid || getegid() != gid)
        return error_set(err, ERROR_BUG, "root could be had again after dropping it");
    return 0;
}
