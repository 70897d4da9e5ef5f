/* Commits into one store batch: see commit_private.h. */
#include "tablet/commit_private.h"

#include "base/check.h"
#include "row/fold.h"
#include "row/resolve.h"
#include "row/row_key.h"
#include "tablet/foreign_change.h"
#include "tablet/row_locks.h"
#include "tablet/tablet.h"

#include <stdlib.h>

enum {
    FIRST_SLOTS = 256,
    COMMIT_OVERHEAD = 64, /* keys' prefixes, lengths: what a commit costs beyond its bytes */
    VALUE_KEPT = 4 << 20, /* bytes of a large cell's memory: the store is about to take as many */
};

static size_t row_size(const struct commit *commit)
{
    size_t size = COMMIT_OVERHEAD + commit->row_key.size + commit->record.size;
    if (commit->change == NULL)
        return size;
    return size + packed_change_size(commit->change) + change_list_size(&commit->change->list);
}

size_t commit_size(const struct commit *commit)
{
    size_t size = row_size(commit);
    if (commit->records != NULL)
        size += store_batch_size(commit->records);
    for (size_t i = 0; i < commit->other_count; i++)
        size += row_size(&commit->others[i]);
    return size;
}

/* Whether one of them sees what commits write. */
static bool is_watched(const struct commit_observer *observers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (observers[i].prepare != NULL || observers[i].see != NULL)
            return true;
    return false;
}

status commit_batch_init(struct commit_batch *batch, struct store *store,
                         const struct commit_observer *observers, size_t observer_count)
{
    bool wants_aside = is_watched(observers, observer_count);
    *batch = (struct commit_batch){.slot_count = FIRST_SLOTS,
                                   .store = store,
                                   .observers = observers,
                                   .observer_count = observer_count};
    batch->store_batch = store_batch_create();
    batch->slots = calloc(FIRST_SLOTS, sizeof *batch->slots);
    if (wants_aside)
        batch->aside = store_batch_create();
    if (batch->store_batch == NULL || batch->slots == NULL || (wants_aside && batch->aside == NULL))
        return status_out_of_memory();
    return status_ok();
}

void commit_batch_free(struct commit_batch *batch)
{
    if (batch->store_batch != NULL)
        store_batch_destroy(batch->store_batch);
    free(batch->slots);
    free(batch->heads);
    free(batch->operands);
    buffer_free(&batch->key);
    buffer_free(&batch->value);
    if (batch->aside != NULL)
        store_batch_destroy(batch->aside);
}

/* --- observers --- */

static void tell_begin(struct commit_batch *batch)
{
    for (size_t i = 0; i < batch->observer_count; i++) {
        const struct commit_observer *observer = &batch->observers[i];
        if (observer->begin != NULL && observer->begin(observer->context, batch->store_batch))
            batch->has_content = batch->wants_sync = true;
    }
}

/* False: one of them has no memory for it. */
static bool prepare_observers(const struct commit_batch *batch, const struct commit *commit,
                              const struct store_batch *records)
{
    size_t count = 0;
    for (; count < batch->observer_count; count++) {
        const struct commit_observer *observer = &batch->observers[count];
        if (observer->prepare != NULL && !observer->prepare(observer->context, commit, records))
            break;
    }
    if (count == batch->observer_count)
        return true;
    while (count-- > 0)
        if (batch->observers[count].cancel != NULL)
            batch->observers[count].cancel(batch->observers[count].context, commit);
    return false;
}

static void tell_seen(const struct commit_batch *batch, const struct commit *commit,
                      const struct store_batch *records)
{
    for (size_t i = 0; i < batch->observer_count; i++) {
        const struct commit_observer *observer = &batch->observers[i];
        if (observer->see != NULL)
            observer->see(observer->context, commit, records, batch->store_batch);
    }
}

void commit_batch_end(struct commit_batch *batch)
{
    for (size_t i = 0; i < batch->observer_count; i++)
        if (batch->observers[i].end != NULL)
            batch->observers[i].end(batch->observers[i].context, batch->store_batch);
}

void commit_batch_tell_written(struct commit_batch *batch, bool is_written)
{
    for (size_t i = 0; i < batch->observer_count; i++)
        if (batch->observers[i].written != NULL)
            batch->observers[i].written(batch->observers[i].context, is_written);
}

void commit_batch_tell_applied(const struct commit_batch *batch, const struct commit *commit)
{
    for (size_t i = 0; i < batch->observer_count && commit->kind == COMMIT_ROWS; i++)
        if (batch->observers[i].applied != NULL)
            batch->observers[i].applied(batch->observers[i].context, commit);
}

void commit_batch_clear(struct commit_batch *batch)
{
    DCHECK(batch->head_count == 0);
    store_batch_clear(batch->store_batch);
    batch->newest_version = 0;
    batch->newest_sequence = 0;
    batch->row_count = 0;
    batch->has_content = false;
    batch->wants_sync = false;
    batch->must_sync = false;
    tell_begin(batch);
}

/* --- finding the commits of one row --- */

static bool is_same_row(const struct commit *a, const struct commit *b)
{
    return a->row_hash == b->row_hash && a->keyspace == b->keyspace &&
           bytes_equal(a->row_key, b->row_key);
}

/* Where the row's first commit is, or belongs. */
static struct commit **slot_of(const struct commit_batch *batch, const struct commit *commit)
{
    size_t at = commit->row_hash;
    while (batch->slots[at % batch->slot_count] != NULL &&
           !is_same_row(batch->slots[at % batch->slot_count], commit))
        at++;
    return &batch->slots[at % batch->slot_count];
}

static bool grow_heads(struct commit_batch *batch)
{
    size_t capacity = batch->head_capacity == 0 ? FIRST_SLOTS / 2 : 2 * batch->head_capacity;
    struct commit **heads = realloc(batch->heads, capacity * sizeof *heads);
    if (heads == NULL)
        return false;
    batch->heads = heads;
    batch->head_capacity = capacity;
    return true;
}

/* Keeps at least half of the slots free. */
static bool grow_slots(struct commit_batch *batch)
{
    struct commit **slots = calloc(2 * batch->slot_count, sizeof *slots);
    if (slots == NULL)
        return false;
    free(batch->slots);
    batch->slots = slots;
    batch->slot_count *= 2;
    for (size_t i = 0; i < batch->head_count; i++)
        *slot_of(batch, batch->heads[i]) = batch->heads[i];
    return true;
}

/* Room for so many more rows. */
static bool make_room(struct commit_batch *batch, size_t rows)
{
    while (batch->head_count + rows > batch->head_capacity)
        if (!grow_heads(batch))
            return false;
    while (2 * (batch->head_count + rows) > batch->slot_count)
        if (!grow_slots(batch))
            return false;
    return true;
}

static bool is_in_tablet(const struct commit *commit)
{
    const struct tablet *tablet = commit->tablet;
    return tablet == NULL || (!tablet->is_former && tablet_contains(tablet, commit->row_key));
}

static bool has_own_hash(const struct commit *commit)
{
    return commit->row_hash == row_lock_hash(keyspace_id(commit->keyspace), commit->row_key);
}

/* There is room for it. */
static void gather(struct commit_batch *batch, struct commit *commit)
{
    DCHECK(commit->sequence != 0 && commit->version != 0);
    DCHECK(is_in_tablet(commit));
    DCHECK(has_own_hash(commit));
    commit->next_of_row = NULL;
    commit->last_of_row = commit;
    commit->is_folded = commit->record.size > 0 || commit->is_whole;
    struct commit **slot = slot_of(batch, commit);
    if (*slot != NULL) {
        DCHECK((*slot)->last_of_row->sequence < commit->sequence);
        DCHECK(commit->record.size == 0);
        DCHECK(!commit->is_whole && !(*slot)->is_whole); /* pieces of views are one by one */
        commit->is_folded = true;
        (*slot)->last_of_row->next_of_row = commit;
        (*slot)->last_of_row = commit;
        return;
    }
    DCHECK(batch->head_count < batch->head_capacity);
    DCHECK(2 * (batch->head_count + 1) <= batch->slot_count);
    DCHECK(*slot == NULL);
    *slot = commit;
    batch->heads[batch->head_count++] = commit;
}

/* --- writing out what was gathered --- */

/* A large one is put in the place of what there is, and not an operand on top of it: a compaction
 * would hold it twice more for that (store/large_work.cc). There is only older, since versions rise
 * in the order in which commits are written; what an overflow moves there later has its own
 * version, and is an operand. */
static void add_big_cell(struct commit_batch *batch, struct keyspace *keyspace, size_t size)
{
    bytes key = buffer_bytes(&batch->key), value = buffer_bytes(&batch->value);
    if (size < STORE_LARGE_VALUE) {
        store_batch_merge(batch->store_batch, keyspace, key, value);
        return;
    }
    keyspace_expect_large(keyspace);
    store_batch_put(batch->store_batch, keyspace, key, value);
}

static void add_big_cells(struct commit_batch *batch, const struct commit *commit)
{
    for (size_t i = 0; i < commit->change->big_count; i++) {
        const struct big_cell *cell = &commit->change->big[i];
        buffer_clear(&batch->key);
        buffer_clear(&batch->value);
        overflow_cell_key(&batch->key, commit->row_key, cell->family, cell->qualifier,
                          cell->timestamp_us);
        overflow_cell_write(&batch->value, ENTRY_CELL, commit->version, 0, cell->value);
        add_big_cell(batch, commit->keyspace, cell->value.size);
    }
}

static size_t big_bytes(const struct packed_change *change)
{
    size_t most = 0;
    for (size_t i = 0; i < change->big_count; i++)
        most = change->big[i].value.size > most ? change->big[i].value.size : most;
    return most;
}

/* Memory is claimed before anything of the commit is added, so that it goes in whole or not at all.
 */
static bool reserve(struct commit_batch *batch, const struct commit *commit)
{
    enum { KEY_OVERHEAD = 64, VALUE_OVERHEAD = 64 };
    size_t key_size = commit->row_key.size;
    for (size_t i = 0; i < commit->change->big_count; i++)
        key_size += commit->change->big[i].qualifier.size;
    buffer_clear(&batch->key);
    buffer_clear(&batch->value);
    return buffer_reserve(&batch->key, 2 * key_size + KEY_OVERHEAD) != NULL &&
           buffer_reserve(&batch->value, big_bytes(commit->change) + VALUE_OVERHEAD) != NULL;
}

static bytes record_key(struct commit_batch *batch, const struct commit *commit)
{
    buffer_clear(&batch->key);
    row_record_key(&batch->key, commit->row_key);
    return buffer_bytes(&batch->key);
}

static void merge_record(struct commit_batch *batch, const struct commit *commit, bytes operand)
{
    DCHECK(fragment_is_sound(operand));
    store_batch_merge(batch->store_batch, commit->keyspace, record_key(batch, commit), operand);
}

static bytes operand_of(const struct commit *commit)
{
    return buffer_bytes(&commit->change->fragment);
}

static bool collect_operands(struct commit_batch *batch, const struct commit *head, size_t *count)
{
    *count = 0;
    for (const struct commit *at = head; at != NULL; at = at->next_of_row) {
        if (*count == batch->operand_capacity) {
            size_t capacity = *count == 0 ? FIRST_SLOTS : 2 * *count;
            bytes *operands = realloc(batch->operands, capacity * sizeof *operands);
            if (operands == NULL)
                return false;
            batch->operands = operands;
            batch->operand_capacity = capacity;
        }
        batch->operands[(*count)++] = operand_of(at);
    }
    return true;
}

/* Merges several operands into one; false if that fails, and then they go in one by one. */
static bool merge_folded(struct commit_batch *batch, const struct commit *head)
{
    DCHECK(head->next_of_row != NULL);
    const struct row_rules rules = {.rising_from = batch->tombstones_from};
    struct store_history history = {0};
    if (!collect_operands(batch, head, &history.operand_count))
        return false;
    history.key = record_key(batch, head);
    history.operands = batch->operands;
    buffer_clear(&batch->value);
    if (!row_fold.part(&rules, &history, &batch->value) || batch->value.failed)
        return false;
    store_batch_merge(batch->store_batch, head->keyspace, history.key, buffer_bytes(&batch->value));
    return true;
}

/* In place of all that there is of the row. */
static void put_record(struct commit_batch *batch, const struct commit *commit, bytes record)
{
    DCHECK(fragment_is_sound(record));
    bytes key = record_key(batch, commit);
    if (fragment_is_empty(record))
        store_batch_delete(batch->store_batch, commit->keyspace, key);
    else
        store_batch_put(batch->store_batch, commit->keyspace, key, record);
}

/* The record with the change takes its place; false if that fails, and then the change goes in as
 * an operand. */
static bool replace_record(struct commit_batch *batch, const struct commit *commit)
{
    const struct row_rules rules = {.rising_from = batch->tombstones_from, .drops = commit->drops};
    bytes operand = operand_of(commit);
    bytes same;
    struct store_history history = {.key = record_key(batch, commit),
                                    .has_base = true,
                                    .base = commit->record,
                                    .operands = &operand,
                                    .operand_count = 1};
    buffer_clear(&batch->value);
    if (!row_fold.whole(&rules, &history, &batch->value, &same) || batch->value.failed)
        return false;
    put_record(batch, commit, buffer_bytes(&batch->value));
    return true;
}

static void write_row(struct commit_batch *batch, struct commit *head)
{
    DCHECK(head->record.size == 0 || head->next_of_row == NULL);
    struct commit *at = head;
    do {
        add_big_cells(batch, at);
        if (at->tokens != NULL)
            tokens_put_record(at->tokens, batch->store_batch, at->sequence, at->token);
        batch->row_count++;
        at = at->next_of_row;
    } while (at != NULL);
    if (head->is_whole) {
        put_record(batch, head, operand_of(head));
        return;
    }
    if (head->record.size > 0 && replace_record(batch, head))
        return; /* no other change is behind it: its lock is still held */
    if (head->next_of_row != NULL && merge_folded(batch, head))
        return;
    for (at = head; at != NULL; at = at->next_of_row)
        merge_record(batch, at, operand_of(at));
}

void commit_batch_finish(struct commit_batch *batch)
{
    DCHECK(2 * batch->head_count <= batch->slot_count);
    /* Last in, first out: a slot must not be freed while others were found by passing it. */
    for (size_t i = batch->head_count; i > 0; i--)
        *slot_of(batch, batch->heads[i - 1]) = NULL;
    for (size_t i = 0; i < batch->head_count; i++)
        write_row(batch, batch->heads[i]);
    batch->head_count = 0;
    if (batch->value.capacity > VALUE_KEPT)
        buffer_free(&batch->value);
}

/* Before what was gathered, which is written later: no change of this row from before it is among
 * that. Its version is nowhere stored, so the ceiling need not cover it. */
static void add_rewrite(struct commit_batch *batch, struct commit *commit)
{
    DCHECK(*slot_of(batch, commit) == NULL);
    buffer_clear(&batch->key);
    if (buffer_reserve(&batch->key, commit->row_key.size + 1) == NULL) {
        commit->result = status_out_of_memory();
        return;
    }
    put_record(batch, commit, commit->record);
    batch->has_content = true;
}

/* Reserves all memory that the commit needs, before anything of it is added. */
static bool reserve_all(struct commit_batch *batch, const struct commit *commit)
{
    bool has_room = make_room(batch, commit->other_count + 1) && reserve(batch, commit);
    for (size_t i = 0; i < commit->other_count; i++)
        has_room = has_room && reserve(batch, &commit->others[i]);
    return has_room;
}

static void stamp(const struct commit *commit)
{
    DCHECK(commit->version != 0);
    fragment_set_version(commit->change->fragment.data, commit->version);
    for (size_t i = 0; i < commit->other_count; i++)
        fragment_set_version(commit->others[i].change->fragment.data, commit->version);
}

static void gather_all(struct commit_batch *batch, struct commit *commit)
{
    gather(batch, commit);
    for (size_t i = 0; i < commit->other_count; i++)
        gather(batch, &commit->others[i]);
}

/* In place of all that there is of the row: nothing of it has been gathered, since its lock has
 * been held from the read of that. */
static void write_foreign(struct commit_batch *batch, struct commit *commit)
{
    DCHECK(*slot_of(batch, commit) == NULL);
    DCHECK(is_in_tablet(commit));
    foreign_change_write(commit->foreign, commit->keyspace, record_key(batch, commit),
                         batch->store_batch);
    if (commit->tokens != NULL)
        tokens_put_record(commit->tokens, batch->store_batch, commit->sequence, commit->token);
    commit->is_folded = true;
    batch->row_count++;
}

/* These and the next two are false without memory: nothing of the commit was added then. */
static bool add_rows(struct commit_batch *batch, struct commit *commit)
{
    if (!reserve_all(batch, commit))
        return false;
    stamp(commit);
    if (!prepare_observers(batch, commit, NULL))
        return false;
    tell_seen(batch, commit, NULL);
    if (commit->foreign != NULL)
        write_foreign(batch, commit);
    else
        gather_all(batch, commit);
    return true;
}

/* Adds a commit of an observer's own, which no other observer sees. */
static bool add_internal(struct commit_batch *batch, struct commit *commit)
{
    DCHECK(commit->extend != NULL && commit->other_count == 0);
    commit_batch_finish(batch);
    tell_seen(batch, commit, NULL); /* what it has gathered is from before */
    commit->extend(commit, batch->store_batch);
    return true;
}

static bool add_records(struct commit_batch *batch, struct commit *commit)
{
    DCHECK(commit->extend != NULL || commit->catalog != NULL);
    commit_batch_finish(batch);
    if (batch->aside == NULL) {
        if (commit->extend != NULL)
            commit->extend(commit, batch->store_batch);
        return true;
    }
    store_batch_clear(batch->aside);
    if (commit->extend != NULL)
        commit->extend(commit, batch->aside);
    if (store_batch_failed(batch->aside) || !prepare_observers(batch, commit, batch->aside))
        return false;
    tell_seen(batch, commit, batch->aside);
    store_batch_append(batch->store, batch->store_batch, batch->aside);
    return true;
}

/* A view's rows, which are gathered as all are, and its records, which nothing else of the batch
 * has to do with. */
static bool add_view(struct commit_batch *batch, struct commit *commit)
{
    bool has_room = make_room(batch, commit->other_count);
    for (size_t i = 0; i < commit->other_count; i++)
        has_room = has_room && reserve(batch, &commit->others[i]);
    if (!has_room)
        return false;
    for (size_t i = 0; i < commit->other_count; i++) {
        struct commit *row = &commit->others[i];
        fragment_set_version(row->change->fragment.data, commit->version);
        gather(batch, row);
    }
    store_batch_append(batch->store, batch->store_batch, commit->records);
    return true;
}

static bool add_own(struct commit_batch *batch, struct commit *commit)
{
    if (!reserve_all(batch, commit))
        return false;
    stamp(commit);
    gather_all(batch, commit);
    return true;
}

/* Whether who reads what is acknowledged may find it gone after a power cut (commit.h, 7). */
static bool needs_sync(enum commit_kind kind)
{
    return kind != COMMIT_VIEW && kind != COMMIT_OWN;
}

static bool add(struct commit_batch *batch, struct commit *commit)
{
    if (commit_changes_rows(commit->kind))
        return add_rows(batch, commit);
    if (commit->kind == COMMIT_VIEW)
        return add_view(batch, commit);
    if (commit->kind == COMMIT_OWN)
        return add_own(batch, commit);
    return commit->kind == COMMIT_INTERNAL ? add_internal(batch, commit)
                                           : add_records(batch, commit);
}

void commit_batch_add(struct commit_batch *batch, struct commit *commit)
{
    if (!status_is_ok(commit->result) || commit->kind == COMMIT_BARRIER)
        return;
    if (commit->kind == COMMIT_REWRITE) {
        add_rewrite(batch, commit);
        return;
    }
    if (!add(batch, commit)) {
        commit->result = status_out_of_memory();
        return;
    }
    DCHECK(commit->sequence > batch->newest_sequence);
    batch->has_content = true;
    batch->wants_sync = batch->wants_sync || (needs_sync(commit->kind) && !commit->is_lazy);
    batch->must_sync = batch->must_sync || commit->is_synced;
    batch->newest_sequence = commit->sequence;
    if (commit->version > batch->newest_version)
        batch->newest_version = commit->version;
}
