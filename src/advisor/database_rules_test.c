/* The rules of Datastore: each speaks where the evidence is there, and not below. */
#include "advisor/database.h"

#include "advisor/testing/testing.h"

enum { MOST = 200 };

struct made_database {
    struct advice_point points[MOST];
    int64_t commits_us[MOST];
    struct advice_minute minutes[MOST];
    struct advice_row keys[MOST];
    bytes words[MOST];
    struct advice_series series;
    struct advice_roots roots;
    struct advice_entity entity;
    struct advice_group group;
    struct advice_index index;
    struct advice_kind kind;
    struct advice_composites composites;
};

static void expect(struct made_sample *sample, struct made_database *made, const char *rule)
{
    const struct advice_database database = {.series = &made->series,
                                             .series_count = 1,
                                             .roots = &made->roots,
                                             .roots_count = 1,
                                             .entities = &made->entity,
                                             .entity_count = 1,
                                             .groups = &made->group,
                                             .group_count = 1,
                                             .indexes = &made->index,
                                             .index_count = 1,
                                             .kinds = &made->kind,
                                             .kind_count = 1,
                                             .composites = &made->composites,
                                             .composites_count = 1};
    made->series.points = made->points;
    made->series.kind = made->series.property = "x";
    made->group.commits_us = made->commits_us;
    made->index.name = made->kind.name = made->roots.kind = made->composites.kind = "x";
    made->group.root = made->entity.words = bytes_of("x 1");
    made->kind.minutes = made->minutes;
    made->roots.keys = made->keys;
    made->roots.words = made->words;
    assert_ok(advice_find_in_database(&sample->seen, &database, sample->arena, &sample->advice));
    assert_int_equal(sample->advice.count, rule != NULL);
    if (rule != NULL)
        assert_string_equal(sample->advice.findings[0].rule->id, rule);
}

/* Values that rise with the commits, except every `odd`-th (0: none). */
static void set_points(struct made_sample *sample, struct made_database *made, size_t count,
                       int64_t step_us, size_t odd, bool are_times)
{
    char text[16];
    made->series.count = count;
    for (size_t i = 0; i < count; i++) {
        bool is_odd = odd > 0 && i % odd == 0;
        snprintf(text, sizeof text, "%08zu", is_odd ? count - i : i);
        made->points[i] = (struct advice_point){
            .written_us = SAMPLE_NOW_US + step_us * (int64_t)i,
            .value = arena_copy(sample->arena, bytes_of(text)),
            .is_time = are_times,
        };
    }
}

static void rising_values(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {0};
    expect(sample, &made, NULL);
    set_points(sample, &made, 100, SECOND_US, 0, true);
    expect(sample, &made, "index-rising");
    set_points(sample, &made, 19, SECOND_US, 0, true); /* too few */
    expect(sample, &made, NULL);
    set_points(sample, &made, 100, SECOND_US, 3, true); /* not in order */
    expect(sample, &made, NULL);
    set_points(sample, &made, 100, 0, 0, true); /* of one commit */
    expect(sample, &made, NULL);
    set_points(sample, &made, 100, SECOND_US, 0, false); /* numbers that were loaded in order */
    expect(sample, &made, NULL);
    set_points(sample, &made, 100, HOUR_US, 0, false);
    expect(sample, &made, "index-rising");
}

/* Integers that were loaded in order, each there once, are a counter's if they lie close together.
 */
static void counters(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {0};
    set_points(sample, &made, COUNTER_LEAST, SECOND_US, 0, false);
    for (size_t i = 0; i < COUNTER_LEAST; i++) {
        made.points[i].is_number = true;
        made.points[i].number = 5000 + (int64_t)i * COUNTER_TIMES;
    }
    expect(sample, &made, "index-rising");
    made.points[COUNTER_LEAST - 1].number += 2 * COUNTER_TIMES; /* codes */
    expect(sample, &made, NULL);
    made.points[COUNTER_LEAST - 1].number -= 2 * COUNTER_TIMES;
    made.points[1].value = made.points[0].value; /* twice */
    expect(sample, &made, NULL);
}

static void set_commits(struct made_database *made, size_t count, int64_t step_us, size_t times)
{
    made->group.count = count * times;
    for (size_t i = 0; i < count * times; i++)
        made->commits_us[i] = SAMPLE_NOW_US - step_us * (int64_t)(i / times);
}

/* Of the first finding: which keys would be better. */
static void assert_shards(const struct made_sample *sample, const char *key, const char *first,
                          const char *last)
{
    const struct advice_finding *finding = &sample->advice.findings[0];
    assert_int_equal(finding->better_count, ADVICE_KEYS_SHOWN);
    assert_true(bytes_equal(finding->better[0].key, bytes_of(key)));
    assert_true(bytes_equal(finding->better[0].better, bytes_of(first)));
    assert_true(bytes_equal(finding->better[ADVICE_KEYS_SHOWN - 1].better, bytes_of(last)));
}

static void groups(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {0};
    set_commits(&made, 61, SECOND_US / 2, 1);
    expect(sample, &made, "group-writes");
    assert_shards(sample, "x 1", "x \"1#0\"", "x \"1#2\"");
    set_commits(&made, 60, SECOND_US / 2, 1);
    expect(sample, &made, NULL);
    set_commits(&made, 200, SECOND_US, 1); /* one a second */
    expect(sample, &made, NULL);
    set_commits(&made, 50, SECOND_US, 4); /* four entities a commit */
    expect(sample, &made, NULL);
}

static void deletes(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {.index = {.live = 55, .dead = 500}};
    expect(sample, &made, "index-deletes");
    made.index.live = 56;
    expect(sample, &made, NULL);
    made.index = (struct advice_index){.live = 0, .dead = 499};
    expect(sample, &made, NULL);
}

static void set_minutes(struct made_database *made, size_t count, double rate, double rise)
{
    made->kind.count = count;
    for (size_t i = 0; i < count; i++) {
        made->minutes[i] = (struct advice_minute){.minute = (int64_t)i, .requests = 60 * rate};
        rate *= rise;
    }
}

static void kinds(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {0};
    set_minutes(&made, 1, 751, 1);
    expect(sample, &made, "kind-ramp");
    set_minutes(&made, 1, 749, 1);
    expect(sample, &made, NULL);
    set_minutes(&made, 60, 500, 1.08); /* half more in five minutes is 1.0845 in each */
    expect(sample, &made, NULL);
    set_minutes(&made, 60, 500, 1.09);
    expect(sample, &made, "kind-ramp");
}

/* Keys as they are printed of rising numbers, ten neighbours a place. */
static void set_keys(struct made_sample *sample, struct made_database *made, size_t count,
                     const char *format, size_t step)
{
    char text[64];
    made->roots.count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, format, 1000 + i * step);
        made->keys[i] = (struct advice_row){
            .key = arena_copy(sample->arena, bytes_of(text)),
            .place = (uint32_t)(i / SAMPLE_PLACE),
            .cells = arena_zalloc(sample->arena, sizeof(struct advice_cell)),
            .cell_count = 1,
        };
        snprintf(text, sizeof text, "x %zu", i);
        made->words[i] = arena_copy(sample->arena, bytes_of(text));
    }
}

static void keys(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {0};
    const struct advice_finding *found = sample->advice.findings;
    set_keys(sample, &made, 200, "%zu", 7); /* ids */
    made.roots.better = made.words;
    expect(sample, &made, "entity-keys");
    assert_true(found->better_count == ADVICE_KEYS_SHOWN);
    assert_true(bytes_equal(found->better[0].better, bytes_of("x 33")));
    made.roots.better = NULL;
    set_keys(sample, &made, 200, "order%zu", 7);
    expect(sample, &made, "entity-keys");
    assert_true(bytes_equal(found->keys[0], bytes_of("x 33")));
    assert_int_equal(found->better_count, ADVICE_KEYS_SHOWN);
    set_keys(sample, &made, 200, "17%zu0000#a", 7); /* seconds since 1970, if they are times */
    expect(sample, &made, NULL);
    for (size_t i = 0; i < 200; i++)
        made.keys[i].cells->timestamp_us = SAMPLE_NOW_US + (int64_t)i * SECOND_US;
    expect(sample, &made, "entity-keys");
    set_keys(sample, &made, 200, "%zu", 7919); /* that were drawn */
    expect(sample, &made, NULL);
    set_keys(sample, &made, 19, "%zu", 77); /* too few */
    expect(sample, &made, NULL);
}

static void sizes(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {.entity = {.size = ENTITY_BYTES - 1}};
    expect(sample, &made, NULL);
    made.entity.size = ENTITY_BYTES;
    expect(sample, &made, "entity-size");
    assert_true(bytes_equal(sample->advice.findings[0].keys[0], bytes_of("x 1")));
}

static void index_rows(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {.entity = {.index_rows = INDEX_ROWS_MANY - 1}};
    expect(sample, &made, NULL);
    made.entity.index_rows = INDEX_ROWS_MANY;
    expect(sample, &made, "index-rows");
    made.entity.widest = "(a, b)";
    made.entity.widest_rows = 900;
    expect(sample, &made, "index-rows");
    assert_non_null(strstr(sample->advice.findings[0].evidence, "900 of them in the composite"));
    assert_non_null(strstr(sample->advice.findings[0].evidence, "(a, b)"));
}

static void index_count(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {.composites = {.count = COMPOSITES_MANY - 1}};
    expect(sample, &made, NULL);
    made.composites.count = COMPOSITES_MANY;
    expect(sample, &made, "index-count");
}

static void names(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {.entity = {.odd = NULL}};
    expect(sample, &made, NULL);
    made.entity.odd = "the kind a/b";
    expect(sample, &made, "entity-names");
    assert_non_null(strstr(sample->advice.findings[0].evidence, "the kind a/b"));
}

/* Names may have what a terminal obeys; and a sentence that is too long ends with a whole letter.
 */
static void names_are_shown(void **state)
{
    enum { LETTERS = 1000 };
    struct made_sample *sample = *state;
    struct made_database made = {.entity = {.odd = "the kind a\x1b[2J/b"}};
    char letters[2 * LETTERS + 2] = {0};
    expect(sample, &made, "entity-names");
    sample_check_words(sample);
    assert_non_null(strstr(sample->advice.findings[0].evidence, "the kind a\\x1b[2J/b"));
    for (size_t odd = 0; odd < 2; odd++) {
        for (size_t i = 0; i < 2 * LETTERS; i++)
            letters[odd + i] = "\xc3\x9f"[i % 2];
        letters[0] = odd == 1 ? 'a' : letters[0];
        made.entity.odd = letters;
        expect(sample, &made, "entity-names");
        sample_check_words(sample);
        assert_null(strstr(sample->advice.findings[0].evidence, "\\x"));
    }
}

static void hot_entities(void **state)
{
    struct made_sample *sample = *state;
    struct made_database made = {0};
    struct advice_hotspot hotspot = {
        .kind = ADVICE_HOT_ROW, .key = bytes_of("x 1"), .share = 0.5, .total = HOT_REQUESTS};
    sample->seen.hotspots = &hotspot;
    sample->seen.hotspot_count = 1;
    expect(sample, &made, "hot-key");
    assert_true(bytes_equal(sample->advice.findings[0].keys[0], bytes_of("x 1")));
    assert_shards(sample, "x 1", "x \"1#0\"", "x \"1#2\"");
    hotspot.key = bytes_of("x 1 / Line \"a b\"");
    expect(sample, &made, "hot-key");
    assert_shards(sample, "x 1 / Line \"a b\"", "x 1 / Line \"a b#0\"", "x 1 / Line \"a b#2\"");
    hotspot.share = 0.49;
    expect(sample, &made, NULL);
    hotspot =
        (struct advice_hotspot){.kind = ADVICE_HOT_WRITES, .share = 0.8, .total = HOT_REQUESTS};
    expect(sample, &made, "hot-range");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(sizes, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(index_rows, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(index_count, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(names, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(names_are_shown, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(hot_entities, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(rising_values, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(counters, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(groups, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(deletes, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(kinds, sample_setup, sample_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
