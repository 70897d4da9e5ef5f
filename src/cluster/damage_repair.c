/* Bringing back what damage has taken out of service: damage.h.
 *
 * A thread that brings a range back holds `repairing` from when it finds the range in the list
 * until the range is open: a second thread would delete what has been written there since. */
#include "cluster/damage_private.h"

#include "base/check.h"
#include "cluster/refill.h"
#include "cluster/view/view_feed.h"
#include "cluster/view/view_table.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_within(struct damage_part part, const struct key_bounds *bounds)
{
    return damage_part_is_empty(part) ||
           (bytes_compare(part.from, buffer_bytes(&bounds->lower)) >= 0 &&
            bytes_compare(part.to, buffer_bytes(&bounds->upper)) <= 0);
}

/* The keyspace's oldest (0: of all), after so many that are skipped. */
static const struct damage *find_next(const struct damages *damages, uint64_t keyspace, size_t skip)
{
    DCHECK(check_is_held(&damages->lock));
    const struct damage *at = damages->first;
    for (; at != NULL; at = at->next)
        if ((keyspace == 0 || at->record.keyspace_id == keyspace) && skip-- == 0)
            break;
    return at;
}

status damages_copy_next(struct damages *damages, uint64_t keyspace, size_t skip,
                         struct damage **out)
{
    pthread_mutex_lock(&damages->lock);
    const struct damage *found = find_next(damages, keyspace, skip);
    *out = found != NULL ? damage_create(&found->record) : NULL;
    pthread_mutex_unlock(&damages->lock);
    return found != NULL && *out == NULL ? status_out_of_memory() : status_ok();
}

/* Whether `inner` lies in `outer`, of the same keyspace: wholly, or is the same. */
static bool lies_in(const struct damage_record *inner, const struct damage_record *outer)
{
    DCHECK(inner->keyspace_id != 0 && outer->keyspace_id != 0);
    bool ends_within =
        outer->to.size == 0 || (inner->to.size > 0 && bytes_compare(inner->to, outer->to) <= 0);
    return inner->keyspace_id == outer->keyspace_id &&
           bytes_compare(inner->from, outer->from) >= 0 && ends_within;
}

/* With the lock held: whether it goes with that record: it is that one, or lies there wholly. */
static bool goes_with(const struct damage *damage, const struct damage_record *record,
                      bool takes_all)
{
    return damage_is_same(&damage->record, record) ||
           (takes_all && lies_in(&damage->record, record));
}

/* With the lock held: all of them, or none. What came with a table is in an archive, too. */
static status delete_stored(const struct damages *damages, const struct damage_record *record,
                            bool takes_all)
{
    DCHECK(check_is_held(&damages->lock));
    struct shard *shard = damages->shard;
    struct store_batch *batch = store_batch_create();
    bool is_archived = false;
    if (batch == NULL)
        return status_out_of_memory();
    for (const struct damage *at = damages->first; at != NULL; at = at->next)
        if (at->is_stored && goes_with(at, record, takes_all)) {
            catalog_delete_damage(batch, shard->system, &at->record);
            is_archived = is_archived || (at->record.file & DAMAGE_FOREIGN_FILE) != 0;
        }
    status s = is_archived ? commit_write(shard->commits, COMMIT_CATALOG, batch, NULL)
                           : store_write(shard->store, batch, STORE_SYNCED);
    store_batch_destroy(batch);
    for (struct damage *at = damages->first; at != NULL; at = at->next)
        at->is_stored = at->is_stored && !(status_is_ok(s) && goes_with(at, record, takes_all));
    return s;
}

/* Their records go while they are still closed: a range that was opened must not be closed by the
 * next start, when something else may have been written there. */
static status delete_records(struct damages *damages, const struct damage_record *record,
                             bool takes_all)
{
    pthread_mutex_lock(&damages->lock);
    status s = delete_stored(damages, record, takes_all);
    pthread_mutex_unlock(&damages->lock);
    return s;
}

static void forget_those(struct damages *damages, const struct damage_record *record,
                         bool takes_all)
{
    pthread_mutex_lock(&damages->lock);
    for (struct damage **at = &damages->first; *at != NULL;) {
        if (goes_with(*at, record, takes_all))
            damage_forget(damages, at);
        else
            at = &(*at)->next;
    }
    damages_show(damages);
    pthread_mutex_unlock(&damages->lock);
}

/* Its rows are deleted, or taken as they are. Nothing is held while the store heals: it may find,
 * and tell of, more damage. A crash before the records are deleted leaves the range closed. */
static status end_one(struct damages *damages, struct keyspace *keyspace,
                      const struct damage_record *record)
{
    DCHECK(check_is_held(&damages->repairing));
    TRY(keyspace_heal(keyspace, record->from, record->to));
    TRY(delete_records(damages, record, true));
    keyspace_open_range(keyspace, 0, record->from, record->to);
    forget_those(damages, record, true);
    log_info(damages->cluster->options.log, "rows are in service again",
             LOG_INT("keyspace", record->keyspace_id), LOG_INT("file", damage_file(record)));
    return status_ok();
}

static void log_failure(const struct damages *damages, status s)
{
    if (!status_is_ok(s))
        log_warn(damages->cluster->options.log, "deleted rows stay out of service",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

static void end_or_log(struct damages *damages, struct keyspace *keyspace,
                       const struct damage_record *record, size_t *skip)
{
    status s = end_one(damages, keyspace, record);
    *skip += !status_is_ok(s);
    log_failure(damages, s);
}

static void end_deleted(struct damages *damages, struct keyspace *keyspace,
                        const struct key_bounds *records, const struct key_bounds *overflow)
{
    DCHECK(check_is_held(&damages->repairing));
    struct damage *damage;
    size_t skip = 0;
    status s;
    while (status_is_ok(s = damages_copy_next(damages, keyspace_id(keyspace), skip, &damage)) &&
           damage != NULL) {
        const struct damage_record *record = &damage->record;
        if (is_within(damage_part(record, ROW_SPACE), records) &&
            is_within(damage_part(record, OVERFLOW_SPACE), overflow))
            end_or_log(damages, keyspace, record, &skip);
        else
            skip++;
        damage_free(damage);
    }
    log_failure(damages, s);
}

/* With the lock held: a part that `from` lies in; else NULL, and `to` is before all that follow. */
static const struct damage *find_around(const struct damages *damages, uint64_t keyspace,
                                        bytes from, struct buffer *to)
{
    DCHECK(check_is_held(&damages->lock));
    for (const struct damage *at = damages->first; at != NULL; at = at->next) {
        struct damage_part part = damage_part(&at->record, ROW_SPACE);
        if (at->record.keyspace_id != keyspace || bytes_compare(part.to, from) <= 0)
            continue;
        if (bytes_compare(part.from, from) <= 0)
            return at;
        if (bytes_compare(part.from, buffer_bytes(to)) < 0) {
            buffer_clear(to);
            buffer_append_bytes(to, part.from);
        }
    }
    return NULL;
}

void damages_find_open(struct damages *damages, uint64_t keyspace_id, struct buffer *from,
                       struct buffer *to)
{
    const struct damage *around;
    pthread_mutex_lock(&damages->lock);
    while (!from->failed &&
           (around = find_around(damages, keyspace_id, buffer_bytes(from), to)) != NULL) {
        buffer_clear(from);
        buffer_append_bytes(from, damage_part(&around->record, ROW_SPACE).to);
    }
    pthread_mutex_unlock(&damages->lock);
}

void damages_end_deleted(struct damages *damages, struct keyspace *keyspace,
                         const struct key_bounds *records, const struct key_bounds *overflow)
{
    if (!damages_has(damages, keyspace_id(keyspace)))
        return;
    pthread_mutex_lock(&damages->repairing);
    end_deleted(damages, keyspace, records, overflow);
    pthread_mutex_unlock(&damages->repairing);
}

/* Deletes lost rows with their large cells: nothing would name these. */
static status delete_rows(struct shard *shard, struct keyspace *keyspace, struct damage_part part)
{
    struct key_bounds records, overflow;
    bool is_bounded = record_bounds(damage_row(part.from), damage_row(part.to), &records);
    is_bounded =
        overflow_bounds(damage_row(part.from), damage_row(part.to), &overflow) && is_bounded;
    status s = is_bounded ? shard_delete_keys(shard, NULL, keyspace, &records, &overflow)
                          : status_out_of_memory();
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}

static status delete_large_cells(struct shard *shard, struct keyspace *keyspace,
                                 struct damage_part part)
{
    const struct key_bounds none = {0};
    struct key_bounds overflow = {0};
    struct lost_cells lost = {shard, keyspace, part};
    TRY(lost_cells_cut(&lost));
    buffer_append_bytes(&overflow.lower, part.from);
    buffer_append_bytes(&overflow.upper, part.to);
    bool failed = overflow.lower.failed || overflow.upper.failed;
    status s = failed ? status_out_of_memory()
                      : shard_delete_keys(shard, NULL, keyspace, &none, &overflow);
    key_bounds_free(&overflow);
    return s;
}

static status delete_lost(struct shard *shard, struct keyspace *keyspace,
                          const struct damage_record *record)
{
    struct damage_part rows = damage_part(record, ROW_SPACE);
    struct damage_part cells = damage_part(record, OVERFLOW_SPACE);
    if (!damage_part_is_empty(rows))
        TRY(delete_rows(shard, keyspace, rows));
    return damage_part_is_empty(cells) ? status_ok() : delete_large_cells(shard, keyspace, cells);
}

status damages_tell_one(const struct damages *damages, const struct damage_record *record,
                        status (*tell)(void *context, const struct lost_rows *lost), void *context)
{
    struct buffer table = {0};
    damage_append_table(damages->shard, record->keyspace_id, &table);
    buffer_append_byte(&table, 0);
    status s = table.failed ? status_out_of_memory()
                            : damage_tell(record, (const char *)table.data, tell, context);
    buffer_free(&table);
    return s;
}

/* The list may change meanwhile: it is gone through by its length. */
static status tell_of_shard(struct damages *damages,
                            status (*visit)(void *context, const struct lost_rows *lost),
                            void *context)
{
    for (size_t i = 0;; i++) {
        struct damage *damage;
        TRY(damages_copy_next(damages, 0, i, &damage));
        if (damage == NULL)
            return status_ok();
        status s = damages_tell_one(damages, &damage->record, visit, context);
        damage_free(damage);
        TRY(s);
    }
}

status cluster_list_damage(struct cluster *cluster,
                           status (*visit)(void *context, const struct lost_rows *lost),
                           void *context)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(tell_of_shard(cluster->shards[i]->damages, visit, context));
    return status_ok();
}

status damages_open_one(struct damages *damages, struct keyspace *keyspace,
                        const struct damage_record *record)
{
    TRY(delete_records(damages, record, false));
    keyspace_open_range(keyspace, record->file, record->from, record->to);
    forget_those(damages, record, false);
    return status_ok();
}

/* What its words begin with then. The mark outlives a crash, after which the file may turn out to
 * be sound: its rows are deleted all the same, and what follows from them is not made yet. */
static const char GIVEN_UP[] = "they are given up, and what follows from them has yet to be made: "
                               "repair the table once more; ";

bool damage_is_given_up(const struct damage_record *record)
{
    return strncmp(record->what, GIVEN_UP, strlen(GIVEN_UP)) == 0;
}

/* Opens a range that proved sound. The table is not compacted before the range is open, so a crash
 * in between finds it sound again. */
static status open_if_sound(struct damages *damages, struct keyspace *keyspace,
                            const struct damage_record *record, bool *is_sound)
{
    if (damage_is_given_up(record))
        return status_ok();
    const struct store_damage range = {.file = record->file,
                                       .offset = damage_offset(record),
                                       .is_whole = record->block == 0,
                                       .from = record->from,
                                       .to = record->to};
    TRY(keyspace_find_sound(keyspace, &range, is_sound));
    return *is_sound ? damages_open_one(damages, keyspace, record) : status_ok();
}

/* First of all, as long as the files are there: to repair what is damaged in one compacts it away.
 */
static status open_sound(struct damages *damages, struct keyspace *keyspace)
{
    for (size_t skip = 0;;) {
        struct damage *damage;
        bool is_sound = false;
        TRY(damages_copy_next(damages, keyspace_id(keyspace), skip, &damage));
        if (damage == NULL)
            return status_ok();
        status s = open_if_sound(damages, keyspace, &damage->record, &is_sound);
        skip += !is_sound;
        damage_free(damage);
        TRY(s);
    }
}

static status repair_one(struct damages *damages, struct keyspace *keyspace,
                         const struct damage_record *record,
                         const struct table_repair_options *options)
{
    TRY(damages_tell_one(damages, record, options->lost, options->context));
    if (options->source != NULL)
        TRY(refill_run(damages->shard, keyspace, record, options->source));
    else if (!options->accepts_old_data)
        TRY(delete_lost(damages->shard, keyspace, record));
    return end_one(damages, keyspace, record);
}

/* Repairs the keyspace's oldest range, which another thread may have brought back meanwhile. */
static status repair_first(struct damages *damages, struct keyspace *keyspace,
                           const struct table_repair_options *options, bool *is_over)
{
    struct damage *damage;
    TRY(damages_copy_next(damages, keyspace_id(keyspace), 0, &damage));
    *is_over = damage == NULL;
    if (damage == NULL)
        return status_ok();
    status s = repair_one(damages, keyspace, &damage->record, options);
    damage_free(damage);
    return s;
}

static status repair_next(struct damages *damages, struct keyspace *keyspace,
                          const struct table_repair_options *options, bool *is_over)
{
    pthread_mutex_lock(&damages->repairing);
    status s = repair_first(damages, keyspace, options, is_over);
    pthread_mutex_unlock(&damages->repairing);
    return s;
}

/* --- all at once, where rows follow from others --- */

/* What is given up of a table, oldest first. */
struct giving_up {
    struct damages *damages;
    struct keyspace *keyspace;
    const struct table_repair_options *options;
    struct damage *first;
    struct arena *arena; /* of keys */
    struct given_up *ranges;
    size_t count;
};

static bool has_given_up(const struct giving_up *giving, const struct damage_record *record)
{
    for (const struct damage *at = giving->first; at != NULL; at = at->next)
        if (damage_is_same(&at->record, record))
            return true;
    return false;
}

/* With the lock held. */
static status mark(struct damages *damages, struct damage *damage, struct keyspace *keyspace)
{
    DCHECK(check_is_held(&damages->lock));
    struct damage_record record = damage->record;
    struct buffer words = {0};
    buffer_append_format(&words, "%s%s%c", GIVEN_UP, damage->what, 0);
    char *what = bytes_to_string(bytes_of((const char *)words.data));
    buffer_free(&words);
    if (what == NULL)
        return status_out_of_memory();
    record.what = what;
    status s = damage_write_record(damages, &record, true);
    if (!status_is_ok(s)) {
        free(what);
        return s;
    }
    free(damage->what);
    damage->record.what = damage->what = what;
    damage->is_stored = true;
    damage_close(damages, damage, keyspace);
    damages_show(damages);
    return status_ok();
}

/* Before its rows are deleted. */
static status mark_given_up(struct damages *damages, struct keyspace *keyspace,
                            const struct damage_record *record)
{
    status s = status_ok();
    pthread_mutex_lock(&damages->lock);
    for (struct damage *at = damages->first; at != NULL; at = at->next)
        if (damage_is_same(&at->record, record) && !damage_is_given_up(&at->record)) {
            s = mark(damages, at, keyspace);
            break;
        }
    pthread_mutex_unlock(&damages->lock);
    return s;
}

/* Copies the bounds. Of large cells the last row is included. */
static status copy_bounds(struct giving_up *giving, const struct lost_rows *lost,
                          struct given_up *out)
{
    struct buffer to = {0};
    buffer_append_bytes(&to, lost->to);
    if (lost->is_large_cells && lost->to.size > 0)
        buffer_append_byte(&to, 0);
    *out = (struct given_up){.from = arena_copy(giving->arena, lost->from),
                             .to = arena_copy(giving->arena, buffer_bytes(&to)),
                             .is_large_cells = lost->is_large_cells};
    bool failed = to.failed || (lost->from.size > 0 && out->from.data == NULL) ||
                  (lost->to.size > 0 && out->to.data == NULL);
    buffer_free(&to);
    return failed ? status_out_of_memory() : status_ok();
}

static status note_range(void *context, const struct lost_rows *lost)
{
    struct giving_up *giving = context;
    DCHECK((giving->ranges == NULL) == (giving->count == 0));
    struct given_up *ranges = realloc(giving->ranges, (giving->count + 1) * sizeof *giving->ranges);
    if (ranges == NULL)
        return status_out_of_memory();
    giving->ranges = ranges;
    return copy_bounds(giving, lost, &ranges[giving->count++]);
}

static status give_up(struct giving_up *giving, const struct damage_record *record)
{
    struct damages *damages = giving->damages;
    DCHECK(check_is_held(&damages->repairing));
    const struct table_repair_options *options = giving->options;
    TRY(damages_tell_one(damages, record, options->lost, options->context));
    TRY(damages_tell_one(damages, record, note_range, giving));
    TRY(mark_given_up(damages, giving->keyspace, record));
    return options->source != NULL
               ? refill_run(damages->shard, giving->keyspace, record, options->source)
               : delete_lost(damages->shard, giving->keyspace, record);
}

static void keep(struct giving_up *giving, struct damage *damage)
{
    DCHECK(damage->next == NULL);
    struct damage **at = &giving->first;
    while (*at != NULL)
        at = &(*at)->next;
    *at = damage;
}

/* Gives up the ranges that have been found by now. */
static status give_up_more(struct giving_up *giving, bool *has_more)
{
    struct damage *damage;
    *has_more = false;
    for (size_t i = 0;; i++) {
        TRY(damages_copy_next(giving->damages, keyspace_id(giving->keyspace), i, &damage));
        if (damage == NULL)
            return status_ok();
        if (has_given_up(giving, &damage->record)) {
            damage_free(damage);
            continue;
        }
        *has_more = true;
        keep(giving, damage);
        TRY(give_up(giving, &damage->record));
    }
}

/* Compacts damaged tables away before the repair: then what is written there can be read. */
static status heal_all(const struct giving_up *giving)
{
    DCHECK(check_is_held(&giving->damages->repairing));
    for (const struct damage *at = giving->first; at != NULL; at = at->next) {
        TRY(keyspace_heal(giving->keyspace, at->record.from, at->record.to));
        keyspace_note_healed(giving->keyspace, at->record.from, at->record.to);
    }
    return status_ok();
}

static status heal_indexes(const struct giving_up *giving)
{
    DCHECK(giving->options->heal != NULL);
    const struct table_repair_options *options = giving->options;
    TRY(heal_all(giving));
    bool former = store_read_healed(true);
    status s = options->heal(options->heal_context, giving->ranges, giving->count);
    (void)store_read_healed(former);
    return s;
}

/* The repair may have found further damage: `*has_more`. */
static status look_further(struct giving_up *giving, bool *has_more)
{
    TRY(cluster_look_for_damage(giving->damages->cluster));
    return give_up_more(giving, has_more);
}

/* What `s` says that it ended with; OK if it is to be done again. */
static status end_round(struct giving_up *giving, status s, bool *has_more)
{
    if (status_is_ok(s))
        return give_up_more(giving, has_more);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status looked = look_further(giving, has_more);
    if (status_is_ok(looked) && !*has_more)
        return s;
    status_free(s);
    return looked;
}

/* Until nothing more has been found meanwhile: each time something is. */
static status give_up_and_heal(struct giving_up *giving)
{
    bool has_more;
    TRY(give_up_more(giving, &has_more));
    while (has_more)
        TRY(end_round(giving, heal_indexes(giving), &has_more));
    return status_ok();
}

/* These and no others: what has been found damaged there since stays closed. */
static status end_all(const struct giving_up *giving)
{
    DCHECK(check_is_held(&giving->damages->repairing));
    for (const struct damage *at = giving->first; at != NULL; at = at->next) {
        TRY(damages_open_one(giving->damages, giving->keyspace, &at->record));
        log_info(giving->damages->cluster->options.log, "rows are in service again",
                 LOG_INT("keyspace", at->record.keyspace_id),
                 LOG_INT("file", damage_file(&at->record)));
    }
    return status_ok();
}

static void free_list(struct damage *damage)
{
    while (damage != NULL) {
        struct damage *gone = damage;
        damage = gone->next;
        damage_free(gone);
    }
}

static status repair_together(struct damages *damages, struct keyspace *keyspace,
                              const struct table_repair_options *options)
{
    enum { MEMORY = 64 << 20 };
    struct giving_up giving = {.damages = damages,
                               .keyspace = keyspace,
                               .options = options,
                               .arena = arena_create(MEMORY)};
    if (giving.arena == NULL)
        return status_out_of_memory();
    pthread_mutex_lock(&damages->repairing);
    status s = give_up_and_heal(&giving);
    if (status_is_ok(s))
        s = end_all(&giving);
    pthread_mutex_unlock(&damages->repairing);
    free_list(giving.first);
    free(giving.ranges);
    arena_destroy(giving.arena);
    return s;
}

static status tell_all(struct damages *damages, const struct dropped_damage *dropped)
{
    for (size_t i = 0;; i++) {
        struct damage *damage;
        TRY(damages_copy_next(damages, keyspace_id(dropped->keyspace), i, &damage));
        if (damage == NULL)
            return status_ok();
        status s = damages_tell_knowing(damages, &damage->record, dropped);
        damage_free(damage);
        TRY(s);
    }
}

static status open_those_sound(struct damages *damages, struct keyspace *keyspace)
{
    pthread_mutex_lock(&damages->repairing);
    status s = open_sound(damages, keyspace);
    pthread_mutex_unlock(&damages->repairing);
    return s;
}

static status repair_all(const struct table_space *space,
                         const struct table_repair_options *options)
{
    struct damages *damages = space->shard->damages;
    struct keyspace *keyspace = space->keyspace;
    const struct dropped_damage dropped = {.keyspace = keyspace,
                                           .drops = space->drops,
                                           .tell = options->lost,
                                           .context = options->context};
    bool is_over = false;
    if (options->is_trial)
        return tell_all(damages, &dropped);
    TRY(open_those_sound(damages, keyspace));
    TRY(damages_end_dropped(damages, &dropped)); /* what was written there since stays */
    if (options->heal != NULL)
        return repair_together(damages, keyspace, options);
    while (!is_over)
        TRY(repair_next(damages, keyspace, options, &is_over));
    return status_ok();
}

status table_list_damage(struct table *table,
                         status (*visit)(void *context, const struct lost_rows *lost),
                         void *context)
{
    for (size_t i = 0; i < table->space_count; i++) {
        const struct table_space *space = &table->spaces[i];
        const struct dropped_damage dropped = {
            .keyspace = space->keyspace, .drops = space->drops, .tell = visit, .context = context};
        TRY(tell_all(space->shard->damages, &dropped));
    }
    return status_ok();
}

static status check_source(struct table *table, const struct table_repair_options *options)
{
    const struct refill_target target = {table->id, table_keyspace_id(table),
                                         table_description(table)->schema};
    return options->source == NULL ? status_ok() : refill_check(options->source, &target);
}

static status repair_spaces(struct table *table, const struct table_repair_options *options)
{
    for (size_t i = 0; i < table->space_count; i++)
        TRY(repair_all(&table->spaces[i], options));
    return status_ok();
}

/* What is back in service may be older than views have seen it. */
status table_repair(struct table *table, const struct table_repair_options *options)
{
    TRY(check_source(table, options));
    if (options->is_trial)
        return repair_spaces(table, options);
    TRY(refill_name_families(table, options->source));
    status s = repair_spaces(table, options);
    if (table_is_viewed(table))
        status_ignore(
            view_feed_tell_all(table)); /* a store that takes no commits repairs nothing */
    return s;
}

static bool go_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

status cluster_look_for_damage(struct cluster *cluster)
{
    const struct store_pacer pacer = {.go_on = go_on};
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(store_look_for_damage(cluster->shards[i]->store, &pacer));
    return status_ok();
}

status damages_create(struct shard *shard, struct damages **out)
{
    struct damages *damages = *out = calloc(1, sizeof *damages);
    if (damages == NULL)
        return status_out_of_memory();
    damages->magic = DAMAGES_MAGIC;
    damages->shard = shard;
    damages->cluster = shard->cluster;
    pthread_mutex_init(&damages->lock, NULL);
    pthread_mutex_init(&damages->repairing, NULL);
    return status_ok();
}

void damages_destroy(struct damages *damages)
{
    if (damages == NULL)
        return;
    CHECK_MAGIC(damages, DAMAGES_MAGIC);
    free_list(damages->first);
    pthread_mutex_destroy(&damages->repairing);
    pthread_mutex_destroy(&damages->lock);
    damages->magic = 0;
    free(damages);
}
