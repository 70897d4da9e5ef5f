/* See piece.h. This file: from evaluated rows to what is written. */
#include "views/piece.h"

#include "views/keys.h"

status view_piece_begin(struct view_upkeep *upkeep, size_t most_rows, struct view_piece *piece)
{
    *piece = (struct view_piece){.upkeep = upkeep, .arena = upkeep->arena, .most_rows = most_rows};
    return view_commit_begin(upkeep->table, upkeep->commit_memory, &piece->commit);
}

void view_piece_end(struct view_piece *piece)
{
    view_cursor_destroy(piece->cursor);
    view_commit_cancel(piece->commit);
    buffer_free(&piece->found);
    arena_reset_keeping(piece->arena, VIEW_PIECE_KEPT);
}

void view_piece_step(struct view_piece *piece)
{
    const struct view_upkeep *upkeep = piece->upkeep;
    if (++piece->steps < VIEW_PIECE_STEPS || upkeep->rest == NULL)
        return;
    piece->steps = 0;
    upkeep->rest(upkeep->rest_context);
}

/* --- index: the parts are rows --- */

static status index_row(struct view_emitter *emitter, const struct view_part *part,
                        struct view_row *row)
{
    return view_index_row(emitter->piece->upkeep->program, part, emitter->scratch, row);
}

static status index_removal(struct view_emitter *emitter, const struct view_part *part)
{
    struct view_row was;
    TRY(index_row(emitter, part, &was));
    TRY(view_emit_begin(emitter, &was.place));
    return view_emit_removal(emitter, &was.place, &was);
}

static status index_put(struct view_emitter *emitter, const struct view_part *old,
                        const struct view_part *fresh)
{
    struct view_row row;
    TRY(index_row(emitter, fresh, &row));
    TRY(view_emit_begin(emitter, &row.place));
    if (old != NULL && row.place.has_timestamp)
        TRY(index_removal(emitter, old));
    return view_emit_row(emitter, &row, old != NULL);
}

/* --- groups: the parts are folded later --- */

static status add_fold(struct view_piece *piece, const struct view_item *item,
                       const struct view_part *part, bool is_removal)
{
    struct view_fold fold = {part->id, part->body, item->key, is_removal, 0};
    return vector_add(&piece->folds, piece->arena, &fold, sizeof fold);
}

/* --- the difference of two contributions --- */

struct difference {
    struct view_piece *piece;
    const struct view_item *item;
    struct view_emitter *emitter;
    bytes old_rest;
    bytes fresh_rest;
    struct view_part old;
    struct view_part fresh;
    bool has_old;
    bool has_fresh;
};

/* A part that was, or one that is to be, or both, of one id; NULL: there is none. */
static status take_part(struct difference *d, const struct view_part *old,
                        const struct view_part *fresh)
{
    if (old != NULL && fresh != NULL && bytes_equal(old->body, fresh->body))
        return status_ok();
    if (view_program_form(d->piece->upkeep->program) == VIEW_INDEX)
        return fresh == NULL ? index_removal(d->emitter, old) : index_put(d->emitter, old, fresh);
    if (old != NULL)
        TRY(add_fold(d->piece, d->item, old, true));
    return fresh != NULL ? add_fold(d->piece, d->item, fresh, false) : status_ok();
}

static status walk_parts(struct difference *d)
{
    TRY(view_contribution_next(&d->old_rest, &d->old, &d->has_old));
    TRY(view_contribution_next(&d->fresh_rest, &d->fresh, &d->has_fresh));
    while (d->has_old || d->has_fresh) {
        int order = !d->has_old ? 1 : !d->has_fresh ? -1 : bytes_compare(d->old.id, d->fresh.id);
        TRY(take_part(d, order <= 0 ? &d->old : NULL, order >= 0 ? &d->fresh : NULL));
        if (order <= 0)
            TRY(view_contribution_next(&d->old_rest, &d->old, &d->has_old));
        if (order >= 0)
            TRY(view_contribution_next(&d->fresh_rest, &d->fresh, &d->has_fresh));
    }
    return status_ok();
}

static status read_item(bytes value, bytes *contribution, bool *is_left_out)
{
    enum view_record_tag tag = VIEW_RECORD_IN;
    *contribution = bytes_make(NULL, 0);
    if (value.size > 0)
        TRY(view_record_read(value, &tag, contribution));
    *is_left_out = tag == VIEW_RECORD_LEFT_OUT;
    return status_ok();
}

static status put_record(struct view_piece *piece, const struct view_item *item)
{
    bytes key = view_record_key(piece->arena, VIEW_RECORD_ROW, item->key);
    if (key.data == NULL)
        return status_out_of_memory();
    if (item->fresh.size > 0)
        view_commit_put(piece->commit, key, item->fresh);
    else
        view_commit_delete(piece->commit, key);
    return status_ok();
}

static status apply_item(struct view_emitter *emitter, const struct view_item *item)
{
    struct view_piece *piece = emitter->piece;
    struct difference d = {.piece = piece, .item = item, .emitter = emitter};
    bool was_left_out, is_left_out;
    if (bytes_equal(item->fresh, item->kept))
        return status_ok();
    TRY(read_item(item->kept, &d.old_rest, &was_left_out));
    TRY(read_item(item->fresh, &d.fresh_rest, &is_left_out));
    TRY(put_record(piece, item));
    piece->excluded_rows += (int64_t)is_left_out - (int64_t)was_left_out;
    piece->user_errors += is_left_out && !was_left_out;
    return walk_parts(&d);
}

status view_piece_apply(struct view_piece *piece)
{
    struct view_emitter emitter;
    const struct view_item *items = piece->items.items;
    view_emitter_init(&emitter, piece, piece->arena);
    for (size_t i = 0; i < piece->items.count; i++)
        TRY(apply_item(&emitter, &items[i]));
    view_emit_end(&emitter);
    return view_piece_fold_groups(piece);
}
