/* What the tests of the archive share: a cluster that keeps one, tables of a few rows with a model
 * beside them, and restores to a moment, compared with what the model was then. */
#ifndef TRESTLE_CLUSTER_ARCHIVE_TESTING_H
#define TRESTLE_CLUSTER_ARCHIVE_TESTING_H

#include "archive/restore.h"
#include "archive/testing.h"
#include "cluster/testing.h"
#include "row/fold.h"

#include <endian.h>

enum { MODEL_TABLES = 3, MODEL_ROWS = 12, BIG_VALUE = 400 /* spills */ };

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
        assert_ok(scan_next(scan, STORE_ANYWHERE, &row, &outcome));
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
static inline status restore_part(const char *copy, struct place *place, uint64_t until,
                                  uint64_t *keyspace, const struct log *log,
                                  struct archive_restored *out)
{
    struct store_options options = restore_store_options(copy, log);
    char scratch[128];
    struct store *store;
    snprintf(scratch, sizeof scratch, "%s/archive", copy);
    assert_ok(store_open(&options, &store));
    struct archive_restore restore = {.store = store,
                                      .catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID),
                                      .scratch = scratch,
                                      .place = place,
                                      .clock = clock_system(),
                                      .log = log,
                                      .until = until,
                                      .choose = keyspace == NULL ? NULL : choose_keyspace,
                                      .context = keyspace};
    assert_non_null(restore.catalog);
    status s = archive_restore(&restore, out);
    store_close(store);
    return s;
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

#endif
