/* See placement.h. */
#include "replica/placement.h"

#include "base/check.h"
#include "cluster/foreign_rows.h"
#include "cluster/origin/origin_applied.h"
#include "replica/instance_tables.h"
#include "replica/placement_private.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { LOOK_US = 100 * 1000 };

bool placement_is_stopping(void *context)
{
    struct placement *placement = context;
    pthread_mutex_lock(&placement->lock);
    bool is_so = placement->is_stopping;
    pthread_mutex_unlock(&placement->lock);
    return is_so;
}

static status clear_table(void *context, struct table *table)
{
    (void)context;
    return table_clear(table);
}

status placement_clear(struct placement *placement, const char *instance)
{
    placement->options.hold(placement->options.context);
    placement->options.release(placement->options.context);
    return instance_tables_visit(placement_cluster(placement), instance, clear_table, NULL);
}

/* --- beginning and ending --- */

struct naming {
    struct placement *placement;
    status s;
};

static bool say_here(void *context, struct resource *instance)
{
    const struct placed_instance here = {.state = PLACED_HERE, .has_rows = true};
    struct naming *naming = context;
    naming->s = placed_set(naming->placement->placed, instance->name, &here);
    return status_is_ok(naming->s);
}

/* What there was before there were peers, or as long as all had all. */
static status say_all_here(struct placement *placement)
{
    struct naming naming = {placement, status_ok()};
    TRY(control_list(placement->options.control, RESOURCE_INSTANCE, "", "", say_here, &naming));
    return naming.s;
}

static status begin(struct placement *placement, bool is_new)
{
    struct placed *placed = placement->placed;
    if (placed_has_begun(placed))
        return status_ok();
    if (!is_new)
        TRY(say_all_here(placement));
    return placed_set_since(placed, is_new ? UINT64_MAX : 0);
}

status placement_set_since(struct placement *placement, uint64_t version)
{
    placed_lock_changes(placement->placed);
    status s = placed_set_since(placement->placed, version);
    placed_unlock_changes(placement->placed);
    return s;
}

status placement_begin(struct placement *placement, bool is_new)
{
    placed_lock_changes(placement->placed);
    status s = begin(placement, is_new);
    placed_unlock_changes(placement->placed);
    return s;
}

static status end(struct placement *placement)
{
    if (placed_has_begun(placement->placed))
        TRY(placed_end(placement->placed));
    return origins_keeps_all(placement_cluster(placement))
               ? origins_keep_all(placement_cluster(placement), false)
               : status_ok();
}

status placement_end(struct placement *placement)
{
    placed_lock_changes(placement->placed);
    status s = end(placement);
    placed_unlock_changes(placement->placed);
    return s;
}

/* --- what is lost --- */

struct losing {
    struct placement *placement;
    const Replica__PeerList *list;
    unsigned number; /* of the cluster whose changes they are */
    status s;
};

/* What is at this server alone nobody else's clients have changed: it is recorded that it is here.
 */
static status lose_one(struct losing *losing, const char *name,
                       const struct placed_instance *instance)
{
    struct placement *placement = losing->placement;
    struct placed_instance next = *instance;
    unsigned own = peers_own_number(placement->options.peers);
    struct sites sites;
    status s = sites_find(placement->options.control, losing->list, own, name, &sites);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    if ((sites.peers & ~(UINT32_C(1) << own)) == 0)
        return placed_set(placement->placed, name, instance);
    next.was_whole =
        instance->was_whole || instance->state == PLACED_HERE || instance->state == PLACED_LEAVING;
    next.state = PLACED_WANTED;
    next.lacks |= UINT32_C(1) << losing->number;
    return placed_set(placement->placed, name, &next);
}

static bool lose_each(void *context, const char *name, const struct placed_instance *instance)
{
    struct losing *losing = context;
    if (instance->state != PLACED_NOT)
        losing->s = lose_one(losing, name, instance);
    return status_is_ok(losing->s);
}

static status lose(struct placement *placement, unsigned number, struct arena *arena)
{
    struct losing losing = {.placement = placement, .number = number, .s = status_ok()};
    TRY(peers_list(placement->options.peers, arena, &losing.list));
    if (losing.list == NULL)
        return status_ok();
    TRY(placed_set_since(placement->placed, UINT64_MAX));
    TRY(placed_visit(placement->placed, lose_each, &losing));
    return losing.s;
}

status placement_lose(struct placement *placement, unsigned number)
{
    struct arena *arena = arena_create(PLACEMENT_ARENA_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    placed_lock_changes(placement->placed);
    status s = lose(placement, number, arena);
    placed_unlock_changes(placement->placed);
    arena_destroy(arena);
    return s;
}

/* --- telling --- */

/* With the lock held. */
static status tell_tables(const struct placement *placement, struct arena *arena,
                          Replica__PlacedInstance *out)
{
    const struct table_copy *tables = placement->tables.items;
    size_t count = placement->tables.count;
    out->tables = arena_alloc(arena, (count + 1) * sizeof(*out->tables));
    if (out->tables == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        Replica__TableCopy *table;
        PROTO_NEW(arena, table, REPLICA__TABLE_COPY__INIT);
        table->name = arena_string(arena, bytes_of(tables[i].name));
        table->size_bytes = tables[i].size_bytes;
        table->copied_bytes = tables[i].copied_bytes;
        table->is_over = tables[i].is_over;
        if (table->name == NULL)
            return status_out_of_memory();
        out->tables[out->n_tables++] = table;
    }
    return status_ok();
}

static status tell_instance(struct placement *placement, const char *name, struct arena *arena,
                            Replica__PlacedInstance **out)
{
    struct placed_instance instance;
    status s = status_ok();
    PROTO_NEW(arena, *out, REPLICA__PLACED_INSTANCE__INIT);
    (void)placed_find(placement->placed, bytes_of(name), &instance);
    (*out)->name = name;
    (*out)->state =
        placed_is_here(placement->placed, bytes_of(name)) && instance.state != PLACED_LEAVING
            ? PLACED_HERE
            : instance.state;
    (*out)->was_whole = instance.was_whole;
    (*out)->lacks = instance.lacks;
    pthread_mutex_lock(&placement->lock);
    if (placement->copied != NULL && strcmp(placement->copied, name) == 0)
        s = tell_tables(placement, arena, *out);
    pthread_mutex_unlock(&placement->lock);
    return s;
}

status placement_tell(struct placement *placement, const char *const *instances, size_t count,
                      struct arena *arena, Replica__TellProgressResponse *out)
{
    out->placed = arena_alloc(arena, (count + 1) * sizeof(*out->placed));
    if (out->placed == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(tell_instance(placement, instances[i], arena, &out->placed[out->n_placed++]));
    return status_ok();
}

status placement_tell_copied(struct placement *placement, struct arena *arena,
                             Replica__PlacedInstance **out)
{
    *out = NULL;
    pthread_mutex_lock(&placement->lock);
    bool is_copying = placement->copied != NULL;
    const char *name = is_copying ? arena_string(arena, bytes_of(placement->copied)) : NULL;
    pthread_mutex_unlock(&placement->lock);
    if (!is_copying)
        return status_ok();
    return name == NULL ? status_out_of_memory() : tell_instance(placement, name, arena, out);
}

/* --- threads --- */

static void *look(void *argument)
{
    struct placement *placement = argument;
    do {
        status s = placement_look(placement);
        if (!status_is_ok(s) && s.code != STATUS_UNAVAILABLE)
            log_warn(placement->options.log, "what rows are to be here cannot be told",
                     LOG_STR("why", status_message(s)));
        status_free(s);
    } while (thread_rest(&placement->look_stop, LOOK_US));
    return NULL;
}

static void *copy(void *argument)
{
    enum { RETRY_US = 100 * 1000, RETRY_MOST_US = 2000 * 1000, TOLD_US = 8 * RETRY_US };
    struct placement *placement = argument;
    do {
        status s = placement_copy(placement);
        bool is_failure = !status_is_ok(s) && s.code != STATUS_CANCELLED;
        if (!is_failure)
            placement->wait_us = RETRY_US;
        else if (placement->wait_us < RETRY_MOST_US)
            placement->wait_us *= 2;
        bool is_news = is_failure && placement->wait_us >= TOLD_US;
        if (is_news && !placement->has_told)
            log_warn(placement->options.log, "rows that are to be here cannot be copied yet",
                     LOG_STR("why", status_message(s)));
        placement->has_told = is_news;
        status_free(s);
    } while (thread_rest(&placement->copy_stop, placement->wait_us));
    return NULL;
}

/* --- making and ending --- */

status placement_create(const struct placement_options *options, struct placement **out)
{
    struct placement *placement = *out = calloc(1, sizeof *placement);
    if (placement == NULL)
        return status_out_of_memory();
    placement->options = *options;
    placement->wait_us = LOOK_US;
    thread_stop_init(&placement->look_stop);
    thread_stop_init(&placement->copy_stop);
    pthread_mutex_init(&placement->lock, NULL);
    status s = placed_open(placement_cluster(placement), &placement->placed);
    if (!status_is_ok(s)) {
        placement_destroy(placement);
        *out = NULL;
        return s;
    }
    placement->instances = (struct control_watcher){
        .kind = RESOURCE_INSTANCE, .context = placement, .changed = placement_note_instance};
    placement->clusters = (struct control_watcher){
        .kind = RESOURCE_CLUSTER, .context = placement, .changed = placement_note_cluster};
    control_watch(options->control, &placement->instances);
    control_watch(options->control, &placement->clusters);
    return status_ok();
}

void placement_destroy(struct placement *placement)
{
    if (placement == NULL)
        return;
    CHECK(!placement->has_looker && !placement->has_copier);
    placed_close(placement->placed);
    arena_destroy(placement->created);
    thread_stop_destroy(&placement->look_stop);
    thread_stop_destroy(&placement->copy_stop);
    pthread_mutex_destroy(&placement->lock);
    free(placement);
}

status placement_start(struct placement *placement,
                       bool (*knows_schema_since)(void *context, int64_t since_us), void *context)
{
    placement->options.apply.knows_schema_since = knows_schema_since;
    placement->options.apply.context = context;
    TRY(thread_start(&placement->looker, "placement", look, placement));
    placement->has_looker = true;
    TRY(thread_start(&placement->copier, "copy", copy, placement));
    placement->has_copier = true;
    return status_ok();
}

static void join(struct thread_stop *stop, pthread_t thread, bool *is_there)
{
    if (*is_there) {
        thread_stop_now(stop);
        pthread_join(thread, NULL);
    }
    *is_there = false;
}

void placement_stop(struct placement *placement)
{
    if (placement == NULL)
        return;
    pthread_mutex_lock(&placement->lock);
    placement->is_stopping = true;
    if (placement->session != NULL)
        client_session_cancel(placement->session);
    pthread_mutex_unlock(&placement->lock);
    join(&placement->look_stop, placement->looker, &placement->has_looker);
    join(&placement->copy_stop, placement->copier, &placement->has_copier);
}

struct placed *placement_placed(struct placement *placement)
{
    return placement->placed;
}
