#include "evidence/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define READ_BYTES ((size_t)256 << 10)
#define STATUS_BYTES 4096

/* --- targets */

static bool take_word(char **at, char *ret, size_t size)
{
    size_t length = strcspn(*at, " ");

    if (length == 0 || length >= size)
        return false;
    memcpy(ret, *at, length);
    ret[length] = '\0';
    *at += length + ((*at)[length] == ' ');
    return true;
}

static bool take_target(char *line, struct targets *ret)
{
    struct target target;

    if (!take_word(&line, target.where, sizeof(target.where)) ||
        !take_word(&line, target.kind, sizeof(target.kind)) || strlen(line) >= TARGET_BYTES)
        return false;
    memcpy(target.value, line, strlen(line) + 1);
    if (strcmp(target.kind, "hint") == 0) {
        if (strlen(target.value) >= sizeof(ret->hint))
            return false;
        memcpy(ret->hint, target.value, strlen(target.value) + 1);
        return true;
    }
    if (strcmp(target.kind, "digest") == 0)
        return sha256_parse(target.value, &ret->digest);
    if (strcmp(target.kind, "tier") == 0 && strlen(target.value) < sizeof(ret->tier)) {
        memcpy(ret->tier, target.value, strlen(target.value) + 1);
        return true;
    }
    if (ret->count == TARGETS_MAX)
        return false;
    ret->items[ret->count++] = target;
    return true;
}

bool targets_parse(char *text, struct targets *ret)
{
    char *rest = text;

    *ret = (struct targets){0};
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        if (line[0] != '\0' && !take_target(line, ret))
            return false;
    return ret->hint[0] != '\0';
}

const struct target *targets_next(const struct targets *targets, const char *where,
                                  const char *kind, size_t *index)
{
    for (; *index < targets->count; (*index)++) {
        const struct target *target = &targets->items[*index];

        if (strcmp(target->kind, kind) != 0 || (where != NULL && strcmp(target->where, where) != 0))
            continue;
        (*index)++;
        return target;
    }
    return NULL;
}

uint64_t targets_number(const struct targets *targets, const char *kind, uint64_t otherwise)
{
    size_t index = 0;
    const struct target *target = targets_next(targets, NULL, kind, &index);
    uint64_t number = otherwise;

    if (target != NULL && !str_to_u64(target->value, &number))
        return otherwise;
    return number;
}

bool targets_say_root(const struct targets *targets)
{
    return targets_number(targets, "root", 0) == 1;
}

bool attack_is_own_system(const char *path)
{
    static const char *const tops[] = {"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/var"};
    static const char *const bare[] = {"/", "/run", "/run/lock", "/home", "/root"};

    for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
        size_t length = strlen(tops[i]);

        if (strncmp(path, tops[i], length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return strcmp(path, "/etc/shadow") != 0 && strcmp(path, "/etc/machine-id") != 0 &&
                   strcmp(path, "/etc/ssh") != 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(bare); i++)
        if (strcmp(path, bare[i]) == 0)
            return true;
    return false;
}

bool targets_have_word(const struct targets *targets, const char *word, size_t length)
{
    char text[SHA256_HEX_CHARS + 1];
    struct sha256 digest = sha256_of(word, length);
    size_t index = 0;
    const struct target *target;

    sha256_format(&digest, text);
    while ((target = targets_next(targets, NULL, "word", &index)) != NULL)
        if (strcmp(target->value, text) == 0)
            return true;
    return false;
}

/* --- verdicts */

void attack_looked(struct attack_context *context, uint64_t count)
{
    context->result.examined += count;
}

__attribute__((format(printf, 3, 0))) static void
say(struct attack_context *context, enum attack_verdict verdict, const char *fmt, va_list args)
{
    struct attack_result *result = &context->result;
    bool is_stronger = result->verdict != ATTACK_FOUND && verdict != result->verdict;

    if (verdict == ATTACK_POSTURE && result->verdict == ATTACK_ERROR)
        is_stronger = false;
    if (!is_stronger && result->detail[0] != '\0')
        return;
    result->verdict = result->verdict == ATTACK_FOUND ? ATTACK_FOUND : verdict;
    (void)vsnprintf(result->detail, sizeof(result->detail), fmt, args);
}

#define SAY(verdict)                                                                               \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, fmt);                                                                       \
        say(context, (verdict), fmt, args);                                                        \
        va_end(args);                                                                              \
    } while (0)

void attack_found(struct attack_context *context, const char *fmt, ...)
{
    SAY(ATTACK_FOUND);
}

void attack_posture(struct attack_context *context, const char *fmt, ...)
{
    SAY(ATTACK_POSTURE);
}

void attack_planted(struct attack_context *context, const char *fmt, ...)
{
    SAY(ATTACK_PLANTED);
}

void attack_failed(struct attack_context *context, const char *fmt, ...)
{
    SAY(ATTACK_ERROR);
}

bool attack_late(const struct attack_context *context)
{
    return clock_ns() > context->deadline_ns;
}

/* --- the secret */

bool secret_in(const struct targets *targets, const void *bytes, size_t size)
{
    const char *at = bytes, *end = at + size;
    size_t hint = strlen(targets->hint), whole = hint + SECRET_DIGITS;

    while ((size_t)(end - at) >= whole) {
        at = memmem(at, (size_t)(end - at), targets->hint, hint);
        if (at == NULL || (size_t)(end - at) < whole)
            return false;
        struct sha256 digest = sha256_of(at, whole);

        if (sha256_equal(&digest, &targets->digest))
            return true;
        at++;
    }
    return false;
}

static int digit_of(char c, int base)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    if (base == 64) {
        const char *at = c == '\0' ? NULL : strchr(base64, c);

        return at == NULL ? -1 : (int)(at - base64);
    }
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes the run of digits at text, from each phase of its groups; returns the run's length. */
static size_t search_digits(const struct targets *targets, const char *text, size_t size, int base,
                            bool *found)
{
    char decoded[1024];
    unsigned bits = base == 64 ? 6 : 4, group = base == 64 ? 4 : 2;
    size_t run = 0;

    while (run < size && digit_of(text[run], base) >= 0)
        run++;
    for (size_t phase = 0; phase < group && run >= 40; phase++) {
        unsigned held = 0, have = 0;
        size_t used = 0;

        for (size_t i = phase; i < run && used < sizeof(decoded); i++) {
            held = (held << bits) | (unsigned)digit_of(text[i], base);
            have += bits;
            if (have < 8)
                continue;
            have -= 8;
            decoded[used++] = (char)(held >> have);
        }
        *found |= secret_in(targets, decoded, used);
    }
    return run;
}

static char rotated(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)('a' + (c - 'a' + 13) % 26);
    if (c >= 'A' && c <= 'Z')
        return (char)('A' + (c - 'A' + 13) % 26);
    return c;
}

bool secret_in_encoded(const struct targets *targets, const char *bytes, size_t size)
{
    static char turned[READ_BYTES], spread[READ_BYTES], rotation[READ_BYTES];
    size_t used = 0;
    bool found = false;

    ASSERT(size <= READ_BYTES);
    for (size_t i = 0; i < size; i++) {
        turned[i] = bytes[size - 1 - i];
        rotation[i] = rotated(bytes[i]);
        if (bytes[i] != '\0')
            spread[used++] = bytes[i];
    }
    if (secret_in(targets, turned, size) || secret_in(targets, rotation, size) ||
        secret_in(targets, spread, used))
        return true;
    for (size_t i = 0; i < size && !found; i++) {
        size_t run = search_digits(targets, bytes + i, size - i, 64, &found);

        (void)search_digits(targets, bytes + i, size - i, 16, &found);
        i += run;
    }
    return found;
}

static bool file_holds(struct attack_context *context, int fd, bool encoded)
{
    static char bytes[READ_BYTES];
    ssize_t n = read(fd, bytes, sizeof(bytes));

    if (n < 0)
        return false;
    attack_looked(context, 1);
    return secret_in(context->targets, bytes, (size_t)n) ||
           (encoded && secret_in_encoded(context->targets, bytes, (size_t)n));
}

bool secret_in_file(struct attack_context *context, int dir_fd, const char *path)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool found = fd >= 0 && file_holds(context, fd, false);

    if (fd >= 0)
        (void)close(fd); /* read only */
    return found;
}

/* --- a walk */

struct walker {
    struct attack_context *context;
    const struct walk *walk;
    char **queue;
    uint64_t *seen; /* hashes of the paths that were queued; 0: free */
    size_t seen_size;
    size_t head, count, entries;
};

static bool is_skipped(const struct walk *walk, const char *path)
{
    static const char *const never[] = {"/proc", "/sys", NULL};

    for (size_t i = 0; never[i] != NULL; i++)
        if (strcmp(path, never[i]) == 0)
            return true;
    for (size_t i = 0; walk->skip != NULL && walk->skip[i] != NULL; i++)
        if (strcmp(path, walk->skip[i]) == 0)
            return true;
    return false;
}

/* True the first time. (FNV-1a; two paths of one hash would cost one folder, no more.) */
static bool note_path(struct walker *walker, const char *path)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (const char *at = path; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    hash += hash == 0;
    for (size_t i = (size_t)hash % walker->seen_size;; i = (i + 1) % walker->seen_size) {
        if (walker->seen[i] == hash)
            return false;
        if (walker->seen[i] == 0) {
            walker->seen[i] = hash;
            return true;
        }
    }
}

static void push(struct walker *walker, const char *path)
{
    if (walker->count < walker->walk->entries_max && !is_skipped(walker->walk, path) &&
        note_path(walker, path))
        walker->queue[walker->count++] = str_dup(path);
}

/* As the kernel spells it, so that no folder is walked twice. What lies above the root stays. */
static void push_root(struct walker *walker, const char *root)
{
    char *path = realpath(root, NULL);
    struct stat above, top;

    if (path == NULL)
        return;
    bool leads_out = strcmp(root, "/..") == 0 && stat("/..", &above) == 0 && stat("/", &top) == 0 &&
                     (above.st_dev != top.st_dev || above.st_ino != top.st_ino);

    push(walker, leads_out ? "/.." : path);
    free(path);
}

static void look_at(struct walker *walker, int dir_fd, const char *path, const struct dirent *entry)
{
    struct attack_context *context = walker->context;
    const struct walk *walk = walker->walk;
    int fd = -1;

    if (walk->visit != NULL)
        walk->visit(context, path, entry->d_type);
    if (walk->names) {
        attack_looked(context, 1);
        if (secret_in(context->targets, entry->d_name, strlen(entry->d_name)))
            attack_found(context, "a name in %.100s", walker->queue[walker->head]);
    }
    if (!walk->contents || (entry->d_type != DT_REG && entry->d_type != DT_LNK))
        return;
    fd = openat(dir_fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && file_holds(context, fd, walk->encoded))
        attack_found(context, "%.200s", path);
    if (fd >= 0)
        (void)close(fd); /* read only */
}

static bool is_over(const struct walker *walker)
{
    return walker->entries > walker->walk->entries_max || attack_late(walker->context) ||
           walker->context->result.verdict == ATTACK_FOUND;
}

static void walk_dir(struct walker *walker)
{
    const char *dir = walker->queue[walker->head];
    DIR *stream = opendir(dir);
    const struct dirent *entry;

    while (stream != NULL && (entry = readdir(stream)) != NULL && !is_over(walker)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        walker->entries++;
        char *path = str_format("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, entry->d_name);

        look_at(walker, dirfd(stream), path, entry);
        if (entry->d_type == DT_DIR)
            push(walker, path);
        free(path);
    }
    if (stream != NULL)
        (void)closedir(stream); /* read only */
}

void walk_for_secret(struct attack_context *context, const struct walk *walk)
{
    struct walker walker = {
        .context = context, .walk = walk, .seen_size = 2 * walk->entries_max + 1};

    walker.queue = mem_new(walk->entries_max, sizeof(*walker.queue));
    walker.seen = mem_new(walker.seen_size, sizeof(*walker.seen));
    for (size_t i = 0; walk->roots[i] != NULL; i++)
        push_root(&walker, walk->roots[i]);
    for (; walker.head < walker.count && !is_over(&walker); walker.head++)
        walk_dir(&walker);
    if (attack_late(context) && context->result.verdict == ATTACK_DENIED)
        (void)snprintf(context->result.detail, sizeof(context->result.detail),
                       "its time was up after %zu entries", walker.entries);
    for (size_t i = 0; i < walker.count; i++)
        free(walker.queue[i]);
    free(walker.queue);
    free(walker.seen);
}

/* --- helpers */

int attack_child(int (*run)(void *argument), void *argument)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(run(argument));
    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

long attack_read(const char *path, char *ret, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    size_t used = 0;
    ssize_t n = 0;

    if (fd < 0)
        return -errno;
    while (used < size - 1 && (n = read(fd, ret + used, size - 1 - used)) > 0)
        used += (size_t)n;
    int saved = errno;

    (void)close(fd); /* read only */
    ret[used] = '\0';
    return n < 0 && used == 0 ? -saved : (long)used;
}

bool attack_is_own(int pid)
{
    /* This program starts a session of its own in a cell; so does each of the graders' programs. */
    return pid == getpid() || getsid(pid) == getsid(0);
}

void attack_processes(struct attack_context *context,
                      void (*visit)(struct attack_context *context, int pid))
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc != NULL && (entry = readdir(proc)) != NULL && !attack_late(context)) {
        uint64_t pid;

        if (!str_to_u64(entry->d_name, &pid) || pid > INT32_MAX)
            continue;
        attack_looked(context, 1);
        if (!attack_is_own((int)pid))
            visit(context, (int)pid);
    }
    if (proc != NULL)
        (void)closedir(proc); /* read only */
}

const char *attack_errno_name(int number)
{
    const char *name = strerrorname_np(number);

    return number == 0 ? "ok" : name == NULL ? "?" : name;
}
