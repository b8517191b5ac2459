#pragma once
/*
 * battery: what the attacks said, row by row, and what it comes to.
 *
 * The rows come from `closedbook-probe list`; the lines of a cell fill them in. A row that stays
 * empty, or was planted and never looked for again, is an error: nothing counts as denied that was
 * not tried. Depends on: base. Limits: BATTERY_ROWS_MAX.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "evidence/attack.h"

#define BATTERY_ROWS_MAX 256
#define BATTERY_TEXT_BYTES_MAX ((size_t)1 << 18)

struct battery_row {
    char *id, *title, *detail; /* owned; detail NULL: none */
    char class;
    bool leaky, fast;            /* see enum attack_control */
    bool planting, grading;      /* has rows in the agent's phase, in a later one */
    bool for_candidate;          /* that one is the candidate's */
    bool tried, looked_for;      /* they gave a line */
    enum attack_verdict verdict; /* 0: none yet */
    uint64_t examined, ms;
};

struct battery {
    struct battery_row *rows;
    size_t count;
    bool fast;
};

/* The list's text becomes rows, with fast those of the fast part only. ERROR_BUG when it is not of
 * its form. */
must_check int battery_open(const char *list, bool fast, struct battery *ret, struct error **err)
    nonnull(1, 3);
void battery_done(struct battery *battery) nonnull(1);

/* Lines of a cell. ERROR_SYSTEM for one that is not of the form or names no row. */
must_check int battery_take(struct battery *battery, const char *lines, enum attack_phase phase,
                            struct error **err) nonnull(1, 2);
/* What was seen from outside; FOUND and ERROR outweigh what is there. */
void battery_note(struct battery *battery, const char *id, enum attack_verdict verdict,
                  const char *detail) nonnull(1, 2, 4);
/* The same for each row of the candidate's phase. */
void battery_note_candidates(struct battery *battery, enum attack_verdict verdict,
                             const char *detail) nonnull(1, 3);
/* Rows without a final verdict become errors. */
void battery_close(struct battery *battery) nonnull(1);

size_t battery_count(const struct battery *battery, enum attack_verdict verdict) nonnull(1);
/* Of ids and verdicts: the same for each run of the same cell. */
struct sha256 battery_digest(const struct battery *battery) nonnull(1);
/* [{id, class, title, control, verdict, examined, ms, detail}]; new reference. */
json_t *battery_json(const struct battery *battery) nonnull(1);
