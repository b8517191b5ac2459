/*
 * The core rules of YAML 1.2 for plain scalars: null, bool, int, real; all else is text. `yes`,
 * `no`, `on` and `off` stay text here; the schema decides where they may mean a bool.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "base/str.h"
#include "task/node.h"

static bool is_one_of(const char *text, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(text, *names) == 0)
            return true;
    }
    return false;
}

static bool resolve_word(struct node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const truths[] = {"true", "True", "TRUE", NULL};
    static const char *const lies[] = {"false", "False", "FALSE", NULL};

    if (is_one_of(node->text, nulls)) {
        node->kind = NODE_NULL;
        return true;
    }
    bool truth = is_one_of(node->text, truths);

    if (!truth && !is_one_of(node->text, lies))
        return false;
    node->kind = NODE_BOOL;
    node->truth = truth;
    return true;
}

static size_t digits(const char *s)
{
    size_t n = 0;

    while (s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* 0o17 and 0x1F, without a sign. */
static bool resolve_based(struct node *node)
{
    const char *text = node->text;
    int base = str_starts(text, "0o") ? 8 : str_starts(text, "0x") ? 16 : 0;

    if (base == 0 || text[2] == '\0')
        return false;
    for (const char *s = text + 2; *s != '\0'; s++) {
        bool fits = base == 8 ? *s >= '0' && *s <= '7' : isxdigit((unsigned char)*s) != 0;

        if (!fits)
            return false;
    }
    errno = 0;
    long long value = strtoll(text + 2, NULL, base);

    node->kind = NODE_INT;
    node->integer = value;
    if (errno == 0)
        return true;
    node->kind = NODE_REAL;
    node->real = base == 16 ? strtod(text, NULL) : HUGE_VAL;
    return true;
}

static bool resolve_special(struct node *node, const char *unsigned_text, bool negative)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};

    if (is_one_of(unsigned_text, infinities))
        node->real = negative ? -HUGE_VAL : HUGE_VAL;
    else if (is_one_of(node->text, nans))
        node->real = (double)NAN;
    else
        return false;
    node->kind = NODE_REAL;
    return true;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool resolve_number(struct node *node)
{
    const char *s = node->text;
    bool negative = *s == '-';

    if (*s == '-' || *s == '+')
        s++;
    if (resolve_special(node, s, negative))
        return true;
    const char *start = s;
    size_t whole = digits(s), part = 0;

    s += whole;
    if (whole > 0 && *s == '\0') {
        errno = 0;
        node->integer = strtoll(node->text, NULL, 10);
        node->kind = NODE_INT;
        if (errno == 0)
            return true;
    }
    if (*s == '.') {
        part = digits(s + 1);
        s += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        size_t exponent = digits(s);

        if (exponent == 0)
            return false;
        s += exponent;
    }
    if (*s != '\0')
        return false;
    double value = strtod(start, NULL); /* C locale: the program never calls setlocale() */

    node->kind = NODE_REAL;
    node->real = negative ? -value : value;
    return true;
}

void node_resolve(struct node *node)
{
    node->kind = NODE_TEXT;
    if (!node->plain || resolve_word(node) || resolve_based(node) || resolve_number(node))
        return;
    node->kind = NODE_TEXT;
}
