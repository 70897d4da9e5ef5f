/* See read_private.h: what will be asked for. */
#include "design/read_private.h"

enum access_field {
    ACCESS_WRITE,
    ACCESS_READ,
    ACCESS_RATE,
    ACCESS_BY,
    ACCESS_ROWS,
    ACCESS_HOT,
    ACCESS_RAMP,
    ACCESS_FIELDS,
};

/* --- rows that are asked for more than others --- */

/* A share of them, or so many. */
static status read_hot_rows(const struct yaml_value *value, struct design_hot *out)
{
    size_t size = value->kind == YAML_TEXT ? strlen(value->text) : 0;
    if (size > 0 && value->text[size - 1] == '%')
        return field_percent(value, &out->part);
    return field_number(value, 1, INT64_MAX, &out->rows);
}

status read_hot(const struct yaml_value *value, struct design_hot *out)
{
    static const char *const places[] = {"scattered", "newest", "neighbours", NULL};
    struct field fields[] = {{.name = "share", .is_required = true},
                             {.name = "rows", .is_required = true},
                             {.name = "where"}};
    if (value == NULL)
        return status_ok();
    TRY(fields_take(value, "hot", fields, sizeof fields / sizeof *fields));
    TRY(field_percent(fields[0].value, &out->share));
    TRY(read_hot_rows(fields[1].value, out));
    return field_choice(fields[2].value, places, &out->where);
}

/* --- values that are known --- */

static bool is_column(const struct design_table *table, const char *name)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const struct design_part *part = &table->columns[i].name;
        const char *own = part->kind == PART_CONSTANT ? part->text : part->name;
        if (own != NULL && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

/* Sets the bit of a part of the key, or that a column is known. */
static status find_known(const struct yaml_value *name, const struct design_table *table,
                         uint32_t *by, bool *has_column)
{
    const char *text = NULL;
    TRY(field_text(name, &text));
    for (size_t i = 0; i < table->key.count; i++)
        if (table->key.parts[i].name != NULL && strcmp(table->key.parts[i].name, text) == 0) {
            *by |= 1u << i;
            return status_ok();
        }
    *has_column |= is_column(table, text);
    return is_column(table, text)
               ? status_ok()
               : yaml_error(name, "neither a part of the key nor a column has the name %s", text);
}

/* A constant is known always, and so is what is made of another part that is. */
static bool is_known(const struct design_access *access, const struct design_key *key, size_t part)
{
    int of = key->parts[part].of;
    if (key->parts[part].kind == PART_CONSTANT || (access->by >> part & 1))
        return true;
    return of != PART_OF_NONE && (access->by >> of & 1);
}

static void find_leading(struct design_access *access, const struct design_key *key)
{
    while (access->leading < key->count && is_known(access, key, access->leading))
        access->leading++;
    access->is_ordered = access->by >> access->leading == 0;
}

static status read_by(const struct yaml_value *access, const struct yaml_value *value,
                      const struct design_table *table, struct design_access *out)
{
    if (out->kind != ACCESS_READ_RANGE)
        return value == NULL ? status_ok() : yaml_error(value, "by is of a read of a range alone");
    if (value == NULL)
        return yaml_error(access, "a read of a range needs the field by: parts of the key, or "
                                  "columns, whose values are known");
    TRY(field_is_list(value, 1));
    for (size_t i = 0; i < value->count; i++)
        TRY(find_known(value->items[i], table, &out->by, &out->by_columns));
    find_leading(out, &table->key);
    out->is_ordered &= !out->by_columns;
    return status_ok();
}

/* --- all --- */

static status read_kind(const struct yaml_value *value, const struct field *fields,
                        struct design_access *out)
{
    static const char *const writes[] = {"new", "existing", NULL};
    static const char *const reads[] = {"row", "range", "table", NULL};
    const struct yaml_value *write = fields[ACCESS_WRITE].value, *read = fields[ACCESS_READ].value;
    int kind = 0;
    if ((write == NULL) == (read == NULL))
        return yaml_error(value, "an access is either a write (new, existing) or a read (row, "
                                 "range, table)");
    TRY(field_choice(write, writes, &kind));
    TRY(field_choice(read, reads, &kind));
    out->kind =
        (enum design_access_kind)(kind + (read == NULL ? ACCESS_WRITE_NEW : ACCESS_READ_ROW));
    bool has_rows = out->kind == ACCESS_READ_RANGE;
    if (fields[ACCESS_ROWS].value != NULL && !has_rows)
        return yaml_error(fields[ACCESS_ROWS].value, "rows is of a read of a range alone");
    if (fields[ACCESS_HOT].value != NULL &&
        (out->kind == ACCESS_WRITE_NEW || out->kind == ACCESS_READ_TABLE))
        return yaml_error(fields[ACCESS_HOT].value, "hot is of rows that are there already");
    return status_ok();
}

static status read_access(const struct yaml_value *value, const struct design_table *table,
                          struct design_access *out)
{
    struct field fields[ACCESS_FIELDS] = {
        [ACCESS_WRITE] = {.name = "write"},
        [ACCESS_READ] = {.name = "read"},
        [ACCESS_RATE] = {.name = "rate", .is_required = true},
        [ACCESS_BY] = {.name = "by"},
        [ACCESS_ROWS] = {.name = "rows"},
        [ACCESS_HOT] = {.name = "hot"},
        [ACCESS_RAMP] = {.name = "ramp"},
    };
    TRY(fields_take(value, "an access", fields, ACCESS_FIELDS));
    *out = (struct design_access){.line = value->line, .ramp_us = -1};
    TRY(read_kind(value, fields, out));
    TRY(field_rate(fields[ACCESS_RATE].value, &out->rate));
    out->rate_text = fields[ACCESS_RATE].value->text;
    TRY(field_number(fields[ACCESS_ROWS].value, 1, INT64_MAX, &out->rows));
    TRY(read_hot(fields[ACCESS_HOT].value, &out->hot));
    TRY(field_duration(fields[ACCESS_RAMP].value, &out->ramp_us));
    return read_by(value, fields[ACCESS_BY].value, table, out);
}

status read_accesses(const struct yaml_value *value, struct arena *arena, struct design_table *out)
{
    if (value == NULL)
        return status_ok();
    TRY(field_is_list(value, 1));
    if (value->count > DESIGN_ACCESSES_MOST)
        return yaml_error(value, "more than %d kinds of access", DESIGN_ACCESSES_MOST);
    out->access_count = value->count;
    out->accesses = arena_zalloc(arena, value->count * sizeof *out->accesses);
    if (out->accesses == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(read_access(value->items[i], out, &out->accesses[i]));
    return status_ok();
}
