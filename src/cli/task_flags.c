#include "cli/task_flags.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/version.h"
#include "grade/grade.h"
#include "grade/regex.h"
#include "run/installed.h"
#include "run/judges.h"
#include "run/wire.h"
#include "task/problems.h"
#include "task/task_private.h"
#include "task/task_public.h"

const char *const allow_tier_choices[] = {"C", NULL};
const char *const task_driver_choices[] = {"native", "tempdir", NULL};

/* XDG: $XDG_CONFIG_HOME, else ~/.config; owned, NULL when there is no home either. */
static char *user_config(void)
{
    const char *config_home = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    if (config_home != NULL && config_home[0] == '/')
        return path_join(config_home, "closedbook/config.yaml");
    return home != NULL ? path_join(home, ".config/closedbook/config.yaml") : NULL;
}

static void copy_list(const struct option_list *from, struct str_list *to)
{
    for (size_t i = 0; i < from->count; i++)
        str_list_add(to, from->items[i]);
}

static void default_paths(struct str_list *paths)
{
    static const char *const places[] = {"tasks", "tests/tasks"};
    struct stat st;

    for (size_t i = 0; paths->count == 0 && i < ARRAY_SIZE(places); i++)
        if (stat(places[i], &st) == 0 && S_ISDIR(st.st_mode))
            str_list_add(paths, places[i]);
}

/* Samples differ from run to run; the plan records what drew them. */
static uint64_t random_seed(void)
{
    scoped(mem_freep) char *digits = random_hex(4);

    return strtoull(digits, NULL, 16);
}

void task_inputs_init(const struct task_flags *flags, const char *const *paths, size_t path_count,
                      struct task_inputs *ret)
{
    *ret = (struct task_inputs){.user_config = user_config()};
    for (size_t i = 0; i < path_count; i++)
        str_list_add(&ret->paths, paths[i]);
    default_paths(&ret->paths);
    copy_list(&flags->only, &ret->only);
    copy_list(&flags->tags, &ret->tags);
    copy_list(&flags->exclude_tags, &ret->exclude_tags);
    copy_list(&flags->variants, &ret->variants);
    copy_list(&flags->sets, &ret->sets);
    ret->overrides = (struct task_overrides){
        .agent = flags->agent,
        .model = flags->model,
        .judge_model = flags->judge_model,
        .simulator_model = flags->simulator_model,
        .driver = flags->driver,
        .experiment = flags->experiment,
        .suite_root = flags->suite_root,
        .sets = &ret->sets,
        .user_config = ret->user_config,
        .environment = environ,
        .check_criterion = grade_check,
        .replace = regex_replace,
        .version = CLOSEDBOOK_VERSION,
        .strict = flags->strict,
    };
    ret->selection = (struct task_selection){
        .only = &ret->only,
        .tags = &ret->tags,
        .exclude_tags = &ret->exclude_tags,
        .variants = &ret->variants,
        .include_skipped = flags->include_skipped,
        .skip_later = flags->skip_later,
        .sample = flags->sample,
        .sample_per_stratum = flags->sample_per_stratum,
        .seed = flags->seed != 0 ? flags->seed : random_seed(),
        .seed_given = flags->seed != 0,
    };
}

static void read_list(const json_t *json, const char *key, struct str_list *ret)
{
    json_t *array = json_get_array(json, key);
    size_t i;
    json_t *item;

    json_array_foreach (array, i, item)
        if (json_is_string(item))
            str_list_add(ret, json_string_value(item));
}

int task_inputs_recorded(const json_t *plan, struct task_inputs *ret, unsigned *ret_repeats,
                         struct error **err)
{
    const json_t *json = json_get_object(plan, "inputs");
    int64_t repeats = json_get_int(json, "repeats", 0);

    if (json == NULL || repeats < 0 || repeats > UINT16_MAX)
        return error_set(err, ERROR_SYSTEM,
                         "plan.json: 'inputs' with 'repeats' of 0 or more expected");
    *ret = (struct task_inputs){.user_config = user_config()};
    read_list(json, "paths", &ret->paths);
    read_list(json, "set", &ret->sets);
    read_list(json, "only", &ret->only);
    read_list(json, "tags", &ret->tags);
    read_list(json, "exclude_tags", &ret->exclude_tags);
    read_list(json, "variants", &ret->variants);
    ret->overrides = (struct task_overrides){
        .agent = json_get_text(json, "agent"),
        .model = json_get_text(json, "model"),
        .judge_model = json_get_text(json, "judge_model"),
        .simulator_model = json_get_text(json, "simulator_model"),
        .driver = json_get_text(json, "driver"),
        .experiment = json_get_text(json, "experiment"),
        .suite_root = json_get_text(json, "suite_root"),
        .sets = &ret->sets,
        .user_config = ret->user_config,
        .environment = environ,
        .check_criterion = grade_check,
        .replace = regex_replace,
        .version = CLOSEDBOOK_VERSION,
        .strict = json_get_bool(json, "strict", false),
    };
    ret->selection = (struct task_selection){
        .only = &ret->only,
        .tags = &ret->tags,
        .exclude_tags = &ret->exclude_tags,
        .variants = &ret->variants,
        .include_skipped = json_get_bool(json, "include_skipped", false),
        .skip_later = json_get_bool(json, "skip_later", false),
        .sample = (uint64_t)json_get_int(json, "sample", 0),
        .sample_per_stratum = (uint64_t)json_get_int(json, "sample_per_stratum", 0),
        .seed = (uint64_t)json_get_int(json, "seed", 0),
        .seed_given = json_get_bool(json, "seed_given", false),
    };
    *ret_repeats = (unsigned)repeats;
    return 0;
}

void task_inputs_done(struct task_inputs *inputs)
{
    str_list_done(&inputs->paths);
    str_list_done(&inputs->only);
    str_list_done(&inputs->tags);
    str_list_done(&inputs->exclude_tags);
    str_list_done(&inputs->variants);
    str_list_done(&inputs->sets);
    free(inputs->user_config);
    *inputs = (struct task_inputs){0};
}

static void print_problems(const struct problems *problems, bool verbose)
{
    scoped(buf_done) struct buf text = {0};

    problems_format(problems, verbose, getenv("GITHUB_ACTIONS") != NULL, &text);
    (void)fputs(buf_text(&text), stderr); /* nothing can be told when stderr is gone */
}

int task_inputs_load(const struct task_inputs *inputs, const struct task_reader *reader,
                     bool verbose, struct task_set *ret, struct error **err)
{
    scoped(problems_done) struct problems problems = {0};

    if (inputs->paths.count == 0)
        return error_set(err, ERROR_USER,
                         "no task named, and neither tasks/ nor tests/tasks/ is here; name a task "
                         "file or a folder of them");

    const struct task_query query = {
        &inputs->paths, reader, &inputs->overrides, &inputs->selection, 0, NULL, NULL};
    int r = tasks_load(&query, ret, &problems, err);

    print_problems(&problems, verbose);
    return r;
}

int task_inputs_judges(const struct task_inputs *inputs, unsigned purpose, struct session *session,
                       const struct task_set *set, struct error **err)
{
    scoped(problems_done) struct problems problems = {0};
    scoped(config_freep) struct config *config = NULL;
    int r = config_load(NULL, inputs->user_config, &session->reader, &config, &problems, err);

    if (r < 0)
        return r;
    return judges_prepare(session, set,
                          &(struct judges_setup){.grading = (purpose & INPUTS_GRADE) != 0,
                                                 .dialogs = (purpose & INPUTS_RUN) != 0,
                                                 .routes = config_routes(config),
                                                 .user_config = inputs->user_config},
                          err);
}

int task_inputs_endpoints(const struct task_inputs *inputs, struct session *session,
                          const struct task_set *set, struct error **err)
{
    scoped(problems_done) struct problems problems = {0};
    scoped(config_freep) struct config *config = NULL;
    int r = config_load(NULL, inputs->user_config, &session->reader, &config, &problems, err);

    if (r == 0)
        r = installed_check(session, set, err);
    if (r < 0)
        return r;
    return wire_prepare(
        session, set,
        &(struct wire_setup){.routes = config_routes(config), .user_config = inputs->user_config},
        err);
}
