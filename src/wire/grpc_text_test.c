/* Tests of gRPC's text formats. */
#include "wire/grpc_text.h"

#include "base/testing/testing.h"

static void check_timeout(const char *text, int64_t expected)
{
    int64_t timeout;
    bool valid = grpc_timeout_parse(bytes_of(text), &timeout);
    assert_int_equal(valid, expected >= 0);
    if (valid)
        assert_int_equal(timeout, expected);
}

static void test_timeouts(void **state)
{
    (void)state;
    check_timeout("0n", 0);
    check_timeout("1n", 1);
    check_timeout("1000n", 1);
    check_timeout("1001n", 2);
    check_timeout("7u", 7);
    check_timeout("250m", 250000);
    check_timeout("10S", 10000000);
    check_timeout("2M", 120000000);
    check_timeout("99999999H", INT64_C(359999996400000000));
    check_timeout("", -1);
    check_timeout("S", -1);
    check_timeout("5", -1);
    check_timeout("5x", -1);
    check_timeout("123456789S", -1);
    check_timeout("1.5S", -1);
}

/* What is sent is not earlier than asked, and at most a thousandth later. */
static void test_timeouts_there_and_back(void **state)
{
    (void)state;
    int64_t longest = INT64_C(5000000000000000);
    for (int64_t timeout = 0; timeout < longest; timeout += 1 + timeout / 3) {
        char text[GRPC_TIMEOUT_TEXT_SIZE];
        int64_t back;
        grpc_timeout_format(timeout, text);
        assert_true(grpc_timeout_parse(bytes_of(text), &back));
        assert_true(back >= timeout && back <= timeout + timeout / 1000);
    }
}

/* What eight digits of minutes cannot say is as long as they can. (Rounding up once overflowed; the
 * fuzzer's finding.) */
static void test_timeout_beyond_all(void **state)
{
    (void)state;
    char text[GRPC_TIMEOUT_TEXT_SIZE];
    grpc_timeout_format(INT64_MAX, text);
    assert_string_equal(text, "99999999M");
}

static void test_percent(void **state)
{
    (void)state;
    struct buffer out = {0};
    bytes words = bytes_make("a %\n\0z\303\274~\177", 10);
    grpc_percent_encode(words, &out);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of("a %25%0A%00z%C3%BC~%7F")));
    struct buffer back = {0};
    grpc_percent_decode(buffer_bytes(&out), &back);
    assert_true(bytes_equal(buffer_bytes(&back), words));
    buffer_clear(&out);
    grpc_percent_encode(bytes_of("  a b  "), &out);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of("%20 a b %20")));
    buffer_clear(&back);
    grpc_percent_decode(bytes_of("%c3%BC 100% %zz %4"), &back);
    assert_true(bytes_equal(buffer_bytes(&back), bytes_of("\303\274 100% %zz %4")));
    buffer_free(&out);
    buffer_free(&back);
}

static void test_base64(void **state)
{
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"\377\376\375", "//79"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buffer out = {0};
        uint8_t decoded[16];
        size_t size;
        base64_encode(bytes_of(pairs[i][0]), &out);
        assert_true(bytes_equal(buffer_bytes(&out), bytes_of(pairs[i][1])));
        assert_true(base64_decode(buffer_bytes(&out), decoded, &size));
        assert_true(bytes_equal(bytes_make(decoded, size), bytes_of(pairs[i][0])));
        buffer_free(&out);
    }
}

static void test_base64url(void **state)
{
    (void)state;
    struct buffer out = {0};
    base64url_encode(bytes_of("?>~"), &out);
    base64url_encode(bytes_of("\xff\xfe"), &out);
    base64url_encode(bytes_make(NULL, 0), &out);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of("Pz5-__4")));
    buffer_free(&out);
}

static void check_base64(const char *text, const char *expected)
{
    uint8_t decoded[32];
    size_t size;
    assert_true(base64_decoded_most(strlen(text)) <= sizeof decoded);
    bool valid = base64_decode(bytes_of(text), decoded, &size);
    assert_int_equal(valid, expected != NULL);
    if (expected != NULL)
        assert_true(bytes_equal(bytes_make(decoded, size), bytes_of(expected)));
}

static void test_base64_padding(void **state)
{
    (void)state;
    check_base64("Zg==", "f");
    check_base64("Zm8=", "fo");
    check_base64("Zg=", NULL);
    check_base64("Z", NULL);
    check_base64("Z===", NULL);
    check_base64("Zm9v=", NULL);
    check_base64("Zm 9", NULL);
    check_base64("//79", "\377\376\375");
    check_base64("__79", "\377\376\375"); /* the alphabet for URLs */
    check_base64("Zm*v", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_timeouts_there_and_back),
        cmocka_unit_test(test_timeout_beyond_all),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_base64url),
        cmocka_unit_test(test_base64_padding),
    };
    return cmocka_run_group_tests_name("wire_grpc_text", tests, NULL, NULL);
}
