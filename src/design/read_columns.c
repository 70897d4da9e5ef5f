/* See read_private.h: families and columns. */
#include "design/read_private.h"

#include "bigtable/names.h"

/* The status of a check, with the place in front of its words. */
static status at_place(const struct yaml_value *value, status s)
{
    if (status_is_ok(s))
        return s;
    status placed = yaml_error(value, "%s", status_message(s));
    status_free(s);
    return placed;
}

/* --- families --- */

/* The cells that a rule of garbage collection leaves. */
struct kept {
    int64_t age_us;   /* INT64_MAX: any */
    int32_t versions; /* 0: any number */
};

static status read_rule(const struct yaml_value *value, struct kept *out);

static void keep_less(struct kept *out, const struct kept *other)
{
    if (other->age_us < out->age_us)
        out->age_us = other->age_us;
    if (out->versions == 0 || (other->versions != 0 && other->versions < out->versions))
        out->versions = other->versions;
}

/* Where all rules have to hold for a cell to go, as many versions stay as are young enough. */
static status read_rules(const struct yaml_value *list, bool any, struct kept *out)
{
    TRY(field_is_list(list, 1));
    out->age_us = any ? INT64_MAX : 0;
    for (size_t i = 0; i < list->count; i++) {
        struct kept each;
        TRY(read_rule(list->items[i], &each));
        if (any)
            keep_less(out, &each);
        else if (each.age_us > out->age_us)
            out->age_us = each.age_us;
    }
    return status_ok();
}

static status read_rule(const struct yaml_value *value, struct kept *out)
{
    struct field fields[] = {
        {.name = "versions"}, {.name = "age"}, {.name = "any"}, {.name = "all"}};
    enum { VERSIONS, AGE, ANY, ALL, COUNT };
    uint64_t versions = 0;
    size_t given = 0;
    TRY(fields_take(value, "a gc rule", fields, COUNT));
    for (size_t i = 0; i < COUNT; i++)
        given += fields[i].value != NULL;
    if (given != 1)
        return yaml_error(value, "a gc rule is one of versions, age, any: [RULE, RULE], all: "
                                 "[RULE, RULE]");
    *out = (struct kept){.age_us = INT64_MAX};
    TRY(field_number(fields[VERSIONS].value, 1, INT32_MAX, &versions));
    TRY(field_duration(fields[AGE].value, &out->age_us));
    if (out->age_us <= 0)
        return yaml_error(fields[AGE].value, "an age is more than nothing");
    out->versions = (int32_t)versions;
    if (fields[ANY].value != NULL || fields[ALL].value != NULL) {
        bool any = fields[ANY].value != NULL;
        return read_rules(fields[any ? ANY : ALL].value, any, out);
    }
    return status_ok();
}

static status read_family(const struct yaml_value *name, const struct yaml_value *value,
                          struct advice_family *out)
{
    static const char *const aggregates[] = {"sum", "min", "max", "hll", NULL};
    struct field fields[] = {{.name = "gc"}, {.name = "aggregate"}};
    struct kept kept = {.age_us = INT64_MAX};
    int aggregate = -1;
    TRY(at_place(name, name_check_family(name->text)));
    if (value->kind != YAML_TEXT || value->text[0] != '\0')
        TRY(fields_take(value, "a family", fields, sizeof fields / sizeof *fields));
    if (fields[0].value != NULL)
        TRY(read_rule(fields[0].value, &kept));
    TRY(field_choice(fields[1].value, aggregates, &aggregate));
    *out = (struct advice_family){.name = name->text,
                                  .has_rule = fields[0].value != NULL,
                                  .is_aggregate = aggregate >= 0,
                                  .most_age_us = kept.age_us,
                                  .most_versions = kept.versions};
    return status_ok();
}

status read_families(const struct yaml_value *value, struct arena *arena, struct design_table *out)
{
    if (value->kind != YAML_MAP || value->count == 0)
        return yaml_error(value, "families are NAME: {gc: RULE}, one at least");
    out->family_count = value->count;
    out->families = arena_zalloc(arena, value->count * sizeof *out->families);
    if (out->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(read_family(value->keys[i], value->items[i], &out->families[i]));
    return status_ok();
}

/* --- columns --- */

enum column_field {
    COLUMN_NAME,
    COLUMN_FAMILY,
    COLUMN_COUNT,
    COLUMN_SIZE,
    COLUMN_WRITES,
    COLUMN_VALUES,
    COLUMN_IN,
    COLUMN_FIELDS,
};

/* Where there is but one family, it need not be named. */
static status find_family(const struct yaml_value *column, const struct yaml_value *value,
                          const struct design_table *table, uint32_t *out)
{
    const char *name = table->family_count == 1 ? table->families[0].name : NULL;
    TRY(field_text(value, &name));
    if (name == NULL)
        return yaml_error(column, "a column needs the field family where there are several");
    for (size_t i = 0; i < table->family_count; i++)
        if (strcmp(table->families[i].name, name) == 0) {
            *out = (uint32_t)i;
            return status_ok();
        }
    return yaml_error(value, "the table has no family %s", name);
}

/* Reads one size, or two that all sizes are between. */
static status read_sizes(const struct yaml_value *value, struct design_column *out)
{
    const uint64_t most = 200 << 20;
    out->size_from = out->size_to = 8;
    if (value == NULL)
        return status_ok();
    if (value->kind != YAML_LIST) {
        TRY(field_size(value, most, &out->size_from));
        out->size_to = out->size_from;
        return status_ok();
    }
    if (value->count != 2)
        return yaml_error(value, "a size is one, such as 100, or between two: [10, 2KB]");
    TRY(field_size(value->items[0], most, &out->size_from));
    TRY(field_size(value->items[1], most, &out->size_to));
    return out->size_to < out->size_from
               ? yaml_error(value, "the first of two sizes is the smaller one")
               : status_ok();
}

static status read_column(const struct yaml_value *value, struct arena *arena,
                          const struct design_table *table, struct design_column *out)
{
    const uint64_t columns_most = 100 * 1000;
    struct field fields[COLUMN_FIELDS] = {
        [COLUMN_NAME] = {.name = "name", .is_required = true},
        [COLUMN_FAMILY] = {.name = "family"},
        [COLUMN_COUNT] = {.name = "count"},
        [COLUMN_SIZE] = {.name = "size"},
        [COLUMN_WRITES] = {.name = "writes"},
        [COLUMN_VALUES] = {.name = "values"},
        [COLUMN_IN] = {.name = "in"},
    };
    TRY(fields_take(value, "a column", fields, COLUMN_FIELDS));
    *out = (struct design_column){.line = value->line, .count = 1, .writes = 1, .share = 1};
    TRY(find_family(value, fields[COLUMN_FAMILY].value, table, &out->family));
    TRY(read_part(fields[COLUMN_NAME].value, "the name of a column", arena, &out->name));
    TRY(field_number(fields[COLUMN_COUNT].value, 1, columns_most, &out->count));
    TRY(read_sizes(fields[COLUMN_SIZE].value, out));
    TRY(field_number(fields[COLUMN_WRITES].value, 1, INT32_MAX, &out->writes));
    TRY(field_number(fields[COLUMN_VALUES].value, 1, INT64_MAX, &out->values));
    return field_percent(fields[COLUMN_IN].value, &out->share);
}

status read_columns(const struct yaml_value *value, struct arena *arena, struct design_table *out)
{
    TRY(field_is_list(value, 1));
    if (value->count > DESIGN_COLUMNS_MOST)
        return yaml_error(value, "more than %d columns; count makes many of one",
                          DESIGN_COLUMNS_MOST);
    out->column_count = value->count;
    out->columns = arena_zalloc(arena, value->count * sizeof *out->columns);
    if (out->columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(read_column(value->items[i], arena, out, &out->columns[i]));
    return status_ok();
}
