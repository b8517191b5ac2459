#include "run/leak_sight.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/glob.h"
#include "task/task_private.h"
#include "task/task_public.h"

/* The reason behind "ID="; NULL: the item is of another. */
static const char *reason_of(const char *item, const char *id)
{
    size_t size = strlen(id);

    if (strncmp(item, id, size) != 0)
        return NULL;
    return item[size] == '=' ? item + size + 1 : NULL;
}

/* Whether a pattern means a path. */
static bool matches(const char *pattern, const char *path)
{
    struct glob glob;
    bool does = false;

    if (strcmp(pattern, path) == 0)
        return true;
    if (!glob_parse(pattern, &glob))
        return false;
    does = glob_relate(&glob, path) == GLOB_WITHIN;
    glob_done(&glob);
    return does;
}

/* What the task itself allows, by either side. */
static const char *find_in_task(const struct leak_sight *sight, const struct leak *leak)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    const char *colon = strstr(leak->place, ": ");
    const char *path = colon == NULL ? leak->place : colon + 2;

    task_split(sight->task, &public_half, &private_half);
    for (size_t i = 0; i < private_half->leak_ok_count; i++) {
        const struct task_leak *allowed = &private_half->leaks_ok[i];

        if (matches(allowed->file, path) ||
            matches(allowed->file, fingerprint_file_name(sight->index, leak->file)))
            return allowed->reason;
    }
    return NULL;
}

static const char *find_reason(const struct str_list *allowed_ids, const struct leak *leak)
{
    for (size_t i = 0; allowed_ids != NULL && i < allowed_ids->count; i++) {
        const char *reason = reason_of(allowed_ids->items[i], leak->id);

        if (reason != NULL)
            return reason;
    }
    return NULL;
}

const char *leak_sight_allows(const struct leak_sight *sight, const struct leak *leak)
{
    for (size_t i = 0; i < sight->given.leaks.count; i++)
        if (sight->given.leaks.items[i].file == leak->file && sight->allowed.items[i][0] != '\0')
            return sight->allowed.items[i];
    return find_in_task(sight, leak);
}

json_t *leak_sight_to_json(const struct leak_sight *sight)
{
    json_t *json = leaks_to_json(&sight->given.leaks, sight->index);
    json_t *findings = json_object_get(json, "findings"), *left_out = json_array();

    for (size_t i = 0; i < sight->given.leaks.count && i < sight->allowed.count; i++) {
        const char *reason = sight->allowed.items[i];

        json_put(json_array_get(findings, i), "allowed",
                 json_text_or_null(reason[0] == '\0' ? NULL : reason));
    }
    json_put(json, "archives", json_boolean(sight->has_unpack));
    for (size_t i = 0; i < sight->left_out.count; i++)
        json_push(left_out, json_text(sight->left_out.items[i], strlen(sight->left_out.items[i])));
    json_put(json, "left_out", left_out);
    return json;
}

static int refuse(const struct leak_sight *sight, const struct leak *leak, struct error **err)
{
    scoped(mem_freep) char *what = leak_describe(leak, sight->index);

    return error_set(err, ERROR_TASK,
                     "the agent would be given private material: %s; take it out of what the agent "
                     "gets ('closedbook scan' shows the text), or allow it with a reason: "
                     "--allow-leak %s=REASON",
                     what, leak->id);
}

static int judge(const struct str_list *allowed_ids, struct leak_sight *sight, struct error **err)
{
    const struct leak *worst = NULL;

    for (size_t i = 0; i < sight->given.leaks.count; i++) {
        const struct leak *leak = &sight->given.leaks.items[i];
        const char *reason = find_reason(allowed_ids, leak);

        if (reason == NULL)
            reason = find_in_task(sight, leak);
        str_list_add(&sight->allowed, reason != NULL ? reason : "");
        if (reason == NULL && leak->severe && (worst == NULL || leak->found > worst->found))
            worst = leak;
    }
    if (worst == NULL && sight->given.leaks.severe_dropped > 0)
        return error_set(err, ERROR_TASK,
                         "the agent would be given private material in more than %d places; "
                         "'closedbook scan' shows the first of them",
                         LEAKS_MAX);
    return worst == NULL ? 0 : refuse(sight, worst, err);
}

int leak_sight_make(const struct leak_scan *scan, const struct str_list *allowed_ids,
                    struct leak_sight *ret, struct error **err)
{
    struct leak_scan looking = *scan;
    int r = 0;

    *ret = (struct leak_sight){.task = scan->task, .unpack_fd = -1};
    if (scan->session->native != NULL && scan->session->unpack_program != NULL) {
        ret->unpack_fd = open(scan->session->unpack_program, O_RDONLY | O_CLOEXEC);
        if (ret->unpack_fd < 0)
            return error_errno(err, errno, "cannot open '%s'; install closedbook whole",
                               scan->session->unpack_program);
        ret->has_unpack = true;
        looking.opener = (struct leak_opener){scan->session->native, ret->unpack_fd};
    }
    looking.left_out = &ret->left_out;
    r = leak_index_make(&looking, &ret->index, err);
    if (r == 0)
        r = leak_scan_view(&looking, ret->index, &ret->given, err);
    if (r == 0)
        r = judge(allowed_ids, ret, err);
    return r < 0 ? error_wrap(err, r, "leak scan") : 0;
}

void leak_sight_done(struct leak_sight *sight)
{
    fingerprint_index_free(sight->index);
    leak_view_done(&sight->given);
    str_list_done(&sight->allowed);
    str_list_done(&sight->left_out);
    if (sight->has_unpack)
        fd_closep(&sight->unpack_fd);
    *sight = (struct leak_sight){.unpack_fd = -1};
}
