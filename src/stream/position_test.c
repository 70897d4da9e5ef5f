/* Tests of position.h. */
#include "stream/position.h"

#include "base/testing/testing.h"

enum { ARENA_LIMIT = 1 << 24 };

static int make_arena(void **state)
{
    *state = arena_create(ARENA_LIMIT);
    return *state == NULL ? -1 : 0;
}

static int destroy_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

static struct stream_part part(const char *end, uint64_t sequence, uint32_t ordinal)
{
    return (struct stream_part){bytes_of(end), {sequence, ordinal}};
}

static struct stream_token token(const char *start, struct stream_part *parts, size_t count)
{
    return (struct stream_token){.life = 0x123456789abcdef0,
                                 .era = 0xfedcba9876543211,
                                 .shard = 3,
                                 .time_us = 1700000000000000,
                                 .start = bytes_of(start),
                                 .parts = parts,
                                 .part_count = count};
}

static void assert_part(const struct stream_token *token, size_t i, const char *end,
                        uint64_t sequence)
{
    assert_true(bytes_equal(token->parts[i].end, bytes_of(end)));
    assert_int_equal(token->parts[i].after.sequence, sequence);
}

static void test_a_token_comes_back_as_it_was(void **state)
{
    struct buffer string = {0};
    struct stream_token read;
    struct stream_part parts[] = {part("m", UINT64_MAX, UINT32_MAX), part("", 0, 0)};
    struct stream_token written = token("b", parts, 2);
    stream_token_write(&string, &written);
    assert_false(string.failed);
    assert_ok(stream_token_read(buffer_bytes(&string), *state, &read));
    buffer_free(&string);
    assert_true(read.era == written.era);
    assert_true(read.life == written.life && read.shard == 3 && read.time_us == written.time_us);
    assert_true(bytes_equal(read.start, bytes_of("b")));
    assert_int_equal(read.part_count, 2);
    assert_part(&read, 0, "m", UINT64_MAX);
    assert_int_equal(read.parts[0].after.ordinal, UINT32_MAX);
    assert_part(&read, 1, "", 0);
}

/* As servers gave them before there were eras, and as those do that were never restored. */
static void test_a_token_of_no_era_is_shorter(void **state)
{
    struct buffer with = {0}, without = {0};
    struct stream_token read;
    struct stream_part parts[] = {part("", 7, 0)};
    struct stream_token written = token("b", parts, 1);
    stream_token_write(&with, &written);
    written.era = 0;
    stream_token_write(&without, &written);
    assert_true(without.size < with.size);
    assert_ok(stream_token_read(buffer_bytes(&without), *state, &read));
    assert_true(read.era == 0 && read.life == written.life);
    assert_part(&read, 0, "", 7);
    buffer_free(&with);
    buffer_free(&without);
}

/* In base64 a bit more or less may stand for the same bytes. */
static void test_no_bit_changes_unseen(void **state)
{
    for (size_t start = 0; start < 3; start++) {
        struct buffer string = {0};
        struct stream_token read;
        struct stream_part parts[] = {part("zz", 77, 1)};
        struct stream_token written = token(&"bb"[start], parts, 1);
        stream_token_write(&string, &written);
        for (size_t bit = 0; bit < 8 * string.size; bit++) {
            string.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_status(stream_token_read(buffer_bytes(&string), *state, &read),
                          STATUS_INVALID_ARGUMENT);
            string.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_ok(stream_token_read(buffer_bytes(&string), *state, &read));
        for (size_t size = 0; size < string.size; size++)
            assert_status(stream_token_read(bytes_make(string.data, size), *state, &read),
                          STATUS_INVALID_ARGUMENT);
        buffer_append(&string, "=", 1);
        assert_status(stream_token_read(buffer_bytes(&string), *state, &read),
                      STATUS_INVALID_ARGUMENT);
        buffer_free(&string);
    }
}

static void test_parts_out_of_order_are_refused(void **state)
{
    struct stream_part cases[][2] = {
        {part("", 1, 0), part("z", 2, 0)},  /* only the last has no end */
        {part("b", 1, 0), part("z", 2, 0)}, /* empty: it begins with b */
        {part("m", 1, 0), part("m", 2, 0)},
        {part("m", 1, 0), part("c", 2, 0)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer string = {0};
        struct stream_token read, written = token("b", cases[i], 2);
        stream_token_write(&string, &written);
        assert_status(stream_token_read(buffer_bytes(&string), *state, &read),
                      STATUS_INVALID_ARGUMENT);
        buffer_free(&string);
    }
}

static void test_what_is_no_token_is_refused(void **state)
{
    struct stream_token read;
    struct buffer long_one = {0};
    assert_status(stream_token_read(bytes_of(""), *state, &read), STATUS_INVALID_ARGUMENT);
    assert_status(stream_token_read(bytes_of("garbage"), *state, &read), STATUS_INVALID_ARGUMENT);
    assert_status(stream_token_read(bytes_of("\xff\xfe \n"), *state, &read),
                  STATUS_INVALID_ARGUMENT);
    for (size_t i = 0; i < 1 << 20; i++)
        buffer_append_byte(&long_one, 'A');
    assert_status(stream_token_read(buffer_bytes(&long_one), *state, &read),
                  STATUS_INVALID_ARGUMENT);
    buffer_free(&long_one);
}

static void test_a_cut_keeps_what_lies_in_the_range(void **state)
{
    struct stream_part parts[] = {part("d", 1, 0), part("m", 2, 0), part("", 3, 0)};
    struct stream_token whole = token("", parts, 3), cut;
    assert_ok(stream_token_cut(&whole, bytes_of("e"), bytes_of("z"), *state, &cut));
    assert_true(bytes_equal(cut.start, bytes_of("e")));
    assert_int_equal(cut.part_count, 2);
    assert_part(&cut, 0, "m", 2);
    assert_part(&cut, 1, "z", 3);
    assert_ok(stream_token_cut(&whole, bytes_of(""), bytes_of("d"), *state, &cut));
    assert_int_equal(cut.part_count, 1);
    assert_part(&cut, 0, "d", 1);
    assert_ok(stream_token_cut(&whole, bytes_of("m"), bytes_of(""), *state, &cut));
    assert_int_equal(cut.part_count, 1);
    assert_part(&cut, 0, "", 3);
}

/* A partition that closes since it became part of a larger one: its own range is what is left. */
static void test_a_cut_is_never_larger_than_the_token(void **state)
{
    struct stream_part parts[] = {part("m", 5, 0)};
    struct stream_token whole = token("d", parts, 1), cut;
    assert_ok(stream_token_cut(&whole, bytes_of("a"), bytes_of(""), *state, &cut));
    assert_true(bytes_equal(cut.start, bytes_of("d")));
    assert_int_equal(cut.part_count, 1);
    assert_part(&cut, 0, "m", 5);
}

static void test_tokens_are_joined_in_any_order(void **state)
{
    struct stream_part a[] = {part("d", 7, 0)}, b[] = {part("m", 7, 0)}, c[] = {part("", 9, 0)};
    struct stream_token joined, tokens[] = {token("d", b, 1), token("m", c, 1), token("", a, 1)};
    tokens[1].time_us -= 5;
    assert_ok(stream_token_join(tokens, 3, bytes_of(""), bytes_of(""), *state, &joined));
    assert_true(bytes_equal(joined.start, bytes_of("")));
    assert_int_equal(joined.part_count, 2);
    assert_part(&joined, 0, "m", 7);
    assert_part(&joined, 1, "", 9);
    assert_true(joined.time_us == tokens[1].time_us);
}

static void assert_no_tiling(void **state, struct stream_token *tokens, size_t count,
                             const char *start, const char *end)
{
    struct stream_token joined;
    assert_status(stream_token_join(tokens, count, bytes_of(start), bytes_of(end), *state, &joined),
                  STATUS_INVALID_ARGUMENT);
}

static void test_what_does_not_tile_the_range_is_refused(void **state)
{
    struct stream_part a[] = {part("d", 7, 0)}, b[] = {part("m", 7, 0)}, c[] = {part("", 9, 0)};
    struct stream_token tokens[] = {token("", a, 1), token("d", b, 1), token("m", c, 1)};
    struct stream_token twice[] = {tokens[0], tokens[1], tokens[1], tokens[2]};
    struct stream_token beyond[] = {tokens[0], tokens[1], tokens[2], tokens[0]};
    assert_no_tiling(state, tokens, 0, "", "");
    assert_no_tiling(state, tokens, 2, "", "");      /* the end is missing */
    assert_no_tiling(state, tokens + 1, 2, "", "");  /* the start is missing */
    assert_no_tiling(state, tokens, 3, "", "z");     /* an overhang */
    assert_no_tiling(state, tokens, 1, "", "d\x01"); /* a byte off */
    assert_no_tiling(state, twice, 4, "", "");
    assert_no_tiling(state, beyond, 4, "", "d");
    tokens[1].part_count = 0;
    struct stream_token gap[] = {tokens[0], tokens[2]};
    assert_no_tiling(state, gap, 2, "", "");
}

static void test_tokens_of_other_lives_are_not_joined(void **state)
{
    struct stream_part a[] = {part("d", 7, 0)}, b[] = {part("", 7, 0)};
    struct stream_token tokens[] = {token("", a, 1), token("d", b, 1)};
    tokens[1].life++;
    assert_no_tiling(state, tokens, 2, "", "");
    tokens[1].life--;
    tokens[1].shard++;
    assert_no_tiling(state, tokens, 2, "", "");
}

static void test_parts_meet_as_they_are_passed(void **state)
{
    (void)state;
    struct stream_part parts[] = {part("d", 7, 2), part("m", 4, 0), part("", 9, 0)}, room[3];
    struct stream_token whole = token("", parts, 3);
    struct stream_token moved =
        stream_token_advanced(&whole, (struct stream_position){7, 1}, whole.time_us + 1, room);
    assert_int_equal(moved.part_count, 3);
    assert_part(&moved, 0, "d", 7);
    assert_int_equal(moved.parts[0].after.ordinal, 2);
    assert_int_equal(moved.parts[1].after.ordinal, 1);
    assert_true(moved.time_us == whole.time_us + 1);
    moved = stream_token_advanced(&whole, (struct stream_position){8, 0}, 0, room);
    assert_int_equal(moved.part_count, 2);
    assert_part(&moved, 0, "m", 8);
    assert_part(&moved, 1, "", 9);
    assert_true(moved.time_us == whole.time_us);
    moved = stream_token_advanced(&whole, (struct stream_position){9, 0}, 0, room);
    assert_int_equal(moved.part_count, 1);
    assert_part(&moved, 0, "", 9);
}

static void test_the_position_before(void **state)
{
    (void)state;
    struct stream_position before = stream_position_before((struct stream_position){7, 2});
    assert_true(before.sequence == 7 && before.ordinal == 1);
    before = stream_position_before((struct stream_position){7, 0});
    assert_true(before.sequence == 6 && before.ordinal == UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_comes_back_as_it_was),
        cmocka_unit_test(test_a_token_of_no_era_is_shorter),
        cmocka_unit_test(test_no_bit_changes_unseen),
        cmocka_unit_test(test_parts_out_of_order_are_refused),
        cmocka_unit_test(test_what_is_no_token_is_refused),
        cmocka_unit_test(test_a_cut_keeps_what_lies_in_the_range),
        cmocka_unit_test(test_a_cut_is_never_larger_than_the_token),
        cmocka_unit_test(test_tokens_are_joined_in_any_order),
        cmocka_unit_test(test_what_does_not_tile_the_range_is_refused),
        cmocka_unit_test(test_tokens_of_other_lives_are_not_joined),
        cmocka_unit_test(test_parts_meet_as_they_are_passed),
        cmocka_unit_test(test_the_position_before),
    };
    return cmocka_run_group_tests(tests, make_arena, destroy_arena);
}
