/* What is made of a description, and played over it, takes time and memory: a file that would take
 * minutes is refused, in words that say by what. See design.h for how much that is. */
#include "advisor/sample_rows.h"
#include "design/kind.h"
#include "design/read_private.h"

/* The work that all tables and kinds of a description take. */
struct work {
    uint64_t accesses;
    uint64_t families;
    uint64_t cells;     /* of a row of each */
    uint64_t key_bytes; /* of a row of each */
    uint64_t properties;
};

/* Of the column in a row, as many as are looked at. */
static double cells_of(const struct design_table *table, const struct design_column *column)
{
    int32_t most = table->families[column->family].most_versions;
    bool is_bounded = most > 0 && (uint64_t)most < column->writes;
    double versions = is_bounded ? (double)most : (double)column->writes;
    return versions * (double)column->count * column->share;
}

static uint64_t cells_in_row(const struct design_table *table)
{
    double cells = 0;
    for (size_t i = 0; i < table->column_count; i++)
        cells += cells_of(table, &table->columns[i]);
    return cells < SAMPLE_CELLS_MOST ? (uint64_t)cells : SAMPLE_CELLS_MOST;
}

static void add_table(const struct design_table *table, struct work *out)
{
    out->accesses += table->access_count;
    out->families += table->family_count;
    out->cells += cells_in_row(table);
    out->key_bytes += key_size(&table->key);
}

static status check(const struct yaml_value *root, uint64_t count, int most, const char *what)
{
    if (count <= (uint64_t)most)
        return status_ok();
    return yaml_error(root,
                      "all tables and kinds together have %llu %s, and %d are looked at: put "
                      "them into several files",
                      (unsigned long long)count, what, most);
}

status check_work(const struct yaml_value *root, const struct design *design)
{
    struct work all = {.accesses = 0};
    for (size_t i = 0; i < design->count; i++)
        add_table(&design->tables[i], &all);
    for (size_t i = 0; i < design->kind_count; i++) {
        all.accesses += design->kinds[i].call_count;
        all.properties += design->kinds[i].property_count;
    }
    TRY(check(root, all.accesses, DESIGN_ALL_ACCESSES_MOST, "kinds of access"));
    TRY(check(root, all.families, DESIGN_ALL_FAMILIES_MOST, "families"));
    TRY(check(root, all.cells, DESIGN_ALL_CELLS_MOST, "cells in a row of each"));
    TRY(check(root, all.key_bytes, DESIGN_ALL_KEY_BYTES_MOST, "bytes in a key of each"));
    return check(root, all.properties, DESIGN_ALL_PROPERTIES_MOST, "properties");
}

size_t design_events(const struct design *design)
{
    size_t accesses = 0;
    for (size_t i = 0; i < design->count; i++)
        accesses += design->tables[i].access_count;
    return DESIGN_EVENTS_MOST / (accesses + !accesses);
}
