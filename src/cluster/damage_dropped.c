/* Damage of rows that had been dropped before (row/drops.h): what the damaged file had of them
 * counts for nothing, so their range comes back into service as it is. See damage.h. */
#include "cluster/damage_private.h"

#include "base/check.h"
#include "base/key_range.h"
#include "row/row_key.h"

static bool part_is_dropped(struct damage_part part, struct row_drops *drops, uint64_t file)
{
    return damage_part_is_empty(part) || row_drops_cover_table(drops, part.from, part.to, file);
}

bool damage_is_dropped(const struct damage_record *record, struct row_drops *drops)
{
    bool is_ours = (record->file & DAMAGE_FOREIGN_FILE) == 0;
    struct damage_part rows = damage_part(record, ROW_SPACE);
    struct damage_part cells = damage_part(record, OVERFLOW_SPACE);
    bool has_keys = !damage_part_is_empty(rows) || !damage_part_is_empty(cells);
    return is_ours && has_keys && part_is_dropped(rows, drops, record->file) &&
           part_is_dropped(cells, drops, record->file);
}

/* The store may have found it out by itself, by a range that is deleted. */
void damage_say_dropped(const char *what, struct buffer *out)
{
    bool is_said = strstr(what, DAMAGE_OF_DELETED) != NULL;
    buffer_append_format(out, "%s%s%c", what, is_said ? "" : DAMAGE_OF_DELETED, 0);
}

/* --- of a server --- */

static bool overlap(const struct damage_record *a, const struct damage_record *b)
{
    return key_ranges_meet(a->from, a->to, b->from, b->to);
}

/* To heal a range gives up whatever is damaged there: so not one that reaches into another of which
 * something is left. With the lock held. */
static bool may_be_healed(const struct damages *damages, const struct damage_record *record,
                          struct row_drops *drops)
{
    DCHECK(check_is_held(&damages->lock));
    bool may = damage_is_dropped(record, drops) && !damage_is_given_up(record);
    for (const struct damage *at = damages->first; at != NULL && may; at = at->next)
        may = at->record.keyspace_id != record->keyspace_id || !overlap(&at->record, record) ||
              damage_is_dropped(&at->record, drops);
    return may;
}

status damages_tell_knowing(const struct damages *damages, const struct damage_record *record,
                            const struct dropped_damage *dropped)
{
    struct buffer words = {0};
    struct damage_record said = *record;
    if (!damage_is_dropped(record, dropped->drops))
        return damages_tell_one(damages, record, dropped->tell, dropped->context);
    damage_say_dropped(record->what, &words);
    said.what = (const char *)words.data;
    status s = words.failed ? status_out_of_memory()
                            : damages_tell_one(damages, &said, dropped->tell, dropped->context);
    buffer_free(&words);
    return s;
}

/* A crash before the record is deleted leaves the range closed, and this is done again. */
static status end_one(struct damages *damages, const struct dropped_damage *dropped,
                      const struct damage_record *record)
{
    if (dropped->tell != NULL)
        TRY(damages_tell_knowing(damages, record, dropped));
    TRY(keyspace_heal(dropped->keyspace, record->from, record->to));
    TRY(damages_open_one(damages, dropped->keyspace, record));
    log_info(damages->cluster->options.log, "rows are in service again",
             LOG_INT("keyspace", record->keyspace_id), LOG_INT("file", damage_file(record)));
    return status_ok();
}

static bool is_to_end(struct damages *damages, const struct damage_record *record,
                      struct row_drops *drops)
{
    pthread_mutex_lock(&damages->lock);
    bool is_so = may_be_healed(damages, record, drops);
    pthread_mutex_unlock(&damages->lock);
    return is_so;
}

static status end_those(struct damages *damages, const struct dropped_damage *dropped)
{
    DCHECK(check_is_held(&damages->repairing));
    for (size_t skip = 0;;) {
        struct damage *damage;
        TRY(damages_copy_next(damages, keyspace_id(dropped->keyspace), skip, &damage));
        if (damage == NULL)
            return status_ok();
        bool ends = is_to_end(damages, &damage->record, dropped->drops);
        status s = ends ? end_one(damages, dropped, &damage->record) : status_ok();
        skip += !ends;
        damage_free(damage);
        TRY(s);
    }
}

status damages_end_dropped(struct damages *damages, const struct dropped_damage *dropped)
{
    if (row_drops_count(dropped->drops) == 0 ||
        !damages_has(damages, keyspace_id(dropped->keyspace)))
        return status_ok();
    pthread_mutex_lock(&damages->repairing);
    status s = end_those(damages, dropped);
    pthread_mutex_unlock(&damages->repairing);
    return s;
}
