/* Folding: see fold.h. The fragments of a key are merged, entry by entry in fragment order, into a
 * combiner; what comes out of it is written, less what a whole fold may drop. */
#include "row/fold.h"

#include "base/check.h"
#include "base/heap.h"
#include "row/combine.h"
#include "row/fragment.h"
#include "row/row_key.h"

#include <stdlib.h>

/* How many fragments are merged at once; more are folded in rounds, so that memory is bounded. */
enum { FAN_IN = 256 };

/* Bytes that a writer wants to see free beyond what it then needs. */
enum { WRITER_SLACK = 64 };

/* --- merging --- */

struct head {
    struct fragment_reader reader;
    struct entry entry;
};

static bool is_first(const void *a, const void *b)
{
    const struct head *left = a, *right = b;
    return entry_compare(&left->entry, &right->entry) < 0;
}

/* `apart_from` 0: no adds are kept apart. */
static inline bool merge_by(void **heap, size_t count, struct combiner *combiner,
                            uint64_t apart_from)
{
    DCHECK(count == 0 || heap[0] != NULL);
    while (count > 0) {
        struct head *head = heap[0];
        if (!(apart_from == 0 ? combiner_add(combiner, &head->entry)
                              : combiner_add_apart(combiner, &head->entry, apart_from)))
            return false;
        if (fragment_reader_next(&head->reader, &head->entry))
            heap_fix_first(heap, count, is_first);
        else if (head->reader.is_bad)
            return false;
        else
            heap_pop(heap, &count, is_first);
    }
    return combiner_finish(combiner);
}

/* Two loops, so that where none are kept apart nothing is asked for each entry. */
static bool merge_heads(void **heap, size_t count, struct combiner *combiner, uint64_t apart_from)
{
    return apart_from == 0 ? merge_by(heap, count, combiner, 0)
                           : merge_by(heap, count, combiner, apart_from);
}

static bool open_heads(const bytes *fragments, size_t count, struct head *heads, void **heap,
                       size_t *open)
{
    *open = 0;
    for (size_t i = 0; i < count; i++) {
        struct fragment_reader *reader = &heads[i].reader;
        if (fragment_reader_start(reader, fragments[i]) &&
            fragment_reader_next(reader, &heads[i].entry))
            heap_push(heap, open, &heads[i], is_first);
        if (reader->is_bad)
            return false;
    }
    return true;
}

static bool merge(const bytes *fragments, size_t count, uint64_t dropped, uint64_t apart_from,
                  bool (*emit)(void *context, const struct entry *entry), void *context)
{
    struct head *heads = malloc(count * (sizeof *heads + sizeof(void *)));
    if (heads == NULL)
        return false;
    void **heap = (void **)(void *)(heads + count);
    size_t open;
    struct combiner combiner;
    combiner_start(&combiner, emit, context);
    combiner_drop_row(&combiner, dropped);
    bool ok = open_heads(fragments, count, heads, heap, &open) &&
              merge_heads(heap, open, &combiner, apart_from);
    combiner_free(&combiner);
    free(heads);
    return ok;
}

/* --- what a fold writes --- */

struct place {
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
};

struct collector {
    struct fragment_writer writer;
    uint64_t dropped;    /* what is older goes; 0: none is */
    uint64_t apart_from; /* 0: no adds are kept apart */
    bool is_held;        /* something is there that counts for nothing */
    bool is_whole;
    /* of whole folds */
    const struct schema *schema; /* NULL: collect nothing */
    int64_t now_us;
    bool is_overflow_cell; /* an S key: family and timestamp are its, not the entries' */
    uint32_t key_family;
    int64_t key_timestamp_us;
    bool has_overflow;
    uint64_t purged;
    uint64_t tombstones_from; /* 0: none are kept for what may come */
    /* where it is */
    uint32_t family;
    const struct gc_rule *gc;
    bool family_was_dropped;
    bytes qualifier;
    int32_t newer; /* cells of the column before this one */
    /* where adds are kept apart: the last one */
    bool has_last;
    bool kept_last;
    struct place last;
};

static void enter_family(struct collector *collector, uint32_t family)
{
    DCHECK(collector->schema != NULL);
    const struct family *found = schema_family(collector->schema, family);
    collector->family = family;
    collector->gc = found == NULL ? NULL : found->gc;
    collector->family_was_dropped = schema_family_was_dropped(collector->schema, family);
    collector->newer = 0;
}

/* Whether the rules condemn the cell. Cells must come in order. */
static bool collects(struct collector *collector, const struct entry *cell)
{
    DCHECK(entry_is_cell(cell->kind));
    if (collector->schema == NULL)
        return false;
    uint32_t family = collector->is_overflow_cell ? collector->key_family : cell->family;
    int64_t timestamp_us =
        collector->is_overflow_cell ? collector->key_timestamp_us : cell->timestamp_us;
    if (family != collector->family)
        enter_family(collector, family);
    else if (!bytes_equal(cell->qualifier, collector->qualifier))
        collector->newer = 0;
    collector->qualifier = cell->qualifier;
    bool counts = !collector->has_overflow && !collector->is_overflow_cell;
    int32_t newer = counts ? collector->newer++ : 0;
    return collector->family_was_dropped ||
           gc_condemns(collector->gc, timestamp_us, newer, collector->now_us);
}

/* No overflowed cell is newer than the mark. */
static bool keeps_mark(struct collector *collector, const struct entry *mark)
{
    if (mark->version < collector->dropped)
        return false;
    collector->has_overflow = mark->has_overflow;
    collector->purged = mark->purged;
    return mark->has_overflow;
}

static bool keeps(struct collector *collector, const struct entry *entry)
{
    if (!collector->is_whole)
        return true;
    if (entry->kind == ENTRY_OVERFLOW_MARK)
        return keeps_mark(collector, entry);
    if (entry_is_cell(entry->kind))
        return !collects(collector, entry);
    return (collector->has_overflow && entry->version > collector->purged) ||
           (collector->tombstones_from != 0 && entry->version >= collector->tombstones_from);
}

static bool collect(void *context, const struct entry *entry)
{
    struct collector *collector = context;
    if (keeps(collector, entry))
        fragment_writer_add(&collector->writer, entry);
    return true;
}

static bool is_at(const struct place *place, const struct entry *cell)
{
    return cell->family == place->family && cell->timestamp_us == place->timestamp_us &&
           bytes_equal(cell->qualifier, place->qualifier);
}

/* The adds of one place, which are kept apart, go together, and count as one cell. */
static bool keeps_add(struct collector *collector, const struct entry *cell)
{
    DCHECK(entry_is_add(cell->kind));
    if (!collector->has_last || !is_at(&collector->last, cell))
        collector->kept_last = !collects(collector, cell);
    collector->has_last = true;
    collector->last = (struct place){
        .family = cell->family, .qualifier = cell->qualifier, .timestamp_us = cell->timestamp_us};
    return collector->kept_last;
}

/* The same as collect, where adds are kept apart. */
static bool collect_apart(void *context, const struct entry *entry)
{
    struct collector *collector = context;
    bool is_add = collector->is_whole && entry_is_add(entry->kind);
    if (is_add ? keeps_add(collector, entry) : keeps(collector, entry))
        fragment_writer_add(&collector->writer, entry);
    return true;
}

static uint64_t kept_from(const struct row_rules *rules)
{
    return rules->rising_from == NULL
               ? rules->tombstones_from
               : atomic_load_explicit(rules->rising_from, memory_order_relaxed);
}

/* What is dropped of the key, and from where on adds are kept apart: for what may come late, and
 * for a drop that is held. */
static void look_at_drops(struct collector *collector, const struct row_rules *rules, bytes key)
{
    if (rules == NULL)
        return;
    collector->apart_from = rules->keeps_adds ? 1 : kept_from(rules);
    if (rules->drops == NULL)
        return;
    struct row_drops_look look = row_drops_look(rules->drops, key);
    collector->dropped = look.dropped;
    collector->is_held = look.held_from != 0;
    if (collector->is_held &&
        (collector->apart_from == 0 || look.held_from < collector->apart_from))
        collector->apart_from = look.held_from;
}

static bool start_whole(struct collector *collector, const struct row_rules *rules, bytes key)
{
    *collector = (struct collector){.is_whole = true};
    if (rules != NULL) {
        collector->schema = rules->schema;
        if (rules->schema != NULL && rules->schema->has_age_rules)
            collector->now_us = clock_wall_us(rules->clock);
    }
    collector->is_overflow_cell = key.size > 0 && key.data[0] == OVERFLOW_SPACE;
    look_at_drops(collector, rules, key);
    if (collector->is_held)
        collector->schema = NULL;
    if (rules != NULL && !collector->is_overflow_cell)
        collector->tombstones_from = kept_from(rules);
    return !collector->is_overflow_cell ||
           overflow_key_tail(key, &collector->key_family, &collector->key_timestamp_us);
}

/* The newest fragment's base: what is written over and over has its version mostly. Room for all
 * that goes in is nearly always enough for what comes out. */
static bool fold(const bytes *fragments, size_t count, struct collector *collector,
                 struct buffer *out)
{
    struct fragment_reader newest;
    size_t size = WRITER_SLACK;
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++)
        size += fragments[i].size;
    if (!fragment_reader_start(&newest, fragments[count - 1]) || buffer_reserve(out, size) == NULL)
        return false;
    fragment_writer_start(&collector->writer, out, newest.base_version);
    bool ok = merge(fragments, count, collector->dropped, collector->apart_from,
                    collector->apart_from == 0 ? collect : collect_apart, collector);
    fragment_writer_finish(&collector->writer);
    return ok && !out->failed;
}

/* --- rounds --- */

/* The inputs of a fold, oldest first, taken a few at a time. */
struct inputs {
    const struct store_history *history;
    size_t taken;
    bytes some[FAN_IN];
    size_t count;
};

static size_t input_count(const struct store_history *history)
{
    return history->operand_count + history->has_base;
}

static bytes input_at(const struct store_history *history, size_t index)
{
    DCHECK(index < input_count(history));
    if (history->has_base && index == 0)
        return history->base;
    return history->operands[index - history->has_base];
}

static void take_some(struct inputs *inputs)
{
    DCHECK(inputs->count < FAN_IN);
    while (inputs->count < FAN_IN && inputs->taken < input_count(inputs->history))
        inputs->some[inputs->count++] = input_at(inputs->history, inputs->taken++);
}

/* Folds the oldest inputs into one until the rest fits into one merge. */
static bool fold_all(const struct store_history *history, struct collector *collector,
                     struct buffer *out)
{
    struct inputs inputs;
    struct buffer former = {0}, latter = {0};
    bool ok = true;
    inputs.history = history;
    inputs.taken = inputs.count = 0;
    take_some(&inputs);
    while (ok && inputs.taken < input_count(history)) {
        struct collector plain = {.dropped = collector->dropped,
                                  .apart_from = collector->apart_from};
        buffer_clear(&latter);
        ok = fold(inputs.some, inputs.count, &plain, &latter);
        struct buffer done = latter;
        latter = former;
        former = done;
        inputs.some[0] = buffer_bytes(&former);
        inputs.count = 1;
        take_some(&inputs);
    }
    ok = ok && fold(inputs.some, inputs.count, collector, out);
    out->failed = out->failed || former.failed || latter.failed;
    buffer_free(&former);
    buffer_free(&latter);
    return ok;
}

/* --- the store's interface --- */

/* Whether a whole fold of the one fragment would give it back unchanged. */
static bool is_canonical(bytes fragment, struct collector *collector)
{
    const struct schema *schema = collector->schema;
    struct fragment_reader reader;
    if (!fragment_reader_start(&reader, fragment) || !fragment_is_simple(fragment))
        return false;
    bool may_condemn =
        schema != NULL && (schema->has_age_rules || schema->has_lost_families ||
                           (schema->has_count_rules && fragment_has_versions(fragment)));
    uint64_t dropped = collector->dropped;
    struct entry entry;
    while ((may_condemn || dropped != 0) && fragment_reader_next(&reader, &entry))
        if (entry.version < dropped || (may_condemn && collects(collector, &entry)))
            return false;
    return !reader.is_bad;
}

/* Whether the fragment is one plain cell and nothing else; of which version. */
static bool is_plain_cell(bytes fragment, uint64_t *version)
{
    struct fragment_reader reader;
    struct entry cell, more;
    if (!fragment_reader_start(&reader, fragment) || !fragment_is_simple(fragment) ||
        !fragment_reader_next(&reader, &cell))
        return false;
    *version = cell.version;
    return cell.kind == ENTRY_CELL && !fragment_reader_next(&reader, &more) && !reader.is_bad;
}

/* Whether the last input of an overflow cell takes the place of all before it. Such cells may be
 * large: it is not copied for that. */
static bool is_replaced_by_last(const struct store_history *history)
{
    size_t count = input_count(history);
    uint64_t last, version;
    if (!is_plain_cell(input_at(history, count - 1), &last))
        return false;
    for (size_t i = 0; i + 1 < count; i++)
        if (!is_plain_cell(input_at(history, i), &version) || version >= last)
            return false;
    return true;
}

static bool fold_full(const void *rules, const struct store_history *history, struct buffer *out,
                      bytes *same)
{
    struct collector collector;
    if (!start_whole(&collector, rules, history->key))
        return false;
    size_t count = input_count(history);
    if (count == 1 || (collector.is_overflow_cell && is_replaced_by_last(history))) {
        *same = input_at(history, count - 1);
        if (is_canonical(*same, &collector))
            return true;
        *same = bytes_make(NULL, 0);
        if (!start_whole(&collector, rules, history->key))
            return false;
    }
    return fold_all(history, &collector, out);
}

static bool fold_part(const void *rules, const struct store_history *history, struct buffer *out)
{
    struct collector collector = {.is_whole = false};
    look_at_drops(&collector, rules, history->key);
    return fold_all(history, &collector, out);
}

static bool is_row_space(bytes key)
{
    return key.size > 0 && (key.data[0] == ROW_SPACE || key.data[0] == OVERFLOW_SPACE);
}

static enum store_verdict tidy(const void *rules, bytes key, bytes value, struct buffer *out)
{
    struct collector collector;
    if (rules == NULL || !is_row_space(key) || !start_whole(&collector, rules, key) ||
        (!fragment_is_empty(value) && is_canonical(value, &collector)) ||
        !start_whole(&collector, rules, key))
        return STORE_KEEP;
    size_t start = out->size;
    enum store_verdict verdict = STORE_KEEP;
    if (fold(&value, 1, &collector, out)) {
        bytes result = bytes_from(buffer_bytes(out), start);
        if (fragment_is_empty(result))
            verdict = STORE_REMOVE;
        else if (!bytes_equal(result, value))
            verdict = STORE_REPLACE;
    }
    if (verdict != STORE_REPLACE)
        out->size = start;
    return verdict;
}

static status could_not_fold(bytes value)
{
    TRY(fragment_check(value));
    return status_out_of_memory();
}

status row_leave_out_dropped(struct row_drops *drops, bytes key, bytes *value,
                             struct buffer *scratch, bool *is_left)
{
    const struct row_rules rules = {.drops = drops};
    struct collector collector;
    *is_left = true;
    if (drops == NULL || row_drops_count(drops) == 0 || !start_whole(&collector, &rules, key) ||
        collector.dropped == 0)
        return status_ok();
    if (!is_canonical(*value, &collector)) {
        buffer_clear(scratch);
        if (!start_whole(&collector, &rules, key) || !fold(value, 1, &collector, scratch))
            return could_not_fold(*value);
        *value = buffer_bytes(scratch);
    }
    *is_left = !fragment_is_empty(*value); /* as a fold that knew of the drop has left it, too */
    return status_ok();
}

static bool gives_last(const struct store_history *history)
{
    return history->key.size > 0 && history->key.data[0] == OVERFLOW_SPACE &&
           is_replaced_by_last(history);
}

/* The first format that has drops. */
enum { FORMAT_WITH_DROPS = 4 };

static const struct row_rules before_rules = {.keeps_adds = true};

const struct store_fold row_fold = {.whole = fold_full,
                                    .part = fold_part,
                                    .gives_last = gives_last,
                                    .tidy = tidy,
                                    .owner = overflow_owner_size,
                                    .before = &before_rules,
                                    .before_format = FORMAT_WITH_DROPS};
