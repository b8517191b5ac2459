/* docs/attacks.md against the attacks and scripts that there are. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "evidence/attack.h"

#define ROWS 237
#define DOCUMENT_BYTES_MAX ((size_t)1 << 20)
#define FEWEST_OF_A_CLASS 3
#define LAST_CLASS 'M'
#define CLASSES (LAST_CLASS - 'A' + 1)

static const struct attack_table *const tables[] = {
    &attacks_material, &attacks_copies,  &attacks_process, &attacks_permission, &attacks_escape,
    &attacks_network,  &attacks_cells,   &attacks_names,   &attacks_collect,    &attacks_host,
    &attacks_grader,   &attacks_verdict, &attacks_persist, &attacks_candidate,  &attacks_limits,
};

static char *document;

static int read_document(void **state)
{
    scoped(buf_done) struct buf text = {0};
    struct error *err = NULL;

    (void)state;
    int r = fs_read_file(AT_FDCWD, "docs/attacks.md", DOCUMENT_BYTES_MAX, &text, &err);

    if (r < 0)
        fail_msg("%s", error_message(err));
    document = buf_take(&text);
    return 0;
}

static int forget_document(void **state)
{
    (void)state;
    free(document);
    return 0;
}

static bool is_attack(const char *id)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        for (size_t k = 0; k < tables[i]->count; k++)
            if (strcmp(tables[i]->attacks[k].id, id) == 0)
                return true;
    return false;
}

static bool is_script(const char *name)
{
    scoped(mem_freep) char *path = path_join("tests/attacks/scripts", name);

    return access(path, X_OK) == 0;
}

/* A file of end-to-end tests, which has controls of its own. */
static bool is_whole_run(const char *name)
{
    scoped(mem_freep) char *path = path_join("tests", name);

    return str_starts(name, "e2e/") && access(path, R_OK) == 0;
}

/* The row's third column; *line is moved on. NULL: not a row. */
static char *take_row(char *line, unsigned *ret_number)
{
    uint64_t number;
    char *fields[4];

    if (!str_starts(line, "| A-"))
        return NULL;
    line += strlen("| ");
    for (size_t i = 0; i < 3; i++) {
        char *end = strstr(line, " |");

        assert_non_null(end);
        *end = '\0';
        fields[i] = line;
        line = end + strlen(" | ");
    }
    assert_true(str_to_u64(fields[0] + strlen("A-"), &number));
    *ret_number = (unsigned)number;
    return fields[2];
}

/* Every name in backquotes is there; a row without any gives a reason. */
static void check_row(unsigned number, char *tried_by)
{
    unsigned names = 0;
    char *rest = tried_by;

    for (char *part = strsep(&rest, "`"); part != NULL; part = strsep(&rest, "`")) {
        char *name = strsep(&rest, "`");

        if (name == NULL)
            break;
        names++;
        if (!is_attack(name) && !is_script(name) && !is_whole_run(name))
            fail_msg("A-%03u names '%s', which is no attack, script or test", number, name);
    }
    if (names == 0 && !str_starts(tried_by, "not scripted: ") && !str_starts(tried_by, "pending: "))
        fail_msg("A-%03u says neither what tries it nor why nothing does", number);
}

static void has_every_row_once(void **state)
{
    scoped(mem_freep) char *text = str_dup(document);
    bool seen[ROWS + 1] = {false};
    char *rest = text;

    (void)state;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        unsigned number = 0;
        char *tried_by = take_row(line, &number);

        if (tried_by == NULL)
            continue;
        assert_in_range(number, 1, ROWS);
        assert_false(seen[number]);
        seen[number] = true;
        check_row(number, tried_by);
    }
    for (unsigned i = 1; i <= ROWS; i++)
        if (!seen[i])
            fail_msg("A-%03u is missing", i);
}

static void names_every_attack(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (size_t k = 0; k < tables[i]->count; k++) {
            scoped(mem_freep) char *quoted = str_format("`%s`", tables[i]->attacks[k].id);

            if (strstr(document, quoted) == NULL)
                fail_msg("%s stands at no row", quoted);
        }
    }
}

static void has_three_attacks_of_each_class(void **state)
{
    (void)state;
    /* One for each, and behind them those whose attacks are of several. */
    assert_true(ARRAY_SIZE(tables) >= CLASSES);
    for (size_t i = 0; i < CLASSES; i++) {
        size_t titled = 0;

        for (size_t k = 0; k < tables[i]->count; k++) {
            assert_int_equal(tables[i]->attacks[k].class, 'A' + (int)i);
            titled += tables[i]->attacks[k].title[0] != '\0';
        }
        assert_true(titled >= FEWEST_OF_A_CLASS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_every_row_once),
        cmocka_unit_test(names_every_attack),
        cmocka_unit_test(has_three_attacks_of_each_class),
    };

    return cmocka_run_group_tests(tests, read_document, forget_document);
}
