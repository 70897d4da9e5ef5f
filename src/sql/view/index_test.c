/* Indexes: after random changes a view has the rows of its query, in its order, which is that of
 * its row keys. */
#include "base/testing/testing.h"
#include "sql/testing/view_double.h"

#include <stdio.h>

enum { KEYS = 60, STEPS = 600 };

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return *seed >> 33;
}

/* Of few different bytes, zeros among them, so that texts are beginnings of each other. */
static bytes random_text(uint64_t *seed, uint8_t room[4])
{
    static const uint8_t letters[] = {0, 0, 1, 0xff, 'a'};
    size_t size = next_random(seed) % 4;
    for (size_t i = 0; i < size; i++)
        room[i] = letters[next_random(seed) % sizeof letters];
    return bytes_make(room, size);
}

static void put_number(struct view_double *view, bytes key, uint64_t *seed)
{
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "63",
                                          "64",
                                          "-64",
                                          "-65",
                                          "255",
                                          "256",
                                          "65535",
                                          "-8192",
                                          "9223372036854775807",
                                          "-9223372036854775808"};
    const char *number = numbers[next_random(seed) % (sizeof numbers / sizeof *numbers)];
    if (next_random(seed) % 5 > 0)
        view_double_put(view, key, "f", "i", 0, bytes_of(number));
}

static bytes change_row(struct view_double *view, uint64_t *seed)
{
    static uint8_t key[2];
    uint8_t room[4];
    key[0] = (uint8_t)(next_random(seed) % 8);
    key[1] = (uint8_t)(next_random(seed) % (KEYS / 8));
    bytes row = bytes_make(key, 1 + next_random(seed) % 2);
    cell_table_delete_row(&view->source, row);
    if (next_random(seed) % 4 == 0)
        return row;
    view_double_put(view, row, "g", "x", 0, bytes_of("x"));
    for (char name[] = "a"; name[0] <= 'c'; name[0]++)
        if (next_random(seed) % 4 > 0)
            view_double_put(view, row, "f", name, 0, random_text(seed, room));
    put_number(view, row, seed);
    return row;
}

static void assert_same_order(struct view_double *view, const char *query)
{
    struct buffer kept = {0}, computed = {0};
    view_double_list(view, "SELECT * FROM v", &kept);
    view_double_list(view, query, &computed);
    assert_string_equal((const char *)kept.data, (const char *)computed.data);
    buffer_free(&kept);
    buffer_free(&computed);
}

static void follow_random_changes(const char *query)
{
    struct view_double view;
    uint64_t seed = 21;
    assert_ok(view_double_init(&view, query));
    for (int step = 0; step < STEPS; step++) {
        bytes key = change_row(&view, &seed);
        assert_ok(view_double_follow(&view, &key, 1));
        if (step % 5 == 0)
            assert_same_order(&view, query);
    }
    assert_true(view.view.count > 0);
    view_double_free(&view);
}

#define INVERTED                                                                                   \
    "SELECT e.key AS q, e.value AS v, _key AS k FROM t, UNNEST(MAP_ENTRIES(f)) e "                 \
    "ORDER BY v, q, k"
#define INT "CAST(CAST(f['i'] AS STRING) AS INT64)"

static void keys_have_the_order_of_their_parts(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "SELECT f['a'] AS a, f['b'] AS b, f['c'] AS c, _key AS k FROM t ORDER BY a, b, k",
        "SELECT " INT " AS i, _key AS k, f['a'] AS a FROM t ORDER BY i, a, k",
        "SELECT _key AS k, f['c'] AS c FROM t WHERE f['b'] IS NOT NULL ORDER BY c, k",
        "SELECT _key, f AS all_of_it FROM t ORDER BY _key",
        INVERTED,
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        follow_random_changes(queries[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_order_of_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
