#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "collect/collect.h"
#include "run/probe_internal.h"

#define CLEAR_UP_NS (UINT64_C(2) * 1000000000)
#define AGENT_NS (UINT64_C(90) * 1000000000)
#define TAR_BYTES_MAX ((uint64_t)256 << 20)
#define CHANGES_BYTES_MAX ((size_t)16 << 20)
#define FIRST_LIFELINE 5
/* Of task-format.md, "sandbox.limits": what 0 means to a cell. */
#define DEFAULT_PIDS 1024
#define DEFAULT_DISK_BYTES ((uint64_t)2048 << 20)

/* Without a cell what it shared does not go away with it: it clears up when its input ends. */
static void end_other(struct probe *probe)
{
    enum cell_wait_result end;
    struct cell_exit status;

    fd_closep(&probe->other_input);
    if (probe->other != NULL)
        (void)!cell_wait(probe->other, 0,
                         &(struct cell_patience){NULL, 0, clock_ns() + CLEAR_UP_NS, NULL}, &end,
                         &status, NULL); /* its cell ends in any case */
    cell_free(probe->other);
}

static void probe_done(struct probe *probe)
{
    end_other(probe);
    grade_cell_free(probe->grade_cell);
    cell_free(probe->twin);
    monitor_free(probe->monitor);
    monitor_free(probe->other_monitor);
    if (probe->has_private)
        private_stage_done(&probe->private_stage);
    decoy_done(&probe->decoy);
    fd_closep(&probe->program_fd);
    fd_closep(&probe->peer_input);
    fd_closep(&probe->tar_fd);
    fd_closep(&probe->changes_fd);
    for (int i = 0; i < LIFELINES; i++)
        fd_closep(&probe->lifelines[i]);
}

int probe_pipe(int *ret_read, int *ret_write, struct error **err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

/* --- before */

static int read_list(const struct probe *probe, struct error **err)
{
    const char *program = probe->options->session->probe_program;
    const char *const argv[] = {program, "list", NULL};
    scoped(fd_closep) int read_end = -1;
    scoped(fd_closep) int write_end = -1;
    scoped(fd_closep) int pidfd = -1;
    scoped(buf_done) struct buf text = {0};
    pid_t pid;
    int status;
    int r = probe_pipe(&read_end, &write_end, err);

    if (r < 0)
        return r;
    const int fds[] = {-1, write_end, -1};

    r = spawn_start(&(struct spawn_options){.argv = argv, .cwd_fd = -1, .fds = fds, .fd_count = 3},
                    &pidfd, &pid, err);
    if (r < 0)
        return r;
    fd_closep(&write_end);
    r = fs_read_fd(read_end, program, BATTERY_TEXT_BYTES_MAX, &text, err);
    if (r == 0)
        r = spawn_wait(pidfd, &status, err);
    return r < 0 ? r : battery_open(buf_text(&text), probe->options->fast, probe->battery, err);
}

/* The decoy's suite and reference are staged as the real ones would be. */
static int stage_decoy(struct probe *probe, struct error **err)
{
    scoped(mem_freep) char *suite = decoy_path(&probe->decoy, "suite");
    scoped(mem_freep) char *reference = decoy_path(&probe->decoy, "reference");
    struct private_source source = {
        .suite_root = suite, .task_dir = suite, .reference_dir = reference};
    int r =
        private_stage_make(probe->options->session->store, probe->options->control,
                           &probe->options->session->reader, &source, &probe->private_stage, err);

    probe->has_private = r == 0;
    return r;
}

static int prepare(struct probe *probe, struct error **err)
{
    const struct probe_options *options = probe->options;
    const char *program = options->session->probe_program;
    int r = read_list(probe, err);

    if (r == 0)
        r = decoy_make(program, &probe->decoy, err);
    if (r == 0)
        r = stage_decoy(probe, err);
    if (r == 0)
        r = monitor_connect(options->control, &probe->other_monitor, err);
    if (r == 0)
        r = monitor_connect(options->control, &probe->monitor, err);
    if (r < 0)
        return r;
    probe->program_fd = open(program, O_RDONLY | O_CLOEXEC);
    if (probe->program_fd < 0)
        return error_errno(err, errno, "cannot open '%s'", program);
    decoy_target(&probe->decoy, "host", "tier",
                 cell_tier_name(monitor_facts(probe->monitor)->tier));
    decoy_target_number(&probe->decoy, "landlock",
                        (uint64_t)monitor_facts(probe->monitor)->landlock_abi);
    if (options->task_id != NULL)
        decoy_word(&probe->decoy, options->task_id);
    return 0;
}

/* --- cells */

static int fill_spec(const struct probe *probe, struct monitor *monitor, struct cell_spec *spec,
                     struct error **err)
{
    int r = view_fill_cell(probe->options->view, monitor, CELL_AGENT, spec, err);

    if (r < 0)
        return r;
    if (spec->mount_count >= CELL_MOUNTS_MAX)
        return error_set(err, ERROR_LIMIT, "no room for the attack program in the cell");
    spec->mounts[spec->mount_count++] =
        (struct cell_mount){.fd = probe->program_fd, .target = PROBE_PATH};
    return 0;
}

/* Another trial's cell, whose agent holds the secret. */
static int start_other(struct probe *probe, struct error **err)
{
    static const char *const argv[] = {PROBE_PATH, "cell", NULL};
    struct cell_spec spec = {.role = CELL_AGENT, .etc_fd = -1};
    scoped(str_list_done) struct str_list env = {0};
    scoped(fd_closep) int input = -1;
    scoped(fd_closep) int lines = -1;
    scoped(fd_closep) int lines_read = -1;
    int r = fill_spec(probe, probe->other_monitor, &spec, err);

    if (r == 0)
        r = probe_pipe(&input, &probe->other_input, err);
    if (r == 0)
        r = probe_pipe(&lines_read, &lines, err);
    if (r < 0)
        return r;
    cell_env_default(&env);
    str_list_add_take(&env, str_format("PROBE_ANSWER=%s", probe->decoy.secret));
    spec.command = (struct cell_command){
        .argv = argv,
        .envp = (const char *const *)env.items,
        .fds = {input, -1, -1, lines, probe->decoy.secret_fd},
        .fd_count = 5,
    };
    r = cell_start(probe->other_monitor, &spec, &probe->other, err);
    if (r < 0)
        return error_wrap(err, r, "the other cell");
    fd_closep(&lines);
    return decoy_hear(&probe->decoy, lines_read, "cell", err);
}

int probe_hear(struct probe *probe, struct cell *cell, uint32_t process, int *lines_read,
               enum attack_phase phase, struct error **err)
{
    scoped(buf_done) struct buf text = {.max_bytes = BATTERY_TEXT_BYTES_MAX};
    struct cell_capture capture = {.fd = *lines_read, .buf = &text};
    enum cell_wait_result end;
    struct cell_exit status;
    int r =
        cell_wait(cell, process, &(struct cell_patience){&capture, 1, clock_ns() + AGENT_NS, NULL},
                  &end, &status, err);

    *lines_read = capture.fd;
    if (r < 0)
        return r;
    if (end != CELL_EXITED || status.exit_code != 0)
        return error_set(err, ERROR_SYSTEM, "the attack program ended with status %d, signal %d",
                         status.exit_code, status.term_signal);
    return battery_take(probe->battery, buf_text(&text), phase, err);
}

void probe_channel_done(struct probe_channel *channel)
{
    fd_closep(&channel->lines_read);
    fd_closep(&channel->lines);
    fd_closep(&channel->targets);
    for (int i = 0; i < LIFELINES; i++)
        fd_closep(&channel->held[i]);
}

int probe_channel_open(struct probe *probe, struct probe_channel *ret, struct error **err)
{
    const struct buf *targets = &probe->decoy.targets;
    int r = probe_pipe(&ret->lines_read, &ret->lines, err);

    return r < 0 ? r
                 : fs_memfd("notes", buf_text(targets), targets->size_bytes, &ret->targets, err);
}

/* Without a cell the environment is as a careless harness leaves it: the control of what reads it.
 */
static void add_leaks(const struct probe *probe, struct str_list *env)
{
    scoped(mem_freep) char *suite = decoy_path(&probe->decoy, "suite");

    str_list_add_take(env, str_format("SUITE_ROOT=%s", suite));
    str_list_add_take(env, str_format("API_KEY=%s", probe->decoy.secret));
    str_list_add(env, "http_proxy=http://127.0.0.1:1/");
}

/* Where nothing enforces them, without a cell, what the task wants: the control of what tries them.
 */
static int tell_limits(struct probe *probe, const struct cell_spec *twin, struct error **err)
{
    struct cell_spec wanted = {.role = CELL_AGENT, .etc_fd = -1};
    bool is_control = monitor_facts(probe->monitor)->driver == CELL_TEMPDIR;
    int r = view_fill_cell(probe->options->view, NULL, CELL_AGENT, &wanted, err);

    if (r < 0)
        return r;
    const struct cell_limits *limits = is_control ? &wanted.limits : &twin->limits;

    if (limits->memory_bytes > 0)
        decoy_target_number(&probe->decoy, "memory", limits->memory_bytes);
    return 0;
}

static int start_twin(struct probe *probe, struct probe_channel *channel, struct error **err)
{
    const char *const argv[] = {PROBE_PATH, probe->options->fast ? "fast" : "attack", NULL};
    struct cell_spec spec = {.role = CELL_AGENT, .etc_fd = -1};
    scoped(str_list_done) struct str_list env = {0};
    int r = fill_spec(probe, probe->monitor, &spec, err);

    for (int i = 0; i < LIFELINES && r == 0; i++)
        r = probe_pipe(&probe->lifelines[i], &channel->held[i], err);
    if (r < 0)
        return r;
    decoy_target_number(&probe->decoy, "pids",
                        spec.limits.pids != 0 ? spec.limits.pids : DEFAULT_PIDS);
    decoy_target_number(&probe->decoy, "disk",
                        spec.limits.disk_bytes != 0 ? spec.limits.disk_bytes : DEFAULT_DISK_BYTES);
    r = tell_limits(probe, &spec, err);
    if (r < 0)
        return r;
    if (spec.identity_root)
        decoy_target_number(&probe->decoy, "root", 1);
    r = probe_channel_open(probe, channel, err);
    if (r < 0)
        return r;
    cell_env_default(&env);
    if (monitor_facts(probe->monitor)->driver == CELL_TEMPDIR)
        add_leaks(probe, &env);
    spec.command = (struct cell_command){
        .argv = argv,
        .envp = (const char *const *)env.items,
        .fds = {-1, -1, -1, channel->lines, channel->targets},
        .fd_count = FIRST_LIFELINE + LIFELINES,
    };
    for (int i = 0; i < LIFELINES; i++)
        spec.command.fds[FIRST_LIFELINE + i] = channel->held[i];
    r = cell_start(probe->monitor, &spec, &probe->twin, err);
    return r < 0 ? error_wrap(err, r, "the twin") : 0;
}

/* --- the agent's phase */

static const char *const lifeline_ids[LIFELINES] = {
    [LIFELINE_DAEMON] = "persist.daemon",
    [LIFELINE_STOPPED] = "persist.stopped",
    [LIFELINE_TIMER] = "persist.timer",
};

static bool is_cut(int fd)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};

    return poll(&watched, 1, 0) > 0 && (watched.revents & POLLHUP) != 0;
}

/* Each must have lived on when its parent ended, and be gone once the cell is. */
static int end_twin(struct probe *probe, struct error **err)
{
    struct cell_receipt receipt;
    bool died_early[LIFELINES];

    for (int i = 0; i < LIFELINES; i++)
        died_early[i] = is_cut(probe->lifelines[i]);
    int r = cell_end(probe->twin, &receipt, err);

    if (r < 0 || probe->options->fast)
        return r;
    for (int i = 0; i < LIFELINES; i++) {
        if (!is_cut(probe->lifelines[i]))
            battery_note(probe->battery, lifeline_ids[i], ATTACK_FOUND,
                         "it lives on after the end of its cell");
        else if (died_early[i])
            battery_note(probe->battery, lifeline_ids[i], ATTACK_ERROR, "it had ended by itself");
        else
            battery_note(probe->battery, lifeline_ids[i], ATTACK_DENIED, "");
    }
    return 0;
}

static int run_agent_phase(struct probe *probe, struct error **err)
{
    scoped(probe_channel_done) struct probe_channel channel = {-1, -1, -1, {-1, -1, -1}};
    int r = start_twin(probe, &channel, err);

    if (r < 0)
        return r;
    fd_closep(&channel.lines);
    for (int i = 0; i < LIFELINES; i++)
        fd_closep(&channel.held[i]);
    r = probe_hear(probe, probe->twin, 0, &channel.lines_read, PHASE_AGENT, err);
    return r < 0 ? r : end_twin(probe, err);
}

/* --- what it left */

static bool holds_secret(int fd, const char *secret)
{
    char bytes[65536];
    size_t kept = 0, length = strlen(secret);
    ssize_t n;
    off_t offset = 0;

    while ((n = pread(fd, bytes + kept, sizeof(bytes) - kept, offset)) > 0) {
        size_t size = kept + (size_t)n;

        if (memmem(bytes, size, secret, length) != NULL)
            return true;
        offset += n;
        kept = size_min(size, length - 1);
        memmove(bytes, bytes + size - kept, kept);
    }
    return false;
}

static bool has_raw_controls(const struct buf *text)
{
    for (size_t i = 0; i < text->size_bytes; i++)
        if ((unsigned char)text->data[i] < ' ' && text->data[i] != '\n')
            return true;
    return false;
}

/* From outside: nothing of the host in it, bounded, its names quoted, nothing of it was run. */
static int look_at_collected(struct probe *probe, int dir_fd, struct error **err)
{
    static const char *const marked[] = {"host.git", "host.startup", "host.settings"};
    scoped(buf_done) struct buf changes = {0};
    struct stat status;
    int r = fs_read_file(dir_fd, "changes.json", CHANGES_BYTES_MAX, &changes, err);

    if (r < 0)
        return r;
    if (holds_secret(probe->tar_fd, probe->decoy.secret))
        battery_note(probe->battery, "collect.links", ATTACK_FOUND, "the copy holds host bytes");
    if (fstat(probe->tar_fd, &status) == 0 && (uint64_t)status.st_size > TAR_BYTES_MAX)
        battery_note(probe->battery, "collect.sparse", ATTACK_FOUND, "the copy is huge");
    if (has_raw_controls(&changes))
        battery_note(probe->battery, "collect.names", ATTACK_FOUND,
                     "a list of changes with raw control characters");
    for (size_t i = 0; i < ARRAY_SIZE(marked); i++)
        if (decoy_is_marked(&probe->decoy, marked[i]))
            battery_note(probe->battery, marked[i], ATTACK_FOUND, "it ran while it was collected");
    return 0;
}

static int collect_twin(struct probe *probe, struct error **err)
{
    scoped(mem_freep) char *path = decoy_path(&probe->decoy, "out");
    scoped(fd_closep) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    scoped(collect_result_done) struct collect_result result = {0};
    struct collect_source source = view_collect_source(probe->options->view);

    if (dir_fd < 0)
        return error_errno(err, errno, "cannot open '%s'", path);
    int r = collect_run(probe->monitor, probe->twin, &source, dir_fd, &result, err);

    if (r < 0)
        return error_wrap(err, r, "cannot copy out what the attacks left");
    cell_free(take(probe->twin));
    probe->tar_fd = openat(dir_fd, "artifacts.tar", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    probe->changes_fd = openat(dir_fd, "changes.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (probe->tar_fd < 0 || probe->changes_fd < 0)
        return error_errno(err, errno, "nothing was collected");
    return look_at_collected(probe, dir_fd, err);
}

static int run_phases(struct probe *probe, struct error **err)
{
    int r = prepare(probe, err);

    if (r == 0)
        r = start_other(probe, err);
    if (r == 0)
        r = run_agent_phase(probe, err);
    if (r < 0 || probe->options->fast)
        return r;
    r = collect_twin(probe, err);
    return r < 0 ? r : probe_grade(probe, err);
}

int probe_run(const struct probe_options *options, struct probe_result *ret, struct error **err)
{
    uint64_t began_ns = clock_ns();
    scoped(probe_result_done) struct probe_result result = {0};
    scoped(probe_done) struct probe probe = {
        .options = options,
        .battery = &result.battery,
        .decoy = {.secret_fd = -1, .stand_pidfd = -1, .stand_input = -1},
        .program_fd = -1,
        .other_input = -1,
        .tar_fd = -1,
        .changes_fd = -1,
        .peer_input = -1,
    };

    for (int i = 0; i < LIFELINES; i++)
        probe.lifelines[i] = -1;
    int r = run_phases(&probe, err);

    if (r < 0)
        return error_wrap(err, r, "probe");
    battery_close(&result.battery);
    result.driver = monitor_facts(options->control)->driver;
    result.tier = monitor_facts(options->control)->tier;
    result.ns = clock_ns() - began_ns;
    *ret = result;
    result = (struct probe_result){0};
    return 0;
}

void probe_result_done(struct probe_result *result)
{
    battery_done(&result->battery);
}

json_t *probe_json(const struct probe_result *result)
{
    const struct battery *battery = &result->battery;
    struct sha256 digest = battery_digest(battery);
    char text[SHA256_HEX_CHARS + 1];
    json_t *json = json_object();

    sha256_format(&digest, text);
    json_put_text(json, "driver", result->driver == CELL_TEMPDIR ? "tempdir" : "native");
    json_put_text(json, "tier", cell_tier_name(result->tier));
    json_put_bool(json, "fast", battery->fast);
    json_put_real(json, "ms", ns_to_ms(result->ns));
    json_put_int(json, "tried", (int64_t)battery->count);
    json_put_int(json, "found", (int64_t)battery_count(battery, ATTACK_FOUND));
    json_put_int(json, "errors", (int64_t)battery_count(battery, ATTACK_ERROR));
    json_put_int(json, "posture", (int64_t)battery_count(battery, ATTACK_POSTURE));
    scoped(mem_freep) char *named = str_format("sha256:%s", text);

    json_put_text(json, "digest", named);
    json_put(json, "attacks", battery_json(battery));
    return json;
}
