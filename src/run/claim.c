#include "run/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"

/* To walk to a place, make it there, and give it away. */
#define CLAIM_CAPS                                                                                 \
    (UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER)

struct claim {
    struct identity identity;
    struct claim_place places[CLAIMS_MAX]; /* paths owned */
    size_t count;
    int socket; /* -1: the caller has the rights itself */
    pid_t pid;
};

struct claim_reply {
    int32_t error_number;
};

/* mkdir -p where every new level belongs to the identity. Returns 0 or -errno. */
static int make_dirs(const struct identity *identity, const char *path, mode_t last_mode)
{
    scoped(mem_freep) char *copy = str_dup(path);

    for (char *slash = copy;; slash++) {
        slash = strchr(slash + (slash == copy), '/');

        char *end = slash;
        mode_t mode = end == NULL ? last_mode : 0755;

        if (end != NULL)
            *end = 0;
        if (mkdir(copy, mode) == 0) {
            if (identity->root && lchown(copy, identity->uid, identity->gid) != 0)
                return -errno;
        } else if (errno != EEXIST) {
            return -errno;
        }
        if (end == NULL)
            return 0;
        *end = '/';
    }
}

/* An empty directory that is there already (a mktemp -d) is taken as if it were made. */
static int adopt_empty(const struct identity *identity, int fd)
{
    struct stat st;
    bool is_empty = true;

    if (!identity->root || fstat(fd, &st) != 0 || st.st_uid == identity->uid)
        return fd;

    DIR *folder = fdopendir(dup(fd));

    if (folder == NULL)
        return fd;
    for (struct dirent *entry; is_empty && (entry = readdir(folder)) != NULL;)
        is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    (void)closedir(folder); /* only read */
    /* Without it the directory stays as it is, and whoever writes there is told so. */
    if (is_empty)
        (void)!fchown(fd, identity->uid, identity->gid);
    return fd;
}

/* A regular file becomes the identity's; a device or a pipe is written to and stays as it is. */
static int give_away(const struct identity *identity, int fd)
{
    struct stat st;

    if (!identity->root)
        return fd;
    if (fstat(fd, &st) == 0 &&
        (!S_ISREG(st.st_mode) || fchown(fd, identity->uid, identity->gid) == 0))
        return fd;

    int saved = errno;

    (void)close(fd);
    return -saved;
}

static int make_place(const struct identity *identity, const struct claim_place *place)
{
    if (place->kind == CLAIM_DIR) {
        int r = make_dirs(identity, place->path, 0700);
        int fd = r < 0 ? r : open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
            return r == 0 ? -errno : r;
        return adopt_empty(identity, fd);
    }

    int fd = open(place->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    return give_away(identity, fd);
}

static int serve_one(const struct claim *claim, int socket, uint32_t index)
{
    struct claim_reply reply = {0};
    int fd = index < claim->count ? make_place(&claim->identity, &claim->places[index]) : -EPROTO;

    if (fd < 0)
        reply.error_number = -fd;

    int r = message_send(socket, &reply, sizeof(reply), &fd, fd < 0 ? 0 : 1);

    if (fd >= 0)
        (void)close(fd); /* the client has its own */
    return r;
}

static _Noreturn void serve(const struct claim *claim, int socket)
{
    uint32_t index = 0;
    int fds[MESSAGE_FDS_MAX];
    size_t fd_count = 0;

    while (message_receive(socket, &index, sizeof(index), fds, &fd_count) == 0) {
        for (size_t i = 0; i < fd_count; i++)
            (void)close(fds[i]); /* a request carries none */
        if (serve_one(claim, socket, index) < 0)
            break;
    }
    _exit(0);
}

static int start_process(struct claim *claim, struct error **err)
{
    int pair[2];
    int r = message_pair(pair);

    if (r < 0)
        return error_errno(err, -r, "cannot make a socket");
    claim->pid = fork();
    if (claim->pid == 0) {
        (void)close(pair[0]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || identity_keep(CLAIM_CAPS, NULL) < 0)
            _exit(1);
        serve(claim, pair[1]);
    }

    int saved = errno;

    (void)close(pair[1]);
    if (claim->pid < 0) {
        (void)close(pair[0]);
        return error_errno(err, saved, "cannot start a process");
    }
    claim->socket = pair[0];
    return 0;
}

int claim_start(const struct identity *identity, const struct claim_place *places, size_t count,
                struct claim **ret, struct error **err)
{
    ASSERT(count <= CLAIMS_MAX);

    scoped(claim_freep) struct claim *claim = mem_new(1, sizeof(*claim));

    claim->identity = *identity;
    claim->socket = -1;
    claim->count = count;
    for (size_t i = 0; i < count; i++)
        claim->places[i] = (struct claim_place){places[i].kind, str_dup(places[i].path)};
    if (identity->root && count > 0) {
        int r = start_process(claim, err);

        if (r < 0)
            return r;
    }
    *ret = take(claim);
    return 0;
}

static int ask(struct claim *claim, uint32_t index)
{
    struct claim_reply reply = {0};
    int fds[MESSAGE_FDS_MAX];
    size_t fd_count = 0;
    int r = message_send(claim->socket, &index, sizeof(index), NULL, 0);

    if (r == 0)
        r = message_receive(claim->socket, &reply, sizeof(reply), fds, &fd_count);
    if (r < 0)
        return r;
    return fd_count == 1 ? fds[0] : -reply.error_number;
}

int claim_make(struct claim *claim, size_t i, int *ret_fd, struct error **err)
{
    ASSERT(i < claim->count);

    int fd = claim->socket >= 0 ? ask(claim, (uint32_t)i)
                                : make_place(&claim->identity, &claim->places[i]);

    if (fd < 0)
        return error_errno(err, -fd, "cannot make '%s'", claim->places[i].path);
    *ret_fd = fd;
    return 0;
}

void claim_free(struct claim *claim)
{
    if (claim == NULL)
        return;
    if (claim->socket >= 0) {
        (void)close(claim->socket);
        (void)waitpid(claim->pid, NULL, 0); /* it ends at end of stream */
    }
    for (size_t i = 0; i < claim->count; i++)
        mem_freep(&claim->places[i].path);
    free(claim);
}

void claim_freep(struct claim **claim)
{
    claim_free(*claim);
}
