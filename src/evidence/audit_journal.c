#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/audit_internal.h"
#include "record/run_dir.h"

#define JOURNAL "journal.jsonl"

/* The line at hand. */
struct line {
    struct auditing *auditing;
    size_t number;
    const char *text;
    size_t size;
    json_t *json;
    char *place; /* owned */
};

static void line_done(struct line *line)
{
    json_decref(line->json);
    free(line->place);
}

/* It is what we would write, byte for byte: else a change might hide in another spelling. */
static bool is_as_written(const struct line *line)
{
    scoped(buf_done) struct buf again = {0};

    json_write_line(&again, line->json);
    return again.size_bytes == line->size && memcmp(again.data, line->text, line->size) == 0;
}

static void check_promise(const struct line *line, struct error **err, int *r)
{
    scoped(mem_freep) char *digest = NULL;

    *r = audit_digest(line->auditing, line->auditing->run_fd, "plan.json", &digest, err);
    if (*r == 0 && !str_equal(digest, json_get_text(line->json, "plan")))
        audit_find(line->auditing, "plan.json",
                   "it is not the plan that line 1 of the journal promised");
}

/* --- the seal ----------------------------------------------------------------------------------
 */

/* What the seal's own digest is of: the line without what comes after. */
static struct sha256 sealed_digest(const struct line *line)
{
    static const char *const after[] = {"digest", "key", "signature"};
    scoped(json_freep) json_t *bare = json_copy(line->json);
    scoped(buf_done) struct buf text = {0};

    for (size_t i = 0; i < ARRAY_SIZE(after); i++)
        (void)json_object_del(bare, after[i]); /* absent is fine */
    json_write_line(&text, bare);
    return sha256_of(buf_text(&text), text.size_bytes);
}

static void check_signature(const struct line *line, const struct sha256 *digest, bool is_last)
{
    const char *key = json_get_text(line->json, "key");
    const char *text = json_get_text(line->json, "signature");
    struct audit *audit = line->auditing->audit;
    struct signing_public signer;
    uint8_t signature[SIGNING_BYTES];

    if (key == NULL && text == NULL)
        return;
    if (key == NULL || text == NULL || !signing_parse(text, signature) ||
        signing_public_parse("key", key, &signer, NULL) < 0 ||
        !signing_verify(&signer, digest, signature)) {
        audit_find(line->auditing, line->place, "its signature is not of this line");
        return;
    }
    if (is_last) {
        audit->has_signature = true;
        audit->signer = signer;
    }
}

static int check_sealed_files(const struct line *line, struct error **err)
{
    const json_t *files = json_get_object(line->json, "files");

    for (size_t i = 0; run_sealed_files[i] != NULL; i++) {
        const char *name = run_sealed_files[i];
        scoped(mem_freep) char *digest = NULL;
        int r = audit_digest(line->auditing, line->auditing->run_fd, name, &digest, err);

        if (r < 0)
            return r;
        line->auditing->audit->files += digest != NULL;
        if (!str_equal(digest, json_get_text(files, name)))
            audit_find(line->auditing, name, "it is not as it was when the run was sealed");
    }
    return 0;
}

static int check_seal(const struct line *line, bool is_last, struct error **err)
{
    struct sha256 digest = sealed_digest(line);
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, hex);
    if (!str_equal(hex, json_get_text(line->json, "digest")))
        audit_find(line->auditing, line->place, "the seal's digest is not of its line");
    check_signature(line, &digest, is_last);
    if (!is_last) /* files may have changed since, in a resumed run */
        return 0;
    line->auditing->audit->has_seal = true;
    return check_sealed_files(line, err);
}

/* --- lines -------------------------------------------------------------------------------------
 */

static void note_finish(const struct line *line)
{
    const char *trial = json_get_text(line->json, "trial");
    const char *record = json_get_text(line->json, "record");

    if (trial == NULL || record == NULL)
        audit_find(line->auditing, line->place, "a trial's end without its id and record");
    else
        json_put_text(line->auditing->records, trial, record);
}

static int check_line(const struct line *line, const char *prev, bool is_last, struct error **err)
{
    const char *event = json_get_text(line->json, "event");
    int r = 0;

    if (!is_as_written(line))
        audit_find(line->auditing, line->place, "it is not as closedbook writes lines");
    if (!str_equal(prev, json_get_text(line->json, "prev")))
        audit_find(line->auditing, line->place, "it does not go on from the line before");
    if (line->number == 1 && !str_equal(event, "promise"))
        audit_find(line->auditing, line->place, "the first line promises no plan");
    if (str_equal(event, "promise"))
        check_promise(line, err, &r);
    else if (str_equal(event, "finish"))
        note_finish(line);
    else if (str_equal(event, "seal"))
        r = check_seal(line, is_last, err);
    return r;
}

/* Fills in the rest of a line; prev becomes its digest. */
static int read_line(struct line *line, char prev[static SHA256_HEX_CHARS + 1], bool is_last,
                     struct error **err)
{
    struct sha256 digest = sha256_of(line->text, line->size);
    int r = 0;

    line->place = str_format(JOURNAL ":%zu", line->number);
    line->auditing->audit->lines++;
    if (json_parse(JOURNAL, line->text, line->size, &line->json, NULL) < 0)
        audit_find(line->auditing, line->place, "it is no JSON object");
    else
        r = check_line(line, prev, is_last, err);
    sha256_format(&digest, prev);
    return r;
}

static void check_end(struct auditing *auditing)
{
    struct audit *audit = auditing->audit;
    scoped(mem_freep) char *place = str_format(JOURNAL ":%ju", (uintmax_t)audit->lines);

    if (!audit->has_seal)
        audit_find(auditing, place,
                   "the run is not sealed: it goes on, was broken off, or its last line is gone");
    if (auditing->key == NULL)
        return;
    if (!audit->has_signature)
        audit_find(auditing, place, "nobody signed it");
    else if (memcmp(&audit->signer, auditing->key, sizeof(audit->signer)) != 0)
        audit_find(auditing, place, "another key signed it than the one that was given");
}

int audit_journal(struct auditing *auditing, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = fs_open_regular(auditing->run_fd, JOURNAL);
    struct sha256 none = {{0}};
    char prev[SHA256_HEX_CHARS + 1];

    if (fd < 0)
        return error_errno_as(err, ERROR_USER, -fd, "no journal of a run can be read here");
    int r = fs_read_fd(fd, JOURNAL, RUN_FILE_BYTES_MAX, &text, err);
    const char *at = buf_text(&text), *end = at + text.size_bytes;

    sha256_format(&none, prev);
    auditing->audit->files++;
    auditing->audit->bytes += text.size_bytes;
    for (size_t number = 1; r == 0 && at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));

        if (newline == NULL) {
            scoped(mem_freep) char *place = str_format(JOURNAL ":%zu", number);

            audit_find(auditing, place, "the line is torn");
            break;
        }
        scoped(line_done) struct line line = {
            .auditing = auditing, .number = number, .text = at, .size = (size_t)(newline - at)};

        r = read_line(&line, prev, newline + 1 == end, err);
        at = newline + 1;
    }
    if (r == 0)
        check_end(auditing);
    return r;
}
