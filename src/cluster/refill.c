/* See refill.h.
 *
 * The range is closed all the while, so no client sees a part of it; a refill that ends early is
 * done again from its beginning, which deletes the range once more. It goes through the commit
 * queue, as all that an archive is to have.
 *
 *     delete all of it, then in batches: large cells ──► records
 *     delete large cells, then in batches: row by row, large cells
 *
 * A record comes after its large cells: what deletes the row meanwhile deletes them through it.
 * Rows that are dropped meanwhile (DropRowRange, which deletes them where something is damaged)
 * must not come back: the range is looked at with every row lock held, under which that is
 * committed. */
#include "cluster/refill.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"
#include "tablet/overflow.h"

#include <inttypes.h>
#include <stdio.h>

enum { BATCH_BYTES = 2 << 20 };

struct refill {
    struct commit commit;
    struct shard *shard;
    struct keyspace *keyspace;
    const struct foreign_table *source;
    struct damage_part rows;
    struct lost_cells cells;
    struct store_batch *batch;
    size_t bytes; /* in the batch */
    bool is_locked;
    struct buffer key;  /* of a record */
    struct buffer left; /* of a value of which something was dropped */
    struct buffer left_of_row;
};

/* --- whether it fits --- */

static bool has_same_families(const struct schema *then, const struct schema *now)
{
    if (then->next_family_id > now->next_family_id)
        return false;
    for (size_t i = 0; i < then->family_count; i++) {
        const struct family *family = schema_family(now, then->families[i].id);
        if (family != NULL && !bytes_equal(family->name, then->families[i].name))
            return false;
    }
    return true;
}

static bool is_claimed_name(const struct family *family)
{
    char name[16];
    snprintf(name, sizeof name, "f%" PRIu32, family->id);
    return bytes_equal(family->name, bytes_of(name));
}

/* What was made under its number since the claim is no family of the source's. */
static bool may_be_named_after(const struct schema *then, const struct schema *now)
{
    for (size_t i = 0; i < then->family_count; i++) {
        const struct family *former = &then->families[i], *family = schema_family(now, former->id);
        if (family != NULL && !is_claimed_name(family) && !bytes_equal(family->name, former->name))
            return false;
    }
    return true;
}

bool refill_may_lack_names(const struct schema *schema)
{
    for (size_t i = 0; i < schema->family_count; i++)
        if (is_claimed_name(&schema->families[i]))
            return true;
    return schema->family_count == 0;
}

static bool is_claimed(const struct foreign_table *source, const struct refill_target *target)
{
    return source->record->id != target->id && keyspace_id(source->keyspace) == target->keyspace_id;
}

status refill_check(const struct foreign_table *source, const struct refill_target *target)
{
    const struct table_record *record = source->record;
    const struct schema *schema = target->schema;
    bool is_same = record->id == target->id || is_claimed(source, target);
    bool (*fits)(const struct schema *then, const struct schema *now) =
        record->id == target->id ? has_same_families : may_be_named_after;
    if (is_same && (schema == NULL || fits(record->schema, schema)))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the backup has another table that was called %s: this one was made later, "
                       "or on another server",
                       record->name);
}

uint64_t table_keyspace_id(struct table *table)
{
    struct tablet *tablet = table_route(table, bytes_make(NULL, 0));
    uint64_t id = keyspace_id(tablet->keyspace);
    tablet_release(tablet);
    return id;
}

/* --- the names of a table that was claimed --- */

/* The last number that a family of the source's has had, dropped or not, is given to no other:
 * cells of one that was dropped may still be there. `is_last`: of two changes, the first of which
 * makes a family of that number. */
struct naming {
    const struct schema *then;
    bool is_last;
    char placeholder[16];
};

static bool is_to_be_placed(const struct naming *naming, const struct schema *now)
{
    uint32_t last = naming->then->next_family_id - 1;
    return !naming->is_last && last >= now->next_family_id &&
           schema_family(naming->then, last) == NULL;
}

/* A claim gives no rules. One that has its name is no news, and may have lost its rule since. */
static const struct gc_rule *rule_of(const struct family *then, const struct family *now)
{
    bool is_new = now == NULL || (now->gc == NULL && is_claimed_name(now));
    return is_new ? then->gc : now->gc;
}

bool refill_names(const struct foreign_table *source, const struct refill_target *target)
{
    const struct schema *then = source->record->schema;
    bool names = false;
    for (size_t i = 0; i < then->family_count; i++) {
        const struct family *former = &then->families[i];
        const struct family *now = schema_family(target->schema, former->id);
        names |=
            now == NULL || !bytes_equal(now->name, former->name) || now->gc != rule_of(former, now);
    }
    return names && is_claimed(source, target);
}

/* Its own families that the source has not were made since. */
static bool is_kept(const struct naming *naming, const struct family *family)
{
    return schema_family(naming->then, family->id) == NULL &&
           !bytes_equal(family->name, bytes_of(naming->placeholder));
}

static status name_families(void *context, const struct table_info *now, struct arena *arena,
                            struct table_change *next)
{
    struct naming *naming = context;
    const struct schema *then = naming->then;
    size_t count = then->family_count;
    struct family *families =
        arena_zalloc(arena, (count + now->schema->family_count + 1) * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const struct family *family = schema_family(now->schema, then->families[i].id);
        families[i] = then->families[i];
        families[i].gc = rule_of(&then->families[i], family);
    }
    for (size_t i = 0; i < now->schema->family_count; i++)
        if (is_kept(naming, &now->schema->families[i]))
            families[count++] = now->schema->families[i];
    if (is_to_be_placed(naming, now->schema)) {
        uint32_t last = then->next_family_id - 1;
        snprintf(naming->placeholder, sizeof naming->placeholder, "f%" PRIu32, last);
        families[count++] = (struct family){.id = last, .name = bytes_of(naming->placeholder)};
    }
    *next = (struct table_change){.families = families,
                                  .family_count = count,
                                  .deletion_protection = now->deletion_protection,
                                  .extra = now->extra,
                                  .stream_retention_us = now->stream_retention_us};
    return status_ok();
}

static status change_twice(struct table *table, struct naming *naming, struct arena *arena)
{
    TRY(table_change_schema(table, arena, name_families, naming));
    naming->is_last = true;
    return naming->placeholder[0] == '\0'
               ? status_ok()
               : table_change_schema(table, arena, name_families, naming);
}

status refill_name_families(struct table *table, const struct foreign_table *source)
{
    enum { CHANGE_MEMORY = 16 << 20 };
    const struct refill_target target = {table->id, table_keyspace_id(table), NULL};
    if (source == NULL || !is_claimed(source, &target))
        return status_ok();
    struct naming naming = {.then = source->record->schema};
    struct arena *arena = arena_create(CHANGE_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = change_twice(table, &naming, arena);
    arena_destroy(arena);
    return s;
}

/* --- reading the source --- */

struct reading {
    status (*visit)(void *context, bytes key, bytes value);
    void *context;
};

/* Without what had been dropped there. */
static status read_all(const struct foreign_table *source, struct store_cursor *cursor,
                       struct buffer *scratch, const struct reading *reading)
{
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        bytes key = store_cursor_key(cursor), value = store_cursor_value(cursor);
        bool is_left;
        TRY(row_leave_out_dropped(source->drops, key, &value, scratch, &is_left));
        if (is_left)
            TRY(reading->visit(reading->context, key, value));
    }
    return store_cursor_status(cursor);
}

static status read_source(const struct foreign_table *source, bytes from, bytes to,
                          const struct reading *reading)
{
    const struct row_rules rules = {.drops = source->drops};
    const struct store_cursor_options options = {
        .lower = from, .upper = to, .read_tier = STORE_READ_ANY, .rules = &rules};
    struct store_cursor *cursor;
    struct buffer scratch = {0};
    TRY(store_cursor_create(source->keyspace, &options, &cursor));
    status s = read_all(source, cursor, &scratch, reading);
    store_cursor_destroy(cursor);
    buffer_free(&scratch);
    return s;
}

static status count_entry(void *context, bytes key, bytes value)
{
    uint64_t *count = context;
    (void)key, (void)value;
    *count += 1;
    return status_ok();
}

static status count_between(const struct foreign_table *source, const struct key_bounds *bounds,
                            uint64_t *count)
{
    const struct reading counting = {.visit = count_entry, .context = count};
    *count = 0;
    return read_source(source, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper),
                       &counting);
}

status refill_count(const struct foreign_table *source, bytes from, bytes to, uint64_t *rows)
{
    struct key_bounds records, overflow;
    uint64_t cells;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = overflow_bounds(from, to, &overflow) && is_bounded;
    status s = is_bounded ? count_between(source, &records, rows) : status_out_of_memory();
    if (status_is_ok(s))
        s = count_between(source, &overflow, &cells);
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}

/* Counts the records of the rows from `first` to `last` (inclusive; empty: no bound). */
static status count_records(const struct foreign_table *source, bytes first, bytes last,
                            uint64_t *count)
{
    struct buffer end = {0};
    struct key_bounds records;
    buffer_append_bytes(&end, last);
    if (last.size > 0)
        buffer_append_byte(&end, 0);
    bool is_bounded = record_bounds(first, buffer_bytes(&end), &records) && !end.failed;
    status s = is_bounded ? count_between(source, &records, count) : status_out_of_memory();
    key_bounds_free(&records);
    buffer_free(&end);
    return s;
}

status refill_count_cells(const struct foreign_table *source, const struct refill_cells *cells,
                          uint64_t *count)
{
    const struct reading counting = {.visit = count_entry, .context = count};
    uint64_t rows;
    *count = 0;
    TRY(read_source(source, cells->from, cells->to, &counting));
    return count_records(source, cells->first, cells->last, &rows);
}

/* --- batches --- */

static void append_batch(struct commit *commit, struct store_batch *batch)
{
    struct refill *refill = LIST_ENTRY(&commit->link, struct refill, commit.link);
    store_batch_append(refill->shard->store, batch, refill->batch);
}

static void unlock(void *context)
{
    struct refill *refill = context;
    DCHECK(refill->is_locked);
    row_locks_release_all(refill->shard->locks, refill->commit.sequence);
    refill->is_locked = false;
}

/* Writers wait until it has its place in the queue, and not for the disk. */
static status commit_if_not_dropped(struct refill *refill)
{
    DCHECK(!refill->is_locked);
    struct shard *shard = refill->shard;
    row_locks_acquire_all(shard->locks);
    refill->is_locked = true;
    status s = shard->refilling.is_dropped
                   ? status_make(STATUS_UNAVAILABLE,
                                 "rows of the range were dropped meanwhile: repair it again")
                   : commit_and_wait_unlocked(shard->commits, &refill->commit, unlock, refill);
    if (refill->is_locked)
        unlock(refill);
    return s;
}

static status commit_batch(struct refill *refill)
{
    DCHECK(!refill->is_locked);
    if (store_batch_failed(refill->batch))
        return status_out_of_memory();
    refill->commit =
        (struct commit){.kind = COMMIT_DROP, .keyspace = refill->keyspace, .extend = append_batch};
    status s = commit_if_not_dropped(refill);
    store_batch_clear(refill->batch);
    refill->bytes = 0;
    return s;
}

static status count_bytes(struct refill *refill, bytes key, bytes value)
{
    refill->bytes += key.size + value.size;
    return refill->bytes < BATCH_BYTES ? status_ok() : commit_batch(refill);
}

static status put(void *context, bytes key, bytes value)
{
    struct refill *refill = context;
    store_batch_put(refill->batch, refill->keyspace, key, value);
    return count_bytes(refill, key, value);
}

static status put_between(struct refill *refill, const struct key_bounds *bounds)
{
    const struct reading putting = {.visit = put, .context = refill};
    return read_source(refill->source, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper),
                       &putting);
}

/* --- rows --- */

static void append_deletion(struct refill *refill, bytes from, bytes to)
{
    DCHECK(bytes_compare(from, to) < 0);
    store_batch_delete_range(refill->batch, refill->keyspace, from, to);
}

static status refill_bounded(struct refill *refill, const struct key_bounds *records,
                             const struct key_bounds *overflow)
{
    append_deletion(refill, buffer_bytes(&records->lower), buffer_bytes(&records->upper));
    append_deletion(refill, buffer_bytes(&overflow->lower), buffer_bytes(&overflow->upper));
    TRY(put_between(refill, overflow));
    TRY(put_between(refill, records));
    return commit_batch(refill); /* with the last, or the deletions alone */
}

static status refill_rows(struct refill *refill)
{
    bytes from = damage_row(refill->rows.from), to = damage_row(refill->rows.to);
    struct key_bounds records, overflow;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = overflow_bounds(from, to, &overflow) && is_bounded;
    status s = is_bounded ? refill_bounded(refill, &records, &overflow) : status_out_of_memory();
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}

/* --- large cells --- */

/* Beside cells that count, such may lie in the source that had been dropped there. */
static status put_cell(void *context, bytes key, bytes value)
{
    struct refill *refill = context;
    bool is_left;
    TRY(row_leave_out_dropped(refill->source->drops, key, &value, &refill->left, &is_left));
    return is_left ? put(refill, key, value) : status_ok();
}

/* Onto what was put there, if anything was: the versions decide. It is of a record without what had
 * been dropped. */
static status merge(void *context, bytes key, bytes operand)
{
    struct refill *refill = context;
    store_batch_merge(refill->batch, refill->keyspace, key, operand);
    return count_bytes(refill, key, operand);
}

/* All zeroes without one. */
static struct entry mark_of(bytes record)
{
    struct fragment_reader reader;
    struct entry entry;
    bool has_mark = fragment_reader_start(&reader, record) &&
                    fragment_reader_next(&reader, &entry) && entry.kind == ENTRY_OVERFLOW_MARK;
    return has_mark ? entry : (struct entry){.kind = ENTRY_OVERFLOW_MARK};
}

/* Every write of large cells leaves a mark. */
static bool is_untouched(const struct entry *then, const struct entry *now)
{
    return then->has_overflow && then->version == now->version;
}

static status refill_row_from(struct refill *refill, bytes row_key, bytes record, bytes former)
{
    DCHECK(row_key.size > 0);
    const struct lost_overflow lost = {row_key, refill->cells.part.from, refill->cells.part.to};
    const struct entry now = mark_of(record), then = mark_of(former);
    if (is_untouched(&then, &now))
        return overflow_visit_former(&lost, refill->source->keyspace, former, put_cell, refill);
    TRY(lost_cells_cut_row(&refill->cells, row_key));
    TRY(overflow_visit_former(&lost, refill->source->keyspace, former, put_cell, refill));
    return overflow_visit_moved(&lost, former, now.moved, merge, refill);
}

static status refill_row(void *context, bytes row_key, bytes record)
{
    struct refill *refill = context;
    struct store_value former = {0};
    enum store_presence presence = STORE_ABSENT;
    buffer_clear(&refill->key);
    row_record_key(&refill->key, row_key);
    if (refill->key.failed)
        return status_out_of_memory();
    TRY(store_get(refill->source->keyspace, NULL, buffer_bytes(&refill->key), STORE_READ_ANY,
                  &former, &presence));
    bytes left = former.bytes;
    bool is_left = presence == STORE_FOUND;
    status s = status_ok();
    if (is_left)
        s = row_leave_out_dropped(refill->source->drops, buffer_bytes(&refill->key), &left,
                                  &refill->left_of_row, &is_left);
    if (status_is_ok(s))
        s = is_left ? refill_row_from(refill, row_key, record, left)
                    : lost_cells_cut_row(&refill->cells, row_key);
    store_value_release(&former);
    return s;
}

static status refill_cells(struct refill *refill)
{
    append_deletion(refill, refill->cells.part.from, refill->cells.part.to);
    TRY(lost_cells_each_row(&refill->cells, refill_row, refill));
    return commit_batch(refill);
}

/* --- all of it --- */

/* Versions of what comes are to be in the past, or it would win over what is written later. */
static status check_clock(struct shard *shard, const struct foreign_table *source)
{
    return source->newest_us <= commit_version_us(shard->commits)
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION,
                             "the backup is of a later time than this server's clock shows");
}

static status refill_all(struct refill *refill)
{
    TRY(check_clock(refill->shard, refill->source));
    if (!damage_part_is_empty(refill->cells.part))
        TRY(refill_cells(refill));
    return damage_part_is_empty(refill->rows) ? status_ok() : refill_rows(refill);
}

static void watch_drops(struct shard *shard, const struct damage_record *record)
{
    DCHECK(record == NULL || shard->refilling.record == NULL);
    row_locks_acquire_all(shard->locks);
    shard->refilling.record = record;
    shard->refilling.is_dropped = false;
    row_locks_release_all(shard->locks, commit_applied(shard->commits));
}

void refill_note_drop(struct shard *shard, const struct keyspace *keyspace, bytes from, bytes to)
{
    const struct damage_record *record = shard->refilling.record;
    DCHECK(row_locks_are_all_held(shard->locks));
    if (record == NULL || record->keyspace_id != keyspace_id(keyspace))
        return;
    bool begins_before = record->to.size == 0 || bytes_compare(from, record->to) < 0;
    if (begins_before && bytes_compare(to, record->from) > 0)
        shard->refilling.is_dropped = true;
}

status refill_run(struct shard *shard, struct keyspace *keyspace,
                  const struct damage_record *record, const struct foreign_table *source)
{
    struct refill refill = {.shard = shard,
                            .keyspace = keyspace,
                            .source = source,
                            .rows = damage_part(record, ROW_SPACE),
                            .cells = {shard, keyspace, damage_part(record, OVERFLOW_SPACE)},
                            .batch = store_batch_create()};
    if (refill.batch == NULL)
        return status_out_of_memory();
    watch_drops(shard, record);
    status s = refill_all(&refill);
    watch_drops(shard, NULL);
    buffer_free(&refill.key);
    buffer_free(&refill.left);
    buffer_free(&refill.left_of_row);
    store_batch_destroy(refill.batch);
    return s;
}
