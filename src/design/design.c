/* See design.h: tables of a description. */
#include "design/design.h"

#include "bigtable/names.h"
#include "design/read_private.h"

enum table_field {
    TABLE_NAME,
    TABLE_FAMILIES,
    TABLE_KEY,
    TABLE_ROWS,
    TABLE_HISTORY,
    TABLE_COLUMNS,
    TABLE_ACCESS,
    TABLE_FIELDS,
};

static status read_name(const struct yaml_value *value, const char **out)
{
    TRY(field_text(value, out));
    status s = name_check_table_id(*out);
    if (status_is_ok(s))
        return s;
    status placed = yaml_error(value, "%s", status_message(s));
    status_free(s);
    return placed;
}

status read_amount(const struct yaml_value *rows, const struct yaml_value *history, uint64_t *count,
                   int64_t *history_us)
{
    const uint64_t rows_most = (uint64_t)1000 * 1000 * 1000 * 1000;
    const int64_t day_us = (int64_t)86400 * 1000 * 1000, most_us = 3650 * day_us;
    *count = 1000 * 1000;
    *history_us = 30 * day_us;
    TRY(field_number(rows, 1, rows_most, count));
    TRY(field_duration(history, history_us));
    if (*history_us <= 0 || *history_us > most_us)
        return yaml_error(history, "%s is not a time up to ten years", history->text);
    return status_ok();
}

static status read_table(const struct yaml_value *value, struct arena *arena,
                         struct design_table *out)
{
    struct field fields[TABLE_FIELDS] = {
        [TABLE_NAME] = {.name = "name", .is_required = true},
        [TABLE_FAMILIES] = {.name = "families", .is_required = true},
        [TABLE_KEY] = {.name = "key", .is_required = true},
        [TABLE_ROWS] = {.name = "rows"},
        [TABLE_HISTORY] = {.name = "history"},
        [TABLE_COLUMNS] = {.name = "columns", .is_required = true},
        [TABLE_ACCESS] = {.name = "access"},
    };
    TRY(fields_take(value, "a table", fields, TABLE_FIELDS));
    *out = (struct design_table){.line = value->line};
    TRY(read_name(fields[TABLE_NAME].value, &out->name));
    TRY(read_families(fields[TABLE_FAMILIES].value, arena, out));
    TRY(read_key(fields[TABLE_KEY].value, arena, &out->key));
    out->families_line = fields[TABLE_FAMILIES].line;
    out->key.line = fields[TABLE_KEY].line;
    out->columns_line = fields[TABLE_COLUMNS].line;
    out->accesses_line = fields[TABLE_ACCESS].line;
    TRY(read_amount(fields[TABLE_ROWS].value, fields[TABLE_HISTORY].value, &out->rows,
                    &out->history_us));
    TRY(read_columns(fields[TABLE_COLUMNS].value, arena, out));
    return read_accesses(fields[TABLE_ACCESS].value, arena, out);
}

static status check_names(const struct yaml_value *tables, const struct design *design)
{
    for (size_t i = 0; i < design->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(design->tables[i].name, design->tables[j].name) == 0)
                return yaml_error(tables->items[i], "a table with the name %s is there already",
                                  design->tables[i].name);
    return status_ok();
}

static status read_tables(const struct yaml_value *tables, struct arena *arena, struct design *out)
{
    if (tables == NULL)
        return status_ok();
    TRY(field_is_list(tables, 1));
    if (tables->count > DESIGN_TABLES_MOST)
        return yaml_error(tables, "more than %d tables", DESIGN_TABLES_MOST);
    out->count = tables->count;
    out->tables = arena_zalloc(arena, out->count * sizeof *out->tables);
    if (out->tables == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < out->count; i++)
        TRY(read_table(tables->items[i], arena, &out->tables[i]));
    return check_names(tables, out);
}

status design_read(bytes text, struct arena *arena, struct design *out)
{
    const struct yaml_value *root;
    struct field fields[] = {{.name = "tables"}, {.name = "kinds"}};
    *out = (struct design){.count = 0};
    TRY(yaml_tree_read(text, arena, &root));
    TRY(fields_take(root, "a description", fields, sizeof fields / sizeof *fields));
    if (fields[0].value == NULL && fields[1].value == NULL)
        return yaml_error(root, "a description needs the field tables, or kinds");
    TRY(read_tables(fields[0].value, arena, out));
    TRY(read_kinds(fields[1].value, arena, out));
    return check_work(root, out);
}
