/* Tests of the rules of columns: each just where it begins to speak, and beside it a similar case.
 */
#include "advisor/testing/testing.h"

enum { ROWS = 40 };

/* Rows whose keys no rule has anything to say about, of so many cells each in the only family. */
static void make_rows(struct made_sample *sample, size_t cells)
{
    sample->seen.row_count = 0;
    for (size_t i = 0; i < ROWS; i++) {
        char key[SAMPLE_KEY];
        int size = snprintf(key, sizeof key, "%c%c-user-%zu", (char)('g' + i % 17),
                            (char)('h' + i % 13), i);
        sample_add(sample, bytes_make(key, (size_t)size));
        struct advice_row *row = &sample->rows[i];
        row->cells = arena_zalloc(sample->arena, cells * sizeof *row->cells);
        assert_non_null(row->cells);
        row->cell_count = cells;
    }
}

__attribute__((format(printf, 4, 5))) static void set_cell(struct made_sample *sample, size_t row,
                                                           size_t cell, const char *format, ...)
{
    char name[SAMPLE_KEY];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    sample->rows[row].cells[cell] =
        (struct advice_cell){.qualifier = arena_copy(sample->arena, bytes_of(name)), .size = 40};
}

static void set_value(struct made_sample *sample, size_t row, size_t cell, const char *value)
{
    sample->rows[row].cells[cell].size = strlen(value);
    sample->rows[row].cells[cell].hash = advice_hash(bytes_of(value));
}

static void many_columns(void **state)
{
    struct made_sample *sample = *state;
    make_rows(sample, ROW_COLUMNS);
    for (size_t i = 0; i < ROWS; i++) {
        sample->rows[i].cell_count = i % 2 == 0 ? ROW_COLUMNS : 3; /* half of the rows */
        for (size_t j = 0; j < sample->rows[i].cell_count; j++)
            set_cell(sample, i, j, "%zu-%zu", i, j);
    }
    sample_expect(sample, "row-columns");
    sample->rows[0].cell_count = sample->rows[1].cell_count = 3;
    sample_expect(sample, NULL);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < sample->rows[i].cell_count; j++)
            sample->rows[i].cells[j].qualifier = bytes_of("versions");
    sample_look(sample);
    assert_null(sample_finding(sample, "row-columns"));
}

static void tiny_values(void **state)
{
    struct made_sample *sample = *state;
    make_rows(sample, TINY_COLUMNS);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < TINY_COLUMNS; j++) {
            set_cell(sample, i, j, "%04zu", j);
            sample->rows[i].cells[j].size = TINY_BYTES;
        }
    sample_expect(sample, "tiny-cells");
    sample->rows[7].cells[3].size += ROWS; /* one column less */
    sample->rows[7].cells[3].size += ROWS;
    for (size_t i = 0; i < ROWS; i++)
        sample->rows[i].cells[3].size++;
    sample_expect(sample, NULL);
    for (size_t i = 0; i < ROWS; i++) /* of another in each row */
        for (size_t j = 0; j < TINY_COLUMNS; j++) {
            set_cell(sample, i, j, "%04zu", i * TINY_COLUMNS + j);
            sample->rows[i].cells[j].size = 1;
        }
    sample_expect(sample, NULL);
}

/* Four columns, three of which have the value but in each n-th row. */
static void set_defaults(struct made_sample *sample, const char *value, size_t but)
{
    static const char *const names[] = {"amber", "basil", "cedar", "delta"};
    char other[SAMPLE_KEY];
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < 4; j++) {
            snprintf(other, sizeof other, "%zu of %zu", j, i);
            set_cell(sample, i, j, "%s", names[j]);
            set_value(sample, i, j, j == 3 || i % but == 0 ? other : value);
        }
}

static void defaults(void **state)
{
    struct made_sample *sample = *state;
    make_rows(sample, 4);
    set_defaults(sample, "false", 4);
    sample_expect(sample, "default-values");
    set_defaults(sample, "", 4);
    sample_expect(sample, "default-values");
    assert_non_null(strstr(sample_finding(sample, "default-values")->evidence, "empty"));
    set_defaults(sample, "false", 3);
    sample_expect(sample, NULL);
    set_defaults(sample, "false", 4);
    for (size_t i = 0; i < ROWS; i++)
        set_value(sample, i, 1, i % 2 == 0 ? "new" : "old"); /* two columns are left */
    sample_expect(sample, NULL);
    set_defaults(sample, "", 4);
    for (size_t i = 0; i < ROWS; i += 4) /* they are there where they have a value alone */
        sample->rows[i].cell_count = 1;
    sample_expect(sample, NULL);
}

static void names_that_are_values(void **state)
{
    struct made_sample *sample = *state;
    make_rows(sample, 6);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < 6; j++)
            set_cell(sample, i, j, "friend[%zu]", j);
    sample_expect(sample, "qualifier-data");
    for (size_t i = 0; i < ROWS; i++) { /* of another family each two: three are no list */
        sample->rows[i].cell_count = 3;
    }
    sample_expect(sample, NULL);
    for (size_t i = 0; i < ROWS; i++) { /* minutes: numbers are data */
        sample->rows[i].cell_count = 6;
        for (size_t j = 0; j < 6; j++)
            set_cell(sample, i, j, "%02zu", 10 * j);
    }
    sample_expect(sample, NULL);
    make_rows(sample, 2);
    for (size_t i = 0; i < ROWS; i++) {
        set_cell(sample, i, 0, "price=%zu.50", i);
        set_cell(sample, i, 1, "zone");
        sample->rows[i].cells[0].size = 0;
    }
    sample_expect(sample, "qualifier-data");
    for (size_t i = 0; i < ROWS; i++) { /* several each: whom one follows */
        set_cell(sample, i, 1, "price=%zu.75", i);
        sample->rows[i].cells[1].size = sample->rows[i].cells[0].size = 0;
    }
    sample_expect(sample, NULL);
}

/* Versions of a column, the newest first, and another of one version. */
static void set_versions(struct made_sample *sample, size_t count, int64_t newest_us,
                         int64_t other_us)
{
    make_rows(sample, count + 1);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j <= count; j++) {
            set_cell(sample, i, j, "%s", j < count ? "temp" : "vendor");
            sample->rows[i].cells[j].timestamp_us =
                j < count ? newest_us - (int64_t)j * MINUTE_US : other_us;
        }
}

static void lifetimes(void **state)
{
    struct made_sample *sample = *state;
    const int64_t now_us = SAMPLE_NOW_US;
    set_versions(sample, RETAINED_VERSIONS, now_us, now_us);
    sample_expect(sample, "family-retention");
    set_versions(sample, RETAINED_VERSIONS - 1, now_us, now_us);
    sample_expect(sample, NULL);
    set_versions(sample, 4, now_us - DAY_US, now_us - 100 * DAY_US);
    sample_expect(sample, "family-retention");
    sample->families[0].most_versions = 4; /* the rule keeps no more */
    sample_expect(sample, NULL);
    sample->families[0].most_versions = 5;
    sample_expect(sample, "family-retention");
    set_versions(sample, 4, now_us - 20 * DAY_US, now_us - 100 * DAY_US);
    sample_expect(sample, NULL);
}

/* Names of columns have any bytes, also such as a terminal obeys. */
static void names_of_any_bytes_are_shown(void **state)
{
    struct made_sample *sample = *state;
    set_versions(sample, RETAINED_VERSIONS, SAMPLE_NOW_US, SAMPLE_NOW_US);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j <= RETAINED_VERSIONS; j++)
            sample->rows[i].cells[j].qualifier =
                j < RETAINED_VERSIONS ? bytes_make("a\0\x1b[2J", 6) : bytes_make("b\xff", 2);
    sample_expect(sample, "family-retention");
    const char *evidence = sample_finding(sample, "family-retention")->evidence;
    assert_non_null(strstr(evidence, "the column a\\x00\\x1b[2J has 10.0 versions"));
    assert_non_null(strstr(evidence, "and b\\xff has 1.0"));
    make_rows(sample, 6);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < 6; j++)
            set_cell(sample, i, j, "f\x1b\xfe[%zu]", j);
    sample_expect(sample, "qualifier-data");
    assert_non_null(strstr(sample_finding(sample, "qualifier-data")->evidence,
                           "named \"f\\x1b\\xfe[\" with a number"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_columns),          TEST(tiny_values), TEST(defaults),
        TEST(names_that_are_values), TEST(lifetimes),   TEST(names_of_any_bytes_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
