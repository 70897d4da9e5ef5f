/* Rules of --inject: what they say, and what is refused in which words. */
#include "faults/fault_rules.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <string.h>

/* What is read of it, in the one form in which it is written. */
static void reads_as(const char *text, const char *expected)
{
    struct fault_rules rules;
    struct buffer written = {0};
    assert_ok(fault_rules_parse(bytes_of(text), &rules));
    fault_rules_write(&rules, &written);
    buffer_append_byte(&written, '\0');
    assert_string_equal((const char *)written.data, expected);
    buffer_free(&written);
}

static void refuses(const char *text, const char *words)
{
    struct fault_rules rules;
    status s = fault_rules_parse(bytes_of(text), &rules);
    if (strstr(status_message(s), words) == NULL)
        print_error("%s: %s\n", text, status_message(s));
    assert_non_null(strstr(status_message(s), words));
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void valid_rules_are_read(void **state)
{
    (void)state;
    reads_as("ReadRows:delay=50ms", "ReadRows: delay=50000us");
    reads_as(" ReadRows : delay = 5ms .. 20ms , rate = 0.10 ;; ",
             "ReadRows: delay=5000us..20000us, rate=0.1");
    reads_as("*:delay=0..1us", "*: delay=0us..1us");
    reads_as("*:delay=1m", "*: delay=60000000us");
    reads_as("MutateRow:error=UNAVAILABLE,rate=0.000001",
             "MutateRow: error=UNAVAILABLE, rate=0.000001");
    reads_as("a.B/*:rate=1.000000,error=CANCELLED,table=t-1._x",
             "a.B/*: error=CANCELLED, table=t-1._x");
    reads_as("ReadRows:after=3,error=UNAUTHENTICATED,delay=1us",
             "ReadRows: delay=1us, error=UNAUTHENTICATED, after=3");
    reads_as("A:error=ABORTED;seed=18446744073709551615;B:delay=1s",
             "seed=18446744073709551615; A: error=ABORTED; B: delay=1000000us");
}

static void invalid_rules_are_refused(void **state)
{
    (void)state;
    refuses("", "there is no rule");
    refuses("seed=1", "there is no rule");
    refuses(" ; ", "there is no rule");
    refuses("ReadRows", "a rule is a method, a colon");
    refuses("ReadRows:", "delay=50ms and the like");
    refuses("ReadRows:rate=0.5", "neither a delay nor an error");
    refuses(":delay=1ms", "no method has the name \"\"");
    refuses("Read Rows:delay=1ms", "no method has the name \"Read Rows\"");
    refuses("ReadRows:delay", "delay=50ms and the like, not \"delay\"");
    refuses("ReadRows:delays=1ms", "rate or table, not \"delays\"");
    refuses("ReadRows:delay=1ms,delay=2ms", "says twice \"delay\"");
    refuses("ReadRows:delay=1ms,", "delay=50ms and the like, not \"\"");
    for (size_t i = 0; i < 8; i++) {
        static const char *const delays[] = {"",    "50",       "0",     "-1ms",
                                             "61s", "2ms..1ms", "1ms..", "1ms...2ms"};
        char text[64];
        snprintf(text, sizeof text, "ReadRows:delay=%s", delays[i]);
        refuses(text, "a delay is a time such as 50ms");
    }
    for (size_t i = 0; i < 4; i++) {
        static const char *const codes[] = {"", "OK", "unavailable", "14"};
        char text[64];
        snprintf(text, sizeof text, "ReadRows:error=%s", codes[i]);
        refuses(text, "a code of gRPC's");
    }
    for (size_t i = 0; i < 10; i++) {
        static const char *const rates[] = {"",          "0",   "0.0", "1.1", "2",
                                            "0.0000001", "10%", ".5",  "1.",  "-0.5"};
        char text[64];
        snprintf(text, sizeof text, "ReadRows:error=ABORTED,rate=%s", rates[i]);
        refuses(text, "a share of the calls");
    }
    refuses("ReadRows:error=ABORTED,after=0", "from 1 to 1000000");
    refuses("ReadRows:error=ABORTED,after=1000001", "from 1 to 1000000");
    refuses("ReadRows:delay=1ms,after=1", "after is for a rule with an error");
    refuses("ReadRows:delay=1ms,table=", "a table is its id");
    refuses("ReadRows:delay=1ms,table=a/b", "a table is its id");
    refuses("seed=1;seed=2;A:delay=1ms", "two seeds");
    refuses("seed=18446744073709551616;A:delay=1ms", "a seed is a number");
    refuses("seed=;A:delay=1ms", "a seed is a number");
}

static void rule_count_is_limited(void **state)
{
    (void)state;
    struct buffer text = {0};
    for (int i = 0; i < FAULT_RULES_MOST; i++)
        buffer_append_format(&text, "A:delay=1ms;");
    struct fault_rules rules;
    assert_ok(fault_rules_parse(buffer_bytes(&text), &rules));
    assert_int_equal(rules.count, FAULT_RULES_MOST);
    buffer_append_format(&text, "A:delay=1ms");
    assert_status(fault_rules_parse(buffer_bytes(&text), &rules), STATUS_INVALID_ARGUMENT);
    buffer_free(&text);
}

static bool names(const char *which, const char *service, const char *method)
{
    const struct fault_rule rule = {.which = bytes_of(which)};
    return fault_rule_names(&rule, service, method);
}

static void which_methods_are_meant(void **state)
{
    (void)state;
    assert_true(names("*", "a.B", "C"));
    assert_true(names("C", "a.B", "C"));
    assert_true(names("a.B/C", "a.B", "C"));
    assert_true(names("a.B/*", "a.B", "C"));
    assert_false(names("D", "a.B", "C"));
    assert_false(names("a.B/D", "a.B", "C"));
    assert_false(names("a.D/*", "a.B", "C"));
    assert_false(names("a.B", "a.B", "C"));
    assert_false(names("C*", "a.B", "C"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_rules_are_read),
        cmocka_unit_test(invalid_rules_are_refused),
        cmocka_unit_test(rule_count_is_limited),
        cmocka_unit_test(which_methods_are_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
