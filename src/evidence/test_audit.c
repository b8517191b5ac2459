/* The audit: an untouched run is intact, and any byte of it that changes is found. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/audit.h"
#include "record/run_dir.h"
#include "record/testing.h"

#define FLIPS 200
#define TRIALS 3

/* --- a run -------------------------------------------------------------------------------------
 */

static void write_text(int dir_fd, const char *name, const char *text)
{
    const struct fs_content content = {text, strlen(text), 0600, FS_NO_SYNC};

    assert_int_equal(fs_write_atomic(dir_fd, name, &content, NULL), 0);
}

static void finish(struct run_dir *run, int dir_fd, const char *id)
{
    json_t *line = json_object();
    char hex[SHA256_HEX_CHARS + 1];
    struct sha256 digest;

    assert_int_equal(trial_record_digest(dir_fd, &digest, NULL), 0);
    sha256_format(&digest, hex);
    json_put_text(line, "event", "finish");
    json_put_text(line, "trial", id);
    json_put_text(line, "status", "SUCCESS");
    json_put_text(line, "record", hex);
    run_dir_journal(run, line);
}

static void add_trial(struct run_dir *run, unsigned replicate, double score)
{
    struct trial_record record = testing_trial();
    scoped(mem_freep) char *path = trial_path("default", "hello", replicate);
    scoped(fd_closep) int dir_fd = -1, grade_fd = -1;

    free(record.trial_id);
    record.trial_id = str_format("default/hello/%02u", replicate);
    record.replicate = replicate;
    record.score = score;
    json_put_int(record.cell.used, "cpu_ms", 3);
    assert_int_equal(run_dir_open_trial(run, path, true, &dir_fd, NULL), 0);
    write_text(dir_fd, "events.jsonl", "{\"schema\": \"closedbook/events/1\", \"cut\": false}\n");
    write_text(dir_fd, "agent.stdout", "hello\n");
    assert_int_equal(fs_open_dir(dir_fd, "grade", 0700, &grade_fd, NULL), 0);
    write_text(grade_fd, "01.out", "1 of 1\n");
    assert_int_equal(trial_record_save(dir_fd, &record, NULL), 0);
    finish(run, dir_fd, record.trial_id);
    trial_record_done(&record);
}

/* With a key when there is one. score: of its first trial, whose one criterion has 1. */
static char *make_run(const struct signing_key *key, double score)
{
    char *path = testing_directory();
    scoped(json_freep) json_t *plan = json_object();
    const struct run_facts facts = {.run_id = "20261130-abc", .version = "1"};
    scoped(run_dir_closep) struct run_dir *run = NULL;

    json_put_text(plan, "schema", PLAN_SCHEMA);
    assert_int_equal(run_dir_create(path, &facts, plan, &run, NULL), 0);
    assert_int_equal(run_dir_promise(run, NULL), 0);
    for (unsigned i = 0; i < TRIALS; i++)
        add_trial(run, i, i == 0 ? score : 1);
    assert_int_equal(run_dir_seal(run, key, NULL), 0);
    return path;
}

static size_t audit_of(const char *path, const struct signing_public *key)
{
    scoped(audit_done) struct audit audit = {0};
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    scoped(error_freep) struct error *err = NULL;

    /* What cannot be read at all is found, too. */
    return audit_run(fd, key, &audit, &err) < 0 ? 1 : audit.count;
}

/* --- every file of it --------------------------------------------------------------------------
 */

struct files {
    struct str_list paths;
    const char *below;
};

static int list(void *context, int dir_fd, const char *name, struct error **err)
{
    struct files *files = context;
    scoped(mem_freep) char *path = path_join(files->below, name);
    scoped(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *above = files->below;
    struct stat status;

    if (fd < 0) {
        if (fstatat(dir_fd, name, &status, 0) == 0 && status.st_size > 0)
            str_list_add(&files->paths, path);
        return 0;
    }
    files->below = path;
    int r = fs_each(fd, list, files, err);

    files->below = above;
    return r;
}

static void list_all(const char *path, struct files *files)
{
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    files->below = path;
    assert_int_equal(fs_each(fd, list, files, NULL), 0);
    str_list_sort(&files->paths);
}

/* --- tests -------------------------------------------------------------------------------------
 */

static void an_untouched_run_is_intact(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = make_run(NULL, 1);
    scoped(audit_done) struct audit audit = {0};
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(audit_run(fd, NULL, &audit, NULL), 0);
    for (size_t i = 0; i < audit.count; i++)
        print_error("%s: %s\n", audit.items[i].place, audit.items[i].what);
    assert_int_equal(audit.count, 0);
    assert_int_equal(audit.trials, TRIALS);
    assert_int_equal(audit.lines, TRIALS + 2);
    assert_int_equal(audit.files, 3 + TRIALS * 4);
    assert_true(audit.has_seal);
    assert_false(audit.has_signature);
    testing_remove(path);
}

/* Bytes and bits by a fixed stream of numbers. */
static void each_changed_byte_is_found(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = make_run(NULL, 1);
    struct files files = {0};
    uint64_t number = 7;

    list_all(path, &files);
    assert_true(files.paths.count >= 3 + TRIALS * 4);
    for (size_t i = 0; i < FLIPS; i++) {
        const char *name = files.paths.items[i % files.paths.count];
        scoped(fd_closep) int fd = open(name, O_RDWR | O_CLOEXEC);
        struct stat status;
        char was, now;

        assert_int_equal(fstat(fd, &status), 0);
        number = number * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        off_t at = (off_t)((number >> 20) % (uint64_t)status.st_size);

        assert_int_equal(pread(fd, &was, 1, at), 1);
        now = (char)(was ^ (1 << (number >> 17) % 8));
        assert_int_equal(pwrite(fd, &now, 1, at), 1);
        if (audit_of(path, NULL) == 0)
            fail_msg("'%s', byte %jd: %d for %d is not found", name, (intmax_t)at, now, was);
        assert_int_equal(pwrite(fd, &was, 1, at), 1);
    }
    assert_int_equal(audit_of(path, NULL), 0);
    str_list_done(&files.paths);
    testing_remove(path);
}

static void what_was_added_or_taken_away_is_found(void **state)
{
    (void)state;
    static const char *const gone[] = {"plan.json", "trials/default/hello/01/trial.json",
                                       "trials/default/hello/02/grade/01.out"};

    for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
        scoped(mem_freep) char *path = make_run(NULL, 1);
        scoped(mem_freep) char *whole = path_join(path, gone[i]);

        assert_int_equal(unlink(whole), 0);
        assert_true(audit_of(path, NULL) > 0);
        testing_remove(path);
    }
    scoped(mem_freep) char *path = make_run(NULL, 1);
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    write_text(fd, "trials/default/hello/00/more", "x");
    assert_true(audit_of(path, NULL) > 0);
    assert_int_equal(unlinkat(fd, "trials/default/hello/00/more", 0), 0);
    write_text(fd, "stranger", "x");
    assert_true(audit_of(path, NULL) > 0);
    assert_int_equal(unlinkat(fd, "stranger", 0), 0);
    assert_int_equal(fs_remove_tree(fd, "trials/default/hello/01", NULL), 0);
    assert_true(audit_of(path, NULL) > 0);
    testing_remove(path);
}

/* The chain is whole, and the end of it is missing. */
static void a_cut_journal_is_found(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = make_run(NULL, 1);
    scoped(mem_freep) char *journal = path_join(path, "journal.jsonl");
    scoped(buf_done) struct buf text = {0};

    assert_int_equal(fs_read_file(AT_FDCWD, journal, 1 << 20, &text, NULL), 0);
    const char *last = memrchr(text.data, '\n', text.size_bytes - 1);

    assert_int_equal(truncate(journal, last + 1 - text.data), 0);
    assert_true(audit_of(path, NULL) > 0);
    testing_remove(path);
}

static void replace_in_journal(const char *path, const char *old, const char *new)
{
    scoped(mem_freep) char *journal = path_join(path, "journal.jsonl");
    scoped(buf_done) struct buf text = {0};
    scoped(buf_done) struct buf changed = {0};

    assert_int_equal(fs_read_file(AT_FDCWD, journal, 1 << 20, &text, NULL), 0);
    const char *at = strstr(text.data, old);

    assert_non_null(at);
    buf_append(&changed, text.data, (size_t)(at - text.data));
    buf_text_append(&changed, new);
    buf_text_append(&changed, at + strlen(old));
    write_text(AT_FDCWD, journal, buf_text(&changed));
}

/* The same values in other words, in the one line that no other pins. */
static void another_spelling_of_the_seal_is_found(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = make_run(NULL, 1);

    replace_in_journal(path, "\"event\": \"seal\"", "\"event\":  \"seal\"");
    assert_true(audit_of(path, NULL) > 0);
    testing_remove(path);
}

/* Who changes the plan afterwards, and seals the run again, broke what was promised. */
static void another_plan_than_was_promised_is_found(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = make_run(NULL, 1);
    scoped(mem_freep) char *plan = path_join(path, "plan.json");
    scoped(run_dir_closep) struct run_dir *run = NULL;

    write_text(AT_FDCWD, plan, "{\"schema\": \"" PLAN_SCHEMA "\", \"tasks\": {}}\n");
    assert_int_equal(run_dir_open(path, true, &run, NULL), 0);
    assert_int_equal(run_dir_seal(run, NULL, NULL), 0);
    run_dir_closep(&run);
    assert_int_equal(audit_of(path, NULL), 1);
    testing_remove(path);
}

static void a_score_that_its_criteria_do_not_give_is_found(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = make_run(NULL, 0.5);

    assert_true(audit_of(path, NULL) > 0);
    testing_remove(path);
}

/* Who changes a run and seals it again has not the key. */
static void only_the_key_makes_its_signature(void **state)
{
    (void)state;
    scoped(signing_key_freep) struct signing_key *key = NULL, *other = NULL;

    assert_int_equal(signing_key_make(&key, NULL), 0);
    assert_int_equal(signing_key_make(&other, NULL), 0);
    const struct signing_public public = signing_key_public(key);
    scoped(mem_freep) char *path = make_run(key, 1);
    scoped(mem_freep) char *forged = make_run(other, 1);
    scoped(mem_freep) char *unsigned_path = make_run(NULL, 1);

    assert_int_equal(audit_of(path, &public), 0);
    assert_int_equal(audit_of(path, NULL), 0);
    assert_int_equal(audit_of(forged, NULL), 0);
    assert_true(audit_of(forged, &public) > 0);
    assert_true(audit_of(unsigned_path, &public) > 0);
    testing_remove(path);
    testing_remove(forged);
    testing_remove(unsigned_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untouched_run_is_intact),
        cmocka_unit_test(each_changed_byte_is_found),
        cmocka_unit_test(what_was_added_or_taken_away_is_found),
        cmocka_unit_test(a_cut_journal_is_found),
        cmocka_unit_test(another_spelling_of_the_seal_is_found),
        cmocka_unit_test(another_plan_than_was_promised_is_found),
        cmocka_unit_test(a_score_that_its_criteria_do_not_give_is_found),
        cmocka_unit_test(only_the_key_makes_its_signature),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
