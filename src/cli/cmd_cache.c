#include <time.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "run/session.h"
#include "stage/images.h"

#define DAY_MS ((uint64_t)24 * 3600 * 1000)
#define TIME_BYTES 32

struct values {
    bool json, all;
    uint64_t older_than_days;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "all",
     .offset = offsetof(struct values, all),
     .help = "prune: whatever nobody uses"},
    {.kind = OPTION_NUMBER,
     .long_name = "older-than",
     .value = "DAYS",
     .offset = offsetof(struct values, older_than_days),
     .min = 1,
     .max = 36500,
     .help = "prune: what was not used for so many days; default: 30"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

static void format_time(uint64_t unix_ms, char ret[static TIME_BYTES])
{
    const time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;

    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(ret, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        (void)snprintf(ret, TIME_BYTES, "?"); /* always fits */
}

static json_t *entry_json(const struct image_entry *entry, const bool *removed)
{
    json_t *json = json_object();

    json_put_text(json, "chain_id", entry->chain_id);
    json_put_int(json, "bytes", (int64_t)entry->bytes);
    json_put_int(json, "entries", (int64_t)entry->entries);
    json_put_int(json, "used_unix_ms", (int64_t)entry->used_unix_ms);
    json_put_bool(json, "in_use", entry->in_use);
    if (removed != NULL)
        json_put_bool(json, "removed", *removed);
    return json;
}

static void entry_line(struct buf *text, const struct image_entry *entry, const char *state)
{
    char used[TIME_BYTES];

    format_time(entry->used_unix_ms, used);
    buf_format(text, "%s  %8.1f MiB  %8ju entries  last used %s%s\n", entry->chain_id,
               (double)entry->bytes / (1 << 20), (uintmax_t)entry->entries, used, state);
}

/* What prune is asked to remove. In-use ones it asks for, too, and hears that they are. */
static bool is_wanted(const struct values *values, const struct image_entry *entry)
{
    uint64_t days = values->older_than_days != 0 ? values->older_than_days : 30;

    return values->all || entry->used_unix_ms + days * DAY_MS < clock_unix_ms();
}

static int go_through(const struct values *values, struct store *store, bool prune,
                      struct error **err)
{
    scoped(image_list_done) struct image_list list = {.items = NULL};
    scoped(json_freep) json_t *json = json_array();
    scoped(buf_done) struct buf text = {0};
    int r = images_list(store, &list, err);

    for (size_t i = 0; i < list.count && r == 0; i++) {
        const struct image_entry *entry = &list.items[i];
        bool wanted = prune && is_wanted(values, entry), removed = false;

        if (wanted)
            r = images_remove(store, entry->chain_id, &removed, err);
        json_push(json, entry_json(entry, prune ? &removed : NULL));
        entry_line(&text, entry, removed ? "  removed" : entry->in_use || wanted ? "  in use" : "");
    }
    if (r < 0)
        return r;
    if (values->json)
        return output_json(json, err);
    if (list.count == 0)
        buf_text_append(&text, "no images\n");
    return print_out(&text, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    const char *what = arguments->operand_count > 0 ? arguments->operands[0] : "list";
    bool prune = strcmp(what, "prune") == 0;
    scoped(session_close) struct session session = {0};
    struct session_options options = {.store = true};

    if (!prune && strcmp(what, "list") != 0)
        return error_set(err, ERROR_USER, "list or prune expected, found '%s'", what);
    if (!prune && (values->all || values->older_than_days != 0))
        return error_set(err, ERROR_USER, "--all and --older-than go with prune");
    int r = session_open(&options, &session, err);

    if (r == 0)
        r = session_open_store(&session, NULL, err);
    return r < 0 ? r : go_through(values, session.store, prune, err);
}

static const struct values defaults = {0};

const struct command command_cache = {
    .name = "cache",
    .summary = "list the unpacked images in the store, or remove those that nobody uses",
    .operands = "[list | prune]",
    .description = "An image is unpacked once and shared by all cells that use it. prune removes "
                   "what was not used for 30 days, never what is in use.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = 1,
    .run = run,
};
