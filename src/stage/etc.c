#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "stage/stage.h"

#define ETC_ENTRIES_MAX 20000
#define ETC_BYTES_MAX ((uint64_t)64 << 20)

/*
 * What programs read of /etc without asking who they are: nothing that names this machine, its
 * users, its network or its services. Links are kept as text (alternatives, certificates,
 * localtime).
 */
static const char *const allowed[] = {
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "inputrc",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "magic.mime",
    "mime.types",
    "os-release",
    "perl",
    "protocols",
    "python3*",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
};

int etc_tree(struct store *store, struct layer *ret, struct error **err)
{
    scoped(fd_closep) int fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    scoped(str_list_done) struct str_list only = {0};

    if (fd < 0)
        return error_errno(err, errno, "cannot open /etc");
    for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
        str_list_add(&only, allowed[i]);
    struct store_source source = {
        .fd = fd,
        .label = "/etc",
        .mount_point = ".",
        .only = &only,
        .keep_links = true,
        .public_only = true,
        .tree_only = true,
        .max_bytes = ETC_BYTES_MAX,
        .max_entries = ETC_ENTRIES_MAX,
    };

    /* Only what everybody may read: no rights of anybody else are needed, hence no worker. */
    return store_add(store, STORE_PUBLIC, NULL, &source, ret, err);
}
