/* See usage_store.h. A stored value: a 1, since when as a varint of microseconds since 1970, and
 * the bytes. In memory an entry has the bytes as long as they wait to be written alone. */
#include "cluster/usage_store.h"

#include "base/check.h"
#include "base/varint.h"
#include "cluster/cluster_private.h"
#include "cluster/index.h"

#include <stdlib.h>

enum { FORM = 1, BATCH_BYTES = 1 << 20 };

struct usage_entry {
    uint8_t kind;
    int64_t since_us;
    size_t size;      /* of the value, wherever that is */
    uint8_t *waiting; /* NULL: what is stored is what there is */
    bool waits;       /* to be written, or to be removed */
    bool is_written;  /* what waits is in the batch under way; a put ends that */
};

void usage_store_init(struct table_usage *usage)
{
    pthread_mutex_init(&usage->lock, NULL);
}

void usage_store_free(struct table_usage *usage)
{
    usage_counts_destroy(atomic_load(&usage->counts));
    for (size_t i = 0; i < usage->count; i++)
        free(usage->entries[i].waiting);
    free(usage->entries);
    pthread_mutex_destroy(&usage->lock);
}

/* --- the stored form --- */

static void encode(int64_t since_us, bytes value, struct buffer *out)
{
    buffer_append_byte(out, FORM);
    buffer_append_varint(out, (uint64_t)since_us);
    buffer_append_bytes(out, value);
}

/* False: it is none that this program knows. */
static bool decode(bytes stored, struct usage_record *out)
{
    uint64_t since_us;
    if (stored.size < 2 || stored.data[0] != FORM)
        return false;
    const uint8_t *next = varint_read(stored.data + 1, stored.data + stored.size, &since_us);
    if (next == NULL)
        return false;
    out->since_us = (int64_t)since_us;
    out->value = bytes_from(stored, (size_t)(next - stored.data));
    return true;
}

/* --- entries; with the lock held --- */

static struct usage_entry *find(const struct table_usage *usage, uint8_t kind)
{
    DCHECK(check_is_held(&usage->lock));
    for (size_t i = 0; i < usage->count; i++)
        if (usage->entries[i].kind == kind)
            return &usage->entries[i];
    return NULL;
}

/* By kind. NULL without memory. */
static struct usage_entry *add(struct table_usage *usage, uint8_t kind)
{
    DCHECK(check_is_held(&usage->lock));
    size_t at = 0;
    struct usage_entry *larger =
        realloc(usage->entries, (usage->count + 1) * sizeof *usage->entries);
    if (larger == NULL)
        return NULL;
    usage->entries = larger;
    while (at < usage->count && larger[at].kind < kind)
        at++;
    DCHECK(at == usage->count || larger[at].kind > kind);
    memmove(larger + at + 1, larger + at, (usage->count - at) * sizeof *larger);
    larger[at] = (struct usage_entry){.kind = kind};
    usage->count++;
    return &larger[at];
}

static size_t size_of_all(const struct table_usage *usage)
{
    DCHECK(check_is_held(&usage->lock));
    size_t size = 0;
    for (size_t i = 0; i < usage->count; i++)
        size += usage->entries[i].size;
    return size;
}

/* --- loading --- */

struct loading {
    struct table_usage *usage;
    bool failed;
};

static bool load_entry(void *context, uint64_t table_id, uint8_t kind, bytes stored)
{
    struct loading *loading = context;
    struct usage_record record;
    (void)table_id;
    if (!decode(stored, &record))
        return true;
    struct usage_entry *entry = add(loading->usage, kind);
    loading->failed = entry == NULL;
    if (entry != NULL) {
        entry->since_us = record.since_us;
        entry->size = record.value.size;
    }
    return !loading->failed;
}

/* Which records are stored, and how large they are. With the lock held: any other thread that needs
 * the table's usage would wait for the same read. */
static status load(struct table *table)
{
    struct table_usage *usage = &table->usage;
    DCHECK(check_is_held(&usage->lock));
    struct loading loading = {.usage = usage};
    if (usage->is_loaded)
        return status_ok();
    status s = heat_store_usage(table->cluster, table->id, table->id, load_entry, &loading);
    if (status_is_ok(s) && loading.failed)
        s = status_out_of_memory();
    usage->is_loaded = status_is_ok(s);
    if (!usage->is_loaded)
        usage->count = 0; /* none waits: that takes a put, which takes this */
    return s;
}

/* --- asking --- */

struct fetching {
    struct arena *arena;
    uint8_t kind;
    struct usage_record *out;
    bool failed;
};

static bool fetch(void *context, uint64_t table_id, uint8_t kind, bytes stored)
{
    struct fetching *fetching = context;
    struct usage_record record;
    (void)table_id;
    if (kind != fetching->kind || !decode(stored, &record))
        return true;
    fetching->out->since_us = record.since_us;
    fetching->out->value = arena_copy(fetching->arena, record.value);
    fetching->failed = fetching->out->value.data == NULL;
    return false;
}

static status get_entry(struct table *table, const struct usage_entry *entry, struct arena *arena,
                        struct usage_record *out)
{
    DCHECK(check_is_held(&table->usage.lock));
    struct fetching fetching = {.arena = arena, .kind = entry->kind, .out = out};
    *out = (struct usage_record){.kind = entry->kind};
    if (!entry->waits) {
        TRY(heat_store_usage(table->cluster, table->id, table->id, fetch, &fetching));
        return fetching.failed ? status_out_of_memory() : status_ok();
    }
    out->since_us = entry->since_us;
    out->value = arena_copy(arena, bytes_make(entry->waiting, entry->size));
    return out->value.data == NULL ? status_out_of_memory() : status_ok();
}

static status get(struct table *table, uint8_t kind, struct arena *arena, struct usage_record *out)
{
    TRY(load(table));
    const struct usage_entry *entry = find(&table->usage, kind);
    return entry == NULL || entry->size == 0 ? status_ok() : get_entry(table, entry, arena, out);
}

status usage_get(struct table *table, uint8_t kind, struct arena *arena, struct usage_record *out)
{
    *out = (struct usage_record){.kind = kind};
    if (!table->heat.is_counted)
        return status_ok();
    pthread_mutex_lock(&table->usage.lock);
    status s = get(table, kind, arena, out);
    pthread_mutex_unlock(&table->usage.lock);
    return s;
}

static status list(struct table *table, struct arena *arena, struct usage_record **out,
                   size_t *count)
{
    const struct table_usage *usage = &table->usage;
    TRY(load(table));
    *out = arena_alloc(arena, usage->count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < usage->count; i++) {
        if (usage->entries[i].size == 0)
            continue;
        TRY(get_entry(table, &usage->entries[i], arena, &(*out)[*count]));
        ++*count;
    }
    return status_ok();
}

status usage_list(struct table *table, struct arena *arena, struct usage_record **out,
                  size_t *count)
{
    *out = NULL;
    *count = 0;
    if (!table->heat.is_counted)
        return status_ok();
    pthread_mutex_lock(&table->usage.lock);
    status s = list(table, arena, out, count);
    pthread_mutex_unlock(&table->usage.lock);
    return s;
}

/* --- putting --- */

static status check_room(const struct table *table, const struct usage_entry *entry, size_t size)
{
    size_t others = size_of_all(&table->usage) - (entry == NULL ? 0 : entry->size);
    if (others + size <= USAGE_MOST_BYTES)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED, "what is known of the use of %s takes too much",
                       table->name);
}

static void replace(struct usage_entry *entry, uint8_t *copy, size_t size, int64_t now_us)
{
    DCHECK((size == 0) || copy != NULL);
    free(entry->waiting);
    entry->waiting = copy;
    entry->size = size;
    entry->waits = true;
    entry->is_written = false;
    if (size == 0)
        entry->since_us = 0;
    else if (entry->since_us == 0)
        entry->since_us = now_us;
}

static status put(struct table *table, uint8_t kind, bytes value)
{
    TRY(load(table));
    struct usage_entry *entry = find(&table->usage, kind);
    if (value.size == 0 && (entry == NULL || entry->size == 0))
        return status_ok();
    TRY(check_room(table, entry, value.size));
    uint8_t *copy = malloc(value.size + 1);
    if (copy != NULL && entry == NULL)
        entry = add(&table->usage, kind);
    if (copy == NULL || entry == NULL) {
        free(copy);
        return status_out_of_memory();
    }
    if (value.size > 0)
        memcpy(copy, value.data, value.size);
    replace(entry, copy, value.size, clock_wall_us(table->cluster->options.clock));
    return status_ok();
}

status usage_put(struct table *table, uint8_t kind, bytes value)
{
    if (!table->heat.is_counted)
        return status_ok();
    pthread_mutex_lock(&table->usage.lock);
    status s = put(table, kind, value);
    pthread_mutex_unlock(&table->usage.lock);
    return s;
}

/* --- writing --- */

static bool has_waiting(struct table *table)
{
    struct table_usage *usage = &table->usage;
    bool waits = false;
    pthread_mutex_lock(&usage->lock);
    for (size_t i = 0; i < usage->count; i++)
        waits |= usage->entries[i].waits;
    pthread_mutex_unlock(&usage->lock);
    return waits;
}

bool usage_store_waits(struct table *const *tables, size_t count)
{
    size_t i = 0;
    while (i < count && !has_waiting(tables[i]))
        i++;
    return i < count;
}

static status batch_entry(const struct table *table, struct usage_entry *entry,
                          struct own_batch *batch, size_t *written)
{
    DCHECK(check_is_held(&table->usage.lock));
    struct buffer stored = {0};
    if (!entry->waits)
        return status_ok();
    if (entry->size > 0)
        encode(entry->since_us, bytes_make(entry->waiting, entry->size), &stored);
    status s = stored.failed
                   ? status_out_of_memory()
                   : heat_batch_put_usage(batch, table->id, entry->kind, buffer_bytes(&stored));
    *written += stored.size;
    buffer_free(&stored);
    entry->is_written = status_is_ok(s);
    return s;
}

static status batch_table(struct table *table, struct own_batch *batch, size_t *written)
{
    struct table_usage *usage = &table->usage;
    status s = status_ok();
    pthread_mutex_lock(&usage->lock);
    for (size_t i = 0; i < usage->count && status_is_ok(s); i++)
        s = batch_entry(table, &usage->entries[i], batch, written);
    pthread_mutex_unlock(&usage->lock);
    return s;
}

/* Notes what was written; what was put meanwhile waits on. */
static void note_written(struct table *table)
{
    struct table_usage *usage = &table->usage;
    pthread_mutex_lock(&usage->lock);
    for (size_t i = 0; i < usage->count; i++) {
        struct usage_entry *entry = &usage->entries[i];
        if (!entry->is_written)
            continue;
        free(entry->waiting);
        entry->waiting = NULL;
        entry->waits = entry->is_written = false;
    }
    pthread_mutex_unlock(&usage->lock);
}

status usage_store_write(struct table *const *tables, size_t count, struct own_batch *batch)
{
    size_t first = 0;
    for (size_t written = 0, i = 0; i < count; i++) {
        TRY(batch_table(tables[i], batch, &written));
        if (written < BATCH_BYTES && i + 1 < count)
            continue;
        TRY(heat_batch_write(batch, tables[i]->cluster));
        for (; first <= i; first++)
            note_written(tables[first]);
        written = 0;
    }
    return status_ok();
}

/* --- sweeping --- */

struct known_tables {
    uint64_t *ids;
    size_t count;
};

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* With admin held, so that none is on its way from one list to the other. */
static status find_known(struct cluster *cluster, struct arena *arena, struct known_tables *out)
{
    struct table **tables;
    size_t count;
    TRY(index_find_all(cluster, bytes_make(NULL, 0), &tables, &count));
    out->ids = arena_alloc(arena, (count + cluster->kept_count) * sizeof *out->ids);
    for (size_t i = 0; i < count; i++) {
        if (out->ids != NULL)
            out->ids[out->count++] = tables[i]->id;
        table_release(tables[i]);
    }
    free(tables);
    for (size_t i = 0; out->ids != NULL && i < cluster->kept_count; i++)
        out->ids[out->count++] = cluster->kept[i]->id;
    return out->ids == NULL ? status_out_of_memory() : status_ok();
}

struct sweep {
    struct known_tables known;
    struct own_batch *batch;
    bool takes_all;
    status failure;
};

static bool sweep_record(void *context, uint64_t table_id, uint8_t kind, bytes stored)
{
    struct sweep *sweep = context;
    (void)stored;
    bool stays = !sweep->takes_all && sweep->known.count > 0 &&
                 bsearch(&table_id, sweep->known.ids, sweep->known.count, sizeof table_id,
                         compare_ids) != NULL;
    if (!stays)
        sweep->failure = heat_batch_put_usage(sweep->batch, table_id, kind, bytes_make(NULL, 0));
    return status_is_ok(sweep->failure);
}

/* A table that is made meanwhile has a greater number than any record: puts come from maintenance's
 * thread, which this is. */
static status sweep_all(struct cluster *cluster, struct own_batch *batch)
{
    struct sweep sweep = {
        .batch = batch, .takes_all = !cluster->options.heat, .failure = status_ok()};
    pthread_mutex_lock(&cluster->admin);
    status s = find_known(cluster, batch->arena, &sweep.known);
    pthread_mutex_unlock(&cluster->admin);
    TRY(s);
    qsort(sweep.known.ids, sweep.known.count, sizeof *sweep.known.ids, compare_ids);
    s = heat_store_usage(cluster, 0, UINT64_MAX, sweep_record, &sweep);
    if (!status_is_ok(s)) {
        status_free(sweep.failure);
        return s;
    }
    TRY(sweep.failure);
    return heat_batch_write(batch, cluster);
}

status usage_store_sweep(struct cluster *cluster, struct own_batch *batch)
{
    if (!atomic_exchange(&cluster->usage_is_to_sweep, false))
        return status_ok();
    status s = sweep_all(cluster, batch);
    if (!status_is_ok(s))
        atomic_store(&cluster->usage_is_to_sweep, true);
    return s;
}
