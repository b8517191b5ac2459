#include "collect/glob.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

/* The length of the character at s: a UTF-8 sequence, or one byte of something else. */
static size_t char_length(const char *s, size_t size)
{
    uint32_t rune;

    return size_max(utf8_next(s, size, &rune), 1);
}

/* The code point, or the byte of something that is none. */
static uint32_t rune_at(const char *s, size_t size)
{
    uint32_t rune;

    return utf8_next(s, size, &rune) > 0 ? rune : 0x110000u + (unsigned char)*s;
}

/* The ']' that ends the set at s (which is '['), NULL when there is none. */
static const char *set_end(const char *s)
{
    s++;
    if (*s == '!' || *s == '^')
        s++;
    if (*s == ']')
        s++;
    return strchr(s, ']');
}

static bool set_has(const char *s, const char *end, uint32_t rune)
{
    bool negated = s[1] == '!' || s[1] == '^';
    bool found = false;

    s += negated ? 2 : 1;
    while (s < end) {
        uint32_t low = rune_at(s, (size_t)(end - s));

        s += char_length(s, (size_t)(end - s));
        uint32_t high = low;

        if (end - s >= 2 && *s == '-') {
            high = rune_at(s + 1, (size_t)(end - s - 1));
            s += 1 + char_length(s + 1, (size_t)(end - s - 1));
        }
        found = found || (low <= rune && rune <= high);
    }
    return found != negated;
}

/* Matches the one character at name against the pattern at p; returns p past it, NULL for no. */
static const char *match_one(const char *p, const char *name, size_t name_size)
{
    const char *end = *p == '[' ? set_end(p) : NULL;

    if (end != NULL)
        return set_has(p, end, rune_at(name, name_size)) ? end + 1 : NULL;
    if (*p == '?')
        return p + 1;
    size_t length = char_length(name, name_size);

    return strncmp(p, name, length) == 0 ? p + length : NULL;
}

bool glob_name_match(const char *pattern, const char *name)
{
    const char *p = pattern, *s = name, *end = name + strlen(name);
    const char *star = NULL, *star_name = NULL;

    while (s < end) {
        if (*p == '*') {
            star = ++p;
            star_name = s;
            continue;
        }
        const char *next = *p == '\0' ? NULL : match_one(p, s, (size_t)(end - s));

        if (next != NULL) {
            p = next;
            s += char_length(s, (size_t)(end - s));
        } else if (star != NULL) {
            star_name += char_length(star_name, (size_t)(end - star_name));
            p = star;
            s = star_name;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return *p == '\0';
}

bool glob_is_pattern(const char *text)
{
    return strpbrk(text, "*?[") != NULL;
}

static bool add_part(struct glob *glob, const char *part)
{
    if (glob->count == GLOB_PARTS_MAX || strcmp(part, "..") == 0)
        return false;
    glob->parts[glob->count++] = part;
    return true;
}

bool glob_parse(const char *pattern, struct glob *ret)
{
    scoped(glob_done) struct glob glob = {.text = str_dup(pattern)};

    if (*pattern == '/')
        return false;
    for (char *part = glob.text, *next; part != NULL; part = next) {
        next = strchr(part, '/');
        if (next != NULL)
            *next++ = '\0';
        if (*part == '\0' || strcmp(part, ".") == 0)
            continue;
        if (!add_part(&glob, part))
            return false;
    }
    if (glob.count == 0)
        return false;
    if (strcmp(glob.parts[glob.count - 1], "**") == 0 && !add_part(&glob, "*"))
        return false;
    *ret = glob;
    glob = (struct glob){0};
    return true;
}

void glob_done(struct glob *glob)
{
    free(glob->text);
    *glob = (struct glob){0};
}

static bool is_any_depth(const struct glob *glob, size_t part)
{
    return part < glob->count && strcmp(glob->parts[part], "**") == 0;
}

/* A `**` may match nothing: its state includes the next one. */
static uint64_t close_states(const struct glob *glob, uint64_t states)
{
    for (size_t i = 0; i < glob->count; i++)
        if ((states >> i & 1) != 0 && is_any_depth(glob, i))
            states |= (uint64_t)1 << (i + 1);
    return states;
}

uint64_t glob_start(const struct glob *glob)
{
    return close_states(glob, 1);
}

uint64_t glob_step(const struct glob *glob, uint64_t states, const char *name, bool literal_only)
{
    uint64_t next = 0;

    for (size_t i = 0; i < glob->count; i++) {
        if ((states >> i & 1) == 0)
            continue;
        if (strcmp(glob->parts[i], name) == 0)
            next |= (uint64_t)1 << (i + 1);
        else if (literal_only)
            continue;
        else if (is_any_depth(glob, i))
            next |= (uint64_t)1 << i;
        else if (glob_name_match(glob->parts[i], name))
            next |= (uint64_t)1 << (i + 1);
    }
    return close_states(glob, next);
}

bool glob_accepts(const struct glob *glob, uint64_t states)
{
    return (states >> glob->count & 1) != 0;
}

enum glob_relation glob_relate(const struct glob *glob, const char *path)
{
    scoped(mem_freep) char *rest = str_dup(path);
    uint64_t states = glob_start(glob);

    for (char *part = rest, *next; part != NULL && states != 0; part = next) {
        next = strchr(part, '/');
        if (next != NULL)
            *next++ = '\0';
        states = glob_step(glob, states, part, false);
        if (glob_accepts(glob, states))
            return GLOB_WITHIN;
    }
    return states != 0 ? GLOB_ABOVE : GLOB_APART;
}
