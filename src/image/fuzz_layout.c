/* The first byte chooses a parser: an accepted text gives what is within its limits. */
#include "base/mem.h"
#include "image/entry.h"
#include "image/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_name(const char *text)
{
    struct entry_name name = {.kind = ENTRY_PLAIN};
    struct error *err = NULL;

    if (entry_name_parse(text, &name, &err) < 0) {
        ASSERT(err != NULL);
        error_free(err);
        return;
    }
    ASSERT(err == NULL && name.parent[0] != '/' && strchr(name.base, '/') == NULL);
    ASSERT(strcmp(name.base, "..") != 0 && strcmp(name.base, ".") != 0);
    scoped(mem_freep) char *framed = str_format("/%s/", name.parent);

    ASSERT(strstr(framed, "/../") == NULL && strstr(framed, "/./") == NULL);
    ASSERT((name.kind == ENTRY_PLAIN || name.kind == ENTRY_WHITEOUT) == (name.base[0] != '\0'));
    entry_name_done(&name);
}

static void try_config(const struct buf *text)
{
    struct layout_config config = {.settings = NULL};
    struct error *err = NULL;
    const struct layout_want want = {.architecture = "amd64"};

    if (layout_config_parse("config", text, &want, &config, &err) < 0) {
        ASSERT(err != NULL);
        error_free(err);
        return;
    }
    ASSERT(config.layer_count > 0 && config.layer_count <= LAYOUT_LAYERS_MAX);
    (void)layout_chain_id(config.diff_ids, config.layer_count);
    layout_config_done(&config);
}

static void try_others(const struct buf *text, uint8_t which)
{
    static struct layout_manifest manifest;
    struct layout_archive archive = {.config = NULL};
    struct descriptor descriptor;
    struct error *err = NULL;
    const struct layout_want want = {.tag = which == 2 ? "a" : NULL, .architecture = "amd64"};
    int r;

    if (which == 3) {
        r = layout_manifest_parse("manifest", text, &manifest, &err);
        ASSERT(r < 0 || manifest.layer_count <= LAYOUT_LAYERS_MAX);
    } else if (which == 4) {
        r = layout_archive_parse("manifest.json", text, &want, &archive, &err);
        layout_archive_done(&archive);
    } else {
        r = layout_choose("index.json", text, &want, &descriptor, &err);
        ASSERT(r < 0 || descriptor.kind <= DESCRIPTOR_MANIFEST);
    }
    ASSERT((r < 0) == (err != NULL));
    error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(buf_done) struct buf text = {0};

    if (size == 0)
        return 0;
    buf_append(&text, data + 1, size - 1);
    uint8_t which = data[0] % 6;

    if (which == 0)
        try_name(buf_text(&text));
    else if (which == 1)
        try_config(&text);
    else
        try_others(&text, which);
    return 0;
}
