#pragma once
/*
 * judge_wire: one question to a judge as each of the four APIs wants it, and what they answer.
 *
 * Pure: bytes in, bytes out; the broker carries them. An answer is hostile input: whatever it is,
 * it becomes a verdict that was checked here, or a problem in words. The schema that the providers
 * are asked to keep to is not relied on. Depends on: base.
 */

#include "base/error.h"
#include "base/json.h"

#define JUDGE_ANSWER_BYTES_MAX ((size_t)4 << 20)
#define JUDGE_RATIONALE_BYTES_MAX                                                                  \
    ((size_t)16 << 10)                         /* kept; more is cut, and the cut is marked         \
                                                */
#define JUDGE_PROBLEM_BYTES_MAX ((size_t)1000) /* of what an endpoint said */

enum judge_api {
    JUDGE_ANTHROPIC, /* Messages, with a tool that must be called */
    JUDGE_RESPONSES, /* OpenAI Responses */
    JUDGE_CHAT,      /* OpenAI Chat Completions, and what is compatible with it */
    JUDGE_GEMINI,    /* generateContent */
    JUDGE_API_COUNT,
};
const char *judge_api_name(enum judge_api api); /* "openai-chat" */
must_check bool judge_api_parse(const char *name, enum judge_api *ret) nonnull(1, 2);

/* What the model is made to answer with. */
enum judge_shape {
    JUDGE_VERDICT, /* {score, rationale} */
    JUDGE_REPLY,   /* {message}: the words of a simulated user */
};

struct judge_question {
    enum judge_api api;
    enum judge_shape shape;
    const char *model, *instructions, *user;
    uint64_t max_tokens;
    bool has_temperature;
    double temperature;
};
/* The body of the request; new reference. Bytes that are no UTF-8 become U+FFFD. */
json_t *judge_question_json(const struct judge_question *question) nonnull(1);
/* Where it is sent, below the base URL: "/v1/messages"; owned. */
char *judge_question_path(const struct judge_question *question) malloc_like nonnull(1);
/* Families that are known to refuse one: it is not sent to them. */
bool judge_takes_temperature(enum judge_api api, const char *model) nonnull(2);

struct judge_usage {
    uint64_t input, cache_read, cache_write, output; /* tokens; input without what was cached */
};
struct judge_answer {
    bool is_verdict;
    double score;    /* 0..1 */
    char *rationale; /* owned, any text */
    char *problem;   /* why it is no verdict, owned; NULL when it is one */
    /* It is no verdict, and that is the model's own doing: not its limit, not something else on the
     * way. */
    bool is_models_doing;
    char *model; /* as the endpoint names it; NULL */
    bool has_usage;
    struct judge_usage usage;
};
void judge_answer_done(struct judge_answer *answer) nonnull(1);
/* Reads the body of an answer with status 200. */
void judge_answer_parse(enum judge_api api, const char *bytes, size_t size,
                        struct judge_answer *ret) nonnull(2, 4);
/* The same of a JUDGE_REPLY: is_verdict says that rationale holds the message, and there is no
 * score. */
void judge_reply_parse(enum judge_api api, const char *bytes, size_t size, struct judge_answer *ret)
    nonnull(2, 4);
/* What the body of a refusal says, in one line, at most JUDGE_PROBLEM_BYTES_MAX; owned. */
char *judge_refusal_text(const char *bytes, size_t size) malloc_like nonnull(1);
