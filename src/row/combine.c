/* Adding up entries: see combine.h. */
#include "row/combine.h"

#include "base/big_endian.h"
#include "base/check.h"

#include <stdlib.h>

void combiner_start(struct combiner *combiner,
                    bool (*emit)(void *context, const struct entry *entry), void *context)
{
    DCHECK(emit != NULL);
    *combiner = (struct combiner){.emit = emit, .context = context};
}

void combiner_free(struct combiner *combiner)
{
    cover_free(&combiner->cover);
    free(combiner->apart);
    hll_sketch_free(&combiner->sketch);
    buffer_free(&combiner->state);
}

static inline uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool out_of_memory(struct combiner *combiner)
{
    combiner->out_of_memory = true;
    return false;
}

/* The tombstones of the column gathered so far, made disjoint and sent on their way. */
static bool emit_cover(struct combiner *combiner)
{
    DCHECK(combiner->is_gathering);
    combiner->is_gathering = false;
    if (!cover_build(&combiner->cover))
        return out_of_memory(combiner);
    for (size_t i = 0; i < combiner->cover.part_count; i++) {
        const struct span *part = &combiner->cover.parts[i];
        struct entry tombstone = {.kind = ENTRY_COLUMN_TOMBSTONE,
                                  .family = combiner->family,
                                  .qualifier = combiner->covered,
                                  .timestamp_us = part->start_us,
                                  .end_us = part->end_us,
                                  .version = part->version};
        if (!combiner->emit(combiner->context, &tombstone))
            return false;
    }
    return true;
}

/* The pending sketch in its written form. */
static bool write_sketch(struct combiner *combiner)
{
    DCHECK(combiner->is_sketching && combiner->pending.kind == ENTRY_HLL);
    combiner->is_sketching = false;
    buffer_clear(&combiner->state);
    if (!hll_sketch_write(&combiner->sketch, &combiner->state))
        return out_of_memory(combiner);
    combiner->pending.value = buffer_bytes(&combiner->state);
    return true;
}

static bool emit_compound(struct combiner *combiner)
{
    DCHECK(combiner->is_compound);
    size_t count = combiner->apart_count;
    bool lacks_older = combiner->lacks_older;
    combiner->is_compound = combiner->lacks_older = false; /* for the next place */
    combiner->apart_count = 0;
    while (count > 0)
        if (!combiner->emit(combiner->context, &combiner->apart[--count]))
            return false;
    if (lacks_older)
        return true;
    if (combiner->is_sketching && !write_sketch(combiner))
        return false;
    return combiner->emit(combiner->context, &combiner->pending);
}

/* Emits what belongs to places before that of the entry to come. */
static inline bool flush_pending(struct combiner *combiner)
{
    DCHECK(!combiner->has_pending || !combiner->is_gathering);
    if (combiner->has_pending) {
        combiner->has_pending = false;
        if (combiner->is_compound)
            return emit_compound(combiner);
        return combiner->emit(combiner->context, &combiner->pending);
    }
    return !combiner->is_gathering || emit_cover(combiner);
}

static inline bool is_in_covered_column(const struct combiner *combiner, const struct entry *entry)
{
    return entry->family == combiner->family && bytes_equal(entry->qualifier, combiner->covered);
}

/* Leaves behind what the tombstones of former families and columns cover. */
static inline void move_to(struct combiner *combiner, const struct entry *entry)
{
    DCHECK(!combiner->has_pending && !combiner->is_gathering);
    if (combiner->cover.given_count > 0 && !is_in_covered_column(combiner, entry))
        cover_clear(&combiner->cover);
    if (entry->family != combiner->family) {
        combiner->family = entry->family;
        combiner->family_tombstone = 0;
    }
}

/* The version of the tombstones of the whole row and the whole family, whichever is newer. */
static inline uint64_t enclosing(const struct combiner *combiner)
{
    return greater(combiner->row_tombstone, combiner->family_tombstone);
}

static inline bool is_ignored(struct combiner *combiner, const struct entry *entry)
{
    uint64_t version = entry->version;
    switch (entry->kind) {
    case ENTRY_OVERFLOW_MARK:
        return false;
    case ENTRY_ROW_TOMBSTONE:
    case ENTRY_FAMILY_TOMBSTONE:
    case ENTRY_COLUMN_TOMBSTONE:
        return version <= enclosing(combiner);
    default:
        return (combiner->moved != 0 && version <= combiner->moved) ||
               version < enclosing(combiner) ||
               (combiner->cover.part_count > 0 &&
                version < cover_version(&combiner->cover, entry->timestamp_us));
    }
}

static inline void note(struct combiner *combiner, const struct entry *entry)
{
    if (entry->kind == ENTRY_OVERFLOW_MARK)
        combiner->moved = greater(combiner->moved, entry->moved);
    else if (entry->kind == ENTRY_ROW_TOMBSTONE)
        combiner->row_tombstone = entry->version;
    else if (entry->kind == ENTRY_FAMILY_TOMBSTONE)
        combiner->family_tombstone = entry->version;
}

static int64_t load_number(bytes value)
{
    DCHECK(value.size == sizeof(int64_t));
    return (int64_t)big_endian_read(value.data);
}

static int64_t aggregate(enum entry_kind kind, int64_t a, int64_t b)
{
    DCHECK(kind == ENTRY_SUM || kind == ENTRY_MIN || kind == ENTRY_MAX);
    if (kind == ENTRY_SUM)
        return (int64_t)((uint64_t)a + (uint64_t)b);
    return (a < b) == (kind == ENTRY_MIN) ? a : b;
}

static bool unite_numbers(struct combiner *combiner, const struct entry *entry)
{
    struct entry *pending = &combiner->pending;
    if (pending->value.size != sizeof combiner->number ||
        entry->value.size != sizeof combiner->number)
        return false;
    int64_t number =
        aggregate(pending->kind, load_number(pending->value), load_number(entry->value));
    big_endian_write(combiner->number, (uint64_t)number);
    pending->value = bytes_make(combiner->number, sizeof combiner->number);
    pending->version = greater(pending->version, entry->version);
    return true;
}

static bool merge_state(struct combiner *combiner, bytes value)
{
    DCHECK(combiner->is_sketching);
    struct hll_state state;
    status parsed = hll_state_parse(value, &state);
    bool fits =
        status_is_ok(parsed) && hll_types_match(combiner->sketch.value_type, state.value_type);
    status_free(parsed);
    return fits && (hll_sketch_merge(&combiner->sketch, &state) || out_of_memory(combiner));
}

/* States are taken into a sketch as they come, and it is written when all of the place's are in. */
static bool unite_sketches(struct combiner *combiner, const struct entry *entry)
{
    struct entry *pending = &combiner->pending;
    if (!combiner->is_sketching) {
        hll_sketch_clear(&combiner->sketch);
        combiner->is_sketching = combiner->is_compound = true;
        if (!merge_state(combiner, pending->value))
            return false;
    }
    pending->version = greater(pending->version, entry->version);
    return merge_state(combiner, entry->value);
}

static void unite_marks(struct entry *pending, const struct entry *entry)
{
    DCHECK(pending->kind == ENTRY_OVERFLOW_MARK && entry->kind == ENTRY_OVERFLOW_MARK);
    if (entry->version == pending->version)
        pending->has_overflow |= entry->has_overflow;
    else if (entry->version > pending->version)
        pending->has_overflow = entry->has_overflow;
    pending->version = greater(pending->version, entry->version);
    pending->moved = greater(pending->moved, entry->moved);
    pending->purged = greater(pending->purged, entry->purged);
}

static void replace_pending(struct combiner *combiner, const struct entry *entry)
{
    combiner->pending = *entry;
    combiner->is_sketching = false;
}

static bool grow_apart(struct combiner *combiner)
{
    enum { FIRST_CAPACITY = 16 };
    size_t capacity = combiner->apart_capacity == 0 ? FIRST_CAPACITY : 2 * combiner->apart_capacity;
    struct entry *apart = realloc(combiner->apart, capacity * sizeof *apart);
    if (apart == NULL)
        return out_of_memory(combiner);
    combiner->apart = apart;
    combiner->apart_capacity = capacity;
    return true;
}

/* Adds mostly come in the order of their versions. One of a version that is there was delivered
 * twice. */
static bool insert_apart(struct combiner *combiner, const struct entry *entry)
{
    DCHECK(entry_is_add(entry->kind));
    size_t at = combiner->apart_count;
    if (at == combiner->apart_capacity && !grow_apart(combiner))
        return false;
    struct entry *apart = combiner->apart;
    while (at > 0 && apart[at - 1].version > entry->version)
        at--;
    if (at > 0 && apart[at - 1].version == entry->version)
        return true;
    memmove(apart + at + 1, apart + at, (combiner->apart_count - at) * sizeof *apart);
    apart[at] = *entry;
    combiner->apart_count++;
    return true;
}

static bool keep_apart(struct combiner *combiner, const struct entry *entry, bool is_same_place)
{
    if (!is_same_place) {
        combiner->pending = *entry;
        combiner->has_pending = combiner->lacks_older = true;
    }
    combiner->is_compound = true;
    return insert_apart(combiner, entry);
}

/* The place has adds that are apart, and now an older one, which others may join. */
static bool begin_older(struct combiner *combiner, const struct entry *entry)
{
    DCHECK(combiner->apart_count > 0);
    combiner->pending = *entry;
    combiner->lacks_older = false;
    return true;
}

/* Two entries at one place become one. */
static bool unite(struct combiner *combiner, const struct entry *entry)
{
    DCHECK(combiner->has_pending && entry_compare(&combiner->pending, entry) == 0);
    struct entry *pending = &combiner->pending;
    if (entry->kind == ENTRY_OVERFLOW_MARK)
        unite_marks(pending, entry);
    else if (combiner->lacks_older)
        return begin_older(combiner, entry);
    else if (entry->kind == pending->kind && entry->kind == ENTRY_HLL)
        return unite_sketches(combiner, entry);
    else if (entry->kind == pending->kind && entry_is_add(entry->kind))
        return unite_numbers(combiner, entry);
    else if (entry->version > pending->version)
        replace_pending(combiner, entry);
    return true;
}

static bool gather(struct combiner *combiner, const struct entry *entry)
{
    DCHECK(entry->kind == ENTRY_COLUMN_TOMBSTONE);
    if (!combiner->is_gathering || !is_in_covered_column(combiner, entry)) {
        if (!flush_pending(combiner))
            return false;
        move_to(combiner, entry);
        cover_clear(&combiner->cover);
        combiner->covered = entry->qualifier;
        combiner->is_gathering = true;
    }
    struct span span = {
        .start_us = entry->timestamp_us, .end_us = entry->end_us, .version = entry->version};
    return is_ignored(combiner, entry) || cover_add(&combiner->cover, &span) ||
           out_of_memory(combiner);
}

static inline bool is_at_pending(const struct combiner *combiner, const struct entry *entry)
{
    return combiner->has_pending && combiner->pending.timestamp_us == entry->timestamp_us &&
           entry_compare(&combiner->pending, entry) == 0;
}

bool combiner_add(struct combiner *combiner, const struct entry *entry)
{
    if (entry->kind == ENTRY_COLUMN_TOMBSTONE)
        return gather(combiner, entry);
    bool is_same_place = is_at_pending(combiner, entry);
    if (!is_same_place) {
        if (!flush_pending(combiner))
            return false;
        move_to(combiner, entry);
    }
    if (is_ignored(combiner, entry))
        return true;
    note(combiner, entry);
    if (is_same_place)
        return unite(combiner, entry);
    combiner->pending = *entry;
    combiner->has_pending = true;
    return true;
}

bool combiner_add_apart(struct combiner *combiner, const struct entry *entry, uint64_t from)
{
    if (!entry_is_add(entry->kind) || entry->version < from)
        return combiner_add(combiner, entry);
    bool is_same_place = is_at_pending(combiner, entry);
    if (!is_same_place) {
        if (!flush_pending(combiner))
            return false;
        move_to(combiner, entry);
    }
    return is_ignored(combiner, entry) || keep_apart(combiner, entry, is_same_place);
}

bool combiner_finish(struct combiner *combiner)
{
    return flush_pending(combiner);
}

bool combiner_tombstone_over(struct combiner *combiner, const struct entry *cell, uint64_t *version)
{
    if (combiner->is_gathering && !flush_pending(combiner))
        return false;
    *version = combiner->row_tombstone;
    if (cell->family == combiner->family)
        *version = enclosing(combiner);
    if (combiner->cover.part_count > 0 && is_in_covered_column(combiner, cell))
        *version = greater(*version, cover_version(&combiner->cover, cell->timestamp_us));
    return true;
}
