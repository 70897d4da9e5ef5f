/* Rows read again, and held against what they should be.
 *
 * Rows gather in slots. All of them: when the slots are full, they are read and compared. A sample:
 * the slots are a reservoir, in which each row that came has the same chance to be, and are
 * compared at the end. A row is as it should be if each of its cells is there, at its timestamp,
 * with its value; what else is in it is not our concern. */
#include "cmd/import.h"
#include "cmd/row_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SLOTS = 1000,
    SLOT_LIMIT = 512 << 20,
    SAMPLED_BYTES = 32 << 10, /* larger rows are not sampled: a sample is to be small */
    SHOWN_MOST = 20,
};

struct slot {
    struct arena *arena;
    struct move_change row;
    const char *file;
    uint64_t line;
    bool is_same;
};

struct import_verification {
    struct client_session *session;
    const char *table;
    bool is_sample;
    struct slot slots[SLOTS];
    size_t count;
    uint64_t seen;
    uint64_t random;
    uint64_t compared;
    uint64_t different;
};

status import_verification_create(struct client_session *session, const char *table, bool is_sample,
                                  struct import_verification **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->session = session;
    (*out)->table = table;
    (*out)->is_sample = is_sample;
    return status_ok();
}

void import_verification_destroy(struct import_verification *verification)
{
    if (verification == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        arena_destroy(verification->slots[i].arena);
    free(verification);
}

/* --- comparing --- */

static bool has_cell(const struct move_change *row, const struct move_cell *cell)
{
    for (size_t i = 0; i < row->count; i++) {
        const struct move_cell *at = &row->cells[i];
        if (at->timestamp_us == cell->timestamp_us && bytes_equal(at->qualifier, cell->qualifier) &&
            strcmp(at->family, cell->family) == 0)
            return bytes_equal(at->value, cell->value);
    }
    return false;
}

static bool has_all(const struct move_change *row, const struct move_change *expected)
{
    for (size_t i = 0; i < expected->count; i++)
        if (!has_cell(row, &expected->cells[i]))
            return false;
    return true;
}

static int compare_slots(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return bytes_compare(x->row.row_key, y->row.row_key);
}

/* The first slot whose row key is not before this one. */
static size_t first_slot(const struct import_verification *v, bytes row_key)
{
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(v->slots[middle].row.row_key, row_key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static status take_row(void *context, const struct move_change *row)
{
    struct import_verification *v = context;
    for (size_t i = first_slot(v, row->row_key);
         i < v->count && bytes_equal(v->slots[i].row.row_key, row->row_key); i++)
        v->slots[i].is_same = has_all(row, &v->slots[i].row);
    return status_ok();
}

static status read_slots(struct import_verification *v, struct arena *arena)
{
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.row_keys = arena_alloc(arena, v->count * sizeof *rows.row_keys);
    if (rows.row_keys == NULL)
        return status_out_of_memory();
    for (; rows.n_row_keys < v->count; rows.n_row_keys++)
        rows.row_keys[rows.n_row_keys] = proto_data(v->slots[rows.n_row_keys].row.row_key);
    const struct row_reading reading = {.session = v->session,
                                        .table = v->table,
                                        .app_profile = client_session_app_profile(v->session),
                                        .rows = &rows,
                                        .context = v,
                                        .on_row = take_row};
    return rows_read(&reading);
}

static void count_results(struct import_verification *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct slot *slot = &v->slots[i];
        v->compared++;
        if (slot->is_same)
            continue;
        v->different++;
        if (v->different <= SHOWN_MOST)
            fprintf(stderr, "%s:%" PRIu64 ": the row is missing, or is another\n", slot->file,
                    slot->line);
    }
    v->count = 0;
}

static status compare_all(struct import_verification *v)
{
    struct arena *arena = arena_create(SLOT_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    qsort(v->slots, v->count, sizeof v->slots[0], compare_slots);
    status s = v->count == 0 ? status_ok() : read_slots(v, arena);
    arena_destroy(arena);
    if (status_is_ok(s))
        count_results(v);
    return s;
}

/* --- gathering --- */

static status copy_cell(const struct move_cell *cell, struct arena *arena, struct move_cell *out)
{
    *out = *cell;
    out->family = arena_string(arena, bytes_of(cell->family));
    out->qualifier = arena_copy(arena, cell->qualifier);
    out->value = arena_copy(arena, cell->value);
    bool is_whole = out->family != NULL && out->qualifier.data != NULL && out->value.data != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

static status fill_slot(struct slot *slot, const struct move_change *row, const char *file,
                        uint64_t line)
{
    if (slot->arena == NULL)
        slot->arena = arena_create(SLOT_LIMIT);
    if (slot->arena == NULL)
        return status_out_of_memory();
    arena_reset(slot->arena);
    slot->file = file;
    slot->line = line;
    slot->is_same = false;
    slot->row = (struct move_change){.row_key = arena_copy(slot->arena, row->row_key)};
    slot->row.cells = arena_alloc(slot->arena, row->count * sizeof *slot->row.cells);
    if (slot->row.row_key.data == NULL || slot->row.cells == NULL)
        return status_out_of_memory();
    for (; slot->row.count < row->count; slot->row.count++)
        TRY(copy_cell(&row->cells[slot->row.count], slot->arena,
                      &slot->row.cells[slot->row.count]));
    return status_ok();
}

/* splitmix64: the sample is the same each time. */
static uint64_t random_below(struct import_verification *v, uint64_t bound)
{
    uint64_t z = (v->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % bound;
}

static status add_to_sample(struct import_verification *v, const struct move_change *row,
                            const char *file, uint64_t line)
{
    if (row->bytes > SAMPLED_BYTES)
        return status_ok();
    v->seen++;
    if (v->count < SLOTS)
        return fill_slot(&v->slots[v->count++], row, file, line);
    uint64_t place = random_below(v, v->seen);
    return place < SLOTS ? fill_slot(&v->slots[place], row, file, line) : status_ok();
}

status import_verification_add(struct import_verification *v, const struct move_change *row,
                               const char *file, uint64_t line)
{
    if (v->is_sample)
        return add_to_sample(v, row, file, line);
    if (v->count == SLOTS)
        TRY(compare_all(v));
    return fill_slot(&v->slots[v->count++], row, file, line);
}

status import_verification_finish(struct import_verification *v, uint64_t *compared,
                                  uint64_t *different)
{
    status s = compare_all(v);
    *compared = v->compared;
    *different = v->different;
    if (v->different > SHOWN_MOST)
        fprintf(stderr, "… and %" PRIu64 " more\n", v->different - SHOWN_MOST);
    return s;
}
