/* See heat_store.h. A hot tablet's value: its times as two varints, its percent in thousandths, and
 * then the table's name, the start and the end, each behind its size. */
#include "cluster/heat/heat_store.h"

#include "base/big_endian.h"
#include "base/varint.h"
#include "cluster/cluster_private.h"
#include "cluster/heat/heat_keyspace.h"
#include "cluster/rows.h"
#include "row/row_key.h"

#include <stdlib.h>

#define MINUTE_US (INT64_C(60) * 1000000)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)

enum {
    HOT_FAMILY = HEAT_LEVELS + 1,
    USAGE_FAMILY,
    FAMILIES = USAGE_FAMILY,
    HOT_LETTER = 'H',
    USAGE_LETTER = 'U',
    KEY_SIZE = 17,
    PERCENT_STEPS = 1000,
};

static const struct {
    char letter;
    int64_t span_us;
    int64_t kept_us;
} levels[HEAT_LEVELS] = {
    [HEAT_WINDOWS] = {'m', 0, 6 * HOUR_US},
    [HEAT_TEN_MINUTES] = {'t', 10 * MINUTE_US, 4 * DAY_US},
    [HEAT_HOURS] = {'h', HOUR_US, 28 * DAY_US},
};

int64_t heat_level_span_us(enum heat_level level)
{
    return levels[level].span_us;
}

int64_t heat_level_kept_us(enum heat_level level)
{
    return levels[level].kept_us;
}

static uint32_t family_of(enum heat_level level)
{
    return (uint32_t)level + 1;
}

/* --- the table --- */

static const struct gc_rule gc_rules[FAMILIES] = {
    {.kind = GC_MAX_AGE, .max_age_us = 6 * HOUR_US}, {.kind = GC_MAX_AGE, .max_age_us = 4 * DAY_US},
    {.kind = GC_MAX_AGE, .max_age_us = 28 * DAY_US}, {.kind = GC_MAX_AGE, .max_age_us = DAY_US},
    {.kind = GC_MAX_VERSIONS, .max_versions = 1},
};

/* In the order of their numbers, which begin with 1. */
static void fill_families(struct family families[FAMILIES])
{
    static const char *const names[FAMILIES] = {"m", "t", "h", "H", "U"};
    for (uint32_t i = 0; i < FAMILIES; i++)
        families[i] = (struct family){.id = i + 1, .name = bytes_of(names[i]), .gc = &gc_rules[i]};
}

static status make_table(struct cluster *cluster, struct table **out)
{
    struct family families[FAMILIES];
    struct schema *schema;
    fill_families(families);
    TRY(schema_create(GRANULARITY_MICROS, families, FAMILIES, FAMILIES + 1, &schema));
    struct table_spec spec = {.name = HEAT_TABLE, .schema = schema};
    status s = cluster_create_table(cluster, &spec, out);
    schema_destroy(schema);
    return s;
}

/* Former programs made it with the first families alone, and gave these the same numbers. */
static status add_families(void *context, const struct table_info *now, struct arena *arena,
                           struct table_change *next)
{
    struct family *families = arena_alloc(arena, FAMILIES * sizeof *families);
    (void)context;
    if (families == NULL)
        return status_out_of_memory();
    fill_families(families);
    for (size_t i = now->schema->family_count; i < FAMILIES; i++)
        families[i].id = 0;
    *next = (struct table_change){.families = families,
                                  .family_count = FAMILIES,
                                  .deletion_protection = now->deletion_protection,
                                  .extra = now->extra};
    return status_ok();
}

static status complete(struct table *table)
{
    enum { CHANGE_MEMORY = 1 << 20 };
    if (table_schema(table)->family_count >= FAMILIES)
        return status_ok();
    struct arena *arena = arena_create(CHANGE_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = table_change_schema(table, arena, add_families, NULL);
    arena_destroy(arena);
    return s;
}

static const struct own_table own = {.name = HEAT_TABLE, .make = make_table, .complete = complete};

static void make_key(uint8_t key[KEY_SIZE], uint64_t table_id, char letter, int64_t number)
{
    big_endian_write(key, table_id);
    key[8] = (uint8_t)letter;
    big_endian_write(key + 9, (uint64_t)number);
}

/* --- writing --- */

static status put_change(struct own_batch *batch, const uint8_t key[KEY_SIZE],
                         struct row_change *change)
{
    return own_batch_add(batch, arena_copy(batch->arena, bytes_make(key, KEY_SIZE)), change);
}

static status put(struct own_batch *batch, const uint8_t key[KEY_SIZE], uint32_t family,
                  int64_t timestamp_us, const struct buffer *value)
{
    struct row_change *change = row_change_create(batch->arena);
    bytes copy = arena_copy(batch->arena, buffer_bytes(value));
    if (value->failed || change == NULL || copy.data == NULL)
        return status_out_of_memory();
    row_change_set(change, family, bytes_make(NULL, 0), timestamp_us, copy);
    return put_change(batch, key, change);
}

status heat_batch_put(struct own_batch *batch, uint64_t table_id, enum heat_level level,
                      const struct heat_record *record)
{
    uint8_t key[KEY_SIZE];
    struct buffer value = {0};
    make_key(key, table_id, levels[level].letter, record->from_us);
    heat_record_encode(record, &value);
    status s = put(batch, key, family_of(level), record->until_us, &value);
    buffer_free(&value);
    return s;
}

static void put_bytes(struct buffer *out, bytes b)
{
    buffer_append_varint(out, b.size);
    buffer_append_bytes(out, b);
}

status heat_batch_put_hot(struct own_batch *batch, const struct hot_tablet *hot)
{
    uint8_t key[KEY_SIZE];
    struct buffer value = {0};
    make_key(key, 0, HOT_LETTER, (int64_t)hot->id);
    buffer_append_varint(&value, (uint64_t)hot->from_us);
    buffer_append_varint(&value, (uint64_t)hot->until_us);
    buffer_append_varint(&value, (uint64_t)(hot->cpu_percent * PERCENT_STEPS + 0.5));
    put_bytes(&value, bytes_of(hot->table));
    put_bytes(&value, hot->start);
    put_bytes(&value, hot->end);
    status s = put(batch, key, HOT_FAMILY, hot->from_us, &value);
    buffer_free(&value);
    return s;
}

/* As a number of a row. Numbers of tables are given by a counter, and never have eight bytes. */
static int64_t usage_number(uint64_t table_id, uint8_t kind)
{
    return (int64_t)(table_id << 8 | kind);
}

status heat_batch_put_usage(struct own_batch *batch, uint64_t table_id, uint8_t kind, bytes value)
{
    uint8_t key[KEY_SIZE];
    struct row_change *change = row_change_create(batch->arena);
    if (change == NULL)
        return status_out_of_memory();
    bytes copy = arena_copy(batch->arena, value);
    if (copy.data == NULL)
        return status_out_of_memory();
    if (value.size == 0)
        row_change_delete_row(change);
    else
        row_change_set(change, USAGE_FAMILY, bytes_make(NULL, 0), 0, copy);
    make_key(key, 0, USAGE_LETTER, usage_number(table_id, kind));
    return put_change(batch, key, change);
}

status heat_batch_write(struct own_batch *batch, struct cluster *cluster)
{
    return own_batch_write(batch, &own, cluster);
}

/* --- reading --- */

/* What is read of rows of a letter. */
struct reading {
    bool reversed;
    /* False ends it. The value is valid during the call. */
    bool (*row)(void *context, int64_t number, bytes value);
    void *context;
};

static status visit_row(void *context, const struct scan_row *row, bool *ends)
{
    const struct reading *reading = context;
    if (row->key.size == KEY_SIZE)
        *ends = !reading->row(reading->context, (int64_t)big_endian_read(row->key.data + 9),
                              row->cells->items[0].value);
    return status_ok();
}

/* The rows of a letter with numbers from `from` up to `until`. */
static status read_numbers(struct cluster *cluster, uint64_t table_id, char letter, int64_t from,
                           int64_t until, struct reading *reading)
{
    enum { SCAN_MEMORY = 1 << 20 };
    uint8_t first[KEY_SIZE], end[KEY_SIZE];
    make_key(first, table_id, letter, from);
    make_key(end, table_id, letter, until);
    return own_table_read(&own, cluster,
                          &(struct own_reading){.from = bytes_make(first, KEY_SIZE),
                                                .to = bytes_make(end, KEY_SIZE),
                                                .reversed = reading->reversed,
                                                .memory = SCAN_MEMORY,
                                                .row = visit_row,
                                                .context = reading});
}

struct records {
    struct arena *arena;
    struct heat_record *items;
    size_t count;
    size_t capacity;
    status failure;
};

static status add_record(struct records *records, int64_t from_us, bytes value)
{
    bytes copy = arena_copy(records->arena, value);
    if (records->count == records->capacity) {
        size_t capacity = records->capacity == 0 ? 16 : 2 * records->capacity;
        struct heat_record *items = arena_alloc(records->arena, capacity * sizeof *items);
        if (items == NULL)
            return status_out_of_memory();
        if (records->count > 0)
            memcpy(items, records->items, records->count * sizeof *items);
        records->items = items;
        records->capacity = capacity;
    }
    if (copy.data == NULL)
        return status_out_of_memory();
    status s = heat_record_decode(copy, from_us, records->arena, &records->items[records->count]);
    records->count += status_is_ok(s);
    return s;
}

static bool visit_record(void *context, int64_t from_us, bytes value)
{
    struct records *records = context;
    records->failure = add_record(records, from_us, value);
    if (records->failure.code == STATUS_DATA_LOSS) {
        status_free(records->failure);
        records->failure = status_ok();
    }
    return status_is_ok(records->failure);
}

status heat_store_read(struct cluster *cluster, uint64_t table_id, enum heat_level level,
                       int64_t from_us, int64_t until_us, struct arena *arena,
                       struct heat_record **records, size_t *count)
{
    struct records found = {.arena = arena, .failure = status_ok()};
    struct reading reading = {.row = visit_record, .context = &found};
    status s = read_numbers(cluster, table_id, levels[level].letter, from_us, until_us, &reading);
    if (!status_is_ok(s)) {
        status_free(found.failure);
        return s;
    }
    *records = found.items;
    *count = found.count;
    return found.failure;
}

static bool visit_first(void *context, int64_t from_us, bytes value)
{
    int64_t *first = context;
    (void)value;
    *first = from_us;
    return false;
}

status heat_store_newest(struct cluster *cluster, uint64_t table_id, enum heat_level level,
                         int64_t *from_us)
{
    struct reading reading = {.reversed = true, .row = visit_first, .context = from_us};
    *from_us = 0;
    return read_numbers(cluster, table_id, levels[level].letter, 0, INT64_MAX, &reading);
}

status heat_store_oldest(struct cluster *cluster, uint64_t table_id, enum heat_level level,
                         int64_t *from_us)
{
    struct reading reading = {.row = visit_first, .context = from_us};
    *from_us = 0;
    return read_numbers(cluster, table_id, levels[level].letter, 0, INT64_MAX, &reading);
}

/* --- hot tablets --- */

struct hot_visit {
    void (*visit)(void *context, const struct hot_tablet *hot);
    void *context;
};

static bool take_number(bytes *from, uint64_t *number)
{
    const uint8_t *next = varint_read(from->data, from->data + from->size, number);
    if (next == NULL)
        return false;
    *from = bytes_from(*from, (size_t)(next - from->data));
    return true;
}

static bool take_bytes(bytes *from, bytes *out)
{
    uint64_t size;
    if (!take_number(from, &size) || size > from->size)
        return false;
    *out = bytes_make(from->data, size);
    *from = bytes_from(*from, size);
    return true;
}

static bool visit_hot(void *context, int64_t id, bytes value)
{
    struct hot_visit *visit = context;
    uint64_t from_us, until_us, percent;
    bytes table;
    struct hot_tablet hot = {.id = (uint64_t)id};
    bool is_sound = take_number(&value, &from_us) && take_number(&value, &until_us) &&
                    take_number(&value, &percent) && take_bytes(&value, &table) &&
                    take_bytes(&value, &hot.start) && take_bytes(&value, &hot.end);
    char *name = is_sound ? bytes_to_string(table) : NULL;
    if (name == NULL)
        return true;
    hot.table = name;
    hot.from_us = (int64_t)from_us;
    hot.until_us = (int64_t)until_us;
    hot.cpu_percent = (double)percent / PERCENT_STEPS;
    visit->visit(visit->context, &hot);
    free(name);
    return true;
}

status heat_store_hot(struct cluster *cluster,
                      void (*visit)(void *context, const struct hot_tablet *hot), void *context)
{
    struct hot_visit hot = {.visit = visit, .context = context};
    struct reading reading = {.row = visit_hot, .context = &hot};
    return read_numbers(cluster, 0, HOT_LETTER, 0, INT64_MAX, &reading);
}

/* --- usage --- */

struct usage_visit {
    bool (*visit)(void *context, uint64_t table_id, uint8_t kind, bytes value);
    void *context;
};

static bool visit_usage(void *context, int64_t number, bytes value)
{
    const struct usage_visit *visit = context;
    uint64_t id = (uint64_t)number;
    return visit->visit(visit->context, id >> 8, (uint8_t)id, value);
}

status heat_store_usage(struct cluster *cluster, uint64_t first_table, uint64_t last_table,
                        bool (*visit)(void *context, uint64_t table_id, uint8_t kind, bytes value),
                        void *context)
{
    const uint64_t greatest = (uint64_t)INT64_MAX >> 8;
    struct usage_visit usage = {.visit = visit, .context = context};
    struct reading reading = {.row = visit_usage, .context = &usage};
    int64_t until = last_table < greatest ? usage_number(last_table + 1, 0) : INT64_MAX;
    return read_numbers(cluster, 0, USAGE_LETTER, usage_number(first_table, 0), until, &reading);
}

/* --- whose table is not known any more --- */

/* Of the level, or 0: of no row of ours. */
static uint32_t family_of_letter(uint8_t letter)
{
    for (enum heat_level level = HEAT_WINDOWS; level < HEAT_LEVELS; level++)
        if (levels[level].letter == (char)letter)
            return family_of(level);
    return letter == HOT_LETTER ? HOT_FAMILY : letter == USAGE_LETTER ? USAGE_FAMILY : 0;
}

/* Numbers of tables are given by a counter, and times are microseconds since 1970: neither has
 * eight bytes. */
static uint32_t family_of_row(bytes row_key)
{
    bool is_ours = row_key.size == KEY_SIZE && row_key.data[0] == 0 && row_key.data[9] == 0;
    return is_ours ? family_of_letter(row_key.data[8]) : 0;
}

static bool is_cell_of(const struct entry *entry, uint32_t family)
{
    return entry->family == family && entry->qualifier.size == 0;
}

static bool is_row_of_ours(bytes row_key, bytes record)
{
    struct fragment_reader reader;
    struct entry entry;
    uint32_t family = family_of_row(row_key);
    bool is_ours = family != 0 && fragment_reader_start(&reader, record);
    while (is_ours && fragment_reader_next(&reader, &entry))
        is_ours = !entry_is_cell(entry.kind) || is_cell_of(&entry, family);
    return is_ours && !reader.is_bad;
}

static bool is_overflow_of_ours(bytes key, struct buffer *scratch)
{
    struct overflow_key parts;
    return overflow_key_parse(key, scratch, &parts) && parts.qualifier.size == 0 &&
           parts.family == family_of_row(parts.row_key);
}

static bool is_ours(bytes key, bytes value, struct buffer *scratch)
{
    if (key.size > 0 && key.data[0] == ROW_SPACE)
        return is_row_of_ours(bytes_from(key, 1), value);
    return is_overflow_of_ours(key, scratch);
}

status heat_keyspace_is_one(struct keyspace *keyspace, bool *out)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    struct store_cursor *cursor;
    struct buffer scratch = {0};
    bool is_all = true;
    *out = false;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    store_cursor_first(cursor);
    for (; is_all && store_cursor_valid(cursor); store_cursor_next(cursor))
        is_all = is_ours(store_cursor_key(cursor), store_cursor_value(cursor), &scratch);
    status s = store_cursor_status(cursor);
    *out = status_is_ok(s) && is_all;
    store_cursor_destroy(cursor);
    buffer_free(&scratch);
    return s;
}
