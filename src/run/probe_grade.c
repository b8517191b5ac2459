/* The attacks beside the graders, in their own cell, and as a candidate that one of them runs. */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/probe_internal.h"

static int exec_in(struct probe *probe, struct cell *cell, const char *mode,
                   struct cell_command *command, uint32_t *ret, struct error **err)
{
    const char *const argv[] = {PROBE_PATH, mode, NULL};

    command->argv = argv;
    command->envp = (const char *const *)grade_cell_env(probe->grade_cell)->items;
    return cell_exec(cell, command, ret, err);
}

/* Another program of the graders, which holds the secret. */
static int start_peer(struct probe *probe, struct cell *cell, struct error **err)
{
    scoped(fd_closep) int input = -1;
    scoped(fd_closep) int lines = -1;
    scoped(fd_closep) int lines_read = -1;
    uint32_t process;
    int r = probe_pipe(&input, &probe->peer_input, err);

    if (r == 0)
        r = probe_pipe(&lines_read, &lines, err);
    if (r < 0)
        return r;
    struct cell_command command = {.fds = {input, -1, -1, lines, probe->decoy.secret_fd},
                                   .fd_count = 5};

    r = exec_in(probe, cell, "peer", &command, &process, err);
    if (r < 0)
        return r;
    fd_closep(&lines);
    return decoy_hear(&probe->decoy, lines_read, "peer", err);
}

/* The value of a variable of the graders' environment; NULL: there is none. */
static const char *grader_variable(const struct probe *probe, const char *name)
{
    const struct str_list *env = grade_cell_env(probe->grade_cell);
    size_t length = strlen(name);

    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
            return env->items[i] + length + 1;
    return NULL;
}

/*
 * By as-candidate, from a grader's program that is careless: the secret is in its environment and
 * open as a descriptor. Where the private half and the tools are is told.
 */
static int start_candidate(struct probe *probe, struct cell *cell,
                           const struct probe_channel *channel, uint32_t *ret, struct error **err)
{
    const char *suite = grader_variable(probe, "TASK_DIR");
    const char *reference = grader_variable(probe, "REFERENCE_DIR");
    scoped(mem_freep) char *places = str_format("PROBE_PLACES=%s:%s", suite == NULL ? "" : suite,
                                                reference == NULL ? "" : reference);
    const char *const argv[] = {CELL_CANDIDATE_PATH,
                                "--env",
                                places,
                                "--env",
                                "PROBE_TOOLS=" CELL_CANDIDATE_PATH ":" CELL_WORKER_PATH,
                                PROBE_PATH,
                                "candidate",
                                NULL};
    scoped(str_list_done) struct str_list env = {0};

    for (size_t i = 0; i < grade_cell_env(probe->grade_cell)->count; i++)
        str_list_add(&env, grade_cell_env(probe->grade_cell)->items[i]);
    str_list_add_take(&env, str_format("PROBE_ANSWER=%s", probe->decoy.secret));
    const struct cell_command command = {
        .argv = argv,
        .envp = (const char *const *)env.items,
        .fds = {channel->targets, channel->lines, -1, -1, -1, probe->decoy.secret_fd},
        .fd_count = 6,
    };

    return cell_exec(cell, &command, ret, err);
}

static int attack_as_candidate(struct probe *probe, struct cell *cell, struct error **err)
{
    scoped(probe_channel_done) struct probe_channel channel = {-1, -1, -1, {-1, -1, -1}};
    uint32_t process;

    if (monitor_facts(probe->monitor)->driver == CELL_WALLED) {
        battery_note_candidates(probe->battery, ATTACK_POSTURE, "tier C has no candidates");
        return 0;
    }
    int r = probe_channel_open(probe, &channel, err);

    if (r == 0)
        r = start_candidate(probe, cell, &channel, &process, err);
    if (r < 0)
        return r;
    fd_closep(&channel.lines);
    return probe_hear(probe, cell, process, &channel.lines_read, PHASE_CANDIDATE, err);
}

int probe_grade(struct probe *probe, struct error **err)
{
    static const struct str_list no_variables = {0};
    scoped(probe_channel_done) struct probe_channel channel = {-1, -1, -1, {-1, -1, -1}};
    struct cell_mount program = {.fd = probe->program_fd, .target = PROBE_PATH};
    struct grade_cell_options options = {
        .monitor = probe->monitor,
        .view = probe->options->view,
        .private_stage = &probe->private_stage,
        .suite_variables = &no_variables,
        .tar_fd = probe->tar_fd,
        .changes_fd = probe->changes_fd,
        .events_fd = -1,
        .dialog = "[]\n",
        .program = &program,
    };
    struct cell *cell = NULL;
    uint32_t process;

    probe->grade_cell = grade_cell_new(&options);
    int r = grade_cell_live(probe->grade_cell, &cell, err);

    if (r == 0)
        r = start_peer(probe, cell, err);
    if (r == 0)
        r = probe_channel_open(probe, &channel, err);
    if (r < 0)
        return r;
    struct cell_command command = {.fds = {-1, -1, -1, channel.lines, channel.targets},
                                   .fd_count = 5};

    r = exec_in(probe, cell, "grade", &command, &process, err);
    if (r < 0)
        return r;
    fd_closep(&channel.lines);
    r = probe_hear(probe, cell, process, &channel.lines_read, PHASE_GRADE, err);
    return r < 0 ? r : attack_as_candidate(probe, cell, err);
}
