/* The simulated user. A variant's words win over the task's, and these over an experiment's. */
#include "task/experiment.h"

#define EXCHANGES 8
#define STOP_TOKEN "<<<END>>>"

static const struct node *get(const struct build *build, const char *key)
{
    const struct experiment *experiment = build->suite->experiment;
    const struct node *const blocks[] = {
        build->variant == NULL ? NULL : node_get(build->variant->fields, "simulation"),
        node_get(build->file, "simulation"),
        experiment == NULL ? NULL : node_get(experiment->fields, "simulation"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
        const struct node *value = node_get(blocks[i], key);

        if (value != NULL)
            return value;
    }
    return NULL;
}

bool build_is_dialog(const struct build *build)
{
    const struct node *enabled = get(build, "enabled");

    return enabled != NULL && enabled->truth;
}

/* A text that the simulated user knows, and may say to the agent. */
static char *read_text(const struct build *build, const char *key)
{
    const struct node *node = get(build, key);
    scoped(mem_freep) char *path = str_format("simulation.%s", key);

    if (node == NULL)
        return NULL;
    build_check_text(build, node->mark, path, node->text);
    return str_dup(node->text);
}

static void read_list(const struct build *build, const char *key, struct str_list *ret)
{
    const struct node *list = get(build, key);

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        scoped(mem_freep) char *path = str_format("simulation.%s[%zu]", key, i);

        build_check_text(build, list->items[i]->mark, path, list->items[i]->text);
        str_list_add(ret, list->items[i]->text);
    }
}

static uint64_t read_count(const struct build *build, const char *key, uint64_t otherwise)
{
    const struct node *node = get(build, key);

    return node == NULL ? otherwise : (uint64_t)node->integer;
}

static void require(const struct build *build, struct mark mark, const char *key, const char *value)
{
    scoped(mem_freep) char *path = str_format("simulation.%s", key);

    if (value == NULL && !build_is_given(build, path))
        build_error(build, mark, path,
                    "required: a text expected, found nothing (or a 'script' of what the user "
                    "says)");
}

void build_simulation(const struct build *build)
{
    struct task_private *half = build->task->private_half;
    const struct node *enabled = get(build, "enabled");
    const struct node *shared = get(build, "share_description");

    if (!build_is_dialog(build))
        return;
    struct task_simulation *simulation = mem_new(1, sizeof(*simulation));

    half->simulation = simulation;
    simulation->persona = read_text(build, "persona");
    simulation->goal = read_text(build, "goal");
    simulation->stop_token = read_text(build, "stop_token");
    if (simulation->stop_token == NULL)
        simulation->stop_token = str_dup(STOP_TOKEN);
    simulation->model = read_text(build, "model");
    read_list(build, "constraints", &simulation->constraints);
    read_list(build, "script", &simulation->script);
    simulation->max_turns = (unsigned)read_count(build, "max_turns", EXCHANGES);
    simulation->max_total_tokens = read_count(build, "max_total_tokens", 0);
    simulation->share_description = shared == NULL || shared->truth;
    if (simulation->script.count == 0) {
        require(build, enabled->mark, "persona", simulation->persona);
        require(build, enabled->mark, "goal", simulation->goal);
    }
    if (build->task->public_half->agent.type == AGENT_NONE)
        build_error(build, enabled->mark, "simulation", "the agent type 'none' talks to nobody");
    if (get(build, "n_trials") != NULL)
        build->task->repeats = read_count(build, "n_trials", 1);
}

void task_simulation_free(struct task_simulation *simulation)
{
    if (simulation == NULL)
        return;
    free(simulation->persona);
    free(simulation->goal);
    free(simulation->stop_token);
    free(simulation->model);
    str_list_done(&simulation->constraints);
    str_list_done(&simulation->script);
    free(simulation);
}
