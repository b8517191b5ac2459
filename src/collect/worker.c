/*
 * closedbook-worker: handles hostile files, in a cell of its own, by descriptor only.
 *
 * Operations, the first argument; descriptors from WORKER_FD are directories, from 3 on files:
 *
 *   stat-key [RULES]       10 source                                 prints "DIGEST NEWEST_NS"
 *   add [RULES] [COPY]     10 source, 11 destination                 prints
 * {"root","files","bytes"} add --file=NAME ...    3 source file, 10 destination             the
 * same add --collected ...    10 destination, 11 an ended cell's workspace  the same
 * collect [COLLECT]      10... staged layers, then the workspace;  prints counts, digests,
 * refusals 3 staged manifest, 4 archive, 5 changes apply                  3 archive, 4 changes; cwd
 * the workspace read [--content] [--max-bytes=N] PATH   cwd the workspace        prints a header
 * line, then bytes
 *
 * Failure: one line "code: message" on standard error, status 1.
 */

#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/apply.h"
#include "collect/gather.h"
#include "collect/lookup.h"
#include "collect/tree.h"

#define WORKER_FD 10 /* CELL_WORKER_FD of cell/cell.h, which this program does not include */
#define MANIFEST_BYTES_MAX BUF_BYTES_MAX

#ifdef CLOSEDBOOK_SANITIZED
/* In its cell there is no /proc to look for leaks by; tests look for them in process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* All that the arguments of any operation can say. */
struct options {
    struct str_list ignore, leave_out, hollow, only, executable;
    struct tree_rules rules;
    struct tree_copy copy;
    struct gather_input gather;
    bool content;
    bool collected; /* the source is a workspace, which comes last */
    uint64_t max_bytes;
    const char *path;
};

static void options_done(struct options *options)
{
    str_list_done(&options->ignore);
    str_list_done(&options->leave_out);
    str_list_done(&options->hollow);
    str_list_done(&options->only);
    str_list_done(&options->executable);
}

/* "--name=value": the value, NULL when arg is something else. */
static const char *value_of(const char *arg, const char *name)
{
    size_t length = strlen(name);

    return str_starts(arg, name) && arg[length] == '=' ? arg + length + 1 : NULL;
}

static bool set_kind(struct options *options, const char *value)
{
    static const char *const names[] = {
        [WORKSPACE_TREE] = "tree",
        [WORKSPACE_UPPER_TRUSTED] = "upper-trusted",
        [WORKSPACE_UPPER_USER] = "upper-user",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(value, names[i]) == 0) {
            options->gather.kind = (enum workspace_kind)i;
            return true;
        }
    return false;
}

static bool set_layers(struct options *options, const char *value)
{
    uint64_t count;

    if (!str_to_u64(value, &count) || count > GATHER_LAYERS_MAX)
        return false;
    options->gather.layer_count = (size_t)count;
    return true;
}

static bool add_ignore(struct options *options, const char *value)
{
    str_list_add(&options->ignore, value);
    return true;
}

static bool add_leave_out(struct options *options, const char *value)
{
    str_list_add(&options->leave_out, value);
    return true;
}

static bool add_hollow(struct options *options, const char *value)
{
    str_list_add(&options->hollow, value);
    return true;
}

static bool add_only(struct options *options, const char *value)
{
    str_list_add(&options->only, value);
    return true;
}

static bool add_executable(struct options *options, const char *value)
{
    str_list_add(&options->executable, value);
    return true;
}

static bool set_mount_point(struct options *options, const char *value)
{
    options->copy.mount_point = value;
    return true;
}

static bool set_file(struct options *options, const char *value)
{
    options->copy.file_name = value;
    return true;
}

static bool set_root(struct options *options, const char *value)
{
    options->gather.root_path = value;
    return true;
}

static bool set_max_entries(struct options *options, const char *value)
{
    return str_to_u64(value, &options->rules.max_entries);
}

static bool set_max_bytes(struct options *options, const char *value)
{
    return str_to_u64(value, &options->max_bytes);
}

static bool set_flag(struct options *options, const char *arg)
{
    if (strcmp(arg, "--skip-runs") == 0)
        options->rules.skip_runs = true;
    else if (strcmp(arg, "--keep-links") == 0)
        options->rules.keep_links = true;
    else if (strcmp(arg, "--public-only") == 0)
        options->rules.public_only = true;
    else if (strcmp(arg, "--sync") == 0)
        options->copy.sync = true;
    else if (strcmp(arg, "--content") == 0)
        options->content = true;
    else if (strcmp(arg, "--collected") == 0)
        options->collected = true;
    else
        return false;
    return true;
}

/* What stands before the '=' of an argument, and what takes the rest. */
static const struct {
    const char *name;
    bool (*set)(struct options *options, const char *value);
} settings[] = {
    {"--ignore", add_ignore},
    {"--leave-out", add_leave_out},
    {"--hollow", add_hollow},
    {"--only", add_only},
    {"--executable", add_executable},
    {"--mount-point", set_mount_point},
    {"--file", set_file},
    {"--max-entries", set_max_entries},
    {"--max-bytes", set_max_bytes},
    {"--root", set_root},
    {"--kind", set_kind},
    {"--layers", set_layers},
};

static bool parse_arg(struct options *options, const char *arg)
{
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        const char *value = value_of(arg, settings[i].name);

        if (value != NULL)
            return settings[i].set(options, value);
    }
    return set_flag(options, arg);
}

/* Options come first; what follows "--" is the path. */
static int parse_args(char **args, struct options *options, struct error **err)
{
    size_t i = 0;

    for (; args[i] != NULL && strcmp(args[i], "--") != 0; i++)
        if (!parse_arg(options, args[i]))
            return error_set(err, ERROR_BUG, "worker: bad argument '%s'", args[i]);
    if (args[i] != NULL)
        options->path = args[i + 1];
    options->rules.ignore = &options->ignore;
    options->rules.leave_out = &options->leave_out;
    options->rules.hollow = &options->hollow;
    options->rules.executable = &options->executable;
    options->rules.only = options->only.count > 0 ? &options->only : NULL;
    options->rules.max_bytes = options->max_bytes;
    return 0;
}

static int print(const struct buf *text, struct error **err)
{
    return fs_write_all(STDOUT_FILENO, "the output", buf_text(text), text->size_bytes, err);
}

static int run_stat_key(const struct options *options, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    char hex[SHA256_HEX_CHARS + 1];
    struct sha256 digest;
    uint64_t newest_ns = 0;
    int r = tree_stat_key(WORKER_FD, &options->rules, &digest, &newest_ns, err);

    if (r < 0)
        return r;
    sha256_format(&digest, hex);
    buf_format(&text, "%s %llu\n", hex, (unsigned long long)newest_ns);
    return print(&text, err);
}

static int run_add(const struct options *options, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(manifest_done) struct manifest manifest = {0};
    bool single = options->copy.file_name != NULL;
    char hex[SHA256_HEX_CHARS + 1];
    int last = single ? WORKER_FD : WORKER_FD + 1;
    int source = options->collected ? last : single ? 3 : WORKER_FD;
    int r = tree_add(source, options->collected ? WORKER_FD : last, &options->rules, &options->copy,
                     &manifest, err);

    if (r < 0)
        return r;
    struct sha256 root = manifest_root(&manifest);

    sha256_format(&root, hex);
    buf_format(&text, "{\"root\":\"%s\",\"files\":%zu,\"bytes\":%llu}\n", hex, manifest.count,
               (unsigned long long)manifest.bytes);
    return print(&text, err);
}

static void put_digest(struct buf *text, const char *key, const struct sha256 *digest)
{
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(digest, hex);
    buf_format(text, "\"%s\":\"%s\",", key, hex);
}

static int print_counts(const struct gather_counts *counts, const struct gather_remarks *refused,
                        struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    buf_format(&text, "{\"added\":%llu,\"modified\":%llu,\"deleted\":%llu,\"moved\":%llu,",
               (unsigned long long)counts->added, (unsigned long long)counts->modified,
               (unsigned long long)counts->deleted, (unsigned long long)counts->moved);
    buf_format(&text, "\"files\":%llu,\"bytes\":%llu,\"refused\":%llu,",
               (unsigned long long)counts->files, (unsigned long long)counts->bytes,
               (unsigned long long)refused->total);
    put_digest(&text, "archive", &counts->archive);
    put_digest(&text, "changes", &counts->changes);
    buf_text_append(&text, "\"refused_list\":[");
    for (size_t i = 0; i < refused->count; i++) {
        buf_text_append(&text, i > 0 ? ",{\"path\":\"" : "{\"path\":\"");
        manifest_escape(&text, refused->items[i].path);
        buf_text_append(&text, "\",\"reason\":\"");
        manifest_escape(&text, refused->items[i].reason);
        buf_text_append(&text, "\"}");
    }
    buf_text_append(&text, "]}\n");
    return print(&text, err);
}

static int run_collect(const struct options *options, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(manifest_done) struct manifest staged = {0};
    scoped(gather_freep) struct gather *gather = NULL;
    struct gather_input input = options->gather;
    struct gather_counts counts = {0};
    int r = fs_read_fd(3, "the staged manifest", MANIFEST_BYTES_MAX, &text, err);

    if (r == 0)
        r = manifest_read("the staged manifest", buf_text(&text), text.size_bytes, &staged, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < input.layer_count; i++)
        input.layer_fds[i] = WORKER_FD + (int)i;
    input.workspace_fd = WORKER_FD + (int)input.layer_count;
    input.staged = &staged;
    input.max_bytes = options->max_bytes;
    input.max_entries = options->rules.max_entries;
    r = gather_find(&input, &gather, err);
    if (r == 0)
        r = gather_write(gather, 4, 5, &counts, err);
    return r < 0 ? r : print_counts(&counts, gather_refused(gather), err);
}

static int run_in_workspace(const char *operation, const struct options *options,
                            struct error **err)
{
    scoped(fd_closep) int workspace_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (workspace_fd < 0)
        return error_set(err, ERROR_SYSTEM, "cannot open the workspace");
    if (strcmp(operation, "apply") == 0)
        return apply_changes(workspace_fd, 3, 4, err);
    if (options->path == NULL)
        return error_set(err, ERROR_BUG, "worker: read needs a path");
    return lookup_print(workspace_fd, options->path, options->content, options->max_bytes,
                        STDOUT_FILENO, err);
}

static int run(char **args, struct error **err)
{
    scoped(options_done) struct options options = {
        .copy.mount_point = ".",
        .gather.root_path = "/workspace",
    };
    const char *operation = args[0];
    int r;

    if (operation == NULL)
        return error_set(err, ERROR_BUG, "worker: an operation is needed");
    r = parse_args(args + 1, &options, err);
    if (r < 0)
        return r;
    if (strcmp(operation, "stat-key") == 0)
        return run_stat_key(&options, err);
    if (strcmp(operation, "add") == 0)
        return run_add(&options, err);
    if (strcmp(operation, "collect") == 0)
        return run_collect(&options, err);
    if (strcmp(operation, "apply") == 0 || strcmp(operation, "read") == 0)
        return run_in_workspace(operation, &options, err);
    return error_set(err, ERROR_BUG, "worker: unknown operation '%s'", operation);
}

int main(int argc, char **argv)
{
    scoped(error_freep) struct error *err = NULL;

    if (argc < 1 || run(argv + 1, &err) == 0)
        return argc < 1;
    (void)fprintf(stderr, "%s: %s\n", error_code_name(error_code_of(err)), error_message(err));
    return 1;
}
