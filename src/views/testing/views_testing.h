/* What the tests of views/ share: a cluster with a control plane and the engine, views of the
 * fixture's table, and SQL over both, so that a view can be held against its query. */
#ifndef TRESTLE_VIEWS_TESTING_VIEWS_TESTING_H
#define TRESTLE_VIEWS_TESTING_VIEWS_TESTING_H

#include "cluster/testing/testing.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "sql/analyze/analyze.h"
#include "sql/plan/materialized.h"
#include "sql/plan/optimize.h"
#include "sql/run/execute.h"
#include "sql/syntax/parser.h"
#include "sql/time/zone.h"
#include "views/scan.h"
#include "views/views_private.h"

#define TEST_INSTANCE    "projects/p/instances/i"
#define TEST_VIEW_OF(id) TEST_INSTANCE "/materializedViews/" id

struct views_fixture {
    struct cluster_fixture *f;
    struct control *control;
    struct views *views;
    bool has_threads;
    size_t piece_rows;
};

/* --- SQL --- */

/* A query: over `t`, the source, and over views by their ids. */
struct test_sql {
    struct views_fixture *v;
    struct arena *arena;
    struct sql_session session;
    struct sql_catalog catalog;
    struct sql_plan plan;
    struct table *held; /* a view's */
};

static inline const struct sql_relation *source_relation(struct views_fixture *v,
                                                         struct arena *arena)
{
    struct sql_table_column *columns = arena_zalloc(arena, 4 * sizeof *columns);
    struct sql_relation *relation = arena_zalloc(arena, sizeof *relation);
    assert_true(columns != NULL && relation != NULL);
    const struct sql_type *plain = sql_map_of(arena, &sql_bytes, &sql_bytes);
    columns[0].name = "_key";
    columns[0].kind = SQL_COLUMN_KEY;
    columns[0].type = &sql_bytes;
    const char *const names[] = {"f", "g", "sum"};
    for (size_t i = 0; i < 3; i++) {
        columns[i + 1].name = names[i];
        columns[i + 1].kind = SQL_COLUMN_FAMILY;
        columns[i + 1].type = i == 2 ? sql_map_of(arena, &sql_bytes, &sql_int64) : plain;
    }
    *relation = (struct sql_relation){
        .name = "t", .columns = columns, .column_count = 4, .table = v->f->table};
    return relation;
}

/* The program of the view's resource, which the engine has; the arena's. */
static inline status define_view(void *context, const char *name, const char *query,
                                 struct arena *arena, struct view_definition *out);

static inline status find_test_relation(void *context, const char *name, bool in_view,
                                        struct arena *arena, const struct sql_relation **out)
{
    struct test_sql *sql = context;
    struct view_found found;
    char full[256];
    (void)in_view;
    *out = NULL;
    if (strcmp(name, "t") == 0) {
        *out = source_relation(sql->v, arena);
        return status_ok();
    }
    snprintf(full, sizeof full, TEST_VIEW_OF("%s"), name);
    TRY(views_find(sql->v->views, full, &found));
    assert_non_null(found.table);
    sql->held = found.table;
    pthread_mutex_lock(&sql->v->views->lock);
    const struct view_program *program = views_entry(sql->v->views, full)->upkeep.program;
    pthread_mutex_unlock(&sql->v->views->lock);
    return view_program_relation(program, name, found.table, arena, out);
}

static inline void no_names(void *context, void (*visit)(void *to, const char *name), void *to)
{
    (void)context, (void)visit, (void)to;
}

static inline status never_too_large(void *context, bytes row_key)
{
    (void)context, (void)row_key;
    return status_make(STATUS_INTERNAL, "too large");
}

static inline status scan_test_relation(void *context, const struct sql_relation *relation,
                                        const struct sql_scan_spec *spec, struct arena *arena,
                                        struct sql_scan **out)
{
    (void)context;
    return view_scan_open(&(struct view_scan_spec){.table = relation->table,
                                                   .sql = spec,
                                                   .too_large = never_too_large},
                          arena, out);
}

static inline status analyze_test_query(struct test_sql *sql, const char *query,
                                        struct arena *arena)
{
    struct ast_query *tree;
    struct sql_analysis analysis = {.text = bytes_of(query),
                                    .catalog = &sql->catalog,
                                    .arena = arena,
                                    .session = &sql->session};
    TRY(sql_parse(analysis.text, arena, &tree));
    return sql_analyze(&analysis, tree, &sql->plan);
}

static inline void begin_test_sql(struct test_sql *sql, struct views_fixture *v)
{
    *sql = (struct test_sql){.v = v, .arena = arena_create(SIZE_MAX / 2)};
    sql->session.zones = sql_zones_create();
    sql->catalog = (struct sql_catalog){
        .context = sql, .find = find_test_relation, .names = no_names, .scan = scan_test_relation};
}

static inline void end_test_sql(struct test_sql *sql)
{
    if (sql->held != NULL)
        table_release(sql->held);
    sql_zones_destroy(sql->session.zones);
    arena_destroy(sql->arena);
}

static inline int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rows as literals, a line each, sorted. */
static inline status run_test_plan(struct test_sql *sql, struct buffer *out)
{
    struct sql_execution_spec spec = {.plan = &sql->plan,
                                      .catalog = &sql->catalog,
                                      .session = &sql->session,
                                      .memory_limit = SIZE_MAX / 2};
    struct sql_execution *execution;
    const struct sql_value *row;
    struct vector lines = {0};
    TRY(sql_execution_create(&spec, &execution));
    status s = sql_execution_next(execution, &row);
    while (status_is_ok(s) && row != NULL) {
        struct buffer line = {0};
        for (size_t i = 0; i < sql->plan.root->column_count; i++) {
            buffer_append_byte(&line, ' ');
            sql_value_append_literal(&line, sql->plan.root->columns[i].type, &row[i]);
        }
        char *text = arena_string(sql->arena, buffer_bytes(&line));
        assert_ok(vector_add(&lines, sql->arena, &text, sizeof text));
        buffer_free(&line);
        s = sql_execution_next(execution, &row);
    }
    sql_execution_destroy(execution);
    if (lines.count > 0)
        qsort(lines.items, lines.count, sizeof(char *), compare_lines);
    for (size_t i = 0; i < lines.count; i++)
        buffer_append_format(out, "%s\n", ((char **)lines.items)[i]);
    return s;
}

/* With a NUL behind it; freed by the caller. */
static inline char *test_query_text(struct views_fixture *v, const char *query)
{
    struct test_sql sql;
    struct buffer out = {0};
    begin_test_sql(&sql, v);
    status s = analyze_test_query(&sql, query, sql.arena);
    if (status_is_ok(s))
        s = sql_optimize(&sql.plan, sql.arena);
    if (status_is_ok(s))
        s = run_test_plan(&sql, &out);
    if (!status_is_ok(s))
        buffer_append_format(&out, "%s: %s\n", status_code_name(s.code), status_message(s));
    status_free(s);
    end_test_sql(&sql);
    buffer_append_byte(&out, 0);
    return (char *)out.data;
}

static inline void assert_query(struct views_fixture *v, const char *query, const char *expected)
{
    char *text = test_query_text(v, query);
    assert_string_equal(text, expected);
    free(text);
}

static inline status define_view(void *context, const char *name, const char *query,
                                 struct arena *arena, struct view_definition *out)
{
    struct test_sql sql;
    (void)name;
    begin_test_sql(&sql, context);
    status s = analyze_test_query(&sql, query, arena);
    if (status_is_ok(s))
        s = sql_check_materialized(&sql.plan);
    struct sql_plan *plan = arena_alloc(arena, sizeof *plan);
    assert_non_null(plan);
    *plan = sql.plan;
    *out = (struct view_definition){plan, TEST_TABLE};
    end_test_sql(&sql);
    return s;
}

/* --- life --- */

static inline status put_instance(void *context, struct edit *edit)
{
    BtAdmin__Instance instance = BT_ADMIN__INSTANCE__INIT;
    (void)context;
    instance.name = (char *)(uintptr_t)TEST_INSTANCE;
    return edit_put(edit, RESOURCE_INSTANCE, TEST_INSTANCE, &instance.base, bytes_make(NULL, 0));
}

/* `options`: what the engine asks for a view's query; the rest is the fixture's. */
static inline void start_views_with(struct views_fixture *v, struct views_options options)
{
    assert_ok(control_open(v->f->cluster, &v->f->log, &v->control));
    options.cluster = v->f->cluster;
    options.control = v->control;
    options.log = &v->f->log;
    options.by_hand = !v->has_threads;
    options.piece_rows = v->piece_rows;
    assert_ok(views_start(&options, &v->views));
}

static inline void start_views(struct views_fixture *v)
{
    start_views_with(v, (struct views_options){.define = define_view, .context = v});
}

static inline void stop_views(struct views_fixture *v)
{
    views_stop(v->views);
    control_close(v->control);
    views_free(v->views);
}

static inline struct views_fixture *views_fixture_create(bool has_threads)
{
    struct views_fixture *v = calloc(1, sizeof *v);
    assert_non_null(v);
    v->f = cluster_fixture_create(NULL);
    v->has_threads = has_threads;
    start_views(v);
    assert_ok(control_edit(v->control, put_instance, NULL));
    return v;
}

static inline void reopen_views(struct views_fixture *v)
{
    stop_views(v);
    reopen_test_cluster(v->f);
    start_views(v);
}

static inline void views_fixture_destroy(struct views_fixture *v)
{
    stop_views(v);
    cluster_fixture_destroy(v->f);
    free(v);
}

static inline int views_setup(void **state)
{
    *state = views_fixture_create(false);
    return 0;
}

static inline int views_setup_with_threads(void **state)
{
    *state = views_fixture_create(true);
    return 0;
}

static inline int views_teardown(void **state)
{
    views_fixture_destroy(*state);
    return 0;
}

/* --- views --- */

struct test_definition {
    struct views_fixture *v;
    const char *name;
    const char *query;
};

static inline status create_in_edit(void *context, struct edit *edit)
{
    const struct test_definition *d = context;
    BtAdmin__MaterializedView view = BT_ADMIN__MATERIALIZED_VIEW__INIT;
    struct view_definition definition;
    struct catalog_txn *txn;
    view.name = (char *)(uintptr_t)d->name;
    view.query = (char *)(uintptr_t)d->query;
    TRY(define_view(d->v, d->name, d->query, d->v->f->arena, &definition));
    TRY(edit_create(edit, RESOURCE_MATERIALIZED_VIEW, d->name, &view.base, bytes_make(NULL, 0)));
    TRY(edit_txn(edit, &txn));
    return views_create_table(d->v->views, d->name, &definition, txn);
}

static inline status try_create_view(struct views_fixture *v, const char *name, const char *query)
{
    struct test_definition definition = {v, name, query};
    return control_edit(v->control, create_in_edit, &definition);
}

static inline void create_view(struct views_fixture *v, const char *name, const char *query)
{
    assert_ok(try_create_view(v, name, query));
}

static inline status delete_in_edit(void *context, struct edit *edit)
{
    const struct test_definition *d = context;
    struct catalog_txn *txn;
    TRY(edit_delete(edit, RESOURCE_MATERIALIZED_VIEW, d->name));
    TRY(edit_txn(edit, &txn));
    return views_delete_table(d->v->views, d->name, txn);
}

static inline void delete_view(struct views_fixture *v, const char *name)
{
    struct test_definition definition = {v, name, NULL};
    assert_ok(control_edit(v->control, delete_in_edit, &definition));
}

/* At rest the view `id` has what its query gives now. */
static inline void assert_equal_to_query(struct views_fixture *v, const char *id, const char *query)
{
    char select[64];
    snprintf(select, sizeof select, "SELECT * FROM %s", id);
    char *expected = test_query_text(v, query), *actual = test_query_text(v, select);
    if (strcmp(expected, actual) != 0)
        print_error("view %s: %s\nexpected\n%shas\n%s", id, query, expected, actual);
    assert_string_equal(actual, expected);
    free(expected);
    free(actual);
}

#endif
