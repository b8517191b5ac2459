/* What is kept of judgements: their files in grade/, and what trial.json says of them. */
#include "run/judges.h"

#include "base/fs.h"
#include "base/mem.h"
#include "run/judges_internal.h"

#define KEY_CHARS 16

char *judgement_path(const char *key)
{
    return str_format("grade/judge-%.*s.json", KEY_CHARS, key);
}

int judges_save(int grade_fd, const struct verdict *verdict, struct error **err)
{
    const char *key = json_get_text(verdict->judgement, "key");
    scoped(buf_done) struct buf text = {.max_bytes = JUDGEMENT_BYTES_MAX};

    if (key == NULL)
        return 0;
    scoped(mem_freep) char *path = judgement_path(key);

    json_write_pretty(&text, verdict->judgement);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "the judgement is larger than %zu bytes",
                         JUDGEMENT_BYTES_MAX);
    return fs_write_atomic(grade_fd, path_base(path),
                           &(struct fs_content){text.data, text.size_bytes, 0600, FS_NO_SYNC}, err);
}

/* --- sums ------------------------------------------------------------------------------------- */

struct sums {
    int64_t asks, input, cache_read, cache_write, output, cost_microusd;
    bool cost_unknown;
};

static void add_ask(const json_t *ask, struct sums *sums)
{
    const json_t *usage = json_get_object(ask, "usage");
    const json_t *cost = json_object_get(usage, "cost_microusd");

    sums->asks++;
    sums->input += json_get_int(usage, "input_tokens", 0);
    sums->cache_read += json_get_int(usage, "cache_read_tokens", 0);
    sums->cache_write += json_get_int(usage, "cache_write_tokens", 0);
    sums->output += json_get_int(usage, "output_tokens", 0);
    sums->cost_unknown = sums->cost_unknown || (usage != NULL && !json_is_integer(cost));
    sums->cost_microusd += json_is_integer(cost) ? json_integer_value(cost) : 0;
}

static void add_judgement(const json_t *judgement, struct sums *sums)
{
    const json_t *vote, *ask;
    size_t i, j;

    json_array_foreach (json_get_array(judgement, "votes"), i, vote) {
        json_array_foreach (json_get_array(vote, "asks"), j, ask)
            add_ask(ask, sums);
    }
}

static void put_sums(json_t *object, const struct sums *sums)
{
    json_put_int(object, "asks", sums->asks);
    json_put_int(object, "input_tokens", sums->input);
    json_put_int(object, "cache_read_tokens", sums->cache_read);
    json_put_int(object, "cache_write_tokens", sums->cache_write);
    json_put_int(object, "output_tokens", sums->output);
    if (sums->cost_unknown)
        json_put(object, "cost_microusd", json_null());
    else
        json_put_int(object, "cost_microusd", sums->cost_microusd);
}

json_t *judges_summary(const struct verdict *verdict)
{
    static const char *const texts[] = {"prompt_version", "route", "model"};
    const json_t *judgement = verdict->judgement, *vote;
    const char *key = json_get_text(judgement, "key");
    struct sums sums = {0};
    size_t i;

    if (key == NULL)
        return NULL;
    json_t *summary = json_object();
    json_t *scores = json_array();
    scoped(mem_freep) char *path = judgement_path(key);

    for (i = 0; i < ARRAY_SIZE(texts); i++)
        json_put(summary, texts[i], json_text_or_null(json_get_text(judgement, texts[i])));
    json_array_foreach (json_get_array(judgement, "votes"), i, vote) {
        const json_t *score = json_object_get(vote, "score");

        json_push(scores,
                  json_is_number(score) ? json_real(json_number_value(score)) : json_null());
    }
    json_put(summary, "scores", scores);
    json_put_bool(summary, "recalled", verdict->judgement_is_recalled);
    json_put_text(summary, "transcript", path);
    add_judgement(judgement, &sums);
    put_sums(summary, &sums);
    return summary;
}

json_t *judges_usage(const struct grade_result *results, size_t count)
{
    json_t *usage = json_object();
    struct sums sums = {0};

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < results[i].count; j++) {
            const struct verdict *verdict = &results[i].verdicts[j];

            if (!verdict->judgement_is_recalled)
                add_judgement(verdict->judgement, &sums);
        }
    }
    put_sums(usage, &sums);
    return usage;
}
