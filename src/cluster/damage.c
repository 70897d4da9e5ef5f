/* See damage.h.
 *
 * `lock` guards the list, and is held while its changes are written to the catalog: what the list
 * says and what the records say change together. What is brought back is in damage_repair.c. */
#include "cluster/damage_private.h"

#include "advisor/personal.h"
#include "base/check.h"
#include "base/condition.h"
#include "cluster/lost_records.h"
#include "cluster/refill.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- the list --- */

void damage_free(struct damage *damage)
{
    free(damage->from);
    free(damage->to);
    free(damage->what);
    free(damage);
}

struct damage *damage_create(const struct damage_record *record)
{
    DCHECK(record->keyspace_id != 0);
    struct damage *damage = calloc(1, sizeof *damage);
    if (damage == NULL)
        return NULL;
    damage->from = bytes_to_string(record->from);
    damage->to = bytes_to_string(record->to);
    damage->what = bytes_to_string(bytes_of(record->what));
    if (damage->from == NULL || damage->to == NULL || damage->what == NULL) {
        damage_free(damage);
        return NULL;
    }
    damage->record = *record;
    damage->record.from = bytes_make(damage->from, record->from.size);
    damage->record.to = bytes_make(damage->to, record->to.size);
    damage->record.what = damage->what;
    return damage;
}

bool damage_is_same(const struct damage_record *a, const struct damage_record *b)
{
    return a->keyspace_id == b->keyspace_id && a->file == b->file && a->block == b->block;
}

struct damage *damages_add(struct damages *damages, const struct damage_record *record,
                           bool *is_new)
{
    DCHECK(check_is_held(&damages->lock));
    struct damage **at = &damages->first;
    while (*at != NULL && !damage_is_same(&(*at)->record, record))
        at = &(*at)->next;
    *is_new = *at == NULL;
    if (*is_new)
        *at = damage_create(record);
    damages->count += *is_new && *at != NULL;
    return *at;
}

/* --- words --- */

static bool has_keyspace(const struct table *table, uint64_t keyspace)
{
    for (size_t i = 0; i < table->space_count; i++)
        if (keyspace_id(table->spaces[i].keyspace) == keyspace)
            return true;
    return false;
}

static bool is_unclaimed(const struct shard *shard, uint64_t keyspace)
{
    for (size_t i = 0; i < shard->unclaimed_count; i++)
        if (shard->unclaimed[i] == keyspace)
            return true;
    return false;
}

static bool is_of_streams(const struct shard *shard, uint64_t id)
{
    const struct keyspace *keyspace = store_keyspace_find(shard->store, id);
    return keyspace != NULL && keyspace_kind(keyspace) == KEYSPACE_LOG;
}

void damage_append_table(const struct shard *shard, uint64_t keyspace, struct buffer *out)
{
    struct cluster *cluster = shard->cluster;
    char unclaimed[LOST_KEYSPACE_NAME_SIZE];
    const char *name = keyspace == CATALOG_KEYSPACE_ID   ? "the catalog"
                       : keyspace == shard->log_keyspace ? "the change log"
                       : is_of_streams(shard, keyspace)  ? "the log of change streams"
                       : is_unclaimed(shard, keyspace)   ? lost_keyspace_name(keyspace, unclaimed)
                                                         : "a deleted table";
    pthread_rwlock_rdlock(&cluster->index_lock);
    for (size_t i = 0; i < cluster->table_count; i++)
        if (has_keyspace(cluster->tables[i], keyspace))
            name = cluster->tables[i]->name;
    buffer_append_format(out, "%s", name);
    pthread_rwlock_unlock(&cluster->index_lock);
}

static void describe(const struct shard *shard, const struct damage_record *record,
                     struct buffer *out)
{
    struct buffer table = {0};
    damage_append_table(shard, record->keyspace_id, &table);
    buffer_append_byte(&table, 0);
    damage_describe(record, table.failed ? "a table" : (const char *)table.data, out);
    buffer_free(&table);
}

/* Words for the log and for health, which more people read than the table. */
static void describe_hidden(const struct shard *shard, const struct damage_record *record,
                            struct buffer *out)
{
    struct buffer words = {0};
    describe(shard, record, &words);
    personal_hide_certain(buffer_bytes(&words), out);
    out->failed |= words.failed;
    buffer_free(&words);
}

static const char *text_of(const struct buffer *words)
{
    return words->failed ? "keys are out of service: a table file is damaged"
                         : (const char *)words->data;
}

/* --- health --- */

void damages_show(const struct damages *damages)
{
    DCHECK((damages->first == NULL) == (damages->count == 0));
    struct condition *condition = damages->shard->condition;
    metrics_set(damages->cluster->options.metrics, METRIC_damaged_ranges, (int64_t)damages->count);
    if (damages->first == NULL) {
        condition_leave(condition, REASON_damaged_range);
        return;
    }
    struct buffer words = {0};
    describe_hidden(damages->shard, &damages->first->record, &words);
    if (damages->count == 1)
        condition_enter(condition, REASON_damaged_range, "%s", text_of(&words));
    else
        condition_enter(condition, REASON_damaged_range, "%zu ranges, the first: %s",
                        damages->count, text_of(&words));
    buffer_free(&words);
}

/* --- the store and the catalog --- */

status damage_write_record(const struct damages *damages, const struct damage_record *record,
                           bool is_there)
{
    DCHECK(record->keyspace_id != CATALOG_KEYSPACE_ID);
    struct shard *shard = damages->shard;
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    status s = status_ok();
    if (is_there)
        s = catalog_put_damage(batch, shard->system, record);
    else
        catalog_delete_damage(batch, shard->system, record);
    if (status_is_ok(s))
        s = store_write(shard->store, batch, STORE_SYNCED);
    store_batch_destroy(batch);
    return s;
}

/* A record that could not be written is told again by the store; else the next start forgets it. */
static bool try_write(const struct damages *damages, const struct damage_record *record,
                      bool is_there)
{
    status s = damage_write_record(damages, record, is_there);
    bool is_written = status_is_ok(s);
    if (!is_written)
        log_warn(damages->cluster->options.log, "a damaged range is not recorded",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
    return is_written;
}

uint64_t damage_offset(const struct damage_record *record)
{
    return record->block - (record->block != 0);
}

status damage_close_as(const struct damage *damage, struct keyspace *keyspace, const char *words)
{
    const struct damage_record *record = &damage->record;
    DCHECK(keyspace_id(keyspace) == record->keyspace_id);
    const struct store_damage closed = {.keyspace_id = record->keyspace_id,
                                        .file = record->file,
                                        .offset = damage_offset(record),
                                        .is_whole = record->block == 0,
                                        .from = record->from,
                                        .to = record->to,
                                        .what = words,
                                        .is_remembered = damage->is_stored};
    return keyspace_close_range(keyspace, &closed);
}

static void close_in_store(const struct damages *damages, const struct damage *damage,
                           struct keyspace *keyspace, const char *words)
{
    status s = damage_close_as(damage, keyspace, words);
    if (!status_is_ok(s))
        log_warn(damages->cluster->options.log, "a damaged range could not be closed",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

void damage_close(const struct damages *damages, const struct damage *damage,
                  struct keyspace *keyspace)
{
    struct buffer words = {0}, shown = {0};
    describe(damages->shard, &damage->record, &words);
    close_in_store(damages, damage, keyspace, text_of(&words));
    describe_hidden(damages->shard, &damage->record, &shown);
    log_error(damages->cluster->options.log, "rows are out of service",
              LOG_STR("why", text_of(&shown)));
    buffer_free(&shown);
    buffer_free(&words);
}

/* The catalog is no memory of its own damage: what a start does not find there it takes for gone,
 * and drops what belonged to it. So that damage stays in the files, where the next start meets it.
 */
static bool may_be_stored(const struct damage *damage)
{
    return damage->record.keyspace_id != CATALOG_KEYSPACE_ID;
}

/* False: its keyspace is gone. */
static bool record_and_close(const struct damages *damages, struct damage *damage)
{
    DCHECK(check_is_held(&damages->lock));
    struct keyspace *keyspace =
        store_keyspace_find(damages->shard->store, damage->record.keyspace_id);
    if (keyspace == NULL)
        return false;
    if (!damage->is_stored && may_be_stored(damage))
        damage->is_stored = try_write(damages, &damage->record, true);
    damage_close(damages, damage, keyspace);
    return true;
}

/* --- what others call --- */

static bool see(struct damages *damages, const struct damage_record *record)
{
    DCHECK(check_is_held(&damages->lock));
    bool is_new;
    struct damage *damage = damages_add(damages, record, &is_new);
    if (damage == NULL)
        return false;
    if (damages->is_loaded && (is_new || (may_be_stored(damage) && !damage->is_stored))) {
        (void)record_and_close(damages, damage); /* its keyspace is held for us by the store */
        damages_show(damages);
    }
    return damage->is_stored;
}

bool damages_see(void *context, const struct store_damage *seen)
{
    struct damages *damages = context;
    struct damage_record record = {.keyspace_id = seen->keyspace_id,
                                   .file = seen->file,
                                   .block = seen->is_whole ? 0 : seen->offset + 1,
                                   .from = seen->from,
                                   .to = seen->to,
                                   .what = seen->what,
                                   .found_us = clock_wall_us(damages->cluster->options.clock)};
    pthread_mutex_lock(&damages->lock);
    bool is_remembered = see(damages, &record);
    pthread_mutex_unlock(&damages->lock);
    return is_remembered;
}

status damages_remember(struct damages *damages, const struct damage_record *record)
{
    pthread_mutex_lock(&damages->lock);
    DCHECK(!damages->is_loaded);
    bool is_new;
    struct damage *damage = damages_add(damages, record, &is_new);
    if (damage != NULL)
        damage->is_stored = true;
    pthread_mutex_unlock(&damages->lock);
    return damage != NULL ? status_ok() : status_out_of_memory();
}

void damage_forget(struct damages *damages, struct damage **at)
{
    DCHECK(check_is_held(&damages->lock) && damages->count > 0);
    struct damage *gone = *at;
    *at = gone->next;
    damages->count--;
    if (gone->is_stored)
        (void)try_write(damages, &gone->record, false);
    damage_free(gone);
}

void damages_close(struct damages *damages)
{
    pthread_mutex_lock(&damages->lock);
    for (const struct damage *at = damages->first; at != NULL; at = at->next) {
        struct keyspace *keyspace =
            store_keyspace_find(damages->shard->store, at->record.keyspace_id);
        if (keyspace != NULL)
            close_in_store(damages, at, keyspace, at->record.what);
    }
    pthread_mutex_unlock(&damages->lock);
}

status damages_load(struct damages *damages)
{
    pthread_mutex_lock(&damages->lock);
    DCHECK(!damages->is_loaded);
    damages->is_loaded = true;
    for (struct damage **at = &damages->first; *at != NULL;) {
        if (record_and_close(damages, *at))
            at = &(*at)->next;
        else
            damage_forget(damages, at);
    }
    damages_show(damages);
    pthread_mutex_unlock(&damages->lock);
    return status_ok();
}

bool damages_has(struct damages *damages, uint64_t keyspace_id)
{
    bool has = false;
    pthread_mutex_lock(&damages->lock);
    for (const struct damage *at = damages->first; at != NULL && !has; at = at->next)
        has = at->record.keyspace_id == keyspace_id;
    pthread_mutex_unlock(&damages->lock);
    return has;
}

void damages_forget_keyspace(struct damages *damages, uint64_t keyspace_id)
{
    pthread_mutex_lock(&damages->lock);
    size_t before = damages->count;
    for (struct damage **at = &damages->first; *at != NULL;) {
        if ((*at)->record.keyspace_id == keyspace_id)
            damage_forget(damages, at);
        else
            at = &(*at)->next;
    }
    if (damages->count < before)
        damages_show(damages);
    pthread_mutex_unlock(&damages->lock);
}
