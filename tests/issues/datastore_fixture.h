/* A Datastore over a cluster of its own, without a server: what tests of its core share. Its clock
 * is a test's: it stands unless it is set. */
#ifndef TRESTLE_ISSUES_DATASTORE_FIXTURE_H
#define TRESTLE_ISSUES_DATASTORE_FIXTURE_H

#include "base/testing/testing.h"
#include "cluster/cluster.h"
#include "cluster/testing/testing.h"
#include "datastore/commit/commit.h"
#include "datastore/commit/reading.h"
#include "datastore/commit/snapshot.h"
#include "datastore/commit/transaction.h"
#include "datastore/testing/testing.h"

#include <stdatomic.h>

struct hands {
    struct clock clock;
    atomic_llong us;
};

struct datastore_fixture {
    struct hands hands;
    char directory[64];
    struct log log;
    struct pool *pool;
    struct metrics *metrics;
    struct arena *arena;
    struct datastore datastore;
    struct ds_database database;
};

#define HOUR_US (INT64_C(3600) * 1000000)

static inline int64_t read_hands(struct clock *clock)
{
    return atomic_load(&((struct hands *)(void *)clock)->us);
}

static inline void open_datastore(struct datastore_fixture *f)
{
    struct cluster_options options = test_cluster_options(f->directory);
    options.clock = &f->hands.clock;
    options.log = &f->log;
    options.pool = f->pool;
    f->datastore = (struct datastore){.metrics = f->metrics, .clock = &f->hands.clock};
    assert_ok(cluster_open(&options, &f->datastore.cluster));
    pthread_mutex_init(&f->datastore.databases_lock, NULL);
    assert_ok(ds_transactions_create(f->datastore.clock, f->metrics, NULL, NULL, INT64_MAX,
                                     &f->datastore.transactions));
}

static inline void close_datastore(struct datastore_fixture *f)
{
    ds_transactions_destroy(f->datastore.transactions);
    ds_range_locks_destroy(f->datastore.range_locks);
    ds_databases_close(&f->datastore);
    pthread_mutex_destroy(&f->datastore.databases_lock);
    cluster_close(f->datastore.cluster);
}

static inline void make_pessimistic(struct datastore_fixture *f)
{
    ds_transactions_destroy(f->datastore.transactions);
    assert_ok(ds_range_locks_create(f->datastore.clock, f->metrics, 12, &f->datastore.range_locks));
    assert_ok(ds_transactions_create(f->datastore.clock, f->metrics, f->datastore.range_locks, NULL,
                                     INT64_MAX, &f->datastore.transactions));
}

static inline int setup_datastore(void **state)
{
    struct datastore_fixture *f = *state = calloc(1, sizeof *f);
    assert_non_null(f);
    f->hands.clock = (struct clock){read_hands, read_hands};
    atomic_store(&f->hands.us, INT64_C(1800000000) * 1000000);
    snprintf(f->directory, sizeof f->directory, "/tmp/trestle-datastore-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    f->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    f->database = (struct ds_database){"p", ""};
    f->arena = arena_create(SIZE_MAX / 2);
    assert_ok(metrics_create(&f->metrics));
    assert_ok(pool_create(2, 64, "test", &f->pool));
    open_datastore(f);
    return 0;
}

static inline int teardown_datastore(void **state)
{
    struct datastore_fixture *f = *state;
    close_datastore(f);
    pool_destroy(f->pool);
    metrics_destroy(f->metrics);
    arena_destroy(f->arena);
    remove_test_directory(f->directory);
    free(f);
    return 0;
}

static inline void pass(struct datastore_fixture *f, int64_t us)
{
    atomic_fetch_add(&f->hands.us, us);
}

static inline struct ds_open_database *open_test_database(struct datastore_fixture *f)
{
    struct ds_open_database *open;
    assert_ok(ds_database_open(&f->datastore, &f->database, true, &open));
    return open;
}

/* --- requests --- */

/* Of a mutation as JSON, with ' for ". */
static inline status try_commit(struct datastore_fixture *f, const char *json)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    Ds__Mutation *mutations[] = {test_mutation(f->arena, json)};
    request.mode = DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL;
    request.mutations = mutations;
    request.n_mutations = 1;
    return ds_commit_own(&f->datastore, &f->database, &request, f->arena);
}

static inline struct ds_call test_call(struct datastore_fixture *f)
{
    return (struct ds_call){.datastore = &f->datastore,
                            .arena = f->arena,
                            .project_id = f->database.project,
                            .database_id = f->database.id,
                            .deadline_us = INT64_MAX};
}

static inline struct ds_snapshot snapshot_at(struct datastore_fixture *f, int64_t at_us)
{
    return (struct ds_snapshot){
        .table = open_test_database(f)->table, .database = f->database, .at_us = at_us};
}

static inline struct ds_version read_at(struct datastore_fixture *f, int64_t at_us,
                                        const char *path)
{
    const struct ds_snapshot snapshot = snapshot_at(f, at_us);
    struct ds_version version;
    assert_ok(ds_snapshot_get(&snapshot, test_key(f->arena, "", path), f->arena, &version));
    return version;
}

/* Of K/1 with this property: the commit's moment. */
static inline int64_t put_property(struct datastore_fixture *f, const char *property)
{
    char json[256];
    snprintf(json, sizeof json,
             "{'upsert': {'key': {'path': [{'kind': 'K', 'id': 1}]}, 'properties': {%s}}}",
             property);
    assert_ok(try_commit(f, json));
    return read_at(f, INT64_MAX, "K/1").version_us;
}

/* How many rows there are of a kind at the moment, and the last of them, copied. */
static inline status read_rows_of(struct datastore_fixture *f, enum ds_row_kind kind, int64_t at_us,
                                  size_t *count, struct ds_row_found *last)
{
    const struct ds_snapshot snapshot = snapshot_at(f, at_us);
    const uint8_t from = (uint8_t)kind, to = (uint8_t)(kind + 1);
    struct ds_rows_reader *reader;
    struct ds_row_found row;
    bool found = true;
    *count = 0;
    TRY(ds_rows_open(&snapshot, DS_FORWARDS, bytes_make(&from, 1), bytes_make(&to, 1), f->arena,
                     &reader));
    status s = ds_rows_next(reader, &row, &found);
    for (; status_is_ok(s) && found; s = ds_rows_next(reader, &row, &found)) {
        ++*count;
        *last =
            (struct ds_row_found){arena_copy(f->arena, row.key), arena_copy(f->arena, row.value)};
    }
    ds_rows_close(reader);
    return s;
}

#endif
