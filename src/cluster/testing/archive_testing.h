/* What the tests of the archive share: a cluster that keeps one, tables of a few rows with a model
 * beside them, and restores to a moment, compared with what the model was then. */
#ifndef TRESTLE_CLUSTER_TESTING_ARCHIVE_TESTING_H
#define TRESTLE_CLUSTER_TESTING_ARCHIVE_TESTING_H

#include "archive/restore.h"
#include "archive/testing/testing.h"
#include "cluster/backup/backup.h"
#include "cluster/foreign_rows.h"
#include "cluster/testing/testing.h"
#include "row/fold.h"

#include <endian.h>
#include <sys/mman.h>

enum { MODEL_TABLES = 3, MODEL_ROWS = 12, BIG_VALUE = 400 /* overflows */ };

/* 0: there is no such cell. */
struct model_row {
    uint32_t value;
    int64_t sum;
};

struct model_table {
    bool exists;
    struct model_row rows[MODEL_ROWS];
};

struct model {
    struct model_table tables[MODEL_TABLES];
};

struct moment {
    uint64_t sequence;
    struct model model;
};

/* --- names and values --- */

static inline const char *model_table_name(unsigned table, char out[64])
{
    snprintf(out, 64, "projects/p/instances/i/tables/model%u", table);
    return out;
}

static inline const char *model_row_key(unsigned row, char out[8])
{
    snprintf(out, 8, "%c%u", 'a' + (char)(row / 4), row % 4);
    return out;
}

/* Every fifth is a large one. */
static inline bytes model_value(uint32_t value, char out[BIG_VALUE + 1])
{
    int size = snprintf(out, BIG_VALUE + 1, "%u:", value);
    if (value % 5 != 0)
        return bytes_make(out, (size_t)size);
    memset(out + size, '.', BIG_VALUE - (size_t)size);
    return bytes_make(out, BIG_VALUE);
}

static inline int64_t model_number(bytes value)
{
    int64_t number;
    assert_int_equal(value.size, sizeof number);
    memcpy(&number, value.data, sizeof number);
    return (int64_t)be64toh((uint64_t)number);
}

/* --- what a cluster has --- */

static inline void read_model_cell(const struct cell *cell, struct model_row *row)
{
    char expected[BIG_VALUE + 1];
    if (cell->family->id == FAMILY_SUM) {
        row->sum = model_number(cell->value);
        return;
    }
    assert_int_equal(cell->family->id, FAMILY_F);
    row->value = (uint32_t)strtoul((const char *)cell->value.data, NULL, 10);
    assert_true(bytes_equal(cell->value, model_value(row->value, expected)));
}

static inline unsigned model_row_of(bytes key)
{
    assert_int_equal(key.size, 2);
    unsigned row = (unsigned)(key.data[0] - 'a') * 4 + (unsigned)(key.data[1] - '0');
    assert_in_range(row, 0, MODEL_ROWS - 1);
    return row;
}

static inline void read_model_table(struct table *table, struct model_table *out)
{
    struct arena *arena = arena_create(1 << 20);
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct scan_spec spec = {.table = table,
                             .ranges = &all,
                             .range_count = 1,
                             .schema = table_schema(table),
                             .arena = arena};
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome = ROW_ABSENT;
    assert_non_null(arena);
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        for (size_t i = 0; outcome == ROW_FOUND && i < row.cells->count; i++)
            read_model_cell(&row.cells->items[i], &out->rows[model_row_of(row.key)]);
    }
    scan_destroy(scan);
    arena_destroy(arena);
}

static inline void read_model(struct cluster *cluster, struct model *out)
{
    char name[64];
    *out = (struct model){0};
    for (unsigned i = 0; i < MODEL_TABLES; i++) {
        struct table *table;
        status s = cluster_table(cluster, bytes_of(model_table_name(i, name)), &table);
        out->tables[i].exists = status_is_ok(s);
        status_free(s);
        if (!out->tables[i].exists)
            continue;
        read_model_table(table, &out->tables[i]);
        table_release(table);
    }
}

static inline void assert_same_model(const struct model *is, const struct model *expected)
{
    for (unsigned i = 0; i < MODEL_TABLES; i++) {
        const struct model_table *a = &is->tables[i], *b = &expected->tables[i];
        if (a->exists != b->exists)
            fail_msg("table %u is %s", i, a->exists ? "there" : "not there");
        for (unsigned j = 0; j < MODEL_ROWS; j++)
            if (a->rows[j].value != b->rows[j].value || a->rows[j].sum != b->rows[j].sum)
                fail_msg("row %u of table %u has %u, %lld instead of %u, %lld", j, i,
                         a->rows[j].value, (long long)a->rows[j].sum, b->rows[j].value,
                         (long long)b->rows[j].sum);
    }
}

/* --- copies of directories --- */

static inline void copy_directory(const char *from, const char *to);

struct copying {
    const char *from;
    const char *to;
};

static inline bool copying_goes_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static inline status copy_name(void *context, const char *name)
{
    const struct store_pacer pacer = {.go_on = copying_goes_on};
    const struct copying *copying = context;
    char from[256], to[256];
    struct file_look look;
    struct file_sum sum;
    assert_true(snprintf(from, sizeof from, "%s/%s", copying->from, name) < (int)sizeof from);
    assert_true(snprintf(to, sizeof to, "%s/%s", copying->to, name) < (int)sizeof to);
    assert_ok(files_look(files_of_system(), from, &look));
    if (look.is_directory)
        copy_directory(from, to);
    else
        assert_ok(files_copy(files_of_system(), from, to, &pacer, &sum));
    return status_ok();
}

static inline void copy_directory(const char *from, const char *to)
{
    struct copying copying = {.from = from, .to = to};
    assert_ok(files_make_directory(files_of_system(), to));
    assert_ok(files_list(files_of_system(), from, copy_name, &copying));
}

/* --- restores --- */

static inline struct store_options restore_store_options(const char *directory,
                                                         const struct log *log)
{
    return (struct store_options){.directory = directory,
                                  .fold = &row_fold,
                                  .log = log,
                                  .cache_bytes = 8 << 20,
                                  .write_buffer_bytes = 8 << 20,
                                  .open_files = 64,
                                  .background_threads = 2};
}

static inline status choose_keyspace(void *context, struct keyspace *catalog, uint64_t **keyspaces,
                                     size_t *count)
{
    (void)catalog;
    *keyspaces = malloc(sizeof **keyspaces);
    assert_non_null(*keyspaces);
    **keyspaces = *(const uint64_t *)context;
    *count = 1;
    return status_ok();
}

/* Takes the copy on to that moment, or rows of one keyspace alone, unless that is NULL; what came
 * of it. */
static inline status restore_known(const char *copy, struct place *place,
                                   const struct archive_reach *read_tier, uint64_t *keyspace,
                                   const struct log *log, struct archive_restored *out)
{
    struct store_options options = restore_store_options(copy, log);
    char scratch[128];
    struct store *store;
    snprintf(scratch, sizeof scratch, "%s/archive", copy);
    assert_ok(store_open(&options, &store));
    struct archive_restore restore = {.what = "the backup",
                                      .store = store,
                                      .catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID),
                                      .scratch = scratch,
                                      .place = place,
                                      .clock = clock_system(),
                                      .log = log,
                                      .until = read_tier->until,
                                      .from = read_tier->from,
                                      .next = read_tier->next,
                                      .choose = keyspace == NULL ? NULL : choose_keyspace,
                                      .context = keyspace};
    assert_non_null(restore.catalog);
    status s = archive_restore(&restore, out);
    store_close(store);
    return s;
}

static inline status restore_part(const char *copy, struct place *place, uint64_t until,
                                  uint64_t *keyspace, const struct log *log,
                                  struct archive_restored *out)
{
    const struct archive_reach read_tier = {.until = until};
    return restore_known(copy, place, &read_tier, keyspace, log, out);
}

static inline status restore_copy(const char *copy, struct place *place, uint64_t until,
                                  const struct log *log, struct archive_restored *out)
{
    return restore_part(copy, place, until, NULL, log, out);
}

/* What a server has that is started on the directory, without an archive. */
static inline void read_directory(struct cluster_fixture *f, const char *directory,
                                  struct model *out)
{
    struct cluster_options options = f->options;
    struct cluster *cluster;
    options.data_directory = directory;
    options.archive.place = NULL;
    assert_ok(cluster_open(&options, &cluster));
    read_model(cluster, out);
    cluster_close(cluster);
}

static inline void assert_restores(struct cluster_fixture *f, const char *base, struct place *place,
                                   const struct moment *moment)
{
    char copy[] = "/tmp/trestle-restored-XXXXXX";
    struct archive_restored restored;
    struct model model;
    assert_non_null(mkdtemp(copy));
    copy_directory(base, copy);
    assert_ok(restore_copy(copy, place, moment->sequence, &f->log, &restored));
    read_directory(f, copy, &model);
    assert_same_model(&model, &moment->model);
    remove_test_directory(copy);
}

/* --- a server with a model --- */

/* In memory that the children share with the parent. */
enum { MOST_MOMENTS = 400 };

struct history {
    struct moment moments[MOST_MOMENTS];
    size_t count;
};

struct fixture {
    struct cluster_fixture f; /* its table is the one that is written to at present */
    char place_directory[64];
    struct flaky_place *place;
    struct history *history;
    struct model now;
    uint64_t random;
    uint32_t last_value;
};

static inline uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

static inline unsigned choose(struct fixture *t, unsigned count)
{
    return next_random(&t->random) % count;
}

static inline int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof *t);
    assert_non_null(t);
    struct cluster_fixture *f = &t->f;
    snprintf(f->directory, sizeof f->directory, "/tmp/trestle-archived-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(t->place_directory, sizeof t->place_directory, "/tmp/trestle-archive-XXXXXX");
    assert_non_null(mkdtemp(t->place_directory));
    t->place = flaky_place_create(t->place_directory);
    assert_non_null(t->place);
    f->log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    f->arena = arena_create(SIZE_MAX / 2);
    f->options = test_cluster_options(f->directory);
    f->options.log = &f->log;
    f->options.archive.place = &t->place->place;
    f->options.archive.buffer_bytes = 1 << 30;
    f->options.archive.has_no_thread = true;
    t->history =
        mmap(NULL, sizeof *t->history, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(t->history != MAP_FAILED);
    *state = t;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *t = *state;
    arena_destroy(t->f.arena);
    place_close(&t->place->place);
    munmap(t->history, sizeof *t->history);
    remove_test_directory(t->f.directory);
    remove_test_directory(t->place_directory);
    free(t);
    return 0;
}

static inline void open_server(struct fixture *t)
{
    assert_ok(pool_create(2, 64, "test", &t->f.pool));
    t->f.options.pool = t->f.pool;
    open_test_cluster(&t->f);
    read_model(t->f.cluster, &t->now);
}

static inline void close_server(struct fixture *t)
{
    close_test_cluster(&t->f);
    pool_destroy(t->f.pool);
}

static inline void note_moment(struct fixture *t)
{
    struct history *history = t->history;
    assert_true(history->count < MOST_MOMENTS);
    history->moments[history->count] =
        (struct moment){.sequence = commit_applied(t->f.cluster->home->commits), .model = t->now};
    history->count++;
}

/* --- what is done to it --- */

static inline void create_table(struct fixture *t, unsigned number)
{
    const struct family families[] = {
        {.id = FAMILY_F, .name = bytes_of("f")},
        {.id = FAMILY_G, .name = bytes_of("g")},
        {.id = FAMILY_SUM, .name = bytes_of("sum"), .aggregate = AGGREGATE_SUM},
    };
    char name[64];
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 3, 4, &schema));
    struct table_spec spec = {.name = model_table_name(number, name), .schema = schema};
    assert_ok(cluster_create_table(t->f.cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
    t->now.tables[number].exists = true;
}

static inline struct row_change *new_change(struct fixture *t)
{
    struct row_change *change = row_change_create(t->f.arena);
    assert_non_null(change);
    return change;
}

static inline void set_value(struct fixture *t, unsigned row, struct model_row *model)
{
    static char value[BIG_VALUE + 1];
    char key[8];
    struct row_change *change = new_change(t);
    model->value = ++t->last_value;
    row_change_set(change, FAMILY_F, bytes_of("q"), 1, model_value(model->value, value));
    assert_ok(try_write(&t->f, model_row_key(row, key), change));
}

static inline void add_to_sum(struct fixture *t, unsigned row, struct model_row *model)
{
    int64_t number = choose(t, 100) + 1;
    uint64_t operand = htobe64((uint64_t)number);
    char key[8];
    struct row_change *change = new_change(t);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("s"), 0,
                   bytes_make(&operand, sizeof operand));
    assert_ok(try_write(&t->f, model_row_key(row, key), change));
    model->sum += number;
}

static inline uint64_t version_of_write(struct fixture *t, unsigned row, const uint64_t *operand)
{
    struct test_write write;
    struct event event;
    char key[8];
    struct row_change *change = new_change(t);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("s"), 0,
                   bytes_make(operand, sizeof *operand));
    event_init(&event);
    post_write(&t->f, &write, bytes_of(model_row_key(row, key)), change, &event);
    assert_ok(event_wait(&event, 1));
    return write.write.commit.version;
}

/* What another cluster has added between two of our writes, the later of another row, comes after
 * both. */
static inline void add_late(struct fixture *t, unsigned row, struct model_table *model)
{
    const uint64_t one = htobe64(1);
    unsigned other = (row + 1) % MODEL_ROWS;
    char key[8];
    struct packed_change late;
    struct row_change *change = new_change(t);
    uint64_t version = version_of_write(t, row, &one) + 1;
    version_of_write(t, other, &one);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("s"), 0, bytes_make(&one, sizeof one));
    assert_ok(row_change_pack(change, rows_big_value(t->f.table), &late));
    assert_ok(foreign_row_write(t->f.table, bytes_of(model_row_key(row, key)), &late, version));
    buffer_free(&late.fragment);
    model->rows[row].sum += 2;
    model->rows[other].sum++;
}

/* Writes to table 0, which is there. */
static inline void write_some(struct fixture *t, unsigned count)
{
    char name[64];
    assert_ok(cluster_table(t->f.cluster, bytes_of(model_table_name(0, name)), &t->f.table));
    for (unsigned i = 0; i < count; i++) {
        unsigned row = choose(t, MODEL_ROWS);
        set_value(t, row, &t->now.tables[0].rows[row]);
        note_moment(t);
    }
    table_release(t->f.table);
}

static inline status step(struct fixture *t)
{
    return archiver_step(t->f.cluster->home->archiver, true);
}

/* All moments so far have a change behind them that is archived, so that each can be had. */
static inline void finish(struct fixture *t)
{
    write_some(t, 1);
    t->history->count--;
    assert_ok(step(t));
    close_server(t);
}

/* A server with a table, and a copy of it, stopped, as it was then. */
static inline void begin(struct fixture *t, char *base)
{
    open_server(t);
    create_table(t, 0);
    write_some(t, 3);
    assert_ok(step(t));
    close_server(t);
    assert_non_null(mkdtemp(base));
    copy_directory(t->f.directory, base);
    open_server(t);
}

static inline struct change_log_state state_of_log(struct fixture *t)
{
    struct change_log_state state;
    change_log_look(t->f.cluster->home->log, &state);
    return state;
}

static const char BACKUP[] = "projects/p/instances/i/clusters/c/backups/b";

static inline void back_up_and_restore(struct fixture *t, struct backups *backups)
{
    char from[64], to[64];
    struct backup_work work = {0};
    struct staged_backup *staged;
    struct table *table;
    model_table_name(0, from);
    model_table_name(1, to);
    assert_ok(cluster_table(t->f.cluster, bytes_of(from), &table));
    assert_ok(backup_reserve(backups, BACKUP, from, bytes_of("extra")));
    assert_ok(backup_create(backups, BACKUP, table, &work));
    table_release(table);
    work = (struct backup_work){0};
    assert_ok(backup_stage(backups, BACKUP, &work, &staged));
    struct restore_spec spec = {.table = to};
    assert_ok(staged_backup_restore(staged, &spec, &table));
    staged_backup_destroy(staged);
    table_release(table);
    t->now.tables[1] = t->now.tables[0];
    note_moment(t);
}

#endif
