/* Groups: a hash table that grows, of keys of several values. */
#include "sql/run/execute_private.h"

enum { FIRST_BUCKETS = 64 };

static uint64_t hash_key(const struct group_table *table, const struct sql_value *key)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < table->type_count; i++)
        hash = (hash << 7 | hash >> 57) ^ sql_value_hash(table->types[i], &key[i]);
    return hash;
}

static bool same_key(const struct group_table *table, const struct sql_value *a,
                     const struct sql_value *b)
{
    for (size_t i = 0; i < table->type_count; i++)
        if (sql_value_compare(table->types[i], &a[i], &b[i]) != 0)
            return false;
    return true;
}

static struct group **bucket_of(const struct group_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static status grow(struct iterator *iterator, struct group_table *table)
{
    size_t count = table->bucket_count == 0 ? FIRST_BUCKETS : 2 * table->bucket_count;
    struct group **buckets = arena_zalloc(iterator->execution->kept, count * sizeof *buckets);
    if (buckets == NULL)
        return out_of_query_memory(iterator->execution);
    if (table->last == NULL)
        table->last = &table->first;
    table->buckets = buckets;
    table->bucket_count = count;
    for (struct group *group = table->first; group != NULL; group = group->next) {
        struct group **bucket = bucket_of(table, group->hash);
        group->collision = *bucket;
        *bucket = group;
    }
    return status_ok();
}

static status add_group(struct iterator *iterator, struct group_table *table,
                        const struct sql_value *key, uint64_t hash, struct group **out)
{
    struct arena *kept = iterator->execution->kept;
    if (table->count >= table->bucket_count)
        TRY(grow(iterator, table));
    struct group *group = arena_zalloc(kept, sizeof *group);
    struct sql_value *copy = arena_alloc(kept, table->type_count * sizeof *copy);
    void *entry = arena_zalloc(kept, table->entry_size);
    if (group == NULL || copy == NULL || entry == NULL)
        return out_of_query_memory(iterator->execution);
    for (size_t i = 0; i < table->type_count; i++)
        TRY(keep_value(iterator, table->types[i], &key[i], &copy[i]));
    struct group **bucket = bucket_of(table, hash);
    *group = (struct group){.collision = *bucket, .hash = hash, .key = copy, .entry = entry};
    *bucket = group;
    *table->last = group;
    table->last = &group->next;
    table->count++;
    *out = group;
    return status_ok();
}

status group_of(struct iterator *iterator, struct group_table *table, const struct sql_value *key,
                struct group **out, bool *is_new)
{
    uint64_t steps = 1 + sql_weigh(key, table->type_count) / SQL_WEIGHT_A_STEP;
    TRY(sql_work(iterator->execution->session, steps));
    uint64_t hash = hash_key(table, key);
    *out = table->bucket_count == 0 ? NULL : *bucket_of(table, hash);
    while (*out != NULL && ((*out)->hash != hash || !same_key(table, (*out)->key, key)))
        *out = (*out)->collision;
    *is_new = *out == NULL;
    return *is_new ? add_group(iterator, table, key, hash, out) : status_ok();
}
