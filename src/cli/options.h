#pragma once
/*
 * options: the command line as a table.
 *
 * A command lists its options once. Parsing, --help, "did you mean", completion and the manual's
 * SYNOPSIS all come from that table. Texts that parsing yields are borrowed from argv.
 * Depends on: base. Limits: OPTIONS_MAX options a command.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define OPTIONS_MAX 64

/* What an option takes, and the type of the field that it fills. */
enum option_kind {
    OPTION_FLAG,     /* bool: nothing; true when given */
    OPTION_COUNTED,  /* unsigned: nothing; how often it was given */
    OPTION_TEXT,     /* const char *: a value; the last one wins */
    OPTION_OPTIONAL, /* const char *: --name or --name=VALUE; without a value it is when_bare */
    OPTION_LIST,     /* struct option_list: a value each time; all are kept in order */
    OPTION_NUMBER,   /* uint64_t: a whole number from min to max */
};

/* The values of a repeated option. items has OPTION_LIST_MAX places, owned by the arguments. */
#define OPTION_LIST_MAX 1024
struct option_list {
    const char **items;
    size_t count;
};

struct cli_option {
    enum option_kind kind;
    char short_name;       /* 0: none */
    const char *long_name; /* without dashes */
    const char *value;     /* what the value is called in --help: "FILE"; NULL for flags */
    const char *help;      /* one sentence without a full stop */
    size_t offset;         /* of the field in the command's values */
    const char *when_bare; /* OPTION_OPTIONAL only */
    uint64_t min, max;     /* OPTION_NUMBER only; max 0 means no bound */
    /* OPTION_TEXT and OPTION_OPTIONAL: the only values allowed, NULL-terminated; NULL: any. */
    const char *const *choices;
};

struct arguments;
struct error;

/* One command: a line in commands.c, a file cmd_NAME.c. */
struct command {
    const char *name;
    const char *summary;     /* one line for the list of commands */
    const char *operands;    /* for the usage line: "PATH...", "[TASK] -- CMD..."; NULL: none */
    const char *description; /* further paragraphs of --help; may be NULL */
    const struct cli_option *options;
    size_t option_count;
    size_t values_size;                /* of the struct that the options fill */
    const void *defaults;              /* what it holds before; NULL: zeroes */
    size_t operands_min, operands_max; /* max SIZE_MAX: any number */
    bool takes_program; /* what follows "--" is a command line of its own, not operands */
    /* The exit status (0 or more), or -enum error_code with *err set: main() prints it. */
    int (*run)(const struct arguments *arguments, struct error **err);
};

/* A parsed command line. */
struct arguments {
    const struct command *command;
    void *values;          /* the command's own struct */
    const char **operands; /* NULL-terminated */
    size_t operand_count;
    const char *const *program; /* after "--" when takes_program; NULL-terminated; NULL: no "--" */
    size_t program_count;
    /* Options that every command has. */
    bool wants_help;
    bool is_quiet;
    unsigned verbosity;
};

/*
 * Reads the words after the command's name. Errors: ERROR_USER. With --help nothing else is
 * checked. arguments_done() is due whether it succeeds or not.
 */
must_check int options_parse(const struct command *command, int argc, char **argv,
                             struct arguments *ret, struct error **err) nonnull(1, 3, 4);
void arguments_done(struct arguments *arguments) nonnull(1);

/* The --help text: usage line, summary, description, options. */
void options_help(struct buf *buf, const struct command *command) nonnull(1, 2);
/* "closedbook run [OPTION]... PATH..." */
void options_usage(struct buf *buf, const struct command *command) nonnull(1, 2);
/*
 * One line an option for completion scripts and the manual's check: long name, short name or "-",
 * value or "-", choices joined by "|" or "-"; tab-separated.
 */
void options_list(struct buf *buf, const struct command *command) nonnull(1, 2);
