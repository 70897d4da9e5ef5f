/* The pieces of a source row: see pieces.h.
 *
 * Each piece is copied, with the id of the view row that it goes to; when all have come, they are
 * sorted by it. Those of one id are gathered into one body of a group; of an index the last
 * counts. */
#include "sql/view/pieces.h"

#include "base/limits.h"
#include "base/varint.h"
#include "sql/view/cell.h"
#include "sql/view/run.h"

#include <stdlib.h>

struct piece {
    bytes id;
    size_t at; /* in the order of coming */
    const struct sql_value *row;
};

void view_pieces_clear(struct view_pieces *pieces)
{
    arena_reset(pieces->arena);
    pieces->list = (struct vector){0};
    pieces->output = 0;
    pieces->why = NULL;
}

void view_pieces_free(struct view_pieces *pieces)
{
    buffer_free(&pieces->id);
    buffer_free(&pieces->body);
}

/* --- adding --- */

static uint64_t output_size(const struct sql_type *type, const struct sql_value *value)
{
    uint64_t size = 0;
    if (value->is_null)
        return 0;
    if (type->kind != SQL_MAP)
        return view_value_size(type, value);
    for (size_t i = 0; i < value->count; i++)
        size += output_size(sql_item_type(type, i), &value->items[i]);
    return size;
}

static const char *count_output(struct view_pieces *pieces, const struct sql_value *row)
{
    const struct sql_operator *root = pieces->program->pieces.root;
    for (size_t i = 0; i < root->column_count; i++)
        pieces->output += output_size(root->columns[i].type, &row[i]);
    return pieces->output > LIMIT_VIEW_ROW_BYTES ? "more than 1 MiB comes of it" : NULL;
}

static status copy_row(struct view_pieces *pieces, const struct sql_value *row,
                       const struct sql_value **out)
{
    const struct sql_operator *root = pieces->program->pieces.root;
    struct sql_value *copy = sql_items_alloc(pieces->arena, root->column_count);
    if (copy == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < root->column_count; i++)
        TRY(sql_value_copy(root->columns[i].type, &row[i], pieces->arena, &copy[i]));
    *out = copy;
    return status_ok();
}

static status make_id(struct view_pieces *pieces, const struct sql_value *row, bytes *out)
{
    buffer_clear(&pieces->id);
    TRY(view_id_append(pieces->program, row, &pieces->id, &pieces->why));
    if (pieces->id.failed)
        return status_out_of_memory();
    *out = arena_copy(pieces->arena, buffer_bytes(&pieces->id));
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

status view_pieces_add(struct view_pieces *pieces, const struct sql_value *row)
{
    struct piece piece = {.at = pieces->list.count};
    if (pieces->why == NULL)
        pieces->why = count_output(pieces, row);
    if (pieces->why != NULL)
        return status_ok();
    TRY(make_id(pieces, row, &piece.id));
    TRY(copy_row(pieces, row, &piece.row));
    return vector_add(&pieces->list, pieces->arena, &piece, sizeof piece);
}

/* --- bodies of groups --- */

/* States lie one behind the other, each where any type may be. */
static size_t aligned(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
}

static status gather_piece(const struct view_pieces *pieces, const struct piece *piece,
                           uint8_t *states)
{
    const struct view_program *program = pieces->program;
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        const struct sql_value *argument =
            aggregate->column == VIEW_NO_COLUMN ? NULL : &piece->row[aggregate->column];
        if (argument == NULL || !argument->is_null)
            TRY(aggregate->kind->gather(aggregate, states, argument, pieces->arena));
        states += aligned(aggregate->kind->gathered_size);
    }
    return status_ok();
}

static status write_group(struct view_pieces *pieces, const struct piece *list, size_t count,
                          struct buffer *body)
{
    const struct view_program *program = pieces->program;
    size_t size = 0;
    for (size_t i = 0; i < program->aggregate_count; i++)
        size += aligned(program->aggregates[i].kind->gathered_size);
    uint8_t *states = arena_zalloc(pieces->arena, size);
    if (states == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(gather_piece(pieces, &list[i], states));
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        TRY(aggregate->kind->write_body(aggregate, states, body));
        states += aligned(aggregate->kind->gathered_size);
    }
    return status_ok();
}

/* --- bodies of an index --- */

/* NULL is 0; a value its size and one, and its bytes. */
static void append_cell(struct buffer *out, const struct sql_type *type,
                        const struct sql_value *value)
{
    uint8_t room[VIEW_NUMBER_BYTES];
    if (!view_value_has_cell(type, value)) {
        buffer_append_byte(out, 0);
        return;
    }
    bytes cell = view_value_cell(type, value, room);
    buffer_append_varint(out, cell.size + 1);
    buffer_append_bytes(out, cell);
}

/* Of a family: how many cells, and of each its qualifier and value. */
static void append_family(struct buffer *out, const struct sql_type *type,
                          const struct sql_value *map)
{
    size_t count = map->is_null ? 0 : map->count;
    buffer_append_varint(out, count / 2);
    for (size_t i = 0; i + 1 < count; i += 2) {
        view_append_text(out, map->items[i].text);
        append_cell(out, type->element, &map->items[i + 1]);
    }
}

static void write_index(const struct view_pieces *pieces, const struct piece *piece,
                        struct buffer *body)
{
    const struct view_program *program = pieces->program;
    for (size_t i = 0; i < program->cell_count; i++) {
        const struct view_column *column = &program->columns[program->cells[i]];
        const struct sql_value *value = &piece->row[program->places[program->cells[i]]];
        if (column->kind == VIEW_COLUMN_FAMILY)
            append_family(body, column->type, value);
        else
            append_cell(body, column->type, value);
    }
}

/* --- the contribution --- */

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *left = a, *right = b;
    int order = bytes_compare(left->id, right->id);
    return order != 0 ? order : left->at < right->at ? -1 : left->at > right->at;
}

static size_t same_ids(const struct piece *list, size_t count)
{
    size_t same = 1;
    while (same < count && bytes_equal(list[same].id, list[0].id))
        same++;
    return same;
}

static status write_parts(struct view_pieces *pieces, struct buffer *out)
{
    struct buffer *body = &pieces->body;
    struct piece *list = pieces->list.items;
    for (size_t at = 0, count; at < pieces->list.count; at += count) {
        count = same_ids(&list[at], pieces->list.count - at);
        buffer_clear(body);
        if (pieces->program->form == VIEW_INDEX)
            write_index(pieces, &list[at + count - 1], body);
        else
            TRY(write_group(pieces, &list[at], count, body));
        view_append_text(out, list[at].id);
        view_append_text(out, buffer_bytes(body));
        if (body->failed || out->failed)
            return status_out_of_memory();
    }
    return status_ok();
}

static const char *check_sizes(const struct view_pieces *pieces, uint64_t selected,
                               uint64_t key_size)
{
    bool is_small = pieces->output <= VIEW_SMALL_OUTPUT;
    return is_small || pieces->output <= VIEW_MOST_EXPANSION * (selected + key_size)
               ? NULL
               : "more than ten times of what is selected comes of it";
}

status view_pieces_write(struct view_pieces *pieces, uint64_t selected, uint64_t key_size,
                         struct buffer *out)
{
    if (pieces->why == NULL && pieces->list.count > 0)
        pieces->why = check_sizes(pieces, selected, key_size);
    if (pieces->why != NULL || pieces->list.count == 0)
        return status_ok();
    if (pieces->list.count > 1)
        qsort(pieces->list.items, pieces->list.count, sizeof(struct piece), compare_pieces);
    return write_parts(pieces, out);
}
