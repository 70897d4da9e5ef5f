/* Tests of what becomes of tables at rest (idle_compaction.h): rows in many pieces are put
 * together, and what is written once, or small, or still being written stays as it is, unless it
 * costs those who read it. */
#include "cluster/idle_compaction.h"

#include "cluster/testing/testing.h"

enum {
    ROWS = 64,
    VALUE_SIZE = 8 << 10,
    VERSIONS = 12, /* 6 MiB in all */
    LOOKS = 6,     /* more than it takes until a table is at rest */
    ATTEMPTS = 5,
};

static int set_up(void **state)
{
    struct cluster_fixture *f = *state = cluster_fixture_create(NULL);
    table_release(f->table);
    close_test_cluster(f);
    f->options.overflow_bytes = 1 << 20; /* values stay in their rows */
    assert_ok(metrics_create(&f->options.metrics));
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    return 0;
}

static int tear_down(void **state)
{
    struct cluster_fixture *f = *state;
    struct metrics *metrics = f->options.metrics;
    cluster_fixture_destroy(f);
    metrics_destroy(metrics);
    return 0;
}

static void format_key(unsigned row, char key[16])
{
    snprintf(key, 16, "row%05u", row);
}

/* Each value is of `version`, and of VALUE_SIZE bytes. */
static void write_rows(struct cluster_fixture *f, unsigned first, unsigned count, unsigned version)
{
    static char value[VALUE_SIZE + 1];
    char key[16];
    memset(value, 'a' + (int)version, VALUE_SIZE);
    for (unsigned row = first; row < first + count; row++) {
        format_key(row, key);
        set_cell(f, key, value);
    }
}

static void overwrite_rows(struct cluster_fixture *f)
{
    for (unsigned version = 0; version < VERSIONS; version++)
        write_rows(f, 0, ROWS, version);
}

/* A value that compression leaves as large as it is. */
static void set_noise(struct cluster_fixture *f, unsigned row)
{
    static char value[VALUE_SIZE + 1];
    static uint32_t noise = 1;
    char key[16];
    for (unsigned i = 0; i < VALUE_SIZE; i++) {
        noise = noise * 1664525 + 1013904223; /* a linear congruential generator */
        value[i] = (char)('!' + (noise >> 16) % 90);
    }
    format_key(row, key);
    set_cell(f, key, value);
}

/* Operands of the row that a reader has to fold; sets the first byte of its value. */
static size_t operands_of(struct cluster_fixture *f, unsigned row, char *first)
{
    char key[16];
    struct row_read_options options = {.store = f->cluster->home->store,
                                       .schema = table_schema(f->table),
                                       .size_limit = UINT64_MAX};
    struct row found = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    format_key(row, key);
    assert_ok(
        row_read(tablet->keyspace, &options, bytes_of(key), STORE_READ_ANY, &found, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    assert_int_equal(found.cells.count, 1);
    *first = (char)found.cells.items[0].value.data[0];
    size_t count = found.value.folded.count;
    row_clear(&found);
    arena_destroy(found.cells.arena);
    tablet_release(tablet);
    return count;
}

/* Operands of all rows, which are at this version. */
static size_t operands_of_all(struct cluster_fixture *f, unsigned version)
{
    size_t sum = 0;
    for (unsigned row = 0; row < ROWS; row++) {
        char first;
        sum += operands_of(f, row, &first);
        assert_int_equal(first, 'a' + (int)version);
    }
    return sum;
}

static void let_it_rest(struct cluster_fixture *f)
{
    for (int i = 0; i < LOOKS; i++)
        maintenance_run_once(f->cluster->maintenance);
}

static int64_t compacted(struct cluster_fixture *f)
{
    return metrics_value(f->options.metrics, METRIC_tables_settled_total);
}

/* Once more if the machine held up the writing so long that the table seemed to be at rest. */
static void rows_in_pieces_are_put_together(void **state)
{
    struct cluster_fixture *f = *state;
    size_t operands = SIZE_MAX;
    for (int i = 0; i < ATTEMPTS && operands > 0; i++) {
        overwrite_rows(f);
        let_it_rest(f);
        operands = operands_of_all(f, VERSIONS - 1);
    }
    assert_int_equal(operands, 0);
    assert_true(compacted(f) > 0);
}

static void a_table_is_put_together_once(void **state)
{
    struct cluster_fixture *f = *state;
    overwrite_rows(f);
    let_it_rest(f);
    int64_t before = compacted(f);
    let_it_rest(f);
    write_rows(f, 0, 1, VERSIONS); /* too little */
    let_it_rest(f);
    assert_int_equal(compacted(f), before);
}

static void rows_that_were_split_apart_count_too(void **state)
{
    struct cluster_fixture *f = *state;
    split_at(f, "row00020");
    split_at(f, "row00040");
    overwrite_rows(f);
    merge_at(f, "row00020"); /* counts from 0 */
    overwrite_rows(f);
    let_it_rest(f);
    assert_true(compacted(f) > 0);
}

/* A load: as much, but no row twice. */
static void rows_in_one_piece_are_left_alone(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 0, ROWS * VERSIONS, 0);
    let_it_rest(f);
    assert_int_equal(compacted(f), 0);
    assert_int_equal(operands_of_all(f, 0), ROWS);
}

static void little_is_left_alone(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned version = 0; version < VERSIONS; version++)
        write_rows(f, 0, ROWS / 2, version);
    let_it_rest(f);
    assert_int_equal(compacted(f), 0);
}

/* --- what readers pay for --- */

enum { LITTLE = ROWS / 2, READS = 40 };

/* Too little for a table at rest, but its readers fold all of it each time. */
static void write_little(struct cluster_fixture *f)
{
    for (unsigned version = 0; version < VERSIONS; version++)
        write_rows(f, 0, LITTLE, version);
}

static void read_rows(struct cluster_fixture *f, unsigned count, unsigned times)
{
    char first;
    for (unsigned i = 0; i < times; i++)
        for (unsigned row = 0; row < count; row++)
            operands_of(f, row, &first);
}

static void what_readers_go_through_often_is_put_together(void **state)
{
    struct cluster_fixture *f = *state;
    char first;
    write_little(f);
    let_it_rest(f);
    assert_int_equal(compacted(f), 0);
    read_rows(f, LITTLE, READS);
    let_it_rest(f);
    assert_int_equal(compacted(f), 1);
    assert_int_equal(operands_of(f, 0, &first), 0);
    assert_int_equal(first, 'a' + VERSIONS - 1);
    read_rows(f, LITTLE, READS); /* costs nothing any more */
    let_it_rest(f);
    assert_int_equal(compacted(f), 1);
}

static void what_readers_go_through_seldom_is_left_alone(void **state)
{
    struct cluster_fixture *f = *state;
    write_little(f);
    read_rows(f, LITTLE, 1);
    let_it_rest(f);
    assert_int_equal(compacted(f), 0);
}

/* However often it is read: of all rows one was written again. */
static void little_that_was_written_since_is_left_alone(void **state)
{
    struct cluster_fixture *f = *state;
    write_little(f);
    for (unsigned row = 0; row < LITTLE; row++)
        set_noise(f, row);
    read_rows(f, LITTLE, READS);
    let_it_rest(f);
    assert_int_equal(compacted(f), 1);
    set_noise(f, 0);
    read_rows(f, 1, LITTLE * READS);
    let_it_rest(f);
    assert_int_equal(compacted(f), 1);
    for (unsigned row = 0; row < LITTLE; row++)
        set_noise(f, row);
    read_rows(f, LITTLE, READS);
    let_it_rest(f);
    assert_int_equal(compacted(f), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_in_pieces_are_put_together),
        TEST(a_table_is_put_together_once),
        TEST(rows_that_were_split_apart_count_too),
        TEST(rows_in_one_piece_are_left_alone),
        TEST(little_is_left_alone),
        TEST(what_readers_go_through_often_is_put_together),
        TEST(what_readers_go_through_seldom_is_left_alone),
        TEST(little_that_was_written_since_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
