/* Exports that are written, read again, and gone on with. */
#include "formats/dynamo_writer.h"

#include "base/testing/testing.h"
#include "formats/dynamo_export.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARENA_LIMIT = 16 << 20 };

struct fixture {
    char root[64];
    char directory[96];
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->root, sizeof f->root, "/tmp/trestle-writer-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    snprintf(f->directory, sizeof f->directory, "%s/export", f->root);
    f->arena = arena_create(ARENA_LIMIT);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *ftw)
{
    (void)about;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    nftw(f->root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static struct dynamo_writer *open_writer(struct fixture *f, const struct dynamo_position *position)
{
    struct dynamo_writer *writer;
    assert_ok(dynamo_writer_create(f->directory, position, &writer));
    return writer;
}

static uint64_t add(struct fixture *f, struct dynamo_writer *writer, int number)
{
    char json[96];
    struct item_value item;
    snprintf(json, sizeof json, "{\"Id\":{\"N\":\"%d\"},\"s\":{\"SS\":[\"a\",\"b\"]}}", number);
    assert_ok(item_read_json_map(bytes_of(json), f->arena, &item));
    assert_ok(dynamo_writer_add(writer, &item));
    return dynamo_item_checksum(&item);
}

static void finish(struct dynamo_writer *writer)
{
    const int64_t started_us = 1700000000ll * 1000 * 1000;
    assert_ok(dynamo_writer_finish(writer, "tables/t", started_us, started_us + 1000));
    dynamo_writer_destroy(writer);
}

static void assert_items(struct fixture *f, uint64_t expected, uint64_t expected_checksum)
{
    uint64_t items, checksum;
    assert_ok(dynamo_writer_check(f->directory, &items, &checksum));
    assert_int_equal(items, expected);
    assert_true(checksum == expected_checksum);
}

static void written_files_are_an_export(void **state)
{
    struct fixture *f = *state;
    struct dynamo_export export;
    struct dynamo_writer *writer = open_writer(f, NULL);
    uint64_t checksum = 0;
    for (int i = 0; i < 100; i++)
        checksum += add(f, writer, i);
    finish(writer);
    assert_ok(dynamo_export_open(f->directory, f->arena, &export));
    assert_true(export.has_manifest);
    assert_false(export.is_incremental);
    assert_int_equal(export.items, 100);
    assert_int_equal(export.files[0].export_time_us, 1700000000ll * 1000 * 1000);
    assert_items(f, 100, checksum);
}

static void nothing_is_an_export_too(void **state)
{
    struct fixture *f = *state;
    finish(open_writer(f, NULL));
    assert_items(f, 0, 0);
}

/* What was written behind the position is gone. */
static void a_writer_goes_on_at_a_position(void **state)
{
    struct fixture *f = *state;
    struct dynamo_position position, later;
    struct dynamo_writer *writer = open_writer(f, NULL);
    uint64_t checksum = add(f, writer, 1);
    assert_ok(dynamo_writer_flush(writer, &position));
    add(f, writer, 2);
    assert_ok(dynamo_writer_flush(writer, &later));
    dynamo_writer_destroy(writer);

    writer = open_writer(f, &position);
    checksum += add(f, writer, 3);
    finish(writer);
    assert_items(f, 2, checksum);
}

/* The process ended behind the last step of a file, and its position did not get known. */
static void an_ended_file_is_opened_again(void **state)
{
    struct fixture *f = *state;
    struct dynamo_position position;
    struct dynamo_writer *writer = open_writer(f, NULL);
    uint64_t checksum = add(f, writer, 1);
    assert_ok(dynamo_writer_flush(writer, &position));
    finish(writer);

    writer = open_writer(f, &position);
    checksum += add(f, writer, 2);
    finish(writer);
    assert_items(f, 2, checksum);
}

/* The same behind the last step of all, even if nothing was written. */
static void a_finished_export_is_gone_on_with(void **state)
{
    struct fixture *f = *state;
    for (int items = 0; items < 3; items++) {
        struct dynamo_position position;
        struct dynamo_writer *writer = open_writer(f, NULL);
        uint64_t checksum = 0;
        for (int i = 0; i < items; i++)
            checksum += add(f, writer, i);
        assert_ok(dynamo_writer_flush(writer, &position));
        finish(writer);
        finish(open_writer(f, &position));
        assert_items(f, (uint64_t)items, checksum);
        assert_int_equal(nftw(f->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
}

static void a_directory_that_is_in_use_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct dynamo_writer *writer;
    finish(open_writer(f, NULL));
    assert_status(dynamo_writer_create(f->directory, NULL, &writer), STATUS_ALREADY_EXISTS);
}

static void damage_is_found(void **state)
{
    struct fixture *f = *state;
    struct dynamo_writer *writer = open_writer(f, NULL);
    char path[128];
    uint64_t items, checksum;
    add(f, writer, 1);
    finish(writer);
    snprintf(path, sizeof path, "%s/data/part-00000.json.gz", f->directory);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputc(0, file);
    fclose(file);
    assert_status(dynamo_writer_check(f->directory, &items, &checksum), STATUS_DATA_LOSS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_files_are_an_export, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_an_export_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_writer_goes_on_at_a_position, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ended_file_is_opened_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finished_export_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_is_in_use_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_found, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
