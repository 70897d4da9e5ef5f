/* See tell_dropped.h.
 *
 * Rows go in lots, each one commit, which ends its batch (COMMIT_TELL). A lot is made without a
 * lock: which of its rows are owed is looked at when it has its place, on the commit thread; the
 * others were told by writes before it. What is told of an owed row is right, since nobody has
 * changed it since the drop.
 *
 * Rows that are out of service are passed over: nobody can tell what they had. */
#include "cluster/stream/tell_dropped.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/row_families.h"
#include "cluster/stream/telling.h"
#include "stream/log.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

enum { LOT_ROWS = 512, ROW_OF_PIECE = 128 << 10, LOT_MEMORY = 64 << 20 };

struct lot_row {
    bytes key;
    struct change_list list; /* what it had; empty: nothing, or it was told before its turn */
    bool is_owed;            /* the commit thread's */
};

struct lot {
    struct catalog_change change; /* first: `apply` gets it */
    struct commit commit;
    struct table *table;
    struct table_space *space;
    struct telling_place place; /* when it was made */
    struct arena *arena;
    struct lot_row *rows;
    size_t count;
    size_t most;
    struct buffer next; /* all rows before are told with it */
    bool is_last;       /* that is all rows */
    bool is_void;       /* the commit thread's: there is nobody to be told */
};

/* --- on the commit thread --- */

static bool is_still_told(const struct lot *lot)
{
    const struct table_stream *stream = &table_description(lot->table)->stream;
    return stream->retention_us > 0 && stream->life == lot->place.life &&
           telling_is_of(lot->space->telling, lot->place.sequence);
}

/* False without memory, or if the table takes no writes. */
static bool prepare_row(struct lot *lot, struct lot_row *row, uint32_t ordinal)
{
    struct tablet *tablet;
    status s = table_route_write(lot->table, row->key, &tablet);
    bool is_routed = status_is_ok(s);
    status_free(s);
    if (!is_routed)
        return false;
    const struct stream_append append = {
        .kind = STREAM_DROPPED,
        .tablet = tablet->id,
        .position = {.sequence = lot->commit.sequence, .ordinal = ordinal},
        .version = lot->place.version,
        .row_key = row->key,
        .list = &row->list};
    tablet_release(tablet);
    return row_families_expand_all(table_schema(lot->table), &row->list) &&
           (change_list_is_empty(&row->list) ||
            stream_log_prepare(lot->space->shard->streams, &append));
}

static bool prepare_rows(struct lot *lot)
{
    uint64_t version;
    for (size_t i = 0; i < lot->count; i++) {
        struct lot_row *row = &lot->rows[i];
        row->is_owed = telling_owes(lot->space->telling, lot->place.life, row->key, &version);
        if (row->is_owed && !prepare_row(lot, row, (uint32_t)i))
            return false;
    }
    return true;
}

static void delete_told(struct store_batch *batch, struct lot *lot, const struct lot_row *row)
{
    struct buffer key = {0};
    uint8_t start[TELLING_KEY_SIZE];
    told_row_key(start, keyspace_id(lot->space->keyspace), lot->place.sequence);
    buffer_append(&key, start, sizeof start);
    buffer_append_bytes(&key, row->key);
    if (key.failed)
        store_batch_fail(batch);
    else
        store_batch_delete(batch, lot->space->shard->system, buffer_bytes(&key));
    buffer_free(&key);
}

static void put_records(struct lot *lot, struct store_batch *batch)
{
    struct keyspace *system = lot->space->shard->system;
    uint64_t id = keyspace_id(lot->space->keyspace);
    const struct telling_record record = {.keyspace_id = id,
                                          .sequence = lot->place.sequence,
                                          .version = lot->place.version,
                                          .life = lot->place.life,
                                          .end = lot->is_last ? lot->commit.sequence : 0,
                                          .from = buffer_bytes(&lot->place.first),
                                          .to = buffer_bytes(&lot->place.to),
                                          .next = buffer_bytes(&lot->next)};
    telling_record_put(batch, system, &record);
    if (lot->is_last)
        told_rows_delete(batch, system, id, lot->place.sequence);
    for (size_t i = 0; i < lot->count && !lot->is_last; i++)
        if (!lot->rows[i].is_owed)
            delete_told(batch, lot, &lot->rows[i]);
}

static void tell(struct commit *commit, struct store_batch *batch)
{
    struct lot *lot = LIST_ENTRY(&commit->link, struct lot, commit.link);
    struct stream_log *log = lot->space->shard->streams;
    lot->is_void = !is_still_told(lot);
    if (lot->is_void)
        return;
    if (prepare_rows(lot)) {
        stream_log_append(log, batch);
        put_records(lot, batch);
    } else {
        stream_log_cancel(log);
        store_batch_fail(batch);
    }
}

/* Once the batch is written. */
static void apply(const struct catalog_change *change)
{
    struct lot *lot = (struct lot *)(uintptr_t)change;
    struct telling *telling = lot->space->telling;
    if (lot->is_void)
        return;
    for (size_t i = 0; i < lot->count; i++)
        if (!lot->rows[i].is_owed)
            telling_pass_row(telling, lot->rows[i].key);
    if (lot->is_last)
        telling_end(telling, lot->commit.sequence);
    else
        telling_advance(telling, &lot->next);
}

static status commit_lot(struct lot *lot)
{
    lot->change = (struct catalog_change){.apply = apply, .tables = &lot->table, .table_count = 1};
    lot->commit = (struct commit){.kind = COMMIT_TELL,
                                  .table = lot->table,
                                  .extend = tell,
                                  .catalog = &lot->change,
                                  .frees_space = true};
    return commit_and_wait(lot->space->shard->commits, &lot->commit);
}

/* --- a lot --- */

static status add_row(struct lot *lot, bytes row_key)
{
    struct telling *telling = lot->space->telling;
    struct lot_row *row = &lot->rows[lot->count];
    row->key = arena_copy(lot->arena, row_key);
    if (row->key.data == NULL)
        return status_out_of_memory();
    lot->count++;
    if (telling_has_told(telling, row->key))
        return status_ok();
    const struct row_families_place place = {.table = lot->table,
                                             .shard = lot->space->shard,
                                             .keyspace = lot->space->keyspace,
                                             .drops = telling_before(telling),
                                             .row_key = row->key,
                                             .read_tier = STORE_READ_ANY};
    change_list_add(&row->list, &(struct list_mutation){.kind = LIST_DELETE_ROW});
    (void)row_families_expand(&place, &row->list);
    return row->list.failed ? status_out_of_memory() : status_ok();
}

static void set_next(struct lot *lot, bytes row_key, bool is_behind)
{
    static const uint8_t zero = 0;
    buffer_clear(&lot->next);
    buffer_append_bytes(&lot->next, row_key);
    if (is_behind)
        buffer_append(&lot->next, &zero, sizeof zero);
}

/* `end`: up to where there are rows in service; empty: no bound. */
static status add_rows(struct lot *lot, struct store_cursor *cursor, bytes end)
{
    store_cursor_first(cursor);
    while (lot->count < lot->most && store_cursor_valid(cursor)) {
        TRY(add_row(lot, bytes_from(store_cursor_key(cursor), 1)));
        store_cursor_next(cursor);
    }
    TRY(store_cursor_status(cursor));
    lot->is_last = !store_cursor_valid(cursor) && bytes_equal(end, buffer_bytes(&lot->place.to));
    if (store_cursor_valid(cursor))
        set_next(lot, lot->rows[lot->count - 1].key, true);
    else
        set_next(lot, end, false);
    return lot->next.failed ? status_out_of_memory() : status_ok();
}

static status add_rows_between(struct lot *lot, bytes from, bytes to)
{
    struct store_cursor *cursor;
    TRY(record_cursor_create(lot->space->keyspace, from, to, &cursor));
    status s = add_rows(lot, cursor, to);
    store_cursor_destroy(cursor);
    return s;
}

/* The next rows that are in service. */
static status fill(struct lot *lot)
{
    struct key_bounds bounds;
    bool is_bounded =
        record_bounds(buffer_bytes(&lot->place.next), buffer_bytes(&lot->place.to), &bounds);
    damages_find_open(lot->space->shard->damages, keyspace_id(lot->space->keyspace), &bounds.lower,
                      &bounds.upper);
    bytes lower = buffer_bytes(&bounds.lower), upper = buffer_bytes(&bounds.upper);
    status s = status_ok();
    if (!is_bounded || bounds.lower.failed || bounds.upper.failed)
        s = status_out_of_memory();
    else if (bytes_compare(lower, upper) >= 0)
        lot->is_last = true;
    else
        s = add_rows_between(lot, damage_row(lower), damage_row(upper));
    key_bounds_free(&bounds);
    return s;
}

/* As many as tests say with the size of a piece. */
static size_t most_rows(const struct cluster *cluster)
{
    uint64_t rows = maintenance_piece_bytes(cluster) / ROW_OF_PIECE;
    return rows == 0 ? 1 : rows < LOT_ROWS ? (size_t)rows : LOT_ROWS;
}

static status lot_begin(struct lot *lot, struct table *table, struct table_space *space)
{
    *lot = (struct lot){.table = table, .space = space, .most = most_rows(table->cluster)};
    telling_look(space->telling, &lot->place);
    lot->arena = arena_create(LOT_MEMORY);
    if (lot->arena != NULL)
        lot->rows = arena_zalloc(lot->arena, LOT_ROWS * sizeof *lot->rows);
    bool failed = lot->place.first.failed || lot->place.next.failed || lot->place.to.failed;
    return lot->rows == NULL || failed ? status_out_of_memory() : status_ok();
}

static void lot_free(struct lot *lot)
{
    for (size_t i = 0; i < lot->count; i++)
        change_list_free(&lot->rows[i].list);
    buffer_free(&lot->place.first);
    buffer_free(&lot->place.next);
    buffer_free(&lot->place.to);
    buffer_free(&lot->next);
    arena_destroy(lot->arena);
}

/* `*goes_on`: there is more to tell. */
static status tell_lot(struct table *table, struct table_space *space, bool *goes_on)
{
    struct lot lot;
    status s = lot_begin(&lot, table, space);
    bool has_begun = lot.place.sequence != 0;
    if (status_is_ok(s) && has_begun)
        s = fill(&lot);
    if (status_is_ok(s) && has_begun)
        s = commit_lot(&lot);
    *goes_on = status_is_ok(s) && has_begun && !lot.is_last && !lot.is_void;
    lot_free(&lot);
    return s;
}

/* --- its end --- */

struct writing_off {
    struct catalog_change change; /* first */
    struct commit commit;
    struct table_space *space;
    uint64_t sequence;
};

static void delete_records(struct commit *commit, struct store_batch *batch)
{
    const struct writing_off *off = LIST_ENTRY(&commit->link, struct writing_off, commit.link);
    struct keyspace *system = off->space->shard->system;
    uint64_t id = keyspace_id(off->space->keyspace);
    telling_record_delete(batch, system, id, off->sequence);
    told_rows_delete(batch, system, id, off->sequence);
}

static void end_untold(const struct catalog_change *change)
{
    const struct writing_off *off = (const struct writing_off *)(const void *)change;
    telling_end(off->space->telling, 0);
}

static bool is_to_be_told(const struct table *table, const struct telling_place *place)
{
    const struct table_stream *stream = &table_description(table)->stream;
    return stream->retention_us > 0 && stream->life == place->life;
}

static status write_off(struct table *table, struct table_space *space, uint64_t sequence)
{
    struct writing_off off = {.change = {.apply = end_untold, .tables = &table, .table_count = 1},
                              .space = space,
                              .sequence = sequence};
    off.commit = (struct commit){.kind = COMMIT_TELL,
                                 .table = table,
                                 .extend = delete_records,
                                 .catalog = &off.change,
                                 .frees_space = true};
    TRY(commit_and_wait(space->shard->commits, &off.commit));
    telling_await_work(space->telling);
    return status_ok();
}

status tell_dropped_write_off(struct table *table, struct table_space *space)
{
    DCHECK(check_is_held(&table->cluster->admin));
    struct telling_place place;
    telling_look(space->telling, &place);
    status s = status_ok();
    if (place.sequence != 0 && !is_to_be_told(table, &place))
        s = write_off(table, space, place.sequence);
    buffer_free(&place.first);
    buffer_free(&place.next);
    buffer_free(&place.to);
    telling_let_go(space->telling, space->drops);
    return s;
}

bool tell_dropped_is_under_way(const struct table *table)
{
    bool is_so = false;
    for (size_t i = 0; i < table->space_count; i++)
        is_so = is_so || telling_has_begun(table->spaces[i].telling);
    return is_so;
}

/* --- a piece --- */

status tell_dropped_piece(struct table *table, struct table_space *space)
{
    struct cluster *cluster = table->cluster;
    bool goes_on;
    telling_begin_work(space->telling);
    status s = tell_lot(table, space, &goes_on);
    telling_end_work(space->telling);
    if (goes_on || !status_is_ok(s))
        return s;
    pthread_mutex_lock(&cluster->admin);
    if (!table->is_dropped)
        s = tell_dropped_write_off(table, space);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* --- spans --- */

struct forgetting {
    struct commit commit;
    struct table_space *space;
    uint64_t sequence;
};

static void delete_span(struct commit *commit, struct store_batch *batch)
{
    const struct forgetting *forgetting = LIST_ENTRY(&commit->link, struct forgetting, commit.link);
    telling_record_delete(batch, forgetting->space->shard->system,
                          keyspace_id(forgetting->space->keyspace), forgetting->sequence);
}

/* What cannot be deleted is found again. */
static void forget_in(const struct table *table, struct table_space *space)
{
    uint64_t life = table_description(table)->stream.life;
    uint64_t oldest = stream_log_oldest(space->shard->streams);
    struct forgetting forgetting = {.space = space};
    while (telling_find_outdated(space->telling, life, oldest, &forgetting.sequence)) {
        forgetting.commit =
            (struct commit){.kind = COMMIT_INTERNAL, .extend = delete_span, .frees_space = true};
        status s = commit_and_wait(space->shard->commits, &forgetting.commit);
        bool is_gone = status_is_ok(s);
        status_free(s);
        if (!is_gone)
            return;
        telling_forget(space->telling, forgetting.sequence);
    }
}

void tell_dropped_forget(struct table *table)
{
    for (size_t i = 0; i < table->space_count; i++)
        if (telling_has_any(table->spaces[i].telling))
            forget_in(table, &table->spaces[i]);
}
