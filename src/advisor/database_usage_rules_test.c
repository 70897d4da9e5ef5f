/* The rules about what clients do to a database, and which of its indexes they use: each speaks
 * where the evidence is there, and not of what looks alike. */
#include "advisor/database.h"

#include "advisor/testing/testing.h"

enum { MOST_USES = 200 };

struct made_usage {
    struct advice_kind_usage kind;
    struct advice_kind_usage other; /* without a name: there is none */
    struct advice_database_usage usage;
    struct advice_index_use uses[MOST_USES];
    size_t use_count;
    int64_t since_us;
};

static const struct made_usage nothing = {
    .kind = {.kind = "Order", .commits = 1000},
    .usage = {.span_us = 30 * MINUTE_US, .lookups = 10000, .begun = 100},
    .since_us = SAMPLE_NOW_US - 30 * DAY_US,
};

/* Only this, or nothing. */
static const struct advice_finding *expect(struct made_sample *sample, struct made_usage *made,
                                           const char *rule)
{
    struct advice_database database = {.usage = made->usage,
                                       .index_uses = made->uses,
                                       .index_use_count = made->use_count,
                                       .uses_since_us = made->since_us};
    const struct advice_kind_usage kinds[] = {made->kind, made->other};
    database.usage.kinds = kinds;
    database.usage.kind_count = made->other.kind == NULL ? 1 : 2;
    assert_ok(advice_find_in_database(&sample->seen, &database, sample->arena, &sample->advice));
    assert_int_equal(sample->advice.count, rule != NULL);
    if (rule == NULL)
        return NULL;
    assert_string_equal(sample->advice.findings[0].rule->id, rule);
    return &sample->advice.findings[0];
}

static void expect_words(const struct advice_finding *finding, const char *words)
{
    assert_non_null(strstr(finding->evidence, words));
}

static void offsets(void **state)
{
    struct made_usage made = nothing;
    made.kind.queries = made.kind.offsets = OFFSET_QUERIES;
    made.kind.skipped = OFFSET_SKIPPED;
    made.kind.offset_results = OFFSET_SKIPPED / OFFSET_TIMES;
    const struct advice_finding *finding = expect(*state, &made, "query-offsets");
    expect_words(finding, "of the kind Order skipped 10000 results by an offset and gave 1000");
    assert_true(bytes_equal(finding->better[0].better,
                            bytes_of("SELECT * FROM Order LIMIT 20 OFFSET @cursor")));
    made.kind.offset_results++; /* the second page, of short ones */
    expect(*state, &made, NULL);
    made.kind.offset_results--;
    made.kind.offsets--; /* now and then */
    expect(*state, &made, NULL);
    made.kind.offsets++;
    made.kind.skipped--;
    expect(*state, &made, NULL);
}

static void whole_kinds(void **state)
{
    struct made_usage made = nothing;
    made.kind.queries = made.kind.scans = SCANS;
    made.kind.scanned = SCANS * SCANNED;
    const struct advice_finding *finding = expect(*state, &made, "kind-scans");
    expect_words(finding, "from its first entity to its last 20 times, and 2000 whole entities");
    assert_int_equal(finding->rule->severity, ADVICE_INFO);
    made.kind.scanned--; /* a small kind */
    expect(*state, &made, NULL);
    made.kind.scanned++;
    made.kind.scans--; /* a job now and then */
    expect(*state, &made, NULL);
}

static void entity_calls(void **state)
{
    struct made_usage made = nothing;
    made.kind.single_lookups = 2 * LOOP_CALLS;
    made.kind.lookups_in_loops = LOOP_CALLS;
    const struct advice_finding *finding = expect(*state, &made, "entity-calls");
    expect_words(finding, "300 of 600 lookups of a single entity came one after the other");
    made.kind.single_lookups++; /* most are of people */
    expect(*state, &made, NULL);
    made.kind.single_writes = made.kind.writes_in_loops = LOOP_CALLS;
    finding = expect(*state, &made, "entity-calls");
    expect_words(finding, "300 of 300 commits of a single one");
    assert_true(bytes_equal(finding->better[0].better, bytes_of("put_multi([Order, ...]) of 500")));
    made.kind.writes_in_loops--;
    expect(*state, &made, NULL);
}

static void open_transactions(void **state)
{
    struct made_usage made = nothing;
    made.kind.left = LEFT - 5;
    made.kind.open = 5;
    const struct advice_finding *finding = expect(*state, &made, "open-transactions");
    expect_words(finding, "Of 100 transactions");
    expect_words(finding, "15 expired, and 5 have been left alone");
    expect_words(finding, "the kind Order first");
    made.usage.begun = LEFT * 100 / LEFT_PERCENT + 1; /* clients crash */
    expect(*state, &made, NULL);
    made.usage.begun = 100;
    made.kind.open--;
    expect(*state, &made, NULL);
}

static void contention(void **state)
{
    struct made_usage made = nothing;
    made.usage.aborted =
        (struct advice_counted_key){.words = bytes_of("Counter \"all\""), .calls = 20};
    made.kind.aborted = ABORTED;
    made.kind.commits = ABORTED * 100 / ABORTED_PERCENT - ABORTED;
    const struct advice_finding *finding = expect(*state, &made, "contention");
    expect_words(finding, "of 400 commits of entities of the kind Order");
    expect_words(finding, "most of them of the group of Counter \"all\" (20)");
    assert_true(bytes_equal(finding->better[0].better, bytes_of("Counter \"all#0\"")));
    made.kind.commits++;
    expect(*state, &made, NULL);
    made.kind.commits = made.kind.aborted = ABORTED - 1;
    expect(*state, &made, NULL);
}

static void one_entity(void **state)
{
    struct made_sample *sample = *state;
    struct made_usage made = nothing;
    made.usage.entity =
        (struct advice_counted_key){.words = bytes_of("Settings \"all\""), .calls = HOT_LOOKUPS};
    made.usage.lookups = 2 * HOT_LOOKUPS;
    const struct advice_finding *finding = expect(sample, &made, "hot-entity");
    expect_words(finding, "2000 or more had Settings \"all\" among their keys");
    made.usage.lookups++;
    expect(sample, &made, NULL);
    made.usage.lookups = made.usage.entity.calls = HOT_LOOKUPS - 1;
    expect(sample, &made, NULL);
    made.usage.lookups = made.usage.entity.calls = HOT_LOOKUPS;
    struct advice_hotspot hotspot = {/* which says the same, and more */
                                     .kind = ADVICE_HOT_ROW,
                                     .key = bytes_of("x 1"),
                                     .share = 0.5,
                                     .total = HOT_REQUESTS};
    sample->seen.hotspots = &hotspot;
    sample->seen.hotspot_count = 1;
    expect(sample, &made, "hot-key");
}

static void groups_that_were_counted(void **state)
{
    struct made_usage made = nothing;
    made.usage.group =
        (struct advice_counted_key){.words = bytes_of("Page \"x\""), .calls = GROUP_COMMITS + 1};
    const struct advice_finding *finding = expect(*state, &made, "group-writes");
    expect_words(finding, "1 group; the one of Page \"x\" had 61 commits or more within a minute");
    made.usage.group.calls--;
    expect(*state, &made, NULL);
}

/* `count` of them, none used. */
static void set_uses(struct made_sample *sample, struct made_usage *made, size_t count)
{
    char name[16];
    made->use_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "p%zu", i);
        made->uses[i] = (struct advice_index_use){
            .kind = "Order",
            .name = arena_string(sample->arena, bytes_of(name)),
            .rows = 1,
            .bytes = 40,
        };
    }
}

static void indexes_unused_for_a_week(void **state)
{
    struct made_usage made = nothing;
    set_uses(*state, &made, 3);
    made.uses[0].used_us = SAMPLE_NOW_US - DAY_US;
    made.uses[1].used_us = SAMPLE_NOW_US - 8 * DAY_US;
    made.since_us = SAMPLE_NOW_US - UNUSED_US + 1; /* not known for a week */
    expect(*state, &made, NULL);
    made.since_us = SAMPLE_NOW_US - 9 * DAY_US;
    const struct advice_finding *finding = expect(*state, &made, "index-unused");
    expect_words(finding, "Of 3 indexes of the kind Order");
    expect_words(finding, "2 have answered no query since 2025-10-01T08:53:20Z: p1, p2.");
    expect_words(finding, "Of the 3.0 rows that an entity has in all of these, 2.0 are there");
    expect_words(finding, "with keys of 80 bytes");
    made.uses[1].used_us = SAMPLE_NOW_US;
    finding = expect(*state, &made, "index-unused");
    expect_words(finding, "1 have answered no query since 2025-09-30T08:53:20Z, when they began "
                          "to be looked at: p2.");
    made.kind.commits = 0; /* an archive, which is not written */
    expect(*state, &made, NULL);
    made.kind.commits = 1;
    made.uses[2].used_us = SAMPLE_NOW_US;
    expect(*state, &made, NULL);
    made.uses[2].used_us = 0;
    made.since_us = 0; /* uses are not recorded */
    expect(*state, &made, NULL);
}

/* The costliest come first, and the kind that would save the most is told, with what all would. */
static void unused_indexes_are_told_with_their_size(void **state)
{
    struct made_usage made = nothing;
    set_uses(*state, &made, 9);
    for (size_t i = 0; i < 9; i++)
        made.uses[i].stored = (i + 1) << 20;
    made.uses[0].used_us = SAMPLE_NOW_US;
    made.uses[3].stored = 3 << 10;
    const struct advice_finding *finding = expect(*state, &made, "index-unused");
    expect_words(finding, ": p8 (9.0 MiB), p7 (8.0 MiB), p6 (7.0 MiB), p5 (6.0 MiB), p4 (5.0 MiB) "
                          "and 3 more. They take about 40.0 MiB in all. Of the 9.0 rows");
    made.uses[1].kind = made.uses[3].kind = made.other.kind = "Item";
    made.other.commits = 1;
    finding = expect(*state, &made, "index-unused");
    expect_words(finding, "Of 7 indexes of the kind Order");
    expect_words(finding, "in all; the 8 unused indexes of 2 kinds about 40.0 MiB.");
    made.uses[1].stored = 50 << 20;
    finding = expect(*state, &made, "index-unused");
    expect_words(finding, "Of 2 indexes of the kind Item");
    expect_words(finding, ": p1 (50.0 MiB), p3 (3.0 KiB). They take about 50.0 MiB in all; the");
    made.other.commits = 0; /* it is not written */
    expect_words(expect(*state, &made, "index-unused"), "They take about 38.0 MiB in all. Of");
}

/* Before a week is over there must be many, beside queries. */
static void indexes_unused_so_far(void **state)
{
    struct made_usage made = nothing;
    made.since_us = SAMPLE_NOW_US - HOUR_US;
    made.kind.queries = UNUSED_QUERIES;
    set_uses(*state, &made, UNUSED_EARLY + 1);
    made.uses[0].used_us = SAMPLE_NOW_US;
    const struct advice_finding *finding = expect(*state, &made, "index-unused");
    expect_words(finding, "50 have answered no query since 2025-10-09T07:53:20Z, when they began");
    expect_words(finding, "p1, p2, p3, p4, p5 and 45 more.");
    made.uses[1].used_us = SAMPLE_NOW_US; /* one fewer */
    expect(*state, &made, NULL);
    set_uses(*state, &made, UNUSED_EARLY + 1);
    made.kind.queries--; /* hardly asked so far */
    expect(*state, &made, NULL);
    made.kind.queries++;
    set_uses(*state, &made, 100);
    for (size_t i = 0; i < 26; i++) /* many are used */
        made.uses[i].used_us = SAMPLE_NOW_US;
    expect(*state, &made, NULL);
}

/* Findings of calls since some time tell only what has happened since then. */
static void calls_since_then(void **state)
{
    struct made_sample *sample = *state;
    struct made_usage made = nothing;
    made.kind.queries = made.kind.offsets = OFFSET_QUERIES;
    made.kind.skipped = OFFSET_SKIPPED;
    set_uses(sample, &made, 3);
    sample->seen.since_us = SAMPLE_NOW_US - HOUR_US;
    expect(sample, &made, "query-offsets");
    made.kind.offsets = 0;
    expect(sample, &made, NULL);
    sample->seen.since_us = 0;
    expect(sample, &made, "index-unused");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(offsets, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(whole_kinds, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(entity_calls, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(open_transactions, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(contention, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(one_entity, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(groups_that_were_counted, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(indexes_unused_for_a_week, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(unused_indexes_are_told_with_their_size, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(indexes_unused_so_far, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(calls_since_then, sample_setup, sample_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
