/* Tests of statistics: what is counted, with sizes worked out by hand, and what is left out when
 * memory does not suffice. */
#include "datastore/admin/statistics.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "wire/json.h"

#include <stdio.h>

struct fixture {
    struct arena *arena;
    struct ds_statistics statistics;
};

static const struct ds_database database = {.project = "p", .id = ""};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = arena_create(256 << 20);
    assert_non_null(f->arena);
    assert_ok(ds_statistics_init(&f->statistics, 1 << 20));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_statistics_free(&f->statistics);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static void count_with(struct fixture *f, const char *name_space, const char *path,
                       const char *properties, const struct ds_index *indexes, size_t indexed)
{
    char json[1000];
    snprintf(json, sizeof json, "{'properties': {%s}}", properties);
    Ds__Entity *entity = test_entity(f->arena, json);
    entity->key = test_key(f->arena, name_space, path);
    assert_ok(ds_statistics_count(&f->statistics, entity, indexes, indexed, f->arena));
}

static void count(struct fixture *f, const char *name_space, const char *path,
                  const char *properties)
{
    count_with(f, name_space, path, properties, NULL, 0);
}

/* --- what comes of it --- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void append_value(struct buffer *out, const Ds__Entity__PropertiesEntry *property)
{
    const Ds__Value *value = property->value;
    if (value->value_type_case == DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
        buffer_append_format(out, " %s=%lld", property->key, (long long)value->integer_value);
    else if (value->value_type_case == DS__VALUE__VALUE_TYPE_STRING_VALUE)
        buffer_append_format(out, " %s=%s", property->key, value->string_value);
    else
        assert_int_equal(value->timestamp_value->seconds, 7);
}

static const char *text_of(struct fixture *f, const Ds__Entity *entity)
{
    struct buffer text = {0};
    const Ds__Key__PathElement *element = entity->key->path[0];
    buffer_append_format(&text, "%s", entity->key->partition_id->namespace_id);
    if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
        buffer_append_format(&text, "/%s", element->name);
    else
        buffer_append_format(&text, "#%lld", (long long)element->id);
    for (size_t i = 0; i < entity->n_properties; i++) {
        assert_true(i == 0 ||
                    strcmp(entity->properties[i - 1]->key, entity->properties[i]->key) < 0);
        append_value(&text, entity->properties[i]);
    }
    buffer_append_byte(&text, '\n');
    const char *kept = arena_string(f->arena, buffer_bytes(&text));
    buffer_free(&text);
    return kept;
}

static bool is_of_kind(const Ds__Entity *entity, const char *kind)
{
    return strcmp(entity->key->path[0]->kind, kind) == 0;
}

/* All statistics of a kind, one a line, sorted: "namespace/name property=value …". */
static void assert_statistics(struct fixture *f, const char *kind, const char *expected)
{
    struct vector lines = {0}; /* of const char * */
    struct buffer text = {0};
    for (size_t i = 0; i < ds_statistic_kinds(); i++) {
        struct vector made = {0};
        assert_ok(ds_statistics_make(&f->statistics, i, &database, 7 * 1000000, f->arena, &made));
        Ds__Entity **entities = made.items;
        for (size_t j = 0; j < made.count; j++) {
            const char *line = text_of(f, entities[j]);
            if (is_of_kind(entities[j], kind))
                assert_ok(vector_add(&lines, f->arena, &line, sizeof line));
        }
    }
    if (lines.count > 0)
        qsort(lines.items, lines.count, sizeof(char *), compare_texts);
    for (size_t i = 0; i < lines.count; i++)
        buffer_append_format(&text, "%s", ((const char **)lines.items)[i]);
    buffer_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
}

/* --- tests --- */

/* Task/'my_task_id' is the documentation's: its key has 32 bytes. The entity: 32 + 5 + 8 + 32; its
 * rows: 32 + 5 + 32 of the kind's index, 32 + 5 + 5 + 8 + 32 of each direction of n. */
static void test_sizes_are_those_of_the_documentation(void **state)
{
    struct fixture *f = *state;
    count(f, "", "Task/'my_task_id'", "'prio': {'integerValue': 3}");
    assert_statistics(f, "__Stat_Kind__",
                      "/Task builtin_index_bytes=233 builtin_index_count=3 bytes=310 "
                      "composite_index_bytes=0 composite_index_count=0 count=1 entity_bytes=77 "
                      "kind_name=Task\n");
    assert_statistics(f, "__Stat_Total__",
                      "/total_entity_usage builtin_index_bytes=233 builtin_index_count=3 bytes=310 "
                      "composite_index_bytes=0 composite_index_count=0 count=1 entity_bytes=77\n");
    assert_statistics(f, "__Stat_PropertyType_PropertyName_Kind__",
                      "/Integer_prio_Task builtin_index_bytes=164 builtin_index_count=2 bytes=177 "
                      "count=1 entity_bytes=13 kind_name=Task property_name=prio "
                      "property_type=Integer\n");
    assert_statistics(f, "__Stat_Ns_Total__", "");
}

static void test_nothing_has_a_total(void **state)
{
    assert_statistics(*state, "__Stat_Total__",
                      "/total_entity_usage builtin_index_bytes=0 builtin_index_count=0 bytes=0 "
                      "composite_index_bytes=0 composite_index_count=0 count=0 entity_bytes=0\n");
    assert_statistics(*state, "__Stat_Kind__", "");
    assert_statistics(*state, "__Stat_Namespace__", "");
}

static void test_roots_and_others(void **state)
{
    struct fixture *f = *state;
    count(f, "", "A/1", "");
    count(f, "", "A/2", "");
    count(f, "", "A/1/A/1", "");
    count(f, "", "A/1/B/1", "");
    assert_statistics(f, "__Stat_Kind_IsRootEntity__",
                      "/A bytes=116 count=2 entity_bytes=116 kind_name=A\n");
    assert_statistics(f, "__Stat_Kind_NotRootEntity__",
                      "/A bytes=68 count=1 entity_bytes=68 kind_name=A\n"
                      "/B bytes=68 count=1 entity_bytes=68 kind_name=B\n");
}

/* Each type; what is excluded has no rows, nor has the second of equal values in an array. */
static void test_values_by_type(void **state)
{
    struct fixture *f = *state;
    count(f, "", "K/1",
          "'a': {'arrayValue': {'values': [{'integerValue': 1}, {'integerValue': 1}, "
          "{'stringValue': 'x'}]}}, 'b': {'blobValue': 'AAAA', 'excludeFromIndexes': true}, "
          "'t': {'stringValue': 'long', 'excludeFromIndexes': true}, 'n': {'nullValue': null}, "
          "'e': {'entityValue': {'properties': {'d': {'doubleValue': 1}, "
          "'k': {'timestampValue': '2020-01-01T00:00:00Z'}}}}");
    assert_statistics(f, "__Stat_PropertyType__",
                      "/Blob builtin_index_bytes=0 builtin_index_count=0 bytes=5 count=1 "
                      "entity_bytes=5 property_type=Blob\n"
                      "/Date/Time builtin_index_bytes=144 builtin_index_count=2 bytes=156 count=1 "
                      "entity_bytes=12 property_type=Date/Time\n"
                      "/Float builtin_index_bytes=144 builtin_index_count=2 bytes=156 count=1 "
                      "entity_bytes=12 property_type=Float\n"
                      "/Integer builtin_index_bytes=140 builtin_index_count=2 bytes=160 count=2 "
                      "entity_bytes=20 property_type=Integer\n"
                      "/NULL builtin_index_bytes=126 builtin_index_count=2 bytes=129 count=1 "
                      "entity_bytes=3 property_type=NULL\n"
                      "/String builtin_index_bytes=128 builtin_index_count=2 bytes=132 count=1 "
                      "entity_bytes=4 property_type=String\n"
                      "/Text builtin_index_bytes=0 builtin_index_count=0 bytes=7 count=1 "
                      "entity_bytes=7 property_type=Text\n");
    assert_statistics(f, "__Stat_PropertyName_Kind__",
                      "/a_K builtin_index_bytes=268 builtin_index_count=4 bytes=292 count=3 "
                      "entity_bytes=24 kind_name=K property_name=a\n"
                      "/b_K builtin_index_bytes=0 builtin_index_count=0 bytes=5 count=1 "
                      "entity_bytes=5 kind_name=K property_name=b\n"
                      "/e.d_K builtin_index_bytes=144 builtin_index_count=2 bytes=156 count=1 "
                      "entity_bytes=12 kind_name=K property_name=e.d\n"
                      "/e.k_K builtin_index_bytes=144 builtin_index_count=2 bytes=156 count=1 "
                      "entity_bytes=12 kind_name=K property_name=e.k\n"
                      "/n_K builtin_index_bytes=126 builtin_index_count=2 bytes=129 count=1 "
                      "entity_bytes=3 kind_name=K property_name=n\n"
                      "/t_K builtin_index_bytes=0 builtin_index_count=0 bytes=7 count=1 "
                      "entity_bytes=7 kind_name=K property_name=t\n");
}

static void test_namespaces_have_their_own(void **state)
{
    struct fixture *f = *state;
    count(f, "", "K/1", "");
    count(f, "n", "K/1", "");
    count(f, "n", "K/2", "");
    count(f, "n", "L/1", "");
    assert_statistics(f, "__Stat_Namespace__",
                      "#1 builtin_index_bytes=60 builtin_index_count=1 bytes=118 "
                      "composite_index_bytes=0 composite_index_count=0 count=1 entity_bytes=58 "
                      "subject_namespace=\n"
                      "/n builtin_index_bytes=186 builtin_index_count=3 bytes=366 "
                      "composite_index_bytes=0 composite_index_count=0 count=3 entity_bytes=180 "
                      "subject_namespace=n\n");
    assert_statistics(f, "__Stat_Ns_Kind_IsRootEntity__",
                      "/K bytes=58 count=1 entity_bytes=58 kind_name=K\n"
                      "n/K bytes=120 count=2 entity_bytes=120 kind_name=K\n"
                      "n/L bytes=60 count=1 entity_bytes=60 kind_name=L\n");
    assert_statistics(f, "__Stat_Kind_IsRootEntity__",
                      "/K bytes=178 count=3 entity_bytes=178 kind_name=K\n"
                      "/L bytes=60 count=1 entity_bytes=60 kind_name=L\n");
    assert_statistics(f, "__Stat_Ns_Namespace__", "");
}

static void test_composite_indexes(void **state)
{
    static const enum ds_flip flips[] = {DS_ASCENDING, DS_DESCENDING};
    const char *const properties[] = {"a", "b"};
    const struct ds_index index = {
        .id = 12, .kind = "K", .properties = properties, .shape = {.flips = flips, .values = 2}};
    struct fixture *f = *state;
    count_with(f, "", "K/1",
               "'a': {'integerValue': 1}, 'b': {'arrayValue': {'values': [{'stringValue': 'x'}, "
               "{'stringValue': 'xyz'}]}}",
               &index, 1);
    count_with(f, "", "K/2", "'a': {'integerValue': 1}", &index, 1);
    assert_statistics(f, "__Stat_Kind_CompositeIndex__",
                      "/K_12 alphanumeric_id=12 bytes=138 count=2 index_id=12 kind_name=K\n");
}

static void test_statistics_are_not_counted(void **state)
{
    struct fixture *f = *state;
    count(f, "", "__Stat_Total__/'total_entity_usage'", "'n': {'integerValue': 1}");
    count(f, "", "K/274", ""); /* of the sample */
    assert_statistics(f, "__Stat_Kind__",
                      "/K builtin_index_bytes=60 builtin_index_count=1 bytes=118 "
                      "composite_index_bytes=0 composite_index_count=0 count=1 entity_bytes=58 "
                      "kind_name=K\n");
    assert_statistics(f, "__Stat_PropertyName_Kind__", "");
}

static void test_long_names_become_fingerprints(void **state)
{
    struct fixture *f = *state;
    char kind[1501];
    Ds__Entity *entity = test_entity(f->arena, "{'properties': {'n': {'integerValue': 1}}}");
    memset(kind, 'k', 1500);
    kind[1500] = '\0';
    entity->key = test_key(f->arena, "", "K/1");
    entity->key->path[0]->kind = kind;
    assert_ok(ds_statistics_count(&f->statistics, entity, NULL, 0, f->arena));
    for (size_t i = 0; i < ds_statistic_kinds(); i++) {
        struct vector made = {0};
        assert_ok(ds_statistics_make(&f->statistics, i, &database, 0, f->arena, &made));
        for (size_t j = 0; j < made.count; j++) {
            const Ds__Key__PathElement *last = ((Ds__Entity **)made.items)[j]->key->path[0];
            if (last->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
                assert_in_range(strlen(last->name), 1, 1500);
        }
    }
}

/* Of properties, namespaces and kinds without end one detail after the other goes, and the total
 * stays. */
static void test_memory_is_bounded(void **state)
{
    struct fixture *f = *state;
    enum { MEMORY = 64 << 10, MOST = 100000 };
    int64_t counted = 0;
    ds_statistics_free(&f->statistics);
    assert_ok(ds_statistics_init(&f->statistics, MEMORY));
    while (f->statistics.detail < DS_NOT_BY_KIND) {
        char space[20], path[40], properties[80];
        int number = (int)counted++;
        assert_true(number < MOST);
        snprintf(space, sizeof space, "s%d", number / 20);
        snprintf(path, sizeof path, "K%d/1", number / 200);
        snprintf(properties, sizeof properties, "'p%d': {'integerValue': 1}", number);
        enum ds_statistics_detail before = f->statistics.detail;
        count(f, space, path, properties);
        assert_in_range(f->statistics.detail - before, 0, 1);
        assert_true(arena_footprint(f->statistics.tallies.arena) <= 2 * MEMORY);
        if (counted % 1000 == 0)
            arena_reset(f->arena);
    }
    assert_statistics(f, "__Stat_Kind__", "");
    assert_statistics(f, "__Stat_Ns_Total__", "");
    assert_statistics(f, "__Stat_Namespace__", "");
    struct vector made = {0};
    assert_ok(ds_statistics_make(&f->statistics, ds_statistic_kinds() - 1, &database, 0, f->arena,
                                 &made));
    assert_int_equal(made.count, 1);
    const Ds__Entity *total = *(Ds__Entity **)made.items;
    assert_string_equal(total->properties[5]->key, "count");
    assert_int_equal(total->properties[5]->value->integer_value, counted);
}

static void count_properties(struct fixture *f, int number)
{
    char properties[80];
    snprintf(properties, sizeof properties, "'p%d': {'integerValue': 1}", number);
    count(f, "", "K/1", properties);
    if (number % 1000 == 0)
        arena_reset(f->arena);
}

/* As many as there may be are made within the memory that a pass has for them. */
static void test_what_is_counted_can_be_made(void **state)
{
    struct fixture *f = *state;
    int most = 0;
    for (int round = 0; round < 2; round++) {
        ds_statistics_free(&f->statistics);
        assert_ok(ds_statistics_init(&f->statistics, LIMIT_DS_STATISTICS_BYTES));
        for (int i = 0; round == 0 ? f->statistics.detail == DS_ALL_STATISTICS : i < most; i++)
            count_properties(f, round == 0 ? most++ : i);
        most -= round == 0;
    }
    assert_int_equal(f->statistics.detail, DS_ALL_STATISTICS);
    struct arena *arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES);
    struct vector made = {0};
    assert_ok(
        ds_statistics_make(&f->statistics, ds_statistic_kinds() / 2, &database, 0, arena, &made));
    assert_int_equal(made.count, most);
    arena_destroy(arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sizes_are_those_of_the_documentation),
        TEST(test_nothing_has_a_total),
        TEST(test_roots_and_others),
        TEST(test_values_by_type),
        TEST(test_namespaces_have_their_own),
        TEST(test_composite_indexes),
        TEST(test_statistics_are_not_counted),
        TEST(test_long_names_become_fingerprints),
        TEST(test_memory_is_bounded),
        TEST(test_what_is_counted_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
