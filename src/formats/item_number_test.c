/* DynamoDB's numbers: what is one, how they order, how they are written. */
#include "formats/item.h"

#include "base/testing/testing.h"

static struct item_number number_of(const char *text)
{
    struct item_number number;
    assert_ok(item_number_parse(bytes_of(text), &number));
    return number;
}

static void check_plain(const char *text, const char *expected)
{
    struct item_number number = number_of(text);
    struct buffer out = {0};
    item_number_append_plain(&number, &out);
    assert_false(out.failed);
    assert_int_equal(out.size, strlen(expected));
    assert_memory_equal(out.data, expected, out.size);
    buffer_free(&out);
}

static void numbers_are_written_without_a_power(void **state)
{
    (void)state;
    check_plain("1.50E+3", "1500");
    check_plain("0012.3400", "12.34");
    check_plain("+5", "5");
    check_plain("-0", "0");
    check_plain("0.000e99", "0");
    check_plain("-.25", "-0.25");
    check_plain("100", "100");
    check_plain("1e-3", "0.001");
    check_plain("120e-1", "12");
    check_plain("99999999999999999999999999999999999999", "99999999999999999999999999999999999999");
    check_plain("1234.00000000000000000000000000000000000000000", "1234");
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",   "-",      ".",      "1x",    "e5",
        "1e", "1e+",    "0x10",   "1..2",  "NaN",
        " 1", "1e-131", "10e125", "1e126", "123456789012345678901234567890123456789"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct item_number number;
        assert_status(item_number_parse(bytes_of(bad[i]), &number), STATUS_INVALID_ARGUMENT);
    }
    number_of("1e-130");
    number_of("9.99e125");
    number_of("12345678901234567890123456789012345678e88");
}

static void bytes_order_as_numbers_do(void **state)
{
    (void)state;
    static const char *const rising[] = {
        "-9.9e125", "-1000",   "-999.5", "-11",    "-10.01", "-10",   "-1.5", "-1",
        "-0.1",     "-1e-130", "0",      "1e-130", "0.1",    "0.101", "1",    "1.001",
        "1.01",     "9",       "10",     "10.01",  "11",     "99",    "100",  "101",
        "1000",     "1e20",    "1e21",   "12e20",  "9.9e125"};
    struct buffer last = {0}, next = {0};
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        struct item_number number = number_of(rising[i]);
        buffer_clear(&next);
        item_number_append_ordered(&number, &next);
        assert_false(next.failed);
        assert_true(bytes_compare(buffer_bytes(&last), buffer_bytes(&next)) < 0);
        assert_false(last.size > 0 && bytes_start_with(buffer_bytes(&next), buffer_bytes(&last)));
        struct buffer swap = last;
        last = next;
        next = swap;
    }
    buffer_free(&last);
    buffer_free(&next);
}

static void integers_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_integer;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-17", true, -17},
        {"1.5e1", true, 15},
        {"1e18", true, 1000000000000000000},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"1.5", false, 0},
        {"0.5", false, 0},
        {"1e19", false, 0},
        {"1e125", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_number number = number_of(cases[i].text);
        int64_t value = 0;
        assert_int_equal(item_number_to_int64(&number, &value), cases[i].is_integer);
        assert_int_equal(value, cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_without_a_power),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(bytes_order_as_numbers_do),
        cmocka_unit_test(integers_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
