#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "collect/collect.h"
#include "evidence/audit.h"
#include "run/session.h"

struct values {
    const char *key;
    bool json;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .long_name = "key",
     .value = "FILE",
     .offset = offsetof(struct values, key),
     .help = "who must have signed: a public key's file, or ed25519:HEX"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

static int load_key(const struct session *session, const char *name, struct signing_public *ret,
                    struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    if (strncmp(name, "ed25519:", strlen("ed25519:")) == 0)
        return signing_public_parse(name, name, ret, err);
    scoped(fd_closep) int fd =
        session->reader.open(session->reader.context, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno_as(err, ERROR_USER, -fd, "cannot open the key '%s'", name);
    int r = fs_read_fd(fd, name, SIGNING_FILE_BYTES_MAX, &text, err);

    return r < 0 ? r : signing_public_parse(name, buf_text(&text), ret, err);
}

static void show_signer(const struct audit *audit, bool key_given, struct buf *text)
{
    char key[SIGNING_PUBLIC_CHARS + 1];

    if (!audit->has_signature) {
        buf_text_append(text,
                        "Nobody signed it: whoever could write there could have made all of it "
                        "anew.\n");
        return;
    }
    signing_public_format(&audit->signer, key);
    buf_format(text, "Signed by %s%s.\n", key,
               key_given ? "" : "; whose key that is, --key checks");
}

static void show(const struct audit *audit, bool key_given, struct buf *text)
{
    for (size_t i = 0; i < audit->count; i++) {
        term_quote(text, audit->items[i].place, strlen(audit->items[i].place), TERM_ONE_LINE);
        buf_text_append(text, ": ");
        term_quote(text, audit->items[i].what, strlen(audit->items[i].what), TERM_ONE_LINE);
        buf_char(text, '\n');
    }
    if (audit->dropped > 0)
        buf_format(text, "and %zu more\n", audit->dropped);
    buf_format(text, "%s: %ju trials, %ju lines of the journal, %ju files, %ju bytes\n",
               audit->count == 0 ? "intact" : "NOT INTACT", (uintmax_t)audit->trials,
               (uintmax_t)audit->lines, (uintmax_t)audit->files, (uintmax_t)audit->bytes);
    if (audit->count > 0)
        return;
    if (audit->withheld > 0)
        buf_format(text, "A bundle: %ju files were left out; their digests are proven, too.\n",
                   (uintmax_t)audit->withheld);
    buf_text_append(text,
                    "Proven: nothing of the run changed since it was sealed; each trial's score, "
                    "verdict and status\nfollow from its criteria; the plan is the one promised "
                    "before the first trial.\n"
                    "Not proven: that this machine did what it wrote down.\n");
    show_signer(audit, key_given, text);
    for (size_t i = 0; i < audit->derived.count; i++) {
        buf_text_append(text, "Not looked at, as 'closedbook report' makes it anew: ");
        term_quote(text, audit->derived.items[i], strlen(audit->derived.items[i]), TERM_ONE_LINE);
        buf_char(text, '\n');
    }
}

/* A bundle's files, in a folder of our own. */
struct unpacked {
    char *path; /* NULL: nothing was unpacked */
};

static void unpacked_done(struct unpacked *unpacked)
{
    scoped(error_freep) struct error *error = NULL;

    if (unpacked->path != NULL && fs_remove_tree(AT_FDCWD, unpacked->path, &error) < 0)
        print_error(error);
    free(unpacked->path);
}

static int unpack(int tar_fd, const char *path, struct unpacked *unpacked, int *ret,
                  struct error **err)
{
    const char *temporary = getenv("TMPDIR");
    scoped(mem_freep) char *random = random_hex(16);
    scoped(fd_closep) int fd = -1;
    uint64_t files = 0;

    unpacked->path =
        str_format("%s/closedbook-audit-%s",
                   temporary != NULL && temporary[0] == '/' ? temporary : "/tmp", random);
    int r = fs_open_dir(AT_FDCWD, unpacked->path, 0700, &fd, err);

    if (r == 0)
        r = artifacts_extract(tar_fd, path, fd, true, &files, err);
    if (r < 0)
        return r;
    *ret = take_fd(&fd);
    return 0;
}

/* The directory of a run, or of what a bundle holds. */
static int open_run(const struct session *session, const char *path, struct unpacked *unpacked,
                    int *ret, struct error **err)
{
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOTDIR) {
        fd = session->reader.open(session->reader.context, path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? error_errno_as(err, ERROR_USER, -fd, "cannot open '%s'", path)
                      : unpack(fd, path, unpacked, ret, err);
    }
    if (fd < 0)
        return error_errno_as(err, ERROR_USER, errno, "cannot open run directory '%s'", path);
    *ret = take_fd(&fd);
    return 0;
}

static int audit(const struct arguments *arguments, const struct session *session,
                 struct error **err)
{
    const struct values *values = arguments->values;
    const char *path = arguments->operands[0];
    scoped(unpacked_done) struct unpacked unpacked = {0};
    scoped(fd_closep) int fd = -1;
    scoped(audit_done) struct audit found = {0};
    scoped(buf_done) struct buf text = {0};
    struct signing_public key;
    int r = open_run(session, path, &unpacked, &fd, err);

    if (r == 0 && values->key != NULL)
        r = load_key(session, values->key, &key, err);
    if (r == 0)
        r = audit_run(fd, values->key != NULL ? &key : NULL, &found, err);
    if (r < 0)
        return error_wrap(err, r, "'%s'", path);
    if (values->json) {
        scoped(json_freep) json_t *json = audit_to_json(&found);

        r = output_json(json, err);
    } else if (!arguments->is_quiet || found.count > 0) {
        show(&found, values->key != NULL, &text);
        r = print_out(&text, err);
    }
    return r < 0 ? r : found.count > 0;
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {.owner_of = arguments->operands[0]};
    int r = session_open(&options, &session, err);

    return r < 0 ? r : audit(arguments, &session, err);
}

const struct command command_audit = {
    .name = "audit",
    .summary = "is a run as it was when it was sealed, and does it add up?",
    .operands = "RUN|FILE",
    .description =
        "Checks the chain of the journal, its seal and signature, the digest of every file, and\n"
        "the arithmetic of every trial. Exit status 1 for anything that does not fit. FILE is\n"
        "a bundle.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
