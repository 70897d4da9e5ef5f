/* ListDamagedRanges, RepairTable: what is out of service, and the end of that. */
#include "base/vector.h"
#include "datastore/index/index_check.h"
#include "datastore/index/index_heal.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

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

/* The same of what is, or would be, given up. */
static status add_given_up(void *context, const struct lost_rows *lost)
{
    struct lost_rows told = *lost;
    struct buffer words = {0};
    if (!ds_is_database_table(lost->table))
        return add(context, lost);
    buffer_append_format(&words, "%s", lost->words);
    ds_heal_describe(lost, &words);
    buffer_append_byte(&words, 0);
    told.words = (const char *)words.data;
    status s = words.failed ? status_out_of_memory() : add(context, &told);
    buffer_free(&words);
    return s;
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
    const Insight__RepairTableRequest *message;
    struct listing listing;
    struct audit_changes *changes; /* NULL: none yet, or not wanted */
};

/* Without memory the audit log says less; the log says it all the same. */
static struct audit_changes *changes_of(struct repair *repair)
{
    struct access_caller *caller = repair->request->caller;
    if (caller != NULL && repair->changes == NULL)
        caller->changes = repair->changes =
            arena_zalloc(repair->request->arena, sizeof *repair->changes);
    return repair->changes;
}

static void note_change(struct repair *repair, const char *action, const char *words)
{
    struct audit_changes *changes = changes_of(repair);
    if (changes != NULL)
        AUDIT_CHANGE(changes, LOG_STR("action", action), LOG_STR("rows", words));
}

static bytes principal_of(const struct access_caller *caller)
{
    return caller == NULL || caller->principal.size == 0 ? bytes_of("-") : caller->principal;
}

static Insight__DamagedRange *last_of(const struct repair *repair)
{
    Insight__DamagedRange *const *ranges = repair->listing.ranges.items;
    return ranges[repair->listing.ranges.count - 1];
}

/* Before it is so: what is gone has been told of, whatever happens next. */
static status give_up(void *context, const struct lost_rows *lost)
{
    struct repair *repair = context;
    const struct admin_request *request = repair->request;
    TRY(add_given_up(&repair->listing, lost));
    const char *words = last_of(repair)->text;
    log_warn(insight_of(request)->log, "rows are given up", LOG_STR("why", words),
             LOG_TEXT("principal", principal_of(request->caller)));
    note_change(repair, "GIVE_UP", words);
    return status_ok();
}

static status repair_of_itself(struct repair *repair, struct table *table)
{
    const bool is_trial = repair->message->validate_only;
    const struct table_repair_options options = {
        .accepts_old_data = repair->message->accept_old_data,
        .is_trial = is_trial,
        .lost = is_trial ? add_given_up : give_up,
        .context = is_trial ? (void *)&repair->listing : repair};
    return table_repair(table, &options);
}

/* --- of a database --- */

/* The repair ends with its call: all is out of service then, and told again the next time. */
static bool is_wanted(const void *context)
{
    const struct repair *repair = context;
    const struct grpc_call *call = repair->request->call;
    return call == NULL || !grpc_call_is_cancelled(call);
}

static status open_heal(struct repair *repair, struct table *table, struct ds_heal *heal)
{
    const struct admin_request *request = repair->request;
    TRY(ds_heal_open(insight_of(request)->datastore, table, request->arena, heal));
    heal->goes_on = is_wanted;
    heal->context = repair;
    return status_ok();
}

static void log_healed(const struct repair *repair, const struct table *table,
                       const struct ds_heal *heal)
{
    log_warn(insight_of(repair->request)->log, "indexes follow from what was given up",
             LOG_STR("table", table_name(table)), LOG_INT("removed", heal->removed),
             LOG_INT("written", heal->written));
}

static status repair_database(struct repair *repair, struct table *table)
{
    struct ds_heal heal;
    TRY(open_heal(repair, table, &heal));
    const struct table_repair_options options = {
        .lost = give_up, .context = repair, .heal = ds_heal_run, .heal_context = &heal};
    TRY(table_repair(table, &options));
    log_healed(repair, table, &heal);
    return status_ok();
}

/* --- with rows from a backup --- */

static void note_place(struct repair *repair)
{
    const Insight__RepairTableRequest *message = repair->message;
    struct audit_changes *changes = changes_of(repair);
    if (changes != NULL)
        AUDIT_CHANGE(changes, LOG_STR("action", "READ_BACKUP"), LOG_STR("place", message->place),
                     LOG_STR("backup", message->backup));
}

static status fill(void *context, const struct lost_rows *lost, uint64_t count)
{
    struct repair *repair = context;
    const struct admin_request *request = repair->request;
    TRY(add(&repair->listing, lost));
    Insight__DamagedRange *range = last_of(repair);
    range->in_backup = (int64_t)count;
    if (repair->message->validate_only)
        return status_ok();
    log_warn(insight_of(request)->log, "rows come from a backup", LOG_STR("why", range->text),
             LOG_STR("place", repair->message->place),
             LOG_TEXT("principal", principal_of(request->caller)));
    note_change(repair, "FILL", range->text);
    return status_ok();
}

static bool is_awaited(void *context)
{
    const struct repair *repair = context;
    const struct grpc_call *call = repair->request->call;
    return call == NULL || !grpc_call_is_cancelled(call);
}

static status fill_from(const struct repair_source *source, struct repair *repair,
                        struct table *table, struct repair_former *former)
{
    const Insight__RepairTableRequest *message = repair->message;
    struct ds_heal heal;
    struct repair_order order = {.table = table,
                                 .place = message->place,
                                 .backup = message->backup,
                                 .is_trial = message->validate_only,
                                 .tell = fill,
                                 .goes_on = is_awaited,
                                 .context = repair};
    if (!ds_is_database_table(message->name) || message->validate_only)
        return source->repair(source->context, &order, former);
    TRY(open_heal(repair, table, &heal));
    heal.is_filled = true;
    order.heal = ds_heal_run;
    order.heal_context = &heal;
    TRY(source->repair(source->context, &order, former));
    log_healed(repair, table, &heal);
    return status_ok();
}

static status repair_from_place(struct repair *repair, struct table *table,
                                Insight__RepairTableResponse *answer)
{
    const struct repair_source *source = &insight_of(repair->request)->repairs;
    struct arena *arena = repair->request->arena;
    struct repair_former former;
    if (source->repair == NULL)
        return status_make(STATUS_UNIMPLEMENTED, "there are no backups here to repair tables from");
    TRY(fill_from(source, repair, table, &former));
    answer->backup = arena_string(arena, bytes_of(former.name));
    if (answer->backup == NULL)
        return status_out_of_memory();
    return former.name[0] == '\0'
               ? status_ok()
               : timestamp_message(former.instant_us, arena, &answer->backup_time);
}

/* --- either --- */

static status check_place(const Insight__RepairTableRequest *message)
{
    if (message->accept_old_data && ds_is_database_table(message->name))
        return status_make(STATUS_UNIMPLEMENTED,
                           "old data of a database is accepted only while the server is stopped, "
                           "since its indexes are repaired then, too: trestle repair DIR "
                           "--accept-old-data");
    if (message->place[0] == '\0')
        return message->backup[0] == '\0'
                   ? status_ok()
                   : status_make(STATUS_INVALID_ARGUMENT, "a backup is named, and no place");
    if (message->accept_old_data)
        return status_make(STATUS_INVALID_ARGUMENT, "place and accept_old_data exclude each other");
    return status_ok();
}

static status repair_unclaimed(struct repair *repair, struct table *table,
                               Insight__RepairTableResponse *answer)
{
    const Insight__RepairTableRequest *message = repair->message;
    if (message->place[0] != '\0')
        return repair_from_place(repair, table, answer);
    return ds_is_database_table(message->name) && !message->validate_only
               ? repair_database(repair, table)
               : repair_of_itself(repair, table);
}

static status repair_claimed(struct repair *repair, struct table *table,
                             Insight__RepairTableResponse *answer)
{
    TRY(table_claim_repair(table));
    status s = repair_unclaimed(repair, table, answer);
    table_end_repair(table);
    return s;
}

status repair_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__RepairTableRequest *message = (const void *)request->message;
    struct repair repair = {
        .request = request, .message = message, .listing = {.arena = request->arena}};
    Insight__RepairTableResponse *answer;
    struct table *table;
    PROTO_NEW(request->arena, answer, INSIGHT__REPAIR_TABLE_RESPONSE__INIT);
    if (message->place[0] != '\0')
        note_place(&repair);
    TRY(check_place(message));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->name), &table));
    status s = message->validate_only ? repair_unclaimed(&repair, table, answer)
                                      : repair_claimed(&repair, table, answer);
    table_release(table);
    answer->lost = repair.listing.ranges.items;
    answer->n_lost = repair.listing.ranges.count;
    *response = &answer->base;
    return s;
}
