#pragma once
/*
 * broker_wire: what trials and the broker say to each other. Both are ours.
 */

#include "base/base.h"

#define BROKER_MAGIC 0x31524b42u
#define BROKER_TEXT_BYTES 400

/* What the program is started with. All but the first may be /dev/null. */
enum {
    BROKER_CONTROL_FD = 3,
    BROKER_SETUP_FD,     /* JSON: struct broker_options.setup */
    BROKER_ENV_KEYS_FD,  /* of keys_take_env() */
    BROKER_DOTENV_FD,    /* .env */
    BROKER_KEYS_YAML_FD, /* keys.yaml */
    BROKER_FDS_END,
};

enum broker_kind {
    BROKER_OPEN = 1,
    BROKER_CLOSE,
    BROKER_ASK,
    BROKER_FACTS,
    BROKER_MODELS,
    BROKER_MODELS_END,
    BROKER_MODELS_NEXT,
    BROKER_RECORD,
    BROKER_REPLAY,
    BROKER_RECORDING_END,
};
/* BROKER_OPEN brings three descriptors: the table as text, the listening socket, the log. */
enum { BROKER_TABLE, BROKER_LISTENER, BROKER_LOG, BROKER_OPEN_FDS };
/* BROKER_MODELS, too: what is allowed as JSON, the listening socket, wire.jsonl. */
/* BROKER_RECORD brings one, the file that is written; BROKER_REPLAY one to be read, or none. */
/* BROKER_ASK brings one, a question as JSON. Its answer, BROKER_FACTS's and BROKER_MODELS_END's
 * bring one, too. */

struct broker_request {
    uint32_t magic, kind;
};

struct broker_reply {
    uint32_t magic;
    uint32_t failed; /* enum error_code; 0: it went well */
    uint64_t calls, refused, unreported;
    uint32_t cut;
    char text[BROKER_TEXT_BYTES]; /* why it failed */
};
