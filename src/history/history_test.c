/* Tests of remembering: over minutes, hours, starts, clocks that are set, disks that are short of
 * space and memory that runs out. Time passes when a test says so. */
#include "history/history.h"

#include "base/limits.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing_clock.h"
#include "cluster/row_group.h"
#include "cluster/testing/testing.h"
#include "history/history_keep.h"

#define SECOND_US INT64_C(1000000)
#define SPAN_US   (10 * SECOND_US)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)
#define BEGIN_US  (80 * 365 * DAY_US) /* at a full hour, after those the fixture is made at */

static struct hands_clock hands = {
    .clock = {.wall_us = hands_clock_wall_us, .steady_us = hands_clock_steady_us}};

struct remembering {
    struct cluster_fixture *f;
    struct metrics *metrics;
    struct history *history;
    struct arena *arena;
    int64_t retention_us;
    struct commit_observer observer;
    size_t seen; /* commits, by it */
};

static void measure(void *context)
{
    (void)context;
}

static void begin(struct remembering *r)
{
    const struct history_options options = {.cluster = r->f->cluster,
                                            .metrics = r->metrics,
                                            .clock = &hands.clock,
                                            .log = &r->f->log,
                                            .measure = measure,
                                            .retention_us = r->retention_us,
                                            .by_hand = true};
    assert_ok(history_open(&options, &r->history));
    history_step(r->history); /* what was counted before is not known */
}

static void count_seen(void *context, const struct commit *commit,
                       const struct store_batch *records, struct store_batch *batch)
{
    struct remembering *r = context;
    (void)commit, (void)records, (void)batch;
    r->seen++;
}

static int setup(void **state)
{
    struct remembering *r = calloc(1, sizeof *r);
    assert_non_null(r);
    hands.wall_us = BEGIN_US;
    hands.steady_us = 1000 * SECOND_US;
    r->f = cluster_fixture_create(NULL);
    r->f->options.clock = &hands.clock;
    r->f->options.maintenance_by_hand = true;
    r->f->options.balance = false;
    r->f->log.level = LOG_ERROR;
    reopen_test_cluster(r->f);
    hands.wall_us = BEGIN_US + HOUR_US; /* above what the start has shown */
    r->retention_us = 14 * DAY_US;
    r->arena = arena_create(256 << 20);
    assert_ok(metrics_create(&r->metrics));
    metrics_set(r->metrics, METRIC_disk_free_bytes, INT64_C(1) << 40);
    begin(r);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct remembering *r = *state;
    history_close(r->history);
    metrics_destroy(r->metrics);
    arena_destroy(r->arena);
    cluster_fixture_destroy(r->f);
    free(r);
    return 0;
}

static void restart(struct remembering *r)
{
    history_close(r->history);
    reopen_test_cluster(r->f);
    begin(r);
}

/* Both hands; calls a second in that time. */
static void pass(struct remembering *r, int64_t us, int64_t calls)
{
    hands.wall_us += us;
    hands.steady_us += us;
    for (int64_t i = 0; i < calls * us / SECOND_US; i++)
        metrics_rpc_ended(metrics_rpc(r->metrics, "S/M"), METRICS_PROFILE_NONE, STATUS_OK, 900);
    history_step(r->history);
}

static struct history_points read_level(struct remembering *r, enum history_level level,
                                        const char *subject)
{
    struct history_points points;
    assert_ok(history_store_read(r->f->cluster, level, subject, 0, BEGIN_US + 365 * DAY_US,
                                 r->arena, &points.items, &points.count));
    return points;
}

static struct history_points read_ten_seconds(struct remembering *r)
{
    return read_level(r, HISTORY_TEN_SECONDS, HISTORY_SERVER_NAME);
}

/* How many calls these points have seen. */
static double calls_of(const struct history_points *points)
{
    double sum = 0;
    for (size_t i = 0; i < points->count; i++)
        sum += points->items[i].values[HISTORY_requests] * points->items[i].seconds;
    return sum;
}

static const char *trouble(struct remembering *r)
{
    static char text[HISTORY_TROUBLE_SIZE];
    history_trouble(r->history, text);
    return text;
}

static void a_point_comes_every_ten_seconds(void **state)
{
    struct remembering *r = *state;
    int64_t from_us = hands.wall_us;
    pass(r, SPAN_US, 3);
    pass(r, SPAN_US / 2, 3);
    struct history_points points = read_ten_seconds(r);
    assert_int_equal(points.count, 1);
    assert_int_equal(points.items[0].from_us, from_us);
    assert_true(points.items[0].values[HISTORY_requests] == 3);
    assert_true(points.items[0].seconds == 10);
    assert_int_equal(points.items[0].method_count, 1);
    assert_string_equal(points.items[0].methods[0].name, "S/M");
    assert_true(points.items[0].values[HISTORY_p99_seconds] > 0);
    assert_string_equal(trouble(r), "");
}

static void no_api_finds_the_table_by_a_list(void **state)
{
    struct remembering *r = *state;
    pass(r, SPAN_US, 3);
    struct table *table;
    assert_ok(cluster_table(r->f->cluster, bytes_of(HISTORY_TABLE), &table));
    assert_false(table->heat.is_counted);
    table_release(table);
}

static int64_t syncs(struct remembering *r)
{
    cluster_measure(r->f->cluster);
    return metrics_value(r->metrics, METRIC_store_syncs_total);
}

/* So an archive has no more to take each ten seconds, and a disk may sleep. */
static void a_point_is_seen_by_no_observer_and_asks_for_no_sync(void **state)
{
    struct remembering *r = *state;
    r->observer = (struct commit_observer){.context = r, .see = count_seen};
    r->f->options.observers = &r->observer;
    r->f->options.observer_count = 1;
    r->f->options.metrics = r->metrics;
    r->f->options.durability = STORE_SYNCED;
    restart(r);
    pass(r, SPAN_US, 1); /* makes the table */
    size_t seen = r->seen;
    int64_t synced = syncs(r);
    assert_true(seen > 0 && synced > 0);
    metrics_set(r->metrics, METRIC_disk_free_bytes, INT64_C(1) << 40);
    for (int i = 0; i < 3; i++)
        pass(r, SPAN_US, 1);
    assert_int_equal(read_ten_seconds(r).count, 4);
    assert_int_equal(r->seen, seen);
    assert_int_equal(syncs(r), synced);
    r->f->options.observers = NULL;
    r->f->options.observer_count = 0;
    r->f->options.metrics = NULL;
    restart(r);
}

static void ten_seconds_fold_to_minutes_and_hours(void **state)
{
    struct remembering *r = *state;
    double calls = 0;
    for (int i = 0; i < 5 * 360; i++) {
        pass(r, SPAN_US, i % 7);
        calls += 10 * (i % 7);
    }
    struct history_points seconds = read_ten_seconds(r);
    struct history_points minutes = read_level(r, HISTORY_MINUTES, HISTORY_SERVER_NAME);
    struct history_points hours = read_level(r, HISTORY_HOURS, HISTORY_SERVER_NAME);
    assert_int_equal(minutes.count, 300);
    assert_int_equal(hours.count, 5);
    assert_true(fabs(calls_of(&minutes) - calls) < calls / 1e5);
    assert_true(fabs(calls_of(&hours) - calls) < calls / 1e5);
    assert_int_equal(seconds.count, 3 * 360); /* what is older is gone */
    assert_int_equal(seconds.items[0].from_us, hands.wall_us - 3 * HOUR_US);
}

/* Each hour is looked at: by the largest span, so that it takes no day. */
static void what_is_older_than_the_retention_goes(void **state)
{
    struct remembering *r = *state;
    history_close(r->history);
    r->retention_us = 2 * HOUR_US;
    begin(r);
    for (int i = 0; i < 5 * 60; i++)
        pass(r, MINUTE_US, 1);
    struct history_points hours = read_level(r, HISTORY_HOURS, HISTORY_SERVER_NAME);
    assert_int_equal(hours.count, 2);
    assert_int_equal(hours.items[0].from_us, hands.wall_us - 2 * HOUR_US);
    assert_int_equal(read_level(r, HISTORY_MINUTES, HISTORY_SERVER_NAME).count, 120);
}

static void points_follow_each_other(const struct history_points *points)
{
    for (size_t i = 1; i < points->count; i++)
        assert_int_equal(points->items[i].from_us, points->items[i - 1].from_us + SPAN_US);
}

/* While the versions' clock goes half as fast a span takes twice the time. */
static void a_clock_set_back_makes_no_hole_and_no_double(void **state)
{
    struct remembering *r = *state;
    for (int i = 0; i < 30; i++)
        pass(r, SPAN_US, 2);
    hands.wall_us -= 10 * MINUTE_US;
    for (int i = 0; i < 60; i++)
        pass(r, SPAN_US, 2);
    struct history_points points = read_ten_seconds(r);
    assert_int_equal(points.count, 30 + 30);
    points_follow_each_other(&points);
    assert_true(fabs(calls_of(&points) - 2 * 10 * 90) < 1);
    for (int i = 0; i < 90; i++) /* until the wall clock has caught up, and further */
        pass(r, SPAN_US, 2);
    points = read_ten_seconds(r);
    points_follow_each_other(&points);
    assert_true(fabs(calls_of(&points) - 2 * 10 * 180) < 1);
    struct history_points minutes = read_level(r, HISTORY_MINUTES, HISTORY_SERVER_NAME);
    for (size_t i = 1; i < minutes.count; i++)
        assert_int_equal(minutes.items[i].from_us, minutes.items[i - 1].from_us + MINUTE_US);
}

static void a_clock_set_back_before_a_start_makes_no_double(void **state)
{
    struct remembering *r = *state;
    for (int i = 0; i < 6; i++)
        pass(r, SPAN_US, 2);
    hands.wall_us -= HOUR_US;
    restart(r);
    for (int i = 0; i < 12; i++)
        pass(r, SPAN_US, 2);
    struct history_points points = read_ten_seconds(r);
    assert_true(points.count >= 6 + 5);
    points_follow_each_other(&points);
}

static void a_start_goes_on_behind_the_last_point(void **state)
{
    struct remembering *r = *state;
    for (int i = 0; i < 8; i++)
        pass(r, SPAN_US, 2);
    restart(r);
    restart(r);
    for (int i = 0; i < 4; i++)
        pass(r, SPAN_US, 2);
    struct history_points points = read_ten_seconds(r);
    assert_int_equal(points.count, 12);
    points_follow_each_other(&points);
    assert_int_equal(read_level(r, HISTORY_MINUTES, HISTORY_SERVER_NAME).count, 2);
}

/* What a start finds unfolded, two days later, becomes minutes and hours before it is too old. */
static void what_was_left_unfolded_is_folded_after_the_start(void **state)
{
    struct remembering *r = *state;
    for (int i = 0; i < 65 * 6 + 3; i++)
        pass(r, SPAN_US, 2);
    hands.wall_us += 2 * DAY_US;
    hands.steady_us += 2 * DAY_US;
    restart(r);
    pass(r, SPAN_US, 2);
    struct history_points hours = read_level(r, HISTORY_HOURS, HISTORY_SERVER_NAME);
    assert_int_equal(hours.count, 2);
    assert_true(fabs(calls_of(&hours) - 2 * 10 * (65 * 6 + 3)) < 1);
    assert_int_equal(read_ten_seconds(r).count, 1);
}

static double recall(struct remembering *r, enum history_line line)
{
    double value;
    assert_ok(history_recall(r->f->cluster, line, &value));
    return value;
}

static void what_was_known_is_recalled_after_a_start(void **state)
{
    struct remembering *r = *state;
    enum history_line line = HISTORY_whole_backup_newest_seconds;
    assert_true(isnan(recall(r, line)));
    metrics_set(r->metrics, METRIC_whole_backup_newest_timestamp_seconds, 1500000000);
    pass(r, SPAN_US, 1);
    metrics_set(r->metrics, METRIC_whole_backup_newest_timestamp_seconds, 1600000000);
    pass(r, SPAN_US, 1);
    restart(r);
    assert_true(recall(r, line) == 1600000000);
    for (int i = 0; i < 360; i++)
        pass(r, SPAN_US, 1);
    struct history_keep keep = {0};
    assert_ok(history_keep_run(&keep, r->f->cluster, 14 * DAY_US, hands.wall_us + 5 * DAY_US));
    history_keep_free(&keep);
    assert_int_equal(read_level(r, HISTORY_MINUTES, HISTORY_SERVER_NAME).count, 0);
    assert_true(recall(r, line) == 1600000000); /* by the hours alone */
}

/* --- what may not be written --- */

static void refuse_writes(struct remembering *r, bool refuses)
{
    uint64_t applied;
    commit_hold(r->f->cluster->home->commits, &applied);
    r->f->cluster->home->reserve.reserve_bytes = refuses ? UINT64_MAX / 4 : 0;
    hands.steady_us += SECOND_US; /* so that the disk is asked again */
    hands.wall_us += SECOND_US;
    commit_release(r->f->cluster->home->commits);
}

static void nothing_is_remembered_while_writes_are_refused(void **state)
{
    struct remembering *r = *state;
    pass(r, SPAN_US, 2);
    refuse_writes(r, true);
    for (int i = 0; i < 12; i++)
        pass(r, SPAN_US, 2);
    assert_non_null(strstr(trouble(r), "takes no writes"));
    assert_int_equal(read_ten_seconds(r).count, 1);
    refuse_writes(r, false);
    pass(r, SPAN_US, 2);
    pass(r, SPAN_US, 2);
    struct history_points points = read_ten_seconds(r);
    assert_string_equal(trouble(r), "");
    assert_int_equal(points.count, 3);
    for (size_t i = 0; i < points.count; i++) /* what was not seen is in none of them */
        assert_true(points.items[i].seconds <= 60 + 10 + 1);
}

static void nothing_is_remembered_when_the_disk_is_nearly_full(void **state)
{
    struct remembering *r = *state;
    metrics_set(r->metrics, METRIC_disk_free_bytes, HISTORY_ROOM - 1);
    pass(r, SPAN_US, 2);
    assert_non_null(strstr(trouble(r), "free on the disk"));
    struct table *table;
    assert_status(cluster_table(r->f->cluster, bytes_of(HISTORY_TABLE), &table), STATUS_NOT_FOUND);
    metrics_set(r->metrics, METRIC_disk_free_bytes, HISTORY_ROOM);
    pass(r, SPAN_US, 2);
    assert_string_equal(trouble(r), "");
    assert_true(read_ten_seconds(r).items[0].seconds == 20);
}

static void without_retention_nothing_is_kept(void **state)
{
    struct remembering *r = *state;
    pass(r, SPAN_US, 2);
    history_close(r->history);
    r->retention_us = 0;
    begin(r);
    pass(r, SPAN_US, 2);
    struct table *table;
    assert_status(cluster_table(r->f->cluster, bytes_of(HISTORY_TABLE), &table), STATUS_NOT_FOUND);
    assert_int_equal(read_ten_seconds(r).count, 0);
}

/* --- memory --- */

static void pass_a_minute(void *context)
{
    for (int i = 0; i < 6; i++)
        pass(context, SPAN_US, 1);
}

static void memory_may_run_out_at_any_time(void **state)
{
    struct remembering *r = *state;
    for (int i = 0; i < 7; i++)
        pass(r, SPAN_US, 1);
    /* Of one step of each kind: what fails is not the test's. */
    for (size_t allowed = 0, steps = 0; steps < 400; allowed++, steps++) {
        hands.wall_us += SPAN_US;
        hands.steady_us += SPAN_US;
        failmalloc_start(allowed);
        history_step(r->history);
        if (!failmalloc_stop())
            break;
    }
    pass_a_minute(r);
    pass_a_minute(r);
    assert_string_equal(trouble(r), "");
    struct history_points points = read_ten_seconds(r);
    for (size_t i = 1; i < points.count; i++)
        assert_true(points.items[i].from_us > points.items[i - 1].from_us);
    double seen = 0;
    for (size_t i = 0; i < points.count; i++)
        seen += points.items[i].seconds;
    assert_true(seen <= (double)(hands.wall_us - BEGIN_US - HOUR_US) / 1e6);
}

/* --- size --- */

/* The largest point that there may be of a subject, as a record: what it is packed to, and its key.
 */
static size_t largest_row(struct remembering *r, enum history_subject subject, const char *name)
{
    static const char method[] = "google.bigtable.admin.v2.BigtableInstanceAdmin/UpdateInstance00";
    struct history_method methods[HISTORY_METHODS];
    struct history_point point;
    struct own_batch batch = {.arena = r->arena};
    history_point_init(&point, BEGIN_US, 9.987654321);
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        if (history_line_row(line)->subject == subject)
            point.values[line] = 1234567.891;
    for (size_t i = 0; i < HISTORY_METHODS && subject == HISTORY_OF_SERVER; i++) {
        char *copy = arena_string(r->arena, bytes_of(method));
        copy[sizeof method - 2] = (char)('A' + i);
        methods[i] = (struct history_method){copy, 1234567.891};
        point.method_count++;
    }
    for (size_t i = 0; i < HISTORY_BUCKETS && subject == HISTORY_OF_SERVER; i++)
        history_point_add_calls(&point, UINT64_C(1) << (i + 6), 1234567);
    point.methods = methods;
    assert_ok(history_batch_put(&batch, HISTORY_TEN_SECONDS, name, &point));
    const struct grouped_row *row = batch.rows.items;
    size_t size = packed_change_size(&row->change) + row->row_key.size;
    own_batch_drop(&batch);
    return size;
}

/* What docs/reference/metric-history.md promises, before anything is compressed: all tables that
 * have series are asked for all the time, and what is too old is gone within an hour. */
static void a_fortnight_takes_less_than_a_hundred_megabytes(void **state)
{
    struct remembering *r = *state;
    size_t points = 0;
    for (enum history_level level = 0; level < HISTORY_LEVELS; level++) {
        int64_t kept_us = history_level_kept_us(level, 14 * DAY_US);
        points += (size_t)((kept_us + HOUR_US) / history_level_span_us(level));
    }
    size_t server = largest_row(r, HISTORY_OF_SERVER, HISTORY_SERVER_NAME);
    size_t table = largest_row(r, HISTORY_OF_TABLE, TEST_TABLE);
    size_t all = points * (server + LIMIT_TABLE_METRICS * table);
    print_message("%zu points of %zu bytes, and of %d tables of %zu: %zu MB\n", points, server,
                  LIMIT_TABLE_METRICS, table, all / 1000000);
    assert_true(all < 100 * 1000000);
}

/* --- tables --- */

static void tell_table(struct remembering *r, int64_t rows)
{
    struct metric_series series = {.labels = {TEST_TABLE}, .value = rows};
    assert_ok(metrics_replace(r->metrics, METRIC_BY_table_rows_read_total, &series, 1));
    series.value = 5000;
    assert_ok(metrics_replace(r->metrics, METRIC_BY_table_bytes, &series, 1));
}

static struct history_answer ask(struct remembering *r, const char *table, int64_t since_us,
                                 size_t most)
{
    const struct history_question question = {.table = table,
                                              .from_us = hands.wall_us - since_us,
                                              .until_us = hands.wall_us,
                                              .most = most};
    struct history_answer answer;
    assert_ok(history_read(r->f->cluster, &question, r->arena, &answer));
    return answer;
}

static void a_table_has_points_when_it_is_asked_for(void **state)
{
    struct remembering *r = *state;
    tell_table(r, 0);
    pass(r, SPAN_US, 0);
    tell_table(r, 600);
    for (int i = 0; i < 12; i++)
        pass(r, SPAN_US, 0);
    struct history_points points = read_level(r, HISTORY_TEN_SECONDS, TEST_TABLE);
    assert_int_equal(points.count, 2); /* when it came, and when it was read */
    struct history_answer answer = ask(r, TEST_TABLE, 10 * MINUTE_US, 60);
    assert_int_equal(answer.step_us, SPAN_US);
    assert_int_equal(answer.points.count, 13);
    assert_true(answer.points.items[1].values[HISTORY_rows_read] == 60);
    assert_true(answer.points.items[12].values[HISTORY_rows_read] == 0);
    assert_true(answer.points.items[12].values[HISTORY_bytes] == 5000);
    struct history_points minutes = read_level(r, HISTORY_MINUTES, TEST_TABLE);
    assert_int_equal(minutes.count, 1);
    assert_true(fabs(minutes.items[0].values[HISTORY_rows_read] - 10) < 0.001);
}

/* Whichever level it comes from, a question is answered up to now, and all calls are in it once. */
static void all_levels_answer_up_to_now(void **state)
{
    struct remembering *r = *state;
    for (int i = 0; i < 4 * 360 + 3; i++)
        pass(r, SPAN_US, 2);
    static const struct {
        int64_t since_us;
        size_t most;
        int64_t step_us;
    } cases[] = {{HOUR_US, 360, SPAN_US},
                 {HOUR_US, 60, MINUTE_US},
                 {5 * HOUR_US, 10, 30 * MINUTE_US},
                 {14 * DAY_US, 336, HOUR_US},
                 {14 * DAY_US, 14, DAY_US}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct history_answer answer = ask(r, NULL, cases[i].since_us, cases[i].most);
        double all = 2 * 10 * (4 * 360 + 3), hour = 2 * 3600;
        double expected = cases[i].since_us == HOUR_US ? hour : all;
        assert_int_equal(answer.step_us, cases[i].step_us);
        assert_true(fabs(calls_of(&answer.points) - expected) <= 2 * 60 + 1);
    }
}

static bool note(struct remembering *r, struct history_keep *keep, const char *subject,
                 int64_t from_us)
{
    bool is_kept;
    assert_ok(history_keep_note(keep, r->f->cluster, subject, from_us, &is_kept));
    return is_kept;
}

/* Tables come and go: their points do in time, and then nothing knows of them any more. */
static void subjects_are_forgotten_with_their_points(void **state)
{
    struct remembering *r = *state;
    struct history_keep keep = {0};
    history_close(r->history);
    r->history = NULL;
    assert_true(note(r, &keep, HISTORY_SERVER_NAME, hands.wall_us));
    assert_true(note(r, &keep, TEST_TABLE, hands.wall_us));
    assert_ok(history_keep_run(&keep, r->f->cluster, DAY_US, hands.wall_us));
    assert_int_equal(keep.count, 1);
    history_keep_free(&keep);
}

/* --- more tables than places --- */

static const char *nth(char name[64], int i)
{
    snprintf(name, 64, "projects/p/instances/i%d/tables/t%04d", i / 1000, i);
    return name;
}

/* A point of each, as one of another start left it, the first one's the oldest. */
static void leave_points(struct remembering *r, int tables)
{
    struct own_batch batch = {.arena = r->arena};
    struct history_point point;
    char name[64];
    for (int i = 0; i < tables; i++) {
        history_point_init(&point, hands.wall_us + i * SPAN_US, 10);
        point.values[HISTORY_bytes] = 1;
        assert_ok(history_batch_put(&batch, HISTORY_TEN_SECONDS, nth(name, i), &point));
    }
    assert_ok(history_batch_write(&batch, r->f->cluster));
}

static size_t points_of(struct remembering *r, int i)
{
    char name[64];
    return read_level(r, HISTORY_TEN_SECONDS, nth(name, i)).count;
}

/* Whoever's tests make a table each leaves more tables behind than there are places, within less
 * than the time that points are kept. */
static void new_tables_take_the_places_of_those_that_are_gone(void **state)
{
    struct remembering *r = *state;
    struct history_keep keep = {0};
    char name[64];
    int most = HISTORY_SUBJECTS_MOST - 1;
    int64_t later_us = hands.wall_us + HOUR_US + 2 * most * SPAN_US;
    history_close(r->history);
    r->history = NULL;
    leave_points(r, most);
    assert_true(note(r, &keep, nth(name, 0), later_us)); /* not the one silent longest any more */
    for (int i = most; i < most + 100; i++)
        assert_true(note(r, &keep, nth(name, i), later_us));
    assert_int_equal(keep.count, HISTORY_SUBJECTS_MOST);
    for (int i = 0; i < most; i++)
        assert_int_equal(points_of(r, i), i == 0 || i > 100);
    assert_ok(history_keep_run(&keep, r->f->cluster, 14 * DAY_US, later_us));
    history_keep_free(&keep);
}

/* As a program of before left them that took new ones before it knew of the old ones. */
static void more_than_there_are_places_for_are_folded_and_go(void **state)
{
    struct remembering *r = *state;
    struct history_keep keep = {0};
    history_close(r->history);
    r->history = NULL;
    leave_points(r, HISTORY_SUBJECTS_MOST + 10);
    assert_ok(history_keep_run(&keep, r->f->cluster, 14 * DAY_US, hands.wall_us + DAY_US));
    char name[64];
    for (int i = 0; i < HISTORY_SUBJECTS_MOST + 10; i++) {
        assert_int_equal(points_of(r, i), 0);
        assert_int_equal(read_level(r, HISTORY_HOURS, nth(name, i)).count, 1);
    }
    assert_true(note(r, &keep, TEST_TABLE, hands.wall_us + DAY_US));
    assert_int_equal(keep.count, HISTORY_SUBJECTS_MOST);
    history_keep_free(&keep);
}

static void create_tables(struct remembering *r, int tables)
{
    struct schema *schema;
    struct table *table;
    char name[64];
    assert_ok(schema_create(GRANULARITY_MICROS, NULL, 0, 1, &schema));
    for (int i = 0; i < tables; i++) {
        const struct table_spec spec = {.name = nth(name, i), .schema = schema};
        assert_ok(cluster_create_table(r->f->cluster, &spec, &table));
        table_release(table);
    }
    schema_destroy(schema);
}

static const char *table_trouble(struct remembering *r)
{
    static char text[HISTORY_TROUBLE_SIZE];
    history_table_trouble(r->history, text);
    return text;
}

static void a_table_that_there_is_no_place_for_is_told(void **state)
{
    struct remembering *r = *state;
    char name[64];
    create_tables(r, HISTORY_SUBJECTS_MOST - 1);
    leave_points(r, HISTORY_SUBJECTS_MOST - 1);
    hands.wall_us += 2 * HISTORY_SUBJECTS_MOST * SPAN_US;
    restart(r);
    assert_string_equal(table_trouble(r), "");
    tell_table(r, 10);
    pass(r, SPAN_US, 1);
    assert_int_equal(read_level(r, HISTORY_TEN_SECONDS, TEST_TABLE).count, 0);
    assert_non_null(strstr(table_trouble(r), "no more can be"));
    assert_string_equal(trouble(r), "");
    struct history_answer left_out = ask(r, TEST_TABLE, HOUR_US, 60);
    assert_false(left_out.is_known);
    assert_int_equal(left_out.points.count, 0); /* no zeros */
    pass(r, SPAN_US, 1);                        /* nothing comes of it: that is told still */
    assert_non_null(strstr(table_trouble(r), "no more can be"));
    assert_ok(cluster_delete_table(r->f->cluster, bytes_of(nth(name, 7)), NULL));
    tell_table(r, 20);
    pass(r, SPAN_US, 1);
    assert_int_equal(read_level(r, HISTORY_TEN_SECONDS, TEST_TABLE).count, 1);
    assert_true(ask(r, TEST_TABLE, HOUR_US, 60).is_known);
    assert_int_equal(read_level(r, HISTORY_HOURS, nth(name, 7)).count, 0);
    assert_int_equal(read_level(r, HISTORY_HOURS, nth(name, 8)).count, 1);
    assert_string_equal(table_trouble(r), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_point_comes_every_ten_seconds),
        TEST(no_api_finds_the_table_by_a_list),
        TEST(a_point_is_seen_by_no_observer_and_asks_for_no_sync),
        TEST(ten_seconds_fold_to_minutes_and_hours),
        TEST(what_is_older_than_the_retention_goes),
        TEST(a_clock_set_back_makes_no_hole_and_no_double),
        TEST(a_clock_set_back_before_a_start_makes_no_double),
        TEST(a_start_goes_on_behind_the_last_point),
        TEST(what_was_left_unfolded_is_folded_after_the_start),
        TEST(what_was_known_is_recalled_after_a_start),
        TEST(nothing_is_remembered_while_writes_are_refused),
        TEST(nothing_is_remembered_when_the_disk_is_nearly_full),
        TEST(without_retention_nothing_is_kept),
        TEST(memory_may_run_out_at_any_time),
        TEST(a_fortnight_takes_less_than_a_hundred_megabytes),
        TEST(a_table_has_points_when_it_is_asked_for),
        TEST(all_levels_answer_up_to_now),
        TEST(subjects_are_forgotten_with_their_points),
        TEST(new_tables_take_the_places_of_those_that_are_gone),
        TEST(more_than_there_are_places_for_are_folded_and_go),
        TEST(a_table_that_there_is_no_place_for_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
