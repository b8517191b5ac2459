/* The judges' broker of a session: started for tasks that have judges, asked before anything runs.
 */
#include "run/judges.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/keys.h"
#include "broker/route.h"
#include "run/dialog.h"
#include "run/replay.h"
#include "run/session.h"

#define NAMES_MAX (KEYS_MAX + ROUTES_MAX + 1)

static bool asks_models(const struct task *task, const struct judges_setup *setup)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(task, &public_half, &private_half);
    return task_skip_reason(task) == NULL &&
           ((setup->grading && judges_are_needed(private_half)) ||
            (setup->dialogs && dialog_needs_model(public_half, private_half)));
}

/* The file's descriptor for the broker, which alone reads it; -1: there is none. */
static int open_keys(const struct session *session, const char *path)
{
    int fd = path == NULL ? -1 : session->reader.open(session->reader.context, path, 0);

    return fd < 0 ? -1 : fd;
}

/* The vendors' names and those of the configuration. */
static void name_keys(const json_t *routes, const char *names[static NAMES_MAX])
{
    size_t count = 0, i;
    const json_t *route;

    for (; vendor_key_names[count] != NULL && count < KEYS_MAX; count++)
        names[count] = vendor_key_names[count];
    json_array_foreach (routes, i, route) {
        const char *name = json_get_text(route, "key");

        if (name != NULL && count + 1 < NAMES_MAX)
            names[count++] = name;
    }
    names[count] = NULL;
}

static int start(struct session *session, const struct judges_setup *setup, struct error **err)
{
    const char *names[NAMES_MAX];
    scoped(mem_freep) char *folder =
        setup->user_config == NULL ? NULL : path_dir(setup->user_config);
    scoped(mem_freep) char *yaml = folder == NULL ? NULL : path_join(folder, "keys.yaml");
    scoped(fd_closep) int dotenv_fd = open_keys(session, ".env");
    scoped(fd_closep) int yaml_fd = open_keys(session, yaml);
    scoped(json_freep) json_t *json = json_object();
    bool answers = replay_answers(session->replay);
    json_t *routes = NULL;
    int r = answers ? replay_routes(session->replay, REPLAY_JUDGES, &routes, err) : 0;

    if (r < 0)
        return r;
    if (!answers)
        routes = setup->routes == NULL ? json_array() : json_deep_copy(setup->routes);
    json_put(json, "routes", routes);
    name_keys(setup->routes, names);
    r = session_env_keys(session, names, err);
    if (r < 0)
        return r;
    const struct broker_options options = {
        .program = session->broker_program,
        .setup = json,
        .env_keys_fd = answers ? -1 : session->env_keys_fd,
        .dotenv_fd = answers ? -1 : dotenv_fd,
        .keys_yaml_fd = answers ? -1 : yaml_fd,
    };

    return broker_start_upstream(&options, &session->judges, err);
}

static int check_all(const struct task_set *tasks, const struct judges_setup *setup,
                     const json_t *facts, struct error **err)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_public *public_half = NULL;
        const struct task_private *private_half = NULL;

        if (!asks_models(tasks->tasks[i], setup))
            continue;
        task_split(tasks->tasks[i], &public_half, &private_half);
        int r = setup->grading ? judges_check(private_half, facts, err) : 0;

        if (r == 0 && setup->dialogs && dialog_needs_model(public_half, private_half))
            r = dialog_check(private_half, facts, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int judges_prepare(struct session *session, const struct task_set *tasks,
                   const struct judges_setup *setup, struct error **err)
{
    scoped(json_freep) json_t *facts = NULL;
    scoped(fd_closep) int connection = -1;
    bool needed = false;
    int r = 0;

    for (size_t i = 0; i < tasks->count && !needed; i++)
        needed = asks_models(tasks->tasks[i], setup);
    if (!needed)
        return 0;
    if (session->judges == NULL)
        r = start(session, setup, err);
    if (r == 0)
        r = broker_connect(session->judges, &connection, err);
    if (r == 0)
        r = broker_facts(connection, &facts, err);
    if (r < 0)
        return error_wrap(err, r, "judges");
    replay_note(session->replay, REPLAY_JUDGES, facts);
    return check_all(tasks, setup, facts, err);
}
