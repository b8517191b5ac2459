#pragma once
/*
 * scrub: takes the words of a reference out of texts that are kept or printed.
 *
 * Its keys are the private bytes that reached a judge. What is found is found at any spacing, in
 * either case of letters, quoted, escaped as JSON does it or as a part: SCRUB_RUN_CHARS characters
 * that follow each other in a key are enough. A shorter line of a key goes when it stands there
 * whole, from SCRUB_LINE_CHARS on; what is shorter than that cannot be told from any other word,
 * and stays. Depends on: base.
 */

#include "base/buf.h"
#include "base/json.h"

#define SCRUB_RUN_CHARS 16 /* without spaces, quotes and the like */
#define SCRUB_LINE_CHARS 8 /* the same */
#define SCRUB_KEYS_BYTES_MAX ((size_t)8 << 20)
#define SCRUB_MARK "[reference]"

struct scrub; /* opaque */
struct scrub *scrub_new(void);
void scrub_free(struct scrub *scrub);
void scrub_freep(struct scrub **scrub);
/* False: no room for these bytes, past SCRUB_KEYS_BYTES_MAX. */
must_check bool scrub_add(struct scrub *scrub, const char *bytes, size_t size) nonnull(1, 2);
bool scrub_is_empty(const struct scrub *scrub) nonnull(1);
/* The text without what is in the keys. */
void scrub_text(const struct scrub *scrub, const char *bytes, size_t size, struct buf *ret)
    nonnull(1, 2, 4);
/* In place; NULL stays. */
void scrub_string(const struct scrub *scrub, char **text) nonnull(1, 2);
void scrub_buf(const struct scrub *scrub, struct buf *text) nonnull(1, 2);
/* Every text in it, keys of objects left alone; NULL stays. */
void scrub_json(const struct scrub *scrub, json_t **value) nonnull(1, 2);
