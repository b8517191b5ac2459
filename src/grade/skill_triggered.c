#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/shell_text.h"

#define FOLDER "skills"

/* --- configuration --------------------------------------------------------------------------- */

void skill_triggered_check(const struct criterion *criterion, const struct complaints *complaints)
{
    const char *name = json_get_text(criterion->params, "skill_name");

    if (name == NULL || name[0] == '\0')
        complain(complaints, "/skill_name", "expected the name of a skill");
    else if (strpbrk(name, ":/\\") != NULL)
        complain(complaints, "/skill_name",
                 "'%.60s': expected the skill's own name, without its plugin and without folders",
                 name);
}

/* --- one call -------------------------------------------------------------------------------- */

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* Whether the text has "skills/NAME/", with either separator, any number of them. */
static bool has_path(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strstr(text, FOLDER); at != NULL; at = strstr(at + 1, FOLDER)) {
        const char *rest = at + strlen(FOLDER);

        if (!is_separator(*rest))
            continue;
        rest += strspn(rest, "/\\");
        if (strncmp(rest, name, length) == 0 && is_separator(rest[length]))
            return true;
    }
    return false;
}

/* Whether a text anywhere in the parameters names a file of the skill. */
static bool any_has_path(const json_t *value, const char *name)
{
    const char *key;
    size_t i;
    json_t *item;

    if (json_is_string(value)) {
        scoped(mem_freep) char *normal = shell_normal(json_string_value(value));

        return has_path(json_string_value(value), name) ||
               (normal != NULL && has_path(normal, name));
    }
    json_array_foreach (value, i, item)
        if (any_has_path(item, name))
            return true;
    json_object_foreach ((json_t *)(uintptr_t)value, key, item)
        if (any_has_path(item, name))
            return true;
    return false;
}

/* The skill that a Skill call asks for, without "plugin:"; NULL: it is none. */
static const char *skill_of(const struct event *call)
{
    static const char *const keys[] = {"skill", "command", "name"};
    const char *skill = NULL;

    if (!str_equal(call->tool, "Skill"))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(keys) && skill == NULL; i++)
        skill = json_get_text(call->input, keys[i]);
    const char *colon = skill == NULL ? NULL : strrchr(skill, ':');

    return colon != NULL ? colon + 1 : skill;
}

static bool triggers(const struct event *event, const char *name)
{
    return event->kind == EVENT_TOOL_CALL &&
           (str_equal(skill_of(event), name) || any_has_path(event->input, name));
}

/* --- all calls ------------------------------------------------------------------------------- */

int skill_triggered_evaluate(const struct criterion *criterion, const struct grade_input *input,
                             struct verdict *ret, struct error **err)
{
    const char *name = json_get_text(criterion->params, "skill_name");
    const char *expected = json_get_text(criterion->params, "expected_skill");
    bool wanted = expected == NULL || str_equal(expected, name);
    scoped(buf_done) struct buf details = DETAILS_INIT;
    const struct event_log *log = input->events;
    size_t calls = 0, attempts = 0;

    if (name == NULL)
        return error_set(err, ERROR_BUG, "skill_triggered without a skill");
    for (size_t i = 0; i < log->count; i++) {
        bool hit = triggers(&log->events[i], name);

        calls += hit && log->events[i].source != EVENT_STREAM;
        attempts += hit && log->events[i].source == EVENT_STREAM;
    }
    buf_format(&details, "skill %s: observed %s (%zu call%s), expected %s\n", name,
               calls > 0 ? "yes" : "no", calls, calls == 1 ? "" : "s", wanted ? "yes" : "no");
    if (attempts > 0)
        buf_format(&details, "not counted: %zu that only the agent's output shows\n", attempts);
    if (!input->events_trusted) {
        buf_text_append(&details, "informational: the agent reported these calls itself\n");
        ret->informational = true;
    }
    verdict_label(ret, calls > 0 ? "yes" : "no", wanted ? "yes" : "no");
    /* What was not recorded, or not by a witness, may be what must not be. */
    if (!wanted && calls == 0 && (log->cut || attempts > 0)) {
        buf_text_append(&details, log->cut ? "the record of events is cut: it cannot be told\n"
                                           : "the agent's output shows it, its traffic does not\n");
        verdict_agent_error(ret, &details);
        return 0;
    }
    verdict_score(ret, (calls > 0) == wanted ? 1 : 0, &details);
    return 0;
}

bool skill_triggered_seen(const struct criterion *criterion, const struct event_log *events)
{
    const char *name = json_get_text(criterion->params, "skill_name");

    for (size_t i = 0; name != NULL && i < events->count; i++) {
        if (triggers(&events->events[i], name))
            return true;
    }
    return false;
}
