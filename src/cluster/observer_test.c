/* A commit observer sees every change exactly once, in order: random changes of rows by several
 * writers, while tablets split and merge and rows are dropped, the server killed again and again.
 *
 *     observer_test [CYCLES] [CHANGES] [SEED]      default 4 cycles of 300 changes
 *     observer_test 200 5000                       the long form: a million
 *
 * The observer keeps a feed: for each commit a row of another table, in the commit's own batch. So
 * after a kill the feed must have
 *  - of each writer all changes up to the last that was acknowledged, or one more, each once, in
 * the order in which it made them;
 *  - what, done again in the feed's order, comes to what the table has. */
#include "cluster/row_group.h"
#include "cluster/testing.h"
#include "row/row_key.h"
#include "tablet/commit_observer.h"

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
    LARGE_VALUE = 400, /* bytes: past the spill threshold */
};

static const char FEED_TABLE[] = "projects/p/instances/i/tables/feed";

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

/* --- the feed: a row for each commit, with one cell, a feed_record --- */

struct feed_record {
    bool is_drop;
    uint32_t from; /* of a drop: ten rows from here on */
    struct stamp stamp;
    uint32_t count;
    uint32_t rows[MOST_ROWS];
};

struct feed {
    struct table *table;                 /* whose changes it has; set before `keyspace` */
    _Atomic(struct keyspace *) keyspace; /* where it is; NULL: there is none yet */
    uint64_t last;                       /* version of the last commit that was seen */
};

static struct feed_record record_of_rows(const struct commit *commit)
{
    struct feed_record record = {.stamp = stamp_in(commit->change),
                                 .count = (uint32_t)commit->other_count + 1};
    assert_true(record.count <= MOST_ROWS);
    record.rows[0] = row_number(commit->row_key);
    for (size_t i = 0; i < commit->other_count; i++) {
        const struct commit *other = &commit->others[i];
        struct stamp stamp = stamp_in(other->change);
        assert_memory_equal(&stamp, &record.stamp, sizeof stamp);
        assert_true(tablet_contains(other->tablet, other->row_key));
        record.rows[i + 1] = row_number(other->row_key);
    }
    assert_true(tablet_contains(commit->tablet, commit->row_key));
    return record;
}

/* A drop deletes the ten rows' records, and then their large cells. */
static status take_drop(void *context, const struct store_change *change)
{
    struct feed_record *record = context;
    assert_int_equal(change->kind, STORE_DELETE_RANGE);
    if (change->key.data[0] == ROW_SPACE)
        record->from = 10 * (uint32_t)(change->key.data[2] - '0');
    return status_ok();
}

static void put_record(struct feed *feed, uint64_t version, const struct feed_record *record,
                       struct store_batch *batch)
{
    struct buffer value = {0};
    struct fragment_writer writer;
    const struct entry cell = {.kind = ENTRY_CELL,
                               .family = FAMILY_F,
                               .qualifier = bytes_of("e"),
                               .version = version,
                               .value = bytes_make(record, sizeof *record)};
    uint64_t number = htobe64(version);
    uint8_t key[1 + sizeof number] = {ROW_SPACE};
    memcpy(key + 1, &number, sizeof number);
    fragment_writer_start(&writer, &value, version);
    fragment_writer_add(&writer, &cell);
    fragment_writer_finish(&writer);
    assert_false(value.failed);
    store_batch_put(batch, atomic_load(&feed->keyspace), bytes_make(key, sizeof key),
                    buffer_bytes(&value));
    buffer_free(&value);
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct feed *feed = context;
    struct feed_record record = {.is_drop = true};
    assert_true(commit->version > feed->last);
    feed->last = commit->version;
    bool is_of_table = atomic_load(&feed->keyspace) != NULL && commit->table == feed->table;
    if (!is_of_table || (commit->kind != COMMIT_ROWS && commit->kind != COMMIT_DROP))
        return;
    if (commit->kind == COMMIT_ROWS)
        record = record_of_rows(commit);
    else
        assert_ok(
            store_batch_visit(table_cluster(feed->table)->store, records, take_drop, &record));
    put_record(feed, commit->version, &record, batch);
}

/* --- what the feed comes to --- */

struct state {
    struct stamp rows[ROWS]; /* number 0: there is no such row */
    uint64_t numbers[WRITERS];
};

static void apply(struct state *state, const struct feed_record *record)
{
    if (record->is_drop) {
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
    const struct store_cursor_options options = {.reach = STORE_ANYWHERE};
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
        assert_ok(scan_next(scan, STORE_ANYWHERE, &row, &outcome));
        if (outcome == ROW_FOUND)
            rows[row_number(row.key)] = stamp_of(row.cells->items[0].value);
    }
    scan_destroy(scan);
    arena_destroy(arena);
}

static void check(struct cluster_fixture *f, struct keyspace *keyspace, struct shared *shared)
{
    struct state fed = read_feed(keyspace);
    struct stamp rows[ROWS];
    read_table(f, rows);
    assert_memory_equal(rows, fed.rows, sizeof rows);
    for (unsigned i = 0; i < WRITERS; i++) {
        uint64_t begun = atomic_load(&shared->writers[i].begun);
        if (fed.numbers[i] != begun)
            assert_int_equal(fed.numbers[i], atomic_load(&shared->writers[i].acknowledged));
        atomic_store(&shared->writers[i].begun, fed.numbers[i]);
        atomic_store(&shared->writers[i].acknowledged, fed.numbers[i]);
    }
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

static void write_some(struct writer *writer, struct arena *arena, const struct stamp *stamp)
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
    assert_ok(row_group_write(&group));
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
        write_some(writer, arena, &stamp);
        atomic_store(&writer->shared->writers[writer->number].acknowledged, number);
        arena_reset(arena);
        assert_int_equal(write(writer->acks, "", 1), 1);
    }
    return NULL;
}

/* --- the child --- */

/* Splits and merges, and now and then drops ten rows, flushes or compacts, until the end. */
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
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    struct schema *schema;
    struct table *table;
    if (!is_new) {
        assert_ok(cluster_table(f->cluster, bytes_of(FEED_TABLE), &table));
        return table;
    }
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    struct table_spec spec = {.name = FEED_TABLE, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
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

/* Opens what the one before left, holds it against its feed, and writes until it is killed. */
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
    open_test_cluster(&f);
    struct table *feed_table = open_feed_table(&f, cycle == 0);
    if (cycle == 0)
        f.table = create_test_table(f.cluster, NULL);
    else
        assert_ok(cluster_table(f.cluster, bytes_of(TEST_TABLE), &f.table));
    feed.table = f.table;
    atomic_store(&feed.keyspace, keyspace_of(feed_table));
    check(&f, atomic_load(&feed.keyspace), shared);
    assert_int_equal(write(acks, "", 1), 1);
    uint64_t random = shared->writers[0].random;
    start_writers(&f, shared, acks);
    disturb(&f, random);
}

/* --- the parent --- */

static struct {
    unsigned cycles;
    unsigned changes; /* of a cycle, at most */
    uint64_t seed;
} run = {.cycles = 4, .changes = 300, .seed = 1};

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
    for (unsigned cycle = 0; cycle < run.cycles; cycle++)
        run_cycle(directory, shared, cycle, run.changes / 2 + next_random(&random) % run.changes);
    run_cycle(directory, shared, run.cycles, 1); /* the last check */
    for (unsigned i = 0; i < WRITERS; i++)
        changes += atomic_load(&shared->writers[i].acknowledged);
    print_message("# %u kills, %llu changes, seed %llu\n", run.cycles + 1,
                  (unsigned long long)changes, (unsigned long long)run.seed);
    munmap(shared, sizeof *shared);
    remove_test_directory(directory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_seen_once_and_in_order),
    };
    if (argc > 1)
        run.cycles = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        run.changes = (unsigned)strtoul(argv[2], NULL, 10);
    if (argc > 3)
        run.seed = strtoull(argv[3], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
