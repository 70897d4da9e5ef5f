/* A view that was deleted while it was being opened replaced the table of the one that came after
 * it by its name.
 *
 * Found by views_history in CI, which hung for an hour: on a busy machine a thread of the engine
 * that opens a view can stand between its look for the view's table and the edit that makes it.
 * Meanwhile the view was deleted, and another one created by its name. The edit asked only whether
 * there is a view of that name, found a table that was not as the former view's is to be, deleted
 * it, and made one of the former's. The new view was then empty, or told for ever that its table
 * has no such family.
 *
 * Here the view is deleted, and the other one created and populated, amid the opening of the first,
 * where its query is asked for; the other's source is another table, so that the look for the table
 * does not find the new one. */
#include "views/testing/views_testing.h"

#define COUNTS TEST_VIEW_OF("counts")
#define OTHER  "projects/p/instances/i/tables/other"

static const char former[] = "SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q";
static const char latter[] = "SELECT g['p'] AS p, _key AS k FROM t ORDER BY p, k";

struct opening {
    struct views_fixture *v;
    bool is_replaced;
};

static void create_other_table(struct cluster_fixture *f)
{
    const struct family family = {.id = 1, .name = bytes_of("g")};
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    struct table_spec spec = {.name = OTHER, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
}

static status define_over(struct views_fixture *v, const char *query, struct arena *arena,
                          struct view_definition *out)
{
    TRY(define_view(v, COUNTS, query, arena, out));
    if (strcmp(query, latter) == 0)
        out->source = OTHER;
    return status_ok();
}

static status create_latter(void *context, struct edit *edit)
{
    struct views_fixture *v = context;
    BtAdmin__MaterializedView view = BT_ADMIN__MATERIALIZED_VIEW__INIT;
    struct view_definition definition;
    struct catalog_txn *txn;
    view.name = (char *)(uintptr_t)COUNTS;
    view.query = (char *)(uintptr_t)latter;
    TRY(define_over(v, latter, v->f->arena, &definition));
    TRY(edit_create(edit, RESOURCE_MATERIALIZED_VIEW, COUNTS, &view.base, bytes_make(NULL, 0)));
    TRY(edit_txn(edit, &txn));
    return views_create_table(v->views, COUNTS, &definition, txn);
}

static status define_and_replace(void *context, const char *name, const char *query,
                                 struct arena *arena, struct view_definition *out)
{
    struct opening *opening = context;
    (void)name;
    if (!opening->is_replaced) {
        opening->is_replaced = true;
        assert_string_equal(query, former);
        delete_view(opening->v, COUNTS);
        assert_ok(control_edit(opening->v->control, create_latter, opening->v));
        assert_ok(views_settle(opening->v->views));
    }
    return define_over(opening->v, query, arena, out);
}

static uint64_t id_of(struct views_fixture *v, const char *name)
{
    struct table *table;
    assert_ok(cluster_table(v->f->cluster, bytes_of(name), &table));
    uint64_t id = table_id(table);
    table_release(table);
    return id;
}

static uint64_t source_of_table(struct views_fixture *v)
{
    struct table *table;
    assert_ok(cluster_table(v->f->cluster, bytes_of(COUNTS), &table));
    uint64_t id = table_view_source_id(table);
    table_release(table);
    return id;
}

static void what_was_deleted_meanwhile_replaces_nothing(void **state)
{
    struct opening opening = {.v = *state};
    struct views_fixture *v = *state;
    create_other_table(v->f);
    stop_views(v);
    start_views_with(v, (struct views_options){.define = define_and_replace, .context = &opening});
    create_view(v, COUNTS, former);
    assert_int_equal(source_of_table(v), id_of(v, TEST_TABLE));
    assert_ok(views_settle(v->views));
    assert_true(opening.is_replaced);
    assert_int_equal(source_of_table(v), id_of(v, OTHER));
    struct view_found found;
    assert_ok(views_find(v->views, COUNTS, &found));
    assert_int_equal(found.state, VIEW_READY);
    assert_int_equal(table_view_source_id(found.table), source_of_table(v));
    table_release(found.table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_deleted_meanwhile_replaces_nothing, views_setup,
                                        views_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
