/* Tests of overflowing, purging and replacing: what a reader sees stays the same, what lies in the
 * store does not. */
#include "tablet/row_maintenance.h"

#include "tablet/testing/testing.h"

enum { OVERFLOW_BYTES = 256 };

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

static struct row_maintenance_report look_after_at(struct tablet_fixture *f, const char *row_key,
                                                   struct overflow_place *place)
{
    struct row_maintenance maintenance = {.keyspace = f->rows,
                                          .row_key = bytes_of(row_key),
                                          .row_hash =
                                              row_lock_hash(ROWS_KEYSPACE, bytes_of(row_key)),
                                          .locks = f->locks,
                                          .commits = f->queue,
                                          .overflow_bytes = OVERFLOW_BYTES,
                                          .rules = &f->rules,
                                          .place = place};
    struct row_lock_waiter waiter = {.granted = NULL};
    struct row_maintenance_report report;
    assert_true(row_lock_acquire(f->locks, maintenance.row_hash, &waiter));
    assert_ok(row_maintenance_run(&maintenance, &report));
    row_lock_release(f->locks, maintenance.row_hash);
    return report;
}

static struct row_maintenance_report look_after(struct tablet_fixture *f, const char *row_key)
{
    return look_after_at(f, row_key, NULL);
}

static size_t overflow_count(struct tablet_fixture *f)
{
    struct store_cursor *cursor;
    struct store_cursor_options options = {
        .lower = bytes_of("S"), .upper = bytes_of("T"), .read_tier = STORE_READ_ANY};
    size_t count = 0;
    assert_ok(store_cursor_create(f->rows, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        count++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return count;
}

/* The size of a row's record; 0: none. */
static size_t record_size(struct tablet_fixture *f, const char *record_key, bool *has_overflow)
{
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(f->rows, NULL, bytes_of(record_key), STORE_READ_ANY, &value, &presence));
    size_t size = value.bytes.size;
    *has_overflow = size > 0 && fragment_has_overflow(value.bytes);
    store_value_release(&value);
    return size;
}

/* Cells in a row's record. */
static size_t stored_cells(struct tablet_fixture *f, const char *record_key)
{
    struct store_value value;
    enum store_presence presence;
    struct fragment_reader reader;
    struct entry entry;
    size_t count = 0;
    assert_ok(store_get(f->rows, NULL, bytes_of(record_key), STORE_READ_ANY, &value, &presence));
    assert_true(fragment_reader_start(&reader, value.bytes));
    while (fragment_reader_next(&reader, &entry))
        count += entry_is_cell(entry.kind);
    store_value_release(&value);
    return count;
}

/* Cells q00, q01, … with values of ten bytes, one change. */
static void write_columns(struct tablet_fixture *f, const char *row_key, uint32_t family,
                          unsigned count)
{
    struct row_change *change = new_change(f);
    for (unsigned i = 0; i < count; i++) {
        char *name = arena_alloc(f->arena, 16);
        assert_non_null(name);
        snprintf(name, 16, "q%02u", i);
        row_change_set(change, family, bytes_of(name), 1, bytes_of("0123456789"));
    }
    write_change(f, row_key, pack(change, SIZE_MAX));
}

enum { PER_CHANGE = 10 * 1000 };

/* Columns 0000000, 0000001, …, looked after as they grow. */
static void write_many_at(struct tablet_fixture *f, unsigned count, int64_t timestamp_us)
{
    static char names[PER_CHANGE][8];
    for (unsigned at = 0; at < count; at += PER_CHANGE) {
        struct row_change *change = new_change(f);
        for (unsigned i = 0; i < PER_CHANGE && at + i < count; i++) {
            snprintf(names[i], sizeof names[i], "%07u", at + i);
            row_change_set(change, FAMILY_F, bytes_make(names[i], 7), timestamp_us, bytes_of("x"));
        }
        write_change(f, "row", pack(change, SIZE_MAX));
        look_after(f, "row");
        arena_reset(f->arena);
    }
}

static void write_many(struct tablet_fixture *f, unsigned count)
{
    write_many_at(f, count, 1);
}

static void delete_family(struct tablet_fixture *f, const char *row_key, uint32_t family)
{
    struct row_change *change = new_change(f);
    row_change_delete_family(change, family);
    write_change(f, row_key, pack(change, SIZE_MAX));
}

/* The number of cells that a reader sees. */
static size_t cell_count(struct tablet_fixture *f, const char *row_key)
{
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(SIZE_MAX / 2)};
    enum row_outcome outcome;
    assert_ok(row_read(f->rows, &options, bytes_of(row_key), STORE_READ_ANY, &row, &outcome));
    size_t count = row.cells.count;
    row_clear(&row);
    arena_destroy(row.cells.arena);
    return count;
}

/* --- overflowing --- */

static void a_large_record_overflows(void **state)
{
    struct tablet_fixture *f = *state;
    bool has_overflow;
    write_columns(f, "row", FAMILY_F, 30);
    assert_true(record_size(f, "Rrow", &has_overflow) > OVERFLOW_BYTES);
    assert_false(has_overflow);
    assert_true(look_after(f, "row").overflow);
    assert_true(record_size(f, "Rrow", &has_overflow) < OVERFLOW_BYTES);
    assert_true(has_overflow);
    assert_int_equal(overflow_count(f), 30);
    assert_int_equal(cell_count(f, "row"), 30);
    assert_false(look_after(f, "row").overflow);
    assert_int_equal(cell_count(f, "row"), 30);
}

static void an_overflow_record_has_no_history(void **state)
{
    struct tablet_fixture *f = *state;
    struct store_value value;
    enum store_presence presence;
    write_columns(f, "row", FAMILY_F, 30);
    write_columns(f, "row", FAMILY_G, 30);
    struct row_maintenance_report report = look_after(f, "row");
    assert_true(report.overflow && report.replaced);
    assert_ok(store_get(f->rows, NULL, bytes_of("Rrow"), STORE_READ_ANY, &value, &presence));
    assert_int_equal(value.folded.count, 0); /* a reader does not unpack the 60 cells again */
    store_value_release(&value);
    assert_int_equal(cell_count(f, "row"), 60);
}

static void a_small_record_does_not(void **state)
{
    struct tablet_fixture *f = *state;
    write_columns(f, "row", FAMILY_F, 3);
    struct row_maintenance_report report = look_after(f, "row");
    assert_false(report.overflow);
    assert_true(report.replaced);
    assert_int_equal(overflow_count(f), 0);
    assert_int_equal(cell_count(f, "row"), 3);
}

static void changes_after_an_overflow_count(void **state)
{
    struct tablet_fixture *f = *state;
    write_columns(f, "row", FAMILY_F, 30);
    write_change(f, "row", add_to_cell(f, "n", 40));
    assert_true(look_after(f, "row").overflow);
    write_change(f, "row", add_to_cell(f, "n", 2));
    write_change(f, "row", set_cell(f, FAMILY_F, "q00", 1, "new"));
    write_change(f, "row", set_cell(f, FAMILY_F, "q00", 2, "newest"));
    assert_int_equal(cell_count(f, "row"), 32);
    write_columns(f, "row", FAMILY_G, 30);
    assert_true(look_after(f, "row").overflow);
    assert_int_equal(cell_count(f, "row"), 62);
    delete_family(f, "row", FAMILY_F);
    delete_family(f, "row", FAMILY_G);
    assert_row(f, "row", "sum:n@0=42");
    look_after(f, "row");
    assert_row(f, "row", "sum:n@0=42");
}

/* --- purging --- */

static void deleted_cells_are_purged(void **state)
{
    struct tablet_fixture *f = *state;
    bool has_overflow;
    write_columns(f, "row", FAMILY_F, 30);
    write_columns(f, "row", FAMILY_G, 20);
    look_after(f, "row");
    assert_int_equal(overflow_count(f), 50);
    delete_family(f, "row", FAMILY_F);
    assert_int_equal(overflow_count(f), 50);
    assert_int_equal(cell_count(f, "row"), 20);
    assert_true(look_after(f, "row").purged);
    assert_int_equal(overflow_count(f), 20);
    assert_int_equal(cell_count(f, "row"), 20);
    delete_family(f, "row", FAMILY_G);
    assert_true(look_after(f, "row").purged);
    assert_int_equal(overflow_count(f), 0);
    assert_row(f, "row", "");
    look_after(f, "row"); /* nothing takes the place of nothing */
    assert_int_equal(record_size(f, "Rrow", &has_overflow), 0);
}

/* Cells that came after the tombstone, overflowed meanwhile, between many that it covers. */
static void survivors_of_a_tombstone_stay(void **state)
{
    struct tablet_fixture *f = *state;
    write_columns(f, "row", FAMILY_F, 99);
    look_after(f, "row");
    delete_family(f, "row", FAMILY_F);
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("q05"), 1, bytes_of("a survivor"));
    row_change_set(change, FAMILY_F, bytes_of("q95"), 1, bytes_of("another one"));
    write_change(f, "row", pack(change, 10));
    assert_row(f, "row", "f:q05@1=a survivor f:q95@1=another one");
    assert_int_equal(overflow_count(f), 99);
    assert_true(look_after(f, "row").purged);
    assert_int_equal(overflow_count(f), 2);
    assert_row(f, "row", "f:q05@1=a survivor f:q95@1=another one");
}

static void a_column_tombstone_purges_its_times(void **state)
{
    struct tablet_fixture *f = *state;
    for (int64_t t = 1; t <= 5; t++) {
        struct row_change *big = new_change(f);
        row_change_set(big, FAMILY_F, bytes_of("q"), t, bytes_of("x"));
        row_change_set(big, FAMILY_F, bytes_of("qq"), t, bytes_of("y"));
        write_change(f, "row", pack(big, 1));
    }
    assert_int_equal(overflow_count(f), 10);
    struct row_change *change = new_change(f);
    row_change_delete_column(change, FAMILY_F, bytes_of("q"), 2, 4);
    row_change_delete_column(change, FAMILY_F, bytes_of("qq"), 3, INT64_MAX);
    write_change(f, "row", pack(change, SIZE_MAX));
    const char *expected = "f:q@5=x f:q@4=x f:q@1=x f:qq@2=y f:qq@1=y";
    assert_row(f, "row", expected);
    assert_true(look_after(f, "row").purged);
    assert_int_equal(overflow_count(f), 5);
    assert_row(f, "row", expected);
}

static void a_row_may_be_deleted_and_begin_again(void **state)
{
    struct tablet_fixture *f = *state;
    bool has_overflow;
    write_columns(f, "row", FAMILY_F, 30);
    look_after(f, "row");
    struct row_change *change = new_change(f);
    row_change_delete_row(change);
    write_change(f, "row", pack(change, SIZE_MAX));
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "again"));
    assert_row(f, "row", "f:q@1=again");
    assert_true(look_after(f, "row").purged);
    assert_int_equal(overflow_count(f), 0);
    assert_row(f, "row", "f:q@1=again");
    assert_true(record_size(f, "Rrow", &has_overflow) > 0);
    assert_false(has_overflow);
}

/* --- lost cells --- */

static void cut_lost(struct tablet_fixture *f, const char *row_key, bytes from, bytes to)
{
    const struct row_maintenance maintenance = {.keyspace = f->rows,
                                                .row_key = bytes_of(row_key),
                                                .row_hash =
                                                    row_lock_hash(ROWS_KEYSPACE, bytes_of(row_key)),
                                                .locks = f->locks,
                                                .commits = f->queue};
    row_lock_wait(f->locks, maintenance.row_hash);
    assert_ok(row_maintenance_cut_lost(&maintenance, from, to));
    row_lock_release(f->locks, maintenance.row_hash);
}

/* As a repair does, whose cells no one reads any more. */
static void lose(struct tablet_fixture *f, bytes from, bytes to)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_delete_range(batch, f->rows, from, to);
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

static void write_big(struct tablet_fixture *f, const char *row_key, const char *qualifier,
                      int64_t timestamp_us)
{
    struct row_change *big = new_change(f);
    row_change_set(big, FAMILY_F, bytes_of(qualifier), timestamp_us, bytes_of("big"));
    write_change(f, row_key, pack(big, 1));
}

static void what_lost_cells_replaced_is_cut(void **state)
{
    struct tablet_fixture *f = *state;
    struct buffer from = {0}, to = {0};
    write_change(f, "row", add_to_cell(f, "n", 1)); /* a sum whose first part is lost */
    write_columns(f, "row", FAMILY_G, 30);
    assert_true(look_after(f, "row").overflow);
    write_change(f, "row", add_to_cell(f, "n", 2));
    write_change(f, "row", set_cell(f, FAMILY_F, "a", 1, "elsewhere"));
    for (int64_t t = 1; t <= 3; t++)
        write_change(f, "row", set_cell(f, FAMILY_F, "q", t, "replaced"));
    write_big(f, "row", "a", 1);
    write_big(f, "row", "q", 1);
    write_big(f, "row", "q", 3);
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 3, "newer"));
    overflow_column_prefix(&from, bytes_of("row"), FAMILY_F, bytes_of("q"));
    overflow_family_prefix(&to, bytes_of("row"), FAMILY_SUM + 1);
    cut_lost(f, "row", buffer_bytes(&from), buffer_bytes(&to));
    lose(f, buffer_bytes(&from), buffer_bytes(&to));
    assert_row(f, "row", "f:a@1=big f:q@3=newer");
    cut_lost(f, "row", buffer_bytes(&from), buffer_bytes(&to));
    assert_row(f, "row", "f:a@1=big f:q@3=newer");
    buffer_free(&from);
    buffer_free(&to);
}

static void a_row_without_overflow_cells_is_not_cut(void **state)
{
    struct tablet_fixture *f = *state;
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "x"));
    cut_lost(f, "row", bytes_of("S"), bytes_of("T"));
    assert_row(f, "row", "f:q@1=x");
    cut_lost(f, "none", bytes_of("S"), bytes_of("T"));
    assert_row(f, "none", "");
}

/* --- lost cells that another keyspace has --- */

enum { FORMER_KEYSPACE = 8 };

/* Of a record, as it is stored. */
static void read_record_of(struct keyspace *keyspace, const char *record_key,
                           struct store_value *value)
{
    enum store_presence presence;
    assert_ok(store_get(keyspace, NULL, bytes_of(record_key), STORE_READ_ANY, value, &presence));
    assert_int_equal(presence, STORE_FOUND);
}

static struct keyspace *copy_of_rows(struct tablet_fixture *f)
{
    struct keyspace *former = make_keyspace(f->store, FORMER_KEYSPACE);
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_batch *batch = store_batch_create();
    struct store_cursor *cursor;
    assert_non_null(batch);
    assert_ok(store_cursor_create(f->rows, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        store_batch_put(batch, former, store_cursor_key(cursor), store_cursor_value(cursor));
    assert_ok(store_cursor_status(cursor));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_cursor_destroy(cursor);
    store_batch_destroy(batch);
    return former;
}

struct refilling {
    struct tablet_fixture *f;
    unsigned count;
};

static status merge_back(void *context, bytes key, bytes operand)
{
    struct refilling *refilling = context;
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_merge(batch, refilling->f->rows, key, operand);
    assert_ok(store_write(refilling->f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    refilling->count++;
    return status_ok();
}

static const struct lost_overflow all_lost = {.row_key = {(const uint8_t *)"row", 3},
                                              .from = {(const uint8_t *)"S", 1},
                                              .to = {(const uint8_t *)"T", 1}};

static unsigned refill(struct tablet_fixture *f, struct keyspace *former)
{
    struct refilling refilling = {.f = f};
    struct store_value record = {0};
    read_record_of(former, "Rrow", &record);
    assert_ok(overflow_visit_former(&all_lost, former, record.bytes, merge_back, &refilling));
    store_value_release(&record);
    return refilling.count;
}

static uint64_t moved_of(struct tablet_fixture *f)
{
    struct store_value record = {0};
    struct fragment_reader reader;
    struct entry mark;
    read_record_of(f->rows, "Rrow", &record);
    assert_true(fragment_reader_start(&reader, record.bytes));
    assert_true(fragment_reader_next(&reader, &mark));
    assert_int_equal(mark.kind, ENTRY_OVERFLOW_MARK);
    store_value_release(&record);
    return mark.moved;
}

/* Cells that the record's tombstones cover there have not counted any more. */
static void overflow_cells_that_counted_come_back(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_change *change = new_change(f);
    struct buffer before = {0};
    write_change(f, "row", add_to_cell(f, "n", 1));
    write_columns(f, "row", FAMILY_F, 3);
    write_columns(f, "row", FAMILY_G, 30);
    assert_true(look_after(f, "row").overflow);
    delete_family(f, "row", FAMILY_F);
    row_change_delete_column(change, FAMILY_G, bytes_of("q05"), 0, INT64_MAX);
    write_change(f, "row", pack(change, SIZE_MAX));
    assert_int_equal(overflow_count(f), 34);
    read_text(f, "row", &before);
    struct keyspace *former = copy_of_rows(f);
    lose(f, all_lost.from, all_lost.to);
    assert_int_equal(refill(f, former), 30);
    assert_int_equal(overflow_count(f), 30);
    assert_row(f, "row", (const char *)before.data);
    buffer_free(&before);
}

static void cells_that_were_moved_since_come_back(void **state)
{
    struct tablet_fixture *f = *state;
    struct refilling refilling = {.f = f};
    struct store_value then = {0};
    write_big(f, "row", "a", 1);
    write_change(f, "row", set_cell(f, FAMILY_F, "b", 1, "in the record"));
    struct keyspace *former = copy_of_rows(f);
    write_columns(f, "row", FAMILY_G, 30);
    assert_true(look_after(f, "row").overflow);
    uint64_t moved = moved_of(f);
    write_change(f, "row", set_cell(f, FAMILY_F, "c", 1, "later"));
    lose(f, all_lost.from, all_lost.to);
    assert_int_equal(refill(f, former), 1);
    read_record_of(former, "Rrow", &then);
    assert_ok(overflow_visit_moved(&all_lost, then.bytes, moved, merge_back, &refilling));
    assert_row(f, "row", "f:a@1=big f:b@1=in the record f:c@1=later");
    assert_ok(overflow_visit_moved(&all_lost, then.bytes, 1, merge_back, &refilling));
    assert_int_equal(refilling.count, 1);
    store_value_release(&then);
}

/* --- collecting --- */

static const struct gc_rule newest_two = {.kind = GC_MAX_VERSIONS, .max_versions = 2};

/* From now on family f keeps two versions. */
static void keep_two_versions(struct tablet_fixture *f)
{
    schema_destroy(f->schema);
    f->schema = test_schema(&newest_two);
    f->rules.schema = f->schema;
}

static void big_versions_are_collected(void **state)
{
    struct tablet_fixture *f = *state;
    keep_two_versions(f);
    for (int64_t t = 1; t <= 100; t++) {
        struct row_change *big = new_change(f);
        row_change_set(big, FAMILY_F, bytes_of("q"), t, bytes_of("x"));
        row_change_set(big, FAMILY_G, bytes_of("q"), t, bytes_of("y"));
        write_change(f, "row", pack(big, 1));
    }
    assert_int_equal(overflow_count(f), 200);
    look_after(f, "row");
    assert_int_equal(overflow_count(f), 102);
    assert_int_equal(cell_count(f, "row"), 102);
}

/* Cells of families whose rules count nothing were walked through each time a row was looked after:
 * what a hot entity of Datastore's had been within the hour. */
static void families_without_counts_are_passed(void **state)
{
    enum { MANY = 5000 }; /* more than one maintenance looks at */
    static char names[MANY][8];
    struct tablet_fixture *f = *state;
    struct overflow_place place = {0};
    keep_two_versions(f);
    for (int64_t t = 1; t <= 3; t++) {
        struct row_change *big = new_change(f);
        row_change_set(big, FAMILY_F, bytes_of("q"), t, bytes_of("x"));
        for (int i = 0; i < MANY; i++) {
            snprintf(names[i], sizeof names[i], "%07d", i);
            row_change_set(big, FAMILY_G, bytes_make(names[i], 7), 1, bytes_of("y"));
        }
        write_change(f, "row", pack(big, 1));
    }
    assert_true(look_after_at(f, "row", &place).collected);
    assert_true(place.is_over);
    assert_int_equal(overflow_count(f), 2 + MANY);
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 4, "z"));
    write_change(f, "row", set_cell(f, FAMILY_G, "q", 4, "z"));
    assert_true(look_after_at(f, "row", &place).collected);
    assert_int_equal(overflow_count(f), 1 + MANY);
    assert_int_equal(cell_count(f, "row"), 3 + MANY);
    buffer_free(&place.qualifier);
}

/* In the record as in the overflow cells; each maintenance sees both. */
static void versions_are_counted_over_record_and_overflow_cells(void **state)
{
    struct tablet_fixture *f = *state;
    keep_two_versions(f);
    write_columns(f, "row", FAMILY_G, 30);
    assert_true(look_after(f, "row").overflow);
    for (int64_t t = 1; t <= 200; t++) {
        write_change(f, "row", set_cell(f, FAMILY_F, "q", t, "a value of some bytes"));
        if (t % 20 == 0)
            assert_true(look_after(f, "row").collected);
        assert_int_equal(cell_count(f, "row"), 30 + (t < 2 ? 1 : 2));
    }
    assert_int_equal(overflow_count(f), 30);
    assert_int_equal(stored_cells(f, "Rrow"), 2);
}

/* Newer cells in the record, older ones overflowed, some in both: one place counts once. */
static void a_cell_in_both_counts_once(void **state)
{
    struct tablet_fixture *f = *state;
    for (int64_t t = 1; t <= 4; t++) {
        struct row_change *big = new_change(f);
        row_change_set(big, FAMILY_F, bytes_of("q"), t, bytes_of("old"));
        write_change(f, "row", pack(big, 1));
    }
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 4, "new"));
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 2, "new"));
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "new"));
    keep_two_versions(f);
    assert_row(f, "row", "f:q@4=new f:q@3=old");
    assert_true(look_after(f, "row").collected);
    assert_int_equal(overflow_count(f), 2);
    assert_int_equal(stored_cells(f, "Rrow"), 1);
    assert_row(f, "row", "f:q@4=new f:q@3=old");
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 5, "newest"));
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "oldest"));
    assert_row(f, "row", "f:q@5=newest f:q@4=new");
}

/* Columns that lie behind more cells than one maintenance looks at are collected when they
 * overflow. */
static void versions_that_overflow_again_and_again_are_collected(void **state)
{
    struct tablet_fixture *f = *state;
    keep_two_versions(f);
    write_many(f, 5000);
    for (int64_t t = 1; t <= 200; t++) {
        write_change(f, "row", set_cell(f, FAMILY_F, "q", t, "a value of some bytes"));
        if (t % 20 == 0)
            assert_true(look_after(f, "row").overflow);
        assert_int_equal(cell_count(f, "row"), 5000 + (t < 2 ? 1 : 2));
    }
    assert_int_equal(overflow_count(f), 5000 + 20);
}

/* As the pass over rows at rest does it: a few thousand cells at a time, from end to end. */
static void a_wide_row_is_collected_to_its_end(void **state)
{
    struct tablet_fixture *f = *state;
    unsigned rounds = 0;
    write_many(f, 9000);
    write_many_at(f, 9000, 2);
    write_many_at(f, 9000, 3);
    for (int64_t t = 1; t <= 1000; t++) { /* a long tail in the middle, and cells around it */
        struct row_change *big = new_change(f);
        row_change_set(big, FAMILY_F, bytes_of("0004000"), t, bytes_of("y"));
        row_change_set(big, FAMILY_G, bytes_of("q"), t, bytes_of("y"));
        write_change(f, "row", pack(big, 1));
    }
    keep_two_versions(f);
    struct overflow_place place = {.bypasses_cache = true};
    while (!place.is_over) {
        assert_true(look_after_at(f, "row", &place).collected);
        rounds++;
    }
    buffer_free(&place.qualifier);
    assert_true(rounds > 3);
    assert_int_equal(overflow_count(f), 2 * 9000 + 1000);
    assert_int_equal(cell_count(f, "row"), 2 * 9000 + 1000);
}

/* What is deleted does not count as newer. */
static void versions_come_to_light_again_before_they_are_collected(void **state)
{
    struct tablet_fixture *f = *state;
    keep_two_versions(f);
    for (int64_t t = 1; t <= 3; t++) {
        struct row_change *big = new_change(f);
        row_change_set(big, FAMILY_F, bytes_of("q"), t, bytes_of("x"));
        write_change(f, "row", pack(big, 1));
    }
    assert_row(f, "row", "f:q@3=x f:q@2=x");
    struct row_change *change = new_change(f);
    row_change_delete_column(change, FAMILY_F, bytes_of("q"), 3, INT64_MAX);
    write_change(f, "row", pack(change, SIZE_MAX));
    assert_row(f, "row", "f:q@2=x f:q@1=x");
    look_after(f, "row");
    assert_row(f, "row", "f:q@2=x f:q@1=x");
}

/* Neighbours whose keys begin alike, or have zero bytes, keep their cells. */
static void neighbours_are_left_alone(void **state)
{
    struct tablet_fixture *f = *state;
    write_columns(f, "ro", FAMILY_F, 30);
    write_columns(f, "row", FAMILY_F, 30);
    write_columns(f, "row1", FAMILY_F, 30);
    look_after(f, "ro");
    look_after(f, "row");
    look_after(f, "row1");
    delete_family(f, "row", FAMILY_F);
    assert_true(look_after(f, "row").purged);
    assert_int_equal(cell_count(f, "ro"), 30);
    assert_int_equal(cell_count(f, "row"), 0);
    assert_int_equal(cell_count(f, "row1"), 30);
    assert_int_equal(overflow_count(f), 60);
}

/* --- a family of a million cells: `row_maintenance_test 1000000`; a tenth of that by default,
 * which takes a few seconds --- */

static unsigned many_cells = 100 * 1000;

static uint64_t bytes_written(struct tablet_fixture *f)
{
    struct store_statistics statistics;
    store_statistics(f->store, &statistics);
    return statistics.log_bytes;
}

/* Deleting a family, however large, writes one operand and then one range delete. */
static void a_large_family_goes_at_once(void **state)
{
    struct tablet_fixture *f = *state;
    write_many(f, many_cells);
    write_change(f, "row", set_cell(f, FAMILY_G, "q", 1, "stays"));
    assert_int_equal(overflow_count(f), many_cells);
    delete_family(f, "row", FAMILY_F);
    assert_row(f, "row", "g:q@1=stays");
    uint64_t written = bytes_written(f);
    assert_true(look_after(f, "row").purged);
    assert_true(bytes_written(f) - written < 64 << 10);
    assert_int_equal(overflow_count(f), 0);
    assert_row(f, "row", "g:q@1=stays");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_large_record_overflows, setup, teardown),
        cmocka_unit_test_setup_teardown(an_overflow_record_has_no_history, setup, teardown),
        cmocka_unit_test_setup_teardown(a_small_record_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_after_an_overflow_count, setup, teardown),
        cmocka_unit_test_setup_teardown(deleted_cells_are_purged, setup, teardown),
        cmocka_unit_test_setup_teardown(survivors_of_a_tombstone_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_column_tombstone_purges_its_times, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_may_be_deleted_and_begin_again, setup, teardown),
        cmocka_unit_test_setup_teardown(neighbours_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_lost_cells_replaced_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_without_overflow_cells_is_not_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(overflow_cells_that_counted_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(cells_that_were_moved_since_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(big_versions_are_collected, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_are_counted_over_record_and_overflow_cells, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_cell_in_both_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wide_row_is_collected_to_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(families_without_counts_are_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_that_overflow_again_and_again_are_collected, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(versions_come_to_light_again_before_they_are_collected,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_family_goes_at_once, setup, teardown),
    };
    if (argc > 1)
        many_cells = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
