#include "image/layout.h"

#include "base/mem.h"
#include "base/term.h"

#define LISTED_BYTES_MAX 2000 /* of the names in one message */
#define REF_NAME "org.opencontainers.image.ref.name"
#define OS "linux"

static const struct {
    const char *name;
    enum descriptor_kind kind;
} media_types[] = {
    {"application/vnd.oci.image.index.v1+json", DESCRIPTOR_INDEX},
    {"application/vnd.docker.distribution.manifest.list.v2+json", DESCRIPTOR_INDEX},
    {"application/vnd.oci.image.manifest.v1+json", DESCRIPTOR_MANIFEST},
    {"application/vnd.docker.distribution.manifest.v2+json", DESCRIPTOR_MANIFEST},
    {"application/vnd.oci.image.config.v1+json", DESCRIPTOR_CONFIG},
    {"application/vnd.docker.container.image.v1+json", DESCRIPTOR_CONFIG},
    {"application/vnd.oci.image.layer.v1.tar", DESCRIPTOR_LAYER},
    {"application/vnd.oci.image.layer.v1.tar+gzip", DESCRIPTOR_LAYER},
    {"application/vnd.oci.image.layer.v1.tar+zstd", DESCRIPTOR_LAYER},
    {"application/vnd.docker.image.rootfs.diff.tar", DESCRIPTOR_LAYER},
    {"application/vnd.docker.image.rootfs.diff.tar.gzip", DESCRIPTOR_LAYER},
    {"application/vnd.docker.image.rootfs.diff.tar.zstd", DESCRIPTOR_LAYER},
};

static const char *const kind_names[] = {
    [DESCRIPTOR_INDEX] = "an index",
    [DESCRIPTOR_MANIFEST] = "a manifest",
    [DESCRIPTOR_CONFIG] = "a configuration",
    [DESCRIPTOR_LAYER] = "a layer",
};

const char *layout_architecture(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#else
#error "no name for this architecture yet"
#endif
}

static int parse_object(const char *name, const struct buf *text, json_t **ret, struct error **err)
{
    int r = json_parse(name, buf_text(text), text->size_bytes, ret, err);

    if (r == 0 && !json_is_object(*ret))
        r = error_set(err, ERROR_TASK, "%s: a JSON object expected", name);
    return r;
}

/* --- descriptors */

static int find_kind(const char *name, const char *media_type, enum descriptor_kind *ret,
                     struct error **err)
{
    for (size_t i = 0; i < ARRAY_SIZE(media_types); i++) {
        if (strcmp(media_types[i].name, media_type) == 0) {
            *ret = media_types[i].kind;
            return 0;
        }
    }
    scoped(mem_freep) char *quoted = term_quoted(media_type);

    return error_set(err, ERROR_TASK, "%s: the media type '%.200s' is unknown", name, quoted);
}

static int parse_digest(const char *name, const char *text, struct sha256 *ret, struct error **err)
{
    if (text != NULL && str_starts(text, "sha256:") && sha256_parse(text, ret))
        return 0;
    scoped(mem_freep) char *quoted = term_quoted(text != NULL ? text : "");

    return error_set(err, ERROR_TASK,
                     "%s: a digest expected (sha256: and 64 hex digits), found '%.200s'", name,
                     quoted);
}

static int parse_descriptor(const char *name, const json_t *json, struct descriptor *ret,
                            struct error **err)
{
    const char *media_type = json_get_text(json, "mediaType");
    int64_t size = json_get_int(json, "size", -1);
    struct descriptor descriptor = {.size_bytes = (uint64_t)size};

    if (media_type == NULL)
        return error_set(err, ERROR_TASK, "%s: a descriptor without a media type", name);
    if (size < 0)
        return error_set(err, ERROR_TASK, "%s: a descriptor without a size", name);
    int r = find_kind(name, media_type, &descriptor.kind, err);

    if (r == 0)
        r = parse_digest(name, json_get_text(json, "digest"), &descriptor.digest, err);
    if (r == 0)
        *ret = descriptor;
    return r;
}

static int expect_kind(const char *name, const struct descriptor *descriptor,
                       enum descriptor_kind kind, struct error **err)
{
    if (descriptor->kind == kind)
        return 0;
    return error_set(err, ERROR_TASK, "%s: %s expected, found %s", name, kind_names[kind],
                     kind_names[descriptor->kind]);
}

/* --- the index */

/* Attestations and the like say that they are for no platform. */
static bool is_for(const json_t *item, const char *architecture)
{
    const json_t *platform = json_get_object(item, "platform");
    const char *os = json_get_text(platform, "os");
    const char *has = json_get_text(platform, "architecture");

    return (os == NULL || strcmp(os, OS) == 0) && (has == NULL || strcmp(has, architecture) == 0);
}

static bool is_tagged(const json_t *item, const char *tag)
{
    const char *has = json_get_text(json_get_object(item, "annotations"), REF_NAME);

    return tag == NULL || (has != NULL && strcmp(has, tag) == 0);
}

static void add_quoted(struct buf *list, const char *text)
{
    scoped(mem_freep) char *quoted = term_quoted(text);

    buf_format(list, "%s%.100s", list->size_bytes > 0 ? ", " : "", quoted);
}

/* Why none of the items was it. */
static int nothing_chosen(const char *name, const json_t *items, const struct layout_want *want,
                          struct error **err)
{
    scoped(buf_done) struct buf tags = {.max_bytes = 2000};
    scoped(buf_done) struct buf platforms = {.max_bytes = 2000};
    bool has_tag = false;

    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        const char *tag = json_get_text(json_get_object(item, "annotations"), REF_NAME);
        const char *has = json_get_text(json_get_object(item, "platform"), "architecture");

        has_tag = has_tag || is_tagged(item, want->tag);
        if (tag != NULL)
            add_quoted(&tags, tag);
        if (has != NULL && is_tagged(item, want->tag))
            add_quoted(&platforms, has);
    }
    scoped(mem_freep) char *tag = term_quoted(want->tag != NULL ? want->tag : "");

    if (json_array_size(items) == 0)
        return error_set(err, ERROR_TASK, "%s: it names no image", name);
    if (!has_tag)
        return error_set(err, ERROR_TASK, "%s: no image is tagged '%.200s'; there are: %s", name,
                         tag, tags.size_bytes > 0 ? buf_text(&tags) : "(no tags)");
    return error_set(err, ERROR_TASK, "%s: no image is for this machine (" OS "/%s); there are: %s",
                     name, want->architecture, buf_text(&platforms));
}

int layout_choose(const char *name, const struct buf *text, const struct layout_want *want,
                  struct descriptor *ret, struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    const json_t *chosen = NULL;
    int r = parse_object(name, text, &json, err);

    if (r < 0)
        return r;
    const json_t *items = json_get_array(json, "manifests");

    if (items == NULL)
        return error_set(err, ERROR_TASK, "%s: 'manifests' is missing", name);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);

        if (!is_tagged(item, want->tag) || !is_for(item, want->architecture))
            continue;
        if (chosen != NULL)
            return error_set(err, ERROR_TASK,
                             "%s: more than one image fits; name one by its tag: oci:PATH:TAG",
                             name);
        chosen = item;
    }
    if (chosen == NULL)
        return nothing_chosen(name, items, want, err);
    r = parse_descriptor(name, chosen, ret, err);
    if (r == 0 && ret->kind != DESCRIPTOR_INDEX)
        r = expect_kind(name, ret, DESCRIPTOR_MANIFEST, err);
    return r;
}

/* --- the manifest */

int layout_manifest_parse(const char *name, const struct buf *text, struct layout_manifest *ret,
                          struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    int r = parse_object(name, text, &json, err);

    if (r < 0)
        return r;
    const json_t *layers = json_get_array(json, "layers");
    size_t count = json_array_size(layers);

    if (layers == NULL || json_get_object(json, "config") == NULL)
        return error_set(err, ERROR_TASK, "%s: 'config' or 'layers' is missing", name);
    if (count > LAYOUT_LAYERS_MAX)
        return error_set(err, ERROR_LIMIT, "%s: more than %d layers", name, LAYOUT_LAYERS_MAX);
    *ret = (struct layout_manifest){.layer_count = count};
    r = parse_descriptor(name, json_get_object(json, "config"), &ret->config, err);
    if (r == 0)
        r = expect_kind(name, &ret->config, DESCRIPTOR_CONFIG, err);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = parse_descriptor(name, json_array_get(layers, i), &ret->layers[i], err);
        if (r == 0)
            r = expect_kind(name, &ret->layers[i], DESCRIPTOR_LAYER, err);
    }
    return r;
}

void layout_archive_done(struct layout_archive *archive)
{
    free(archive->config);
    str_list_done(&archive->layers);
    *archive = (struct layout_archive){.config = NULL};
}

/* "name:tag", and "name" for ":latest" of it. */
static bool is_called(const json_t *image, const char *wanted)
{
    const json_t *names = json_get_array(image, "RepoTags");
    scoped(mem_freep) char *latest = str_format("%s:latest", wanted);

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (name != NULL && (strcmp(name, wanted) == 0 || strcmp(name, latest) == 0))
            return true;
    }
    return false;
}

/* The names that images of an archive have, as far as they are of use to a reader. */
static char *list_names(const json_t *images)
{
    scoped(buf_done) struct buf text = {.max_bytes = LISTED_BYTES_MAX};

    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *names = json_get_array(json_array_get(images, i), "RepoTags");

        for (size_t k = 0; k < json_array_size(names); k++) {
            const char *name = json_string_value(json_array_get(names, k));
            scoped(mem_freep) char *quoted = term_quoted(name != NULL ? name : "?");

            buf_format(&text, "%s'%.100s'", text.size_bytes > 0 ? ", " : "", quoted);
        }
    }
    return str_dup(text.size_bytes > 0 ? buf_text(&text) : "none with a name");
}

static int choose_image(const char *name, const json_t *images, const char *tag, const json_t **ret,
                        struct error **err)
{
    if (!json_is_array(images) || json_array_size(images) == 0)
        return error_set(err, ERROR_TASK, "%s: a list of images expected", name);
    if (tag == NULL && json_array_size(images) == 1) {
        *ret = json_array_get(images, 0);
        return 0;
    }
    scoped(mem_freep) char *names = list_names(images);

    if (tag == NULL)
        return error_set(
            err, ERROR_TASK,
            "%s: %zu images are in the archive; name one: docker-archive:FILE:REF, with %s", name,
            json_array_size(images), names);
    for (size_t i = 0; i < json_array_size(images); i++) {
        *ret = json_array_get(images, i);
        if (is_called(*ret, tag))
            return 0;
    }
    scoped(mem_freep) char *quoted = term_quoted(tag);

    return error_set(err, ERROR_TASK, "%s: no image is called '%.200s'; there are %s", name, quoted,
                     names);
}

int layout_archive_parse(const char *name, const struct buf *text, const struct layout_want *want,
                         struct layout_archive *ret, struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    scoped(layout_archive_done) struct layout_archive archive = {.config = NULL};
    const json_t *image = NULL;
    int r = json_parse(name, buf_text(text), text->size_bytes, &json, err);

    if (r == 0)
        r = choose_image(name, json, want->tag, &image, err);
    if (r < 0)
        return r;
    const json_t *layers = json_get_array(image, "Layers");
    const char *config = json_get_text(image, "Config");

    if (layers == NULL || config == NULL)
        return error_set(err, ERROR_TASK, "%s: 'Config' or 'Layers' is missing", name);
    if (json_array_size(layers) > LAYOUT_LAYERS_MAX)
        return error_set(err, ERROR_LIMIT, "%s: more than %d layers", name, LAYOUT_LAYERS_MAX);
    archive.config = str_dup(config);
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *path = json_string_value(json_array_get(layers, i));

        if (path == NULL)
            return error_set(err, ERROR_TASK, "%s: a layer's path expected", name);
        str_list_add(&archive.layers, path);
    }
    *ret = archive;
    archive = (struct layout_archive){.config = NULL};
    return 0;
}

/* --- the configuration */

void layout_config_done(struct layout_config *config)
{
    json_freep(&config->settings);
}

static int check_platform(const char *name, const json_t *json, const struct layout_want *want,
                          struct error **err)
{
    const char *os = json_get_text(json, "os"), *has = json_get_text(json, "architecture");
    scoped(mem_freep) char *shown_os = term_quoted(os != NULL ? os : "?");
    scoped(mem_freep) char *shown = term_quoted(has != NULL ? has : "?");

    if (os != NULL && has != NULL && strcmp(os, OS) == 0 && strcmp(has, want->architecture) == 0)
        return 0;
    return error_set(err, ERROR_TASK, "%s: the image is for %.60s/%.60s, this machine is " OS "/%s",
                     name, shown_os, shown, want->architecture);
}

static int parse_diff_ids(const char *name, const json_t *json, struct layout_config *config,
                          struct error **err)
{
    const json_t *ids = json_get_array(json_get_object(json, "rootfs"), "diff_ids");
    size_t count = json_array_size(ids);
    int r = 0;

    if (ids == NULL || count == 0)
        return error_set(err, ERROR_TASK, "%s: 'rootfs.diff_ids' is missing", name);
    if (count > LAYOUT_LAYERS_MAX)
        return error_set(err, ERROR_LIMIT, "%s: more than %d layers", name, LAYOUT_LAYERS_MAX);
    for (size_t i = 0; i < count && r == 0; i++)
        r = parse_digest(name, json_string_value(json_array_get(ids, i)), &config->diff_ids[i],
                         err);
    config->layer_count = count;
    return r;
}

/* A text that can stand in an environment or an argument list. */
static bool is_word(const char *text)
{
    return text != NULL && strlen(text) <= LAYOUT_WORD_BYTES_MAX;
}

static bool is_variable(const char *text)
{
    size_t length = strcspn(text, "=");
    bool is_named = length > 0 && text[length] == '=' && !(text[0] >= '0' && text[0] <= '9');

    for (size_t i = 0; i < length && is_named; i++)
        is_named = (text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= 'a' && text[i] <= 'z') ||
                   (text[i] >= '0' && text[i] <= '9') || text[i] == '_';
    return is_named;
}

/* A list of words; with variables, those that are NAME=value and the others left out. */
static int copy_words(const char *name, const json_t *config, const char *key, bool variables,
                      json_t **ret, struct error **err)
{
    const json_t *from = json_get_array(config, key);
    json_t *to = json_array();

    *ret = to;
    if (json_array_size(from) > LAYOUT_ENV_MAX)
        return error_set(err, ERROR_LIMIT, "%s: '%s' has more than %d items", name, key,
                         LAYOUT_ENV_MAX);
    for (size_t i = 0; i < json_array_size(from); i++) {
        const char *word = json_string_value(json_array_get(from, i));

        if (!is_word(word))
            return error_set(err, ERROR_TASK, "%s: '%s[%zu]' is no text of at most %d bytes", name,
                             key, i, LAYOUT_WORD_BYTES_MAX);
        if (!variables || is_variable(word))
            json_push(to, json_string(word));
    }
    return 0;
}

static int parse_settings(const char *name, const json_t *config, json_t *settings,
                          struct error **err)
{
    static const struct {
        const char *from, *to;
        bool variables;
    } lists[] = {{"Env", "env", true}, {"Entrypoint", "entrypoint", false}, {"Cmd", "cmd", false}};
    static const char *const texts[][2] = {{"WorkingDir", "workdir"}, {"User", "user"}};

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        json_t *list = NULL;
        int r = copy_words(name, config, lists[i].from, lists[i].variables, &list, err);

        json_put(settings, lists[i].to, list);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        const char *text = json_get_text(config, texts[i][0]);

        if (text != NULL && !is_word(text))
            return error_set(err, ERROR_TASK, "%s: '%s' is too long", name, texts[i][0]);
        json_put_text(settings, texts[i][1], text != NULL ? text : "");
    }
    return 0;
}

int layout_config_parse(const char *name, const struct buf *text, const struct layout_want *want,
                        struct layout_config *ret, struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    int r = parse_object(name, text, &json, err);

    if (r == 0)
        r = check_platform(name, json, want, err);
    if (r < 0)
        return r;
    *ret = (struct layout_config){.settings = json_object()};
    r = parse_diff_ids(name, json, ret, err);
    if (r == 0)
        r = parse_settings(name, json_get_object(json, "config"), ret->settings, err);
    if (r < 0)
        layout_config_done(ret);
    return r;
}

struct sha256 layout_chain_id(const struct sha256 *diff_ids, size_t count)
{
    struct sha256 chain = diff_ids[0];

    for (size_t i = 1; i < count; i++) {
        char below[SHA256_HEX_CHARS + 1], own[SHA256_HEX_CHARS + 1];

        sha256_format(&chain, below);
        sha256_format(&diff_ids[i], own);
        scoped(mem_freep) char *text = str_format("sha256:%s sha256:%s", below, own);

        chain = sha256_of(text, strlen(text));
    }
    return chain;
}
