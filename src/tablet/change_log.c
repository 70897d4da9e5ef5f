/* See change_log.h. The record is a catalog.ChangeLog (proto/trestle/catalog.proto). */
#include "tablet/change_log_private.h"

#include "base/check.h"
#include "tablet/commit.h"
#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <endian.h>
#include <stdlib.h>

enum { RECORD_MEMORY = 16 << 10 };

static bytes record_key(void)
{
    return bytes_of("change-log");
}

/* --- the record --- */

static bool copy_chain(struct change_log_state *state, bytes chain)
{
    if (chain.size != 0 && chain.size != sizeof state->chain)
        return false;
    if (chain.size > 0)
        memcpy(state->chain, chain.data, chain.size);
    return true;
}

static status state_of(const Catalog__ChangeLog *message, struct change_log_state *out)
{
    *out = (struct change_log_state){.keyspace = message->keyspace,
                                     .stream = message->stream,
                                     .began = message->began,
                                     .is_on = message->is_on,
                                     .taken = message->taken,
                                     .gap_from = message->gap_from,
                                     .gap_to = message->gap_to,
                                     .pieces = message->pieces,
                                     .last_gap = message->last_gap,
                                     .based = message->based,
                                     .place = message->place};
    if (out->keyspace == 0 || out->stream == 0 || out->taken < out->began ||
        (!out->is_on && out->gap_from == 0) ||
        !copy_chain(out, bytes_make(message->chain.data, message->chain.len)))
        return status_make(STATUS_DATA_LOSS, "the record of the change log says what cannot be");
    return status_ok();
}

static status parse(bytes value, struct arena *arena, struct change_log_state *out)
{
    ProtobufCMessage *message;
    status s = proto_decode(&catalog__change_log__descriptor, value, arena, &message);
    if (status_is_ok(s))
        return state_of((const Catalog__ChangeLog *)(void *)message, out);
    status damage = status_make(STATUS_DATA_LOSS, "the record of the change log is damaged: %s",
                                status_message(s));
    status_free(s);
    return damage;
}

status change_log_read(struct keyspace *catalog, struct change_log_state *out, bool *exists)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    *out = (struct change_log_state){0};
    status s = store_get(catalog, NULL, record_key(), STORE_READ_ANY, &value, &presence);
    *exists = status_is_ok(s) && presence == STORE_FOUND;
    if (*exists) {
        struct arena *arena = arena_create(RECORD_MEMORY);
        s = arena == NULL ? status_out_of_memory() : parse(value.bytes, arena, out);
        arena_destroy(arena);
    }
    store_value_release(&value);
    return s;
}

status change_log_exists(struct keyspace *catalog, bool *exists)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(catalog, NULL, record_key(), STORE_READ_ANY, &value, &presence);
    *exists = status_is_ok(s) && presence == STORE_FOUND;
    store_value_release(&value);
    return s;
}

/* Whether a start would take the state. */
static bool is_possible(const struct change_log_state *state)
{
    return state->keyspace != 0 && state->stream != 0 && state->taken >= state->began &&
           (state->is_on || state->gap_from != 0);
}

void change_log_put(struct store_batch *batch, struct keyspace *catalog,
                    const struct change_log_state *state)
{
    DCHECK(is_possible(state));
    uint8_t chain[CHANGE_LOG_CHAIN_BYTES];
    memcpy(chain, state->chain, sizeof chain);
    Catalog__ChangeLog message = CATALOG__CHANGE_LOG__INIT;
    message.keyspace = state->keyspace;
    message.stream = state->stream;
    message.began = state->began;
    message.is_on = state->is_on;
    message.taken = state->taken;
    message.gap_from = state->gap_from;
    message.gap_to = state->gap_to;
    message.pieces = state->pieces;
    message.chain = (ProtobufCBinaryData){.len = sizeof chain, .data = chain};
    message.last_gap = state->last_gap;
    message.based = state->based;
    message.place = state->place;
    struct buffer value = {0};
    proto_encode(&message.base, &value);
    if (value.failed)
        store_batch_fail(batch);
    else
        store_batch_put(batch, catalog, record_key(), buffer_bytes(&value));
    buffer_free(&value);
}

void change_log_end(struct store_batch *batch, struct keyspace *catalog)
{
    store_batch_delete(batch, catalog, record_key());
}

void change_log_begin_gap(struct change_log_state *state)
{
    state->is_on = false;
    if (state->gap_from == 0)
        state->gap_from = state->taken;
    state->gap_to = 0;
}

/* --- life --- */

/* The sequence of the last event that it has; what was taken if there is none. */
status change_log_find_newest(struct keyspace *keyspace, uint64_t taken, uint64_t *newest)
{
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    uint64_t first = 0;
    *newest = taken;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    store_cursor_last(cursor);
    status s = status_ok();
    if (!store_cursor_valid(cursor))
        s = store_cursor_status(cursor);
    else if (!event_entry_bounds(store_cursor_value(cursor), &first, newest))
        s = status_make(STATUS_DATA_LOSS, "the last entry of the change log is damaged");
    store_cursor_destroy(cursor);
    return s;
}

struct measuring {
    uint64_t bytes;
    uint64_t newest;
};

static status measure_entry(void *context, bytes entry, bool *enough)
{
    struct measuring *measuring = context;
    uint64_t first;
    (void)enough;
    measuring->bytes += sizeof(uint64_t) + entry.size;
    return event_entry_bounds(entry, &first, &measuring->newest)
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "an entry of the change log is damaged");
}

/* The store's estimate counts what was deleted, too: so it is read. What was taken is not: it may
 * lie in a damaged table. */
static status measure(struct change_log *log)
{
    struct measuring measuring = {.newest = log->state.taken};
    TRY(change_log_read_waiting(log, measure_entry, &measuring));
    atomic_init(&log->waiting_bytes, measuring.bytes);
    atomic_init(&log->newest, measuring.newest);
    return status_ok();
}

status change_log_open(const struct change_log_options *options,
                       const struct change_log_state *state, struct change_log **out)
{
    *out = NULL;
    struct keyspace *keyspace = store_keyspace_find(options->store, state->keyspace);
    if (keyspace == NULL)
        return status_make(STATUS_DATA_LOSS, "the keyspace of the change log is missing");
    struct change_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return status_out_of_memory();
    log->magic = CHANGE_LOG_MAGIC;
    log->options = *options;
    log->keyspace = keyspace;
    log->state = *state;
    pthread_mutex_init(&log->lock, NULL);
    status s = measure(log);
    if (!status_is_ok(s)) {
        change_log_close(log);
        return s;
    }
    *out = log;
    return status_ok();
}

void change_log_close(struct change_log *log)
{
    if (log == NULL)
        return;
    CHECK_MAGIC(log, CHANGE_LOG_MAGIC);
    buffer_free(&log->pending.bytes);
    pthread_mutex_destroy(&log->lock);
    log->magic = 0;
    free(log);
}

/* --- the commit thread's --- */

struct sequence_key {
    uint64_t big_endian;
};

static struct sequence_key key_of(uint64_t sequence)
{
    return (struct sequence_key){htobe64(sequence)};
}

static bytes key_bytes(const struct sequence_key *key)
{
    return bytes_make(key, sizeof *key);
}

static void delete_up_to(struct change_log *log, struct store_batch *batch, uint64_t sequence)
{
    struct sequence_key from = key_of(0), to = key_of(sequence + 1);
    store_batch_delete_range(batch, log->keyspace, key_bytes(&from), key_bytes(&to));
}

static void set_state(struct change_log *log, const struct change_log_state *state)
{
    pthread_mutex_lock(&log->lock);
    log->state = *state;
    pthread_mutex_unlock(&log->lock);
}

static void turn_off(struct change_log *log, struct store_batch *batch)
{
    struct change_log_state state = log->state;
    change_log_begin_gap(&state);
    delete_up_to(log, batch, UINT64_MAX - 1);
    change_log_put(batch, log->options.catalog, &state);
    set_state(log, &state);
    atomic_store(&log->waiting_bytes, 0);
}

bool change_log_begin_batch(struct change_log *log, struct store_batch *batch)
{
    log->before = log->state;
    log->waiting_before = atomic_load(&log->waiting_bytes);
    log->added_bytes = 0;
    if (!log->state.is_on || log->waiting_before <= log->options.limit_bytes)
        return false;
    turn_off(log, batch);
    return true;
}

bool change_log_is_on(const struct change_log *log)
{
    return log->state.is_on;
}

void change_log_append(struct change_log *log, struct store_batch *batch, uint64_t first_sequence,
                       bytes entry)
{
    DCHECK(log->state.is_on && entry.size > 0);
    struct sequence_key key = key_of(first_sequence);
    DCHECK(first_sequence > atomic_load(&log->newest));
    store_batch_put(batch, log->keyspace, key_bytes(&key), entry);
    log->added_bytes += sizeof key + entry.size;
}

void change_log_end_batch(struct change_log *log, bool is_written, uint64_t last_sequence)
{
    DCHECK(!is_written || last_sequence == 0 || last_sequence >= atomic_load(&log->newest));
    if (!is_written) {
        set_state(log, &log->before);
        atomic_store(&log->waiting_bytes, log->waiting_before);
        return;
    }
    atomic_fetch_add(&log->waiting_bytes, log->added_bytes);
    if (last_sequence != 0)
        atomic_store(&log->newest, last_sequence);
}

/* --- taking it away --- */

void change_log_look(struct change_log *log, struct change_log_state *out)
{
    pthread_mutex_lock(&log->lock);
    *out = log->state;
    pthread_mutex_unlock(&log->lock);
}

uint64_t change_log_waiting_bytes(const struct change_log *log)
{
    return atomic_load(&log->waiting_bytes);
}

uint64_t change_log_newest(const struct change_log *log)
{
    return atomic_load(&log->newest);
}

static status visit_entries(struct store_cursor *cursor,
                            status (*visit)(void *context, bytes entry, bool *enough),
                            void *context)
{
    bool enough = false;
    for (store_cursor_first(cursor); store_cursor_valid(cursor) && !enough;
         store_cursor_next(cursor))
        TRY(visit(context, store_cursor_value(cursor), &enough));
    return store_cursor_status(cursor);
}

status change_log_read_waiting(struct change_log *log,
                               status (*visit)(void *context, bytes entry, bool *enough),
                               void *context)
{
    struct change_log_state state;
    struct store_cursor *cursor;
    change_log_look(log, &state);
    struct sequence_key from = key_of(state.taken + 1);
    struct store_cursor_options options = {
        .lower = key_bytes(&from), .read_tier = STORE_READ_ANY, .bypasses_cache = true};
    TRY(store_cursor_create(log->keyspace, &options, &cursor));
    status s = visit_entries(cursor, visit, context);
    store_cursor_destroy(cursor);
    return s;
}

struct edit_commit {
    struct commit commit;
    struct change_log *log;
    void (*edit)(void *context, struct change_log_state *state, uint64_t sequence);
    void *context;
    uint64_t taken_bytes;
};

static void extend_by_edit(struct commit *commit, struct store_batch *batch)
{
    struct edit_commit *write = (struct edit_commit *)(void *)commit;
    struct change_log *log = write->log;
    struct change_log_state state = log->state;
    uint64_t waiting = atomic_load(&log->waiting_bytes);
    write->edit(write->context, &state, commit->sequence);
    DCHECK(state.taken >= log->state.taken);
    if (state.taken > log->state.taken)
        delete_up_to(log, batch, state.taken);
    atomic_store(&log->waiting_bytes,
                 waiting > write->taken_bytes ? waiting - write->taken_bytes : 0);
    change_log_put(batch, log->options.catalog, &state);
    set_state(log, &state);
}

status change_log_edit(struct change_log *log, struct commit_queue *queue,
                       void (*edit)(void *context, struct change_log_state *state,
                                    uint64_t sequence),
                       void *context, uint64_t taken_bytes)
{
    CHECK_MAGIC(log, CHANGE_LOG_MAGIC);
    struct edit_commit write = {.commit = {.kind = COMMIT_INTERNAL,
                                           .extend = extend_by_edit,
                                           .frees_space = true,
                                           .is_synced = true},
                                .log = log,
                                .edit = edit,
                                .context = context,
                                .taken_bytes = taken_bytes};
    return commit_and_wait(queue, &write.commit);
}
