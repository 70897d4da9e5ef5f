/* See placed.h. Entries are by name, in an array; each is changed in memory once its record is
 * written. */
#include "replica/placed.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "cluster/catalog_txn.h"
#include "wire/proto.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
    char *name;
    struct placed_instance is;
    struct stream_position from[VERSION_CLUSTERS];
};

struct placed {
    struct cluster *cluster;
    pthread_mutex_t changes;
    pthread_mutex_t lock; /* of the next ones; never held over the disk */
    bool has_begun;
    uint64_t since;
    struct entry *entries; /* by name */
    size_t count;
    size_t capacity;
};

enum { ARENA_BYTES = 1 << 20 };

#define KEY "placed"

/* --- the array; with the lock held --- */

static int compare(const struct entry *entry, bytes name)
{
    return bytes_compare(bytes_of(entry->name), name);
}

/* Where it is, or belongs. */
static size_t place_of(const struct placed *placed, bytes name)
{
    size_t from = 0, to = placed->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (compare(&placed->entries[middle], name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct entry *find(const struct placed *placed, bytes name)
{
    size_t at = place_of(placed, name);
    bool is_there = at < placed->count && compare(&placed->entries[at], name) == 0;
    return is_there ? &placed->entries[at] : NULL;
}

static status reserve(struct placed *placed)
{
    if (placed->count < placed->capacity)
        return status_ok();
    size_t capacity = placed->capacity == 0 ? 8 : 2 * placed->capacity;
    struct entry *entries = realloc(placed->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return status_out_of_memory();
    placed->entries = entries;
    placed->capacity = capacity;
    return status_ok();
}

/* The entry, which is made if there is none. */
static status take(struct placed *placed, const char *name, struct entry **out)
{
    if ((*out = find(placed, bytes_of(name))) != NULL)
        return status_ok();
    TRY(reserve(placed));
    char *copied = strdup(name);
    if (copied == NULL)
        return status_out_of_memory();
    size_t at = place_of(placed, bytes_of(name));
    memmove(&placed->entries[at + 1], &placed->entries[at],
            (placed->count - at) * sizeof *placed->entries);
    placed->entries[at] = (struct entry){.name = copied};
    placed->count++;
    *out = &placed->entries[at];
    return status_ok();
}

static void remove_entry(struct placed *placed, struct entry *entry)
{
    size_t at = (size_t)(entry - placed->entries);
    free(entry->name);
    placed->count--;
    memmove(entry, entry + 1, (placed->count - at) * sizeof *entry);
}

static bool is_whole(const struct entry *entry)
{
    return entry->is.state == PLACED_HERE || entry->is.state == PLACED_LEAVING;
}

/* --- records --- */

static status key_of(const char *name, struct buffer *out)
{
    buffer_append_bytes(out, bytes_of(KEY));
    buffer_append_bytes(out, bytes_of(name));
    return out->failed ? status_out_of_memory() : status_ok();
}

static status write_places(const struct entry *entry, struct arena *arena,
                           Replica__PlacedRecord *out)
{
    out->from = arena_alloc(arena, VERSION_CLUSTERS * sizeof(*out->from));
    if (out->from == NULL)
        return status_out_of_memory();
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++) {
        Replica__Place *place;
        if (entry->from[i].sequence == 0 && entry->from[i].ordinal == 0)
            continue;
        PROTO_NEW(arena, place, REPLICA__PLACE__INIT);
        PROTO_NEW(arena, place->after, REPLICA__POSITION__INIT);
        place->number = i;
        place->after->sequence = entry->from[i].sequence;
        place->after->ordinal = entry->from[i].ordinal;
        out->from[out->n_from++] = place;
    }
    return status_ok();
}

static status encode(const struct entry *entry, struct arena *arena, struct buffer *out)
{
    Replica__PlacedRecord record = REPLICA__PLACED_RECORD__INIT;
    record.state = entry->is.state == PLACED_COPYING ? PLACED_WANTED : entry->is.state;
    record.made_in = entry->is.made_in;
    record.was_whole = entry->is.was_whole;
    record.has_rows = entry->is.has_rows;
    record.lacks = entry->is.lacks;
    TRY(write_places(entry, arena, &record));
    proto_encode(&record.base, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* `value` empty: the record is deleted. */
static status write_record(struct placed *placed, bytes key, bytes value)
{
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(placed->cluster));
    if (txn == NULL)
        return status_out_of_memory();
    if (value.size > 0)
        catalog_txn_put(txn, key, value);
    else
        catalog_txn_delete(txn, key);
    status s = cluster_write_catalog(placed->cluster, txn);
    catalog_txn_destroy(txn);
    return s;
}

/* What a start has to know. Of one that is not here, and has nothing, there is no record. */
static bool has_record(const struct entry *entry)
{
    return entry->is.state != PLACED_NOT || entry->is.has_rows;
}

static status write_entry(struct placed *placed, const struct entry *entry)
{
    struct buffer key = {0}, value = {0};
    struct arena *arena = arena_create(ARENA_BYTES);
    status s = arena == NULL ? status_out_of_memory() : key_of(entry->name, &key);
    if (status_is_ok(s) && has_record(entry))
        s = encode(entry, arena, &value);
    if (status_is_ok(s))
        s = write_record(placed, buffer_bytes(&key), buffer_bytes(&value));
    buffer_free(&key);
    buffer_free(&value);
    arena_destroy(arena);
    return s;
}

/* --- reading them --- */

static status damaged(void)
{
    return status_make(STATUS_DATA_LOSS, "a record of what rows are here is damaged");
}

static status load_since(struct placed *placed, bytes value)
{
    if (value.size != BIG_ENDIAN_SIZE)
        return damaged();
    placed->has_begun = true;
    placed->since = big_endian_read(value.data);
    return status_ok();
}

static status load_entry(struct placed *placed, const char *name,
                         const Replica__PlacedRecord *record)
{
    struct entry *entry;
    TRY(take(placed, name, &entry));
    entry->is = (struct placed_instance){.state = record->state,
                                         .made_in = record->made_in,
                                         .was_whole = record->was_whole,
                                         .has_rows = record->has_rows,
                                         .lacks = record->lacks};
    for (size_t i = 0; i < record->n_from; i++) {
        const Replica__Place *place = record->from[i];
        if (place->number >= VERSION_CLUSTERS || place->after == NULL)
            return damaged();
        entry->from[place->number] =
            (struct stream_position){place->after->sequence, place->after->ordinal};
    }
    return status_ok();
}

static status load(void *context, bytes key, bytes value, struct arena *arena)
{
    struct placed *placed = context;
    ProtobufCMessage *record;
    bytes rest = bytes_from(key, strlen(KEY));
    if (rest.size == 0)
        return load_since(placed, value);
    status s = proto_decode(&replica__placed_record__descriptor, value, arena, &record);
    if (!status_is_ok(s)) {
        status_free(s);
        return damaged();
    }
    const char *name = arena_string(arena, rest);
    return name == NULL ? status_out_of_memory() : load_entry(placed, name, (const void *)record);
}

status placed_open(struct cluster *cluster, struct placed **out)
{
    struct placed *placed = *out = calloc(1, sizeof *placed);
    if (placed == NULL)
        return status_out_of_memory();
    placed->cluster = cluster;
    pthread_mutex_init(&placed->changes, NULL);
    pthread_mutex_init(&placed->lock, NULL);
    status s = catalog_visit(cluster_catalog(cluster), bytes_of(KEY), load, placed);
    if (!status_is_ok(s)) {
        placed_close(placed);
        *out = NULL;
    }
    return s;
}

static void free_entries(struct placed *placed)
{
    for (size_t i = 0; i < placed->count; i++)
        free(placed->entries[i].name);
    free(placed->entries);
    placed->entries = NULL;
    placed->count = placed->capacity = 0;
}

void placed_close(struct placed *placed)
{
    if (placed == NULL)
        return;
    free_entries(placed);
    pthread_mutex_destroy(&placed->lock);
    pthread_mutex_destroy(&placed->changes);
    free(placed);
}

void placed_lock_changes(struct placed *placed)
{
    pthread_mutex_lock(&placed->changes);
}

void placed_unlock_changes(struct placed *placed)
{
    pthread_mutex_unlock(&placed->changes);
}

/* --- the whole --- */

bool placed_has_begun(struct placed *placed)
{
    pthread_mutex_lock(&placed->lock);
    bool has_begun = placed->has_begun;
    pthread_mutex_unlock(&placed->lock);
    return has_begun;
}

uint64_t placed_since(struct placed *placed)
{
    pthread_mutex_lock(&placed->lock);
    uint64_t since = placed->since;
    pthread_mutex_unlock(&placed->lock);
    return since;
}

status placed_set_since(struct placed *placed, uint64_t version)
{
    uint8_t value[BIG_ENDIAN_SIZE];
    DCHECK(check_is_held(&placed->changes));
    big_endian_write(value, version);
    TRY(write_record(placed, bytes_of(KEY), bytes_make(value, sizeof value)));
    pthread_mutex_lock(&placed->lock);
    placed->has_begun = true;
    placed->since = version;
    pthread_mutex_unlock(&placed->lock);
    return status_ok();
}

/* --- an instance --- */

bool placed_find(struct placed *placed, bytes instance, struct placed_instance *out)
{
    pthread_mutex_lock(&placed->lock);
    const struct entry *entry = find(placed, instance);
    *out = entry == NULL ? (struct placed_instance){0} : entry->is;
    pthread_mutex_unlock(&placed->lock);
    return entry != NULL;
}

bool placed_is_here(struct placed *placed, bytes instance)
{
    pthread_mutex_lock(&placed->lock);
    const struct entry *entry = find(placed, instance);
    bool is_so = !placed->has_begun || (entry != NULL && is_whole(entry));
    pthread_mutex_unlock(&placed->lock);
    return is_so;
}

/* What is known of it, which is little if that is nothing. Its name is the caller's. */
static struct entry copy_of(struct placed *placed, const char *instance)
{
    union { /* the entry's own is not const */
        const char *given;
        char *wanted;
    } name = {.given = instance};
    pthread_mutex_lock(&placed->lock);
    const struct entry *entry = find(placed, bytes_of(instance));
    struct entry copy = entry == NULL ? (struct entry){0} : *entry;
    pthread_mutex_unlock(&placed->lock);
    copy.name = name.wanted;
    return copy;
}

static status show(struct placed *placed, const struct entry *as)
{
    struct entry *entry;
    pthread_mutex_lock(&placed->lock);
    status s = take(placed, as->name, &entry);
    if (status_is_ok(s)) {
        entry->is = as->is;
        memcpy(entry->from, as->from, sizeof entry->from);
    }
    pthread_mutex_unlock(&placed->lock);
    return s;
}

status placed_set(struct placed *placed, const char *instance, const struct placed_instance *to)
{
    DCHECK(check_is_held(&placed->changes));
    struct entry entry = copy_of(placed, instance);
    entry.is = *to;
    entry.is.is_noted = false;
    TRY(write_entry(placed, &entry));
    return show(placed, &entry);
}

status placed_note_new(struct placed *placed, const char *instance, uint64_t made_in)
{
    struct entry *entry;
    status s = status_ok();
    pthread_mutex_lock(&placed->lock);
    bool is_news =
        placed->has_begun && made_in > placed->since && find(placed, bytes_of(instance)) == NULL;
    if (is_news)
        s = take(placed, instance, &entry);
    if (is_news && status_is_ok(s))
        entry->is = (struct placed_instance){
            .state = PLACED_HERE, .made_in = made_in, .has_rows = true, .is_noted = true};
    pthread_mutex_unlock(&placed->lock);
    return s;
}

status placed_forget(struct placed *placed, const char *instance)
{
    struct buffer key = {0};
    DCHECK(check_is_held(&placed->changes));
    status s = key_of(instance, &key);
    if (status_is_ok(s))
        s = write_record(placed, buffer_bytes(&key), bytes_make(NULL, 0));
    buffer_free(&key);
    TRY(s);
    pthread_mutex_lock(&placed->lock);
    struct entry *entry = find(placed, bytes_of(instance));
    if (entry != NULL)
        remove_entry(placed, entry);
    pthread_mutex_unlock(&placed->lock);
    return status_ok();
}

/* The first behind the name, copied. */
static bool next(struct placed *placed, struct buffer *name, struct placed_instance *out)
{
    pthread_mutex_lock(&placed->lock);
    size_t at = place_of(placed, buffer_bytes(name));
    bool is_there = at < placed->count;
    if (is_there) {
        buffer_clear(name);
        buffer_append_bytes(name, bytes_of(placed->entries[at].name));
        buffer_append_byte(name, '\0');
        *out = placed->entries[at].is;
    }
    pthread_mutex_unlock(&placed->lock);
    return is_there;
}

status placed_visit(struct placed *placed,
                    bool (*visit)(void *context, const char *name,
                                  const struct placed_instance *instance),
                    void *context)
{
    struct buffer name = {0};
    struct placed_instance instance;
    bool goes_on = true;
    while (goes_on && next(placed, &name, &instance) && !name.failed)
        goes_on = visit(context, (const char *)name.data, &instance);
    status s = name.failed ? status_out_of_memory() : status_ok();
    buffer_free(&name);
    return s;
}

/* --- from where on --- */

enum placed_rule placed_rule(struct placed *placed, bytes instance, unsigned origin,
                             struct stream_position reached)
{
    enum placed_rule rule = PLACED_UNKNOWN;
    DCHECK(origin < VERSION_CLUSTERS);
    pthread_mutex_lock(&placed->lock);
    const struct entry *entry = find(placed, instance);
    if (entry != NULL)
        rule = (is_whole(entry) || entry->is.state == PLACED_COPYING) &&
                       stream_position_compare(reached, entry->from[origin]) > 0
                   ? PLACED_APPLY
                   : PLACED_SKIP;
    pthread_mutex_unlock(&placed->lock);
    return rule;
}

bool placed_bound(struct placed *placed, unsigned origin, struct stream_position after,
                  struct stream_position *until)
{
    bool is_there = false;
    DCHECK(origin < VERSION_CLUSTERS);
    pthread_mutex_lock(&placed->lock);
    for (size_t i = 0; i < placed->count; i++) {
        struct stream_position from = placed->entries[i].from[origin];
        bool is_behind = stream_position_compare(from, after) > 0;
        if (is_behind && (!is_there || stream_position_compare(from, *until) < 0))
            *until = from;
        is_there = is_there || is_behind;
    }
    pthread_mutex_unlock(&placed->lock);
    return is_there;
}

struct stream_position placed_from(struct placed *placed, bytes instance, unsigned origin)
{
    DCHECK(origin < VERSION_CLUSTERS);
    pthread_mutex_lock(&placed->lock);
    const struct entry *entry = find(placed, instance);
    struct stream_position from =
        entry == NULL ? (struct stream_position){0, 0} : entry->from[origin];
    pthread_mutex_unlock(&placed->lock);
    return from;
}

void placed_set_from(struct placed *placed, const char *instance, unsigned origin,
                     struct stream_position from)
{
    DCHECK(origin < VERSION_CLUSTERS);
    pthread_mutex_lock(&placed->lock);
    struct entry *entry = find(placed, bytes_of(instance));
    if (entry != NULL)
        entry->from[origin] = from;
    pthread_mutex_unlock(&placed->lock);
}

struct raising {
    struct placed *placed;
    unsigned origin;
    struct stream_position to;
    status s;
};

static bool raise_one(void *context, const char *name, const struct placed_instance *instance)
{
    struct raising *raising = context;
    struct entry entry = copy_of(raising->placed, name);
    (void)instance;
    if (!is_whole(&entry) || stream_position_compare(entry.from[raising->origin], raising->to) >= 0)
        return true;
    entry.from[raising->origin] = raising->to;
    entry.is.is_noted = false;
    raising->s = write_entry(raising->placed, &entry);
    if (status_is_ok(raising->s))
        raising->s = show(raising->placed, &entry);
    return status_is_ok(raising->s);
}

status placed_raise(struct placed *placed, unsigned origin, struct stream_position to)
{
    struct raising raising = {placed, origin, to, status_ok()};
    DCHECK(origin < VERSION_CLUSTERS && check_is_held(&placed->changes));
    TRY(placed_visit(placed, raise_one, &raising));
    return raising.s;
}

/* --- the end --- */

static bool delete_record(void *context, const char *name, const struct placed_instance *instance)
{
    struct raising *ending = context;
    (void)instance;
    ending->s = placed_forget(ending->placed, name);
    return status_is_ok(ending->s);
}

status placed_end(struct placed *placed)
{
    struct raising ending = {.placed = placed, .s = status_ok()};
    DCHECK(check_is_held(&placed->changes));
    TRY(placed_visit(placed, delete_record, &ending));
    TRY(ending.s);
    TRY(write_record(placed, bytes_of(KEY), bytes_make(NULL, 0)));
    pthread_mutex_lock(&placed->lock);
    placed->has_begun = false;
    pthread_mutex_unlock(&placed->lock);
    return status_ok();
}
