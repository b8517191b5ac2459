/* The command line as a table: every way to write an option, and every way to get it wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/options.h"

struct values {
    bool json;
    const char *driver, *resume, *output;
    struct option_list tags;
    uint64_t jobs;
};

static const char *const drivers[] = {"native", "tempdir", NULL};

static const struct cli_option options[] = {
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .help = "print JSON",
     .offset = offsetof(struct values, json)},
    {.kind = OPTION_TEXT,
     .long_name = "driver",
     .value = "NAME",
     .help = "what runs the cells",
     .offset = offsetof(struct values, driver),
     .choices = drivers},
    {.kind = OPTION_TEXT,
     .short_name = 'o',
     .long_name = "output",
     .value = "FILE",
     .help = "where to write what is said about everything that went on, which is a long story",
     .offset = offsetof(struct values, output)},
    {.kind = OPTION_OPTIONAL,
     .long_name = "resume",
     .value = "HOW",
     .help = "go on",
     .offset = offsetof(struct values, resume),
     .when_bare = "plain"},
    {.kind = OPTION_LIST,
     .short_name = 't',
     .long_name = "tags",
     .value = "TAG",
     .help = "only these",
     .offset = offsetof(struct values, tags)},
    {.kind = OPTION_NUMBER,
     .short_name = 'j',
     .long_name = "jobs",
     .value = "N",
     .help = "how many at a time",
     .offset = offsetof(struct values, jobs),
     .min = 1,
     .max = 64},
};

static const struct values defaults = {.jobs = 1};

static const struct command command = {
    .name = "run",
    .summary = "run things",
    .operands = "PATH... [-- CMD...]",
    .options = options,
    .option_count = ARRAY_SIZE(options),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = 3,
};

/* Parses the words up to the first NULL, which live on as long as the test does. */
static int parse(const struct command *which, const char *const *words, struct arguments *ret,
                 struct error **err)
{
    static char *argv[OPTION_LIST_MAX + 2];
    int count = 0;

    for (; words[count] != NULL; count++)
        memcpy(&argv[count], &words[count], sizeof(words[count]));
    argv[count] = NULL;
    return options_parse(which, count, argv, ret, err);
}

static void every_spelling_is_understood(void **state)
{
    (void)state;
    const char *words[] = {
        "a",   "--json", "--driver=tempdir", "-t", "x", "-ty", "--tags", "z=1", "-vqv",
        "-j4", "b",      "--resume",         "-o", "-", "--",  "--json", NULL};
    scoped(arguments_done) struct arguments arguments = {0};

    assert_int_equal(parse(&command, words, &arguments, NULL), 0);
    const struct values *values = arguments.values;

    assert_true(values->json);
    assert_string_equal(values->driver, "tempdir");
    assert_string_equal(values->resume, "plain");
    assert_string_equal(values->output, "-");
    assert_int_equal(values->jobs, 4);
    assert_int_equal(values->tags.count, 3);
    assert_string_equal(values->tags.items[0], "x");
    assert_string_equal(values->tags.items[1], "y");
    assert_string_equal(values->tags.items[2], "z=1");
    assert_int_equal(arguments.verbosity, 2);
    assert_true(arguments.is_quiet);
    assert_int_equal(arguments.operand_count, 3);
    assert_string_equal(arguments.operands[2], "--json");
    assert_null(arguments.operands[3]);
    assert_null(arguments.program);
}

static void what_is_not_given_keeps_its_default(void **state)
{
    (void)state;
    const char *words[] = {"--resume=force", NULL};
    scoped(arguments_done) struct arguments arguments = {0};

    assert_int_equal(parse(&command, words, &arguments, NULL), 0);
    const struct values *values = arguments.values;

    assert_int_equal(values->jobs, 1);
    assert_null(values->driver);
    assert_int_equal(values->tags.count, 0);
    assert_string_equal(values->resume, "force");
    assert_int_equal(arguments.operand_count, 0);
}

static void a_program_after_dashes_is_left_alone(void **state)
{
    (void)state;
    struct command cell = command;
    const char *with[] = {"task", "--json", "--", "ls", "--json", "-j", "--", NULL};
    const char *empty[] = {"--", NULL};
    scoped(arguments_done) struct arguments arguments = {0};
    scoped(arguments_done) struct arguments of_empty = {0};

    cell.takes_program = true;
    assert_int_equal(parse(&cell, with, &arguments, NULL), 0);
    assert_int_equal(arguments.operand_count, 1);
    assert_int_equal(arguments.program_count, 4);
    assert_string_equal(arguments.program[0], "ls");
    assert_string_equal(arguments.program[3], "--");
    assert_null(arguments.program[4]);
    assert_int_equal(parse(&cell, empty, &of_empty, NULL), 0);
    assert_non_null(of_empty.program);
    assert_int_equal(of_empty.program_count, 0);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *words[5];
        const char *complaint;
    } cases[] = {
        {{"--jsn"}, "unknown option '--jsn', did you mean '--json'?"},
        {{"--zzzzzz"}, "unknown option '--zzzzzz'"},
        {{"--verbos"}, "unknown option '--verbos', did you mean '--verbose'?"},
        {{"-x"}, "unknown option '-x'"},
        {{"--json=1"}, "option '--json' takes no value"},
        {{"--output"}, "option '--output' needs a value: FILE"},
        {{"-o"}, "option '--output' needs a value: FILE"},
        {{"--driver=natve"}, "option '--driver': 'native' or 'tempdir' expected, not 'natve'"},
        {{"--driver="}, "option '--driver': 'native' or 'tempdir' expected, not ''"},
        {{"-j0"}, "option '--jobs': a whole number from 1 to 64 expected, not '0'"},
        {{"-j", "65"}, "option '--jobs': a whole number from 1 to 64 expected, not '65'"},
        {{"--jobs=-1"}, "option '--jobs': a whole number from 1 to 64 expected, not '-1'"},
        {{"a", "b", "c", "d"}, "one operand too many: 'd'"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(arguments_done) struct arguments arguments = {0};
        scoped(error_freep) struct error *err = NULL;
        const char *words[6] = {NULL};

        memcpy(words, cases[i].words, sizeof(cases[i].words));
        assert_int_equal(parse(&command, words, &arguments, &err), -ERROR_USER);
        assert_string_equal(error_message(err), cases[i].complaint);
    }
}

static void an_operand_may_be_due(void **state)
{
    (void)state;
    struct command report = command;
    const char *none[] = {NULL}, *help[] = {"--help", NULL};
    scoped(arguments_done) struct arguments arguments = {0};
    scoped(arguments_done) struct arguments of_help = {0};
    scoped(error_freep) struct error *err = NULL;

    report.operands = "RUN_DIR";
    report.operands_min = 1;
    assert_int_equal(parse(&report, none, &arguments, &err), -ERROR_USER);
    assert_string_equal(error_message(err), "an operand is missing: RUN_DIR");
    /* But not to read the help. */
    assert_int_equal(parse(&report, help, &of_help, NULL), 0);
    assert_true(of_help.wants_help);
}

static void a_list_has_an_end(void **state)
{
    (void)state;
    scoped(mem_freep) const char **words = mem_new(OPTION_LIST_MAX + 2, sizeof(*words));
    scoped(arguments_done) struct arguments arguments = {0};
    scoped(arguments_done) struct arguments fuller = {0};

    for (size_t i = 0; i < OPTION_LIST_MAX; i++)
        words[i] = "-tx";
    assert_int_equal(parse(&command, words, &arguments, NULL), 0);
    words[OPTION_LIST_MAX] = "-tx";
    assert_int_equal(parse(&command, words, &fuller, NULL), -ERROR_USER);
}

static void help_comes_from_the_table(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};

    options_help(&text, &command);
    assert_string_equal(
        buf_text(&text),
        "Usage: closedbook run [OPTION]... PATH... [-- CMD...]\n"
        "\n"
        "run things\n"
        "\n"
        "Options:\n"
        "      --json                print JSON\n"
        "      --driver=NAME         what runs the cells: native, tempdir\n"
        "  -o, --output=FILE         where to write what is said about everything that\n"
        "                            went on, which is a long story\n"
        "      --resume[=HOW]        go on\n"
        "  -t, --tags=TAG            only these\n"
        "  -j, --jobs=N              how many at a time\n"
        "  -h, --help                show this help\n"
        "  -q, --quiet               print results and errors only\n"
        "  -v, --verbose             say more; given twice, say everything\n");
}

static void the_list_is_for_programs(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};

    options_list(&text, &command);
    assert_string_equal(buf_text(&text), "json\t-\t-\t-\ndriver\t-\tNAME\tnative|tempdir\n"
                                         "output\to\tFILE\t-\nresume\t-\tHOW\t-\ntags\tt\tTAG\t-\n"
                                         "jobs\tj\tN\t-\nhelp\th\t-\t-\nquiet\tq\t-\t-\n"
                                         "verbose\tv\t-\t-\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_understood),
        cmocka_unit_test(what_is_not_given_keeps_its_default),
        cmocka_unit_test(a_program_after_dashes_is_left_alone),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(an_operand_may_be_due),
        cmocka_unit_test(a_list_has_an_end),
        cmocka_unit_test(help_comes_from_the_table),
        cmocka_unit_test(the_list_is_for_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
