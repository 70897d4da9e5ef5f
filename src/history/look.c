/* See look.h. */
#include "history/look.h"

#include "base/check.h"
#include "base/limits.h"

#define PREFIX "trestle_"
/* What asks for all this is not what is asked about. */
#define OWN_CALLS "trestle.insight.v1.Insight/"

enum { LOOK_MEMORY = 16 << 20 };

struct gathering {
    struct history_look *look;
    status result;
};

/* The value of a label; NULL: it has none. */
static const char *label_of(const struct metric_sample *sample, const char *name)
{
    for (size_t i = 0; i < sample->label_count; i++)
        if (strcmp(sample->labels[i].name, name) == 0)
            return sample->labels[i].value;
    return NULL;
}

static const char *short_name(const struct metric_sample *sample)
{
    bool has_prefix = bytes_start_with(bytes_of(sample->name), bytes_of(PREFIX));
    return sample->name + (has_prefix ? sizeof PREFIX - 1 : 0);
}

static bool is_clients(const char *method)
{
    return !bytes_start_with(bytes_of(method), bytes_of(OWN_CALLS));
}

/* --- calls --- */

/* NULL: it is not there. */
static struct looked_method *find_method(const struct history_look *look, const char *name)
{
    struct looked_method *methods = look->methods.items;
    for (size_t i = 0; i < look->methods.count; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static status method_of(struct history_look *look, const char *name, struct looked_method **out)
{
    *out = find_method(look, name);
    if (*out != NULL)
        return status_ok();
    struct looked_method method = {.name = arena_string(look->arena, bytes_of(name))};
    if (method.name == NULL)
        return status_out_of_memory();
    TRY(vector_add(&look->methods, look->arena, &method, sizeof method));
    *out = find_method(look, name);
    return status_ok();
}

static status add_calls(struct history_look *look, const struct metric_sample *sample)
{
    const char *name = label_of(sample, "method"), *code = label_of(sample, "code");
    struct looked_method *method;
    if (name == NULL || code == NULL || !is_clients(name))
        return status_ok();
    TRY(method_of(look, name, &method));
    method->calls += sample->value;
    method->errors += strcmp(code, "OK") == 0 ? 0 : sample->value;
    return status_ok();
}

/* All histograms of calls have the same bounds. */
static void add_times(struct history_look *look, const struct metric_sample *sample)
{
    const char *name = label_of(sample, "method");
    uint64_t below = 0;
    if (name == NULL || !is_clients(name))
        return;
    look->bucket_count = HISTORY_BUCKETS;
    for (size_t i = 0; i < METRIC_BOUNDS; i++) {
        look->buckets[i].up_to_us = (uint64_t)(sample->bounds[i] * 1e6 + 0.5);
        look->buckets[i].count += sample->buckets[i] - below;
        below = sample->buckets[i];
    }
    look->buckets[METRIC_BOUNDS].up_to_us = UINT64_MAX;
    look->buckets[METRIC_BOUNDS].count += sample->count - below;
}

/* --- lines --- */

/* NULL: it is not there. */
static struct looked_table *find_table(const struct history_look *look, const char *name)
{
    struct looked_table *tables = look->tables.items;
    for (size_t i = 0; i < look->tables.count; i++)
        if (strcmp(tables[i].name, name) == 0)
            return &tables[i];
    return NULL;
}

static status table_of(struct history_look *look, const char *name, struct looked_table **out)
{
    *out = find_table(look, name);
    if (*out != NULL)
        return status_ok();
    struct looked_table table = {.name = arena_string(look->arena, bytes_of(name))};
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        table.values[line] = NAN;
    if (table.name == NULL)
        return status_out_of_memory();
    TRY(vector_add(&look->tables, look->arena, &table, sizeof table));
    *out = find_table(look, name);
    return status_ok();
}

/* The series of all other tables has a name that is none of a table. */
static status add_to_table(struct history_look *look, const struct metric_sample *sample,
                           enum history_line line)
{
    const char *name = label_of(sample, "table");
    struct looked_table *table;
    if (name == NULL || strchr(name, '/') == NULL)
        return status_ok();
    TRY(table_of(look, name, &table));
    table->values[line] = sample->value;
    return status_ok();
}

static status add_to_line(struct history_look *look, const struct metric_sample *sample)
{
    const char *name = short_name(sample);
    for (enum history_line line = 0; line < HISTORY_LINES; line++) {
        const struct history_line_row *row = history_line_row(line);
        if (row->source == NULL || strcmp(row->source, name) != 0)
            continue;
        if (row->subject == HISTORY_OF_TABLE)
            return add_to_table(look, sample, line);
        look->values[line] = (isnan(look->values[line]) ? 0 : look->values[line]) + sample->value;
    }
    return status_ok();
}

static status add(struct history_look *look, const struct metric_sample *sample)
{
    const char *name = short_name(sample);
    if (strcmp(name, "rpcs_total") == 0)
        return add_calls(look, sample);
    if (strcmp(name, "rpc_seconds") == 0)
        add_times(look, sample);
    else
        return add_to_line(look, sample);
    return status_ok();
}

static void visit(void *context, const struct metric_sample *sample)
{
    struct gathering *gathering = context;
    if (status_is_ok(gathering->result))
        gathering->result = add(gathering->look, sample);
}

status history_look_take(struct metrics *metrics, int64_t steady_us, struct history_look **out)
{
    struct arena *arena = arena_create(LOOK_MEMORY);
    struct history_look *look = arena == NULL ? NULL : arena_zalloc(arena, sizeof *look);
    struct gathering gathering = {.look = look, .result = status_ok()};
    *out = NULL;
    if (look == NULL) {
        arena_destroy(arena);
        return status_out_of_memory();
    }
    look->arena = arena;
    look->steady_us = steady_us;
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        look->values[line] = NAN;
    metrics_visit(metrics, visit, &gathering);
    if (status_is_ok(gathering.result))
        *out = look;
    else
        history_look_destroy(look);
    return gathering.result;
}

void history_look_destroy(struct history_look *look)
{
    if (look != NULL)
        arena_destroy(look->arena);
}

/* --- what two say --- */

static double seconds_between(const struct history_look *now, const struct history_look *before)
{
    return fmax((double)(now->steady_us - before->steady_us) / 1e6, 1e-6);
}

/* A counter never falls, but what stands for it may be another one by now. */
static double value_between(enum history_line line, double now, double before, double seconds)
{
    if (history_line_row(line)->how != HISTORY_RATE)
        return now;
    return fmax(now - (isnan(before) ? 0 : before), 0) / seconds;
}

static void set_lines(const struct history_look *now, const struct history_look *before,
                      struct history_point *out)
{
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        if (!isnan(now->values[line]))
            out->values[line] =
                value_between(line, now->values[line], before->values[line], out->seconds);
}

static status set_methods(const struct history_look *now, const struct history_look *before,
                          struct arena *arena, struct history_point *out)
{
    static const struct looked_method none = {.name = ""};
    const struct looked_method *methods = now->methods.items;
    struct history_method *risen = arena_alloc(arena, (now->methods.count + 1) * sizeof *risen);
    size_t count = 0;
    double calls = 0, errors = 0;
    if (risen == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < now->methods.count; i++) {
        const struct looked_method *found = find_method(before, methods[i].name);
        const struct looked_method *was = found == NULL ? &none : found;
        double rise = fmax(methods[i].calls - was->calls, 0);
        calls += rise;
        errors += fmax(methods[i].errors - was->errors, 0);
        if (rise == 0)
            continue;
        const char *name = arena_string(arena, bytes_of(methods[i].name));
        if (name == NULL)
            return status_out_of_memory();
        risen[count++] = (struct history_method){name, rise / out->seconds};
    }
    out->values[HISTORY_requests] = calls / out->seconds;
    out->values[HISTORY_errors] = errors / out->seconds;
    out->methods = risen;
    out->method_count = history_methods_keep(risen, count);
    return status_ok();
}

static void set_calls(const struct history_look *now, const struct history_look *before,
                      struct history_point *out)
{
    for (size_t i = 0; i < now->bucket_count; i++) {
        uint64_t was = i < before->bucket_count ? before->buckets[i].count : 0;
        if (now->buckets[i].count > was)
            history_point_add_calls(out, now->buckets[i].up_to_us, now->buckets[i].count - was);
    }
    history_point_set_quantiles(out);
}

status history_look_point(const struct history_look *now, const struct history_look *before,
                          int64_t from_us, struct arena *arena, struct history_point *out)
{
    history_point_init(out, from_us, seconds_between(now, before));
    set_lines(now, before, out);
    set_calls(now, before, out);
    return set_methods(now, before, arena, out);
}

/* A table's counters never fall: it was deleted, and made again under its name. */
static bool is_anew(const struct looked_table *now, const struct looked_table *was)
{
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        if (history_line_row(line)->how == HISTORY_RATE && now->values[line] < was->values[line])
            return true;
    return false;
}

bool history_look_table(const struct history_look *now, const struct history_look *before,
                        const struct looked_table *table, int64_t from_us,
                        struct history_point *out)
{
    const struct looked_table *was = find_table(before, table->name);
    if (was != NULL && is_anew(table, was))
        was = NULL;
    bool has_moved = was == NULL;
    history_point_init(out, from_us, seconds_between(now, before));
    for (enum history_line line = 0; line < HISTORY_LINES; line++) {
        double past = was == NULL ? NAN : was->values[line];
        if (isnan(table->values[line]))
            continue;
        has_moved = has_moved || table->values[line] != past;
        out->values[line] = value_between(line, table->values[line], past, out->seconds);
    }
    return has_moved;
}
