/* Waiting for a commit, and batches of the catalog's records that others have filled: see commit.h.
 */
#include "tablet/commit_private.h"

#include "base/check.h"

#include <pthread.h>

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t awaited; /* commits */
};

static void wake_waiter(struct task *task)
{
    struct commit *commit = LIST_ENTRY(&task->link, struct commit, done.link);
    struct waiter *waiter = commit->waiter;
    pthread_mutex_lock(&waiter->lock);
    DCHECK(waiter->awaited > 0);
    if (--waiter->awaited == 0)
        pthread_cond_signal(&waiter->done);
    pthread_mutex_unlock(&waiter->lock);
}

static void start_waiter(struct waiter *waiter)
{
    *waiter = (struct waiter){.awaited = 0};
    pthread_mutex_init(&waiter->lock, NULL);
    pthread_cond_init(&waiter->done, NULL);
}

/* Before the commit is submitted. */
static void await(struct waiter *waiter, struct commit *commit)
{
    waiter->awaited++;
    commit->loop = NULL;
    commit->done.run = wake_waiter;
    commit->waiter = waiter;
}

static void let_wait(struct waiter *waiter, struct commit *commit)
{
    start_waiter(waiter);
    await(waiter, commit);
}

static void wait_for_all(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    while (waiter->awaited > 0)
        pthread_cond_wait(&waiter->done, &waiter->lock);
    pthread_mutex_unlock(&waiter->lock);
}

static status wait_for(struct waiter *waiter, const struct commit *commit)
{
    wait_for_all(waiter);
    return commit->result;
}

status commit_and_wait(struct commit_queue *queue, struct commit *commit)
{
    struct waiter waiter;
    let_wait(&waiter, commit);
    TRY(commit_submit(queue, commit));
    return wait_for(&waiter, commit);
}

status commit_and_wait_unlocked(struct commit_queue *queue, struct commit *commit,
                                void (*submitted)(void *context), void *context)
{
    DCHECK(submitted != NULL);
    struct waiter waiter;
    let_wait(&waiter, commit);
    TRY(commit_submit(queue, commit));
    submitted(context);
    return wait_for(&waiter, commit);
}

/* Those that were not taken are never done. */
static void wait_for_none_of(struct waiter *waiter, const struct list *refused)
{
    pthread_mutex_lock(&waiter->lock);
    for (const struct link *at = refused->first; at != NULL; at = at->next)
        waiter->awaited--;
    pthread_mutex_unlock(&waiter->lock);
}

void commits_and_wait(struct commit_queue *queue, struct list *commits)
{
    struct waiter waiter;
    start_waiter(&waiter);
    for (struct link *at = commits->first; at != NULL; at = at->next)
        await(&waiter, LIST_ENTRY(at, struct commit, link));
    commit_submit_all(queue, commits);
    wait_for_none_of(&waiter, commits);
    wait_for_all(&waiter);
}

/* --- batches that others have filled --- */

struct batch_commit {
    struct commit commit;
    struct store *store;
    const struct store_batch *batch;
};

static void extend_by_batch(struct commit *commit, struct store_batch *batch)
{
    struct batch_commit *write = (struct batch_commit *)(void *)commit;
    store_batch_append(write->store, batch, write->batch);
}

status commit_write(struct commit_queue *queue, enum commit_kind kind, struct store_batch *batch,
                    const struct catalog_change *change)
{
    DCHECK(!commit_changes_rows(kind));
    bool is_of_table = change != NULL && change->table_count > 0;
    struct batch_commit write = {.commit = {.kind = kind,
                                            .table = is_of_table ? change->tables[0] : NULL,
                                            .extend = extend_by_batch,
                                            .catalog = change,
                                            .frees_space = true,
                                            .is_synced = true},
                                 .store = commit_queue_store(queue),
                                 .batch = batch};
    if (store_batch_failed(batch))
        return status_out_of_memory();
    struct waiter waiter;
    let_wait(&waiter, &write.commit);
    TRY(commit_submit_beyond(queue, &write.commit));
    return wait_for(&waiter, &write.commit);
}
