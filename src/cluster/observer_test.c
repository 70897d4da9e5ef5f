/* A commit observer sees every change exactly once, in order: random changes of rows by several
 * writers, while tablets split and merge, rows are dropped, the schema changes, the table is
 * deleted and comes back and another comes and ends, the server killed again and again.
 *
 *     observer_test [CYCLES] [CHANGES] [SEED]      default 4 cycles of 300 changes
 *     observer_test 60 20000                       the long form: a million; with TRESTLE_LONG=all
 *                                                  the default
 *
 * The observer keeps a feed: for each commit a row of another table, in the commit's own batch. So
 * after a kill the feed must have
 *  - of each writer all changes up to the last that was acknowledged, or one more, each once, in
 * the order in which it made them;
 *  - what, done again in the feed's order, comes to what the table has: its rows, tablets, schema.
 * And at each change of rows the observer's own map of the tablets, made of the splits and merges
 * that it saw, says in which the rows are; a deleted table has no change. */
#include "cluster/row_group.h"
#include "cluster/testing/testing.h"
#include "row/row_key.h"
#include "tablet/commit_observer.h"
#include "tablet/drop_records.h"

#include <endian.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    WRITERS = 6,
    ROWS = 40,     /* that all writers write */
    MOST_ROWS = 3, /* of one change */
    KEY_SIZE = 3,
    TABLETS = 6,
    MOST_TABLETS = 16,
    MOST_FAMILIES = 4,
    LARGE_VALUE = 400, /* bytes: past the overflow threshold */
};

static const char FEED_TABLE[] = "projects/p/instances/i/tables/feed";
static const char OTHER_TABLE[] = "projects/p/instances/i/tables/other";

/* What is known outside of the server's process. A writer makes one change at a time: `begun` is
 * one more than `acknowledged` while that is under way. */
struct shared {
    struct {
        atomic_ullong begun;
        atomic_ullong acknowledged;
        uint64_t random;
    } writers[WRITERS];
};

static uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

static void row_name(uint32_t row, char name[KEY_SIZE + 1])
{
    snprintf(name, KEY_SIZE + 1, "r%02u", row);
}

static uint32_t row_number(bytes key)
{
    char name[KEY_SIZE + 1] = "";
    assert_int_equal(key.size, KEY_SIZE);
    memcpy(name, key.data, KEY_SIZE);
    return (uint32_t)strtoul(name + 1, NULL, 10);
}

/* --- what a change writes: who made it, and its number --- */

struct stamp {
    uint64_t writer;
    uint64_t number; /* of the writer's changes, from 1 */
};

static struct stamp stamp_of(bytes value)
{
    struct stamp stamp;
    assert_true(value.size >= sizeof stamp);
    memcpy(&stamp, value.data, sizeof stamp);
    return stamp;
}

static struct stamp stamp_in(const struct packed_change *change)
{
    struct fragment_reader reader;
    struct entry entry;
    if (change->big_count > 0)
        return stamp_of(change->big[0].value);
    assert_true(fragment_reader_start(&reader, buffer_bytes(&change->fragment)));
    assert_true(fragment_reader_next(&reader, &entry));
    return stamp_of(entry.value);
}

/* --- what there is, made of changes of structure --- */

struct placed {
    uint64_t id;
    uint32_t from; /* the number of its first row */
};

struct shape {
    bool is_there, is_deleted; /* the table */
    bool is_other_there;
    uint32_t families;
    size_t tablet_count;
    struct placed tablets[MOST_TABLETS];
};

struct reshaping {
    enum commit_kind kind;
    bool is_of_other;
    uint32_t families;
    struct placed former[2];
    struct placed fresh[2];
};

static size_t place_of(const struct shape *shape, uint32_t row)
{
    size_t at = shape->tablet_count;
    assert_true(at > 0);
    while (shape->tablets[at - 1].from > row)
        at--;
    return at - 1;
}

static void replace(struct shape *shape, const struct placed *former, size_t former_count,
                    const struct placed *fresh, size_t count)
{
    size_t at = place_of(shape, former[0].from), behind = at + former_count;
    assert_true(behind <= shape->tablet_count);
    assert_memory_equal(shape->tablets + at, former, former_count * sizeof *former);
    assert_true(shape->tablet_count + count - former_count <= MOST_TABLETS);
    memmove(shape->tablets + at + count, shape->tablets + behind,
            (shape->tablet_count - behind) * sizeof *fresh);
    memcpy(shape->tablets + at, fresh, count * sizeof *fresh);
    shape->tablet_count += count - former_count;
}

static void reshape_other(struct shape *shape, const struct reshaping *change)
{
    bool is_new = change->kind == COMMIT_CREATE_TABLE;
    assert_true(is_new || change->kind == COMMIT_END_TABLES);
    assert_true(shape->is_other_there != is_new);
    shape->is_other_there = is_new;
}

static void reshape(struct shape *shape, const struct reshaping *change)
{
    if (change->is_of_other) {
        reshape_other(shape, change);
        return;
    }
    assert_int_equal(shape->is_there, change->kind != COMMIT_CREATE_TABLE);
    assert_int_equal(shape->is_deleted, change->kind == COMMIT_UNDELETE_TABLE);
    switch (change->kind) {
    case COMMIT_CREATE_TABLE:
        shape->tablets[shape->tablet_count++] = change->fresh[0];
        shape->is_there = true;
        shape->families = change->families;
        break;
    case COMMIT_CHANGE_TABLE:
        shape->families = change->families;
        break;
    case COMMIT_SPLIT:
        replace(shape, change->former, 1, change->fresh, 2);
        break;
    case COMMIT_MERGE:
        replace(shape, change->former, 2, change->fresh, 1);
        break;
    default:
        assert_true(change->kind == COMMIT_DELETE_TABLE || change->kind == COMMIT_UNDELETE_TABLE);
        shape->is_deleted = change->kind == COMMIT_DELETE_TABLE;
    }
}

static struct placed placed_of(const struct tablet *tablet)
{
    return (struct placed){.id = tablet->id,
                           .from = tablet->start.size == 0 ? 0 : row_number(tablet->start)};
}

static struct reshaping reshaping_of(const struct commit *commit, bool is_of_other)
{
    const struct catalog_change *change = commit->catalog;
    struct reshaping reshaping = {.kind = commit->kind, .is_of_other = is_of_other};
    assert_true(change->former_count <= 2 && change->fresh_count <= 2);
    for (size_t i = 0; i < change->former_count; i++)
        reshaping.former[i] = placed_of(change->former[i]);
    for (size_t i = 0; i < change->fresh_count; i++)
        reshaping.fresh[i] = placed_of(change->fresh[i]);
    if (change->schema != NULL)
        reshaping.families = (uint32_t)change->schema->family_count;
    return reshaping;
}

/* As the cluster has it. */
static struct shape shape_of(struct cluster_fixture *f, bool is_deleted)
{
    struct shape shape = {.is_there = true,
                          .is_deleted = is_deleted,
                          .families = (uint32_t)table_schema(f->table)->family_count};
    struct table *other;
    struct tablet **tablets;
    status s = cluster_table(f->cluster, bytes_of(OTHER_TABLE), &other);
    shape.is_other_there = status_is_ok(s);
    status_free(s);
    if (shape.is_other_there)
        table_release(other);
    assert_ok(table_tablets(f->table, &tablets, &shape.tablet_count));
    assert_true(shape.tablet_count <= MOST_TABLETS);
    for (size_t i = 0; i < shape.tablet_count; i++) {
        shape.tablets[i] = placed_of(tablets[i]);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return shape;
}

static void assert_same_shape(const struct shape *a, const struct shape *b)
{
    assert_int_equal(a->is_there, b->is_there);
    assert_int_equal(a->is_deleted, b->is_deleted);
    assert_int_equal(a->is_other_there, b->is_other_there);
    assert_int_equal(a->families, b->families);
    assert_int_equal(a->tablet_count, b->tablet_count);
    assert_memory_equal(a->tablets, b->tablets, a->tablet_count * sizeof *a->tablets);
}

/* --- the feed: a row for each commit, with one cell, a feed_record --- */

struct feed_record {
    enum commit_kind kind; /* of rows, a drop, or a change of structure */
    uint32_t from;         /* of a drop: ten rows from here on */
    struct stamp stamp;
    uint32_t count;
    uint32_t rows[MOST_ROWS];
    struct reshaping reshaping;
};

struct feed {
    _Atomic(struct keyspace *) keyspace; /* where it is; NULL: there is none yet */
    uint64_t last;                       /* sequence of the last commit that was seen */
    struct shape shape;                  /* as of that; set before `keyspace` */
};

/* The row is where the map has it, which is made of what was seen before. */
static uint32_t placed_row(const struct feed *feed, const struct commit *commit)
{
    uint32_t row = row_number(commit->row_key);
    assert_int_equal(commit->tablet->id, feed->shape.tablets[place_of(&feed->shape, row)].id);
    assert_true(tablet_contains(commit->tablet, commit->row_key));
    return row;
}

static struct feed_record record_of_rows(const struct feed *feed, const struct commit *commit)
{
    struct feed_record record = {.kind = COMMIT_ROWS,
                                 .stamp = stamp_in(commit->change),
                                 .count = (uint32_t)commit->other_count + 1};
    assert_true(record.count <= MOST_ROWS);
    assert_true(feed->shape.is_there && !feed->shape.is_deleted);
    assert_int_equal(table_schema(commit->table)->family_count, feed->shape.families);
    record.rows[0] = placed_row(feed, commit);
    for (size_t i = 0; i < commit->other_count; i++) {
        const struct commit *other = &commit->others[i];
        struct stamp stamp = stamp_in(other->change);
        assert_memory_equal(&stamp, &record.stamp, sizeof stamp);
        record.rows[i + 1] = placed_row(feed, other);
    }
    return record;
}

/* The record of a drop, of ten rows. */
static status take_drop(void *context, const struct store_change *change)
{
    struct feed_record *record = context;
    struct row_drop_words drop;
    uint64_t id;
    assert_int_equal(change->kind, STORE_PUT);
    assert_ok(drop_record_parse(change->key, change->value, &id, &drop));
    record->from = 10 * (uint32_t)(drop.from.data[1] - '0');
    return status_ok();
}

static void put_record(struct feed *feed, const struct commit *commit,
                       const struct feed_record *record, struct store_batch *batch)
{
    struct buffer value = {0};
    struct fragment_writer writer;
    const struct entry cell = {.kind = ENTRY_CELL,
                               .family = FAMILY_F,
                               .qualifier = bytes_of("e"),
                               .version = commit->version,
                               .value = bytes_make(record, sizeof *record)};
    uint64_t number = htobe64(commit->sequence);
    uint8_t key[1 + sizeof number] = {ROW_SPACE};
    memcpy(key + 1, &number, sizeof number);
    fragment_writer_start(&writer, &value, commit->version);
    fragment_writer_add(&writer, &cell);
    fragment_writer_finish(&writer);
    assert_false(value.failed);
    store_batch_put(batch, atomic_load(&feed->keyspace), bytes_make(key, sizeof key),
                    buffer_bytes(&value));
    buffer_free(&value);
}

static struct feed_record record_of(struct feed *feed, const struct commit *commit,
                                    bool is_of_other, const struct store_batch *records)
{
    struct feed_record record = {.kind = commit->kind};
    if (commit->kind == COMMIT_ROWS)
        return record_of_rows(feed, commit);
    if (commit_is_structural(commit->kind)) {
        record.reshaping = reshaping_of(commit, is_of_other);
        reshape(&feed->shape, &record.reshaping);
        return record;
    }
    struct store *store = table_cluster(commit->table)->home->store;
    assert_int_equal(commit->kind, COMMIT_DROP_ROWS);
    assert_ok(store_batch_visit(store, records, take_drop, &record));
    return record;
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct feed *feed = context;
    assert_true(commit->sequence > feed->last);
    feed->last = commit->sequence;
    if (atomic_load(&feed->keyspace) == NULL || commit->table == NULL)
        return;
    bool is_of_other = strcmp(table_name(commit->table), OTHER_TABLE) == 0;
    if (!is_of_other && strcmp(table_name(commit->table), TEST_TABLE) != 0)
        return;
    struct feed_record record = record_of(feed, commit, is_of_other, records);
    put_record(feed, commit, &record, batch);
}

/* --- what the feed comes to --- */

struct state {
    struct stamp rows[ROWS]; /* number 0: there is no such row */
    uint64_t numbers[WRITERS];
    struct shape shape;
};

static void apply(struct state *state, const struct feed_record *record)
{
    if (commit_is_structural(record->kind)) {
        reshape(&state->shape, &record->reshaping);
        return;
    }
    if (record->kind == COMMIT_DROP_ROWS) {
        for (uint32_t i = record->from; i < record->from + 10 && i < ROWS; i++)
            state->rows[i] = (struct stamp){0};
        return;
    }
    assert_true(record->stamp.writer < WRITERS);
    assert_int_equal(record->stamp.number, state->numbers[record->stamp.writer] + 1);
    state->numbers[record->stamp.writer]++;
    for (uint32_t i = 0; i < record->count; i++)
        state->rows[record->rows[i]] = record->stamp;
}

static struct feed_record record_in(bytes value)
{
    struct fragment_reader reader;
    struct entry cell;
    struct feed_record record;
    assert_true(fragment_reader_start(&reader, value));
    assert_true(fragment_reader_next(&reader, &cell));
    assert_int_equal(cell.value.size, sizeof record);
    memcpy(&record, cell.value.data, sizeof record);
    return record;
}

static struct state read_feed(struct keyspace *keyspace)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    struct state state = {0};
    assert_ok(store_cursor_create(keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        struct feed_record record = record_in(store_cursor_value(cursor));
        apply(&state, &record);
    }
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return state;
}

static void read_table(struct cluster_fixture *f, struct stamp rows[ROWS])
{
    const struct key_range all = {.is_point = false};
    struct arena *arena = arena_create(1 << 20);
    struct scan_spec spec = {.table = f->table,
                             .ranges = &all,
                             .range_count = 1,
                             .schema = table_schema(f->table),
                             .arena = arena};
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome = ROW_ABSENT;
    memset(rows, 0, ROWS * sizeof *rows);
    assert_non_null(arena);
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_FOUND)
            rows[row_number(row.key)] = stamp_of(row.cells->items[0].value);
    }
    scan_destroy(scan);
    arena_destroy(arena);
}

/* What the feed comes to is what there is. */
static struct shape check(struct cluster_fixture *f, struct keyspace *keyspace,
                          struct shared *shared, bool is_deleted)
{
    struct state fed = read_feed(keyspace);
    struct shape shape = shape_of(f, is_deleted);
    struct stamp rows[ROWS];
    assert_same_shape(&shape, &fed.shape);
    read_table(f, rows);
    assert_memory_equal(rows, fed.rows, sizeof rows);
    for (unsigned i = 0; i < WRITERS; i++) {
        uint64_t begun = atomic_load(&shared->writers[i].begun);
        if (fed.numbers[i] != begun)
            assert_int_equal(fed.numbers[i], atomic_load(&shared->writers[i].acknowledged));
        atomic_store(&shared->writers[i].begun, fed.numbers[i]);
        atomic_store(&shared->writers[i].acknowledged, fed.numbers[i]);
    }
    return shape;
}

/* --- writers --- */

struct writer {
    struct cluster_fixture *f;
    struct shared *shared;
    uint32_t number;
    int acks; /* a byte is written for each acknowledgement */
};

static struct packed_change change_of(struct cluster_fixture *f, struct arena *arena,
                                      const struct stamp *stamp, bool is_large)
{
    size_t size = is_large ? LARGE_VALUE : sizeof *stamp;
    uint8_t *value = arena_zalloc(arena, size);
    struct row_change *change = row_change_create(arena);
    struct packed_change packed;
    assert_true(value != NULL && change != NULL);
    memcpy(value, stamp, sizeof *stamp);
    row_change_set(change, FAMILY_F, bytes_of("q"), 1, bytes_make(value, size));
    assert_ok(row_change_pack(change, rows_big_value(f->table), &packed));
    return packed;
}

/* False: the table was deleted. */
static bool write_some(struct writer *writer, struct arena *arena, const struct stamp *stamp)
{
    uint64_t *random = &writer->shared->writers[writer->number].random;
    char names[MOST_ROWS][KEY_SIZE + 1];
    struct grouped_row rows[MOST_ROWS];
    struct row_group group = {.table = writer->f->table,
                              .rows = rows,
                              .count = 1 + next_random(random) % MOST_ROWS,
                              .arena = arena};
    uint32_t first = next_random(random) % ROWS;
    bool is_large = next_random(random) % 8 == 0;
    for (size_t i = 0; i < group.count; i++) {
        row_name((first + 7 * (uint32_t)i) % ROWS, names[i]);
        rows[i] = (struct grouped_row){
            .row_key = bytes_of(names[i]),
            .change = change_of(writer->f, arena, stamp, is_large),
        };
    }
    status s = row_group_write(&group);
    bool is_there = s.code != STATUS_NOT_FOUND;
    if (is_there)
        assert_ok(s);
    status_free(s);
    return is_there;
}

static void *run_writer(void *argument)
{
    struct writer *writer = argument;
    struct arena *arena = arena_create(1 << 20);
    assert_non_null(arena);
    for (;;) {
        uint64_t number = atomic_load(&writer->shared->writers[writer->number].acknowledged) + 1;
        const struct stamp stamp = {.writer = writer->number, .number = number};
        atomic_store(&writer->shared->writers[writer->number].begun, number);
        while (!write_some(writer, arena, &stamp)) {
            arena_reset(arena);
            sched_yield();
        }
        atomic_store(&writer->shared->writers[writer->number].acknowledged, number);
        arena_reset(arena);
        assert_int_equal(write(writer->acks, "", 1), 1);
    }
    return NULL;
}

/* --- the child --- */

/* One family more, or all but the first again. */
static status change_families(void *context, const struct table_info *now, struct arena *arena,
                              struct table_change *next)
{
    const struct schema *schema = now->schema;
    size_t count = schema->family_count < MOST_FAMILIES ? schema->family_count + 1 : 1;
    struct family *families = arena_alloc(arena, MOST_FAMILIES * sizeof *families);
    char *name = arena_alloc(arena, 16);
    (void)context;
    assert_true(families != NULL && name != NULL);
    memcpy(families, schema->families, schema->family_count * sizeof *families);
    snprintf(name, 16, "g%u", (unsigned)schema->next_family_id);
    if (count > 1)
        families[count - 1] = (struct family){.name = bytes_of(name)};
    *next = (struct table_change){.families = families, .family_count = count};
    return status_ok();
}

static void change_schema(struct cluster_fixture *f)
{
    struct arena *arena = arena_create(1 << 20);
    assert_non_null(arena);
    assert_ok(table_change_schema(f->table, arena, change_families, NULL));
    arena_destroy(arena);
}

static void undelete_table(struct cluster_fixture *f)
{
    assert_ok(cluster_undelete_table(f->cluster, f->table, NULL));
}

static void delete_and_undelete(struct cluster_fixture *f)
{
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    undelete_table(f);
}

static struct table *create_small_table(struct cluster_fixture *f, const char *name)
{
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    const struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

/* The other table is created, or deleted. */
static void change_other(struct cluster_fixture *f)
{
    struct table *other;
    status s = cluster_table(f->cluster, bytes_of(OTHER_TABLE), &other);
    bool is_there = status_is_ok(s);
    status_free(s);
    if (is_there)
        assert_ok(cluster_delete_tables(f->cluster, bytes_of(OTHER_TABLE), NULL));
    else
        other = create_small_table(f, OTHER_TABLE);
    table_release(other);
}

static void disturb_more(struct cluster_fixture *f, uint32_t random)
{
    if (random % 8 == 1)
        change_schema(f);
    else if (random % 8 == 2)
        delete_and_undelete(f);
    else if (random % 8 == 3)
        change_other(f);
}

/* Splits and merges, and now and then changes more, drops ten rows, flushes or compacts, until the
 * end. */
static void disturb(struct cluster_fixture *f, uint64_t random)
{
    for (;;) {
        char name[KEY_SIZE + 1];
        row_name(1 + next_random(&random) % (ROWS - 1), name);
        struct tablet *tablet = table_route(f->table, bytes_of(name));
        struct keyspace *keyspace = tablet->keyspace;
        bool is_first = tablet->start.size == 0;
        tablet_release(tablet);
        if (is_first || table_tablet_count(f->table) < TABLETS)
            split_at(f, name);
        else
            merge_at(f, name);
        disturb_more(f, next_random(&random));
        name[2] = 0; /* a prefix of ten */
        if (next_random(&random) % 8 == 0)
            assert_ok(table_drop_rows(f->table, bytes_of(name)));
        if (next_random(&random) % 16 == 0)
            assert_ok(keyspace_flush(keyspace));
        if (next_random(&random) % 64 == 0)
            assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    }
}

static struct table *open_feed_table(struct cluster_fixture *f, bool is_new)
{
    struct table *table;
    if (is_new)
        return create_small_table(f, FEED_TABLE);
    assert_ok(cluster_table(f->cluster, bytes_of(FEED_TABLE), &table));
    return table;
}

/* The keyspace stays as long as the table, which is never released. */
static struct keyspace *keyspace_of(struct table *table)
{
    struct tablet *tablet = table_route(table, bytes_of(""));
    struct keyspace *keyspace = tablet->keyspace;
    tablet_release(tablet);
    return keyspace;
}

static void start_writers(struct cluster_fixture *f, struct shared *shared, int acks)
{
    static struct writer writers[WRITERS];
    pthread_t thread;
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.f = f, .shared = shared, .number = i, .acks = acks};
        assert_ok(thread_start(&thread, "writer", run_writer, &writers[i]));
    }
}

/* Whether it was left deleted. */
static bool find_table(struct cluster_fixture *f)
{
    status s = cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table);
    bool is_deleted = !status_is_ok(s);
    status_free(s);
    if (is_deleted)
        assert_ok(cluster_deleted_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    return is_deleted;
}

/* The table as it was left, held against its feed; a new one is in that from its beginning. */
static void open_table(struct cluster_fixture *f, struct feed *feed, struct keyspace *keyspace,
                       struct shared *shared, bool is_new)
{
    if (is_new) {
        atomic_store(&feed->keyspace, keyspace);
        f->table = create_test_table(f->cluster, NULL);
        return;
    }
    bool is_deleted = find_table(f);
    feed->shape = check(f, keyspace, shared, is_deleted);
    atomic_store(&feed->keyspace, keyspace);
    if (is_deleted)
        undelete_table(f);
}

/* Opens what the one before left, and writes until it is killed. */
static void run_child(const char *directory, struct shared *shared, unsigned cycle, int acks)
{
    struct log log = {.fd = STDERR_FILENO, .level = LOG_WARN, .clock = clock_system()};
    struct feed feed = {.last = 0};
    const struct commit_observer observer = {.context = &feed, .see = see};
    struct cluster_fixture f = {.options = test_cluster_options(directory)};
    assert_ok(pool_create(2, 64, "test", &f.pool));
    f.options.log = &log;
    f.options.pool = f.pool;
    f.options.observers = &observer;
    f.options.observer_count = 1;
    f.options.undelete_window_us = INT64_C(3600) * 1000000;
    open_test_cluster(&f);
    struct table *feed_table = open_feed_table(&f, cycle == 0);
    open_table(&f, &feed, keyspace_of(feed_table), shared, cycle == 0);
    assert_int_equal(write(acks, "", 1), 1);
    uint64_t random = shared->writers[0].random;
    start_writers(&f, shared, acks);
    disturb(&f, random);
}

/* --- the parent --- */

static struct test_run run = {.rounds = 4, .changes = 300, .seed = 1};
static const struct test_run a_million = {.rounds = 60, .changes = 20000, .seed = 1};

static uint64_t count_acks(int acks, uint64_t limit)
{
    char buffer[4096];
    uint64_t count = 0;
    while (count < limit) {
        size_t size = limit - count < sizeof buffer ? limit - count : sizeof buffer;
        ssize_t got = read(acks, buffer, size);
        if (got <= 0)
            break;
        count += (uint64_t)got;
    }
    return count;
}

/* What a failed assertion does in a child: cmocka would jump into the parent's copy. */
static void run_cycle(const char *directory, struct shared *shared, unsigned cycle, uint64_t wanted)
{
    int acks[2];
    assert_int_equal(pipe(acks), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(acks[0]);
        run_child(directory, shared, cycle, acks[1]);
        _exit(1);
    }
    close(acks[1]);
    uint64_t acknowledged = count_acks(acks[0], wanted);
    assert_int_equal(kill(child, SIGKILL), 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    close(acks[0]);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_int_equal(acknowledged, wanted);
}

static void every_change_is_seen_once_and_in_order(void **state)
{
    (void)state;
    char directory[] = "/tmp/trestle-observer-XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    uint64_t random = run.seed, changes = 0;
    for (unsigned i = 0; i < WRITERS; i++)
        shared->writers[i].random = run.seed * WRITERS + i;
    for (unsigned cycle = 0; cycle < run.rounds; cycle++)
        run_cycle(directory, shared, cycle, run.changes / 2 + next_random(&random) % run.changes);
    run_cycle(directory, shared, run.rounds, 1); /* the last check */
    for (unsigned i = 0; i < WRITERS; i++)
        changes += atomic_load(&shared->writers[i].acknowledged);
    print_message("# %u kills, %llu changes, seed %llu\n", run.rounds + 1,
                  (unsigned long long)changes, (unsigned long long)run.seed);
    munmap(shared, sizeof *shared);
    remove_test_directory(directory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_seen_once_and_in_order),
    };
    take_test_run(&run, a_million, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
