/* See mend.h. `lock` guards what is under way. */
#include "cluster/mend.h"

#include "base/check.h"
#include "cluster/cluster_private.h"

#include <stdlib.h>

enum {
    ROWS_AT_ONCE = 1024, /* of 64 KiB at most (row_read.c) */
};

struct mender {
    struct shard *shard;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    size_t count;
    bool is_stopping;
    bool is_taken[ROWS_AT_ONCE]; /* by a row's hash: rows that share a place come in turn */
};

/* A row on its way to the store, and what its commit points to. */
struct mending {
    struct commit commit;
    struct mender *mender;
    uint8_t data[]; /* the record, then the row's key */
};

/* --- what is under way --- */

static bool *place_of(struct mender *mender, uint64_t row_hash)
{
    return &mender->is_taken[(row_hash ^ row_hash >> 32) % ROWS_AT_ONCE];
}

static bool begin(struct mender *mender, uint64_t row_hash)
{
    bool *is_taken = place_of(mender, row_hash);
    pthread_mutex_lock(&mender->lock);
    bool may_begin = !mender->is_stopping && !*is_taken;
    if (may_begin) {
        *is_taken = true;
        mender->count++;
    }
    pthread_mutex_unlock(&mender->lock);
    return may_begin;
}

static void end(struct mender *mender, uint64_t row_hash)
{
    pthread_mutex_lock(&mender->lock);
    DCHECK(mender->count > 0 && *place_of(mender, row_hash));
    *place_of(mender, row_hash) = false;
    if (--mender->count == 0)
        pthread_cond_signal(&mender->idle);
    pthread_mutex_unlock(&mender->lock);
}

static void count(struct mender *mender, bool was_mended)
{
    metrics_add(mender->shard->cluster->options.metrics,
                was_mended ? METRIC_rows_mended_total : METRIC_rows_unmended_total, 1);
}

/* --- one row --- */

static struct mending *new_mending(struct mender *mender, struct table *table,
                                   struct keyspace *keyspace, uint64_t row_hash,
                                   const struct row *row)
{
    struct mending *mending = malloc(sizeof *mending + row->record.size + row->key.size);
    if (mending == NULL)
        return NULL;
    uint8_t *key = mending->data + row->record.size;
    memcpy(mending->data, row->record.data, row->record.size);
    memcpy(key, row->key.data, row->key.size);
    mending->mender = mender;
    mending->commit = (struct commit){.kind = COMMIT_REWRITE,
                                      .table = table,
                                      .keyspace = keyspace,
                                      .row_key = bytes_make(key, row->key.size),
                                      .row_hash = row_hash,
                                      .record = bytes_make(mending->data, row->record.size)};
    table_retain(table);
    return mending;
}

static void free_mending(struct mending *mending)
{
    if (mending == NULL)
        return;
    table_release(mending->commit.table);
    free(mending);
}

/* On the commit thread. */
static void finish(struct task *task)
{
    struct mending *mending = LIST_ENTRY(&task->link, struct mending, commit.done.link);
    struct mender *mender = mending->mender;
    uint64_t row_hash = mending->commit.row_hash;
    count(mender, status_is_ok(mending->commit.result));
    status_free(mending->commit.result);
    free_mending(mending);
    end(mender, row_hash);
}

/* True: the queue has it, and may have ended it. */
static bool submit(struct shard *shard, struct commit *commit, uint64_t as_of)
{
    uint64_t row_hash = commit->row_hash;
    if (!row_lock_try(shard->locks, row_hash))
        return false;
    bool is_submitted =
        row_lock_sequence(shard->locks, row_hash) <= as_of && commit_offer(shard->commits, commit);
    row_lock_release(shard->locks, row_hash);
    return is_submitted;
}

void mender_take(struct mender *mender, struct table *table, struct keyspace *keyspace,
                 const struct row *row)
{
    uint64_t row_hash = row_lock_hash(keyspace_id(keyspace), row->key);
    if (!begin(mender, row_hash)) {
        count(mender, false);
        return;
    }
    struct mending *mending = new_mending(mender, table, keyspace, row_hash, row);
    if (mending != NULL)
        mending->commit.done.run = finish;
    if (mending != NULL && submit(mender->shard, &mending->commit, row->as_of))
        return;
    count(mender, false);
    free_mending(mending);
    end(mender, row_hash);
}

/* --- life --- */

status mender_create(struct shard *shard, struct mender **out)
{
    struct mender *mender = *out = calloc(1, sizeof *mender);
    if (mender == NULL)
        return status_out_of_memory();
    mender->shard = shard;
    pthread_mutex_init(&mender->lock, NULL);
    pthread_cond_init(&mender->idle, NULL);
    return status_ok();
}

void mender_stop(struct mender *mender)
{
    if (mender == NULL)
        return;
    pthread_mutex_lock(&mender->lock);
    mender->is_stopping = true;
    while (mender->count > 0)
        pthread_cond_wait(&mender->idle, &mender->lock);
    pthread_mutex_unlock(&mender->lock);
}

void mender_destroy(struct mender *mender)
{
    if (mender == NULL)
        return;
    pthread_cond_destroy(&mender->idle);
    pthread_mutex_destroy(&mender->lock);
    free(mender);
}
