/* See history_store.h. */
#include "history/history_store.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/vector.h"
#include "cluster/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND_US INT64_C(1000000)
#define HOUR_US   (3600 * SECOND_US)

enum {
    LINE_FAMILY = 1,
    METHOD_FAMILY,
    LATENCY_FAMILY,
    FAMILIES = LATENCY_FAMILY,
    SCAN_MEMORY = 4 << 20,
    TIME_SIZE = CLOCK_DATE_SIZE - 1,
};

#define SECONDS "seconds"
#define MORE    "more"

static const struct {
    const char *name;
    int64_t span_us;
    int64_t kept_us;
} levels[HISTORY_LEVELS] = {
    [HISTORY_TEN_SECONDS] = {"10s", 10 * SECOND_US, 3 * HOUR_US},
    [HISTORY_MINUTES] = {"1m", 60 * SECOND_US, 26 * HOUR_US},
    [HISTORY_HOURS] = {"1h", HOUR_US, INT64_MAX},
};

int64_t history_level_span_us(enum history_level level)
{
    return levels[level].span_us;
}

int64_t history_level_kept_us(enum history_level level, int64_t retention_us)
{
    return levels[level].kept_us < retention_us ? levels[level].kept_us : retention_us;
}

/* --- the table --- */

static status make_table(struct cluster *cluster, struct table **out)
{
    static const struct gc_rule one = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct family families[FAMILIES] = {
        {.id = LINE_FAMILY, .name = bytes_of("line"), .gc = &one},
        {.id = METHOD_FAMILY, .name = bytes_of("method"), .gc = &one},
        {.id = LATENCY_FAMILY, .name = bytes_of("latency"), .gc = &one},
    };
    struct schema *schema;
    TRY(schema_create(GRANULARITY_MICROS, families, FAMILIES, FAMILIES + 1, &schema));
    struct table_spec spec = {.name = HISTORY_TABLE, .schema = schema};
    status s = cluster_create_table(cluster, &spec, out);
    schema_destroy(schema);
    return s;
}

static const struct own_table own = {.name = HISTORY_TABLE, .make = make_table, .is_unseen = true};

status history_store_remove(struct cluster *cluster)
{
    struct table *table;
    TRY(own_table_hold(&own, cluster, false, &table));
    if (table == NULL)
        return status_ok();
    table_release(table);
    return cluster_delete_tables(cluster, bytes_of(HISTORY_TABLE), NULL);
}

/* In the arena; no data without memory. */
static bytes key_at(struct arena *arena, enum history_level level, const char *subject,
                    const char *time)
{
    struct buffer key = {0};
    buffer_append_format(&key, "%s#%s#%s", levels[level].name, subject, time);
    bytes copy = key.failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(&key));
    buffer_free(&key);
    return copy;
}

static bytes make_key(struct arena *arena, enum history_level level, const char *subject,
                      int64_t from_us)
{
    char date[CLOCK_DATE_SIZE];
    return key_at(arena, level, subject, clock_date(from_us, date));
}

/* --- writing --- */

/* A row that is being made. */
struct making {
    struct arena *arena;
    struct row_change *change;
    int64_t from_us;
};

static status set_text(const struct making *making, uint32_t family, const char *qualifier,
                       const char *text)
{
    bytes name = arena_copy(making->arena, bytes_of(qualifier));
    bytes value = arena_copy(making->arena, bytes_of(text));
    if (name.data == NULL || value.data == NULL)
        return status_out_of_memory();
    row_change_set(making->change, family, name, making->from_us, value);
    return status_ok();
}

/* Ten digits are more than any chart shows, and tell a time in seconds. */
static status set_number(const struct making *making, uint32_t family, const char *qualifier,
                         double number)
{
    char text[32];
    snprintf(text, sizeof text, "%.10g", number);
    return set_text(making, family, qualifier, text);
}

static status set_bucket(const struct making *making, const struct history_bucket *bucket)
{
    char bound[24] = MORE, text[24];
    if (bucket->up_to_us != UINT64_MAX)
        snprintf(bound, sizeof bound, "%" PRIu64, bucket->up_to_us);
    snprintf(text, sizeof text, "%" PRIu64, bucket->count);
    return set_text(making, LATENCY_FAMILY, bound, text);
}

static status set_point(const struct making *making, const struct history_point *point)
{
    TRY(set_number(making, LINE_FAMILY, SECONDS, point->seconds));
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        if (!isnan(point->values[line]))
            TRY(set_number(making, LINE_FAMILY, history_line_row(line)->name, point->values[line]));
    for (size_t i = 0; i < point->method_count; i++)
        TRY(set_number(making, METHOD_FAMILY, point->methods[i].name, point->methods[i].rate));
    for (size_t i = 0; i < point->bucket_count; i++)
        TRY(set_bucket(making, &point->buckets[i]));
    return status_ok();
}

status history_batch_put(struct own_batch *batch, enum history_level level, const char *subject,
                         const struct history_point *point)
{
    struct making making = {.arena = batch->arena,
                            .change = row_change_create(batch->arena),
                            .from_us = point->from_us};
    if (making.change == NULL)
        return status_out_of_memory();
    TRY(set_point(&making, point));
    return own_batch_add(batch, make_key(batch->arena, level, subject, point->from_us),
                         making.change);
}

status history_batch_remove(struct own_batch *batch, enum history_level level, const char *subject,
                            int64_t from_us)
{
    struct row_change *change = row_change_create(batch->arena);
    if (change == NULL)
        return status_out_of_memory();
    row_change_delete_row(change);
    return own_batch_add(batch, make_key(batch->arena, level, subject, from_us), change);
}

status history_batch_write(struct own_batch *batch, struct cluster *cluster)
{
    return own_batch_write(batch, &own, cluster);
}

/* --- reading --- */

static status read_range(struct cluster *cluster, struct own_reading *reading)
{
    if (reading->from.data == NULL || reading->to.data == NULL)
        return status_out_of_memory();
    reading->is_background = true;
    reading->memory = SCAN_MEMORY;
    return own_table_read(&own, cluster, reading);
}

/* The cells of a row that its time is in. */
static int64_t time_of(const struct scan_row *row)
{
    return row->cells->items[0].timestamp_us;
}

/* A number's text, as we write it. */
static bool read_number(bytes text, double *out)
{
    char copy[32], *end;
    if (text.size == 0 || text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0' && isfinite(*out);
}

static void take_line(bytes name, double value, struct history_point *point)
{
    enum history_line line = history_line_named(name);
    if (bytes_equal(name, bytes_of(SECONDS)))
        point->seconds = value;
    else if (line < HISTORY_LINES)
        point->values[line] = value;
}

static status take_method(bytes name, double value, struct arena *arena,
                          struct history_method *methods, size_t *count)
{
    const char *copy = arena_string(arena, name);
    if (copy == NULL)
        return status_out_of_memory();
    if (*count < HISTORY_METHODS)
        methods[(*count)++] = (struct history_method){copy, value};
    return status_ok();
}

static void take_bucket(bytes name, double value, struct history_bucket *buckets, size_t *count)
{
    double bound = 0;
    bool is_more = bytes_equal(name, bytes_of(MORE));
    if (*count == HISTORY_BUCKETS || value < 1 || (!is_more && !read_number(name, &bound)))
        return;
    buckets[(*count)++] =
        (struct history_bucket){is_more ? UINT64_MAX : (uint64_t)bound, (uint64_t)value};
}

static status read_cells(const struct scan_row *row, struct arena *arena,
                         struct history_method *methods, struct history_point *point)
{
    struct history_bucket buckets[HISTORY_BUCKETS];
    size_t count = 0;
    for (size_t i = 0; i < row->cells->count; i++) {
        const struct cell *cell = &row->cells->items[i];
        double value;
        if (!read_number(cell->value, &value))
            continue;
        if (cell->family->id == LINE_FAMILY)
            take_line(cell->qualifier, value, point);
        else if (cell->family->id == METHOD_FAMILY)
            TRY(take_method(cell->qualifier, value, arena, methods, &point->method_count));
        else
            take_bucket(cell->qualifier, value, buckets, &count);
    }
    if (count > 0)
        qsort(buckets, count, sizeof *buckets, history_bucket_order); /* they lie by their text */
    for (size_t i = 0; i < count; i++)
        if (i == 0 || buckets[i].up_to_us > buckets[i - 1].up_to_us)
            history_point_add_calls(point, buckets[i].up_to_us, buckets[i].count);
    return status_ok();
}

static status read_point(const struct scan_row *row, struct arena *arena,
                         struct history_point *point)
{
    struct history_method *methods = arena_alloc(arena, HISTORY_METHODS * sizeof *methods);
    if (methods == NULL)
        return status_out_of_memory();
    history_point_init(point, time_of(row), 1);
    TRY(read_cells(row, arena, methods, point));
    point->methods = methods;
    point->method_count = history_methods_keep(methods, point->method_count);
    return status_ok();
}

struct points {
    struct arena *arena;
    struct vector found;
};

static status visit_point(void *context, const struct scan_row *row, bool *ends)
{
    struct points *points = context;
    struct history_point point;
    (void)ends;
    TRY(read_point(row, points->arena, &point));
    return point.seconds > 0 ? vector_add(&points->found, points->arena, &point, sizeof point)
                             : status_ok();
}

status history_store_read(struct cluster *cluster, enum history_level level, const char *subject,
                          int64_t from_us, int64_t until_us, struct arena *arena,
                          struct history_point **points, size_t *count)
{
    struct points found = {.arena = arena};
    struct own_reading reading = {.from = make_key(arena, level, subject, from_us),
                                  .to = make_key(arena, level, subject, until_us),
                                  .row = visit_point,
                                  .context = &found};
    TRY(read_range(cluster, &reading));
    *points = found.found.items;
    *count = found.found.count;
    return status_ok();
}

struct times {
    status (*visit)(void *context, int64_t from_us);
    void *context;
};

static status visit_time(void *context, const struct scan_row *row, bool *ends)
{
    const struct times *times = context;
    (void)ends;
    return times->visit(times->context, time_of(row));
}

/* With keys of its own. */
static status read_times(struct cluster *cluster, bytes from, bytes to, struct times *times)
{
    struct own_reading reading = {.from = from, .to = to, .row = visit_time, .context = times};
    return read_range(cluster, &reading);
}

status history_store_times(struct cluster *cluster, enum history_level level, const char *subject,
                           int64_t from_us, int64_t until_us,
                           status (*visit)(void *context, int64_t from_us), void *context)
{
    struct times times = {visit, context};
    struct arena *arena = arena_create(SCAN_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = read_times(cluster, make_key(arena, level, subject, from_us),
                          make_key(arena, level, subject, until_us), &times);
    arena_destroy(arena);
    return s;
}

static status visit_newest(void *context, const struct scan_row *row, bool *ends)
{
    *(int64_t *)context = time_of(row);
    *ends = true;
    return status_ok();
}

/* The text of a time ends before '~', whatever its year. */
static bytes key_after(struct arena *arena, enum history_level level, const char *subject)
{
    return key_at(arena, level, subject, "~");
}

status history_store_newest(struct cluster *cluster, enum history_level level, const char *subject,
                            int64_t *from_us)
{
    struct arena *arena = arena_create(SCAN_MEMORY);
    *from_us = 0;
    if (arena == NULL)
        return status_out_of_memory();
    struct own_reading reading = {.from = make_key(arena, level, subject, 0),
                                  .to = key_after(arena, level, subject),
                                  .reversed = true,
                                  .row = visit_newest,
                                  .context = from_us};
    status s = read_range(cluster, &reading);
    arena_destroy(arena);
    return s;
}

/* A finer level is never behind a coarser one that it has points beside. */
status history_store_newest_of_all(struct cluster *cluster, const char *subject, int64_t *from_us)
{
    *from_us = 0;
    for (enum history_level level = 0; level < HISTORY_LEVELS && *from_us == 0; level++)
        TRY(history_store_newest(cluster, level, subject, from_us));
    return status_ok();
}

/* --- subjects --- */

struct first_subject {
    struct arena *arena;
    size_t prefix; /* of its key, before the subject */
    const char *name;
};

static status visit_subject(void *context, const struct scan_row *row, bool *ends)
{
    struct first_subject *first = context;
    size_t around = first->prefix + 1 + TIME_SIZE;
    *ends = true;
    if (row->key.size <= around) {
        *ends = false; /* no row of ours */
        return status_ok();
    }
    first->name = arena_string(first->arena,
                               bytes_make(row->key.data + first->prefix, row->key.size - around));
    return first->name == NULL ? status_out_of_memory() : status_ok();
}

/* The first one whose rows come after that of the key, or NULL. */
static status next_subject(struct cluster *cluster, enum history_level level, bytes after,
                           struct arena *arena, const char **out)
{
    struct first_subject first = {.arena = arena, .prefix = strlen(levels[level].name) + 1};
    char end[8];
    snprintf(end, sizeof end, "%s$", levels[level].name); /* '$' is next to '#' */
    struct own_reading reading = {.from = after,
                                  .to = arena_copy(arena, bytes_of(end)),
                                  .row = visit_subject,
                                  .context = &first};
    TRY(read_range(cluster, &reading));
    *out = first.name;
    return status_ok();
}

static status visit_subjects(struct cluster *cluster, enum history_level level, struct arena *arena,
                             status (*visit)(void *context, const char *subject), void *context)
{
    char start[8];
    snprintf(start, sizeof start, "%s#", levels[level].name);
    bytes after = arena_copy(arena, bytes_of(start));
    for (;;) {
        const char *subject = NULL;
        TRY(next_subject(cluster, level, after, arena, &subject));
        if (subject == NULL)
            return status_ok();
        TRY(visit(context, subject));
        after = key_after(arena, level, subject);
    }
}

status history_store_subjects(struct cluster *cluster, enum history_level level,
                              status (*visit)(void *context, const char *subject), void *context)
{
    struct arena *arena = arena_create(SCAN_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = visit_subjects(cluster, level, arena, visit, context);
    arena_destroy(arena);
    return s;
}
