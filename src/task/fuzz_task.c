/*
 * Any bytes as a task file: accepted xor complained; an accepted task keeps what its header
 * promises, loads the same a second time, and can be shown.
 */
#include <errno.h>

#include "task/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No file exists: the task's text is all there is. */
static int open_nothing(void *context, const char *path, int flags)
{
    (void)context;
    (void)path;
    (void)flags;
    return -ENOENT;
}

static void check_public(const struct task_public *half)
{
    ASSERT(half->prompt != NULL);
    ASSERT(half->agent.type != AGENT_UNSET);
    for (size_t i = 0; i < half->source_count; i++) {
        const struct task_source *source = &half->sources[i];

        ASSERT(form_accepts(FORM_INSIDE, source->mount_point));
        for (size_t j = 0; j < source->file_count; j++)
            ASSERT(form_accepts(FORM_INSIDE, source->files[j].path));
    }
    ASSERT(!token_is_in(half->prompt, TOKEN_REFERENCE_DIR));
    ASSERT(!token_is_in(half->prompt, TOKEN_TASK_DIR));
    ASSERT(half->limits.max_pids > 0 && half->limits.command_timeout_ms > 0);
}

static void check_private(const struct task_private *half)
{
    ASSERT(form_accepts(FORM_TASK_ID, half->task_id));
    ASSERT(half->criterion_count > 0);
    for (size_t i = 0; i < half->criterion_count; i++) {
        const struct criterion *criterion = &half->criteria[i];
        const char *path = json_get_text(criterion->params, "path");

        ASSERT(criterion->kind < CRITERION_COUNT);
        ASSERT(criterion->weight >= 0 && criterion->weight <= 1e9);
        ASSERT(criterion->pass_threshold >= 0 && criterion->pass_threshold <= 1);
        ASSERT(path == NULL || form_accepts(FORM_INSIDE, path));
    }
}

static struct task *load(const uint8_t *data, size_t size, struct problems *problems)
{
    char *environment[] = {(char[]){"HOME=/h"}, (char[]){"A=/x"}, NULL};
    struct task_overrides overrides = {.environment = environment};
    struct task_reader reader = {open_nothing, NULL};
    scoped(error_freep) struct error *err = NULL;
    struct task *task = NULL;
    struct task_text text = {"/s/f.yaml", (const char *)data, size};
    int r = task_parse(&text, &reader, &overrides, &task, problems, &err);

    ASSERT((r == 0) == (problems->error_count == 0));
    ASSERT((r == 0) == (task != NULL) && (r == 0) == (err == NULL));
    return task;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(problems_done) struct problems problems = {0}, again = {0};
    scoped(task_freep) struct task *task = load(data, size, &problems);
    scoped(buf_done) struct buf shown = {0};

    problems_format(&problems, false, true, &shown);
    ASSERT(memchr(buf_text(&shown), '\x1b', shown.size_bytes) == NULL);
    scoped(json_freep) json_t *json = problems_to_json(&problems);

    ASSERT(json_array_size(json) == problems.count);
    if (task == NULL)
        return 0;
    const struct task_public *open;
    const struct task_private *secret;
    scoped(task_freep) struct task *twin = load(data, size, &again);

    task_split(task, &open, &secret);
    check_public(open);
    check_private(secret);
    for (enum task_digest i = 0; i < TASK_DIGEST_COUNT; i++)
        ASSERT(strcmp(task_digest(task, i), task_digest(twin, i)) == 0);
    scoped(json_freep) json_t *resolved = task_resolved(task);

    ASSERT(json_is_object(resolved));
    return 0;
}
