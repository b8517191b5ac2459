#pragma once
/*
 * usage: tokens that a model endpoint's answer says it used, and what they cost.
 *
 * From answers of one piece and from streams of events, for the four wire formats. An answer is
 * hostile input: what is no number counts as nothing. Depends on: base, route. Limits: below.
 */

#include "base/buf.h"
#include "base/json.h"
#include "broker/route.h"

#define USAGE_LINE_BYTES_MAX ((size_t)8 << 20) /* of a stream; a longer one is not looked at */
#define USAGE_TOKENS_MAX UINT64_C(1000000000)  /* of one kind; more is taken for this */

/* Each token stands in one of them. */
struct usage {
    uint64_t input, cache_read, cache_write, output;
    bool known; /* the answer said something */
};
void usage_add(struct usage *sum, const struct usage *more) nonnull(1, 2);
/* {input_tokens, cache_read_tokens, cache_write_tokens, output_tokens} */
json_t *usage_to_json(const struct usage *usage) nonnull(1);

/* What a whole answer, or one event of a stream, says; later events replace earlier ones. */
void usage_take(struct usage *usage, enum model_api api, const json_t *value) nonnull(1, 3);

/* Reads a stream of events as it passes. */
struct usage_reader {
    enum model_api api;
    struct usage usage;
    char *model; /* as the endpoint calls it; NULL: not told */
    struct buf line;
    bool skips; /* the rest of a line that is too long */
};
void usage_reader_feed(struct usage_reader *reader, const char *bytes, size_t size) nonnull(1, 2);
void usage_reader_done(struct usage_reader *reader) nonnull(1);

/* Millionths of a dollar for a million tokens. */
struct price {
    uint64_t input, cache_read, cache_write, output;
};
/* prices: share/models/prices.json. False: the model is not in it. */
must_check bool price_find(const json_t *prices, const char *model, struct price *ret)
    nonnull(2, 3);
uint64_t price_microusd(const struct price *price, const struct usage *usage) nonnull(1, 2);
