#include "run/limits.h"

struct lack {
    const char *name;
    bool wanted;
    enum cell_cgroup kind;
};

#define LACKS 2

static bool lacks(const struct monitor_facts *facts, const struct lack *lack)
{
    return lack->wanted && (facts == NULL || (facts->limits & 1u << lack->kind) == 0);
}

static void list_lacks(const struct task_limits *limits, struct lack ret[static LACKS])
{
    ret[0] = (struct lack){"max_memory_mb", limits->max_memory_mb > 0, CELL_CGROUP_MEMORY};
    ret[1] = (struct lack){"max_cpus", limits->max_cpu_millis > 0, CELL_CGROUP_CPU};
}

int limits_check(const struct monitor_facts *facts, const char *task_id,
                 const struct task_limits *limits, struct error **err)
{
    struct lack all[LACKS];

    if (limits->best_effort)
        return 0;
    list_lacks(limits, all);
    for (size_t i = 0; i < LACKS; i++) {
        if (lacks(facts, &all[i]))
            return error_set(err, ERROR_SYSTEM,
                             "task '%s' sets sandbox.limits.%s, which cannot be enforced here: %s; "
                             "best_effort: true runs without it",
                             task_id, all[i].name,
                             facts == NULL                     ? "the driver tempdir limits nothing"
                             : facts->limits_reason[0] != '\0' ? facts->limits_reason
                                                               : "no such cgroup controller");
    }
    return 0;
}

json_t *limits_json(const struct monitor_facts *facts, const struct task_limits *limits)
{
    json_t *json = json_object();
    json_t *missing = json_array();
    struct lack all[LACKS];

    json_put_int(json, "task_timeout_ms", (int64_t)limits->task_timeout_ms);
    json_put_int(json, "turn_timeout_ms", (int64_t)limits->turn_timeout_ms);
    if (limits->max_memory_mb > 0)
        json_put_int(json, "max_memory_mb", (int64_t)limits->max_memory_mb);
    if (limits->max_cpu_millis > 0)
        json_put_int(json, "max_cpu_millis", (int64_t)limits->max_cpu_millis);
    json_put_int(json, "max_pids", (int64_t)limits->max_pids);
    json_put_int(json, "max_disk_mb", (int64_t)limits->max_disk_mb);
    json_put_int(json, "max_inodes", (int64_t)limits->max_inodes);
    json_put_int(json, "max_output_mb", (int64_t)limits->max_output_mb);
    list_lacks(limits, all);
    for (size_t i = 0; i < LACKS; i++) {
        if (lacks(facts, &all[i]))
            json_push(missing, json_text_or_null(all[i].name));
    }
    for (size_t i = 0; facts->driver == CELL_TEMPDIR && i < 3; i++)
        json_push(missing,
                  json_text_or_null((const char *[]){"max_pids", "max_disk_mb", "max_inodes"}[i]));
    json_put(json, "not_enforced", missing);
    return json;
}

static void add(struct str_list *env, const char *name, const char *before, uint64_t mb,
                const char *after)
{
    str_list_add_take(env, str_format("%s=%s%llu%s", name, before, (unsigned long long)mb, after));
}

void limits_env(const struct task_limits *limits, struct str_list *env)
{
    uint64_t mb = limits->max_memory_mb;

    if (mb == 0)
        return;
    /* Some room for what is not heap. */
    add(env, "GOMEMLIMIT", "", mb - mb / 10, "MiB");
    add(env, "NODE_OPTIONS", "--max-old-space-size=", mb - mb / 4, "");
    add(env, "JAVA_TOOL_OPTIONS", "-XX:MaxRAM=", mb, "m");
}

json_t *limits_used_json(const struct cell_receipt *receipt)
{
    json_t *json = json_object();
    bool known = receipt->has_memory;
    /* The last look is at a cell without programs. */
    bool looked = known && receipt->memory_looks > 1;

    json_put_int(json, "cpu_ms", (int64_t)(receipt->cpu_us / 1000));
    json_put(json, "memory_peak_bytes",
             known ? json_integer((json_int_t)receipt->memory_peak_bytes) : json_null());
    json_put(json, "memory_private_peak_bytes",
             looked ? json_integer((json_int_t)receipt->private_peak_bytes) : json_null());
    json_put(json, "memory_shared_peak_bytes",
             looked ? json_integer((json_int_t)receipt->shared_peak_bytes) : json_null());
    json_put(json, "oom_kills", known ? json_integer((json_int_t)receipt->oom_kills) : json_null());
    return json;
}
