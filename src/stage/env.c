#include "stage/env.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "stage/internal.h"
#include "stage/stage.h"

#define KEY_FORMAT "closedbook/env/1"
#define INSTALL_MS 600000
#define SAID_BYTES_MAX ((size_t)64 << 10)
#define TAIL_BYTES 600
#define PYTHON_PATH "/run/env/python"
#define NODE_PATH "/run/env/node"

/* How one language does it. The words of the packages come after the script's. */
static const struct language {
    const char *path, *program, *installer, *script;
} languages[ENV_KINDS] = {
    [ENV_PYTHON] =
        {
            .path = PYTHON_PATH,
            .program = "python3",
            .installer = "pip",
            .script = "mv packages /tmp/packages && exec " PYTHON_PATH
                      "/bin/python3 -m pip install --no-index --no-build-isolation "
                      "--no-cache-dir --disable-pip-version-check --no-warn-script-location "
                      "--no-input --prefix=/workspace -- \"$@\"",
        },
    [ENV_NODE] =
        {
            .path = NODE_PATH,
            .program = "node",
            .installer = "npm",
            .script = "mv packages /tmp/packages && cd /tmp && exec npm install --offline "
                      "--no-audit --no-fund --no-update-notifier --install-links --global "
                      "--cache=/tmp/cache --prefix=/workspace -- \"$@\"",
        },
};

const char *env_path(enum env_kind kind)
{
    return languages[kind].path;
}

/* --- without packages ------------------------------------------------------------------------- */

/* What makes a virtual environment of the root's own python. */
static int make_plain(struct store *store, const char *program, struct layer *ret,
                      struct error **err)
{
    static const char pip[] = "#!/bin/sh\nexec " PYTHON_PATH "/bin/python3 -m pip \"$@\"\n";
    scoped(mem_freep) char *folder = path_dir(program);
    scoped(mem_freep) char *config =
        str_format("home = %s\ninclude-system-site-packages = true\n", folder);
    const struct store_file items[] = {
        {.path = "pyvenv.cfg", .content = config},   {.path = "bin/python3", .target = program},
        {.path = "bin/python", .target = "python3"}, {.path = "bin/pip", .content = pip},
        {.path = "bin/pip3", .content = pip},
    };
    char bin[] = "bin", *folders[] = {bin, NULL};
    const struct str_list executable = {.items = folders, .count = 1};
    const struct store_files files = {
        .items = items, .count = ARRAY_SIZE(items), .mount_point = ".", .executable = &executable};

    return store_add_files(store, STORE_PUBLIC, &files, ret, err);
}

/* --- with packages ---------------------------------------------------------------------------- */

/* One environment on its way. */
struct making {
    const struct env_source *source;
    const struct language *language;
    char *program;       /* in the root */
    struct layer plain;  /* python: what is there without packages; tree_fd -1: nothing */
    struct layer *items; /* the packages, each in packages/N/ */
    size_t count;
    struct str_list words; /* their paths while they are installed */
};

static void making_done(struct making *making)
{
    free(making->program);
    layer_done(&making->plain);
    for (size_t i = 0; i < making->count; i++)
        layer_done(&making->items[i]);
    free(making->items);
    str_list_done(&making->words);
}

static int add_package(struct making *making, const char *path, struct error **err)
{
    char git[] = ".git", cache[] = "__pycache__";
    char *ignored[] = {git, cache, NULL};
    const struct str_list ignore = {.items = ignored, .count = 2};
    const struct root_source *from = making->source->from;
    scoped(fd_closep) int fd = from->reader->open(from->reader->context, path,
                                                  O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return error_errno_as(err, ERROR_TASK, -fd, "cannot open '%s'", path);
    if (fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot look at '%s'", path);
    bool is_dir = S_ISDIR(status.st_mode);
    scoped(mem_freep) char *folder =
        str_format(is_dir ? "packages/%zu/%s" : "packages/%zu", making->count, path_base(path));
    struct store_source stored = {
        .fd = fd,
        .label = path,
        .mount_point = folder,
        .file_name = is_dir ? NULL : path_base(path),
        .ignore = &ignore,
    };
    struct layer layer = {.tree_fd = -1};
    int r = store_add(from->store, STORE_PUBLIC, from->monitor, &stored, &layer, err);

    if (r < 0)
        return r;
    str_list_add_take(&making->words,
                      str_format("/tmp/packages/%zu/%s", making->count, path_base(path)));
    making->items = mem_resize(making->items, making->count + 1, sizeof(*making->items));
    making->items[making->count++] = layer;
    return 0;
}

/* The program, as the root has it now, and the packages' bytes. */
static int make_key(const struct making *making, char ret[static SHA256_HEX_CHARS + 1],
                    struct error **err)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    const char *const texts[] = {KEY_FORMAT, making->language->path, making->program};
    struct stat status;
    int r = root_stat(making->source->root, making->program, &status, err);

    if (r < 0)
        return r;
    const uint64_t identity[] = {
        status.st_dev,
        status.st_ino,
        (uint64_t)status.st_size,
        (uint64_t)status.st_mtim.tv_sec,
        (uint64_t)status.st_mtim.tv_nsec,
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        sha256_stream_add(stream, texts[i], strlen(texts[i]) + 1);
    sha256_stream_add(stream, identity, sizeof(identity));
    for (size_t i = 0; i < making->count; i++)
        sha256_stream_add(stream, making->items[i].root.bytes, SHA256_BYTES);
    struct sha256 digest = sha256_stream_end(stream);

    sha256_format(&digest, ret);
    return 0;
}

static void fill_workspace(const struct making *making, const struct layer *merged,
                           struct cell_workspace *workspace)
{
    bool single = merged->tree_fd >= 0;

    workspace->kind = CELL_WORKSPACE_COPY;
    workspace->layer_count = single ? 1 : making->count;
    for (size_t i = 0; i < workspace->layer_count; i++)
        workspace->layer_fds[i] = single ? merged->tree_fd : making->items[i].tree_fd;
}

static int complain(const struct making *making, enum cell_wait_result how,
                    const struct cell_exit *end, const struct buf *said, struct error **err)
{
    size_t size = said->size_bytes;

    while (size > 0 && buf_text(said)[size - 1] == '\n')
        size--;
    size_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    scoped(mem_freep) char *tail =
        size == 0 ? str_dup("it printed nothing") : str_ndup(buf_text(said) + from, size - from);

    if (how != CELL_EXITED)
        return error_set(err, ERROR_TASK, "%s ran longer than %d s: %s",
                         making->language->installer, INSTALL_MS / 1000, tail);
    return error_set(err, ERROR_TASK,
                     "%s failed (status %d), with no registry to ask; what a package needs beside "
                     "the system's own must be in the list, too: %s",
                     making->language->installer, end->exit_code, tail);
}

/* Runs the installer in the cell, its workspace the packages at first and then what it made. */
static int install_in(const struct making *making, struct cell *cell, struct error **err)
{
    static const char *const envp[] = {
        "PATH=" PYTHON_PATH "/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME=/home/agent",
        "LANG=C.UTF-8",
        "TERM=dumb",
        "TMPDIR=/tmp",
        "PIP_CONFIG_FILE=/dev/null",
        "SOURCE_DATE_EPOCH=315532800", /* compiled files that do not hold the time of day */
        NULL,
    };
    scoped(str_list_done) struct str_list argv = {0};
    scoped(buf_done) struct buf said = {.max_bytes = SAID_BYTES_MAX};
    struct cell_exit end = {0};
    enum cell_wait_result how = CELL_EXITED;
    uint32_t process;
    int ends[2];

    str_list_add(&argv, root_shell(making->source->root));
    str_list_add(&argv, "-c");
    str_list_add(&argv, making->language->script);
    str_list_add(&argv, "sh");
    for (size_t i = 0; i < making->words.count; i++)
        str_list_add(&argv, making->words.items[i]);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    scoped(fd_closep) int write_end = ends[1];
    struct cell_capture capture = {.fd = ends[0], .buf = &said};
    const struct cell_command command = {.argv = (const char *const *)argv.items,
                                         .envp = envp,
                                         .fds = {-1, write_end, write_end},
                                         .fd_count = 3};
    int r = cell_exec(cell, &command, &process, err);

    fd_closep(&write_end);
    if (r == 0)
        r = cell_wait(cell, process,
                      &(struct cell_patience){&capture, 1,
                                              clock_ns() + (uint64_t)INSTALL_MS * 1000000u, NULL},
                      &how, &end, err);
    fd_closep(&capture.fd);
    if (r < 0)
        return r;
    return how == CELL_EXITED && end.exit_code == 0 ? 0 : complain(making, how, &end, &said, err);
}

static int install(const struct making *making, struct layer *ret, struct error **err)
{
    const struct env_source *source = making->source;
    scoped(cell_freep) struct cell *cell = NULL;
    scoped(layer_done) struct layer merged = {.tree_fd = -1};
    struct cell_spec spec = {.role = CELL_AGENT, .etc_fd = -1};
    static const char *const args[] = {"add", "--collected", "--keep-links", "--sync", NULL};
    static const char passwd[] = "root:x:0:0:root:/root:/usr/sbin/nologin\n";
    struct cell_receipt receipt;
    int r = 0;

    if (source->from->monitor == NULL)
        return error_set(err, ERROR_BUG, "packages that cannot be installed here");
    if (root_shell(source->root) == NULL)
        return error_set(err, ERROR_TASK, "the cell's root has no /bin/sh");
    if (making->count > CELL_LAYERS_MAX)
        r = store_merge(source->from->store, STORE_PUBLIC, making->items, making->count, &merged,
                        err);
    if (r < 0)
        return r;
    root_fill_cell(source->root, &spec);
    if (making->plain.tree_fd >= 0)
        spec.mounts[spec.mount_count++] =
            (struct cell_mount){.fd = making->plain.tree_fd, .target = making->language->path};
    spec.texts[spec.text_count++] =
        (struct cell_text){.target = "/etc/passwd", .bytes = passwd, .size_bytes = strlen(passwd)};
    fill_workspace(making, &merged, &spec.workspace);
    r = cell_start(source->from->monitor, &spec, &cell, err);
    if (r == 0)
        r = install_in(making, cell, err);
    if (r == 0)
        r = cell_end(cell, &receipt, err);
    return r < 0 ? r
                 : store_add_collected(
                       &(struct collected){source->from->store, source->from->monitor, cell, args},
                       ret, err);
}

static int install_over(const struct making *making, struct layer *ret, struct error **err)
{
    struct layer layers[2] = {making->plain, {.tree_fd = -1}};
    int r = install(making, &layers[1], err);

    if (r < 0)
        return r;
    if (making->plain.tree_fd < 0) {
        *ret = layers[1];
        return 0;
    }
    r = store_merge(making->source->from->store, STORE_PUBLIC, layers, 2, ret, err);
    layer_done(&layers[1]);
    return r;
}

static int find_or_install(struct making *making, struct layer *ret, struct error **err)
{
    struct store *store = making->source->from->store;
    const struct str_list *packages = &making->source->wanted->packages;
    char key[SHA256_HEX_CHARS + 1];
    struct sha256 root;
    const struct lookup lookup = {.half = STORE_PUBLIC, .root = &root};
    int r = 0;

    for (size_t i = 0; i < packages->count && r == 0; i++)
        r = add_package(making, packages->items[i], err);
    if (r == 0)
        r = make_key(making, key, err);
    if (r == 0)
        r = store_key_read(store, key, &root) != 0 ? 1 : store_find(store, &lookup, ret, err);
    if (r != 1)
        return r;
    r = install_over(making, ret, err);
    return r < 0 ? r : store_key_save(store, key, &ret->root, err);
}

/* --- both ------------------------------------------------------------------------------------- */

static int make(struct making *making, struct layer *ret, bool *ret_has, struct error **err)
{
    const struct env_source *source = making->source;
    bool has_packages = source->wanted->packages.count > 0;
    int r = 0;

    if (source->kind == ENV_PYTHON)
        r = make_plain(source->from->store, making->program, &making->plain, err);
    if (r == 0 && has_packages)
        r = find_or_install(making, ret, err);
    else if (r == 0 && making->plain.tree_fd >= 0) {
        *ret = making->plain;
        making->plain = (struct layer){.tree_fd = -1};
    }
    if (r == 0)
        *ret_has = has_packages || source->kind == ENV_PYTHON;
    return r;
}

int env_make(const struct env_source *source, struct layer *ret, bool *ret_has, struct error **err)
{
    const struct language *language = &languages[source->kind];
    const char *field = source->wanted->field;
    scoped(making_done) struct making making = {
        .source = source, .language = language, .plain.tree_fd = -1};

    *ret_has = false;
    if (source->wanted->want == ENV_NONE)
        return 0;
    making.program = root_program(source->root, language->program);
    if (making.program == NULL && source->wanted->want == ENV_USUAL)
        return 0;
    if (making.program == NULL)
        return error_set(err, ERROR_TASK,
                         "%s: the cell's root has no %s on its PATH; take the field out, or use a "
                         "root (image, rootfs) that has it",
                         field, language->program);
    int r = make(&making, ret, ret_has, err);

    return r < 0 ? error_wrap(err, r, "%s", field) : 0;
}
