#include "collect/manifest.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

static const char *const type_names[] = {
    [MANIFEST_FILE] = "file",
    [MANIFEST_DIR] = "dir",
    [MANIFEST_LINK] = "link",
};

static void escape_byte(struct buf *buf, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[3] = {'%', digits[byte >> 4], digits[byte & 15]};

    buf_append(buf, text, sizeof(text));
}

void manifest_escape(struct buf *buf, const char *text)
{
    size_t size = strlen(text);

    for (size_t i = 0; i < size;) {
        unsigned char byte = (unsigned char)text[i];
        uint32_t rune;
        size_t length = utf8_next(text + i, size - i, &rune);

        if (length == 0 || byte < 0x20 || byte == 0x7f || byte == '%') {
            escape_byte(buf, byte);
            i++;
            continue;
        }
        if (length > 1 && rune_is_hidden(rune)) {
            for (size_t stop = i + length; i < stop; i++)
                escape_byte(buf, (unsigned char)text[i]);
            continue;
        }
        if (byte == '"' || byte == '\\')
            buf_char(buf, '\\');
        buf_append(buf, text + i, length);
        i += length;
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Undoes one %XX at s; -1 when it is none. */
static int escaped_byte(const char *s)
{
    int high = hex_value(s[1]), low = high < 0 ? -1 : hex_value(s[2]);

    if (low < 0)
        return -1;
    return high * 16 + low;
}

char *manifest_unescape(const char *text)
{
    scoped(buf_done) struct buf plain = {0}, again = {0}, wanted = {0};

    for (const char *s = text; *s != '\0'; s++) {
        int byte = *s == '%' ? escaped_byte(s) : (unsigned char)*s;

        if (byte <= 0)
            return NULL;
        if (*s == '%')
            s += 2;
        buf_char(&plain, (char)byte);
    }
    /* Only one spelling is right, so that equal paths are equal texts. */
    manifest_escape(&again, buf_text(&plain));
    for (const char *s = text; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            buf_char(&wanted, '\\');
        buf_char(&wanted, *s);
    }
    if (strcmp(buf_text(&again), buf_text(&wanted)) != 0)
        return NULL;
    return str_dup(buf_text(&plain));
}

static void write_fields(struct buf *buf, const char *key, const char *name,
                         const struct manifest_entry *entry, const struct sha256 *digest)
{
    char hex[SHA256_HEX_CHARS + 1];

    buf_format(buf, "{\"%s\":\"", key);
    manifest_escape(buf, name);
    buf_format(buf, "\",\"type\":\"%s\",\"mode\":\"%04o\"", type_names[entry->type],
               (unsigned)entry->mode);
    if (entry->type == MANIFEST_FILE)
        buf_format(buf, ",\"size\":%llu", (unsigned long long)entry->size_bytes);
    if (entry->type == MANIFEST_LINK) {
        buf_text_append(buf, ",\"target\":\"");
        manifest_escape(buf, entry->target);
        buf_char(buf, '"');
    } else if (digest != NULL) {
        sha256_format(digest, hex);
        buf_format(buf, ",\"sha256\":\"%s\"", hex);
    }
    buf_text_append(buf, "}\n");
}

void manifest_write_entry(struct buf *buf, const struct manifest_entry *entry)
{
    write_fields(buf, "path", entry->path, entry,
                 entry->type == MANIFEST_FILE ? &entry->digest : NULL);
}

void manifest_write(struct buf *buf, const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        manifest_write_entry(buf, &manifest->entries[i]);
}

/* A directory whose content is being hashed. */
struct open_dir {
    const struct manifest_entry *entry; /* NULL: the root */
    struct sha256_stream *stream;
};

struct open_dirs {
    struct open_dir *items;
    size_t count, capacity;
};

static void open_dirs_done(struct open_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        sha256_stream_free(dirs->items[i].stream);
    free(dirs->items);
}

static void push_dir(struct open_dirs *dirs, const struct manifest_entry *entry)
{
    if (dirs->count == dirs->capacity) {
        dirs->capacity = dirs->capacity == 0 ? 16 : 2 * dirs->capacity;
        dirs->items = mem_resize(dirs->items, dirs->capacity, sizeof(*dirs->items));
    }
    dirs->items[dirs->count++] = (struct open_dir){.entry = entry, .stream = sha256_stream_new()};
}

static void hash_child(struct open_dirs *dirs, const struct manifest_entry *entry,
                       const struct sha256 *digest)
{
    scoped(buf_done) struct buf line = {0};

    write_fields(&line, "name", path_base(entry->path), entry, digest);
    sha256_stream_add(dirs->items[dirs->count - 1].stream, line.data, line.size_bytes);
}

static struct sha256 pop_dir(struct open_dirs *dirs)
{
    struct open_dir *top = &dirs->items[--dirs->count];
    struct sha256 digest = sha256_stream_end(top->stream);

    sha256_stream_free(top->stream);
    if (top->entry != NULL)
        hash_child(dirs, top->entry, &digest);
    return digest;
}

static size_t depth_of(const char *path)
{
    size_t depth = 0;

    for (; *path != '\0'; path++)
        depth += *path == '/';
    return depth;
}

struct sha256 manifest_root(const struct manifest *manifest)
{
    scoped(open_dirs_done) struct open_dirs dirs = {0};

    push_dir(&dirs, NULL);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct manifest_entry *entry = &manifest->entries[i];
        size_t depth = depth_of(entry->path);

        ASSERT(depth < dirs.count); /* every parent is an entry */
        while (dirs.count > depth + 1)
            (void)pop_dir(&dirs); /* its digest went into the parent */
        if (entry->type == MANIFEST_DIR)
            push_dir(&dirs, entry);
        else
            hash_child(&dirs, entry, &entry->digest);
    }
    while (dirs.count > 1)
        (void)pop_dir(&dirs); /* as above */
    return pop_dir(&dirs);
}

/* Reads a line: each step moves `next` on, or sets `failed` and does nothing from then on. */
struct line {
    const char *next, *end;
    bool failed;
};

static void expect(struct line *line, const char *text)
{
    size_t length = strlen(text);

    if (line->failed || (size_t)(line->end - line->next) < length ||
        memcmp(line->next, text, length) != 0) {
        line->failed = true;
        return;
    }
    line->next += length;
}

static bool looking_at(const struct line *line, const char *text)
{
    size_t length = strlen(text);

    return !line->failed && (size_t)(line->end - line->next) >= length &&
           memcmp(line->next, text, length) == 0;
}

/* The rest of a string after its opening quote, with the closing one. Owned; NULL after a failure.
 */
static char *string_rest(struct line *line)
{
    scoped(buf_done) struct buf raw = {0};

    while (!line->failed && line->next < line->end && *line->next != '"') {
        if (*line->next == '\\')
            line->next++;
        if (line->next < line->end)
            buf_char(&raw, *line->next++);
    }
    expect(line, "\"");
    if (line->failed || strlen(buf_text(&raw)) != raw.size_bytes)
        return NULL;
    return manifest_unescape(buf_text(&raw));
}

static uint64_t digits(struct line *line, unsigned base, size_t max_chars)
{
    uint64_t value = 0;
    size_t count = 0;

    while (!line->failed && line->next < line->end && *line->next >= '0' &&
           (unsigned)(*line->next - '0') < base && count < max_chars) {
        value = value * base + (unsigned)(*line->next - '0');
        line->next++;
        count++;
    }
    if (count == 0)
        line->failed = true;
    return value;
}

static void hex_digest(struct line *line, struct sha256 *ret)
{
    char hex[SHA256_HEX_CHARS + 1] = {0};

    if (line->failed || line->end - line->next < SHA256_HEX_CHARS) {
        line->failed = true;
        return;
    }
    memcpy(hex, line->next, SHA256_HEX_CHARS);
    line->next += SHA256_HEX_CHARS;
    if (!sha256_parse(hex, ret))
        line->failed = true;
}

static bool parse_type(struct line *line, struct manifest_entry *entry)
{
    for (size_t i = 0; i < ARRAY_SIZE(type_names); i++) {
        if (!looking_at(line, type_names[i]))
            continue;
        expect(line, type_names[i]);
        entry->type = (enum manifest_type)i;
        return true;
    }
    return false;
}

static bool parse_line(struct line *line, struct manifest_entry *entry)
{
    expect(line, "{\"path\":\"");
    entry->path = string_rest(line);
    expect(line, ",\"type\":\"");
    if (entry->path == NULL || !parse_type(line, entry))
        return false;
    expect(line, "\",\"mode\":\"");
    entry->mode = (mode_t)digits(line, 8, 4);
    expect(line, "\"");
    if (entry->type == MANIFEST_FILE) {
        expect(line, ",\"size\":");
        entry->size_bytes = digits(line, 10, 18);
        expect(line, ",\"sha256\":\"");
        hex_digest(line, &entry->digest);
        expect(line, "\"");
    }
    if (entry->type == MANIFEST_LINK) {
        expect(line, ",\"target\":\"");
        entry->target = string_rest(line);
        if (entry->target == NULL)
            return false;
        entry->digest = sha256_of(entry->target, strlen(entry->target));
        entry->size_bytes = strlen(entry->target);
    }
    expect(line, "}\n");
    return !line->failed && line->next == line->end && (entry->mode & ~MANIFEST_MODE_BITS) == 0;
}

/* What parse_line() took must be what manifest_write() would write. */
static bool is_canonical(const struct manifest_entry *entry, const char *text, size_t size)
{
    scoped(buf_done) struct buf line = {0};

    manifest_write_entry(&line, entry);
    return line.size_bytes == size && memcmp(line.data, text, size) == 0;
}

static bool follows(const struct manifest *manifest, const char *path)
{
    if (!path_is_inside(path) || strlen(path) > MANIFEST_PATH_BYTES_MAX)
        return false;
    if (manifest->count > 0 &&
        manifest_path_compare(manifest->entries[manifest->count - 1].path, path) >= 0)
        return false;
    if (strchr(path, '/') == NULL)
        return true;
    scoped(mem_freep) char *parent = path_dir(path);
    const struct manifest_entry *above = manifest_find(manifest, parent);

    return above != NULL && above->type == MANIFEST_DIR;
}

static void entry_done(struct manifest_entry *entry)
{
    free(entry->path);
    free(entry->target);
}

int manifest_read(const char *name, const char *text, size_t size, struct manifest *ret,
                  struct error **err)
{
    scoped(manifest_done) struct manifest manifest = {0};

    for (size_t at = 0, number = 1; at < size; number++) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline == NULL ? size - at : (size_t)(newline - text) - at + 1;
        struct line line = {.next = text + at, .end = text + at + length};
        scoped(entry_done) struct manifest_entry entry = {0};

        if (manifest.count == MANIFEST_ENTRIES_MAX)
            return error_set(err, ERROR_LIMIT, "%s: more than %zu entries", name,
                             MANIFEST_ENTRIES_MAX);
        if (!parse_line(&line, &entry) || !is_canonical(&entry, text + at, length))
            return error_set(err, ERROR_SYSTEM, "%s:%zu: not a line of a manifest", name, number);
        if (!follows(&manifest, entry.path))
            return error_set(err, ERROR_SYSTEM, "%s:%zu: out of order or outside the tree", name,
                             number);
        manifest_add(&manifest, &entry);
        at += length;
    }
    *ret = manifest;
    manifest = (struct manifest){0};
    return 0;
}
