/* Queries over tables in memory: see testing.h. */
#include "sql/testing/testing.h"

#include "base/check.h"
#include "base/vector.h"
#include "sql/analyze/analyze.h"
#include "sql/plan/key_schema.h"
#include "sql/plan/materialized.h"
#include "sql/plan/optimize.h"
#include "sql/run/execute.h"
#include "sql/syntax/parser.h"
#include "sql/time/zone.h"

#include <stdlib.h>
#include <string.h>

enum { ARENA_LIMIT = 256 << 20, MEMORY_LIMIT = 64 << 20 };

/* 2020-01-02 03:04:05.678901 */
#define NOW_US (INT64_C(1577934245678901))

/* --- the table --- */

struct memory_scan {
    struct sql_scan scan;
    const struct test_database *database;
    const struct sql_scan_spec *spec;
    struct sql_key_range *ranges;
    size_t range_count;
    bool is_reversed;
    int64_t from_us;
    int64_t to_us;
    int32_t cells_per_column;
    struct arena *arena;
    struct cell_list cells;
    size_t next; /* cell; in a reversed scan the end of the next row */
};

static const struct family families[] = {
    {.id = 1, .name = {(const uint8_t *)"f", 1}},
    {.id = 2, .name = {(const uint8_t *)"g", 1}},
    {.id = 3, .name = {(const uint8_t *)"n", 1}, .aggregate = AGGREGATE_SUM},
};

static const struct family *family_named(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (bytes_equal(families[i].name, bytes_of(name)))
            return &families[i];
    CHECK(!"a family of the table");
    return NULL;
}

static bytes cell_bytes(struct arena *arena, const struct test_cell *cell)
{
    if (strcmp(cell->family, "n") != 0)
        return bytes_of(cell->value);
    uint8_t *number = arena_alloc(arena, 8);
    uint64_t value = (uint64_t)strtoll(cell->value, NULL, 10);
    for (int i = 7; i >= 0 && number != NULL; i--, value >>= 8)
        number[i] = (uint8_t)value;
    return bytes_make(number, number == NULL ? 0 : 8);
}

static bool in_ranges(const struct memory_scan *scan, bytes key)
{
    for (size_t i = 0; i < scan->range_count; i++)
        if (bytes_compare(scan->ranges[i].from, key) <= 0 &&
            (scan->ranges[i].to.size == 0 || bytes_compare(key, scan->ranges[i].to) < 0))
            return true;
    return false;
}

/* The cells of one row, from `from` to `to`, as far as the times let them through. */
static status fill_cells(struct memory_scan *scan, size_t from, size_t to)
{
    int32_t of_column = 0;
    scan->cells.count = 0;
    for (size_t i = from; i < to; i++) {
        const struct test_cell *cell = &scan->database->cells[i];
        bool is_same = i > from && strcmp(cell->family, cell[-1].family) == 0 &&
                       strcmp(cell->qualifier, cell[-1].qualifier) == 0;
        of_column = is_same ? of_column : 0;
        if (cell->timestamp_us < scan->from_us || cell->timestamp_us >= scan->to_us ||
            ++of_column > scan->cells_per_column)
            continue;
        struct cell found = {.family = family_named(cell->family),
                             .qualifier = bytes_of(cell->qualifier),
                             .timestamp_us = cell->timestamp_us,
                             .value = cell_bytes(scan->arena, cell)};
        if (!cell_list_add(&scan->cells, &found))
            return status_out_of_memory();
    }
    return status_ok();
}

static size_t row_end(const struct memory_scan *scan, size_t from)
{
    size_t end = from + 1;
    while (end < scan->database->count &&
           strcmp(scan->database->cells[end].key, scan->database->cells[from].key) == 0)
        end++;
    return end;
}

static size_t row_start(const struct memory_scan *scan, size_t end)
{
    size_t start = end - 1;
    while (start > 0 &&
           strcmp(scan->database->cells[start - 1].key, scan->database->cells[end - 1].key) == 0)
        start--;
    return start;
}

static bool next_row(struct memory_scan *scan, size_t *from, size_t *to)
{
    if (scan->is_reversed ? scan->next == 0 : scan->next >= scan->database->count)
        return false;
    *from = scan->is_reversed ? row_start(scan, scan->next) : scan->next;
    *to = scan->is_reversed ? scan->next : row_end(scan, scan->next);
    scan->next = scan->is_reversed ? *from : *to;
    return true;
}

static status memory_next(struct sql_scan *base, struct sql_scan_row *row, bool *found)
{
    struct memory_scan *scan = (struct memory_scan *)(void *)base;
    size_t from, to;
    *found = false;
    base->must_wait = scan->database->waits && !base->must_wait;
    if (base->must_wait)
        return status_ok();
    while (!*found && next_row(scan, &from, &to)) {
        bytes key = bytes_of(scan->database->cells[from].key);
        if (!in_ranges(scan, key))
            continue;
        TRY(fill_cells(scan, from, to));
        *row = (struct sql_scan_row){key, &scan->cells};
        *found = scan->cells.count > 0;
    }
    return status_ok();
}

static void memory_destroy(struct sql_scan *base)
{
    (void)base; /* all of it is in the arena */
}

static void write_ranges(const struct test_database *database, const struct sql_scan_spec *spec)
{
    for (size_t i = 0; database->ranges != NULL && i < spec->range_count; i++) {
        const struct sql_value from = sql_of_text(spec->ranges[i].from);
        const struct sql_value to = sql_of_text(spec->ranges[i].to);
        buffer_append_format(database->ranges, "[");
        sql_value_append_literal(database->ranges, &sql_bytes, &from);
        buffer_append_format(database->ranges, ", ");
        sql_value_append_literal(database->ranges, &sql_bytes, &to);
        buffer_append_format(database->ranges, ")\n");
    }
}

static status memory_scan(void *context, const struct sql_relation *table,
                          const struct sql_scan_spec *spec, struct arena *arena,
                          struct sql_scan **out)
{
    (void)table;
    struct memory_scan *scan = arena_zalloc(arena, sizeof *scan);
    struct sql_key_range *ranges = arena_alloc(arena, spec->range_count * sizeof *ranges);
    if (scan == NULL || ranges == NULL)
        return status_out_of_memory();
    if (spec->range_count > 0)
        memcpy(ranges, spec->ranges, spec->range_count * sizeof *ranges);
    write_ranges(context, spec);
    *scan = (struct memory_scan){.scan = {.next = memory_next, .destroy = memory_destroy},
                                 .database = context,
                                 .ranges = ranges,
                                 .range_count = spec->range_count,
                                 .is_reversed = spec->is_reversed,
                                 .from_us = spec->from_us,
                                 .to_us = spec->to_us,
                                 .cells_per_column = spec->cells_per_column,
                                 .arena = arena,
                                 .cells = {.arena = arena}};
    scan->next = spec->is_reversed ? scan->database->count : 0;
    *out = &scan->scan;
    return status_ok();
}

/* As many rows in each part, in the order of keys. */
static status memory_divide(void *context, const struct sql_relation *table,
                            const struct sql_key_range *range, size_t most, struct arena *arena,
                            bytes **borders, size_t *count)
{
    (void)table, (void)range;
    const struct test_database *database = context;
    size_t parts = database->parts < most ? database->parts : most;
    *count = 0;
    *borders = arena_alloc(arena, (parts + 1) * sizeof **borders);
    if (*borders == NULL)
        return status_out_of_memory();
    for (size_t i = 1; i < parts; i++) {
        bytes key = bytes_of(database->cells[i * database->count / parts].key);
        if (*count == 0 || bytes_compare((*borders)[*count - 1], key) < 0)
            (*borders)[(*count)++] = key;
    }
    return status_ok();
}

/* --- the catalog --- */

static status add_column(struct vector *columns, struct arena *arena, const char *name,
                         enum sql_column_kind kind, const struct sql_type *type, bool is_hidden)
{
    struct sql_table_column column = {
        .name = name, .kind = kind, .type = type, .is_hidden = is_hidden};
    return type == NULL ? status_out_of_memory()
                        : vector_add(columns, arena, &column, sizeof column);
}

static status add_columns(const struct test_database *database, struct arena *arena,
                          struct sql_relation *table, struct vector *columns)
{
    bool has_parts = database->key_schema.size > 0;
    if (has_parts)
        TRY(sql_key_schema_read(database->key_schema, arena, &table->key_schema));
    TRY(add_column(columns, arena, "_key", SQL_COLUMN_KEY, &sql_bytes, has_parts));
    for (size_t i = 0; has_parts && i < sql_key_schema_count(table->key_schema); i++) {
        struct sql_field part = sql_key_schema_part(table->key_schema, i);
        TRY(add_column(columns, arena, part.name, SQL_COLUMN_KEY_PART, part.type, false));
    }
    const struct sql_type *plain = sql_map_of(arena, &sql_bytes, &sql_bytes);
    const struct sql_type *sums = sql_map_of(arena, &sql_bytes, &sql_int64);
    TRY(add_column(columns, arena, "f", SQL_COLUMN_FAMILY, plain, false));
    TRY(add_column(columns, arena, "g", SQL_COLUMN_FAMILY, plain, false));
    return add_column(columns, arena, "n", SQL_COLUMN_FAMILY, sums, false);
}

static status memory_find(void *context, const char *name, bool in_view, struct arena *arena,
                          const struct sql_relation **out)
{
    (void)in_view;
    const struct test_database *database = context;
    struct vector columns = {0};
    bool is_view = strcmp(name, "v") == 0 && database->view != NULL;
    *out = NULL;
    if (strcmp(name, "t") != 0 && !is_view)
        return status_ok();
    struct sql_relation *found = arena_zalloc(arena, sizeof *found);
    if (found == NULL)
        return status_out_of_memory();
    found->name = is_view ? "v" : "t";
    found->view_query = is_view ? database->view : NULL;
    *out = found;
    if (is_view)
        return status_ok();
    TRY(add_columns(database, arena, found, &columns));
    found->columns = columns.items;
    found->column_count = columns.count;
    return status_ok();
}

static void memory_names(void *context, void (*visit)(void *to, const char *name), void *to)
{
    (void)context;
    visit(to, "t");
}

static status memory_bundle(void *context, const struct sql_relation *table, const char *name,
                            struct arena *arena, bytes *out)
{
    (void)table, (void)arena;
    const struct test_database *database = context;
    *out = strcmp(name, "b") == 0 ? database->descriptors : bytes_make(NULL, 0);
    return status_ok();
}

/* --- queries --- */

struct test_run {
    struct sql_catalog catalog;
    struct sql_session session;
    struct arena *arena;
    struct sql_plan plan;
    struct sql_value *values;
    struct sql_execution *execution;
    bool is_not_optimized;
    size_t memory_limit;
};

static status analyze_query(struct test_run *run, const char *query,
                            const struct test_parameter *parameters, size_t count)
{
    struct ast_query *tree;
    struct sql_parameter *declared = arena_alloc(run->arena, count * sizeof *declared);
    run->values = arena_alloc(run->arena, count * sizeof *run->values);
    if (declared == NULL || run->values == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        declared[i] = (struct sql_parameter){parameters[i].name, parameters[i].type};
        run->values[i] = parameters[i].value;
    }
    struct sql_analysis analysis = {.text = bytes_of(query),
                                    .catalog = &run->catalog,
                                    .parameters = declared,
                                    .parameter_count = count,
                                    .arena = run->arena,
                                    .session = &run->session};
    TRY(sql_parse(analysis.text, run->arena, &tree));
    return sql_analyze(&analysis, tree, &run->plan);
}

static status plan_query(struct test_run *run, const char *query,
                         const struct test_parameter *parameters, size_t count)
{
    TRY(analyze_query(run, query, parameters, count));
    return run->is_not_optimized ? status_ok() : sql_optimize(&run->plan, run->arena);
}

static status start(struct test_run *run, const struct test_database *database)
{
    *run = (struct test_run){.catalog = {.context = (void *)(uintptr_t)database,
                                         .find = memory_find,
                                         .names = memory_names,
                                         .bundle = memory_bundle,
                                         .scan = memory_scan,
                                         .divide = memory_divide}};
    run->arena = arena_create(ARENA_LIMIT);
    run->session = (struct sql_session){.now_us = NOW_US,
                                        .random = 1,
                                        .view_parameters = database->view_parameters,
                                        .view_parameter_count = database->view_parameter_count,
                                        .zones = sql_zones_create(),
                                        .watch = database->watch,
                                        .helpers = database->helpers};
    run->memory_limit = database->memory_limit > 0 ? database->memory_limit : MEMORY_LIMIT;
    run->is_not_optimized = database->is_not_optimized;
    return run->arena == NULL || run->session.zones == NULL ? status_out_of_memory() : status_ok();
}

static void stop(struct test_run *run)
{
    sql_execution_destroy(run->execution);
    sql_zones_destroy(run->session.zones);
    arena_destroy(run->arena);
}

static void append_row(const struct sql_plan *plan, const struct sql_value *row, struct buffer *out)
{
    for (size_t i = 0; i < plan->root->column_count; i++) {
        buffer_append_format(out, "%s", i == 0 ? "" : " ");
        sql_value_append_literal(out, plan->root->columns[i].type, &row[i]);
    }
    buffer_append_byte(out, '\n');
}

static status prepare_query(struct test_run *run)
{
    struct sql_execution_spec spec = {.plan = &run->plan,
                                      .catalog = &run->catalog,
                                      .parameters = run->values,
                                      .session = &run->session,
                                      .memory_limit = run->memory_limit};
    return sql_execution_create(&spec, &run->execution);
}

static status run_query(struct test_run *run, struct buffer *out)
{
    TRY(prepare_query(run));
    for (;;) {
        const struct sql_value *row;
        TRY(sql_execution_next(run->execution, &row));
        if (sql_execution_is_paused(run->execution))
            continue;
        if (row == NULL)
            return status_ok();
        append_row(&run->plan, row, out);
    }
}

static enum status_code end(struct test_run *run, status result, struct buffer *out)
{
    enum status_code code = result.code;
    if (!status_is_ok(result))
        buffer_append_format(out, "%s: %s\n", status_code_name(result.code),
                             status_message(result));
    status_free(result);
    stop(run);
    buffer_append_byte(out, '\0');
    return code;
}

enum status_code test_query(const struct test_database *database, const char *query,
                            const struct test_parameter *parameters, size_t count,
                            struct buffer *out)
{
    struct test_run run;
    status result = start(&run, database);
    if (status_is_ok(result))
        result = plan_query(&run, query, parameters, count);
    if (status_is_ok(result))
        result = run_query(&run, out);
    return end(&run, result, out);
}

void test_columns(const struct test_database *database, const char *query, struct buffer *out)
{
    struct test_run run;
    status result = start(&run, database);
    if (status_is_ok(result))
        result = plan_query(&run, query, NULL, 0);
    for (size_t i = 0; status_is_ok(result) && i < run.plan.root->column_count; i++) {
        buffer_append_format(out, "%s ", run.plan.root->columns[i].name);
        sql_type_append(out, run.plan.root->columns[i].type);
        buffer_append_byte(out, '\n');
    }
    end(&run, result, out);
}

void test_explain(const struct test_database *database, const char *query, struct buffer *out)
{
    struct test_run run;
    status result = start(&run, database);
    if (status_is_ok(result))
        result = plan_query(&run, query, NULL, 0);
    if (status_is_ok(result))
        result = prepare_query(&run);
    if (status_is_ok(result))
        result = sql_execution_explain(run.execution, out);
    end(&run, result, out);
}

void test_materialized(const struct test_database *database, const char *query, struct buffer *out)
{
    struct test_run run;
    status result = start(&run, database);
    if (status_is_ok(result))
        result = analyze_query(&run, query, NULL, 0);
    if (status_is_ok(result))
        result = sql_check_materialized(&run.plan);
    if (status_is_ok(result))
        buffer_append_format(out, "OK\n");
    end(&run, result, out);
}

void test_quick(const struct test_database *database, const char *query,
                const struct test_parameter *parameters, size_t count, struct buffer *out)
{
    struct test_run run;
    status result = start(&run, database);
    if (status_is_ok(result))
        result = plan_query(&run, query, parameters, count);
    if (status_is_ok(result))
        buffer_append_format(out, "%s\n", sql_plan_is_quick(&run.plan) ? "quick" : "not");
    end(&run, result, out);
}

void test_incomplete(const struct test_database *database, const char *query, struct buffer *out)
{
    struct test_run run;
    status result = start(&run, database);
    if (status_is_ok(result))
        result = plan_query(&run, query, NULL, 0);
    if (status_is_ok(result))
        buffer_append_format(out, "%s\n", run.plan.allows_incomplete_views ? "allowed" : "not");
    end(&run, result, out);
}
