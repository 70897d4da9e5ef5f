/* See heat.h. Looks are maintenance's alone; `lock` guards what they have found. */
#include "cluster/heat.h"

#include "base/list.h"
#include "cluster/cluster_private.h"
#include "cluster/index.h"
#include "os/process.h"
#include "os/thread.h"

#include <stdlib.h>

#define KEEP_US (INT64_C(24) * 3600 * 1000000)

struct hot_entry {
    struct link link;
    struct hot_tablet hot; /* the table's name and the keys lie behind it */
};

struct heat {
    int64_t looked_us; /* by the steady clock; 0: never */
    int64_t looked_wall_us;
    int64_t cpu_us; /* what the process had taken then */

    pthread_mutex_t lock;
    struct list entries; /* the oldest first */
    size_t count;
    uint64_t last_id;
};

status heat_create(struct heat **out)
{
    struct heat *heat = *out = calloc(1, sizeof *heat);
    if (heat == NULL)
        return status_out_of_memory();
    pthread_mutex_init(&heat->lock, NULL);
    return status_ok();
}

static struct hot_entry *oldest(const struct heat *heat)
{
    return LIST_ENTRY(heat->entries.first, struct hot_entry, link);
}

static void forget_oldest(struct heat *heat)
{
    free(LIST_ENTRY(list_take(&heat->entries), struct hot_entry, link));
    heat->count--;
}

void heat_destroy(struct heat *heat)
{
    if (heat == NULL)
        return;
    while (heat->count > 0)
        forget_oldest(heat);
    pthread_mutex_destroy(&heat->lock);
    free(heat);
}

/* --- a look --- */

struct look {
    struct heat *heat;
    int64_t from_us;
    int64_t until_us;
    uint64_t rows; /* that all tablets served in the window */
    double percent_a_row;
};

static void count_rows(struct look *look, const struct table *table, struct tablet *tablet)
{
    uint64_t rows = atomic_load_explicit(&tablet->rows_read, memory_order_relaxed) +
                    atomic_load_explicit(&tablet->rows_written, memory_order_relaxed);
    (void)table;
    tablet->heat.rows = rows - tablet->heat.rows_before;
    tablet->heat.rows_before = rows;
    look->rows += tablet->heat.rows;
}

static bytes copy_behind(char **at, bytes text)
{
    bytes copy = bytes_make(*at, text.size);
    if (text.size > 0)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return copy;
}

/* Without memory it goes unnoticed. */
static void remember(struct heat *heat, const struct hot_tablet *hot)
{
    bytes name = bytes_make(hot->table, strlen(hot->table) + 1);
    struct hot_entry *entry = malloc(sizeof *entry + name.size + hot->start.size + hot->end.size);
    if (entry == NULL)
        return;
    char *at = (char *)(entry + 1);
    entry->hot = *hot;
    entry->hot.table = (const char *)copy_behind(&at, name).data;
    entry->hot.start = copy_behind(&at, hot->start);
    entry->hot.end = copy_behind(&at, hot->end);
    pthread_mutex_lock(&heat->lock);
    entry->hot.id = ++heat->last_id;
    list_append(&heat->entries, &entry->link);
    if (++heat->count > HEAT_MOST)
        forget_oldest(heat);
    pthread_mutex_unlock(&heat->lock);
}

static void note_if_hot(struct look *look, const struct table *table, struct tablet *tablet)
{
    const struct hot_tablet hot = {.table = table->name,
                                   .start = tablet->start,
                                   .end = tablet->end,
                                   .from_us = look->from_us,
                                   .until_us = look->until_us,
                                   .cpu_percent = (double)tablet->heat.rows * look->percent_a_row};
    if (hot.cpu_percent >= HEAT_LEAST_PERCENT)
        remember(look->heat, &hot);
}

static status for_tablets_of(struct table *table, struct look *look,
                             void (*visit)(struct look *, const struct table *, struct tablet *))
{
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        visit(look, table, tablets[i]);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return status_ok();
}

static status for_tablets(struct table *const *tables, size_t count, struct look *look,
                          void (*visit)(struct look *, const struct table *, struct tablet *))
{
    for (size_t i = 0; i < count; i++)
        TRY(for_tablets_of(tables[i], look, visit));
    return status_ok();
}

/* `percent` is how much of the machine the process took. */
static status look_around(struct cluster *cluster, struct look *look, double percent)
{
    struct table **tables;
    size_t count;
    TRY(index_find_all(cluster, bytes_make(NULL, 0), &tables, &count));
    status s = for_tablets(tables, count, look, count_rows);
    if (status_is_ok(s) && look->rows > 0) {
        look->percent_a_row = percent / (double)look->rows;
        s = for_tablets(tables, count, look, note_if_hot);
    }
    for (size_t i = 0; i < count; i++)
        table_release(tables[i]);
    free(tables);
    return s;
}

static void forget_old(struct heat *heat, int64_t wall_us)
{
    pthread_mutex_lock(&heat->lock);
    while (heat->count > 0 && oldest(heat)->hot.until_us < wall_us - KEEP_US)
        forget_oldest(heat);
    pthread_mutex_unlock(&heat->lock);
}

/* The first look has nothing to compare with: it only counts. */
static void take_look(struct cluster *cluster, int64_t now_us)
{
    struct heat *heat = cluster->heat;
    int64_t cpu_us = process_usage().cpu_us;
    double could_us = (double)(now_us - heat->looked_us) * thread_processors();
    struct look look = {.heat = heat,
                        .from_us = heat->looked_wall_us,
                        .until_us = clock_wall_us(cluster->options.clock)};
    double percent = heat->looked_us == 0 ? 0 : 100 * (double)(cpu_us - heat->cpu_us) / could_us;
    forget_old(heat, look.until_us);
    status s = look_around(cluster, &look, percent);
    if (!status_is_ok(s))
        log_warn(cluster->options.log, "what is hot went unnoticed",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
    heat->looked_us = now_us;
    heat->looked_wall_us = look.until_us;
    heat->cpu_us = cpu_us;
}

void heat_run(struct cluster *cluster)
{
    int64_t now_us = clock_steady_us(cluster->options.clock);
    if (now_us - cluster->heat->looked_us >= cluster->options.heat_window_us)
        take_look(cluster, now_us);
}

void cluster_hot_tablets(struct cluster *cluster, uint64_t after,
                         bool (*visit)(void *context, const struct hot_tablet *hot), void *context)
{
    struct heat *heat = cluster->heat;
    bool goes_on = true;
    pthread_mutex_lock(&heat->lock);
    for (struct link *at = heat->entries.first; at != NULL && goes_on; at = at->next) {
        const struct hot_tablet *hot = &LIST_ENTRY(at, struct hot_entry, link)->hot;
        goes_on = hot->id <= after || visit(context, hot);
    }
    pthread_mutex_unlock(&heat->lock);
}
