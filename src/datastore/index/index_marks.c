/* See index_marks.h. Open addressing; a place that has been taken is never given up.
 *
 * A record: a 1; then, as 4 bytes, big-endian, the minute since which uses are marked; a byte, 1 if
 * the set was full; and of each index its hash, 8 bytes, and the minute of its last use, 4. */
#include "datastore/index/index_marks.h"

#include "base/siphash.h"

#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>

/* `PROBES`: an index that finds no place among so many has none; so a set that is nearly full costs
 * a query no more. */
enum { VERSION = 1, HEAD_BYTES = 6, ENTRY_BYTES = 12, PROBES = 32 };

_Static_assert(HEAD_BYTES + DS_INDEX_MARKS * ENTRY_BYTES <= DS_INDEX_MARKS_BYTES, "a record");

struct mark {
    _Atomic uint64_t index; /* 0: free */
    _Atomic uint32_t minute;
};

struct ds_index_marks {
    _Atomic uint32_t since;
    atomic_bool is_full;
    atomic_bool has_changed;
    struct mark all[DS_INDEX_MARKS];
};

struct ds_index_marks *ds_index_marks_create(void)
{
    return calloc(1, sizeof(struct ds_index_marks));
}

void ds_index_marks_destroy(struct ds_index_marks *marks)
{
    free(marks);
}

static uint64_t some_hash(struct siphash *hash)
{
    uint64_t found = siphash_finish(hash).words[0];
    return found == 0 ? 1 : found;
}

uint64_t ds_index_mark_built_in(bytes kind, bytes property, enum ds_flip flip)
{
    const uint64_t sizes[] = {kind.size, flip == DS_DESCENDING};
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, bytes_make((const uint8_t *)sizes, sizeof sizes));
    siphash_add(&hash, kind);
    siphash_add(&hash, property);
    return some_hash(&hash);
}

uint64_t ds_index_mark_composite(uint64_t id)
{
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, bytes_make((const uint8_t *)&id, sizeof id));
    return some_hash(&hash);
}

/* --- places --- */

/* The index's, or the free one where it would be; NULL: there is neither. */
static struct mark *place_of(const struct ds_index_marks *marks, uint64_t index)
{
    for (size_t i = 0; i < PROBES; i++) {
        const struct mark *mark = &marks->all[(index + i) % DS_INDEX_MARKS];
        uint64_t there = atomic_load_explicit(&mark->index, memory_order_relaxed);
        if (there == index || there == 0)
            return (struct mark *)(uintptr_t)mark;
    }
    return NULL;
}

/* Another may have taken the free place meanwhile: then what comes behind it is looked at. */
static struct mark *take_place(struct ds_index_marks *marks, uint64_t index)
{
    struct mark *mark;
    uint64_t there;
    do {
        mark = place_of(marks, index);
        there = 0;
    } while (mark != NULL && !atomic_compare_exchange_strong(&mark->index, &there, index) &&
             there != index);
    return mark;
}

void ds_index_marks_set(struct ds_index_marks *marks, uint64_t index, uint32_t minute)
{
    struct mark *mark = place_of(marks, index);
    if (mark != NULL && atomic_load_explicit(&mark->index, memory_order_relaxed) != index)
        mark = take_place(marks, index);
    if (mark != NULL && atomic_load_explicit(&mark->minute, memory_order_relaxed) >= minute)
        return;
    if (mark != NULL)
        atomic_store_explicit(&mark->minute, minute, memory_order_relaxed);
    else if (!atomic_load_explicit(&marks->is_full, memory_order_relaxed))
        atomic_store(&marks->is_full, true);
    else
        return;
    atomic_store(&marks->has_changed, true);
}

bool ds_index_marks_take_change(struct ds_index_marks *marks)
{
    return atomic_exchange(&marks->has_changed, false);
}

uint32_t ds_index_marks_get(const struct ds_index_marks *marks, uint64_t index)
{
    const struct mark *mark = place_of(marks, index);
    return mark == NULL || atomic_load_explicit(&mark->index, memory_order_relaxed) != index
               ? 0
               : atomic_load_explicit(&mark->minute, memory_order_relaxed);
}

bool ds_index_marks_is_full(const struct ds_index_marks *marks)
{
    return atomic_load(&marks->is_full);
}

uint32_t ds_index_marks_since(const struct ds_index_marks *marks)
{
    return atomic_load(&marks->since);
}

void ds_index_marks_begin(struct ds_index_marks *marks, uint32_t minute)
{
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&marks->since, &none, minute))
        atomic_store(&marks->has_changed, true);
}

/* --- records --- */

static void append_number(struct buffer *out, uint64_t number, size_t size)
{
    uint64_t encoded = htobe64(number);
    buffer_append(out, (const uint8_t *)&encoded + sizeof encoded - size, size);
}

static uint64_t read_number(bytes *rest, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | rest->data[i];
    *rest = bytes_from(*rest, size);
    return number;
}

void ds_index_marks_encode(const struct ds_index_marks *marks, struct buffer *out)
{
    buffer_append_byte(out, VERSION);
    append_number(out, ds_index_marks_since(marks), sizeof(uint32_t));
    buffer_append_byte(out, ds_index_marks_is_full(marks));
    for (size_t i = 0; i < DS_INDEX_MARKS; i++) {
        uint64_t index = atomic_load(&marks->all[i].index);
        if (index == 0)
            continue;
        append_number(out, index, sizeof index);
        append_number(out, atomic_load(&marks->all[i].minute), sizeof(uint32_t));
    }
}

void ds_index_marks_decode(struct ds_index_marks *marks, bytes record)
{
    if (record.size < HEAD_BYTES || record.data[0] != VERSION ||
        (record.size - HEAD_BYTES) % ENTRY_BYTES != 0)
        return;
    bytes rest = bytes_from(record, 1);
    uint32_t since = (uint32_t)read_number(&rest, sizeof since);
    atomic_store(&marks->since, since);
    if (read_number(&rest, 1) != 0)
        atomic_store(&marks->is_full, true);
    while (rest.size > 0) {
        uint64_t index = read_number(&rest, sizeof index);
        ds_index_marks_set(marks, index == 0 ? 1 : index,
                           (uint32_t)read_number(&rest, sizeof(uint32_t)));
    }
}
