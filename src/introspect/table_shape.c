/* ReadTableShape: what a table's rows are like, by a sample of them. Of each family how many cells
 * and bytes rows have, and how old these are; and what another rule of garbage collection would
 * remove of it.
 *
 * What it takes is bounded: some hundred short reads as for advice (table_source.h), TABLE_US and
 * TABLE_BYTES, and then the time that counting rows takes (table_rows.h). */
#include "advisor/thresholds.h"
#include "base/vector.h"
#include "bigtable/names.h"
#include "bigtable/schema_message.h"
#include "introspect/methods.h"
#include "introspect/table_rows.h"
#include "introspect/table_source.h"
#include "wire/timestamps.h"

#include <stdlib.h>

enum {
    PLACES = 100,
    ROWS = 10,
    TABLE_BYTES = 8 * 1000 * 1000,
    TABLE_MEMORY = 128 << 20,
    SEED = 1, /* the same table is looked at in the same places */
};

#define TABLE_US (2 * SECOND_US)

/* The rule that is in question, and of which family. */
struct proposal {
    const char *family; /* empty: none is in question */
    const struct gc_rule *rule;
};

/* A family, in the sample. */
struct family_shape {
    uint64_t rows;
    uint64_t columns;
    uint64_t cells;
    uint64_t size;
    uint64_t removed_cells;
    uint64_t removed_size;
    struct vector times; /* int64_t, of cells whose timestamps are times */
};

struct shaping {
    const struct admin_request *request;
    struct table *table;
    struct proposal proposal;
    struct arena *working;
    struct advice_observations seen;
    struct advice_sample sample;
    struct family_shape *families; /* as many as seen.families */
};

/* --- the sample --- */

static status say_nothing(struct advice_source *source, struct advice_observations *out)
{
    (void)source;
    (void)out;
    return status_ok();
}

static status tell_no_heat(struct advice_source *source, struct advice_observations *out,
                           bool *is_answered)
{
    *is_answered = false;
    return say_nothing(source, out);
}

/* Rows alone: what else advice asks for is not needed. */
static status read_sample(struct shaping *s, const char *instance)
{
    struct table_source table = {.request = s->request, .table = s->table, .instance = instance};
    struct gather_options wanted = {.table_id = name_id(table_name(s->table)),
                                    .now_us = cluster_wall_us(s->request->bigtable->cluster),
                                    .places = PLACES,
                                    .rows = ROWS,
                                    .bytes = TABLE_BYTES,
                                    .time_limit_us = TABLE_US,
                                    .seed = SEED};
    table_source_init(&table, s->working, &wanted.source);
    struct advice_source_calls calls = *wanted.source.calls;
    calls.read_weights = say_nothing;
    calls.read_siblings = say_nothing;
    calls.read_heat = tell_no_heat;
    wanted.source.calls = &calls;
    return gather(&wanted, &s->seen, &s->sample);
}

/* --- families --- */

static status take_cell(struct shaping *s, const struct advice_cell *cell, int32_t newer)
{
    struct family_shape *family = &s->families[cell->family];
    uint64_t size = cell->qualifier.size + cell->size;
    bool is_in_question = strcmp(s->seen.families[cell->family].name, s->proposal.family) == 0 &&
                          gc_condemns(s->proposal.rule, cell->timestamp_us, newer, s->seen.now_us);
    family->cells++;
    family->size += size;
    family->removed_cells += is_in_question;
    family->removed_size += is_in_question ? size : 0;
    return cell->timestamp_us < FIRST_TIME_US
               ? status_ok()
               : vector_add(&family->times, s->working, &cell->timestamp_us,
                            sizeof cell->timestamp_us);
}

static status take_row(struct shaping *s, const struct advice_row *row)
{
    int32_t newer = 0;
    for (size_t i = 0; i < row->cell_count; i++) {
        const struct advice_cell *cell = &row->cells[i];
        bool begins_family = i == 0 || cell[-1].family != cell->family;
        bool begins_column = begins_family || !bytes_equal(cell[-1].qualifier, cell->qualifier);
        s->families[cell->family].rows += begins_family;
        s->families[cell->family].columns += begins_column;
        newer = begins_column ? 0 : newer + 1;
        TRY(take_cell(s, cell, newer));
    }
    return status_ok();
}

static status take_rows(struct shaping *s)
{
    s->families = arena_zalloc(s->working, (s->seen.family_count + 1) * sizeof *s->families);
    if (s->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < s->seen.row_count; i++)
        TRY(take_row(s, &s->seen.rows[i]));
    return status_ok();
}

/* --- the answer --- */

static int order_of_times(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Of a day, an hour, a minute and a second the first that is within a hundredth of the time's age
 * leaves no rest; if none is, the time is told as it is. */
static int64_t rough_time(int64_t time_us, int64_t now_us)
{
    static const int64_t UNITS[] = {86400, 3600, 60, 1};
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (UNITS[i] * SECOND_US <= (now_us - time_us) / 100)
            return time_us - time_us % (UNITS[i] * SECOND_US);
    return time_us;
}

static status tell_time(const struct shaping *s, int64_t time_us, Pb__Timestamp **out)
{
    const Insight__ReadTableShapeRequest *message = (const void *)s->request->message;
    int64_t told_us = message->rough_times ? rough_time(time_us, s->seen.now_us) : time_us;
    return timestamp_message(told_us, s->request->arena, out);
}

static status tell_times(const struct shaping *s, const struct vector *times,
                         Insight__TableShape__Family *out)
{
    int64_t *all = times->items;
    if (times->count == 0)
        return status_ok();
    qsort(all, times->count, sizeof *all, order_of_times);
    TRY(tell_time(s, all[0], &out->oldest_time));
    TRY(tell_time(s, all[times->count / 2], &out->median_time));
    return tell_time(s, all[times->count - 1], &out->newest_time);
}

static status tell_family(const struct shaping *s, size_t which, Insight__TableShape__Family **out)
{
    const struct family_shape *family = &s->families[which];
    const char *name = s->seen.families[which].name;
    struct arena *arena = s->request->arena;
    PROTO_NEW(arena, *out, INSIGHT__TABLE_SHAPE__FAMILY__INIT);
    (*out)->id = arena_string(arena, bytes_of(name));
    if ((*out)->id == NULL)
        return status_out_of_memory();
    (*out)->rows = (int64_t)family->rows;
    (*out)->columns = (int64_t)family->columns;
    (*out)->cells = (int64_t)family->cells;
    (*out)->bytes = (int64_t)family->size;
    (*out)->removed_cells = (int64_t)family->removed_cells;
    (*out)->removed_bytes = (int64_t)family->removed_size;
    return tell_times(s, &family->times, *out);
}

static status tell_families(const struct shaping *s, Insight__TableShape *out)
{
    struct arena *arena = s->request->arena;
    out->families = arena_alloc(arena, (s->seen.family_count + 1) * sizeof *out->families);
    if (out->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < s->seen.family_count; i++)
        TRY(tell_family(s, i, &out->families[out->n_families++]));
    return status_ok();
}

static status tell_rows(const struct shaping *s, Insight__TableShape *out)
{
    struct table_rows rows;
    bytes *keys = arena_alloc(s->working, (s->seen.row_count + 1) * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < s->seen.row_count; i++)
        keys[i] = s->seen.rows[i].key;
    TRY(table_count_rows(s->request, s->table, keys, s->seen.row_count, s->seen.table_size, &rows));
    out->rows = (int64_t)rows.count;
    out->is_exact = rows.is_exact;
    return status_ok();
}

static status tell(const struct shaping *s, const ProtobufCMessage **response)
{
    Insight__TableShape *out;
    PROTO_NEW(s->request->arena, out, INSIGHT__TABLE_SHAPE__INIT);
    TRY(tell_rows(s, out));
    TRY(tell_families(s, out));
    out->table_bytes = (int64_t)s->seen.table_size;
    out->sampled_rows = (int64_t)s->seen.row_count;
    for (size_t i = 0; i < s->seen.row_count; i++) {
        out->sampled_bytes += (int64_t)s->seen.rows[i].size;
        out->cut_rows += s->seen.rows[i].is_cut;
    }
    *response = &out->base;
    return status_ok();
}

/* --- the request --- */

static status read_proposal(const struct admin_request *request, struct table *table,
                            struct proposal *out)
{
    const Insight__ReadTableShapeRequest *message = (const void *)request->message;
    out->family = message->family;
    out->rule = NULL;
    if (message->family[0] == '\0' && message->gc_rule == NULL)
        return status_ok();
    if (schema_family_named(table_schema(table), bytes_of(message->family)) == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "the table has no family \"%s\"",
                           message->family);
    return gc_rule_from_message(message->gc_rule, request->arena, &out->rule);
}

static status look(struct shaping *s, const ProtobufCMessage **response)
{
    const Insight__ReadTableShapeRequest *message = (const void *)s->request->message;
    char *instance = name_parent(s->request->arena, message->name);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(read_proposal(s->request, s->table, &s->proposal));
    TRY(read_sample(s, instance));
    TRY(take_rows(s));
    return tell(s, response);
}

status read_table_shape(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ReadTableShapeRequest *message = (const void *)request->message;
    struct shaping shaping = {.request = request};
    TRY(name_check_table(message->name));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->name), &shaping.table));
    shaping.working = arena_create(TABLE_MEMORY);
    status s = shaping.working == NULL ? status_out_of_memory() : look(&shaping, response);
    arena_destroy(shaping.working);
    table_release(shaping.table);
    return s;
}
