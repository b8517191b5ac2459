#pragma once
/*
 * call_pattern: which calls of a command-line program a task means: {verb, verb_any_of, positional,
 * flags, value_flags, ignore_flags}, of cli_called and of the responses of record_cli.
 *
 * How an argument list is read: "--" ends the flags; a word that starts with '-', but for "-" and
 * numbers, is a flag, "--name=value" with its value; the next word is the value of a flag of
 * value_flags and of one whose value the pattern looks at; of an ignored flag, too, when it is no
 * flag itself. What remains is positional. The words of the verb are the first of these; positional
 * compares those after it, each in its place, and more may follow.
 * Depends on: base, record.
 */

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

/* Whether a text matches a regex, {"matches_regex", "flags"}: 1, 0, or an error. */
struct call_regex {
    int (*search)(void *context, const json_t *predicate, const char *text, struct error **err);
    void *context;
};

/* One call: the arguments after the program's name. */
struct call_args {
    const char *const *items;
    size_t count;
};

/* 1 when the call is one of those that the parameters mean, else 0. An error comes from regex. */
must_check int call_matches(const json_t *params, const struct call_args *args,
                            const struct call_regex *regex, struct error **err) nonnull(1, 2);

/* Says what of the parameters makes no sense; place is a JSON pointer below params. */
struct call_complaints {
    void (*say)(void *context, const char *place, const char *message);
    void *context;
    bool no_regex; /* matches_regex cannot be looked at where this pattern is used */
};
void call_pattern_check(const json_t *params, const struct call_complaints *complaints)
    nonnull(1, 2);
