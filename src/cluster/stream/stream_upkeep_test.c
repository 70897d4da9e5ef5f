/* How large the log of change streams gets: what goes then, who is told, and what stays so over a
 * restart. */
#include "cluster/stream/stream_upkeep.h"

#include "base/dates.h"
#include "cluster/maintenance.h"
#include "cluster/testing/stream_testing.h"

enum { DAY_SECONDS = 24 * 60 * 60, MB = 1 << 20 };

static void set_quota(struct cluster_fixture *f, uint64_t bytes)
{
    f->options.change_log_bytes = bytes;
    reopen_test_cluster(f);
}

static int setup(void **state)
{
    struct cluster_fixture *f = *state = cluster_fixture_create(NULL);
    assert_ok(metrics_create(&f->options.metrics));
    f->options.maintenance_by_hand = true;
    f->options.overflow_bytes = 4 * MB;
    set_quota(f, 8 * MB);
    switch_stream(f, RETENTION_US);
    return 0;
}

/* A megabyte that does not compress, and a round of maintenance. */
static void write_megabyte(struct cluster_fixture *f, unsigned row)
{
    char key[16];
    static char value[MB];
    unsigned long random = row;
    for (size_t i = 0; i < MB; i++) {
        random = random * 6364136223846793005UL + 1442695040888963407UL;
        value[i] = (char)(random >> 56);
    }
    snprintf(key, sizeof key, "row%u", row);
    struct row_change *change = row_change_create(f->arena);
    row_change_set(change, FAMILY_F, bytes_of("q"), 1, bytes_make(value, MB));
    assert_ok(try_write(f, key, change));
    maintenance_run_round(f->cluster->maintenance);
}

static void write_megabytes(struct cluster_fixture *f, unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        write_megabyte(f, first + i);
}

static struct stream_token token_at(struct cluster_fixture *f, int64_t time_us)
{
    struct stream_token token;
    assert_ok(
        table_stream_token_at(f->table, time_us, bytes_of(""), bytes_of(""), f->arena, &token));
    return token;
}

static status count_rows(void *context, const struct stream_record *record, bool *enough)
{
    unsigned *count = context;
    (void)record, (void)enough;
    ++*count;
    return status_ok();
}

/* The token stays where it is. */
static status try_read(struct cluster_fixture *f, struct stream_token token, unsigned *rows)
{
    bool is_at_end = false;
    struct stream_part part = *token.parts;
    token.parts = &part;
    *rows = 0;
    while (!is_at_end)
        TRY(table_stream_read(f->table, &token, MB, count_rows, rows, &is_at_end));
    return status_ok();
}

static unsigned rows_behind(struct cluster_fixture *f, struct stream_token token)
{
    unsigned rows;
    assert_ok(try_read(f, token, &rows));
    return rows;
}

static uint64_t log_bytes(const struct cluster_fixture *f)
{
    return stream_log_bytes(f->cluster->home->streams);
}

/* Refused, in words that say from when on there is something; and nothing is read. */
static void assert_is_lost(struct cluster_fixture *f, struct stream_token token)
{
    unsigned rows;
    date_text oldest;
    const struct stream_facts facts = table_stream_facts(f->table);
    dates_tell_from(facts.logged_us, oldest);
    status s = try_read(f, token, &rows);
    assert_int_equal(s.code, STATUS_OUT_OF_RANGE);
    assert_non_null(strstr(status_message(s), oldest));
    assert_int_equal(rows, 0);
    status_free(s);
}

static int64_t metric(struct cluster_fixture *f, enum metric which)
{
    cluster_measure(f->cluster);
    return metrics_value(f->options.metrics, which);
}

/* The words; NULL: nothing is short. */
static const char *shortage(struct cluster_fixture *f, struct condition_view *view)
{
    condition_look(f->cluster->condition, view);
    for (size_t i = 0; i < view->count; i++)
        if (view->reasons[i].reason == REASON_change_log_short)
            return view->reasons[i].text;
    return NULL;
}

/* --- tests --- */

static void the_oldest_changes_go_and_readers_are_told(void **state)
{
    struct cluster_fixture *f = *state;
    struct condition_view view;
    struct stream_token early = token_at(f, table_stream_facts(f->table).oldest_us);
    write_megabytes(f, 0, 3);
    struct stream_token behind_three = token_at(f, cluster_version_us(f->cluster));
    write_megabytes(f, 3, 3);
    assert_int_equal(rows_behind(f, early), 6);
    assert_null(shortage(f, &view));
    write_megabytes(f, 6, 3);
    assert_in_range(log_bytes(f), 6 * MB, 8 * MB);
    assert_is_lost(f, early);
    assert_int_equal(rows_behind(f, behind_three), 6);
    write_megabytes(f, 9, 10);
    assert_non_null(strstr(shortage(f, &view), TEST_TABLE));
    for (int i = 0; i < 2; i++) {
        assert_in_range(log_bytes(f), 6 * MB, 8 * MB);
        assert_is_lost(f, early);
        assert_is_lost(f, behind_three);
        assert_int_equal(shortage(f, &view) == NULL, i);
        reopen_test_cluster(f);
        maintenance_run_round(f->cluster->maintenance);
    }
    struct stream_token now = token_at(f, table_stream_facts(f->table).logged_us);
    assert_in_range(rows_behind(f, now), 6, 8);
}

/* A start time that is promised, and not there, is no silent jump either. */
static void a_time_that_is_lost_is_out_of_range(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_token token;
    int64_t early_us = table_stream_facts(f->table).oldest_us;
    write_megabytes(f, 0, 12);
    const struct stream_facts facts = table_stream_facts(f->table);
    assert_int_equal(facts.oldest_us, early_us);
    assert_true(facts.logged_us > early_us);
    assert_int_equal(stream_facts_from(&facts), facts.logged_us);
    assert_status(table_stream_token_at(f->table, facts.logged_us - 1, bytes_of(""), bytes_of(""),
                                        f->arena, &token),
                  STATUS_OUT_OF_RANGE);
    assert_ok(table_stream_token_at(f->table, facts.logged_us, bytes_of(""), bytes_of(""), f->arena,
                                    &token));
}

static void a_log_without_a_bound_keeps_all(void **state)
{
    struct cluster_fixture *f = *state;
    struct condition_view view;
    set_quota(f, 0);
    struct stream_token early = token_at(f, table_stream_facts(f->table).oldest_us);
    write_megabytes(f, 0, 20);
    assert_int_equal(rows_behind(f, early), 20);
    assert_null(shortage(f, &view));
    assert_int_equal(metric(f, METRIC_change_log_quota_bytes), 0);
    set_quota(f, 4 * MB); /* counts for what there is, too */
    write_megabytes(f, 20, 2);
    assert_is_lost(f, early);
    assert_true(log_bytes(f) <= 20 * MB);
}

/* With a start that lets the log have more, or what is missing is not promised any more. */
static void the_shortage_ends(void **state)
{
    struct cluster_fixture *f = *state;
    struct condition_view view;
    write_megabytes(f, 0, 12);
    assert_non_null(shortage(f, &view));
    set_quota(f, 64 * MB);
    maintenance_run_round(f->cluster->maintenance);
    assert_null(shortage(f, &view));
    write_megabytes(f, 12, 12);
    assert_null(shortage(f, &view));
    set_quota(f, 8 * MB);
    maintenance_run_round(f->cluster->maintenance);
    assert_non_null(shortage(f, &view));
    switch_stream(f, 0);
    switch_stream(f, RETENTION_US); /* another one, from now on */
    maintenance_run_round(f->cluster->maintenance);
    assert_null(shortage(f, &view));
}

static void the_log_gives_way_where_space_is_short(void **state)
{
    struct cluster_fixture *f = *state;
    struct condition_view view;
    set_quota(f, 0);
    struct stream_token early = token_at(f, table_stream_facts(f->table).oldest_us);
    set_quota(f, 16 * MB);
    write_megabytes(f, 0, 6);
    assert_int_equal(rows_behind(f, early), 6);
    f->options.disk_reserve_bytes = UINT64_MAX;
    reopen_test_cluster(f);
    maintenance_run_round(f->cluster->maintenance);
    assert_is_lost(f, early);
    assert_non_null(strstr(shortage(f, &view), "space is short"));
    assert_int_equal(metric(f, METRIC_change_log_segments), 1);
    f->options.disk_reserve_bytes = 0;
    reopen_test_cluster(f);
    maintenance_run_round(f->cluster->maintenance);
    assert_null(shortage(f, &view));
}

static void the_log_is_measured(void **state)
{
    struct cluster_fixture *f = *state;
    assert_int_equal(metric(f, METRIC_change_log_quota_bytes), 8 * MB);
    assert_int_equal(metric(f, METRIC_change_log_bytes), 0);
    assert_int_equal(metric(f, METRIC_change_log_segments), 1);
    write_megabytes(f, 0, 12);
    assert_in_range(metric(f, METRIC_change_log_bytes), 6 * MB, 8 * MB);
    assert_in_range(metric(f, METRIC_change_log_written_bytes_total), 12 * MB, 12 * MB + 4096);
    int64_t evicted = metric(f, METRIC_change_log_evicted_segments_total);
    assert_true(evicted > 0);
    assert_in_range(metric(f, METRIC_change_log_evicted_bytes_total), 4 * MB, 12 * MB);
    assert_true(metric(f, METRIC_change_log_reach_seconds) > 0);
    maintenance_run_round(f->cluster->maintenance);
    assert_int_equal(metric(f, METRIC_change_log_evicted_segments_total), evicted);
}

static void what_the_log_has_of_a_table_is_estimated(void **state)
{
    struct cluster_fixture *f = *state;
    set_quota(f, 0);
    assert_true(table_stream_log_bytes(f->table) < MB);
    write_megabytes(f, 0, 3);
    split_at(f, "row1");
    write_megabytes(f, 3, 3);
    assert_in_range(table_stream_log_bytes(f->table), 4 * MB, 10 * MB);
    switch_stream(f, 0);
    assert_int_equal(table_stream_log_bytes(f->table), 0);
}

/* As a salvage may leave it: its table has a stream, and the next write has to go somewhere. */
static void a_start_without_the_open_segment_begins_another(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_token early = token_at(f, table_stream_facts(f->table).oldest_us);
    write_megabytes(f, 0, 1);
    struct store *store = f->cluster->home->store;
    for (size_t i = 0; store_keyspace_at(store, i) != NULL;) {
        struct keyspace *keyspace = store_keyspace_at(store, i);
        if (keyspace_kind(keyspace) == KEYSPACE_LOG)
            assert_ok(store_keyspace_drop(store, keyspace));
        else
            i++;
    }
    table_release(f->table);
    close_test_cluster(f);
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    write_megabytes(f, 1, 1);
    assert_is_lost(f, early);
    struct stream_token left = token_at(f, table_stream_facts(f->table).logged_us);
    assert_int_equal(rows_behind(f, left), 1);
}

#define UPKEEP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, cluster_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UPKEEP_TEST(the_oldest_changes_go_and_readers_are_told),
        UPKEEP_TEST(a_time_that_is_lost_is_out_of_range),
        UPKEEP_TEST(a_log_without_a_bound_keeps_all),
        UPKEEP_TEST(the_shortage_ends),
        UPKEEP_TEST(the_log_gives_way_where_space_is_short),
        UPKEEP_TEST(the_log_is_measured),
        UPKEEP_TEST(a_start_without_the_open_segment_begins_another),
        UPKEEP_TEST(what_the_log_has_of_a_table_is_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
