#include "run/replay.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/broker.h"
#include "broker/recording.h"
#include "run/session.h"

#define FACTS_NAME "recording.json"
#define FACTS_BYTES_MAX ((size_t)1 << 20)

struct replay {
    char *path;
    bool answers;
    struct task_reader reader; /* to answer */
    int dir_fd;                /* to record; -1: not made */
    json_t *facts;             /* {closedbook_recording, agent: [routes], judges: [routes]} */
};

struct replay *replay_new(const char *path)
{
    struct replay *replay = mem_new(1, sizeof(*replay));

    *replay = (struct replay){.path = str_dup(path), .dir_fd = -1, .facts = json_object()};
    json_put_int(replay->facts, "closedbook_recording", RECORDING_VERSION);
    json_put(replay->facts, REPLAY_AGENT, json_null());
    json_put(replay->facts, REPLAY_JUDGES, json_null());
    return replay;
}

void replay_free(struct replay *replay)
{
    if (replay == NULL)
        return;
    json_decref(replay->facts);
    free(replay->path);
    free(replay);
}

static void replay_freep(struct replay **replay)
{
    replay_free(*replay);
}

bool replay_answers(const struct replay *replay)
{
    return replay != NULL && replay->answers;
}

/* --- what a recording says of itself ---------------------------------------------------------- */

/* Each with its name, format and base URL, and never the name of a key. */
static bool is_routes(const json_t *list)
{
    const json_t *item;
    size_t i;

    if (json_is_null(list))
        return true;
    if (!json_is_array(list) || json_array_size(list) > ROUTES_MAX)
        return false;
    json_array_foreach (list, i, item) {
        if (json_object_size(item) != 3 || json_get_text(item, "name") == NULL ||
            json_get_text(item, "api") == NULL || json_get_text(item, "base_url") == NULL)
            return false;
    }
    return true;
}

static int check_facts(const char *path, const json_t *facts, struct error **err)
{
    int64_t version = json_get_int(facts, "closedbook_recording", 0);

    if (version >= 1 && version != RECORDING_VERSION)
        return error_set(err, ERROR_USER,
                         "'%s' is a recording of version %lld, and this closedbook replays %d: "
                         "record again",
                         path, (long long)version, RECORDING_VERSION);
    if (version < 1 || json_object_size(facts) != 3 ||
        !is_routes(json_object_get(facts, REPLAY_AGENT)) ||
        !is_routes(json_object_get(facts, REPLAY_JUDGES)))
        return error_set(err, ERROR_USER,
                         "'%s/" FACTS_NAME "' is none that run --record has written: expected "
                         "closedbook_recording, " REPLAY_AGENT " and " REPLAY_JUDGES,
                         path);
    return 0;
}

static int load(const struct session *session, const char *path, struct replay **ret,
                struct error **err)
{
    scoped(replay_freep) struct replay *replay = replay_new(path);
    scoped(mem_freep) char *name = path_join(path, FACTS_NAME);
    scoped(json_freep) json_t *facts = NULL;
    scoped(buf_done) struct buf text = {0};
    int fd = session->reader.open(session->reader.context, name, 0);

    if (fd < 0)
        return error_errno_as(err, ERROR_USER, -fd,
                              "'%s' is no recording: cannot open '%s' (run --record writes it)",
                              path, name);
    scoped(fd_closep) int closes = fd;
    int r = fs_read_fd(closes, name, FACTS_BYTES_MAX, &text, err);

    if (r == 0)
        r = json_parse(name, buf_text(&text), text.size_bytes, &facts, err);
    if (r == 0)
        r = check_facts(path, facts, err);
    if (r < 0)
        return r;
    json_decref(replay->facts);
    replay->facts = take(facts);
    replay->answers = true;
    replay->reader = session->reader;
    *ret = take(replay);
    return 0;
}

int replay_open(struct session *session, const char *record, const char *answer, struct error **err)
{
    if (record != NULL && answer != NULL)
        return error_set(err, ERROR_USER,
                         "--record and --replay: a run either keeps what models answer or is "
                         "answered from what was kept; give one of them");
    if (record != NULL)
        session->replay = replay_new(record);
    return answer == NULL ? 0 : load(session, answer, &session->replay, err);
}

int replay_routes(const struct replay *replay, const char *half, json_t **ret, struct error **err)
{
    const json_t *list = json_get_array(replay->facts, half);
    json_t *item;
    size_t i;

    if (list == NULL)
        return error_set(err, ERROR_USER,
                         "the recording '%s' holds nothing that was asked for its %s, and these "
                         "tasks ask: record the run again",
                         replay->path, half);
    *ret = json_deep_copy(list);
    json_array_foreach (*ret, i, item)
        json_put(item, "key", json_null()); /* none is needed */
    return 0;
}

void replay_note(struct replay *replay, const char *half, const json_t *facts)
{
    json_t *list, *item;
    size_t i;

    if (replay == NULL || replay->answers)
        return;
    list = json_array();
    json_array_foreach (json_get_array(facts, "routes"), i, item) {
        json_t *route = json_object();

        if (!json_get_bool(item, "has_key", false)) {
            json_decref(route);
            continue;
        }
        json_put(route, "name", json_incref(json_object_get(item, "name")));
        json_put(route, "api", json_incref(json_object_get(item, "api")));
        json_put(route, "base_url", json_incref(json_object_get(item, "base_url")));
        json_push(list, route);
    }
    json_put(replay->facts, half, list);
}

/* --- the files of it -------------------------------------------------------------------------- */

int replay_make(struct replay *replay, int dir_fd, bool goes_on, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    replay->dir_fd = dir_fd;
    if (!goes_on && faccessat(dir_fd, FACTS_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return error_set(err, ERROR_USER,
                         "--record '%s': there is a recording already; name another folder, or "
                         "remove it",
                         replay->path);
    json_write_pretty(&text, replay->facts);
    return fs_write_atomic(dir_fd, FACTS_NAME,
                           &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_NO_SYNC},
                           err);
}

static int record_trial(const struct replay *replay, const char *trial, const char *name,
                        int connection, struct error **err)
{
    scoped(fd_closep) int folder_fd = -1;
    int r = fs_open_dir(replay->dir_fd, trial, 0700, &folder_fd, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int fd = openat(
        folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_errno(err, errno, "cannot make '%s'", name);
    return broker_record(connection, fd, err);
}

/* What was not recorded is told to whoever asks. */
static int answer_trial(const struct replay *replay, const char *path, int connection,
                        struct error **err)
{
    int fd = replay->reader.open(replay->reader.context, path, 0);

    if (fd < 0 && fd != -ENOENT)
        return error_errno(err, -fd, "cannot open '%s'", path);
    scoped(fd_closep) int closes = fd < 0 ? -1 : fd;

    return broker_replay(connection, closes, err);
}

int replay_connect(const struct replay *replay, const char *trial, const char *half, int connection,
                   struct error **err)
{
    if (replay == NULL || connection < 0)
        return 0;
    scoped(mem_freep) char *name = str_format("%s.jsonl", half);
    scoped(mem_freep) char *path = str_format("%s/%s/%s", replay->path, trial, name);
    int r = replay->answers ? answer_trial(replay, path, connection, err)
                            : record_trial(replay, trial, name, connection, err);

    return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}
