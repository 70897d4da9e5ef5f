/* Tests of where exports are, and of what they say of themselves. */
#include "datastore/admin/export_place.h"

#include "base/testing/testing.h"
#include "datastore/admin/export_metadata.h"
#include "datastore/admin/log_file.h"

enum { MEMORY = 1 << 20 };
#define MOMENT INT64_C(1795301623908887) /* 2026-11-21T22:53:43.908887Z */

static int setup(void **state)
{
    *state = arena_create(MEMORY);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* --- places --- */

static void test_a_url_is_a_directory(void **state)
{
    struct ds_export_place place;
    assert_ok(ds_export_place("/exports", "gs://bucket/a/b/", MOMENT, *state, &place));
    assert_string_equal(place.url, "gs://bucket/a/b");
    assert_string_equal(place.path, "/exports/bucket/a/b");
    assert_string_equal(place.name, "b");
    const char *file;
    assert_ok(ds_export_file(&place, "x/output-0", *state, &file));
    assert_string_equal(file, "/exports/bucket/a/b/x/output-0");
    assert_ok(ds_export_file_url(&place, "b" DS_OVERALL_SUFFIX, *state, &file));
    assert_string_equal(file, "gs://bucket/a/b/b.overall_export_metadata");
    assert_ok(ds_import_place("/exports", file, *state, &place));
    assert_string_equal(place.path, "/exports/bucket/a/b");
    assert_string_equal(place.name, "b");
}

static void test_a_bucket_alone_gets_a_name_from_the_time(void **state)
{
    struct ds_export_place place;
    assert_ok(ds_export_place("/exports", "gs://bucket", MOMENT, *state, &place));
    assert_string_equal(place.url, "gs://bucket/2026-11-21T22:53:43_90888");
    assert_string_equal(place.name, "2026-11-21T22:53:43_90888");
}

static void test_nothing_leads_out_of_the_directory(void **state)
{
    const char *const urls[] = {"",           "gs://",        "gs:///a",     "s3://b/a",
                                "/b/a",       "gs://b/..",    "gs://../a",   "gs://b/a/../../c",
                                "gs://b/./a", "gs://b//a",    "gs://b/a\nb", "gs://b/\x7f",
                                "gs://.",     "file:///etc/x"};
    struct ds_export_place place;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_status(ds_export_place("/exports", urls[i], MOMENT, *state, &place),
                      STATUS_INVALID_ARGUMENT);
        assert_status(ds_import_place("/exports", urls[i], *state, &place),
                      STATUS_INVALID_ARGUMENT);
    }
    assert_ok(ds_export_place("/exports", "gs://b/a", MOMENT, *state, &place));
    const char *const files[] = {"", "/etc/passwd", "../x", "x/../../y", "x//y", "x/"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path;
        assert_status(ds_export_file(&place, files[i], *state, &path), STATUS_INVALID_ARGUMENT);
    }
}

static void test_parts_are_not_too_long_for_a_file(void **state)
{
    struct ds_export_place place;
    char url[400] = "gs://b/";
    memset(url + 7, 'x', 200);
    assert_ok(ds_export_place("/exports", url, MOMENT, *state, &place));
    url[207] = 'x';
    assert_status(ds_export_place("/exports", url, MOMENT, *state, &place),
                  STATUS_INVALID_ARGUMENT);
}

static void test_only_metadata_are_imported(void **state)
{
    struct ds_export_place place;
    assert_status(ds_import_place("/exports", "gs://b/a", *state, &place), STATUS_INVALID_ARGUMENT);
    assert_status(ds_import_place("/exports", "gs://b/a/" DS_OVERALL_SUFFIX, *state, &place),
                  STATUS_INVALID_ARGUMENT);
    assert_ok(ds_import_place("/exports", "gs://b/a/c" DS_OVERALL_SUFFIX, *state, &place));
    assert_string_equal(place.name, "c");
}

static void test_without_a_directory_there_is_no_place(void **state)
{
    struct ds_export_place place;
    assert_status(ds_export_place(NULL, "gs://b/a", MOMENT, *state, &place),
                  STATUS_FAILED_PRECONDITION);
}

/* --- names of sets --- */

static void test_kinds_and_namespaces_name_files(void **state)
{
    const char *const names[][3] = {
        {NULL, NULL, "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"},
        {NULL, "Task", "all_namespaces/kind_Task/all_namespaces_kind_Task.export_metadata"},
        {"", "Task", "default_namespace/kind_Task/default_namespace_kind_Task.export_metadata"},
        {"n", NULL, "namespace_n/all_kinds/namespace_n_all_kinds.export_metadata"},
        {"a/b", "..", "namespace_a%2Fb/kind_../namespace_a%2Fb_kind_...export_metadata"},
        {"n", "100%", "namespace_n/kind_100%25/namespace_n_kind_100%25.export_metadata"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        Export__EntitySet *set;
        const char *file;
        assert_ok(ds_set_describe(names[i][0], names[i][1], *state, &set, &file));
        assert_string_equal(file, names[i][2]);
    }
}

static void test_long_names_stay_different(void **state)
{
    char kind[1501] = {0};
    const char *first, *second;
    for (size_t i = 0; i + 1 < sizeof kind; i++)
        kind[i] = i % 2 == 0 ? '\xc3' : '\xa9';
    assert_ok(ds_file_name_of(kind, *state, &first));
    kind[1499] = 'x';
    kind[1498] = 'x';
    assert_ok(ds_file_name_of(kind, *state, &second));
    assert_true(strlen(first) <= 80 && strcmp(first, second) != 0);
}

/* --- metadata --- */

static void test_overall_metadata_come_back(void **state)
{
    Export__OverallExportMetadata metadata = EXPORT__OVERALL_EXPORT_METADATA__INIT, *back;
    Export__ExportPointer pointer = EXPORT__EXPORT_POINTER__INIT, *pointers = &pointer;
    struct buffer file = {0};
    pointer.file = "x/y";
    pointer.entities = 7;
    metadata.pointers = &pointers;
    metadata.n_pointers = 1;
    assert_ok(ds_overall_encode(&metadata, &file));
    assert_ok(ds_overall_decode(buffer_bytes(&file), *state, &back));
    assert_int_equal(back->n_pointers, 1);
    assert_string_equal(back->pointers[0]->file, "x/y");
    assert_int_equal(back->pointers[0]->entities, 7);
    for (size_t size = 0; size < file.size; size++)
        assert_status(ds_overall_decode(bytes_make(file.data, size), *state, &back),
                      STATUS_DATA_LOSS);
    buffer_free(&file);
}

static void test_another_version_is_refused(void **state)
{
    Export__OverallExportMetadata *back;
    struct log_writer writer = {0};
    struct buffer file = {0};
    assert_ok(log_append(&writer, bytes_of("4"), &file));
    assert_ok(log_append(&writer, bytes_of(""), &file));
    assert_status(ds_overall_decode(buffer_bytes(&file), *state, &back), STATUS_DATA_LOSS);
    buffer_free(&file);
}

/* As Google's emulator writes them: the empty kind is there. */
static void test_metadata_of_all_kinds_are_the_emulators(void **state)
{
    const uint8_t expected[] = {0x0a, 0x08, 0x0a, 0x02, 'x', '3', 0x10, 5,   0x18, 6,   0x12, 0x0c,
                                0x0a, 0x00, 0x12, 0x08, 'o', 'u', 't',  'p', 'u',  't', '-',  '0'};
    Export__ExportMetadata metadata = EXPORT__EXPORT_METADATA__INIT, *back;
    Export__ExportInfo info = EXPORT__EXPORT_INFO__INIT;
    Export__ExportedKind kind = EXPORT__EXPORTED_KIND__INIT, *kinds = &kind;
    const char *output = "output-0";
    struct buffer file = {0};
    info.name = "x3";
    info.start_us = 5;
    info.end_us = 6;
    kind.name_case = EXPORT__EXPORTED_KIND__NAME_KIND;
    kind.kind = "";
    kind.files = &output;
    kind.n_files = 1;
    metadata.info = &info;
    metadata.kinds = &kinds;
    metadata.n_kinds = 1;
    assert_ok(ds_metadata_encode(&metadata, &file));
    assert_int_equal(file.size, sizeof expected);
    assert_memory_equal(file.data, expected, sizeof expected);
    assert_ok(ds_metadata_decode(buffer_bytes(&file), *state, &back));
    assert_string_equal(back->kinds[0]->files[0], "output-0");
    assert_status(ds_metadata_decode(bytes_make(expected, 5), *state, &back), STATUS_DATA_LOSS);
    buffer_free(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_url_is_a_directory),
        TEST(a_bucket_alone_gets_a_name_from_the_time),
        TEST(nothing_leads_out_of_the_directory),
        TEST(parts_are_not_too_long_for_a_file),
        TEST(only_metadata_are_imported),
        TEST(without_a_directory_there_is_no_place),
        TEST(kinds_and_namespaces_name_files),
        TEST(long_names_stay_different),
        TEST(overall_metadata_come_back),
        TEST(another_version_is_refused),
        TEST(metadata_of_all_kinds_are_the_emulators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
