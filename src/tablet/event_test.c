/* Events: every byte of an entry, and what does not parse. */
#include "tablet/event.h"

#include "base/testing/testing.h"

static struct packed_change change_of(const char *fragment)
{
    struct packed_change change = {0};
    buffer_append_bytes(&change.fragment, bytes_of(fragment));
    return change;
}

/* One event of each kind of change. */
static void write_all_kinds(struct buffer *out)
{
    struct event_writer writer;
    struct fingerprint token = {.words = {0x0807060504030201, 0x100f0e0d0c0b0a09}};
    struct big_cell big[] = {
        {.family = 3, .qualifier = bytes_of("q"), .timestamp_us = -1, .value = bytes_of("large")}};
    struct packed_change plain = change_of("frag");
    struct packed_change with_big = change_of("mark");
    with_big.big = big;
    with_big.big_count = 1;
    const struct event_file files[] = {{.size = 300, .crc32c = 0x01020304}, {.size = 1}};
    event_writer_start(&writer, out);
    event_begin(&writer, EVENT_ROWS, 0x0102030405060708, 0x0102030405060708);
    event_row(&writer, 5, bytes_of("row"), &plain, NULL);
    event_row(&writer, 6, bytes_of("r2"), &with_big, &token);
    event_end(&writer);
    event_begin(&writer, EVENT_UPKEEP, 0x0102030405060709, 0x0102030405060708);
    event_record(&writer, CHANGE_PUT, 5, bytes_of("k"), bytes_of("v"));
    event_record(&writer, CHANGE_MERGE, 5, bytes_of(""), bytes_of("w"));
    event_record(&writer, CHANGE_DELETE, 5, bytes_of("gone"), bytes_of(""));
    event_end(&writer);
    event_begin(&writer, EVENT_DROP, 0x0102030405060809, 0x0102030405060809);
    event_record(&writer, CHANGE_DELETE_RANGE, 5, bytes_of("a"), bytes_of("b"));
    event_end(&writer);
    event_begin(&writer, EVENT_CATALOG, 0x010203040506080a, 0x010203040506080a);
    event_keyspaces_made(&writer, KEYSPACE_ROWS, 7, 4);
    event_keyspaces_made(&writer, KEYSPACE_LOG, 300, 1);
    event_keyspace_dropped(&writer, 200);
    event_files_taken_in(&writer, 8, files, 2);
    event_end(&writer);
    buffer_free(&plain.fragment);
    buffer_free(&with_big.fragment);
    assert_false(out->failed);
}

static void bytes_are_as_documented(void **state)
{
    (void)state;
    struct buffer out = {0};
    write_all_kinds(&out);
    const uint8_t expected[] = {
        1,                                                /* format */
        1,    1,    2,  3,    4,   5,   6,   7,   8,   0, /* rows; sequence; the version is it */
        0x01, 5,    3,  'r',  'o', 'w', 4,   'f', 'r', 'a', 'g', /* a row of keyspace 5 */
        0x31, 6,    2,  'r',  '2', 4,   'm', 'a', 'r', 'k',      /* with a token and big cells */
        1,    2,    3,  4,    5,   6,   7,   8,                  /* the token */
        9,    10,   11, 12,   13,  14,  15,  16,                 /* … */
        1,    3,    1,  'q',  1,   5,   'l', 'a', 'r', 'g', 'e', /* one big cell, at -1 */
        0,                                                       /* end of the event */
        2,    1,    1,                               /* upkeep; one further; version - 1 */
        2,    5,    1,  'k',  1,   'v',              /* put */
        3,    5,    0,  1,    'w',                   /* merge */
        4,    5,    4,  'g',  'o', 'n', 'e', 0,      /* delete; end */
        3,    0x80, 2,  0,                           /* drop; 256 further */
        5,    5,    1,  'a',  1,   'b', 0,           /* range */
        4,    1,    0,                               /* catalog */
        6,    7,    4,                               /* keyspaces 7 to 10 */
        0x16, 0xac, 2,  1,                           /* keyspace 300, a log */
        7,    0xc8, 1,                               /* keyspace 200 dropped */
        8,    8,    2,  0xac, 2,   1,   2,   3,   4, /* two files: 300 bytes, … */
        1,    0,    0,  0,    0,                     /* one byte */
        0,
    };
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    buffer_free(&out);
}

static void assert_slice(bytes b, const char *expected)
{
    assert_true(bytes_equal(b, bytes_of(expected)));
}

static void assert_rows(struct event_reader *reader)
{
    struct event_change change;
    struct big_cell cell;
    assert_true(event_next_change(reader, &change));
    assert_int_equal(change.kind, CHANGE_ROW);
    assert_int_equal(change.keyspace, 5);
    assert_slice(change.key, "row");
    assert_slice(change.value, "frag");
    assert_false(change.has_token);
    assert_int_equal(change.count, 0);
    assert_true(event_next_change(reader, &change));
    assert_true(change.has_token);
    assert_int_equal(change.token.words[0], 0x0807060504030201);
    assert_int_equal(change.token.words[1], 0x100f0e0d0c0b0a09);
    assert_int_equal(change.count, 1);
    event_big_cells(&change, &cell);
    assert_int_equal(cell.family, 3);
    assert_int_equal(cell.timestamp_us, -1);
    assert_slice(cell.qualifier, "q");
    assert_slice(cell.value, "large");
    assert_false(event_next_change(reader, &change));
}

static void assert_catalog(struct event_reader *reader)
{
    struct event_change change;
    struct event_file files[2];
    assert_true(event_next_change(reader, &change));
    assert_int_equal(change.kind, CHANGE_KEYSPACES_MADE);
    assert_int_equal(change.keyspace, 7);
    assert_int_equal(change.count, 4);
    assert_int_equal(change.made, KEYSPACE_ROWS);
    assert_true(event_next_change(reader, &change));
    assert_int_equal(change.kind, CHANGE_KEYSPACES_MADE);
    assert_int_equal(change.keyspace, 300);
    assert_int_equal(change.made, KEYSPACE_LOG);
    assert_true(event_next_change(reader, &change));
    assert_int_equal(change.kind, CHANGE_KEYSPACE_DROPPED);
    assert_int_equal(change.keyspace, 200);
    assert_true(event_next_change(reader, &change));
    assert_int_equal(change.kind, CHANGE_FILES_TAKEN_IN);
    assert_int_equal(change.count, 2);
    event_files(&change, files);
    assert_int_equal(files[0].size, 300);
    assert_int_equal(files[0].crc32c, 0x01020304);
    assert_int_equal(files[1].size, 1);
}

static void written_events_are_read(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct event_reader reader;
    struct log_event event;
    write_all_kinds(&out);
    assert_true(event_reader_start(&reader, buffer_bytes(&out)));
    assert_true(event_next(&reader, &event));
    assert_int_equal(event.kind, EVENT_ROWS);
    assert_int_equal(event.sequence, 0x0102030405060708);
    assert_rows(&reader);
    assert_true(event_next(&reader, &event));
    assert_int_equal(event.kind, EVENT_UPKEEP);
    assert_int_equal(event.sequence, 0x0102030405060709);
    assert_int_equal(event.version, 0x0102030405060708);
    assert_true(event_next(&reader, &event)); /* its changes are passed over */
    assert_int_equal(event.kind, EVENT_DROP);
    assert_true(event_next(&reader, &event));
    assert_int_equal(event.kind, EVENT_CATALOG);
    assert_catalog(&reader);
    assert_false(event_next(&reader, &event));
    assert_false(reader.is_bad);
    buffer_free(&out);
}

static void an_entry_tells_its_bounds(void **state)
{
    (void)state;
    struct buffer out = {0};
    uint64_t first = 0, last = 0;
    const uint8_t empty[] = {1};
    write_all_kinds(&out);
    assert_true(event_entry_bounds(buffer_bytes(&out), &first, &last));
    assert_int_equal(first, 0x0102030405060708);
    assert_int_equal(last, 0x010203040506080a);
    assert_false(event_entry_bounds(bytes_make(empty, 1), &first, &last));
    assert_false(event_entry_bounds(bytes_make(NULL, 0), &first, &last));
    buffer_free(&out);
}

/* Reads all of it; whether it parsed. */
static bool parses(bytes entry)
{
    struct event_reader reader;
    struct log_event event;
    event_reader_start(&reader, entry);
    while (!reader.is_bad && event_next(&reader, &event))
        ;
    return !reader.is_bad;
}

/* Cut anywhere but at the end of an event, it is seen to be cut. */
static void a_cut_entry_is_bad(void **state)
{
    (void)state;
    struct buffer out = {0};
    size_t whole = 0;
    write_all_kinds(&out);
    for (size_t size = 0; size < out.size; size++) {
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, out.data, size);
        uint8_t *moved = realloc(exact, size == 0 ? 1 : size); /* reading on is a report */
        whole += parses(bytes_make(moved, size));
        free(moved);
    }
    assert_int_equal(whole, 4); /* with none of the events, or the first three */
    buffer_free(&out);
}

static void a_deletion_by_rules_is_a_change_of_rows(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct event_writer writer;
    struct event_reader reader;
    struct log_event event;
    struct event_change change;
    struct packed_change cuts = change_of("cuts");
    event_writer_start(&writer, &out);
    event_begin(&writer, EVENT_COLLECT, 9, 9);
    event_row(&writer, 5, bytes_of("row"), &cuts, NULL);
    event_end(&writer);
    assert_true(event_reader_start(&reader, buffer_bytes(&out)));
    assert_true(event_next(&reader, &event));
    assert_int_equal(event.kind, EVENT_COLLECT);
    assert_true(event_next_change(&reader, &change));
    assert_int_equal(change.kind, CHANGE_ROW);
    assert_true(bytes_equal(change.value, bytes_of("cuts")));
    assert_false(event_next_change(&reader, &change));
    assert_false(reader.is_bad);
    buffer_free(&cuts.fragment);
    buffer_free(&out);
}

static void impossible_events_are_bad(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t size;
        uint8_t entry[24];
    } bad[] = {
        {"format", 1, {2}},
        {"kind of event", 12, {1, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}},
        {"no step", 15, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0}},
        {"kind of change", 14, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 1, 0}},
        {"flag", 16, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x14, 1, 1, 'k', 0}},
        {"unknown flag", 17, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x41, 1, 1, 'k', 0, 0}},
        {"keyspace 0", 16, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0, 1, 'k', 0}},
        {"empty value", 17, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 1, 1, 'k', 0, 0}},
        {"range", 18, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5, 1, 1, 'b', 1, 'a', 0}},
        {"no keyspaces", 14, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 6, 1, 0}},
        {"too many cells", 17, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x21, 1, 0, 0, 100, 0}},
        {"too many files", 15, {1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 1, 100, 0}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (parses(bytes_make(bad[i].entry, bad[i].size)))
            fail_msg("%s parses", bad[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_documented),
        cmocka_unit_test(written_events_are_read),
        cmocka_unit_test(an_entry_tells_its_bounds),
        cmocka_unit_test(a_cut_entry_is_bad),
        cmocka_unit_test(a_deletion_by_rules_is_a_change_of_rows),
        cmocka_unit_test(impossible_events_are_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
