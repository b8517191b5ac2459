#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/audit_internal.h"
#include "evidence/bundle.h"

#define PIECE_BYTES ((size_t)64 << 10)

void audit_done(struct audit *audit)
{
    for (size_t i = 0; i < audit->count; i++) {
        free(audit->items[i].place);
        free(audit->items[i].what);
    }
    free(audit->items);
    str_list_done(&audit->derived);
    *audit = (struct audit){0};
}

void audit_find(struct auditing *auditing, const char *place, const char *fmt, ...)
{
    struct audit *audit = auditing->audit;
    struct buf text = {0};
    va_list args;

    if (audit->count == AUDIT_FINDINGS_MAX) {
        audit->dropped++;
        return;
    }
    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    if ((audit->count & (audit->count - 1)) == 0)
        audit->items =
            mem_resize(audit->items, size_max(audit->count * 2, 1), sizeof(*audit->items));
    audit->items[audit->count++] =
        (struct audit_finding){.place = str_dup(place), .what = buf_take(&text)};
}

int audit_digest(struct auditing *auditing, int dir_fd, const char *name, char **ret,
                 struct error **err)
{
    scoped(fd_closep) int fd = fs_open_regular(dir_fd, name);
    scoped(sha256_stream_freep) struct sha256_stream *stream = NULL;
    scoped(mem_freep) char *piece = NULL;
    char hex[SHA256_HEX_CHARS + 1];

    *ret = NULL;
    if (fd == -ENOENT || fd == -EINVAL || fd == -ELOOP)
        return 0;
    if (fd < 0)
        return error_errno(err, -fd, "cannot open '%s'", name);
    stream = sha256_stream_new();
    piece = mem_new(PIECE_BYTES, 1);
    for (;;) {
        ssize_t n = read(fd, piece, PIECE_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s'", name);
        if (n == 0)
            break;
        sha256_stream_add(stream, piece, (size_t)n);
        auditing->audit->bytes += (uint64_t)n;
    }
    struct sha256 digest = sha256_stream_end(stream);

    sha256_format(&digest, hex);
    *ret = str_dup(hex);
    return 0;
}

/* --- the top of the directory ------------------------------------------------------------------
 */

static bool is_derived(const char *name)
{
    return str_starts(name, "report.") || str_equal(name, "junit.xml") ||
           str_starts(name, "index.sqlite");
}

static int look_at_top(void *context, int dir_fd, const char *name, struct error **err)
{
    static const char *const ours[] = {"run.json",      "plan.json", "host.json",
                                       "journal.jsonl", "trials",    BUNDLE_FILE};
    struct auditing *auditing = context;
    struct stat status;

    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        if (str_equal(name, ours[i]))
            return 0;
    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_errno(err, errno, "cannot look at '%s'", name);
    if (str_equal(name, "lock")) {
        if (!S_ISREG(status.st_mode) || status.st_size > 0)
            audit_find(auditing, name, "it is not empty: the run goes on, or was broken off");
    } else if (is_derived(name)) {
        str_list_add(&auditing->audit->derived, name);
    } else {
        audit_find(auditing, name, "nothing of the run's has this name");
    }
    return 0;
}

int audit_run(int run_dir_fd, const struct signing_public *key, struct audit *ret,
              struct error **err)
{
    scoped(json_freep) json_t *records = json_object();
    scoped(json_freep) json_t *seen = json_object();
    struct auditing auditing = {
        .run_fd = run_dir_fd, .key = key, .audit = ret, .records = records, .seen = seen};
    const char *id;
    json_t *digest;

    *ret = (struct audit){0};
    int r = bundle_withheld(run_dir_fd, &auditing.withheld, err);
    scoped(json_freep) json_t *withheld = auditing.withheld;

    if (r == 0)
        r = fs_each(run_dir_fd, look_at_top, &auditing, err);

    if (r == 0)
        r = audit_journal(&auditing, err);
    if (r == 0)
        r = audit_trials(&auditing, err);
    if (r < 0)
        return r;
    json_object_foreach (records, id, digest) {
        if (json_object_get(seen, id) == NULL)
            audit_find(&auditing, "trials",
                       "the trial '%s', which the journal says has finished, is not there", id);
    }
    str_list_sort(&ret->derived);
    return 0;
}

json_t *audit_to_json(const struct audit *audit)
{
    json_t *json = json_object(), *findings = json_array(), *derived = json_array();
    char key[SIGNING_PUBLIC_CHARS + 1];

    json_put_text(json, "schema", "closedbook/audit/1");
    json_put_bool(json, "intact", audit->count == 0);
    json_put_bool(json, "sealed", audit->has_seal);
    if (audit->has_signature)
        signing_public_format(&audit->signer, key);
    json_put(json, "signed_by", json_text_or_null(audit->has_signature ? key : NULL));
    json_put_int(json, "lines", (int64_t)audit->lines);
    json_put_int(json, "trials", (int64_t)audit->trials);
    json_put_int(json, "files", (int64_t)audit->files);
    json_put_int(json, "bytes", (int64_t)audit->bytes);
    json_put_int(json, "withheld", (int64_t)audit->withheld);
    for (size_t i = 0; i < audit->count; i++) {
        json_t *finding = json_object();
        const char *place = audit->items[i].place, *what = audit->items[i].what;

        json_put(finding, "place", json_text(place, strlen(place)));
        json_put(finding, "what", json_text(what, strlen(what)));
        json_push(findings, finding);
    }
    json_put(json, "findings", findings);
    json_put_int(json, "dropped", (int64_t)audit->dropped);
    for (size_t i = 0; i < audit->derived.count; i++)
        json_push(derived, json_text_or_null(audit->derived.items[i]));
    json_put(json, "derived", derived);
    return json;
}
