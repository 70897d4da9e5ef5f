/* Tests of addresses: what is one, what is none, and what counts as loopback. */
#include "os/address.h"

#include "base/testing/testing.h"

static void assert_round_trip(const char *text, bool loopback)
{
    struct address address;
    char again[ADDRESS_TEXT_SIZE];
    assert_ok(address_parse(text, &address));
    address_format(&address, again);
    assert_string_equal(again, text);
    assert_int_equal(address_is_loopback(&address), loopback);
}

static void addresses_are_read_and_written(void **state)
{
    (void)state;
    assert_round_trip("127.0.0.1:8086", true);
    assert_round_trip("127.9.9.9:1", true);
    assert_round_trip("0.0.0.0:0", false);
    assert_round_trip("192.0.2.7:65535", false);
    assert_round_trip("[::1]:8086", true);
    assert_round_trip("[::]:8086", false);
    assert_round_trip("[2001:db8::7]:80", false);
}

static void a_name_has_addresses(void **state)
{
    (void)state;
    struct address addresses[8];
    size_t count;
    assert_ok(address_parse_all("localhost:8086", addresses, 8, &count));
    assert_in_range(count, 1, 8);
    for (size_t i = 0; i < count; i++)
        assert_true(address_is_loopback(&addresses[i]));
    assert_ok(address_parse_all("127.0.0.1:8086", addresses, 8, &count));
    assert_int_equal(count, 1);
    assert_status(address_parse_all("8086", addresses, 8, &count), STATUS_INVALID_ARGUMENT);
    assert_int_equal(count, 0);
}

static void invalid_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "8086",
                                      ":8086",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "::1:8086",
                                      "[::1]",
                                      "[::1:8086",
                                      "127.0.0.1:http",
                                      "[]:1",
                                      "127.0.0.1:99999x",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct address address;
        assert_status(address_parse(bad[i], &address), STATUS_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written),
        cmocka_unit_test(a_name_has_addresses),
        cmocka_unit_test(invalid_addresses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
