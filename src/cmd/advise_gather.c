/* See advise_gather.h. Places come from SampleRowKeys where it has many keys, and are made up from
 * the keys that are known by then (advice/place.h) where it has few. */
#include "cmd/advise_gather.h"

#include "advice/place.h"
#include "base/limits.h"
#include "client/table_samples.h"
#include "cmd/advise_rows.h"
#include "cmd/advise_tables.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "transfer/table.h"

#include <stdlib.h>

enum {
    ESTIMATES_MOST = 4, /* rows that are read for their size */
    ATTEMPTS = 3,       /* for each place */
    UNREADABLE_MOST = 3,
    IN_VAIN_MOST = 60,  /* in a row */
    ONE_ROW_RANGES = 4, /* hot ranges that are looked at */
};

struct gathering {
    const struct gather_options *options;
    struct arena *arena;
    struct advice_observations *out;
    struct advice_sample *sample;
    const char *table; /* its full name */
    struct table_samples samples;
    struct sample_rows rows;
    struct advice_range *ranges; /* as many as samples, of which `out` counts those known */
    struct advice_random random;
    uint32_t place;
    bool is_new; /* the last reading brought something */
};

/* --- the schema --- */

/* The oldest that a cell can become; INT64_MAX: it stays. */
static int64_t most_age(const BtAdmin__GcRule *rule)
{
    const int64_t us_per_s = 1000 * 1000;
    if (rule == NULL)
        return INT64_MAX;
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_MAX_AGE && rule->max_age != NULL)
        return rule->max_age->seconds < INT64_MAX / us_per_s ? rule->max_age->seconds * us_per_s
                                                             : INT64_MAX;
    int64_t age = INT64_MAX;
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_UNION && rule->union_ != NULL)
        for (size_t i = 0; i < rule->union_->n_rules; i++) {
            int64_t each = most_age(rule->union_->rules[i]);
            age = each < age ? each : age;
        }
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_INTERSECTION && rule->intersection != NULL) {
        age = rule->intersection->n_rules == 0 ? INT64_MAX : 0;
        for (size_t i = 0; i < rule->intersection->n_rules; i++) {
            int64_t each = most_age(rule->intersection->rules[i]);
            age = each > age ? each : age;
        }
    }
    return age;
}

static struct advice_family family_of(const BtAdmin__Table__ColumnFamiliesEntry *entry)
{
    const BtAdmin__ColumnFamily *family = entry->value;
    struct advice_family out = {.name = entry->key, .most_age_us = INT64_MAX};
    if (family == NULL)
        return out;
    out.has_rule =
        family->gc_rule != NULL && family->gc_rule->rule_case != BT_ADMIN__GC_RULE__RULE__NOT_SET;
    out.most_age_us = most_age(family->gc_rule);
    out.is_aggregate = family->value_type != NULL &&
                       family->value_type->kind_case == BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE;
    return out;
}

static status read_schema(struct gathering *g, const BtAdmin__Table **schema)
{
    TRY(transfer_get_schema(g->options->session, g->options->table_id, g->arena, schema));
    size_t count = (*schema)->n_column_families;
    struct advice_family *families = arena_alloc(g->arena, count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        families[i] = family_of((*schema)->column_families[i]);
    g->out->families = families;
    g->out->family_count = count;
    return status_ok();
}

/* --- rows --- */

/* A row that cannot be read costs the server as much as one that can: a few of them are enough. */
static bool may_read(struct gathering *g)
{
    g->sample->is_cut = g->rows.bytes >= g->options->bytes;
    return !g->sample->is_cut && g->rows.unreadable < UNREADABLE_MOST;
}

/* Whether the last row had been read before the last reading, too. */
static bool is_known(const struct gathering *g, size_t before)
{
    bytes key = g->rows.rows[g->rows.count - 1].key;
    for (size_t i = 0; i < before; i++)
        if (bytes_equal(g->rows.rows[i].key, key))
            return true;
    return false;
}

static status read_place(struct gathering *g, bytes start, bytes end, bool is_reversed,
                         bool *is_whole)
{
    const struct sample_reading reading = {.start = start,
                                           .end = end,
                                           .limit = g->options->rows,
                                           .place = g->place++,
                                           .is_reversed = is_reversed};
    size_t before = g->rows.count;
    TRY(sample_rows_read(&g->rows, &reading, is_whole));
    g->is_new = g->rows.count > before && !is_known(g, before);
    g->sample->places += g->is_new;
    return status_ok();
}

/* The first rows and the last; not all servers read backwards. */
static status read_ends(struct gathering *g)
{
    const bytes none = {0};
    bool is_whole;
    TRY(read_place(g, none, none, false, &is_whole));
    status s = read_place(g, none, none, true, &is_whole);
    if (s.code != STATUS_UNIMPLEMENTED && s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return status_ok();
}

static bytes range_start(const struct gathering *g, size_t index)
{
    return index == 0 ? bytes_make(NULL, 0) : g->samples.all[index - 1].key;
}

/* The first rows of a range between two samples. If these are all that it has, what it takes can be
 * held against them. */
static status read_range(struct gathering *g, size_t index)
{
    const struct table_sample *sample = &g->samples.all[index];
    uint64_t offset = index == 0 ? 0 : g->samples.all[index - 1].offset;
    struct advice_range range = {.start = range_start(g, index), .end = sample->key};
    size_t before = g->rows.count;
    bool is_whole;
    TRY(read_place(g, range.start, range.end, false, &is_whole));
    if (!is_whole)
        return status_ok();
    range.stored = sample->offset > offset ? sample->offset - offset : 0;
    range.rows = g->rows.count - before;
    for (size_t i = before; i < g->rows.count; i++)
        range.read += g->rows.rows[i].size;
    g->ranges[g->out->range_count++] = range;
    return status_ok();
}

/* At half of the places, at most, spread over all ranges. */
static status read_ranges(struct gathering *g)
{
    size_t count = g->samples.count, most = (g->options->places + 1) / 2;
    size_t reads = count < most ? count : most;
    g->ranges = arena_alloc(g->arena, reads * sizeof *g->ranges);
    if (g->ranges == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < reads && may_read(g); i++) {
        size_t first = count * i / reads, behind = count * (i + 1) / reads;
        TRY(read_range(g, first + advice_random_below(&g->random, behind - first)));
    }
    g->out->ranges = g->ranges;
    return status_ok();
}

/* The keys that are known, of rows and samples. */
static status known_keys(const struct gathering *g, struct buffer *out)
{
    buffer_clear(out);
    for (size_t i = 0; i < g->rows.count; i++)
        buffer_append(out, &g->rows.rows[i].key, sizeof(bytes));
    for (size_t i = 0; i < g->samples.count; i++)
        if (g->samples.all[i].key.size > 0)
            buffer_append(out, &g->samples.all[i].key, sizeof(bytes));
    return out->failed ? status_out_of_memory() : status_ok();
}

static status read_random_place(struct gathering *g, struct buffer *keys, struct buffer *place)
{
    const bytes none = {0};
    bool is_whole;
    TRY(known_keys(g, keys));
    advice_place((const bytes *)(const void *)keys->data, keys->size / sizeof(bytes), &g->random,
                 place);
    if (place->failed)
        return status_out_of_memory();
    return read_place(g, buffer_bytes(place), none, false, &is_whole);
}

/* Until there are enough, or it seems that all rows are known. */
static status read_random_places(struct gathering *g)
{
    struct buffer keys = {0}, place = {0};
    status s = status_ok();
    size_t most = ATTEMPTS * g->options->places, in_vain = 0;
    for (size_t i = 0; i < most && in_vain < IN_VAIN_MOST && g->rows.count > 0; i++) {
        if (!status_is_ok(s) || g->sample->places >= g->options->places || !may_read(g))
            break;
        s = read_random_place(g, &keys, &place);
        in_vain = g->is_new ? 0 : in_vain + 1;
    }
    buffer_free(&keys);
    buffer_free(&place);
    return s;
}

/* The largest of the rows that were cut, of those smaller than that. */
static struct advice_row *largest_cut(const struct gathering *g, uint64_t below)
{
    struct advice_row *largest = NULL;
    for (size_t i = 0; i < g->rows.count; i++) {
        struct advice_row *row = &g->rows.rows[i];
        if (row->is_cut && row->size < below && (largest == NULL || row->size > largest->size))
            largest = row;
    }
    return largest;
}

/* An estimate is never below what was seen, so that no row is estimated twice. Nobody can look into
 * one that cannot be read. */
static status estimate_rows(struct gathering *g)
{
    uint64_t below = LIMIT_ROW_BYTES;
    for (size_t i = 0; i < ESTIMATES_MOST; i++) {
        struct advice_row *row = largest_cut(g, below);
        if (row == NULL)
            return status_ok();
        below = row->size;
        TRY(sample_rows_estimate(&g->rows, row));
    }
    return status_ok();
}

static status read_rows(struct gathering *g)
{
    TRY(read_ends(g));
    TRY(read_ranges(g));
    TRY(read_random_places(g));
    sample_rows_sort(&g->rows);
    TRY(estimate_rows(g));
    g->out->rows = g->rows.rows;
    g->out->row_count = g->rows.count;
    g->sample->bytes = g->rows.bytes;
    return status_ok();
}

/* --- heat --- */

/* A range that begins or ends elsewhere is another one. */
static bool is_same_range(const struct advice_heat *a, const struct advice_heat *b)
{
    return bytes_equal(a->start, b->start) && bytes_equal(a->end, b->end);
}

/* Of the ranges that were hot enough to matter, the first few. */
static status find_single_rows(struct gathering *g, struct advice_heat *heat, size_t count)
{
    size_t looked_at = 0;
    for (size_t i = 0; i < count && looked_at < ONE_ROW_RANGES; i++) {
        size_t first = 0;
        while (!is_same_range(&heat[first], &heat[i]))
            first++;
        if (first < i)
            continue;
        bool is_one;
        TRY(sample_rows_is_one(&g->rows, heat[i].start, heat[i].end, &is_one));
        looked_at++;
        for (size_t j = i; j < count; j++)
            heat[j].is_one_row |= is_one && is_same_range(&heat[i], &heat[j]);
    }
    return status_ok();
}

static status read_heat(struct gathering *g)
{
    struct advice_heat *heat;
    size_t count;
    TRY(hot_tablets_list(g->options->session, g->table, g->arena, &heat, &count,
                         &g->sample->has_heat));
    TRY(find_single_rows(g, heat, count));
    g->out->heat = heat;
    g->out->heat_count = count;
    return status_ok();
}

/* --- all --- */

static status name_table(struct gathering *g)
{
    struct buffer name = {0};
    buffer_append_format(&name, "%s/tables/%s", client_session_instance(g->options->session),
                         g->options->table_id);
    g->table = name.failed ? NULL : arena_string(g->arena, buffer_bytes(&name));
    buffer_free(&name);
    return g->table == NULL ? status_out_of_memory() : status_ok();
}

status gather(const struct gather_options *options, struct arena *arena,
              struct advice_observations *out, struct advice_sample *sample)
{
    const BtAdmin__Table *schema;
    struct gathering g = {.options = options,
                          .arena = arena,
                          .out = out,
                          .sample = sample,
                          .random = {.state = options->seed}};
    *out = (struct advice_observations){.table_id = options->table_id, .now_us = options->now_us};
    *sample = (struct advice_sample){0};
    TRY(name_table(&g));
    TRY(read_schema(&g, &schema));
    g.rows = (struct sample_rows){.session = options->session,
                                  .table = g.table,
                                  .families = out->families,
                                  .family_count = out->family_count,
                                  .arena = arena};
    TRY(table_samples_read(options->session, g.table, arena, &g.samples));
    out->table_size = table_samples_size(&g.samples);
    TRY(read_rows(&g));
    TRY(read_heat(&g));
    return siblings_list(options->session, schema, options->table_id, arena, out);
}
