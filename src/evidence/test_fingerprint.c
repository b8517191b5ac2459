/* Fingerprints: copies are found in whatever layout, and what is subtracted is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "evidence/fingerprint.h"

static const char secret[] = "def settle(accounts, rates):\n"
                             "    total_in_cents = 0\n"
                             "    for account, balance in sorted(accounts.items()):\n"
                             "        if account.startswith('closed-'):\n"
                             "            continue\n"
                             "        rate = rates.get(account, rates['default'])\n"
                             "        total_in_cents += round(balance * (1 + rate) ** 12)\n"
                             "    return total_in_cents % 1000003\n";

static const char other[] =
    "A library reads what users have: the quick brown fox, a lazy dog and the five boxing\n"
    "wizards that jump quickly over pack of mine with a dozen liquor jugs of yours, or not.\n";

static struct fingerprint_index *index_of(const char *text)
{
    struct fingerprint_index *index = fingerprint_index_new();

    fingerprint_file_begin(index, "secret.py");
    fingerprint_file_add(index, text, strlen(text));
    return index;
}

static struct fingerprint_overlap find_in(const struct fingerprint_index *index, const char *text,
                                          size_t size)
{
    scoped(fingerprint_marks_freep) struct fingerprint_marks *marks = fingerprint_marks_new(index);
    struct fingerprint_overlap overlap;

    (void)fingerprint_marks_add(marks, text, size, NULL);
    fingerprint_overlap_of(marks, 0, &overlap);
    return overlap;
}

static void a_copy_is_found_and_another_text_is_not(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);

    fingerprint_index_seal(index);
    assert_true(fingerprint_file_size(index, 0) > 20);
    struct fingerprint_overlap same = find_in(index, secret, strlen(secret));

    assert_int_equal(same.found, fingerprint_file_size(index, 0));
    assert_int_equal(same.all, same.found);
    assert_true(same.run_chars > 100);
    assert_true(same.run_offset + same.run_bytes <= strlen(secret));
    assert_int_equal(find_in(index, other, strlen(other)).found, 0);
    assert_int_equal(find_in(index, "", 0).found, 0);
}

static void layout_case_and_quoting_do_not_matter(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);
    scoped(buf_done) struct buf changed = {0};

    fingerprint_index_seal(index);
    for (const char *c = secret; *c != '\0'; c++) {
        if (*c == '\n')
            buf_text_append(&changed, "\r\n+ # ");
        else if (*c != '_' && *c != ' ')
            buf_char(&changed, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    }
    struct fingerprint_overlap found = find_in(index, changed.data, changed.size_bytes);

    assert_int_equal(found.found, found.all);
}

static void utf_16_is_the_same_text(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);
    char wide[2 * sizeof(secret)] = {0};

    fingerprint_index_seal(index);
    for (size_t i = 0; i < sizeof(secret); i++)
        wide[2 * i + 1] = secret[i];
    struct fingerprint_overlap found = find_in(index, wide, sizeof(wide));

    assert_int_equal(found.found, found.all);
}

static void pieces_are_joined_wherever_they_are_cut(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);

    fingerprint_index_seal(index);
    scoped(fingerprint_marks_freep) struct fingerprint_marks *marks = fingerprint_marks_new(index);

    for (size_t cut = 0; cut < strlen(secret); cut++) {
        struct fingerprint_overlap overlap;

        fingerprint_marks_clear(marks);
        (void)fingerprint_marks_feed(marks, secret, cut, NULL);
        (void)fingerprint_marks_feed(marks, secret + cut, strlen(secret) - cut, NULL);
        fingerprint_marks_feed_end(marks);
        fingerprint_overlap_of(marks, 0, &overlap);
        assert_int_equal(overlap.found, overlap.all);
    }
}

static void a_block_boundary_hides_nothing(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);
    size_t pad = (size_t)40 << 10, size = pad + strlen(secret);
    scoped(mem_freep) char *text = mem_new(size, 1);

    fingerprint_index_seal(index);
    for (size_t before = ((size_t)32 << 10) - strlen(secret); before <= (size_t)32 << 10;
         before += 7) {
        memset(text, ' ', size);
        memcpy(text + before, secret, strlen(secret));
        struct fingerprint_overlap found = find_in(index, text, size);

        assert_int_equal(found.found, found.all);
    }
}

static void what_is_subtracted_is_not_private(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);
    size_t half = strlen(secret) / 2;

    fingerprint_file_subtract(index, secret, half);
    fingerprint_index_seal(index);
    assert_true(fingerprint_file_size(index, 0) > 0);
    assert_int_equal(find_in(index, secret, half).found, 0);
    struct fingerprint_overlap rest = find_in(index, secret, strlen(secret));

    assert_int_equal(rest.found, rest.all);
}

static void marks_of_what_was_written_before_are_left_out(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);

    fingerprint_index_seal(index);
    scoped(fingerprint_marks_freep) struct fingerprint_marks *own = fingerprint_marks_new(index);
    scoped(fingerprint_marks_freep) struct fingerprint_marks *marks = fingerprint_marks_new(index);

    assert_true(fingerprint_marks_add(own, secret, strlen(secret), NULL) > 0);
    assert_int_equal(fingerprint_marks_add(marks, secret, strlen(secret), own), 0);
    assert_true(fingerprint_marks_add(marks, secret, strlen(secret), NULL) > 0);
}

static void one_gram_of_many_files_counts_for_each(void **state)
{
    (void)state;
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(secret);
    scoped(mem_freep) char *twice = str_format("%s%s", secret, secret);

    fingerprint_file_begin(index, "copy.py");
    fingerprint_file_add(index, twice, strlen(twice));
    fingerprint_index_seal(index);
    scoped(fingerprint_marks_freep) struct fingerprint_marks *marks = fingerprint_marks_new(index);
    struct fingerprint_overlap first, second;

    (void)fingerprint_marks_add(marks, secret, strlen(secret), NULL);
    fingerprint_overlap_of(marks, 0, &first);
    fingerprint_overlap_of(marks, 1, &second);
    assert_int_equal(first.found, first.all);
    assert_true(second.found >= first.found && second.found > 0);
}

static void rules_and_alphabets_are_no_fingerprints(void **state)
{
    (void)state;
    static const char empty_talk[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000\n"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\n";
    scoped(fingerprint_index_freep) struct fingerprint_index *index = index_of(empty_talk);

    fingerprint_index_seal(index);
    assert_int_equal(fingerprint_file_size(index, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_found_and_another_text_is_not),
        cmocka_unit_test(layout_case_and_quoting_do_not_matter),
        cmocka_unit_test(utf_16_is_the_same_text),
        cmocka_unit_test(pieces_are_joined_wherever_they_are_cut),
        cmocka_unit_test(a_block_boundary_hides_nothing),
        cmocka_unit_test(what_is_subtracted_is_not_private),
        cmocka_unit_test(marks_of_what_was_written_before_are_left_out),
        cmocka_unit_test(one_gram_of_many_files_counts_for_each),
        cmocka_unit_test(rules_and_alphabets_are_no_fingerprints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
