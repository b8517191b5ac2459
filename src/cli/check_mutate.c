/* Mutations of a reference: a file gone, a function emptied, a literal changed. */
#include <ctype.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cli/check_scripts.h"

static bool is_text(const struct buf *bytes)
{
    return bytes->size_bytes > 0 && memchr(bytes->data, '\0', bytes->size_bytes) == NULL;
}

static void splice(const struct buf *from, size_t start, size_t end, const char *by,
                   struct buf *ret)
{
    buf_append(ret, from->data, start);
    buf_text_append(ret, by);
    buf_append(ret, from->data + end, from->size_bytes - end);
}

static void add(struct mutations *list, size_t file, struct buf *bytes, char *what)
{
    list->items = mem_resize(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] =
        (struct mutation){.file = file, .deletes = bytes == NULL, .what = what};
    if (bytes != NULL) {
        list->items[list->count - 1].bytes = *bytes;
        *bytes = (struct buf){0};
    }
}

static size_t indent_of(const char *line)
{
    return strspn(line, " \t");
}

/* The body of a Python function at line: from the next line to the first that is indented no more.
 */
static const char *python_body_end(const char *line, const char *body)
{
    size_t indent = indent_of(line);
    const char *end = body;

    while (*end != '\0') {
        size_t deeper = indent_of(end);

        if (end[deeper] != '\n' && end[deeper] != '\r' && end[deeper] != '\0' && deeper <= indent)
            break;
        end = strchr(end, '\n');
        if (end == NULL)
            return body + strlen(body);
        end++;
    }
    return end;
}

static bool empty_python(const struct buf *bytes, size_t file, const char *name,
                         struct mutations *ret)
{
    const char *text = buf_text(bytes);

    for (const char *line = text; *line != '\0';) {
        const char *next = strchr(line, '\n');
        size_t indent = indent_of(line);

        if (next == NULL)
            return false;
        if (strncmp(line + indent, "def ", 4) == 0 && next > line && next[-1] == ':') {
            scoped(buf_done) struct buf changed = {0};
            scoped(mem_freep) char *by = str_format("%.*s    return None\n", (int)indent, line);
            const char *function = line + indent + 4;

            splice(bytes, (size_t)(next + 1 - text),
                   (size_t)(python_body_end(line, next + 1) - text), by, &changed);
            add(ret, file, &changed,
                str_format("empty the function %.*s in %s", (int)strcspn(function, "("), function,
                           name));
            return true;
        }
        line = next + 1;
    }
    return false;
}

/* "name(...) {" up to its closing brace. */
static bool empty_braces(const struct buf *bytes, size_t file, const char *name, bool is_shell,
                         struct mutations *ret)
{
    const char *text = buf_text(bytes);

    for (const char *open = strchr(text, '{'); open != NULL; open = strchr(open + 1, '{')) {
        const char *before = open;
        int depth = 0;
        const char *close = open;

        while (before > text && isspace((unsigned char)before[-1]))
            before--;
        if (before == text || before[-1] != ')')
            continue;
        for (; *close != '\0'; close++) {
            depth += (*close == '{') - (*close == '}');
            if (depth == 0)
                break;
        }
        if (*close == '\0')
            return false;
        scoped(buf_done) struct buf changed = {0};

        splice(bytes, (size_t)(open - text), (size_t)(close + 1 - text),
               is_shell ? "{ :; }" : "{ }", &changed);
        add(ret, file, &changed, str_format("empty a function in %s", name));
        return true;
    }
    return false;
}

static bool empty_function(const struct reference_file *from, size_t file, struct mutations *ret)
{
    static const char *const braces[] = {".c",  ".cc", ".cpp",  ".js", ".mjs",
                                         ".ts", ".go", ".java", ".rs", ".php"};

    if (!is_text(&from->bytes))
        return false;
    if (str_ends(from->path, ".py"))
        return empty_python(&from->bytes, file, from->path, ret);
    if (str_ends(from->path, ".sh"))
        return empty_braces(&from->bytes, file, from->path, true, ret);
    for (size_t i = 0; i < ARRAY_SIZE(braces); i++)
        if (str_ends(from->path, braces[i]))
            return empty_braces(&from->bytes, file, from->path, false, ret);
    return false;
}

/* The first number outside comments and names becomes another; without one, the first word. */
static bool change_literal(const struct reference_file *from, size_t file, struct mutations *ret)
{
    const char *text = buf_text(&from->bytes), *at = NULL, *word = NULL;
    bool is_program =
        str_starts(text, "#!") || str_ends(from->path, ".py") || str_ends(from->path, ".sh");
    scoped(buf_done) struct buf changed = {0};

    if (!is_text(&from->bytes))
        return false;
    for (const char *s = text; *s != '\0' && at == NULL; s++) {
        unsigned char before = s == text ? ' ' : (unsigned char)s[-1];

        if (*s == '#' && is_program) {
            s += strcspn(s, "\n");
            if (*s == '\0')
                break;
        } else if (isdigit((unsigned char)*s) && !isalnum(before) && before != '_' &&
                   before != '$' && before != '&' && before != '>') {
            at = s;
        } else if (word == NULL && !is_program && isalpha((unsigned char)*s)) {
            word = s;
        }
    }
    if (at == NULL)
        at = word;
    if (at == NULL)
        return false;
    size_t start = (size_t)(at - text);
    char by[2] = {isdigit((unsigned char)*at) ? (*at == '9' ? '1' : (char)(*at + 1))
                                              : (*at == 'x' ? 'y' : 'x'),
                  '\0'};

    splice(&from->bytes, start, start + 1, by, &changed);
    add(ret, file, &changed,
        str_format("change '%.*s' in %s", (int)size_min(strcspn(at, " \t\r\n,;()[]{}\"'"), 20), at,
                   from->path));
    return true;
}

void mutations_make(const struct reference *reference, size_t max, struct mutations *ret)
{
    /* One of each kind for every file, kinds in turn, so that few mutations are of all kinds. */
    for (size_t i = 0; i < reference->count && ret->count < max; i++) {
        const struct reference_file *file = &reference->files[i];

        (void)empty_function(file, i, ret); /* a file without any has none */
        if (ret->count < max)
            (void)change_literal(file, i, ret);
        if (ret->count < max && (reference->count > 1 || !reference->has_solve))
            add(ret, i, NULL, str_format("delete %s", file->path));
    }
}

void mutations_done(struct mutations *mutations)
{
    for (size_t i = 0; i < mutations->count; i++) {
        buf_done(&mutations->items[i].bytes);
        free(mutations->items[i].what);
    }
    free(mutations->items);
    *mutations = (struct mutations){0};
}
