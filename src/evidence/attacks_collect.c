/*
 * Class I: what is left for whoever copies it out. Each is planted by the agent and looked for by
 * the graders: what the copy must not hold is not there.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#include "base/str.h"
#include "evidence/attack.h"

#define SPARSE_BYTES ((off_t)64 << 30)
#define SPARSE_KEPT_MAX ((off_t)1 << 30)
#define DEEP_LEVELS 200
#define DEEP_KEPT_MAX 100
#define PATH_BYTES 512
#define ODD_NAMES 6

/* One of them is to mislead who reads it: NOLINTBEGIN(misc-misleading-bidirectional) */
static const char *const odd_names[ODD_NAMES] = {
    PLANTS "/line\nbreak", PLANTS "/\x1b[2Jescape",       PLANTS "/-rf",
    PLANTS "/\xff\xfe",    PLANTS "/\xe2\x80\xaetxt.exe", PLANTS "/A\tb",
};
/* NOLINTEND(misc-misleading-bidirectional) */

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mode);

    if (fd < 0)
        return;
    (void)!write(fd, "x", 1); /* an empty one does as well */
    (void)fchmod(fd, mode);
    (void)close(fd);
}

/* The folder, and the plain file by which graders see that anything was collected at all. */
static void make_folder(void)
{
    (void)mkdir(PLANTS, 0755);
    make_file(PLANTS "/plain", 0644);
}

static bool was_collected(struct attack_context *context)
{
    struct stat status;

    attack_looked(context, 1);
    if (stat(PLANTS "/plain", &status) == 0)
        return true;
    attack_failed(context, "nothing of the plants was collected");
    return false;
}

static bool is_there(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* --- links */

static void plant_links(struct attack_context *context)
{
    size_t index = 0;
    const struct target *bait = targets_next(context->targets, "host", "bait", &index);
    int made = 0;

    make_folder();
    made += symlink(bait == NULL ? "/etc/shadow" : bait->value, PLANTS "/bait") == 0;
    made += symlink("/proc/self", PLANTS "/hop") == 0;
    made += symlink("../../../../../../etc", PLANTS "/up") == 0;
    made += symlink(".", PLANTS "/loop") == 0;
    attack_looked(context, (uint64_t)made);
    attack_planted(context, "%d links", made);
}

static void find_links(struct attack_context *context)
{
    static const char *const links[] = {PLANTS "/bait", PLANTS "/hop", PLANTS "/up"};
    static const char *const behind[] = {PLANTS "/bait", PLANTS "/hop/environ"};

    if (!was_collected(context))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
        attack_looked(context, 1);
        if (is_there(links[i]))
            attack_found(context, "the link %s came along", links[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(behind); i++)
        if (secret_in_file(context, AT_FDCWD, behind[i]))
            attack_found(context, "the bytes behind %s came along", behind[i]);
}

/* --- what is no file */

static void plant_special(struct attack_context *context)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = PLANTS "/socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), made = 0;

    make_folder();
    made += mkfifo(PLANTS "/fifo", 0644) == 0;
    made += bind(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0;
    if (fd >= 0)
        (void)close(fd); /* its name stays */
    attack_looked(context, (uint64_t)made);
    attack_planted(context, "%d files that are none", made);
}

static void find_special(struct attack_context *context)
{
    if (!was_collected(context))
        return;
    attack_looked(context, 2);
    if (is_there(PLANTS "/fifo") || is_there(PLANTS "/socket"))
        attack_found(context, "a FIFO or a socket came along");
}

/* --- size and depth */

static void plant_sparse(struct attack_context *context)
{
    make_folder();
    int fd = open(PLANTS "/sparse", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    bool made = fd >= 0 && ftruncate(fd, SPARSE_BYTES) == 0;

    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    attack_looked(context, 1);
    attack_planted(context, made ? "64 GiB of nothing" : "a limit stood against 64 GiB");
}

static void find_sparse(struct attack_context *context)
{
    struct stat status;

    if (!was_collected(context))
        return;
    attack_looked(context, 1);
    if (stat(PLANTS "/sparse", &status) == 0 && status.st_size > SPARSE_KEPT_MAX)
        attack_found(context, "a file of %jd bytes came along", (intmax_t)status.st_size);
}

static void plant_deep(struct attack_context *context)
{
    int dir = -1, depth = 0;

    make_folder();
    dir = open(PLANTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (; dir >= 0 && depth < DEEP_LEVELS && mkdirat(dir, "d", 0755) == 0; depth++) {
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        (void)close(dir); /* a directory */
        dir = next;
    }
    if (dir >= 0)
        (void)close(dir); /* a directory */
    attack_looked(context, (uint64_t)depth);
    attack_planted(context, "%d levels of folders", depth);
}

static void find_deep(struct attack_context *context)
{
    int dir, depth = 0;

    if (!was_collected(context))
        return;
    dir = open(PLANTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (dir >= 0 && depth <= DEEP_LEVELS) {
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        (void)close(dir); /* a directory */
        dir = next;
        depth++;
    }
    if (dir >= 0)
        (void)close(dir); /* a directory */
    attack_looked(context, (uint64_t)depth);
    if (depth > DEEP_KEPT_MAX)
        attack_found(context, "%d levels of folders came along", depth);
}

/* --- names; that they are quoted is seen from outside */

static void plant_names(struct attack_context *context)
{
    int made = 0;

    make_folder();
    for (size_t i = 0; i < ODD_NAMES; i++) {
        make_file(odd_names[i], 0644);
        made += is_there(odd_names[i]);
    }
    attack_looked(context, (uint64_t)made);
    attack_planted(context, "%d odd names", made);
}

static void find_names(struct attack_context *context)
{
    if (was_collected(context))
        attack_looked(context, 1);
}

/* --- rights */

static void plant_rights(struct attack_context *context)
{
    make_folder();
    make_file(PLANTS "/rights", 06755);
    make_file(PLANTS "/twin", 0644);
    int made = link(PLANTS "/twin", PLANTS "/twin-too") == 0;
    static const char *const foreign[] = {"/etc/passwd", "/usr/bin/env"};

    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
        attack_looked(context, 1);
        if (link(foreign[i], PLANTS "/foreign") == 0)
            attack_found(context, "a hard link to %s", foreign[i]);
    }
    attack_looked(context, 1);
    attack_planted(context, "set-id bits, %d hard link", made);
}

static void find_rights(struct attack_context *context)
{
    struct stat status;

    if (!was_collected(context))
        return;
    attack_looked(context, 2);
    if (stat(PLANTS "/rights", &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0)
        attack_found(context, "set-id bits came along");
    if (stat(PLANTS "/twin", &status) == 0 && status.st_nlink > 1)
        attack_found(context, "a hard link came along");
}

/* --- room */

static void fill_disk(struct attack_context *context)
{
    static const char *const places[] = {".", "/tmp", "/dev/shm"};
    uint64_t most = targets_number(context->targets, "disk", 0);

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct statvfs about;

        attack_looked(context, 1);
        if (statvfs(places[i], &about) < 0)
            continue;
        uint64_t bytes = (uint64_t)about.f_blocks * about.f_frsize;

        if (bytes == 0 || bytes > most || about.f_files == 0)
            attack_found(context, "%s takes %ju bytes, %ju were allowed", places[i],
                         (uintmax_t)bytes, (uintmax_t)most);
    }
}

static const struct attack attacks[] = {
    {"collect.links", 'I', PHASE_AGENT, CONTROL_MUTANT, false,
     "leave links that lead out of the workspace", plant_links},
    {"collect.links", 'I', PHASE_GRADE, CONTROL_MUTANT, false, "", find_links},
    {"collect.special", 'I', PHASE_AGENT, CONTROL_MUTANT, false, "leave a FIFO and a socket",
     plant_special},
    {"collect.special", 'I', PHASE_GRADE, CONTROL_MUTANT, false, "", find_special},
    {"collect.sparse", 'I', PHASE_AGENT, CONTROL_MUTANT, false, "leave a huge sparse file",
     plant_sparse},
    {"collect.sparse", 'I', PHASE_GRADE, CONTROL_MUTANT, false, "", find_sparse},
    {"collect.deep", 'I', PHASE_AGENT, CONTROL_MUTANT, false, "leave a very deep tree", plant_deep},
    {"collect.deep", 'I', PHASE_GRADE, CONTROL_MUTANT, false, "", find_deep},
    {"collect.names", 'I', PHASE_AGENT, CONTROL_MUTANT, false,
     "leave names with control characters", plant_names},
    {"collect.names", 'I', PHASE_GRADE, CONTROL_MUTANT, false, "", find_names},
    {"collect.rights", 'I', PHASE_AGENT, CONTROL_MUTANT, false, "leave set-id bits and hard links",
     plant_rights},
    {"collect.rights", 'I', PHASE_GRADE, CONTROL_MUTANT, false, "", find_rights},
    {"collect.room", 'I', PHASE_AGENT, CONTROL_LEAKY, true, "take more room than allowed",
     fill_disk},
};
const struct attack_table attacks_collect = {attacks, ARRAY_SIZE(attacks)};
