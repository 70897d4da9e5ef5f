/* Tests of the repair of indexes, over rows that are written as commits write them, and then
 * broken. */
#include "datastore/index/index_repair.h"

#include "base/testing/testing_clock.h"
#include "datastore/testing/index_testing.h"
#include "tablet/row_read.h"

enum { CATALOG = 1, NOW_US = 1000000, MANY = 2500 /* more rows than are written at once */ };

/* A repair's, from its start to its end. */
struct session {
    struct turned_clock clock;
    struct commit_queue *queue;
    struct ds_index_repair repair;
};

static void begin(struct fixture *f, struct session *session)
{
    struct keyspace *catalog = store_keyspace_find(f->store, CATALOG);
    *session = (struct session){.clock = {.clock = TURNED_CLOCK, .now_us = NOW_US}};
    const struct commit_options options = {
        .store = f->store,
        .catalog = catalog == NULL ? make_keyspace(f->store, CATALOG) : catalog,
        .clock = &session->clock.clock,
        .durability = STORE_ASYNC,
        .queue_limit_bytes = 1 << 20,
        .stall_limit_us = INT64_MAX};
    assert_ok(commit_queue_create(&options, &session->queue));
    session->repair = (struct ds_index_repair){.check = f->check, .commits = session->queue};
    buffer_clear(&f->reported);
}

/* The ceiling is durable, and above all that was written. */
static uint64_t end(struct fixture *f, struct session *session)
{
    struct commit_ceilings ceilings;
    commit_queue_destroy(session->queue);
    assert_ok(commit_read_ceilings(store_keyspace_find(f->store, CATALOG), &ceilings));
    return ceilings.version;
}

static void assert_repaired(struct fixture *f, uint64_t too_many, uint64_t missing, uint64_t types)
{
    struct session session;
    begin(f, &session);
    assert_ok(ds_index_repair_run(&session.repair));
    end(f, &session);
    assert_int_equal(session.repair.repaired[DS_DAMAGE_TOO_MANY], too_many);
    assert_int_equal(session.repair.repaired[DS_DAMAGE_MISSING], missing);
    assert_int_equal(session.repair.repaired[DS_DAMAGE_TYPES], types);
}

/* The newest cell of the family; NULL if there is none. It is whole until the next call. */
static const struct cell *cell_of(struct fixture *f, bytes row_key, const char *family)
{
    const struct row_read_options options = {
        .store = f->store, .schema = f->schema, .size_limit = UINT64_MAX};
    struct row row = {.cells.arena = f->arena};
    enum row_outcome outcome;
    struct cell *found = NULL;
    assert_ok(row_read(f->keyspace, &options, row_key, STORE_READ_ANY, &row, &outcome));
    for (size_t i = 0; i < row.cells.count && found == NULL; i++) {
        if (!bytes_equal(row.cells.items[i].family->name, bytes_of(family)))
            continue;
        found = arena_alloc(f->arena, sizeof *found);
        *found = row.cells.items[i];
        found->value = arena_copy(f->arena, found->value);
    }
    row_clear(&row);
    return found;
}

static const char five[] = "'a': {'integerValue': '5'}";

/* --- tests --- */

static void test_a_sound_database_is_not_written_to(void **state)
{
    struct fixture *f = *state;
    struct session session;
    put_index(f, "READY");
    put_entity(f, "P/1/K/1", "'a': {'integerValue': '5'}, 'b': {'integerValue': '6'}");
    begin(f, &session);
    assert_ok(ds_index_repair_run(&session.repair));
    assert_int_equal(end(f, &session), 0);
    assert_int_equal(f->reported.size, 0);
}

static void test_missing_rows_are_written(void **state)
{
    struct fixture *f = *state;
    put_index(f, "READY");
    const Ds__Entity *entity =
        put_entity(f, "P/1/K/1", "'a': {'integerValue': '5'}, 'b': {'integerValue': '6'}");
    for (const char *letter = "KAC"; *letter != '\0'; letter++)
        remove_row(f, index_row(f, entity, *letter).key);
    assert_repaired(f, 0, 3, 0);
    assert_reported(f, "");
    assert_repaired(f, 0, 0, 0);
}

static void test_rows_without_an_entity_are_removed(void **state)
{
    struct fixture *f = *state;
    put_index(f, "READY");
    const Ds__Entity *entity =
        put_entity(f, "P/1/K/1", "'a': {'integerValue': '5'}, 'b': {'integerValue': '6'}");
    remove_row(f, row_of(f, entity));
    assert_repaired(f, 1 + 2 + 2, 0, 0);
    assert_reported(f, "");
    assert_int_equal(f->check.index_rows, 0);
}

static void test_rows_of_other_values_are_removed(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *other = make_entity(f, "K/1", "'a': {'integerValue': '6'}");
    put_entity(f, "K/1", five);
    struct ds_index_row row = index_row(f, other, 'A');
    write_row(f, row.key, &row.types);
    assert_repaired(f, 1, 0, 0);
    assert_reported(f, "");
    assert_null(cell_of(f, row.key, DS_FAMILY_IS));
}

static void test_types_are_corrected(void **state)
{
    struct fixture *f = *state;
    const Ds__Entity *entity = put_entity(f, "K/1", "'a': {'stringValue': 'x'}");
    struct ds_index_row row = index_row(f, entity, 'A');
    const bytes blob = bytes_make("\x12", 1);
    write_row(f, row.key, &blob);
    assert_repaired(f, 0, 0, 1);
    assert_reported(f, "");
    assert_true(bytes_equal(cell_of(f, row.key, DS_FAMILY_WAS)->value, blob));
}

/* A former release may have written moments above the ceiling. */
static void test_moments_are_later_than_all_that_is_there(void **state)
{
    struct fixture *f = *state;
    struct session session;
    const Ds__Entity *entity = put_entity(f, "K/1", five);
    const Ds__Entity *other = make_entity(f, "K/1", "'a': {'stringValue': 'x'}");
    struct ds_index_row missing = index_row(f, entity, 'A'), late = index_row(f, entity, 'K');
    struct ds_index_row too_many = index_row(f, other, 'A');
    write_row(f, too_many.key, &too_many.types);
    remove_row(f, missing.key);
    int64_t ahead_us = (int64_t)10 * NOW_US;
    f->version = (uint64_t)ahead_us - 1;
    write_row(f, late.key, &late.types);
    begin(f, &session);
    assert_ok(ds_index_repair_run(&session.repair));
    uint64_t ceiling = end(f, &session);
    const struct cell *is = cell_of(f, missing.key, DS_FAMILY_IS);
    assert_int_equal(is->timestamp_us, ahead_us + 1);
    assert_int_equal(cell_of(f, missing.key, DS_FAMILY_WAS)->timestamp_us, ahead_us + 1);
    assert_int_equal(cell_of(f, too_many.key, DS_FAMILY_WAS)->timestamp_us, ahead_us + 1);
    assert_true(version_time_us(ceiling) > is->timestamp_us);
}

/* Which rows a damaged entity has is unknown. */
static void test_rows_of_a_damaged_entity_are_left(void **state)
{
    struct fixture *f = *state;
    const bytes damaged = bytes_of("\x0a\x7fno record");
    const Ds__Entity *entity = put_entity(f, "K/1", five);
    write_row(f, row_of(f, entity), &damaged);
    assert_repaired(f, 0, 0, 0);
    assert_non_null(cell_of(f, index_row(f, entity, 'A').key, DS_FAMILY_IS));
}

static void test_rows_of_a_deleted_index_are_removed(void **state)
{
    struct fixture *f = *state;
    struct buffer key = {0};
    put_index(f, "READY");
    put_entity(f, "P/1/K/1", "'a': {'integerValue': '5'}, 'b': {'integerValue': '6'}");
    ds_index_row(&key, 7);
    remove_row(f, buffer_bytes(&key));
    buffer_free(&key);
    assert_repaired(f, 2, 0, 0);
    assert_reported(f, "");
}

/* They may be its rows. */
static void test_rows_of_a_damaged_index_are_left(void **state)
{
    struct fixture *f = *state;
    const bytes damaged = bytes_of("\x0a\x7fno definition");
    struct buffer key = {0};
    put_index(f, "READY");
    put_entity(f, "P/1/K/1", "'a': {'integerValue': '5'}, 'b': {'integerValue': '6'}");
    ds_index_row(&key, 7);
    write_row(f, buffer_bytes(&key), &damaged);
    buffer_free(&key);
    assert_repaired(f, 0, 0, 0);
    assert_true(f->reported.size > 0);
}

static void test_strange_rows_are_left(void **state)
{
    struct fixture *f = *state;
    const bytes nothing = bytes_make(NULL, 0);
    write_row(f, bytes_of("Zebra"), &nothing);
    write_row(f, bytes_of("Ano value"), &nothing);
    assert_repaired(f, 0, 0, 0);
    assert_non_null(cell_of(f, bytes_of("Zebra"), DS_FAMILY_IS));
}

/* --- many --- */

static const bytes nothing = {.size = 0};

/* Index rows of as many entities that are not there. */
static void write_orphans(struct fixture *f)
{
    for (int i = 1; i <= MANY; i++) {
        char path[32];
        snprintf(path, sizeof path, "K/%d", i);
        struct buffer key = {0};
        ds_kind_row(&key, test_key(f->arena, "n", path));
        write_row(f, buffer_bytes(&key), &nothing);
        buffer_free(&key);
    }
}

struct limit {
    struct fixture *fixture;
    int left; /* reports until it is killed */
};

static status note_some(void *context, const struct ds_index_damage *damage)
{
    struct limit *limit = context;
    if (limit->left-- == 0)
        return status_make(STATUS_CANCELLED, "killed");
    return note(limit->fixture, damage);
}

static void test_a_repair_cut_short_is_done_by_the_next(void **state)
{
    struct fixture *f = *state;
    struct limit limit = {f, MANY - 1};
    struct session session;
    write_orphans(f);
    begin(f, &session);
    session.repair.check.context = &limit;
    session.repair.check.report = note_some;
    status s = ds_index_repair_run(&session.repair);
    assert_int_equal(s.code, STATUS_CANCELLED);
    status_free(s);
    end(f, &session);
    uint64_t repaired = session.repair.repaired[DS_DAMAGE_TOO_MANY];
    assert_in_range(repaired, 1, MANY - 1);
    assert_repaired(f, MANY - repaired, 0, 0);
    assert_reported(f, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sound_database_is_not_written_to),
        TEST(missing_rows_are_written),
        TEST(rows_without_an_entity_are_removed),
        TEST(rows_of_other_values_are_removed),
        TEST(types_are_corrected),
        TEST(moments_are_later_than_all_that_is_there),
        TEST(rows_of_a_damaged_entity_are_left),
        TEST(rows_of_a_deleted_index_are_removed),
        TEST(rows_of_a_damaged_index_are_left),
        TEST(strange_rows_are_left),
        TEST(a_repair_cut_short_is_done_by_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
