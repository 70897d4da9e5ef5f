/* Pieces of an archive: every byte of one, names, and what is damaged. */
#include "archive/piece.h"

#include "base/testing/testing.h"

static struct piece example(enum piece_kind kind)
{
    struct piece piece = {
        .kind = kind, .stream = 0x0102030405060708, .number = 2, .after = 0x10, .made_us = 0x20};
    memset(piece.chain, 0xcc, sizeof piece.chain);
    return piece;
}

static void write_example(enum piece_kind kind, struct buffer *out)
{
    struct piece piece = example(kind);
    piece_start(out, &piece);
    if (kind == PIECE_SEGMENT) {
        piece_add(out, bytes_of("entry"));
        piece_add(out, bytes_of("e"));
    }
    assert_ok(piece_finish(out, 0x30, piece.digest));
}

static void bytes_are_as_documented(void **state)
{
    (void)state;
    static const char head[] = "trestle archive 1\nS";
    const uint8_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8,    /* stream */
                               0, 0, 0, 0, 0, 0, 0, 2,    /* number */
                               0, 0, 0, 0, 0, 0, 0, 0x10, /* after */
                               0, 0, 0, 0, 0, 0, 0, 0x30, /* last */
                               0, 0, 0, 0, 0, 0, 0, 0x20 /* made */};
    const uint8_t entries[] = {0, 0, 0, 5, 'e', 'n', 't', 'r', 'y', 0, 0, 0, 1, 'e'};
    const size_t line = sizeof head - 1, body = line + sizeof numbers + 32;
    struct buffer out = {0};
    write_example(PIECE_SEGMENT, &out);
    assert_int_equal(out.size, body + sizeof entries + 32);
    assert_memory_equal(out.data, head, line);
    assert_memory_equal(out.data + line, numbers, sizeof numbers);
    assert_int_equal(out.data[body - 32], 0xcc);
    assert_int_equal(out.data[body - 1], 0xcc);
    assert_memory_equal(out.data + body, entries, sizeof entries);
    buffer_free(&out);
}

static void a_written_piece_is_read(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct piece piece;
    bytes entry;
    write_example(PIECE_SEGMENT, &out);
    assert_ok(piece_parse(buffer_bytes(&out), &piece));
    assert_int_equal(piece.kind, PIECE_SEGMENT);
    assert_int_equal(piece.stream, 0x0102030405060708);
    assert_int_equal(piece.number, 2);
    assert_int_equal(piece.after, 0x10);
    assert_int_equal(piece.last, 0x30);
    assert_int_equal(piece.made_us, 0x20);
    assert_int_equal(piece.chain[31], 0xcc);
    assert_memory_equal(piece.digest, out.data + out.size - 32, 32);
    assert_true(piece_next_entry(&piece.entries, &entry));
    assert_true(bytes_equal(entry, bytes_of("entry")));
    assert_true(piece_next_entry(&piece.entries, &entry));
    assert_true(bytes_equal(entry, bytes_of("e")));
    assert_false(piece_next_entry(&piece.entries, &entry));
    buffer_free(&out);
}

static void a_gap_has_no_entries(void **state)
{
    (void)state;
    struct buffer out = {0}, empty = {0};
    struct piece piece = example(PIECE_SEGMENT);
    write_example(PIECE_GAP, &out);
    assert_ok(piece_parse(buffer_bytes(&out), &piece));
    assert_int_equal(piece.kind, PIECE_GAP);
    piece = example(PIECE_SEGMENT);
    piece_start(&empty, &piece);
    assert_ok(piece_finish(&empty, 0x30, piece.digest));
    assert_status(piece_parse(buffer_bytes(&empty), &piece), STATUS_DATA_LOSS);
    buffer_free(&out);
    buffer_free(&empty);
}

/* Each bit counts, and each byte. */
static void damage_is_seen(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct piece piece;
    write_example(PIECE_SEGMENT, &out);
    for (size_t i = 0; i < out.size; i++) {
        out.data[i] ^= 0x10;
        assert_status(piece_parse(buffer_bytes(&out), &piece), STATUS_DATA_LOSS);
        out.data[i] ^= 0x10;
        assert_status(piece_parse(bytes_make(out.data, i), &piece), STATUS_DATA_LOSS);
    }
    assert_ok(piece_parse(buffer_bytes(&out), &piece));
    buffer_free(&out);
}

/* A piece that was made wrong has a checksum that is right. */
static void an_impossible_piece_is_damage(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct buffer out = {0};
        struct piece piece = example(PIECE_SEGMENT);
        piece.kind = i == 0 ? 'X' : PIECE_SEGMENT;
        piece.stream = i == 1 ? 0 : piece.stream;
        piece.number = i == 2 ? 0 : piece.number;
        piece_start(&out, &piece);
        piece_add(&out, bytes_of("entry"));
        if (i == 3)
            buffer_append(&out, "\0\0\0\x09rest", 8); /* longer than what there is */
        assert_ok(piece_finish(&out, i == 4 ? piece.after : 0x30, piece.digest));
        assert_status(piece_parse(buffer_bytes(&out), &piece), STATUS_DATA_LOSS);
        buffer_free(&out);
    }
}

static void names_are_parsed(void **state)
{
    (void)state;
    char name[PIECE_NAME_SIZE];
    uint64_t stream;
    struct piece piece = example(PIECE_GAP), parsed;
    piece.last = 0xabcdef;
    piece_name(&piece, name);
    assert_string_equal(name, "archive/0102030405060708/0000000000000002-0000000000abcdef-gap");
    assert_true(piece_name_parse(name + sizeof "archive/0102030405060708", &parsed));
    assert_int_equal(parsed.kind, PIECE_GAP);
    assert_int_equal(parsed.number, 2);
    assert_int_equal(parsed.last, 0xabcdef);
    assert_true(piece_name_parse("0000000000000002-0000000000abcdef", &parsed));
    assert_int_equal(parsed.kind, PIECE_SEGMENT);
    const char *bad[] = {"",
                         "files",
                         "probe",
                         "0000000000000000-0000000000abcdef",
                         "0000000000000002",
                         "0000000000000002-0000000000ABCDEF",
                         "0000000000000002-0000000000abcdef-",
                         "0000000000000002-0000000000abcdef0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(piece_name_parse(bad[i], &parsed));
    stream_folder(0x0102030405060708, name);
    assert_true(stream_name_parse(strchr(name, '/') + 1, &stream));
    assert_int_equal(stream, 0x0102030405060708);
    assert_false(stream_name_parse("0000000000000000", &stream));
    assert_false(stream_name_parse("010203040506070", &stream));
    stream_file_name(1, 20, 3, name);
    assert_string_equal(name, "archive/0000000000000001/files/20-3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_documented),       cmocka_unit_test(a_written_piece_is_read),
        cmocka_unit_test(a_gap_has_no_entries),          cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(an_impossible_piece_is_damage), cmocka_unit_test(names_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
