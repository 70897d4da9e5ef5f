/* See mutes.h. All entries of a table are one record, which is read and rewritten under the lock of
 * administrative changes. */
#include "cluster/mutes.h"

#include "base/check.h"
#include "base/utf8.h"
#include "cluster/cluster_private.h"
#include "cluster/table.h"
#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { MEMORY = 4 << 20 }; /* of one record: MUTES_MOST of the longest take half a megabyte */

/* --- reading --- */

static status decode(bytes value, struct arena *arena, Catalog__Mutes **out)
{
    ProtobufCMessage *message;
    bytes kept = arena_copy(arena, value);
    if (kept.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&catalog__mutes__descriptor, kept, arena, &message));
    *out = (void *)message;
    return status_ok();
}

/* An empty message where there is no record. */
static status read_record(struct table *table, struct arena *arena, Catalog__Mutes **out)
{
    struct keyspace *catalog = table->cluster->catalog;
    struct catalog_mutes_key key = catalog_mutes_key(table->id);
    struct store_value value = {0};
    enum store_presence presence;
    status s = store_get(catalog, NULL, bytes_make(key.data, sizeof key.data), STORE_READ_ANY,
                         &value, &presence);
    if (status_is_ok(s))
        s = decode(presence == STORE_FOUND ? value.bytes : bytes_make(NULL, 0), arena, out);
    store_value_release(&value);
    return s;
}

static struct mute mute_of(const Catalog__Mute *message)
{
    return (struct mute){.rule = message->rule,
                         .reason = message->reason,
                         .principal = message->principal,
                         .since_us = message->since_us};
}

status table_read_mutes(struct table *table, struct arena *arena, struct mute **out, size_t *count)
{
    Catalog__Mutes *record;
    *out = NULL;
    *count = 0;
    TRY(read_record(table, arena, &record));
    struct mute *mutes = arena_alloc(arena, (record->n_mutes + 1) * sizeof *mutes);
    if (mutes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < record->n_mutes; i++)
        mutes[i] = mute_of(record->mutes[i]);
    *out = mutes;
    *count = record->n_mutes;
    return status_ok();
}

/* --- changing --- */

/* The place of the first entry whose rule is not less. */
static size_t place_of(const Catalog__Mutes *record, const char *rule, bool *is_there)
{
    size_t at = 0;
    while (at < record->n_mutes && strcmp(record->mutes[at]->rule, rule) < 0)
        at++;
    *is_there = at < record->n_mutes && strcmp(record->mutes[at]->rule, rule) == 0;
    return at;
}

static status insert(Catalog__Mutes *record, Catalog__Mute *mute, struct arena *arena)
{
    bool is_there;
    size_t at = place_of(record, mute->rule, &is_there);
    if (is_there) {
        record->mutes[at] = mute;
        return status_ok();
    }
    if (record->n_mutes >= MUTES_MOST)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "A table has at most %d muted rules",
                           MUTES_MOST);
    Catalog__Mute **grown = arena_alloc(arena, (record->n_mutes + 1) * sizeof(*grown));
    if (grown == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < record->n_mutes; i++)
        grown[i < at ? i : i + 1] = record->mutes[i];
    grown[at] = mute;
    record->mutes = grown;
    record->n_mutes++;
    return status_ok();
}

static status remove_entry(Catalog__Mutes *record, const char *rule)
{
    bool is_there;
    size_t at = place_of(record, rule, &is_there);
    if (!is_there)
        return status_make(STATUS_NOT_FOUND, "The rule %s is not muted", rule);
    record->n_mutes--;
    for (; at < record->n_mutes; at++)
        record->mutes[at] = record->mutes[at + 1];
    return status_ok();
}

static status write_value(struct table *table, struct catalog_txn *txn, bytes value)
{
    struct cluster *cluster = table->cluster;
    struct catalog_mutes_key key = catalog_mutes_key(table->id);
    bytes record = bytes_make(key.data, sizeof key.data);
    if (value.size == 0) {
        catalog_txn_delete(txn, record);
        return cluster_write_removal(cluster, txn);
    }
    catalog_txn_put(txn, record, value);
    return cluster_write_catalog(cluster, txn);
}

/* Without an entry there is no record. */
static status write_record(struct table *table, const Catalog__Mutes *record)
{
    struct catalog_txn *txn = catalog_txn_create(table->cluster->catalog);
    struct buffer value = {0};
    proto_encode(&record->base, &value);
    status s = txn == NULL || value.failed ? status_out_of_memory()
                                           : write_value(table, txn, buffer_bytes(&value));
    buffer_free(&value);
    catalog_txn_destroy(txn);
    return s;
}

/* `mute` is put in place of its rule's entry; NULL: the entry goes. With admin held. */
static status change_record(struct table *table, Catalog__Mute *mute, const char *rule,
                            struct arena *arena)
{
    DCHECK(check_is_held(&table->cluster->admin));
    Catalog__Mutes *record;
    if (table->is_deleted)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", table->name);
    TRY(read_record(table, arena, &record));
    TRY(mute != NULL ? insert(record, mute, arena) : remove_entry(record, rule));
    return write_record(table, record);
}

static status change(struct table *table, Catalog__Mute *mute, const char *rule)
{
    struct arena *arena = arena_create(MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    pthread_mutex_lock(&table->cluster->admin);
    status s = change_record(table, mute, rule, arena);
    pthread_mutex_unlock(&table->cluster->admin);
    arena_destroy(arena);
    return s;
}

static status check(const struct mute *mute)
{
    bytes reason = bytes_of(mute->reason);
    size_t rule_size = strlen(mute->rule);
    if (rule_size == 0 || rule_size > MUTE_RULE_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "The rule's name has 1 to %d bytes",
                           MUTE_RULE_MOST);
    if (reason.size == 0 || reason.size > MUTE_REASON_MOST || !utf8_is_valid(reason))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A rule is muted with a reason, a text of 1 to %d bytes",
                           MUTE_REASON_MOST);
    return status_ok();
}

status table_mute(struct table *table, const struct mute *mute)
{
    Catalog__Mute message = CATALOG__MUTE__INIT;
    char principal[MUTE_PRINCIPAL_MOST + 1];
    TRY(check(mute));
    bytes cut = utf8_cut(bytes_of(mute->principal), MUTE_PRINCIPAL_MOST);
    memcpy(principal, cut.data, cut.size);
    principal[cut.size] = '\0';
    message.rule = mute->rule;
    message.reason = mute->reason;
    message.principal = principal;
    message.since_us = mute->since_us;
    return change(table, &message, mute->rule);
}

status table_unmute(struct table *table, const char *rule)
{
    return change(table, NULL, rule);
}
