/* Tests of crc32c.h against RFC 3720's examples. */
#include "base/crc32c.h"

#include "base/testing/testing.h"

enum { SIZE = 32, ODD = 7 };

static void assert_sum(bytes b, uint32_t expected)
{
    assert_int_equal(crc32c_of(b), expected);
    assert_int_equal(crc32c_by_table(b), expected);
}

static void sums_are_the_rfc_s(void **state)
{
    (void)state;
    uint8_t zeroes[SIZE] = {0}, ones[SIZE], rising[SIZE];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < SIZE; i++)
        rising[i] = (uint8_t)i;
    assert_sum(bytes_make(zeroes, SIZE), 0x8a9136aa);
    assert_sum(bytes_make(ones, SIZE), 0x62a8ab43);
    assert_sum(bytes_make(rising, SIZE), 0x46dd794e);
    assert_sum(bytes_of("123456789"), 0xe3069283);
    assert_sum(bytes_of(""), 0);
}

/* The instruction takes eight bytes at once, wherever they lie. */
static void sums_do_not_depend_on_where_bytes_lie(void **state)
{
    (void)state;
    uint8_t room[SIZE + ODD];
    for (size_t at = 0; at < ODD; at++) {
        memset(room + at, 0xff, SIZE);
        assert_sum(bytes_make(room + at, SIZE), 0x62a8ab43);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_rfc_s),
        cmocka_unit_test(sums_do_not_depend_on_where_bytes_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
