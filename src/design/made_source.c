/* See made_source.h. Nothing is read, so that no row is too large, and no reading ends early. */
#include "design/made_source.h"

#include "advisor/siblings.h"

static struct made_source *made_source_of(const struct advice_source *source)
{
    return source->context;
}

static status read_schema(struct advice_source *source, struct advice_observations *out)
{
    const struct design_table *table = made_source_of(source)->made->table;
    out->families = table->families;
    out->family_count = table->family_count;
    return status_ok();
}

/* --- rows --- */

/* The average size of some of its rows. */
static status average_size(const struct made_table *made, uint64_t *out)
{
    enum { LOOKED_AT = 50 };
    uint64_t sum = 0;
    size_t count = made->count < LOOKED_AT ? made->count : LOOKED_AT;
    for (size_t i = 0; i < count; i++) {
        struct advice_row row;
        TRY(made_cells(made, &made->rows[made->count * i / count], &row));
        sum += row.size;
    }
    *out = count > 0 ? sum / count : 0;
    return status_ok();
}

/* Ranges of as many rows each, where there are many. */
static status read_cuts(struct advice_source *source, struct advice_cuts *out)
{
    enum { CUTS = 64, ROWS_LEAST = 1000 };
    const struct made_table *made = made_source_of(source)->made;
    size_t count = made->count < ROWS_LEAST ? 1 : CUTS;
    uint64_t average;
    TRY(average_size(made, &average));
    double size = (double)average * (double)made->count * made_scale(made);
    for (size_t i = 1; i <= count; i++) {
        const struct advice_cut cut = {.key = i < count ? made->rows[made->count * i / count].key
                                                        : bytes_make(NULL, 0),
                                       .offset = (uint64_t)(size * (double)i / (double)count)};
        TRY(advice_cuts_add(out, &cut));
    }
    return status_ok();
}

/* A row all of whose cells were collected is not there. */
static status add_row(const struct made_table *made, const struct made_row *row,
                      const struct sample_reading *reading, struct sample_rows *rows)
{
    struct advice_row made_row;
    TRY(made_cells(made, row, &made_row));
    made_row.place = reading->place;
    return made_row.cell_count > 0 ? sample_rows_add(rows, &made_row) : status_ok();
}

static status read_rows(struct advice_source *source, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole)
{
    const struct made_table *made = made_source_of(source)->made;
    size_t first = made_find(made, reading->start), before = rows->count;
    size_t behind = reading->end.size == 0 ? made->count : made_find(made, reading->end);
    size_t at = 0, count = behind > first ? behind - first : 0;
    for (; at < count && rows->count - before < reading->limit; at++) {
        size_t row = reading->is_reversed ? behind - 1 - at : first + at;
        TRY(add_row(made, &made->rows[row], reading, rows));
    }
    *is_whole = at == count && rows->count - before < reading->limit;
    return status_ok();
}

/* Made rows are as large as they say. */
static status estimate_row(struct advice_source *source, struct sample_rows *rows,
                           struct advice_row *row)
{
    (void)source;
    (void)rows;
    (void)row;
    return status_ok();
}

static status is_one_row(struct advice_source *source, struct sample_rows *rows, bytes start,
                         bytes end, bool *is_one)
{
    const struct made_table *made = made_source_of(source)->made;
    size_t behind = end.size == 0 ? made->count : made_find(made, end);
    (void)rows;
    *is_one = made_find(made, start) + 1 == behind;
    return status_ok();
}

/* What is large is in the rows, all of which are as they say. */
static status read_weights(struct advice_source *source, struct advice_observations *out)
{
    (void)source;
    (void)out;
    return status_ok();
}

/* --- heat --- */

static status read_heat(struct advice_source *source, struct advice_observations *out,
                        bool *is_answered)
{
    const struct load *load = made_source_of(source)->load;
    *is_answered = true;
    out->hotspots = load->hotspots;
    out->hotspot_count = load->hotspot_count;
    out->tablets = &load->tablet;
    out->tablet_count = load->tablet.count > 0;
    out->rewritten = load->rewritten;
    out->usage = load->usage;
    return status_ok();
}

/* --- other tables --- */

static bool has_family(const struct design_table *table, const char *name)
{
    for (size_t i = 0; i < table->family_count; i++)
        if (strcmp(table->families[i].name, name) == 0)
            return true;
    return false;
}

/* Mostly in the same order. */
static bool has_same_families(const struct design_table *one, const struct design_table *other)
{
    if (one->family_count != other->family_count)
        return false;
    for (size_t i = 0; i < one->family_count; i++)
        if (strcmp(one->families[i].name, other->families[i].name) != 0 &&
            !has_family(other, one->families[i].name))
            return false;
    return true;
}

/* Of the others' values no more is known than how long they are. */
static uint64_t size_of(const struct design_table *table)
{
    double row = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct design_column *column = &table->columns[i];
        double middle = ((double)column->size_from + (double)column->size_to) / 2;
        row += middle * column->share * (double)column->count;
    }
    return (uint64_t)(row * (double)table->rows);
}

static status read_siblings(struct advice_source *source, struct advice_observations *out)
{
    const struct made_source *made = made_source_of(source);
    const struct design_table *own = made->made->table;
    struct advice_sibling *siblings =
        arena_zalloc(source->arena, made->design->count * sizeof *siblings);
    if (siblings == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < made->design->count; i++) {
        const struct design_table *other = &made->design->tables[i];
        if (!may_be_parts(own->name, other->name))
            continue;
        struct advice_sibling *sibling = &siblings[out->sibling_count++];
        *sibling = (struct advice_sibling){.id = other->name,
                                           .is_known = out->sibling_count <= SIBLINGS_KNOWN};
        if (!sibling->is_known)
            continue;
        sibling->has_same_families = has_same_families(own, other);
        sibling->size = size_of(other);
    }
    out->siblings = siblings;
    out->table_count = made->design->count;
    return status_ok();
}

void made_source_init(struct made_source *made, struct arena *arena, struct advice_source *out)
{
    static const struct advice_source_calls calls = {.read_schema = read_schema,
                                                     .read_cuts = read_cuts,
                                                     .read_rows = read_rows,
                                                     .estimate_row = estimate_row,
                                                     .is_one_row = is_one_row,
                                                     .read_weights = read_weights,
                                                     .read_heat = read_heat,
                                                     .read_siblings = read_siblings};
    *out = (struct advice_source){.arena = arena, .context = made, .calls = &calls};
}
