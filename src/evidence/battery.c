#include "evidence/battery.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define FIELDS 6

/* Splits a line at tabs into exactly FIELDS parts; the text is changed. */
static bool split(char *line, char *fields[static FIELDS])
{
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = i + 1 < FIELDS ? strsep(&line, "\t") : line;
        if (fields[i] == NULL)
            return false;
    }
    return true;
}

static struct battery_row *find(struct battery *battery, const char *id)
{
    for (size_t i = 0; i < battery->count; i++)
        if (strcmp(battery->rows[i].id, id) == 0)
            return &battery->rows[i];
    return NULL;
}

/* Of a list's line: id, class, control, phase, extent, title. */
static void add_row(struct battery *battery, char *fields[static FIELDS])
{
    struct battery_row *row = find(battery, fields[0]);

    if (battery->fast && strcmp(fields[4], "fast") != 0)
        return;
    if (row == NULL) {
        ASSERT(battery->count < BATTERY_ROWS_MAX);
        battery->rows = mem_resize(battery->rows, battery->count + 1, sizeof(*battery->rows));
        row = &battery->rows[battery->count++];
        *row = (struct battery_row){
            .id = str_dup(fields[0]),
            .class = fields[1][0],
            .leaky = strcmp(fields[2], "leaky") == 0,
            .fast = strcmp(fields[4], "fast") == 0,
            .title = str_dup(fields[5]),
        };
    }
    row->for_candidate = strcmp(fields[3], "candidate") == 0;
    if (strcmp(fields[3], "grade") == 0 || row->for_candidate)
        row->grading = true;
    else
        row->planting = true;
}

int battery_open(const char *list, bool fast, struct battery *ret, struct error **err)
{
    scoped(mem_freep) char *text = str_dup(list);
    scoped(battery_done) struct battery battery = {.fast = fast};
    char *rest = text;

    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *fields[FIELDS];

        if (line[0] == '\0')
            continue;
        if (!split(line, fields))
            return error_set(err, ERROR_BUG, "closedbook-probe lists attacks in another form");
        add_row(&battery, fields);
    }
    if (battery.count == 0)
        return error_set(err, ERROR_BUG, "closedbook-probe lists no attacks");
    *ret = battery;
    battery = (struct battery){0};
    return 0;
}

void battery_done(struct battery *battery)
{
    for (size_t i = 0; i < battery->count; i++) {
        free(battery->rows[i].id);
        free(battery->rows[i].title);
        free(battery->rows[i].detail);
    }
    free(battery->rows);
    *battery = (struct battery){0};
}

static bool parse_verdict(const char *text, enum attack_verdict *ret)
{
    for (enum attack_verdict i = ATTACK_DENIED; i <= ATTACK_ERROR; i++) {
        if (strcmp(text, attack_verdict_name(i)) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

/* A later line of the same row takes the place of "planted"; nothing takes that of "found". */
static void set_verdict(struct battery_row *row, enum attack_verdict verdict, const char *detail)
{
    if (row->verdict == ATTACK_FOUND || (row->verdict == ATTACK_ERROR && verdict != ATTACK_FOUND))
        return;
    row->verdict = verdict;
    if (detail[0] == '\0' && row->detail != NULL)
        return;
    free(row->detail);
    row->detail = detail[0] != '\0' ? str_dup(detail) : NULL;
}

/* Of a cell's line: id, class, verdict, examined, milliseconds, detail. */
static bool take_line(struct battery *battery, char *line, enum attack_phase phase)
{
    char *fields[FIELDS];
    enum attack_verdict verdict;
    uint64_t examined, ms;
    struct battery_row *row;

    if (!split(line, fields) || !parse_verdict(fields[2], &verdict) ||
        !str_to_u64(fields[3], &examined) || !str_to_u64(fields[4], &ms))
        return false;
    row = find(battery, fields[0]);
    if (row == NULL || row->class != fields[1][0])
        return false;
    set_verdict(row, verdict, fields[5]);
    row->examined += examined;
    row->ms += ms;
    if (phase != PHASE_AGENT)
        row->looked_for = true;
    else
        row->tried = true;
    return true;
}

int battery_take(struct battery *battery, const char *lines, enum attack_phase phase,
                 struct error **err)
{
    scoped(mem_freep) char *text = str_dup(lines);
    char *rest = text;

    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (line[0] != '\0' && !take_line(battery, line, phase))
            return error_set(err, ERROR_SYSTEM,
                             "the attack program gave a line that is none of its own");
    }
    return 0;
}

void battery_note(struct battery *battery, const char *id, enum attack_verdict verdict,
                  const char *detail)
{
    struct battery_row *row = find(battery, id);

    if (row != NULL)
        set_verdict(row, verdict, detail);
}

void battery_note_candidates(struct battery *battery, enum attack_verdict verdict,
                             const char *detail)
{
    for (size_t i = 0; i < battery->count; i++) {
        if (!battery->rows[i].for_candidate)
            continue;
        battery->rows[i].looked_for = true;
        set_verdict(&battery->rows[i], verdict, detail);
    }
}

void battery_close(struct battery *battery)
{
    for (size_t i = 0; i < battery->count; i++) {
        struct battery_row *row = &battery->rows[i];

        if ((row->planting && !row->tried) || (row->grading && !row->looked_for))
            set_verdict(row, ATTACK_ERROR, "gave no verdict");
        else if (row->verdict == ATTACK_PLANTED || row->verdict == 0)
            set_verdict(row, ATTACK_ERROR, "was planted, and nobody looked for it");
    }
}

size_t battery_count(const struct battery *battery, enum attack_verdict verdict)
{
    size_t count = 0;

    for (size_t i = 0; i < battery->count; i++)
        count += battery->rows[i].verdict == verdict;
    return count;
}

struct sha256 battery_digest(const struct battery *battery)
{
    scoped(buf_done) struct buf text = {0};

    for (size_t i = 0; i < battery->count; i++)
        buf_format(&text, "%s %s\n", battery->rows[i].id,
                   attack_verdict_name(battery->rows[i].verdict));
    return sha256_of(buf_text(&text), text.size_bytes);
}

json_t *battery_json(const struct battery *battery)
{
    json_t *array = json_array();

    for (size_t i = 0; i < battery->count; i++) {
        const struct battery_row *row = &battery->rows[i];
        const char class[] = {row->class, '\0'};
        json_t *item = json_object();

        json_put_text(item, "id", row->id);
        json_put_text(item, "class", class);
        json_put_text(item, "title", row->title);
        json_put_text(item, "control", row->leaky ? "leaky" : "mutant");
        json_put_text(item, "verdict", attack_verdict_name(row->verdict));
        json_put_int(item, "examined", (int64_t)row->examined);
        json_put_int(item, "ms", (int64_t)row->ms);
        json_put(item, "detail", json_text_or_null(row->detail));
        json_push(array, item);
    }
    return array;
}
