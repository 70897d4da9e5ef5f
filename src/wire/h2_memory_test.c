/* Memory that is freed is given out again by its size; growing keeps what was there. */
#include "wire/h2_memory.h"

#include "base/limits.h"
#include "base/testing/testing.h"

static void *take(struct h2_memory *memory, size_t size)
{
    void *taken = memory->functions.malloc(size, memory);
    assert_non_null(taken);
    memset(taken, 0xa5, size);
    return taken;
}

static void give_back(struct h2_memory *memory, void *given)
{
    memory->functions.free(given, memory);
}

static void test_reuse(void **state)
{
    struct h2_memory memory;
    (void)state;
    h2_memory_init(&memory);
    void *small = take(&memory, 40), *medium = take(&memory, 200);
    give_back(&memory, small);
    give_back(&memory, medium);
    assert_ptr_equal(take(&memory, 190), medium);
    assert_ptr_equal(take(&memory, 33), small);
    assert_int_equal(memory.kept_bytes, 0);
    give_back(&memory, NULL);
    give_back(&memory, small);
    give_back(&memory, medium);
    h2_memory_free(&memory);
}

static void test_zeroes(void **state)
{
    static const uint8_t zeroes[100];
    struct h2_memory memory;
    (void)state;
    h2_memory_init(&memory);
    give_back(&memory, take(&memory, sizeof zeroes));
    void *taken = memory.functions.calloc(10, 10, &memory);
    assert_memory_equal(taken, zeroes, sizeof zeroes);
    give_back(&memory, taken);
    assert_null(memory.functions.calloc(SIZE_MAX / 2, 3, &memory));
    assert_null(memory.functions.malloc(SIZE_MAX - 3, &memory));
    h2_memory_free(&memory);
}

/* From class to class, and beyond the largest. */
static void test_growth(void **state)
{
    struct h2_memory memory;
    (void)state;
    h2_memory_init(&memory);
    uint8_t *data = memory.functions.realloc(NULL, 1, &memory);
    data[0] = 0;
    for (size_t size = 2; size < 3000; size++) {
        data = memory.functions.realloc(data, size, &memory);
        data[size - 1] = (uint8_t)(size - 1);
    }
    for (size_t i = 0; i < 2999; i++)
        assert_int_equal(data[i], (uint8_t)i);
    assert_ptr_equal(memory.functions.realloc(data, 1, &memory), data);
    assert_null(memory.functions.realloc(data, SIZE_MAX, &memory));
    give_back(&memory, data);
    h2_memory_free(&memory);
}

static void test_bound(void **state)
{
    enum { COUNT = 2 * LIMIT_H2_KEPT_BYTES / 512 };
    static void *taken[COUNT];
    struct h2_memory memory;
    (void)state;
    h2_memory_init(&memory);
    for (size_t i = 0; i < COUNT; i++)
        taken[i] = take(&memory, 480);
    for (size_t i = 0; i < COUNT; i++)
        give_back(&memory, taken[i]);
    assert_in_range(memory.kept_bytes, LIMIT_H2_KEPT_BYTES - 512, LIMIT_H2_KEPT_BYTES);
    h2_memory_free(&memory);
    assert_int_equal(memory.kept_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_zeroes),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests_name("wire_h2_memory", tests, NULL, NULL);
}
