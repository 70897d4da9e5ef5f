/* Tests of deletions that are recorded (row_maintenance_collect): a wide row to its end, and memory
 * that runs out. (The cluster's recorded_deletions_test has random histories of them.) */
#include "base/testing/failmalloc.h"
#include "row/testing/testing.h"
#include "tablet/row_maintenance.h"
#include "tablet/tablet.h"
#include "tablet/testing/testing.h"

enum { OVERFLOW_BYTES = 256, COLUMNS = 5000, VERSIONS = 3 };

static const struct gc_rule two_versions = {.kind = GC_MAX_VERSIONS, .max_versions = 2};

struct recording {
    struct tablet_fixture *f;
    struct schema *schema; /* with rules; that of folds has none */
    struct row_rules rules;
};

static int setup(void **state)
{
    struct recording *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->f = tablet_fixture_create();
    r->schema = test_schema(&two_versions);
    r->rules = (struct row_rules){.schema = r->schema, .clock = &r->f->clock.clock};
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct recording *r = *state;
    schema_destroy(r->schema);
    tablet_fixture_destroy(r->f);
    free(r);
    return 0;
}

static struct row_maintenance maintenance_of(struct recording *r, const struct row_rules *rules,
                                             struct overflow_place *place)
{
    return (struct row_maintenance){.keyspace = r->f->rows,
                                    .row_key = bytes_of("row"),
                                    .row_hash = row_lock_hash(ROWS_KEYSPACE, bytes_of("row")),
                                    .locks = r->f->locks,
                                    .commits = r->f->queue,
                                    .overflow_bytes = OVERFLOW_BYTES,
                                    .rules = rules,
                                    .place = place};
}

static void look_after(struct recording *r)
{
    struct row_maintenance maintenance = maintenance_of(r, &r->f->rules, NULL);
    struct row_maintenance_report report;
    row_lock_wait(r->f->locks, maintenance.row_hash);
    assert_ok(row_maintenance_run(&maintenance, &report));
    row_lock_release(r->f->locks, maintenance.row_hash);
}

static bool collect_from(struct recording *r, struct overflow_place *place)
{
    struct row_maintenance maintenance = maintenance_of(r, &r->rules, place);
    bool collected;
    row_lock_wait(r->f->locks, maintenance.row_hash);
    assert_ok(row_maintenance_collect(&maintenance, &collected));
    row_lock_release(r->f->locks, maintenance.row_hash);
    return collected;
}

/* Columns 0000, 0001, … with a cell at each time from 1 on. */
static void write_columns(struct recording *r)
{
    static char names[COLUMNS][5];
    for (int64_t t = 1; t <= VERSIONS; t++) {
        struct row_change *change = new_change(r->f);
        for (unsigned i = 0; i < COLUMNS; i++) {
            snprintf(names[i], sizeof names[i], "%04u", i);
            row_change_set(change, FAMILY_F, bytes_of(names[i]), t, bytes_of("x"));
        }
        write_change(r->f, "row", pack(change, SIZE_MAX));
        if (t < VERSIONS)
            look_after(r); /* the last ones stay in the record */
    }
}

static size_t cell_count(struct recording *r)
{
    struct row_read_options options = read_options_of(r->f);
    struct row row = {.cells.arena = arena_create(SIZE_MAX / 2)};
    enum row_outcome outcome;
    assert_ok(row_read(r->f->rows, &options, bytes_of("row"), STORE_READ_ANY, &row, &outcome));
    size_t count = row.cells.count;
    row_clear(&row);
    arena_destroy(row.cells.arena);
    return count;
}

static void a_wide_row_is_collected_to_its_end(void **state)
{
    struct recording *r = *state;
    struct overflow_place place = {.bypasses_cache = true};
    unsigned rounds = 0;
    write_columns(r);
    look_after(r);
    assert_int_equal(cell_count(r), VERSIONS * COLUMNS);
    while (!place.is_over) {
        assert_true(collect_from(r, &place));
        look_after(r);
        rounds++;
    }
    buffer_free(&place.qualifier);
    assert_true(rounds > 1);
    assert_int_equal(cell_count(r), 2 * COLUMNS);
    place = (struct overflow_place){.bypasses_cache = true};
    while (!place.is_over)
        assert_false(collect_from(r, &place));
    buffer_free(&place.qualifier);
}

/* Cells in the record and overflow cells count together; a tail that begins in the one and ends in
 * the other is one range. */
static void both_sides_of_a_column_go_by_one_range(void **state)
{
    struct recording *r = *state;
    for (int64_t t = 1; t <= 5; t++) {
        struct row_change *change = new_change(r->f);
        row_change_set(change, FAMILY_F, bytes_of("q"), t, bytes_of("x"));
        write_change(r->f, "row", pack(change, t == 2 || t == 4 ? 1 : SIZE_MAX));
    }
    struct store_value record;
    enum store_presence presence;
    struct overflow_place place = {0};
    struct buffer cuts = {0};
    assert_ok(store_get(r->f->rows, NULL, bytes_of("Rrow"), STORE_READ_ANY, &record, &presence));
    assert_ok(
        overflow_condemn(r->f->rows, bytes_of("row"), record.bytes, &r->rules, &place, &cuts));
    assert_fragment(buffer_bytes(&cuts), "1:q[0,4)@0");
    assert_true(place.is_over);
    store_value_release(&record);
    buffer_free(&cuts);
}

/* A table that is split, or gone, while its row is looked at. */
struct table {
    struct tablet *now; /* NULL: it is gone */
};

static status route(struct table *table, bytes row_key, struct tablet **out)
{
    (void)row_key;
    if (table->now == NULL)
        return status_make(STATUS_NOT_FOUND, "Not found: t");
    tablet_retain(*out = table->now);
    return status_ok();
}

static bool collect_routed(struct recording *r, struct table *table, struct tablet *tablet)
{
    struct overflow_place place = {.bypasses_cache = true};
    struct row_maintenance maintenance = maintenance_of(r, &r->rules, &place);
    bool collected;
    maintenance.table = table;
    maintenance.tablet = tablet;
    row_lock_wait(r->f->locks, maintenance.row_hash);
    assert_ok(row_maintenance_collect(&maintenance, &collected));
    row_lock_release(r->f->locks, maintenance.row_hash);
    assert_true(place.is_over);
    buffer_free(&place.qualifier);
    return collected;
}

static void a_collection_goes_to_the_tablet_that_has_the_row_by_then(void **state)
{
    struct recording *r = *state;
    struct tablet *former, *half;
    struct table table = {NULL};
    close_queue(r->f);
    r->f->options.route = route;
    open_queue(r->f);
    assert_ok(tablet_create(1, NULL, r->f->rows, bytes_of(""), bytes_of(""), &former));
    assert_ok(tablet_create(2, NULL, r->f->rows, bytes_of("m"), bytes_of(""), &half));
    for (int64_t t = 1; t <= VERSIONS; t++) {
        struct row_change *change = new_change(r->f);
        row_change_set(change, FAMILY_F, bytes_of("q"), t, bytes_of("x"));
        write_change(r->f, "row", pack(change, SIZE_MAX));
    }
    former->is_former = true;
    assert_false(collect_routed(r, &table, former));
    assert_int_equal(cell_count(r), VERSIONS);
    table.now = half;
    assert_true(collect_routed(r, &table, former));
    assert_int_equal(cell_count(r), VERSIONS - 1);
    tablet_release(former);
    tablet_release(half);
}

struct attempt {
    struct recording *r;
    bytes record;
};

static void condemn_without_memory(void *context)
{
    const struct attempt *attempt = context;
    struct overflow_place place = {0};
    struct buffer cuts = {0};
    status s = overflow_condemn(attempt->r->f->rows, bytes_of("row"), attempt->record,
                                &attempt->r->rules, &place, &cuts);
    if (status_is_ok(s))
        assert_fragment(buffer_bytes(&cuts), "1:a[0,2)@0 1:b[0,2)@0 1:c[0,2)@0");
    else
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_ignore(s);
    buffer_free(&place.qualifier);
    buffer_free(&cuts);
}

static void a_collection_says_when_memory_runs_out(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct recording *r = *state;
    for (int64_t t = 1; t <= VERSIONS; t++) {
        struct row_change *change = new_change(r->f);
        for (size_t i = 0; i < 3; i++)
            row_change_set(change, FAMILY_F, bytes_of(names[i]), t, bytes_of("x"));
        write_change(r->f, "row", pack(change, t == 2 ? SIZE_MAX : 1));
    }
    assert_ok(keyspace_flush(r->f->rows));
    assert_ok(keyspace_compact(r->f->rows, bytes_of(""), bytes_of(""))); /* no read folds */
    struct store_value record;
    enum store_presence presence;
    assert_ok(store_get(r->f->rows, NULL, bytes_of("Rrow"), STORE_READ_ANY, &record, &presence));
    struct attempt attempt = {.r = r, .record = record.bytes};
    failmalloc_each(condemn_without_memory, &attempt);
    store_value_release(&record);
}

static void a_record_tells_whether_it_is_worth_a_look(void **state)
{
    struct recording *r = *state;
    struct buffer few =
        FRAGMENT(cell_entry(FAMILY_F, "a", 3, "x", 1), cell_entry(FAMILY_F, "a", 2, "x", 1),
                 cell_entry(FAMILY_F, "b", 1, "x", 1));
    struct buffer many =
        FRAGMENT(cell_entry(FAMILY_F, "a", 3, "x", 1), cell_entry(FAMILY_F, "a", 2, "x", 1),
                 cell_entry(FAMILY_F, "a", 1, "x", 1));
    bool found = true;
    assert_ok(row_find_condemned(buffer_bytes(&few), r->schema, 0, &found));
    assert_false(found);
    assert_ok(row_find_condemned(buffer_bytes(&many), r->schema, 0, &found));
    assert_true(found);
    assert_ok(row_find_condemned(buffer_bytes(&many), r->f->schema, 0, &found));
    assert_false(found);
    status s = row_find_condemned(bytes_make(many.data, many.size - 1), r->f->schema, 0, &found);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    status_ignore(s);
    buffer_free(&few);
    buffer_free(&many);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wide_row_is_collected_to_its_end),
        TEST(both_sides_of_a_column_go_by_one_range),
        TEST(a_collection_goes_to_the_tablet_that_has_the_row_by_then),
        TEST(a_collection_says_when_memory_runs_out),
        TEST(a_record_tells_whether_it_is_worth_a_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
