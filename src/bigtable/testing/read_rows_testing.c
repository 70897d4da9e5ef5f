/* See read_rows_testing.h. */
#include "bigtable/testing/read_rows_testing.h"

#include "bigtable/filter_message.h"

struct world world;

static const struct family family = {.id = 1, .name = {(const uint8_t *)"f", 1}};
static const struct schema schema = {.families = &family, .family_count = 1};

static void take_chunk(const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->row_key.len > 0) {
        assert_true(world.rows < MOST_KEYS);
        memcpy(world.keys[world.rows], chunk->row_key.data, chunk->row_key.len);
    }
    world.value_bytes += chunk->value.len;
    if (chunk->value_size == 0)
        world.cells++;
    if (chunk->commit_row)
        world.rows++;
}

static void receive(struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(&bt__read_rows_response__descriptor, wire, call->arena, &message));
    const Bt__ReadRowsResponse *response = (const void *)message;
    for (size_t i = 0; i < response->n_chunks; i++)
        take_chunk(response->chunks[i]);
    if (response->n_chunks > 0)
        world.cut_rows += !response->chunks[response->n_chunks - 1]->commit_row;
    if (response->last_scanned_row_key.len > 0) {
        assert_int_equal(response->n_chunks, 0);
        memcpy(world.last_scanned, response->last_scanned_row_key.data,
               response->last_scanned_row_key.len);
    }
    world.stats = response->request_stats;
}

status filter_message_compile(const Bt__RowFilter *message, struct arena *arena,
                              struct filter **out)
{
    (void)message;
    (void)arena;
    *out = NULL;
    return status_ok();
}

bool filter_names_only(const struct filter *filter, bool (*has)(void *context, bytes family),
                       void *context)
{
    (void)has;
    (void)context;
    assert_null(filter);
    return true;
}

void filter_destroy(struct filter *filter)
{
    assert_null(filter);
}

/* --- the scan --- */

status scan_create(const struct scan_spec *spec, struct scan **out)
{
    world.range_count = spec->range_count;
    world.is_restricted = spec->columns != NULL;
    *out = &world.scan;
    return status_ok();
}

void scan_destroy(struct scan *scan)
{
    assert_false(scan->is_destroyed);
    scan->is_destroyed = true;
}

void scan_pause(struct scan *scan)
{
    scan->has_row = false;
    scan->is_value_held = false;
    scan->pauses++;
}

bytes scan_last_scanned(const struct scan *scan)
{
    return bytes_of(scan->steps[scan->next - 1].key);
}

struct scan_counts scan_counts(const struct scan *scan)
{
    (void)scan;
    return (struct scan_counts){.rows_seen = ROWS_SEEN, .cells_seen = CELLS_SEEN};
}

struct store_read_bound store_bound_reads(struct store_read_bound bound)
{
    struct store_read_bound former = world.bound;
    world.bound = bound;
    return former;
}

static bool is_refused(const struct step *step)
{
    if (step->block_size <= world.bound.most)
        return false;
    world.bound.refused = step->block_size;
    world.refusals++;
    return true;
}

status scan_next(struct scan *scan, enum store_read_tier read_tier, struct scan_row *row,
                 enum row_outcome *outcome)
{
    struct step *step = &scan->steps[scan->next];
    if (read_tier == STORE_READ_CACHED ? step->is_on_disk : is_refused(step)) {
        *outcome = ROW_NOT_CACHED;
        return status_ok();
    }
    *outcome = step->outcome;
    if (step->outcome != ROW_END)
        scan->next++;
    row->key = bytes_of(step->key == NULL ? "" : step->key);
    scan->list = (struct cell_list){.items = scan->cells, .count = step->cells};
    for (size_t i = 0; i < step->cells; i++)
        scan->cells[i] = (struct cell){
            .family = &family,
            .timestamp_us = (int64_t)(100 - i) * 1000,
            .value = bytes_make(step->is_deferred ? NULL : scan->value, step->value_size)};
    row->cells = &scan->list;
    row->has_deferred = step->is_deferred;
    scan->has_row = step->outcome == ROW_FOUND;
    return status_ok();
}

status scan_load_value(struct scan *scan, const struct cell *cell, enum store_read_tier read_tier,
                       bytes *value, enum row_outcome *outcome)
{
    const struct step *step = &scan->steps[scan->next - 1];
    assert_true(scan->has_row);
    assert_true(cell_is_deferred(cell));
    bool is_missed = step->values_are_on_disk && read_tier == STORE_READ_CACHED;
    *outcome = is_missed ? ROW_NOT_CACHED : ROW_FOUND;
    if (scan->loads == step->fails_at_load && step->fails_at_load > 0)
        return status_make(STATUS_ABORTED, "the cell was collected");
    scan->loads += !is_missed;
    scan->misses += is_missed;
    scan->is_value_held = !is_missed;
    *value = bytes_make(scan->value, cell->value.size);
    return status_ok();
}

void scan_release_value(struct scan *scan)
{
    scan->is_value_held = false;
}

/* --- driving it --- */

int world_setup(void **state)
{
    fake_reset(&schema);
    fake.call.receive = receive;
    world = (struct world){.bound = {.most = SIZE_MAX}};
    world.scan.value = calloc(1, 4 * KIB * KIB);
    *state = &world;
    return 0;
}

int world_teardown(void **state)
{
    (void)state;
    fake_free();
    free(world.scan.value);
    return 0;
}

void world_set_steps(const struct step *steps, size_t count)
{
    assert_true(count < MOST_STEPS);
    memcpy(world.scan.steps, steps, count * sizeof *steps);
    world.scan.steps[count] = (struct step){.outcome = ROW_END};
}
struct step found(const char *key)
{
    return (struct step){.outcome = ROW_FOUND, .key = key, .cells = 1, .value_size = 10};
}

void begin(Bt__ReadRowsRequest *request)
{
    request->table_name = TABLE_NAME;
    fake_call(read_rows, &request->base);
}

void read_all(void)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    fake_run();
}

void assert_finished(enum status_code code)
{
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, code);
    assert_true(world.scan.is_destroyed);
}

struct step large_deferred(const char *key)
{
    return (struct step){.outcome = ROW_FOUND,
                         .key = key,
                         .cells = 10,
                         .value_size = 1000 * KIB,
                         .is_deferred = true};
}
