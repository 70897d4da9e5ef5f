/* See balance.h.
 *
 * A tablet splits in the middle of its bytes when it is too large, and in the middle of its load,
 * by a sample of the keys that were asked for, when it has been too busy for a few seconds in a
 * row. A row that is hot alone splits nothing. Two neighbours merge when both have been idle for a
 * while and are small together. Between the two rules lies a gap, a factor of four in size and in
 * load, so that nothing flaps. Neighbours without any data stay as they are: a table was split for
 * a load that is still to come. */
#include "cluster/balance.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/live_size.h"
#include "cluster/midpoint.h"
#include "cluster/reshape.h"

#include <stdlib.h>

enum {
    BUSY_LOOKS = 3,               /* looks in a row, about a second apart, that make it busy */
    MOST_TABLETS_A_TABLE = 10000, /* each costs a record and some 200 bytes of memory */
    HYSTERESIS = 4,
    LEAST_LOOK_US = 500 * 1000,
};

/* Rows a second since the last look; what the tablet's counters show. */
static double measure_load(struct tablet *tablet, int64_t now_us)
{
    uint64_t rows = atomic_load_explicit(&tablet->rows_read, memory_order_relaxed) +
                    atomic_load_explicit(&tablet->rows_written, memory_order_relaxed);
    struct tablet_look *look = &tablet->look;
    double seconds = (double)(now_us - look->at_us) / 1e6;
    double load = look->at_us == 0 ? 0 : (double)(rows - look->rows) / seconds;
    look->rows = rows;
    look->at_us = now_us;
    return load;
}

/* Maintenance may be woken between two of its rounds: that is no look, since in so short a time a
 * busy tablet may have served no request, and an idle one many. */
static void note_load(struct tablet *tablet, double split_load, int64_t now_us)
{
    struct tablet_look *look = &tablet->look;
    if (look->at_us != 0 && now_us - look->at_us < LEAST_LOOK_US)
        return;
    double load = measure_load(tablet, now_us);
    look->busy_looks = load > split_load ? look->busy_looks + 1 : 0;
    bool is_idle = load < split_load / HYSTERESIS;
    if (!is_idle || look->idle_since_us == 0)
        look->idle_since_us = now_us;
}

static status find_split(struct tablet *tablet, bool is_busy, struct buffer *at, bool *found)
{
    if (is_busy && key_sample_is_full(&tablet->asked_for))
        return key_sample_middle(&tablet->asked_for, at, found);
    return rows_midpoint(tablet->keyspace, tablet->start, tablet->end, at, found);
}

static status split(struct table *table, struct tablet *tablet, bool is_busy)
{
    struct buffer at = {0};
    bool found = false;
    status s = find_split(tablet, is_busy, &at, &found);
    if (status_is_ok(s) && found)
        s = reshape_split(table, tablet, buffer_bytes(&at));
    tablet->look.busy_looks = 0; /* a row that is hot alone is not tried again every second */
    buffer_free(&at);
    return s;
}

/* Asking for the size costs some microseconds, so it is asked once and then whenever enough has
 * been written to matter. */
static bool is_too_large(const struct table *table, struct tablet *tablet)
{
    enum { LOOKS_A_SPLIT = 16 };
    const struct cluster *cluster = table->cluster;
    struct tablet_look *look = &tablet->look;
    uint64_t written = 1 + atomic_load_explicit(&tablet->bytes_written, memory_order_relaxed);
    bool is_due = look->sized_at_bytes == 0 ||
                  written - look->sized_at_bytes >= cluster->options.split_bytes / LOOKS_A_SPLIT;
    if (!is_due)
        return false;
    look->sized_at_bytes = written;
    return live_tablet_size(table, tablet) > cluster->options.split_bytes;
}

static bool may_merge(const struct table *table, struct tablet *left, struct tablet *right,
                      int64_t now_us)
{
    const struct cluster *cluster = table->cluster;
    DCHECK(bytes_equal(left->end, right->start));
    int64_t idle_before = now_us - cluster->options.merge_after_us;
    if (left->keyspace != right->keyspace || left->look.idle_since_us > idle_before ||
        right->look.idle_since_us > idle_before)
        return false;
    uint64_t size = live_tablet_size(table, left) + live_tablet_size(table, right);
    if (size > 0 && size < cluster->options.split_bytes / HYSTERESIS)
        return true;
    left->look.idle_since_us = now_us; /* asked again after another while */
    return false;
}

/* One split or merge a table and look: what was read of its tablets is stale afterwards. */
static status balance_tablets(struct table *table, struct tablet **tablets, size_t count,
                              int64_t now_us)
{
    const struct cluster *cluster = table->cluster;
    double split_load = (double)cluster->options.split_rows_per_second;
    for (size_t i = 0; i < count; i++)
        note_load(tablets[i], split_load, now_us);
    for (size_t i = 0; i < count && count < MOST_TABLETS_A_TABLE; i++) {
        bool is_busy = tablets[i]->look.busy_looks >= BUSY_LOOKS;
        if (is_busy || is_too_large(table, tablets[i]))
            return split(table, tablets[i], is_busy);
    }
    for (size_t i = 0; i + 1 < count; i++)
        if (may_merge(table, tablets[i], tablets[i + 1], now_us))
            return reshape_merge(table, tablets[i], tablets[i + 1]);
    return status_ok();
}

static status balance_table(struct table *table, int64_t now_us)
{
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    status s = balance_tablets(table, tablets, count, now_us);
    for (size_t i = 0; i < count; i++)
        tablet_release(tablets[i]);
    free(tablets);
    return s;
}

/* A table deleted meanwhile, a full disk: the next look will do. */
static bool visit(void *context, struct table *table)
{
    struct cluster *cluster = context;
    status s = balance_table(table, clock_steady_us(cluster->options.clock));
    if (!status_is_ok(s) && s.code != STATUS_NOT_FOUND)
        log_warn(cluster->options.log, "a tablet could not be split or merged",
                 LOG_STR("table", table->name), LOG_STR("cause", status_message(s)));
    status_free(s);
    return !maintenance_is_stopping(cluster->maintenance);
}

void balance_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    if (cluster->options.balance)
        status_ignore(cluster_list_tables(cluster, all, all, visit, cluster));
}
