/* The rules about sizes, names, versions, heat and tables, just before and just behind where each
 * begins to speak; and what the report makes of a finding. */
#include "advisor/report.h"
#include "advisor/siblings.h"
#include "advisor/testing/testing.h"

/* Rows whose keys no rule has anything to say about. */
static void add_rows(struct made_sample *sample, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char key[SAMPLE_KEY];
        int size = snprintf(key, sizeof key, "%c%c-user-%zu", (char)('g' + i % 17),
                            (char)('h' + i % 13), i);
        sample_add(sample, bytes_make(key, (size_t)size));
    }
}

static void expect_from(struct made_sample *sample, const char *rule, uint64_t *value,
                        uint64_t least)
{
    *value = least - 1;
    sample_expect(sample, NULL);
    *value = least;
    sample_expect(sample, rule);
}

/* --- sizes and names --- */

static void long_keys(void **state)
{
    struct made_sample *sample = *state;
    static char key[KEY_LONG_BYTES + 2];
    memset(key, 'k', sizeof key);
    sample_add(sample, bytes_make(key, KEY_LONG_BYTES));
    sample_expect(sample, NULL);
    sample_add(sample, bytes_make(key, KEY_LONG_BYTES + 1));
    sample_expect(sample, "key-size");
}

static void keys_that_are_long_on_average(void **state)
{
    struct made_sample *sample = *state;
    static char key[KEY_AVERAGE_BYTES];
    memset(key, 'k', sizeof key);
    for (size_t i = 0; i < KEYS_LEAST; i++) {
        sample_expect(sample, NULL);
        key[0] = (char)('a' + i);
        sample_add(sample, bytes_make(key, sizeof key));
    }
    sample_expect(sample, "key-size");
    sample->rows[0].key.size--;
    sample_expect(sample, NULL);
}

static void large_rows_and_cells(void **state)
{
    struct made_sample *sample = *state;
    add_rows(sample, 30);
    sample_sort(sample);
    expect_from(sample, "row-size", &sample->rows[7].size, ROW_BYTES);
    sample->rows[7].size = 1;
    expect_from(sample, "cell-size", &sample->rows[7].cells[0].size, CELL_BYTES + 1);
    sample->rows[7] = (struct advice_row){.key = sample->rows[7].key, .size = 1}; /* unread */
    sample_expect(sample, NULL);
}

/* Noted rows and cells are told whatever the sample is. One that has shrunk, or is gone, is not. */
static void noted_rows_and_cells(void **state)
{
    struct made_sample *sample = *state;
    struct advice_weight weights[] = {
        {.key = bytes_of("large"), .size = ROW_BYTES, .largest_cell = 1, .family = "f"},
        {.key = bytes_of("gone")},
        {.key = bytes_of("shrunk"), .size = ROW_BYTES - 1, .largest_cell = 9, .family = "f"}};
    add_rows(sample, 30);
    sample->seen.weights = weights;
    sample->seen.weight_count = 3;
    sample_expect(sample, "row-size");
    assert_true(bytes_equal(sample_finding(sample, "row-size")->keys[0], bytes_of("large")));
    weights[0].size--;
    sample_expect(sample, NULL);
    weights[2].largest_cell = CELL_BYTES;
    sample_expect(sample, NULL);
    weights[2].largest_cell++;
    sample_expect(sample, "cell-size");
    assert_true(bytes_equal(sample_finding(sample, "cell-size")->keys[0], bytes_of("shrunk")));
}

static void families(void **state)
{
    struct made_sample *sample = *state;
    for (size_t i = 0; i <= FAMILIES; i++)
        sample->families[i] = (struct advice_family){.name = "f"};
    sample->seen.family_count = FAMILIES;
    sample_expect(sample, NULL);
    sample->seen.family_count = FAMILIES + 1;
    sample_expect(sample, "family-count");
    sample->seen.family_count = 2;
    sample->families[1].name = "sixteen_bytes_ab";
    sample_expect(sample, NULL);
    sample->families[1].name = "seventeen_bytes_a";
    sample_expect(sample, "family-name");
}

static void long_names_of_columns(void **state)
{
    struct made_sample *sample = *state;
    static const char name[] = "this_is_the_name_of_a_column_of_33";
    add_rows(sample, 100);
    sample_sort(sample);
    for (size_t i = 0; i < 49; i++)
        sample->rows[i].cells[0].qualifier = bytes_make(name, QUALIFIER_BYTES + 1);
    sample_expect(sample, NULL);
    sample->rows[49].cells[0].qualifier = bytes_make(name, QUALIFIER_BYTES + 1);
    sample_expect(sample, "qualifier-name");
    for (size_t i = 0; i < 100; i++)
        sample->rows[i].cells[0].qualifier = bytes_make(name, QUALIFIER_BYTES);
    sample_expect(sample, NULL);
}

/* A long name that is another in each row is data. */
static void names_that_are_data(void **state)
{
    struct made_sample *sample = *state;
    add_rows(sample, 100);
    for (size_t i = 0; i < 100; i++) {
        char name[SAMPLE_KEY];
        int size = snprintf(name, sizeof name, "%050zu", i);
        sample->rows[i].cells[0].qualifier =
            arena_copy(sample->arena, bytes_make(name, (size_t)size));
    }
    sample_expect(sample, NULL);
}

/* --- versions --- */

/* A column of so many versions, the newest first. */
static void set_versions(struct made_sample *sample, size_t row, size_t count, int64_t newest_us,
                         int64_t step_us)
{
    struct advice_cell *cells = arena_alloc(sample->arena, count * sizeof *cells);
    assert_non_null(cells);
    for (size_t i = 0; i < count; i++)
        cells[i] = (struct advice_cell){.qualifier = bytes_of("q"),
                                        .timestamp_us = newest_us - (int64_t)i * step_us,
                                        .size = 1};
    sample->rows[row].cells = cells;
    sample->rows[row].cell_count = count;
}

static void cells_that_are_rewritten(void **state)
{
    struct made_sample *sample = *state;
    const int64_t step_us = HOUR_US / (REWRITES - 1);
    add_rows(sample, 30);
    sample_sort(sample);
    set_versions(sample, 3, REWRITES - 1, SAMPLE_NOW_US, SECOND_US);
    sample_expect(sample, NULL);
    set_versions(sample, 3, REWRITES, SAMPLE_NOW_US, step_us);
    sample_expect(sample, "cell-rewrites");
    set_versions(sample, 3, REWRITES, SAMPLE_NOW_US, step_us + SECOND_US);
    sample_expect(sample, NULL);
    set_versions(sample, 3, REWRITES, REWRITES * SECOND_US, SECOND_US); /* no times: numbers */
    sample_expect(sample, NULL);
    set_versions(sample, 3, REWRITES, SAMPLE_NOW_US, SECOND_US);
    sample->families[0].is_aggregate = true;
    sample_expect(sample, NULL);
}

static void families_without_a_rule(void **state)
{
    struct made_sample *sample = *state;
    add_rows(sample, COLUMNS_LEAST);
    sample_sort(sample);
    sample->families[0].has_rule = false;
    sample_expect(sample, NULL); /* one version each */
    set_versions(sample, 0, VERSIONS_WITHOUT_RULE - 1, SAMPLE_NOW_US, HOUR_US);
    sample_expect(sample, NULL);
    set_versions(sample, 0, VERSIONS_WITHOUT_RULE, SAMPLE_NOW_US, HOUR_US);
    sample_expect(sample, "gc-none");
    sample->families[0].has_rule = true;
    sample_expect(sample, NULL);
    sample->families[0].has_rule = false;
    for (size_t i = 0; i < COLUMNS_LEAST; i++)
        set_versions(sample, i, 2, SAMPLE_NOW_US, HOUR_US);
    sample_expect(sample, "gc-none");
    set_versions(sample, 0, 1, SAMPLE_NOW_US, HOUR_US);
    sample_expect(sample, NULL);
}

static void many_versions_under_a_rule(void **state)
{
    struct made_sample *sample = *state;
    add_rows(sample, 10);
    sample_sort(sample);
    for (size_t i = 0; i < 10; i++)
        set_versions(sample, i, VERSIONS_MANY, SAMPLE_NOW_US, HOUR_US);
    sample_expect(sample, "gc-versions");
    set_versions(sample, 0, VERSIONS_MANY - 1, SAMPLE_NOW_US, HOUR_US);
    sample_expect(sample, NULL);
}

static void old_versions_under_a_rule(void **state)
{
    struct made_sample *sample = *state;
    add_rows(sample, 40);
    sample_sort(sample);
    for (size_t i = 0; i < 40; i++)
        set_versions(sample, i, 2, SAMPLE_NOW_US, i < OLD_LEAST ? YEAR_US + SECOND_US : YEAR_US);
    sample_expect(sample, "gc-old");
    sample->families[0].most_age_us = 2 * YEAR_US;
    sample_expect(sample, NULL);
    sample->families[0].most_age_us = INT64_MAX;
    set_versions(sample, 0, 2, SAMPLE_NOW_US, YEAR_US);
    sample_expect(sample, NULL);
}

/* The newest version may be as old as it likes. */
static void old_rows_are_fine(void **state)
{
    struct made_sample *sample = *state;
    add_rows(sample, 100);
    for (size_t i = 0; i < 100; i++)
        set_versions(sample, i, 1, SAMPLE_NOW_US - 3 * YEAR_US, HOUR_US);
    sample_expect(sample, NULL);
}

static void ranges_that_are_mostly_gone(void **state)
{
    struct made_sample *sample = *state;
    struct advice_range range = {.start = bytes_of("a"),
                                 .end = bytes_of("b"),
                                 .rows = 2,
                                 .read = TOMBSTONE_BYTES / TOMBSTONE_TIMES};
    sample->seen.ranges = &range;
    sample->seen.range_count = 1;
    expect_from(sample, "tombstones", &range.stored, TOMBSTONE_BYTES);
    range.read++;
    sample_expect(sample, NULL);
}

/* --- heat --- */

static struct advice_heat hot(const char *start, const char *end, int64_t from_s, double percent)
{
    int64_t from_us = SAMPLE_NOW_US + from_s * SECOND_US;
    return (struct advice_heat){.start = bytes_of(start),
                                .end = bytes_of(end),
                                .from_us = from_us,
                                .until_us = from_us + HOT_US - 1,
                                .cpu_percent = percent};
}

static void expect_of_heat(struct made_sample *sample, struct advice_heat *heat, size_t count,
                           const char *rule)
{
    sample->seen.heat = heat;
    sample->seen.heat_count = count;
    sample_expect(sample, rule);
}

static void hot_ranges(void **state)
{
    struct made_sample *sample = *state;
    struct advice_heat heat[] = {hot("m", "n", 0, HOT_PERCENT), hot("m", "n", 60, HOT_PERCENT),
                                 hot("a", "b", 0, HOT_PERCENT), hot("b", "c", 0, HOT_PERCENT)};
    expect_of_heat(sample, heat, 4, "hot-range");
    assert_true(bytes_equal(sample_finding(sample, "hot-range")->start, bytes_of("m")));
    expect_of_heat(sample, heat, 1, NULL); /* once */
    heat[0].until_us++;                    /* but for too long */
    expect_of_heat(sample, heat, 1, "hot-range");
    heat[0].until_us--;
    heat[3].cpu_percent += 1; /* less than half */
    expect_of_heat(sample, heat, 4, NULL);
    heat[0].cpu_percent = heat[1].cpu_percent = HOT_PERCENT - 1;
    expect_of_heat(sample, heat, 2, NULL);
}

/* A range that is told as a tablet once, and as a part of it then, is one range: the part. */
static void hot_parts_of_tablets(void **state)
{
    struct made_sample *sample = *state;
    struct advice_heat heat[] = {hot("m", "", 0, 50), hot("mb", "mc", 60, 40),
                                 hot("mb", "mc", 120, 40)};
    expect_of_heat(sample, heat, 3, "hot-range");
    assert_true(bytes_equal(sample_finding(sample, "hot-range")->start, bytes_of("mb")));
    heat[2] = hot("ma", "mb", 120, 40);
    expect_of_heat(sample, heat, 3, "hot-range");
    assert_true(bytes_equal(sample_finding(sample, "hot-range")->start, bytes_of("m")));
    heat[0].start = bytes_of(""); /* the whole table */
    expect_of_heat(sample, heat, 3, NULL);
}

static void hot_rows(void **state)
{
    struct made_sample *sample = *state;
    struct advice_heat heat = hot("m", "n", 0, HOT_PERCENT);
    expect_of_heat(sample, &heat, 1, NULL);
    heat.is_one_row = true;
    expect_of_heat(sample, &heat, 1, "hot-key");
    heat.cpu_percent = HOT_PERCENT - 1;
    expect_of_heat(sample, &heat, 1, NULL);
}

/* Two other ranges keep it from being the hot one. */
static void loads_that_rise(void **state)
{
    struct made_sample *sample = *state;
    struct advice_heat heat[] = {hot("m", "n", 0, RAMP_PERCENT / 2.),
                                 hot("m", "n", 300, RAMP_PERCENT), hot("a", "b", 0, 99),
                                 hot("b", "c", 0, 99)};
    expect_of_heat(sample, heat, 4, "ramp");
    heat[0].cpu_percent += 1;
    expect_of_heat(sample, heat, 4, NULL);
    heat[0] = hot("m", "n", -1, RAMP_PERCENT / 2.);
    expect_of_heat(sample, heat, 4, NULL);
    heat[0] = hot("m", "o", 0, RAMP_PERCENT / 2.);
    expect_of_heat(sample, heat, 4, NULL);
    heat[0] = hot("m", "n", 600, RAMP_PERCENT / 2.); /* it falls */
    expect_of_heat(sample, heat, 4, NULL);
}

/* As the server counted it: in a minute, six minutes after one of so many requests. */
static void counted_loads_that_rise(void **state)
{
    struct made_sample *sample = *state;
    struct advice_minute minutes[] = {{0, 60. * 700}, {6, 60. * 1050}};
    struct advice_tablet tablets[] = {{.end = bytes_of("m"), .count = 0},
                                      {.start = bytes_of("m"), .minutes = minutes, .count = 2}};
    sample->seen.tablets = tablets;
    sample->seen.tablet_count = 2;
    sample_expect(sample, NULL);
    minutes[1].requests += 1;
    sample_expect(sample, "ramp");
    assert_true(bytes_equal(sample_finding(sample, "ramp")->start, bytes_of("m")));
    minutes[0].minute = 2; /* less than five minutes before */
    minutes[1].requests = 60 * 751;
    sample_expect(sample, "ramp");
    minutes[1].requests = 60 * 750;
    sample_expect(sample, NULL);
}

/* Of a table that was made by it, when it is over; not of one that reads had been there before. */
static void a_load_that_is_over(void **state)
{
    struct made_sample *sample = *state;
    const int64_t now = SAMPLE_NOW_US / MINUTE_US;
    struct advice_minute minutes[] = {{now - 10, 60. * 5000}, {now - 1, 60. * 5000}};
    struct advice_tablet tablet = {.minutes = minutes, .count = 2};
    sample->seen.tablets = &tablet;
    sample->seen.tablet_count = 1;
    sample_expect(sample, "ramp");
    sample->seen.is_first_load = true;
    sample_expect(sample, "bulk-load");
    minutes[1].minute = now; /* it goes on */
    sample->seen.now_us = now * MINUTE_US + 20 * SECOND_US;
    sample_expect(sample, "ramp");
    minutes[1].requests = 20 * RAMP_FIRST_RATE; /* or only a little does */
    sample_expect(sample, "bulk-load");
    sample->seen.risen_until_us = sample->seen.now_us - MINUTE_US + SECOND_US;
    sample_expect(sample, "ramp"); /* as long as it is a front, too, where keys rise */
    sample->seen.risen_until_us -= SECOND_US;
    sample_expect(sample, "bulk-load");
    sample->seen.risen_until_us = sample->seen.now_us; /* or has stopped: its window shows it yet */
    minutes[1].requests = 60. * 5000;
    sample->seen.unwritten_us = LOAD_REST_US - 1;
    sample_expect(sample, "ramp");
    sample->seen.unwritten_us++;
    sample_expect(sample, "bulk-load");
    sample->seen.is_first_load = false;
    sample_expect(sample, "ramp");
    tablet.count = 0;
    sample_expect(sample, NULL);
}

/* A table that is not new has a front of each device, say, where they are all over it; of a new one
 * it may be the only front, until it is over and was a load. */
static void rising_keys_all_over_a_table(void **state)
{
    struct made_sample *sample = *state;
    struct advice_hotspot hotspot = {.kind = ADVICE_WRITE_FRONTIER,
                                     .share = 0.99,
                                     .total = HOT_REQUESTS,
                                     .part = RISING_PART_PERCENT / 100. - 0.01};
    sample->seen.hotspots = &hotspot;
    sample->seen.hotspot_count = 1;
    sample->seen.risen_until_us = SAMPLE_NOW_US;
    sample_expect(sample, "hot-range");
    hotspot.part += 0.01;
    sample_expect(sample, NULL);
    sample->seen.is_young = true;
    sample_expect(sample, "hot-range");
    sample->seen.unwritten_us = LOAD_REST_US;
    sample_expect(sample, NULL);
    sample->seen.unwritten_us = 0;
    sample->seen.risen_until_us = SAMPLE_NOW_US - MINUTE_US;
    sample_expect(sample, NULL);
    hotspot.part -= 0.01; /* behind what else there is */
    sample_expect(sample, "hot-range");
}

/* Fewer rows count where one window after the other showed it, but not of a table that is filled in
 * the order of its keys. */
static void loads_that_last(void **state)
{
    struct made_sample *sample = *state;
    struct advice_hotspot hotspot = {.kind = ADVICE_HOT_READS, .share = 0.8, .total = HOT_LASTING};
    sample->seen.hotspots = &hotspot;
    sample->seen.hotspot_count = 1;
    sample_expect(sample, NULL);
    hotspot.windows = 2;
    hotspot.from_us = SAMPLE_NOW_US - 42 * SECOND_US;
    sample_expect(sample, "hot-range");
    assert_non_null(
        strstr(sample_finding(sample, "hot-range")->evidence,
               "1000 rows that were read in 2 windows of heat within 42 seconds, 80 %"));
    hotspot.total--;
    sample_expect(sample, NULL);
    hotspot.total = HOT_REQUESTS - 1;
    hotspot.kind = ADVICE_WRITE_FRONTIER;
    sample_expect(sample, "hot-range");
    hotspot.part = RISING_PART_PERCENT / 100.;
    sample->seen.is_young = true;
    sample->seen.risen_until_us = SAMPLE_NOW_US;
    sample_expect(sample, NULL);
    hotspot.total++;
    sample_expect(sample, "hot-range");
    hotspot.kind = ADVICE_HOT_WRITES;
    hotspot.share = 0.7;
    sample_expect(sample, "hot-range");
    assert_non_null(strstr(sample_finding(sample, "hot-range")->evidence, "has 7.5 % of the data"));
}

/* Other faults are not told, and personal data stays hidden. */
static void what_requests_show_since_then(void **state)
{
    struct made_sample *sample = *state;
    struct advice_minute minutes[] = {{6, 60. * 2000}};
    struct advice_tablet tablet = {.minutes = minutes, .count = 1};
    for (int i = 0; i < 100; i++) {
        char key[SAMPLE_KEY];
        int size =
            snprintf(key, sizeof key, "2024-01-%02d#a.person%03d@example.com", i % 28 + 1, i);
        sample_add(sample, bytes_make(key, (size_t)size));
    }
    sample->seen.tablets = &tablet;
    sample->seen.tablet_count = 1;
    sample_look(sample);
    assert_non_null(sample_finding(sample, "key-time-first"));
    assert_non_null(sample_finding(sample, "personal-data"));
    sample->seen.since_us = SAMPLE_NOW_US - 600 * SECOND_US;
    sample_expect(sample, "ramp");
    const struct advice_finding *ramp = sample_finding(sample, "ramp");
    assert_non_null(strstr(ramp->evidence, "in a minute since 2025-10-09T08:43:20Z, "));
    assert_true(ramp->key_count > 0);
    assert_null(memmem(ramp->keys[0].data, ramp->keys[0].size, "person", strlen("person")));
}

/* Fewer requests count if they came at once. */
static void a_row_that_all_ask_for_is_hot(void **state)
{
    struct made_sample *sample = *state;
    struct advice_minute minute = {6, HOT_ROW_MINUTE};
    struct advice_tablet tablet = {.minutes = &minute, .count = 1};
    const struct advice_hotspot hotspot = {.kind = ADVICE_HOT_ROW,
                                           .start = bytes_of("m"),
                                           .end = bytes_of("n"),
                                           .key = bytes_of("m"),
                                           .share = 0.6,
                                           .total = HOT_ROW_REQUESTS};
    sample->seen.hotspots = &hotspot;
    sample->seen.hotspot_count = 1;
    sample_expect(sample, NULL); /* over an hour */
    sample->seen.tablets = &tablet;
    sample->seen.tablet_count = 1;
    sample_expect(sample, "hot-key");
    minute.requests--;
    sample_expect(sample, NULL);
}

static void rows_that_are_rewritten(void **state)
{
    struct made_sample *sample = *state;
    sample->seen.rewritten = (struct advice_rewritten){bytes_of("counter"), ROW_WRITES - 1};
    sample_expect(sample, NULL);
    sample->seen.rewritten.writes = ROW_WRITES;
    sample_expect(sample, "cell-rewrites");
    assert_true(bytes_equal(sample_finding(sample, "cell-rewrites")->keys[0], bytes_of("counter")));
    sample->families[0].is_aggregate = true;
    sample_expect(sample, NULL);
}

/* --- tables --- */

static void names_of_siblings(void **state)
{
    (void)state;
    assert_true(are_siblings("events_2024_01", "events_2024_02"));
    assert_true(are_siblings("tenant7-orders", "tenant12-orders"));
    assert_false(are_siblings("events_2024_01", "events_2024_01"));
    assert_false(are_siblings("events_2024", "events_2024_02"));
    assert_false(are_siblings("orders", "users"));
    assert_false(are_siblings("orders1", "orders"));
    assert_false(are_siblings("orders1", "users2"));
    assert_false(are_siblings("1", "2"));
    assert_false(are_siblings("a1b", "a1"));
    assert_true(share_last_word("acme-orders", "globex-labs-orders"));
    assert_true(share_first_word("prices_de", "prices_fr"));
    assert_false(share_last_word("orders", "globex-orders"));
    assert_false(share_last_word("acme-orders", "acme-orders"));
    assert_false(share_last_word("acme-orders", "acme-preorders"));
    assert_false(share_first_word("a-orders", "a-users")); /* a letter is no word */
}

static void small_tables(void **state)
{
    struct made_sample *sample = *state;
    struct advice_sibling siblings[SIBLINGS];
    sample->seen.table_id = "t1";
    for (size_t i = 0; i < SIBLINGS; i++)
        siblings[i] =
            (struct advice_sibling){.id = "t2", .is_known = true, .has_same_families = true};
    sample->seen.siblings = siblings;
    sample->seen.sibling_count = SIBLINGS - 2;
    sample_expect(sample, NULL);
    sample->seen.sibling_count = SIBLINGS - 1;
    sample_expect(sample, "small-tables");
    siblings[3].size = SIBLING_BYTES;
    sample_expect(sample, NULL);
    siblings[3].size = 0;
    siblings[3].has_same_families = false;
    sample_expect(sample, NULL);
    siblings[3].is_known = false; /* its families and size are unknown */
    sample_expect(sample, NULL);
    siblings[3] = siblings[2];
    sample->seen.table_size = SIBLING_BYTES;
    sample_expect(sample, NULL);
}

static void tables_of_customers(void **state)
{
    static const char *const ids[] = {"globex-orders", "initech-orders", "hooli-orders",
                                      "umbrella-orders", "stark-orders"};
    struct made_sample *sample = *state;
    struct advice_sibling siblings[SIBLINGS - 1];
    for (size_t i = 0; i < SIBLINGS - 1; i++)
        siblings[i] =
            (struct advice_sibling){.id = ids[i], .is_known = true, .has_same_families = true};
    sample->seen.table_id = "acme-orders";
    sample->seen.siblings = siblings;
    sample->seen.sibling_count = SIBLINGS - 1;
    sample_expect(sample, "small-tables");
    siblings[2].has_same_families = false; /* it is for something else */
    sample_expect(sample, NULL);
    siblings[2].has_same_families = true;
    siblings[2].size = SIBLING_BYTES;
    sample_expect(sample, NULL);
}

static void many_tables(void **state)
{
    struct made_sample *sample = *state;
    sample->seen.table_count = TABLES_MANY - 1;
    sample_expect(sample, NULL);
    sample->seen.table_count = TABLES_MANY;
    sample_expect(sample, "table-count");
}

/* --- all --- */

static void an_empty_table_has_no_findings(void **state)
{
    struct made_sample *sample = *state;
    sample->seen.family_count = 0;
    sample_expect(sample, NULL);
}

static void the_most_severe_comes_first(void **state)
{
    struct made_sample *sample = *state;
    struct advice_heat heat[] = {hot("m", "n", 0, 50), hot("m", "n", 400, 50)};
    heat[0].is_one_row = true;
    sample->families[0].name = "a_name_that_is_too_long";
    sample->seen.heat = heat;
    sample->seen.heat_count = 2;
    sample_look(sample);
    assert_int_equal(sample->advice.count, 3);
    assert_string_equal(sample->advice.findings[0].rule->id, "hot-key");
    assert_string_equal(sample->advice.findings[1].rule->id, "hot-range");
    assert_string_equal(sample->advice.findings[2].rule->id, "family-name");
}

static void a_report_has_all_of_a_finding(void **state)
{
    struct made_sample *sample = *state;
    const struct advice_sample how = {.places = 1, .bytes = 1 << 20};
    struct buffer text = {0}, json = {0};
    add_rows(sample, 30);
    sample_sort(sample);
    sample->rows[0].size = ROW_BYTES;
    sample->rows[0].key = bytes_make("a\x00\xff\"\\", 5);
    sample_look(sample);
    advice_write_text(&sample->seen, &how, &sample->advice, &text);
    advice_write_json(&sample->seen, &how, &sample->advice, &json);
    buffer_append_byte(&text, 0);
    buffer_append_byte(&json, 0);
    assert_false(text.failed || json.failed);
    assert_non_null(strstr((char *)text.data, "t: 30 rows sampled at 1 places, 1.0 MiB read\n"));
    assert_non_null(strstr((char *)text.data, "warning: Rows are too large (row-size)\n"));
    assert_non_null(strstr((char *)text.data, "Keys: a\\x00\\xff\"\\x5c\n"));
    assert_non_null(strstr((char *)json.data, "\"keys\": [\"a\\\\x00\\\\xff\\\"\\\\x5c\"]"));
    buffer_free(&text);
    buffer_free(&json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(long_keys),
        TEST(keys_that_are_long_on_average),
        TEST(large_rows_and_cells),
        TEST(noted_rows_and_cells),
        TEST(families),
        TEST(long_names_of_columns),
        TEST(names_that_are_data),
        TEST(cells_that_are_rewritten),
        TEST(families_without_a_rule),
        TEST(many_versions_under_a_rule),
        TEST(old_versions_under_a_rule),
        TEST(old_rows_are_fine),
        TEST(ranges_that_are_mostly_gone),
        TEST(hot_ranges),
        TEST(hot_parts_of_tablets),
        TEST(hot_rows),
        TEST(loads_that_rise),
        TEST(counted_loads_that_rise),
        TEST(a_load_that_is_over),
        TEST(rising_keys_all_over_a_table),
        TEST(loads_that_last),
        TEST(what_requests_show_since_then),
        TEST(a_row_that_all_ask_for_is_hot),
        TEST(rows_that_are_rewritten),
        TEST(names_of_siblings),
        TEST(small_tables),
        TEST(tables_of_customers),
        TEST(many_tables),
        TEST(an_empty_table_has_no_findings),
        TEST(the_most_severe_comes_first),
        TEST(a_report_has_all_of_a_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
