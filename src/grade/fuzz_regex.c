/*
 * Fuzz target: the first byte gives flags, the first line a pattern, the rest what is searched.
 *
 * A pattern is accepted xor complained about, with a place inside it; a search ends; invalid UTF-8
 * and its replacement give the same answer; a command line's words are found in both of its forms.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "grade/regex.h"
#include "grade/shell_text.h"
#include "grade/value.h"

#define PATTERN_BYTES_MAX 256
#define SUBJECT_BYTES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned flags_of(uint8_t byte)
{
    return (byte & (REGEX_IGNORE_CASE | REGEX_MULTI_LINE | REGEX_DOT_ALL | REGEX_UNICODE |
                    REGEX_VERBOSE)) |
           ((byte & 1) != 0 ? REGEX_ASCII : 0);
}

static void ask(const char *pattern, unsigned flags, const char *subject, size_t size)
{
    scoped(regex_freep) struct regex *regex = NULL;
    scoped(error_freep) struct error *err = NULL;
    scoped(buf_done) struct buf valid = {0};
    int r = regex_compile(pattern, flags, &regex, &err);

    ASSERT((r == 0) == (regex != NULL));
    ASSERT((r == 0) == (err == NULL));
    if (r < 0) {
        ASSERT(r == -ERROR_TASK || r == -ERROR_LIMIT);
        if (str_starts(error_message(err), "offset "))
            ASSERT(strtoul(error_message(err) + strlen("offset "), NULL, 10) <= strlen(pattern));
        return;
    }
    text_append_utf8(&valid, subject, size);
    ASSERT(utf8_valid(buf_text(&valid), valid.size_bytes));
    enum regex_outcome outcome = regex_search(regex, subject, size);

    if (outcome != REGEX_LIMIT)
        ASSERT(regex_search(regex, buf_text(&valid), valid.size_bytes) == outcome);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t line = 1;

    if (size < 1)
        return 0;
    while (line < size && data[line] != '\n')
        line++;
    size_t rest = size_min(line + 1, size);
    scoped(mem_freep) char *pattern =
        str_ndup((const char *)data + 1, size_min(line - 1, PATTERN_BYTES_MAX));
    scoped(mem_freep) char *subject =
        str_ndup((const char *)data + rest, size_min(size - rest, SUBJECT_BYTES_MAX));
    scoped(mem_freep) char *normal = shell_normal(subject);

    if (normal != NULL)
        ASSERT(strlen(normal) <= strlen(subject));
    ask(pattern, flags_of(data[0]), subject, strlen(subject));
    return 0;
}
