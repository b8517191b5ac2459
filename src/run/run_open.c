#include "run/run_open.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"

int session_open_run(const struct session *session, const char *path, bool lock,
                     struct run_dir **ret, struct error **err)
{
    const struct task_reader *reader = &session->reader;
    scoped(fd_closep) int fd = reader->open(reader->context, path, O_DIRECTORY);

    if (fd < 0)
        return error_set(err, ERROR_USER, "'%s' is no run directory: %s", path, strerror(-fd));
    return run_dir_open_at(fd, path, lock, ret, err);
}

static bool holds(const struct session *session, const char *path, const char *name)
{
    const struct task_reader *reader = &session->reader;
    scoped(mem_freep) char *file = path_join(path, name);
    scoped(fd_closep) int fd = reader->open(reader->context, file, 0);

    return fd >= 0;
}

enum operand_kind operand_kind_of(const struct session *session, const char *path)
{
    if (holds(session, path, "trial.json"))
        return OPERAND_TRIAL;
    return holds(session, path, "run.json") ? OPERAND_RUN : OPERAND_TASK;
}

/* Everything before the last "/trials/" part, or the path without its last three parts. */
char *run_path_of(const char *path)
{
    scoped(mem_freep) char *normal = path_normal(path);
    char *at = NULL;

    for (char *next = strstr(normal, "/trials/"); next != NULL; next = strstr(next + 1, "/trials/"))
        at = next;
    if (at != NULL)
        return str_ndup(normal, (size_t)(at - normal));
    if (str_starts(normal, "trials/"))
        return str_dup(".");

    char *run = str_dup(normal);
    scoped(mem_freep) char *json = path_join(normal, "run.json");

    if (access(json, F_OK) == 0)
        return run;
    for (int i = 0; i < 3; i++) {
        char *up = path_dir(run);

        free(run);
        run = up;
    }
    return run;
}

int trial_operand_parse(const struct session *session, const char *path, struct trial_operand *ret,
                        struct error **err)
{
    scoped(mem_freep) char *normal = path_normal(path);
    scoped(mem_freep) char *run = run_path_of(path);
    const char *rest = normal;

    if (!str_equal(run, ".") && str_starts(normal, run))
        rest = normal + strlen(run) + (normal[strlen(run)] == '/');
    if (rest[0] == 0 || !holds(session, run, "run.json"))
        return error_set(err, ERROR_USER,
                         "'%s' names no trial; RUN/trials/VARIANT/TASK/NN was expected", path);
    ret->run_path = take(run);
    ret->trial_path = str_starts(rest, "trials/") ? str_dup(rest) : str_format("trials/%s", rest);
    if (!path_is_inside(ret->trial_path)) {
        trial_operand_done(ret);
        return error_set(err, ERROR_USER, "'%s' names no trial", path);
    }
    return 0;
}

void trial_operand_done(struct trial_operand *operand)
{
    free(operand->run_path);
    free(operand->trial_path);
    *operand = (struct trial_operand){0};
}
