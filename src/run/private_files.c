#include "run/private_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/tree.h"

#define REFERENCE_NAME "the reference"
#define SUITE_NAME "the suite"

size_t private_files_trees(const struct private_stage *stage, int fds[static 2])
{
    size_t count = 0;

    if (stage->has_suite)
        fds[count++] = stage->suite.tree_fd;
    if (stage->has_reference)
        fds[count++] = stage->reference.tree_fd;
    return count;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A tree and a path in it. */
struct place {
    int tree_fd; /* -1: there is none */
    char *path;  /* owned */
};

static void place_done(struct place *place)
{
    free(place->path);
}

/* Where the suite's copy is hollow the reference has a tree of its own. */
static char *path_in_reference(const struct private_stage *stage, const char *path)
{
    const struct manifest *manifest = &stage->reference.manifest;
    const char *rest;

    if (!stage->has_reference || stage->reference_in_suite == NULL ||
        !manifest_path_below(path, stage->reference_in_suite))
        return NULL;
    rest = path + strlen(stage->reference_in_suite);
    rest += strspn(rest, "/");
    if (*rest == '\0' && manifest->count == 1 && manifest->entries[0].type == MANIFEST_FILE)
        return str_dup(manifest->entries[0].path);
    return str_dup(*rest == '\0' ? "." : rest);
}

static struct place find_place(const struct private_stage *stage, enum grade_private place,
                               const char *path)
{
    int reference_fd = stage->has_reference ? stage->reference.tree_fd : -1;

    if (place == GRADE_REFERENCE_DIR)
        return (struct place){reference_fd, path_normal(path)};
    scoped(mem_freep) char *joined =
        path_join(stage->has_suite ? stage->task_dir_in_suite : ".", path);
    scoped(mem_freep) char *inside = path_normal(joined);
    char *in_reference = path_in_reference(stage, inside);

    if (in_reference != NULL)
        return (struct place){reference_fd, in_reference};
    return (struct place){stage->has_suite ? stage->suite.tree_fd : -1, take(inside)};
}

static int open_in(const struct private_stage *stage, enum grade_private place, const char *path)
{
    scoped(place_done) struct place found = find_place(stage, place, path);

    if (found.tree_fd < 0)
        return -ENOENT;
    return fs_open_beneath(found.tree_fd, found.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
                           FS_LINKS_BENEATH);
}

int private_files_read(const struct private_stage *stage, enum grade_private place,
                       const char *path, struct grade_file *ret, struct error **err)
{
    scoped(fd_closep) int fd = open_in(stage, place, path);
    struct stat status;

    if (fd == -ENOENT || fd == -ENOTDIR || fd == -EXDEV || fd == -ELOOP) {
        ret->state = GRADE_FILE_ABSENT;
        return 0;
    }
    if (fd < 0)
        return error_errno(err, -fd, "cannot open the staged '%s'", path);
    if (fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot look at the staged '%s'", path);
    if (S_ISDIR(status.st_mode))
        ret->state = GRADE_FILE_DIRECTORY;
    else if (!S_ISREG(status.st_mode))
        ret->state = GRADE_FILE_NOT_REGULAR;
    else if (status.st_size > (off_t)GRADE_FILE_BYTES_MAX)
        ret->state = GRADE_FILE_TOO_LARGE;
    else
        ret->state = GRADE_FILE_OK;
    if (ret->state != GRADE_FILE_OK)
        return 0;
    return fs_read_fd(fd, path, GRADE_FILE_BYTES_MAX, &ret->content, err);
}

/* --- seals ----------------------------------------------------------------------------------- */

static int tampered(const char *name, const char *what, struct error **err)
{
    return error_set(err, ERROR_SYSTEM,
                     "ReferenceTampered: %s%s%s is not what was staged for grading", what,
                     what[0] == '\0' ? "" : " of ", name);
}

static int look(const struct layer *layer, struct sha256 *ret, struct error **err)
{
    const struct tree_rules everything = {.keep_links = true};
    uint64_t newest_ns = 0;

    return tree_stat_key(layer->tree_fd, &everything, ret, &newest_ns, err);
}

int private_seal_make(const struct private_stage *stage, struct private_seal *ret,
                      struct error **err)
{
    int r = 0;

    *ret = (struct private_seal){0};
    if (stage->has_suite)
        r = look(&stage->suite, &ret->suite, err);
    if (r == 0 && stage->has_reference)
        r = look(&stage->reference, &ret->reference, err);
    return r < 0 ? error_wrap(err, r, "cannot seal what graders read") : 0;
}

static int check_look(const struct layer *layer, const struct sha256 *seal, const char *name,
                      struct error **err)
{
    scoped(error_freep) struct error *problem = NULL;
    struct sha256 now;

    /* What cannot be walked any more is not what was staged, either. */
    if (look(layer, &now, &problem) < 0)
        return tampered(name, "a part", err);
    return sha256_equal(&now, seal) ? 0 : tampered(name, "", err);
}

static int hash_file(int fd, struct sha256 *ret)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    scoped(mem_freep) char *block = mem_new(1, (size_t)256 << 10);
    ssize_t n;

    while ((n = read(fd, block, (size_t)256 << 10)) > 0)
        sha256_stream_add(stream, block, (size_t)n);
    if (n < 0)
        return -errno;
    *ret = sha256_stream_end(stream);
    return 0;
}

static bool entry_holds(int tree_fd, const struct manifest_entry *entry)
{
    scoped(fd_closep) int fd =
        fs_open_beneath(tree_fd, entry->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, FS_NO_LINKS);
    struct sha256 digest;

    return fd >= 0 && hash_file(fd, &digest) == 0 && sha256_equal(&digest, &entry->digest);
}

/* The bytes of the files below folder, until more than max_bytes were read. */
static int check_bytes(const struct layer *layer, const char *folder, uint64_t max_bytes,
                       const char *name, struct error **err)
{
    const struct manifest *manifest = &layer->manifest;
    bool all = str_equal(folder, ".");
    size_t first = all ? 0 : manifest_lower_bound(manifest, folder);
    uint64_t bytes = 0;

    for (size_t i = first; i < manifest->count && bytes <= max_bytes; i++) {
        const struct manifest_entry *entry = &manifest->entries[i];

        if (!all && !manifest_path_below(entry->path, folder))
            break;
        if (entry->type != MANIFEST_FILE)
            continue;
        bytes += entry->size_bytes;
        if (!entry_holds(layer->tree_fd, entry)) {
            scoped(buf_done) struct buf what = {0};

            buf_char(&what, '\'');
            manifest_escape(&what, entry->path);
            buf_char(&what, '\'');
            return tampered(name, buf_text(&what), err);
        }
    }
    return 0;
}

int private_seal_check(const struct private_stage *stage, const struct private_seal *seal,
                       struct error **err)
{
    int r = 0;

    if (stage->has_reference)
        r = check_look(&stage->reference, &seal->reference, REFERENCE_NAME, err);
    if (r == 0 && stage->has_reference)
        r = check_bytes(&stage->reference, ".", PRIVATE_CHECK_BYTES_MAX, REFERENCE_NAME, err);
    if (r == 0 && stage->has_suite)
        r = check_look(&stage->suite, &seal->suite, SUITE_NAME, err);
    if (r == 0 && stage->has_suite)
        r = check_bytes(&stage->suite, stage->task_dir_in_suite, PRIVATE_CHECK_BYTES_MAX,
                        SUITE_NAME, err);
    return r;
}

int private_layer_check(const struct layer *layer, const char *name, struct error **err)
{
    return check_bytes(layer, ".", UINT64_MAX, name, err);
}

static json_t *digest_json(const struct layer *layer)
{
    char text[SHA256_HEX_CHARS + 1];

    sha256_format(&layer->root, text);
    scoped(mem_freep) char *whole = str_format("sha256:%s", text);

    return json_text_or_null(whole);
}

json_t *private_files_json(const struct private_stage *stage)
{
    json_t *json = json_object();

    json_put(json, "reference",
             stage != NULL && stage->has_reference ? digest_json(&stage->reference) : json_null());
    json_put(json, "suite",
             stage != NULL && stage->has_suite ? digest_json(&stage->suite) : json_null());
    return json;
}
