/* ListDamagedRanges, RepairTable: what is out of service, and the end of that. */
#include "bigtable/timestamps.h"
#include "insight/methods.h"
#include "sql/vector.h"

#include <inttypes.h>
#include <stdio.h>

struct listing {
    struct arena *arena;
    struct vector ranges; /* Insight__DamagedRange * */
};

static status copy_keys(struct arena *arena, const struct lost_rows *lost,
                        Insight__DamagedRange *out)
{
    bytes from = arena_copy(arena, lost->from), to = arena_copy(arena, lost->to);
    if (from.data == NULL || to.data == NULL)
        return status_out_of_memory();
    out->start_key = proto_data(from);
    out->end_key = proto_data(to);
    return status_ok();
}

static status add(void *context, const struct lost_rows *lost)
{
    struct listing *listing = context;
    struct arena *arena = listing->arena;
    Insight__DamagedRange *range;
    char file[32];
    PROTO_NEW(arena, range, INSIGHT__DAMAGED_RANGE__INIT);
    snprintf(file, sizeof file, "%06" PRIu64 ".sst", lost->file);
    TRY(copy_keys(arena, lost, range));
    range->large_cells = lost->is_large_cells;
    range->table = arena_string(arena, bytes_of(lost->table));
    range->file = arena_string(arena, bytes_of(file));
    range->text = arena_string(arena, bytes_of(lost->words));
    if (range->table == NULL || range->file == NULL || range->text == NULL)
        return status_out_of_memory();
    TRY(timestamp_message(lost->found_us, arena, &range->find_time));
    return vector_add(&listing->ranges, arena, &range, sizeof range);
}

status list_damaged_ranges(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ListDamagedRangesRequest *message = (const void *)request->message;
    struct listing listing = {.arena = request->arena};
    Insight__ListDamagedRangesResponse *list;
    TRY(insight_check_server(message->parent));
    TRY(cluster_list_damage(request->bigtable->cluster, add, &listing));
    PROTO_NEW(request->arena, list, INSIGHT__LIST_DAMAGED_RANGES_RESPONSE__INIT);
    list->ranges = listing.ranges.items;
    list->n_ranges = listing.ranges.count;
    *response = &list->base;
    return status_ok();
}

/* --- repair --- */

struct repair {
    const struct admin_request *request;
    struct listing listing;
    struct audit_changes *changes; /* NULL: none yet, or nobody asks */
};

/* Without memory the audit log says less; the log says it all the same. */
static void note_given_up(struct repair *repair, const char *words)
{
    struct access_caller *caller = repair->request->caller;
    if (caller != NULL && repair->changes == NULL)
        caller->changes = repair->changes =
            arena_zalloc(repair->request->arena, sizeof *repair->changes);
    if (repair->changes != NULL)
        AUDIT_CHANGE(repair->changes, LOG_STR("action", "GIVE_UP"), LOG_STR("rows", words));
}

static bytes principal_of(const struct access_caller *caller)
{
    return caller == NULL || caller->principal.size == 0 ? bytes_of("-") : caller->principal;
}

/* Before it is so: what is gone has been told of, whatever happens next. */
static status give_up(void *context, const struct lost_rows *lost)
{
    struct repair *repair = context;
    const struct admin_request *request = repair->request;
    TRY(add(&repair->listing, lost));
    Insight__DamagedRange *const *ranges = repair->listing.ranges.items;
    const char *words = ranges[repair->listing.ranges.count - 1]->text;
    log_warn(insight_of(request)->log, "rows are given up", LOG_STR("why", words),
             LOG_BYTES("principal", principal_of(request->caller)));
    note_given_up(repair, words);
    return status_ok();
}

status repair_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__RepairTableRequest *message = (const void *)request->message;
    struct repair repair = {.request = request, .listing = {.arena = request->arena}};
    const struct table_repair_options options = {
        .accepts_old_data = message->accept_old_data,
        .is_trial = message->validate_only,
        .lost = message->validate_only ? add : give_up,
        .context = message->validate_only ? (void *)&repair.listing : &repair};
    Insight__RepairTableResponse *answer;
    struct table *table;
    PROTO_NEW(request->arena, answer, INSIGHT__REPAIR_TABLE_RESPONSE__INIT);
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->name), &table));
    status s = table_repair(table, &options);
    table_release(table);
    answer->lost = repair.listing.ranges.items;
    answer->n_lost = repair.listing.ranges.count;
    *response = &answer->base;
    return s;
}
