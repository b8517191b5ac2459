#pragma once
/*
 * test_fixture: a folder with what tasks of the tests name, and a task from text. For tests of
 * task/.
 */

#include "task/internal.h"
#include "task/test_support.h"

#define HEAD "task_id: t\ndescription: d\n"
#define PROMPT "initial_prompt: p\n"
#define NOP "agent: {type: nop}\n"
#define CRITERIA "success_criteria: [{type: file_exists, description: d, path: a}]\n"
#define WHOLE HEAD PROMPT NOP CRITERIA

static char *folder; /* with fixtures that tasks below name */

static char *environment[] = {NULL /* HOME */, (char[]){"GIVEN=value"}, (char[]){"EMPTY="},
                              (char[]){"OPENAI_API_KEY=sk"}, NULL};

static int make_folder(void **state)
{
    (void)state;
    folder = test_folder();
    test_write(folder, "tpl/f", "x");
    test_write(folder, "ref/solution", "x");
    test_write(folder, "in/data", "x");
    test_write(folder, "prompt.txt", "do it\n");
    test_write(folder, "empty.txt", "");
    test_write(folder, "latin.txt", "\xe4\n");
    test_write(folder, "agent.sh", "#!/bin/sh\n");
    environment[0] = str_format("HOME=%s/tpl", folder);
    scoped(mem_freep) char *empty = path_join(folder, "empty");

    return fs_mkdirs(AT_FDCWD, empty, 0755, NULL);
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    free(environment[0]);
    return 0;
}

/* The task of a text, NULL when there were errors; complaints owned by the caller. */
static struct task *parse(const char *text, const struct task_overrides *overrides,
                          char **ret_complaints)
{
    scoped(mem_freep) char *name = path_join(folder, "t.yaml");
    scoped(problems_done) struct problems problems = {0};
    scoped(error_freep) struct error *err = NULL;
    struct test_reader reader = {0};
    struct task_reader by = {test_open, &reader};
    struct task_overrides here = *overrides;
    struct task *task = NULL;

    if (here.environment == NULL)
        here.environment = environment;
    struct task_text source = {name, text, strlen(text)};
    int r = task_parse(&source, &by, &here, &task, &problems, &err);

    assert_int_equal(r == 0, problems.error_count == 0);
    assert_int_equal(r == 0, task != NULL);
    assert_int_equal(r == 0, err == NULL);
    *ret_complaints = test_complaints(&problems);
    return task;
}
