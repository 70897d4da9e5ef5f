/* Filters of lists: of operations, here. */
#include "wire/list_filter.h"

#include "base/testing/testing.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"

struct fixture {
    struct arena *arena;
    struct buffer packed;
    Pb__Any metadata;
    Lro__Operation operation;
};

/* An export of the kinds K and L with a label, that runs. */
static void pack_metadata(struct fixture *f)
{
    const char *kinds[] = {"K", "L"};
    DsAdmin__CommonMetadata__LabelsEntry label = DS_ADMIN__COMMON_METADATA__LABELS_ENTRY__INIT;
    DsAdmin__CommonMetadata__LabelsEntry *labels[] = {&label};
    DsAdmin__CommonMetadata common = DS_ADMIN__COMMON_METADATA__INIT;
    DsAdmin__EntityFilter filter = DS_ADMIN__ENTITY_FILTER__INIT;
    DsAdmin__ExportEntitiesMetadata metadata = DS_ADMIN__EXPORT_ENTITIES_METADATA__INIT;
    label.key = "run.of";
    label.value = "the day";
    common.operation_type = DS_ADMIN__OPERATION_TYPE__EXPORT_ENTITIES;
    common.state = DS_ADMIN__COMMON_METADATA__STATE__PROCESSING;
    common.labels = labels;
    common.n_labels = 1;
    filter.kinds = kinds;
    filter.n_kinds = 2;
    metadata.common = &common;
    metadata.entity_filter = &filter;
    metadata.output_url_prefix = "file:///a";
    proto_encode(&metadata.base, &f->packed);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = arena_create(1 << 20);
    pack_metadata(f);
    f->metadata = (Pb__Any)PB__ANY__INIT;
    f->metadata.type_url = "type.googleapis.com/google.datastore.admin.v1.ExportEntitiesMetadata";
    f->metadata.value = proto_data(buffer_bytes(&f->packed));
    f->operation = (Lro__Operation)LRO__OPERATION__INIT;
    f->operation.name = "projects/p/operations/1";
    f->operation.metadata = &f->metadata;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_destroy(f->arena);
    buffer_free(&f->packed);
    free(f);
    return 0;
}

static void assert_all(struct fixture *f, const char *const *filters, bool expected)
{
    for (; *filters != NULL; filters++) {
        bool fits;
        assert_ok(list_filter_check(&lro__operation__descriptor, *filters, f->arena));
        assert_ok(list_filter_fits(*filters, &f->operation.base, f->arena, &fits));
        if (fits != expected)
            print_error("%s\n", *filters);
        assert_int_equal(fits, expected);
    }
}

static void test_filters_that_fit(void **state)
{
    static const char *const filters[] = {
        "",
        "NOT done",
        "done=false",
        "done : false",
        "name=projects/p/operations/1",
        "metadata.common.operation_type = export_entities",
        "metadata.common.operation_type=\"EXPORT_ENTITIES\" AND metadata.common.state:PROCESSING",
        "(metadata.common.state=PROCESSING (done=false))",
        "metadata.common.labels.run.of=\"the day\"",
        "metadata.common.labels.run.of=\"the \\day\"",
        "metadata.entity_filter.kind=L",
        "metadata.entity_filter.kinds=K",
        "metadata.output_url_prefix = file:///a",
        NULL};
    assert_all(*state, filters, true);
}

static void test_filters_that_do_not_fit(void **state)
{
    static const char *const filters[] = {"done",
                                          "done:true",
                                          "name=projects/p/operations/2",
                                          "metadata.common.operation_type=IMPORT_ENTITIES",
                                          "metadata.common.operation_type=EXPORT",
                                          "done=false AND metadata.common.state=CANCELLED",
                                          "metadata.common.state=CANCELLED AND done=false",
                                          "metadata.common.labels.run=\"the day\"",
                                          "metadata.common.labels.run.of=the",
                                          "metadata.entity_filter.kind=M",
                                          "metadata.entity_filter.namespace_id=\"\"",
                                          "metadata.index_id=1",
                                          "metadata.common=1",
                                          "metadata=1",
                                          "error.message=x",
                                          "response.x=1",
                                          NULL};
    assert_all(*state, filters, false);
}

static void test_invalid_filters(void **state)
{
    static const char *const filters[] = {"x",     "done=", "=x",           "NOT",
                                          "NOT x", "x=1",   "done OR done", "done=\"tr",
                                          "name",  "AND",   "\"",           NULL};
    struct fixture *f = *state;
    for (size_t i = 0; filters[i] != NULL; i++)
        assert_status(list_filter_check(&lro__operation__descriptor, filters[i], f->arena),
                      STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_filters_that_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filters_that_do_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_invalid_filters, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
