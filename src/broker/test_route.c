/* Routes and keys: what is taken, what is refused, and that secrets go where they are meant to. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/keys.h"
#include "broker/route.h"

static char *add(struct routes *routes, const char *text)
{
    scoped(json_freep) json_t *list = NULL;
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(json_parse("routes", text, strlen(text), &list, NULL), 0);
    return routes_add(routes, list, &err) < 0 ? str_dup(error_message(err)) : str_dup("");
}

static void a_route_says_format_address_and_key(void **state)
{
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"[{\"name\":\"a\",\"api\":\"anthropic\"}]", ""},
        {"[{\"name\":\"a\",\"api\":\"openai-chat\",\"base_url\":\"http://127.0.0.1:80/v1/\"}]", ""},
        {"[{\"name\":\"a\",\"api\":\"openai-chat\",\"key\":null}]", ""},
        {"[{\"name\":\"a b\",\"api\":\"anthropic\"}]", "routes: a name"},
        {"[{\"name\":\"a\",\"api\":\"x\"}]", "routes.a.api: 'x'"},
        {"[{\"name\":\"a\"}]", "routes.a.api: nothing"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"base_url\":\"ftp://x\"}]", "routes.a.base_url"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"base_uri\":\"http://x\"}]",
         "routes.a.base_uri: unknown key"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"key\":\"sk-abcdef\"}]",
         "routes.a.key: the name of"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"base_url\":\"http://u@x\"}]", "routes.a.base_url"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"base_url\":\"http://x/?k\"}]", "routes.a.base_url"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"base_url\":\"http:///x\"}]", "routes.a.base_url"},
        {"[{\"name\":\"a\",\"api\":\"gemini\",\"key\":\"sk-1 2\"}]", "routes.a.key"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(routes_done) struct routes routes = {0};
        scoped(mem_freep) char *said = add(&routes, cases[i].text);

        if (cases[i].complaint[0] == '\0')
            assert_string_equal(said, "");
        else
            assert_non_null(strstr(said, cases[i].complaint));
        assert_int_equal(routes.count, cases[i].complaint[0] == '\0');
    }
}

static void routes_of_the_operator_come_before_the_vendors(void **state)
{
    scoped(routes_done) struct routes routes = {0};
    scoped(mem_freep) char *said =
        add(&routes, "[{\"name\":\"anthropic\",\"api\":\"anthropic\",\"base_url\":\"http://h\"}]");

    (void)state;
    assert_string_equal(said, "");
    routes_add_defaults(&routes);
    assert_int_equal(routes.count, MODEL_API_COUNT);
    assert_string_equal(routes_find(&routes, "anthropic")->base_url, "http://h");
    assert_string_equal(routes_find(&routes, "anthropic")->key, "ANTHROPIC_API_KEY");
    assert_string_equal(routes_find(&routes, "gemini")->key, "GEMINI_API_KEY");
    assert_null(routes_find(&routes, "nobody"));
    scoped(json_freep) json_t *again = routes_to_json(&routes);
    scoped(routes_done) struct routes copy = {0};

    assert_int_equal(routes_add(&copy, again, NULL), 0);
    assert_int_equal(copy.count, routes.count);
}

static void keys_are_read_from_lines(void **state)
{
    struct keys keys = {0};

    (void)state;
    assert_int_equal(keys_parse(&keys, KEYS_ENV, ".env",
                                "# a comment\nexport A_KEY='one'\nB_KEY=two \r\nnothing here\n"
                                "C_KEY=\nA_KEY=late\nPATH=/a b\n",
                                NULL),
                     0);
    assert_string_equal(keys_get(&keys, "A_KEY"), "one");
    assert_string_equal(keys_get(&keys, "B_KEY"), "two");
    assert_null(keys_get(&keys, "C_KEY"));
    assert_null(keys_get(&keys, "PATH"));
    assert_int_equal(
        keys_parse(&keys, KEYS_YAML, "keys.yaml", "B_KEY: later\nD_KEY: \"four\"\n\n# x\n", NULL),
        0);
    assert_string_equal(keys_get(&keys, "B_KEY"), "two");
    assert_string_equal(keys_get(&keys, "D_KEY"), "four");
    keys_done(&keys);
    assert_int_equal(keys.count, 0);
}

static void a_wrong_line_is_told_without_what_it_holds(void **state)
{
    scoped(error_freep) struct error *err = NULL;
    struct keys keys = {0};

    (void)state;
    assert_int_equal(
        keys_parse(&keys, KEYS_YAML, "keys.yaml", "A_KEY: one\nB_KEY sk-secret\n", &err),
        -ERROR_USER);
    assert_non_null(strstr(error_message(err), "keys.yaml:2: "));
    assert_null(strstr(error_message(err), "sk-secret"));
    keys_done(&keys);
}

static int read_with_mode(mode_t mode, struct keys *keys, struct error **err)
{
    static const char text[] = "A_KEY: one\n";
    char path[] = "/tmp/closedbook-keys-XXXXXX";
    scoped(fd_closep) int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    return keys_read(keys, KEYS_YAML, "keys.yaml", fd, err);
}

static void a_file_of_keys_that_others_may_read_is_an_error(void **state)
{
    scoped(error_freep) struct error *err = NULL;
    struct keys keys = {0};

    (void)state;
    assert_int_equal(read_with_mode(0640, &keys, &err), -ERROR_USER);
    assert_non_null(strstr(error_message(err), "0640"));
    assert_int_equal(keys.count, 0);
    assert_int_equal(read_with_mode(0600, &keys, NULL), 0);
    assert_string_equal(keys_get(&keys, "A_KEY"), "one");
    keys_done(&keys);
    scoped(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_int_equal(keys_read(&keys, KEYS_YAML, "keys.yaml", null, NULL), 0);
    assert_int_equal(keys.count, 0);
}

static void keys_leave_the_environment_for_a_file_of_memory(void **state)
{
    static const char *const names[] = {"CB_TEST_KEY", "CB_ABSENT_KEY", NULL};
    static char entry[] = "CB_TEST_KEY=sk-1234";
    scoped(fd_closep) int fd = -1;
    struct keys keys = {0};

    (void)state;
    assert_int_equal(putenv(entry), 0);
    assert_int_equal(keys_take_env(names, &fd, NULL), 0);
    assert_null(getenv("CB_TEST_KEY"));
    assert_string_equal(entry, "CB_TEST_KEY="); /* the bytes themselves are gone */
    assert_int_equal(keys_read(&keys, KEYS_ENV, "the environment", fd, NULL), 0);
    assert_int_equal(keys.count, 1);
    assert_string_equal(keys_get(&keys, "CB_TEST_KEY"), "sk-1234");
    keys_done(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_says_format_address_and_key),
        cmocka_unit_test(routes_of_the_operator_come_before_the_vendors),
        cmocka_unit_test(keys_are_read_from_lines),
        cmocka_unit_test(a_wrong_line_is_told_without_what_it_holds),
        cmocka_unit_test(a_file_of_keys_that_others_may_read_is_an_error),
        cmocka_unit_test(keys_leave_the_environment_for_a_file_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
