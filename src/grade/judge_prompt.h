#pragma once
/*
 * judge_prompt: what a judge is told, from the author's rubric and from material that nobody may
 * take orders from.
 *
 * Every block of material stands between lines that carry a marker, which is random for each call,
 * so that nothing in the material can end its block. Blocks are bounded; what was left out is said
 * where it was. The same parts in the same order make the same bytes but for the marker.
 * Depends on: base, agent/events.
 */

#include "agent/events.h"
#include "base/buf.h"

/* Changes with every change of the words: verdicts of two versions do not compare. */
#define JUDGE_PROMPT_VERSION "closedbook/judge-prompt/1"
#define JUDGE_PROMPT_BYTES_MAX ((size_t)8 << 20)
#define JUDGE_MARKER_BYTES 16

/* What the judge is, in the place that providers keep for it. */
void judge_prompt_system(struct buf *prompt, const char *marker) nonnull(1, 2);
/* The author's words: the first part of the question. */
void judge_prompt_rubric(struct buf *prompt, const char *rubric) nonnull(1, 2);

struct judge_block {
    const char *kind;  /* "file", "reference": ours */
    const char *name;  /* any bytes; NULL: it has none */
    const char *bytes; /* any bytes; NULL: there is none, and absent says why */
    size_t size;
    const char *absent; /* any bytes */
    size_t max_chars;   /* of the text; 0: no limit of its own */
};
void judge_prompt_block(struct buf *prompt, const char *marker, const struct judge_block *block)
    nonnull(1, 2, 3);
/* After the last block. */
void judge_prompt_end(struct buf *prompt) nonnull(1);

/* The agent's tool calls with what they gave, as text for a block; at most max_chars of each. */
void judge_prompt_calls(struct buf *text, const struct event_log *events, size_t max_chars)
    nonnull(1, 2);
/* What was said, in order: for a block. */
void judge_prompt_dialog(struct buf *text, const char *task_prompt, const struct event_log *events,
                         size_t max_chars) nonnull(1, 3);
/* The text of the last thing that the agent said; NULL: nothing. The log owns it. */
const char *judge_prompt_final(const struct event_log *events) nonnull(1);
