/* Source rows as they are now, and what is recorded of them: the first half of a piece (piece.h).
 */
#include "views/keys.h"
#include "views/piece.h"
#include "views/scan.h"

#include <stdlib.h>

/* A row of which more is needed than this is left out without being read: far above what the
 * program lets be selected of one, so that only that decides for most (sql/view/run.h). */
enum { MOST_ROW_BYTES = 4 << 20 };

/* What a scan of the source is to read. */
struct evaluation {
    struct view_piece *piece;
    const struct sql_key_range *ranges;
    size_t range_count;
    struct view_scan_spec spec;
};

/* --- items --- */

static struct view_item *items_of(const struct view_piece *piece)
{
    return piece->items.items;
}

static status add_item(struct view_piece *piece, bytes key, bytes fresh, bytes kept)
{
    struct view_item item = {arena_copy(piece->arena, key), fresh, kept};
    if (item.key.data == NULL)
        return status_out_of_memory();
    return vector_add(&piece->items, piece->arena, &item, sizeof item);
}

/* Of given rows: the one of that key, which comes behind the last that was asked for. */
static struct view_item *find_item(struct view_piece *piece, bytes key)
{
    struct view_item *items = items_of(piece);
    while (piece->at < piece->items.count && bytes_compare(items[piece->at].key, key) < 0)
        piece->at++;
    bool is_it = piece->at < piece->items.count && bytes_equal(items[piece->at].key, key);
    return is_it ? &items[piece->at] : NULL;
}

static status note(struct view_piece *piece, bytes key, bytes fresh)
{
    if (piece->is_range)
        return add_item(piece, key, fresh, bytes_make(NULL, 0));
    struct view_item *item = find_item(piece, key);
    if (item != NULL)
        item->fresh = fresh;
    return status_ok();
}

/* --- evaluation --- */

static status visit_row(void *context, bytes source_key, enum view_outcome outcome,
                        bytes contribution, const char *why)
{
    struct evaluation *evaluation = context;
    struct view_piece *piece = evaluation->piece;
    bytes fresh = bytes_make(NULL, 0);
    (void)why;
    if (outcome != VIEW_ROW_NOTHING) {
        bool is_out = outcome == VIEW_ROW_EXCLUDED;
        fresh = view_record_value(piece->arena, is_out ? VIEW_RECORD_LEFT_OUT : VIEW_RECORD_IN,
                                  contribution);
        if (fresh.data == NULL)
            return status_out_of_memory();
    }
    atomic_fetch_add(&piece->upkeep->counts.changes, 1);
    view_piece_step(piece);
    TRY(note(piece, source_key, fresh));
    piece->is_full = piece->is_range && piece->items.count >= piece->most_rows;
    return piece->is_full ? status_make(STATUS_CANCELLED, "The piece is full.") : status_ok();
}

static status go_on(void *context)
{
    const struct evaluation *evaluation = context;
    return atomic_load(evaluation->piece->upkeep->gives_up)
               ? status_make(STATUS_CANCELLED, "Upkeep is to end.")
               : status_ok();
}

static status too_large(void *context, bytes row_key)
{
    struct evaluation *evaluation = context;
    struct view_piece *piece = evaluation->piece;
    bytes fresh = view_record_value(piece->arena, VIEW_RECORD_LEFT_OUT, bytes_make(NULL, 0));
    return fresh.data == NULL ? status_out_of_memory() : note(piece, row_key, fresh);
}

static status open_source(void *context, const struct sql_scan_spec *spec, struct arena *arena,
                          struct sql_scan **out)
{
    struct evaluation *evaluation = context;
    struct sql_scan_spec *sql = arena_alloc(arena, sizeof *sql);
    if (sql == NULL)
        return status_out_of_memory();
    *sql = *spec;
    sql->ranges = evaluation->ranges;
    sql->range_count = evaluation->range_count;
    sql->row_limit = 0;
    evaluation->spec = (struct view_scan_spec){.table = evaluation->piece->upkeep->source,
                                               .sql = sql,
                                               .is_background = true,
                                               .defers_values = true,
                                               .most_row_bytes = MOST_ROW_BYTES,
                                               .go_on = go_on,
                                               .too_large = too_large,
                                               .context = evaluation};
    return view_scan_open(&evaluation->spec, arena, out);
}

static status evaluate(struct view_piece *piece, const struct sql_key_range *ranges, size_t count)
{
    struct evaluation evaluation = {.piece = piece, .ranges = ranges, .range_count = count};
    const struct view_source source = {&evaluation, open_source};
    if (count == 0)
        return status_ok();
    status s = view_runner_run(piece->upkeep->runner, &source, visit_row, &evaluation);
    if (s.code != STATUS_CANCELLED || !piece->is_full)
        return s;
    status_free(s);
    return status_ok();
}

/* --- given rows --- */

static status point_ranges(struct view_piece *piece, struct sql_key_range **out)
{
    const struct view_item *items = items_of(piece);
    *out = arena_alloc(piece->arena, piece->items.count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < piece->items.count; i++) {
        uint8_t *to = arena_alloc(piece->arena, items[i].key.size + 1);
        if (to == NULL)
            return status_out_of_memory();
        memcpy(to, items[i].key.data, items[i].key.size);
        to[items[i].key.size] = 0;
        (*out)[i] = (struct sql_key_range){items[i].key, bytes_make(to, items[i].key.size + 1)};
    }
    return status_ok();
}

static status keep_record(void *context, size_t i, bytes value)
{
    struct view_piece *piece = context;
    struct view_item *item = &items_of(piece)[i];
    item->kept = arena_copy(piece->arena, value);
    return item->kept.data == NULL ? status_out_of_memory() : status_ok();
}

static status read_kept(struct view_piece *piece)
{
    const struct view_item *items = items_of(piece);
    bytes *keys = arena_alloc(piece->arena, piece->items.count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < piece->items.count; i++) {
        keys[i] = view_record_key(piece->arena, VIEW_RECORD_ROW, items[i].key);
        if (keys[i].data == NULL)
            return status_out_of_memory();
    }
    return view_records_get_many(piece->upkeep->table, keys, piece->items.count, false, keep_record,
                                 piece);
}

static status evaluate_items(struct view_piece *piece)
{
    struct sql_key_range *ranges;
    TRY(point_ranges(piece, &ranges));
    return evaluate(piece, ranges, piece->items.count);
}

status view_piece_take_keys(struct view_piece *piece, const bytes *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TRY(add_item(piece, keys[i], bytes_make(NULL, 0), bytes_make(NULL, 0)));
    TRY(evaluate_items(piece));
    return read_kept(piece);
}

/* --- ranges --- */

/* What is recorded of rows from `from` to `to`. */
struct recorded {
    struct view_piece *piece;
    struct vector items; /* of struct view_item */
    bool is_full;
};

static status visit_recorded(void *context, bytes key, bytes value, bool *enough)
{
    struct recorded *recorded = context;
    struct arena *arena = recorded->piece->arena;
    struct view_item item = {.key = arena_copy(arena, bytes_from(key, 1)),
                             .kept = arena_copy(arena, value)};
    if (item.key.data == NULL || item.kept.data == NULL)
        return status_out_of_memory();
    TRY(vector_add(&recorded->items, arena, &item, sizeof item));
    recorded->is_full = recorded->items.count >= recorded->piece->most_rows;
    *enough = recorded->is_full;
    return status_ok();
}

static status read_recorded(struct recorded *recorded, bytes from, bytes to)
{
    struct arena *arena = recorded->piece->arena;
    static const uint8_t behind = VIEW_RECORD_ROW + 1;
    struct view_range range = {.from = view_record_key(arena, VIEW_RECORD_ROW, from),
                               .to = to.size == 0 ? bytes_make(&behind, 1)
                                                  : view_record_key(arena, VIEW_RECORD_ROW, to)};
    if (range.from.data == NULL || range.to.data == NULL)
        return status_out_of_memory();
    return view_records_visit(recorded->piece->upkeep->table, &range, visit_recorded, recorded);
}

/* The first key behind the last item's; in the arena. */
static bytes behind_last(struct arena *arena, const struct vector *items)
{
    bytes key = ((const struct view_item *)items->items)[items->count - 1].key;
    uint8_t *made = arena_alloc(arena, key.size + 1);
    if (made == NULL)
        return bytes_make(NULL, 0);
    memcpy(made, key.data, key.size);
    made[key.size] = 0;
    return bytes_make(made, key.size + 1);
}

/* `*end` is brought back to behind the last item, of a list that is full. */
static status shorten(struct view_piece *piece, const struct vector *items, bool is_full,
                      bytes *end)
{
    if (!is_full || items->count == 0)
        return status_ok();
    bytes last = behind_last(piece->arena, items);
    if (last.data == NULL)
        return status_out_of_memory();
    if (end->size == 0 || bytes_compare(last, *end) < 0)
        *end = last;
    return status_ok();
}

static bool is_before(const struct view_item *item, bytes end)
{
    return end.size == 0 || bytes_compare(item->key, end) < 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct view_item *x = a, *y = b;
    return bytes_compare(x->key, y->key);
}

/* Both lists as one, up to `end`. */
static status merge(struct view_piece *piece, const struct recorded *recorded, bytes end)
{
    const struct view_item *fresh = items_of(piece), *kept = recorded->items.items;
    size_t f = 0, k = 0, fresh_count = piece->items.count, kept_count = recorded->items.count;
    struct vector merged = {0};
    while (f < fresh_count || k < kept_count) {
        int order = f == fresh_count  ? 1
                    : k == kept_count ? -1
                                      : bytes_compare(fresh[f].key, kept[k].key);
        struct view_item item = order <= 0 ? fresh[f++] : kept[k];
        if (order >= 0)
            item.kept = kept[k++].kept;
        if (is_before(&item, end))
            TRY(vector_add(&merged, piece->arena, &item, sizeof item));
    }
    piece->items = merged;
    return status_ok();
}

status view_piece_take_range(struct view_piece *piece, bytes from, bytes to, bytes *end)
{
    const struct sql_key_range range = {from, to};
    struct recorded recorded = {.piece = piece};
    piece->is_range = true;
    *end = to;
    TRY(evaluate(piece, &range, 1));
    /* a row that is too large may be told of before the one in front of it */
    if (piece->items.count > 0)
        qsort(piece->items.items, piece->items.count, sizeof(struct view_item), compare_items);
    TRY(shorten(piece, &piece->items, piece->is_full, end));
    TRY(read_recorded(&recorded, from, *end));
    TRY(shorten(piece, &recorded.items, recorded.is_full, end));
    return merge(piece, &recorded, *end);
}

status view_piece_take_recorded(struct view_piece *piece, bytes from, bytes to, bytes *end)
{
    struct recorded recorded = {.piece = piece};
    *end = to;
    TRY(read_recorded(&recorded, from, to));
    TRY(shorten(piece, &recorded.items, recorded.is_full, end));
    piece->items = recorded.items;
    return evaluate_items(piece);
}
