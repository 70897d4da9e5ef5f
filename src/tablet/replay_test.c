/* Events that are replayed onto a copy of which a table file is lost: what comes to rows that are
 * out of service, and to others. (backup/replay_test.c and cluster/archive_faults_test.c have what
 * is around it.)
 *
 * The story. A restore with --salvage and --archive failed, once in many runs, with nothing but
 * "the table file 000010.sst is damaged: it has 0 bytes of 2043096". Of the versions that a copy
 * has the replay knows the ceiling alone, which is up to a second above them. So what was written
 * within that second after the backup counts as late, and late changes read their rows: it met one
 * that was out of service, which ended all of the restore. */
#include "tablet/replay.h"

#include "store/table_names.h"
#include "tablet/testing/testing.h"

enum { LATER = 1000 }; /* microseconds after the newest version of the copy */

static int setup(void **state)
{
    *state = tablet_fixture_create();
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

/* --- a copy --- */

static status empty_file(void *context, const char *name)
{
    const struct tablet_fixture *f = context;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    assert_int_equal(truncate(path, 0), 0);
    return status_ok();
}

/* What was written is in one table file, of which nothing is there after the next opening: as a
 * restore leaves what it could not get. */
static void lose_rows(struct tablet_fixture *f)
{
    assert_ok(keyspace_flush(f->rows));
    assert_ok(keyspace_list_files(f->rows, empty_file, f));
    close_queue(f);
    open_queue(f);
}

static void assert_lost(struct tablet_fixture *f, const char *row_key)
{
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(SIZE_MAX / 2)};
    enum row_outcome outcome;
    status s = row_read(f->rows, &options, bytes_of(row_key), STORE_READ_ANY, &row, &outcome);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    assert_non_null(strstr(status_message(s), ".sst is damaged: it has 0 bytes of "));
    status_free(s);
    row_clear(&row);
    arena_destroy(row.cells.arena);
}

/* --- events --- */

static void add_event(struct event_writer *writer, const char *row_key, struct packed_change change,
                      uint64_t number)
{
    fragment_set_version(change.fragment.data, number);
    event_begin(writer, EVENT_ROWS, number, number);
    event_row(writer, ROWS_KEYSPACE, bytes_of(row_key), &change, NULL);
    event_end(writer);
    buffer_free(&change.fragment);
}

static void assert_below_ceiling(struct tablet_fixture *f, uint64_t version)
{
    struct commit_ceilings ceilings;
    assert_ok(commit_read_ceilings(f->options.catalog, &ceilings));
    assert_true(version < ceilings.version);
}

static void replay(struct tablet_fixture *f, const struct buffer *entry, uint64_t newest)
{
    const struct replay_options options = {.store = f->store,
                                           .catalog = f->options.catalog,
                                           .clock = &f->clock.clock,
                                           .until = UINT64_MAX};
    struct replayer *replayer;
    assert_false(entry->failed);
    assert_ok(replayer_create(&options, &replayer));
    assert_ok(replayer_apply(replayer, buffer_bytes(entry)));
    assert_ok(replayer_finish(replayer, newest + 1));
    replayer_destroy(replayer);
}

/* Two changes of the row in the second after the copy, and one of a row that sorts behind all. */
static void replay_second_after(struct tablet_fixture *f, const char *row_key, uint64_t newest)
{
    struct buffer entry = {0};
    struct event_writer writer;
    uint64_t version = newest + version_at(LATER);
    assert_below_ceiling(f, version + 3);
    event_writer_start(&writer, &entry);
    add_event(&writer, row_key, set_cell(f, FAMILY_F, "q", 2, "second"), version + 1);
    add_event(&writer, "z", set_cell(f, FAMILY_F, "q", 2, "behind"), version + 2);
    add_event(&writer, row_key, set_cell(f, FAMILY_G, "q", 3, "third"), version + 3);
    replay(f, &entry, version + 3);
    buffer_free(&entry);
}

/* --- tests --- */

static void second_after_the_copy_is_replayed(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t newest = write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "first"));
    replay_second_after(f, "row", newest);
    assert_row(f, "row", "f:q@2=second f:q@1=first g:q@3=third");
    assert_row(f, "z", "f:q@2=behind");
}

static void second_after_the_copy_passes_rows_out_of_service(void **state)
{
    struct tablet_fixture *f = *state;
    write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "first"));
    uint64_t newest = write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "first"));
    lose_rows(f);
    assert_lost(f, "row");
    replay_second_after(f, "row", newest);
    assert_lost(f, "a");
    assert_lost(f, "row");
    assert_row(f, "z", "f:q@2=behind");
}

/* The range is opened, as by a repair that found the file sound. */
static void rows_out_of_service_get_their_changes(void **state)
{
    struct tablet_fixture *f = *state;
    const struct store_damage damage = {
        .file = 99, .is_whole = true, .what = "gone", .is_remembered = true};
    uint64_t newest = write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "first"));
    assert_ok(keyspace_close_range(f->rows, &damage));
    replay_second_after(f, "row", newest);
    keyspace_open_range(f->rows, 99, bytes_of(""), bytes_of(""));
    assert_row(f, "row", "f:q@2=second f:q@1=first g:q@3=third");
    assert_row(f, "z", "f:q@2=behind");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(second_after_the_copy_is_replayed, setup, teardown),
        cmocka_unit_test_setup_teardown(second_after_the_copy_passes_rows_out_of_service, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rows_out_of_service_get_their_changes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
