/* See index.h: an array sorted by name. Names of one instance share a long prefix and a table is
 * looked up by ten comparisons or so; changes are rare. */
#include "cluster/index.h"

#include "base/check.h"
#include "cluster/view/view_table.h"

#include <stdlib.h>

/* The place of the first table whose name is not before `name`. With index_lock held. */
static size_t place_of(const struct cluster *cluster, bytes name)
{
    size_t low = 0;
    size_t high = cluster->table_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(bytes_of(cluster->tables[middle]->name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

status index_make_room(struct cluster *cluster)
{
    if (cluster->table_count < cluster->table_capacity)
        return status_ok();
    size_t capacity = cluster->table_capacity == 0 ? 16 : 2 * cluster->table_capacity;
    pthread_rwlock_wrlock(&cluster->index_lock);
    struct table **tables = realloc(cluster->tables, capacity * sizeof(*tables));
    if (tables != NULL) {
        cluster->tables = tables;
        cluster->table_capacity = capacity;
    }
    pthread_rwlock_unlock(&cluster->index_lock);
    return tables == NULL ? status_out_of_memory() : status_ok();
}

static void shift(struct table **from, struct table **to, size_t count)
{
    memmove(to, from, count * sizeof(*to));
}

bool index_is_users(const struct table *table)
{
    return !bytes_start_with(bytes_of(table->name), bytes_of(CLUSTER_OWN_TABLES));
}

static void count(struct cluster *cluster, const struct table *table, int64_t amount)
{
    if (index_is_users(table) && !table_is_view(table))
        metrics_add(cluster->options.metrics, METRIC_tables, amount);
}

/* Names rise, and each is there once: for DCHECKs, of the entry there. */
static bool is_in_place(const struct cluster *cluster, size_t at)
{
    DCHECK(at < cluster->table_count);
    struct table *const *tables = cluster->tables;
    return (at == 0 || strcmp(tables[at - 1]->name, tables[at]->name) < 0) &&
           (at + 1 == cluster->table_count || strcmp(tables[at]->name, tables[at + 1]->name) < 0);
}

void index_add(struct cluster *cluster, struct table *table)
{
    DCHECK(!table->is_deleted && !table->is_dropped);
    CHECK(cluster->table_count < cluster->table_capacity);
    pthread_rwlock_wrlock(&cluster->index_lock);
    size_t at = place_of(cluster, bytes_of(table->name));
    struct table **place = cluster->tables + at;
    shift(place, place + 1, cluster->table_count - at);
    *place = table;
    cluster->table_count++;
    DCHECK(is_in_place(cluster, at));
    pthread_rwlock_unlock(&cluster->index_lock);
    count(cluster, table, 1);
}

void index_remove(struct cluster *cluster, struct table *table)
{
    pthread_rwlock_wrlock(&cluster->index_lock);
    size_t at = place_of(cluster, bytes_of(table->name));
    CHECK(at < cluster->table_count && cluster->tables[at] == table);
    struct table **place = cluster->tables + at;
    cluster->table_count--;
    shift(place + 1, place, cluster->table_count - at);
    pthread_rwlock_unlock(&cluster->index_lock);
    count(cluster, table, -1);
}

struct table *cluster_table_from(struct cluster *cluster, bytes name)
{
    DCHECK(cluster->magic == CLUSTER_MAGIC);
    struct table *table = NULL;
    pthread_rwlock_rdlock(&cluster->index_lock);
    size_t at = place_of(cluster, name);
    if (at < cluster->table_count) {
        table = cluster->tables[at];
        table_retain(table);
    }
    pthread_rwlock_unlock(&cluster->index_lock);
    return table;
}

struct table *index_find(struct cluster *cluster, bytes name)
{
    DCHECK(cluster->magic == CLUSTER_MAGIC);
    struct table *table = NULL;
    pthread_rwlock_rdlock(&cluster->index_lock);
    size_t at = place_of(cluster, name);
    if (at < cluster->table_count && bytes_equal(bytes_of(cluster->tables[at]->name), name)) {
        table = cluster->tables[at];
        table_retain(table);
    }
    pthread_rwlock_unlock(&cluster->index_lock);
    return table;
}

struct table *index_find_id(struct cluster *cluster, uint64_t id)
{
    struct table *table = NULL;
    pthread_rwlock_rdlock(&cluster->index_lock);
    for (size_t i = 0; table == NULL && i < cluster->table_count; i++)
        if (cluster->tables[i]->id == id)
            table = cluster->tables[i];
    if (table != NULL)
        table_retain(table);
    pthread_rwlock_unlock(&cluster->index_lock);
    return table;
}

/* How many from that place on have the prefix. With the lock held. */
static size_t count_from(const struct cluster *cluster, size_t first, bytes prefix)
{
    size_t at = first;
    while (at < cluster->table_count &&
           bytes_start_with(bytes_of(cluster->tables[at]->name), prefix))
        at++;
    return at - first;
}

size_t index_count(struct cluster *cluster, bytes prefix)
{
    pthread_rwlock_rdlock(&cluster->index_lock);
    size_t count = count_from(cluster, place_of(cluster, prefix), prefix);
    pthread_rwlock_unlock(&cluster->index_lock);
    return count;
}

status index_find_all(struct cluster *cluster, bytes prefix, struct table ***out, size_t *count)
{
    *count = 0;
    pthread_rwlock_rdlock(&cluster->index_lock);
    size_t first = place_of(cluster, prefix), found = count_from(cluster, first, prefix);
    *out = malloc(found * sizeof(**out) + 1);
    for (; *out != NULL && *count < found; ++*count) {
        (*out)[*count] = cluster->tables[first + *count];
        table_retain((*out)[*count]);
    }
    pthread_rwlock_unlock(&cluster->index_lock);
    return *out == NULL ? status_out_of_memory() : status_ok();
}
