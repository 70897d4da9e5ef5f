/* Tests of what heat says: loads as they are, with a clock that a test turns, and heat that is made
 * up. Each load is held against the sentence, the matrix and the hot tablets. */
#include "cluster/heat/heat_hotspots.h"

#include "cluster/heat/heat_choice.h"
#include "cluster/heat/heat_matrix.h"
#include "cluster/testing/heat_testing.h"

#define HOTSPOTS_BEGIN_US (INT64_C(1763800000) * 1000000) /* in November 2025 */

static int setup(void **state)
{
    return setup_windows_at(state, HOTSPOTS_BEGIN_US);
}

static void write_row(struct cluster_fixture *f, const char *format, unsigned number)
{
    char row[64];
    snprintf(row, sizeof row, format, number); /* NOLINT: the tests' own formats */
    set_cell(f, row, "some value that has a length");
}

/* Three prefixes with as many rows each, and the beginning of the minute that counts. */
static void fill(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < 400; i++) {
        write_row(f, "customer/%05u", i);
        write_row(f, "order/%05u", i);
        write_row(f, "visit/%05u", i);
    }
    pass(f, MINUTE_US);
}

struct hotspots {
    struct heat_hotspot *items;
    size_t count;
};

static struct hotspots hotspots_since(struct cluster_fixture *f, int64_t from_us)
{
    struct hotspots hotspots;
    assert_ok(heat_hotspots_read(f->table, from_us, hands.now_us, f->arena, &hotspots.items,
                                 &hotspots.count));
    for (size_t i = 0; i < hotspots.count; i++)
        print_message("# %s\n", hotspots.items[i].sentence);
    return hotspots;
}

static const struct heat_hotspot *only_of(const struct hotspots *hotspots,
                                          enum heat_hotspot_kind kind)
{
    assert_int_equal(hotspots->count, 1);
    assert_int_equal(hotspots->items[0].kind, kind);
    return &hotspots->items[0];
}

/* --- the matrix, and the hot tablets --- */

static bool lies_in(bytes start, bytes end, const char *from, const char *to)
{
    return bytes_compare(start, bytes_of(from)) >= 0 &&
           (to[0] == '\0' || (end.size > 0 && bytes_compare(end, bytes_of(to)) <= 0));
}

/* Nine tenths of the writes are in ranges that lie there. */
static void assert_matrix(struct cluster_fixture *f, int64_t from_us, const char *from,
                          const char *to)
{
    struct heat_matrix matrix;
    uint64_t inside = 0, all = 0;
    assert_ok(
        heat_matrix_read(f->table, from_us, hands.now_us, HEAT_MOST_RANGES, f->arena, &matrix));
    assert_int_equal(matrix.time_count, 1);
    for (size_t i = 0; i < matrix.range_count; i++) {
        const struct heat_sum *sum = matrix.times[0].sums[i];
        bytes end = i + 1 < matrix.range_count ? matrix.starts[i + 1] : bytes_make(NULL, 0);
        if (sum == NULL)
            continue;
        all += sum->numbers[HEAT_WRITES];
        if (lies_in(matrix.starts[i], end, from, to))
            inside += sum->numbers[HEAT_WRITES];
    }
    assert_true(inside * 10 >= all * 8);
}

struct hot_search {
    const char *from;
    const char *to;
    int64_t from_us;
    unsigned count;
    bool all_lie_there;
};

static bool look_at_hot(void *context, const struct hot_tablet *hot)
{
    struct hot_search *search = context;
    if (hot->from_us < search->from_us)
        return true;
    search->count++;
    search->all_lie_there &= lies_in(hot->start, hot->end, search->from, search->to);
    return true;
}

/* The process has used what it has in a minute that took as long as the test: that is less than a
 * hot tablet's share. So the minute is a few microseconds long here. */
static void assert_hot_tablet(struct cluster_fixture *f, int64_t from_us, const char *from,
                              const char *to)
{
    struct hot_search search = {.from = from, .to = to, .from_us = from_us, .all_lie_there = true};
    cluster_hot_tablets(f->cluster, look_at_hot, &search);
    assert_int_equal(search.count, 1);
    assert_true(search.all_lie_there);
}

static int setup_short_minute(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    hands.now_us = HOTSPOTS_BEGIN_US;
    f->options.clock = &hands.clock;
    f->options.heat_window_us = 10;
    f->options.maintenance_by_hand = true;
    f->options.balance = false;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

/* --- loads --- */

static void load_hotspot(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < 900; i++)
        write_row(f, "order/%05u", 200 + i * 7 % 30);
    for (unsigned i = 0; i < 50; i++) {
        write_row(f, "customer/%05u", i * 37 % 400);
        write_row(f, "visit/%05u", i * 37 % 400);
    }
}

static void load_sequence(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < 900; i++)
        write_row(f, "visit/%05u", 400 + i);
    for (unsigned i = 0; i < 90; i++)
        write_row(f, "customer/%05u", i * 37 % 400);
}

static void load_times(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < 900; i++) {
        char row[64];
        snprintf(row, sizeof row, "1763800%03u123#sensor%u", i, i * 7 % 13);
        set_cell(f, row, "21.5");
    }
}

static void a_hot_prefix_is_named(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    load_hotspot(f);
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES);
    assert_true(lies_in(hotspot->start, hotspot->end, "order/00190", "order/00240"));
    assert_true(hotspot->share >= 0.75);
    assert_true(hotspot->part > 0 && hotspot->part <= 0.1);
    assert_non_null(strstr(hotspot->sentence, "from \"order/00"));
    assert_matrix(f, from_us, "order/00190", "order/00240");
}

/* Two thirds will do in a thirteenth of the data, and not in a tenth. */
static void fewer_requests_are_enough_where_less_data_takes_them(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    for (unsigned rows = 30; rows <= 110; rows += 80) {
        int64_t from_us = hands.now_us;
        for (unsigned i = 0; i < 700; i++)
            write_row(f, "order/%05u", 200 + i * 37 % rows);
        for (unsigned i = 0; i < 150; i++) {
            write_row(f, "customer/%05u", i * 37 % 400);
            write_row(f, "visit/%05u", i * 91 % 400);
        }
        pass(f, MINUTE_US);
        assert_int_equal(hotspots_since(f, from_us).count, rows == 30 ? 1 : 0);
    }
}

/* Seven in ten writes of which the rest is spread, and which make the rows that they are of larger:
 * by its bytes the range is more than by its rows then. */
static void two_thirds_in_a_thirtieth_of_the_rows(void **state)
{
    enum { VALUE = 600, HOT_ROWS = 40, ROWS = 1200 };
    struct cluster_fixture *f = *state;
    char value[VALUE + 1], row[32];
    fill(f);
    int64_t from_us = hands.now_us;
    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    for (unsigned i = 0; i < 1400; i++) {
        if (i % 7 < 5)
            snprintf(row, sizeof row, "order/%05u", 200 + i * 37 % HOT_ROWS);
        else
            snprintf(row, sizeof row, i % 2 == 0 ? "customer/%05u" : "visit/%05u", i * 91 % 400);
        set_cell(f, row, value);
    }
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES);
    assert_true(lies_in(hotspot->start, hotspot->end, "order/00190", "order/00240"));
    assert_true(hotspot->share < 0.75 && hotspot->part > 1.1 * HOT_ROWS / ROWS);
}

static void a_sequence_is_named(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    load_sequence(f);
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_WRITE_FRONTIER);
    assert_true(lies_in(hotspot->start, hotspot->end, "visit/00390", ""));
    assert_true(hotspot->part > 0.2 && hotspot->part < 0.5); /* 900 of 2,100 rows are new */
    assert_true(bytes_equal(hotspot->key, bytes_of("visit/01299")));
    assert_non_null(strstr(hotspot->sentence, "in sequence"));
    assert_matrix(f, from_us, "visit/00390", "");
}

/* Of which most of the table is made. */
static void a_load_in_the_order_of_keys_is_most_of_the_data(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 4000; i++) {
        write_row(f, "visit/%05u", i);
        if (i % 500 == 499)
            pass(f, MINUTE_US);
    }
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_WRITE_FRONTIER);
    assert_true(hotspot->share > 0.75);
    assert_true(hotspot->part >= 0.5);
}

static void keys_that_begin_with_a_time_are_named(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned i = 0; i < 400; i++)
        write_row(f, "1763799%03u123#sensor", i);
    pass(f, MINUTE_US);
    int64_t from_us = hands.now_us;
    load_times(f);
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_WRITE_FRONTIER);
    assert_true(lies_in(hotspot->start, hotspot->end, "1763799390", ""));
    assert_true(bytes_start_with(hotspot->key, bytes_of("1763800899123#")));
    assert_non_null(strstr(hotspot->sentence, "begin with a time"));
    assert_matrix(f, from_us, "1763799390", "");
}

/* --- one front, or many --- */

enum { DEVICES = 40 };

static void write_reading(struct cluster_fixture *f, unsigned device, unsigned tick)
{
    char row[64];
    snprintf(row, sizeof row, "device%02u#17638%05u", device, tick);
    set_cell(f, row, "21.5");
}

/* Each device adds `batch` readings in its turn, from `from` until each has `to`. */
static void write_readings(struct cluster_fixture *f, unsigned from, unsigned to, unsigned batch)
{
    for (unsigned first = from; first < to; first += batch)
        for (unsigned i = 0; i < DEVICES; i++)
            for (unsigned tick = first; tick < first + batch; tick++)
                write_reading(f, i * 7 % DEVICES, tick);
}

/* Keys rise behind each device's name, so that the load is spread; what only one of them writes is
 * a front. */
static void devices_that_each_go_on_are_no_frontier(void **state)
{
    struct cluster_fixture *f = *state;
    write_readings(f, 0, 30, 1);
    pass(f, MINUTE_US);
    static const unsigned batches[] = {1, 3, 10, 30}; /* 30: each of them once in a window */
    unsigned first = 30;
    for (size_t i = 0; i < 4; i++) {
        int64_t from_us = hands.now_us;
        write_readings(f, first, first + 30, batches[i]);
        first += 30;
        assert_int_equal(hotspots_since(f, from_us).count, 0); /* of what goes on */
        pass(f, MINUTE_US);
        assert_int_equal(hotspots_since(f, from_us).count, 0);
    }
    int64_t from_us = hands.now_us;
    for (unsigned tick = 200; tick < 1000; tick++) {
        write_reading(f, 7, tick);
        if (tick % 2 == 0)
            write_reading(f, 9 + tick * 13 % 30, tick * 7 % 150); /* some other that is there */
    }
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_WRITE_FRONTIER);
    assert_true(lies_in(hotspot->start, hotspot->end, "device07", "device08#17638001"));
    assert_true(bytes_equal(hotspot->key, bytes_of("device07#1763800999")));
}

/* A new table, whose ranges are chosen while it is written: of devices, and in the order of keys.
 */
static void a_new_table_of_devices_has_no_frontier(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t from_us = hands.now_us;
    for (unsigned tick = 0; tick < 80; tick++) {
        write_readings(f, tick, tick + 1, 1);
        if (tick % 10 == 9)
            pass(f, MINUTE_US / 4);
    }
    assert_int_equal(hotspots_since(f, from_us).count, 0);
    pass(f, MINUTE_US);
    assert_int_equal(hotspots_since(f, from_us).count, 0);
}

static void the_hot_tablet_is_where_the_load_is(void **state)
{
    struct cluster_fixture *f = *state;
    static const struct {
        void (*run)(struct cluster_fixture *f);
        const char *from;
        const char *to;
    } loads[] = {{load_hotspot, "order/00190", "order/00240"},
                 {load_sequence, "visit/00390", ""},
                 {load_times, "", "customer/00010"}};
    fill(f);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        pass(f, 10); /* so that ranges fit what the load before has written */
        int64_t from_us = hands.now_us;
        loads[i].run(f);
        hands.now_us += 10;
        maintenance_run_once(f->cluster->maintenance);
        assert_hot_tablet(f, from_us, loads[i].from, loads[i].to);
    }
}

static void an_even_load_is_no_hotspot(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 400; i++) {
        write_row(f, "customer/%05u", i * 37 % 400);
        write_row(f, "order/%05u", i * 91 % 400);
        write_row(f, "visit/%05u", i * 11 % 400);
    }
    pass(f, MINUTE_US);
    assert_int_equal(hotspots_since(f, from_us).count, 0);
}

static void a_hot_row_is_named(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 400; i++) {
        write_row(f, "order/%05u", i * 37 % 400);
        set_cell(f, "order/00123", "v");
    }
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    assert_true(hotspots.count >= 1);
    const struct heat_hotspot *hotspot = &hotspots.items[hotspots.count - 1];
    assert_int_equal(hotspot->kind, HEAT_HOTSPOT_HOT_KEY);
    assert_true(bytes_equal(hotspot->key, bytes_of("order/00123")));
    assert_true(hotspot->share > 0.4 && hotspot->share <= 0.51);
}

static void a_few_requests_are_no_hotspot(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 50; i++)
        set_cell(f, "order/00123", "v");
    pass(f, MINUTE_US);
    assert_int_equal(hotspots_since(f, from_us).count, 0);
    assert_int_equal(hotspots_since(f, hands.now_us).count, 0);
}

/* An index beside what it is an index of: half of the rows, and a fortieth of the data. */
static void fill_index(struct cluster_fixture *f)
{
    static char page[3000];
    memset(page, 'p', sizeof page - 1);
    for (unsigned i = 0; i < 400; i++) {
        char row[64];
        snprintf(row, sizeof row, "page/%05u", i);
        set_cell(f, row, page);
        write_row(f, "index/%05u", i);
    }
    pass(f, MINUTE_US);
}

static void few_rows_with_few_bytes_are_a_hot_range(void **state)
{
    struct cluster_fixture *f = *state;
    fill_index(f);
    int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 1000; i++)
        write_row(f, "index/%05u", 100 + i * 37 % 20);
    pass(f, MINUTE_US);
    struct hotspots hotspots = hotspots_since(f, from_us);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES);
    assert_true(lies_in(hotspot->start, hotspot->end, "index/00080", "index/00140"));
}

/* --- loads that last --- */

/* Of the hotspots since then those that window after window shows. */
static struct hotspots lasting_since(struct cluster_fixture *f, int64_t from_us)
{
    const struct heat_looking looking = {
        .most_ranges = HEAT_MOST_RANGES, .most_walked = HEAT_MOST_WALKED, .wants_lasting = true};
    struct heat_matrix matrix;
    struct hotspots hotspots;
    size_t all;
    assert_ok(
        heat_matrix_read(f->table, from_us, hands.now_us, HEAT_MOST_RANGES, f->arena, &matrix));
    assert_ok(
        heat_hotspots_of_matrix(f->table, &matrix, &looking, f->arena, &hotspots.items, &all));
    while (all > 0 && hotspots.items->windows == 0) {
        hotspots.items++;
        all--;
    }
    hotspots.count = all;
    return hotspots;
}

/* A minute in which four in five of 250 writes are to 20 rows of a prefix. */
static void load_minute(struct cluster_fixture *f, const char *format)
{
    for (unsigned i = 0; i < 200; i++)
        write_row(f, format, 200 + i * 7 % 20);
    for (unsigned i = 0; i < 50; i++)
        write_row(f, "visit/%05u", i * 37 % 400);
    pass(f, MINUTE_US);
}

/* By all requests together it would not be, since most of them filled the table. */
static void a_load_that_lasts_is_named(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    load_minute(f, "order/%05u");
    assert_int_equal(lasting_since(f, HOTSPOTS_BEGIN_US).count, 0);
    load_minute(f, "order/%05u");
    pass(f, MINUTE_US); /* with nothing in it */
    for (unsigned i = 0; i < 20; i++)
        write_row(f, "visit/%05u", i); /* and too little */
    hands.now_us += MINUTE_US / 2;
    assert_int_equal(hotspots_since(f, HOTSPOTS_BEGIN_US).count, 0);
    struct hotspots hotspots = lasting_since(f, HOTSPOTS_BEGIN_US);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES);
    assert_int_equal(hotspot->windows, 2);
    assert_int_equal(hotspot->total, 500 + 20);
    assert_int_equal(hotspot->from_us, from_us);
    assert_true(lies_in(hotspot->start, hotspot->end, "order/00190", "order/00230"));
}

/* Neither within the hot range nor beside it: what was counted before is kept, and goes on. */
static void splits_and_merges_hide_no_load(void **state)
{
    static const char *const borders[] = {"order/00210", "customer/00100", "visit"};
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    load_minute(f, "order/%05u");
    for (size_t i = 0; i < 6; i++) {
        const char *border = borders[i / 2];
        if (i % 2 == 0)
            split_at(f, border);
        else
            merge_at(f, border);
        struct hotspots at_once = hotspots_since(f, from_us);
        const struct heat_hotspot *hotspot = only_of(&at_once, HEAT_HOTSPOT_HOT_WRITES);
        assert_true(lies_in(hotspot->start, hotspot->end, "order/00190", "order/00240"));
        load_minute(f, "order/%05u");
        struct hotspots hotspots = lasting_since(f, HOTSPOTS_BEGIN_US);
        assert_int_equal(only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES)->windows, i + 2);
    }
}

/* A minute in quarters, in each of which four in five writes are to twenty rows, a hundred to each.
 */
static void load_heavily(struct cluster_fixture *f, int64_t from_us)
{
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        for (unsigned i = 0; i < 2000; i++)
            write_row(f, "order/%05u", 200 + i * 7 % 20);
        for (unsigned i = 0; i < 500; i++)
            write_row(f, i % 2 == 0 ? "visit/%05u" : "customer/%05u", i * 37 % 400);
        pass(f, MINUTE_US / 4);
        struct hotspots hotspots = hotspots_since(f, from_us);
        const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES);
        assert_true(lies_in(hotspot->start, hotspot->end, "order/00190", "order/00230"));
    }
}

/* Whatever the load splits, and however much more than its rows what was written of them is: told
 * in each quarter of each minute, and in the minute after it. */
static void rows_that_are_written_over_and_over_stay_hot(void **state)
{
    static const char *const borders[] = {"order/00200", "order/00220", "order/00210",
                                          "order/00205", "order/00215", "order/00202"};
    enum { SPLITS = sizeof borders / sizeof *borders };
    struct cluster_fixture *f = *state;
    fill(f);
    int64_t from_us = hands.now_us;
    load_heavily(f, from_us);
    for (size_t i = 0; i < 2 * SPLITS; i++) {
        if (i < SPLITS)
            split_at(f, borders[i]);
        else
            merge_at(f, borders[i - SPLITS]);
        load_heavily(f, from_us);
        struct hotspots hotspots = lasting_since(f, HOTSPOTS_BEGIN_US);
        assert_int_equal(only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES)->windows, i + 2);
    }
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        pass(f, MINUTE_US / 4);
        struct hotspots hotspots = hotspots_since(f, from_us);
        only_of(&hotspots, HEAT_HOTSPOT_HOT_WRITES);
    }
}

static void a_load_that_moves_does_not_last(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    load_minute(f, "order/%05u");
    load_minute(f, "customer/%05u");
    load_minute(f, "order/%05u");
    load_minute(f, "customer/%05u");
    assert_int_equal(lasting_since(f, HOTSPOTS_BEGIN_US).count, 0);
}

static void a_load_that_was_even_meanwhile_has_not_lasted(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    load_minute(f, "order/%05u");
    load_minute(f, "order/%05u");
    for (unsigned i = 0; i < 400; i++) {
        write_row(f, "customer/%05u", i * 37 % 400);
        write_row(f, "visit/%05u", i * 11 % 400);
    }
    pass(f, MINUTE_US);
    load_minute(f, "order/%05u");
    assert_int_equal(lasting_since(f, HOTSPOTS_BEGIN_US).count, 0);
}

/* The front goes on from window to window, over more and more of the data. */
static void a_front_lasts(void **state)
{
    struct cluster_fixture *f = *state;
    fill(f);
    for (unsigned window = 0; window < 4; window++) {
        for (unsigned i = 0; i < 250; i++)
            write_row(f, "order/%05u", 1000 + window * 250 + i);
        pass(f, MINUTE_US);
    }
    struct hotspots hotspots = lasting_since(f, HOTSPOTS_BEGIN_US);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_WRITE_FRONTIER);
    assert_int_equal(hotspot->windows, 4);
    assert_true(hotspot->part > 0.1 && hotspot->part < 0.5);
}

/* --- made up --- */

static struct hotspots hotspots_of(struct cluster_fixture *f, struct heat_entry *entries,
                                   size_t count, double cpu_percent)
{
    bytes borders[] = {bytes_of("b"), bytes_of("c"), bytes_of("d")};
    struct heat_record heat = {.until_us = HOTSPOTS_BEGIN_US,
                               .cpu_percent = cpu_percent,
                               .count = count,
                               .entries = entries};
    struct heat_ranges *data;
    struct hotspots hotspots;
    assert_ok(heat_ranges_create(borders, 3, NULL, &data));
    assert_ok(heat_hotspots_of(&heat, data, NULL, f->arena, &hotspots.items, &hotspots.count));
    heat_ranges_destroy(data);
    return hotspots;
}

static void reads_that_take_the_machine_are_named(void **state)
{
    struct heat_entry entries[] = {
        {.end = bytes_of("b"), .sum.numbers = {[HEAT_READS] = 500, [HEAT_READ_BYTES] = 1000}},
        {.start = bytes_of("b"), .sum.numbers = {[HEAT_READS] = 500, [HEAT_READ_BYTES] = 9000000}}};
    assert_int_equal(hotspots_of(*state, entries, 2, 40).count, 0);
    struct hotspots hotspots = hotspots_of(*state, entries, 2, 80);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_READ_PRESSURE);
    assert_true(bytes_equal(hotspot->start, bytes_of("b")));
    assert_string_equal(hotspot->sentence,
                        "Read pressure: reads take 80 % of all processors, and 100 % of what they "
                        "read is of rows from \"b\" to the last, 9 KB a row.");
}

static void large_rows_are_named(void **state)
{
    struct heat_entry entries[] = {
        {.end = bytes_of("b"), .sum.numbers = {[HEAT_READS] = 1, [HEAT_LARGEST_ROW] = 99999999}},
        {.start = bytes_of("b"), .end = bytes_of("c\n"), .sum.numbers = {[HEAT_READS] = 1}}};
    assert_int_equal(hotspots_of(*state, entries, 2, 1).count, 0);
    entries[1].sum.numbers[HEAT_LARGEST_ROW] = 123456789;
    struct hotspots hotspots = hotspots_of(*state, entries, 2, 1);
    const struct heat_hotspot *hotspot = only_of(&hotspots, HEAT_HOTSPOT_LARGE_ROWS);
    assert_string_equal(hotspot->sentence,
                        "Large rows: one of 123 MB was read, from \"b\" up to \"c\\x0a\"; more "
                        "than 100 MB is more than a row should have.");
}

/* Where all of it is one range a hot prefix is not seen, and that is said, until there are more. */
static void too_few_ranges_are_told(void **state)
{
    struct cluster_fixture *f = *state;
    for (unsigned i = 0; i < 2500; i++)
        write_row(f, "order/%05u", i);
    for (unsigned i = 0; i < 2600; i++)
        write_row(f, "order/%05u", i % 20);
    hands.now_us += MINUTE_US / 2; /* and no ranges are chosen */
    const struct hotspots hotspots = hotspots_since(f, HOTSPOTS_BEGIN_US);
    assert_int_equal(only_of(&hotspots, HEAT_HOTSPOT_FEW_RANGES)->start.size, 0);
    pass(f, MINUTE_US);
    const int64_t from_us = hands.now_us;
    for (unsigned i = 0; i < 5100; i++)
        write_row(f, "order/%05u", i % 200);
    pass(f, MINUTE_US);
    const struct hotspots finer = hotspots_since(f, from_us);
    only_of(&finer, HEAT_HOTSPOT_HOT_WRITES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hot_prefix_is_named, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(fewer_requests_are_enough_where_less_data_takes_them, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(two_thirds_in_a_thirtieth_of_the_rows, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_sequence_is_named, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_load_in_the_order_of_keys_is_most_of_the_data, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(keys_that_begin_with_a_time_are_named, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(devices_that_each_go_on_are_no_frontier, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_new_table_of_devices_has_no_frontier, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(the_hot_tablet_is_where_the_load_is, setup_short_minute,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(an_even_load_is_no_hotspot, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_hot_row_is_named, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_few_requests_are_no_hotspot, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(few_rows_with_few_bytes_are_a_hot_range, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_load_that_lasts_is_named, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(splits_and_merges_hide_no_load, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(rows_that_are_written_over_and_over_stay_hot, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_load_that_moves_does_not_last, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(a_load_that_was_even_meanwhile_has_not_lasted, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(a_front_lasts, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(reads_that_take_the_machine_are_named, setup,
                                        teardown_windows),
        cmocka_unit_test_setup_teardown(large_rows_are_named, setup, teardown_windows),
        cmocka_unit_test_setup_teardown(too_few_ranges_are_told, setup, teardown_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
