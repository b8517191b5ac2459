#include "broker/confine.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Every right of the first version of landlock, which every kernel with it knows. */
#define EVERY_RIGHT ((1ull << 13) - 1)

int broker_confine(struct error **err)
{
    const struct landlock_ruleset_attr attr = {.handled_access_fs = EVERY_RIGHT};

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_errno(err, errno, "cannot protect the answers of recorded programs");
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

    if (ruleset < 0)
        return error_errno(err, errno,
                           "landlock is not to be had, so the broker cannot be confined");
    int r = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
    int saved = errno;

    (void)close(ruleset); /* it is in force, or not */
    return r < 0 ? error_errno(err, saved, "cannot restrict the broker with landlock") : 0;
}
