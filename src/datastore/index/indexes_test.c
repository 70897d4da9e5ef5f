/* The sets of composite indexes, over rows in memory: which is the present one, and which are in
 * use. */
#include "datastore/index/indexes.h"

#include "base/testing/testing.h"
#include "datastore/commit/rows_write.h"
#include "datastore/commit/snapshot.h"

#include <stdatomic.h>
#include <stdlib.h>

/* --- a table in memory --- */

enum { MOST_ROWS = 16 };

static struct {
    struct buffer keys[MOST_ROWS]; /* sorted; empty: none */
    struct buffer values[MOST_ROWS];
    bool is_failing;
} table;

/* A reader of the rows that are there, from `from` on, by key: definitions have ids below
 * MOST_ROWS. */
struct ds_rows_reader {
    size_t at;
};

status ds_rows_open(const struct ds_snapshot *snapshot, enum ds_way way, bytes from, bytes to,
                    struct arena *arena, struct ds_rows_reader **out)
{
    (void)snapshot;
    (void)way;
    (void)to;
    *out = arena_zalloc(arena, sizeof **out);
    assert_non_null(*out);
    (*out)->at = from.size > 1 ? from.data[from.size - 1] : 0;
    return status_ok();
}

status ds_rows_next(struct ds_rows_reader *reader, struct ds_row_found *row, bool *found)
{
    while (reader->at < MOST_ROWS && table.keys[reader->at].size == 0)
        reader->at++;
    *found = reader->at < MOST_ROWS;
    if (*found) {
        *row = (struct ds_row_found){.key = buffer_bytes(&table.keys[reader->at]),
                                     .value = buffer_bytes(&table.values[reader->at])};
        reader->at++;
    }
    return status_ok();
}

void ds_rows_close(struct ds_rows_reader *reader)
{
    (void)reader;
}

status ds_rows_write_in_order(struct table *unused, const struct ds_row_write *rows, size_t count,
                              struct ds_sequencer *sequencer, int64_t now_us, struct arena *arena)
{
    (void)unused;
    (void)sequencer;
    (void)now_us;
    (void)arena;
    if (table.is_failing)
        return status_make(STATUS_UNAVAILABLE, "the disk is full");
    assert_int_equal(count, 1);
    size_t at = rows->key.data[rows->key.size - 1];
    buffer_clear(&table.keys[at]);
    buffer_clear(&table.values[at]);
    if (rows->is) {
        buffer_append_bytes(&table.keys[at], rows->key);
        buffer_append_bytes(&table.values[at], rows->now);
    }
    return status_ok();
}

int64_t cluster_version_us(struct cluster *cluster)
{
    (void)cluster;
    return 1;
}

/* --- tests --- */

struct fixture {
    struct datastore datastore;
    struct ds_open_database open;
    struct arena *arena;
};

static int set_up(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = arena_create(1 << 20);
    assert_ok(ds_indexes_create(&f->open, &f->open.indexes));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    ds_indexes_destroy(f->open.indexes);
    for (size_t i = 0; i < MOST_ROWS; i++) {
        buffer_free(&table.keys[i]);
        buffer_free(&table.values[i]);
    }
    table.is_failing = false;
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static status try_put(struct fixture *f, int64_t id, DsAdmin__Index__State state, int64_t ready_us)
{
    Datastore__CompositeIndex definition = DATASTORE__COMPOSITE_INDEX__INIT;
    Datastore__CompositeIndex__Property a = DATASTORE__COMPOSITE_INDEX__PROPERTY__INIT;
    Datastore__CompositeIndex__Property *properties[] = {&a};
    a.name = "a";
    definition.id = id;
    definition.kind = "K";
    definition.properties = properties;
    definition.n_properties = 1;
    definition.state = (uint32_t)state;
    definition.ready_us = ready_us;
    ds_indexes_lock(f->open.indexes);
    status s = ds_indexes_put(&f->datastore, &f->open, &definition, f->arena);
    ds_indexes_unlock(f->open.indexes);
    return s;
}

static void put(struct fixture *f, int64_t id, DsAdmin__Index__State state, int64_t ready_us)
{
    assert_ok(try_put(f, id, state, ready_us));
}

#define CREATING DS_ADMIN__INDEX__STATE__CREATING
#define READY    DS_ADMIN__INDEX__STATE__READY
#define DELETING DS_ADMIN__INDEX__STATE__DELETING
#define FAILED   DS_ADMIN__INDEX__STATE__ERROR

/* The ids of what is kept, in order, those that a query as of the time can use before a bar. */
static void assert_present(struct fixture *f, int64_t at_us, const char *expected)
{
    struct buffer text = {0};
    const struct ds_index_set *set = ds_indexes_take(f->open.indexes);
    size_t ready = ds_index_set_ready(set, at_us);
    for (size_t i = 0; i <= set->count; i++) {
        buffer_append_format(&text, "%s", i == ready ? "|" : "");
        if (i < set->count)
            buffer_append_format(&text, "%d", (int)set->indexes[i].id);
    }
    ds_indexes_give_back(f->open.indexes, set);
    buffer_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
}

static void test_what_writers_and_queries_use(void **state)
{
    struct fixture *f = *state;
    assert_present(f, INT64_MAX - 1, "|");
    put(f, 3, CREATING, 0);
    assert_present(f, INT64_MAX - 1, "|3");
    put(f, 2, READY, 20);
    put(f, 1, CREATING, 0);
    put(f, 5, READY, 10);
    assert_present(f, 9, "|5213");
    assert_present(f, 10, "5|213");
    assert_present(f, 20, "52|13");
    put(f, 1, READY, 30);
    put(f, 2, DELETING, 20);
    put(f, 3, FAILED, 0);
    assert_present(f, 29, "5|1");
    assert_present(f, INT64_MAX - 1, "51|");
}

static void test_a_restart_finds_the_same(void **state)
{
    struct fixture *f = *state;
    put(f, 3, CREATING, 0);
    put(f, 1, DELETING, 5);
    put(f, 2, READY, 7);
    ds_indexes_destroy(f->open.indexes);
    assert_ok(ds_indexes_create(&f->open, &f->open.indexes));
    assert_present(f, 7, "2|3");
    struct vector all;
    Datastore__CompositeIndex *found;
    assert_ok(ds_indexes_list(&f->open, f->arena, &all));
    assert_int_equal(all.count, 3);
    assert_ok(ds_indexes_read(&f->open, 1, f->arena, &found));
    assert_int_equal(found->state, DELETING);
    assert_ok(ds_indexes_remove(&f->datastore, &f->open, 1, f->arena));
    assert_ok(ds_indexes_read(&f->open, 1, f->arena, &found));
    assert_null(found);
    assert_present(f, 7, "2|3");
}

static void test_what_is_not_durable_is_not(void **state)
{
    struct fixture *f = *state;
    put(f, 1, CREATING, 0);
    table.is_failing = true;
    assert_status(try_put(f, 1, READY, 1), STATUS_UNAVAILABLE);
    assert_status(try_put(f, 2, CREATING, 0), STATUS_UNAVAILABLE);
    assert_present(f, INT64_MAX - 1, "|1");
}

static bool keeps(struct fixture *f, uint64_t id)
{
    struct buffer row = {0};
    ds_composite_prefix(&row, bytes_of("n"), id, bytes_make(NULL, 0));
    bool is = ds_indexes_keeps(f->open.indexes, buffer_bytes(&row));
    buffer_free(&row);
    return is;
}

static void test_whose_rows_are_kept(void **state)
{
    struct fixture *f = *state;
    put(f, 1, CREATING, 0);
    put(f, 2, READY, 1);
    put(f, 3, DELETING, 1);
    assert_true(keeps(f, 1));
    assert_true(keeps(f, 2));
    assert_false(keeps(f, 3));
    assert_false(keeps(f, 4));
    assert_true(ds_indexes_keeps(f->open.indexes, bytes_of("Ano composite one")));
    assert_true(ds_indexes_keeps(f->open.indexes, bytes_of("")));
}

/* A set stays as it was as long as it is in use. */
static void test_sets_do_not_change(void **state)
{
    struct fixture *f = *state;
    put(f, 1, CREATING, 0);
    const struct ds_index_set *old = ds_indexes_take(f->open.indexes);
    put(f, 1, READY, 1);
    const struct ds_index_set *middle = ds_indexes_take(f->open.indexes);
    put(f, 1, DELETING, 1);
    assert_int_equal(old->count, 1);
    assert_int_equal(ds_index_set_ready(old, 5), 0);
    assert_int_equal(ds_index_set_ready(middle, 5), 1);
    assert_string_equal(middle->indexes[0].properties[0], "a");
    ds_indexes_give_back(f->open.indexes, middle);
    assert_string_equal(old->indexes[0].kind, "K");
    ds_indexes_give_back(f->open.indexes, old);
    ds_indexes_drain(f->open.indexes);
}

struct drainer {
    struct ds_indexes *indexes;
    atomic_int *left; /* users of older sets */
};

static void *drain(void *argument)
{
    const struct drainer *drainer = argument;
    ds_indexes_drain(drainer->indexes);
    return atomic_load(drainer->left) == 0 ? NULL : argument;
}

/* Users of the present set are not waited for; those of all older ones are. */
static void test_draining_waits_for_older_users(void **state)
{
    enum { USERS = 4 };
    struct fixture *f = *state;
    const struct ds_index_set *taken[USERS];
    atomic_int left = USERS;
    struct drainer drainer = {f->open.indexes, &left};
    pthread_t thread;
    void *failed;
    for (int i = 0; i < USERS; i++) {
        taken[i] = ds_indexes_take(f->open.indexes);
        if (i % 2 == 1)
            put(f, 1, i == 1 ? CREATING : READY, 1);
    }
    const struct ds_index_set *present = ds_indexes_take(f->open.indexes);
    assert_int_equal(pthread_create(&thread, NULL, drain, &drainer), 0);
    for (int i = 0; i < USERS; i++) {
        atomic_fetch_sub(&left, 1);
        ds_indexes_give_back(f->open.indexes, taken[i]);
    }
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    ds_indexes_give_back(f->open.indexes, present);
}

struct taker {
    struct ds_indexes *indexes;
    atomic_bool *is_over;
};

static void *take_again_and_again(void *argument)
{
    const struct taker *taker = argument;
    while (!atomic_load(taker->is_over)) {
        const struct ds_index_set *set = ds_indexes_take(taker->indexes);
        for (size_t i = 0; i < set->count; i++)
            if (strcmp(set->indexes[i].kind, "K") != 0)
                return argument;
        ds_indexes_give_back(taker->indexes, set);
    }
    return NULL;
}

/* For the sanitizers. */
static void test_many_take_while_one_changes(void **state)
{
    enum { THREADS = 3, CHANGES = 100 };
    struct fixture *f = *state;
    atomic_bool is_over = false;
    struct taker taker = {f->open.indexes, &is_over};
    pthread_t threads[THREADS];
    void *failed;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_again_and_again, &taker), 0);
    for (int i = 0; i < CHANGES; i++) {
        arena_reset(f->arena);
        put(f, i % 5, i % 3 == 0 ? READY : CREATING, i);
        ds_indexes_drain(f->open.indexes);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_writers_and_queries_use), TEST(a_restart_finds_the_same),
        TEST(what_is_not_durable_is_not),   TEST(whose_rows_are_kept),
        TEST(sets_do_not_change),           TEST(draining_waits_for_older_users),
        TEST(many_take_while_one_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
