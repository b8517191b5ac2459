/* The public half: prompt, workspace, limits, driver. */
#include "task/internal.h"

/* What is hardly ever meant to reach a workspace; "!name" among the task's patterns takes one out.
 */
static const char *const usual_patterns[] = {
    ".venv", "__pycache__",   "node_modules", "dist",        "build",
    "*.pyc", ".pytest_cache", ".mypy_cache",  ".ruff_cache", ".DS_Store"};
/* Never taken: what a repository knows is its history, which `repo` makes anew. */
#define REPOSITORY ".git"

struct task_source *build_add_source(struct task_public *half, enum task_source_kind kind)
{
    half->sources = mem_resize(half->sources, half->source_count + 1, sizeof(struct task_source));
    half->sources[half->source_count] = (struct task_source){.kind = kind};
    return &half->sources[half->source_count++];
}

/* A folder that a field names. NULL: complained. */
static char *read_dir(const struct build *build, const struct node *node, const char *path)
{
    scoped(mem_freep) char *dir = build_path(build, node, path, true);
    bool empty = false;

    if (dir == NULL)
        return NULL;
    scoped(mem_freep) char *wrong = source_check_dir(build->loader->reader, dir, &empty);

    if (wrong == NULL)
        return take(dir);
    build_error(build, node->mark, path, "'%s' %s", dir, wrong);
    return NULL;
}

static void add_starter_files(struct task_public *half, const struct node *source)
{
    struct task_source *added = build_add_source(half, SOURCE_STARTER_FILES);
    const struct node *files = node_get(source, "files");

    added->mount_point = str_dup(".");
    if (files == NULL)
        return;
    added->files = mem_new(files->count, sizeof(struct task_starter_file));
    for (size_t i = 0; i < files->count; i++) {
        const char *path = node_get_text(files->items[i], "path");
        const char *content = node_get_text(files->items[i], "content");

        if (path == NULL || content == NULL)
            continue;
        added->files[added->file_count].path = path_normal(path);
        added->files[added->file_count++].content = str_dup(content);
    }
}

/* A folder at a mount point, if both are known. */
static void add_dir(const struct build *build, enum task_source_kind kind, char *dir,
                    const char *mount_point)
{
    if (dir == NULL)
        return;
    struct task_source *added = build_add_source(build->task->public_half, kind);

    added->path = dir;
    added->mount_point = path_normal(mount_point == NULL ? "." : mount_point);
}

static void read_sources(const struct build *build)
{
    const struct node *sources = node_find(build->root, "sandbox.template_sources");
    const struct node *input = node_get(build->file, "input_dir");

    for (size_t i = 0; sources != NULL && i < sources->count; i++) {
        const struct node *source = sources->items[i], *path = node_get(source, "path");
        scoped(mem_freep) char *name = str_format("sandbox.template_sources[%zu].path", i);

        if (strcmp(node_get_text(source, "type"), "starter_files") == 0)
            add_starter_files(build->task->public_half, source);
        else if (strcmp(node_get_text(source, "type"), "repo") == 0)
            build_repo(build, source, i);
        else if (path != NULL)
            add_dir(build, SOURCE_TEMPLATE_DIR, read_dir(build, path, name),
                    node_get_text(source, "mount_point"));
    }
    if (input != NULL)
        add_dir(build, SOURCE_INPUT_DIR, read_dir(build, input, "input_dir"),
                node_get_text(build->file, "input_mount"));
}

static void read_patterns(const struct build *build)
{
    struct str_list *patterns = &build->task->public_half->ignore_patterns;
    const struct node *given = node_find(build->root, "sandbox.ignore_patterns");
    struct str_list taken_out = {0};

    for (size_t i = 0; given != NULL && i < given->count; i++) {
        const struct node *item = given->items[i];
        bool negated = item->text[0] == '!';

        if (item->text[negated ? 1 : 0] == '\0')
            build_error(build, item->mark, "sandbox.ignore_patterns",
                        "a pattern expected, found '%s'", item->text);
        if (negated)
            str_list_add(&taken_out, item->text + 1);
        if (strcmp(item->text, "!.git") == 0)
            build_error(build, item->mark, "sandbox.ignore_patterns",
                        "a template's .git would be staged with all of its history: name the "
                        "repository as a source of type repo, which makes it anew");
    }
    for (size_t i = 0; i < ARRAY_SIZE(usual_patterns); i++) {
        if (!str_list_has(&taken_out, usual_patterns[i]))
            str_list_add(patterns, usual_patterns[i]);
    }
    for (size_t i = 0; given != NULL && i < given->count; i++) {
        const char *text = given->items[i]->text;
        bool of_usual = false;

        for (size_t j = 0; j < ARRAY_SIZE(usual_patterns) && text[0] == '!'; j++)
            of_usual = of_usual || strcmp(usual_patterns[j], text + 1) == 0;
        if (!of_usual)
            str_list_add(patterns, text);
    }
    /* The last that matches decides. */
    str_list_add(patterns, REPOSITORY);
    str_list_done(&taken_out);
}

static uint64_t count_of(const struct node *map, const char *key)
{
    double value = node_get_real(map, key, 0);

    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t ms_of(const struct node *map, const char *key)
{
    double seconds = node_get_real(map, key, 0);

    return seconds <= 0 ? 0 : seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
}

static uint64_t microusd_of(const struct node *map, const char *key)
{
    double usd = node_get_real(map, key, 0);

    return usd <= 0 ? 0 : usd < 0.000001 ? 1 : (uint64_t)(usd * 1000000);
}

/* The driver that protects nothing limits nothing either, but time and output. */
static void check_enforced(const struct build *build, const struct node *limits)
{
    static const char *const keys[] = {"max_memory_mb", "max_cpus", "max_pids", "max_disk_mb",
                                       "max_inodes"};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct member *member = node_member(limits, keys[i]);
        scoped(mem_freep) char *path = str_format("sandbox.limits.%s", keys[i]);

        if (member == NULL || !build_is_given(build, path))
            continue;
        if (node_get_bool(limits, "best_effort"))
            build_warning(build, member->mark, path, "the driver tempdir does not enforce it");
        else
            build_error(build, member->mark, path,
                        "the driver tempdir does not enforce it (best_effort: true runs without)");
    }
}

static void read_limits(const struct build *build)
{
    const struct node *limits = node_find(build->root, "sandbox.limits");
    const struct node *run = node_get(build->root, "run_limits");

    build->task->public_half->limits = (struct task_limits){
        .task_timeout_ms = ms_of(run, "task_timeout"),
        .turn_timeout_ms = ms_of(run, "turn_timeout"),
        .max_turns = count_of(run, "max_turns"),
        .expected_turns = count_of(run, "expected_turns"),
        .max_input_tokens = count_of(run, "max_input_tokens"),
        .max_output_tokens = count_of(run, "max_output_tokens"),
        .max_total_tokens = count_of(run, "max_total_tokens"),
        .max_microusd = microusd_of(run, "max_usd"),
        .count_cached_input = node_get_bool(run, "count_cached_input"),
        .count_cache_creation = node_get_bool(run, "count_cache_creation"),
        .command_timeout_ms = ms_of(limits, "timeout"),
        .max_pids = count_of(limits, "max_pids"),
        .max_disk_mb = count_of(limits, "max_disk_mb"),
        .max_inodes = count_of(limits, "max_inodes"),
        .max_output_mb = count_of(limits, "max_output_mb"),
        .max_memory_mb = count_of(limits, "max_memory_mb"),
        .max_cpu_millis = ms_of(limits, "max_cpus"), /* thousandths, too */
        .best_effort = node_get_bool(limits, "best_effort"),
    };
    if (build->task->public_half->driver == DRIVER_TEMPDIR)
        check_enforced(build, limits);
}

static void read_driver(const struct build *build)
{
    const struct node *driver = node_find(build->root, "sandbox.driver");

    ASSERT(driver != NULL); /* the table has a default */
    if (strcmp(driver->text, "tempdir") == 0)
        build->task->public_half->driver = DRIVER_TEMPDIR;
    else if (strcmp(driver->text, "native") != 0)
        build_later(build, driver->mark, "sandbox.driver", "the driver '%s' is not in this version",
                    driver->text);
}

static void read_tier(const struct build *build)
{
    const struct node *tier = node_find(build->root, "sandbox.require_tier");

    if (tier != NULL && tier->text != NULL)
        build->task->public_half->require_tier = str_dup(tier->text);
}

/* An agent program without a model to ask would fail in every trial. */
static void read_cli_network(const struct build *build, const struct node *network)
{
    struct task_public *half = build->task->public_half;
    const struct node *driver = node_find(build->root, "sandbox.driver");
    const struct node *type = node_find(build->root, "agent.type");

    half->network_broker = true;
    if (build_is_given(build, "sandbox.network") && network != NULL && network->text != NULL &&
        strcmp(network->text, "broker") != 0)
        build_error(build, network->mark, "sandbox.network",
                    "the agent type '%s' asks its model through the broker: broker expected, "
                    "found '%s'",
                    type->text, network->text);
    if (half->driver == DRIVER_TEMPDIR)
        build_error(build, driver == NULL ? type->mark : driver->mark, "sandbox.driver",
                    "the agent type '%s' needs a native cell: a tempdir has no way to the broker",
                    type->text);
}

/* After the agent, whose model it is. */
static void read_network(const struct build *build)
{
    const struct node *network = node_find(build->root, "sandbox.network");
    struct task_public *half = build->task->public_half;

    if (task_agent_is_cli(half->agent.type)) {
        read_cli_network(build, network);
        return;
    }
    if (network == NULL || network->text == NULL || strcmp(network->text, "none") == 0)
        return;
    if (strcmp(network->text, "broker") != 0)
        build_later(build, network->mark, "sandbox.network",
                    "the network '%s' is not in this version", network->text);
    else if (half->agent.model == NULL)
        build_error(build, network->mark, "sandbox.network",
                    "broker lets the agent ask one model: agent.model expected, found none");
    half->network_broker = strcmp(network->text, "broker") == 0;
}

static void read_identity(const struct build *build)
{
    const struct node *identity = node_find(build->root, "sandbox.identity");

    build->task->public_half->identity_root =
        identity != NULL && identity->text != NULL && strcmp(identity->text, "root") == 0;
}

static void read_services(const struct build *build)
{
    const struct node *list = node_find(build->root, "sandbox.services");
    struct task_public *half = build->task->public_half;

    if (list == NULL || list->count == 0)
        return;
    if (list->count > TASK_SERVICES_MAX) {
        build_error(build, list->mark, "sandbox.services", "at most %d services, found %zu",
                    TASK_SERVICES_MAX, list->count);
        return;
    }
    half->services = mem_new(list->count, sizeof(struct task_service));
    for (size_t i = 0; i < list->count; i++) {
        const char *run = node_get_text(list->items[i], "run");
        const char *ready = node_get_text(list->items[i], "ready");

        if (run == NULL)
            continue; /* complained of already */
        half->services[half->service_count++] = (struct task_service){
            .run = str_dup(run),
            .ready = ready != NULL ? str_dup(ready) : NULL,
            .timeout_ms = ms_of(list->items[i], "timeout"),
        };
    }
}

void build_public(struct build *build)
{
    build_prompt(build);
    read_sources(build);
    read_patterns(build);
    read_driver(build);
    read_limits(build);
    read_tier(build);
    read_identity(build);
    read_network(build);
    read_services(build);
    build_root(build, "sandbox", &build->task->public_half->root);
}
