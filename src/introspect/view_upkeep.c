/* ListViewUpkeep: how materialized views are kept up to date. */
#include "base/vector.h"
#include "bigtable/names.h"
#include "introspect/methods.h"
#include "views/views.h"
#include "wire/timestamps.h"

struct listing {
    struct arena *arena;
    struct vector views; /* Insight__ViewUpkeep * */
    status result;
};

static Insight__ViewUpkeep__State state_of(enum view_state state)
{
    static const Insight__ViewUpkeep__State states[] = {
        [VIEW_POPULATING] = INSIGHT__VIEW_UPKEEP__STATE__POPULATING,
        [VIEW_READY] = INSIGHT__VIEW_UPKEEP__STATE__READY,
        [VIEW_RECONCILING] = INSIGHT__VIEW_UPKEEP__STATE__RECONCILING,
        [VIEW_FAILED] = INSIGHT__VIEW_UPKEEP__STATE__FAILED,
    };
    return states[state];
}

static status copy_texts(struct arena *arena, const struct view_status *from,
                         Insight__ViewUpkeep *to)
{
    to->name = arena_string(arena, bytes_of(from->name));
    to->source = arena_string(arena, bytes_of(from->source));
    to->text = arena_string(arena, bytes_of(from->words));
    bool failed = to->name == NULL || to->source == NULL || to->text == NULL;
    return failed ? status_out_of_memory() : duration_message(from->lag_us, arena, &to->lag);
}

static status add(struct listing *listing, const struct view_status *from)
{
    struct arena *arena = listing->arena;
    Insight__ViewUpkeep *to;
    PROTO_NEW(arena, to, INSIGHT__VIEW_UPKEEP__INIT);
    TRY(copy_texts(arena, from, to));
    to->state = state_of(from->state);
    to->readable = from->is_readable;
    to->rows_done = (int64_t)from->progress.rows_done;
    to->rows = (int64_t)from->progress.rows;
    to->user_errors = (int64_t)from->user_errors;
    to->excluded_rows = (int64_t)from->excluded_rows;
    to->excluded_groups = (int64_t)from->excluded_groups;
    to->system_errors = (int64_t)from->system_errors;
    to->changes = (int64_t)from->changes;
    to->bytes = (int64_t)from->bytes;
    to->intermediate_bytes = (int64_t)from->record_bytes;
    return vector_add(&listing->views, arena, &to, sizeof to);
}

static bool visit(void *context, const struct view_status *from)
{
    struct listing *listing = context;
    listing->result = add(listing, from);
    return status_is_ok(listing->result);
}

status list_view_upkeep(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ListViewUpkeepRequest *message = (const void *)request->message;
    struct listing listing = {.arena = request->arena};
    Insight__ListViewUpkeepResponse *list;
    const char *prefix = name_join(request->arena, message->parent, "materializedViews", "");
    if (prefix == NULL)
        return status_out_of_memory();
    PROTO_NEW(request->arena, list, INSIGHT__LIST_VIEW_UPKEEP_RESPONSE__INIT);
    views_visit(request->bigtable->views, bytes_of(prefix), visit, &listing);
    TRY(listing.result);
    list->views = listing.views.items;
    list->n_views = listing.views.count;
    *response = &list->base;
    return status_ok();
}
