/* Changes that come late, with versions older than what their rows have seen: each of the ways in
 * which they went wrong as operands, shown beside how they come out. (cluster/foreign_rows_test.c
 * has random histories of them.) */
#include "tablet/foreign_change.h"

#include "base/testing/failmalloc.h"
#include "tablet/row_maintenance.h"
#include "tablet/testing/testing.h"

enum { OVERFLOW_BYTES = 64 };

static int setup(void **state)
{
    struct tablet_fixture *f = tablet_fixture_create();
    f->rules.tombstones_from = 1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

/* --- writing --- */

static status try_late(struct tablet_fixture *f, const char *row_key, struct packed_change *change,
                       uint64_t version)
{
    struct foreign_change foreign;
    fragment_set_version(change->fragment.data, version);
    TRY(foreign_change_prepare(f->rows, bytes_of(row_key), change, &f->rules, &foreign));
    struct commit commit = commit_of(f, row_key, change);
    commit.given_version = version;
    commit.foreign = &foreign;
    status s = commit_and_wait(f->queue, &commit);
    foreign_change_free(&foreign);
    return s;
}

static void write_late(struct tablet_fixture *f, const char *row_key, struct packed_change change,
                       uint64_t version)
{
    assert_ok(try_late(f, row_key, &change, version));
    buffer_free(&change.fragment);
}

/* As if the row had seen nothing newer. */
static void write_operand(struct tablet_fixture *f, const char *row_key,
                          struct packed_change change, uint64_t version)
{
    struct commit commit = commit_of(f, row_key, &change);
    commit.given_version = version;
    assert_ok(commit_and_wait(f->queue, &commit));
    buffer_free(&change.fragment);
}

static struct packed_change cell(struct tablet_fixture *f, const char *qualifier, const char *value)
{
    return set_cell(f, FAMILY_F, qualifier, 1, value);
}

static struct packed_change deletion(struct tablet_fixture *f, enum entry_kind kind)
{
    struct row_change *change = new_change(f);
    if (kind == ENTRY_ROW_TOMBSTONE)
        row_change_delete_row(change);
    else if (kind == ENTRY_FAMILY_TOMBSTONE)
        row_change_delete_family(change, FAMILY_F);
    else
        row_change_delete_column(change, FAMILY_F, bytes_of("a"), 0, INT64_MAX);
    return pack(change, SIZE_MAX);
}

static void look_after(struct tablet_fixture *f, const char *row_key)
{
    struct row_maintenance maintenance = {.keyspace = f->rows,
                                          .row_key = bytes_of(row_key),
                                          .row_hash =
                                              row_lock_hash(ROWS_KEYSPACE, bytes_of(row_key)),
                                          .locks = f->locks,
                                          .commits = f->queue,
                                          .overflow_bytes = OVERFLOW_BYTES,
                                          .rules = &f->rules};
    struct row_maintenance_report report;
    row_lock_wait(f->locks, maintenance.row_hash);
    assert_ok(row_maintenance_run(&maintenance, &report));
    row_lock_release(f->locks, maintenance.row_hash);
}

/* f:a and f:z, and what makes the row large enough for its cells to overflow. Returns the version
 * of the first of two writes: there is room for others up to the second. */
static uint64_t overflow(struct tablet_fixture *f, const char *row_key)
{
    static const char filling[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    uint64_t first = write_change(f, row_key, cell(f, "a", "1"));
    write_change(f, row_key, cell(f, "z", filling));
    look_after(f, row_key);
    write_change(f, row_key, cell(f, "z", "2"));
    return first;
}

static void assert_late_row(struct tablet_fixture *f, const char *row_key, const char *expected)
{
    assert_row(f, row_key, expected);
    assert_ok(keyspace_flush(f->rows));
    assert_ok(keyspace_compact(f->rows, bytes_of(""), bytes_of("")));
    assert_row(f, row_key, expected);
    look_after(f, row_key);
    assert_row(f, row_key, expected);
}

/* --- the traps --- */

static void late_cell_of_an_overflowed_row_is_there(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t version = overflow(f, "row") + 1;
    write_late(f, "row", cell(f, "b", "late"), version);
    assert_late_row(f, "row", "f:a@1=1 f:b@1=late f:z@1=2");
    version = overflow(f, "other") + 1;
    write_operand(f, "other", cell(f, "b", "late"), version);
    assert_row(f, "other", "f:a@1=1 f:z@1=2"); /* what it would be */
}

static void late_cell_loses_to_a_newer_one_wherever_that_is(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t version = overflow(f, "row");
    write_late(f, "row", cell(f, "z", "late"), version + 1);
    write_late(f, "row", cell(f, "a", "older"), version - 1);
    assert_late_row(f, "row", "f:a@1=1 f:z@1=2");
    write_late(f, "row", cell(f, "a", "newer"), version + 2);
    assert_late_row(f, "row", "f:a@1=newer f:z@1=2");
}

static void late_tombstone_reaches_overflowed_cells(void **state)
{
    static const enum entry_kind kinds[] = {ENTRY_ROW_TOMBSTONE, ENTRY_FAMILY_TOMBSTONE,
                                            ENTRY_COLUMN_TOMBSTONE};
    static const char *const names[] = {"row", "family", "column"};
    struct tablet_fixture *f = *state;
    f->rules.tombstones_from = 0; /* nothing hides what is left there */
    for (size_t i = 0; i < 3; i++) {
        uint64_t version = overflow(f, names[i]);
        /* One of ours has been purged, so that the record's mark says that all older ones were. */
        struct row_change *change = new_change(f);
        row_change_delete_column(change, FAMILY_G, bytes_of("none"), 0, INT64_MAX);
        write_change(f, names[i], pack(change, SIZE_MAX));
        look_after(f, names[i]);
        write_late(f, names[i], deletion(f, kinds[i]), version + 1);
        assert_late_row(f, names[i], "f:z@1=2");
    }
}

static void late_cell_under_a_tombstone_is_none(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t version = overflow(f, "row");
    write_change(f, "row", deletion(f, ENTRY_ROW_TOMBSTONE));
    look_after(f, "row");
    write_change(f, "row", cell(f, "z", "3"));
    write_late(f, "row", cell(f, "b", "late"), version + 1);
    assert_late_row(f, "row", "f:z@1=3");
    version = write_change(f, "small", cell(f, "a", "1"));
    write_change(f, "small", deletion(f, ENTRY_FAMILY_TOMBSTONE));
    assert_late_row(f, "small", "");
    write_late(f, "small", cell(f, "b", "late"), version + 1);
    assert_late_row(f, "small", "");
}

/* A mark that there are no overflow cells any more is newer than that of the late ones. */
static void late_large_cell_is_there_after_all_others_went(void **state)
{
    struct tablet_fixture *f = *state;
    f->rules.tombstones_from = 0;
    uint64_t version = overflow(f, "row");
    write_change(f, "row", deletion(f, ENTRY_ROW_TOMBSTONE));
    look_after(f, "row");
    look_after(f, "row"); /* an ordinary row again */
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_G, bytes_of("b"), 1, bytes_of("large"));
    write_late(f, "row", pack(change, 1), version + 1);
    assert_late_row(f, "row", "g:b@1=large");
}

static void late_add_counts_unless_a_tombstone_covers_it(void **state)
{
    struct tablet_fixture *f = *state;
    for (unsigned i = 0; i < 2; i++) {
        const char *row_key = i == 0 ? "small" : "overflowed";
        uint64_t first = write_change(f, row_key, add_to_cell(f, "s", 1));
        write_change(f, row_key, deletion(f, ENTRY_ROW_TOMBSTONE));
        uint64_t third = write_change(f, row_key, add_to_cell(f, "s", 4));
        if (i == 1)
            overflow(f, row_key);
        const char *cells = i == 1 ? "f:a@1=1 f:z@1=2 " : "";
        char expected[64];
        write_late(f, row_key, add_to_cell(f, "s", 32), first + 1);
        snprintf(expected, sizeof expected, "%ssum:s@0=4", cells);
        assert_late_row(f, row_key, expected);
        write_late(f, row_key, add_to_cell(f, "s", 8), third - 1);
        snprintf(expected, sizeof expected, "%ssum:s@0=12", cells);
        assert_late_row(f, row_key, expected);
    }
}

static void doubled_change_changes_nothing(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t version = overflow(f, "row");
    for (unsigned i = 0; i < 2; i++) {
        write_late(f, "row", deletion(f, ENTRY_COLUMN_TOMBSTONE), version + 1);
        write_late(f, "row", cell(f, "b", "late"), version + 2);
        assert_late_row(f, "row", "f:b@1=late f:z@1=2");
    }
}

/* Both deliveries lie there as they came when nothing older is to come any more, and adds may
 * become one. */
static void doubled_add_of_an_overflowed_row_counts_once(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t version = overflow(f, "row") + VERSION_STEP;
    for (unsigned i = 0; i < 2; i++)
        write_late(f, "row", add_to_cell(f, "s", 3), version);
    f->rules.tombstones_from = version + 1;
    assert_late_row(f, "row", "f:a@1=1 f:z@1=2 sum:s@0=3");
}

static void versions_go_on_above_one_that_came(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t ahead = version_at(f->clock.wall_us + 5000000) + 3;
    write_late(f, "row", cell(f, "a", "ahead"), ahead);
    assert_true(write_change(f, "row", cell(f, "a", "after")) > ahead);
    close_queue(f);
    open_queue(f);
    assert_true(write_change(f, "row", cell(f, "b", "later")) > ahead);
    assert_row(f, "row", "f:a@1=after f:b@1=later");
}

/* --- without memory --- */

struct late_write {
    struct tablet_fixture *f;
    struct packed_change change;
};

static void prepare_without_memory(void *context)
{
    struct late_write *late = context;
    struct foreign_change foreign;
    status s = foreign_change_prepare(late->f->rows, bytes_of("row"), &late->change,
                                      &late->f->rules, &foreign);
    if (status_is_ok(s))
        foreign_change_free(&foreign);
    else
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void nothing_changes_without_memory(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_change *change = new_change(f);
    row_change_delete_column(change, FAMILY_F, bytes_of("a"), 0, INT64_MAX);
    row_change_set(change, FAMILY_F, bytes_of("b"), 1, bytes_of("late"));
    struct late_write late = {.f = f, .change = pack(change, SIZE_MAX)};
    fragment_set_version(late.change.fragment.data, overflow(f, "row") + 1);
    look_after(f, "row");
    assert_ok(keyspace_flush(f->rows));
    assert_ok(keyspace_compact(f->rows, bytes_of(""), bytes_of(""))); /* no read folds */
    failmalloc_each(prepare_without_memory, &late);
    buffer_free(&late.change.fragment);
    assert_late_row(f, "row", "f:a@1=1 f:z@1=2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(late_cell_of_an_overflowed_row_is_there),
        TEST(late_cell_loses_to_a_newer_one_wherever_that_is),
        TEST(late_tombstone_reaches_overflowed_cells),
        TEST(late_cell_under_a_tombstone_is_none),
        TEST(late_large_cell_is_there_after_all_others_went),
        TEST(late_add_counts_unless_a_tombstone_covers_it),
        TEST(doubled_change_changes_nothing),
        TEST(doubled_add_of_an_overflowed_row_counts_once),
        TEST(versions_go_on_above_one_that_came),
        TEST(nothing_changes_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
