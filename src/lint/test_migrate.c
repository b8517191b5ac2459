/* Legacy fields go, and nothing else moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "lint/migrate.h"

/* The migrated text; a refusal as "refused: ...", nothing to do as "same". Owned. */
static char *migrated(const char *text)
{
    scoped(migration_done) struct migration migration = {0};
    struct task_text source = {"t", text, strlen(text)};
    scoped(error_freep) struct error *error = NULL;

    if (migrate_text(&source, "reference", &migration, &error) < 0)
        return str_format("error: %s", error_message(error));
    if (migration.refused.count > 0)
        return str_format("refused: %s", migration.refused.items[0]);
    return migration.changes.count == 0 ? str_dup("same") : buf_take(&migration.text);
}

static void rewrites_in_place(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"task_id: t\n", "same"},
        {"task_id: t\nmax_iterations: 3\ntags: [a]\n", "task_id: t\ntags: [a]\n"},
        {"task_id: t\nmax_iterations: 3 # why\ntags: [a]\n",
         "task_id: t\n# max_iterations: 3 # why\ntags: [a]\n"},
        {"\xef\xbb\xbfmax_iterations: 3\r\ntask_id: t # \xc3\xa9\r\n",
         "\xef\xbb\xbftask_id: t # \xc3\xa9\r\n"},
        {"task_id: t\nllm_reviewer:\n  prompt: |\n    a\n\n    b\n# more\ntags: [a]\n",
         "task_id: t\n# llm_reviewer:\n#   prompt: |\n#     a\n\n#     b\n# more\ntags: [a]\n"},
        {"task_id: t\nreference: {file: a/x.md} # c\n",
         "task_id: t\nreference: {directory: reference} # c\n"},
        {"task_id: \xc3\xa9\nreference:\n  # prose\n  file: \"x.md\"\npost_run:\n  - command: cat "
         "\"$TASK_DIR/x.md\" ${TASK_DIR}/x.md $TASK_DIR/x.mdx $TASK_DIR/x.md.bak\n",
         "task_id: \xc3\xa9\nreference:\n  # prose\n  directory: reference\npost_run:\n  - "
         "command: "
         "cat \"$TASK_DIR/reference/x.md\" ${TASK_DIR}/reference/x.md $TASK_DIR/x.mdx "
         "$TASK_DIR/x.md.bak\n"},
        {"task_id: t\nsuccess_criteria:\n  - type: command_not_executed # no\n    description: d\n",
         "task_id: t\nsuccess_criteria:\n  - type: command_executed # no\n    min_count: 0\n    "
         "max_count: 0\n    description: d\n"},
        {"task_id: t\nsuccess_criteria: [{type: 'command_not_executed', description: d}]\n",
         "task_id: t\nsuccess_criteria: [{type: command_executed, min_count: 0, max_count: 0, "
         "description: d}]\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *after = migrated(cases[i].before);

        assert_string_equal(after, cases[i].after);
        if (strcmp(after, "same") != 0) {
            scoped(mem_freep) char *again = migrated(after);

            assert_string_equal(again, "same");
        }
    }
}

static void refuses_what_it_cannot_do(void **state)
{
    (void)state;
    static const struct {
        const char *before, *refusal;
    } cases[] = {
        {"task_id: [\n", "error: t:2:1: did not find expected node content (while parsing a flow "
                         "node that starts at 2:1)"},
        {"{task_id: t, max_iterations: 3}\n",
         "refused: 1: the field is not on a line of its own; take it out by hand"},
        {"task_id: t\nreference: {file: ../x.md}\n",
         "refused: 2: reference.file is not a plain path below the task's folder"},
        {"task_id: t\nreference: {code: x}\n",
         "refused: 2: reference.code: write the code into a file of a folder by hand"},
        {"x: &a {file: f}\ntask_id: t\nreference: *a\n",
         "refused: 1: reference.file by way of an alias, or beside a directory"},
        {"max_iterations: &n 3\ntask_id: t\nrun_limits: {max_turns: *n}\n",
         "refused: the result would not be the same task; rewrite it by hand"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *refusal = migrated(cases[i].before);

        assert_string_equal(refusal, cases[i].refusal);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites_in_place),
        cmocka_unit_test(refuses_what_it_cannot_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
