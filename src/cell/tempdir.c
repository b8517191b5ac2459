#include "cell/client.h"

_Noreturn void tempdir_serve(int control_fd, uid_t uid, gid_t gid)
{
    (void)control_fd;
    (void)uid;
    (void)gid;
    _exit(1);
}
