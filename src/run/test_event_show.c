/* What run --stream shows of an event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "run/event_show.h"

static void a_call_is_one_line_with_its_trial_first(void **state)
{
    scoped(json_freep) json_t *input = json_pack("{s:s}", "command", "ls\n\033[31m");
    struct event event = {
        .t_ms = 1234, .kind = EVENT_TOOL_CALL, .tool = (char[]){"Bash"}, .input = input};
    scoped(buf_done) struct buf line = {0};

    (void)state;
    event_show_line("default/t/00", &event, &line);
    assert_non_null(strstr(line.data, "[default/t/00] 1.234s tool_call Bash {"));
    assert_null(strchr(line.data, '\033'));
    assert_ptr_equal(strchr(line.data, '\n'), line.data + line.size_bytes - 1);
}

static void what_an_agent_says_cannot_act_on_the_terminal(void **state)
{
    scoped(json_freep) json_t *output = json_string("a\033]0;title\007b\r\nforged line");
    struct event event = {.kind = EVENT_TEXT, .output = output};
    scoped(buf_done) struct buf line = {0};

    (void)state;
    event_show_line("t\n", &event, &line);
    assert_null(strpbrk(line.data, "\033\007\r"));
    assert_ptr_equal(strchr(line.data, '\n'), line.data + line.size_bytes - 1);
}

static void a_long_text_is_cut(void **state)
{
    scoped(mem_freep) char *text = mem_new(5001, 1);
    struct event event = {
        .kind = EVENT_TOOL_RESULT, .has_exit_code = true, .exit_code = 3, .is_error = true};
    scoped(buf_done) struct buf line = {0};

    (void)state;
    memset(text, 'a', 5000);
    scoped(json_freep) json_t *output = json_string(text);

    event.output = output;
    event_show_line("t", &event, &line);
    assert_true(line.size_bytes < EVENT_SHOW_BYTES_MAX + 100);
    assert_non_null(strstr(line.data, "aaa... (exit 3) (error)\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_one_line_with_its_trial_first),
        cmocka_unit_test(what_an_agent_says_cannot_act_on_the_terminal),
        cmocka_unit_test(a_long_text_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
