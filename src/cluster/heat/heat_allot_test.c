/* Ranges go to the tables that are asked for, from second to second. */
#include "cluster/heat/heat_allot.h"

#include "base/testing/testing_clock.h"
#include "cluster/heat/heat_hotspots.h"
#include "cluster/testing/testing.h"

static struct turned_clock hands = {.clock = TURNED_CLOCK};

enum { TABLES = 10, ROWS = 1100, VALUE = 200, EVEN = HEAT_MOST_IN_ALL / TABLES };
static const int64_t SECOND_US = 1000000;

struct fixture {
    struct cluster_fixture *f;
    struct table *tables[TABLES];
};

static struct table *make_table(struct cluster_fixture *f, unsigned i)
{
    char name[64];
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    struct schema *schema;
    struct table *table;
    snprintf(name, sizeof name, "projects/p/instances/i/tables/busy-%u", i);
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

static int setup(void **state)
{
    struct fixture *all = calloc(1, sizeof *all);
    assert_non_null(all);
    all->f = cluster_fixture_create(NULL);
    hands.now_us = INT64_C(50) * 365 * 24 * 3600 * SECOND_US;
    all->f->options.clock = &hands.clock;
    all->f->options.heat_window_us = 60 * SECOND_US;
    all->f->options.maintenance_by_hand = true;
    reopen_test_cluster(all->f);
    for (unsigned i = 0; i < TABLES; i++)
        all->tables[i] = make_table(all->f, i);
    *state = all;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *all = *state;
    for (unsigned i = 0; i < TABLES; i++)
        table_release(all->tables[i]);
    cluster_fixture_destroy(all->f);
    free(all);
    return 0;
}

static void write_rows(struct fixture *all, unsigned table, unsigned rows)
{
    struct cluster_fixture of_table = *all->f;
    char value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    of_table.table = all->tables[table];
    for (unsigned i = 0; i < rows; i++) {
        char key[8];
        snprintf(key, sizeof key, "%05u", i);
        set_cell(&of_table, key, value);
    }
}

static void pass(struct fixture *all, int64_t seconds)
{
    hands.now_us += seconds * SECOND_US;
    maintenance_run_once(all->f->cluster->maintenance);
}

static size_t ranges_of(const struct fixture *all, unsigned table)
{
    return heat_table_ranges(all->tables[table]);
}

static size_t ranges_in_all(const struct fixture *all)
{
    size_t sum = 0;
    for (unsigned i = 0; i < TABLES; i++)
        sum += ranges_of(all, i);
    return sum;
}

static void ask_for_all(struct fixture *all)
{
    for (unsigned i = 0; i < TABLES; i++)
        write_rows(all, i, ROWS);
    pass(all, 1);
    for (unsigned i = 0; i < TABLES; i++)
        assert_in_range(ranges_of(all, i), EVEN / 4, EVEN);
    assert_true(ranges_in_all(all) <= HEAT_MOST_IN_ALL);
}

/* The first tables once kept their ranges for an hour, and others had one range each. */
static void idle_tables_give_theirs_up_to_a_busy_one(void **state)
{
    struct fixture *all = *state;
    ask_for_all(all);
    for (unsigned i = 0; i < 8; i++) {
        write_rows(all, 0, 100);
        write_rows(all, 1, 100);
        pass(all, 11);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_in_range(ranges_of(all, i), HEAT_MOST_RANGES * 2 / 5, HEAT_MOST_RANGES);
    assert_true(ranges_of(all, 0) + ranges_of(all, 1) > 2 * EVEN);
    assert_true(ranges_in_all(all) <= HEAT_MOST_IN_ALL);
}

/* Those of which the last window is over choose no more: theirs are taken from them. */
static void tables_that_are_idle_for_long_give_theirs_up(void **state)
{
    enum { FORMER = 6 };
    struct fixture *all = *state;
    for (unsigned i = 0; i < FORMER; i++)
        write_rows(all, i, ROWS);
    for (unsigned i = 0; i < 3; i++)
        pass(all, 60);
    assert_true(ranges_in_all(all) > HEAT_MOST_IN_ALL / 2);
    for (unsigned i = FORMER; i < TABLES; i++)
        write_rows(all, i, ROWS);
    pass(all, 1);
    for (unsigned i = FORMER; i < TABLES; i++)
        assert_true(ranges_of(all, i) > HEAT_MOST_RANGES / 2);
    assert_true(ranges_in_all(all) <= HEAT_MOST_IN_ALL);
}

static void idle_tables_keep_theirs_while_nobody_lacks_any(void **state)
{
    struct fixture *all = *state;
    write_rows(all, 0, ROWS);
    write_rows(all, 1, ROWS);
    pass(all, 1);
    size_t had = ranges_of(all, 0);
    assert_true(had > EVEN);
    for (unsigned i = 0; i < 8; i++) {
        write_rows(all, 1, 100);
        pass(all, 11);
    }
    assert_int_equal(ranges_of(all, 0), had);
}

static void a_busy_table_makes_room_for_others_as_busy(void **state)
{
    struct fixture *all = *state;
    write_rows(all, 0, ROWS);
    pass(all, 1);
    assert_true(ranges_of(all, 0) > EVEN);
    pass(all, 40);
    for (unsigned i = 1; i < TABLES; i++)
        write_rows(all, i, ROWS);
    write_rows(all, 0, 100);
    for (unsigned i = 0; i < 3; i++)
        pass(all, 1);
    for (unsigned i = 1; i < TABLES; i++)
        assert_in_range(ranges_of(all, i), EVEN / 4, 2 * EVEN);
    assert_true(ranges_of(all, 0) < EVEN);
    assert_true(ranges_in_all(all) <= HEAT_MOST_IN_ALL);
}

/* Tables that were asked for within the hour had all ranges, and a new one had one: whatever was
 * hot in it was not seen for as long. */
static void a_hot_prefix_among_many_tables(void **state)
{
    enum { OTHERS = 150, FILLED = 2500, LOAD = 4000, HOT = 50 };
    struct fixture *all = *state;
    struct cluster_fixture other = *all->f;
    struct heat_hotspot *hotspots;
    size_t count, hot = 0;
    char key[16];
    ask_for_all(all);
    for (unsigned i = 0; i < OTHERS; i++) {
        other.table = make_table(all->f, TABLES + i);
        for (unsigned j = 0; j < 3; j++) {
            snprintf(key, sizeof key, "%u", j);
            set_cell(&other, key, "v");
        }
        table_release(other.table);
    }
    pass(all, 60);
    other.table = make_table(all->f, TABLES + OTHERS);
    for (unsigned i = 0; i < FILLED; i++) {
        snprintf(key, sizeof key, "%05u", i * 1201 % FILLED);
        set_cell(&other, key, "v");
    }
    pass(all, 60);
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < LOAD; i++) {
        snprintf(key, sizeof key, "%05u", i % 9 == 0 ? i * 1201 % FILLED : 700 + i * 7 % HOT);
        set_cell(&other, key, "w");
    }
    pass(all, 60);
    assert_ok(
        heat_hotspots_read(other.table, from_us, hands.now_us, all->f->arena, &hotspots, &count));
    for (size_t i = 0; i < count; i++)
        hot += hotspots[i].kind == HEAT_HOTSPOT_HOT_WRITES && hotspots[i].part <= 0.1 &&
               bytes_compare(hotspots[i].start, bytes_of("00650")) > 0;
    assert_int_equal(hot, 1);
    table_release(other.table);
}

/* Three tables that are asked for are counted as finely whether they are all that there is, or
 * there are a thousand that were asked for, too, some time before. */
static void three_hot_tables_among_a_thousand(void **state)
{
    enum { HOT = 3, OTHERS = 1000 - TABLES - 1 /* the fixture's */ };
    struct fixture *all = *state;
    struct cluster_fixture other = *all->f;
    size_t alone[HOT];
    for (unsigned i = 0; i < HOT; i++)
        write_rows(all, i, ROWS);
    pass(all, 1);
    for (unsigned i = 0; i < HOT; i++)
        alone[i] = ranges_of(all, i);
    for (unsigned i = HOT; i < TABLES; i++)
        write_rows(all, i, ROWS);
    for (unsigned i = 0; i < OTHERS; i++) {
        other.table = make_table(all->f, TABLES + i);
        set_cell(&other, "a", "v");
        set_cell(&other, "b", "v");
        table_release(other.table);
        arena_reset(all->f->arena);
    }
    pass(all, 1);
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < HOT; i++)
            write_rows(all, i, 100);
        pass(all, 11);
    }
    for (unsigned i = 0; i < HOT; i++)
        assert_int_equal(ranges_of(all, i), alone[i]);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(idle_tables_give_theirs_up_to_a_busy_one),
        TEST(tables_that_are_idle_for_long_give_theirs_up),
        TEST(idle_tables_keep_theirs_while_nobody_lacks_any),
        TEST(a_busy_table_makes_room_for_others_as_busy),
        TEST(a_hot_prefix_among_many_tables),
        TEST(three_hot_tables_among_a_thousand),
    };
    return cmocka_run_group_tests_name("cluster_heat_allot", tests, NULL, NULL);
}
