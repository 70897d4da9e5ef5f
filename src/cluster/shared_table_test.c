/* Tests of shared_table.h: what names a table at all peers, and a table that follows a peer's. */
#include "cluster/shared_table.h"

#include "base/testing/failmalloc.h"
#include "cluster/testing/view_testing.h"
#include "tablet/version.h"

#define OTHER_TABLE "projects/p/instances/i/tables/other"

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static struct table *make(struct cluster_fixture *f, const char *name)
{
    const struct family family = {.id = 1, .name = bytes_of("f")};
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &schema));
    const struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

static struct table *find(struct cluster_fixture *f, const char *name)
{
    struct table *table;
    assert_ok(cluster_table(f->cluster, bytes_of(name), &table));
    return table;
}

static uint64_t uid_of(struct cluster_fixture *f, const char *name)
{
    struct table *table = find(f, name);
    uint64_t uid = table_uid(table);
    table_release(table);
    return uid;
}

/* --- uids --- */

static void a_uid_has_the_number_of_when_it_was_made(void **state)
{
    struct cluster_fixture *f = *state;
    const uint64_t before = table_uid(f->table);
    assert_int_equal(before, table_id(f->table) << VERSION_CLUSTER_BITS);
    cluster_set_number(f->cluster, 3);
    struct table *other = make(f, OTHER_TABLE);
    const uint64_t after = table_id(other) << VERSION_CLUSTER_BITS | 3;
    table_release(other);
    for (unsigned number = 0; number < 3; number++) {
        assert_int_equal(table_uid(f->table), before);
        assert_int_equal(uid_of(f, OTHER_TABLE), after);
        f->options.number = number;
        reopen_test_cluster(f);
    }
}

/* What is stored of a server without peers is what it was before there were uids. */
static void without_peers_none_is_stored(void **state)
{
    struct cluster_fixture *f = *state;
    assert_int_equal(table_record_of(f->table).uid, 0);
}

static void what_each_has_for_itself_has_none(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.number = 2;
    reopen_test_cluster(f);
    struct table *own = make(f, CLUSTER_OWN_TABLES "notes");
    struct table *view = create_view(f, TEST_VIEW);
    assert_int_equal(table_uid(own), 0);
    assert_int_equal(table_uid(view), 0);
    assert_int_equal(table_record_of(own).uid, 0);
    assert_int_equal(table_record_of(view).uid, 0);
    table_release(own);
    table_release(view);
    assert_status(cluster_table_of_uid(f->cluster, 0, &own), STATUS_NOT_FOUND);
}

static void a_table_is_found_by_its_uid(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *found;
    assert_ok(cluster_table_of_uid(f->cluster, table_uid(f->table), &found));
    assert_ptr_equal(found, f->table);
    table_release(found);
    assert_status(cluster_table_of_uid(f->cluster, table_uid(f->table) + 1, &found),
                  STATUS_NOT_FOUND);
    assert_null(found);
}

/* --- following --- */

struct copy {
    struct buffer record;
    struct shared_table shared;
};

static void take_copy(struct table *table, struct copy *copy)
{
    buffer_clear(&copy->record);
    assert_ok(shared_table_encode(table, &copy->record));
    copy->shared = (struct shared_table){
        .uid = 77, .name = OTHER_TABLE, .record = buffer_bytes(&copy->record)};
}

/* The record of one table, under the name of another: names are in records, too. */
static void rename_record(struct copy *copy)
{
    struct arena *arena = arena_create(1 << 20);
    struct table_record record;
    struct schema *schema;
    assert_ok(catalog_decode_table(copy->shared.record, arena, &record, &schema));
    struct buffer renamed = {0};
    record.name = OTHER_TABLE;
    assert_ok(catalog_encode_table(&record, &renamed));
    buffer_free(&copy->record);
    copy->record = renamed;
    copy->shared.record = buffer_bytes(&copy->record);
    schema_destroy(schema);
    arena_destroy(arena);
}

static void assert_is_as_said(struct table *table, const struct copy *copy)
{
    struct buffer record = {0};
    assert_ok(shared_table_encode(table, &record));
    assert_true(bytes_equal(buffer_bytes(&record), copy->shared.record));
    buffer_free(&record);
}

static status without_f(void *context, const struct table_info *now, struct arena *arena,
                        struct table_change *next)
{
    struct family *families = arena_zalloc(arena, 2 * sizeof *families);
    (void)context;
    assert_non_null(families);
    families[0] = (struct family){.name = bytes_of("f")}; /* anew */
    families[1] = *schema_family_named(now->schema, bytes_of("sum"));
    *next = (struct table_change){.families = families,
                                  .family_count = 2,
                                  .deletion_protection = true,
                                  .extra = bytes_of("\x12\x00"),
                                  .stream_retention_us = INT64_C(86400) * 1000000};
    return status_ok();
}

static void families_have_the_peers_ids(void **state)
{
    struct cluster_fixture *f = *state;
    struct copy copy = {0};
    struct table *table;
    bool is_changed;
    take_copy(f->table, &copy);
    rename_record(&copy);
    const bytes splits[] = {bytes_of("g"), bytes_of("p")};
    copy.shared.split_keys = splits;
    copy.shared.split_count = 2;
    assert_ok(cluster_create_shared(f->cluster, &copy.shared, NULL, &table));
    assert_int_equal(table_uid(table), 77);
    assert_is_as_said(table, &copy);
    assert_ok(table_follow_shared(table, copy.shared.record, &is_changed));
    assert_false(is_changed);

    assert_ok(table_change_schema(f->table, f->arena, without_f, NULL));
    take_copy(f->table, &copy);
    rename_record(&copy);
    assert_ok(table_follow_shared(table, copy.shared.record, &is_changed));
    assert_true(is_changed);
    assert_is_as_said(table, &copy);
    assert_int_equal(schema_family_named(table_schema(table), bytes_of("f"))->id, 4);
    assert_int_equal(table_schema(table)->next_family_id, 5);
    table_release(table);

    reopen_test_cluster(f);
    table = find(f, OTHER_TABLE);
    assert_int_equal(table_uid(table), 77);
    assert_is_as_said(table, &copy);
    assert_true(table_has_stream(table));
    bytes *keys;
    size_t count;
    assert_ok(shared_table_splits(table, f->arena, &keys, &count));
    assert_int_equal(count, 2);
    assert_true(bytes_equal(keys[0], splits[0]) && bytes_equal(keys[1], splits[1]));
    table_release(table);
    buffer_free(&copy.record);
}

/* A family that was made and dropped again leaves its id behind. */
static status with_g_dropped(void *context, const struct table_info *now, struct arena *arena,
                             struct table_change *next)
{
    (void)context, (void)arena;
    *next = (struct table_change){.families = schema_family_named(now->schema, bytes_of("f")),
                                  .family_count = 1,
                                  .next_family_id = 9};
    return status_ok();
}

static void ids_that_are_gone_are_not_given_again(void **state)
{
    struct cluster_fixture *f = *state;
    assert_ok(table_change_schema(f->table, f->arena, with_g_dropped, NULL));
    assert_int_equal(table_schema(f->table)->next_family_id, 9);
    assert_true(schema_family_was_dropped(table_schema(f->table), 8));
}

/* Drops all families but f, and makes one by that name. */
static status make_family(void *context, const struct table_info *now, struct arena *arena,
                          struct table_change *next)
{
    struct family *families = arena_zalloc(arena, 2 * sizeof *families);
    assert_non_null(families);
    families[0] = *schema_family_named(now->schema, bytes_of("f"));
    families[1] = (struct family){.name = bytes_of(context)};
    *next = (struct table_change){.families = families, .family_count = 2};
    return status_ok();
}

static uint32_t made_family_id(struct cluster_fixture *f, uint64_t epoch, unsigned leader,
                               const char *name)
{
    uint32_t from, end;
    struct arena *arena = arena_create(1 << 20);
    shared_family_ids(epoch, leader, &from, &end);
    cluster_set_family_ids(f->cluster, from, end);
    assert_ok(table_change_schema(f->table, arena, make_family, (void *)(uintptr_t)name));
    arena_destroy(arena);
    return schema_family_named(table_schema(f->table), bytes_of(name))->id;
}

/* One that leads, and another that does not know what that one has made since. */
static void two_that_lead_give_different_family_ids(void **state)
{
    struct cluster_fixture *f = *state;
    const uint32_t next = table_schema(f->table)->next_family_id, epoch = 1 << 17, leader = 1 << 12;
    assert_int_equal(made_family_id(f, 1, 1, "a"), next);
    assert_int_equal(made_family_id(f, 1, 1, "b"), next + 1);
    assert_int_equal(made_family_id(f, 2, 2, "c"), epoch + 2 * leader);
    assert_int_equal(made_family_id(f, 2, 2, "d"), epoch + 2 * leader + 1);
    assert_int_equal(made_family_id(f, 2, 31, "e"), epoch + 31 * leader);
    assert_int_equal(made_family_id(f, 3, 1, "g"), 2 * epoch + leader);
    assert_int_equal(table_schema(f->table)->next_family_id, 2 * epoch + leader + 1);
}

static void ids_of_families_may_run_out(void **state)
{
    struct cluster_fixture *f = *state;
    uint32_t from, end;
    struct arena *arena = arena_create(1 << 20);
    shared_family_ids(32767, 31, &from, &end);
    assert_int_equal(end, UINT32_MAX - (1 << 17) + 1);
    shared_family_ids(32768, 1, &from, &end);
    cluster_set_family_ids(f->cluster, from, end);
    assert_status(table_change_schema(f->table, arena, make_family, (void *)(uintptr_t) "a"),
                  STATUS_RESOURCE_EXHAUSTED);
    arena_destroy(arena);
}

static void a_protected_table_is_let_go(void **state)
{
    struct cluster_fixture *f = *state;
    assert_ok(table_change_schema(f->table, f->arena, without_f, NULL));
    assert_status(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL),
                  STATUS_FAILED_PRECONDITION);
    assert_ok(table_unprotect(f->table));
    uint64_t generation = table_record_of(f->table).generation;
    assert_ok(table_unprotect(f->table));
    assert_int_equal(table_record_of(f->table).generation, generation);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
}

static void a_deleted_table_is_found_by_a_uid_that_is_stored(void **state)
{
    struct cluster_fixture *f = *state;
    struct copy copy = {0};
    struct table *table, *kept;
    table_release(f->table);
    close_test_cluster(f);
    f->options.undelete_window_us = INT64_C(3600) * 1000000;
    open_test_cluster(f);
    f->table = find(f, TEST_TABLE);
    take_copy(f->table, &copy);
    rename_record(&copy);
    assert_ok(cluster_create_shared(f->cluster, &copy.shared, NULL, &table));
    assert_status(cluster_deleted_table_of_uid(f->cluster, 77, &kept), STATUS_NOT_FOUND);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(OTHER_TABLE), NULL));
    assert_status(cluster_table_of_uid(f->cluster, 77, &kept), STATUS_NOT_FOUND);
    assert_ok(cluster_deleted_table_of_uid(f->cluster, 77, &kept));
    assert_ptr_equal(kept, table);
    assert_ok(cluster_undelete_table(f->cluster, kept, NULL));
    table_release(kept);
    table_release(table);
    uint64_t own = table_uid(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    assert_status(cluster_deleted_table_of_uid(f->cluster, own, &kept), STATUS_NOT_FOUND);
    assert_status(cluster_deleted_table_of_uid(f->cluster, 0, &kept), STATUS_NOT_FOUND);
    buffer_free(&copy.record);
}

/* As where the directory of a peer was restored: ids that are given anew may be those of tables
 * that another one made. */
static void no_uid_is_given_twice(void **state)
{
    struct cluster_fixture *f = *state;
    struct copy copy = {0};
    struct table *foreign, *own;
    take_copy(f->table, &copy);
    rename_record(&copy);
    assert_ok(cluster_create_shared(f->cluster, &copy.shared, NULL, &foreign));
    bool has_met = false;
    for (unsigned i = 0; i < 20 && !has_met; i++) { /* spare keyspaces take ids, too */
        char name[64];
        snprintf(name, sizeof name, "projects/p/instances/i/tables/own%u", i);
        const uint64_t next_id = f->cluster->next_id;
        foreign->given_uid = next_id << VERSION_CLUSTER_BITS;
        own = make(f, name);
        has_met = table_id(own) == next_id;
        assert_int_not_equal(table_uid(own), table_uid(foreign));
        assert_int_equal(table_uid(own) & (UINT64_MAX >> 1), table_id(own) << VERSION_CLUSTER_BITS);
        table_release(own);
    }
    assert_true(has_met);
    table_release(foreign);
    buffer_free(&copy.record);
}

static void what_is_no_record_is_refused(void **state)
{
    struct cluster_fixture *f = *state;
    const struct shared_table shared = {
        .uid = 77, .name = OTHER_TABLE, .record = bytes_of("\xff\xff")};
    struct table *table;
    bool is_changed;
    status s = cluster_create_shared(f->cluster, &shared, NULL, &table);
    assert_true(s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_DATA_LOSS);
    assert_null(table);
    status_free(s);
    s = table_follow_shared(f->table, shared.record, &is_changed);
    assert_true(s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_DATA_LOSS);
    status_free(s);
}

/* --- without memory --- */

static void create_and_follow(void *context)
{
    struct cluster_fixture *f = context;
    struct buffer record = {0};
    struct table *table = NULL;
    bool is_changed;
    status s = shared_table_encode(f->table, &record);
    const struct shared_table shared = {
        .uid = 78, .name = OTHER_TABLE, .record = buffer_bytes(&record)};
    if (status_is_ok(s))
        s = cluster_create_shared(f->cluster, &shared, NULL, &table);
    if (status_is_ok(s))
        s = table_follow_shared(table, shared.record, &is_changed);
    if (status_is_ok(s))
        s = table_unprotect(table);
    if (s.code != STATUS_OK && s.code != STATUS_ALREADY_EXISTS)
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    if (table != NULL)
        table_release(table);
    buffer_free(&record);
}

static void memory_may_run_out(void **state)
{
    struct cluster_fixture *f = *state;
    failmalloc_each(create_and_follow, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        CASE(a_uid_has_the_number_of_when_it_was_made),
        CASE(without_peers_none_is_stored),
        CASE(what_each_has_for_itself_has_none),
        CASE(a_table_is_found_by_its_uid),
        CASE(families_have_the_peers_ids),
        CASE(ids_that_are_gone_are_not_given_again),
        CASE(two_that_lead_give_different_family_ids),
        CASE(ids_of_families_may_run_out),
        CASE(a_protected_table_is_let_go),
        CASE(a_deleted_table_is_found_by_a_uid_that_is_stored),
        CASE(no_uid_is_given_twice),
        CASE(what_is_no_record_is_refused),
        CASE(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("shared_table", tests, NULL, NULL);
}
