#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "record/signing.h"

struct values {
    const char *output;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .short_name = 'o',
     .long_name = "output",
     .value = "FILE",
     .offset = offsetof(struct values, output),
     .help = "the private key's file; default: closedbook.key; FILE.pub is the public one's"},
};

static int write_new(const char *path, mode_t mode, const struct buf *text, struct error **err)
{
    scoped(fd_closep) int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0 && errno == EEXIST)
        return error_set(err, ERROR_USER, "'%s' exists already, and a key is never overwritten",
                         path);
    if (fd < 0)
        return error_errno_as(err, ERROR_USER, errno, "cannot make '%s'", path);
    int r = fs_write_all(fd, path, buf_text(text), text->size_bytes, err);

    if (r == 0 && fsync(fd) < 0)
        r = error_errno(err, errno, "cannot sync '%s'", path);
    if (r < 0)
        (void)unlink(path); /* half a key is none */
    return r;
}

static int write_pair(const char *path, const struct signing_key *key, struct error **err)
{
    const struct signing_public public = signing_key_public(key);
    scoped(mem_freep) char *public_path = str_format("%s.pub", path);
    scoped(buf_done) struct buf secret = {0};
    scoped(buf_done) struct buf open_text = {0};

    signing_public_write(&public, &open_text);
    signing_key_write(key, &secret);
    int r = write_new(path, 0600, &secret, err);

    signing_clean(&secret);
    if (r < 0)
        return r;
    r = write_new(public_path, 0644, &open_text, err);
    if (r < 0)
        (void)unlink(path); /* a pair or nothing */
    return r;
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(signing_key_freep) struct signing_key *key = NULL;
    scoped(buf_done) struct buf text = {0};
    char name[SIGNING_PUBLIC_CHARS + 1];
    int r = signing_key_make(&key, err);

    if (r == 0)
        r = write_pair(values->output, key, err);
    if (r < 0)
        return r;
    const struct signing_public public = signing_key_public(key);

    signing_public_format(&public, name);
    buf_format(&text, "%s\n", name);
    return print_out(&text, err);
}

static const struct values defaults = {.output = "closedbook.key"};

const struct command command_keygen = {
    .name = "keygen",
    .summary = "make a key that signs the records of runs",
    .operands = "",
    .description = "Ed25519, as PEM files: the private key, for run --sign-key, and FILE.pub, for\n"
                   "audit --key. Prints the public key. Nothing is overwritten.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = 0,
    .run = run,
};
