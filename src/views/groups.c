/* Folds what rows give to groups: each group that a piece touches is read, folded, settled and
 * written once, however many rows of the piece are in it. */
#include "base/key_order.h"
#include "views/keys.h"
#include "views/overlay.h"
#include "views/piece.h"

enum { GROUP_MEMORY = 64 << 20 };

/* A group that is touched, with its folds in the order of their coming. */
struct touched {
    bytes id;
    bytes record; /* its key */
    bytes kept;   /* its value; empty: it is new */
    size_t first;
    size_t last;
};

struct folding {
    struct view_piece *piece;
    struct touched *groups;
    size_t count;
    struct arena *scratch; /* of a group */
    struct view_emitter emitter;
};

/* --- which groups --- */

/* Groups by their ids: at least half of the slots are free. */
struct id_table {
    size_t *slots; /* place and one; 0: free */
    size_t count;  /* a power of two */
};

static status make_table(struct arena *arena, size_t most, struct id_table *out)
{
    for (out->count = 2; out->count < 2 * most; out->count *= 2) {
    }
    out->slots = arena_zalloc(arena, out->count * sizeof *out->slots);
    return out->slots == NULL ? status_out_of_memory() : status_ok();
}

/* Where the group is, or belongs. */
static size_t *slot_of(const struct id_table *table, const struct folding *folding, bytes id)
{
    size_t at = (size_t)bytes_hash(id) & (table->count - 1);
    while (table->slots[at] != 0 && !bytes_equal(folding->groups[table->slots[at] - 1].id, id))
        at = (at + 1) & (table->count - 1);
    return &table->slots[at];
}

static status add_group(struct folding *folding, bytes id, size_t fold)
{
    bytes record = view_record_key(folding->piece->arena, VIEW_RECORD_GROUP, id);
    if (record.data == NULL)
        return status_out_of_memory();
    folding->groups[folding->count++] =
        (struct touched){.id = id, .record = record, .first = fold, .last = fold};
    return status_ok();
}

static status sort_groups(struct folding *folding)
{
    struct arena *arena = folding->piece->arena;
    struct touched *groups = arena_alloc(arena, folding->count * sizeof *groups);
    struct key_order *sorted = arena_alloc(arena, folding->count * sizeof *sorted);
    if (groups == NULL || sorted == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < folding->count; i++)
        sorted[i] = (struct key_order){.key = folding->groups[i].id, .place = i};
    key_order_sort(sorted, folding->count);
    for (size_t i = 0; i < folding->count; i++)
        groups[i] = folding->groups[sorted[i].place];
    folding->groups = groups;
    return status_ok();
}

/* There are many folds of few groups, or few of many: so these are sorted, and not those. */
static status find_groups(struct folding *folding)
{
    struct view_piece *piece = folding->piece;
    struct view_fold *folds = piece->folds.items;
    struct id_table table;
    folding->groups = arena_alloc(piece->arena, piece->folds.count * sizeof *folding->groups);
    if (folding->groups == NULL)
        return status_out_of_memory();
    TRY(make_table(piece->arena, piece->folds.count, &table));
    for (size_t i = 0; i < piece->folds.count; i++) {
        size_t *slot = slot_of(&table, folding, folds[i].id);
        if (*slot == 0) {
            TRY(add_group(folding, folds[i].id, i));
            *slot = folding->count;
            continue;
        }
        struct touched *group = &folding->groups[*slot - 1];
        folds[group->last].next = i + 1;
        group->last = i;
    }
    return sort_groups(folding);
}

static status keep_record(void *context, size_t i, bytes value)
{
    struct folding *folding = context;
    folding->groups[i].kept = arena_copy(folding->piece->arena, value);
    return folding->groups[i].kept.data == NULL ? status_out_of_memory() : status_ok();
}

static status read_groups(struct folding *folding)
{
    struct view_piece *piece = folding->piece;
    piece->shares_groups = piece->folds.count >= 2 * folding->count;
    bytes *keys = arena_alloc(piece->arena, folding->count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < folding->count; i++)
        keys[i] = folding->groups[i].record;
    return view_records_get_many(piece->upkeep->table, keys, folding->count, piece->shares_groups,
                                 keep_record, folding);
}

/* --- a group --- */

static status fold(struct folding *folding, const struct touched *touched,
                   struct view_overlay *overlay, struct view_group *group)
{
    const struct view_fold *folds = folding->piece->folds.items;
    for (size_t next = touched->first + 1; next > 0; next = folds[next - 1].next) {
        const struct view_fold *at = &folds[next - 1];
        TRY(view_group_fold(group, at->body, at->source_key, at->is_removal, &overlay->entries));
    }
    return view_group_settle(group, &overlay->entries);
}

static void count_left_out(struct view_piece *piece, bool was, bool is)
{
    piece->excluded_groups += (int64_t)is - (int64_t)was;
    piece->user_errors += is && !was;
}

static status put_group(struct folding *folding, const struct touched *touched,
                        const struct view_group *group, bool is_left_out)
{
    struct buffer record = {0};
    buffer_append_byte(&record, is_left_out ? VIEW_RECORD_LEFT_OUT : VIEW_RECORD_IN);
    status s = view_group_write(group, &record);
    if (status_is_ok(s) && record.failed)
        s = status_out_of_memory();
    if (status_is_ok(s))
        view_commit_put(folding->piece->commit, touched->record, buffer_bytes(&record));
    buffer_free(&record);
    return s;
}

static status emit_group(struct folding *folding, const struct touched *touched,
                         const struct view_group *group, bool was_left_out)
{
    struct view_piece *piece = folding->piece;
    struct view_row row;
    const char *why = NULL;
    TRY(view_group_row(piece->upkeep->runner, group, touched->id, folding->scratch, &row, &why));
    count_left_out(piece, was_left_out, why != NULL);
    TRY(put_group(folding, touched, group, why != NULL));
    if (why == NULL)
        return view_emit_row(&folding->emitter, &row, false);
    struct view_place place;
    TRY(view_place_of(piece->upkeep->program, touched->id, folding->scratch, &place));
    return view_emit_removal(&folding->emitter, &place, NULL);
}

static status drop_group(struct folding *folding, const struct touched *touched,
                         const struct view_place *place, bool was_left_out)
{
    count_left_out(folding->piece, was_left_out, false);
    if (touched->kept.size == 0)
        return status_ok();
    view_commit_delete(folding->piece->commit, touched->record);
    return view_emit_removal(&folding->emitter, place, NULL);
}

/* The row that is being made of several versions refers to what is in the scratch. */
static status begin_row(struct folding *folding, const struct touched *touched,
                        struct view_place *place)
{
    struct view_piece *piece = folding->piece;
    TRY(view_place_of(piece->upkeep->program, touched->id, piece->arena, place));
    if (folding->emitter.change == NULL || !bytes_equal(folding->emitter.key, place->key)) {
        view_emit_end(&folding->emitter);
        arena_reset(folding->scratch);
    }
    return view_emit_begin(&folding->emitter, place);
}

static status take_group(struct folding *folding, const struct touched *touched)
{
    struct view_piece *piece = folding->piece;
    enum view_record_tag tag = VIEW_RECORD_IN;
    struct view_overlay overlay;
    struct view_group *group;
    struct view_place place;
    bytes record = bytes_make(NULL, 0);
    if (touched->kept.size > 0)
        TRY(view_record_read(touched->kept, &tag, &record));
    TRY(begin_row(folding, touched, &place));
    TRY(view_overlay_begin(&overlay, piece->upkeep->table, piece->commit, &piece->cursor,
                           &piece->found, folding->scratch, touched->id));
    TRY(view_group_read(piece->upkeep->program, record, folding->scratch, &group));
    TRY(fold(folding, touched, &overlay, group));
    TRY(view_overlay_write(&overlay));
    return view_group_is_empty(group)
               ? drop_group(folding, touched, &place, tag == VIEW_RECORD_LEFT_OUT)
               : emit_group(folding, touched, group, tag == VIEW_RECORD_LEFT_OUT);
}

static status take_groups(struct folding *folding)
{
    TRY(find_groups(folding));
    TRY(read_groups(folding));
    for (size_t i = 0; i < folding->count; i++) {
        TRY(take_group(folding, &folding->groups[i]));
        view_piece_step(folding->piece);
    }
    view_emit_end(&folding->emitter);
    return status_ok();
}

status view_piece_fold_groups(struct view_piece *piece)
{
    struct folding folding = {.piece = piece, .scratch = arena_create(GROUP_MEMORY)};
    view_emitter_init(&folding.emitter, piece, folding.scratch);
    if (piece->folds.count == 0 || folding.scratch == NULL) {
        arena_destroy(folding.scratch);
        return piece->folds.count == 0 ? status_ok() : status_out_of_memory();
    }
    status s = take_groups(&folding);
    arena_destroy(folding.scratch);
    return s;
}
