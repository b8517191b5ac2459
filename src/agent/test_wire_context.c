/* What stood in a model's context: who said it, in all four formats, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/wire_context.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"

static int note(void *context, const struct wire_text *text, struct error **err)
{
    struct buf *told = context;

    (void)err;
    buf_format(told, "%llu%s: %.*s", (unsigned long long)text->seq, text->by_model ? " model" : "",
               (int)text->size, text->text);
    return 0;
}

static void add_request(struct buf *file, int seq, const char *body)
{
    buf_format(file, "{\"seq\": %d, \"t_ms\": 1, \"kind\": \"request\", \"body\": %s}\n", seq,
               body);
}

static int read_file(const struct buf *file, struct buf *told, struct error **err)
{
    scoped(fd_closep) int fd = -1;

    assert_int_equal(fs_memfd("wire", buf_text(file), file->size_bytes, &fd, NULL), 0);
    return wire_context_each(fd, note, told, err);
}

static void who_said_what_is_known_in_each_format(void **state)
{
    (void)state;
    static const struct {
        const char *body, *told;
    } cases[] = {
        {"{\"system\": \"you are\", \"messages\": [{\"role\": \"user\", \"content\": \"do it\"}, "
         "{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \"well\"}, "
         "{\"type\": "
         "\"tool_use\", \"id\": \"a\", \"name\": \"Bash\", \"input\": {\"command\": \"cat f\"}}]}, "
         "{\"role\": "
         "\"user\", \"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"a\", \"content\": "
         "\"out\"}]}]}",
         "3: do it\n3 model: well\ncat f\n3: out\n"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"do it\"}, {\"role\": \"assistant\", "
         "\"content\": null, \"tool_calls\": [{\"id\": \"a\", \"type\": \"function\", "
         "\"function\": {\"name\": "
         "\"sh\", \"arguments\": \"{}x\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"a\", "
         "\"content\": "
         "\"out\"}]}",
         "3: do it\n3 model: {}x\n3: a\nout\n"},
        {"{\"instructions\": \"you are\", \"input\": [{\"type\": \"message\", \"role\": \"user\", "
         "\"content\": [{\"type\": \"input_text\", \"text\": \"do it\"}]}, {\"type\": "
         "\"function_call\", "
         "\"call_id\": \"a\", \"name\": \"sh\", \"arguments\": \"cat\"}, {\"type\": "
         "\"function_call_output\", \"call_id\": \"a\", \"output\": \"out\"}]}",
         "3: do it\n3 model: cat\n3: out\n"},
        {"{\"contents\": [{\"role\": \"user\", \"parts\": [{\"text\": \"do it\"}]}, {\"role\": "
         "\"model\", "
         "\"parts\": [{\"functionCall\": {\"name\": \"sh\", \"args\": {\"command\": \"cat\"}}}]}, "
         "{\"role\": "
         "\"user\", \"parts\": [{\"functionResponse\": {\"name\": \"sh\", \"response\": "
         "{\"output\": "
         "\"out\"}}}]}]}",
         "3: do it\n3 model: cat\n3: out\n"},
        {"{\"input\": \"do it\"}", "3: do it\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf file = {0};
        scoped(buf_done) struct buf told = {0};

        add_request(&file, 3, cases[i].body);
        assert_int_equal(read_file(&file, &told, NULL), 0);
        assert_string_equal(buf_text(&told), cases[i].told);
    }
}

/* Whoever says it later as another's word is told again. */
static void each_item_is_told_once(void **state)
{
    (void)state;
    scoped(buf_done) struct buf file = {0};
    scoped(buf_done) struct buf told = {0};

    add_request(&file, 1, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}");
    buf_text_append(&file, "{\"seq\": 2, \"t_ms\": 1, \"kind\": \"response\", \"body\": \"b\"}\n");
    add_request(
        &file, 3,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
        "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"b\"}]}");
    assert_int_equal(read_file(&file, &told, NULL), 0);
    assert_string_equal(buf_text(&told), "1: a\n3 model: b\n3: b\n");
}

static void a_torn_file_is_an_error(void **state)
{
    (void)state;
    scoped(buf_done) struct buf file = {0};
    scoped(buf_done) struct buf told = {0};

    buf_text_append(&file, "{\"seq\": 2, \"kind\": \"request\", \"body\"");
    assert_int_equal(read_file(&file, &told, NULL), -ERROR_SYSTEM);
    buf_char(&file, '\n');
    assert_true(read_file(&file, &told, NULL) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_said_what_is_known_in_each_format),
        cmocka_unit_test(each_item_is_told_once),
        cmocka_unit_test(a_torn_file_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
