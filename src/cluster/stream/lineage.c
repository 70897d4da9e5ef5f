/* See lineage.h. */
#include "cluster/stream/lineage.h"

#include "base/check.h"
#include "base/key_range.h"
#include "cluster/cluster_private.h"

#include <stdlib.h>

struct former_tablet {
    struct former_tablet *next;
    uint64_t id;
    unsigned shard;
    int64_t gone_us;
    size_t start_size;
    size_t end_size;
    uint8_t keys[]; /* start, end */
};

static bytes start_of(const struct former_tablet *former)
{
    return bytes_make(former->keys, former->start_size);
}

static bytes end_of(const struct former_tablet *former)
{
    return bytes_make(former->keys + former->start_size, former->end_size);
}

void lineage_init(struct lineage *lineage)
{
    pthread_mutex_init(&lineage->lock, NULL);
    lineage->first = NULL;
}

void lineage_free(struct lineage *lineage)
{
    struct former_tablet *next;
    for (struct former_tablet *at = lineage->first; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    pthread_mutex_destroy(&lineage->lock);
}

static void append_bytes(uint8_t *to, bytes from)
{
    if (from.size > 0)
        memcpy(to, from.data, from.size);
}

status lineage_remember(struct lineage *lineage, const struct former_tablet_record *record)
{
    struct former_tablet *former = malloc(sizeof *former + record->start.size + record->end.size);
    if (former == NULL)
        return status_out_of_memory();
    *former = (struct former_tablet){.id = record->id,
                                     .shard = record->shard,
                                     .gone_us = record->gone_us,
                                     .start_size = record->start.size,
                                     .end_size = record->end.size};
    append_bytes(former->keys, record->start);
    append_bytes(former->keys + record->start.size, record->end);
    pthread_mutex_lock(&lineage->lock);
    former->next = lineage->first;
    lineage->first = former;
    pthread_mutex_unlock(&lineage->lock);
    return status_ok();
}

bool lineage_is_empty(struct lineage *lineage)
{
    pthread_mutex_lock(&lineage->lock);
    bool is_empty = lineage->first == NULL;
    pthread_mutex_unlock(&lineage->lock);
    return is_empty;
}

static void forget_id(struct lineage *lineage, uint64_t id)
{
    pthread_mutex_lock(&lineage->lock);
    struct former_tablet **at = &lineage->first;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    struct former_tablet *gone = *at;
    if (gone != NULL)
        *at = gone->next;
    pthread_mutex_unlock(&lineage->lock);
    free(gone);
}

/* --- splits and merges --- */

status lineage_record(struct table *table, const struct catalog_change *change,
                      struct store_batch *batch)
{
    struct cluster *cluster = table->cluster;
    DCHECK(check_is_held(&cluster->admin));
    if (!table_has_stream(table))
        return status_ok();
    for (size_t i = 0; i < change->former_count; i++) {
        const struct tablet *tablet = change->former[i];
        const struct former_tablet_record record = {.table_id = table->id,
                                                    .id = tablet->id,
                                                    .shard = tablet->shard->number,
                                                    .start = tablet->start,
                                                    .end = tablet->end,
                                                    .gone_us = cluster_version_us(cluster)};
        TRY(catalog_put_former(batch, cluster->catalog, &record));
        TRY(lineage_remember(&table->lineage, &record));
    }
    return status_ok();
}

void lineage_take_back(struct table *table, const struct catalog_change *change)
{
    for (size_t i = 0; i < change->former_count; i++)
        forget_id(&table->lineage, change->former[i]->id);
}

/* --- readers --- */

status lineage_visit(struct lineage *lineage, unsigned shard, bytes start, bytes end,
                     status (*visit)(void *context, uint64_t tablet), void *context)
{
    status s = status_ok();
    pthread_mutex_lock(&lineage->lock);
    for (const struct former_tablet *at = lineage->first; at != NULL && status_is_ok(s);
         at = at->next)
        if (at->shard == shard && key_ranges_meet(start_of(at), end_of(at), start, end))
            s = visit(context, at->id);
    pthread_mutex_unlock(&lineage->lock);
    return s;
}

/* --- the end --- */

void lineage_forget(struct table *table, int64_t before_us, struct store_batch *batch,
                    size_t *count)
{
    struct lineage *lineage = &table->lineage;
    DCHECK(check_is_held(&table->cluster->admin));
    *count = 0;
    pthread_mutex_lock(&lineage->lock);
    for (struct former_tablet **at = &lineage->first; *at != NULL;) {
        struct former_tablet *former = *at;
        if (former->gone_us >= before_us) {
            at = &former->next;
            continue;
        }
        *at = former->next;
        catalog_delete_former(batch, table->cluster->catalog, table->id, former->id);
        free(former);
        ++*count;
    }
    pthread_mutex_unlock(&lineage->lock);
}
