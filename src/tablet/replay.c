/* See replay.h. */
#include "tablet/replay.h"

#include "base/check.h"
#include "row/fold.h"
#include "tablet/change_log.h"
#include "tablet/commit_private.h"
#include "tablet/drop_records.h"
#include "tablet/foreign_change.h"
#include "tablet/key_bounds.h"
#include "tablet/row_locks.h"
#include "tablet/telling_records.h"

#include <stdlib.h>

enum {
    FLUSH_BYTES = 16 << 20,
    MEMORY = INT32_MAX, /* for the commits of a batch */
};

struct replayer {
    struct replay_options options;
    struct commit_batch batch;
    struct tokens *tokens;
    struct arena *arena;   /* of the commits in the batch */
    struct keyspace *last; /* that was looked for */
    /* Ids (uint64_t) of keyspaces in which adds stay apart, rising: with drops from before the
     * replay, or with one whose rows are still there. */
    struct buffer dropped;
    struct buffer telling; /* key of the last record of a telling that was put */
    size_t bytes;          /* in the batch, about */
    struct replay_counts counts;
};

/* --- keyspaces --- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static bool is_wanted(const struct replayer *replayer, uint64_t id)
{
    const struct replay_options *options = &replayer->options;
    return options->keyspaces == NULL || id == keyspace_id(options->catalog) ||
           bsearch(&id, options->keyspaces, options->keyspace_count, sizeof id, compare_ids) !=
               NULL;
}

static status note_dropped(void *context, uint64_t id)
{
    struct replayer *replayer = context;
    buffer_append(&replayer->dropped, &id, sizeof id);
    return replayer->dropped.failed ? status_out_of_memory() : status_ok();
}

/* The keyspace has no rules any more: see enter_keyspace. */
static status keep_adds_apart(struct replayer *replayer, struct keyspace *keyspace)
{
    TRY(note_dropped(replayer, keyspace_id(keyspace)));
    qsort(replayer->dropped.data, replayer->dropped.size / sizeof(uint64_t), sizeof(uint64_t),
          compare_ids);
    keyspace_set_rules(keyspace, NULL);
    return status_ok();
}

static bool has_drops(const struct replayer *replayer, uint64_t id)
{
    size_t count = replayer->dropped.size / sizeof id;
    return count > 0 && bsearch(&id, replayer->dropped.data, count, sizeof id, compare_ids) != NULL;
}

/* Rules by which nothing is collected, and adds become one: what is dropped while it is replayed
 * leaves nothing that they could meet. */
static const struct row_rules plain_rules;

static void enter_keyspace(struct replayer *replayer, uint64_t id)
{
    replayer->last = store_keyspace_find(replayer->options.store, id);
    if (replayer->last != NULL && replayer->last != replayer->options.catalog &&
        keyspace_kind(replayer->last) == KEYSPACE_ROWS && !has_drops(replayer, id))
        keyspace_set_rules(replayer->last, &plain_rules);
}

static status find_keyspace(struct replayer *replayer, uint64_t id, struct keyspace **out)
{
    if (replayer->last == NULL || keyspace_id(replayer->last) != id)
        enter_keyspace(replayer, id);
    *out = replayer->last;
    return *out != NULL ? status_ok()
                        : status_make(STATUS_DATA_LOSS,
                                      "the archive changes keyspace %llu, which is not there",
                                      (unsigned long long)id);
}

static status make_keyspaces(struct replayer *replayer, const struct event_change *change)
{
    struct store *store = replayer->options.store;
    for (uint64_t i = 0; i < change->count; i++)
        if (store_keyspace_find(store, change->keyspace + i) == NULL)
            TRY(change->made == KEYSPACE_LOG
                    ? store_log_keyspace_create(store, change->keyspace + i)
                    : store_keyspaces_create(store, change->keyspace + i, 1));
    return status_ok();
}

static status drop_keyspace(struct replayer *replayer, const struct event_change *change)
{
    struct store *store = replayer->options.store;
    struct keyspace *keyspace = store_keyspace_find(store, change->keyspace);
    replayer->last = NULL;
    return keyspace == NULL ? status_ok() : store_keyspace_drop(store, keyspace);
}

/* One that is there was being made when what the replay began with was copied, and may lack its
 * files: it goes. One that is not wanted is made all the same: the catalog names it. */
static status take_files_in(struct replayer *replayer, const struct event_change *change)
{
    const struct replay_options *options = &replayer->options;
    if (options->take_in == NULL)
        return status_ok();
    TRY(drop_keyspace(replayer, change));
    if (!is_wanted(replayer, change->keyspace))
        return store_keyspaces_create(options->store, change->keyspace, 1);
    return options->take_in(options->context, change);
}

static status change_keyspaces(struct replayer *replayer, const struct event_change *change)
{
    TRY(replayer_flush(replayer));
    if (change->kind == CHANGE_KEYSPACES_MADE)
        return make_keyspaces(replayer, change);
    if (change->kind == CHANGE_KEYSPACE_DROPPED)
        return drop_keyspace(replayer, change);
    return take_files_in(replayer, change);
}

/* --- changes of rows --- */

/* How many of the event's rows are wanted. The reader is a copy. */
static size_t count_rows(const struct replayer *replayer, struct event_reader reader)
{
    struct event_change change;
    size_t count = 0;
    while (event_next_change(&reader, &change))
        count += change.kind != CHANGE_PUT && is_wanted(replayer, change.keyspace);
    return count;
}

static bool is_record_of(const struct replayer *replayer, const struct event_change *change,
                         uint8_t kind)
{
    return change->kind == CHANGE_PUT && change->key.size > 0 && change->key.data[0] == kind &&
           change->keyspace == keyspace_id(replayer->options.catalog);
}

/* What the log of a change stream tells of the event's rows, and that a dropped row was told with
 * them. Each key is put once, so that its order among them is of no matter. */
static status put_logged(struct replayer *replayer, const struct event_change *change)
{
    struct keyspace *keyspace;
    TRY(find_keyspace(replayer, change->keyspace, &keyspace));
    if (keyspace_kind(keyspace) != KEYSPACE_LOG && !is_record_of(replayer, change, TOLD_ROW))
        return status_make(STATUS_DATA_LOSS, "the archive has a record among rows");
    store_batch_put(replayer->batch.store_batch, keyspace, change->key, change->value);
    replayer->bytes += change->key.size + change->value.size;
    replayer->batch.has_content = true;
    return status_ok();
}

static status put_all_logged(struct replayer *replayer, struct event_reader reader)
{
    struct event_change change;
    while (event_next_change(&reader, &change))
        if (change.kind == CHANGE_PUT && is_wanted(replayer, change.keyspace))
            TRY(put_logged(replayer, &change));
    return status_ok();
}

/* The queue writes the version into the fragment, so it gets a copy. */
static status copy_change(struct replayer *replayer, const struct event_change *from,
                          struct packed_change *to)
{
    uint8_t *fragment = arena_alloc(replayer->arena, from->value.size);
    to->big = arena_alloc(replayer->arena, from->count * sizeof *to->big);
    if (fragment == NULL || to->big == NULL)
        return status_out_of_memory();
    TRY(fragment_check(from->value));
    memcpy(fragment, from->value.data, from->value.size);
    to->fragment =
        (struct buffer){.data = fragment, .size = from->value.size, .capacity = from->value.size};
    to->big_count = from->count;
    if (from->count > 0)
        event_big_cells(from, to->big);
    return status_ok();
}

static status make_commit(struct replayer *replayer, const struct log_event *event,
                          const struct event_change *change, struct commit *commit)
{
    struct packed_change *packed = arena_zalloc(replayer->arena, sizeof *packed);
    struct keyspace *keyspace;
    if (packed == NULL)
        return status_out_of_memory();
    if (change->kind != CHANGE_ROW || change->key.size == 0)
        return status_make(STATUS_DATA_LOSS, "the archive has a change of a row that is none");
    TRY(find_keyspace(replayer, change->keyspace, &keyspace));
    TRY(copy_change(replayer, change, packed));
    *commit = (struct commit){.kind = COMMIT_ROWS,
                              .keyspace = keyspace,
                              .row_key = change->key,
                              .row_hash = row_lock_hash(change->keyspace, change->key),
                              .change = packed,
                              .tokens = change->has_token ? replayer->tokens : NULL,
                              .token = change->token,
                              .sequence = event->sequence,
                              .version = event->version};
    replayer->bytes += commit_size(commit);
    return status_ok();
}

static status apply_rows(struct replayer *replayer, const struct log_event *event,
                         struct event_reader *reader)
{
    DCHECK(event->sequence > replayer->counts.newest);
    size_t count = count_rows(replayer, *reader), at = 0;
    struct event_change change;
    TRY(put_all_logged(replayer, *reader));
    if (count == 0)
        return status_ok();
    struct commit *commits = arena_zalloc(replayer->arena, count * sizeof *commits);
    if (commits == NULL)
        return status_out_of_memory();
    while (event_next_change(reader, &change))
        if (change.kind != CHANGE_PUT && is_wanted(replayer, change.keyspace))
            TRY(make_commit(replayer, event, &change, &commits[at++]));
    commits[0].others = commits + 1;
    commits[0].other_count = at - 1;
    commit_batch_add(&replayer->batch, &commits[0]);
    return commits[0].result;
}

/* --- changes of records --- */

static void delete_bounds(struct replayer *replayer, struct keyspace *keyspace,
                          const struct key_bounds *bounds)
{
    store_batch_delete_range(replayer->batch.store_batch, keyspace, buffer_bytes(&bounds->lower),
                             buffer_bytes(&bounds->upper));
}

/* Whether a change stream is still to be told of the drop's rows: that record stands before it. */
static bool is_to_be_told(const struct replayer *replayer, uint64_t id, uint64_t sequence)
{
    return telling_record_is_of(buffer_bytes(&replayer->telling), id, sequence);
}

/* What there is of the rows is older than the drop: it goes by a range delete, so that nothing can
 * be added up across it. But if a change stream is to be told what they had they stay, and who is
 * restored tells it; then adds must not meet. The record stays for what may come late, as it stays
 * in the catalog until a pass has found nothing (the archive does not say when that was). */
static status apply_drop(struct replayer *replayer, const struct event_change *change)
{
    struct row_drop_words drop;
    struct key_bounds records, overflow;
    uint64_t id;
    TRY(drop_record_parse(change->key, change->value, &id, &drop));
    struct keyspace *keyspace = store_keyspace_find(replayer->options.store, id);
    if (keyspace == NULL || !is_wanted(replayer, id))
        return status_ok();
    if (is_to_be_told(replayer, id, drop.sequence))
        return keep_adds_apart(replayer, keyspace);
    bool is_bounded = record_bounds(drop.from, drop.to, &records);
    is_bounded = overflow_bounds(drop.from, drop.to, &overflow) && is_bounded;
    if (is_bounded) {
        delete_bounds(replayer, keyspace, &records);
        delete_bounds(replayer, keyspace, &overflow);
    }
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return is_bounded ? status_ok() : status_out_of_memory();
}

/* Tables have other numbers here. */
static status put_drop(struct replayer *replayer, struct keyspace *catalog,
                       const struct event_change *change)
{
    struct buffer value = {0};
    buffer_append_bytes(&value, change->value);
    if (value.failed)
        return status_out_of_memory();
    drop_record_forget_table(&value);
    store_batch_put(replayer->batch.store_batch, catalog, change->key, buffer_bytes(&value));
    buffer_free(&value);
    return status_ok();
}

static status note_telling(struct replayer *replayer, const struct event_change *change)
{
    buffer_clear(&replayer->telling);
    buffer_append_bytes(&replayer->telling, change->key);
    return replayer->telling.failed ? status_out_of_memory() : status_ok();
}

static void put_change(struct store_batch *batch, struct keyspace *keyspace,
                       const struct event_change *change)
{
    if (change->kind == CHANGE_PUT)
        store_batch_put(batch, keyspace, change->key, change->value);
    else if (change->kind == CHANGE_MERGE)
        store_batch_merge(batch, keyspace, change->key, change->value);
    else if (change->kind == CHANGE_DELETE)
        store_batch_delete(batch, keyspace, change->key);
    else
        store_batch_delete_range(batch, keyspace, change->key, change->value);
}

static status apply_record(struct replayer *replayer, const struct event_change *change)
{
    struct keyspace *keyspace;
    if (change->kind == CHANGE_ROW)
        return status_make(STATUS_DATA_LOSS, "the archive has a row where it has none");
    if (change->kind >= CHANGE_KEYSPACES_MADE)
        return change_keyspaces(replayer, change);
    if (!is_wanted(replayer, change->keyspace))
        return status_ok();
    TRY(find_keyspace(replayer, change->keyspace, &keyspace));
    if (is_record_of(replayer, change, TELLING_RECORD))
        TRY(note_telling(replayer, change));
    if (is_record_of(replayer, change, DROP_RECORD)) {
        TRY(apply_drop(replayer, change));
        TRY(put_drop(replayer, keyspace, change));
    } else {
        put_change(replayer->batch.store_batch, keyspace, change);
    }
    replayer->bytes += change->key.size + change->value.size;
    replayer->batch.has_content = true;
    return status_ok();
}

static status apply_records(struct replayer *replayer, struct event_reader *reader)
{
    struct event_change change;
    commit_batch_finish(&replayer->batch); /* rows that were gathered come before */
    while (event_next_change(reader, &change))
        TRY(apply_record(replayer, &change));
    return status_ok();
}

static void raise(uint64_t *ceiling, uint64_t least)
{
    if (*ceiling < least)
        *ceiling = least;
}

/* --- entries --- */

/* Whether the row may not be read, which is why it was not. */
static bool is_out_of_service(const struct commit *commit, status why)
{
    if (why.code != STATUS_DATA_LOSS)
        return false;
    status s = row_check_open(commit->keyspace, commit->row_key);
    bool is_closed = s.code == STATUS_DATA_LOSS;
    status_free(s);
    return is_closed;
}

/* A row that is out of service stays so: the change goes to it as others do, unread, and it comes
 * to what a repair makes of it. */
static status prepare_late(const struct replayer *replayer, struct commit *commit,
                           struct foreign_change *foreign)
{
    const struct row_rules *rules =
        has_drops(replayer, keyspace_id(commit->keyspace)) ? row_fold.before : NULL;
    fragment_set_version(commit->change->fragment.data, commit->version);
    status s =
        foreign_change_prepare(commit->keyspace, commit->row_key, commit->change, rules, foreign);
    if (is_out_of_service(commit, s)) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    commit->given_version = commit->version;
    commit->foreign = foreign;
    return status_ok();
}

/* A change with a version that something in the store may be newer than, as one that came from
 * another cluster: as it was applied then (foreign_change.h). Of what the copy has the ceiling is
 * all that is known, so what was written up to a second after it counts among these, too. The row
 * is read, so all before has to be in the store. */
static status apply_late_row(struct replayer *replayer, const struct log_event *event,
                             const struct event_change *change)
{
    DCHECK(event->version <= replayer->counts.newest_version);
    struct foreign_change foreign = {0};
    TRY(replayer_flush(replayer));
    struct commit *commit = arena_zalloc(replayer->arena, sizeof *commit);
    if (commit == NULL)
        return status_out_of_memory();
    TRY(make_commit(replayer, event, change, commit));
    TRY(prepare_late(replayer, commit, &foreign));
    commit_batch_add(&replayer->batch, commit);
    commit->foreign = NULL; /* it is written */
    foreign_change_free(&foreign);
    return commit->result;
}

static status apply_late_rows(struct replayer *replayer, const struct log_event *event,
                              struct event_reader *reader)
{
    struct event_change change;
    TRY(put_all_logged(replayer, *reader));
    while (event_next_change(reader, &change))
        if (change.kind != CHANGE_PUT && is_wanted(replayer, change.keyspace))
            TRY(apply_late_row(replayer, event, &change));
    return status_ok();
}

static status apply_event(struct replayer *replayer, const struct log_event *event,
                          struct event_reader *reader)
{
    if (event->sequence <= replayer->counts.newest)
        return status_make(STATUS_DATA_LOSS, "the archive's events are not in order");
    bool changes_rows = event->kind == EVENT_ROWS || event->kind == EVENT_COLLECT;
    if (changes_rows && event->version <= replayer->counts.newest_version)
        TRY(apply_late_rows(replayer, event, reader));
    else if (changes_rows)
        TRY(apply_rows(replayer, event, reader));
    else
        TRY(apply_records(replayer, reader));
    replayer->counts.events++;
    replayer->counts.newest = event->sequence;
    raise(&replayer->counts.newest_version, event->version);
    return replayer->bytes >= FLUSH_BYTES ? replayer_flush(replayer) : status_ok();
}

status replayer_apply(struct replayer *replayer, bytes entry)
{
    struct event_reader reader;
    struct log_event event;
    event_reader_start(&reader, entry);
    while (!reader.is_bad && event_next(&reader, &event)) {
        if (event.sequence > replayer->options.until)
            return status_ok();
        if (event.sequence > replayer->options.after)
            TRY(apply_event(replayer, &event, &reader));
    }
    return reader.is_bad ? status_make(STATUS_DATA_LOSS, "an entry of the archive is damaged")
                         : status_ok();
}

static void clear(struct replayer *replayer)
{
    DCHECK(replayer->batch.head_count == 0);
    commit_batch_clear(&replayer->batch);
    arena_reset(replayer->arena);
    replayer->bytes = 0;
}

static status write(struct replayer *replayer, enum store_durability durability)
{
    commit_batch_finish(&replayer->batch);
    status s = status_ok();
    if (replayer->batch.has_content)
        s = store_write(replayer->options.store, replayer->batch.store_batch, durability);
    clear(replayer);
    return s;
}

status replayer_flush(struct replayer *replayer)
{
    return write(replayer, STORE_ASYNC);
}

status replayer_finish(struct replayer *replayer, uint64_t sequence)
{
    struct keyspace *catalog = replayer->options.catalog;
    struct commit_ceilings ceilings;
    TRY(replayer_flush(replayer));
    TRY(commit_read_ceilings(catalog, &ceilings));
    raise(&ceilings.sequence, sequence);
    raise(&ceilings.version, replayer->counts.newest_version + 1);
    commit_put_ceilings(replayer->batch.store_batch, catalog, &ceilings);
    change_log_end(replayer->batch.store_batch, catalog);
    replayer->batch.has_content = true;
    return write(replayer, STORE_SYNCED);
}

struct replay_counts replayer_counts(const struct replayer *replayer)
{
    return replayer->counts;
}

/* --- life --- */

static status open_parts(struct replayer *replayer)
{
    const struct replay_options *options = &replayer->options;
    const struct tokens_options tokens = {
        .store = options->store, .catalog = options->catalog, .clock = options->clock};
    TRY(commit_batch_init(&replayer->batch, options->store, NULL, 0));
    struct commit_ceilings ceilings;
    TRY(commit_read_ceilings(options->catalog, &ceilings));
    replayer->counts.newest_version = ceilings.version; /* what the store has is older */
    replayer->arena = arena_create(MEMORY);
    if (replayer->arena == NULL)
        return status_out_of_memory();
    TRY(drop_records_visit(options->catalog, note_dropped, replayer));
    return tokens_open(&tokens, &replayer->tokens);
}

status replayer_create(const struct replay_options *options, struct replayer **out)
{
    *out = NULL;
    struct replayer *replayer = calloc(1, sizeof *replayer);
    if (replayer == NULL)
        return status_out_of_memory();
    replayer->options = *options;
    status s = open_parts(replayer);
    if (status_is_ok(s))
        *out = replayer;
    else
        replayer_destroy(replayer);
    return s;
}

void replayer_destroy(struct replayer *replayer)
{
    if (replayer == NULL)
        return;
    tokens_close(replayer->tokens);
    arena_destroy(replayer->arena);
    buffer_free(&replayer->dropped);
    buffer_free(&replayer->telling);
    commit_batch_free(&replayer->batch);
    free(replayer);
}
