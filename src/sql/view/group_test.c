/* Groups: whatever was added and taken back, in whatever order, a view is what its query comes to
 * over the rows that are left, byte for byte. */
#include "base/testing/testing.h"
#include "row/hll.h"
#include "sql/testing/view_double.h"

#include <stdio.h>

enum { KEYS = 40 };

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return *seed >> 33;
}

static bytes key_of(uint64_t number)
{
    static char key[8];
    snprintf(key, sizeof key, "r%02u", (unsigned)(number % KEYS));
    return bytes_of(key);
}

/* The view, read by SQL, and its query over the source. */
static void assert_equal(struct view_double *view, const char *query)
{
    struct buffer kept = {0}, computed = {0};
    view_double_query(view, "SELECT * FROM v", &kept);
    view_double_query(view, query, &computed);
    assert_string_equal((const char *)kept.data, (const char *)computed.data);
    buffer_free(&kept);
    buffer_free(&computed);
}

static void put_text(struct view_double *view, bytes key, const char *qualifier, const char *text)
{
    view_double_put(view, key, "f", qualifier, 0, bytes_of(text));
}

/* --- random rows --- */

static void put_numbers(struct view_double *view, bytes key, uint64_t *seed)
{
    static const char *const floats[] = {"0.1",  "1e300", "-1e300", "3.5", "1e-300", "-7.25",
                                         "1e16", "nan",   "inf",    "2",   "-inf",   "0.3"};
    char text[32];
    snprintf(text, sizeof text, "%d", (int)(next_random(seed) % 2000) - 1000);
    put_text(view, key, "i", next_random(seed) % 6 == 0 ? "none" : text);
    put_text(view, key, "d", floats[next_random(seed) % (next_random(seed) % 8 == 0 ? 12 : 7)]);
}

/* Now and then texts that begin alike for longer than an entry has them. */
static void put_texts(struct view_double *view, bytes key, uint64_t *seed)
{
    char text[620];
    size_t size = next_random(seed) % 4 == 0 ? 600 : next_random(seed) % 3;
    memset(text, 'a', size);
    text[size] = (char)('a' + next_random(seed) % 4);
    text[size + 1] = '\0';
    put_text(view, key, "s", text);
    uint8_t raw[3] = {0, (uint8_t)(next_random(seed) % 3), (uint8_t)next_random(seed)};
    view_double_put(view, key, "f", "b", 0, bytes_make(raw, next_random(seed) % 4));
}

static void change_row(struct view_double *view, bytes key, uint64_t *seed)
{
    static const char *const groups[] = {"", "a", "b", "c"};
    cell_table_delete_row(&view->source, key);
    if (next_random(seed) % 4 == 0)
        return;
    if (next_random(seed) % 8 > 0)
        put_text(view, key, "k", groups[next_random(seed) % 4]);
    put_numbers(view, key, seed);
    put_texts(view, key, seed);
}

/* --- all but sketches --- */

#define I "SAFE_CAST(CAST(f['i'] AS STRING) AS INT64)"
#define D "SAFE_CAST(CAST(f['d'] AS STRING) AS FLOAT64)"
#define ALL_AGGREGATES                                                                             \
    "SELECT f['k'] AS k, COUNT(*) AS c, COUNT(" I ") AS ci, SUM(" I ") AS si, AVG(" I ") AS ai, "  \
    "CAST(SUM(" D ") AS STRING) AS sd, CAST(AVG(" D ") AS STRING) AS ad, MIN(" I ") AS mi, "       \
    "MAX(" I ") AS xi, CAST(MIN(" D ") AS STRING) AS md, CAST(MAX(" D ") AS STRING) AS xd, "       \
    "MIN(f['s']) AS ms, MAX(f['s']) AS xs, MIN(f['b']) AS mb, MAX(f['b']) AS xb, "                 \
    "BIT_AND(" I ") AS ba, BIT_OR(" I ") AS bo, BIT_XOR(" I ") AS bx, MAX(" I " > 0) AS xl "       \
    "FROM t GROUP BY k"

static void what_is_left_is_what_counts(void **state)
{
    (void)state;
    struct view_double view;
    uint64_t seed = 11;
    assert_ok(view_double_init(&view, ALL_AGGREGATES));
    for (int step = 0; step < 1500; step++) {
        bytes key = key_of(next_random(&seed));
        change_row(&view, key, &seed);
        assert_ok(view_double_follow(&view, &key, 1));
        if (step % 10 == 0)
            assert_equal(&view, ALL_AGGREGATES);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        bytes key = key_of(i);
        cell_table_delete_row(&view.source, key);
        assert_ok(view_double_follow(&view, &key, 1));
        assert_equal(&view, ALL_AGGREGATES);
    }
    assert_int_equal(view.view.count + view.groups.count + view.entries.count, 0);
    view_double_free(&view);
}

#define ZEROS                                                                                      \
    "SELECT '*' AS _key, CAST(IEEE_DIVIDE(1, MIN(" D ")) AS STRING) AS l, "                        \
    "CAST(IEEE_DIVIDE(1, MAX(" D ")) AS STRING) AS g FROM t GROUP BY _key"

/* Which of them is the least depended on which came first. */
static void of_two_zeros_the_negative_one_is_less(void **state)
{
    (void)state;
    struct view_double view;
    uint64_t seed = 7;
    assert_ok(view_double_init(&view, ZEROS));
    for (int step = 0; step < 200; step++) {
        bytes key = key_of(next_random(&seed) % 4);
        cell_table_delete_row(&view.source, key);
        put_text(&view, key, "d", next_random(&seed) % 2 == 0 ? "0" : "-0");
        assert_ok(view_double_follow(&view, &key, 1));
        assert_equal(&view, ZEROS);
    }
    view_double_free(&view);
}

/* --- sketches --- */

static void put_words(struct view_double *view, bytes key, uint64_t *seed)
{
    struct buffer words = {0};
    size_t count = next_random(seed) % 60;
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&words, "%sw%u", i == 0 ? "" : ",",
                             (unsigned)(next_random(seed) % 3000));
    view_double_put(view, key, "f", "w", 0, buffer_bytes(&words));
    buffer_free(&words);
}

#define SKETCHES                                                                                   \
    "SELECT '*' AS _key, HLL_COUNT.INIT(w, 10) AS s, HLL_COUNT.INIT(LENGTH(w)) AS i, COUNT(*) AS " \
    "c FROM t, UNNEST(SPLIT(f['w'], b',')) AS w GROUP BY _key"

static void sketches_forget(void **state)
{
    (void)state;
    struct view_double view;
    uint64_t seed = 5;
    assert_ok(view_double_init(&view, SKETCHES));
    for (int step = 0; step < 400; step++) {
        bytes key = key_of(next_random(&seed));
        bool goes = next_random(&seed) % 100 < (step < 200 ? 20 : 70); /* up, and down again */
        cell_table_delete_row(&view.source, key);
        if (!goes)
            put_words(&view, key, &seed);
        assert_ok(view_double_follow(&view, &key, 1));
        if (step % 4 == 0)
            assert_equal(&view, SKETCHES);
    }
    view_double_free(&view);
}

/* A sketch of some of 500 numbers, at one of several precisions. */
static void put_sketch(struct view_double *view, bytes key, uint64_t *seed)
{
    struct hll_sketch sketch = {0};
    struct buffer written = {0};
    uint8_t precision = (uint8_t)(10 + next_random(seed) % 3);
    uint64_t count = next_random(seed) % 5 == 0 ? 900 : next_random(seed) % 20;
    hll_sketch_begin(&sketch, HLL_INT64, precision, (uint8_t)(precision + 5));
    for (uint64_t i = 0; i < count; i++)
        assert_true(hll_sketch_add(&sketch, hll_hash_int64((int64_t)(next_random(seed) % 3000))));
    assert_true(hll_sketch_write(&sketch, &written));
    view_double_put(view, key, "f", "h", 0, buffer_bytes(&written));
    hll_sketch_free(&sketch);
    buffer_free(&written);
}

#define UNIONS                                                                                     \
    "SELECT f['k'] AS k, HLL_COUNT.MERGE(f['h']) AS n, HLL_COUNT.MERGE_PARTIAL(f['h']) AS h "      \
    "FROM t GROUP BY k"

static void unions_forget(void **state)
{
    (void)state;
    struct view_double view;
    uint64_t seed = 3;
    assert_ok(view_double_init(&view, UNIONS));
    for (int step = 0; step < 400; step++) {
        bytes key = key_of(next_random(&seed));
        cell_table_delete_row(&view.source, key);
        if (next_random(&seed) % 3 > 0)
            put_text(&view, key, "k", next_random(&seed) % 2 == 0 ? "a" : "b");
        if (next_random(&seed) % 3 > 0)
            put_sketch(&view, key, &seed);
        assert_ok(view_double_follow(&view, &key, 1));
        if (step % 4 == 0)
            assert_equal(&view, UNIONS);
    }
    view_double_free(&view);
}

static bytes numbered(unsigned number)
{
    static char key[12];
    snprintf(key, sizeof key, "row%05u", number);
    return bytes_of(key);
}

/* A large group has buckets: what is taken back of it costs no look at each row. */
static void large_unions_have_buckets(void **state)
{
    (void)state;
    enum { ROWS = 2000, CHANGES = 60, MOST_FINDS = 2 * (1024 + 250) /* of two aggregates */ };
    struct view_double view;
    uint64_t seed = 9;
    assert_ok(view_double_init(&view, UNIONS));
    for (unsigned i = 0; i < ROWS; i++) {
        bytes key = numbered(i);
        put_text(&view, key, "k", "all");
        put_sketch(&view, key, &seed);
        assert_ok(view_double_follow(&view, &key, 1));
    }
    for (unsigned step = 0; step < CHANGES; step++) {
        bytes key = numbered((unsigned)(next_random(&seed) % ROWS));
        uint64_t before = view.finds;
        cell_table_delete_row(&view.source, key);
        bool comes = step % 3 == 0;
        if (comes) {
            put_text(&view, key, "k", "all");
            put_sketch(&view, key, &seed);
        }
        assert_ok(view_double_follow(&view, &key, 1));
        assert_true(step == 0 || view.finds - before <= MOST_FINDS);
        if (step % 10 == 0)
            assert_equal(&view, UNIONS);
    }
    assert_equal(&view, UNIONS);
    for (unsigned i = 0; i < ROWS; i++) {
        bytes key = numbered(i);
        cell_table_delete_row(&view.source, key);
        if (i > ROWS - 20 || i % 200 == 0)
            assert_ok(view_double_follow(&view, &key, 1));
    }
    for (unsigned i = 0; i < ROWS; i++) {
        bytes key = numbered(i);
        assert_ok(view_double_follow(&view, &key, 1));
    }
    assert_int_equal(view.view.count + view.groups.count + view.entries.count, 0);
    view_double_free(&view);
}

/* Sketches of numbers and of texts do not go together: the group comes back with one of them. */
static void mixed_unions_come_back(void **state)
{
    (void)state;
    struct view_double view;
    struct hll_sketch sketch = {0};
    struct buffer written = {0};
    uint64_t seed = 2;
    const bytes keys[] = {bytes_of("r1"), bytes_of("r2")};
    assert_ok(view_double_init(&view, UNIONS));
    put_sketch(&view, keys[0], &seed);
    hll_sketch_begin(&sketch, HLL_BYTES, 10, 15);
    assert_true(hll_sketch_add(&sketch, 1) && hll_sketch_write(&sketch, &written));
    view_double_put(&view, keys[1], "f", "h", 0, buffer_bytes(&written));
    assert_ok(view_double_follow(&view, keys, 2));
    assert_int_equal(view.view.count, 0);
    cell_table_delete_row(&view.source, keys[0]);
    assert_ok(view_double_follow(&view, keys, 1));
    assert_equal(&view, UNIONS);
    view_double_put(&view, keys[0], "f", "h", 0, bytes_of("no sketch"));
    assert_ok(view_double_follow(&view, keys, 1));
    assert_int_equal(view.excluded.count, 1);
    hll_sketch_free(&sketch);
    buffer_free(&written);
    view_double_free(&view);
}

/* --- damage --- */

static void assert_damaged(const struct view_double *view, bytes contribution, bytes record)
{
    struct view_part part;
    struct view_group *group;
    bool found;
    struct arena *arena = arena_create(1 << 20);
    const struct view_entries none = {0};
    status result = view_group_read(view->program, record, arena, &group);
    if (status_is_ok(result))
        result = view_contribution_next(&contribution, &part, &found);
    if (status_is_ok(result))
        result = view_group_fold(group, part.body, bytes_of("r"), false, &none);
    assert_status(result, STATUS_DATA_LOSS);
    arena_destroy(arena);
}

/* Whatever is cut off, from a byte on. */
static void what_is_cut_is_found(void **state)
{
    (void)state;
    struct view_double view;
    bytes key = bytes_of("r");
    assert_ok(view_double_init(&view,
                               "SELECT _key, COUNT(*) AS c, SUM(n['i']) AS s, AVG(n['i']) AS "
                               "a, BIT_OR(n['i']) AS b, BIT_XOR(n['i']) AS x FROM t GROUP BY "
                               "_key"));
    view_double_put_number(&view, key, "i", -5);
    assert_ok(view_double_follow(&view, &key, 1));
    bytes contribution = view.contributions.items[0].value, record = view.groups.items[0].value;
    for (size_t size = 1; size < contribution.size; size++)
        assert_damaged(&view, bytes_make(contribution.data, size), record);
    for (size_t size = 1; size < record.size; size++)
        assert_damaged(&view, contribution, bytes_make(record.data, size));
    view_double_free(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_what_counts),
        cmocka_unit_test(of_two_zeros_the_negative_one_is_less),
        cmocka_unit_test(sketches_forget),
        cmocka_unit_test(unions_forget),
        cmocka_unit_test(large_unions_have_buckets),
        cmocka_unit_test(mixed_unions_come_back),
        cmocka_unit_test(what_is_cut_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
