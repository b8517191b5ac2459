/* Errors: who is to blame, and the chain of contexts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/error.h"

static int open_it(struct error **err)
{
    return error_errno(err, ENOENT, "cannot open '%s'", "x");
}

static int load_it(struct error **err)
{
    int r = open_it(err);

    return r < 0 ? error_wrap(err, r, "cannot load %d", 7) : 0;
}

static void a_chain_reads_from_the_outside_in(void **state)
{
    (void)state;
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(load_it(&err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err),
                        "cannot load 7: cannot open 'x': No such file or directory");
    assert_int_equal(error_code_of(err), ERROR_SYSTEM);
    assert_int_equal(error_errno_of(err), ENOENT);
}

static void nobody_has_to_ask_for_the_words(void **state)
{
    (void)state;
    assert_int_equal(load_it(NULL), -ERROR_SYSTEM);
    assert_int_equal(error_set(NULL, ERROR_TASK, "x"), -ERROR_TASK);
    error_free(NULL);
}

static void an_unknown_errno_keeps_its_number(void **state)
{
    (void)state;
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(error_errno(&err, 4000, "odd"), -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "odd: error 4000");
}

static void each_code_has_a_name_and_an_exit_status(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        const char *name;
        int status;
    } cases[] = {
        {ERROR_USER, "user", 2},     {ERROR_TASK, "task", 2},   {ERROR_AGENT, "agent", 1},
        {ERROR_SYSTEM, "system", 3}, {ERROR_LIMIT, "limit", 3}, {ERROR_BUG, "bug", 3},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(error_freep) struct error *err = NULL;

        assert_int_equal(error_set(&err, cases[i].code, "%s", "m"), -(int)cases[i].code);
        assert_int_equal(error_code_of(err), cases[i].code);
        assert_int_equal(error_errno_of(err), 0);
        assert_string_equal(error_code_name(cases[i].code), cases[i].name);
        assert_int_equal(error_exit_status(cases[i].code), cases[i].status);
    }
}

/* True when run() ends its process by abort(). stderr is closed, so that its last words are not
 * taken for ours. */
static bool aborts(void (*run)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)close(STDERR_FILENO);
        struct sigaction action = {.sa_handler = SIG_DFL};

        (void)sigaction(SIGABRT, &action, NULL);
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void set_twice(void)
{
    struct error *err = NULL;
    int first = error_set(&err, ERROR_USER, "one"), second = error_set(&err, ERROR_USER, "two");

    _exit(first == second ? 0 : 1);
}

static void wrap_nothing(void)
{
    struct error *err = NULL;

    _exit(error_wrap(&err, -1, "x") == -1 ? 0 : 1);
}

static void assert_false_thing(void)
{
    ASSERT(getpid() < 0);
}

static void do_nothing(void)
{
}

static void a_programmer_s_error_ends_the_program(void **state)
{
    (void)state;
    assert_false(aborts(do_nothing));
    assert_true(aborts(set_twice));
    assert_true(aborts(wrap_nothing));
    assert_true(aborts(assert_false_thing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_reads_from_the_outside_in),
        cmocka_unit_test(nobody_has_to_ask_for_the_words),
        cmocka_unit_test(an_unknown_errno_keeps_its_number),
        cmocka_unit_test(each_code_has_a_name_and_an_exit_status),
        cmocka_unit_test(a_programmer_s_error_ends_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
