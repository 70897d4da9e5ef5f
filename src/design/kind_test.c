/* Kinds of Datastore that are described: which rules speak of one and of which line, what looks
 * like it and is good, and which mistakes of a description are told. */
#include "design/made_kind.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "design/show.h"

#include <stdio.h>

#define NOW_US ((int64_t)1767225600 * 1000 * 1000)

static int setup(void **state)
{
    *state = arena_create(256 << 20);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static const char *const head = "kinds:\n"
                                "- name: Order\n";
/* Of which there is nothing to say. */
static const char *const properties = "  properties:\n"
                                      "  - {name: customer, value: {kind: word, count: 900}}\n"
                                      "  - {name: lines, size: 2KB, indexed: false}\n";

static status find(struct arena *arena, const char *text, struct advice *out)
{
    struct design design;
    TRY(design_read(bytes_of(text), arena, &design));
    struct made_kind made = {.kind = design.kinds, .arena = arena, .seed = 1, .now_us = NOW_US};
    TRY(made_kind_look(&made));
    TRY(advice_find_in_database(&made.seen, &made.database, arena, out));
    return made_kind_place(&made, "f.yaml", out);
}

/* The kind Order, with what stands in `first` and `second`: the only finding; NULL: none is
 * expected. */
static const struct advice_finding *expect(struct arena *arena, const char *first,
                                           const char *second, const char *rule)
{
    char text[4096];
    struct advice *advice = arena_alloc(arena, sizeof *advice);
    assert_non_null(advice);
    snprintf(text, sizeof text, "%s%s%s", head, first, second);
    assert_ok(find(arena, text, advice));
    for (size_t i = 0; i < advice->count; i++)
        print_message("# %s: %s\n", advice->findings[i].rule->id, advice->findings[i].evidence);
    assert_int_equal(advice->count, rule != NULL);
    if (rule == NULL)
        return NULL;
    assert_string_equal(advice->findings[0].rule->id, rule);
    assert_string_equal(advice->findings[0].file, "f.yaml");
    return &advice->findings[0];
}

static void expect_words(const struct advice_finding *finding, const char *words)
{
    if (strstr(finding->evidence, words) == NULL)
        fail_msg("not in \"%s\": %s", finding->evidence, words);
}

/* --- keys --- */

static void keys_that_rise(void **state)
{
    const struct advice_finding *finding =
        expect(*state, "  key: {kind: number, order: rising}\n", properties, "entity-keys");
    assert_int_equal(finding->line, 3);
    assert_true(bytes_start_with(finding->keys[0], bytes_of("Order ")));
    assert_int_equal(finding->better_count, ADVICE_KEYS_SHOWN);
    finding = expect(*state, "  key: {kind: time, form: datetime}\n", properties, "entity-keys");
    assert_true(bytes_start_with(finding->keys[0], bytes_of("Order \"2025-12-")));
    expect(*state, "  entities: 400\n  key: {kind: number, order: rising}\n", properties,
           "entity-keys");
    expect(*state, "", properties, NULL); /* ids as the server gives them */
    expect(*state, "  key: {kind: uuid}\n", properties, NULL);
    expect(*state, "  key: {kind: number, to: 99999999999}\n", properties, NULL);
    expect(*state, "  entities: 1\n", properties, NULL);
}

static void people(void **state)
{
    const struct advice_finding *finding =
        expect(*state, "  key: {kind: email}\n", properties, "personal-data");
    assert_true(memmem(finding->keys[0].data, finding->keys[0].size, "@example.com", 12) != NULL);
}

static void odd_names(void **state)
{
    expect_words(
        expect(*state, "  parent: {kind: Cust/omer, count: 900}\n", properties, "entity-names"),
        "the kind Cust/omer");
    expect_words(expect(*state, "", "  properties:\n  - {name: a.b}\n", "entity-names"),
                 "the property a.b");
    expect_words(
        expect(*state, "  key: {kind: word, words: [a/b, c/d]}\n", properties, "entity-names"),
        "the name ");
}

/* --- properties and indexes --- */

static void values_that_rise(void **state)
{
    const struct advice_finding *finding =
        expect(*state, "", "  properties:\n  - {name: at, value: {kind: time}}\n", "index-rising");
    assert_int_equal(finding->line, 3);
    expect_words(finding, "most of all at of the kind Order");
    assert_true(bytes_start_with(finding->start, bytes_of("Order.at = 17")));
    expect(*state, "",
           "  properties:\n  - {name: n, value: {kind: number, from: 1000, order: rising}}\n",
           "index-rising");
    expect(*state, "", "  properties:\n  - {name: at, indexed: false, value: {kind: time}}\n",
           NULL);
    expect(*state, "",
           "  properties:\n  - {name: at, value: {kind: time, reversed: true,"
           " form: milliseconds}}\n",
           NULL);
    expect(*state, "", "  properties:\n  - {name: n, value: {kind: number, to: 5000}}\n", NULL);
}

static void large_entities(void **state)
{
    expect(*state, "", "  properties:\n  - {name: body, indexed: false, size: 600KB}\n",
           "entity-size");
    expect(*state, "", "  properties:\n  - {name: body, indexed: false, size: 100, count: 6000}\n",
           "entity-size");
    expect(*state, "", "  properties:\n  - {name: body, indexed: false, size: 500KB}\n", NULL);
}

static void indexes_that_explode(void **state)
{
    const char *both = "  properties:\n  - {name: tags, count: %s}\n  - {name: words, count: 30}\n"
                       "  indexes:\n  - [tags, words]\n";
    char text[512];
    snprintf(text, sizeof text, both, "20");
    expect_words(expect(*state, "", text, "index-rows"),
                 "one has 651 rows in indexes, 600 of them in the composite index (tags, words)");
    snprintf(text, sizeof text, both, "10");
    expect(*state, "", text, NULL);
    expect(*state, "", "  properties:\n  - {name: tags, count: 600}\n", "index-rows");
    expect(*state, "", "  properties:\n  - {name: tags, count: 600, indexed: false}\n", NULL);
}

static void many_indexes(void **state)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s  indexes:\n",
                         "  properties:\n  - {name: a}\n  - {name: b}\n  - {name: c}\n");
    for (int i = 0; i < 20; i++)
        buffer_append_format(&text, "  - [%s, -%s]\n", i % 2 == 0 ? "a" : "b", "c");
    buffer_append_byte(&text, 0);
    assert_false(text.failed);
    const struct advice_finding *finding =
        expect(*state, "", (const char *)text.data, "index-count");
    assert_int_equal(finding->line, 7);
    buffer_free(&text);
}

static void indexes_that_no_query_uses(void **state)
{
    const char *more = "  properties:\n  - {name: a}\n  - {name: b}\n  - {name: c}\n"
                       "  - {name: d}\n  indexes:\n  - [a, -b]\n  - [a, c]\n  access:\n"
                       "  - {write: new, rate: 1/s}\n"
                       "  - {read: query, by: [a], order: [-b], results: 20, rate: 5/s}\n";
    const struct advice_finding *finding = expect(*state, "", more, "index-unused");
    assert_string_equal(finding->evidence, "2 of the 3 indexes of the kind Order answer none of "
                                           "the queries that are described: d, (a, c).");
    char all[1024];
    snprintf(all, sizeof all,
             "%s  - {read: query, by: [c, a], rate: 1/m}\n"
             "  - {read: query, by: [d], rate: 1/m}\n",
             more);
    expect(*state, "", all, NULL);
}

/* --- what is asked for --- */

static void groups_that_are_written_often(void **state)
{
    char more[1024];
    snprintf(more, sizeof more,
             "%s  access:\n  - {write: new, rate: 50/s}\n"
             "  - {read: query, by: [customer], rate: 1/s}\n",
             properties);
    const struct advice_finding *finding =
        expect(*state, "  parent: {kind: Shop, count: 20}\n", more, "group-writes");
    expect_words(finding, "the one of Shop ");
    expect_words(finding, " had 150 commits or more within a minute");
    assert_null(strstr(finding->evidence, "/ Order"));
    assert_int_equal(finding->line, 7);
    expect(*state, "  parent: {kind: Shop, count: 2000}\n", more, NULL);
    expect(*state, "", more, NULL);
    snprintf(more, sizeof more,
             "%s  access:\n"
             "  - {write: existing, rate: 50/s, hot: {share: 50%%, rows: 1}}\n"
             "  - {read: query, by: [customer], rate: 1/s}\n",
             properties);
    expect(*state, "", more, "group-writes");
}

static void expensive_queries(void **state)
{
    const char *format = "%s  access:\n  - {read: query, by: [customer], offset: %s, results: 20, "
                         "rate: 1/m}\n";
    char more[1024];
    snprintf(more, sizeof more, format, properties, "2000");
    expect_words(expect(*state, "", more, "query-offsets"), "skipped 120000 results");
    snprintf(more, sizeof more, format, properties, "100");
    expect(*state, "", more, NULL);
    snprintf(more, sizeof more,
             "%s  access:\n  - {read: kind, rate: 1/m}\n"
             "  - {read: query, by: [customer], rate: 1/s}\n",
             properties);
    expect(*state, "", more, "kind-scans");
    snprintf(more, sizeof more,
             "%s  access:\n  - {read: kind, rate: 1/d}\n"
             "  - {read: query, by: [customer], rate: 1/s}\n",
             properties);
    expect(*state, "", more, NULL);
}

static void loads_that_rise(void **state)
{
    const char *format = "%s  access:\n  - {write: new, rate: 5000/s%s}\n"
                         "  - {read: query, by: [customer], rate: 1/s}\n";
    char more[1024];
    snprintf(more, sizeof more, format, properties, ", ramp: 0");
    expect_words(expect(*state, "", more, "kind-ramp"), "asked for 5000 times a second");
    snprintf(more, sizeof more, format, properties, "");
    expect(*state, "", more, NULL); /* it has long been there */
}

static void one_entity_with_most_reads_is_hot(void **state)
{
    const char *format = "%s  access:\n"
                         "  - {read: entity, rate: 100/s, hot: {share: %s, rows: 1}}\n"
                         "  - {read: query, by: [customer], rate: 1/s}\n";
    char more[1024];
    snprintf(more, sizeof more, format, properties, "60%");
    expect(*state, "", more, "hot-entity");
    snprintf(more, sizeof more, format, properties, "40%");
    expect(*state, "", more, NULL);
}

/* --- what is shown --- */

static void accesses_are_shown(void **state)
{
    struct design design;
    struct buffer out = {0};
    char text[1024];
    snprintf(text, sizeof text,
             "%s%s  access:\n  - {write: new, rate: 30/m}\n"
             "  - {read: kind, rate: 1/s}\n",
             head, properties);
    assert_ok(design_read(bytes_of(text), *state, &design));
    show_kind_text(design.kinds, &out);
    const char words[] = "\nWhat will be asked for:\n  line 7: write new, 30/m\n"
                         "  line 8: read kind, 1/s\n";
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of(words)));
    buffer_clear(&out);
    show_kind_json(design.kinds, &out);
    const char json[] = ",\n  \"accesses\": [\n    {\"line\": 7, \"kind\": \"write new\", "
                        "\"requestsPerSecond\": 0.5},\n    {\"line\": 8, \"kind\": \"read kind\", "
                        "\"requestsPerSecond\": 1}]";
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of(json)));
    buffer_free(&out);
}

/* --- mistakes --- */

static void refuses(struct arena *arena, const char *more, const char *words)
{
    struct design design;
    char text[2048];
    snprintf(text, sizeof text, "%s%s", head, more);
    status s = design_read(bytes_of(text), arena, &design);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    if (strcmp(status_message(s), words) != 0)
        fail_msg("\"%s\", not \"%s\"", status_message(s), words);
    status_free(s);
}

static void mistakes_are_told_with_their_place(void **state)
{
    static const char *const property = "  properties: [{name: a}, {name: b, indexed: false}]\n";
    static const struct {
        const char *more;
        const char *words;
    } cases[] = {
        {"  properties: []\n", "3:15: the list is empty"},
        {"  properties: [{name: a}, {name: a}]\n",
         "3:27: a property with the name a is there already"},
        {"  properties: [{name: ''}]\n", "3:23: a name has 1 to 1500 bytes"},
        {"  properties: [{name: a, value: {kind: number, of: b}}]\n",
         "3:48: the value of a property is made of no other part"},
        {"@  key: {kind: number, of: b}\n", "4:23: a key is made of no other part"},
        {"@  indexes: [[a, c]]\n", "4:17: the kind has no property c"},
        {"@  indexes: [[a, b]]\n", "4:17: b is not indexed"},
        {"@  access: [{read: query, by: [c], rate: 1/s}]\n", "4:31: the kind has no property c"},
        {"@  access: [{read: entity, by: [a], rate: 1/s}]\n", "4:31: by is of a query alone"},
        {"@  access: [{write: new, read: kind, rate: 1/s}]\n",
         "4:12: an access is either a write (new, existing) or a read (entity, query, kind)"},
        {"@  access: [{read: kind, rate: 1/s, hot: {share: 5%, rows: 1}}]\n",
         "4:41: hot is of entities that are there already, and are read or written one by one"},
        {"@  parent: {kind: A}\n", "4:11: a parent needs the field count"},
        {"@- name: Order\n  properties: [{name: a}]\n",
         "4:3: a kind with the name Order is there already"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char more[1024];
        bool follows = cases[i].more[0] == '@';
        snprintf(more, sizeof more, "%s%s", follows ? property : "", cases[i].more + follows);
        refuses(*state, more, cases[i].words);
    }
}

/* --- without memory --- */

static void find_everything(void *context)
{
    struct advice advice;
    struct arena *arena = arena_create(64 << 20);
    (void)context;
    if (arena == NULL)
        return;
    status_ignore(find(arena,
                       "kinds:\n- name: Order\n  entities: 30\n  parent: {kind: A, count: 2}\n"
                       "  key: {kind: number, order: rising}\n"
                       "  properties: [{name: at, value: {kind: time}}, {name: b.c, count: 600}]\n"
                       "  indexes: [[at, b.c]]\n"
                       "  access: [{write: new, rate: 9/s}, {read: query, by: [b.c], rate: 1/s}]\n",
                       &advice));
    arena_destroy(arena);
}

static void kinds_get_along_without_memory(void **state)
{
    (void)state;
    failmalloc_each(find_everything, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_that_rise, setup, teardown),
        cmocka_unit_test_setup_teardown(people, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_names, setup, teardown),
        cmocka_unit_test_setup_teardown(values_that_rise, setup, teardown),
        cmocka_unit_test_setup_teardown(large_entities, setup, teardown),
        cmocka_unit_test_setup_teardown(indexes_that_explode, setup, teardown),
        cmocka_unit_test_setup_teardown(many_indexes, setup, teardown),
        cmocka_unit_test_setup_teardown(indexes_that_no_query_uses, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_that_are_written_often, setup, teardown),
        cmocka_unit_test_setup_teardown(expensive_queries, setup, teardown),
        cmocka_unit_test_setup_teardown(loads_that_rise, setup, teardown),
        cmocka_unit_test_setup_teardown(one_entity_with_most_reads_is_hot, setup, teardown),
        cmocka_unit_test_setup_teardown(accesses_are_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_told_with_their_place, setup, teardown),
        cmocka_unit_test(kinds_get_along_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
