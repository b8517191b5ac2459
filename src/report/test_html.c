#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "report/html.h"
#include "report/samples.h"

/* Nothing of a trial is markup, and the page allows its own style and script only. */
static void a_page_runs_nothing_but_its_own(void **state)
{
    (void)state;
    static const char evil[] = "evil<script>alert(1)</script><img src=x onerror=alert(1)>\" '&";
    scoped(run_trials_done) struct run_trials trials = samples_hostile(evil);
    scoped(buf_done) struct buf page = {0};

    report_html(&page, &trials, &(struct html_run){evil, evil, evil, evil});
    assert_null(strstr(page.data, "<script>alert"));
    assert_null(strstr(page.data, "<img"));
    assert_non_null(strstr(page.data, "evil&lt;script&gt;alert(1)&lt;/script&gt;"));
    /* An attribute cannot be left by a quote of the text. */
    assert_null(strstr(page.data, "onerror=alert(1)>\" "));

    const char *policy = strstr(page.data, "content=\"default-src 'none'; style-src 'sha256-");
    char *begin = strstr(page.data, "<script>");

    assert_non_null(policy);
    assert_non_null(begin);

    char *end = strstr(begin, "</script>");
    struct sha256 digest = sha256_of(begin + 8, (size_t)(end - begin - 8));
    scoped(buf_done) struct buf wanted = {0};

    buf_base64(&wanted, digest.bytes, SHA256_BYTES);

    scoped(mem_freep) char *allowed =
        str_format("script-src 'sha256-%s'; base-uri 'none'", wanted.data);

    assert_non_null(strstr(policy, allowed));
}

static void a_page_tells_why(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(buf_done) struct buf page = {0};
    static const char *const told[] = {
        "25.0 %</b>1 of 4 passed",
        "1</b>COMPROMISED",
        "1</b>unfinished",
        "cannot start the grading cell: Operation not permitted",
        "FAILED test 20",
        "closedbook cell runs/1/trials/default/hidden-tests/00 --criterion 2",
        "<details class=\"trial\" id=\"t3\" data-look=\"bad\">",
    };

    report_html(&page, &trials, &(struct html_run){.run_id = "r", .run_path = "runs/1"});
    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        if (strstr(page.data, told[i]) == NULL)
            fail_msg("the page does not say %s", told[i]);
    }
}

static void a_text_of_csv_is_no_formula(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = samples_hostile("=1+1,\"x\"");
    scoped(buf_done) struct buf text = {0};

    report_csv(&text, &trials);
    assert_non_null(strstr(text.data, "\r\n\"'=1+1,\"\"x\"\"\","));
    assert_null(strstr(text.data, ",=1"));
    assert_null(strstr(text.data, "\"=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_runs_nothing_but_its_own),
        cmocka_unit_test(a_page_tells_why),
        cmocka_unit_test(a_text_of_csv_is_no_formula),
    };

    return cmocka_run_group_tests_name("html", tests, NULL, NULL);
}
