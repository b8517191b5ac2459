#pragma once
/*
 * wire_context: what stood in a model's context, by wire.jsonl, in the order in which it came.
 *
 * Each item of a conversation is told once, when a request first holds it: what the client says
 * that the model wrote (its texts, the inputs of its calls), and everything else (what the user
 * said, what tools answered). All four wire formats. The client is the agent's: it can say of a
 * text that the model wrote it. What the client itself says about its tools and its role is left
 * out. Depends on: base, wire_lines.
 */

#include "base/buf.h"
#include "base/error.h"

struct wire_text {
    uint64_t seq; /* of the request, in wire.jsonl */
    bool by_model;
    const char *text; /* all texts of the item, one after the other, each with a newline */
    size_t size;
};
typedef int wire_text_visit(void *context, const struct wire_text *text, struct error **err);

/* From the file's offset on. A request that cannot be read is ERROR_SYSTEM. */
must_check int wire_context_each(int fd, wire_text_visit *visit, void *context, struct error **err)
    nonnull(2);
