/* Whatever keys begin with, and wherever they end, they come out in the order of their bytes. */
#include "base/key_order.h"

#include "base/testing/testing.h"

#include <stdlib.h>

enum { MOST_KEYS = 200, MOST_SIZE = 24 };

struct made {
    uint8_t text[MOST_KEYS][MOST_SIZE];
    struct key_order keys[MOST_KEYS];
    size_t count;
};

/* Of few values, so that many begin alike, many are others' beginnings, and some are equal. */
static void make_keys(struct made *made, unsigned *seed, size_t common)
{
    made->count = (size_t)rand_r(seed) % MOST_KEYS;
    for (size_t i = 0; i < made->count; i++) {
        size_t size = common + (size_t)rand_r(seed) % (MOST_SIZE - common);
        memset(made->text[i], 'k', common);
        for (size_t k = common; k < size; k++)
            made->text[i][k] = (uint8_t)(rand_r(seed) % 3 == 0 ? 255 : rand_r(seed) % 2);
        made->keys[i] = (struct key_order){.key = bytes_make(made->text[i], size), .place = i};
    }
}

static void keys_come_in_the_order_of_their_bytes(void **state)
{
    (void)state;
    struct made made;
    unsigned seed = 1;
    for (int round = 0; round < 2000; round++) {
        bool is_there[MOST_KEYS] = {0};
        make_keys(&made, &seed, (size_t)round % 12);
        key_order_sort(made.keys, made.count);
        for (size_t i = 0; i < made.count; i++) {
            const struct key_order *key = &made.keys[i];
            assert_ptr_equal(key->key.data, made.text[key->place]);
            assert_false(is_there[key->place]);
            is_there[key->place] = true;
            if (i == 0)
                continue;
            int order = bytes_compare(key[-1].key, key->key);
            assert_true(order < 0 || (order == 0 && key[-1].place < key->place));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_in_the_order_of_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
