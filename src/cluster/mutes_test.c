/* Findings that are muted: kept with their table. */
#include "cluster/mutes.h"

#include "cluster/deletions.h"
#include "cluster/table.h"
#include "cluster/testing/testing.h"

enum { MEMORY = 16 << 20 };

static struct cluster_fixture *make_fixture(int64_t undelete_window_us)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    f->options.undelete_window_us = undelete_window_us;
    reopen_test_cluster(f);
    return f;
}

static status mute(struct cluster_fixture *f, const char *rule, const char *reason)
{
    const struct mute entry = {
        .rule = rule, .reason = reason, .principal = "user:a", .since_us = 7};
    return table_mute(f->table, &entry);
}

static void assert_fails(status s, enum status_code code)
{
    assert_int_equal(s.code, code);
    status_free(s);
}

/* "a: why;b: why;" */
static void assert_muted(struct cluster_fixture *f, const char *expected)
{
    struct arena *arena = arena_create(MEMORY);
    struct buffer told = {0};
    struct mute *mutes;
    size_t count;
    assert_non_null(arena);
    assert_ok(table_read_mutes(f->table, arena, &mutes, &count));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(mutes[i].principal, "user:a");
        assert_int_equal(mutes[i].since_us, 7);
        buffer_append_format(&told, "%s: %s;", mutes[i].rule, mutes[i].reason);
    }
    buffer_append_byte(&told, 0);
    assert_false(told.failed);
    assert_string_equal((const char *)told.data, expected);
    buffer_free(&told);
    arena_destroy(arena);
}

static void test_entries_come_and_go(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture(0);
    assert_muted(f, "");
    assert_ok(mute(f, "m", "one"));
    assert_ok(mute(f, "z", "two"));
    assert_ok(mute(f, "a", "three"));
    assert_muted(f, "a: three;m: one;z: two;");
    assert_ok(mute(f, "m", "another"));
    assert_muted(f, "a: three;m: another;z: two;");
    assert_ok(table_unmute(f->table, "a"));
    assert_fails(table_unmute(f->table, "a"), STATUS_NOT_FOUND);
    reopen_test_cluster(f);
    assert_muted(f, "m: another;z: two;");
    assert_ok(table_unmute(f->table, "m"));
    assert_ok(table_unmute(f->table, "z"));
    assert_muted(f, "");
    cluster_fixture_destroy(f);
}

static void test_what_cannot_be_muted_is_refused(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture(0);
    char longest[MUTE_REASON_MOST + 2] = "";
    memset(longest, 'r', MUTE_REASON_MOST);
    assert_ok(mute(f, "a", longest));
    longest[MUTE_REASON_MOST] = 'r';
    assert_fails(mute(f, "a", longest), STATUS_INVALID_ARGUMENT);
    assert_fails(mute(f, "a", ""), STATUS_INVALID_ARGUMENT);
    assert_fails(mute(f, "a", "\xff"), STATUS_INVALID_ARGUMENT);
    assert_fails(mute(f, "", "why"), STATUS_INVALID_ARGUMENT);
    longest[MUTE_RULE_MOST + 1] = '\0';
    assert_fails(mute(f, longest, "why"), STATUS_INVALID_ARGUMENT);
    for (unsigned i = 1; i < MUTES_MOST; i++) {
        char rule[16];
        snprintf(rule, sizeof rule, "b%u", i);
        assert_ok(mute(f, rule, "why"));
    }
    assert_fails(mute(f, "one more", "why"), STATUS_RESOURCE_EXHAUSTED);
    assert_ok(mute(f, "b1", "another"));
    cluster_fixture_destroy(f);
}

/* Whether the catalog has the table's record. */
static bool is_recorded(struct cluster_fixture *f, uint64_t id)
{
    struct catalog_mutes_key key = catalog_mutes_key(id);
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(f->cluster->catalog, NULL, bytes_make(key.data, sizeof key.data),
                        STORE_READ_ANY, &value, &presence));
    store_value_release(&value);
    return presence == STORE_FOUND;
}

static void test_mutes_go_with_the_table_for_good(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture(0);
    uint64_t id = table_id(f->table);
    assert_ok(mute(f, "a", "why"));
    assert_true(is_recorded(f, id));
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    assert_false(is_recorded(f, id));
    assert_fails(mute(f, "a", "why"), STATUS_NOT_FOUND);
    assert_fails(table_unmute(f->table, "a"), STATUS_NOT_FOUND);
    assert_false(is_recorded(f, id));
    table_release(f->table);
    f->table = create_test_table(f->cluster, NULL);
    assert_muted(f, "");
    cluster_fixture_destroy(f);
}

static void test_mutes_come_back_with_the_table(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture(INT64_C(3600) * 1000000);
    assert_ok(mute(f, "a", "why"));
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    table_release(f->table);
    assert_ok(cluster_deleted_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    assert_ok(cluster_undelete_table(f->cluster, f->table, NULL));
    assert_muted(f, "a: why;");
    cluster_fixture_destroy(f);
}

static void test_without_memory_it_fails(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture(0);
    struct arena *small = arena_create(1);
    struct mute *mutes;
    size_t count;
    assert_ok(mute(f, "a", "why"));
    while (arena_alloc(small, 1) != NULL) {
    }
    assert_fails(table_read_mutes(f->table, small, &mutes, &count), STATUS_RESOURCE_EXHAUSTED);
    arena_destroy(small);
    cluster_fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_come_and_go),
        cmocka_unit_test(test_what_cannot_be_muted_is_refused),
        cmocka_unit_test(test_mutes_go_with_the_table_for_good),
        cmocka_unit_test(test_mutes_come_back_with_the_table),
        cmocka_unit_test(test_without_memory_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
