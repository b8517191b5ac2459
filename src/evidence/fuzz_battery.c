/*
 * Any bytes as the lines of a cell: accepted xor complained; nothing adds a row, and what was never
 * said stays an error.
 */
#include "base/str.h"
#include "evidence/battery.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char list[] = "a.one\tA\tleaky\tagent\tfast\tread it\n"
                           "i.two\tI\tmutant\tagent\twhole\tleave it\n"
                           "i.two\tI\tmutant\tgrade\twhole\t\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct battery battery;
    struct error *err = NULL;
    char *text = str_ndup((const char *)data, size);

    ASSERT(battery_open(list, false, &battery, NULL) == 0);
    int r = battery_take(&battery, text, PHASE_AGENT, &err);

    ASSERT((r == 0) == (err == NULL));
    battery_close(&battery);
    ASSERT(battery.count == 2);
    ASSERT(battery.rows[1].verdict == ATTACK_ERROR || battery.rows[1].verdict == ATTACK_FOUND);
    for (size_t i = 0; i < battery.count; i++)
        ASSERT(battery.rows[i].verdict != 0 && battery.rows[i].verdict != ATTACK_PLANTED);
    error_free(err);
    free(text);
    battery_done(&battery);
    return 0;
}
