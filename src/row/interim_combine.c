#include "row/interim_combine.h"

#include "row/interim_intervals.h"

#include <endian.h>

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool keeps_tombstone(const struct combiner *combiner, uint64_t version)
{
    if (combiner->is_everything)
        return false;
    if (!combiner->is_whole)
        return true;
    return combiner->has_mark && combiner->mark.has_spilled && version > combiner->mark.purged;
}

static void emit_tombstone(struct combiner *combiner, const struct entry *tombstone)
{
    if (keeps_tombstone(combiner, tombstone->version))
        combiner->emit(combiner, tombstone);
}

static void combine_marks(struct combiner *combiner, const struct entry *mark)
{
    struct entry *all = &combiner->mark;
    if (!combiner->has_mark) {
        *all = *mark;
        combiner->has_mark = true;
        return;
    }
    if (mark->version > all->version) {
        all->version = mark->version;
        all->has_spilled = mark->has_spilled;
    }
    all->moved = greater(all->moved, mark->moved);
    all->purged = greater(all->purged, mark->purged);
}

static void begin(struct combiner *combiner)
{
    if (combiner->is_begun)
        return;
    combiner->is_begun = true;
    if (combiner->has_mark && !combiner->is_everything &&
        (!combiner->is_whole || combiner->mark.has_spilled))
        combiner->emit(combiner, &combiner->mark);
    if (combiner->row_tombstone > 0)
        emit_tombstone(combiner, &(struct entry){.kind = ENTRY_ROW_TOMBSTONE,
                                                 .version = combiner->row_tombstone});
}

static void open_family(struct combiner *combiner)
{
    if (combiner->is_family_open || combiner->family == 0)
        return;
    combiner->is_family_open = true;
    if (combiner->family_tombstone > combiner->row_tombstone)
        emit_tombstone(combiner, &(struct entry){.kind = ENTRY_FAMILY_TOMBSTONE,
                                                 .family = combiner->family,
                                                 .version = combiner->family_tombstone});
}

static void seal_column(struct combiner *combiner)
{
    if (combiner->is_column_sealed || !combiner->has_column)
        return;
    combiner->is_column_sealed = true;
    struct intervals *tombstones = &combiner->tombstones;
    if (!intervals_normalise(tombstones))
        combiner->is_failed = true;
    combiner->next_tombstone = tombstones->count;
    uint64_t above = greater(combiner->row_tombstone, combiner->family_tombstone);
    for (size_t i = 0; i < tombstones->count; i++)
        if (tombstones->items[i].version > above)
            emit_tombstone(combiner, &(struct entry){.kind = ENTRY_COLUMN_TOMBSTONE,
                                                     .family = combiner->family,
                                                     .qualifier = combiner->qualifier,
                                                     .timestamp_us = tombstones->items[i].start_us,
                                                     .end_us = tombstones->items[i].end_us,
                                                     .version = tombstones->items[i].version});
}

static uint64_t column_tombstone_at(struct combiner *combiner, int64_t timestamp_us)
{
    const struct interval *items = combiner->tombstones.items;
    size_t *next = &combiner->next_tombstone;
    while (*next > 0 && items[*next - 1].start_us > timestamp_us)
        (*next)--;
    bool is_inside = *next > 0 && timestamp_us < items[*next - 1].end_us;
    return is_inside ? items[*next - 1].version : 0;
}

static bool is_condemned(const struct combiner *combiner)
{
    if (combiner->is_family_dropped)
        return true;
    if (!combiner->applies_gc || combiner->gc == NULL)
        return false;
    bool counts = combiner->is_everything || !combiner->has_mark || !combiner->mark.has_spilled;
    bool is_spilled_cell = combiner->key_family != 0;
    int64_t time = is_spilled_cell ? combiner->key_time_us : combiner->cell.timestamp_us;
    return gc_condemns(combiner->gc, time, counts && !is_spilled_cell ? combiner->newer : 0,
                       combiner->now_us);
}

static void flush_cell(struct combiner *combiner)
{
    if (!combiner->has_cell)
        return;
    combiner->has_cell = false;
    bool drops = combiner->is_whole && is_condemned(combiner);
    combiner->newer++;
    if (!drops)
        combiner->emit(combiner, &combiner->cell);
}

static bool is_aggregate(enum entry_kind kind)
{
    return kind == ENTRY_SUM || kind == ENTRY_MIN || kind == ENTRY_MAX;
}

static bool load_number(bytes value, int64_t *number)
{
    uint64_t word;
    if (value.size != sizeof word)
        return false;
    memcpy(&word, value.data, sizeof word);
    *number = (int64_t)be64toh(word);
    return true;
}

static int64_t aggregated(enum entry_kind kind, int64_t a, int64_t b)
{
    if (kind == ENTRY_SUM)
        return (int64_t)((uint64_t)a + (uint64_t)b);
    bool takes_a = kind == ENTRY_MIN ? a < b : a > b;
    return takes_a ? a : b;
}

static void aggregate(struct combiner *combiner, const struct entry *cell)
{
    int64_t a, b;
    struct entry *held = &combiner->cell;
    if (!load_number(held->value, &a) || !load_number(cell->value, &b)) {
        combiner->is_bad = true;
        return;
    }
    uint64_t word = htobe64((uint64_t)aggregated(held->kind, a, b));
    memcpy(combiner->sum, &word, sizeof word);
    held->value = bytes_make(combiner->sum, sizeof combiner->sum);
    held->version = greater(held->version, cell->version);
}

static void hold_cell(struct combiner *combiner, const struct entry *cell)
{
    combiner->cell = *cell;
    combiner->has_cell = true;
    if (combiner->hold != NULL && !combiner->hold(combiner, &combiner->cell))
        combiner->is_failed = true;
}

uint64_t combine_covering(struct combiner *combiner, int64_t timestamp_us)
{
    uint64_t covering = greater(combiner->row_tombstone, combiner->family_tombstone);
    return greater(covering, column_tombstone_at(combiner, timestamp_us));
}

static void add_cell(struct combiner *combiner, const struct entry *cell)
{
    bool has_moved = combiner->has_mark && cell->version <= combiner->mark.moved;
    bool is_same_place = combiner->has_cell && combiner->cell.timestamp_us == cell->timestamp_us;
    if (!is_same_place)
        flush_cell(combiner);
    if ((has_moved && !combiner->is_everything) ||
        cell->version < combine_covering(combiner, cell->timestamp_us))
        return;
    if (!is_same_place)
        hold_cell(combiner, cell);
    else if (is_aggregate(cell->kind) && cell->kind == combiner->cell.kind)
        aggregate(combiner, cell);
    else if (cell->version > combiner->cell.version)
        hold_cell(combiner, cell);
}

static void leave_column(struct combiner *combiner)
{
    flush_cell(combiner);
    seal_column(combiner);
    intervals_clear(&combiner->tombstones);
    combiner->next_tombstone = 0;
    combiner->has_column = false;
    combiner->is_column_sealed = false;
    combiner->newer = 0;
}

static void enter_family(struct combiner *combiner, uint32_t family)
{
    leave_column(combiner);
    open_family(combiner);
    combiner->family = family;
    combiner->is_family_open = false;
    combiner->family_tombstone = 0;
    if (combiner->schema == NULL)
        return;
    uint32_t id = combiner->key_family != 0 ? combiner->key_family : family;
    const struct family *known = schema_family(combiner->schema, id);
    combiner->gc = known == NULL ? NULL : known->gc;
    combiner->is_family_dropped = schema_family_was_dropped(combiner->schema, id);
}

static void enter_column(struct combiner *combiner, bytes qualifier)
{
    leave_column(combiner);
    combiner->qualifier = qualifier;
    combiner->has_column = true;
}

static void add_tombstone(struct combiner *combiner, const struct entry *tombstone)
{
    struct interval interval = {.start_us = tombstone->timestamp_us,
                                .end_us = tombstone->end_us,
                                .version = tombstone->version};
    if (interval.start_us < interval.end_us && !intervals_add(&combiner->tombstones, interval))
        combiner->is_failed = true;
}

static void add_in_family(struct combiner *combiner, const struct entry *entry)
{
    if (entry->kind == ENTRY_FAMILY_TOMBSTONE) {
        combiner->family_tombstone = greater(combiner->family_tombstone, entry->version);
        return;
    }
    open_family(combiner);
    if (!combiner->has_column || !bytes_equal(combiner->qualifier, entry->qualifier))
        enter_column(combiner, entry->qualifier);
    if (entry->kind == ENTRY_COLUMN_TOMBSTONE) {
        add_tombstone(combiner, entry);
        return;
    }
    seal_column(combiner);
    add_cell(combiner, entry);
}

void combine_add(struct combiner *combiner, const struct entry *entry)
{
    if (entry->kind == ENTRY_SPILL_MARK) {
        combine_marks(combiner, entry);
        return;
    }
    if (entry->kind == ENTRY_ROW_TOMBSTONE) {
        combiner->row_tombstone = greater(combiner->row_tombstone, entry->version);
        return;
    }
    bool is_first = !combiner->is_begun;
    begin(combiner);
    if (is_first || entry->family != combiner->family)
        enter_family(combiner, entry->family);
    add_in_family(combiner, entry);
}

void combine_finish(struct combiner *combiner)
{
    begin(combiner);
    leave_column(combiner);
    open_family(combiner);
    intervals_free(&combiner->tombstones);
}
