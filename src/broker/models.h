#pragma once
/*
 * models: the broker's half that speaks with model endpoints: routes, keys, and questions of its
 * own side (judges, simulated users).
 *
 * Made before the process is confined, with all that it will ever read. Depends on: base, upstream.
 */

#include "base/error.h"
#include "base/json.h"

struct recording;
struct route;
struct upstream;

struct models;
/* What it is made of: descriptors, of which those of keys may be no regular file: absent. */
struct models_sources {
    int setup_fd, env_keys_fd, dotenv_fd, keys_yaml_fd;
};

must_check int models_new(const struct models_sources *sources, struct models **ret,
                          struct error **err) nonnull(1, 2);
void models_free(struct models *models);
/* The ports that its routes need, for those who confine it. */
#define MODELS_PORTS_MAX 33
size_t models_ports(const struct models *models, uint16_t ret[static MODELS_PORTS_MAX]) nonnull(1);

/* What a proxy needs of it; borrowed. */
struct upstream *models_upstream(struct models *models) nonnull(1);
const struct route *models_route(const struct models *models, const char *name) nonnull(1, 2);
const json_t *models_policy(const struct models *models) nonnull(1); /* NULL: nothing is allowed */
const json_t *models_prices(const struct models *models) nonnull(1); /* NULL: none is known */

int models_fd(const struct models *models) nonnull(1);
int models_timeout_ms(const struct models *models) nonnull(1);
void models_run(struct models *models) nonnull(1);

struct ask; /* a question under way */
/* Called once, from models_run(), when it is answered; the answer as broker_ask() gives it. */
struct ask_end {
    void (*answered)(void *context, const json_t *answer);
    void *context;
    struct recording *recording; /* of the trial that asks; NULL: none */
};
/* fd: the question as JSON, borrowed. */
must_check int models_ask(struct models *models, int fd, const struct ask_end *end,
                          struct ask **ret, struct error **err) nonnull(1, 3, 4);
void models_cancel(struct ask *ask) nonnull(1); /* without a call */
json_t *models_facts(const struct models *models) nonnull(1);
/* JSON as a descriptor. */
must_check int models_seal(const json_t *value, int *ret, struct error **err) nonnull(1, 2);
