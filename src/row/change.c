/* From a request's mutations to one fragment: see fragment.h.
 *
 * Mutations are kept as entries whose version is their place in the request. Sorted and combined,
 * they come to what the request as a whole does: a deletion acts on what came before it in the
 * request, and an addition after it stays. Then all get the request's one version. */
#include "base/check.h"
#include "row/combine.h"
#include "row/fragment.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

struct row_change {
    struct arena *arena;
    struct arena *home; /* of the fragment; NULL: malloc's */
    struct entry *entries;
    size_t count;
    size_t capacity;
    size_t size;          /* of all slices */
    size_t largest_value; /* of plain cells */
    bool is_sorted;       /* each entry lies after the one before */
    bool failed;          /* memory ran out */
    bool is_packed;       /* nothing is added any more */
};

struct row_change *row_change_create(struct arena *arena)
{
    struct row_change *change = arena_alloc(arena, sizeof *change);
    if (change != NULL)
        *change = (struct row_change){.arena = arena, .is_sorted = true};
    return change;
}

static bool grow(struct row_change *change, size_t capacity)
{
    DCHECK(capacity > change->count);
    struct entry *entries = arena_alloc(change->arena, capacity * sizeof *entries);
    if (entries == NULL) {
        change->failed = true;
        return false;
    }
    if (change->count > 0)
        memcpy(entries, change->entries, change->count * sizeof *entries);
    change->entries = entries;
    change->capacity = capacity;
    return true;
}

void row_change_reserve(struct row_change *change, size_t count)
{
    if (change->count + count > change->capacity)
        (void)grow(change, change->count + count);
}

void row_change_keep_in(struct row_change *change, struct arena *arena)
{
    change->home = arena;
}

static bool make_room(struct row_change *change)
{
    if (change->count < change->capacity)
        return true;
    return grow(change, change->capacity == 0 ? FIRST_CAPACITY : change->capacity * 2);
}

static void add(struct row_change *change, const struct entry *entry)
{
    DCHECK(!change->is_packed);
    DCHECK(entry->kind == ENTRY_ROW_TOMBSTONE || entry->family != 0);
    if (change->failed || !make_room(change))
        return;
    if (change->count > 0 && change->is_sorted)
        change->is_sorted = entry_compare(&change->entries[change->count - 1], entry) < 0;
    struct entry *added = &change->entries[change->count++];
    *added = *entry;
    added->version = change->count;
    change->size += entry->qualifier.size + entry->value.size;
}

void row_change_set(struct row_change *change, uint32_t family, bytes qualifier,
                    int64_t timestamp_us, bytes value)
{
    struct entry entry = {.kind = ENTRY_CELL,
                          .family = family,
                          .qualifier = qualifier,
                          .timestamp_us = timestamp_us,
                          .value = value};
    if (value.size > change->largest_value)
        change->largest_value = value.size;
    add(change, &entry);
}

void row_change_add(struct row_change *change, enum entry_kind kind, uint32_t family,
                    bytes qualifier, int64_t timestamp_us, bytes state)
{
    DCHECK(entry_is_add(kind));
    struct entry entry = {.kind = kind,
                          .family = family,
                          .qualifier = qualifier,
                          .timestamp_us = timestamp_us,
                          .value = state};
    add(change, &entry);
}

void row_change_delete_column(struct row_change *change, uint32_t family, bytes qualifier,
                              int64_t start_us, int64_t end_us)
{
    struct entry entry = {.kind = ENTRY_COLUMN_TOMBSTONE,
                          .family = family,
                          .qualifier = qualifier,
                          .timestamp_us = start_us,
                          .end_us = end_us};
    if (start_us < end_us)
        add(change, &entry);
}

void row_change_delete_family(struct row_change *change, uint32_t family)
{
    struct entry entry = {.kind = ENTRY_FAMILY_TOMBSTONE, .family = family};
    add(change, &entry);
}

void row_change_delete_row(struct row_change *change)
{
    struct entry entry = {.kind = ENTRY_ROW_TOMBSTONE};
    add(change, &entry);
}

static int compare_for_sort(const void *a, const void *b)
{
    return entry_compare(a, b);
}

struct packer {
    struct fragment_writer writer;
    struct packed_change *out;
    size_t big_value;
};

static bool pack_entry(void *context, const struct entry *entry)
{
    struct packer *packer = context;
    if (entry->kind == ENTRY_CELL && entry->value.size >= packer->big_value) {
        DCHECK(packer->out->big != NULL);
        packer->out->big[packer->out->big_count++] =
            (struct big_cell){.family = entry->family,
                              .qualifier = entry->qualifier,
                              .timestamp_us = entry->timestamp_us,
                              .value = entry->value};
        return true;
    }
    struct entry timeless = *entry;
    timeless.version = 0;
    fragment_writer_add(&packer->writer, &timeless);
    return true;
}

/* Makes room for big cells and says in the mark that there are some. */
static bool expect_big_cells(struct row_change *change, struct packer *packer)
{
    size_t most = 0;
    for (size_t i = 0; i < change->count; i++)
        most += change->entries[i].kind == ENTRY_CELL &&
                change->entries[i].value.size >= packer->big_value;
    packer->out->big = arena_alloc(change->arena, most * sizeof *packer->out->big);
    struct entry mark = {.kind = ENTRY_OVERFLOW_MARK, .has_overflow = true};
    fragment_writer_add(&packer->writer, &mark);
    return packer->out->big != NULL;
}

/* Combines the mutations; a single one needs no combining. */
static bool combine(struct row_change *change, struct packer *packer)
{
    DCHECK(!change->failed);
    struct combiner combiner;
    if (change->count == 1)
        return pack_entry(packer, &change->entries[0]);
    combiner_start(&combiner, pack_entry, packer);
    bool ok = true;
    for (size_t i = 0; ok && i < change->count; i++)
        ok = combiner_add(&combiner, &change->entries[i]);
    ok = ok && combiner_finish(&combiner);
    combiner_free(&combiner);
    return ok;
}

/* What an arena has no room for finds memory of its own. */
static void reserve_fragment(const struct row_change *change, struct buffer *fragment)
{
    size_t size = fragment_room(change->count, change->size);
    void *memory = change->home == NULL ? NULL : arena_alloc(change->home, size);
    if (memory != NULL)
        buffer_start_in(fragment, memory, size);
    else
        (void)buffer_reserve(fragment, size); /* the writer asks again */
}

status row_change_pack(struct row_change *change, size_t big_value, struct packed_change *out)
{
    DCHECK(!change->is_packed);
    change->is_packed = true;
    *out = (struct packed_change){0};
    struct packer packer = {.out = out, .big_value = big_value};
    bool has_big = change->largest_value >= big_value && change->largest_value > 0;
    if (!change->is_sorted)
        qsort(change->entries, change->count, sizeof *change->entries, compare_for_sort);
    if (!has_big)
        reserve_fragment(change, &out->fragment);
    fragment_writer_start(&packer.writer, &out->fragment, 0);
    bool ok = !change->failed && (!has_big || expect_big_cells(change, &packer)) &&
              combine(change, &packer);
    fragment_writer_finish(&packer.writer);
    if (ok && !out->fragment.failed) {
        DCHECK(fragment_is_sound(buffer_bytes(&out->fragment)));
        return status_ok();
    }
    buffer_free(&out->fragment);
    return status_out_of_memory();
}

void packed_change_free(struct packed_change *change)
{
    buffer_free(&change->fragment);
    if (change->list.list.capacity > 0 || change->list.apart != NULL)
        change_list_free(&change->list);
    if (change->before != NULL)
        change_list_free(change->before);
    free(change->before);
    *change = (struct packed_change){0};
}

size_t packed_change_size(const struct packed_change *change)
{
    size_t size = change->fragment.size;
    for (size_t i = 0; i < change->big_count; i++)
        size += change->big[i].value.size;
    return size;
}
