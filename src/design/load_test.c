/* What the advisor says about tables that are described, and the map that their load makes. */
#include "design/load.h"

#include "advisor/gather.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "design/made_source.h"
#include "design/show.h"

#include <stdio.h>

#define NOW_US ((int64_t)1767225600 * 1000 * 1000)

struct described {
    struct arena *arena;
    struct design design;
    struct made_table made;
    struct load load;
    struct made_source source;
    struct advice_observations seen;
    struct advice_sample sample;
    struct advice advice;
};

static int setup(void **state)
{
    struct described *described = *state = calloc(1, sizeof *described);
    assert_non_null(described);
    described->arena = arena_create(256 << 20);
    return described->arena == NULL;
}

static int teardown(void **state)
{
    struct described *described = *state;
    arena_destroy(described->arena);
    free(described);
    return 0;
}

static status look(struct described *d, const char *text, uint64_t seed)
{
    TRY(design_read(bytes_of(text), d->arena, &d->design));
    TRY(made_table_create(&d->design.tables[0], seed, NOW_US, d->arena, &d->made));
    TRY(load_play(&d->made, &d->load));
    d->source = (struct made_source){.design = &d->design, .made = &d->made, .load = &d->load};
    struct gather_options options = {.table_id = d->design.tables[0].name,
                                     .now_us = NOW_US,
                                     .places = 100,
                                     .rows = 10,
                                     .bytes = UINT64_MAX,
                                     .time_limit_us = INT64_MAX,
                                     .seed = seed,
                                     .shows_values = true};
    made_source_init(&d->source, d->arena, &options.source);
    TRY(gather(&options, &d->seen, &d->sample));
    return advice_find(&d->seen, d->arena, &d->advice);
}

/* A table of three columns, the keys and the accesses of which are these. */
static void describe(char *text, size_t size, int rows, const char *parts, const char *columns,
                     const char *access)
{
    int end = snprintf(text, size,
                       "tables: [{name: t, rows: %d, families: {f: {gc: {versions: 1}}},\n"
                       "  key: {parts: [%s]},\n  columns: [%s]",
                       rows, parts, columns);
    snprintf(text + end, size - (size_t)end, access[0] != '\0' ? ",\n  access: [%s]}]\n" : "%s}]\n",
             access);
}

static void look_at_rows(struct described *d, int rows, const char *parts, const char *columns,
                         const char *access)
{
    char text[2048];
    describe(text, sizeof text, rows, parts, columns, access);
    assert_ok(look(d, text, 1));
}

static void look_at(struct described *d, const char *parts, const char *columns, const char *access)
{
    look_at_rows(d, 5000000, parts, columns, access);
}

static bool has_found(const struct described *d, const char *rule)
{
    for (size_t i = 0; i < d->advice.count; i++)
        if (strcmp(d->advice.findings[i].rule->id, rule) == 0)
            return true;
    return false;
}

/* --- what the rules say --- */

#define OWNER "{name: who, kind: word, count: 300}"

static const struct {
    const char *parts;
    const char *columns;
    const char *access;
    const char *rule; /* NULL: nothing is wrong */
} cases[] = {
    {"{kind: time, form: seconds}, " OWNER, "{name: a}, {name: b}", "", "key-time-first"},
    {"{kind: time, form: date}, " OWNER, "{name: a}, {name: b}", "", "key-time-first"},
    {"{kind: uuid, version: 7}", "{name: a}, {name: b}", "", "key-time-first"},
    {"{kind: word, words: [click, view]}, {kind: time, form: milliseconds}", "{name: a}, {name: b}",
     "", "key-time-first"},
    {"{kind: number, order: rising, digits: 9}", "{name: a}, {name: b}", "", "key-sequential"},
    {"user, {kind: number, order: rising, digits: 9}", "{name: a}, {name: b}", "",
     "key-sequential"},
    {"{kind: hash, digits: 32}", "{name: a}, {name: b}", "", "key-hashed"},
    {"{kind: bytes, size: 3}, {kind: bytes, size: 2}", "{name: a}, {name: b}", "", "key-binary"},
    {OWNER ", {kind: number, to: 90000}", "{name: a}, {name: b}", "", "key-padding"},
    {"{kind: domain, count: 50000}, " OWNER, "{name: a}, {name: b}", "", "key-domain"},
    {"{kind: email, count: 100000}, {kind: time}", "{name: a}, {name: b}", "", "personal-data"},
    {"{kind: phone}", "{name: a}, {name: b}", "", "personal-data"},
    {OWNER, "{name: x, count: 1500, size: 40}", "", "row-columns"},
    {OWNER, "{name: a, size: 150MB}, {name: b}", "", "row-size"},
    {OWNER, "{name: a, size: 12MB}, {name: b}", "", "cell-size"},
    {OWNER, "{name: a_name_that_is_long_and_is_in_every_row}, {name: b}", "", "qualifier-name"},
    {OWNER ", {kind: time}", "{name: a}, {name: b}",
     "{write: existing, rate: 500/s, hot: {share: 90%, rows: 1}}", "hot-key"},
    {OWNER ", {kind: time}", "{name: a}, {name: b}",
     "{read: row, rate: 500/s, hot: {share: 90%, rows: 1%, where: neighbours}}", "hot-range"},
    {OWNER ", {kind: time}", "{name: a}, {name: b}", "{write: new, rate: 5000/s, ramp: 0}", "ramp"},
    {OWNER ", {kind: time}", "{name: a}, {name: b}",
     "{write: existing, rate: 100/s, hot: {share: 50%, rows: 100}}", "cell-rewrites"},
    {OWNER ", {kind: time}", "{name: a}, {name: b}", "{read: range, by: [a], rate: 1/m}",
     "filtered-scans"},
    {"{name: at, kind: time}, " OWNER, "{name: a}, {name: b}",
     "{read: range, by: [who], rate: 1/m}", "filtered-scans"},
    {OWNER ", {kind: time}", "{name: a}, {name: b}", "{read: table, rate: 3/h}", "whole-scans"},
    /* what looks alike, and is good */
    {OWNER ", {kind: time}", "{name: a}, {name: b}",
     "{read: range, by: [who], rate: 50/s}, {read: table, rate: 1/d}", NULL},
    {OWNER ", {kind: time, form: seconds, reversed: true}", "{name: a}, {name: b, in: 50%}",
     "{write: new, rate: 500/s}, {read: range, by: [who], rows: 50, rate: 100/s}", NULL},
    {OWNER ", {kind: time, form: datetime}", "{name: a}, {name: b}",
     "{write: new, rate: 500/s}, {read: row, rate: 900/s}", NULL},
    {"{kind: word, count: 60}, {kind: time, form: datetime}", "{name: a}, {name: b}",
     "{write: new, rate: 500/s}", NULL},
    {"{kind: number, to: 31, digits: 2, of: who}, " OWNER ", {kind: time}", "{name: a}, {name: b}",
     "{write: new, rate: 500/s}", NULL},
    {OWNER ", {kind: number, to: 99999, digits: 5}", "{name: a}, {name: b}",
     "{write: new, rate: 100/s}, {write: existing, rate: 100/s}, {read: row, rate: 1000/s, hot: "
     "{share: 60%, rows: 5%}}",
     NULL},
    {"{kind: domain, reversed: true, count: 50000}, " OWNER, "{name: a}, {name: b}", "", NULL},
    {OWNER ", {kind: time}", "{name: a}, {name: b}", "{write: new, rate: 2500/s, ramp: 50m}", NULL},
};

static void rules_speak_of_what_is_described(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct described *d = *state;
        const char *rule = cases[i].rule;
        arena_reset(d->arena);
        look_at_rows(d, 5000, cases[i].parts, cases[i].columns, cases[i].access);
        if (rule != NULL && !has_found(d, rule))
            fail_msg("%s is not told of %s", rule, cases[i].parts);
        if (rule == NULL && d->advice.count > 0)
            fail_msg("%s is told of %s: %s", d->advice.findings[0].rule->id, cases[i].parts,
                     d->advice.findings[0].evidence);
    }
}

static void other_tables_are_siblings(void **state)
{
    struct described *d = *state;
    struct buffer text = {0};
    buffer_append_format(&text, "tables:\n");
    for (int i = 2010; i < 2020; i++)
        buffer_append_format(&text,
                             "- {name: log-%d, rows: 1000, families: {f: {gc: {versions: 1}}}, "
                             "key: {parts: [" OWNER "]}, columns: [{name: a}, {name: b}]}\n",
                             i);
    buffer_append_byte(&text, 0);
    assert_ok(look(d, (const char *)text.data, 1));
    buffer_free(&text);
    assert_true(has_found(d, "small-tables"));
}

/* --- rows --- */

static void all_follows_from_the_seed(void **state)
{
    struct described *d = *state;
    bytes key;
    look_at(d, OWNER ", {kind: time}", "{name: a}", "{write: new, rate: 5/s}");
    key = d->made.rows[77].key;
    look_at(d, OWNER ", {kind: time}", "{name: a}", "{write: new, rate: 5/s}");
    assert_true(bytes_equal(key, d->made.rows[77].key));
    assert_int_equal(d->sample.places, 100);
}

/* Each owner has as many of them as of all. */
static void owners_keep_their_rows(void **state)
{
    struct described *d = *state;
    look_at(d, "{name: who, kind: word, count: 50000}, {kind: uuid}", "{name: a}", "");
    assert_int_equal(d->made.count, MADE_ROWS_MOST);
    assert_int_equal(d->made.counts[0], 200); /* of 5,000,000 rows 100 each */
    look_at(d, "{name: who, kind: word, count: 30}, {kind: uuid}", "{name: a}", "");
    assert_int_equal(d->made.counts[0], 30);
}

/* What the rule of the family does not keep is not there, nor is a row without a cell. */
static void cells_are_those_that_are_left(void **state)
{
    struct described *d = *state;
    struct advice_row row;
    assert_ok(look(d,
                   "tables: [{name: t, rows: 1000, history: 10d, families: {v: {gc: {versions: "
                   "2}}, a: {gc: {age: 1d}}}, key: {parts: [{kind: number, order: rising}]}, "
                   "columns: [{family: v, name: x, writes: 5}, {family: a, name: y, writes: 1}]}]",
                   1));
    assert_ok(made_cells(&d->made, &d->made.rows[0], &row)); /* 1, the oldest */
    assert_int_equal(row.cell_count, 2);
    assert_true(row.cells[0].family == 0 && row.cells[1].family == 0);
    assert_true(row.cells[0].timestamp_us > row.cells[1].timestamp_us);
    assert_int_equal(row.size, 1 + 2 * (1 + 8));
    size_t last = made_find(&d->made, bytes_of("999"));
    assert_ok(made_cells(&d->made, &d->made.rows[last], &row));
    assert_int_equal(row.cell_count, 3);
}

/* --- the load --- */

static double sum_of(const struct load *load, bool written)
{
    double sum = 0;
    for (size_t i = 0; i < load->count; i++)
        for (size_t minute = 0; minute < LOAD_MINUTES; minute++)
            sum += written ? load->ranges[i].written[minute] : load->ranges[i].read[minute];
    return sum;
}

static void the_map_has_what_was_asked_for(void **state)
{
    struct described *d = *state;
    look_at(d, OWNER ", {kind: time}", "{name: a}",
            "{write: new, rate: 7/s}, {write: existing, rate: 300/s}, {read: row, rate: 100/s}, "
            "{read: range, by: [who], rows: 20, rate: 1/s}, {read: table, rate: 1/d}");
    double table = 5e6 / 24;
    assert_true(sum_of(&d->load, true) > 307 * 3600 * 0.999);
    assert_true(sum_of(&d->load, true) < 307 * 3600 * 1.001);
    assert_true(sum_of(&d->load, false) > (100 + 20) * 3600 * 0.99 + table * 0.99);
    assert_true(sum_of(&d->load, false) < (100 + 20) * 3600 * 1.01 + table * 1.01);
}

/* Rising keys are written in another range each time, the last in the last. */
static void a_front_moves(void **state)
{
    struct described *d = *state;
    look_at(d, "{kind: number, order: rising, digits: 12}", "{name: a}",
            "{write: new, rate: 90/s}");
    const struct load_range *last = &d->load.ranges[d->load.count - 1];
    assert_true(last->written[LOAD_MINUTES - 1] > 0 && last->written[0] == 0);
    for (size_t i = 0; i < d->load.count; i++)
        assert_true(i > d->load.count / 4 || d->load.ranges[i].written[LOAD_MINUTES - 1] == 0);
    assert_true(d->load.hotspot_count == 1 && d->load.hotspots[0].kind == ADVICE_WRITE_FRONTIER);
}

/* A value that is not at the beginning of keys is looked for in all that is behind what is. */
static void reads_cost_what_they_look_at(void **state)
{
    struct described *d = *state;
    look_at(d, "{name: place, kind: word, count: 1000}, " OWNER ", {kind: uuid}", "{name: a}",
            "{read: range, by: [who], rows: 5, rate: 1/s}, "
            "{read: range, by: [place], rows: 5, rate: 1/s}, "
            "{read: range, by: [place, a], rows: 5, rate: 1/s}, {read: table, rate: 1/h}");
    assert_true(d->load.costs[0].rows > 4.99e6 && d->load.costs[3].rows > 4.99e6);
    assert_true(d->load.costs[1].rows > 4.99 && d->load.costs[1].rows < 5.01);
    assert_true(d->load.costs[2].rows > 1000 && d->load.costs[2].rows < 100000);
}

static void maps_are_shown(void **state)
{
    struct described *d = *state;
    struct buffer text = {0}, json = {0};
    look_at(d, OWNER ", {kind: time}", "{name: a}", "{read: range, by: [a], rate: 2/s}");
    show_text(d->made.table, &d->load, &text);
    show_json(d->made.table, &d->load, &json);
    buffer_append_byte(&text, 0);
    buffer_append_byte(&json, 0);
    assert_false(text.failed || json.failed);
    assert_non_null(strstr((const char *)text.data,
                           "  line 4: read range, 2/s, about 5000000 rows each, most of them "
                           "in vain: nothing at the beginning of the key is known"));
    assert_non_null(strstr((const char *)text.data, "(the first key)"));
    assert_null(strstr((const char *)text.data, "rows written"));
    assert_non_null(strstr((const char *)json.data, "\"searches\": true"));
    buffer_free(&text);
    buffer_free(&json);
}

/* A table without accesses has no map. */
static void findings_have_their_line(void **state)
{
    struct described *d = *state;
    look_at(d, OWNER ",\n {kind: phone}", "{name: a}", "");
    show_place_findings(d->made.table, "x.yaml", &d->advice);
    assert_true(has_found(d, "personal-data"));
    for (size_t i = 0; i < d->advice.count; i++)
        if (strcmp(d->advice.findings[i].rule->id, "personal-data") == 0)
            assert_int_equal(d->advice.findings[i].line, 3);
    struct buffer text = {0};
    show_text(d->made.table, &d->load, &text);
    show_json(d->made.table, &d->load, &text);
    assert_int_equal(text.size, 0);
    buffer_free(&text);
}

/* --- memory --- */

static void look_somewhere(void *context)
{
    struct described d = {.arena = arena_create(64 << 20)};
    if (d.arena == NULL)
        return;
    status s = look(&d, context, 1);
    if (!status_is_ok(s))
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(d.arena);
}

static void allocations_may_fail(void **state)
{
    char text[] = "tables: [{name: t, rows: 30, families: {f: }, key: {parts: [{kind: uuid}]}, "
                  "columns: [{name: a}], access: [{write: new, rate: 1/m}, {read: range, by: [a], "
                  "rate: 1/m}]}]";
    (void)state;
    failmalloc_each(look_somewhere, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rules_speak_of_what_is_described, setup, teardown),
        cmocka_unit_test_setup_teardown(other_tables_are_siblings, setup, teardown),
        cmocka_unit_test_setup_teardown(all_follows_from_the_seed, setup, teardown),
        cmocka_unit_test_setup_teardown(owners_keep_their_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(cells_are_those_that_are_left, setup, teardown),
        cmocka_unit_test_setup_teardown(the_map_has_what_was_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_front_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_cost_what_they_look_at, setup, teardown),
        cmocka_unit_test_setup_teardown(maps_are_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(findings_have_their_line, setup, teardown),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
