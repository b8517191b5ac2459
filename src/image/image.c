#include "image/image.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/term.h"

#define ANSWER_BYTES_MAX ((size_t)32 << 20)

static const struct {
    const char *prefix;
    enum image_kind kind;
} kinds[] = {
    {"oci:", IMAGE_OCI},
    {"docker-archive:", IMAGE_DOCKER_ARCHIVE},
    {"docker-daemon:", IMAGE_FETCHED},
    {"docker://", IMAGE_FETCHED},
};

void image_reference_done(struct image_reference *reference)
{
    free(reference->path);
    free(reference->tag);
    *reference = (struct image_reference){.path = NULL};
}

/*
 * Where the reference behind a docker archive's name begins, its colon: behind the part of the path
 * that is called a .tar or .tgz of some kind. Other colons are the path's. NULL: there is none.
 */
static const char *archive_colon(const char *path)
{
    const char *part = path;

    for (const char *at = path; *at != '\0'; at++) {
        if (*at == '/')
            part = at + 1;
        if (*at != ':')
            continue;
        scoped(mem_freep) char *name = str_ndup(part, (size_t)(at - part));

        if (strstr(name, ".tar") != NULL || strstr(name, ".tgz") != NULL)
            return at;
    }
    return NULL;
}

static const char *find_colon(enum image_kind kind, const char *rest)
{
    if (kind == IMAGE_DOCKER_ARCHIVE)
        return archive_colon(rest);
    const char *colon = kind == IMAGE_OCI ? strrchr(rest, ':') : NULL;

    return colon != NULL && colon > rest && strchr(colon, '/') == NULL ? colon : NULL;
}

int image_reference_parse(const char *text, struct image_reference *ret, struct error **err)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const char *rest = text + strlen(kinds[i].prefix);

        if (!str_starts(text, kinds[i].prefix) || *rest == '\0')
            continue;
        const char *colon = find_colon(kinds[i].kind, rest);
        bool has_tag = colon != NULL;

        *ret = (struct image_reference){
            .kind = kinds[i].kind,
            .path = kinds[i].kind == IMAGE_FETCHED ? str_dup(text)
                    : has_tag                      ? str_ndup(rest, (size_t)(colon - rest))
                                                   : str_dup(rest),
            .tag = has_tag && colon[1] != '\0' ? str_dup(colon + 1) : NULL,
        };
        return 0;
    }
    scoped(mem_freep) char *quoted = term_quoted(text);

    return error_set(
        err, ERROR_TASK,
        "oci:PATH[:tag], docker-archive:FILE[:ref], docker-daemon:NAME or docker://NAME "
        "expected, found '%.200s'",
        quoted);
}

/* --- what an image says */

void image_facts_done(struct image_facts *facts)
{
    str_list_done(&facts->env);
    str_list_done(&facts->entrypoint);
    str_list_done(&facts->cmd);
    free(facts->workdir);
    free(facts->user);
    *facts = (struct image_facts){.workdir = NULL};
}

static void read_list(const json_t *json, const char *key, struct str_list *ret)
{
    const json_t *list = json_get_array(json, key);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (text != NULL)
            str_list_add(ret, text);
    }
}

static uint64_t read_count(const json_t *json, const char *key)
{
    int64_t value = json_get_int(json, key, 0);

    return value > 0 ? (uint64_t)value : 0;
}

static char *read_text(const json_t *json, const char *key)
{
    const char *text = json_get_text(json, key);

    return str_dup(text != NULL ? text : "");
}

int image_facts_parse(const char *text, size_t size, struct image_facts *ret, struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    int r = json_parse("what the image says", text, size, &json, err);

    if (r < 0)
        return r;
    const char *chain = json_get_text(json, "chain_id");
    struct sha256 chain_id;

    if (chain == NULL || !sha256_parse(chain, &chain_id))
        return error_set(err, ERROR_BUG, "what the image says makes no sense");
    *ret = (struct image_facts){
        .chain_id = chain_id,
        .workdir = read_text(json, "workdir"),
        .user = read_text(json, "user"),
        .layers = read_count(json, "layers"),
        .bytes = read_count(json, "bytes"),
        .entries = read_count(json, "entries"),
        .dropped = read_count(json, "dropped"),
    };
    read_list(json, "env", &ret->env);
    read_list(json, "entrypoint", &ret->entrypoint);
    read_list(json, "cmd", &ret->cmd);
    return 0;
}

static void put_list(json_t *json, const char *key, const struct str_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_push(array, json_text_or_null(list->items[i]));
    json_put(json, key, array);
}

void image_facts_write(struct buf *buf, const struct image_facts *facts)
{
    scoped(json_freep) json_t *json = json_object();
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&facts->chain_id, hex);
    json_put_text(json, "chain_id", hex);
    put_list(json, "env", &facts->env);
    put_list(json, "entrypoint", &facts->entrypoint);
    put_list(json, "cmd", &facts->cmd);
    json_put_text(json, "workdir", facts->workdir);
    json_put_text(json, "user", facts->user);
    json_put_int(json, "layers", (int64_t)facts->layers);
    json_put_int(json, "bytes", (int64_t)facts->bytes);
    json_put_int(json, "entries", (int64_t)facts->entries);
    json_put_int(json, "dropped", (int64_t)facts->dropped);
    json_write_line(buf, json);
    buf_char(buf, '\n');
}

/* --- unpacking */

static void fill_args(const struct image_source *source, bool into, struct str_list *args)
{
    str_list_add(args, source->kind == IMAGE_OCI ? "oci" : "docker-archive");
    if (source->tag != NULL)
        str_list_add_take(args, str_format("--tag=%s", source->tag));
    if (source->max_bytes != 0)
        str_list_add_take(args, str_format("--max-bytes=%ju", (uintmax_t)source->max_bytes));
    if (source->max_entries != 0)
        str_list_add_take(args, str_format("--max-entries=%ju", (uintmax_t)source->max_entries));
    if (into)
        str_list_add(args, "--into");
}

int image_unpack(const struct image_source *source, int into_fd, struct image_facts *ret,
                 struct error **err)
{
    scoped(fd_closep) int program_fd = open(source->program, O_RDONLY | O_CLOEXEC);
    scoped(str_list_done) struct str_list args = {0};
    scoped(buf_done) struct buf answer = {.max_bytes = ANSWER_BYTES_MAX};
    bool is_file = source->kind == IMAGE_DOCKER_ARCHIVE;

    if (program_fd < 0)
        return error_errno(err, errno, "cannot open '%s'; install closedbook whole",
                           source->program);
    fill_args(source, into_fd >= 0, &args);
    struct worker_job job = {
        .args = (const char *const *)args.items,
        .fds = {-1, -1, -1, is_file ? source->fd : -1},
        .fd_count = is_file ? 4 : 3,
        .output_max_bytes = ANSWER_BYTES_MAX,
        .program_fd = &program_fd,
        .timeout_ms = source->timeout_ms != 0 ? source->timeout_ms : IMAGE_TIMEOUT_MS,
    };

    if (!is_file)
        job.mounts[job.mount_count++] = (struct cell_mount){.fd = source->fd};
    if (into_fd >= 0)
        job.mounts[job.mount_count++] = (struct cell_mount){.fd = into_fd, .writable = true};
    int r = worker_run(source->monitor, &job, &answer, err);

    return r < 0 ? r : image_facts_parse(buf_text(&answer), answer.size_bytes, ret, err);
}
