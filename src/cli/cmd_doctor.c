#include <sys/utsname.h>

#include "cell/probe.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "run/session.h"

struct values {
    bool json;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

static json_t *facts_json(const struct cell_probe *probe)
{
    json_t *facts = json_array();

    for (size_t i = 0; i < PROBE_COUNT; i++) {
        const struct probe_fact *fact = &probe->facts[i];
        json_t *item = json_object();

        json_put_text(item, "name", fact->name);
        json_put_bool(item, "available", fact->available);
        json_put(item, "reason", json_text(fact->reason, strlen(fact->reason)));
        json_put_text(item, "purpose", fact->purpose);
        json_put_text(item, "remedy", fact->remedy);
        json_push(facts, item);
    }
    return facts;
}

static enum cell_tier tier_of(const struct session *session)
{
    return session->native != NULL ? monitor_facts(session->native)->tier : TIER_NONE;
}

/* What a better tier would need. */
static const char *lacking_of(const struct session *session)
{
    return session->native != NULL ? monitor_facts(session->native)->lacking
                                   : error_message(session->native_error);
}

static const char *const limit_names[CELL_CGROUP_KINDS] = {
    [CELL_CGROUP_MEMORY] = "max_memory_mb",
    [CELL_CGROUP_PIDS] = "max_pids",
    [CELL_CGROUP_CPU] = "max_cpus",
};

/* What cgroups limit here. */
static json_t *limits_list(const struct session *session)
{
    json_t *list = json_array();

    for (size_t i = 0; session->native != NULL && i < CELL_CGROUP_KINDS; i++)
        if ((monitor_facts(session->native)->limits & 1u << i) != 0)
            json_push(list, json_text_or_null(limit_names[i]));
    return list;
}

static void list_limits(struct buf *text, const struct session *session)
{
    const struct monitor_facts *facts = monitor_facts(session->native);

    buf_text_append(text, "\nLimits by cgroups:\n");
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++)
        buf_format(text, "  %-3s %s\n", (facts->limits & 1u << i) != 0 ? "yes" : "no",
                   limit_names[i]);
    if (facts->limits_reason[0] != '\0')
        buf_format(text, "      %s\n", facts->limits_reason);
}

static json_t *doctor_json(const struct cell_probe *probe, const struct session *session)
{
    json_t *json = json_object();
    json_t *protections = json_array();
    struct utsname name;

    json_put_text(json, "schema", "closedbook/doctor/1");
    if (uname(&name) == 0)
        json_put_text(json, "kernel", name.release);
    json_put_text(json, "tier", cell_tier_name(tier_of(session)));
    json_put_text(json, "lacking", lacking_of(session));
    json_put_int(json, "landlock_abi", probe->landlock_abi);
    json_put_bool(json, "monitor", session->native != NULL);
    json_put(json, "monitor_error",
             session->native_error == NULL
                 ? json_null()
                 : json_text_or_null(error_message(session->native_error)));
    for (size_t i = 0; session->native != NULL && i < cell_protection_count; i++)
        if ((monitor_facts(session->native)->protections & cell_protection_rows[i].bit) != 0)
            json_push(protections, json_text_or_null(cell_protection_rows[i].name));
    json_put(json, "protections", protections);
    json_put(json, "limits", limits_list(session));
    json_put(json, "facts", facts_json(probe));
    return json;
}

static void list_facts(struct buf *text, const struct cell_probe *probe)
{
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        const struct probe_fact *fact = &probe->facts[i];

        buf_format(text, "  %-3s %-18s %s\n", fact->available ? "yes" : "no", fact->name,
                   fact->reason[0] != 0 ? fact->reason : fact->purpose);
        if (!fact->available && fact->remedy[0] != 0)
            buf_format(text, "      %-18s for %s: %s\n", "", fact->purpose, fact->remedy);
    }
}

static void list_protections(struct buf *text, const struct session *session)
{
    uint64_t bits = monitor_facts(session->native)->protections;

    buf_text_append(text, "\nIn every native cell here:\n");
    for (size_t i = 0; i < cell_protection_count; i++)
        if ((bits & cell_protection_rows[i].bit) != 0)
            buf_format(text, "  %-18s %s\n", cell_protection_rows[i].name,
                       cell_protection_rows[i].meaning);
}

static int doctor(const struct values *values, const struct cell_probe *probe,
                  const struct session *session, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r;

    if (values->json) {
        scoped(json_freep) json_t *json = doctor_json(probe, session);

        r = output_json(json, err);
    } else {
        const struct cell_tier_row *tier = &cell_tier_rows[tier_of(session)];

        buf_format(&text, "Tier %s: %s\n", tier->name, tier->meaning);
        if (session->native != NULL && lacking_of(session)[0] != 0)
            buf_format(&text, "No better tier: %s\n", lacking_of(session));
        if (tier->tier == TIER_C)
            buf_text_append(&text, "Only with --allow-tier C.\n");
        buf_text_append(&text, "\n");
        list_facts(&text, probe);
        if (session->native != NULL) {
            list_protections(&text, session);
            list_limits(&text, session);
        } else {
            buf_format(&text, "\nNo native cell: %s\n", error_message(session->native_error));
        }
        r = print_out(&text, err);
    }
    if (r < 0)
        return r;
    return session->native != NULL ? 0 : error_exit_status(ERROR_SYSTEM);
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {.cells = true};
    struct cell_probe probe;

    /* With the rights that a run would start with: what they are good for is the question. */
    cell_probe(&probe);

    int r = session_open(&options, &session, err);

    return r < 0 ? r : doctor(arguments->values, &probe, &session, err);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "tell what this machine offers to cells, what is missing and how to get it",
    .description = "The exit status is 0 when native cells can be had, else 3.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .run = run,
};
