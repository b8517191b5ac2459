#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "record/record.h"
#include "record/testing.h"

static char *line_of(const json_t *json)
{
    struct buf buf = {0};

    json_write_line(&buf, json);
    return buf_take(&buf);
}

/* The value of a dotted path in the record's JSON, as text. */
static char *shown(const struct trial_record *record, const char *path)
{
    scoped(json_freep) json_t *json = trial_record_to_json(record);
    scoped(mem_freep) char *copy = str_dup(path);
    json_t *value = json;
    char *rest = copy;

    for (const char *key = strsep(&rest, "."); key != NULL; key = strsep(&rest, "."))
        value = json_object_get(value, key);
    return value == NULL ? str_dup("absent") : line_of(value);
}

static void names_every_status_and_reads_it_back(void **state)
{
    (void)state;
    for (int i = 0; i < STATUS_COUNT; i++) {
        enum trial_status status = STATUS_COUNT;

        assert_true(trial_status_parse(trial_status_name((enum trial_status)i), &status));
        assert_int_equal(status, i);
    }

    enum trial_status status = STATUS_SKIPPED;

    assert_false(trial_status_parse("success", &status));
    assert_int_equal(status, STATUS_SKIPPED);
}

static void writes_the_keys_of_the_format_in_their_order(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "schema",  "run_id",    "trial_id",    "task_id",   "variant_id",      "replicate",
        "status",  "passed",    "score",       "integrity", "error",           "error_code",
        "agent",   "usage",     "criteria",    "cell",      "events",          "staging",
        "view",    "artifacts", "timing_ms",   "steps",     "evidence",        "early_stop",
        "dialog",  "mocks",     "graded_with", "lineage",   "started_unix_ms", "ended_unix_ms",
        "digests",
    };
    struct trial_record record = testing_trial();
    scoped(json_freep) json_t *json = trial_record_to_json(&record);
    size_t i = 0;
    const char *key;
    json_t *value;

    json_object_foreach (json, key, value) {
        assert_true(i < ARRAY_SIZE(keys));
        assert_string_equal(key, keys[i++]);
    }
    assert_int_equal(i, ARRAY_SIZE(keys));
    trial_record_done(&record);
}

static void reads_back_what_it_wrote(void **state)
{
    (void)state;
    struct trial_record record = testing_trial();
    struct trial_record again;
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *first = trial_record_to_json(&record);

    assert_int_equal(trial_record_from_json("t", first, &again, &err), 0);

    scoped(json_freep) json_t *second = trial_record_to_json(&again);

    assert_true(json_equal(first, second));
    trial_record_done(&record);
    trial_record_done(&again);
}

static void keeps_passed_and_score_null_where_nothing_was_decided(void **state)
{
    (void)state;
    static const struct {
        enum trial_status status;
        enum trial_integrity integrity;
        const char *passed, *score;
    } cases[] = {
        {STATUS_SUCCESS, INTEGRITY_NOT_EVALUATED, "true", "0.5"},
        {STATUS_FAILURE, INTEGRITY_CLEAN, "true", "0.5"},
        {STATUS_ERROR, INTEGRITY_NOT_EVALUATED, "null", "null"},
        {STATUS_NOT_GRADED, INTEGRITY_NOT_EVALUATED, "null", "null"},
        {STATUS_SKIPPED, INTEGRITY_NOT_EVALUATED, "null", "null"},
        {STATUS_SUCCESS, INTEGRITY_COMPROMISED, "false", "0.5"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct trial_record record = testing_trial();

        record.score = 0.5;
        record.status = cases[i].status;
        record.integrity = cases[i].integrity;

        scoped(mem_freep) char *passed = shown(&record, "passed");
        scoped(mem_freep) char *score = shown(&record, "score");

        assert_string_equal(passed, cases[i].passed);
        assert_string_equal(score, cases[i].score);
        trial_record_done(&record);
    }
}

static void says_that_integrity_was_not_evaluated(void **state)
{
    (void)state;
    struct trial_record record = testing_trial();
    scoped(mem_freep) char *unknown = shown(&record, "integrity");

    assert_string_equal(unknown, "{\"verdict\": null, \"reasons\": [\"not evaluated\"]}");
    record.integrity = INTEGRITY_UNPROTECTED;
    str_list_add(&record.integrity_reasons, "driver tempdir");

    scoped(mem_freep) char *unprotected = shown(&record, "integrity");

    assert_string_equal(unprotected,
                        "{\"verdict\": \"UNPROTECTED\", \"reasons\": [\"driver tempdir\"]}");
    trial_record_done(&record);
}

static void writes_none_as_null_and_never_a_number_that_is_none(void **state)
{
    (void)state;
    struct trial_record record;

    trial_record_init(&record);
    record.timing_ms.total = (double)NAN;
    record.timing_ms.agent = 36.353046;
    record.view.files = UINT64_MAX;

    static const struct {
        const char *path, *text;
    } cases[] = {
        {"run_id", "null"},
        {"agent.exit_code", "null"},
        {"agent.signal", "null"},
        {"timing_ms.total", "null"},
        {"usage", "{}"},
        {"artifacts.refused", "[]"},
        {"view.layers", "null"},
        {"status", "\"ERROR\""},
        {"started_unix_ms", "null"},
        {"view.files", "9223372036854775807"},
        {"timing_ms.agent", "36.353"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text = shown(&record, cases[i].path);

        assert_string_equal(text, cases[i].text);
    }
    trial_record_done(&record);
}

static void replaces_bytes_that_are_no_text(void **state)
{
    (void)state;
    struct trial_record record = testing_trial();

    free(record.criteria[0].details);
    record.criteria[0].details = str_dup("a\xff\xfe z");

    scoped(json_freep) json_t *json = trial_record_to_json(&record);
    const json_t *criterion = json_array_get(json_get_array(json, "criteria"), 0);

    assert_string_equal(json_get_text(criterion, "details"), "a\xef\xbf\xbd\xef\xbf\xbd z");
    trial_record_done(&record);
}

static void reads_the_example_of_the_format(void **state)
{
    (void)state;
    scoped(json_freep) json_t *json = NULL;
    scoped(error_freep) struct error *err = NULL;
    struct trial_record record;

    assert_int_equal(
        json_load(AT_FDCWD, "docs/formats/examples/trial.json", TRIAL_BYTES_MAX, &json, &err), 0);
    assert_int_equal(trial_record_from_json("example", json, &record, &err), 0);

    scoped(json_freep) json_t *again = trial_record_to_json(&record);

    assert_true(json_equal(json, again));
    trial_record_done(&record);
}

/* The complaint about a record in which path was given value; "" when there is none. */
static char *complaint(const char *path, const char *value)
{
    struct trial_record record = testing_trial();
    struct trial_record again;
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *json = trial_record_to_json(&record);
    scoped(mem_freep) char *copy = str_dup(path);
    char *dot = strrchr(copy, '.');
    json_t *object = json;

    if (dot != NULL) {
        *dot = '\0';
        object = json_object_get(json, copy);
    }

    const char *key = dot == NULL ? copy : dot + 1;

    if (value == NULL)
        assert_int_equal(json_object_del(object, key), 0);
    else
        json_put(object, key, json_loads(value, JSON_DECODE_ANY, NULL));
    trial_record_done(&record);
    if (trial_record_from_json("t", json, &again, &err) < 0)
        return str_dup(error_message(err));
    trial_record_done(&again);
    return str_dup("");
}

static void names_the_key_that_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *complaint;
    } cases[] = {
        {"unknown", "[1]", ""},
        {"lineage", NULL, ""},
        {"agent", NULL, ""},
        {"schema", "\"closedbook/trial/2\"", "t: schema: 'closedbook/trial/1' expected"},
        {"run_id", NULL, "t: run_id: a string expected"},
        {"task_id", "null", "t: task_id: a string expected"},
        {"status", "\"PASS\"", "t: status: a status expected"},
        {"passed", "1", "t: passed: true or false expected"},
        {"status", "\"ERROR\"", "t: passed: null beside this status expected"},
        {"replicate", "-1", "t: replicate: a number from 0 expected"},
        {"replicate", "4294967296", "t: replicate: a number from 0 expected"},
        {"agent", "5", "t: agent: an object expected"},
        {"agent.turns", "\"3\"", "t: agent.turns: a number from 0 expected"},
        {"agent.exit_code", "3000000000", "t: agent.exit_code: a whole number expected"},
        {"agent.output_cut", "0", "t: agent.output_cut: true or false expected"},
        {"cell.namespaces", "[1]", "t: cell.namespaces: a list of strings expected"},
        {"cell.limits", "[]", "t: cell.limits: an object expected"},
        {"integrity", "null", "t: integrity: {verdict, reasons} expected"},
        {"integrity.verdict", "\"OK\"", "t: integrity: an integrity verdict or null expected"},
        {"criteria", "{}", "t: criteria: a list of criteria expected"},
        {"criteria", "[7]", "t: criteria[0]: an object expected"},
        {"criteria", "[{\"passed\":\"no\"}]", "t: criteria[0].passed: true or false expected"},
        {"artifacts.refused", "{}", "t: artifacts.refused: a list expected"},
        {"started_unix_ms", "253402300800000", "t: started_unix_ms: a number from 0 expected"},
        {"timing_ms.total", "\"1\"", "t: timing_ms.total: a number expected"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text = complaint(cases[i].path, cases[i].value);

        assert_string_equal(text, cases[i].complaint);
    }
}

/* --- on disk -------------------------------------------------------------------------------- */

static int open_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void put_file(int dir_fd, const char *path, const char *text)
{
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(fs_write_atomic(dir_fd, path,
                                     &(struct fs_content){text, strlen(text), 0600, FS_NO_SYNC},
                                     &err),
                     0);
}

static void lists_the_digest_of_every_other_file(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(fd_closep) int fd = open_directory(path);
    scoped(error_freep) struct error *err = NULL;
    struct trial_record record = testing_trial();
    struct trial_record loaded;
    struct stat st;

    assert_int_equal(mkdirat(fd, "grade", 0700), 0);
    put_file(fd, "events.jsonl", "");
    put_file(fd, "grade/1.out", "abc");
    put_file(fd, ".tmp-0011", "half");
    assert_int_equal(trial_record_save(fd, &record, &err), 0);
    assert_int_equal(trial_record_save(fd, &record, &err), 0);
    assert_int_equal(fstatat(fd, "trial.json", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(trial_record_load(fd, "t", &loaded, &err), 0);
    assert_int_equal(json_object_size(loaded.digests), 2);
    assert_string_equal(json_get_text(loaded.digests, "grade/1.out"),
                        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    trial_record_done(&record);
    trial_record_done(&loaded);
    testing_remove(path);
}

static void finds_a_file_that_changed_after_the_record(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text; /* NULL: the file is removed */
        const char *bad;
    } cases[] = {
        {"grade/1.out", "abc", NULL},
        {"grade/1.out", "abd", "grade/1.out"},
        {"events.jsonl", NULL, "events.jsonl"},
        {"other", "new files are not the record's", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *path = testing_directory();
        scoped(fd_closep) int fd = open_directory(path);
        scoped(error_freep) struct error *err = NULL;
        scoped(mem_freep) char *bad = NULL;
        struct trial_record record = testing_trial();

        assert_int_equal(mkdirat(fd, "grade", 0700), 0);
        put_file(fd, "events.jsonl", "x");
        put_file(fd, "grade/1.out", "abc");
        assert_int_equal(trial_record_save(fd, &record, &err), 0);
        if (cases[i].text == NULL)
            assert_int_equal(unlinkat(fd, cases[i].path, 0), 0);
        else
            put_file(fd, cases[i].path, cases[i].text);
        assert_int_equal(trial_record_verify(fd, &record, &bad, &err), 0);
        assert_true(str_equal(bad, cases[i].bad));
        trial_record_done(&record);
        testing_remove(path);
    }
}

static void never_follows_a_digest_out_of_the_directory(void **state)
{
    (void)state;
    static const char *const paths[] = {"../secret", "/etc/passwd", "link", "trial.json/x", ""};
    scoped(mem_freep) char *path = testing_directory();
    scoped(fd_closep) int fd = open_directory(path);

    assert_int_equal(symlinkat("/etc/passwd", fd, "link"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        scoped(error_freep) struct error *err = NULL;
        scoped(mem_freep) char *bad = NULL;
        struct trial_record record = testing_trial();

        json_put(record.digests, paths[i], json_sprintf("sha256:%064d", 0));
        assert_int_equal(trial_record_verify(fd, &record, &bad, &err), 0);
        assert_string_equal(bad, paths[i]);
        trial_record_done(&record);
    }
    testing_remove(path);
}

static void refuses_to_record_what_is_no_file(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(fd_closep) int fd = open_directory(path);
    scoped(error_freep) struct error *err = NULL;
    struct trial_record record = testing_trial();

    assert_int_equal(mkfifoat(fd, "pipe", 0600), 0);
    assert_int_equal(trial_record_save(fd, &record, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "cannot save the record of trial 'default/hello/00': "
                                            "'pipe': neither a file nor a directory");
    trial_record_done(&record);
    testing_remove(path);
}

static void says_that_a_damaged_record_is_damaged(void **state)
{
    (void)state;
    scoped(mem_freep) char *path = testing_directory();
    scoped(fd_closep) int fd = open_directory(path);
    scoped(error_freep) struct error *err = NULL;
    scoped(error_freep) struct error *absent = NULL;
    struct trial_record record;

    assert_int_equal(trial_record_load(fd, "t", &record, &absent), -ERROR_SYSTEM);
    assert_int_equal(error_errno_of(absent), ENOENT);
    put_file(fd, "trial.json", "{\"schema\": \"closedbo");
    assert_int_equal(trial_record_load(fd, "t", &record, &err), -ERROR_SYSTEM);
    assert_int_equal(error_errno_of(err), 0);
    assert_true(str_starts(error_message(err), "'t/trial.json' is damaged: "));
    testing_remove(path);
}

static int only_the_record(void *context, int dir_fd, const char *name, struct error **err)
{
    (void)context;
    (void)dir_fd;
    if (strcmp(name, "trial.json") == 0)
        return 0;
    return error_set(err, ERROR_BUG, "'%s' was left", name);
}

/* In a child on a full disk: the save fails, says why, and the old record stands. */
static int save_on_full_disk(const char *path)
{
    scoped(fd_closep) int fd = open_directory(path);
    scoped(error_freep) struct error *err = NULL;
    struct trial_record record = testing_trial();
    struct trial_record loaded;
    struct buf details = {0};

    if (trial_record_save(fd, &record, &err) < 0)
        return 10;
    while (details.size_bytes < 100000)
        buf_text_append(&details, "0123456789");
    record.criteria[0].details = buf_take(&details);
    if (trial_record_save(fd, &record, &err) != -ERROR_SYSTEM)
        return 11;
    if (error_errno_of(err) != ENOSPC)
        return 12;
    if (trial_record_load(fd, "t", &loaded, NULL) < 0 || loaded.criteria[0].details != NULL)
        return 13;
    /* Nothing of the failed write is left beside it. */
    return fs_each(fd, only_the_record, NULL, NULL) < 0 ? 14 : 0;
}

static void leaves_the_old_record_when_the_disk_is_full(void **state)
{
    (void)state;
    int r = testing_on_small_disk(save_on_full_disk);

    if (r == TESTING_NO_MOUNTS)
        skip();
    assert_int_equal(r, 0);
}

static void puts_a_trial_where_the_names_say(void **state)
{
    (void)state;
    static const struct {
        const char *variant, *task;
        unsigned replicate;
        const char *path;
    } cases[] = {
        {"default", "hello", 0, "trials/default/hello/00"},
        {"v-2", "suite/row.1", 7, "trials/v-2/suite@row.1/07"},
        {"default", "a/b/c", 123, "trials/default/a@b@c/123"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *path =
            trial_path(cases[i].variant, cases[i].task, cases[i].replicate);

        assert_string_equal(path, cases[i].path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_every_status_and_reads_it_back),
        cmocka_unit_test(writes_the_keys_of_the_format_in_their_order),
        cmocka_unit_test(reads_back_what_it_wrote),
        cmocka_unit_test(keeps_passed_and_score_null_where_nothing_was_decided),
        cmocka_unit_test(says_that_integrity_was_not_evaluated),
        cmocka_unit_test(writes_none_as_null_and_never_a_number_that_is_none),
        cmocka_unit_test(replaces_bytes_that_are_no_text),
        cmocka_unit_test(reads_the_example_of_the_format),
        cmocka_unit_test(names_the_key_that_is_wrong),
        cmocka_unit_test(lists_the_digest_of_every_other_file),
        cmocka_unit_test(finds_a_file_that_changed_after_the_record),
        cmocka_unit_test(never_follows_a_digest_out_of_the_directory),
        cmocka_unit_test(refuses_to_record_what_is_no_file),
        cmocka_unit_test(says_that_a_damaged_record_is_damaged),
        cmocka_unit_test(leaves_the_old_record_when_the_disk_is_full),
        cmocka_unit_test(puts_a_trial_where_the_names_say),
    };

    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
