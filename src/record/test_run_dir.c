#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "record/run_dir.h"
#include "record/testing.h"

static json_t *sample_plan(void)
{
    json_t *plan = json_object();

    json_put_text(plan, "schema", PLAN_SCHEMA);
    json_put(plan, "trials", json_array());
    return plan;
}

static int create(const char *path, struct run_dir **ret, struct error **err)
{
    const struct run_facts facts = {.run_id = "r1", .version = "0.1.0", .command_line = "run x"};
    scoped(json_freep) json_t *plan = sample_plan();

    return run_dir_create(path, &facts, plan, ret, err);
}

static struct run_dir *created(const char *path)
{
    struct run_dir *run = NULL;
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(create(path, &run, &err), 0);
    return run;
}

static mode_t mode_of(const char *directory, const char *name)
{
    scoped(mem_freep) char *path = path_join(directory, name);
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void append_to(const char *directory, const char *name, const char *text)
{
    scoped(mem_freep) char *path = path_join(directory, name);
    scoped(fd_closep) int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void makes_a_private_directory_that_opens_again(void **state)
{
    (void)state;
    scoped(mem_freep) char *base = testing_directory();
    scoped(mem_freep) char *path = path_join(base, "runs/r1");
    struct run_dir *run = created(path);
    scoped(error_freep) struct error *err = NULL;
    static const char *const files[] = {"run.json", "plan.json", "journal.jsonl", "lock"};

    assert_int_equal(mode_of(path, "."), 0700);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        assert_int_equal(mode_of(path, files[i]), 0600);
    assert_string_equal(run_dir_id(run), "r1");
    run_dir_close(run);

    assert_int_equal(run_dir_open(path, true, &run, &err), 0);
    assert_string_equal(run_dir_id(run), "r1");
    assert_string_equal(run_dir_path(run), path);
    assert_string_equal(json_get_text(run_dir_run(run), "schema"), RUN_SCHEMA);
    assert_string_equal(json_get_text(run_dir_plan(run), "schema"), PLAN_SCHEMA);
    run_dir_close(run);
    testing_remove(base);
}

static void closes_a_directory_to_others_that_was_open_to_them(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();

    assert_int_equal(chmod(path, 0755), 0);
    run_dir_close(created(path));
    assert_int_equal(mode_of(path, "."), 0700);
    testing_remove(path);
}

static void refuses_a_directory_that_holds_something(void **state)
{
    (void)state;
    static const struct {
        const char *file, *complaint;
    } cases[] = {
        {"run.json", "run directory '%s' holds a run already: continue it with --resume, or choose "
                     "another --run-dir"},
        {"thesis.tex",
         "run directory '%s' is not empty and holds no run: choose another --run-dir"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *path = testing_directory();
        scoped(error_freep) struct error *err = NULL;
        struct run_dir *run = NULL;
        char message[512];

        append_to(path, cases[i].file, "");
        assert_int_equal(create(path, &run, &err), -ERROR_USER);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(message, sizeof(message), cases[i].complaint, path); /* long enough */
#pragma GCC diagnostic pop
        assert_string_equal(error_message(err), message);
        testing_remove(path);
    }
}

static void names_the_process_that_holds_the_run(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(error_freep) struct error *err = NULL;
    struct run_dir *run = created(path);
    struct run_dir *second = NULL;
    scoped(mem_freep) char *message = str_format(
        "run directory '%s' is in use by another closedbook (pid %jd)", path, (intmax_t)getpid());

    assert_int_equal(run_dir_open(path, true, &second, &err), -ERROR_USER);
    assert_string_equal(error_message(err), message);
    assert_int_equal(run_dir_open(path, false, &second, NULL), 0);
    run_dir_close(second);
    run_dir_close(run);
    assert_int_equal(run_dir_open(path, true, &second, NULL), 0);
    run_dir_close(second);
    testing_remove(path);
}

static void says_that_a_directory_is_no_run(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(mem_freep) char *absent = path_join(path, "absent");
    scoped(error_freep) struct error *err = NULL;
    scoped(error_freep) struct error *empty_err = NULL;
    struct run_dir *run = NULL;

    assert_int_equal(run_dir_open(absent, true, &run, &err), -ERROR_USER);
    assert_true(str_ends(error_message(err), "is no run directory: it does not exist"));
    assert_int_equal(run_dir_open(path, true, &run, &empty_err), -ERROR_USER);
    assert_true(str_ends(error_message(empty_err), "is no run directory: it has no run.json"));
    /* Looking left nothing behind. */
    assert_int_equal(rmdir(path), 0);
}

/* --- the journal ---------------------------------------------------------------------------- */

static void note(struct run_dir *run, const char *event)
{
    json_t *line = json_object();

    json_put_text(line, "event", event);
    run_dir_journal(run, line);
}

static size_t journal_lines(const struct run_dir *run)
{
    scoped(json_freep) json_t *lines = NULL;
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(run_dir_journal_read(run, &lines, &err), 0);
    return json_array_size(lines);
}

static void writes_journal_lines_when_they_are_committed(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(run_dir_closep) struct run_dir *run = created(path);
    scoped(json_freep) json_t *lines = NULL;

    assert_int_equal(run_dir_commit(run, NULL), 0);
    note(run, "start");
    note(run, "finish");
    assert_int_equal(journal_lines(run), 0);
    assert_int_equal(run_dir_commit(run, NULL), 0);
    assert_int_equal(run_dir_commit(run, NULL), 0);
    assert_int_equal(run_dir_journal_read(run, &lines, NULL), 0);
    assert_int_equal(json_array_size(lines), 2);
    assert_string_equal(json_get_text(json_array_get(lines, 1), "event"), "finish");
    assert_true(json_get_int(json_array_get(lines, 1), "t", 0) > 0);
    testing_remove(path);
}

static void ignores_a_torn_last_line_and_writes_after_it(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    struct run_dir *run = created(path);

    note(run, "one");
    assert_int_equal(run_dir_commit(run, NULL), 0);
    run_dir_close(run);
    append_to(path, "journal.jsonl", "{\"t\":1,\"event\":\"to");

    assert_int_equal(run_dir_open(path, false, &run, NULL), 0);
    assert_int_equal(journal_lines(run), 1);
    run_dir_close(run);

    assert_int_equal(run_dir_open(path, true, &run, NULL), 0);
    note(run, "two");
    assert_int_equal(run_dir_commit(run, NULL), 0);
    assert_int_equal(journal_lines(run), 2);
    run_dir_close(run);
    testing_remove(path);
}

static void names_the_journal_line_that_is_damaged(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(run_dir_closep) struct run_dir *run = created(path);
    scoped(error_freep) struct error *err = NULL;
    json_t *lines = NULL;

    append_to(path, "journal.jsonl", "{}\n{\"t\":\n{}\n");
    assert_int_equal(run_dir_journal_read(run, &lines, &err), -ERROR_SYSTEM);
    assert_true(str_ends(error_message(err), "/journal.jsonl' is damaged in line 2"));
    testing_remove(path);
}

/* In a child: the journal keeps whole groups only, and a commit can be tried again. */
static int commit_on_full_disk(const char *path)
{
    scoped(mem_freep) char *directory = path_join(path, "run");
    scoped(mem_freep) char *ballast = path_join(path, "ballast");
    scoped(error_freep) struct error *err = NULL;
    struct run_dir *run = NULL;

    if (create(directory, &run, &err) < 0)
        return 10;
    note(run, "first");
    if (run_dir_commit(run, &err) < 0)
        return 11;

    scoped(fd_closep) int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    while (write(fd, ballast, 1) == 1)
        continue;
    for (int i = 0; i < 200; i++)
        note(run, "a line that is long enough to fill the page that the first one began");
    if (run_dir_commit(run, &err) != -ERROR_SYSTEM || error_errno_of(err) != ENOSPC)
        return 12;
    if (journal_lines(run) != 1)
        return 13;
    if (ftruncate(fd, 0) < 0 || run_dir_commit(run, NULL) < 0 || journal_lines(run) != 201)
        return 14;
    return 0;
}

static void keeps_the_journal_whole_when_the_disk_is_full(void **state)
{
    (void)state;
    int r = testing_on_small_disk(commit_on_full_disk);

    if (r == TESTING_NO_MOUNTS)
        skip();
    assert_int_equal(r, 0);
}

static int create_where_nothing_can_be_written(const char *path)
{
    scoped(mem_freep) char *below = path_join(path, "run");
    scoped(error_freep) struct error *err = NULL;
    struct run_dir *run = NULL;

    if (create(below, &run, &err) != -ERROR_SYSTEM || error_errno_of(err) != EACCES)
        return 10;
    if (strstr(error_message(err), below) == NULL)
        return 11;
    return 0;
}

static void names_a_directory_that_cannot_be_written(void **state)
{
    (void)state;
    int r = testing_on_read_only(create_where_nothing_can_be_written);

    if (r == TESTING_NO_MOUNTS)
        skip();
    assert_int_equal(r, 0);
}

/* --- trials --------------------------------------------------------------------------------- */

static int trial_fd(struct run_dir *run, const char *path, bool fresh)
{
    scoped(error_freep) struct error *err = NULL;
    int fd = -1;

    assert_int_equal(run_dir_open_trial(run, path, fresh, &fd, &err), 0);
    return fd;
}

static void save_trial(struct run_dir *run, const char *task, unsigned replicate)
{
    scoped(mem_freep) char *path = trial_path("default", task, replicate);
    scoped(fd_closep) int fd = trial_fd(run, path, true);
    struct trial_record record = testing_trial();

    free(record.task_id);
    record.task_id = str_dup(task);
    record.replicate = replicate;
    assert_int_equal(
        fs_write_atomic(fd, "events.jsonl", &(struct fs_content){"e", 1, 0600, FS_NO_SYNC}, NULL),
        0);
    assert_int_equal(trial_record_save(fd, &record, NULL), 0);
    trial_record_done(&record);
}

static void lists_finished_trials_in_order_and_counts_the_rest(void **state)
{
    (void)state;
    static const char *const order[] = {
        "trials/default/a/00",   "trials/default/a/02",     "trials/default/a/100",
        "trials/default/a-b/00", "trials/default/a@row/00",
    };
    scoped(mem_freep) char *path = testing_directory();
    scoped(run_dir_closep) struct run_dir *run = created(path);
    scoped(error_freep) struct error *err = NULL;
    struct run_trials trials;

    save_trial(run, "a", 100);
    save_trial(run, "a/row", 0);
    save_trial(run, "a-b", 0);
    save_trial(run, "a", 2);
    save_trial(run, "a", 0);
    save_trial(run, "tampered", 0);
    append_to(path, "trials/default/tampered/00/events.jsonl", "x");
    (void)close(trial_fd(run, "trials/default/begun/00", false)); /* it shall only exist */
    append_to(path, "trials/default/begun/00/trial.json", "{\"schema\"");

    assert_int_equal(run_dir_trials(run, true, &trials, &err), 0);
    assert_int_equal(trials.count, ARRAY_SIZE(order));
    assert_int_equal(trials.unfinished, 2);
    for (size_t i = 0; i < trials.count; i++)
        assert_string_equal(trials.paths[i], order[i]);
    run_trials_done(&trials);
    assert_int_equal(run_dir_trials(run, false, &trials, &err), 0);
    assert_int_equal(trials.count, ARRAY_SIZE(order) + 1);
    run_trials_done(&trials);
    testing_remove(path);
}

static void finds_no_trials_in_a_run_that_has_none(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(run_dir_closep) struct run_dir *run = created(path);
    struct run_trials trials;

    assert_int_equal(run_dir_trials(run, true, &trials, NULL), 0);
    assert_int_equal(trials.count + trials.unfinished, 0);
    run_trials_done(&trials);
    testing_remove(path);
}

static void removes_what_an_unfinished_trial_left(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(run_dir_closep) struct run_dir *run = created(path);
    scoped(fd_closep) int first = trial_fd(run, "trials/default/a/00", true);

    assert_int_equal(mkdirat(first, "grade", 0700), 0);
    append_to(path, "trials/default/a/00/grade/1.out", "x");

    scoped(fd_closep) int kept = trial_fd(run, "trials/default/a/00", false);

    assert_int_equal(faccessat(kept, "grade/1.out", F_OK, 0), 0);

    scoped(fd_closep) int fresh = trial_fd(run, "trials/default/a/00", true);

    assert_int_equal(faccessat(fresh, "grade", F_OK, 0), -1);
    assert_int_equal(mode_of(path, "trials"), 0700);
    assert_int_equal(mode_of(path, "trials/default/a/00"), 0700);
    testing_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_a_private_directory_that_opens_again),
        cmocka_unit_test(closes_a_directory_to_others_that_was_open_to_them),
        cmocka_unit_test(refuses_a_directory_that_holds_something),
        cmocka_unit_test(names_the_process_that_holds_the_run),
        cmocka_unit_test(says_that_a_directory_is_no_run),
        cmocka_unit_test(writes_journal_lines_when_they_are_committed),
        cmocka_unit_test(ignores_a_torn_last_line_and_writes_after_it),
        cmocka_unit_test(names_the_journal_line_that_is_damaged),
        cmocka_unit_test(keeps_the_journal_whole_when_the_disk_is_full),
        cmocka_unit_test(names_a_directory_that_cannot_be_written),
        cmocka_unit_test(lists_finished_trials_in_order_and_counts_the_rest),
        cmocka_unit_test(finds_no_trials_in_a_run_that_has_none),
        cmocka_unit_test(removes_what_an_unfinished_trial_left),
    };

    return cmocka_run_group_tests_name("run_dir", tests, NULL, NULL);
}
