/* See shared_table.h. */
#include "cluster/shared_table.h"

#include "base/check.h"
#include "cluster/index.h"
#include "cluster/view/view_table.h"
#include "tablet/version.h"

#include <stdlib.h>

enum { RECORD_MEMORY = 64 << 20 }; /* as the catalog's */

/* --- uids --- */

static bool is_shared(const char *name, bool is_view)
{
    return !is_view && !bytes_start_with(bytes_of(name), bytes_of(CLUSTER_OWN_TABLES));
}

static uint64_t made_uid(uint64_t id, unsigned number)
{
    return id << VERSION_CLUSTER_BITS | number;
}

uint64_t table_uid(const struct table *table)
{
    if (!is_shared(table->name, table_is_view(table)))
        return 0;
    return table->given_uid != 0 ? table->given_uid : made_uid(table->id, 0);
}

/* With the cluster's admin held. */
static bool is_taken(struct cluster *cluster, uint64_t uid)
{
    struct table *standing;
    status s = cluster_table_of_uid(cluster, uid, &standing);
    bool is_so = status_is_ok(s);
    if (is_so)
        table_release(standing);
    status_free(s);
    for (size_t i = 0; !is_so && i < cluster->kept_count; i++)
        is_so = table_uid(cluster->kept[i]) == uid;
    return is_so;
}

uint64_t shared_table_uid_to_keep(struct cluster *cluster, const struct table_spec *spec,
                                  uint64_t id)
{
    const uint64_t foreign = UINT64_C(1) << 63;
    unsigned number = cluster_number(cluster);
    uint64_t uid = made_uid(id, number);
    if (!is_shared(spec->name, spec->view_source != NULL))
        return 0;
    if (spec->uid != 0)
        return spec->uid;
    if (is_taken(cluster, uid))
        return uid | foreign;
    return number == 0 ? 0 : uid;
}

/* --- ids of families --- */

void shared_family_ids(uint64_t epoch, unsigned leader, uint32_t *from, uint32_t *end)
{
    enum { OF_LEADER = 12, OF_EPOCH = OF_LEADER + VERSION_CLUSTER_BITS };
    const uint64_t epochs = (UINT64_C(1) << (32 - OF_EPOCH)) - 1;
    DCHECK(epoch > 0 && leader < VERSION_CLUSTERS);
    *from = *end = UINT32_MAX;
    if (epoch > epochs)
        return;
    *from = epoch == 1 ? 0 : (uint32_t)((epoch - 1) << OF_EPOCH | leader << OF_LEADER);
    *end = epoch == 1 ? 1 << OF_EPOCH : *from + (1 << OF_LEADER);
}

/* --- by uid --- */

static status no_such_uid(uint64_t uid)
{
    return status_make(STATUS_NOT_FOUND, "Not found: a table of uid %llu", (unsigned long long)uid);
}

status cluster_table_of_uid(struct cluster *cluster, uint64_t uid, struct table **out)
{
    *out = NULL;
    pthread_rwlock_rdlock(&cluster->index_lock);
    for (size_t i = 0; uid != 0 && *out == NULL && i < cluster->table_count; i++)
        if (table_uid(cluster->tables[i]) == uid)
            *out = cluster->tables[i];
    if (*out != NULL)
        table_retain(*out);
    pthread_rwlock_unlock(&cluster->index_lock);
    return *out == NULL ? no_such_uid(uid) : status_ok();
}

status cluster_deleted_table_of_uid(struct cluster *cluster, uint64_t uid, struct table **out)
{
    *out = NULL;
    pthread_mutex_lock(&cluster->admin);
    for (size_t i = cluster->kept_count; uid != 0 && *out == NULL && i > 0; i--)
        if (cluster->kept[i - 1]->given_uid == uid)
            *out = cluster->kept[i - 1];
    if (*out != NULL)
        table_retain(*out);
    pthread_mutex_unlock(&cluster->admin);
    return *out == NULL ? no_such_uid(uid) : status_ok();
}

/* --- records --- */

status shared_table_encode(struct table *table, struct buffer *out)
{
    struct table_record record = table_record_of(table);
    record.id = 0;
    record.uid = 0;
    record.generation = 0;
    record.deleted_us = 0;
    record.is_viewed = false;
    record.view = (struct view_record){0};
    if (record.stream.retention_us > 0) /* a record without a life is none */
        record.stream =
            (struct table_stream){.retention_us = record.stream.retention_us, .life = 1};
    return catalog_encode_table(&record, out);
}

status shared_table_splits(struct table *table, struct arena *arena, bytes **keys, size_t *count)
{
    struct tablet **tablets;
    size_t tablet_count;
    status s = status_ok();
    *count = 0;
    TRY(table_tablets(table, &tablets, &tablet_count));
    *keys = arena_alloc(arena, tablet_count * sizeof **keys);
    if (*keys == NULL)
        s = status_out_of_memory();
    for (size_t i = 1; status_is_ok(s) && i < tablet_count; i++) {
        bytes key = arena_copy(arena, tablets[i]->start);
        if (key.data == NULL)
            s = status_out_of_memory();
        (*keys)[(*count)++] = key;
    }
    for (size_t i = 0; i < tablet_count; i++)
        tablet_release(tablets[i]);
    free(tablets);
    return s;
}

/* --- here --- */

static status create(struct cluster *cluster, const struct shared_table *shared,
                     const struct table_record *record, struct catalog_txn *txn, struct table **out)
{
    const struct table_spec spec = {.name = shared->name,
                                    .schema = record->schema,
                                    .deletion_protection = record->deletion_protection,
                                    .records_deletions = record->records_deletions,
                                    .stream_retention_us = record->stream.retention_us,
                                    .extra = record->extra,
                                    .split_keys = shared->split_keys,
                                    .split_count = shared->split_count,
                                    .uid = shared->uid,
                                    .txn = txn};
    DCHECK(shared->uid != 0);
    return cluster_create_table(cluster, &spec, out);
}

status cluster_create_shared(struct cluster *cluster, const struct shared_table *shared,
                             struct catalog_txn *txn, struct table **out)
{
    struct arena *arena = arena_create(RECORD_MEMORY);
    struct table_record record;
    struct schema *schema = NULL;
    *out = NULL;
    if (arena == NULL)
        return status_out_of_memory();
    status s = catalog_decode_table(shared->record, arena, &record, &schema);
    if (status_is_ok(s))
        s = create(cluster, shared, &record, txn, out);
    schema_destroy(schema);
    arena_destroy(arena);
    return s;
}

/* --- changes --- */

static status follow(void *context, const struct table_info *now, struct arena *arena,
                     struct table_change *next)
{
    const struct table_record *record = context;
    (void)arena;
    if (record->schema->granularity != now->schema->granularity)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "%s has another granularity of timestamps here", now->name);
    *next = (struct table_change){.families = record->schema->families,
                                  .family_count = record->schema->family_count,
                                  .next_family_id = record->schema->next_family_id,
                                  .deletion_protection = record->deletion_protection,
                                  .extra = record->extra,
                                  .stream_retention_us = record->stream.retention_us};
    return status_ok();
}

static status follow_record(struct table *table, bytes bytes_of_record, struct arena *arena)
{
    struct table_record record;
    struct schema *schema;
    TRY(catalog_decode_table(bytes_of_record, arena, &record, &schema));
    status s = table_change_schema(table, arena, follow, &record);
    schema_destroy(schema);
    return s;
}

static status in_arena(struct table *table, bytes record,
                       status (*act)(struct table *table, bytes record, struct arena *arena))
{
    struct arena *arena = arena_create(RECORD_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : act(table, record, arena);
    arena_destroy(arena);
    return s;
}

status table_follow_shared(struct table *table, bytes record, bool *is_changed)
{
    struct buffer standing = {0};
    status s = shared_table_encode(table, &standing);
    *is_changed = status_is_ok(s) && !bytes_equal(buffer_bytes(&standing), record);
    buffer_free(&standing);
    TRY(s);
    return *is_changed ? in_arena(table, record, follow_record) : status_ok();
}

static status unprotect(void *context, const struct table_info *now, struct arena *arena,
                        struct table_change *next)
{
    (void)context, (void)arena;
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .extra = now->extra};
    return status_ok();
}

static status unprotect_in(struct table *table, bytes record, struct arena *arena)
{
    (void)record;
    return table_change_schema(table, arena, unprotect, NULL);
}

status table_unprotect(struct table *table)
{
    if (!table_has_stream(table) && !table_record_of(table).deletion_protection)
        return status_ok();
    return in_arena(table, bytes_make(NULL, 0), unprotect_in);
}
