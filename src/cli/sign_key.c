#include "cli/sign_key.h"

#include <fcntl.h>

#include "base/fs.h"

static int load(const struct session *session, const char *path, struct signing_key **ret,
                struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd =
        session->reader.open(session->reader.context, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno_as(err, ERROR_USER, -fd, "cannot open the key '%s'", path);
    int r = fs_read_fd(fd, path, SIGNING_FILE_BYTES_MAX, &text, err);

    if (r == 0)
        r = signing_key_parse(path, buf_text(&text), ret, err);
    signing_clean(&text);
    return r;
}

int sign_key_check(const struct session *session, const char *path, struct error **err)
{
    scoped(signing_key_freep) struct signing_key *key = NULL;

    return path == NULL ? 0 : load(session, path, &key, err);
}

int sign_key_seal(const struct session *session, const char *path, struct run_dir *run,
                  struct error **err)
{
    scoped(signing_key_freep) struct signing_key *key = NULL;
    int r = path == NULL ? 0 : load(session, path, &key, err);

    return r < 0 ? r : run_dir_seal(run, key, err);
}
