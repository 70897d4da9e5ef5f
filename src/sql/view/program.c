/* The program of a materialized view: see program.h. Here the plan is cut; columns.c says what
 * becomes of the result's columns. */
#include "sql/view/program_private.h"

#include "base/limits.h"
#include "sql/plan/materialized.h"
#include "sql/plan/optimize.h"

#include <strings.h>

static status refuse(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s in materialized views.", what);
}

/* --- what may be where --- */

static const struct sql_operator *find_cut(const struct sql_operator *root)
{
    while (root != NULL && root->kind != SQL_OP_AGGREGATE && root->kind != SQL_OP_SORT)
        root = root->input;
    return root;
}

/* What hands on rows as they come, each made of one of its input. */
static bool is_streamed(const struct sql_operator *operator_)
{
    switch (operator_->kind) {
    case SQL_OP_SCAN:
    case SQL_OP_FILTER:
    case SQL_OP_PROJECT:
    case SQL_OP_UNNEST:
    case SQL_OP_UNPACK:
        return true;
    default:
        return false;
    }
}

static status check_streamed(const struct sql_operator *root, const struct sql_operator *cut)
{
    bool has_scan = false;
    for (; root != NULL; root = root->input) {
        if (root != cut && !is_streamed(root))
            return refuse("DISTINCT and window functions are not supported");
        has_scan = root->kind == SQL_OP_SCAN;
    }
    return has_scan ? status_ok() : refuse("Queries that read no table are not supported");
}

/* --- aggregates --- */

static const struct view_aggregate_kind *kind_in(const struct view_aggregate_kind *kinds,
                                                 const struct sql_aggregation *aggregation)
{
    for (; kinds->function != NULL; kinds++) {
        bool fits = !kinds->is_of_kind || aggregation->types[0]->kind == kinds->of_kind;
        if (strcmp(kinds->function, aggregation->function->name) == 0 && fits)
            return kinds;
    }
    return NULL;
}

static const struct view_aggregate_kind *kind_of(const struct sql_aggregation *aggregation)
{
    const struct view_aggregate_kind *const tables[] = {view_tallies, view_extremes, view_sketches,
                                                        view_unions};
    const struct view_aggregate_kind *found = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && found == NULL; i++)
        found = kind_in(tables[i], aggregation);
    return found;
}

/* HLL_COUNT.INIT's second argument. */
static status read_precision(const struct sql_aggregation *aggregation, uint8_t *out)
{
    enum { LEAST = 10, MOST = 24, USUAL = 15 };
    *out = USUAL;
    if (aggregation->arg_count < 2)
        return status_ok();
    const struct sql_expr *precision = aggregation->args[1];
    bool fits = precision->kind == SQL_CONSTANT && !precision->constant.is_null &&
                precision->constant.int64 >= LEAST && precision->constant.int64 <= MOST;
    *out = fits ? (uint8_t)precision->constant.int64 : 0;
    return fits ? status_ok()
                : status_make(STATUS_INVALID_ARGUMENT,
                              "HLL_COUNT.INIT precision must be a constant between %d and %d in "
                              "materialized views.",
                              LEAST, MOST);
}

static status read_aggregate(const struct sql_aggregation *aggregation, size_t index,
                             struct view_aggregate *out)
{
    *out = (struct view_aggregate){.kind = kind_of(aggregation), .column = VIEW_NO_COLUMN};
    out->index = (uint8_t)index;
    if (out->kind == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s is not supported in materialized views.",
                           aggregation->function->name);
    if (aggregation->arg_count > 0)
        out->type = aggregation->types[0];
    return read_precision(aggregation, &out->precision);
}

static status read_aggregates(struct view_program *program, const struct sql_operator *group,
                              struct arena *arena)
{
    if (group->aggregate_count > UINT8_MAX)
        return refuse("More than 255 aggregates are not supported");
    program->aggregate_count = group->aggregate_count;
    program->aggregates = arena_zalloc(arena, group->aggregate_count * sizeof *program->aggregates);
    if (program->aggregates == NULL)
        return status_out_of_memory();
    size_t column = group->expr_count;
    for (size_t i = 0; i < group->aggregate_count; i++) {
        struct view_aggregate *aggregate = &program->aggregates[i];
        TRY(read_aggregate(&group->aggregates[i], i, aggregate));
        if (group->aggregates[i].arg_count > 0)
            aggregate->column = column++;
    }
    return status_ok();
}

/* --- the plan of the pieces --- */

/* Keys, and then the arguments of aggregates. */
static status gather_exprs(const struct sql_operator *group, struct arena *arena,
                           struct sql_operator *project)
{
    size_t most = group->expr_count + group->aggregate_count;
    const struct sql_expr **exprs = arena_alloc(arena, most * sizeof *exprs);
    struct sql_column *columns = arena_zalloc(arena, most * sizeof *columns);
    size_t count = 0;
    if (exprs == NULL || columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < group->expr_count; i++)
        exprs[count++] = group->exprs[i];
    for (size_t i = 0; i < group->aggregate_count; i++)
        if (group->aggregates[i].arg_count > 0)
            exprs[count++] = group->aggregates[i].args[0];
    for (size_t i = 0; i < count; i++)
        columns[i] = (struct sql_column){"", exprs[i]->type, false};
    project->exprs = exprs;
    project->columns = columns;
    project->expr_count = project->column_count = count;
    return status_ok();
}

static status cut_groups(struct view_program *program, const struct sql_operator *group,
                         struct arena *arena)
{
    struct sql_operator *project = arena_zalloc(arena, sizeof *project);
    if (project == NULL)
        return status_out_of_memory();
    project->kind = SQL_OP_PROJECT;
    project->input = group->input;
    program->pieces.root = project;
    return gather_exprs(group, arena, project);
}

static status read_above(struct view_program *program, const struct sql_operator *group,
                         struct arena *arena)
{
    size_t count = 0;
    for (const struct sql_operator *op = program->plan->root; op != group; op = op->input) {
        if (op->kind != SQL_OP_PROJECT)
            return refuse(op->kind == SQL_OP_FILTER ? "HAVING is not supported"
                                                    : "UNNEST of aggregates is not supported");
        count++;
    }
    program->above_count = count;
    program->above = arena_alloc(arena, count * sizeof(*program->above));
    if (program->above == NULL)
        return status_out_of_memory();
    for (const struct sql_operator *op = program->plan->root; op != group; op = op->input)
        program->above[--count] = op;
    return status_ok();
}

/* The plan without its SORT. */
static status cut_index(struct view_program *program, const struct sql_operator *sort,
                        struct arena *arena)
{
    const struct sql_operator **place = &program->pieces.root;
    for (const struct sql_operator *op = program->plan->root; op != sort; op = op->input) {
        struct sql_operator *copy = arena_alloc(arena, sizeof *copy);
        if (copy == NULL)
            return status_out_of_memory();
        *copy = *op;
        *place = copy;
        place = &copy->input;
    }
    *place = sort->input;
    return status_ok();
}

static status cut_plan(struct view_program *program, const struct sql_operator *cut,
                       struct arena *arena)
{
    program->pieces = *program->plan;
    if (program->form == VIEW_INDEX)
        return cut_index(program, cut, arena);
    TRY(read_aggregates(program, cut, arena));
    TRY(read_above(program, cut, arena));
    return cut_groups(program, cut, arena);
}

status view_program_make(const struct sql_plan *plan, struct arena *arena,
                         struct view_program **out)
{
    struct view_program *program = arena_zalloc(arena, sizeof *program);
    const struct sql_operator *cut = find_cut(plan->root);
    *out = NULL;
    if (program == NULL)
        return status_out_of_memory();
    if (cut == NULL)
        return refuse("Queries without GROUP BY or ORDER BY are not supported");
    program->form = cut->kind == SQL_OP_AGGREGATE ? VIEW_GROUPS : VIEW_INDEX;
    program->plan = plan;
    TRY(check_streamed(plan->root, cut));
    TRY(cut_plan(program, cut, arena));
    TRY(view_columns_make(program, cut, arena));
    TRY(sql_optimize(&program->pieces, arena));
    *out = program;
    return status_ok();
}

/* --- what there is --- */

enum view_form view_program_form(const struct view_program *program)
{
    return program->form;
}

const struct view_column *view_program_columns(const struct view_program *program, size_t *count)
{
    *count = program->column_count;
    return program->columns;
}

bool view_program_has_timestamp(const struct view_program *program)
{
    return program->has_timestamp;
}

/* A text that is a part of the key is no longer than that. */
static bool is_bounded(const struct view_column *column)
{
    return column->kind != VIEW_COLUMN_FAMILY &&
           (column->kind != VIEW_COLUMN_CELL || !sql_is_text(column->type));
}

size_t view_program_most_row_bytes(const struct view_program *program)
{
    enum { MARKER_BYTES = 32, NUMBER_BYTES = 40 }; /* as entries of a fragment */
    size_t most = MARKER_BYTES;
    for (size_t i = 0; i < program->column_count; i++) {
        const struct view_column *column = &program->columns[i];
        if (!is_bounded(column))
            return SIZE_MAX;
        if (column->kind == VIEW_COLUMN_CELL || column->is_cell_too)
            most += NUMBER_BYTES + column->qualifier.size;
        if (column->is_cell_too && sql_is_text(column->type))
            most += LIMIT_ROW_KEY_BYTES;
    }
    return most;
}

const char *const *view_program_families(const struct view_program *program, size_t *count)
{
    *count = program->family_count;
    return program->families;
}

bool view_program_reads_family(const struct view_program *program, bytes family)
{
    const struct sql_operator *scan = program->pieces.root;
    while (scan->input != NULL)
        scan = scan->input;
    for (size_t i = 0; i < scan->scan->slot_count; i++) {
        const struct sql_slot *slot = &scan->scan->slots[i];
        bool is_of_family = slot->kind == SQL_SLOT_FAMILY || slot->kind == SQL_SLOT_COLUMN;
        if (is_of_family && bytes_equal(slot->family, family))
            return true;
    }
    return false;
}

uint64_t view_program_fingerprint(const struct view_program *program)
{
    return program->fingerprint;
}
