/* Tests of byte slices, buffers, varints and lists. */
#include "base/bytes.h"

#include "base/list.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "base/utf8.h"
#include "base/varint.h"

#include <stdio.h>
#include <stdlib.h>

static bytes of(const char *string)
{
    return bytes_of(string);
}

static void order_is_of_unsigned_bytes(void **state)
{
    (void)state;
    assert_true(bytes_compare(of("a"), of("b")) < 0);
    assert_true(bytes_compare(of("b"), of("a")) > 0);
    assert_int_equal(bytes_compare(of("a"), of("a")), 0);
    assert_true(bytes_compare(of("a"), of("ab")) < 0);
    assert_true(bytes_compare(of("\x7f"), of("\x80")) < 0);
    assert_true(bytes_compare(bytes_make(NULL, 0), of("a")) < 0);
    assert_int_equal(bytes_compare(bytes_make(NULL, 0), bytes_make("", 0)), 0);
    assert_true(bytes_compare(bytes_make("a\0", 2), of("a")) > 0);
}

static void equality_and_prefixes(void **state)
{
    (void)state;
    assert_true(bytes_equal(bytes_make(NULL, 0), of("")));
    assert_false(bytes_equal(of("a"), of("ab")));
    assert_true(bytes_start_with(of("abc"), of("ab")));
    assert_true(bytes_start_with(of("abc"), bytes_make(NULL, 0)));
    assert_false(bytes_start_with(of("ab"), of("abc")));
    assert_true(bytes_equal(bytes_from(of("abc"), 1), of("bc")));
}

/* The hash may be stored, or decide about stripes that a test relies on: it must not change. */
static void the_hash_is_fixed(void **state)
{
    (void)state;
    assert_true(bytes_hash(of("row-1")) == 0x59390eb509c5fe76u);
    assert_true(bytes_hash(of("a longer key than one word")) == 0x48dbde4b4ca9ef09u);
    uint64_t seen[64];
    for (size_t i = 0; i < 64; i++) {
        uint8_t zeroes[64] = {0};
        seen[i] = bytes_hash(bytes_make(zeroes, i)); /* length counts, not only content */
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

static void buffers_grow(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    for (int i = 0; i < 1000; i++)
        buffer_append_byte(&buffer, (uint8_t)i);
    buffer_append(&buffer, "tail", 4);
    buffer_append(&buffer, NULL, 0);
    assert_false(buffer.failed);
    assert_int_equal(buffer.size, 1004);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buffer.data[i], (uint8_t)i);
    assert_memory_equal(buffer.data + 1000, "tail", 4);
    buffer_clear(&buffer);
    assert_int_equal(buffer_bytes(&buffer).size, 0);
    buffer_append_format(&buffer, "%d of %s", 7, "9");
    assert_true(bytes_equal(buffer_bytes(&buffer), of("7 of 9")));
    buffer_free(&buffer);
}

static void a_string_is_a_copy(void **state)
{
    (void)state;
    static const char text[] = {'a', 'b', 'c'};
    for (size_t size = 0; size <= sizeof text; size++) {
        char *string = bytes_to_string(bytes_make(text, size));
        assert_non_null(string);
        assert_int_equal(strlen(string), size);
        assert_memory_equal(string, text, size);
        free(string);
    }
    char *nothing = bytes_to_string(bytes_make(NULL, 0));
    assert_string_equal(nothing, "");
    free(nothing);
    assert_null(bytes_to_string(bytes_make(text, SIZE_MAX)));
}

static void an_absurd_size_fails(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_append(&buffer, "x", 1);
    assert_null(buffer_reserve(&buffer, SIZE_MAX));
    assert_true(buffer.failed);
    buffer_append(&buffer, "y", 1);
    assert_int_equal(buffer.size, 1);
    buffer_clear(&buffer);
    buffer_append(&buffer, "z", 1);
    assert_true(bytes_equal(buffer_bytes(&buffer), of("z")));
    buffer_free(&buffer);
}

static void fill_lent_memory(void *context)
{
    struct buffer buffer;
    buffer_start_in(&buffer, context, 8);
    buffer_append(&buffer, "01234567", 8);
    assert_ptr_equal(buffer.data, context);
    buffer_append(&buffer, "89", 2);
    assert_true(buffer.failed ? buffer.data == context : buffer.data != context);
    assert_true(bytes_equal(buffer_bytes(&buffer), of(buffer.failed ? "01234567" : "0123456789")));
    buffer_free(&buffer);
    assert_null(buffer.data);
}

/* Not even when a buffer outgrows it. */
static void lent_memory_is_not_freed(void **state)
{
    (void)state;
    char memory[8];
    failmalloc_each(fill_lent_memory, memory);
    assert_memory_equal(memory, "01234567", 8);
}

static void bytes_are_shown_as_text(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    bytes key = bytes_make("a\\ \"\x7f\xff", 6);
    buffer_append_readable(&buffer, key, 6);
    assert_true(bytes_equal(buffer_bytes(&buffer), of("a\\\\ \"\\x7f\\xff")));
    buffer_clear(&buffer);
    buffer_append_quoted(&buffer, key, 4);
    assert_true(bytes_equal(buffer_bytes(&buffer), of("\"a\\\\ \\\"...\"")));
    buffer_free(&buffer);
}

static void append_much(void *context)
{
    (void)context;
    struct buffer buffer = {0};
    for (int i = 0; i < 200; i++)
        buffer_append_format(&buffer, "%03d ", i);
    assert_int_equal(buffer.failed, buffer.size != 800);
    assert_true(buffer.size % 4 == 0); /* each append happened or did not */
    buffer_free(&buffer);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    failmalloc_each(append_much, NULL);
}

static void varints_round_trip(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit <= 64; bit++)
        for (int64_t near = -1; near <= 1; near++) {
            uint64_t value = (bit == 64 ? 0 : 1ull << bit) + (uint64_t)near, read = 0;
            uint8_t written[VARINT_MAX_SIZE];
            uint8_t *end = varint_write(written, value);
            assert_int_equal(end - written, varint_size(value));
            assert_ptr_equal(varint_read(written, end, &read), end);
            assert_true(read == value);
            assert_null(varint_read(written, end - 1, &read)); /* cut short */
            assert_true(zigzag_decode(zigzag_encode((int64_t)value)) == (int64_t)value);
        }
}

/* What follows one must not matter, nor whether there is a word of it; nor need it be as short as
 * it can be. */
static void varints_end_where_they_end(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++)
        for (size_t behind = 0; behind <= 16; behind++) {
            uint8_t written[VARINT_MAX_SIZE + 1 + 16];
            uint64_t value = (1ull << bit) | 1, read = 0;
            memset(written, behind % 2 == 0 ? 0xff : 0x01, sizeof written);
            uint8_t *end = varint_write(written, value);
            assert_ptr_equal(varint_read(written, end + behind, &read), end);
            assert_true(read == value);
            if (bit == 63)
                continue; /* an eleventh byte there may not be */
            end[-1] |= 0x80;
            *end = 0;
            assert_ptr_equal(varint_read(written, end + 1 + behind, &read), end + 1);
            assert_true(read == value);
        }
}

static void bad_varints_are_refused(void **state)
{
    (void)state;
    static const uint8_t too_large[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    static const uint8_t too_long[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00";
    uint64_t value;
    assert_null(varint_read(too_large, too_large + 10, &value));
    assert_null(varint_read(too_long, too_long + 11, &value));
    assert_null(varint_read(too_long, too_long, &value));
    struct buffer buffer = {0};
    buffer_append_varint(&buffer, 300);
    assert_true(bytes_equal(buffer_bytes(&buffer), of("\xac\x02")));
    buffer_free(&buffer);
    assert_int_equal(zigzag_encode(-1), 1);
    assert_int_equal(zigzag_encode(1), 2);
}

struct item {
    int number;
    struct link link;
};

static int take(struct list *list)
{
    struct link *link = list_take(list);
    return link == NULL ? -1 : LIST_ENTRY(link, struct item, link)->number;
}

static void lists_keep_order(void **state)
{
    (void)state;
    struct item items[6];
    struct list list = {0}, other = {0};
    assert_int_equal(take(&list), -1);
    for (int i = 0; i < 6; i++) {
        items[i].number = i;
        list_append(i < 3 ? &list : &other, &items[i].link);
    }
    list_append_all(&list, &other);
    assert_true(list_is_empty(&other));
    list_append_all(&list, &other);
    for (int i = 0; i < 6; i++)
        assert_int_equal(take(&list), i);
    assert_int_equal(take(&list), -1);
    list_append(&other, &items[0].link);
    list_append_all(&list, &other);
    list_append(&list, &items[1].link);
    struct list all = list_take_all(&list);
    assert_true(list_is_empty(&list));
    assert_int_equal(take(&all), 0);
    assert_int_equal(take(&all), 1);
}

/* Behind so many plain letters: they are looked at a word at a time. */
static bool is_valid_behind(size_t letters, const char *text)
{
    char all[64];
    int size = snprintf(all, sizeof all, "%.*s%s", (int)letters, "abcdefghijklmnopqrst", text);
    assert_true(size > 0 || letters == 0);
    return utf8_is_valid(bytes_make(all, (size_t)size));
}

static void utf8_is_told_apart(void **state)
{
    (void)state;
    static const char *const good[] = {"", "a", "é", "€", "😀", "\xf4\x8f\xbf\xbf", "\xee\x80\x80"};
    static const char *const bad[] = {
        "\x80",     "\xc3", "\xc0\xaf",     "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xe2\x82", "\xff", "a\xe2\x28\xa1"};
    for (size_t letters = 0; letters <= 20; letters++) {
        for (size_t i = 0; i < sizeof good / sizeof *good; i++)
            assert_true(is_valid_behind(letters, good[i]));
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            assert_false(is_valid_behind(letters, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_of_unsigned_bytes), cmocka_unit_test(equality_and_prefixes),
        cmocka_unit_test(the_hash_is_fixed),          cmocka_unit_test(buffers_grow),
        cmocka_unit_test(a_string_is_a_copy),         cmocka_unit_test(an_absurd_size_fails),
        cmocka_unit_test(memory_runs_out_anywhere),   cmocka_unit_test(varints_round_trip),
        cmocka_unit_test(bad_varints_are_refused),    cmocka_unit_test(lists_keep_order),
        cmocka_unit_test(utf8_is_told_apart),         cmocka_unit_test(bytes_are_shown_as_text),
        cmocka_unit_test(lent_memory_is_not_freed),   cmocka_unit_test(varints_end_where_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
