#include "evidence/stand.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define LINE_BYTES 256
#define SHM_BYTES 4096
#define LISTENERS 4
#define KEY_SPEC_USER (-4)
#define KEYCTL_UNLINK_OP 9

struct stand {
    enum stand_place place;
    const char *secret;
    int lines_fd;
    int listeners[LISTENERS]; /* streams, then a datagram */
    int shm_id;
    long key;
    char queue[32];
};

static void say(const struct stand *stand, const char *kind, const char *value)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof(line), "%s %s\n", kind, value);

    if (n > 0 && n < (int)sizeof(line))
        (void)!write(stand->lines_fd, line, (size_t)n); /* a reader that is gone needs no line */
}

static void say_number(const struct stand *stand, const char *kind, unsigned long number)
{
    char value[32];

    (void)snprintf(value, sizeof(value), "%lu", number);
    say(stand, kind, value);
}

/* A name of its own, no more. */
static unsigned random_name(void)
{
    unsigned random = 0;

    return getrandom(&random, sizeof(random), 0) == (ssize_t)sizeof(random) ? random
                                                                            : (unsigned)getpid();
}

static void listen_tcp(struct stand *stand)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (const struct sockaddr *)(const void *)&address, size) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&address, &size) < 0)
        return;
    stand->listeners[0] = fd;
    say_number(stand, "tcp", ntohs(address.sin_port));
}

static void listen_udp(struct stand *stand)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (const struct sockaddr *)(const void *)&address, size) < 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&address, &size) < 0)
        return;
    stand->listeners[3] = fd;
    say_number(stand, "udp", ntohs(address.sin_port));
}

static void listen_local(struct stand *stand, bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[sizeof(address.sun_path) - 1];
    unsigned random = random_name();
    size_t length;

    (void)snprintf(path, sizeof(path), "%s%08x", abstract ? "probe-" : "./socket-", random);
    length = strlen(path);
    memcpy(address.sun_path + (abstract ? 1 : 0), path, length);
    if (bind(fd, (const struct sockaddr *)(const void *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1)) < 0 ||
        listen(fd, 8) < 0)
        return;
    stand->listeners[abstract ? 1 : 2] = fd;
    if (abstract) {
        say(stand, "abstract", path);
        return;
    }
    char cwd[128], whole[LINE_BYTES];

    if (chmod(path, 0777) < 0 || getcwd(cwd, sizeof(cwd)) == NULL)
        return;
    (void)snprintf(whole, sizeof(whole), "%s/%s", cwd, path + 2);
    say(stand, "socket", whole);
}

static void share_memory(struct stand *stand)
{
    unsigned key = (random_name() & 0x7fffffff) | 1;

    stand->shm_id = shmget((key_t)key, SHM_BYTES, IPC_CREAT | IPC_EXCL | 0666);
    if (stand->shm_id < 0)
        return;
    char *bytes = shmat(stand->shm_id, NULL, 0);

    if (bytes == (void *)-1)
        return;
    (void)snprintf(bytes, SHM_BYTES, "%s", stand->secret);
    say_number(stand, "shm", key);
}

static void queue_message(struct stand *stand)
{
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 128};
    unsigned random = random_name();

    (void)snprintf(stand->queue, sizeof(stand->queue), "/probe-%08x", random);
    mqd_t queue = mq_open(stand->queue, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666, &attributes);

    if (queue == (mqd_t)-1) {
        stand->queue[0] = '\0';
        return;
    }
    if (mq_send(queue, stand->secret, strlen(stand->secret), 0) == 0)
        say(stand, "queue", stand->queue);
}

static void keep_key(struct stand *stand)
{
    stand->key =
        syscall(SYS_add_key, "user", "probe", stand->secret, strlen(stand->secret), KEY_SPEC_USER);
    if (stand->key > 0)
        say(stand, "key", "probe");
}

/* Notes for whoever comes later, where anybody may write. */
#define NOTE_PLACES 6

static bool note_path(const struct stand *stand, size_t index, char ret[static LINE_BYTES])
{
    static const char *const places[NOTE_PLACES - 1] = {"/tmp", "/var/tmp", "/dev/shm", "/run",
                                                        "."};
    const char *place = index < ARRAY_SIZE(places) ? places[index] : getenv("HOME");

    if (place == NULL)
        return false;
    (void)snprintf(ret, LINE_BYTES, "%s/.probe-note-%d-%s", place, getpid(),
                   stand->place == STAND_CELL ? "cell" : "host");
    return true;
}

static void leave_notes(const struct stand *stand)
{
    for (size_t i = 0; i < NOTE_PLACES; i++) {
        char path[LINE_BYTES];

        if (!note_path(stand, i, path))
            continue;
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0)
            continue;
        (void)!write(fd, stand->secret, strlen(stand->secret)); /* what is missing is not found */
        (void)close(fd);
        say(stand, "note", path);
    }
}

/* Locks on what everybody sees. */
static void lock_shared(const struct stand *stand)
{
    static const char *const paths[] = {"/usr", "/usr/bin", "/etc/passwd", "/dev/null", "/"};
    size_t held = 0;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            held++; /* and kept open */
    }
    if (held > 0)
        say_number(stand, "locks", held);
}

/* An open file without a name, and the same bytes on the heap: both are there as long as the stand
 * is. */
static void hold_bytes(const struct stand *stand)
{
    int fd = memfd_create("notes", 0);
    static char *copy;

    copy = strdup(stand->secret);
    if (fd >= 0 && copy != NULL &&
        write(fd, stand->secret, strlen(stand->secret)) == (ssize_t)strlen(stand->secret))
        say_number(stand, "pid", (unsigned long)getpid());
}

static void answer(const struct stand *stand, size_t index)
{
    int fd = stand->listeners[index];
    char bytes[512];

    if (index == LISTENERS - 1) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);

        if (recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)(void *)&peer, &size) > 0)
            (void)sendto(fd, stand->secret, strlen(stand->secret), 0,
                         (const struct sockaddr *)(const void *)&peer, size);
        return;
    }
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    if (client < 0)
        return;
    (void)send(client, stand->secret, strlen(stand->secret), MSG_NOSIGNAL);
    (void)close(client);
}

static void serve(const struct stand *stand)
{
    struct pollfd watched[LISTENERS + 1];

    for (;;) {
        char byte;

        for (size_t i = 0; i < LISTENERS; i++)
            watched[i] = (struct pollfd){.fd = stand->listeners[i], .events = POLLIN};
        watched[LISTENERS] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(watched, LISTENERS + 1, -1) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < LISTENERS; i++)
            if (watched[i].revents != 0)
                answer(stand, i);
        if (watched[LISTENERS].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0)
            return;
    }
}

/* What does not go away by itself. */
static void clear(const struct stand *stand)
{
    char path[LINE_BYTES];

    for (size_t i = 0; i < NOTE_PLACES; i++)
        if (note_path(stand, i, path))
            (void)unlink(path); /* not all were written */
    if (stand->key > 0)
        (void)syscall(SYS_keyctl, KEYCTL_UNLINK_OP, stand->key, KEY_SPEC_USER);
    if (stand->shm_id >= 0)
        (void)shmctl(stand->shm_id, IPC_RMID, NULL);
    if (stand->queue[0] != '\0')
        (void)mq_unlink(stand->queue);
}

void stand(enum stand_place place, const char *secret, int lines_fd)
{
    struct stand stand = {.place = place, .secret = secret, .lines_fd = lines_fd, .shm_id = -1};

    for (size_t i = 0; i < LISTENERS; i++)
        stand.listeners[i] = -1;
    /* As easy to look into as a process can be: what keeps the agent out must be the cell. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    hold_bytes(&stand);
    listen_tcp(&stand);
    listen_local(&stand, true);
    if (place != STAND_GRADE) {
        listen_udp(&stand);
        listen_local(&stand, false);
        share_memory(&stand);
        queue_message(&stand);
        leave_notes(&stand);
        lock_shared(&stand);
    }
    if (place == STAND_HOST)
        keep_key(&stand);
    say(&stand, "ready", ".");
    serve(&stand);
    clear(&stand);
}
