/* Rows of a view: see row.h. */
#include "sql/view/row.h"

#include "base/vector.h"
#include "sql/view/cell.h"
#include "sql/view/group_private.h"
#include "sql/view/runner.h"

/* A row in the making: cells come in the program's order of cells. */
struct row_maker {
    const struct view_program *program;
    struct arena *arena;
    struct vector cells; /* of struct view_cell */
    struct vector absent;
    bool has_marker;
};

/* --- cells --- */

static status add_cell(struct row_maker *maker, const char *family, bytes qualifier, bytes value)
{
    const struct view_cell cell = {family, qualifier, value};
    return vector_add(&maker->cells, maker->arena, &cell, sizeof cell);
}

static status add_absent(struct row_maker *maker, const struct view_column *column)
{
    const struct view_cell cell = {column->family, column->qualifier, bytes_make(NULL, 0)};
    return vector_add(&maker->absent, maker->arena, &cell, sizeof cell);
}

/* The marker is the first cell of `default`. */
static status add_marker_before(struct row_maker *maker, const char *family)
{
    if (maker->has_marker || (family != NULL && strcmp(family, "default") < 0))
        return status_ok();
    maker->has_marker = true;
    return add_cell(maker, "default", bytes_make(NULL, 0), bytes_make(NULL, 0));
}

static void end_row(const struct row_maker *maker, const struct view_place *place,
                    struct view_row *out)
{
    *out = (struct view_row){.place = *place,
                             .timestamp_us = place->timestamp_us,
                             .cells = maker->cells.items,
                             .cell_count = maker->cells.count,
                             .absent = maker->absent.items,
                             .absent_count = maker->absent.count};
}

/* --- of a group --- */

static status group_values(const struct view_group *group, const struct view_place *place,
                           struct arena *arena, struct sql_value **out)
{
    const struct view_program *program = group->program;
    *out = sql_items_alloc(arena, program->key_count + program->aggregate_count);
    if (*out == NULL)
        return status_out_of_memory();
    TRY(view_key_values(program, place, arena, *out));
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        TRY(aggregate->kind->value(aggregate, group->tallies[i], arena,
                                   &(*out)[program->key_count + i]));
    }
    return status_ok();
}

static status project(struct view_runner *runner, const struct sql_operator *project,
                      struct arena *arena, const struct sql_value *row, struct sql_value **out)
{
    struct sql_frame frame = {.row = row,
                              .arguments = runner->arguments,
                              .calls = runner->calls,
                              .session = &runner->session,
                              .arena = arena,
                              .kept = runner->kept};
    *out = sql_items_alloc(arena, project->expr_count);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < project->expr_count; i++)
        TRY(sql_evaluate_expr(project->exprs[i], &frame, &(*out)[i]));
    return status_ok();
}

/* The row of the query's result. */
static status result_values(struct view_runner *runner, const struct view_group *group,
                            const struct view_place *place, struct arena *arena,
                            struct sql_value **out)
{
    runner->session.row_work = 0;
    TRY(group_values(group, place, arena, out));
    for (size_t i = 0; i < group->program->above_count; i++)
        TRY(project(runner, group->program->above[i], arena, *out, out));
    return status_ok();
}

static status add_value(struct row_maker *maker, const struct view_column *column,
                        const struct sql_value *value)
{
    uint8_t *room = arena_alloc(maker->arena, VIEW_NUMBER_BYTES);
    if (room == NULL)
        return status_out_of_memory();
    TRY(add_marker_before(maker, column->family));
    if (!view_value_has_cell(column->type, value))
        return add_absent(maker, column);
    return add_cell(maker, column->family, column->qualifier,
                    view_value_cell(column->type, value, room));
}

static status make_group_row(struct view_runner *runner, const struct view_group *group, bytes id,
                             struct arena *arena, struct view_row *out)
{
    const struct view_program *program = group->program;
    struct row_maker maker = {.program = program, .arena = arena};
    struct view_place place;
    struct sql_value *values;
    TRY(view_place_of(program, id, arena, &place));
    TRY(result_values(runner, group, &place, arena, &values));
    for (size_t i = 0; i < program->cell_count; i++) {
        size_t column = program->cells[i];
        TRY(add_value(&maker, &program->columns[column], &values[program->places[column]]));
    }
    TRY(add_marker_before(&maker, NULL));
    end_row(&maker, &place, out);
    return status_ok();
}

/* Whether the failure is of an expression, or of a value that is none, and not of ours. */
static bool is_of_value(status result)
{
    return result.code == STATUS_OUT_OF_RANGE || result.code == STATUS_INVALID_ARGUMENT ||
           (result.code == STATUS_RESOURCE_EXHAUSTED && !view_lacks_memory(result));
}

status view_group_row(struct view_runner *runner, const struct view_group *group, bytes id,
                      struct arena *arena, struct view_row *out, const char **why)
{
    status result = make_group_row(runner, group, id, arena, out);
    *why = NULL;
    if (!is_of_value(result))
        return result;
    *why = arena_string(arena, bytes_of(status_message(result)));
    status_free(result);
    return *why == NULL ? status_out_of_memory() : status_ok();
}

/* --- of an index --- */

/* What pieces.c wrote of a cell: false in `has` for none. */
static bool take_cell(bytes *body, bytes *out, bool *has)
{
    uint64_t size;
    *out = bytes_make(NULL, 0);
    if (!view_take_number(body, &size))
        return false;
    *has = size > 0;
    if (!*has)
        return true;
    if (size - 1 > body->size)
        return false;
    *out = bytes_make(body->data, (size_t)(size - 1));
    *body = bytes_from(*body, (size_t)(size - 1));
    return true;
}

static status add_family(struct row_maker *maker, const struct view_column *column, bytes *body)
{
    uint64_t count;
    bytes qualifier, value;
    bool has;
    if (!view_take_number(body, &count))
        return view_bad_record();
    for (; count > 0; count--) {
        if (!view_take_text(body, &qualifier) || !take_cell(body, &value, &has))
            return view_bad_record();
        if (has)
            TRY(add_cell(maker, column->family, qualifier, value));
    }
    return status_ok();
}

static status add_column(struct row_maker *maker, const struct view_column *column, bytes *body)
{
    bytes value;
    bool has;
    TRY(add_marker_before(maker, column->family));
    if (column->kind == VIEW_COLUMN_FAMILY)
        return add_family(maker, column, body);
    if (!take_cell(body, &value, &has))
        return view_bad_record();
    return has ? add_cell(maker, column->family, column->qualifier, value)
               : add_absent(maker, column);
}

status view_index_row(const struct view_program *program, const struct view_part *part,
                      struct arena *arena, struct view_row *out)
{
    struct row_maker maker = {.program = program, .arena = arena};
    struct view_place place;
    bytes body = part->body;
    TRY(view_place_of(program, part->id, arena, &place));
    for (size_t i = 0; i < program->cell_count; i++)
        TRY(add_column(&maker, &program->columns[program->cells[i]], &body));
    if (body.size > 0)
        return view_bad_record();
    TRY(add_marker_before(&maker, NULL));
    end_row(&maker, &place, out);
    return status_ok();
}
