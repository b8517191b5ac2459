/* The contents of many files, read by several processes: each takes every n-th. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/host_internal.h"

#define READ_BYTES ((size_t)256 << 10)
#define READERS_MAX 8
#define FILES_PER_READER 64 /* fewer are not worth a process */

/* In memory that the readers share; done is set last. */
struct answer {
    struct sha256 digest;
    bool done;
};

static bool digest_fd(int fd, struct sha256 *ret)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    scoped(mem_freep) char *bytes = mem_new(READ_BYTES, 1);
    ssize_t size;

    while ((size = read(fd, bytes, READ_BYTES)) != 0) {
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return false;
        sha256_stream_add(stream, bytes, (size_t)size);
    }
    *ret = sha256_stream_end(stream);
    return true;
}

static void read_some(struct host_entry *const *wanted, size_t count, struct answer *answers,
                      size_t first, size_t step)
{
    for (size_t i = first; i < count; i += step) {
        scoped(fd_closep) int fd =
            open(wanted[i]->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd >= 0)
            answers[i].done = digest_fd(fd, &answers[i].digest);
    }
}

/* The calling process is the first reader. A reader that cannot be started leaves its part undone.
 */
static void read_all(struct host_entry *const *wanted, size_t count, struct answer *answers)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t readers =
        size_min(size_min(cpus > 0 ? (size_t)cpus : 1, READERS_MAX), count / FILES_PER_READER + 1);
    pid_t pids[READERS_MAX] = {0}, parent = getpid();

    for (size_t i = 1; i < readers; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
            read_some(wanted, count, answers, i, readers);
        _exit(0);
    }
    read_some(wanted, count, answers, 0, readers);
    for (size_t i = 1; i < readers; i++)
        while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
}

/* What no reader could: with the rights of the opener. */
static int finish(struct host_entry *entry, const struct answer *answer,
                  const struct task_reader *reader, struct error **err)
{
    entry->has_digest = true;
    entry->digest = answer->digest;
    if (answer->done)
        return 0;
    scoped(fd_closep) int fd = reader->open(reader->context, entry->path, 0);

    if (fd < 0)
        return error_errno(err, -fd, "cannot read '%s'", entry->path);
    return digest_fd(fd, &entry->digest) ? 0
                                         : error_errno(err, errno, "cannot read '%s'", entry->path);
}

int host_digest(struct host_snapshot *snapshot, const struct task_reader *reader,
                struct error **err)
{
    scoped(mem_freep) struct host_entry **wanted =
        mem_new(snapshot->count + 1, sizeof(struct host_entry *));
    size_t count = 0;
    int r = 0;

    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->entries[i].wants_digest)
            wanted[count++] = &snapshot->entries[i];
    if (count == 0)
        return 0;
    struct answer *answers = mmap(NULL, count * sizeof(*answers), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (answers == MAP_FAILED)
        return error_errno(err, errno, "cannot share memory for %zu digests", count);
    read_all(wanted, count, answers);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = finish(wanted[i], &answers[i], reader, err);
    (void)munmap(answers, count * sizeof(*answers)); /* ours, whole */
    return r;
}
