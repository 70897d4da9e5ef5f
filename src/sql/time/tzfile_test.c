/* Files of the tz database, made by hand: tzfile.c. */
#include "sql/time/tzfile.h"

#include "base/testing/testing.h"

/* A header: how many UTC and standard marks, leap seconds, changes, clocks, bytes of names. */
#define HEADER(changes, clocks, names)                                                             \
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                          \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" changes "\0\0\0" clocks "\0\0\0" names

/* One clock in the first part, which is passed over. */
#define FIRST HEADER("\0", "\1", "\4") "\0\0\0\0\0\0UTC\0"

#define CLOCKS "\0\0\016\020\0\0" /* an hour ahead */ "\0\0\034\040\1\4" /* two hours */
#define NAMES  "CET\0CES\0"

/* At second 1,000 to two hours, at 2,000 back. */
#define CHANGES                                                                                    \
    "\0\0\0\0\0\0\3\350"                                                                           \
    "\0\0\0\0\0\0\7\320"                                                                           \
    "\1\0"
#define SECOND HEADER("\2", "\2", "\10") CHANGES CLOCKS NAMES

#define FILE_OF(text) bytes_make(text, sizeof(text) - 1)

static void changes_are_listed(void **state)
{
    (void)state;
    struct tzfile *file;
    assert_ok(tzfile_parse(FILE_OF(FIRST SECOND "\n\n"), &file));
    assert_int_equal(tzfile_offset(file, -(INT64_C(1) << 40)), 3600);
    assert_int_equal(tzfile_offset(file, 999), 3600);
    assert_int_equal(tzfile_offset(file, 1000), 7200);
    assert_int_equal(tzfile_offset(file, 1999), 7200);
    assert_int_equal(tzfile_offset(file, 2000), 3600);
    assert_int_equal(tzfile_offset(file, INT64_C(1) << 37), 3600);
    tzfile_destroy(file);
}

/* 2024-07-01, 2024-01-01 and the changes of 2024 in seconds since 1970. */
enum { JULY = 1719792000, JANUARY = 1704067200, MARCH_31 = 1711846800, OCTOBER_27 = 1729990800 };

struct rule_case {
    const char *rule;
    int32_t january;
    int32_t july;
    int64_t change; /* a moment at which it takes effect; 0: none */
};

static void check_rule(const struct rule_case *rule)
{
    struct buffer content = {0};
    struct tzfile *file;
    buffer_append_bytes(&content, FILE_OF(FIRST SECOND));
    buffer_append_format(&content, "\n%s\n", rule->rule);
    assert_ok(tzfile_parse(buffer_bytes(&content), &file));
    buffer_free(&content);
    if (tzfile_offset(file, JANUARY) != rule->january || tzfile_offset(file, JULY) != rule->july)
        fail_msg("%s: %d and %d", rule->rule, tzfile_offset(file, JANUARY),
                 tzfile_offset(file, JULY));
    if (rule->change != 0 &&
        tzfile_offset(file, rule->change) == tzfile_offset(file, rule->change - 1))
        fail_msg("%s: no change", rule->rule);
    assert_int_equal(tzfile_offset(file, 1500), 7200); /* what is listed stays */
    tzfile_destroy(file);
}

static void rules_hold_after_the_last_change(void **state)
{
    (void)state;
    static const struct rule_case rules[] = {
        {"UTC0", 0, 0, 0},
        {"<+0530>-5:30", 19800, 19800, 0},
        {"<-03>3", -10800, -10800, 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 3600, 7200, MARCH_31},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 3600, 7200, OCTOBER_27},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 0, 3600, MARCH_31},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", 39600, 36000, 0},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 39600, 37800, 0},
        {"X0Y,J60,J300", 0, 3600, 1709172000 + 86400}, /* 2024-03-01 02:00: no leap day counts */
        {"X0Y,59,300", 0, 3600, 1709172000},           /* 2024-02-29 02:00: it does */
        {"X0Y,0/0,J365/25", 3600, 3600, 0},            /* summer all year */
        {"X0Y,M3.4.4/50,M10.4.4/50", 0, 3600, 0},      /* two days after the fourth Thursday */
        {"X0Y,M3.5.0/-2,M10.5.0/-1", 0, 3600, MARCH_31 - 3 * 3600},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        check_rule(&rules[i]);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        size_t size;
    } cases[] = {
#define CASE(text) {text, sizeof(text) - 1}
        CASE(""),
        CASE("TZif"),
        CASE(FIRST),
        CASE(FIRST SECOND),
        CASE(FIRST SECOND "\n"),
        CASE(FIRST SECOND "x\n"),
        CASE(FIRST SECOND "\nUTC0"),
        CASE(FIRST SECOND "\nUTC\n"),
        CASE(FIRST SECOND "\n5\n"),
        CASE(FIRST SECOND "\n<UTC0\n"),
        CASE(FIRST SECOND "\nX0Y\n"),
        CASE(FIRST SECOND "\nX0Y,M3.5.0\n"),
        CASE(FIRST SECOND "\nX0Y,M13.5.0,M10.5.0\n"),
        CASE(FIRST SECOND "\nX0Y,M3.6.0,M10.5.0\n"),
        CASE(FIRST SECOND "\nX0Y,M3.5.7,M10.5.0\n"),
        CASE(FIRST SECOND "\nX0Y,J367,J1\n"),
        CASE(FIRST SECOND "\nX0Y,J1/200,J2\n"),
        CASE(FIRST SECOND "\nX0Y,J1,J2x\n"),
        CASE(FIRST HEADER("\2", "\1", "\10") CHANGES CLOCKS NAMES "\n\n"), /* no clock 1 */
        CASE(FIRST HEADER("\0", "\0", "\0") "\n\n"),                       /* no clock at all */
        CASE(FIRST HEADER("\0", "\1", "\4") "\177\0\0\0\0\0UTC\0\n\n"),    /* years ahead */
        CASE(FIRST HEADER("\377", "\2", "\10") CHANGES CLOCKS NAMES "\n\n"),
        CASE(FIRST HEADER("\2", "\2", "\10") /* changes back in time */
             "\0\0\0\0\0\0\7\320"
             "\0\0\0\0\0\0\3\350"
             "\1\0" CLOCKS NAMES "\n\n"),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tzfile *file;
        status result = tzfile_parse(bytes_make(cases[i].content, cases[i].size), &file);
        if (result.code != STATUS_DATA_LOSS)
            fail_msg("case %zu is %s", i, status_code_name(result.code));
        assert_null(file);
        status_free(result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_listed),
        cmocka_unit_test(rules_hold_after_the_last_change),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
