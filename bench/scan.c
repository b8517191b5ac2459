/*
 * What the leak scan sees and what it costs, on texts of this machine.
 *
 *   bench_scan recall PRIVATE...            codings of whole files and of pieces: how many are
 * found bench_scan alarms PRIVATE... -- TREE... innocent trees against unrelated private files
 *   bench_scan speed PRIVATE... -- TREE...  bytes a second, plain and with all readings
 *
 * PRIVATE: files and folders whose files are private. Asserts nothing; prints figures.
 */

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "evidence/leaks.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define FILE_BYTES_MIN 400
#define OPEN_FOLDERS 32
#define NS_PER_S 1e9

static struct str_list paths; /* of the walk at hand: nftw() has no context */

static int add_path(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind == FTW_F && S_ISREG(status->st_mode) && status->st_size > 0 &&
        (size_t)status->st_size <= FILE_BYTES_MAX)
        str_list_add(&paths, path);
    return 0;
}

static void list_files(char **roots, int count)
{
    str_list_done(&paths);
    for (int i = 0; i < count; i++)
        (void)nftw(roots[i], add_path, OPEN_FOLDERS,
                   FTW_PHYS); /* what cannot be read is left out */
    str_list_sort(&paths);
}

static bool load(const char *path, struct buf *ret)
{
    buf_clear(ret);
    return fs_read_file(AT_FDCWD, path, FILE_BYTES_MAX, ret, NULL) == 0;
}

/* --- codings -----------------------------------------------------------------------------------
 */

typedef void coding(const char *text, size_t size, struct buf *ret);

static void plain(const char *text, size_t size, struct buf *ret)
{
    buf_append(ret, text, size);
}

static void indented(const char *text, size_t size, struct buf *ret)
{
    buf_text_append(ret, "> ");
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '_')
            continue;
        buf_char(ret, text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i]);
        if (text[i] == '\n')
            buf_text_append(ret, ">    ");
    }
}

static void base64(const char *text, size_t size, struct buf *ret)
{
    scoped(buf_done) struct buf line = {0};

    buf_base64(&line, text, size);
    for (size_t i = 0; i < line.size_bytes; i += 76) {
        buf_append(ret, line.data + i, size_min(76, line.size_bytes - i));
        buf_char(ret, '\n');
    }
}

static void hexadecimal(const char *text, size_t size, struct buf *ret)
{
    for (size_t i = 0; i < size; i++)
        buf_format(ret, "%02x%s", (unsigned)(uint8_t)text[i], i % 30 == 29 ? "\n" : "");
}

static void hex_bytes(const char *text, size_t size, struct buf *ret)
{
    for (size_t i = 0; i < size; i++)
        buf_format(ret, "0x%02x,%s", (unsigned)(uint8_t)text[i], i % 12 == 11 ? "\n" : " ");
}

static void json(const char *text, size_t size, struct buf *ret)
{
    scoped(json_freep) json_t *value = json_text(text, size);

    json_write_line(ret, value);
}

static void utf_16(const char *text, size_t size, struct buf *ret)
{
    for (size_t i = 0; i < size; i++) {
        buf_char(ret, text[i]);
        buf_char(ret, '\0');
    }
}

static void numbered(const char *text, size_t size, struct buf *ret)
{
    unsigned line = 1;

    buf_format(ret, "%6u\t", line);
    for (size_t i = 0; i < size; i++) {
        buf_char(ret, text[i]);
        if (text[i] == '\n')
            buf_format(ret, "%6u\t", ++line);
    }
}

static void json_in_base64(const char *text, size_t size, struct buf *ret)
{
    scoped(buf_done) struct buf inner = {0};

    json(text, size, &inner);
    base64(inner.data, inner.size_bytes, ret);
}

static const struct {
    const char *name;
    coding *make;
} codings[] = {
    {"plain", plain},
    {"quoted, renamed", indented},
    {"base64", base64},
    {"hexadecimal", hexadecimal},
    {"0x41, 0x42", hex_bytes},
    {"JSON string", json},
    {"UTF-16", utf_16},
    {"numbered lines", numbered},
    {"JSON in base64", json_in_base64},
};

/* --- recall ------------------------------------------------------------------------------------
 */

/* So many lines from somewhere in the text; false when it has not as many. */
static bool cut_lines(const struct buf *text, unsigned lines, unsigned seed, const char **ret,
                      size_t *ret_size)
{
    const char *at = buf_text(text), *end = at + text->size_bytes;
    size_t count = 0;

    for (const char *c = at; c < end; c++)
        count += *c == '\n';
    if (lines == 0 || count <= lines) {
        *ret = at;
        *ret_size = text->size_bytes;
        return lines == 0;
    }
    for (size_t skip = seed % (count - lines); skip > 0; skip--)
        at = strchr(at, '\n') + 1;
    *ret = at;
    while (lines-- > 0)
        at = strchr(at, '\n') + 1;
    *ret_size = (size_t)(at - *ret);
    return true;
}

/* Of each file one piece in one coding, amid another text: whether it is told. */
static bool is_found(const struct buf *text, coding *make, const char *piece, size_t size)
{
    scoped(fingerprint_index_freep) struct fingerprint_index *index = fingerprint_index_new();
    scoped(leaks_done) struct leaks leaks = {0};
    scoped(buf_done) struct buf place = {0};

    fingerprint_file_begin(index, "private");
    fingerprint_file_add(index, buf_text(text), text->size_bytes);
    fingerprint_index_seal(index);
    scoped(leak_search_freep) struct leak_search *search = leak_search_new(index, NULL, NULL);

    buf_text_append(&place, "Some words before what matters, and a line of its own:\n");
    make(piece, size, &place);
    buf_text_append(&place, "\nand some after it.\n");
    return leak_search_text(search, "place", place.data, place.size_bytes, &leaks, NULL) == 0 &&
           leaks.count > 0;
}

static void recall(char **roots, int count)
{
    static const unsigned pieces[] = {0, 2, 4, 6, 8, 10, 16, 24, 40};

    list_files(roots, count);
    printf("%-16s", "found, %");
    for (size_t k = 0; k < ARRAY_SIZE(pieces); k++)
        pieces[k] == 0 ? (void)printf("  whole") : (void)printf(" %5u l", pieces[k]);
    printf("\n");
    for (size_t c = 0; c < ARRAY_SIZE(codings); c++) {
        printf("%-16s", codings[c].name);
        for (size_t k = 0; k < ARRAY_SIZE(pieces); k++) {
            size_t tried = 0, found = 0;

            for (size_t i = 0; i < paths.count; i++) {
                scoped(buf_done) struct buf text = {0};
                const char *piece = NULL;
                size_t size = 0;

                if (!load(paths.items[i], &text) || text.size_bytes < FILE_BYTES_MIN ||
                    memchr(text.data, '\0', text.size_bytes) != NULL ||
                    !cut_lines(&text, pieces[k], (unsigned)(i * 2654435761u), &piece, &size))
                    continue;
                tried++;
                found += is_found(&text, codings[c].make, piece, size);
            }
            printf(" %6.1f", tried == 0 ? 0.0 : 100.0 * (double)found / (double)tried);
        }
        printf("\n");
    }
    printf("of %zu files\n", paths.count);
}

/* --- innocent trees ----------------------------------------------------------------------------
 */

static struct fingerprint_index *index_files(char **roots, int count)
{
    struct fingerprint_index *index = fingerprint_index_new();
    scoped(buf_done) struct buf text = {0};

    list_files(roots, count);
    for (size_t i = 0; i < paths.count; i++) {
        if (!load(paths.items[i], &text))
            continue;
        fingerprint_file_begin(index, paths.items[i]);
        fingerprint_file_add(index, buf_text(&text), text.size_bytes);
    }
    fingerprint_index_seal(index);
    return index;
}

static size_t fingerprints_of(const struct fingerprint_index *index)
{
    size_t sum = 0;

    for (size_t i = 0; i < fingerprint_file_count(index); i++)
        sum += fingerprint_file_size(index, i);
    return sum;
}

static void alarms(char **private_roots, int private_count, char **roots, int count)
{
    scoped(fingerprint_index_freep) struct fingerprint_index *index =
        index_files(private_roots, private_count);
    scoped(leak_search_freep) struct leak_search *search = leak_search_new(index, NULL, NULL);
    scoped(buf_done) struct buf text = {0};
    size_t files = 0, told = 0, severe = 0;

    list_files(roots, count);
    for (size_t i = 0; i < paths.count; i++) {
        scoped(leaks_done) struct leaks leaks = {0};

        if (!load(paths.items[i], &text) ||
            leak_search_text(search, paths.items[i], buf_text(&text), text.size_bytes, &leaks,
                             NULL) < 0)
            continue;
        files++;
        told += leaks.count > 0;
        severe += leaks.severe_count > 0;
        for (size_t k = 0; k < leaks.count; k++) {
            scoped(mem_freep) char *what = leak_describe(&leaks.items[k], index);

            printf("%s %s\n", leaks.items[k].severe ? "severe" : "shared", what);
        }
    }
    printf("%zu private files (%zu fingerprints), %zu innocent files: %zu told (%.2f of 1,000), "
           "%zu severe\n",
           fingerprint_file_count(index), fingerprints_of(index), files, told,
           1000.0 * (double)told / (double)size_max(files, 1), severe);
}

/* --- speed -------------------------------------------------------------------------------------
 */

static double seconds_of(const struct leak_search *search, struct fingerprint_marks *marks,
                         const struct buf *text)
{
    scoped(leaks_done) struct leaks leaks = {0};
    uint64_t start_ns = clock_ns();

    if (marks != NULL)
        (void)fingerprint_marks_add(marks, buf_text(text), text->size_bytes, NULL);
    else
        (void)!leak_search_text((struct leak_search *)(uintptr_t)search, "x", buf_text(text),
                                text->size_bytes, &leaks, NULL);
    return (double)(clock_ns() - start_ns) / NS_PER_S;
}

static void speed(char **private_roots, int private_count, char **roots, int count)
{
    scoped(fingerprint_index_freep) struct fingerprint_index *index =
        index_files(private_roots, private_count);
    scoped(leak_search_freep) struct leak_search *search = leak_search_new(index, NULL, NULL);
    scoped(fingerprint_marks_freep) struct fingerprint_marks *marks = fingerprint_marks_new(index);
    scoped(buf_done) struct buf text = {0};
    double plain_s = 0, all_s = 0, bytes = 0;

    list_files(roots, count);
    for (size_t i = 0; i < paths.count; i++) {
        if (!load(paths.items[i], &text))
            continue;
        bytes += (double)text.size_bytes;
        plain_s += seconds_of(search, marks, &text);
        all_s += seconds_of(search, NULL, &text);
    }
    printf("%zu fingerprints, %zu files, %.0f MB: fingerprints alone %.2f GB/s, with all readings "
           "%.2f GB/s\n",
           fingerprints_of(index), paths.count, bytes / 1e6, bytes / plain_s / 1e9,
           bytes / all_s / 1e9);
}

int main(int argc, char **argv)
{
    int split = 2;

    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    if (argc > 2 && strcmp(argv[1], "recall") == 0)
        recall(argv + 2, argc - 2);
    else if (split < argc && strcmp(argv[1], "alarms") == 0)
        alarms(argv + 2, split - 2, argv + split + 1, argc - split - 1);
    else if (split < argc && strcmp(argv[1], "speed") == 0)
        speed(argv + 2, split - 2, argv + split + 1, argc - split - 1);
    else
        return fprintf(stderr, "usage: bench_scan recall|alarms|speed PRIVATE... [-- TREE...]\n"),
               2;
    str_list_done(&paths);
    return 0;
}
