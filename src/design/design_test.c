/* What a description comes to, and which mistakes in one are told, and where. */
#include "design/design.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <stdio.h>

static const char complete[] = "tables:\n"
                               "- name: orders\n"
                               "  rows: 5000\n"
                               "  history: 7d\n"
                               "  families:\n"
                               "    f: {gc: {any: [{versions: 3}, {age: 2d}]}}\n"
                               "    g: {gc: {all: [{versions: 3}, {age: 2d}]}, aggregate: sum}\n"
                               "    h:\n"
                               "  key:\n"
                               "    delimiter: '/'\n"
                               "    parts:\n"
                               "    - order\n"
                               "    - {name: bucket, kind: number, to: 15, digits: 2, of: who}\n"
                               "    - {name: who, kind: word, count: 300}\n"
                               "    - {name: at, kind: time, form: milliseconds, reversed: true}\n"
                               "  columns:\n"
                               "  - {name: total, family: g, size: [1, 2KB], in: 50%}\n"
                               "  - {name: {kind: word, words: [a, b]}, family: f, count: 4,\n"
                               "     writes: 9, values: 2}\n"
                               "  access:\n"
                               "  - {write: new, rate: 120/m, ramp: 10m}\n"
                               "  - {read: range, by: [who], rate: 2/s, rows: 10}\n"
                               "  - {read: range, by: [who, total], rate: 1/h}\n"
                               "  - {read: row, rate: 1/s,\n"
                               "     hot: {share: 90%, rows: 1%, where: neighbours}}\n"
                               "  - {read: row, rate: 1/s, hot: {share: 5%, rows: 7}}\n";

static int setup(void **state)
{
    *state = arena_create(64 << 20);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static const struct design_table *read_complete(struct arena *arena)
{
    struct design design;
    assert_ok(design_read(bytes_of(complete), arena, &design));
    assert_int_equal(design.count, 1);
    return &design.tables[0];
}

static void amounts_and_families(void **state)
{
    const int64_t day_us = (int64_t)86400 * 1000 * 1000;
    const struct design_table *table = read_complete(*state);
    assert_string_equal(table->name, "orders");
    assert_int_equal(table->rows, 5000);
    assert_int_equal(table->history_us, 7 * day_us);
    assert_int_equal(table->family_count, 3);
    const struct advice_family *f = &table->families[0], *g = &table->families[1];
    assert_true(f->has_rule && f->most_versions == 3 && f->most_age_us == 2 * day_us);
    assert_true(g->has_rule && g->most_versions == 0 && g->most_age_us == INT64_MAX);
    assert_true(g->is_aggregate && !f->is_aggregate);
    assert_false(table->families[2].has_rule);
}

static void keys(void **state)
{
    const struct design_key *key = &read_complete(*state)->key;
    assert_string_equal(key->delimiter, "/");
    assert_int_equal(key->count, 4);
    assert_true(key->parts[0].kind == PART_CONSTANT);
    assert_string_equal(key->parts[0].text, "order");
    assert_true(key->parts[1].kind == PART_NUMBER && key->parts[1].to == 15);
    assert_true(key->parts[1].digits == 2 && key->parts[1].of == 2);
    assert_true(key->parts[2].kind == PART_WORD && key->parts[2].count == 300);
    assert_int_equal(key->parts[2].line, 14);
    assert_true(key->parts[3].form == TIME_MILLISECONDS && key->parts[3].is_reversed);
}

static void columns(void **state)
{
    const struct design_table *table = read_complete(*state);
    const struct design_column *total = &table->columns[0], *word = &table->columns[1];
    assert_int_equal(table->column_count, 2);
    assert_true(total->family == 1 && total->size_from == 1 && total->size_to == 2048);
    assert_true(total->share == 0.5 && total->count == 1 && total->writes == 1);
    assert_true(word->name.kind == PART_WORD && word->name.count == 2);
    assert_string_equal(word->name.words[1], "b");
    assert_true(word->count == 4 && word->writes == 9 && word->values == 2);
}

/* Of a bucket that is made of another part the value is known with that. */
static void accesses(void **state)
{
    const struct design_access *access = read_complete(*state)->accesses;
    assert_int_equal(read_complete(*state)->access_count, 5);
    assert_true(access[0].kind == ACCESS_WRITE_NEW && access[0].rate == 2);
    assert_true(access[0].ramp_us == (int64_t)600 * 1000 * 1000 && access[1].ramp_us == -1);
    assert_true(access[1].kind == ACCESS_READ_RANGE && access[1].leading == 3);
    assert_true(access[1].is_ordered && access[1].rows == 10);
    assert_true(access[2].leading == 3 && !access[2].is_ordered);
    assert_true(access[3].hot.share == 0.9 && access[3].hot.part == 0.01);
    assert_true(access[3].hot.where == HOT_NEIGHBOURS && access[4].hot.rows == 7);
}

/* --- mistakes --- */

static const struct {
    const char *table; /* what stands behind the name of the only one */
    const char *words;
} mistakes[] = {
    {"", "1:11: a table needs the field families"},
    {"colums: 1", "2:3: colums is not a field of a table; there are name, families, key, rows, "
                  "history, columns, access"},
    {"families: {}", "2:13: families are NAME: {gc: RULE}, one at least"},
    {"families: {f: {gc: {}}}", "2:22: a gc rule is one of versions, age, any: [RULE, RULE], "
                                "all: [RULE, RULE]"},
    {"families: {f: {gc: {age: 2w}}}", "2:28: 2w is not a time, such as 90s, 5m, 12h or 30d"},
    {"families: {f: {gc: {age: 0}}}", "2:28: an age is more than nothing"},
    {"families: {f: {aggregate: avg}}",
     "2:29: avg is not known here; there are sum, min, max, hll"},
    {"families: {a b: }", "2:14: Invalid id for collection columnFamilies : Should match "
                          "[-_.a-zA-Z0-9]+ but found 'a b'"},
    {"key: {parts: []}", "2:16: the list is empty"},
    {"key: {parts: [{name: x}]}", "2:17: a part of a key needs the field kind"},
    {"key: {parts: [{kind: words}]}",
     "2:24: words is not known here; there are constant, word, number, time, uuid, hash, domain, "
     "email, phone, bytes"},
    {"key: {parts: [{kind: word}]}",
     "2:17: a word is one of the list words, or there are so many: count"},
    {"key: {parts: [{kind: time, digits: 3}]}",
     "2:30: digits is not a field of a part of the kind time; there are kind, name, form, "
     "reversed"},
    {"key: {parts: [{kind: time, form: date, reversed: true}]}",
     "2:52: only a number since 1970 can be reversed"},
    {"key: {parts: [{kind: bytes, size: 4000}, {kind: bytes, size: 96}]}",
     "2:16: keys of 4097 bytes, and a row key has 4096 at most"},
    {"key: {parts: [{kind: uuid, version: 5}]}", "2:39: a UUID is of version 4 or 7 here"},
    {"key: {parts: [{kind: number}]}",
     "2:17: a number that does not rise (order: rising) needs the field to"},
    {"key: {parts: [{kind: number, from: 9, to: 3}]}",
     "2:45: 3 is not a whole number from 9 to 9223372036854775807"},
    {"key: {parts: [{kind: hash, of: x}]}", "2:34: x is the name of no other part of the key"},
    {"key: {parts: [{kind: hash, name: x, of: y}, {kind: hash, name: y, of: x}]}",
     "2:43: y is itself made of another part"},
    {"key: {parts: [{kind: hash, name: x}, {kind: hash, name: x}]}",
     "2:40: a part with the name x is there already"},
    {"rows: many", "2:9: many is not a whole number from 1 to 1000000000000"},
    {"rows: 0", "2:9: 0 is not a whole number from 1 to 1000000000000"},
    {"history: 11000d", "2:12: 11000d is not a time up to ten years"},
    {"columns: [{name: q, family: x}]", "2:31: the table has no family x"},
    {"columns: [{name: q, size: [3, 2]}]", "2:29: the first of two sizes is the smaller one"},
    {"columns: [{name: q, size: 300MB}]",
     "2:29: 300MB is not a size of 209715200 bytes at most, such as 100 or 4KB"},
    {"columns: [{name: q, in: 5}]", "2:27: 5 is not a share from 0% to 100%"},
    {"access: [{rate: 1/s}]",
     "2:12: an access is either a write (new, existing) or a read (row, range, table)"},
    {"access: [{read: row, rate: 5}]", "2:30: 5 is not a rate up to 1000000000/s, such as 200/s, "
                                       "5/m, 1/h or 3/d"},
    {"access: [{read: range, rate: 1/s}]",
     "2:12: a read of a range needs the field by: parts of the key, or columns, whose values are "
     "known"},
    {"access: [{read: range, rate: 1/s, by: [x]}]",
     "2:42: neither a part of the key nor a column has the name x"},
    {"access: [{read: row, rate: 1/s, by: [a]}]", "2:39: by is of a read of a range alone"},
    {"access: [{write: new, rate: 1/s, hot: {share: 1%, rows: 1}}]",
     "2:41: hot is of rows that are there already"},
};

static void expect_error(struct arena *arena, const char *text, const char *words)
{
    struct design design;
    status s = design_read(bytes_of(text), arena, &design);
    if (s.code != STATUS_INVALID_ARGUMENT || strcmp(status_message(s), words) != 0)
        print_error("of %s\n", text);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(status_message(s), words);
    status_free(s);
}

/* The mistake, and behind it what the table needs beside. */
static void mistakes_are_told_with_their_place(void **state)
{
    static const char *const rest[][2] = {{"families:", "  families: {f: }\n"},
                                          {"key:", "  key: {parts: [{kind: uuid, name: a}]}\n"},
                                          {"columns:", "  columns: [{name: q}]\n"}};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char text[1024];
        const char *table = mistakes[i].table;
        int size = snprintf(text, sizeof text, "tables: [ {name: t}]");
        if (table[0] != '\0')
            size = snprintf(text, sizeof text, "tables: [{ name: t,\n  %s,\n", table);
        for (size_t j = 0; j < 3 && table[0] != '\0'; j++)
            if (strncmp(table, rest[j][0], strlen(rest[j][0])) != 0)
                size += snprintf(text + size, sizeof text - (size_t)size, "%.*s,\n",
                                 (int)strlen(rest[j][1]) - 1, rest[j][1]);
        if (table[0] != '\0')
            snprintf(text + size, sizeof text - (size_t)size, "}]\n");
        expect_error(*state, text, mistakes[i].words);
    }
}

static void a_description_has_tables(void **state)
{
    expect_error(*state, "a: 1\n",
                 "1:1: a is not a field of a description; there are tables, kinds");
    expect_error(*state, "[a]\n", "1:1: a description has fields: NAME: VALUE");
    expect_error(*state, "tables: []\n", "1:9: the list is empty");
    expect_error(*state, "kinds: []\n", "1:8: the list is empty");
    expect_error(*state, "{}\n", "1:1: a description needs the field tables, or kinds");
    expect_error(*state,
                 "tables:\n- &t {name: t, families: {f: }, key: {parts: [a]}, columns: [{name: "
                 "q}]}\n- *t\n",
                 "2:3: a table with the name t is there already");
}

/* --- how much may be described --- */

static void append(struct buffer *text, const char *words)
{
    buffer_append_bytes(text, bytes_of(words));
}

static void append_each(struct buffer *text, size_t count, const char *before, const char *after)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(text, "%s%zu%s", before, i, after);
}

/* So many tables with these fields, which all of them share. */
static void describe(struct buffer *text, size_t tables, const char *families, const char *part,
                     const char *column, const char *accesses)
{
    buffer_clear(text);
    buffer_append_format(text,
                         "tables:\n- {name: t, families: &f {%s}, key: &k {parts: [%s]}, "
                         "columns: &c [%s], access: &a [%s]}\n",
                         families, part, column, accesses);
    append_each(text, tables - 1, "- {name: t",
                ", families: *f, key: *k, columns: *c, access: *a}\n");
    buffer_append_byte(text, 0);
    assert_false(text->failed);
}

static void expect_limit(struct arena *arena, const struct buffer *text, const char *what)
{
    char words[200];
    snprintf(words, sizeof words,
             "1:1: all tables and kinds together have %s are looked at: put them into several "
             "files",
             what);
    expect_error(arena, (const char *)text->data, words);
}

static void expect_none(struct arena *arena, const struct buffer *text)
{
    struct design design;
    assert_ok(design_read(bytes_of((const char *)text->data), arena, &design));
}

/* Each limit is of all tables together: a file of many large ones took minutes. */
static void what_takes_minutes_is_refused(void **state)
{
    struct buffer text = {0}, some = {0};
    static const char read[] = "{read: row, rate: 1/s}", q[] = "{name: q}", part[] = "a";
    static const char wide[] = "{name: {kind: number, order: rising}, count: 100000}";
    for (size_t i = 0; i < 100; i++)
        buffer_append_format(&some, "%s%s", i > 0 ? ", " : "", read);
    buffer_append_byte(&some, 0);
    const char *reads = (const char *)some.data;
    describe(&text, 10, "f: ", part, q, reads);
    expect_none(*state, &text);
    describe(&text, 11, "f: ", part, q, reads);
    expect_limit(*state, &text, "1100 kinds of access, and 1000");
    describe(&text, 10, "f: ", part, wide, read);
    expect_none(*state, &text);
    describe(&text, 11, "f: ", part, wide, read);
    expect_limit(*state, &text, "22000 cells in a row of each, and 20000");
    describe(&text, 10, "f: ", "{kind: bytes, size: 4000}", q, read);
    expect_none(*state, &text);
    describe(&text, 11, "f: ", "{kind: bytes, size: 4000}", q, read);
    expect_limit(*state, &text, "44000 bytes in a key of each, and 40000");
    buffer_clear(&some);
    append_each(&some, 1000, "f", ": , ");
    buffer_append_byte(&some, 0);
    describe(&text, 21, (const char *)some.data, part, "{name: q, family: f0}", read);
    expect_limit(*state, &text, "21000 families, and 20000");
    buffer_free(&text);
    buffer_free(&some);
}

static void properties_of_all_kinds_count(void **state)
{
    struct buffer text = {0};
    append(&text, "kinds:\n- {name: k, properties: &p [{name: p}");
    append_each(&text, 499, ", {name: p", "}");
    append(&text, "]}\n");
    append_each(&text, 20, "- {name: k", ", properties: *p}\n");
    buffer_append_byte(&text, 0);
    expect_limit(*state, &text, "10500 properties, and 10000");
    buffer_free(&text);
}

/* All that is played is shared out among the accesses of all tables. */
static void many_accesses_have_fewer_events_each(void **state)
{
    struct design design;
    struct buffer text = {0};
    describe(&text, 200, "f: ", "a", "{name: q}", "{read: row, rate: 1/s}");
    assert_ok(design_read(bytes_of((const char *)text.data), *state, &design));
    assert_int_equal(design_events(&design), DESIGN_EVENTS_MOST / 200);
    buffer_free(&text);
    assert_ok(
        design_read(bytes_of("kinds:\n- {name: k, properties: [{name: p}]}\n"), *state, &design));
    assert_int_equal(design_events(&design), DESIGN_EVENTS_MOST);
}

static void read_it(void *context)
{
    struct design design;
    struct arena *arena = arena_create(1 << 20);
    (void)context;
    if (arena == NULL)
        return;
    status s = design_read(bytes_of(complete), arena, &design);
    if (!status_is_ok(s))
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(arena);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    failmalloc_each(read_it, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(amounts_and_families, setup, teardown),
        cmocka_unit_test_setup_teardown(keys, setup, teardown),
        cmocka_unit_test_setup_teardown(columns, setup, teardown),
        cmocka_unit_test_setup_teardown(accesses, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_told_with_their_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_description_has_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(what_takes_minutes_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(properties_of_all_kinds_count, setup, teardown),
        cmocka_unit_test_setup_teardown(many_accesses_have_fewer_events_each, setup, teardown),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
