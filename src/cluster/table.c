/* See table.h. */
#include "cluster/table.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/gc_pass.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

#define TABLE_MAGIC 0x7461626cu

/* --- descriptions --- */

static status copy_schema(const struct schema *schema, struct schema **out)
{
    return schema_create(schema->granularity, schema->families, schema->family_count,
                         schema->next_family_id, out);
}

/* What a rule deletes is in the stream, too, and views follow it. */
static bool record_has_recorded_deletions(const struct table_record *record)
{
    return record->records_deletions || record->stream.retention_us > 0 || record->is_viewed;
}

static status copy_schemas(const struct table_record *record, struct description *description)
{
    TRY(copy_schema(record->schema, &description->schema));
    return record_has_recorded_deletions(record)
               ? schema_without_rules(record->schema, &description->without_rules)
               : status_ok();
}

/* The rules of one more space. They stay where they are: its folds look at them. */
static status add_rules(struct description *description, struct row_drops *drops)
{
    size_t size = (description->space_count + 1) * sizeof(*description->of_spaces);
    struct row_rules **of_spaces = realloc(description->of_spaces, size);
    if (of_spaces == NULL)
        return status_out_of_memory();
    description->of_spaces = of_spaces;
    struct row_rules *rules = malloc(sizeof *rules);
    if (rules == NULL)
        return status_out_of_memory();
    *rules = description->rules;
    rules->drops = drops;
    of_spaces[description->space_count++] = rules;
    return status_ok();
}

static status add_all_rules(struct description *description, const struct table *table)
{
    for (size_t i = 0; table != NULL && i < table->space_count; i++)
        TRY(add_rules(description, table->spaces[i].drops));
    return status_ok();
}

static void set_rules(struct cluster *cluster, const struct table_record *record,
                      struct description *description)
{
    description->rules = (struct row_rules){.schema = record_has_recorded_deletions(record)
                                                          ? description->without_rules
                                                          : description->schema,
                                            .clock = cluster->options.clock,
                                            .rising_from = &cluster->tombstones_from};
}

status description_create(struct cluster *cluster, const struct table_record *record,
                          const struct table *table, struct description **out)
{
    *out = NULL;
    struct description *description = calloc(1, sizeof *description + record->extra.size);
    if (description == NULL)
        return status_out_of_memory();
    status s = copy_schemas(record, description);
    if (status_is_ok(s)) {
        set_rules(cluster, record, description);
        s = add_all_rules(description, table);
    }
    if (!status_is_ok(s)) {
        description_destroy(description);
        return s;
    }
    description->generation = record->generation;
    description->deletion_protection = record->deletion_protection;
    description->records_deletions = record->records_deletions;
    description->stream = record->stream;
    description->is_viewed = record->is_viewed;
    description->extra = bytes_make(description + 1, record->extra.size);
    if (record->extra.size > 0)
        memcpy(description + 1, record->extra.data, record->extra.size);
    *out = description;
    return status_ok();
}

void description_destroy(struct description *description)
{
    if (description == NULL)
        return;
    schema_destroy(description->schema);
    schema_destroy(description->without_rules);
    for (size_t i = 0; i < description->space_count; i++)
        free(description->of_spaces[i]);
    free(description->of_spaces);
    free(description);
}

static struct description *newest(const struct table *table)
{
    return atomic_load_explicit(&table->description, memory_order_acquire);
}

const struct description *table_description(const struct table *table)
{
    return newest(table);
}

void table_publish(struct table *table, struct description *description)
{
    DCHECK(table->magic == TABLE_MAGIC);
    DCHECK(description->generation > newest(table)->generation);
    DCHECK(description->space_count == table->space_count);
    description->older = newest(table);
    atomic_store_explicit(&table->description, description, memory_order_release);
    for (size_t i = 0; i < table->space_count; i++)
        keyspace_set_rules(table->spaces[i].keyspace, description->of_spaces[i]);
}

static size_t space_of(const struct table *table, const struct keyspace *keyspace)
{
    size_t at = 0;
    while (table->spaces[at].keyspace != keyspace) {
        at++;
        DCHECK(at < table->space_count);
    }
    return at;
}

const struct row_rules *table_rules(const struct table *table, const struct keyspace *keyspace)
{
    return newest(table)->of_spaces[space_of(table, keyspace)];
}

struct row_drops *table_drops(const struct table *table, const struct keyspace *keyspace)
{
    return table->spaces[space_of(table, keyspace)].drops;
}

struct telling *table_telling(const struct table *table, const struct keyspace *keyspace)
{
    return table->spaces[space_of(table, keyspace)].telling;
}

size_t table_drop_count(const struct table *table)
{
    size_t count = 0;
    for (size_t i = 0; i < table->space_count; i++)
        count += row_drops_count(table->spaces[i].drops);
    return count;
}

bool table_has_room(const struct table *table, size_t drops)
{
    return table_drop_count(table) + drops <= LIMIT_ROW_DROPS;
}

void table_let_write(struct table *table, const struct shard *shard, bool may)
{
    for (size_t i = 0; i < table->space_count; i++)
        if (table->spaces[i].shard == shard)
            table->spaces[i].takes_no_writes = !may;
    pthread_mutex_lock(&table->map_lock);
    for (size_t i = 0; i < table->tablet_count; i++)
        if (table->tablets[i]->shard == shard)
            table->tablets[i]->is_former = !may;
    pthread_mutex_unlock(&table->map_lock);
}

bool table_is_in(const struct table *table, const struct shard *shard)
{
    for (size_t i = 0; i < table->space_count; i++)
        if (table->spaces[i].shard == shard)
            return true;
    return false;
}

static struct view_record view_record_of(const struct table *table)
{
    const struct table_view *view = &table->view;
    if (view->source_id == 0)
        return (struct view_record){0};
    return (struct view_record){.source_id = view->source_id,
                                .records_id = keyspace_id(view->records),
                                .shard = view->shard->number};
}

struct table_record table_record_of(const struct table *table)
{
    const struct description *description = newest(table);
    return (struct table_record){.id = table->id,
                                 .name = table->name,
                                 .generation = description->generation,
                                 .schema = description->schema,
                                 .deletion_protection = description->deletion_protection,
                                 .extra = description->extra,
                                 .deleted_us = table->deleted_us,
                                 .records_deletions = description->records_deletions,
                                 .stream = description->stream,
                                 .view = view_record_of(table),
                                 .is_viewed = description->is_viewed,
                                 .uid = table->given_uid};
}

struct tablet_record tablet_record_of(const struct table *table, const struct tablet *tablet)
{
    return (struct tablet_record){.table_id = table->id,
                                  .id = tablet->id,
                                  .shard = tablet->shard->number,
                                  .keyspace_id = keyspace_id(tablet->keyspace),
                                  .start = tablet->start,
                                  .end = tablet->end};
}

/* --- life --- */

/* Of a record that says that it is a view's. */
static status find_records(struct cluster *cluster, const struct table_record *record,
                           struct table_view *view)
{
    bool has_shard = record->view.shard < cluster->shard_count;
    struct shard *shard = has_shard ? cluster->shards[record->view.shard] : NULL;
    struct keyspace *records =
        has_shard ? store_keyspace_find(shard->store, record->view.records_id) : NULL;
    if (records == NULL)
        return status_make(STATUS_DATA_LOSS, "the view %s has no keyspace for its records",
                           record->name);
    view->source_id = record->view.source_id;
    view->shard = shard;
    view->records = records;
    keyspace_set_name(records, record->name);
    return status_ok();
}

status table_create(struct cluster *cluster, const struct table_record *record, struct table **out)
{
    *out = NULL;
    struct description *description;
    struct table_view view = {0};
    if (record->view.source_id != 0)
        TRY(find_records(cluster, record, &view));
    TRY(description_create(cluster, record, NULL, &description));
    struct table *table = calloc(1, sizeof *table);
    char *name = strdup(record->name);
    if (table == NULL || name == NULL) {
        description_destroy(description);
        free(table);
        free(name);
        return status_out_of_memory();
    }
    table->magic = TABLE_MAGIC;
    table->cluster = cluster;
    table->id = record->id;
    table->given_uid = record->uid;
    table->name = name;
    table->is_deleted = record->deleted_us > 0;
    table->deleted_us = record->deleted_us;
    table->feed.id = record->id;
    table->view.source_id = view.source_id;
    table->view.shard = view.shard;
    table->view.records = view.records;
    gc_pass_init(table);
    settling_init(table);
    drop_pass_init(table);
    heat_table_init(&table->heat);
    usage_store_init(&table->usage);
    lineage_init(&table->lineage);
    table->heat.is_counted = heat_counts_table(cluster, name);
    pthread_mutex_init(&table->map_lock, NULL);
    atomic_init(&table->references, 1);
    atomic_init(&table->description, description);
    *out = table;
    return status_ok();
}

static void free_space(struct table_space *space)
{
    telling_destroy(space->telling);
    row_drops_destroy(space->drops);
    buffer_free(&space->pass.next);
}

void table_destroy(struct table *table)
{
    DCHECK(atomic_load(&table->references) <= 1);
    CHECK_MAGIC(table, TABLE_MAGIC);
    for (size_t i = 0; i < table->tablet_count; i++)
        tablet_release(table->tablets[i]);
    for (struct description *at = newest(table), *older; at != NULL; at = older) {
        older = at->older;
        description_destroy(at);
    }
    for (size_t i = 0; i < table->space_count; i++)
        free_space(&table->spaces[i]);
    pthread_mutex_destroy(&table->map_lock);
    heat_table_free(&table->heat);
    usage_store_free(&table->usage);
    lineage_free(&table->lineage);
    drop_pass_free(table);
    buffer_free(&table->gc.next);
    free(table->tablets);
    free(table->spaces);
    free(table->name);
    table->magic = 0;
    free(table);
}

void table_retain(struct table *table)
{
    CHECK_MAGIC(table, TABLE_MAGIC);
    unsigned before = atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    DCHECK(before > 0);
}

void table_release(struct table *table)
{
    CHECK_MAGIC(table, TABLE_MAGIC);
    if (atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) == 1)
        cluster_free_table_deferred(table->cluster, table);
}

/* --- what others may ask --- */

const char *table_name(const struct table *table)
{
    return table->name;
}

uint64_t table_id(const struct table *table)
{
    return table->id;
}

const struct schema *table_schema(const struct table *table)
{
    return newest(table)->schema;
}

bool table_has_stream(const struct table *table)
{
    return newest(table)->stream.retention_us > 0;
}

struct cluster *table_cluster(const struct table *table)
{
    return table->cluster;
}

bool table_is_in_one_shard(const struct table *table)
{
    for (size_t i = 1; i < table->space_count; i++)
        if (table->spaces[i].shard != table->spaces[0].shard)
            return false;
    return true;
}

/* Everything but the bytes of `extra` lives as long as the table; those do, too. */
status table_describe(struct table *table, struct arena *arena, struct table_info *out)
{
    const struct description *description = newest(table);
    const char *name = arena_string(arena, bytes_of(table->name));
    if (name == NULL)
        return status_out_of_memory();
    *out = (struct table_info){.name = name,
                               .schema = description->schema,
                               .deletion_protection = description->deletion_protection,
                               .extra = description->extra,
                               .generation = description->generation,
                               .stream_retention_us = description->stream.retention_us};
    return status_ok();
}

/* --- the map --- */

status table_make_room(struct table *table)
{
    DCHECK(table->tablet_count <= table->tablet_capacity);
    if (table->tablet_count < table->tablet_capacity)
        return status_ok();
    size_t capacity = table->tablet_capacity == 0 ? 1 : 2 * table->tablet_capacity;
    pthread_mutex_lock(&table->map_lock);
    struct tablet **tablets = realloc(table->tablets, capacity * sizeof(*tablets));
    if (tablets != NULL) {
        table->tablets = tablets;
        table->tablet_capacity = capacity;
    }
    pthread_mutex_unlock(&table->map_lock);
    return tablets == NULL ? status_out_of_memory() : status_ok();
}

static bool has_keyspace(const struct table *table, const struct keyspace *keyspace)
{
    for (size_t i = 0; i < table->space_count; i++)
        if (table->spaces[i].keyspace == keyspace)
            return true;
    return false;
}

static status add_space(struct table *table, const struct tablet *tablet)
{
    DCHECK(!has_keyspace(table, tablet->keyspace));
    size_t size = (table->space_count + 1) * sizeof *table->spaces;
    struct table_space *spaces = realloc(table->spaces, size);
    if (spaces == NULL)
        return status_out_of_memory();
    table->spaces = spaces;
    struct table_space *space = &spaces[table->space_count];
    *space = (struct table_space){
        .shard = tablet->shard, .keyspace = tablet->keyspace, .takes_no_writes = table->is_deleted};
    TRY(row_drops_create(&space->drops));
    status s = telling_create(keyspace_id(tablet->keyspace), &space->telling);
    if (status_is_ok(s))
        s = add_rules(newest(table), space->drops);
    if (!status_is_ok(s)) {
        free_space(space);
        return s;
    }
    table->space_count++;
    keyspace_set_name(tablet->keyspace, table->name);
    keyspace_set_rules(tablet->keyspace, table_rules(table, tablet->keyspace));
    return status_ok();
}

status table_append_tablet(struct table *table, struct tablet *tablet)
{
    DCHECK(tablet->start.size == 0 ? table->tablet_count == 0 : table->tablet_count > 0);
    TRY(table_make_room(table));
    if (!has_keyspace(table, tablet->keyspace))
        TRY(add_space(table, tablet));
    tablet->is_former = table->is_deleted;
    table->tablets[table->tablet_count++] = tablet;
    return status_ok();
}

/* How many tablets start at or before the key; the first starts before all. */
static size_t starts_up_to(const struct table *table, bytes key)
{
    size_t low = 0;
    size_t high = table->tablet_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(table->tablets[middle]->start, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    DCHECK(low > 0);
    return low;
}

static struct tablet *retained(struct tablet *tablet)
{
    tablet_retain(tablet);
    return tablet;
}

struct tablet *table_route(struct table *table, bytes row_key)
{
    pthread_mutex_lock(&table->map_lock);
    struct tablet *tablet = retained(table->tablets[starts_up_to(table, row_key) - 1]);
    DCHECK(tablet_contains(tablet, row_key));
    pthread_mutex_unlock(&table->map_lock);
    return tablet;
}

static bool takes_no_writes(const struct table *table, const struct tablet *tablet)
{
    DCHECK(has_keyspace(table, tablet->keyspace));
    return table->spaces[space_of(table, tablet->keyspace)].takes_no_writes;
}

status table_route_write(struct table *table, bytes row_key, struct tablet **out)
{
    struct tablet *tablet = table_route(table, row_key);
    *out = NULL;
    if (takes_no_writes(table, tablet)) {
        tablet_release(tablet);
        return cluster_not_found(bytes_of(table->name));
    }
    *out = tablet;
    return status_ok();
}

struct tablet *table_route_before(struct table *table, bytes end)
{
    pthread_mutex_lock(&table->map_lock);
    size_t at = end.size == 0 ? table->tablet_count : starts_up_to(table, end);
    if (at > 1 && end.size > 0 && bytes_equal(table->tablets[at - 1]->start, end))
        at--; /* starts at `end`: the one before has the last keys before it */
    struct tablet *tablet = retained(table->tablets[at - 1]);
    pthread_mutex_unlock(&table->map_lock);
    return tablet;
}

/* Where the tablet and those behind it that share its keyspace end. With map_lock held. */
static bytes end_of_part(const struct table *table, size_t at)
{
    DCHECK(check_is_held(&table->map_lock));
    struct tablet *const *tablet =
        &table->tablets[table->space_count == 1 ? table->tablet_count - 1 : at];
    struct tablet *const *last = &table->tablets[table->tablet_count - 1];
    while (tablet < last && tablet[1]->keyspace == tablet[0]->keyspace)
        tablet++;
    return (*tablet)->end;
}

status table_find_part(struct table *table, bytes from, struct table_space *out, struct buffer *end)
{
    pthread_mutex_lock(&table->map_lock);
    size_t at = starts_up_to(table, from) - 1;
    DCHECK(at < table->tablet_count);
    out->shard = table->tablets[at]->shard;
    out->keyspace = table->tablets[at]->keyspace;
    buffer_clear(end);
    buffer_append_bytes(end, end_of_part(table, at));
    pthread_mutex_unlock(&table->map_lock);
    return end->failed ? status_out_of_memory() : status_ok();
}

status table_visit_parts(struct table *table, bytes from, bytes to,
                         status (*visit)(void *context, const struct table_part *part),
                         void *context)
{
    struct buffer start = {0}, end = {0};
    status s = status_ok();
    buffer_append_bytes(&start, from);
    for (bool goes_on = true; goes_on && status_is_ok(s);) {
        struct table_part part = {.from = buffer_bytes(&start)};
        s = start.failed ? status_out_of_memory()
                         : table_find_part(table, part.from, &part.space, &end);
        goes_on = key_ends_before(buffer_bytes(&end), to);
        part.to = goes_on ? buffer_bytes(&end) : to;
        if (status_is_ok(s))
            s = visit(context, &part);
        buffer_clear(&start);
        buffer_append_bytes(&start, buffer_bytes(&end));
    }
    buffer_free(&start);
    buffer_free(&end);
    return s;
}

status table_tablets(struct table *table, struct tablet ***out, size_t *count)
{
    pthread_mutex_lock(&table->map_lock);
    *count = table->tablet_count;
    *out = malloc(*count * sizeof(**out));
    for (size_t i = 0; *out != NULL && i < *count; i++)
        (*out)[i] = retained(table->tablets[i]);
    pthread_mutex_unlock(&table->map_lock);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

size_t table_tablet_count(struct table *table)
{
    pthread_mutex_lock(&table->map_lock);
    size_t count = table->tablet_count;
    pthread_mutex_unlock(&table->map_lock);
    return count;
}

/* Without hole or overlap; for DCHECKs. */
static bool covers_all_keys(const struct table *table)
{
    bytes end = bytes_make(NULL, 0);
    for (size_t i = 0; i < table->tablet_count; i++) {
        const struct tablet *tablet = table->tablets[i];
        if (!bytes_equal(tablet->start, end) || (i > 0 && end.size == 0))
            return false;
        end = tablet->end;
    }
    return end.size == 0;
}

void table_swap_tablets(struct table *table, struct tablet *const *old, size_t old_count,
                        struct tablet *const *fresh, size_t count)
{
    CHECK(table->tablet_count + count - old_count <= table->tablet_capacity);
    pthread_mutex_lock(&table->map_lock);
    size_t at = starts_up_to(table, old[0]->start) - 1;
    struct tablet **place = table->tablets + at;
    CHECK(*place == old[0]);
    size_t behind = table->tablet_count - at - old_count;
    for (size_t i = 0; i < old_count; i++) {
        traffic_add_tablet(&table->traffic.gone, old[i]);
        old[i]->is_former = true;
    }
    memmove(place + count, place + old_count, behind * sizeof(*place));
    memcpy(place, fresh, count * sizeof(*place));
    for (size_t i = 0; i < count; i++)
        DCHECK(has_keyspace(table, fresh[i]->keyspace));
    table->tablet_count += count - old_count;
    DCHECK(covers_all_keys(table));
    pthread_mutex_unlock(&table->map_lock);
    for (size_t i = 0; i < old_count; i++)
        tablet_release(old[i]);
}

/* --- damage --- */

bool table_row_is_closed(struct table *table, bytes row_key)
{
    struct tablet *tablet = table_route(table, row_key);
    status s = row_check_open(tablet->keyspace, row_key);
    bool is_closed = s.code == STATUS_DATA_LOSS;
    status_free(s);
    tablet_release(tablet);
    return is_closed;
}

status table_claim_repair(struct table *table)
{
    return atomic_exchange(&table->is_being_repaired, true)
               ? status_make(STATUS_FAILED_PRECONDITION, "%s is being repaired", table->name)
               : status_ok();
}

void table_end_repair(struct table *table)
{
    DCHECK(atomic_load(&table->is_being_repaired));
    atomic_store(&table->is_being_repaired, false);
}
