#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "record/run_internal.h"

/* One finished trial while the list grows and is sorted. */
struct found {
    struct trial_record record;
    char *path, *last_words;
};

/* A walk down trials/VARIANT/TASK/NN. */
struct search {
    bool verify;
    const char *path; /* of the directory that is walked */
    unsigned level;   /* 0: trials, 3: a trial's own directory */
    struct found *found;
    size_t count, capacity, unfinished;
};

#define TRIAL_LEVEL 3

#define LAST_WORDS_BYTES 2048

/* Of one that passed nobody asks; what cannot be read is not shown. Owned. */
static char *read_last_words(int dir_fd, const struct trial_record *record)
{
    char text[LAST_WORDS_BYTES];
    size_t lines = 0;

    if (record->status == STATUS_SUCCESS)
        return NULL;
    scoped(fd_closep) int fd = fs_open_regular(dir_fd, "agent.stderr");

    if (fd < 0)
        return NULL;
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > LAST_WORDS_BYTES ? size - LAST_WORDS_BYTES : 0;
    ssize_t n = size > 0 ? pread(fd, text, sizeof(text), from) : 0;

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\0'))
        n--;
    if (n <= 0)
        return NULL;
    size_t start = (size_t)n;

    for (; start > 0 && lines < RUN_LAST_LINES; start--)
        lines += text[start - 1] == '\n';
    start += lines == RUN_LAST_LINES;
    return str_ndup(text + start, (size_t)n - start);
}

static void add(struct search *search, const struct trial_record *record, int dir_fd)
{
    if (search->count == search->capacity) {
        search->capacity = size_max(16, search->capacity * 2);
        search->found = mem_resize(search->found, search->capacity, sizeof(*search->found));
    }
    search->found[search->count++] = (struct found){.record = *record,
                                                    .path = str_dup(search->path),
                                                    .last_words = read_last_words(dir_fd, record)};
}

/* Loads a trial; a record that is absent or damaged means unfinished, one that cannot be read is an
 * error. */
static int look_at_trial(struct search *search, int dir_fd, struct error **err)
{
    scoped(error_freep) struct error *cause = NULL;
    scoped(mem_freep) char *bad = NULL;
    struct trial_record record;
    int r = trial_record_load(dir_fd, search->path, &record, &cause);

    if (r < 0 && (error_errno_of(cause) == 0 || error_errno_of(cause) == ENOENT)) {
        search->unfinished++;
        return 0;
    }
    if (r < 0)
        return error_set(err, error_code_of(cause), "%s", error_message(cause));
    if (search->verify)
        r = trial_record_verify(dir_fd, &record, &bad, err);
    if (r == 0 && bad == NULL && search->count < RUN_TRIALS_MAX) {
        add(search, &record, dir_fd);
        return 0;
    }
    trial_record_done(&record);
    search->unfinished += r == 0;
    return r;
}

static int visit_below(void *context, int dir_fd, const char *name, struct error **err)
{
    struct search *search = context;
    scoped(fd_closep) int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
        return 0;
    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s/%s'", search->path, name);

    const char *above = search->path;
    scoped(mem_freep) char *path = path_join(above, name);

    search->path = path;
    search->level++;

    int r = search->level == TRIAL_LEVEL ? look_at_trial(search, fd, err)
                                         : fs_each(fd, visit_below, search, err);

    search->level--;
    search->path = above;
    return r;
}

static int compare(const void *a, const void *b)
{
    const struct trial_record *left = &((const struct found *)a)->record;
    const struct trial_record *right = &((const struct found *)b)->record;
    int order = strcmp(left->variant_id, right->variant_id);

    if (order == 0)
        order = strcmp(left->task_id, right->task_id);
    if (order == 0)
        order = (left->replicate > right->replicate) - (left->replicate < right->replicate);
    return order;
}

static void hand_over(struct search *search, struct run_trials *ret)
{
    ret->records = mem_new(search->count + 1, sizeof(*ret->records));
    ret->paths = mem_new(search->count + 1, sizeof(*ret->paths));
    ret->last_words = mem_new(search->count + 1, sizeof(*ret->last_words));
    ret->count = search->count;
    ret->unfinished = search->unfinished;
    for (size_t i = 0; i < search->count; i++) {
        ret->records[i] = search->found[i].record;
        ret->paths[i] = search->found[i].path;
        ret->last_words[i] = search->found[i].last_words;
    }
}

int run_dir_trials(struct run_dir *run, bool verify, struct run_trials *ret, struct error **err)
{
    scoped(fd_closep) int fd =
        openat(run->dir_fd, "trials", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct search search = {.verify = verify, .path = "trials"};
    int r = 0;

    if (fd < 0 && errno != ENOENT)
        return error_errno(err, errno, "cannot open '%s/trials'", run->path);
    if (fd >= 0)
        r = fs_each(fd, visit_below, &search, err);
    if (search.count > 0)
        qsort(search.found, search.count, sizeof(*search.found), compare);
    *ret = (struct run_trials){0};
    hand_over(&search, ret);
    free(search.found);
    if (r == 0)
        r = host_record_read(run->dir_fd, &ret->host, err);
    if (r < 0) {
        run_trials_done(ret);
        return error_wrap(err, r, "cannot read the trials of '%s'", run->path);
    }
    return 0;
}

void run_trials_done(struct run_trials *trials)
{
    for (size_t i = 0; i < trials->count; i++) {
        trial_record_done(&trials->records[i]);
        free(trials->paths[i]);
        if (trials->last_words != NULL)
            free(trials->last_words[i]);
    }
    free(trials->records);
    free(trials->paths);
    free(trials->last_words);
    host_record_done(&trials->host);
    *trials = (struct run_trials){0};
}
