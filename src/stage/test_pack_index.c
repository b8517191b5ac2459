/* The index of a git pack: names found in either object format, and what is no index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "stage/pack_index.h"

#define OBJECTS 3

static void add_number(struct buf *index, uint32_t value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                             (uint8_t)value};

    buf_append(index, bytes, sizeof(bytes));
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_BYTES);
}

/* Of the blobs "0", "1" and "2", as git would write it, but for the checksums. */
static void make_index(size_t name_bytes, struct buf *ret)
{
    uint8_t names[OBJECTS][SHA256_BYTES] = {{0}}, rest[OBJECTS * 8 + 2 * SHA256_BYTES] = {0};

    for (size_t i = 0; i < OBJECTS; i++) {
        char text[] = {(char)('0' + i)};
        struct git_blob_names blob = git_blob_names_of(text, 1);

        memcpy(names[i], name_bytes == SHA256_BYTES ? blob.sha256.bytes : blob.sha1, name_bytes);
    }
    qsort(names, OBJECTS, sizeof(names[0]), compare);
    buf_append(ret, "\377tOc\0\0\0\2", 8);
    for (unsigned first = 0; first < 256; first++) {
        uint32_t count = 0;

        for (size_t i = 0; i < OBJECTS; i++)
            count += names[i][0] <= first;
        add_number(ret, count);
    }
    for (size_t i = 0; i < OBJECTS; i++)
        buf_append(ret, names[i], name_bytes);
    buf_append(ret, rest, OBJECTS * 8 + 2 * name_bytes);
}

static void the_names_are_those_that_git_gives(void **state)
{
    (void)state;
    struct git_blob_names blob = git_blob_names_of("hello\n", 6);
    char text[SHA256_HEX_CHARS + 1];
    static const uint8_t sha1[] = {0xce, 0x01, 0x36, 0x25, 0x03, 0x0b, 0xa8, 0xdb, 0xa9, 0x06,
                                   0xf7, 0x56, 0x96, 0x7f, 0x9e, 0x9c, 0xa3, 0x94, 0x46, 0x4a};

    sha256_format(&blob.sha256, text);
    assert_memory_equal(blob.sha1, sha1, sizeof(sha1));
    assert_string_equal(text, "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4");
}

static void what_is_in_it_is_found_and_nothing_else(void **state)
{
    (void)state;
    static const size_t kinds[] = {GIT_SHA1_BYTES, SHA256_BYTES};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        scoped(buf_done) struct buf bytes = {0};
        struct pack_index index;

        make_index(kinds[i], &bytes);
        assert_int_equal(pack_index_parse(bytes.data, bytes.size_bytes, &index, NULL), 0);
        assert_int_equal(index.count, OBJECTS);
        assert_int_equal(index.name_bytes, kinds[i]);
        for (char c = '0'; c < '0' + 2 * OBJECTS; c++) {
            struct git_blob_names blob = git_blob_names_of(&c, 1);

            assert_int_equal(pack_index_has(&index, &blob), c < '0' + OBJECTS);
        }
    }
}

static void what_is_no_index_is_an_error(void **state)
{
    (void)state;
    scoped(buf_done) struct buf bytes = {0};
    struct pack_index index;

    make_index(GIT_SHA1_BYTES, &bytes);
    for (size_t size = 0; size < bytes.size_bytes; size++)
        assert_int_equal(pack_index_parse(bytes.data, size, &index, NULL), -ERROR_TASK);
    bytes.data[7] = 3;
    assert_int_equal(pack_index_parse(bytes.data, bytes.size_bytes, &index, NULL), -ERROR_TASK);
    bytes.data[7] = 2;
    memset(bytes.data + 8 + 255 * 4, 0xff, 4); /* more objects than there is room for */
    assert_int_equal(pack_index_parse(bytes.data, bytes.size_bytes, &index, NULL), -ERROR_TASK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_are_those_that_git_gives),
        cmocka_unit_test(what_is_in_it_is_found_and_nothing_else),
        cmocka_unit_test(what_is_no_index_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
