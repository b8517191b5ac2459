#include "record/host_record.h"

#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"

#define FILE_NAME "host.json"

static int read_fields(const json_t *json, struct host_record *ret, struct error **err)
{
    const json_t *changes = json_object_get(json, "changes");
    int64_t paths = json_get_int(json, "paths", -1), count = json_get_int(json, "count", -1);

    if (!str_equal(json_get_text(json, "schema"), "closedbook/host/1") || paths < 0 || count < 0 ||
        !json_is_array(changes) || json_array_size(changes) > HOST_RECORD_LINES_MAX)
        return error_set(err, ERROR_SYSTEM, FILE_NAME ": no closedbook/host/1 record");
    ret->evaluated = true;
    ret->paths = (uint64_t)paths;
    ret->count = (uint64_t)count;
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const char *line = json_string_value(json_array_get(changes, i));

        if (line != NULL)
            str_list_add(&ret->changes, line);
    }
    return 0;
}

int host_record_read(int run_fd, struct host_record *ret, struct error **err)
{
    scoped(host_record_done) struct host_record record = {0};
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *json = NULL;
    int r;

    if (faccessat(run_fd, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        *ret = record;
        return 0;
    }
    r = fs_read_file(run_fd, FILE_NAME, HOST_RECORD_BYTES_MAX, &text, err);
    if (r == 0)
        r = json_parse(FILE_NAME, buf_text(&text), text.size_bytes, &json, err);
    if (r == 0)
        r = read_fields(json, &record, err);
    if (r < 0)
        return r;
    *ret = record;
    record = (struct host_record){0};
    return 0;
}

json_t *host_record_json(const struct host_record *record)
{
    json_t *json = json_object();
    json_t *changes = json_array();

    for (size_t i = 0; i < record->changes.count && i < HOST_RECORD_LINES_MAX; i++)
        json_push(changes, json_text(record->changes.items[i], strlen(record->changes.items[i])));
    json_put_text(json, "verdict", record->count > 0 ? "COMPROMISED" : "unchanged");
    json_put_int(json, "paths", (int64_t)record->paths);
    json_put_int(json, "count", (int64_t)record->count);
    json_put(json, "changes", changes);
    if (record->evaluated)
        return json;
    json_decref(json);
    return json_null();
}

int host_record_write(int run_fd, const struct host_record *record, struct error **err)
{
    scoped(json_freep) json_t *json = json_object();
    scoped(json_freep) json_t *fields = host_record_json(record);
    scoped(buf_done) struct buf text = {0};

    json_put_text(json, "schema", "closedbook/host/1");
    ASSERT(record->evaluated && json_object_update(json, fields) == 0);
    json_write_pretty(&text, json);
    return fs_write_atomic(run_fd, FILE_NAME,
                           &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_SYNC},
                           err);
}

void host_record_done(struct host_record *record)
{
    str_list_done(&record->changes);
    *record = (struct host_record){0};
}
