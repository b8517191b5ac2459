#pragma once
/*
 * host_record: what became of the host while a run was on: RUN/host.json (docs/formats/run.md).
 */

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#define HOST_RECORD_BYTES_MAX ((size_t)16 << 20)
#define HOST_RECORD_LINES_MAX 10000

struct host_record {
    bool evaluated;          /* false: the run did not look (and the rest is empty) */
    uint64_t paths;          /* that were compared */
    uint64_t count;          /* of differences; more than none: COMPROMISED */
    struct str_list changes; /* the first of them: "added: /a/b" */
};

/* An absent file is a record that is not evaluated. ERROR_SYSTEM when it is damaged. */
must_check int host_record_read(int run_fd, struct host_record *ret, struct error **err) nonnull(2);
must_check int host_record_write(int run_fd, const struct host_record *record, struct error **err)
    nonnull(2);
/* {"verdict", "paths", "count", "changes"}, or null when not evaluated; new reference. */
json_t *host_record_json(const struct host_record *record) nonnull(1);
void host_record_done(struct host_record *record) nonnull(1);
