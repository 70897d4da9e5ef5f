/* What is told of a client's first bytes, as each of them comes. */
#include "wire/sniff.h"

#include "base/testing/testing.h"

/* Decided by so many bytes, and undecided before. */
static void assert_sniffed(const char *text, size_t size, enum sniffed expected, size_t decided_by)
{
    for (size_t i = 1; i < decided_by; i++)
        if (sniff(bytes_make(text, i)) != SNIFFED_NOTHING)
            fail_msg("%s is decided by %zu bytes", text, i);
    for (size_t i = decided_by; i <= size; i++)
        if (sniff(bytes_make(text, i)) != expected)
            fail_msg("%s: %d after %zu bytes", text, sniff(bytes_make(text, i)), i);
}

static void assert_text(const char *text, enum sniffed expected, size_t decided_by)
{
    assert_sniffed(text, strlen(text), expected, decided_by);
}

static void test_http2(void **state)
{
    (void)state;
    assert_text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SNIFFED_HTTP2, 24);
    assert_text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore", SNIFFED_HTTP2, 24);
}

static void test_http1(void **state)
{
    (void)state;
    assert_text("GET / HTTP/1.1\r\n\r\n", SNIFFED_HTTP1, 5);
    assert_text("PUT / HTTP/1.1\r\n\r\n", SNIFFED_HTTP1, 5);
    assert_text("PRI * HTTP/1.1\r\n\r\n", SNIFFED_HTTP1, 12);
    assert_text("OPTIONS * HTTP/1.1\r\n\r\n", SNIFFED_HTTP1, 9);
    assert_text("GET http://host/ HTTP/1.1\r\n\r\n", SNIFFED_HTTP1, 9);
    assert_text("CONNECT host:80 HTTP/1.1\r\n\r\n", SNIFFED_HTTP1, 13);
}

/* Long words end the sniffing, not the connection. */
static void test_long_words(void **state)
{
    (void)state;
    assert_text("GET averyverylongscheme-indeed://host/", SNIFFED_HTTP1, 24);
    assert_text("AVERYLONGMETHODTHATISNOTKNOWN / HTTP/1.1", SNIFFED_HTTP1, 24);
}

/* HTTP/1.1's server says what is wrong with these, which helps a user who has mistaken the port. */
static void test_neither_but_answered(void **state)
{
    (void)state;
    static const char no_tls[] = "\x16\x04 and so on";
    assert_sniffed(no_tls, sizeof no_tls - 1, SNIFFED_HTTP1, 2);
    assert_text("hello\r\n", SNIFFED_HTTP1, 6);
    assert_text("\r\nGET / HTTP/1.1\r\n", SNIFFED_HTTP1, 1);
    assert_text("GET  / HTTP/1.1\r\n", SNIFFED_HTTP1, 5);
}

/* To a port without TLS. It would wait for our answer, and we for the end of its line. */
static void test_a_handshake_of_tls(void **state)
{
    (void)state;
    static const char tls[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on";
    assert_sniffed(tls, sizeof tls - 1, SNIFFED_NEITHER, 2);
}

static void test_a_preface_gone_wrong(void **state)
{
    (void)state;
    assert_text("INVALID CONNECTION PREFACE\r\n\r\n", SNIFFED_NEITHER, 19);
    assert_text("PRI X HTTP/2.0\r\n\r\nSM\r\n\r\n", SNIFFED_NEITHER, 6);
    assert_text("GET x\r\n", SNIFFED_NEITHER, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http2),
        cmocka_unit_test(test_http1),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_neither_but_answered),
        cmocka_unit_test(test_a_handshake_of_tls),
        cmocka_unit_test(test_a_preface_gone_wrong),
    };
    return cmocka_run_group_tests_name("wire_sniff", tests, NULL, NULL);
}
