#include "image/entry.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

#define MARK ".wh."
#define OPAQUE_MARK ".wh..wh..opq"
#define OWN_MARK ".wh..wh."

void entry_name_done(struct entry_name *name)
{
    free(name->parent);
    free(name->base);
    *name = (struct entry_name){.parent = NULL};
}

static int refuse(const char *name, const char *why, struct error **err)
{
    scoped(mem_freep) char *quoted = term_quoted(name);

    return error_set(err, ERROR_TASK, "the entry '%.300s' %s", quoted, why);
}

/* Parts joined by '/', without empty ones and ".". */
static int normalise(const char *name, struct buf *ret, struct error **err)
{
    for (const char *part = name; *part != '\0';) {
        size_t length = strcspn(part, "/");

        if (length == 2 && part[0] == '.' && part[1] == '.')
            return refuse(name, "has '..' in its path", err);
        if (length > ENTRY_NAME_BYTES_MAX)
            return refuse(name, "has a name of more than 255 bytes", err);
        if (length > 0 && !(length == 1 && part[0] == '.')) {
            if (ret->size_bytes > 0)
                buf_char(ret, '/');
            buf_append(ret, part, length);
        }
        part += length;
        part += *part == '/';
    }
    return ret->size_bytes > ENTRY_PATH_BYTES_MAX
               ? refuse(name, "has a path of more than 4095 bytes", err)
               : 0;
}

static int classify(const char *name, struct entry_name *entry, struct error **err)
{
    const char *base = entry->base;

    if (!str_starts(base, MARK))
        return 0;
    if (strcmp(base, OPAQUE_MARK) == 0)
        entry->kind = ENTRY_OPAQUE;
    else if (str_starts(base, OWN_MARK))
        entry->kind = ENTRY_IGNORED;
    else
        entry->kind = ENTRY_WHITEOUT;
    const char *hidden = base + strlen(MARK);

    if (entry->kind == ENTRY_WHITEOUT &&
        (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0))
        return refuse(name, "hides no name", err);
    char *kept = str_dup(entry->kind == ENTRY_WHITEOUT ? hidden : "");

    free(entry->base);
    entry->base = kept;
    return 0;
}

int entry_name_parse(const char *name, struct entry_name *ret, struct error **err)
{
    scoped(entry_name_done) struct entry_name entry = {.kind = ENTRY_PLAIN};
    scoped(buf_done) struct buf path = {.max_bytes = 4 * ENTRY_PATH_BYTES_MAX};
    int r = normalise(name, &path, err);

    if (r == 0 && path.overflowed)
        r = refuse(name, "has a path of more than 4095 bytes", err);
    if (r < 0)
        return r;
    const char *text = buf_text(&path), *slash = strrchr(text, '/');

    entry.parent = slash == NULL ? str_dup("") : str_ndup(text, (size_t)(slash - text));
    entry.base = str_dup(slash == NULL ? text : slash + 1);
    if (path.size_bytes == 0)
        entry.kind = ENTRY_ROOT;
    r = classify(name, &entry, err);
    if (r < 0)
        return r;
    *ret = entry;
    entry = (struct entry_name){.parent = NULL};
    return 0;
}
