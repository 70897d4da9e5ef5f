/* ReadHeat: a table's heat as it was kept, with the window that has not ended, and what it means.
 * See cluster/heat/heat_matrix.h and cluster/heat/heat_hotspots.h. */
#include "base/settings.h"
#include "bigtable/names.h"
#include "cluster/heat/heat_hotspots.h"
#include "cluster/heat/heat_matrix.h"
#include "introspect/heat_levels.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

#include <math.h>

enum {
    MOST_RANGES = HEAT_MOST_RANGES,
    RANGES_BY_DEFAULT = 256,
    MOST_TIMES = 1024,
    WORKING_MEMORY = 512 << 20, /* for records before they are put together */
};

#define SECOND_US  INT64_C(1000000)
#define DEFAULT_US (6 * 3600 * SECOND_US)

struct reading {
    int64_t from_us;
    int64_t until_us;
    size_t most_ranges;
    size_t most_times;
    size_t most_cells;                          /* 0: no bound */
    Insight__ReadHeatRequest__Number levels_of; /* unspecified: sums are told */
    struct arena *answer;                       /* of the call */
    struct arena *working;                      /* of the method */
};

/* --- the request --- */

static status read_limit(const char *field, int32_t asked, size_t most, size_t preset, size_t *out)
{
    if (asked < 0 || (size_t)asked > most)
        return status_make(STATUS_INVALID_ARGUMENT, "%s must be between 0 and %zu, and is %d",
                           field, most, (int)asked);
    *out = asked == 0 ? preset : (size_t)asked;
    return status_ok();
}

static status read_times(const Insight__ReadHeatRequest *message, int64_t now_us,
                         struct reading *out)
{
    if (message->start_time != NULL)
        TRY(timestamp_check("start_time", message->start_time));
    if (message->end_time != NULL)
        TRY(timestamp_check("end_time", message->end_time));
    out->until_us = message->end_time == NULL ? now_us : timestamp_us(message->end_time);
    out->from_us = message->start_time == NULL ? out->until_us - DEFAULT_US
                                               : timestamp_us(message->start_time);
    if (out->from_us >= out->until_us)
        return status_make(STATUS_INVALID_ARGUMENT, "start_time must be before end_time");
    return status_ok();
}

static status read_request(const struct admin_request *request, struct reading *out)
{
    const Insight__ReadHeatRequest *message = (const void *)request->message;
    int64_t now_us = clock_wall_us(cluster_clock(request->bigtable->cluster));
    *out = (struct reading){.answer = request->arena};
    TRY(name_check_table(message->name));
    TRY(read_limit("max_ranges", message->max_ranges, MOST_RANGES, RANGES_BY_DEFAULT,
                   &out->most_ranges));
    TRY(read_limit("max_times", message->max_times, MOST_TIMES, MOST_TIMES, &out->most_times));
    TRY(read_limit("max_cells", message->max_cells, MOST_RANGES * MOST_TIMES, 0, &out->most_cells));
    if (heat_levels_number(message->levels_of) == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "levels_of is %d, which is no number",
                           (int)message->levels_of);
    out->levels_of = message->levels_of;
    return read_times(message, now_us, out);
}

/* --- messages --- */

static status latency_message(uint64_t us, struct arena *arena, Pb__Duration **out)
{
    if (us == 0)
        return status_ok();
    return duration_message((int64_t)us, arena, out);
}

static status sum_message(const struct heat_sum *sum, size_t range, struct arena *arena,
                          Insight__Heat__Sum **out)
{
    const uint64_t *numbers = sum->numbers;
    Insight__Heat__Sum *message;
    PROTO_NEW(arena, message, INSIGHT__HEAT__SUM__INIT);
    message->range = (int32_t)range;
    message->read_requests = (int64_t)numbers[HEAT_TIMED_READS];
    message->write_requests = (int64_t)numbers[HEAT_TIMED_WRITES];
    message->rows_read = (int64_t)numbers[HEAT_READS];
    message->rows_written = (int64_t)numbers[HEAT_WRITES];
    message->bytes_read = (int64_t)numbers[HEAT_READ_BYTES];
    message->bytes_written = (int64_t)numbers[HEAT_WRITTEN_BYTES];
    message->largest_row = (int64_t)numbers[HEAT_LARGEST_ROW];
    *out = message;
    TRY(latency_message(numbers[HEAT_READ_US], arena, &message->read_latency));
    return latency_message(numbers[HEAT_WRITE_US], arena, &message->write_latency);
}

static status add_sums(const struct heat_time *time, size_t ranges, struct arena *arena,
                       Insight__Heat__Time *out)
{
    out->sums = arena_alloc(arena, ranges * sizeof *out->sums);
    if (out->sums == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < ranges; i++)
        if (time->sums[i] != NULL)
            TRY(sum_message(time->sums[i], i, arena, &out->sums[out->n_sums++]));
    return status_ok();
}

/* `levels`: how they are told, if they are. */
static status time_message(const struct heat_time *time, size_t ranges,
                           const struct heat_levels *levels, struct arena *arena,
                           Insight__Heat__Time **out)
{
    PROTO_NEW(arena, *out, INSIGHT__HEAT__TIME__INIT);
    (*out)->cpu_percent = levels == NULL ? time->cpu_percent : round(100 * time->cpu_percent) / 100;
    if (levels == NULL)
        TRY(add_sums(time, ranges, arena, *out));
    else
        TRY(heat_levels_text(levels, time, ranges, arena, &(*out)->levels));
    TRY(timestamp_message(time->from_us, arena, &(*out)->start_time));
    return timestamp_message(time->until_us, arena, &(*out)->end_time);
}

/* A copy of the key in the arena. */
static status key_message(bytes key, struct arena *arena, ProtobufCBinaryData *out)
{
    bytes copy = arena_copy(arena, key);
    if (copy.data == NULL && key.size > 0)
        return status_out_of_memory();
    *out = proto_data(copy);
    return status_ok();
}

static status add_times(const struct heat_matrix *matrix, const struct reading *reading,
                        Insight__Heat *heat)
{
    struct heat_levels levels;
    bool has_levels = heat_levels_of(matrix, reading->levels_of, &levels);
    if (has_levels) {
        heat->most_level = levels.most;
        heat->level_ratio = HEAT_LEVEL_RATIO;
    }
    for (size_t i = 0; i < matrix->time_count; i++)
        TRY(time_message(&matrix->times[i], matrix->range_count, has_levels ? &levels : NULL,
                         reading->answer, &heat->times[heat->n_times++]));
    return status_ok();
}

static status add_matrix(const struct heat_matrix *matrix, const struct reading *reading,
                         Insight__Heat *heat)
{
    struct arena *arena = reading->answer;
    heat->times = arena_alloc(arena, matrix->time_count * sizeof(*heat->times));
    heat->start_keys = arena_alloc(arena, matrix->range_count * sizeof *heat->start_keys);
    if (heat->times == NULL || heat->start_keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < matrix->range_count; i++)
        TRY(key_message(matrix->starts[i], arena, &heat->start_keys[heat->n_start_keys++]));
    TRY(add_times(matrix, reading, heat));
    if (heat->n_times > 0)
        heat->times[heat->n_times - 1]->is_open = matrix->ends_open;
    return status_ok();
}

static Insight__Heat__Sign__Kind kind_of(enum heat_hotspot_kind kind)
{
    switch (kind) {
    case HEAT_HOTSPOT_WRITE_FRONTIER:
        return INSIGHT__HEAT__SIGN__KIND__WRITE_FRONTIER;
    case HEAT_HOTSPOT_HOT_WRITES:
        return INSIGHT__HEAT__SIGN__KIND__HOT_WRITES;
    case HEAT_HOTSPOT_HOT_READS:
        return INSIGHT__HEAT__SIGN__KIND__HOT_READS;
    case HEAT_HOTSPOT_HOT_KEY:
        return INSIGHT__HEAT__SIGN__KIND__HOT_KEY;
    case HEAT_HOTSPOT_READ_PRESSURE:
        return INSIGHT__HEAT__SIGN__KIND__READ_PRESSURE;
    case HEAT_HOTSPOT_LARGE_ROWS:
        return INSIGHT__HEAT__SIGN__KIND__LARGE_ROWS;
    case HEAT_HOTSPOT_FEW_RANGES:
        return INSIGHT__HEAT__SIGN__KIND__FEW_RANGES;
    }
    return INSIGHT__HEAT__SIGN__KIND__KIND_UNSPECIFIED;
}

static status hotspot_message(const struct heat_hotspot *hotspot, struct arena *arena,
                              Insight__Heat__Sign **out)
{
    PROTO_NEW(arena, *out, INSIGHT__HEAT__SIGN__INIT);
    (*out)->kind = kind_of(hotspot->kind);
    (*out)->share = hotspot->share;
    (*out)->sentence = arena_string(arena, bytes_of(hotspot->sentence));
    if ((*out)->sentence == NULL)
        return status_out_of_memory();
    TRY(key_message(hotspot->start, arena, &(*out)->start_key));
    TRY(key_message(hotspot->end, arena, &(*out)->end_key));
    return key_message(hotspot->key, arena, &(*out)->key);
}

static status add_hotspots(struct table *table, const struct reading *reading, Insight__Heat *heat)
{
    struct heat_hotspot *hotspots;
    size_t count;
    TRY(heat_hotspots_read(table, reading->from_us, reading->until_us, reading->working, &hotspots,
                           &count));
    heat->signs = arena_alloc(reading->answer, count * sizeof(*heat->signs));
    if (heat->signs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(hotspot_message(&hotspots[i], reading->answer, &heat->signs[heat->n_signs++]));
    return status_ok();
}

/* --- the method --- */

/* Times by those ranges in which something was counted at any of them. */
static size_t cells_of(const struct heat_matrix *matrix)
{
    size_t ranges = 0;
    for (size_t range = 0; range < matrix->range_count; range++) {
        size_t time = 0;
        while (time < matrix->time_count && matrix->times[time].sums[range] == NULL)
            time++;
        ranges += time < matrix->time_count;
    }
    return ranges * matrix->time_count;
}

/* Fewer of both in the same part, and of ranges fewer than there are. */
static void coarsen(const struct heat_matrix *matrix, size_t cells, struct reading *reading)
{
    double part = 0.95 * sqrt((double)reading->most_cells / (double)cells);
    if (reading->most_ranges > matrix->range_count)
        reading->most_ranges = matrix->range_count;
    reading->most_ranges = (size_t)fmax(1, (double)reading->most_ranges * part);
    reading->most_times = (size_t)fmax(1, (double)reading->most_times * part);
}

/* As fine as was asked for, or as fine as the bound of cells lets it be. */
static status read_matrix(struct table *table, struct reading *reading, Insight__Heat *heat)
{
    struct heat_matrix matrix;
    for (;;) {
        TRY(heat_matrix_read(table, reading->from_us, reading->until_us, reading->most_ranges,
                             reading->working, &matrix));
        TRY(heat_matrix_join(&matrix, reading->from_us, reading->until_us, reading->most_times,
                             reading->working));
        size_t cells = cells_of(&matrix);
        if (reading->most_cells == 0 || cells <= reading->most_cells)
            return add_matrix(&matrix, reading, heat);
        coarsen(&matrix, cells, reading);
        arena_reset(reading->working);
    }
}

static status read_table(struct table *table, struct reading *reading, Insight__Heat *heat)
{
    TRY(timestamp_message(reading->from_us, reading->answer, &heat->start_time));
    TRY(timestamp_message(reading->until_us, reading->answer, &heat->end_time));
    reading->working = arena_create(WORKING_MEMORY);
    if (reading->working == NULL)
        return status_out_of_memory();
    status s = read_matrix(table, reading, heat);
    arena_reset(reading->working);
    if (status_is_ok(s))
        s = add_hotspots(table, reading, heat);
    arena_destroy(reading->working);
    return s;
}

status read_heat(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ReadHeatRequest *message = (const void *)request->message;
    struct reading reading;
    Insight__Heat *heat;
    struct table *table;
    TRY(read_request(request, &reading));
    PROTO_NEW(request->arena, heat, INSIGHT__HEAT__INIT);
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->name), &table));
    heat->counts = insight_of(request)->settings->heat;
    status s = read_table(table, &reading, heat);
    table_release(table);
    *response = &heat->base;
    return s;
}
