/*
 * closedbook-unpack: reads a hostile image and lays it into a folder, in a cell of its own, by
 * descriptor only.
 *
 *   oci [OPTIONS]             10 the layout's folder; --into: 11 the destination
 *   docker-archive [OPTIONS]  3 the archive;          --into: 10 the destination
 *   members                   3 any archive or compressed file; prints what is in it (members.h)
 *
 * Options: --tag=TAG, --architecture=NAME, --max-bytes=N, --max-entries=N; --into: make "rootfs" in
 * the destination, else only look. Prints one line of JSON: {"chain_id", "env", "workdir", "user",
 * "entrypoint", "cmd", "layers", "bytes", "entries", "dropped"}. Failure: one line "code: message"
 * on standard error, status 1. Each blob is checked against its digest, each layer against the
 * configuration's; whoever started this uses the folder only after a success.
 */

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "image/layer.h"
#include "image/layout.h"
#include "image/members.h"

#define FIRST_FD 10 /* CELL_WORKER_FD of cell/cell.h, which this program does not include */
#define ARCHIVE_FD 3
#define READ_BYTES ((size_t)256 << 10)
#define INDEX_DEPTH_MAX 4
#define MEMBERS_MAX 4096
#define DEFAULT_BYTES ((uint64_t)64 << 30)
#define DEFAULT_ENTRIES ((uint64_t)4000000)

#ifdef CLOSEDBOOK_SANITIZED
/* In its cell there is no /proc to look for leaks by; tests look for them in process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

struct options {
    struct layout_want want;
    struct rootfs_limits limits;
    bool into;
    int into_fd;
};

/* What is printed at the end. */
struct outcome {
    struct layout_config config;
    struct rootfs *rootfs; /* NULL: only looked */
    uint64_t dropped;
};

static void outcome_done(struct outcome *outcome)
{
    layout_config_done(&outcome->config);
    rootfs_freep(&outcome->rootfs);
}

/* --- a layer against what it should be */

static int check_digest(const char *what, const struct sha256 *wanted, const struct sha256 *found,
                        struct error **err)
{
    char want[SHA256_HEX_CHARS + 1], has[SHA256_HEX_CHARS + 1];

    if (sha256_equal(wanted, found))
        return 0;
    sha256_format(wanted, want);
    sha256_format(found, has);
    return error_set(err, ERROR_TASK,
                     "%s is damaged: its digest is sha256:%s, sha256:%s was expected", what, has,
                     want);
}

static int apply(struct outcome *outcome, size_t index, const struct layer_source *source,
                 struct error **err)
{
    scoped(mem_freep) char *name = str_format("layer %zu", index + 1);
    struct sha256 found;
    int r = layer_apply(name, source, outcome->rootfs, &found, &outcome->dropped, err);

    return r < 0 ? r : check_digest(name, &outcome->config.diff_ids[index], &found, err);
}

static int check_layer_count(const struct outcome *outcome, size_t count, struct error **err)
{
    if (count == outcome->config.layer_count)
        return 0;
    return error_set(err, ERROR_TASK, "the manifest names %zu layers, the configuration %zu", count,
                     outcome->config.layer_count);
}

/* --- a layout */

/* A blob's file, of the size that its descriptor says. */
static int open_blob(const struct descriptor *descriptor, int *ret, char **ret_name,
                     struct error **err)
{
    char hex[SHA256_HEX_CHARS + 1];
    struct stat status;

    sha256_format(&descriptor->digest, hex);
    scoped(mem_freep) char *path = str_format("blobs/sha256/%s", hex);
    scoped(fd_closep) int fd =
        fs_open_beneath(FIRST_FD, path, O_RDONLY | O_NONBLOCK, 0, FS_LINKS_BENEATH);

    if (fd < 0)
        return error_set(err, ERROR_TASK, "the blob '%s' cannot be opened: %s", path,
                         strerror(-fd));
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return error_set(err, ERROR_TASK, "the blob '%s' is no regular file", path);
    if ((uint64_t)status.st_size != descriptor->size_bytes)
        return error_set(err, ERROR_TASK,
                         "the blob '%s' has %jd bytes, %ju were expected: it is cut off or another",
                         path, (intmax_t)status.st_size, (uintmax_t)descriptor->size_bytes);
    *ret = take_fd(&fd);
    *ret_name = take(path);
    return 0;
}

static int read_blob(const struct descriptor *descriptor, struct buf *ret, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    scoped(mem_freep) char *name = NULL;
    int r = open_blob(descriptor, &fd, &name, err);

    if (r == 0)
        r = fs_read_fd(fd, name, LAYOUT_BYTES_MAX, ret, err);
    if (r < 0)
        return r;
    struct sha256 found = sha256_of(buf_text(ret), ret->size_bytes);

    return check_digest(name, &descriptor->digest, &found, err);
}

/* From the layout's index down to a manifest. */
static int find_manifest(const struct options *options, struct layout_manifest *ret,
                         struct error **err)
{
    struct layout_want want = options->want;
    struct descriptor descriptor;
    scoped(buf_done) struct buf index = {0};
    int r = fs_read_file(FIRST_FD, "index.json", LAYOUT_BYTES_MAX, &index, NULL);

    if (r < 0)
        return error_set(err, ERROR_TASK, "no OCI layout: its 'index.json' cannot be read");
    r = layout_choose("index.json", &index, &want, &descriptor, err);
    /* Tags are the outermost index's. */
    want.tag = NULL;
    for (int depth = 0; r == 0 && descriptor.kind == DESCRIPTOR_INDEX; depth++) {
        scoped(buf_done) struct buf text = {0};

        if (depth == INDEX_DEPTH_MAX)
            return error_set(err, ERROR_TASK, "more than %d indexes inside each other",
                             INDEX_DEPTH_MAX);
        r = read_blob(&descriptor, &text, err);
        if (r == 0)
            r = layout_choose("the image's index", &text, &want, &descriptor, err);
    }
    if (r < 0)
        return r;
    scoped(buf_done) struct buf text = {0};

    r = read_blob(&descriptor, &text, err);
    return r < 0 ? r : layout_manifest_parse("the manifest", &text, ret, err);
}

struct blob_reader {
    int fd;
    const char *name;
    struct sha256_stream *hash;
    char *buffer;
};

static void blob_reader_donep(struct blob_reader *reader)
{
    fd_closep(&reader->fd);
    sha256_stream_free(reader->hash);
    free(reader->buffer);
}

static ssize_t read_blob_part(void *context, const void **ret, struct error **err)
{
    struct blob_reader *reader = context;
    ssize_t n;

    do {
        n = read(reader->fd, reader->buffer, READ_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_errno(err, errno, "cannot read the blob '%s'", reader->name);
    sha256_stream_add(reader->hash, reader->buffer, (size_t)n);
    *ret = reader->buffer;
    return n;
}

static int apply_blob(struct outcome *outcome, size_t index, const struct descriptor *descriptor,
                      struct error **err)
{
    scoped(blob_reader_donep) struct blob_reader reader = {.fd = -1};
    scoped(mem_freep) char *name = NULL;
    scoped(error_freep) struct error *problem = NULL;
    const void *rest = NULL;
    ssize_t n = 1;
    int r = open_blob(descriptor, &reader.fd, &name, err);

    if (r < 0)
        return r;
    reader.name = name;
    reader.hash = sha256_stream_new();
    reader.buffer = mem_new(1, READ_BYTES);
    const struct layer_source source = {.read = read_blob_part, .context = &reader};

    r = apply(outcome, index, &source, &problem);
    /* A damaged blob is called that, whatever else its damage led to. */
    while ((r == 0 || r == -ERROR_TASK) && n > 0)
        n = read_blob_part(&reader, &rest, err);
    if (n < 0)
        return (int)n;
    if (r == 0 || r == -ERROR_TASK) {
        struct sha256 found = sha256_stream_end(reader.hash);
        int digest = check_digest(name, &descriptor->digest, &found, err);

        if (digest < 0)
            return digest;
    }
    if (r < 0)
        *err = take(problem);
    return r;
}

static int unpack_layout(const struct options *options, struct outcome *outcome, struct error **err)
{
    struct layout_manifest manifest;
    scoped(buf_done) struct buf text = {0};
    int r = find_manifest(options, &manifest, err);

    if (r == 0)
        r = read_blob(&manifest.config, &text, err);
    if (r == 0)
        r = layout_config_parse("the configuration", &text, &options->want, &outcome->config, err);
    if (r == 0)
        r = check_layer_count(outcome, manifest.layer_count, err);
    for (size_t i = 0; i < manifest.layer_count && r == 0 && outcome->rootfs != NULL; i++)
        r = apply_blob(outcome, i, &manifest.layers[i], err);
    return r;
}

/* --- an archive of docker's */

struct member {
    char *path, *link; /* link: where it leads, NULL for a file */
    int64_t position;
};

struct members {
    struct member items[MEMBERS_MAX];
    size_t count;
};

static void members_donep(struct members **members)
{
    for (size_t i = 0; *members != NULL && i < (*members)->count; i++) {
        free((*members)->items[i].path);
        free((*members)->items[i].link);
    }
    free(*members);
}

static void archive_donep(struct archive **archive)
{
    if (*archive != NULL)
        (void)archive_read_free(*archive); /* only read from */
}

/* Of a compressed one, each look is from the beginning. */
static int open_archive(struct archive **ret, struct error **err)
{
    struct archive *archive = archive_read_new();

    ASSERT(archive != NULL);
    *ret = archive;
    (void)archive_read_support_format_tar(archive); /* built in, as are the next */
    (void)archive_read_support_filter_gzip(archive);
    (void)archive_read_support_filter_zstd(archive);
    if (lseek(ARCHIVE_FD, 0, SEEK_SET) < 0)
        return error_errno(err, errno, "cannot seek in the archive");
    if (archive_read_open_fd(archive, ARCHIVE_FD, READ_BYTES) < ARCHIVE_WARN)
        return layer_archive_error(archive, "it is no tar archive, plain, gzip or zstd", err);
    return 0;
}

/* A compressed archive may say that it holds anything: what is skipped is read all the same. */
static int check_member_size(struct archive *archive, struct archive_entry *entry,
                             const struct rootfs_limits *limits, struct error **err)
{
    int64_t size = archive_entry_size(entry), before = archive_filter_bytes(archive, 0);

    if (size >= 0 && before >= 0 && (uint64_t)size <= limits->bytes &&
        (uint64_t)before <= limits->bytes)
        return 0;
    return error_set(err, ERROR_LIMIT, "the archive holds more than %ju bytes",
                     (uintmax_t)limits->bytes);
}

/* A path without "." and with "..", as old archives' links to other layers have them, resolved. */
static char *member_path(const char *path, const char *link)
{
    scoped(mem_freep) char *folder = path_dir(path);
    scoped(mem_freep) char *joined = link == NULL ? str_dup(path) : path_join(folder, link);

    return path_normal(joined);
}

static int list_members(const struct rootfs_limits *limits, struct members *members,
                        struct error **err)
{
    scoped(archive_donep) struct archive *archive = NULL;
    struct archive_entry *entry = NULL;
    int status, r = open_archive(&archive, err);

    if (r < 0)
        return r;
    while ((status = archive_read_next_header(archive, &entry)) >= ARCHIVE_WARN &&
           status != ARCHIVE_EOF) {
        const char *path = archive_entry_pathname(entry), *link = archive_entry_symlink(entry);

        r = check_member_size(archive, entry, limits, err);
        if (r < 0)
            return r;
        if (path == NULL || (archive_entry_filetype(entry) != AE_IFREG && link == NULL))
            continue;
        if (members->count == MEMBERS_MAX)
            return error_set(err, ERROR_LIMIT, "the archive has more than %d members", MEMBERS_MAX);
        members->items[members->count++] = (struct member){
            .path = member_path(path, NULL),
            .link = link != NULL ? member_path(path, link) : NULL,
            .position = archive_read_header_position(archive),
        };
    }
    return status < ARCHIVE_WARN ? layer_archive_error(archive, "it is no whole tar archive", err)
                                 : 0;
}

static const struct member *find_member(const struct members *members, const char *path)
{
    scoped(mem_freep) char *normal = path_normal(path);

    for (size_t i = 0; i < members->count; i++) {
        if (strcmp(members->items[i].path, normal) == 0)
            return &members->items[i];
    }
    return NULL;
}

/* The member as an archive that stands at its data; one link is followed. */
static int open_member(const struct members *members, const char *path, struct archive **ret,
                       struct error **err)
{
    const struct member *member = find_member(members, path);
    struct archive_entry *entry = NULL;
    scoped(mem_freep) char *quoted = term_quoted(path);

    if (member != NULL && member->link != NULL)
        member = find_member(members, member->link);
    if (member == NULL || member->link != NULL)
        return error_set(err, ERROR_TASK, "the archive has no member '%.200s'", quoted);
    int status = ARCHIVE_OK, r = open_archive(ret, err);

    if (r < 0)
        return r;
    do {
        status = archive_read_next_header(*ret, &entry);
    } while (status >= ARCHIVE_WARN && status != ARCHIVE_EOF &&
             archive_read_header_position(*ret) != member->position);
    return status < ARCHIVE_WARN || status == ARCHIVE_EOF
               ? layer_archive_error(*ret, "the archive", err)
               : 0;
}

static ssize_t read_member_part(void *context, const void **ret, struct error **err)
{
    struct archive *archive = context;
    size_t size = 0;
    int64_t offset = 0;

    while (size == 0) {
        int status = archive_read_data_block(archive, ret, &size, &offset);

        if (status == ARCHIVE_EOF)
            return 0;
        if (status < ARCHIVE_WARN)
            return layer_archive_error(archive, "the archive", err);
    }
    return (ssize_t)size;
}

static int read_member(const struct members *members, const char *path, struct buf *ret,
                       struct error **err)
{
    scoped(archive_donep) struct archive *archive = NULL;
    const void *bytes = NULL;
    ssize_t n = 0;
    int r = open_member(members, path, &archive, err);

    while (r == 0 && (n = read_member_part(archive, &bytes, err)) > 0) {
        if ((size_t)n > LAYOUT_BYTES_MAX - ret->size_bytes)
            return error_set(err, ERROR_LIMIT, "a JSON text of more than %zu bytes",
                             LAYOUT_BYTES_MAX);
        buf_append(ret, bytes, (size_t)n);
    }
    return r < 0 ? r : n < 0 ? (int)n : 0;
}

/* Archives name the configuration by its digest. */
static int check_config_name(const char *path, const struct buf *text, struct error **err)
{
    scoped(mem_freep) char *name = str_dup(path_base(path));
    struct sha256 wanted, found = sha256_of(buf_text(text), text->size_bytes);

    if (str_ends(name, ".json"))
        name[strlen(name) - strlen(".json")] = '\0';
    return sha256_parse(name, &wanted) ? check_digest("the configuration", &wanted, &found, err)
                                       : 0;
}

static int apply_member(struct outcome *outcome, size_t index, const struct members *members,
                        const char *path, struct error **err)
{
    scoped(archive_donep) struct archive *archive = NULL;
    int r = open_member(members, path, &archive, err);
    const struct layer_source source = {.read = read_member_part, .context = archive};

    return r < 0 ? r : apply(outcome, index, &source, err);
}

static int unpack_archive(const struct options *options, struct outcome *outcome,
                          struct error **err)
{
    scoped(members_donep) struct members *members = mem_new(1, sizeof(*members));
    scoped(layout_archive_done) struct layout_archive archive = {.config = NULL};
    scoped(buf_done) struct buf manifest = {0};
    scoped(buf_done) struct buf config = {0};
    int r = list_members(&options->limits, members, err);

    if (r == 0)
        r = read_member(members, "manifest.json", &manifest, err);
    if (r == 0)
        r = layout_archive_parse("manifest.json", &manifest, &options->want, &archive, err);
    if (r == 0)
        r = read_member(members, archive.config, &config, err);
    if (r == 0)
        r = check_config_name(archive.config, &config, err);
    if (r == 0)
        r = layout_config_parse("the configuration", &config, &options->want, &outcome->config,
                                err);
    if (r == 0)
        r = check_layer_count(outcome, archive.layers.count, err);
    for (size_t i = 0; r == 0 && i < archive.layers.count && outcome->rootfs != NULL; i++)
        r = apply_member(outcome, i, members, archive.layers.items[i], err);
    return r;
}

/* --- the whole */

static const char *value_of(const char *arg, const char *name)
{
    size_t length = strlen(name);

    return str_starts(arg, name) && arg[length] == '=' ? arg + length + 1 : NULL;
}

static bool parse_arg(struct options *options, const char *arg)
{
    const char *value;

    if ((value = value_of(arg, "--tag")) != NULL)
        options->want.tag = value;
    else if ((value = value_of(arg, "--architecture")) != NULL)
        options->want.architecture = value;
    else if ((value = value_of(arg, "--max-bytes")) != NULL)
        return str_to_u64(value, &options->limits.bytes) && options->limits.bytes <= UINT64_MAX / 2;
    else if ((value = value_of(arg, "--max-entries")) != NULL)
        return str_to_u64(value, &options->limits.entries);
    else if (strcmp(arg, "--into") == 0)
        options->into = true;
    else
        return false;
    return true;
}

static int make_rootfs(const struct options *options, int *ret_fd, struct outcome *outcome,
                       struct error **err)
{
    if (!options->into)
        return 0;
    int r = fs_open_dir(options->into_fd, "rootfs", 0755, ret_fd, err);

    if (r == 0)
        outcome->rootfs = rootfs_new(*ret_fd, &options->limits);
    return r;
}

static int print(const struct outcome *outcome, struct error **err)
{
    const struct layout_config *config = &outcome->config;
    struct sha256 chain = layout_chain_id(config->diff_ids, config->layer_count);
    scoped(buf_done) struct buf line = {0};
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&chain, hex);
    json_put_text(config->settings, "chain_id", hex);
    json_put_int(config->settings, "layers", (int64_t)config->layer_count);
    if (outcome->rootfs != NULL) {
        json_put_int(config->settings, "bytes", (int64_t)rootfs_bytes(outcome->rootfs));
        json_put_int(config->settings, "entries", (int64_t)rootfs_entries(outcome->rootfs));
        json_put_int(config->settings, "dropped", (int64_t)outcome->dropped);
    }
    json_write_line(&line, config->settings);
    buf_char(&line, '\n');
    return fs_write_all(STDOUT_FILENO, "the output", buf_text(&line), line.size_bytes, err);
}

static int run(char **args, struct error **err)
{
    scoped(outcome_done) struct outcome outcome = {.dropped = 0};
    scoped(fd_closep) int rootfs_fd = -1;
    struct options options = {
        .want = {.architecture = layout_architecture()},
        .limits = {.bytes = DEFAULT_BYTES, .entries = DEFAULT_ENTRIES},
    };
    bool is_layout = args[0] != NULL && strcmp(args[0], "oci") == 0;

    if (args[0] != NULL && strcmp(args[0], "members") == 0)
        return members_print(ARCHIVE_FD, STDOUT_FILENO, err);

    if (args[0] == NULL || (!is_layout && strcmp(args[0], "docker-archive") != 0))
        return error_set(err, ERROR_BUG, "unpack: a kind of image expected");
    for (char **arg = args + 1; *arg != NULL; arg++) {
        if (!parse_arg(&options, *arg))
            return error_set(err, ERROR_BUG, "unpack: bad argument '%s'", *arg);
    }
    options.into_fd = is_layout ? FIRST_FD + 1 : FIRST_FD;
    int r = make_rootfs(&options, &rootfs_fd, &outcome, err);

    if (r == 0)
        r = is_layout ? unpack_layout(&options, &outcome, err)
                      : unpack_archive(&options, &outcome, err);
    if (r == 0 && outcome.rootfs != NULL)
        r = rootfs_finish(outcome.rootfs, err);
    return r < 0 ? r : print(&outcome, err);
}

int main(int argc, char **argv)
{
    scoped(error_freep) struct error *err = NULL;

    /* Names are bytes; this one, which is built in, makes those of pax headers come through. */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    if (argc < 1 || run(argv + 1, &err) == 0)
        return argc < 1;
    (void)fprintf(stderr, "%s: %s\n", error_code_name(error_code_of(err)), error_message(err));
    return 1;
}
