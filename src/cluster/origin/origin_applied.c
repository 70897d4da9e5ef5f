/* See origin_applied.h. The records are in the keyspace `system` of the home:
 *
 *     "origin-applied" <number of the cluster>   sequence, 8 bytes; ordinal, 4; what is complete,
 * 8: all big-endian
 *     "origin-keeps-all"                         one byte: it is there while all is kept */
#include "cluster/origin/origin_applied.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "cluster/cluster_private.h"

enum { ORDINAL_SIZE = 4, VALUE_SIZE = 2 * BIG_ENDIAN_SIZE + ORDINAL_SIZE };

#define KEY       "origin-applied"
#define KEEPS_ALL "origin-keeps-all"

static bytes key_of(unsigned number, uint8_t out[sizeof KEY])
{
    DCHECK(number < VERSION_CLUSTERS);
    memcpy(out, KEY, sizeof KEY - 1);
    out[sizeof KEY - 1] = (uint8_t)number;
    return bytes_make(out, sizeof KEY);
}

static void write_value(const struct origin_applied *applied, uint8_t out[VALUE_SIZE])
{
    uint8_t ordinal[BIG_ENDIAN_SIZE];
    big_endian_write(out, applied->position.sequence);
    big_endian_write(ordinal, (uint64_t)applied->position.ordinal << 32);
    memcpy(out + BIG_ENDIAN_SIZE, ordinal, ORDINAL_SIZE);
    big_endian_write(out + BIG_ENDIAN_SIZE + ORDINAL_SIZE, applied->complete);
}

static struct origin_applied read_value(const uint8_t *value)
{
    return (struct origin_applied){
        .position = {big_endian_read(value),
                     (uint32_t)(big_endian_read(value + BIG_ENDIAN_SIZE) >> 32)},
        .complete = big_endian_read(value + BIG_ENDIAN_SIZE + ORDINAL_SIZE)};
}

/* --- in memory --- */

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* This cluster, too, gives versions that come later: its clock may be behind the others'. */
static uint64_t settled(const struct cluster *cluster)
{
    const struct commit_queue *commits = cluster->home->commits;
    return commits == NULL ? 0 : commit_settled_version(commits);
}

/* With the lock held. What follows of those that are followed may all come until it is known. */
static void set_complete(struct cluster *cluster)
{
    DCHECK(check_is_held(&cluster->origins.lock));
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        if (cluster->origins.of[i].is_followed && cluster->origins.of[i].applied.complete < least)
            least = cluster->origins.of[i].applied.complete;
    if (least == UINT64_MAX)
        least = cluster->options.tombstones_from;
    else if (cluster->origins.keeps_all || (least = lower(least, settled(cluster))) == 0)
        least = 1;
    if (cluster->origins.holds > 0 && least > atomic_load(&cluster->tombstones_from))
        return;
    atomic_store(&cluster->tombstones_from, least);
}

static void set(struct cluster *cluster, unsigned number, bool is_followed,
                struct origin_applied applied)
{
    pthread_mutex_lock(&cluster->origins.lock);
    cluster->origins.of[number].is_followed = is_followed;
    cluster->origins.of[number].applied = applied;
    set_complete(cluster);
    pthread_mutex_unlock(&cluster->origins.lock);
}

static void set_keeps_all(struct cluster *cluster, bool keeps_all)
{
    pthread_mutex_lock(&cluster->origins.lock);
    cluster->origins.keeps_all = keeps_all;
    set_complete(cluster);
    pthread_mutex_unlock(&cluster->origins.lock);
}

bool origins_keeps_all(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->origins.lock);
    bool keeps_all = cluster->origins.keeps_all;
    pthread_mutex_unlock(&cluster->origins.lock);
    return keeps_all;
}

bool origin_applied(struct cluster *cluster, unsigned number, struct origin_applied *out)
{
    DCHECK(number < VERSION_CLUSTERS);
    pthread_mutex_lock(&cluster->origins.lock);
    bool is_followed = cluster->origins.of[number].is_followed;
    *out = cluster->origins.of[number].applied;
    pthread_mutex_unlock(&cluster->origins.lock);
    return is_followed;
}

void origin_applied_note(struct cluster *cluster, unsigned number, uint64_t complete)
{
    DCHECK(number < VERSION_CLUSTERS);
    pthread_mutex_lock(&cluster->origins.lock);
    struct origin_applied *applied = &cluster->origins.of[number].applied;
    if (cluster->origins.of[number].is_followed && complete > applied->complete) {
        applied->complete = complete;
        set_complete(cluster);
    }
    pthread_mutex_unlock(&cluster->origins.lock);
}

void origins_hold(struct cluster *cluster, struct origins *out)
{
    pthread_mutex_lock(&cluster->origins.lock);
    cluster->origins.holds++;
    memcpy(out->of, cluster->origins.of, sizeof out->of);
    pthread_mutex_unlock(&cluster->origins.lock);
}

void origins_let_go(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->origins.lock);
    DCHECK(cluster->origins.holds > 0);
    cluster->origins.holds--;
    set_complete(cluster);
    pthread_mutex_unlock(&cluster->origins.lock);
}

uint64_t origins_complete(const struct cluster *cluster)
{
    return atomic_load(&cluster->tombstones_from);
}

/* --- the records --- */

static status load(struct cluster *cluster, unsigned number)
{
    uint8_t key[sizeof KEY];
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(cluster->home->system, NULL, key_of(number, key), STORE_READ_ANY, &value,
                         &presence);
    bool is_there = status_is_ok(s) && presence == STORE_FOUND;
    if (is_there && value.bytes.size == VALUE_SIZE)
        set(cluster, number, true, read_value(value.bytes.data));
    else if (is_there)
        s = status_make(STATUS_DATA_LOSS,
                        "the record of what was applied of cluster %u has "
                        "%zu bytes",
                        number, value.bytes.size);
    store_value_release(&value);
    return s;
}

static status load_keeps_all(struct cluster *cluster)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(cluster->home->system, NULL, bytes_of(KEEPS_ALL), STORE_READ_ANY, &value,
                         &presence);
    store_value_release(&value);
    cluster->origins.keeps_all = status_is_ok(s) && presence == STORE_FOUND;
    return s;
}

status origins_load(struct cluster *cluster)
{
    TRY(load_keeps_all(cluster));
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        TRY(load(cluster, i));
    return status_ok();
}

static status write_batch(struct cluster *cluster, struct store_batch *batch)
{
    status s = commit_write(cluster->home->commits, COMMIT_CATALOG, batch, NULL);
    store_batch_destroy(batch);
    return s;
}

static status put(struct cluster *cluster, unsigned number, const struct origin_applied *applied)
{
    uint8_t key[sizeof KEY], value[VALUE_SIZE];
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    write_value(applied, value);
    store_batch_put(batch, cluster->home->system, key_of(number, key),
                    bytes_make(value, sizeof value));
    TRY(write_batch(cluster, batch));
    set(cluster, number, true, *applied);
    return status_ok();
}

status origin_applied_record(struct cluster *cluster, unsigned number,
                             const struct origin_applied *applied)
{
    struct origin_applied before;
    DCHECK(!origin_applied(cluster, number, &before) || applied->complete >= before.complete ||
           origin_wants_copy(applied));
    (void)before;
    return put(cluster, number, applied);
}

status origin_applied_rewind(struct cluster *cluster, unsigned number,
                             const struct origin_applied *applied)
{
    DCHECK(origins_complete(cluster) == 1);
    return put(cluster, number, applied);
}

/* In memory it holds from before it is durable, and for as long. */
status origins_keep_all(struct cluster *cluster, bool keeps_all)
{
    static const uint8_t one = 1;
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    if (keeps_all) {
        set_keeps_all(cluster, true);
        store_batch_put(batch, cluster->home->system, bytes_of(KEEPS_ALL), bytes_make(&one, 1));
    } else {
        store_batch_delete(batch, cluster->home->system, bytes_of(KEEPS_ALL));
    }
    TRY(write_batch(cluster, batch));
    if (!keeps_all)
        set_keeps_all(cluster, false);
    return status_ok();
}

status origin_applied_forget(struct cluster *cluster, unsigned number)
{
    uint8_t key[sizeof KEY];
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    store_batch_delete(batch, cluster->home->system, key_of(number, key));
    TRY(write_batch(cluster, batch));
    set(cluster, number, false, (struct origin_applied){0});
    return status_ok();
}
