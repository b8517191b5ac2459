/* Sources of type repo: what is accepted, what is complained about. */
#include "task/test_fixture.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define REPO(more) "{type: repo, url: tpl, commit: " COMMIT more "}"
#define SOURCES(list) WHOLE "sandbox:\n  template_sources: [" list "]\n"

static void says_what_is_no_repository_to_take(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint; /* a part of it; NULL: none */
    } cases[] = {
        {SOURCES(REPO("")), NULL},
        {SOURCES(REPO(", history: none")), NULL},
        {SOURCES(REPO(", history: ancestors")), NULL},
        {SOURCES("{type: repo, url: tpl, commit: " COMMIT "89abcdef0123456789abcdef}"), NULL},
        {SOURCES("{type: repo, url: $GIVEN/../tpl, commit: " COMMIT "}"), NULL},
        {SOURCES(REPO(", history: all")),
         "history: one of 'base', 'ancestors', 'none' expected, found the text 'all'"},
        {SOURCES("{type: repo, url: tpl}"), "commit: required: the whole hash of a commit"},
        {SOURCES("{type: repo, url: tpl, commit: HEAD}"), "expected, found the text 'HEAD'"},
        {SOURCES("{type: repo, url: tpl, commit: 0123abc}"), "expected, found the text '0123abc'"},
        {SOURCES("{type: repo, url: nowhere, commit: " COMMIT "}"),
         "/nowhere' cannot be opened: No such file or directory"},
        {SOURCES("{type: repo, url: prompt.txt, commit: " COMMIT "}"), "is not a folder"},
        {SOURCES("{type: repo, url: 'file://tpl', commit: " COMMIT "}"),
         "sandbox.template_sources[0].url: file:///PATH expected, found 'file://tpl'"},
        {SOURCES("{type: repo, url: 'https://x/y', commit: " COMMIT "}"),
         "'https://x/y' is a URL of the network, which is not in this version"},
        {SOURCES("{type: repo, url: 'git@x:y/z', commit: " COMMIT "}"),
         "'git@x:y/z' is an address of another machine, which is not in this version"},
        {SOURCES("{type: template_dir, path: tpl}, " REPO("")),
         "sandbox.template_sources[1]: a repo is the first source, and there is at most one"},
        {SOURCES(REPO("") ", " REPO("")),
         "sandbox.template_sources[1]: a repo is the first source, and there is at most one"},
        {SOURCES(REPO("")) "  driver: tempdir\n", "the driver tempdir has no cell to run git in"},
        /* Of one commit the content is compared; a history holds what nobody compares. */
        {SOURCES("{type: repo, url: ., commit: " COMMIT "}"), NULL},
        {SOURCES("{type: repo, url: ., commit: " COMMIT ", history: ancestors}"),
         "holds the task file"},
        {WHOLE "sandbox: {ignore_patterns: ['!.git']}\n",
         "name the repository as a source of type repo, which makes it anew"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        static const struct task_overrides none;
        scoped(mem_freep) char *found = NULL;
        scoped(task_freep) struct task *unused_ok task = parse(cases[i].text, &none, &found);

        if (cases[i].complaint == NULL ? found[0] != '\0'
                                       : strstr(found, cases[i].complaint) == NULL)
            fail_msg("%s\nfound: %s", cases[i].text, found);
    }
}

static void holds_what_the_source_says(void **state)
{
    static const struct task_overrides none;
    scoped(mem_freep) char *found = NULL;
    scoped(mem_freep) char *text =
        str_format(WHOLE "sandbox:\n  ignore_patterns: ['!.g*']\n  template_sources:\n"
                         "    - {type: repo, url: 'file://%s/tpl', commit: " COMMIT "}\n",
                   folder);
    scoped(task_freep) struct task *task = parse(text, &none, &found);
    scoped(mem_freep) char *tpl = path_join(folder, "tpl");
    const struct task_public *open = NULL;
    const struct task_private *secret = NULL;

    (void)state;
    assert_string_equal(found, "");
    task_split(task, &open, &secret);
    assert_int_equal(open->source_count, 1);
    assert_int_equal(open->sources[0].kind, SOURCE_REPO);
    assert_string_equal(open->sources[0].path, tpl);
    assert_string_equal(open->sources[0].commit, COMMIT);
    assert_int_equal(open->sources[0].history, HISTORY_BASE);
    /* The last that matches decides. */
    assert_string_equal(open->ignore_patterns.items[open->ignore_patterns.count - 1], ".git");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_no_repository_to_take),
        cmocka_unit_test(holds_what_the_source_says),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
