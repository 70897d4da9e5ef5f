/* Tests of the replay of drops: what there is of the rows goes with the drop, so that no add meets
 * another over it; of keyspaces that had drops before, adds stay apart; the record comes along. */
#include "tablet/replay.h"

#include "row/row_key.h"
#include "tablet/commit.h"
#include "tablet/drop_records.h"
#include "tablet/key_bounds.h"
#include "tablet/telling_records.h"
#include "tablet/testing/testing.h"

enum { MOST_ENTRIES = 8 };

struct replaying {
    struct tablet_fixture *f;
    struct replayer *replayer;
    struct buffer entries[MOST_ENTRIES]; /* that were applied */
    size_t entry_count;
    bool gathers;            /* into one batch */
    struct row_drops *drops; /* the keyspace's, as a start finds them; NULL: nobody asked */
};

static int setup(void **state)
{
    struct replaying *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->f = tablet_fixture_create();
    *state = r;
    return 0;
}

static void begin_replay(struct replaying *r)
{
    const struct replay_options options = {.store = r->f->store,
                                           .catalog = r->f->options.catalog,
                                           .clock = &r->f->clock.clock,
                                           .until = UINT64_MAX};
    replayer_destroy(r->replayer);
    assert_ok(replayer_create(&options, &r->replayer));
}

static int teardown(void **state)
{
    struct replaying *r = *state;
    replayer_destroy(r->replayer);
    for (size_t i = 0; i < r->entry_count; i++)
        buffer_free(&r->entries[i]);
    row_drops_destroy(r->drops);
    tablet_fixture_destroy(r->f);
    free(r);
    return 0;
}

/* --- events; the version is a thousand times the sequence --- */

/* Takes the entry. */
static void apply(struct replaying *r, struct buffer entry)
{
    assert_true(!entry.failed && r->entry_count < MOST_ENTRIES);
    r->entries[r->entry_count++] = entry;
    assert_ok(replayer_apply(r->replayer, buffer_bytes(&entry)));
    if (!r->gathers)
        assert_ok(replayer_flush(r->replayer));
}

static void replay_change(struct replaying *r, uint64_t sequence, const char *row_key,
                          struct packed_change change)
{
    struct buffer entry = {0};
    struct event_writer writer;
    fragment_set_version(change.fragment.data, sequence * 1000);
    event_writer_start(&writer, &entry);
    event_begin(&writer, EVENT_ROWS, sequence, sequence * 1000);
    event_row(&writer, ROWS_KEYSPACE, bytes_of(row_key), &change, NULL);
    event_end(&writer);
    apply(r, entry);
    buffer_free(&change.fragment);
}

static void put_record(struct store_batch *batch, struct replaying *r, uint64_t sequence,
                       const char *from, const char *to)
{
    const struct row_drop_words words = {
        .newest_table = 77, .from = bytes_of(from), .to = bytes_of(to)};
    struct buffer value = {0};
    assert_ok(drop_record_value(&words, &value));
    drop_record_put(batch, r->f->options.catalog, ROWS_KEYSPACE, sequence * 1000, sequence, &value);
    buffer_free(&value);
}

struct drop_event {
    struct event_writer writer;
    struct buffer entry;
};

static status write_put(void *context, const struct store_change *change)
{
    struct drop_event *event = context;
    event_record(&event->writer, CHANGE_PUT, CATALOG, change->key, change->value);
    return status_ok();
}

static void replay_drop_told(struct replaying *r, uint64_t sequence, const char *from,
                             const char *to, bool is_told)
{
    struct drop_event event = {.entry = {0}};
    struct store_batch *batch = store_batch_create();
    const struct telling_record telling = {.keyspace_id = ROWS_KEYSPACE,
                                           .sequence = sequence,
                                           .version = sequence * 1000,
                                           .from = bytes_of(from),
                                           .to = bytes_of(to)};
    assert_non_null(batch);
    if (is_told)
        telling_record_put(batch, r->f->options.catalog, &telling);
    put_record(batch, r, sequence, from, to);
    event_writer_start(&event.writer, &event.entry);
    event_begin(&event.writer, EVENT_DROP, sequence, sequence * 1000);
    assert_ok(store_batch_visit(r->f->store, batch, write_put, &event));
    event_end(&event.writer);
    store_batch_destroy(batch);
    apply(r, event.entry);
}

static void replay_drop(struct replaying *r, uint64_t sequence, const char *from, const char *to)
{
    replay_drop_told(r, sequence, from, to, false);
}

/* --- what there is --- */

/* What adds come to that meet is in the tables; then the drops are known, as after a start. */
static void compact_and_start(struct replaying *r)
{
    assert_ok(replayer_flush(r->replayer));
    assert_ok(rows_compact(r->f->rows, bytes_of(""), bytes_of("")));
    row_drops_destroy(r->drops);
    assert_ok(row_drops_create(&r->drops));
    assert_ok(drop_records_load(r->f->options.catalog, ROWS_KEYSPACE, r->drops));
    r->f->rules.drops = r->drops;
    keyspace_set_rules(r->f->rows, &r->f->rules);
}

static void assert_reads(struct replaying *r, const char *row_key, const char *expected)
{
    struct row_read_options options = read_options_of(r->f);
    struct row row = {.cells.arena = arena_create(SIZE_MAX / 2)};
    struct buffer text = {0};
    enum row_outcome outcome;
    options.drops = r->drops;
    assert_ok(row_read(r->f->rows, &options, bytes_of(row_key), STORE_READ_ANY, &row, &outcome));
    row_text(&row, &text);
    assert_string_equal((const char *)text.data, expected);
    row_clear(&row);
    arena_destroy(row.cells.arena);
    buffer_free(&text);
}

/* --- */

static void replay_adds_and_a_drop(struct replaying *r)
{
    begin_replay(r);
    replay_change(r, 1, "r", add_to_cell(r->f, "n", 1));
    replay_change(r, 2, "s", add_to_cell(r->f, "n", 8));
    replay_drop(r, 3, "r", "s");
    replay_change(r, 4, "r", add_to_cell(r->f, "n", 2));
    replay_change(r, 5, "r", add_to_cell(r->f, "n", 4));
    compact_and_start(r);
    assert_reads(r, "r", "sum:n@0=6");
    assert_reads(r, "s", "sum:n@0=8");
}

static void adds_do_not_meet_over_a_drop(void **state)
{
    replay_adds_and_a_drop(*state);
}

/* What is gathered of rows comes into the batch before the drop, and what comes behind it after. */
static void nor_do_those_of_one_batch(void **state)
{
    struct replaying *r = *state;
    r->gathers = true;
    replay_adds_and_a_drop(r);
}

static size_t count_overflow_cells(struct replaying *r)
{
    struct key_bounds bounds;
    struct store_cursor *cursor;
    size_t count = 0;
    assert_true(overflow_bounds(bytes_of(""), bytes_of(""), &bounds));
    const struct store_cursor_options options = {.lower = buffer_bytes(&bounds.lower),
                                                 .upper = buffer_bytes(&bounds.upper),
                                                 .read_tier = STORE_READ_ANY};
    assert_ok(store_cursor_create(r->f->rows, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        count++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    key_bounds_free(&bounds);
    return count;
}

static struct packed_change large_cell(struct replaying *r)
{
    struct row_change *change = new_change(r->f);
    row_change_set(change, FAMILY_F, bytes_of("q"), 5, bytes_of("large"));
    return pack(change, 1);
}

static void overflow_cells_go_with_their_rows(void **state)
{
    struct replaying *r = *state;
    begin_replay(r);
    replay_change(r, 1, "r", large_cell(r));
    replay_change(r, 2, "s", large_cell(r));
    assert_int_equal(count_overflow_cells(r), 2);
    replay_drop(r, 3, "r", "s");
    assert_int_equal(count_overflow_cells(r), 1);
    compact_and_start(r);
    assert_reads(r, "r", "");
    assert_reads(r, "s", "f:q@5=large");
}

/* The other store's files have these numbers, and none of this one's. */
static void the_record_knows_no_files(void **state)
{
    struct replaying *r = *state;
    struct row_drop_words words;
    begin_replay(r);
    replay_drop(r, 3, "r", "s");
    compact_and_start(r);
    assert_true(row_drops_next(r->drops, 0, &words));
    assert_int_equal(words.sequence, 3);
    assert_int_equal(words.version, 3000);
    assert_int_equal(words.newest_table, 0);
}

/* What was there at the beginning has not gone with them: a pass was to see to it. */
static void adds_stay_apart_where_drops_were_before(void **state)
{
    struct replaying *r = *state;
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    begin_replay(r);
    replay_change(r, 1, "r", add_to_cell(r->f, "n", 1));
    put_record(batch, r, 3, "r", "s");
    assert_ok(store_write(r->f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    keyspace_set_rules(r->f->rows, NULL); /* as of a store that has just been opened */
    begin_replay(r);
    replay_change(r, 4, "r", add_to_cell(r->f, "n", 2));
    replay_change(r, 5, "r", add_to_cell(r->f, "n", 4));
    compact_and_start(r);
    assert_reads(r, "r", "sum:n@0=6");
}

static void replay_a_drop_that_is_told(struct replaying *r)
{
    begin_replay(r);
    replay_change(r, 1, "r", add_to_cell(r->f, "n", 1));
    replay_drop_told(r, 3, "r", "s", true);
    replay_change(r, 4, "r", add_to_cell(r->f, "n", 2));
    replay_change(r, 5, "r", add_to_cell(r->f, "n", 4));
    compact_and_start(r);
    assert_reads(r, "r", "sum:n@0=6");
    assert_true(row_drops_remove(r->drops, 3));
    assert_reads(r, "r", "sum:n@0=7");
}

/* What the row had is there, for a change stream, and nobody who reads the table sees it. */
static void rows_of_a_drop_that_is_to_be_told_stay(void **state)
{
    replay_a_drop_that_is_told(*state);
}

/* As in the second after a backup: each change reads its row. */
static void also_where_changes_may_be_late(void **state)
{
    struct replaying *r = *state;
    const struct commit_ceilings ceilings = {.version = 1 << 20};
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    commit_put_ceilings(batch, r->f->options.catalog, &ceilings);
    assert_ok(store_write(r->f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    replay_a_drop_that_is_told(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(adds_do_not_meet_over_a_drop, setup, teardown),
        cmocka_unit_test_setup_teardown(nor_do_those_of_one_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(overflow_cells_go_with_their_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(the_record_knows_no_files, setup, teardown),
        cmocka_unit_test_setup_teardown(adds_stay_apart_where_drops_were_before, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_of_a_drop_that_is_to_be_told_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(also_where_changes_may_be_late, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
