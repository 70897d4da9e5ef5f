/* What becomes of the columns of a view's result: which are keys, which are cells, and where.
 *
 * The columns of GROUP BY or ORDER BY are the row key, in clause order. An output named `_key` is
 * the row key as it is, if no other column is part of that; one named `_timestamp` is the time of
 * all cells. All others are cells, in `default` or in the family of an alias `fam.qual`; a family
 * of the source that is passed on is one of the view, by its alias. */
#include "sql/plan/key_schema.h"
#include "sql/plan/materialized.h"
#include "sql/view/program_private.h"

#include <stdlib.h>
#include <strings.h>

struct columns_maker {
    struct view_program *program;
    const struct sql_operator *cut;
    const struct sql_operator *root;
    struct arena *arena;
};

static bool is_named(const struct sql_operator *root, size_t place, const char *name)
{
    return strcasecmp(root->columns[place].name, name) == 0;
}

/* --- keys --- */

/* Which of the keys a column of the result is, unchanged; SIZE_MAX: none. */
static size_t key_of(const struct columns_maker *maker, size_t place)
{
    size_t column = sql_trace_column(maker->root, place, maker->cut);
    if (maker->program->form == VIEW_GROUPS)
        return column < maker->cut->expr_count ? column : SIZE_MAX;
    for (size_t i = 0; i < maker->cut->order_count && column != SIZE_MAX; i++)
        if (maker->cut->orders[i].expr->index == column)
            return i;
    return SIZE_MAX;
}

/* The first column of the result that is the key and has one of the names; SIZE_MAX: none. */
static size_t key_named(const struct columns_maker *maker, size_t key, const char *name)
{
    for (size_t i = 0; i < maker->root->column_count; i++)
        if (!maker->root->columns[i].is_hidden && key_of(maker, i) == key &&
            (name == NULL || is_named(maker->root, i, name)))
            return i;
    return SIZE_MAX;
}

static void place_key(const struct columns_maker *maker, size_t index)
{
    struct view_program *program = maker->program;
    bool is_group = program->form == VIEW_GROUPS;
    struct view_key *key = &program->keys[index];
    size_t place = key_named(maker, index, NULL);
    key->type = is_group ? maker->cut->exprs[index]->type : maker->cut->orders[index].expr->type;
    key->column = is_group ? index : place;
    if (key_named(maker, index, "_timestamp") != SIZE_MAX && key->type->kind == SQL_TIMESTAMP)
        key->kind = VIEW_KEY_TIMESTAMP;
    else
        key->part = program->part_count++;
}

/* A key that is the only part, and is called `_key`, is the row key as it is. */
static void find_alone(const struct columns_maker *maker)
{
    struct view_program *program = maker->program;
    for (size_t i = 0; i < program->key_count && program->part_count == 1; i++) {
        struct view_key *key = &program->keys[i];
        if (key->kind == VIEW_KEY_PART && sql_is_text(key->type) &&
            key_named(maker, i, "_key") != SIZE_MAX) {
            key->kind = VIEW_KEY_ALONE;
            program->part_count = 0;
        }
    }
}

static status make_key_schema(const struct columns_maker *maker)
{
    struct view_program *program = maker->program;
    struct sql_field *fields = arena_alloc(maker->arena, program->part_count * sizeof *fields);
    if (fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < program->key_count; i++)
        if (program->keys[i].kind == VIEW_KEY_PART)
            fields[program->keys[i].part] = (struct sql_field){
                maker->root->columns[key_named(maker, i, NULL)].name, program->keys[i].type};
    return sql_key_schema_of_view(fields, program->part_count, maker->arena, &program->key_schema);
}

static status make_keys(const struct columns_maker *maker)
{
    struct view_program *program = maker->program;
    program->key_count =
        program->form == VIEW_GROUPS ? maker->cut->expr_count : maker->cut->order_count;
    program->keys = arena_zalloc(maker->arena, program->key_count * sizeof *program->keys);
    if (program->keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < program->key_count; i++)
        place_key(maker, i);
    find_alone(maker);
    bool has_alone = false;
    for (size_t i = 0; i < program->key_count; i++)
        has_alone = has_alone || program->keys[i].kind == VIEW_KEY_ALONE;
    if (program->part_count == 0 && !has_alone)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A materialized view needs a key beside _timestamp");
    return program->part_count > 0 ? make_key_schema(maker) : status_ok();
}

/* --- cells --- */

static bool is_family_name(bytes name)
{
    enum { MOST = 64 };
    for (size_t i = 0; i < name.size; i++) {
        char c = (char)name.data[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
        if (!fits)
            return false;
    }
    return name.size > 0 && name.size <= MOST;
}

/* `fam.qual`, or a name that is a qualifier in `default`. What has none is called as its place. */
static status name_cell(const struct columns_maker *maker, struct view_column *column)
{
    bytes name = bytes_of(column->name);
    const char *dot = strchr(column->name, '.');
    bytes family = bytes_make(column->name, dot == NULL ? 0 : (size_t)(dot - column->name));
    column->family = "default";
    column->qualifier = name;
    if (is_family_name(family)) {
        column->family = arena_string(maker->arena, family);
        column->qualifier = bytes_from(name, family.size + 1);
    }
    return column->family == NULL ? status_out_of_memory() : status_ok();
}

static status name_column(const struct columns_maker *maker, size_t place,
                          struct view_column *column)
{
    struct buffer name = {0};
    column->name = maker->root->columns[place].name;
    if (column->name[0] != '\0')
        return status_ok();
    buffer_append_format(&name, "$col%zu", place + 1);
    column->name = name.failed ? NULL : arena_string(maker->arena, buffer_bytes(&name));
    buffer_free(&name);
    return column->name == NULL ? status_out_of_memory() : status_ok();
}

/* Whether the column is a family of the source, whole. */
static bool is_passed_on(const struct columns_maker *maker, size_t place)
{
    const struct sql_operator *scan = maker->root;
    while (scan->input != NULL)
        scan = scan->input;
    size_t slot = sql_trace_column(maker->root, place, scan);
    return slot != SIZE_MAX && scan->scan->slots[slot].kind == SQL_SLOT_FAMILY;
}

static status make_family(const struct columns_maker *maker, size_t place,
                          struct view_column *column)
{
    enum sql_kind kind = column->type->element->kind;
    if (!is_passed_on(maker, place) || (kind != SQL_BYTES && kind != SQL_INT64))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Columns of type MAP are not supported in materialized views, but for "
                           "whole column families.");
    if (!is_family_name(bytes_of(column->name)) || strcmp(column->name, "default") == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "%s cannot be the name of a column family",
                           column->name);
    column->kind = VIEW_COLUMN_FAMILY;
    column->family = column->name;
    return status_ok();
}

static status make_key_column(const struct columns_maker *maker, const struct view_key *key,
                              struct view_column *column)
{
    static const enum view_column_kind kinds[] = {[VIEW_KEY_PART] = VIEW_COLUMN_KEY_PART,
                                                  [VIEW_KEY_ALONE] = VIEW_COLUMN_KEY,
                                                  [VIEW_KEY_TIMESTAMP] = VIEW_COLUMN_TIMESTAMP};
    column->kind = kinds[key->kind];
    column->part = key->part;
    column->is_cell_too =
        maker->program->form == VIEW_INDEX && column->kind == VIEW_COLUMN_KEY_PART;
    return column->is_cell_too ? name_cell(maker, column) : status_ok();
}

/* `_timestamp` need be no key of an index: there each piece is a row. */
static status make_timestamp(const struct columns_maker *maker, size_t place,
                             struct view_column *column)
{
    if (column->type->kind != SQL_TIMESTAMP)
        return status_make(STATUS_INVALID_ARGUMENT, "The column _timestamp must be a TIMESTAMP");
    if (maker->program->form == VIEW_GROUPS && key_of(maker, place) == SIZE_MAX)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The column _timestamp must be one of the GROUP BY columns");
    column->kind = VIEW_COLUMN_TIMESTAMP;
    maker->program->has_timestamp = true;
    maker->program->timestamp_column =
        maker->program->form == VIEW_GROUPS ? key_of(maker, place) : place;
    return status_ok();
}

static status make_column(const struct columns_maker *maker, size_t place,
                          struct view_column *column)
{
    size_t key = key_of(maker, place);
    column->type = maker->root->columns[place].type;
    TRY(name_column(maker, place, column));
    if (is_named(maker->root, place, "_timestamp"))
        return make_timestamp(maker, place, column);
    if (key != SIZE_MAX)
        return make_key_column(maker, &maker->program->keys[key], column);
    if (column->type->kind == SQL_MAP)
        return make_family(maker, place, column);
    column->kind = VIEW_COLUMN_CELL;
    return name_cell(maker, column);
}

static status make_columns(const struct columns_maker *maker)
{
    struct view_program *program = maker->program;
    size_t count = maker->root->column_count;
    program->columns = arena_zalloc(maker->arena, count * sizeof *program->columns);
    program->places = arena_alloc(maker->arena, count * sizeof *program->places);
    if (program->columns == NULL || program->places == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        if (maker->root->columns[i].is_hidden)
            continue;
        program->places[program->column_count] = i;
        TRY(make_column(maker, i, &program->columns[program->column_count++]));
    }
    return status_ok();
}

/* --- where cells go --- */

static bool has_cells(const struct view_column *column)
{
    return column->kind == VIEW_COLUMN_CELL || column->kind == VIEW_COLUMN_FAMILY ||
           column->is_cell_too;
}

static int compare_cells(const void *a, const void *b, void *context)
{
    const struct view_column *columns = context;
    const struct view_column *left = &columns[*(const size_t *)a];
    const struct view_column *right = &columns[*(const size_t *)b];
    int order = strcmp(left->family, right->family);
    return order != 0 ? order : bytes_compare(left->qualifier, right->qualifier);
}

/* Two columns with the same cell, or of a family that is passed on, or with the marker's. */
static bool meet(const struct view_column *a, const struct view_column *b)
{
    bool is_family = a->kind == VIEW_COLUMN_FAMILY || b->kind == VIEW_COLUMN_FAMILY;
    return strcmp(a->family, b->family) == 0 &&
           (is_family || bytes_equal(a->qualifier, b->qualifier));
}

static status order_cells(const struct columns_maker *maker)
{
    static const struct view_column marker = {.kind = VIEW_COLUMN_CELL, .family = "default"};
    struct view_program *program = maker->program;
    program->cells = arena_alloc(maker->arena, program->column_count * sizeof *program->cells);
    if (program->cells == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < program->column_count; i++)
        if (has_cells(&program->columns[i]))
            program->cells[program->cell_count++] = i;
    qsort_r(program->cells, program->cell_count, sizeof *program->cells, compare_cells,
            program->columns);
    for (size_t i = 0; i < program->cell_count; i++) {
        const struct view_column *column = &program->columns[program->cells[i]];
        const struct view_column *before =
            i == 0 ? &marker : &program->columns[program->cells[i - 1]];
        if (meet(column, before) || meet(column, &marker))
            return status_make(STATUS_INVALID_ARGUMENT,
                               "Duplicate column name %s in a materialized view", column->name);
    }
    return status_ok();
}

/* `default` is always among them: the marker is there. */
static status list_families(const struct columns_maker *maker)
{
    struct view_program *program = maker->program;
    bool has_default = false;
    program->families =
        arena_alloc(maker->arena, (program->cell_count + 1) * sizeof(*program->families));
    if (program->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i <= program->cell_count; i++) {
        const char *name =
            i < program->cell_count ? program->columns[program->cells[i]].family : NULL;
        if (!has_default && (name == NULL || strcmp(name, "default") >= 0)) {
            program->families[program->family_count++] = "default";
            has_default = true;
        }
        bool is_new =
            name != NULL && (program->family_count == 0 ||
                             strcmp(program->families[program->family_count - 1], name) != 0);
        if (is_new)
            program->families[program->family_count++] = name;
    }
    return status_ok();
}

/* --- the fingerprint --- */

/* Of what records depend on. Raise the number when their form changes. */
static status take_fingerprint(struct view_program *program)
{
    enum { FORM_OF_RECORDS = 1 };
    struct buffer text = {0};
    buffer_append_format(&text, "%d %d", FORM_OF_RECORDS, program->form);
    for (size_t i = 0; i < program->key_count; i++)
        buffer_append_format(&text, " %d:%d", program->keys[i].kind, program->keys[i].type->kind);
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        buffer_append_format(&text, " %s:%d:%u", aggregate->kind->function,
                             aggregate->type == NULL ? -1 : (int)aggregate->type->kind,
                             aggregate->precision);
    }
    for (size_t i = 0; i < program->column_count; i++)
        buffer_append_format(&text, " %s:%d:%d", program->columns[i].name, program->columns[i].kind,
                             program->columns[i].type->kind);
    program->fingerprint = bytes_hash(buffer_bytes(&text));
    bool failed = text.failed;
    buffer_free(&text);
    return failed ? status_out_of_memory() : status_ok();
}

status view_columns_make(struct view_program *program, const struct sql_operator *cut,
                         struct arena *arena)
{
    const struct columns_maker maker = {program, cut, program->plan->root, arena};
    TRY(make_keys(&maker));
    TRY(make_columns(&maker));
    TRY(order_cells(&maker));
    TRY(list_families(&maker));
    return take_fingerprint(program);
}

/* --- for SQL --- */

static struct sql_table_column table_column(const struct view_column *column)
{
    static const enum sql_column_kind kinds[] = {[VIEW_COLUMN_KEY] = SQL_COLUMN_KEY,
                                                 [VIEW_COLUMN_KEY_PART] = SQL_COLUMN_KEY_PART,
                                                 [VIEW_COLUMN_TIMESTAMP] = SQL_COLUMN_TIMESTAMP,
                                                 [VIEW_COLUMN_CELL] = SQL_COLUMN_CELL,
                                                 [VIEW_COLUMN_FAMILY] = SQL_COLUMN_FAMILY};
    return (struct sql_table_column){.name = column->name,
                                     .kind = kinds[column->kind],
                                     .type = column->type,
                                     .part = column->part,
                                     .family = column->family == NULL ? bytes_make(NULL, 0)
                                                                      : bytes_of(column->family),
                                     .qualifier = column->qualifier};
}

status view_program_relation(const struct view_program *program, const char *name, void *table,
                             struct arena *arena, const struct sql_relation **out)
{
    struct sql_relation *relation = arena_zalloc(arena, sizeof *relation);
    struct sql_table_column *columns = arena_alloc(arena, program->column_count * sizeof *columns);
    *out = relation;
    if (relation == NULL || columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < program->column_count; i++)
        columns[i] = table_column(&program->columns[i]);
    *relation = (struct sql_relation){.name = name,
                                      .columns = columns,
                                      .column_count = program->column_count,
                                      .key_schema = program->key_schema,
                                      .table = table,
                                      .is_materialized = true};
    return status_ok();
}
