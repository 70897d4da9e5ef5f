/* Tests of traffic.h: what is told of tables, and which of them have a name. */
#include "cluster/traffic.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "cluster/testing/testing.h"

#define HOUR_US (INT64_C(3600) * 1000000)

/* --- the rule --- */

enum { MB = 1 << 20, FEW = 4 };

struct weighed {
    struct table_traffic tables[FEW];
    struct table_traffic *list[FEW];
};

static void weigh(struct weighed *w, const uint64_t *megabytes)
{
    for (size_t i = 0; i < FEW; i++) {
        w->tables[i].bytes = megabytes[i] * MB;
        w->list[i] = &w->tables[i];
    }
}

/* "ac": the first and the third have a name. */
static const char *named(const struct weighed *w)
{
    static char text[FEW + 1];
    size_t at = 0;
    for (size_t i = 0; i < FEW; i++)
        if (w->tables[i].is_named)
            text[at++] = (char)('a' + i);
    text[at] = '\0';
    return text;
}

static void all_tables_have_series_if_there_is_room(void **state)
{
    (void)state;
    struct weighed w = {0};
    weigh(&w, (uint64_t[]){0, 5, 1, 0});
    traffic_choose(w.list, FEW, FEW);
    assert_string_equal(named(&w), "abcd");
    traffic_choose(w.list, 0, FEW);
}

static void the_heaviest_at_first(void **state)
{
    (void)state;
    struct weighed w = {0};
    weigh(&w, (uint64_t[]){3, 50, 10, 40});
    traffic_choose(w.list, FEW, 2);
    assert_string_equal(named(&w), "bd");
}

/* Tables that take turns in being a little larger keep what they have. */
static void no_name_changes_for_little(void **state)
{
    (void)state;
    struct weighed w = {0};
    weigh(&w, (uint64_t[]){10, 9, 1, 1});
    traffic_choose(w.list, FEW, 1);
    assert_string_equal(named(&w), "a");
    weigh(&w, (uint64_t[]){10, 20, 1, 1});
    traffic_choose(w.list, FEW, 1);
    assert_string_equal(named(&w), "a");
    weigh(&w, (uint64_t[]){10, 22, 1, 1});
    traffic_choose(w.list, FEW, 1);
    assert_string_equal(named(&w), "b");
    weigh(&w, (uint64_t[]){40, 22, 1, 1});
    traffic_choose(w.list, FEW, 1);
    assert_string_equal(named(&w), "b");
}

/* Small ones of which much is read are worth a name, too. */
static void busy_tables_are_heavy(void **state)
{
    (void)state;
    struct weighed w = {0};
    weigh(&w, (uint64_t[]){100, 100, 1, 1});
    traffic_choose(w.list, FEW, 2);
    assert_string_equal(named(&w), "ab");
    w.tables[3].lately = (uint64_t)300 * MB;
    traffic_choose(w.list, FEW, 2);
    assert_string_equal(named(&w), "bd");
}

static void past_traffic_fades(void **state)
{
    (void)state;
    assert_int_equal(traffic_fade(1000, 0), 1000);
    assert_int_equal(traffic_fade(1000, HOUR_US / 10), 900);
    assert_int_equal(traffic_fade(1000, HOUR_US), 0);
    assert_int_equal(traffic_fade(1000, 10 * HOUR_US), 0);
}

/* --- a cluster --- */

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    assert_ok(metrics_create(&f->options.metrics));
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

struct wanted {
    const char *name;
    const char *table;
    double value;
    size_t found;
    size_t series; /* of that name */
};

static void find(void *context, const struct metric_sample *sample)
{
    struct wanted *wanted = context;
    if (strcmp(sample->name, wanted->name) != 0)
        return;
    wanted->series++;
    if (strcmp(sample->labels[0].value, wanted->table) != 0)
        return;
    wanted->found++;
    wanted->value = sample->value;
}

static struct wanted look_for(struct cluster_fixture *f, const char *name, const char *table)
{
    struct wanted wanted = {.name = name, .table = table};
    traffic_measure(f->cluster);
    metrics_visit(f->options.metrics, find, &wanted);
    return wanted;
}

/* -1: there is no such series. */
static double told(struct cluster_fixture *f, const char *name, const char *table)
{
    struct wanted wanted = look_for(f, name, table);
    assert_true(wanted.found <= 1);
    return wanted.found == 0 ? -1 : wanted.value;
}

#define ROWS_READ     "trestle_table_rows_read_total"
#define ROWS_WRITTEN  "trestle_table_rows_written_total"
#define READ_BYTES    "trestle_table_read_bytes_total"
#define WRITTEN_BYTES "trestle_table_written_bytes_total"

static void reads_and_writes_are_counted(void **state)
{
    struct cluster_fixture *f = *state;
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 0);
    assert_true(told(f, ROWS_WRITTEN, "other") == 0);
    set_cell(f, "a", "12345678901234567890");
    set_cell(f, "b", "12345678901234567890");
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 2);
    assert_true(told(f, WRITTEN_BYTES, TEST_TABLE) > 40);
    assert_true(told(f, READ_BYTES, TEST_TABLE) == 0);
    assert_scan(f, "", "", false, "a=12345678901234567890 b=12345678901234567890");
    double rows = told(f, ROWS_READ, TEST_TABLE), bytes = told(f, READ_BYTES, TEST_TABLE);
    assert_true(rows >= 2);
    assert_true(bytes > 40);
    const struct key_range point = {.from = bytes_of("a"), .is_point = true};
    struct buffer text = {0};
    assert_ok(scan_text(f, &point, 1, false, 0, &text));
    buffer_free(&text);
    assert_true(told(f, ROWS_READ, TEST_TABLE) == rows + 1);
    assert_true(told(f, READ_BYTES, TEST_TABLE) > bytes + 20);
    assert_true(told(f, ROWS_WRITTEN, "other") == 0);
}

/* Also if the first look at it is not for metrics, and comes when it has been written to. */
static void a_new_table_counts_for_itself_from_the_start(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    maintenance_run_once(f->cluster->maintenance);
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 1);
    assert_true(told(f, ROWS_WRITTEN, "other") == 0);
}

static void splits_and_merges_lose_nothing(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    split_at(f, "m");
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 1);
    set_cell(f, "a", "1");
    set_cell(f, "z", "1");
    merge_at(f, "m");
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 3);
    set_cell(f, "z", "1");
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 4);
}

static void sizes_are_measured_by_maintenance(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "12345678901234567890");
    maintenance_run_once(f->cluster->maintenance);
    assert_true(told(f, "trestle_table_bytes", TEST_TABLE) > 20);
}

static void create_table(struct cluster_fixture *f, const char *name)
{
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, NULL, 0, 1, &schema));
    const struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
}

/* However many there are, and also if the first one's name is taken away. */
static void series_are_bounded(void **state)
{
    struct cluster_fixture *f = *state;
    char name[64];
    set_cell(f, "a", "1");
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 1);
    for (int i = 0; i < LIMIT_TABLE_METRICS; i++) {
        snprintf(name, sizeof name, "projects/p/instances/i/tables/n%03d", i);
        create_table(f, name);
    }
    struct wanted all = look_for(f, ROWS_WRITTEN, "other");
    assert_int_equal(all.series, LIMIT_TABLE_METRICS + 1);
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == 1);
    f->table->traffic.is_named = false;
    struct table *heavy =
        cluster_table_from(f->cluster, bytes_of("projects/p/instances/i/tables/n099"));
    heavy->traffic.is_named = true;
    table_release(heavy);
    set_cell(f, "a", "2");
    assert_true(told(f, ROWS_WRITTEN, TEST_TABLE) == -1);
    assert_true(told(f, ROWS_WRITTEN, "other") == 1); /* what it had stays where it was told */
    assert_int_equal(look_for(f, ROWS_WRITTEN, "other").series, LIMIT_TABLE_METRICS + 1);
}

static void deleted_tables_are_not_told(void **state)
{
    struct cluster_fixture *f = *state;
    create_table(f, "projects/p/instances/i/tables/short");
    assert_true(told(f, ROWS_WRITTEN, "projects/p/instances/i/tables/short") == 0);
    assert_ok(
        cluster_delete_table(f->cluster, bytes_of("projects/p/instances/i/tables/short"), NULL));
    assert_true(told(f, ROWS_WRITTEN, "projects/p/instances/i/tables/short") == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tables_have_series_if_there_is_room),
        cmocka_unit_test(the_heaviest_at_first),
        cmocka_unit_test(no_name_changes_for_little),
        cmocka_unit_test(busy_tables_are_heavy),
        cmocka_unit_test(past_traffic_fades),
        cmocka_unit_test_setup_teardown(reads_and_writes_are_counted, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_new_table_counts_for_itself_from_the_start, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(splits_and_merges_lose_nothing, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(sizes_are_measured_by_maintenance, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(series_are_bounded, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(deleted_tables_are_not_told, setup,
                                        cluster_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
