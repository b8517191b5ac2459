#include "run/staged.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/call_frame.h"
#include "run/installed.h"
#include "run/overlap.h"
#include "run/staged_overlap.h"
#include "task/task_private.h"
#include "task/task_public.h"

/* Graders see the suite and the reference; a task of file and event criteria alone needs neither.
 */
static bool sees_private(const struct criterion *criterion)
{
    if (criterion->kind == CRITERION_REFERENCE_COMPARISON || criterion->kind == CRITERION_EXEC ||
        criterion->kind == CRITERION_LLM_JUDGE)
        return true;
    return criterion->kind == CRITERION_RUN_COMMAND &&
           !str_equal(json_get_text(criterion->params, "as"), "candidate");
}

bool staged_needs_private(const struct task *task, bool grading)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(task, &public_half, &private_half);
    if (public_half->agent.type == AGENT_ORACLE || private_half->pre_run_count > 0)
        return true;
    if (grading && private_half->post_run_count > 0)
        return true;
    for (size_t i = 0; grading && i < private_half->criterion_count; i++)
        if (sees_private(&private_half->criteria[i]))
            return true;
    return false;
}

/* The references of all selected tasks of the suite: hollow in the copy that its graders share. */
static void references_of(const struct task_set *all, const struct task_private *mine,
                          struct str_list *ret)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct task_public *public_half = NULL;
        const struct task_private *other = NULL;

        task_split(all->tasks[i], &public_half, &other);
        if (!str_equal(other->suite_root, mine->suite_root))
            continue;
        if (other->reference_dir != NULL)
            str_list_add(ret, other->reference_dir);
        if (other->reference_file != NULL)
            str_list_add(ret, other->reference_file);
    }
    str_list_sort(ret);
}

static void remember_root(struct session *session, const struct sha256 *root)
{
    for (size_t i = 0; i < session->private_root_count; i++) {
        if (sha256_equal(&session->private_roots[i], root))
            return;
    }
    session->private_roots = mem_resize(session->private_roots, session->private_root_count + 1,
                                        sizeof(*session->private_roots));
    session->private_roots[session->private_root_count++] = *root;
}

/* One suite serves many tasks, and is looked at once. */
static int seal(struct session *session, struct staged *staged, struct error **err)
{
    const struct private_stage *stage = &staged->private_stage;
    bool known = stage->has_suite && session->private_root_count > 0 &&
                 sha256_equal(&session->suite_root, &stage->suite.root);
    struct private_stage less = *stage;

    less.has_suite = stage->has_suite && !known;
    int r = private_seal_make(&less, &staged->seal, err);

    if (r < 0)
        return r;
    if (stage->has_reference)
        remember_root(session, &stage->reference.root);
    if (stage->has_suite)
        remember_root(session, &stage->suite.root);
    if (known) {
        staged->seal.suite = session->suite_look;
    } else if (stage->has_suite) {
        session->suite_root = stage->suite.root;
        session->suite_look = staged->seal.suite;
    }
    return 0;
}

int staged_check_all(struct session *session, struct error **err)
{
    for (size_t i = 0; i < session->private_root_count; i++) {
        struct layer layer;
        int r = store_get(session->store, STORE_PRIVATE, &session->private_roots[i], &layer, err);

        if (r < 0)
            return r;
        r = private_layer_check(&layer, "what graders read", err);
        layer_done(&layer);
        if (r < 0)
            return r;
    }
    return 0;
}

static int stage_private(const struct staged_options *options, struct staged *ret,
                         struct error **err)
{
    scoped(str_list_done) struct str_list references = {0};
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(options->task, &public_half, &private_half);
    if (!staged_needs_private(options->task, options->grading))
        return 0;
    references_of(options->all, private_half, &references);

    struct private_source source = {
        .suite_root = private_half->suite_root,
        .task_dir = private_half->task_dir,
        .reference_dir = private_half->reference_dir,
        .reference_file = private_half->reference_file,
        .references = &references,
    };
    int r = private_stage_make(options->session->store, ret->control, &options->session->reader,
                               &source, &ret->private_stage, err);

    ret->has_private = r == 0;
    return r < 0 ? r : seal(options->session, ret, err);
}

static int open_script(const struct staged_options *options, struct staged *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(options->task, &public_half, &private_half);
    if (public_half->agent.type != AGENT_SCRIPT)
        return 0;

    const struct task_reader *reader = &options->session->reader;
    int fd = reader->open(reader->context, public_half->agent.script, 0);

    if (fd < 0)
        return error_set(err, ERROR_TASK, "agent script '%s': %s", public_half->agent.script,
                         strerror(-fd));
    ret->script_fd = fd;
    return 0;
}

/* Exposed paths and a root of the task's own against what its agent must not see. */
static int check_roots(const struct staged_options *options, const struct view *view,
                       struct error **err)
{
    const struct session *session = options->session;
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(options->task, &public_half, &private_half);

    const struct overlap_hidden always[] = {
        {private_half->task_file, "the task file"},
        {private_half->reference_dir, "the reference"},
        {private_half->reference_file, "the reference"},
        {session->store_root, "the store"},
        {options->run_path, "the run directory"},
    };
    const struct str_list *files = &private_half->private_files;
    size_t count = ARRAY_SIZE(always);
    struct overlap_hidden *hidden = mem_new(count + files->count, sizeof(*hidden));

    memcpy(hidden, always, sizeof(always));
    for (size_t i = 0; i < files->count; i++)
        hidden[count++] = (struct overlap_hidden){
            files->items[i], "a file of the experiment, dataset or a criterion"};
    int r = overlap_check(&session->reader, view_system(view, CELL_AGENT), hidden, count, err);

    free(hidden);
    return r;
}

/* What the agent's cell shows of the host: the task's paths and those of the agent's program. */
static int find_agent(const struct staged_options *options, struct staged *ret,
                      struct str_list *expose, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(options->task, &public_half, &private_half);
    int r = options->only_grading
                ? 0
                : installed_find(options->session, public_half, &ret->install, err);

    if (r < 0)
        return r;
    str_list_copy(expose, &public_half->root.expose);
    for (size_t i = 0; i < ret->install.expose.count; i++) {
        if (!str_list_has(expose, ret->install.expose.items[i]))
            str_list_add(expose, ret->install.expose.items[i]);
    }
    str_list_sort(expose); /* what holds another comes before it */
    return 0;
}

static int look_for_leaks(const struct staged_options *options, struct staged *ret,
                          struct error **err)
{
    return leak_sight_make(
        &(struct leak_scan){.session = options->session,
                            .task = options->task,
                            .view = ret->view,
                            .private_stage = ret->has_private ? &ret->private_stage : NULL,
                            .control = ret->control,
                            .all_roots = options->all_roots,
                            .keeps_texts = options->keeps_texts},
        options->allowed_leaks, &ret->sight, err);
}

static int stage(const struct staged_options *options, struct staged *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(options->task, &public_half, &private_half);

    scoped(str_list_done) struct str_list expose = {0};
    enum cell_driver driver = public_half->driver == DRIVER_TEMPDIR ? CELL_TEMPDIR : CELL_NATIVE;
    int r = session_check_tier(options->session, private_half->task_id, public_half, err);

    if (r == 0)
        r = session_check_limits(options->session, private_half->task_id, public_half, err);
    if (r == 0)
        r = session_monitor(options->session, driver, &ret->control, err);
    if (r == 0)
        r = find_agent(options, ret, &expose, err);
    if (r == 0)
        r = view_build(&(struct view_source){.store = options->session->store,
                                             .monitor = ret->control,
                                             .reader = &options->session->reader,
                                             .unpack_program = options->session->unpack_program,
                                             .task = public_half,
                                             .grader_root = &private_half->root,
                                             .agent_expose = &expose,
                                             .recorded_line = "#!" CALL_PROGRAM_PATH "\n",
                                             .sealed_line = "#!" CALL_PROGRAM_PATH
                                                            " " CALL_SEALED_OPTION "\n"},
                       &ret->view, err);
    if (r == 0)
        r = check_roots(options, ret->view, err);
    if (r == 0)
        r = staged_overlap_check(options->session, ret->control, options->task, ret->view, err);
    if (r == 0)
        r = open_script(options, ret, err);
    if (r == 0)
        r = stage_private(options, ret, err);
    return r < 0 || !options->looks_for_leaks ? r : look_for_leaks(options, ret, err);
}

void staged_make(const struct staged_options *options, struct staged *ret)
{
    uint64_t start_ns = clock_ns();

    *ret = (struct staged){.task = options->task, .script_fd = -1};

    int r = stage(options, ret, &ret->error);

    if (r < 0)
        (void)error_wrap(&ret->error, r, "staging");
    ret->stage_ns = clock_ns() - start_ns;
}

void staged_done(struct staged *staged)
{
    if (staged->task == NULL)
        return;
    view_free(staged->view);
    if (staged->has_private)
        private_stage_done(&staged->private_stage);
    fd_closep(&staged->script_fd);
    agent_install_done(&staged->install);
    leak_sight_done(&staged->sight);
    error_free(staged->error);
    free(staged->preflight);
    *staged = (struct staged){.script_fd = -1};
}
