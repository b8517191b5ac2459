#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evidence/battery.h"

static const char list[] = "a.one\tA\tleaky\tagent\tfast\tread it\n"
                           "i.two\tI\tmutant\tagent\twhole\tleave it\n"
                           "i.two\tI\tmutant\tgrade\twhole\t\n"
                           "k.three\tK\tleaky\tgrade\twhole\tsignal it\n";

static struct battery open_battery(bool fast)
{
    struct battery battery;
    struct error *err = NULL;

    assert_int_equal(battery_open(list, fast, &battery, &err), 0);
    return battery;
}

static void take_lines(struct battery *battery, const char *lines, enum attack_phase phase)
{
    struct error *err = NULL;

    assert_int_equal(battery_take(battery, lines, phase, &err), 0);
}

static void makes_one_row_of_both_phases(void **state)
{
    struct battery battery = open_battery(false);

    (void)state;
    assert_int_equal(battery.count, 3);
    assert_true(battery.rows[1].planting && battery.rows[1].grading);
    assert_string_equal(battery.rows[1].title, "leave it");
    battery_done(&battery);
    battery = open_battery(true);
    assert_int_equal(battery.count, 1);
    battery_done(&battery);
}

static void counts_what_gave_no_verdict_as_an_error(void **state)
{
    struct battery battery = open_battery(false);

    (void)state;
    battery_close(&battery);
    assert_int_equal(battery_count(&battery, ATTACK_ERROR), 3);
    battery_done(&battery);
}

static void takes_the_second_phase_for_the_verdict_of_a_plant(void **state)
{
    struct battery battery = open_battery(false);

    (void)state;
    take_lines(&battery, "a.one\tA\tDENIED\t7\t1\t\ni.two\tI\tPLANTED\t2\t1\t2 links\n",
               PHASE_AGENT);
    take_lines(&battery, "i.two\tI\tDENIED\t3\t1\t\nk.three\tK\tDENIED\t1\t1\t\n", PHASE_GRADE);
    battery_close(&battery);
    assert_int_equal(battery_count(&battery, ATTACK_DENIED), 3);
    assert_int_equal(battery.rows[1].examined, 5);
    battery_done(&battery);
}

static void counts_a_plant_that_nobody_looked_for_as_an_error(void **state)
{
    struct battery battery = open_battery(false);

    (void)state;
    take_lines(&battery, "a.one\tA\tDENIED\t7\t1\t\ni.two\tI\tPLANTED\t2\t1\t\n", PHASE_AGENT);
    battery_close(&battery);
    assert_int_equal(battery.rows[1].verdict, ATTACK_ERROR);
    battery_done(&battery);
}

static void lets_nothing_take_the_place_of_a_find(void **state)
{
    struct battery battery = open_battery(false);

    (void)state;
    battery_note(&battery, "i.two", ATTACK_FOUND, "host bytes");
    take_lines(&battery, "i.two\tI\tDENIED\t3\t1\t\n", PHASE_GRADE);
    battery_close(&battery);
    assert_int_equal(battery.rows[1].verdict, ATTACK_FOUND);
    assert_string_equal(battery.rows[1].detail, "host bytes");
    battery_done(&battery);
}

static void refuses_lines_of_another_form(void **state)
{
    static const char *const lines[] = {
        "nonsense",
        "a.one\tA\tDENIED\t7\t1",              /* a field too few */
        "a.one\tA\tdenied\t7\t1\t",            /* no verdict */
        "a.one\tB\tDENIED\t7\t1\t",            /* another class */
        "a.one\tA\tDENIED\t-7\t1\t",           /* no count */
        "no.such\tA\tDENIED\t7\t1\t",          /* no row */
        "a.one\tA\tDENIED\t7\t1\t\ngarbage\n", /* a good line before it */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct battery battery = open_battery(false);
        struct error *err = NULL;

        assert_true(battery_take(&battery, lines[i], PHASE_AGENT, &err) < 0);
        assert_int_equal(error_code_of(err), ERROR_SYSTEM);
        error_free(err);
        battery_done(&battery);
    }
}

static void has_one_digest_for_the_same_verdicts(void **state)
{
    struct battery one = open_battery(false), two = open_battery(false);

    (void)state;
    take_lines(&one, "a.one\tA\tDENIED\t7\t1\tx\n", PHASE_AGENT);
    take_lines(&two, "a.one\tA\tDENIED\t9\t5\ty\n", PHASE_AGENT);
    struct sha256 first = battery_digest(&one), second = battery_digest(&two);

    assert_true(sha256_equal(&first, &second));
    battery_note(&two, "a.one", ATTACK_FOUND, "z");
    second = battery_digest(&two);
    assert_false(sha256_equal(&first, &second));
    battery_done(&one);
    battery_done(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_one_row_of_both_phases),
        cmocka_unit_test(counts_what_gave_no_verdict_as_an_error),
        cmocka_unit_test(takes_the_second_phase_for_the_verdict_of_a_plant),
        cmocka_unit_test(counts_a_plant_that_nobody_looked_for_as_an_error),
        cmocka_unit_test(lets_nothing_take_the_place_of_a_find),
        cmocka_unit_test(refuses_lines_of_another_form),
        cmocka_unit_test(has_one_digest_for_the_same_verdicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
