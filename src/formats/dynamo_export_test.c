/* Exports as they lie in directories. */
#include "formats/dynamo_export.h"

#include "base/testing/testing.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char root[64];
    struct arena *arena;
    struct dynamo_export export;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->root, sizeof f->root, "/tmp/trestle-export-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    f->arena = arena_create(1 << 20);
    *state = f;
    return f->arena == NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(nftw(f->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

/* Makes the directories before it, too. */
static void write_file(const struct fixture *f, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", f->root, name);
    for (char *slash = path + strlen(f->root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static status open_export(struct fixture *f, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", f->root, name);
    return dynamo_export_open(arena_string(f->arena, bytes_of(path)), f->arena, &f->export);
}

/* The files' paths below the root, joined by blanks. */
static void check_files(const struct fixture *f, const char *expected)
{
    char found[1000] = "";
    for (size_t i = 0; i < f->export.count; i++) {
        size_t size = strlen(found);
        snprintf(found + size, sizeof found - size, "%s%s", i > 0 ? " " : "",
                 f->export.files[i].path + strlen(f->root));
    }
    assert_string_equal(found, expected);
}

#define SUMMARY(items)                                                                             \
    "{\"version\":\"2020-06-30\",\"exportTime\":\"2024-11-08T10:00:00Z\",\"itemCount\":" items     \
    ",\"outputFormat\":\"DYNAMODB_JSON\"}"
#define LINE(items, key)                                                                           \
    "{\"itemCount\":" items ",\"md5Checksum\":\"sum\",\"etag\":\"e\",\"dataFileS3Key\":\"" key     \
    "\"}\n"

static void a_full_export_is_its_manifest(void **state)
{
    struct fixture *f = *state;
    write_file(f, "AWSDynamoDB/01/manifest-summary.json", SUMMARY("7"));
    write_file(f, "AWSDynamoDB/01/manifest-files.json",
               LINE("3", "p/AWSDynamoDB/01/data/b.json.gz")
                   LINE("4", "AWSDynamoDB/01/data/a.ion.gz"));
    write_file(f, "AWSDynamoDB/01/data/a.ion.gz", "");
    write_file(f, "AWSDynamoDB/01/data/b.json.gz", "");
    write_file(f, "AWSDynamoDB/01/data/other.json.gz", "");
    assert_ok(open_export(f, "/AWSDynamoDB/01"));
    check_files(f, "/AWSDynamoDB/01/data/b.json.gz /AWSDynamoDB/01/data/a.ion.gz");
    assert_true(f->export.has_manifest && !f->export.is_incremental);
    assert_int_equal(f->export.items, 7);
    assert_int_equal(f->export.files[0].export_time_us, 1731060000000000);
    assert_int_equal(f->export.files[0].items, 3);
    assert_string_equal(f->export.files[0].md5, "sum");
    assert_int_equal(f->export.files[0].format, DYNAMO_JSON);
    assert_int_equal(f->export.files[1].format, DYNAMO_ION);
}

static void incremental_exports_share_their_data(void **state)
{
    struct fixture *f = *state;
    write_file(f, "01/manifest-summary.json",
               "{\"itemCount\":1,\"exportType\":\"INCREMENTAL_EXPORT\"}");
    write_file(f, "01/manifest-files.json", LINE("1", "AWSDynamoDB/data/a.json.gz"));
    write_file(f, "data/a.json.gz", "");
    assert_ok(open_export(f, "/01"));
    assert_true(f->export.is_incremental);
    assert_int_equal(f->export.files[0].export_time_us, -1);
    check_files(f, "/01/../data/a.json.gz");
}

/* With one data file, "data/NAME.json", beside the exports. */
static void write_incremental(const struct fixture *f, const char *name, const char *from,
                              const char *to)
{
    char path[100], text[300];
    snprintf(path, sizeof path, "%s/manifest-summary.json", name);
    snprintf(text, sizeof text,
             "{\"itemCount\":1,\"exportType\":\"INCREMENTAL_EXPORT\",\"exportFromTime\":"
             "\"2024-11-%sZ\",\"exportToTime\":\"2024-11-%sZ\"}",
             from, to);
    write_file(f, path, text);
    snprintf(path, sizeof path, "%s/manifest-files.json", name);
    snprintf(text, sizeof text, LINE("1", "AWSDynamoDB/data/%s.json"), name);
    write_file(f, path, text);
    snprintf(path, sizeof path, "data/%s.json", name);
    write_file(f, path, "");
}

static void write_full(const struct fixture *f, const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "%s/manifest-summary.json", name);
    write_file(f, path, SUMMARY("1"));
    snprintf(path, sizeof path, "%s/manifest-files.json", name);
    write_file(f, path, LINE("1", "AWSDynamoDB/x/data/full.json"));
    snprintf(path, sizeof path, "%s/data/full.json", name);
    write_file(f, path, "");
}

static void exports_come_in_the_order_of_their_times(void **state)
{
    struct fixture *f = *state;
    write_incremental(f, "01", "08T12:00:00", "08T13:00:00");
    write_incremental(f, "02", "08T09:30:00.500", "08T12:00:00");
    write_incremental(f, "03", "08T09:00:00", "08T09:30:00"); /* before the full one */
    write_full(f, "04");
    assert_ok(open_export(f, ""));
    check_files(f, "/04/data/full.json /02/../data/02.json /01/../data/01.json");
    assert_true(f->export.is_incremental && f->export.has_manifest);
    assert_int_equal(f->export.items, 3);
    assert_int_equal(f->export.files[0].export_time_us, 1731060000000000);
    assert_int_equal(f->export.files[2].export_time_us, 1731070800000000);
}

static void what_does_not_make_a_whole_is_refused(void **state)
{
    struct fixture *f = *state;
    write_full(f, "01");
    write_incremental(f, "02", "08T11:00:00", "08T12:00:00");
    status s = open_export(f, "");
    assert_non_null(strstr(status_message(s), "there is a time that neither has"));
    assert_status(s, STATUS_DATA_LOSS);
    write_full(f, "03");
    assert_status(open_export(f, ""), STATUS_INVALID_ARGUMENT);
    write_file(f, "02/manifest-summary.json",
               "{\"itemCount\":1,\"exportType\":\"INCREMENTAL_EXPORT\"}");
    assert_status(open_export(f, ""), STATUS_DATA_LOSS);
}

static void files_do_without_a_manifest(void **state)
{
    struct fixture *f = *state;
    write_file(f, "d/data/b.json", "");
    write_file(f, "d/data/a.json.gz", "");
    write_file(f, "d/data/notes.txt", "");
    assert_ok(open_export(f, "/d"));
    check_files(f, "/d/data/a.json.gz /d/data/b.json");
    assert_ok(open_export(f, "/d/data"));
    check_files(f, "/d/data/a.json.gz /d/data/b.json");
    assert_ok(open_export(f, "/d/data/b.json"));
    check_files(f, "/d/data/b.json");
    assert_false(f->export.has_manifest);
}

static void what_is_wrong_is_said(void **state)
{
    struct fixture *f = *state;
    assert_status(open_export(f, "/none"), STATUS_NOT_FOUND);
    assert_status(open_export(f, ""), STATUS_INVALID_ARGUMENT);
    write_file(f, "a/manifest-summary.json", "{");
    assert_status(open_export(f, "/a"), STATUS_DATA_LOSS);
    write_file(f, "a/manifest-summary.json", "{}");
    assert_status(open_export(f, "/a"), STATUS_DATA_LOSS);
    write_file(f, "a/manifest-summary.json", SUMMARY("2"));
    assert_status(open_export(f, "/a"), STATUS_NOT_FOUND);
    write_file(f, "a/manifest-files.json", "x\n");
    assert_status(open_export(f, "/a"), STATUS_DATA_LOSS);
    write_file(f, "a/manifest-files.json", LINE("1", "data/x.json.gz"));
    assert_status(open_export(f, "/a"), STATUS_NOT_FOUND);
    write_file(f, "a/data/x.json.gz", "");
    assert_status(open_export(f, "/a"), STATUS_DATA_LOSS); /* one item is missing */
    write_file(f, "a/manifest-files.json", "{\"itemCount\":2}\n");
    assert_status(open_export(f, "/a"), STATUS_DATA_LOSS);
}

static void manifests_are_held_against_their_sums(void **state)
{
    static const char *const sums[] = {"01/manifest-summary.checksum",
                                       "01/manifest-files.checksum"};
    struct fixture *f = *state;
    write_file(f, "01/manifest-summary.json", SUMMARY("0"));
    write_file(f, "01/manifest-files.json", "");
    assert_ok(open_export(f, "/01"));
    write_file(f, sums[0], "2c3qQHBqmuv+w6lszPoNlQ==");
    write_file(f, sums[1], "1B2M2Y8AsgTpgAmY7PhCfg==\n");
    assert_ok(open_export(f, "/01"));
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        write_file(f, sums[i], "kutfFmpXBKeeiqlu54mSQg==");
        status s = open_export(f, "/01");
        assert_non_null(strstr(status_message(s), sums[i]));
        assert_status(s, STATUS_DATA_LOSS);
        s = open_export(f, ""); /* as one of several */
        assert_status(s, STATUS_DATA_LOSS);
        write_file(f, sums[i], i == 0 ? "2c3qQHBqmuv+w6lszPoNlQ==" : "1B2M2Y8AsgTpgAmY7PhCfg==");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_export_is_its_manifest),
        TEST(incremental_exports_share_their_data),
        TEST(exports_come_in_the_order_of_their_times),
        TEST(what_does_not_make_a_whole_is_refused),
        TEST(files_do_without_a_manifest),
        TEST(manifests_are_held_against_their_sums),
        TEST(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
