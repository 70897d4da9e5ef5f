/* Rows gather in slots. All of them: when the slots are full, they are read and compared. A sample:
 * the slots are a reservoir, in which each row that came has the same chance to be, and are
 * compared at the end. A row is as it should be if each of its cells is there, at its timestamp,
 * with its value; what else is in it is not our concern, unless the record says all of the row: as
 * what replaces it does, and each of them where whole rows are expected.
 * Of several records that say all of one row the last one counts. */
#include "transfer/verification.h"

#include "client/row_reader.h"
#include "transfer/suspects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SLOTS = 1000,
    SLOT_LIMIT = 512 << 20,
    SAMPLED_BYTES = 32 << 10, /* larger rows are not sampled: a sample is to be small */
    SHOWN_MOST = 20,
    SHOWN_KEY = 100, /* bytes of a row key */
};

enum verdict { ROW_DIFFERS, ROW_IS_SAME, ROW_IS_LATER /* than the record, which yields to it */ };

struct slot {
    struct arena *arena;
    struct move_change row;
    struct transfer_place place;
    uint64_t tag;
    uint64_t number; /* in the order in which they came */
    enum verdict verdict;
};

struct verification {
    struct client_session *session;
    const char *table;
    bool is_sample;
    bool expects_whole_rows;
    const BtAdmin__Table *schema; /* NULL: not known */
    const struct seen *outdone;   /* by which records; NULL: by none */
    struct slot slots[SLOTS];
    size_t count;
    uint64_t seen;
    uint64_t number;
    uint64_t random;
    uint64_t compared;
    struct suspects suspects;
};

status verification_create(struct client_session *session, const char *table, bool is_sample,
                           struct verification **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->session = session;
    (*out)->table = table;
    (*out)->is_sample = is_sample;
    return status_ok();
}

void verification_destroy(struct verification *verification)
{
    if (verification == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        arena_destroy(verification->slots[i].arena);
    suspects_free(&verification->suspects);
    free(verification);
}

bool verification_is_sample(const struct verification *verification)
{
    return verification->is_sample;
}

void verification_expect_whole_rows(struct verification *verification)
{
    verification->expects_whole_rows = true;
}

void verification_know_schema(struct verification *verification, const BtAdmin__Table *schema)
{
    verification->schema = schema;
}

void verification_forgive(struct verification *verification, const struct seen *seen)
{
    verification->outdone = seen;
}

/* --- comparing --- */

static bool is_of_column(const struct move_cell *at, const struct move_cell *cell)
{
    return bytes_equal(at->qualifier, cell->qualifier) && strcmp(at->family, cell->family) == 0;
}

/* Looks from `*place` on, and then before it: cells mostly come in the order in which they are
 * expected. `*place` is the one behind it then. */
static const struct move_cell *find_cell(const struct move_change *row,
                                         const struct move_cell *cell, bool is_undated,
                                         size_t *place)
{
    for (size_t i = 0; i < row->count; i++) {
        size_t index = *place + i < row->count ? *place + i : *place + i - row->count;
        const struct move_cell *at = &row->cells[index];
        if ((is_undated || at->timestamp_us == cell->timestamp_us) && is_of_column(at, cell)) {
            *place = index + 1;
            return at;
        }
    }
    return NULL;
}

/* Whether the rule of its family takes the cell, for the later ones that are there. */
static bool is_superseded(const struct verification *v, const struct move_change *row,
                          const struct move_cell *cell)
{
    uint32_t kept = v->schema == NULL ? 0 : transfer_kept_versions(v->schema, cell->family);
    uint32_t later = 0;
    for (size_t i = 0; i < row->count && kept != 0; i++)
        later +=
            row->cells[i].timestamp_us > cell->timestamp_us && is_of_column(&row->cells[i], cell);
    return kept != 0 && later >= kept;
}

/* `is_whole`: and nothing else. */
static bool has_all(const struct verification *v, const struct move_change *row,
                    const struct move_change *expected, bool is_whole)
{
    size_t place = 0;
    for (size_t i = 0; i < expected->count; i++) {
        const struct move_cell *cell = &expected->cells[i];
        const struct move_cell *found = find_cell(row, cell, expected->is_undated, &place);
        if (found == NULL ? !is_superseded(v, row, cell) : !bytes_equal(found->value, cell->value))
            return false;
    }
    return !is_whole || row->count <= expected->count;
}

static bool has_later_cell(const struct move_change *row, int64_t us)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->cells[i].timestamp_us > us)
            return true;
    return false;
}

static enum verdict judge(const struct verification *v, const struct move_change *row,
                          const struct move_change *expected)
{
    bool is_whole = expected->replaces || v->expects_whole_rows;
    if (expected->yields && has_later_cell(row, expected->written_us))
        return ROW_IS_LATER;
    return has_all(v, row, expected, is_whole) ? ROW_IS_SAME : ROW_DIFFERS;
}

static int compare_slots(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    int order = bytes_compare(x->row.row_key, y->row.row_key);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* The first slot whose row key is not before this one. */
static size_t first_slot(const struct verification *v, bytes row_key)
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
    struct verification *v = context;
    for (size_t i = first_slot(v, row->row_key);
         i < v->count && bytes_equal(v->slots[i].row.row_key, row->row_key); i++)
        v->slots[i].verdict = judge(v, row, &v->slots[i].row);
    return status_ok();
}

static status read_slots(struct verification *v, struct arena *arena)
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

/* Whether the row's time is over: it may be gone. */
static bool is_over(const struct move_change *row)
{
    return row->ends_us != 0 && row->ends_us <= clock_wall_us(clock_system());
}

static bool is_outdone(const struct verification *v, const struct slot *slot)
{
    return v->outdone != NULL && seen_is_outdone(v->outdone, &slot->row, slot->tag);
}

static status count_result(struct verification *v, const struct slot *slot)
{
    v->compared++;
    if (slot->verdict == ROW_DIFFERS && !is_over(&slot->row) && !is_outdone(v, slot))
        return suspects_add(&v->suspects, slot->row.row_key, &slot->place);
    if (slot->verdict == ROW_IS_SAME && slot->row.replaces)
        suspects_clear(&v->suspects, slot->row.row_key);
    return status_ok();
}

static status count_results(struct verification *v)
{
    for (size_t i = 0; i < v->count; i++)
        TRY(count_result(v, &v->slots[i]));
    v->count = 0;
    return status_ok();
}

static void show_suspects(const struct verification *v)
{
    uint64_t shown = 0;
    for (size_t i = 0; i < v->suspects.count && shown < SHOWN_MOST; i++) {
        const struct suspect *suspect = &v->suspects.all[i];
        if (suspect->is_cleared)
            continue;
        shown++;
        fprintf(stderr, "%s:%" PRIu64 ": the row is missing, or is another\n", suspect->place.file,
                suspect->place.line);
    }
    if (v->suspects.standing > shown)
        fprintf(stderr, "… and %" PRIu64 " more\n", v->suspects.standing - shown);
}

static status compare_all(struct verification *v)
{
    struct arena *arena = arena_create(SLOT_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    qsort(v->slots, v->count, sizeof v->slots[0], compare_slots);
    status s = v->count == 0 ? status_ok() : read_slots(v, arena);
    arena_destroy(arena);
    return status_is_ok(s) ? count_results(v) : s;
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

static status fill_slot(struct verification *v, struct slot *slot,
                        const struct transfer_record *record, const struct transfer_place *place)
{
    const struct move_change *row = &record->change;
    if (slot->arena == NULL)
        slot->arena = arena_create(SLOT_LIMIT);
    if (slot->arena == NULL)
        return status_out_of_memory();
    arena_reset(slot->arena);
    slot->place = *place;
    slot->tag = record->tag;
    slot->number = v->number++;
    slot->verdict = row->count == 0 ? ROW_IS_SAME : ROW_DIFFERS; /* unless there is a row */
    slot->row = *row;
    slot->row.row_key = arena_copy(slot->arena, row->row_key);
    slot->row.count = 0;
    slot->row.cells = arena_alloc(slot->arena, row->count * sizeof *slot->row.cells);
    if (slot->row.row_key.data == NULL || slot->row.cells == NULL)
        return status_out_of_memory();
    for (; slot->row.count < row->count; slot->row.count++)
        TRY(copy_cell(&row->cells[slot->row.count], slot->arena,
                      &slot->row.cells[slot->row.count]));
    return status_ok();
}

/* splitmix64: the sample is the same each time. */
static uint64_t random_below(struct verification *v, uint64_t bound)
{
    uint64_t z = (v->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % bound;
}

/* The slot of a row that is in the sample already, which the record replaces; else NULL. */
static struct slot *sampled_slot(struct verification *v, const struct move_change *row)
{
    if (!row->replaces)
        return NULL;
    for (size_t i = 0; i < v->count; i++)
        if (bytes_equal(v->slots[i].row.row_key, row->row_key))
            return &v->slots[i];
    return NULL;
}

static status add_to_sample(struct verification *v, const struct transfer_record *record,
                            const struct transfer_place *place)
{
    const struct move_change *row = &record->change;
    struct slot *known = sampled_slot(v, row);
    if (known != NULL)
        return fill_slot(v, known, record, place);
    if (row->bytes > SAMPLED_BYTES)
        return status_ok();
    v->seen++;
    if (v->count < SLOTS)
        return fill_slot(v, &v->slots[v->count++], record, place);
    uint64_t slot = random_below(v, v->seen);
    return slot < SLOTS ? fill_slot(v, &v->slots[slot], record, place) : status_ok();
}

status verification_add(struct verification *v, const struct transfer_record *record,
                        const struct transfer_place *place)
{
    if (v->is_sample)
        return add_to_sample(v, record, place);
    if (v->count == SLOTS)
        TRY(compare_all(v));
    return fill_slot(v, &v->slots[v->count++], record, place);
}

status verification_finish(struct verification *v, uint64_t *compared, uint64_t *different)
{
    status s = compare_all(v);
    *compared = v->compared;
    *different = v->suspects.standing;
    show_suspects(v);
    return s;
}

/* --- rows that should not be there --- */

struct stray_search {
    const struct seen *rows;
    uint64_t count;
};

static status look_at_row(void *context, const struct move_change *row)
{
    struct stray_search *search = context;
    struct buffer shown = {0};
    if (seen_has_row(search->rows, row->row_key) || ++search->count > SHOWN_MOST)
        return status_ok();
    buffer_append_readable(&shown, row->row_key, SHOWN_KEY);
    if (!shown.failed)
        fprintf(stderr, "the row %.*s is in the table, and not in the source\n", (int)shown.size,
                (const char *)shown.data);
    buffer_free(&shown);
    return status_ok();
}

/* Of each row its key, and as little beside it as a row has. */
status verification_find_strays(struct verification *v, const struct seen *rows, uint64_t *strays)
{
    Bt__RowFilter one = BT__ROW_FILTER__INIT, bare = BT__ROW_FILTER__INIT;
    Bt__RowFilter filter = BT__ROW_FILTER__INIT, *parts[] = {&one, &bare};
    Bt__RowFilter__Chain chain = BT__ROW_FILTER__CHAIN__INIT;
    struct stray_search search = {.rows = rows};
    one.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER;
    one.cells_per_row_limit_filter = 1;
    bare.filter_case = BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER;
    bare.strip_value_transformer = true;
    chain.filters = parts;
    chain.n_filters = sizeof parts / sizeof *parts;
    filter.filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    filter.chain = &chain;
    const struct row_reading reading = {.session = v->session,
                                        .table = v->table,
                                        .app_profile = client_session_app_profile(v->session),
                                        .filter = &filter,
                                        .context = &search,
                                        .on_row = look_at_row};
    status s = rows_read(&reading);
    *strays = search.count;
    return s;
}
