/* Time zones: zone.c, and the system's tz database as tzfile.c reads it. */
#include "base/testing/testing.h"
#include "sql/time/calendar.h"
#include "sql/time/zone.h"

static int64_t moment(int32_t year, int32_t month, int32_t day, int64_t seconds)
{
    return days_of_civil((struct civil_date){year, month, day}) * MICROS_PER_DAY +
           seconds * MICROS_PER_SECOND;
}

static const struct sql_zone *find(struct sql_zones *zones, const char *name)
{
    const struct sql_zone *zone = NULL;
    assert_ok(sql_zone_find(zones, bytes_of(name), &zone));
    return zone;
}

/* What Python's zoneinfo says of the same zones at the beginnings of January and July, UTC. */
static void zones_are_ahead_as_others_say(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        int32_t year;
        int32_t january;
        int32_t july;
    } cases[] = {
        {"America/Los_Angeles", 1850, -28378, -28378},
        {"America/Los_Angeles", 1920, -28800, -28800},
        {"America/Los_Angeles", 1945, -25200, -25200},
        {"America/Los_Angeles", 1975, -28800, -25200},
        {"America/Los_Angeles", 2005, -28800, -25200},
        {"America/Los_Angeles", 2024, -28800, -25200},
        {"America/Los_Angeles", 2038, -28800, -25200},
        {"America/Los_Angeles", 2100, -28800, -25200},
        {"America/Los_Angeles", 2500, -28800, -25200},
        {"America/Los_Angeles", 9998, -28800, -25200},
        {"Europe/London", 1850, 0, 0},
        {"Europe/London", 1945, 3600, 7200},
        {"Europe/London", 1969, 3600, 3600},
        {"Europe/London", 1975, 0, 3600},
        {"Europe/London", 2024, 0, 3600},
        {"Europe/London", 2050, 0, 3600},
        {"Europe/London", 9998, 0, 3600},
        {"Europe/Dublin", 2024, 0, 3600},
        {"Europe/Dublin", 2050, 0, 3600},
        {"Europe/Moscow", 1985, 10800, 14400},
        {"Europe/Moscow", 2010, 10800, 14400},
        {"Europe/Moscow", 2012, 14400, 14400},
        {"Europe/Moscow", 2024, 10800, 10800},
        {"Asia/Kolkata", 2024, 19800, 19800},
        {"Asia/Kolkata", 2500, 19800, 19800},
        {"Asia/Kathmandu", 1975, 19800, 19800},
        {"Asia/Kathmandu", 1985, 19800, 19800},
        {"Asia/Kathmandu", 2024, 20700, 20700},
        {"Australia/Lord_Howe", 2024, 39600, 37800},
        {"Australia/Lord_Howe", 2100, 39600, 37800},
        {"America/Sao_Paulo", 2015, -7200, -10800},
        {"America/Sao_Paulo", 2024, -10800, -10800},
        {"Pacific/Apia", 2010, -39600, -39600},
        {"Pacific/Apia", 2012, 50400, 46800},
        {"Pacific/Apia", 2024, 46800, 46800},
        {"America/St_Johns", 2024, -12600, -9000},
        {"America/St_Johns", 2100, -12600, -9000},
        {"Pacific/Kiritimati", 1990, -36000, -36000},
        {"Pacific/Kiritimati", 2024, 50400, 50400},
        {"Antarctica/Troll", 2024, 0, 7200},
        {"Antarctica/Troll", 2100, 0, 7200},
        {"Etc/GMT+8", 2024, -28800, -28800},
    };
    struct sql_zones *zones = sql_zones_create();
    assert_non_null(zones);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sql_zone *zone = find(zones, cases[i].zone);
        int32_t january = sql_zone_offset(zone, moment(cases[i].year, 1, 1, 0));
        int32_t july = sql_zone_offset(zone, moment(cases[i].year, 7, 1, 0));
        if (january != cases[i].january || july != cases[i].july)
            fail_msg("%s in %d: %d and %d", cases[i].zone, cases[i].year, january, july);
    }
    sql_zones_destroy(zones);
}

/* The changes of 2050 are those of the file's rule; 2019 is listed in some files, in others not. */
static void clocks_change_at_the_second(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        int32_t year;
        int32_t month;
        int32_t day;
        int32_t seconds;
        int32_t before;
        int32_t after;
    } cases[] = {
        {"America/Los_Angeles", 2019, 3, 10, 10 * 3600, -8 * 3600, -7 * 3600},
        {"America/Los_Angeles", 2019, 11, 3, 9 * 3600, -7 * 3600, -8 * 3600},
        {"America/Los_Angeles", 2050, 3, 13, 10 * 3600, -8 * 3600, -7 * 3600},
        {"America/Los_Angeles", 2050, 11, 6, 9 * 3600, -7 * 3600, -8 * 3600},
        {"Europe/Berlin", 2050, 3, 27, 3600, 3600, 7200},
        {"Europe/Berlin", 2050, 10, 30, 3600, 7200, 3600},
        {"Europe/Dublin", 2050, 3, 27, 3600, 0, 3600},
        {"Australia/Lord_Howe", 2049, 10, 2, 15 * 3600 + 1800, 37800, 39600},
        {"Pacific/Apia", 2011, 12, 30, 10 * 3600, -10 * 3600, 14 * 3600},
    };
    struct sql_zones *zones = sql_zones_create();
    assert_non_null(zones);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sql_zone *zone = find(zones, cases[i].zone);
        int64_t at = moment(cases[i].year, cases[i].month, cases[i].day, cases[i].seconds);
        if (sql_zone_offset(zone, at - 1) != cases[i].before ||
            sql_zone_offset(zone, at) != cases[i].after)
            fail_msg("%s in %d: %d and %d", cases[i].zone, cases[i].year,
                     sql_zone_offset(zone, at - 1), sql_zone_offset(zone, at));
    }
    sql_zones_destroy(zones);
}

/* From what clocks show to the moment and back, except what they never show. */
static void moments_are_found_again(void **state)
{
    (void)state;
    static const char *const names[] = {"America/Los_Angeles", "Europe/Dublin", "Pacific/Apia",
                                        "Australia/Lord_Howe", "+05:45",        "UTC"};
    struct sql_zones *zones = sql_zones_create();
    assert_non_null(zones);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct sql_zone *zone = find(zones, names[i]);
        for (int64_t at = moment(2011, 1, 1, 0); at < moment(2012, 1, 1, 0);
             at += 1800 * MICROS_PER_SECOND) {
            int64_t shown = at + sql_zone_offset(zone, at) * MICROS_PER_SECOND;
            int64_t found = sql_zone_moment(zone, shown);
            assert_int_equal(found + sql_zone_offset(zone, found) * MICROS_PER_SECOND, shown);
            assert_true(found <= at); /* the first of two */
        }
    }
    sql_zones_destroy(zones);
}

static void names_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t offset; /* -1: there is no such zone */
    } cases[] = {
        {"UTC", 0},
        {"utc", 0},
        {"Z", 0},
        {"+0", 0},
        {"+5", 5 * 3600},
        {"-08", -28800},
        {"+05:30", 19800},
        {"-3:30", -12600},
        {"+14:00", 50400},
        {"+14:01", -1},
        {"+15", -1},
        {"+5:60", -1},
        {"+", -1},
        {"05:30", -1},
        {"+0530", -1},
        {"+05:30x", -1},
        {"+ 5", -1},
        {"+-5", -1},
        {"+5:-3", -1},
        {"/etc/passwd", -1},
        {"../../etc/passwd", -1},
        {"Europe", -1},
        {"Europe/Nowhere", -1},
        {"", -1},
        {"leapseconds", -1},
        {"Europe/Berlin ", -1},
        {"a name that is much longer than the longest of all zones' names there ever were", -1},
    };
    struct sql_zones *zones = sql_zones_create();
    assert_non_null(zones);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sql_zone *zone = NULL;
        status found = sql_zone_find(zones, bytes_of(cases[i].name), &zone);
        bool is_right = cases[i].offset == -1
                            ? found.code == STATUS_OUT_OF_RANGE
                            : status_is_ok(found) && sql_zone_offset(zone, 0) == cases[i].offset;
        status_free(found);
        if (!is_right)
            fail_msg("%s", cases[i].name);
    }
    sql_zones_destroy(zones);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zones_are_ahead_as_others_say),
        cmocka_unit_test(clocks_change_at_the_second),
        cmocka_unit_test(moments_are_found_again),
        cmocka_unit_test(names_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
