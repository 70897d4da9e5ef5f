/* See allocate.h. */
#include "datastore/commit/allocate.h"

#include "datastore/commit/rows_write.h"
#include "datastore/commit/snapshot.h"
#include "datastore/model/ids.h"

#include <endian.h>

enum { BLOCK = 1000, MOST_TRIES = 10000 };

/* --- single rows --- */

/* The newest value of a row; empty if it is not there. In the arena. */
static status read_row(struct ds_open_database *open, bytes key, struct arena *arena, bytes *out,
                       bool *found)
{
    const struct ds_snapshot newest = {
        .table = open->table, .database = {open->project, open->id}, .at_us = INT64_MAX};
    struct ds_rows_reader *reader;
    struct ds_row_found row;
    struct buffer after = {0};
    buffer_append_bytes(&after, key);
    buffer_append_byte(&after, 0);
    status s = after.failed
                   ? status_out_of_memory()
                   : ds_rows_open(&newest, DS_FORWARDS, key, buffer_bytes(&after), arena, &reader);
    if (status_is_ok(s)) {
        s = ds_rows_next(reader, &row, found);
        if (status_is_ok(s) && *found)
            *out = arena_copy(arena, row.value);
        ds_rows_close(reader);
    }
    buffer_free(&after);
    return s;
}

static status write_row(struct datastore *datastore, struct ds_open_database *open, bytes key,
                        bytes value, struct arena *arena)
{
    const struct ds_row_write row = {.key = key, .is = true, .now = value};
    return ds_rows_write(open->table, &row, 1, cluster_version_us(datastore->cluster), arena);
}

/* --- the counter --- */

status ds_id_counter_row(struct arena *arena, bytes *out)
{
    struct buffer key = {0};
    ds_numbers_row(&key, bytes_make(NULL, 0), bytes_make(NULL, 0));
    *out = arena_copy(arena, buffer_bytes(&key));
    bool failed = key.failed || out->data == NULL;
    buffer_free(&key);
    return failed ? status_out_of_memory() : status_ok();
}

status ds_id_counter_read(bytes value, uint64_t *claimed)
{
    if (value.size != sizeof *claimed)
        return ds_damaged("the counter of ids");
    memcpy(claimed, value.data, sizeof *claimed);
    *claimed = be64toh(*claimed);
    return status_ok();
}

status ds_id_counter_value(uint64_t claimed, struct arena *arena, bytes *out)
{
    uint64_t value = htobe64(claimed);
    *out = arena_copy(arena, bytes_make(&value, sizeof value));
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* With the lock held. Counters that were claimed before, and not given, are not given any more. */
static status load_counter(struct ds_open_database *open, bytes row, struct arena *arena)
{
    bytes value = {0};
    uint64_t claimed = 0;
    bool found = false;
    TRY(read_row(open, row, arena, &value, &found));
    if (found)
        TRY(ds_id_counter_read(value, &claimed));
    open->claimed = claimed;
    open->next_counter = open->claimed + 1;
    return status_ok();
}

static status claim_block(struct datastore *datastore, struct ds_open_database *open, bytes row,
                          struct arena *arena)
{
    bytes claimed;
    TRY(ds_id_counter_value(open->claimed + BLOCK, arena, &claimed));
    TRY(write_row(datastore, open, row, claimed, arena));
    open->claimed += BLOCK;
    return status_ok();
}

/* Whether a call is about to take the counter; such calls are few, and seldom. With the lock held.
 */
static bool is_held(const struct ds_open_database *open, uint64_t counter)
{
    for (const struct ds_held_ids *at = open->held_ids; at != NULL; at = at->next) {
        const uint64_t *counters = at->counters.items;
        for (size_t i = 0; i < at->counters.count; i++)
            if (counters[i] == counter)
                return true;
    }
    return false;
}

/* With the lock held. */
static status draw(struct datastore *datastore, struct ds_open_database *open, struct arena *arena,
                   int64_t *out)
{
    bytes row;
    TRY(ds_id_counter_row(arena, &row));
    if (open->next_counter == 0)
        TRY(load_counter(open, row, arena));
    while (is_held(open, open->next_counter))
        open->next_counter++;
    while (open->next_counter > open->claimed)
        TRY(claim_block(datastore, open, row, arena));
    *out = ds_scattered_id(open->next_counter++);
    return status_ok();
}

static status draw_id(struct datastore *datastore, struct ds_open_database *open,
                      struct arena *arena, int64_t *out)
{
    pthread_mutex_lock(&open->ids_lock);
    status s = draw(datastore, open, arena, out);
    pthread_mutex_unlock(&open->ids_lock);
    return s;
}

/* --- marks --- */

status ds_id_mark_row(const Ds__Key *key, struct arena *arena, bytes *out)
{
    struct buffer row = {0};
    ds_numbers_row(&row, ds_key_namespace(key), ds_key_kind(key));
    ds_number_append(&row, (uint64_t)key->path[key->n_path - 1]->id);
    *out = arena_copy(arena, buffer_bytes(&row));
    bool failed = row.failed || out->data == NULL;
    buffer_free(&row);
    return failed ? status_out_of_memory() : status_ok();
}

/* With the lock held. */
static status hold(struct ds_open_database *open, uint64_t counter, struct ds_held_ids *held,
                   struct arena *arena)
{
    TRY(vector_add(&held->counters, arena, &counter, sizeof counter));
    if (held->is_listed)
        return status_ok();
    held->is_listed = true;
    held->next = open->held_ids;
    open->held_ids = held;
    return status_ok();
}

status ds_id_mark(struct ds_open_database *open, const Ds__Key *key, struct ds_held_ids *held,
                  struct arena *arena, bytes *row_key)
{
    const Ds__Key__PathElement *last = key->path[key->n_path - 1];
    *row_key = bytes_make(NULL, 0);
    if (last->id_type_case != DS__KEY__PATH_ELEMENT__ID_TYPE_ID)
        return status_ok();
    uint64_t counter = ds_counter_of_id(last->id);
    pthread_mutex_lock(&open->ids_lock);
    bool may_come = counter != 0 && (open->next_counter == 0 || counter >= open->next_counter);
    status s = may_come ? hold(open, counter, held, arena) : status_ok();
    pthread_mutex_unlock(&open->ids_lock);
    return may_come && status_is_ok(s) ? ds_id_mark_row(key, arena, row_key) : s;
}

uint64_t ds_ids_claimed(struct ds_open_database *open)
{
    pthread_mutex_lock(&open->ids_lock);
    uint64_t claimed = open->next_counter == 0 ? 0 : open->claimed;
    pthread_mutex_unlock(&open->ids_lock);
    return claimed;
}

void ds_ids_release(struct ds_open_database *open, struct ds_held_ids *held)
{
    if (!held->is_listed)
        return;
    pthread_mutex_lock(&open->ids_lock);
    struct ds_held_ids **at = &open->held_ids;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    held->is_listed = false;
    pthread_mutex_unlock(&open->ids_lock);
}

/* Whether the id was taken by a client. */
static status is_taken(struct ds_open_database *open, const Ds__Key *key, struct arena *arena,
                       bool *out)
{
    bytes row, value;
    TRY(ds_id_mark_row(key, arena, &row));
    return read_row(open, row, arena, &value, out);
}

status ds_id_allocate(struct datastore *datastore, struct ds_open_database *open, Ds__Key *key,
                      struct arena *arena)
{
    Ds__Key__PathElement *last = key->path[key->n_path - 1];
    bool taken = true;
    last->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
    for (int i = 0; taken && i < MOST_TRIES; i++) {
        TRY(draw_id(datastore, open, arena, &last->id));
        TRY(is_taken(open, key, arena, &taken));
    }
    return taken ? status_make(STATUS_UNAVAILABLE, "Too many ids in a row are taken.")
                 : status_ok();
}
