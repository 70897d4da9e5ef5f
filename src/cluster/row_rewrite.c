/* See row_rewrite.h. `lock` guards what is under way. */
#include "cluster/row_rewrite.h"

#include "base/check.h"
#include "cluster/cluster_private.h"

#include <stdlib.h>

enum {
    ROWS_AT_ONCE = 1024, /* of 64 KiB at most (row_read.c) */
};

struct row_rewriter {
    struct shard *shard;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    size_t count;
    bool is_stopping;
    bool is_taken[ROWS_AT_ONCE]; /* by a row's hash: rows that share a place come in turn */
};

/* A row on its way to the store, and what its commit points to. */
struct rewrite {
    struct commit commit;
    struct row_rewriter *row_rewriter;
    uint8_t data[]; /* the record, then the row's key */
};

/* --- what is under way --- */

static bool *place_of(struct row_rewriter *row_rewriter, uint64_t row_hash)
{
    return &row_rewriter->is_taken[(row_hash ^ row_hash >> 32) % ROWS_AT_ONCE];
}

static bool begin(struct row_rewriter *row_rewriter, uint64_t row_hash)
{
    bool *is_taken = place_of(row_rewriter, row_hash);
    pthread_mutex_lock(&row_rewriter->lock);
    bool may_begin = !row_rewriter->is_stopping && !*is_taken;
    if (may_begin) {
        *is_taken = true;
        row_rewriter->count++;
    }
    pthread_mutex_unlock(&row_rewriter->lock);
    return may_begin;
}

static void end(struct row_rewriter *row_rewriter, uint64_t row_hash)
{
    pthread_mutex_lock(&row_rewriter->lock);
    DCHECK(row_rewriter->count > 0 && *place_of(row_rewriter, row_hash));
    *place_of(row_rewriter, row_hash) = false;
    if (--row_rewriter->count == 0)
        pthread_cond_signal(&row_rewriter->idle);
    pthread_mutex_unlock(&row_rewriter->lock);
}

static void count(struct row_rewriter *row_rewriter, bool was_rewritten)
{
    metrics_add(row_rewriter->shard->cluster->options.metrics,
                was_rewritten ? METRIC_rows_mended_total : METRIC_rows_unmended_total, 1);
}

/* --- one row --- */

static struct rewrite *new_rewrite(struct row_rewriter *row_rewriter, struct table *table,
                                   struct keyspace *keyspace, uint64_t row_hash,
                                   const struct row *row)
{
    struct rewrite *rewrite = malloc(sizeof *rewrite + row->record.size + row->key.size);
    if (rewrite == NULL)
        return NULL;
    uint8_t *key = rewrite->data + row->record.size;
    memcpy(rewrite->data, row->record.data, row->record.size);
    memcpy(key, row->key.data, row->key.size);
    rewrite->row_rewriter = row_rewriter;
    rewrite->commit = (struct commit){.kind = COMMIT_REWRITE,
                                      .table = table,
                                      .keyspace = keyspace,
                                      .row_key = bytes_make(key, row->key.size),
                                      .row_hash = row_hash,
                                      .record = bytes_make(rewrite->data, row->record.size),
                                      .drops = table_drops(table, keyspace),
                                      .read_as_of = row->as_of};
    table_retain(table);
    return rewrite;
}

static void free_rewrite(struct rewrite *rewrite)
{
    if (rewrite == NULL)
        return;
    table_release(rewrite->commit.table);
    free(rewrite);
}

/* On the commit thread. */
static void finish(struct task *task)
{
    struct rewrite *rewrite = LIST_ENTRY(&task->link, struct rewrite, commit.done.link);
    struct row_rewriter *row_rewriter = rewrite->row_rewriter;
    uint64_t row_hash = rewrite->commit.row_hash;
    count(row_rewriter, status_is_ok(rewrite->commit.result));
    status_free(rewrite->commit.result);
    free_rewrite(rewrite);
    end(row_rewriter, row_hash);
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

void row_rewriter_offer(struct row_rewriter *row_rewriter, struct table *table,
                        struct keyspace *keyspace, const struct row *row)
{
    uint64_t row_hash = row_lock_hash(keyspace_id(keyspace), row->key);
    if (!begin(row_rewriter, row_hash)) {
        count(row_rewriter, false);
        return;
    }
    struct rewrite *rewrite = new_rewrite(row_rewriter, table, keyspace, row_hash, row);
    if (rewrite != NULL)
        rewrite->commit.done.run = finish;
    if (rewrite != NULL && submit(row_rewriter->shard, &rewrite->commit, row->as_of))
        return;
    count(row_rewriter, false);
    free_rewrite(rewrite);
    end(row_rewriter, row_hash);
}

/* --- life --- */

status row_rewriter_create(struct shard *shard, struct row_rewriter **out)
{
    struct row_rewriter *row_rewriter = *out = calloc(1, sizeof *row_rewriter);
    if (row_rewriter == NULL)
        return status_out_of_memory();
    row_rewriter->shard = shard;
    pthread_mutex_init(&row_rewriter->lock, NULL);
    pthread_cond_init(&row_rewriter->idle, NULL);
    return status_ok();
}

void row_rewriter_stop(struct row_rewriter *row_rewriter)
{
    if (row_rewriter == NULL)
        return;
    pthread_mutex_lock(&row_rewriter->lock);
    row_rewriter->is_stopping = true;
    while (row_rewriter->count > 0)
        pthread_cond_wait(&row_rewriter->idle, &row_rewriter->lock);
    pthread_mutex_unlock(&row_rewriter->lock);
}

void row_rewriter_destroy(struct row_rewriter *row_rewriter)
{
    if (row_rewriter == NULL)
        return;
    pthread_cond_destroy(&row_rewriter->idle);
    pthread_mutex_destroy(&row_rewriter->lock);
    free(row_rewriter);
}
