/* What the tests of tablet/ share: a store with the catalog's keyspace and one for rows, a commit
 * queue on it, and changes that are quick to write down. */
#ifndef TRESTLE_TABLET_TESTING_TESTING_H
#define TRESTLE_TABLET_TESTING_TESTING_H

#include "base/testing/testing_clock.h"
#include "row/fold.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"
#include "tablet/commit.h"
#include "tablet/row_locks.h"
#include "tablet/row_read.h"

enum { CATALOG = 1, ROWS_KEYSPACE = 7 };
#define TEST_STALL_US (INT64_C(3600) * 1000000)
enum { FAMILY_F = 1, FAMILY_G = 2, FAMILY_SUM = 3 };

struct tablet_fixture {
    char *directory;
    struct set_clock clock;
    struct fault_fs *faults; /* NULL: the system's file system */
    struct store *store;
    struct keyspace *rows;
    struct schema *schema; /* f and g plain, sum adds up */
    struct row_rules rules;
    struct commit_options options;
    struct commit_queue *queue;
    struct row_locks *locks;
    struct arena *arena; /* for changes */
};

static inline struct schema *test_schema(const struct gc_rule *gc_of_f)
{
    const struct family families[] = {
        {.id = FAMILY_F, .name = bytes_of("f"), .gc = gc_of_f},
        {.id = FAMILY_G, .name = bytes_of("g")},
        {.id = FAMILY_SUM, .name = bytes_of("sum"), .aggregate = AGGREGATE_SUM},
    };
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 3, 4, &schema));
    return schema;
}

static inline void open_queue(struct tablet_fixture *f)
{
    struct store_options options = test_options(f->directory);
    options.fold = &row_fold;
    assert_ok(f->faults == NULL ? store_open(&options, &f->store)
                                : fault_fs_open(f->faults, &options, &f->store));
    if (store_keyspace_find(f->store, CATALOG) == NULL) {
        make_keyspace(f->store, CATALOG);
        make_keyspace(f->store, ROWS_KEYSPACE);
    }
    f->rows = store_keyspace_find(f->store, ROWS_KEYSPACE);
    keyspace_set_rules(f->rows, &f->rules);
    f->options.store = f->store;
    f->options.catalog = store_keyspace_find(f->store, CATALOG);
    assert_ok(commit_queue_create(&f->options, &f->queue));
}

static inline void close_queue(struct tablet_fixture *f)
{
    commit_queue_destroy(f->queue);
    store_close(f->store);
}

static inline struct tablet_fixture *tablet_fixture_create(void)
{
    struct tablet_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->clock.clock = (struct clock)SET_CLOCK;
    f->clock.wall_us = INT64_C(1700000000) * 1000000;
    f->schema = test_schema(NULL);
    f->rules = (struct row_rules){.schema = f->schema, .clock = &f->clock.clock};
    f->options = (struct commit_options){.clock = &f->clock.clock,
                                         .durability = STORE_ASYNC,
                                         .queue_limit_bytes = 64 << 20,
                                         .stall_limit_us = TEST_STALL_US};
    f->arena = arena_create(SIZE_MAX / 2);
    assert_non_null(f->arena);
    assert_ok(row_locks_create(&f->locks));
    open_queue(f);
    return f;
}

static inline void tablet_fixture_destroy(struct tablet_fixture *f)
{
    close_queue(f);
    if (f->faults != NULL)
        fault_fs_destroy(f->faults);
    row_locks_destroy(f->locks);
    schema_destroy(f->schema);
    arena_destroy(f->arena);
    remove_directory(f->directory);
    free(f);
}

/* --- changes --- */

static inline struct row_change *new_change(struct tablet_fixture *f)
{
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    return change;
}

static inline struct packed_change pack(struct row_change *change, size_t big_value)
{
    struct packed_change packed;
    assert_ok(row_change_pack(change, big_value, &packed));
    return packed;
}

static inline struct packed_change set_cell(struct tablet_fixture *f, uint32_t family,
                                            const char *qualifier, int64_t timestamp_us,
                                            const char *value)
{
    struct row_change *change = new_change(f);
    row_change_set(change, family, bytes_of(qualifier), timestamp_us, bytes_of(value));
    return pack(change, SIZE_MAX);
}

static inline struct packed_change add_to_cell(struct tablet_fixture *f, const char *qualifier,
                                               uint8_t amount)
{
    static uint8_t states[256][8];
    struct row_change *change = new_change(f);
    states[amount][7] = amount;
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of(qualifier), 0,
                   bytes_make(states[amount], 8));
    return pack(change, SIZE_MAX);
}

static inline struct commit commit_of(struct tablet_fixture *f, const char *row_key,
                                      struct packed_change *change)
{
    return (struct commit){.kind = COMMIT_ROWS,
                           .keyspace = f->rows,
                           .row_key = bytes_of(row_key),
                           .row_hash = row_lock_hash(ROWS_KEYSPACE, bytes_of(row_key)),
                           .change = change};
}

/* Commits, and ends the change. Returns its version. */
static inline uint64_t write_change(struct tablet_fixture *f, const char *row_key,
                                    struct packed_change change)
{
    struct commit commit = commit_of(f, row_key, &change);
    assert_ok(commit_and_wait(f->queue, &commit));
    buffer_free(&change.fragment);
    return commit.version;
}

/* --- what a reader sees --- */

static inline struct row_read_options read_options_of(const struct tablet_fixture *f)
{
    return (struct row_read_options){.store = f->store,
                                     .schema = f->schema,
                                     .now_us = atomic_load(&f->clock.wall_us),
                                     .apply_gc = true,
                                     .size_limit = UINT64_MAX,
                                     .overflow_bytes = 0};
}

/* A row's cells as text, "f:a@5=x f:b@…"; sums as numbers. In memory of the caller. */
static inline void row_text(const struct row *row, struct buffer *out)
{
    buffer_clear(out);
    for (size_t i = 0; i < row->cells.count; i++) {
        const struct cell *cell = &row->cells.items[i];
        char text[64];
        buffer_append_bytes(out, bytes_of(i == 0 ? "" : " "));
        buffer_append_bytes(out, cell->family->name);
        buffer_append_byte(out, ':');
        buffer_append_bytes(out, cell->qualifier);
        snprintf(text, sizeof text, "@%lld=", (long long)cell->timestamp_us);
        buffer_append_bytes(out, bytes_of(text));
        if (cell->family->aggregate == AGGREGATE_SUM) {
            snprintf(text, sizeof text, "%d", cell->value.data[6] << 8 | cell->value.data[7]);
            buffer_append_bytes(out, bytes_of(text));
        } else {
            buffer_append_bytes(out, cell->value);
        }
    }
    buffer_append_byte(out, 0);
}

/* "" for a row that does not exist. */
static inline enum row_outcome read_text(struct tablet_fixture *f, const char *row_key,
                                         struct buffer *text)
{
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(SIZE_MAX / 2)};
    enum row_outcome outcome;
    assert_ok(row_read(f->rows, &options, bytes_of(row_key), STORE_READ_ANY, &row, &outcome));
    row_text(&row, text);
    row_clear(&row);
    arena_destroy(row.cells.arena);
    return outcome;
}

static inline void assert_row(struct tablet_fixture *f, const char *row_key, const char *expected)
{
    struct buffer text = {0};
    enum row_outcome outcome = read_text(f, row_key, &text);
    assert_string_equal((const char *)text.data, expected);
    assert_int_equal(outcome, expected[0] == '\0' ? ROW_ABSENT : ROW_FOUND);
    buffer_free(&text);
}

#endif
