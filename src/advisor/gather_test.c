/* Tests of gathering: no more is asked of a source than was allowed, whatever the rows are like. */
#include "advisor/gather.h"

#include "advisor/testing/testing.h"

/* A table without an end, whose rows have so many cells of that size. */
struct endless {
    struct advice_source source;
    size_t cells;
    uint64_t cell_size;
    size_t next;
};

static status no_schema(struct advice_source *source, struct advice_observations *out)
{
    (void)source;
    (void)out;
    return status_ok();
}

static status no_cuts(struct advice_source *source, struct advice_cuts *out)
{
    (void)source;
    (void)out;
    return status_ok();
}

static status endless_rows(struct advice_source *source, struct sample_rows *rows,
                           const struct sample_reading *reading, bool *is_whole)
{
    struct endless *table = source->context;
    char key[32];
    *is_whole = false;
    for (size_t i = 0; i < reading->limit; i++) {
        snprintf(key, sizeof key, "%012zu", table->next++);
        struct advice_row row = {.key = arena_copy(source->arena, bytes_of(key)),
                                 .place = reading->place,
                                 .cells =
                                     arena_zalloc(source->arena, table->cells * sizeof *row.cells),
                                 .cell_count = table->cells,
                                 .size = table->cells * table->cell_size};
        if (row.key.data == NULL || row.cells == NULL)
            return status_out_of_memory();
        rows->bytes += row.size;
        TRY(sample_rows_add(rows, &row));
    }
    return status_ok();
}

static status no_estimate(struct advice_source *source, struct sample_rows *rows,
                          struct advice_row *row)
{
    (void)source;
    (void)rows;
    (void)row;
    return status_ok();
}

static status no_heat(struct advice_source *source, struct advice_observations *out,
                      bool *is_answered)
{
    (void)source;
    (void)out;
    *is_answered = false;
    return status_ok();
}

static const struct advice_source_calls calls = {.read_schema = no_schema,
                                                 .read_cuts = no_cuts,
                                                 .read_rows = endless_rows,
                                                 .estimate_row = no_estimate,
                                                 .read_weights = no_schema,
                                                 .read_heat = no_heat,
                                                 .read_siblings = no_schema};

static struct advice_sample gather_some(struct endless *table, struct arena *arena,
                                        struct advice_observations *seen, size_t places,
                                        size_t rows)
{
    struct advice_sample sample;
    table->source = (struct advice_source){.arena = arena, .context = table, .calls = &calls};
    const struct gather_options options = {.source = table->source,
                                           .table_id = "t",
                                           .places = places,
                                           .rows = rows,
                                           .bytes = 8 << 20,
                                           .time_limit_us = INT64_MAX,
                                           .seed = 1};
    assert_ok(gather(&options, seen, &sample));
    return sample;
}

static struct advice_sample gather_from(struct endless *table, struct arena *arena,
                                        struct advice_observations *seen)
{
    return gather_some(table, arena, seen, 100, 10);
}

static void places_end_it(void **state)
{
    struct made_sample *made = *state;
    struct endless table = {.cells = 1, .cell_size = 1};
    struct advice_sample sample = gather_from(&table, made->arena, &made->seen);
    assert_int_equal(sample.places, 100);
    assert_int_equal(made->seen.row_count, 1000);
    assert_false(sample.is_cut);
}

/* As many as were announced, and of too few silence means nothing. */
static void few_places_are_too_little(void **state)
{
    static const struct {
        size_t places;
        size_t rows;
        bool is_enough;
    } cases[] = {{1, 1, false},  {2, 1, false},  {3, 7, false},
                 {1, 99, false}, {1, 100, true}, {50, 2, true}};
    struct made_sample *made = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct endless table = {.cells = 1, .cell_size = 1};
        struct advice_sample sample =
            gather_some(&table, made->arena, &made->seen, cases[i].places, cases[i].rows);
        assert_int_equal(made->seen.row_count, cases[i].places * cases[i].rows);
        assert_int_equal(sample.places, cases[i].places);
        assert_int_equal(advice_is_enough(&made->seen, &sample), cases[i].is_enough);
    }
}

static status no_rows(struct advice_source *source, struct sample_rows *rows,
                      const struct sample_reading *reading, bool *is_whole)
{
    (void)source;
    (void)rows;
    (void)reading;
    *is_whole = true;
    return status_ok();
}

static status three_rows(struct advice_source *source, struct sample_rows *rows,
                         const struct sample_reading *reading, bool *is_whole)
{
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        if (bytes_compare(bytes_of(keys[i]), reading->start) >= 0)
            TRY(sample_rows_add(
                rows, &(struct advice_row){.key = arena_copy(source->arena, bytes_of(keys[i])),
                                           .place = reading->place}));
    *is_whole = true;
    return status_ok();
}

/* All of an empty table is nothing; all of three rows is all that there is. */
static void an_empty_table_is_too_little(void **state)
{
    struct made_sample *made = *state;
    struct advice_source_calls of_few = calls;
    struct endless table = {.cells = 1};
    struct advice_sample sample;
    struct gather_options options = {
        .source = {.arena = made->arena, .context = &table, .calls = &of_few},
        .table_id = "t",
        .places = 100,
        .rows = 10,
        .bytes = 8 << 20,
        .time_limit_us = INT64_MAX,
        .seed = 1};
    of_few.read_rows = no_rows;
    assert_ok(gather(&options, &made->seen, &sample));
    assert_false(advice_is_enough(&made->seen, &sample));
    of_few.read_rows = three_rows;
    assert_ok(gather(&options, &made->seen, &sample));
    assert_int_equal(made->seen.row_count, 3);
    assert_true(advice_is_enough(&made->seen, &sample));
}

static void sampling_stops_at_byte_limit(void **state)
{
    struct made_sample *made = *state;
    struct endless table = {.cells = 1, .cell_size = 1 << 20};
    struct advice_sample sample = gather_from(&table, made->arena, &made->seen);
    assert_true(sample.is_cut);
    assert_int_equal(made->seen.row_count, 10); /* the first ten, and not the last */
}

/* Cells of no size at all would fill the memory before they come to any bytes. */
static void sampling_stops_at_cell_limit(void **state)
{
    struct made_sample *made = *state;
    struct endless table = {.cells = SAMPLE_CELLS_MOST, .cell_size = 0};
    struct advice_sample sample = gather_from(&table, made->arena, &made->seen);
    assert_true(sample.is_cut);
    assert_int_equal(made->seen.row_count, SAMPLE_ALL_CELLS / SAMPLE_CELLS_MOST);
}

/* --- a table of a thousand rows, whose keys are printed of their number --- */

enum { LISTED = 1000 };

struct listed {
    struct advice_source source;
    bytes keys[LISTED];
};

static status listed_rows(struct advice_source *source, struct sample_rows *rows,
                          const struct sample_reading *reading, bool *is_whole)
{
    const struct listed *table = source->context;
    size_t at = reading->is_reversed ? LISTED - reading->limit : 0, read = 0;
    while (at < LISTED && bytes_compare(table->keys[at], reading->start) < 0)
        at++;
    for (; at < LISTED && read < reading->limit; at++, read++)
        TRY(sample_rows_add(rows,
                            &(struct advice_row){.key = table->keys[at], .place = reading->place}));
    *is_whole = at == LISTED && read < reading->limit;
    return status_ok();
}

static int order_of_bytes(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

/* Places that are made up of all keys alone came to 4 here: bytes of three words and of digits that
 * all begin with 17953 nearly never make a key that lies among those of a word. */
static void rows_behind_few_words_are_found(void **state)
{
    static const struct advice_source_calls calls_of_list = {.read_schema = no_schema,
                                                             .read_cuts = no_cuts,
                                                             .read_rows = listed_rows,
                                                             .estimate_row = no_estimate,
                                                             .read_weights = no_schema,
                                                             .read_heat = no_heat,
                                                             .read_siblings = no_schema};
    static const char *const words[] = {"click", "debug", "view"};
    struct made_sample *made = *state;
    struct listed table;
    struct advice_sample sample;
    for (size_t i = 0; i < LISTED; i++) {
        char key[64];
        int size =
            snprintf(key, sizeof key, "%s#%zu#tall-fern", words[i % 3], 1795318018 + 139 * i);
        table.keys[i] = arena_copy(made->arena, bytes_make(key, (size_t)size));
    }
    qsort(table.keys, LISTED, sizeof *table.keys, order_of_bytes);
    const struct gather_options options = {
        .source = {.arena = made->arena, .context = &table, .calls = &calls_of_list},
        .table_id = "t",
        .places = 100,
        .rows = 10,
        .bytes = 8 << 20,
        .time_limit_us = INT64_MAX,
        .seed = 1};
    assert_ok(gather(&options, &made->seen, &sample));
    assert_true(made->seen.row_count > LISTED / 2);
    assert_true(sample.places > 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(places_end_it),
        TEST(few_places_are_too_little),
        TEST(an_empty_table_is_too_little),
        TEST(sampling_stops_at_byte_limit),
        TEST(sampling_stops_at_cell_limit),
        TEST(rows_behind_few_words_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
