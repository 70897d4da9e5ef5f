/* Replay: histories at random, rows copied at any moment of them, crashes, and states that are read
 * ahead of the replay. What the copy comes to must be what the source is, cell by cell. */
#include "transfer/replay.h"

#include "base/testing/testing.h"
#include "client/row_mutations.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROWS = 3,
    FAMILIES = 2, /* a plain one, and sums */
    COLUMNS = 2,
    TIMES = 3,
    CELLS = FAMILIES * COLUMNS * TIMES,
    STEPS = 40,
    MUTATIONS = 3, /* of a step, at most */
    QUEUE = 1000,
    HISTORIES = 3000,
    CRASHES = 4,
    ARENA_LIMIT = 256 << 20,
    MS = 1000,
};

static const char *const families[] = {"f", "s.m"};
static const char *const columns[] = {"a", "b"};

struct row {
    bool has[CELLS];
    int64_t value[CELLS];
};

struct table {
    struct row rows[ROWS];
};

static size_t slot_of(const char *family, bytes qualifier, int64_t timestamp_us)
{
    size_t f = strcmp(family, families[1]) == 0;
    size_t column = bytes_equal(qualifier, bytes_of(columns[1]));
    return (f * COLUMNS + column) * TIMES + (size_t)(timestamp_us / MS);
}

static void cell_of_slot(size_t slot, struct move_cell *out)
{
    *out = (struct move_cell){.family = families[slot / (COLUMNS * TIMES)],
                              .qualifier = bytes_of(columns[slot / TIMES % COLUMNS]),
                              .timestamp_us = (int64_t)(slot % TIMES) * MS};
}

/* --- mutations, made and applied --- */

static Bt__Mutation *new_mutation(struct arena *arena)
{
    Bt__Mutation *mutation = arena_alloc(arena, sizeof *mutation);
    assert_non_null(mutation);
    *mutation = (Bt__Mutation)BT__MUTATION__INIT;
    return mutation;
}

static bytes copy_value(struct arena *arena, int64_t value)
{
    bytes copy = arena_copy(arena, bytes_make(&value, sizeof value));
    assert_non_null(copy.data);
    return copy;
}

static int64_t value_of(ProtobufCBinaryData data)
{
    int64_t value;
    assert_int_equal(data.len, sizeof value);
    memcpy(&value, data.data, sizeof value);
    return value;
}

static Bt__Mutation *make_set(struct arena *arena, const struct move_cell *cell)
{
    Bt__Mutation *mutation = new_mutation(arena);
    mutation->set_cell = arena_alloc(arena, sizeof *mutation->set_cell);
    assert_non_null(mutation->set_cell);
    *mutation->set_cell = (Bt__Mutation__SetCell)BT__MUTATION__SET_CELL__INIT;
    mutation->mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation->set_cell->family_name = cell->family;
    mutation->set_cell->column_qualifier = proto_data(cell->qualifier);
    mutation->set_cell->timestamp_micros = cell->timestamp_us;
    mutation->set_cell->value = proto_data(cell->value);
    return mutation;
}

static Bt__Mutation *make_add(struct arena *arena, const struct move_cell *cell)
{
    Bt__Mutation *merge, *mutation = new_mutation(arena);
    assert_ok(row_mutations_merge_cell(cell, arena, &merge));
    mutation->add_to_cell = arena_alloc(arena, sizeof *mutation->add_to_cell);
    assert_non_null(mutation->add_to_cell);
    *mutation->add_to_cell = (Bt__Mutation__AddToCell)BT__MUTATION__ADD_TO_CELL__INIT;
    mutation->mutation_case = BT__MUTATION__MUTATION_ADD_TO_CELL;
    mutation->add_to_cell->family_name = cell->family;
    mutation->add_to_cell->column_qualifier = merge->merge_to_cell->column_qualifier;
    mutation->add_to_cell->timestamp = merge->merge_to_cell->timestamp;
    mutation->add_to_cell->input = merge->merge_to_cell->input;
    return mutation;
}

/* From the cell's time on, up to a later one, or all that follow. */
static Bt__Mutation *make_column_deletion(struct arena *arena, const struct move_cell *cell,
                                          unsigned *seed)
{
    Bt__Mutation *mutation;
    assert_ok(row_mutations_remove_cell(cell, arena, &mutation));
    Bt__TimestampRange *range = mutation->delete_from_column->time_range;
    if (rand_r(seed) % 3 == 0)
        range->end_timestamp_micros = 0;
    else
        range->end_timestamp_micros += rand_r(seed) % TIMES * MS;
    return mutation;
}

static Bt__Mutation *make_family_deletion(struct arena *arena, const char *family)
{
    Bt__Mutation *mutation = new_mutation(arena);
    mutation->delete_from_family = arena_alloc(arena, sizeof *mutation->delete_from_family);
    assert_non_null(mutation->delete_from_family);
    *mutation->delete_from_family =
        (Bt__Mutation__DeleteFromFamily)BT__MUTATION__DELETE_FROM_FAMILY__INIT;
    mutation->mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_FAMILY;
    mutation->delete_from_family->family_name = family;
    return mutation;
}

static void merge_into(struct row *row, size_t slot, int64_t input)
{
    row->value[slot] = (row->has[slot] ? row->value[slot] : 0) + input;
    row->has[slot] = true;
}

static void delete_column(struct row *row, const Bt__Mutation__DeleteFromColumn *deletion)
{
    const Bt__TimestampRange *range = deletion->time_range;
    for (int64_t time = range->start_timestamp_micros; time < TIMES * MS; time += MS)
        if (range->end_timestamp_micros == 0 || time < range->end_timestamp_micros)
            row->has[slot_of(deletion->family_name, proto_bytes(deletion->column_qualifier),
                             time)] = false;
}

static void delete_family(struct row *row, const char *family)
{
    size_t first = slot_of(family, bytes_of(columns[0]), 0);
    memset(row->has + first, 0, COLUMNS * TIMES * sizeof *row->has);
}

static void apply(struct row *row, const Bt__Mutation *mutation)
{
    const Bt__Mutation__SetCell *set = mutation->set_cell;
    const Bt__Mutation__AddToCell *add = mutation->add_to_cell;
    const Bt__Mutation__MergeToCell *merge = mutation->merge_to_cell;
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL: {
        size_t slot =
            slot_of(set->family_name, proto_bytes(set->column_qualifier), set->timestamp_micros);
        row->has[slot] = true;
        row->value[slot] = value_of(set->value);
        return;
    }
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        merge_into(row,
                   slot_of(add->family_name, proto_bytes(add->column_qualifier->raw_value),
                           add->timestamp->raw_timestamp_micros),
                   value_of(add->input->bytes_value));
        return;
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        merge_into(row,
                   slot_of(merge->family_name, proto_bytes(merge->column_qualifier->raw_value),
                           merge->timestamp->raw_timestamp_micros),
                   value_of(merge->input->bytes_value));
        return;
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        delete_column(row, mutation->delete_from_column);
        return;
    default:
        delete_family(row, mutation->delete_from_family->family_name);
    }
}

/* --- a history --- */

struct step {
    size_t row;
    Bt__Mutation *mutations[MUTATIONS];
    size_t count;
};

struct write {
    size_t row;
    Bt__Mutation **mutations;
    size_t count;
};

struct history {
    struct arena *arena;
    unsigned seed;
    struct step steps[STEPS];
    struct table states[STEPS + 1]; /* before each step, and at the end */
    size_t now;                     /* of the source */

    struct cell_marks *marks;
    struct replay *replay;
    struct table copy;
    struct write queue[QUEUE]; /* what is not written yet */
    size_t queued;
    size_t position;
    size_t stored;
};

static size_t draw(struct history *h, size_t below)
{
    return (size_t)rand_r(&h->seed) % below;
}

static Bt__Mutation *random_mutation(struct history *h)
{
    struct move_cell cell;
    cell_of_slot(draw(h, CELLS), &cell);
    cell.value = copy_value(h->arena, (int64_t)draw(h, 1000));
    switch (draw(h, 6)) {
    case 0:
        return make_column_deletion(h->arena, &cell, &h->seed);
    case 1:
        return draw(h, 3) == 0 ? make_family_deletion(h->arena, cell.family)
                               : make_column_deletion(h->arena, &cell, &h->seed);
    default:
        return cell.family == families[1] ? make_add(h->arena, &cell) : make_set(h->arena, &cell);
    }
}

static void make_history(struct history *h)
{
    for (size_t i = 0; i < STEPS; i++) {
        struct step *step = &h->steps[i];
        step->row = draw(h, ROWS);
        step->count = 1 + draw(h, MUTATIONS);
        h->states[i + 1] = h->states[i];
        for (size_t m = 0; m < step->count; m++) {
            step->mutations[m] = random_mutation(h);
            apply(&h->states[i + 1].rows[step->row], step->mutations[m]);
        }
    }
}

static size_t cells_of(struct history *h, const struct row *row, bool of_aggregates,
                       struct move_cell *out)
{
    size_t count = 0;
    for (size_t slot = of_aggregates ? CELLS / 2 : 0; slot < CELLS; slot++)
        if (row->has[slot]) {
            cell_of_slot(slot, &out[count]);
            out[count++].value = copy_value(h->arena, row->value[slot]);
        }
    return count;
}

/* A row as it is now, written as a copy writes it. */
static void copy_row(struct history *h, size_t row)
{
    struct move_cell cells[CELLS];
    struct row_mutations mutations;
    static const char *const aggregates[] = {"s.m", NULL};
    struct move_change change = {.row_key = bytes_of("r"), .cells = cells};
    change.count = cells_of(h, &h->states[h->now].rows[row], false, cells);
    assert_ok(row_mutations_make(&change, aggregates, h->arena, &mutations));
    for (size_t i = 0; i < mutations.count; i++)
        apply(&h->copy.rows[row], mutations.all[i]);
}

/* Time passes at the source. */
static void go_on(struct history *h)
{
    h->now += draw(h, STEPS - h->now + 1) / (1 + draw(h, 4));
}

static void copy_rows(struct history *h)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t times = 1 + draw(h, 2); times > 0; times--) {
            go_on(h);
            copy_row(h, row);
        }
}

static void enqueue(struct history *h, size_t row, Bt__Mutation **mutations, size_t count)
{
    assert_true(h->queued < QUEUE);
    h->queue[h->queued++] = (struct write){row, mutations, count};
}

/* One row at random gets what is the first in the queue for it. */
static bool write_one(struct history *h)
{
    if (h->queued == 0)
        return false;
    size_t row = h->queue[draw(h, h->queued)].row, i = 0;
    while (h->queue[i].row != row)
        i++;
    for (size_t m = 0; m < h->queue[i].count; m++)
        apply(&h->copy.rows[row], h->queue[i].mutations[m]);
    h->queued--;
    memmove(h->queue + i, h->queue + i + 1, (h->queued - i) * sizeof *h->queue);
    return true;
}

static void key_of_row(size_t row, char key[2])
{
    key[0] = (char)('0' + row);
    key[1] = '\0';
}

static void replay_one(struct history *h)
{
    const struct step *step = &h->steps[h->position++];
    char key[2];
    Bt__Mutation **written;
    size_t count;
    key_of_row(step->row, key);
    const struct row_change change = {
        .row_key = bytes_of(key), .mutations = step->mutations, .count = step->count};
    if (h->now < h->position)
        h->now = h->position;
    assert_ok(replay_take(h->replay, &change, h->arena, &written, &count));
    if (count > 0)
        enqueue(h, step->row, written, count);
}

static void resolve_row(struct history *h, size_t index)
{
    size_t row = cell_marks_row_key(h->marks, index).data[0] - '0';
    struct move_cell cells[CELLS];
    Bt__Mutation **written;
    size_t read = cells_of(h, &h->states[h->now].rows[row], true, cells);
    struct move_cell *kept = arena_alloc(h->arena, sizeof cells);
    size_t count;
    assert_non_null(kept);
    memcpy(kept, cells, sizeof cells);
    assert_ok(cell_marks_resolve(h->marks, index, kept, read, h->arena, &written, &count));
    if (count > 0)
        enqueue(h, row, written, count);
}

/* The marks live as long as what was made of them is not written. */
static void settle(struct history *h)
{
    cell_marks_sort(h->marks);
    for (size_t i = 0; i < cell_marks_rows(h->marks); i++) {
        go_on(h);
        resolve_row(h, i);
    }
    while (write_one(h)) {
    }
    cell_marks_clear(h->marks);
    h->stored = h->position;
}

static void crash(struct history *h)
{
    while (draw(h, 4) > 0 && write_one(h)) {
    }
    h->queued = 0;
    cell_marks_clear(h->marks);
    h->position = h->stored;
}

static void follow(struct history *h)
{
    size_t crashes = draw(h, CRASHES + 1);
    while (h->position < STEPS) {
        replay_one(h);
        if (draw(h, 3) == 0)
            write_one(h);
        if (draw(h, 8) == 0)
            settle(h);
        if (crashes > 0 && draw(h, 10) == 0) {
            crashes--;
            crash(h);
        }
    }
    settle(h);
}

static void check_same(const struct history *h, unsigned seed)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t slot = 0; slot < CELLS; slot++) {
            const struct row *a = &h->states[STEPS].rows[row], *b = &h->copy.rows[row];
            if (a->has[slot] != b->has[slot] || (a->has[slot] && a->value[slot] != b->value[slot]))
                fail_msg("seed %u: row %zu, cell %zu", seed, row, slot);
        }
}

/* --- schemas --- */

struct schema {
    BtAdmin__Table table;
    BtAdmin__Table__ColumnFamiliesEntry entries[FAMILIES], *pointers[FAMILIES];
    BtAdmin__ColumnFamily families[FAMILIES];
    BtAdmin__GcRule rules[FAMILIES];
    BtAdmin__Type type;
};

/* Both with a rule that keeps so many versions; 0: none. */
static void make_schema(struct schema *schema, int32_t versions)
{
    schema->table = (BtAdmin__Table)BT_ADMIN__TABLE__INIT;
    schema->type = (BtAdmin__Type)BT_ADMIN__TYPE__INIT;
    schema->type.kind_case = BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE;
    for (size_t i = 0; i < FAMILIES; i++) {
        schema->rules[i] = (BtAdmin__GcRule)BT_ADMIN__GC_RULE__INIT;
        schema->rules[i].rule_case = BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS;
        schema->rules[i].max_num_versions = versions;
        schema->families[i] = (BtAdmin__ColumnFamily)BT_ADMIN__COLUMN_FAMILY__INIT;
        schema->families[i].gc_rule = versions == 0 ? NULL : &schema->rules[i];
        schema->entries[i] =
            (BtAdmin__Table__ColumnFamiliesEntry)BT_ADMIN__TABLE__COLUMN_FAMILIES_ENTRY__INIT;
        schema->entries[i].key = families[i];
        schema->entries[i].value = &schema->families[i];
        schema->pointers[i] = &schema->entries[i];
    }
    schema->families[1].value_type = &schema->type;
    schema->table.column_families = schema->pointers;
    schema->table.n_column_families = FAMILIES;
}

/* --- tests --- */

static void run_history(const struct schema *schema, unsigned seed)
{
    struct history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->seed = seed;
    h->arena = arena_create(ARENA_LIMIT);
    h->marks = cell_marks_create();
    assert_true(h->arena != NULL && h->marks != NULL);
    const struct replay_options options = {
        .source = &schema->table, .target = &schema->table, .marks = h->marks};
    assert_ok(replay_create(&options, &h->replay));
    make_history(h);
    h->now = h->stored = h->position = draw(h, STEPS + 1);
    copy_rows(h);
    follow(h);
    check_same(h, seed);
    replay_destroy(h->replay);
    cell_marks_destroy(h->marks);
    arena_destroy(h->arena);
    free(h);
}

static void copies_come_to_what_the_source_is(void **state)
{
    struct schema schema;
    (void)state;
    make_schema(&schema, 0);
    for (unsigned seed = 1; seed <= HISTORIES; seed++)
        run_history(&schema, seed);
}

/* How many mutations of a deletion in each family are written. */
static size_t written_of(const struct replay_options *options, bool is_collection, bytes key)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct replay *replay;
    Bt__Mutation **written;
    size_t count;
    assert_non_null(arena);
    assert_ok(replay_create(options, &replay));
    Bt__Mutation *deletions[] = {make_family_deletion(arena, families[0]),
                                 make_family_deletion(arena, families[1])};
    const struct row_change change = {
        .row_key = key, .is_collection = is_collection, .mutations = deletions, .count = FAMILIES};
    assert_ok(replay_take(replay, &change, arena, &written, &count));
    replay_destroy(replay);
    arena_destroy(arena);
    return count;
}

static void what_the_target_collects_itself_is_left_out(void **state)
{
    struct schema two, three, none;
    struct cell_marks *marks = cell_marks_create();
    (void)state;
    assert_non_null(marks);
    make_schema(&two, 2);
    make_schema(&three, 3);
    make_schema(&none, 0);
    struct replay_options options = {.source = &two.table, .target = &two.table, .marks = marks};
    assert_int_equal(written_of(&options, true, bytes_of("k")), 0);
    assert_int_equal(cell_marks_count(marks), 0);
    assert_int_equal(written_of(&options, false, bytes_of("k")), FAMILIES);
    assert_int_equal(cell_marks_count(marks), 1);
    options.with_collections = true;
    assert_int_equal(written_of(&options, true, bytes_of("k")), FAMILIES);
    options.with_collections = false;
    options.target = &three.table;
    assert_int_equal(written_of(&options, true, bytes_of("k")), FAMILIES);
    options.target = &none.table;
    assert_int_equal(written_of(&options, true, bytes_of("k")), FAMILIES);
    options.source = &none.table; /* the rule has been taken away since */
    assert_int_equal(written_of(&options, true, bytes_of("k")), FAMILIES);
    cell_marks_destroy(marks);
}

/* A collection ends right behind a cell: no request may say so. */
static void ranges_are_made_of_whole_milliseconds(void **state)
{
    struct schema schema;
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct cell_marks *marks = cell_marks_create();
    struct replay *replay;
    Bt__Mutation **written, *mutation;
    size_t count;
    (void)state;
    assert_true(arena != NULL && marks != NULL);
    make_schema(&schema, 0);
    const struct replay_options options = {
        .source = &schema.table, .target = &schema.table, .marks = marks};
    assert_ok(replay_create(&options, &replay));
    const struct move_cell cell = {.family = "f", .timestamp_us = 2 * MS};
    assert_ok(row_mutations_remove_cell(&cell, arena, &mutation));
    Bt__TimestampRange *range = mutation->delete_from_column->time_range;
    const struct row_change change = {
        .row_key = bytes_of("k"), .is_collection = true, .mutations = &mutation, .count = 1};
    assert_ok(replay_take(replay, &change, arena, &written, &count));
    assert_ptr_equal(written[0], mutation);
    range->start_timestamp_micros++;
    range->end_timestamp_micros++;
    assert_ok(replay_take(replay, &change, arena, &written, &count));
    const Bt__TimestampRange *rounded = written[0]->delete_from_column->time_range;
    assert_int_equal(count, 1);
    assert_int_equal(rounded->start_timestamp_micros, 3 * MS);
    assert_int_equal(rounded->end_timestamp_micros, 4 * MS);
    assert_int_equal(range->start_timestamp_micros, 2 * MS + 1); /* not ours to change */
    replay_destroy(replay);
    cell_marks_destroy(marks);
    arena_destroy(arena);
}

static void rows_that_are_not_wanted_are_left_out(void **state)
{
    struct schema schema;
    struct cell_marks *marks = cell_marks_create();
    (void)state;
    assert_non_null(marks);
    make_schema(&schema, 0);
    const struct replay_options options = {.source = &schema.table,
                                           .target = &schema.table,
                                           .start = bytes_of("b"),
                                           .end = bytes_of("d"),
                                           .marks = marks};
    assert_int_equal(written_of(&options, false, bytes_of("a\xff")), 0);
    assert_int_equal(written_of(&options, false, bytes_of("d")), 0);
    assert_int_equal(cell_marks_count(marks), 0);
    assert_int_equal(written_of(&options, false, bytes_of("b")), FAMILIES);
    assert_int_equal(written_of(&options, false, bytes_of("c\xff")), FAMILIES);
    cell_marks_destroy(marks);
}

static void what_is_not_known_is_refused(void **state)
{
    struct schema schema;
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct cell_marks *marks = cell_marks_create();
    struct replay *replay;
    Bt__Mutation **written;
    size_t count;
    (void)state;
    assert_true(arena != NULL && marks != NULL);
    make_schema(&schema, 0);
    const struct replay_options options = {
        .source = &schema.table, .target = &schema.table, .marks = marks};
    assert_ok(replay_create(&options, &replay));
    assert_string_equal(replay_aggregates(replay), "s\\.m");
    Bt__Mutation *mutation = new_mutation(arena);
    const struct row_change change = {.row_key = bytes_of("k"), .mutations = &mutation, .count = 1};
    assert_status(replay_take(replay, &change, arena, &written, &count), STATUS_UNIMPLEMENTED);
    mutation = make_add(arena, &(struct move_cell){.family = "new", .value = bytes_of("")});
    assert_status(replay_take(replay, &change, arena, &written, &count),
                  STATUS_FAILED_PRECONDITION);
    mutation = make_add(arena, &(struct move_cell){.family = "s.m", .value = bytes_of("")});
    mutation->add_to_cell->column_qualifier->kind_case = BT__VALUE__KIND_BYTES_VALUE;
    assert_status(replay_take(replay, &change, arena, &written, &count), STATUS_UNIMPLEMENTED);
    replay_destroy(replay);
    cell_marks_destroy(marks);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_come_to_what_the_source_is),
        cmocka_unit_test(what_the_target_collects_itself_is_left_out),
        cmocka_unit_test(ranges_are_made_of_whole_milliseconds),
        cmocka_unit_test(rows_that_are_not_wanted_are_left_out),
        cmocka_unit_test(what_is_not_known_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
