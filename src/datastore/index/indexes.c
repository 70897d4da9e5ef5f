/* See indexes.h. */
#include "datastore/index/indexes.h"

#include "base/check.h"
#include "datastore/commit/rows_write.h"
#include "datastore/commit/snapshot.h"

#include <stdlib.h>

enum { SET_MEMORY = 64 << 20 }; /* far more than LIMIT_DS_COMPOSITE_INDEXES definitions have */

struct ds_indexes {
    pthread_mutex_t changing; /* held from the look at what there is to the change */
    pthread_mutex_t lock;     /* of what follows, for moments */
    pthread_cond_t given_back;
    struct ds_index_set *present;
    struct ds_index_set *older; /* that are in use */
};

/* --- sets --- */

static void free_set(struct ds_index_set *set)
{
    if (set == NULL)
        return;
    arena_destroy(set->arena);
    free(set);
}

static status new_set(struct ds_index_set **out)
{
    struct ds_index_set *set = *out = calloc(1, sizeof *set);
    if (set == NULL)
        return status_out_of_memory();
    set->arena = arena_create(SET_MEMORY);
    if (set->arena != NULL)
        return status_ok();
    free(set);
    *out = NULL;
    return status_out_of_memory();
}

static bool is_kept(const Datastore__CompositeIndex *definition)
{
    return definition->state == DS_ADMIN__INDEX__STATE__READY ||
           definition->state == DS_ADMIN__INDEX__STATE__CREATING;
}

static int64_t ready_us_of(const Datastore__CompositeIndex *definition)
{
    return definition->state == DS_ADMIN__INDEX__STATE__READY ? definition->ready_us : INT64_MAX;
}

static int compare_readiness(const void *a, const void *b)
{
    const Datastore__CompositeIndex *const *first = a, *const *second = b;
    int64_t first_us = ready_us_of(*first), second_us = ready_us_of(*second);
    if (first_us != second_us)
        return first_us < second_us ? -1 : 1;
    return (*first)->id < (*second)->id ? -1 : (*first)->id > (*second)->id;
}

/* Sets the indexes that writers and queries use, from the definitions. */
static status complete_set(struct ds_index_set *set)
{
    size_t most = set->definition_count;
    const Datastore__CompositeIndex **kept = arena_alloc(set->arena, most * sizeof *kept);
    struct ds_index *indexes = arena_alloc(set->arena, most * sizeof *indexes);
    int64_t *ready_us = arena_alloc(set->arena, most * sizeof *ready_us);
    if (kept == NULL || indexes == NULL || ready_us == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < most; i++)
        if (is_kept(set->definitions[i]))
            kept[set->count++] = set->definitions[i];
    if (set->count > 0)
        qsort(kept, set->count, sizeof *kept, compare_readiness);
    for (size_t i = 0; i < set->count; i++) {
        TRY(ds_definition_index(kept[i], set->arena, &indexes[i]));
        ready_us[i] = ready_us_of(kept[i]);
    }
    set->indexes = indexes;
    set->ready_us = ready_us;
    return status_ok();
}

static status add_definition(struct ds_index_set *set, const Datastore__CompositeIndex *definition)
{
    bytes value;
    TRY(ds_definition_encode(definition, set->arena, &value));
    return ds_definition_decode(value, set->arena, &set->definitions[set->definition_count++]);
}

/* The old set's definitions, except the one of the id; and the new one, if there is one. */
static status fill_set(struct ds_index_set *set, const struct ds_index_set *old, uint64_t id,
                       const Datastore__CompositeIndex *definition)
{
    set->definitions =
        arena_alloc(set->arena, (old->definition_count + 1) * sizeof *set->definitions);
    if (set->definitions == NULL)
        return status_out_of_memory();
    size_t i = 0;
    for (; i < old->definition_count && (uint64_t)old->definitions[i]->id < id; i++)
        TRY(add_definition(set, old->definitions[i]));
    if (definition != NULL)
        TRY(add_definition(set, definition));
    i += i < old->definition_count && (uint64_t)old->definitions[i]->id == id;
    for (; i < old->definition_count; i++)
        TRY(add_definition(set, old->definitions[i]));
    return complete_set(set);
}

size_t ds_index_set_ready(const struct ds_index_set *set, int64_t at_us)
{
    size_t count = 0;
    while (count < set->count && set->ready_us[count] <= at_us)
        count++;
    return count;
}

/* --- in use --- */

const struct ds_index_set *ds_indexes_take(struct ds_indexes *indexes)
{
    pthread_mutex_lock(&indexes->lock);
    struct ds_index_set *set = indexes->present;
    set->users++;
    pthread_mutex_unlock(&indexes->lock);
    return set;
}

/* With the lock held. */
static struct ds_index_set **place_of(struct ds_indexes *indexes, const struct ds_index_set *set)
{
    struct ds_index_set **at = &indexes->present;
    if (*at != set)
        for (at = &indexes->older; *at != set; at = &(*at)->next)
            CHECK(*at != NULL);
    return at;
}

void ds_indexes_give_back(struct ds_indexes *indexes, const struct ds_index_set *set)
{
    struct ds_index_set *unused = NULL;
    pthread_mutex_lock(&indexes->lock);
    struct ds_index_set **at = place_of(indexes, set);
    CHECK((*at)->users > 0);
    if (--(*at)->users == 0 && at != &indexes->present) {
        unused = *at;
        *at = unused->next;
        pthread_cond_broadcast(&indexes->given_back);
    }
    pthread_mutex_unlock(&indexes->lock);
    free_set(unused);
}

bool ds_indexes_keeps(struct ds_indexes *indexes, bytes row_key)
{
    uint64_t id;
    if (!ds_composite_row_index(row_key, &id))
        return true;
    bool keeps = false;
    pthread_mutex_lock(&indexes->lock);
    for (size_t i = 0; i < indexes->present->count; i++)
        keeps = keeps || indexes->present->indexes[i].id == id;
    pthread_mutex_unlock(&indexes->lock);
    return keeps;
}

static void make_present(struct ds_indexes *indexes, struct ds_index_set *set)
{
    pthread_mutex_lock(&indexes->lock);
    struct ds_index_set *old = indexes->present;
    set->number = old->number + 1;
    indexes->present = set;
    if (old->users > 0) {
        old->next = indexes->older;
        indexes->older = old;
        old = NULL;
    }
    pthread_mutex_unlock(&indexes->lock);
    free_set(old);
}

/* With the lock held. */
static bool is_used_before(const struct ds_indexes *indexes, uint64_t number)
{
    const struct ds_index_set *at = indexes->older;
    while (at != NULL && at->number >= number)
        at = at->next;
    return at != NULL;
}

void ds_indexes_drain(struct ds_indexes *indexes)
{
    pthread_mutex_lock(&indexes->lock);
    uint64_t number = indexes->present->number;
    while (is_used_before(indexes, number))
        pthread_cond_wait(&indexes->given_back, &indexes->lock);
    pthread_mutex_unlock(&indexes->lock);
}

/* --- changes --- */

void ds_indexes_lock(struct ds_indexes *indexes)
{
    pthread_mutex_lock(&indexes->changing);
}

void ds_indexes_unlock(struct ds_indexes *indexes)
{
    pthread_mutex_unlock(&indexes->changing);
}

static status row_key_of(uint64_t id, struct arena *arena, bytes *out)
{
    struct buffer key = {0};
    ds_index_row(&key, id);
    *out = arena_copy(arena, buffer_bytes(&key));
    bool failed = key.failed || out->data == NULL;
    buffer_free(&key);
    return failed ? status_out_of_memory() : status_ok();
}

status ds_definition_row(const Datastore__CompositeIndex *definition, struct arena *arena,
                         struct ds_row_write *out)
{
    *out = (struct ds_row_write){.is = true};
    TRY(row_key_of((uint64_t)definition->id, arena, &out->key));
    return ds_definition_encode(definition, arena, &out->now);
}

static status change(struct datastore *datastore, struct ds_open_database *open, uint64_t id,
                     const Datastore__CompositeIndex *definition, const struct ds_row_write *row,
                     struct arena *arena)
{
    struct ds_index_set *set;
    TRY(new_set(&set));
    status s = fill_set(set, open->indexes->present, id, definition);
    if (status_is_ok(s))
        s = ds_rows_write_in_order(open->table, row, 1, &open->sequencer,
                                   cluster_version_us(datastore->cluster), arena);
    if (status_is_ok(s))
        make_present(open->indexes, set);
    else
        free_set(set);
    return s;
}

status ds_indexes_put(struct datastore *datastore, struct ds_open_database *open,
                      const Datastore__CompositeIndex *definition, struct arena *arena)
{
    struct ds_row_write row;
    TRY(ds_definition_row(definition, arena, &row));
    return change(datastore, open, (uint64_t)definition->id, definition, &row, arena);
}

status ds_indexes_remove(struct datastore *datastore, struct ds_open_database *open, uint64_t id,
                         struct arena *arena)
{
    struct ds_row_write row = {.is = false};
    TRY(row_key_of(id, arena, &row.key));
    return change(datastore, open, id, NULL, &row, arena);
}

/* --- reading what is kept --- */

static status read_definition(struct ds_rows_reader *reader, struct arena *arena,
                              Datastore__CompositeIndex **out, bool *found)
{
    struct ds_row_found row;
    TRY(ds_rows_next(reader, &row, found));
    if (!*found)
        return status_ok();
    bytes value = arena_copy(arena, row.value);
    if (value.data == NULL)
        return status_out_of_memory();
    return ds_definition_decode(value, arena, out);
}

/* Reads definitions from the rows from `from` on, at most so many. */
static status read_definitions(struct ds_open_database *open, bytes from, size_t most,
                               struct arena *arena, struct vector *out)
{
    static const uint8_t end = DS_INDEX_ROW + 1;
    const struct ds_snapshot newest = {
        .table = open->table, .database = {open->project, open->id}, .at_us = INT64_MAX};
    struct ds_rows_reader *reader;
    bool found = true;
    TRY(ds_rows_open(&newest, DS_FORWARDS, from, bytes_make(&end, 1), arena, &reader));
    status s = status_ok();
    while (status_is_ok(s) && found && out->count < most) {
        Datastore__CompositeIndex *definition;
        s = read_definition(reader, arena, &definition, &found);
        if (status_is_ok(s) && found)
            s = vector_add(out, arena, &definition, sizeof definition);
    }
    ds_rows_close(reader);
    return s;
}

status ds_indexes_read(struct ds_open_database *open, uint64_t id, struct arena *arena,
                       Datastore__CompositeIndex **out)
{
    struct vector definitions = {0};
    bytes row_key;
    *out = NULL;
    TRY(row_key_of(id, arena, &row_key));
    TRY(read_definitions(open, row_key, 1, arena, &definitions));
    Datastore__CompositeIndex **first = definitions.items;
    if (definitions.count == 1 && (uint64_t)(*first)->id == id)
        *out = *first;
    return status_ok();
}

status ds_indexes_list(struct ds_open_database *open, struct arena *arena, struct vector *out)
{
    static const uint8_t from = DS_INDEX_ROW;
    *out = (struct vector){0};
    return read_definitions(open, bytes_make(&from, 1), SIZE_MAX, arena, out);
}

static status read_set(struct ds_open_database *open, struct ds_index_set *set)
{
    struct vector definitions;
    TRY(ds_indexes_list(open, set->arena, &definitions));
    set->definitions = definitions.items;
    set->definition_count = definitions.count;
    return complete_set(set);
}

status ds_indexes_create(struct ds_open_database *open, struct ds_indexes **out)
{
    struct ds_indexes *indexes = *out = calloc(1, sizeof *indexes);
    if (indexes == NULL)
        return status_out_of_memory();
    pthread_mutex_init(&indexes->changing, NULL);
    pthread_mutex_init(&indexes->lock, NULL);
    pthread_cond_init(&indexes->given_back, NULL);
    TRY(new_set(&indexes->present));
    return read_set(open, indexes->present);
}

void ds_indexes_destroy(struct ds_indexes *indexes)
{
    if (indexes == NULL)
        return;
    CHECK(indexes->older == NULL);
    free_set(indexes->present);
    pthread_cond_destroy(&indexes->given_back);
    pthread_mutex_destroy(&indexes->lock);
    pthread_mutex_destroy(&indexes->changing);
    free(indexes);
}
