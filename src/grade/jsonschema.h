#pragma once
/*
 * jsonschema: a documented subset of JSON Schema (docs/formats/json-schema-subset.md).
 *
 * A keyword outside the subset is an error when the schema is compiled, so that no check is
 * silently left out. A schema is immutable and may be used any number of times. Depends on: base,
 * grade/regex.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define SCHEMA_DEPTH_MAX 100                  /* of nested subschemas */
#define SCHEMA_STEPS_MAX ((uint64_t)10000000) /* of one validation */
#define SCHEMA_COMPLAINTS_MAX 10              /* listed in full; the rest is counted */

struct schema; /* opaque */

/*
 * Takes a reference of its own. ERROR_TASK with the JSON pointer of the place in the schema,
 * ERROR_LIMIT past a limit.
 */
must_check int schema_compile(json_t *document, struct schema **ret, struct error **err) nonnull(2);

/* The same; on failure the message does not name the place, *ret_place gets its JSON pointer. */
must_check int schema_compile_at(json_t *document, struct schema **ret, struct buf *ret_place,
                                 struct error **err) nonnull(2, 3);

/*
 * Sets *ret_valid and appends one line per complaint: the JSON pointer in the data, what was found,
 * what was expected. ERROR_LIMIT when the work is too much, also for a pattern.
 */
must_check int schema_validate(const struct schema *schema, json_t *data, bool *ret_valid,
                               struct buf *complaints, struct error **err) nonnull(1, 3, 4);

void schema_free(struct schema *schema);
void schema_freep(struct schema **schema) nonnull(1);
