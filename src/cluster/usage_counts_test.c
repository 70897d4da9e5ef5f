/* Tests of what is counted of requests, by days and over starts. Time passes when a test says so.
 */
#include "cluster/usage_counts.h"

#include "base/testing/failmalloc.h"
#include "cluster/heat/heat_store.h"
#include "cluster/testing/heat_testing.h"

static struct usage_state look_since(struct cluster_fixture *f, int64_t since_us)
{
    struct usage_state state;
    assert_ok(usage_look(f->table, since_us, &state));
    return state;
}

static struct usage_state look(struct cluster_fixture *f)
{
    return look_since(f, 0);
}

/* --- requests: each takes a millisecond, and comes at once after the one before --- */

static struct usage_request next_request(uint64_t caller)
{
    hands.now_us += 1000;
    return (struct usage_request){
        .weight = 1, .caller = caller, .began_us = hands.now_us - 900, .ended_us = hands.now_us};
}

static void scan(struct cluster_fixture *f, enum usage_scan_kind kind, const char *profile,
                 uint64_t seen, uint64_t answered)
{
    usage_note_scan(f->table, &(struct usage_scan){.kind = kind,
                                                   .profile = bytes_of(profile),
                                                   .is_whole = true,
                                                   .start = bytes_of("a"),
                                                   .family = bytes_of("f"),
                                                   .seen = seen,
                                                   .answered = answered});
}

static void read_keys(struct cluster_fixture *f, uint64_t caller, const char *one,
                      const char *other)
{
    const bytes keys[] = {bytes_of(one), bytes_of(other == NULL ? "" : other)};
    usage_note_read(f->table, &(struct usage_read){.request = next_request(caller),
                                                   .keys = keys,
                                                   .key_count = other == NULL ? 1 : 2});
}

static void write_key(struct cluster_fixture *f, uint64_t caller, const char *key)
{
    struct usage_request request = next_request(caller);
    usage_note_write(f->table, &request, bytes_of(key), true);
}

static void read_columns(struct cluster_fixture *f, const char *columns)
{
    struct usage_read read = {
        .request = next_request(1), .knows_columns = true, .columns = bytes_of(columns)};
    usage_note_read(f->table, &read);
}

/* --- what is counted --- */

static void scans_are_told_apart_by_profile_and_kind(void **state)
{
    struct cluster_fixture *f = *state;
    scan(f, USAGE_BY_VALUE, "batch", 1000, 1);
    scan(f, USAGE_BY_VALUE, "batch", 500, 0);
    scan(f, USAGE_ALL_ROWS, "batch", 10, 10);
    scan(f, USAGE_BY_VALUE, "web", 7, 7);
    struct usage_state seen = look(f);
    assert_int_equal(seen.from_us, BEGIN_US);
    assert_int_equal(seen.scan_count, 3);
    assert_int_equal(seen.scans[0].scans, 2);
    assert_int_equal(seen.scans[0].whole, 2);
    assert_int_equal(seen.scans[0].seen, 1500);
    assert_int_equal(seen.scans[0].answered, 1);
    assert_true(bytes_equal(usage_text_get(&seen.scans[0].profile), bytes_of("batch")));
    assert_true(bytes_equal(usage_text_get(&seen.scans[2].profile), bytes_of("web")));
}

static void more_profiles_than_there_is_room_for_share_the_last(void **state)
{
    struct cluster_fixture *f = *state;
    char name[8];
    for (unsigned i = 0; i < USAGE_SCANS + 5; i++) {
        snprintf(name, sizeof name, "p%u", i);
        scan(f, USAGE_ALL_ROWS, name, 1, 1);
    }
    struct usage_state seen = look(f);
    assert_int_equal(seen.scan_count, USAGE_SCANS);
    assert_int_equal(seen.scans[USAGE_SCANS - 1].scans, 6);
}

static void rising_keys_are_seen_for_each_caller(void **state)
{
    struct cluster_fixture *f = *state;
    read_keys(f, 1, "a", NULL);
    read_keys(f, 2, "z", NULL);
    read_keys(f, 1, "b", NULL); /* rises */
    read_keys(f, 2, "y", NULL); /* falls */
    write_key(f, 1, "b");       /* what was read */
    write_key(f, 1, "c");       /* rises */
    hands.now_us += MINUTE_US;
    write_key(f, 1, "d"); /* much later */
    struct usage_state seen = look(f);
    assert_int_equal(seen.numbers[USAGE_SINGLE_READS], 4);
    assert_int_equal(seen.numbers[USAGE_RISING_READS], 1);
    assert_int_equal(seen.numbers[USAGE_SINGLE_WRITES], 3);
    assert_int_equal(seen.numbers[USAGE_RISING_WRITES], 1);
    assert_int_equal(seen.numbers[USAGE_REWRITES], 1);
    assert_int_equal(seen.favourites[0].votes, 1);
    assert_true(bytes_equal(usage_text_get(&seen.examples[USAGE_REWRITTEN_KEY]), bytes_of("b")));
}

static void keys_of_one_thing_are_scattered_if_what_differs_comes_first(void **state)
{
    struct cluster_fixture *f = *state;
    read_keys(f, 1, "prof#anna", "sett#anna");
    read_keys(f, 1, "anna#prof", "anna#sett");
    read_keys(f, 1, "anna#1", "bert#2");
    read_keys(f, 1, "device1#x", "device2#x");              /* two things */
    read_keys(f, 1, "measured-by#anna", "written-of#anna"); /* most of each is not the same */
    struct usage_state seen = look(f);
    assert_int_equal(seen.numbers[USAGE_SEVERAL_READS], 5);
    assert_int_equal(seen.numbers[USAGE_SCATTERED_READS], 1);
    assert_true(bytes_equal(usage_text_get(&seen.examples[USAGE_OTHER_SCATTERED_KEY]),
                            bytes_of("sett#anna")));
}

static void the_columns_that_most_ask_for_are_there(void **state)
{
    struct cluster_fixture *f = *state;
    char other[8];
    for (unsigned i = 0; i < 300; i++) {
        snprintf(other, sizeof other, "c%u", i);
        read_columns(f, i % 2 == 0 ? "often" : other);
    }
    struct usage_state seen = look(f);
    uint64_t most = 0;
    for (unsigned i = 0; i < seen.column_count; i++)
        if (seen.columns[i].size == strlen("often") && seen.columns[i].count > most)
            most = seen.columns[i].count;
    assert_int_equal(seen.numbers[USAGE_READS], 300);
    assert_in_range(most, 150 - 300 / (USAGE_COLUMN_SETS + 1), 150);
}

static void sets_of_columns_are_taken_apart(void **state)
{
    (void)state;
    struct buffer set = {0};
    bytes family, qualifier;
    bool has_qualifier;
    usage_columns_add(&set, bytes_of("fam"), true, bytes_of("q"));
    usage_columns_add(&set, bytes_of("g"), false, bytes_of(""));
    usage_columns_add(&set, bytes_of("g"), true, bytes_of(""));
    bytes left = buffer_bytes(&set);
    assert_true(usage_columns_next(&left, &family, &has_qualifier, &qualifier));
    assert_true(has_qualifier && bytes_equal(family, bytes_of("fam")) &&
                bytes_equal(qualifier, bytes_of("q")));
    assert_true(usage_columns_next(&left, &family, &has_qualifier, &qualifier));
    assert_true(!has_qualifier && bytes_equal(family, bytes_of("g")));
    assert_true(usage_columns_next(&left, &family, &has_qualifier, &qualifier));
    assert_true(has_qualifier && qualifier.size == 0);
    assert_false(usage_columns_next(&left, &family, &has_qualifier, &qualifier));
    buffer_free(&set);
}

/* --- choosing --- */

static void the_busier_the_fewer_are_counted(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t counted = 0, asked = 0;
    for (unsigned i = 0; i < 60000; i++) {
        asked++;
        hands.now_us += 1000;
        uint32_t weight = usage_weight(f->table, hands.now_us);
        counted += weight > 0;
        if (weight == 0)
            continue;
        struct usage_request request = {
            .weight = weight, .caller = 1, .began_us = hands.now_us, .ended_us = hands.now_us};
        usage_note_write(f->table, &request, bytes_of("a"), true);
    }
    struct usage_state seen = look(f);
    assert_in_range(counted, USAGE_COUNTED_ALL, 7 * USAGE_COUNTED_ALL);
    assert_in_range(seen.numbers[USAGE_SINGLE_WRITES], asked * 8 / 10, asked * 12 / 10);
    hands.now_us += 3 * MINUTE_US;
    assert_int_equal(usage_weight(f->table, hands.now_us), 1);
}

/* --- days and starts --- */

static void a_start_goes_on_where_it_was(void **state)
{
    struct cluster_fixture *f = *state;
    scan(f, USAGE_BY_KEY, "p", 10, 1);
    write_key(f, 1, "a");
    read_columns(f, "c");
    pass(f, MINUTE_US);
    reopen_test_cluster(f);
    scan(f, USAGE_BY_KEY, "p", 10, 1);
    struct usage_state seen = look(f);
    assert_int_equal(seen.from_us, BEGIN_US);
    assert_int_equal(seen.scan_count, 1);
    assert_int_equal(seen.scans[0].scans, 2);
    assert_int_equal(seen.numbers[USAGE_SINGLE_WRITES], 1);
    assert_int_equal(seen.column_count, 1);
    pass(f, MINUTE_US);
    reopen_test_cluster(f);
    seen = look(f);
    assert_int_equal(seen.scans[0].scans, 2);
}

/* Of a directory in which no window has ended yet. */
static void a_stop_keeps_what_the_first_window_has(void **state)
{
    struct cluster_fixture *f = *state;
    scan(f, USAGE_BY_VALUE, "p", 10, 1);
    write_key(f, 1, "a");
    read_columns(f, "c");
    reopen_test_cluster(f);
    struct usage_state seen = look(f);
    assert_int_equal(seen.from_us, BEGIN_US);
    assert_int_equal(seen.scan_count, 1);
    assert_int_equal(seen.scans[0].seen, 10);
    assert_int_equal(seen.numbers[USAGE_SINGLE_WRITES], 1);
    assert_int_equal(seen.column_count, 1);
}

static void a_stop_keeps_nothing_where_nobody_asked(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *kept;
    reopen_test_cluster(f);
    assert_status(cluster_table(f->cluster, bytes_of(HEAT_TABLE), &kept), STATUS_NOT_FOUND);
}

static void two_days_are_known(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned day = 0; day < 4; day++) {
        scan(f, USAGE_ALL_ROWS, "p", 10, 10);
        pass(f, DAY_US);
        if (day == 2)
            reopen_test_cluster(f);
    }
    struct usage_state seen = look(f); /* the last, and the one before */
    assert_int_equal(seen.scans[0].scans, 2);
    assert_int_equal(seen.from_us, BEGIN_US + 2 * DAY_US);
    reopen_test_cluster(f); /* of the two one is a day back by now */
    scan(f, USAGE_ALL_ROWS, "p", 10, 10);
    seen = look(f);
    assert_int_equal(seen.scans[0].scans, 2);
    pass(f, 5 * DAY_US);
    reopen_test_cluster(f);
    assert_int_equal(look(f).from_us, 0);
}

static void nothing_is_counted_if_it_is_switched_off(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.heat = false;
    reopen_test_cluster(f);
    assert_int_equal(usage_weight(f->table, hands.now_us), 0);
    scan(f, USAGE_ALL_ROWS, "p", 10, 10);
    assert_int_equal(look(f).from_us, 0);
}

/* --- since --- */

static uint64_t scans_since(struct cluster_fixture *f, int64_t since_us)
{
    struct usage_state seen = look_since(f, since_us);
    return seen.scan_count == 0 ? 0 : seen.scans[0].scans;
}

/* Four pieces, each with twice as many scans as the one before. */
static void make_pieces(struct cluster_fixture *f)
{
    for (unsigned piece = 0; piece < 4; piece++) {
        for (unsigned i = 0; i < 1u << piece; i++)
            scan(f, USAGE_ALL_ROWS, "p", 10, 10);
        if (piece < 3)
            pass(f, USAGE_PIECE_US);
    }
}

/* One that began earlier has requests that did, too. */
static void pieces_that_began_since_are_told(void **state)
{
    struct cluster_fixture *f = *state;
    make_pieces(f);
    assert_int_equal(scans_since(f, 0), 15);
    assert_int_equal(scans_since(f, BEGIN_US), 15);
    assert_int_equal(scans_since(f, BEGIN_US + 1), 14);
    assert_int_equal(scans_since(f, BEGIN_US + USAGE_PIECE_US), 14);
    assert_int_equal(scans_since(f, BEGIN_US + USAGE_PIECE_US + 1), 12);
    assert_int_equal(look_since(f, BEGIN_US + 1).from_us, BEGIN_US + USAGE_PIECE_US);
    assert_int_equal(scans_since(f, BEGIN_US + 3 * USAGE_PIECE_US), 8);
    assert_int_equal(scans_since(f, BEGIN_US + 3 * USAGE_PIECE_US + 1), 0);
    assert_int_equal(look_since(f, hands.now_us).from_us, hands.now_us);
}

static void pieces_of_the_last_hour_are_there(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned piece = 0; piece < 2 * USAGE_PIECES; piece++) {
        scan(f, USAGE_ALL_ROWS, "p", 10, 10);
        pass(f, USAGE_PIECE_US);
    }
    scan(f, USAGE_ALL_ROWS, "p", 10, 10);
    assert_int_equal(scans_since(f, 0), 2 * USAGE_PIECES + 1);
    assert_int_equal(scans_since(f, BEGIN_US + 1), USAGE_PIECES + 1);
}

static void days_that_began_since_are_told(void **state)
{
    struct cluster_fixture *f = *state;
    scan(f, USAGE_ALL_ROWS, "p", 10, 10);
    pass(f, 20 * HOUR_US);
    make_pieces(f); /* of the same day */
    pass(f, 4 * HOUR_US);
    scan(f, USAGE_ALL_ROWS, "p", 10, 10); /* of the next */
    assert_int_equal(scans_since(f, BEGIN_US), 17);
    assert_int_equal(scans_since(f, BEGIN_US + 1), 16); /* some by their pieces */
    assert_int_equal(scans_since(f, hands.now_us), 1);
    reopen_test_cluster(f); /* of the pieces nothing is kept, of the days all */
    assert_int_equal(scans_since(f, BEGIN_US + 1), 1);
    assert_int_equal(scans_since(f, hands.now_us), 1);
    assert_int_equal(scans_since(f, BEGIN_US), 17);
    scan(f, USAGE_ALL_ROWS, "p", 10, 10);
    assert_int_equal(scans_since(f, hands.now_us), 2);
    pass(f, MINUTE_US);
    assert_int_equal(scans_since(f, hands.now_us), 0);
}

/* What was last seen, whichever of a day's pieces it was in. */
static void examples_are_the_latest(void **state)
{
    struct cluster_fixture *f = *state;
    write_key(f, 1, "a");
    write_key(f, 1, "b");
    scan(f, USAGE_BY_VALUE, "p", 10, 10);
    pass(f, USAGE_PIECE_US);
    usage_note_scan(f->table, &(struct usage_scan){.kind = USAGE_BY_VALUE,
                                                   .profile = bytes_of("p"),
                                                   .start = bytes_of("later")});
    write_key(f, 1, "c");
    write_key(f, 1, "d");
    pass(f, USAGE_PIECE_US);
    scan(f, USAGE_ALL_ROWS, "q", 10, 10);
    struct usage_state seen = look(f);
    assert_true(bytes_equal(usage_text_get(&seen.examples[USAGE_RISING_WRITE_KEY]), bytes_of("d")));
    assert_int_equal(seen.scan_count, 2);
    const struct usage_scans *first = &seen.scans[seen.scans[0].kind == USAGE_BY_VALUE ? 0 : 1];
    assert_int_equal(first->scans, 2);
    assert_true(bytes_equal(usage_text_get(&first->start), bytes_of("later")));
}

/* --- bytes --- */

static void a_cut_or_changed_state_is_none(void **state)
{
    struct cluster_fixture *f = *state;
    struct buffer encoded = {0};
    struct usage_state decoded;
    scan(f, USAGE_BY_KEY, "p", 10, 1);
    write_key(f, 1, "a");
    read_columns(f, "c");
    struct usage_state seen = look(f);
    usage_state_encode(&seen, &encoded);
    assert_true(usage_state_decode(buffer_bytes(&encoded), &decoded));
    assert_memory_equal(&decoded, &seen, sizeof seen);
    for (size_t size = 0; size < encoded.size; size++)
        assert_false(usage_state_decode(bytes_make(encoded.data, size), &decoded));
    assert_int_equal(decoded.from_us, 0);
    for (size_t at = 0; at < encoded.size; at++) { /* it only must not read beyond */
        encoded.data[at] ^= 0xff;
        (void)usage_state_decode(buffer_bytes(&encoded), &decoded);
        encoded.data[at] ^= 0xff;
    }
    buffer_free(&encoded);
}

/* --- without memory --- */

static void count_some(void *context)
{
    struct cluster_fixture *f = context;
    struct usage_state seen;
    write_key(f, 1, "a");
    status_ignore(usage_keep(f->table));
    hands.now_us += USAGE_PIECE_US;
    write_key(f, 1, "b");
    status_ignore(usage_look(f->table, 0, &seen));
}

static void counts_get_along_without_memory(void **state)
{
    struct cluster_fixture *f = *state;
    scan(f, USAGE_ALL_ROWS, "p", 10, 10);
    pass(f, MINUTE_US);
    reopen_test_cluster(f);
    failmalloc_each(count_some, f);
    struct usage_state seen = look(f);
    assert_int_equal(seen.scans[0].scans, 1);
    assert_true(seen.numbers[USAGE_SINGLE_WRITES] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scans_are_told_apart_by_profile_and_kind, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(more_profiles_than_there_is_room_for_share_the_last,
                                        setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(rising_keys_are_seen_for_each_caller, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(keys_of_one_thing_are_scattered_if_what_differs_comes_first,
                                        setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(the_columns_that_most_ask_for_are_there, setup_windows,
                                        teardown_windows),
        cmocka_unit_test(sets_of_columns_are_taken_apart),
        cmocka_unit_test_setup_teardown(the_busier_the_fewer_are_counted, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_start_goes_on_where_it_was, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_stop_keeps_what_the_first_window_has, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_stop_keeps_nothing_where_nobody_asked, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(two_days_are_known, setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(nothing_is_counted_if_it_is_switched_off, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(pieces_that_began_since_are_told, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(pieces_of_the_last_hour_are_there, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(days_that_began_since_are_told, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(examples_are_the_latest, setup_windows, teardown_windows),
        cmocka_unit_test_setup_teardown(a_cut_or_changed_state_is_none, setup_windows,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(counts_get_along_without_memory, setup_windows,
                                        teardown_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
