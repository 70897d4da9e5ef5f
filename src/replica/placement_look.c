/* What rows are to be here, by the instances and clusters that there are. */
#include "replica/placement_private.h"

#include "replica/progress.h"

/* --- an instance --- */

/* Of one that was never heard of: all that was changed in its rows, wherever that was, is told
 * here.
 */
static placed_state first_state(const struct placement *placement, const struct sites *sites)
{
    bool is_new = sites->made_in == sites->instance_made_in &&
                  sites->made_in > placed_since(placement->placed);
    return is_new ? PLACED_HERE : PLACED_WANTED;
}

static placed_state state_with_site(const struct placement *placement, const struct sites *sites,
                                    bool is_known, placed_state now)
{
    if (!is_known)
        return first_state(placement, sites);
    if (now == PLACED_NOT)
        return PLACED_WANTED;
    return now == PLACED_LEAVING ? PLACED_HERE : now;
}

static placed_state state_without_site(placed_state now)
{
    if (now == PLACED_WANTED)
        return PLACED_NOT;
    return now == PLACED_HERE ? PLACED_LEAVING : now;
}

struct found {
    const char *name;
    struct sites sites;
};

static status take(struct placement *placement, const struct found *found)
{
    struct placed_instance now, next;
    const char *name = found->name;
    bool is_known = placed_find(placement->placed, bytes_of(name), &now);
    bool is_site = sites_has(&found->sites, peers_own_number(placement->options.peers));
    next = now;
    next.made_in = found->sites.made_in;
    next.state = is_site ? state_with_site(placement, &found->sites, is_known, now.state)
                         : state_without_site(now.state);
    if (next.state == PLACED_HERE)
        next.has_rows = true;
    if (now.state == PLACED_COPYING && !is_site)
        placement_cancel_copy(placement, name);
    bool is_same = next.state == now.state && next.made_in == now.made_in && !now.is_noted;
    if (is_known && is_same)
        return status_ok();
    return placed_set(placement->placed, name, &next);
}

/* --- all of them --- */

struct looking {
    struct placement *placement;
    const Replica__PeerList *list;
    struct arena *arena;
    struct vector found; /* of struct found */
    status s;
};

static bool find_instance(void *context, struct resource *resource)
{
    struct looking *looking = context;
    struct control *control = looking->placement->options.control;
    unsigned own = peers_own_number(looking->placement->options.peers);
    struct found found = {.name = arena_string(looking->arena, bytes_of(resource->name))};
    looking->s = found.name == NULL
                     ? status_out_of_memory()
                     : sites_find(control, looking->list, own, found.name, &found.sites);
    if (status_is_ok(looking->s))
        looking->s = vector_add(&looking->found, looking->arena, &found, sizeof found);
    return status_is_ok(looking->s);
}

/* Of one moment: an instance has all clusters of the edit that made it. */
static status find_all(void *context)
{
    struct looking *looking = context;
    TRY(control_list(looking->placement->options.control, RESOURCE_INSTANCE, "", "", find_instance,
                     looking));
    return looking->s;
}

static status look_at_all(struct placement *placement, const Replica__PeerList *list,
                          struct arena *arena)
{
    struct looking looking = {
        .placement = placement, .list = list, .arena = arena, .s = status_ok()};
    TRY(control_look(placement->options.control, find_all, &looking));
    const struct found *found = looking.found.items;
    for (size_t i = 0; i < looking.found.count; i++)
        TRY(take(placement, &found[i]));
    return status_ok();
}

struct names {
    struct arena *arena;
    struct vector list; /* of const char * */
    status s;
};

static bool add_name(struct names *names, const char *name)
{
    const char *copy = arena_string(names->arena, bytes_of(name));
    names->s = copy == NULL ? status_out_of_memory()
                            : vector_add(&names->list, names->arena, &copy, sizeof copy);
    return status_is_ok(names->s);
}

struct known {
    struct placement *placement;
    struct names names;
    placed_state state; /* of those that are asked for */
};

static bool add_gone(void *context, const char *name, const struct placed_instance *instance)
{
    struct known *known = context;
    (void)instance;
    return control_has(known->placement->options.control, RESOURCE_INSTANCE, name) ||
           add_name(&known->names, name);
}

static status forget_gone(struct placement *placement, struct arena *arena)
{
    struct known gone = {.placement = placement, .names = {.arena = arena, .s = status_ok()}};
    TRY(placed_visit(placement->placed, add_gone, &gone));
    TRY(gone.names.s);
    const char *const *all = gone.names.list.items;
    for (size_t i = 0; i < gone.names.list.count; i++) {
        placement_cancel_copy(placement, all[i]);
        TRY(placed_forget(placement->placed, all[i]));
    }
    return status_ok();
}

static status look_locked(struct placement *placement, const Replica__PeerList *list,
                          struct arena *arena)
{
    placed_lock_changes(placement->placed);
    status s = look_at_all(placement, list, arena);
    if (status_is_ok(s))
        s = forget_gone(placement, arena);
    placed_unlock_changes(placement->placed);
    return s;
}

/* --- in the edit that makes one --- */

static status note(struct placement *placement, const char *instance, struct arena *arena)
{
    const Replica__PeerList *list = NULL;
    struct sites sites;
    TRY(peers_list(placement->options.peers, arena, &list));
    if (list == NULL)
        return status_ok();
    TRY(sites_find(placement->options.control, list, peers_own_number(placement->options.peers),
                   instance, &sites));
    return sites.made_in != 0 && sites.made_in == sites.instance_made_in
               ? placed_note_new(placement->placed, instance, sites.made_in)
               : status_ok();
}

/* What fails is found by the looker a moment later. */
void placement_note_instance(void *context, const char *name, const struct resource *resource)
{
    struct placement *placement = context;
    if (resource == NULL || !placed_has_begun(placement->placed))
        return;
    struct arena *arena = arena_create(PLACEMENT_ARENA_BYTES);
    status_ignore(arena == NULL ? status_out_of_memory() : note(placement, name, arena));
    arena_destroy(arena);
}

void placement_note_cluster(void *context, const char *name, const struct resource *resource)
{
    struct buffer instance = {0};
    buffer_append_bytes(&instance, sites_instance_of(bytes_of(name)));
    buffer_append_byte(&instance, '\0');
    if (!instance.failed)
        placement_note_instance(context, (const char *)instance.data, resource);
    buffer_free(&instance);
}

/* --- what is to go --- */

static bool add_of_state(void *context, const char *name, const struct placed_instance *instance)
{
    struct known *known = context;
    bool is_it =
        instance->state == known->state && (known->state != PLACED_NOT || instance->has_rows);
    return !is_it || add_name(&known->names, name);
}

static status find_of_state(struct placement *placement, placed_state state, struct arena *arena,
                            struct names *out)
{
    struct known known = {
        .placement = placement, .names = {.arena = arena, .s = status_ok()}, .state = state};
    TRY(placed_visit(placement->placed, add_of_state, &known));
    *out = known.names;
    return known.names.s;
}

/* Changes from one state to another, if it is still that. */
static status change(struct placement *placement, const char *name, placed_state from,
                     const struct placed_instance *to)
{
    struct placed_instance now;
    status s = status_ok();
    placed_lock_changes(placement->placed);
    if (placed_find(placement->placed, bytes_of(name), &now) && now.state == from)
        s = placed_set(placement->placed, name, to);
    placed_unlock_changes(placement->placed);
    return s;
}

/* With all that this server's clients have changed. */
static bool is_here_at(const Replica__TellProgressResponse *answer, unsigned own)
{
    return answer->n_placed == 1 && answer->placed[0]->state == PLACED_HERE &&
           (answer->placed[0]->lacks >> own & 1) == 0;
}

/* UNAVAILABLE: not at all that are to have them. */
static status check_others(struct placement *placement, const Replica__PeerList *list,
                           const char *name, struct arena *arena)
{
    struct sites sites;
    unsigned own = peers_own_number(placement->options.peers);
    const char *names[] = {arena_string(arena, bytes_of(name))};
    TRY(sites_find(placement->options.control, list, own, name, &sites));
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        const Replica__TellProgressResponse *answer;
        if (!sites_has(&sites, i))
            continue;
        if (i == own || names[0] == NULL || placement_is_stopping(placement))
            return status_make(STATUS_UNAVAILABLE, "not now");
        TRY(progress_ask(placement->options.peers, i, names, 1, arena, &answer));
        if (!is_here_at(answer, own))
            return status_make(STATUS_UNAVAILABLE, "they are not all there yet");
    }
    return status_ok();
}

static status let_leave(struct placement *placement, const Replica__PeerList *list,
                        struct arena *arena)
{
    const struct placed_instance gone = {.state = PLACED_NOT, .has_rows = true};
    struct names names;
    TRY(find_of_state(placement, PLACED_LEAVING, arena, &names));
    const char *const *all = names.list.items;
    for (size_t i = 0; i < names.list.count; i++) {
        status s = check_others(placement, list, all[i], arena);
        if (status_is_ok(s))
            s = change(placement, all[i], PLACED_LEAVING, &gone);
        status_free(s); /* in the next turn, then */
    }
    return status_ok();
}

static status clear_left(struct placement *placement, struct arena *arena)
{
    const struct placed_instance gone = {.state = PLACED_NOT};
    struct names names;
    TRY(find_of_state(placement, PLACED_NOT, arena, &names));
    const char *const *all = names.list.items;
    for (size_t i = 0; i < names.list.count; i++) {
        TRY(placement_clear(placement, all[i]));
        TRY(change(placement, all[i], PLACED_NOT, &gone));
        log_info(placement->options.log, "an instance's rows are here no more",
                 LOG_STR("instance", all[i]));
    }
    return status_ok();
}

/* --- a turn --- */

/* What was seen last is taken before it is looked at. */
static bool is_to_look(struct placement *placement)
{
    uint64_t edits = control_edit_count(placement->options.control);
    uint64_t generation = peers_generation(placement->options.peers);
    bool is_same =
        placement->is_fresh && edits == placement->edits && generation == placement->generation;
    placement->edits = edits;
    placement->generation = generation;
    placement->is_fresh = false;
    return !is_same;
}

static status take_turn(struct placement *placement, struct arena *arena)
{
    const Replica__PeerList *list = NULL;
    TRY(peers_list(placement->options.peers, arena, &list));
    if (list == NULL)
        return status_ok();
    bool is_to = is_to_look(placement);
    if (is_to)
        TRY(look_locked(placement, list, arena));
    TRY(let_leave(placement, list, arena));
    TRY(clear_left(placement, arena));
    if (is_to || placement->awaits_clusters)
        TRY(creations_look(placement, list, arena, &placement->awaits_clusters));
    placement->is_fresh = true;
    return status_ok();
}

status placement_look(struct placement *placement)
{
    if (peers_own_number(placement->options.peers) == 0 || !placed_has_begun(placement->placed))
        return status_ok();
    struct arena *arena = arena_create(PLACEMENT_ARENA_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    status s = take_turn(placement, arena);
    arena_destroy(arena);
    return s;
}
