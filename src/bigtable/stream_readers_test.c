/* Who reads change streams: how far each is behind, and what metrics say of very many. */
#include "bigtable/stream_readers.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "base/testing/testing.h"
#include "cluster/stream/table_stream.h"

#include <stdio.h>

enum { TABLES = LIMIT_TABLE_METRICS + 20, NOW_SECONDS = 1000000, RETENTION_SECONDS = 86400 };
#define SECOND_US INT64_C(1000000)

/* --- tables of our own --- */

struct table {
    char name[16];
    uint64_t id;
    int references;
};

static struct table tables[TABLES];

void table_retain(struct table *table)
{
    table->references++;
}

void table_release(struct table *table)
{
    table->references--;
}

const char *table_name(const struct table *table)
{
    return table->name;
}

uint64_t table_id(const struct table *table)
{
    return table->id;
}

struct cluster *table_cluster(const struct table *table)
{
    (void)table;
    return NULL;
}

int64_t cluster_version_us(struct cluster *cluster)
{
    (void)cluster;
    return NOW_SECONDS * SECOND_US;
}

struct stream_facts table_stream_facts(struct table *table)
{
    (void)table;
    return (struct stream_facts){.retention_us = RETENTION_SECONDS * SECOND_US};
}

/* --- the fixture --- */

struct fixture {
    struct stream_readers readers;
    struct metrics *metrics;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_ok(metrics_create(&f->metrics));
    for (unsigned i = 0; i < TABLES; i++) {
        tables[i] = (struct table){.id = i + 1};
        snprintf(tables[i].name, sizeof tables[i].name, "t%u", i);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < TABLES; i++)
        assert_int_equal(tables[i].references, 0);
    metrics_destroy(f->metrics);
    free(f);
    return 0;
}

static struct stream_reader reader_of(unsigned table, int64_t behind_seconds)
{
    struct stream_reader reader = {.table = &tables[table], .profile = ""};
    atomic_init(&reader.position_us, (NOW_SECONDS - behind_seconds) * SECOND_US);
    return reader;
}

/* A series of the page; -1: it is not there. */
static long series(struct fixture *f, const char *family, const char *table)
{
    struct buffer page = {0};
    char wanted[100];
    stream_readers_measure(&f->readers, f->metrics);
    metrics_write(f->metrics, false, &page);
    buffer_append_byte(&page, 0);
    snprintf(wanted, sizeof wanted, "\ntrestle_table_change_stream_%s{table=\"%s\"} ", family,
             table);
    const char *found = strstr((const char *)page.data, wanted);
    long value = found == NULL ? -1 : strtol(found + strlen(wanted), NULL, 10);
    buffer_free(&page);
    return value;
}

/* --- tests --- */

static void the_slowest_of_a_table_is_told(void **state)
{
    struct fixture *f = *state;
    struct stream_reader all[] = {reader_of(3, 5), reader_of(7, 100), reader_of(3, 9),
                                  reader_of(3, -5)};
    for (size_t i = 0; i < 4; i++)
        assert_ok(stream_readers_enter(&f->readers, &all[i]));
    assert_int_equal(series(f, "readers", "t3"), 3);
    assert_int_equal(series(f, "lag_seconds", "t3"), 9);
    assert_int_equal(series(f, "left_seconds", "t3"), RETENTION_SECONDS - 9);
    assert_int_equal(series(f, "lag_seconds", "t7"), 100);
    assert_int_equal(metrics_value(f->metrics, METRIC_change_streams), 4);
    assert_int_equal(metrics_value(f->metrics, METRIC_change_stream_lag_seconds), 100 * SECOND_US);
    atomic_store(&all[1].has_all, true);
    assert_int_equal(series(f, "lag_seconds", "t7"), 0);
    stream_readers_leave(&f->readers, &all[2]);
    assert_int_equal(series(f, "lag_seconds", "t3"), 5);
    stream_readers_leave(&f->readers, &all[0]);
    stream_readers_leave(&f->readers, &all[3]);
    assert_int_equal(series(f, "readers", "t3"), -1);
    stream_readers_leave(&f->readers, &all[1]);
    assert_int_equal(series(f, "readers", "t7"), -1);
    assert_int_equal(metrics_value(f->metrics, METRIC_change_stream_lag_seconds), 0);
    struct stream_reader again = reader_of(1, 1);
    assert_ok(stream_readers_enter(&f->readers, &again));
    assert_int_equal(series(f, "readers", "t1"), 1);
}

static void one_that_is_behind_its_retention_has_nothing_left(void **state)
{
    struct fixture *f = *state;
    struct stream_reader late = reader_of(0, 2 * RETENTION_SECONDS);
    assert_ok(stream_readers_enter(&f->readers, &late));
    assert_int_equal(series(f, "left_seconds", "t0"), 0);
}

/* Those of the least lag share a series. */
static void of_many_tables_the_slowest_are_named(void **state)
{
    struct fixture *f = *state;
    static struct stream_reader all[TABLES];
    for (unsigned i = 0; i < TABLES; i++) {
        all[i] = reader_of(i, i);
        assert_ok(stream_readers_enter(&f->readers, &all[i]));
    }
    unsigned unnamed = TABLES - LIMIT_TABLE_METRICS;
    assert_int_equal(series(f, "readers", "other"), unnamed);
    assert_int_equal(series(f, "lag_seconds", "other"), unnamed - 1);
    assert_int_equal(series(f, "left_seconds", "other"), RETENTION_SECONDS - (unnamed - 1));
    assert_int_equal(series(f, "lag_seconds", "t19"), -1);
    assert_int_equal(series(f, "lag_seconds", "t20"), 20);
}

static void there_are_so_many_at_most(void **state)
{
    struct fixture *f = *state;
    struct stream_reader *all = calloc(LIMIT_CHANGE_STREAMS + 1, sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < LIMIT_CHANGE_STREAMS; i++) {
        all[i] = reader_of(0, 1);
        assert_ok(stream_readers_enter(&f->readers, &all[i]));
    }
    all[LIMIT_CHANGE_STREAMS] = reader_of(0, 1);
    assert_status(stream_readers_enter(&f->readers, &all[LIMIT_CHANGE_STREAMS]),
                  STATUS_RESOURCE_EXHAUSTED);
    stream_readers_leave(&f->readers, &all[0]);
    assert_ok(stream_readers_enter(&f->readers, &all[LIMIT_CHANGE_STREAMS]));
    free(all);
}

/* They are of 1 MiB: all readers together may not have many. */
static void few_pieces_are_kept(void **state)
{
    struct fixture *f = *state;
    size_t kept = 0;
    while (kept < 100 && stream_readers_may_keep(&f->readers))
        kept++;
    assert_in_range(kept, 1, 32);
    assert_false(stream_readers_may_keep(&f->readers));
    stream_readers_give_back(&f->readers);
    assert_true(stream_readers_may_keep(&f->readers));
    for (size_t i = 0; i < kept; i++)
        stream_readers_give_back(&f->readers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_slowest_of_a_table_is_told),
        TEST(one_that_is_behind_its_retention_has_nothing_left),
        TEST(of_many_tables_the_slowest_are_named),
        TEST(there_are_so_many_at_most),
        TEST(few_pieces_are_kept),
    };
    return cmocka_run_group_tests_name("stream_readers", tests, NULL, NULL);
}
