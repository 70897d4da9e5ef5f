/* Requests of AWS's own Signature Version 4 test suite, with the signatures that it gives. */
#include "aws/signature.h"

#include "base/testing/testing.h"

#define TIME "20150830T123600Z"
#define TOKEN                                                                                      \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP" \
    "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT" \
    "7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlz" \
    "m8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

static const struct aws_header plain[] = {{"host", "example.amazonaws.com"}, {"x-amz-date", TIME}};
static const struct aws_header form[] = {{"content-type", "application/x-www-form-urlencoded"},
                                         {"host", "example.amazonaws.com"},
                                         {"x-amz-date", TIME}};
static const struct aws_header with_token[] = {
    {"host", "example.amazonaws.com"}, {"x-amz-date", TIME}, {"x-amz-security-token", TOKEN}};

static const struct {
    const char *method;
    const char *query;
    const struct aws_header *headers;
    size_t header_count;
    const char *body;
    const char *names;
    const char *signature;
} vectors[] = {
    /* get-vanilla */
    {"GET", NULL, plain, 2, "", "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    /* get-vanilla-query-order-key-case */
    {"GET", "Param1=value1&Param2=value2", plain, 2, "", "host;x-amz-date",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    /* post-vanilla */
    {"POST", NULL, plain, 2, "", "host;x-amz-date",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    /* post-x-www-form-urlencoded */
    {"POST", NULL, form, 3, "Param1=value1", "content-type;host;x-amz-date",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    /* post-sts-header-before */
    {"POST", NULL, with_token, 3, "", "host;x-amz-date;x-amz-security-token",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
};

static void the_test_suites_signatures_come_out(void **state)
{
    const struct aws_signer signer = {.access_key = "AKIDEXAMPLE",
                                      .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                      .region = "us-east-1",
                                      .service = "service"};
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const struct aws_request request = {.method = vectors[i].method,
                                            .path = "/",
                                            .query = vectors[i].query,
                                            .headers = vectors[i].headers,
                                            .header_count = vectors[i].header_count,
                                            .body = bytes_of(vectors[i].body)};
        struct buffer expected = {0}, out = {0};
        buffer_append_format(&expected,
                             "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/"
                             "aws4_request, SignedHeaders=%s, Signature=%s%c",
                             vectors[i].names, vectors[i].signature, 0);
        assert_ok(aws_sign(&signer, &request, TIME, &out));
        buffer_append_byte(&out, 0);
        assert_string_equal((const char *)out.data, (const char *)expected.data);
        buffer_free(&expected);
        buffer_free(&out);
    }
}

static void times_are_written_as_signed(void **state)
{
    char text[AWS_TIME_SIZE];
    (void)state;
    aws_time_format(1440938160999999, text);
    assert_string_equal(text, TIME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_test_suites_signatures_come_out),
        cmocka_unit_test(times_are_written_as_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
