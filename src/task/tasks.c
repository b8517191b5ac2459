/* From paths to a set of tasks, and from one text to one task. */
#include <errno.h>

#include "task/internal.h"

/* One task file that was read: its tasks have one id. */
struct loaded {
    struct task_list tasks;
    char *file;
    unsigned line; /* of its task_id */
    enum load_outcome outcome;
};

static const char *id_of(const struct loaded *loaded)
{
    return task_id(loaded->tasks.items[0]);
}

struct loading {
    struct loader loader;
    struct loaded *items;
    size_t count;
    struct problems *problems;
};

static void complain_file(struct problems *problems, enum problem_level level, const char *file,
                          const char *message)
{
    struct origin origin = {.source = "task", .file = file};

    problems_say(problems, level, (struct mark){.origin = &origin}, NULL, message);
}

/* A file as an absolute, normal path. */
static char *absolute(const struct loader *loader, const char *file)
{
    scoped(mem_freep) char *whole = path_join(loader->cwd, file);

    return path_normal(whole);
}

/* False: nothing to load; said why if it matters. */
static bool read_file(struct loading *loading, const char *path, bool named, struct buf *ret)
{
    scoped(mem_freep) char *wrong = NULL;
    int r = source_read(loading->loader.reader, path, TASK_BYTES_MAX, ret, &wrong);

    if (r == 0)
        return true;
    if (wrong == NULL)
        wrong = str_dup("does not exist");
    bool is_large = str_starts(wrong, "larger");

    /* A large file that a folder happens to hold is hardly a task; passing over it is said. */
    complain_file(loading->problems, is_large && !named ? PROBLEM_WARNING : PROBLEM_ERROR, path,
                  wrong);
    return false;
}

static void keep(struct loading *loading, const struct loaded *loaded)
{
    if ((loading->count & (loading->count - 1)) == 0)
        loading->items = mem_resize(loading->items, loading->count == 0 ? 1 : loading->count * 2,
                                    sizeof(struct loaded));
    loading->items[loading->count++] = *loaded;
}

/*
 * Whether a file that cannot be read as YAML may be one of the tasks wanted: it speaks of a
 * task_id, and of one of the ids when only some are asked for.
 */
static bool speaks_of_task(const struct task_selection *selection, const char *text)
{
    const struct str_list *only = selection == NULL ? NULL : selection->only;

    if (strstr(text, "task_id") == NULL)
        return false;
    for (size_t i = 0; only != NULL && i < only->count; i++) {
        if (text_has_word(text, only->items[i]))
            return true;
    }
    return only == NULL || only->count == 0;
}

/* What a later version is needed for, each once: "'simulation', the criterion type 'llm_judge'". */
static char *later_reason(const struct problems *problems)
{
    static const char *const ends[] = {" is not in this version", " are not in this version"};
    struct str_list said = {0};
    struct buf reason = {0};

    buf_text_append(&reason, "later: ");
    for (size_t i = 0; i < problems->count; i++) {
        const char *message = problems->items[i].message, *end = NULL;

        for (size_t j = 0; j < ARRAY_SIZE(ends) && end == NULL; j++)
            end = strstr(message, ends[j]);
        scoped(mem_freep) char *what =
            end == NULL ? str_dup(message) : str_ndup(message, (size_t)(end - message));

        if (!problems->items[i].later || str_list_has(&said, what))
            continue;
        buf_format(&reason, "%s%s", said.count == 0 ? "" : ", ", what);
        str_list_add(&said, what);
    }
    str_list_done(&said);
    return buf_take(&reason);
}

/* --skip-later: a task that only a later version can run is left out, with the reason. */
static void skip_later(const struct loading *loading, const struct problems *problems,
                       struct loaded *loaded)
{
    const struct task_selection *selection = loading->loader.selection;

    if (selection == NULL || !selection->skip_later || loaded->outcome != LOAD_TASK ||
        problems->error_count == 0 || problems->error_count > problems->later_count)
        return;
    char **reason = &loaded->tasks.items[0]->private_half->skip_reason;

    free(*reason);
    *reason = later_reason(problems);
    loaded->outcome = LOAD_SKIPPED;
}

static void load_file(struct loading *loading, const char *path, bool named)
{
    scoped(buf_done) struct buf text = {0};

    if (!read_file(loading, path, named, &text))
        return;
    scoped(mem_freep) char *whole = absolute(&loading->loader, path);
    scoped(mem_freep) char *dir = path_dir(whole);
    scoped(problems_done) struct problems problems = {0};
    struct origin origin = {.source = "task",
                            .file = path,
                            .path = whole,
                            .dir = dir,
                            .text = buf_text(&text),
                            .length = text.size_bytes};
    struct loaded loaded = {0};

    loaded.outcome = load_tasks(&loading->loader, &origin, &loaded.tasks, &loaded.line, &problems);
    problems_sort(&problems, 0);
    problems_unique(&problems);
    skip_later(loading, &problems, &loaded);
    switch (loaded.outcome) {
    case LOAD_NO_TASK:
        if (named)
            complain_file(loading->problems, PROBLEM_ERROR, path, "no task_id in it: not a task");
        return;
    case LOAD_BROKEN:
        /* Other YAML in the folder is none of our business; what speaks of a task_id is. */
        if (named || speaks_of_task(loading->loader.selection, origin.text))
            problems_move(loading->problems, &problems);
        return;
    case LOAD_TASK:
        problems_move(loading->problems, &problems);
        break;
    case LOAD_UNSELECTED:
    case LOAD_SKIPPED:
        break;
    }
    loaded.file = str_dup(path);
    keep(loading, &loaded);
}

static int compare_loaded(const void *a, const void *b)
{
    const struct loaded *left = a, *right = b;
    int order = strcmp(id_of(left), id_of(right));

    return order != 0 ? order : strcmp(left->file, right->file);
}

/* Two files of one id, unless neither is wanted. An empty id has been complained about. */
static void check_duplicates(const struct loading *loading)
{
    for (size_t i = 1; i < loading->count; i++) {
        const struct loaded *first = &loading->items[i - 1], *second = &loading->items[i];
        const char *id = id_of(second);
        struct origin origin = {.source = "task", .file = second->file};
        struct mark mark = {&origin, second->line, 1};
        struct path path = {.name = "task_id"};

        if (id[0] == '\0' || strcmp(id_of(first), id) != 0)
            continue;
        if (first->outcome == LOAD_UNSELECTED && second->outcome == LOAD_UNSELECTED)
            continue;
        problems_error(loading->problems, mark, &path, "'%s' is also the id of %s:%u", id,
                       first->file, first->line);
    }
}

/* The file's id, and those of rows. */
static void add_ids(const struct task_list *tasks, struct str_list *ids)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const char *id = task_id(tasks->items[i]);

        if (i == 0 || strcmp(id, task_id(tasks->items[i - 1])) != 0)
            str_list_add(ids, id);
    }
}

static void check_selection(const struct loading *loading)
{
    struct str_list ids = {0};

    for (size_t i = 0; i < loading->count; i++)
        add_ids(&loading->items[i].tasks, &ids);
    selection_check(loading->loader.selection, &ids, loading->problems);
    str_list_done(&ids);
}

static void hand_over(struct loading *loading, struct task_set *ret)
{
    struct task_set set = {0};
    size_t count = 0;

    for (size_t i = 0; i < loading->count; i++)
        count += loading->items[i].tasks.count;
    set.tasks = mem_new(count + 1, sizeof(struct task *));
    for (size_t i = 0; i < loading->count; i++) {
        struct loaded *item = &loading->items[i];

        if (item->outcome == LOAD_UNSELECTED)
            continue;
        set.skipped_count += item->outcome == LOAD_SKIPPED;
        if (item->outcome == LOAD_SKIPPED) /* as a whole, whatever rows and variants it has */
            set.tasks[set.count++] = take(item->tasks.items[0]);
        for (size_t j = 1; item->outcome != LOAD_SKIPPED && j < item->tasks.count; j++)
            set.tasks[set.count++] = take(item->tasks.items[j]);
    }
    *ret = set;
}

static void loading_done(struct loading *loading)
{
    for (size_t i = 0; i < loading->count; i++) {
        task_list_done(&loading->items[i].tasks);
        free(loading->items[i].file);
    }
    free(loading->items);
    loader_done(&loading->loader);
}

static int load_all(struct loading *loading, const struct str_list *paths, struct error **err)
{
    scoped(file_list_done) struct file_list files = {0};

    walk_paths(loading->loader.reader, paths, &files, loading->problems);
    for (size_t i = 0; i < files.count; i++) {
        if (loading->count >= TASKS_MAX)
            return error_set(err, ERROR_LIMIT, "more than %d tasks", TASKS_MAX);
        load_file(loading, files.paths[i], files.named[i]);
    }
    if (loading->count > 1)
        qsort(loading->items, loading->count, sizeof(struct loaded), compare_loaded);
    check_duplicates(loading);
    return 0;
}

int tasks_load(const struct task_query *query, struct task_set *ret, struct problems *problems,
               struct error **err)
{
    scoped(loading_done) struct loading loading = {.problems = problems};
    size_t errors_before = problems->error_count;

    loader_init(&loading.loader, query->reader, query->overrides, problems);
    loading.loader.selection = query->selection;
    loading.loader.visit = query->visit;
    loading.loader.visit_context = query->visit_context;
    if (query->max_tasks != 0)
        loading.loader.task_max = query->max_tasks;
    if (problems->error_count > errors_before)
        return error_set(err, ERROR_USER, "the command line has errors");
    int r = load_all(&loading, query->paths, err);

    if (r < 0)
        return r;
    if (loading.count > 0)
        check_selection(&loading);
    selection_check_variants(&loading.loader, problems);
    size_t count = problems->error_count - errors_before;

    if (count > 0)
        return error_set(err, ERROR_TASK, "%zu %s in what was to be loaded%s", count,
                         count == 1 ? "error" : "errors",
                         problems->later_count == 0 ||
                                 (query->selection != NULL && query->selection->skip_later)
                             ? ""
                             : " (--skip-later leaves out tasks that need a later version)");
    if (loading.count == 0)
        return error_set(err, ERROR_USER, "no task found: a task is a YAML file with a task_id");
    hand_over(&loading, ret);
    return 0;
}

size_t task_set_ids(const struct task_set *set)
{
    size_t count = 0;

    for (size_t i = 0; i < set->count; i++)
        count += i == 0 || strcmp(task_id(set->tasks[i - 1]), task_id(set->tasks[i])) != 0;
    return count;
}

void task_set_done(struct task_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        task_free(set->tasks[i]);
    free(set->tasks);
    *set = (struct task_set){0};
}

int task_parse(const struct task_text *text, const struct task_reader *reader,
               const struct task_overrides *overrides, struct task **ret, struct problems *problems,
               struct error **err)
{
    scoped(loader_done) struct loader loader = {0};
    scoped(task_list_done) struct task_list list = {0};
    size_t errors_before = problems->error_count, first = problems->count;
    unsigned line;

    loader_init(&loader, reader, overrides, problems);
    scoped(mem_freep) char *whole = absolute(&loader, text->name);
    scoped(mem_freep) char *dir = path_dir(whole);
    struct origin origin = {.source = "task",
                            .file = text->name,
                            .path = whole,
                            .dir = dir,
                            .text = text->bytes,
                            .length = text->size_bytes};
    static const struct task_selection all = {.include_skipped = true};

    loader.selection = &all;
    if (load_tasks(&loader, &origin, &list, &line, problems) == LOAD_NO_TASK)
        complain_file(problems, PROBLEM_ERROR, text->name, "no task_id in it: not a task");
    problems_sort(problems, first);
    if (problems->error_count > errors_before)
        return error_set(err, ERROR_TASK, "%s: %zu %s", text->name,
                         problems->error_count - errors_before,
                         problems->error_count - errors_before == 1 ? "error" : "errors");
    ASSERT(list.count > 1);
    *ret = take(list.items[1]);
    return 0;
}
