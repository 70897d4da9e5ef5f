/* Copies of instances' rows: from whom, and what comes before and behind them. See placement.h. */
#include "replica/placement_private.h"

#include "base/check.h"
#include "cluster/origin/origin_applied.h"
#include "replica/progress.h"
#include "tablet/version.h"

#include <stdlib.h>

struct copying {
    struct placement *placement;
    const char *instance;
    uint32_t lacks;    /* of the source */
    uint64_t own_mark; /* what this server's clients were told of has at most this version */
};

/* --- sharing what is under way --- */

static bool hold_session(void *context, struct client_session *session)
{
    struct copying *copying = context;
    struct placement *placement = copying->placement;
    pthread_mutex_lock(&placement->lock);
    bool goes_on = !placement->is_stopping;
    placement->session = goes_on ? session : NULL;
    pthread_mutex_unlock(&placement->lock);
    return goes_on;
}

static bool is_stopping(void *context)
{
    struct copying *copying = context;
    struct placed_instance now;
    return placement_is_stopping(copying->placement) ||
           !placed_find(copying->placement->placed, bytes_of(copying->instance), &now) ||
           now.state != PLACED_COPYING;
}

void placement_cancel_copy(struct placement *placement, const char *instance)
{
    pthread_mutex_lock(&placement->lock);
    bool is_it = placement->copied != NULL && strcmp(placement->copied, instance) == 0;
    if (is_it && placement->session != NULL)
        client_session_cancel(placement->session);
    pthread_mutex_unlock(&placement->lock);
}

/* --- how far it is --- */

/* With the lock held. */
static status add_table(struct placement *placement, const Replica__PulledTable *pulled)
{
    const struct table_copy table = {.uid = pulled->uid,
                                     .name = arena_string(placement->told, bytes_of(pulled->name)),
                                     .size_bytes = pulled->size_bytes};
    return table.name == NULL
               ? status_out_of_memory()
               : vector_add(&placement->tables, placement->told, &table, sizeof table);
}

static status tell_begun(struct copying *copying, const Replica__PullChangesResponse *first)
{
    struct placement *placement = copying->placement;
    struct arena *arena = arena_create(PLACEMENT_ARENA_BYTES);
    char *name = strdup(copying->instance);
    status s = arena == NULL || name == NULL ? status_out_of_memory() : status_ok();
    pthread_mutex_lock(&placement->lock);
    placement->told = arena;
    placement->copied = name;
    for (size_t i = 0; status_is_ok(s) && i < first->n_tables; i++)
        s = add_table(placement, first->tables[i]);
    pthread_mutex_unlock(&placement->lock);
    return s;
}

static void tell_over(struct placement *placement)
{
    pthread_mutex_lock(&placement->lock);
    free(placement->copied);
    arena_destroy(placement->told);
    placement->copied = NULL;
    placement->told = NULL;
    placement->tables = (struct vector){0};
    pthread_mutex_unlock(&placement->lock);
}

/* Tables come one after the other. */
static void note_change(struct placement *placement, const Replica__PulledChange *change)
{
    struct table_copy *tables = placement->tables.items;
    int64_t bytes = (int64_t)(change->from.len + change->change.len);
    size_t at = 0, count = placement->tables.count;
    while (at < count && tables[at].uid != change->table)
        at++;
    if (at == count)
        return;
    tables[at].copied_bytes += bytes;
    for (size_t i = 0; i < at; i++)
        tables[i].is_over = true;
}

static void note(void *context, const Replica__PullChangesResponse *answer)
{
    struct copying *copying = context;
    struct placement *placement = copying->placement;
    pthread_mutex_lock(&placement->lock);
    for (size_t i = 0; i < answer->n_changes; i++)
        note_change(placement, answer->changes[i]);
    pthread_mutex_unlock(&placement->lock);
}

/* --- where to go on --- */

static struct origin_applied place_in(const Replica__PullChangesResponse *first, unsigned number)
{
    for (size_t i = 0; i < first->n_places; i++)
        if (first->places[i]->number == number && first->places[i]->after != NULL)
            return (struct origin_applied){
                {first->places[i]->after->sequence, first->places[i]->after->ordinal},
                first->places[i]->complete_version};
    return (struct origin_applied){.position = ORIGIN_BEGINNING};
}

/* What the source lacks of what has been applied here comes again: for this instance alone. */
static status set_place(struct copying *copying, unsigned origin, const struct origin_applied *here,
                        const struct origin_applied *there)
{
    struct placed *placed = copying->placement->placed;
    struct cluster *cluster = placement_cluster(copying->placement);
    if (origin_wants_copy(here))
        return status_make(STATUS_UNAVAILABLE, "it is not known yet where to go on with cluster %u",
                           origin);
    if (stream_position_compare(there->position, here->position) < 0) {
        TRY(placed_raise(placed, origin, here->position));
        TRY(origin_applied_rewind(cluster, origin, there));
    }
    placed_set_from(placed, copying->instance, origin, there->position);
    return status_ok();
}

static status set_places(struct copying *copying, const Replica__PullChangesResponse *first)
{
    struct placement *placement = copying->placement;
    struct placed_instance now;
    unsigned own = peers_own_number(placement->options.peers);
    if (!placed_find(placement->placed, bytes_of(copying->instance), &now) ||
        now.state != PLACED_WANTED)
        return status_make(STATUS_CANCELLED, "it is wanted no more");
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        struct origin_applied here, there = place_in(first, i);
        if (i != own && origin_applied(placement_cluster(placement), i, &here))
            TRY(set_place(copying, i, &here, &there));
    }
    now.state = PLACED_COPYING;
    return placed_set(placement->placed, copying->instance, &now);
}

static status begin(void *context, const Replica__PullChangesResponse *first)
{
    struct copying *copying = context;
    struct placement *placement = copying->placement;
    unsigned own = peers_own_number(placement->options.peers);
    if (place_in(first, own).complete < copying->own_mark)
        return status_make(STATUS_UNAVAILABLE, "the peer has not all of this server's changes yet");
    TRY(tell_begun(copying, first));
    placement->options.hold(placement->options.context);
    placed_lock_changes(placement->placed);
    status s = set_places(copying, first);
    placed_unlock_changes(placement->placed);
    placement->options.release(placement->options.context);
    return s;
}

/* --- one copy --- */

/* That nothing of before counts any more is durable before it goes. */
static status prepare(struct copying *copying)
{
    struct placement *placement = copying->placement;
    struct placed_instance now;
    status s = status_make(STATUS_CANCELLED, "it is wanted no more");
    bool has_rows = false;
    placed_lock_changes(placement->placed);
    if (placed_find(placement->placed, bytes_of(copying->instance), &now) &&
        now.state == PLACED_WANTED) {
        status_free(s);
        has_rows = now.has_rows;
        now.was_whole = false;
        now.has_rows = true;
        s = origins_keep_all(placement_cluster(placement), true);
        if (status_is_ok(s))
            s = placed_set(placement->placed, copying->instance, &now);
    }
    placed_unlock_changes(placement->placed);
    TRY(s);
    return has_rows ? placement_clear(placement, copying->instance) : status_ok();
}

/* Whatever it ended with: what was deleted, or has gone from here, meanwhile is not touched. */
static status end(struct copying *copying, status result)
{
    struct placement *placement = copying->placement;
    struct placed_instance now;
    status s = status_ok();
    placed_lock_changes(placement->placed);
    if (placed_find(placement->placed, bytes_of(copying->instance), &now) &&
        now.state == PLACED_COPYING) {
        now.state = status_is_ok(result) ? PLACED_HERE : PLACED_WANTED;
        now.lacks = status_is_ok(result) ? copying->lacks : now.lacks;
        s = placed_set(placement->placed, copying->instance, &now);
    }
    placed_unlock_changes(placement->placed);
    if (status_is_ok(result))
        return s;
    status_free(s);
    return result;
}

/* It has not lost any of them either: which it says at the latest when it tells that it has come so
 * far. */
static bool is_source_still(const struct copying *copying,
                            const Replica__TellProgressResponse *answer)
{
    const Replica__PlacedInstance *said = answer->n_placed == 1 ? answer->placed[0] : NULL;
    return said != NULL && (said->state == PLACED_HERE || said->state == PLACED_LEAVING) &&
           said->lacks == copying->lacks;
}

/* What this server's clients have changed is in the source's rows first: those here go. */
static status await_source(struct copying *copying, unsigned number)
{
    enum { LOOKS = 100, LOOK_US = 50 * 1000, ARENA_BYTES = 1 << 20 };
    struct placement *placement = copying->placement;
    unsigned own = peers_own_number(placement->options.peers);
    struct arena *arena = arena_create(ARENA_BYTES);
    status s = arena == NULL ? status_out_of_memory() : status_ok();
    bool is_there = false;
    for (int i = 0; i < LOOKS && status_is_ok(s) && !is_there; i++) {
        const Replica__TellProgressResponse *answer;
        arena_reset(arena);
        s = progress_ask(placement->options.peers, number, &copying->instance, 1, arena, &answer);
        if (status_is_ok(s) && !is_source_still(copying, answer))
            s = status_make(STATUS_UNAVAILABLE, "peer %u has not all rows any more", number);
        is_there = status_is_ok(s) && progress_applied_of(answer, own) >= copying->own_mark;
        if (status_is_ok(s) && !is_there && !thread_rest(&placement->copy_stop, LOOK_US))
            s = status_make(STATUS_CANCELLED, "the server stops");
    }
    arena_destroy(arena);
    if (status_is_ok(s) && !is_there)
        return status_make(STATUS_UNAVAILABLE, "peer %u has not all of this server's changes yet",
                           number);
    return s;
}

static status copy_from(struct placement *placement, const char *instance, unsigned number,
                        uint32_t lacks)
{
    struct copying copying = {.placement = placement, .instance = instance, .lacks = lacks};
    const struct copier_options options = {.apply = placement->options.apply,
                                           .peers = placement->options.peers,
                                           .from = number,
                                           .instance = instance,
                                           .timeout_us = INT64_MAX,
                                           .is_stopping = is_stopping,
                                           .hold_session = hold_session,
                                           .begin = begin,
                                           .note = note,
                                           .context = &copying};
    copying.own_mark = version_at(cluster_version_us(placement_cluster(placement)) + 1);
    TRY(await_source(&copying, number));
    TRY(prepare(&copying));
    log_info(placement->options.log, "copies an instance's rows", LOG_STR("instance", instance),
             LOG_INT("peer", number));
    status s = end(&copying, copier_run(&options));
    tell_over(placement);
    TRY(s);
    log_info(placement->options.log, "has copied an instance's rows", LOG_STR("instance", instance),
             LOG_INT("peer", number));
    return status_ok();
}

/* --- from whom --- */

/* What the others say of an instance. */
struct sources {
    unsigned own;
    bool has_own_rows; /* of before, which are nowhere else if somebody lacks them */
    uint32_t lacks[VERSION_CLUSTERS];
    uint32_t whole; /* a bit for each that has all */
    unsigned best;  /* of those that want all, this server among them: see placement.h */
    bool best_was_whole;
    bool have_all_said;
};

static void consider(struct sources *sources, unsigned number, bool was_whole)
{
    bool is_better = sources->best == 0 || (was_whole && !sources->best_was_whole) ||
                     (was_whole == sources->best_was_whole && number < sources->best);
    if (!is_better)
        return;
    sources->best = number;
    sources->best_was_whole = was_whole;
}

/* What it lacks of this server's would go with what is here. */
static void consider_whole(struct sources *sources, unsigned number, uint32_t lacks)
{
    sources->lacks[number] = lacks;
    if (!sources->has_own_rows || (lacks >> sources->own & 1) == 0)
        sources->whole |= UINT32_C(1) << number;
}

static void take_said(struct sources *sources, unsigned number,
                      const Replica__TellProgressResponse *answer)
{
    const Replica__PlacedInstance *said = answer->n_placed == 1 ? answer->placed[0] : NULL;
    if (said == NULL) /* an older program: has it all, or is being copied */
        sources->have_all_said = false;
    else if (said->state == PLACED_HERE || said->state == PLACED_LEAVING)
        consider_whole(sources, number, said->lacks);
    else if (said->state != PLACED_NOT)
        consider(sources, number, said->was_whole);
}

static status ask_all(struct placement *placement, const Replica__PeerList *list,
                      const char *instance, struct arena *arena, struct sources *out)
{
    struct placed_instance now;
    unsigned own = peers_own_number(placement->options.peers);
    (void)placed_find(placement->placed, bytes_of(instance), &now);
    *out = (struct sources){.own = own, .has_own_rows = now.was_whole, .have_all_said = true};
    consider(out, own, now.was_whole);
    for (size_t i = 0; i < list->n_peers; i++) {
        const Replica__TellProgressResponse *answer;
        unsigned number = list->peers[i]->number;
        if (number == own)
            continue;
        if (placement_is_stopping(placement))
            return status_make(STATUS_CANCELLED, "the server stops");
        status s = progress_ask(placement->options.peers, number, &instance, 1, arena, &answer);
        if (status_is_ok(s))
            take_said(out, number, answer);
        else
            out->have_all_said = false;
        status_free(s);
    }
    return status_ok();
}

/* Nobody has more than what is here. */
static status stand_by(struct placement *placement, const char *instance)
{
    struct placed_instance now;
    status s = status_ok();
    placed_lock_changes(placement->placed);
    if (placed_find(placement->placed, bytes_of(instance), &now) && now.state == PLACED_WANTED) {
        now.state = PLACED_HERE;
        now.has_rows = true;
        s = placed_set(placement->placed, instance, &now);
    }
    placed_unlock_changes(placement->placed);
    TRY(s);
    log_error(placement->options.log,
              "no peer has all rows of an instance: it stays with what is here, without what is "
              "missing of the peers whose bits are set",
              LOG_STR("instance", instance), LOG_INT("lacks", now.lacks));
    return status_ok();
}

static status copy_from_one_of(struct placement *placement, const char *instance,
                               const struct sources *sources)
{
    status s = status_make(STATUS_UNAVAILABLE, "no peer that answers has all rows of %s", instance);
    for (unsigned i = 1; i < VERSION_CLUSTERS && !status_is_ok(s); i++)
        if ((sources->whole >> i & 1) != 0) {
            status_free(s);
            s = copy_from(placement, instance, i, sources->lacks[i]);
        }
    return s;
}

static status copy_instance(struct placement *placement, const Replica__PeerList *list,
                            const char *instance, struct arena *arena)
{
    struct sources sources;
    TRY(ask_all(placement, list, instance, arena, &sources));
    bool is_mine = sources.whole == 0 && sources.have_all_said &&
                   sources.best == peers_own_number(placement->options.peers);
    return is_mine ? stand_by(placement, instance)
                   : copy_from_one_of(placement, instance, &sources);
}

/* --- a turn --- */

struct wanted {
    struct arena *arena;
    struct vector names; /* of const char * */
    status s;
};

static bool add_wanted(void *context, const char *name, const struct placed_instance *instance)
{
    struct wanted *wanted = context;
    if (instance->state != PLACED_WANTED)
        return true;
    const char *copy = arena_string(wanted->arena, bytes_of(name));
    wanted->s = copy == NULL ? status_out_of_memory()
                             : vector_add(&wanted->names, wanted->arena, &copy, sizeof copy);
    return status_is_ok(wanted->s);
}

static status find_wanted(struct placement *placement, struct arena *arena, struct wanted *out)
{
    *out = (struct wanted){.arena = arena, .s = status_ok()};
    TRY(placed_visit(placement->placed, add_wanted, out));
    return out->s;
}

/* Folds need not keep all any more. */
static status rest(struct placement *placement, struct arena *arena)
{
    struct wanted wanted;
    if (!origins_keeps_all(placement_cluster(placement)))
        return status_ok();
    placed_lock_changes(placement->placed);
    status s = find_wanted(placement, arena, &wanted);
    if (status_is_ok(s) && wanted.names.count == 0)
        s = origins_keep_all(placement_cluster(placement), false);
    placed_unlock_changes(placement->placed);
    return s;
}

/* What cannot be copied now keeps nothing else from it. */
static status copy_all(struct placement *placement, struct arena *arena)
{
    const Replica__PeerList *list = NULL;
    struct wanted wanted;
    status first = status_ok();
    TRY(peers_list(placement->options.peers, arena, &list));
    TRY(find_wanted(placement, arena, &wanted));
    const char *const *names = wanted.names.items;
    for (size_t i = 0; list != NULL && i < wanted.names.count; i++) {
        status s = copy_instance(placement, list, names[i], arena);
        if (status_is_ok(first))
            first = s;
        else
            status_free(s);
    }
    TRY(first);
    return rest(placement, arena);
}

status placement_copy(struct placement *placement)
{
    if (peers_own_number(placement->options.peers) == 0)
        return status_ok();
    struct arena *arena = arena_create(PLACEMENT_ARENA_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    status s = copy_all(placement, arena);
    arena_destroy(arena);
    return s;
}
