#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "collect/manifest.h"

static void add(struct manifest *manifest, const char *path, enum manifest_type type,
                const char *content)
{
    scoped(mem_freep) char *copy = mem_dup(path, strlen(path) + 1);
    scoped(mem_freep) char *target = NULL;
    struct manifest_entry entry = {.path = copy, .type = type, .mode = 0644};

    if (type == MANIFEST_DIR)
        entry.mode = 0755;
    if (type == MANIFEST_LINK) {
        target = mem_dup(content, strlen(content) + 1);
        entry.target = target;
        entry.mode = 0777;
    }
    if (content != NULL) {
        entry.size_bytes = strlen(content);
        entry.digest = sha256_of(content, strlen(content));
    }
    manifest_add(manifest, &entry);
}

static void folders_come_before_their_content_and_their_content_is_one_run(void **state)
{
    (void)state;
    static const char *const sorted[] = {"a", "a/b", "a/b/c", "a/z", "a\x01", "a-b", "b"};
    struct manifest manifest = {0};

    for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
        for (size_t j = 0; j < ARRAY_SIZE(sorted); j++) {
            int order = manifest_path_compare(sorted[i], sorted[j]);

            assert_int_equal(order < 0, i < j);
            assert_int_equal(order > 0, i > j);
        }
    for (size_t i = ARRAY_SIZE(sorted); i-- > 0;)
        add(&manifest, sorted[i], i < 3 && i != 2 ? MANIFEST_DIR : MANIFEST_FILE, "x");
    manifest_sort(&manifest);
    for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
        assert_string_equal(manifest.entries[i].path, sorted[i]);
    assert_non_null(manifest_find(&manifest, "a/z"));
    assert_null(manifest_find(&manifest, "a/y"));
    manifest_done(&manifest);
}

static void sorting_adds_parents_and_keeps_the_last_of_equals(void **state)
{
    (void)state;
    struct manifest manifest = {0};

    add(&manifest, "x/y/z", MANIFEST_FILE, "old");
    add(&manifest, "a", MANIFEST_FILE, "1");
    add(&manifest, "x/y/z", MANIFEST_FILE, "newer");
    manifest_sort(&manifest);
    assert_int_equal(manifest.count, 4);
    assert_int_equal(manifest.bytes, 6);
    assert_string_equal(manifest.entries[1].path, "x");
    assert_string_equal(manifest.entries[2].path, "x/y");
    assert_int_equal(manifest.entries[2].type, MANIFEST_DIR);
    assert_int_equal(manifest.entries[3].size_bytes, 5);
    manifest_done(&manifest);
}

static void lines_are_read_back_as_they_were_written(void **state)
{
    (void)state;
    struct manifest manifest = {0}, again = {0};
    scoped(buf_done) struct buf text = {0}, text_again = {0};

    add(&manifest, "100%\n\"x\\\xff\xc3\xa9", MANIFEST_DIR, NULL);
    add(&manifest, "bidi\u202e", MANIFEST_DIR, NULL);
    add(&manifest, "empty", MANIFEST_FILE, "");
    add(&manifest, "link", MANIFEST_LINK, "../\x7f");
    manifest_sort(&manifest);
    manifest_write(&text, &manifest);
    assert_non_null(strstr(buf_text(&text), "{\"path\":\"100%25%0A\\\"x\\\\%FF\xc3\xa9\","
                                            "\"type\":\"dir\",\"mode\":\"0755\"}\n"));
    assert_non_null(strstr(buf_text(&text), "{\"path\":\"bidi%E2%80%AE\","));
    assert_int_equal(manifest_read("m", buf_text(&text), text.size_bytes, &again, NULL), 0);
    manifest_write(&text_again, &again);
    assert_string_equal(buf_text(&text_again), buf_text(&text));
    struct sha256 root = manifest_root(&manifest), root_again = manifest_root(&again);

    assert_true(sha256_equal(&root, &root_again));
    manifest_done(&manifest);
    manifest_done(&again);
}

static void only_our_own_lines_are_read(void **state)
{
    (void)state;
#define FILE_LINE(path)                                                                            \
    "{\"path\":\"" path "\",\"type\":\"file\",\"mode\":\"0644\",\"size\":0,\"sha256\":\""          \
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}\n"
    static const char *const bad[] = {
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":\"0755\"}",
        "{\"path\": \"a\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":\"755\"}\n",
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":\"4755\"}\n",
        "{\"path\":\"../a\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        "{\"path\":\"/a\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        "{\"path\":\"a%\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        "{\"path\":\"a%00\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        "{\"path\":\"%61\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        "{\"path\":\"\\u0061\",\"type\":\"dir\",\"mode\":\"0755\"}\n",
        FILE_LINE("b") FILE_LINE("a"),
        FILE_LINE("a") FILE_LINE("a"),
        FILE_LINE("a/b"),
        FILE_LINE("a") FILE_LINE("a/b"),
        "\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct manifest manifest;
        struct error *err = NULL;

        assert_true(manifest_read("m", bad[i], strlen(bad[i]), &manifest, &err) < 0);
        assert_int_equal(error_code_of(err), ERROR_SYSTEM);
        error_free(err);
    }
}

static void the_root_tells_every_difference(void **state)
{
    (void)state;
    struct sha256 roots[5];

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        struct manifest manifest = {0};

        add(&manifest, "a/b", MANIFEST_FILE, i == 1 ? "changed" : "same");
        add(&manifest, i == 2 ? "a/renamed" : "a/c", MANIFEST_FILE, "");
        if (i == 3)
            add(&manifest, "a/d", MANIFEST_DIR, NULL);
        manifest_sort(&manifest);
        if (i == 4)
            manifest.entries[0].mode = 0700;
        roots[i] = manifest_root(&manifest);
        manifest_done(&manifest);
    }
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
        for (size_t j = 0; j < i; j++)
            assert_false(sha256_equal(&roots[i], &roots[j]));
}

static void an_upper_tree_hides_what_it_covers(void **state)
{
    (void)state;
    struct manifest lower = {0}, upper = {0}, both = {0};
    static const char *const wanted[] = {"dir",        "dir/new",   "dir/old",
                                         "now-a-file", "now-a-dir", "now-a-dir/x"};

    add(&lower, "dir/old", MANIFEST_FILE, "1");
    add(&lower, "now-a-file/gone", MANIFEST_FILE, "2");
    add(&lower, "now-a-dir", MANIFEST_FILE, "3");
    add(&upper, "dir/new", MANIFEST_FILE, "4");
    add(&upper, "now-a-file", MANIFEST_FILE, "5");
    add(&upper, "now-a-dir/x", MANIFEST_FILE, "6");
    manifest_sort(&lower);
    manifest_sort(&upper);
    manifest_compose(&lower, &upper, &both);
    assert_int_equal(both.count, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        assert_non_null(manifest_find(&both, wanted[i]));
    (void)manifest_root(&both); /* asserts that every parent is there */
    manifest_done(&lower);
    manifest_done(&upper);
    manifest_done(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_come_before_their_content_and_their_content_is_one_run),
        cmocka_unit_test(sorting_adds_parents_and_keeps_the_last_of_equals),
        cmocka_unit_test(lines_are_read_back_as_they_were_written),
        cmocka_unit_test(only_our_own_lines_are_read),
        cmocka_unit_test(the_root_tells_every_difference),
        cmocka_unit_test(an_upper_tree_hides_what_it_covers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
