#pragma once
/*
 * jmespath: the complete JMESPath language over JSON values.
 *
 * Grammar and functions are those of the specification at jmespath.org. Three things that it leaves
 * open: two strings are ordered by code points (any other pair that is not two numbers orders to
 * null), a literal that is no JSON is a string (`abc`, deprecated), and unknown functions, wrong
 * numbers of arguments and misplaced & are found when the expression is compiled. An expression is
 * immutable and may be evaluated any number of times. Depends on: base.
 */

#include "base/error.h"
#include "base/json.h"

#define JMESPATH_BYTES_MAX ((size_t)16 << 10)
#define JMESPATH_DEPTH_MAX 200                  /* of nesting, brackets and chains alike */
#define JMESPATH_STEPS_MAX ((uint64_t)10000000) /* of one evaluation */

struct jmespath; /* opaque */

/* ERROR_TASK with "offset N: " for anything wrong in the text, ERROR_LIMIT past a limit. */
must_check int jmespath_compile(const char *text, struct jmespath **ret, struct error **err)
    nonnull(1, 2);

/*
 * *ret is a new reference, json null included. ERROR_AGENT when the data is not what a function
 * wants, ERROR_LIMIT when the work is too much.
 */
must_check int jmespath_evaluate(const struct jmespath *expression, json_t *data, json_t **ret,
                                 struct error **err) nonnull(1, 2, 3);

void jmespath_free(struct jmespath *expression);
void jmespath_freep(struct jmespath **expression) nonnull(1);
