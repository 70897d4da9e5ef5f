/* With pessimistic transactions the rows of a new index were made without keeping commits out.
 *
 * Read in the core by somebody who looked for lost writes. The making of a composite index locked
 * the entities that it read with the locks of optimistic commits, which pessimistic ones do not
 * take. So an entity was read, a commit changed it and its rows, and then the rows of what it had
 * been were written: for good, and queries by the index failed. Here a commit has an entity to
 * itself, as each mode has it, while an index is made, and deletes it. */
#include "datastore_fixture.h"

#include "datastore/commit/rows_write.h"
#include "datastore/index/index_backfill.h"

enum { INDEX = 7 };

struct making {
    struct ds_backfill backfill;
    status result;
    atomic_bool is_done;
};

/* Nobody cancels. */
bool operation_is_cancelled(const struct operation *operation)
{
    (void)operation;
    return false;
}

bool operation_is_stopping(const struct operation *operation)
{
    (void)operation;
    return false;
}

static void progress(void *context)
{
    (void)context;
}

static void *make(void *argument)
{
    struct making *making = argument;
    making->result = ds_backfill(&making->backfill);
    atomic_store(&making->is_done, true);
    return NULL;
}

static Datastore__CompositeIndex *put_definition(struct datastore_fixture *f)
{
    struct ds_open_database *open = open_test_database(f);
    Datastore__CompositeIndex *definition =
        (Datastore__CompositeIndex *)test_message(f->arena, &datastore__composite_index__descriptor,
                                                  "{'id': 7, 'kind': 'K', 'state': 1,"
                                                  " 'properties': [{'name': 'n'}, {'name': 'm'}]}");
    assert_int_equal(definition->id, INDEX);
    assert_int_equal(definition->state, DS_ADMIN__INDEX__STATE__CREATING);
    ds_indexes_lock(open->indexes);
    assert_ok(ds_indexes_put(&f->datastore, open, definition, f->arena));
    ds_indexes_unlock(open->indexes);
    return definition;
}

/* --- a commit, step by step --- */

static void keep_others_out(struct datastore_fixture *f, bytes *row, struct ds_lock *lock,
                            struct ds_locker *locker)
{
    *locker = (struct ds_locker){
        .database = open_test_database(f), .age = 1, .arena = f->arena, .until_us = INT64_MAX};
    *lock = (struct ds_lock){.key = *row};
    if (f->datastore.range_locks != NULL)
        assert_ok(ds_range_locks_claim(f->datastore.range_locks, locker, (struct ds_claim){row, 1},
                                       NULL));
    else
        assert_ok(ds_locks_take(open_test_database(f)->locks, lock, 1, 0));
}

static void let_others_in(struct datastore_fixture *f, struct ds_lock *lock,
                          struct ds_locker *locker)
{
    if (f->datastore.range_locks != NULL)
        ds_range_locks_release(f->datastore.range_locks, locker);
    else
        ds_locks_release(open_test_database(f)->locks, lock, 1);
}

/* The entity alone: its rows in the other indexes are no matter here, and in the new one it has
 * none yet. */
static void delete_entity(struct datastore_fixture *f, bytes row)
{
    const struct ds_row_write gone = {.key = row};
    struct ds_open_database *open = open_test_database(f);
    assert_ok(ds_rows_write_in_order(open->table, &gone, 1, &open->sequencer,
                                     cluster_version_us(f->datastore.cluster), f->arena));
}

static bytes entity_row(struct datastore_fixture *f, const char *path)
{
    struct buffer row = {0};
    ds_entity_row(&row, test_key(f->arena, "", path));
    bytes copy = arena_copy(f->arena, buffer_bytes(&row));
    buffer_free(&row);
    return copy;
}

/* --- the test --- */

static void put_entities(struct datastore_fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        char json[256];
        snprintf(json, sizeof json,
                 "{'upsert': {'key': {'path': [{'kind': 'K', 'id': %d}]},"
                 " 'properties': {'n': {'integerValue': %d}, 'm': {'integerValue': 1}}}}",
                 i, i);
        assert_ok(try_commit(f, json));
    }
}

/* Until the making waits for who has the entity, or is done without. */
static void await_a_wait(struct datastore_fixture *f, struct making *making)
{
    while (f->datastore.range_locks != NULL && !atomic_load(&making->is_done) &&
           metrics_value(f->metrics, METRIC_datastore_lock_waits_total) == 0)
        sched_yield();
}

static void assert_no_row_of_what_is_gone(struct datastore_fixture *f)
{
    bytes row = entity_row(f, "K/2");
    struct ds_lock lock;
    struct ds_locker locker;
    struct ds_row_found last;
    size_t count;
    pthread_t thread;
    put_entities(f);
    struct making making = {.backfill = {.datastore = &f->datastore,
                                         .open = open_test_database(f),
                                         .definition = put_definition(f),
                                         .progress = progress}};
    keep_others_out(f, &row, &lock, &locker);
    assert_ok(thread_start(&thread, "making", make, &making));
    await_a_wait(f, &making);
    delete_entity(f, row);
    let_others_in(f, &lock, &locker);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(making.result);
    assert_ok(read_rows_of(f, DS_COMPOSITE_ROW, INT64_MAX, &count, &last));
    assert_int_equal(count, 2);
}

static void optimistic_commits_are_kept_out(void **state)
{
    assert_no_row_of_what_is_gone(*state);
}

static void pessimistic_commits_are_kept_out(void **state)
{
    make_pessimistic(*state);
    assert_no_row_of_what_is_gone(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_datastore, teardown_datastore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(optimistic_commits_are_kept_out),
        TEST(pessimistic_commits_are_kept_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
