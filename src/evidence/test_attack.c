#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "evidence/attack.h"

#define SECRET "SNTL-00ff-0123456789abcdef0123456789abcdef"

static struct targets targets;

static int make_targets(void **state)
{
    struct sha256 digest = sha256_of(SECRET, strlen(SECRET));
    char hex[SHA256_HEX_CHARS + 1];

    (void)state;
    sha256_format(&digest, hex);
    char *text = str_format("host hint SNTL-00ff-\nhost digest %s\nhost tier A\nhost tcp 80\n"
                            "cell tcp 81\n",
                            hex);
    bool ok = targets_parse(text, &targets);

    free(text);
    return ok ? 0 : 1;
}

static void reads_targets_in_order(void **state)
{
    size_t index = 0;

    (void)state;
    assert_string_equal(targets.tier, "A");
    assert_string_equal(targets_next(&targets, NULL, "tcp", &index)->value, "80");
    assert_string_equal(targets_next(&targets, NULL, "tcp", &index)->where, "cell");
    assert_null(targets_next(&targets, NULL, "tcp", &index));
    index = 0;
    assert_string_equal(targets_next(&targets, "cell", "tcp", &index)->value, "81");
    assert_int_equal(targets_number(&targets, "tcp", 7), 80);
    assert_int_equal(targets_number(&targets, "udp", 7), 7);
}

static void refuses_targets_of_another_form(void **state)
{
    static const char *const texts[] = {"", "host", "host hint", "host digest xyz\nhost hint a",
                                        "much-too-long-place hint a"};
    struct targets parsed;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        char *text = str_dup(texts[i]);

        assert_false(targets_parse(text, &parsed));
        free(text);
    }
}

static void finds_the_secret_and_no_other(void **state)
{
    static const char other[] = "SNTL-00ff-0123456789abcdef0123456789abcdee";

    (void)state;
    assert_true(secret_in(&targets, "x" SECRET "y", strlen(SECRET) + 2));
    assert_true(secret_in(&targets, "SNTL-00ff-" SECRET, strlen(SECRET) + 10));
    assert_false(secret_in(&targets, other, strlen(other)));
    assert_false(secret_in(&targets, SECRET, strlen(SECRET) - 1));
    assert_false(secret_in(&targets, "", 0));
}

static void finds_the_secret_in_other_forms(void **state)
{
    static const char *const forms[] = {
        "534e544c2d303066662d3031323334353637383961626364656630313233343536373839616263646566",
        "U05UTC0wMGZmLTAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm",
        /* two bytes before it */
        "eHhTTlRMLTAwZmYtMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        "fedcba9876543210fedcba9876543210-ff00-LTNS",
        "FAGY-00ss-0123456789nopqrs0123456789nopqrs",
    };
    char wide[2 * sizeof(SECRET)];
    size_t used = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        assert_false(secret_in(&targets, forms[i], strlen(forms[i])));
        assert_true(secret_in_encoded(&targets, forms[i], strlen(forms[i])));
    }
    for (size_t i = 0; i < strlen(SECRET); i++) {
        wide[used++] = SECRET[i];
        wide[used++] = '\0';
    }
    assert_true(secret_in_encoded(&targets, wide, used));
    assert_false(secret_in_encoded(&targets, "nothing of it", 13));
}

static void lets_a_find_outweigh_what_is_said_later(void **state)
{
    struct attack_context context = {.targets = &targets, .result.verdict = ATTACK_DENIED};

    (void)state;
    attack_posture(&context, "surface");
    assert_int_equal(context.result.verdict, ATTACK_POSTURE);
    attack_found(&context, "first");
    attack_found(&context, "second");
    attack_posture(&context, "surface");
    attack_failed(&context, "broken");
    assert_int_equal(context.result.verdict, ATTACK_FOUND);
    assert_string_equal(context.result.detail, "first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_targets_in_order),
        cmocka_unit_test(refuses_targets_of_another_form),
        cmocka_unit_test(finds_the_secret_and_no_other),
        cmocka_unit_test(finds_the_secret_in_other_forms),
        cmocka_unit_test(lets_a_find_outweigh_what_is_said_later),
    };

    return cmocka_run_group_tests(tests, make_targets, NULL);
}
