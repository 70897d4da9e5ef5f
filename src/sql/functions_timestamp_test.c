/* Functions on timestamps: functions_timestamp.c; CAST to and from them: datetime_text.c. */
#include "sql/expression_testing.h"

#define ERROR(words)   "OUT_OF_RANGE: " words
#define INVALID(words) "INVALID_ARGUMENT: " words " [at 1:8]"
#define T(text)        "TIMESTAMP \"" text "+00\""
#define RANGE(number)                                                                              \
    ERROR("Input value " number " cannot be converted into a TIMESTAMP, because it would be out "  \
          "of the allowed range between -62135596800000000 to 253402300799999999 (microseconds)")

static void timestamps_are_made(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"CURRENT_TIMESTAMP()", T("2020-01-02 03:04:05.678901"), "the session's"},
        {"CURRENT_TIMESTAMP", T("2020-01-02 03:04:05.678901"), "without parentheses"},
        {"CURRENT_TIMESTAMP() = current_timestamp", "true", "always the same"},
        {"TIMESTAMP('2008-12-25 15:30:00+00')", T("2008-12-25 15:30:00"), "its own offset"},
        {"TIMESTAMP('2008-12-25 15:30:00', 'America/Los_Angeles')", T("2008-12-25 23:30:00"),
         "a zone"},
        {"TIMESTAMP('2008-12-25 15:30:00 UTC')", T("2008-12-25 15:30:00"), "its own zone"},
        {"TIMESTAMP('2022-01-10T23:00:00.000Z')", T("2022-01-10 23:00:00"), "T and Z"},
        {"TIMESTAMP('2008-12-25 15:30:00+01', 'UTC')",
         ERROR("Timezone is not allowed in \"2008-12-25 15:30:00+01\""), "two zones"},
        {"TIMESTAMP('2008-12-25 15:30:00Z', 'UTC')",
         ERROR("Timezone is not allowed in \"2008-12-25 15:30:00Z\""), "two zones, the same"},
        {"TIMESTAMP('2008-12-25')", T("2008-12-25 00:00:00"), "no time"},
        {"TIMESTAMP('2008-12-25', '-08:00')", T("2008-12-25 08:00:00"), "no time, an offset"},
        {"TIMESTAMP('2008-12-25 15:30', 'UTC')", ERROR("Invalid timestamp: '2008-12-25 15:30'"),
         "no seconds"},
        {"TIMESTAMP('x')", ERROR("Invalid timestamp: 'x'"), "no timestamp"},
        {"TIMESTAMP('')", ERROR("Invalid timestamp: ''"), "empty"},
        {"SAFE.TIMESTAMP('x')", "NULL", "SAFE"},
        {"TIMESTAMP('2008-12-25', 'Nowhere/City')", ERROR("Invalid time zone: Nowhere/City"),
         "no such zone"},
        {"TIMESTAMP('2008-12-25', '../etc/passwd')", ERROR("Invalid time zone: ../etc/passwd"),
         "no way out"},
        {"TIMESTAMP('2008-12-25', '')", ERROR("Invalid empty time zone"), "no zone"},
        {"TIMESTAMP('2008-12-25', 'America')", ERROR("Invalid time zone: America"), "a folder"},
        {"TIMESTAMP('2008-12-25', 'leapseconds')", ERROR("Invalid time zone: leapseconds"),
         "a file that is no zone"},
        {"TIMESTAMP(CAST(NULL AS STRING))", "NULL", "NULL"},
        {"TIMESTAMP('2008-12-25', NULL)", "NULL", "NULL"},
        {"TIMESTAMP(DATE '2008-12-25')", T("2008-12-25 00:00:00"), "of a date"},
        {"TIMESTAMP(DATE '2008-12-25', 'America/Los_Angeles')", T("2008-12-25 08:00:00"),
         "midnight there"},
        {"TIMESTAMP(DATE '2008-06-25', 'America/Los_Angeles')", T("2008-06-25 07:00:00"),
         "in summer"},
        {"TIMESTAMP(DATE '9999-12-31', '-14')", T("9999-12-31 14:00:00"), "the last midnight"},
        {"TIMESTAMP(DATE '0001-01-01', '+01')",
         ERROR("Invalid timestamp: '0000-12-31 23:00:00+00'"), "before the first"},
        {"TIMESTAMP(TIMESTAMP '2008-12-25 15:30:00')", T("2008-12-25 15:30:00"), "itself"},
        {"TIMESTAMP_SECONDS(1230219000)", T("2008-12-25 15:30:00"), "seconds"},
        {"TIMESTAMP_MILLIS(1230219000123)", T("2008-12-25 15:30:00.123"), "milliseconds"},
        {"TIMESTAMP_MICROS(1230219000123456)", T("2008-12-25 15:30:00.123456"), "microseconds"},
        {"TIMESTAMP_SECONDS(-1)", T("1969-12-31 23:59:59"), "before 1970"},
        {"TIMESTAMP_MILLIS(-1)", T("1969-12-31 23:59:59.999"), "before 1970"},
        {"TIMESTAMP_MICROS(-1)", T("1969-12-31 23:59:59.999999"), "before 1970"},
        {"TIMESTAMP_SECONDS(253402300799)", T("9999-12-31 23:59:59"), "the last"},
        {"TIMESTAMP_SECONDS(253402300800)", RANGE("253402300800"), "after it"},
        {"TIMESTAMP_SECONDS(-62135596800)", T("0001-01-01 00:00:00"), "the first"},
        {"TIMESTAMP_MILLIS(-62135596800001)", RANGE("-62135596800001"), "before it"},
        {"TIMESTAMP_SECONDS(9223372036854775807)", RANGE("9223372036854775807"), "overflow"},
        {"TIMESTAMP_MILLIS(-9223372036854775808)", RANGE("-9223372036854775808"), "overflow"},
        {"TIMESTAMP_MICROS(253402300800000000)", RANGE("253402300800000000"), "after the last"},
        {"SAFE.TIMESTAMP_MICROS(253402300800000000)", "NULL", "SAFE"},
        {"TIMESTAMP_SECONDS(NULL)", "NULL", "NULL"},
        {"TIMESTAMP_FROM_UNIX_SECONDS(1230219000)", T("2008-12-25 15:30:00"), "seconds"},
        {"TIMESTAMP_FROM_UNIX_MILLIS(1000)", T("1970-01-01 00:00:01"), "milliseconds"},
        {"TIMESTAMP_FROM_UNIX_MICROS(1)", T("1970-01-01 00:00:00.000001"), "microseconds"},
        {"TIMESTAMP_FROM_UNIX_SECONDS(TIMESTAMP '2008-12-25 15:30:00')", T("2008-12-25 15:30:00"),
         "a timestamp stays"},
        {"TIMESTAMP_FROM_UNIX_MILLIS(TIMESTAMP '2008-12-25 15:30:00')", T("2008-12-25 15:30:00"),
         "a timestamp stays"},
        {"TIMESTAMP_FROM_UNIX_MICROS(TIMESTAMP '2008-12-25 15:30:00')", T("2008-12-25 15:30:00"),
         "a timestamp stays"},
        {"TIMESTAMP_FROM_UNIX_MILLIS(NULL)", "NULL", "NULL"},
        {"UNIX_SECONDS(TIMESTAMP '2008-12-25 15:30:00+00')", "1230219000", "seconds"},
        {"UNIX_SECONDS(TIMESTAMP '1970-01-01 00:00:01.8+00')", "1", "down"},
        {"UNIX_SECONDS(TIMESTAMP '1969-12-31 23:59:59.9+00')", "-1", "down, before 1970"},
        {"UNIX_MILLIS(TIMESTAMP '2008-12-25 15:30:00+00')", "1230219000000", "milliseconds"},
        {"UNIX_MILLIS(TIMESTAMP '1970-01-01 00:00:00.0018+00')", "1", "down"},
        {"UNIX_MILLIS(TIMESTAMP '1969-12-31 23:59:59.9999+00')", "-1", "down, before 1970"},
        {"UNIX_MICROS(TIMESTAMP '2008-12-25 15:30:00+00')", "1230219000000000", "microseconds"},
        {"UNIX_MICROS(TIMESTAMP '0001-01-01')", "-62135596800000000", "the first"},
        {"UNIX_MICROS('9999-12-31 23:59:59.999999')", "253402300799999999", "the last"},
        {"UNIX_SECONDS(NULL)", "NULL", "NULL"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void timestamps_are_read_and_written(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"CAST('2014-09-27 12:30:00.45-08' AS TIMESTAMP)", T("2014-09-27 20:30:00.450"),
         "hours of an offset"},
        {"CAST('2014-09-27 12:30:00-8' AS TIMESTAMP)", T("2014-09-27 20:30:00"), "one digit"},
        {"CAST('2014-09-27 12:30:00+05:30' AS TIMESTAMP)", T("2014-09-27 07:00:00"), "minutes"},
        {"CAST('2014-09-27 12:30:00-03:30' AS TIMESTAMP)", T("2014-09-27 16:00:00"),
         "minutes to the west"},
        {"CAST('2014-09-27t12:30:00z' AS TIMESTAMP)", T("2014-09-27 12:30:00"), "small letters"},
        {"CAST('2014-9-7 1:2:3' AS TIMESTAMP)", T("2014-09-07 01:02:03"), "short numbers"},
        {"CAST('2014-09-27 12:30:00 America/Los_Angeles' AS TIMESTAMP)", T("2014-09-27 19:30:00"),
         "a name"},
        {"CAST('2014-09-27 America/Los_Angeles' AS TIMESTAMP)", T("2014-09-27 07:00:00"),
         "a name after a date"},
        {"CAST('2014-09-27+01' AS TIMESTAMP)", T("2014-09-26 23:00:00"), "an offset after a date"},
        {"CAST('  2014-09-27 12:30:00 ' AS TIMESTAMP)", T("2014-09-27 12:30:00"), "blanks around"},
        {"CAST('2014-09-27 12:30:00.' AS TIMESTAMP)", T("2014-09-27 12:30:00"), "no fraction"},
        {"CAST('2014-09-27 12:30:00.1' AS TIMESTAMP)", T("2014-09-27 12:30:00.100"), "a digit"},
        {"CAST('2014-09-27 12:30:00.000001' AS TIMESTAMP)", T("2014-09-27 12:30:00.000001"),
         "six digits"},
        {"CAST(CONCAT('2014-09-27 12:30:00.0000001', '') AS TIMESTAMP)",
         ERROR("Invalid timestamp: '2014-09-27 12:30:00.0000001'"), "seven digits"},
        {"CAST('2014-06-30 23:59:60' AS TIMESTAMP)", T("2014-07-01 00:00:00"), "a leap second"},
        {"CAST(CONCAT('2014-09-27 24:00:00', '') AS TIMESTAMP)",
         ERROR("Invalid timestamp: '2014-09-27 24:00:00'"), "hour 24"},
        {"CAST(CONCAT('2014-09-27 12:60:00', '') AS TIMESTAMP)",
         ERROR("Invalid timestamp: '2014-09-27 12:60:00'"), "minute 60"},
        {"CAST(CONCAT('2014-02-29', '') AS TIMESTAMP)", ERROR("Invalid timestamp: '2014-02-29'"),
         "no leap day"},
        {"CAST(CONCAT('2014-09-27 12:30:00 x', '') AS TIMESTAMP)", ERROR("Invalid time zone: x"),
         "no such zone"},
        {"CAST(CONCAT('0001-01-01 00:00:00+01', '') AS TIMESTAMP)",
         ERROR("Invalid timestamp: '0001-01-01 00:00:00+01'"), "before the first"},
        {"CAST(CONCAT('9999-12-31 23:59:59-01', '') AS TIMESTAMP)",
         ERROR("Invalid timestamp: '9999-12-31 23:59:59-01'"), "after the last"},
        {"CAST('10000-01-01' AS TIMESTAMP)",
         "INVALID_ARGUMENT: Could not cast literal \"10000-01-01\" to type TIMESTAMP [at 1:13]",
         "a literal is checked at once"},
        {"SAFE_CAST(CONCAT('2014', '') AS TIMESTAMP)", "NULL", "SAFE_CAST"},
        {"CAST(TIMESTAMP '2020-06-02 21:58:40' AS STRING)", "\"2020-06-02 21:58:40+00\"",
         "no fraction"},
        {"CAST(TIMESTAMP '2020-06-02 21:58:40.12' AS STRING)", "\"2020-06-02 21:58:40.120+00\"",
         "three digits"},
        {"CAST(TIMESTAMP '2020-06-02 21:58:40.1200003' AS STRING)",
         "INVALID_ARGUMENT: Invalid TIMESTAMP literal [at 1:13]", "more digits than there are"},
        {"CAST(TIMESTAMP '2020-06-02 21:58:40.12003' AS STRING)",
         "\"2020-06-02 21:58:40.120030+00\"", "six digits"},
        {"CAST(TIMESTAMP '0001-01-01' AS STRING)", "\"0001-01-01 00:00:00+00\"", "the first"},
        {"STRING(TIMESTAMP '2008-12-25 15:30:00+00')", "\"2008-12-25 15:30:00+00\"", "in UTC"},
        {"STRING(TIMESTAMP '2008-12-25 15:30:00+00', 'America/Los_Angeles')",
         "\"2008-12-25 07:30:00-08\"", "there"},
        {"STRING(TIMESTAMP '2008-06-25 15:30:00+00', 'America/Los_Angeles')",
         "\"2008-06-25 08:30:00-07\"", "in summer"},
        {"STRING(TIMESTAMP '2008-12-25 15:30:00+00', 'Asia/Kolkata')",
         "\"2008-12-25 21:00:00+05:30\"", "half an hour"},
        {"STRING(TIMESTAMP '2008-12-25 15:30:00+00', '-03:30')", "\"2008-12-25 12:00:00-03:30\"",
         "an offset"},
        {"STRING(TIMESTAMP '1800-01-01 00:00:00', 'America/Los_Angeles')",
         "\"1799-12-31 16:08:00-07:52\"", "without the seconds of an offset"},
        {"STRING(TIMESTAMP '2008-12-25', 'x')", ERROR("Invalid time zone: x"), "no such zone"},
        {"SAFE.STRING(TIMESTAMP '2008-12-25', 'x')", "NULL", "SAFE"},
        {"STRING(CAST(NULL AS TIMESTAMP))", "NULL", "NULL"},
        {"STRING(TIMESTAMP '2008-12-25', NULL)", "NULL", "NULL"},
        {"CAST(TIMESTAMP '2020-06-02 23:59:59.999999' AS DATE)", "DATE \"2020-06-02\"", "its day"},
        {"TIMESTAMP '2008-12-25 15:30:00+00' = '2008-12-25 07:30:00-08'", "true", "one moment"},
        {"TIMESTAMP '2008-12-25 15:30:00' < '2008-12-25 15:30:00.000001'", "true", "order"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void parts_of_timestamps_are_extracted(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"EXTRACT(DAY FROM TIMESTAMP '2008-12-25 05:30:00+00')", "25", "in UTC"},
        {"EXTRACT(DAY FROM TIMESTAMP '2008-12-25 05:30:00+00' AT TIME ZONE "
         "'America/Los_Angeles')",
         "24", "there"},
        {"EXTRACT(DAY FROM TIMESTAMP '2008-12-25 05:30:00+00' AT TIME ZONE '+19')",
         ERROR("Invalid time zone: +19"), "no such offset"},
        {"EXTRACT(MICROSECOND FROM TIMESTAMP '2008-12-25 05:30:07.123456')", "123456",
         "of the second"},
        {"EXTRACT(MILLISECOND FROM TIMESTAMP '2008-12-25 05:30:07.123999')", "123", "down"},
        {"EXTRACT(SECOND FROM TIMESTAMP '2008-12-25 05:30:07.9')", "7", "SECOND"},
        {"EXTRACT(MINUTE FROM TIMESTAMP '2008-12-25 05:30:07')", "30", "MINUTE"},
        {"EXTRACT(HOUR FROM TIMESTAMP '2008-12-25 05:30:07')", "5", "HOUR"},
        {"EXTRACT(MINUTE FROM TIMESTAMP '2008-12-25 05:30:07' AT TIME ZONE 'Asia/Kolkata')", "0",
         "half an hour on"},
        {"EXTRACT(HOUR FROM TIMESTAMP '2008-12-25 23:30:07' AT TIME ZONE '+01:00')", "0",
         "the next day"},
        {"EXTRACT(MICROSECOND FROM TIMESTAMP '1969-12-31 23:59:59.000001')", "1", "before 1970"},
        {"EXTRACT(SECOND FROM TIMESTAMP '1969-12-31 23:59:59.5')", "59", "before 1970"},
        {"EXTRACT(HOUR FROM TIMESTAMP '1969-12-31 23:59:59.5')", "23", "before 1970"},
        {"EXTRACT(DAYOFWEEK FROM TIMESTAMP '2008-12-25 05:30:00')", "5", "a Thursday"},
        {"EXTRACT(DAYOFYEAR FROM TIMESTAMP '2008-12-25 05:30:00')", "360", "DAYOFYEAR"},
        {"EXTRACT(MONTH FROM TIMESTAMP '2008-12-25 05:30:00')", "12", "MONTH"},
        {"EXTRACT(QUARTER FROM TIMESTAMP '2008-12-25 05:30:00')", "4", "QUARTER"},
        {"EXTRACT(ISOYEAR FROM TIMESTAMP '2009-01-01 12:00:00+00')", "2009", "ISOYEAR"},
        {"EXTRACT(ISOWEEK FROM TIMESTAMP '2009-01-01 12:00:00+00')", "1", "ISOWEEK"},
        {"EXTRACT(WEEK FROM TIMESTAMP '2009-01-01 12:00:00+00')", "0", "WEEK"},
        {"EXTRACT(ISOYEAR FROM TIMESTAMP '2007-12-31 12:00:00+00')", "2008", "ISOYEAR"},
        {"EXTRACT(WEEK FROM TIMESTAMP '2007-12-31 12:00:00+00')", "52", "WEEK"},
        {"EXTRACT(WEEK(MONDAY) FROM TIMESTAMP '2017-11-05 00:00:00+00')", "44", "WEEK(MONDAY)"},
        {"EXTRACT(YEAR FROM TIMESTAMP '2008-12-31 23:59:59' AT TIME ZONE '+01')", "2009",
         "the next year"},
        {"EXTRACT(DATE FROM TIMESTAMP '2008-12-25 05:30:00+00')", "DATE \"2008-12-25\"", "DATE"},
        {"EXTRACT(DATE FROM TIMESTAMP '2008-12-25 05:30:00+00' AT TIME ZONE "
         "'America/Los_Angeles')",
         "DATE \"2008-12-24\"", "DATE there"},
        {"EXTRACT(DAY FROM CAST(NULL AS TIMESTAMP))", "NULL", "NULL"},
        {"EXTRACT(DAY FROM TIMESTAMP '2008-12-25' AT TIME ZONE NULL)", "NULL", "NULL"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void timestamps_are_added_to(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00+00', INTERVAL 10 MINUTE)",
         T("2008-12-25 15:40:00"), "MINUTE"},
        {"TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00', INTERVAL 1 MICROSECOND)",
         T("2008-12-25 15:30:00.000001"), "MICROSECOND"},
        {"TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00', INTERVAL 1 MILLISECOND)",
         T("2008-12-25 15:30:00.001"), "MILLISECOND"},
        {"TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00', INTERVAL -1 SECOND)",
         T("2008-12-25 15:29:59"), "SECOND, backwards"},
        {"TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00', INTERVAL 24 HOUR)",
         T("2008-12-26 15:30:00"), "HOUR"},
        {"TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00', INTERVAL 1 DAY)", T("2008-12-26 15:30:00"),
         "DAY is 24 hours"},
        {"TIMESTAMP_ADD('2008-12-25', INTERVAL 1 DAY)", T("2008-12-26 00:00:00"), "a literal"},
        {"TIMESTAMP_ADD(TIMESTAMP '9999-12-31 23:59:59.999999', INTERVAL 1 MICROSECOND)",
         ERROR("Adding 1 MICROSECOND to timestamp 9999-12-31 23:59:59.999999+00 causes overflow"),
         "after the last"},
        {"TIMESTAMP_ADD(TIMESTAMP '0001-01-01', INTERVAL -1 DAY)",
         ERROR("Adding -1 DAY to timestamp 0001-01-01 00:00:00+00 causes overflow"),
         "before the first"},
        {"TIMESTAMP_ADD(TIMESTAMP '2000-01-01', INTERVAL 9223372036854775807 DAY)",
         ERROR(
             "Adding 9223372036854775807 DAY to timestamp 2000-01-01 00:00:00+00 causes overflow"),
         "overflow"},
        {"TIMESTAMP_ADD(TIMESTAMP '2000-01-01', INTERVAL 9223372036854775807 MICROSECOND)",
         ERROR("Adding 9223372036854775807 MICROSECOND to timestamp 2000-01-01 00:00:00+00 causes "
               "overflow"),
         "overflow"},
        {"SAFE.TIMESTAMP_ADD(TIMESTAMP '9999-12-31', INTERVAL 1 DAY)", "NULL", "SAFE"},
        {"TIMESTAMP_ADD(CAST(NULL AS TIMESTAMP), INTERVAL 1 DAY)", "NULL", "NULL"},
        {"TIMESTAMP_ADD(TIMESTAMP '2000-01-01', INTERVAL NULL DAY)", "NULL", "NULL"},
        {"TIMESTAMP_ADD(TIMESTAMP '2000-01-01', INTERVAL 1 MONTH)",
         INVALID("TIMESTAMP_ADD does not support the MONTH date part when the argument is "
                 "TIMESTAMP type"),
         "no months"},
        {"TIMESTAMP_SUB(TIMESTAMP '2008-12-25 15:30:00+00', INTERVAL 10 MINUTE)",
         T("2008-12-25 15:20:00"), "MINUTE"},
        {"TIMESTAMP_SUB(TIMESTAMP '2008-12-25', INTERVAL 1 MICROSECOND)",
         T("2008-12-24 23:59:59.999999"), "MICROSECOND"},
        {"TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 1 DAY)", T("2020-01-01 03:04:05.678901"),
         "DAY"},
        {"TIMESTAMP_SUB(TIMESTAMP '0001-01-01', INTERVAL 1 SECOND)",
         ERROR("Subtracting 1 SECOND from timestamp 0001-01-01 00:00:00+00 causes overflow"),
         "before the first"},
        {"TIMESTAMP_SUB(TIMESTAMP '2000-01-01', INTERVAL -9223372036854775808 HOUR)",
         ERROR("Subtracting -9223372036854775808 HOUR from timestamp 2000-01-01 00:00:00+00 "
               "causes overflow"),
         "what has no negative"},
        {"TIMESTAMP_DIFF(TIMESTAMP '2010-07-07 10:20:00', TIMESTAMP '2008-12-25 15:30:00', HOUR)",
         "13410", "hours"},
        {"TIMESTAMP_DIFF(TIMESTAMP '2018-08-14', TIMESTAMP '2018-10-14', DAY)", "-61", "backwards"},
        {"TIMESTAMP_DIFF('2001-02-01 01:00:00', '2001-02-01 00:00:01', HOUR)", "0", "whole hours"},
        {"TIMESTAMP_DIFF('2001-02-01 00:00:01', '2001-02-01 01:00:00', HOUR)", "0", "towards zero"},
        {"TIMESTAMP_DIFF('2001-02-01 00:00:00', '2001-02-01 00:01:30', MINUTE)", "-1",
         "towards zero"},
        {"TIMESTAMP_DIFF('2001-02-01 00:00:01', '2001-02-01 00:00:00', SECOND)", "1", "SECOND"},
        {"TIMESTAMP_DIFF('2001-02-01 00:00:01', '2001-02-01 00:00:00', MILLISECOND)", "1000",
         "MILLISECOND"},
        {"TIMESTAMP_DIFF('9999-12-31 23:59:59.999999', '0001-01-01', MICROSECOND)",
         "315537897599999999", "all there are"},
        {"TIMESTAMP_DIFF('9999-12-31 23:59:59.999999', '0001-01-01', DAY)", "3652058", "all days"},
        {"TIMESTAMP_DIFF(NULL, '0001-01-01', DAY)", "NULL", "NULL"},
        {"TIMESTAMP_DIFF('2001-02-01', '2001-02-01', WEEK)",
         INVALID("TIMESTAMP_DIFF does not support the WEEK date part when the argument is "
                 "TIMESTAMP type"),
         "no weeks"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void timestamps_are_truncated(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00+00', DAY, 'UTC')",
         T("2008-12-25 00:00:00"), "DAY"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00+00', DAY, 'America/Los_Angeles')",
         T("2008-12-25 08:00:00"), "DAY there"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:07.123456', MICROSECOND)",
         T("2008-12-25 15:30:07.123456"), "MICROSECOND"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:07.123456', MILLISECOND)",
         T("2008-12-25 15:30:07.123"), "MILLISECOND"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:07.123456', SECOND)",
         T("2008-12-25 15:30:07"), "SECOND"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:07.123456', MINUTE)",
         T("2008-12-25 15:30:00"), "MINUTE"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:07.123456', HOUR)", T("2008-12-25 15:00:00"),
         "HOUR"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:40:00', HOUR, 'Asia/Kolkata')",
         T("2008-12-25 15:30:00"), "hours that begin at half past"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '1969-12-31 23:59:59.5', SECOND)", T("1969-12-31 23:59:59"),
         "before 1970"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00', WEEK)", T("2008-12-21 00:00:00"),
         "WEEK"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2017-11-06 00:00:00+12', WEEK(MONDAY), 'UTC')",
         T("2017-10-30 00:00:00"), "WEEK(MONDAY) in UTC"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2017-11-06 00:00:00+12', WEEK(MONDAY), 'Pacific/Auckland')",
         T("2017-11-05 11:00:00"), "in Auckland, where it is Monday"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00', ISOWEEK)", T("2008-12-22 00:00:00"),
         "ISOWEEK"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00', MONTH)", T("2008-12-01 00:00:00"),
         "MONTH"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00', QUARTER)", T("2008-10-01 00:00:00"),
         "QUARTER"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00', QUARTER, 'America/Los_Angeles')",
         T("2008-10-01 07:00:00"), "in summer"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00', YEAR)", T("2008-01-01 00:00:00"),
         "YEAR"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2015-06-15 00:00:00+00', ISOYEAR)", T("2014-12-29 00:00:00"),
         "ISOYEAR"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2011-11-06 09:30:00', HOUR, 'America/Los_Angeles')",
         T("2011-11-06 09:00:00"), "the second of two hours stays"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2011-11-06 12:00:00', DAY, 'America/Los_Angeles')",
         T("2011-11-06 07:00:00"), "the day began in summer"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2018-11-04 12:00:00', DAY, 'America/Sao_Paulo')",
         T("2018-11-04 03:00:00"), "a day whose first hour is skipped"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '0001-01-01 00:00:00', WEEK)",
         ERROR("Invalid timestamp: '0000-12-31 00:00:00+00'"), "before the first"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25', DAY, 'x')", ERROR("Invalid time zone: x"),
         "no such zone"},
        {"TIMESTAMP_TRUNC(CAST(NULL AS TIMESTAMP), DAY)", "NULL", "NULL"},
        {"TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25', DAYOFWEEK)",
         INVALID("TIMESTAMP_TRUNC does not support the DAYOFWEEK date part when the argument is "
                 "TIMESTAMP type"),
         "no period"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void clocks_are_changed(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"TIMESTAMP('2019-03-10 01:59:59', 'America/Los_Angeles')", T("2019-03-10 09:59:59"),
         "before the change"},
        {"TIMESTAMP('2019-03-10 02:30:00', 'America/Los_Angeles')", T("2019-03-10 10:30:00"),
         "what is skipped, as without the change"},
        {"TIMESTAMP('2019-03-10 03:00:00', 'America/Los_Angeles')", T("2019-03-10 10:00:00"),
         "after it"},
        {"TIMESTAMP('2019-11-03 01:30:00', 'America/Los_Angeles')", T("2019-11-03 08:30:00"),
         "what there is twice: the first"},
        {"TIMESTAMP('2019-11-03 02:00:00', 'America/Los_Angeles')", T("2019-11-03 10:00:00"),
         "after both"},
        {"STRING(TIMESTAMP '2019-11-03 09:30:00', 'America/Los_Angeles')",
         "\"2019-11-03 01:30:00-08\"", "the second"},
        {"TIMESTAMP('2011-12-30 12:00:00', 'Pacific/Apia')", T("2011-12-30 22:00:00"),
         "a day that there was not"},
        {"STRING(TIMESTAMP '2011-12-30 10:00:00', 'Pacific/Apia')", "\"2011-12-31 00:00:00+14\"",
         "the day after"},
        {"STRING(TIMESTAMP '2011-12-30 09:59:59', 'Pacific/Apia')", "\"2011-12-29 23:59:59-10\"",
         "the day before"},
        {"STRING(TIMESTAMP '2500-07-01', 'America/Los_Angeles')", "\"2500-06-30 17:00:00-07\"",
         "by rule, long after the file ends"},
        {"STRING(TIMESTAMP '9999-12-31', 'Europe/Berlin')", "\"9999-12-31 01:00:00+01\"",
         "and in the last winter"},
        {"STRING(TIMESTAMP '2500-01-01', 'Australia/Lord_Howe')", "\"2500-01-01 11:00:00+11\"",
         "summer in January, half an hour of it"},
        {"STRING(TIMESTAMP '2500-07-01', 'Australia/Lord_Howe')", "\"2500-07-01 10:30:00+10:30\"",
         "winter in July"},
        {"STRING(TIMESTAMP '2500-07-01', 'Europe/Dublin')", "\"2500-07-01 01:00:00+01\"",
         "where winter is the exception"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void arrays_of_timestamps_are_made(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-07', INTERVAL 1 DAY)",
         "[" T("2016-10-05 00:00:00") ", " T("2016-10-06 00:00:00") ", " T(
             "2016-10-07 00:00:00") "]",
         "with its end"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05 00:00:00', '2016-10-05 00:00:02', INTERVAL 1 "
         "SECOND)[2]",
         T("2016-10-05 00:00:02"), "seconds"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-06', '2016-10-01', INTERVAL -2 DAY)",
         "[" T("2016-10-06 00:00:00") ", " T("2016-10-04 00:00:00") ", " T(
             "2016-10-02 00:00:00") "]",
         "backwards, before its end"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-05', INTERVAL 1 HOUR)",
         "[" T("2016-10-05 00:00:00") "]", "one"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-05', INTERVAL -1 HOUR)",
         "[" T("2016-10-05 00:00:00") "]", "one, backwards"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-06', '2016-10-05', INTERVAL 1 HOUR)", "[]",
         "the wrong way"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-06', INTERVAL -1 HOUR)", "[]",
         "the wrong way"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-06', INTERVAL 9223372036854775807 DAY)",
         "[" T("2016-10-05 00:00:00") "]", "a step beyond all"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-06', '2016-10-05', INTERVAL -9223372036854775808 "
         "MICROSECOND)",
         "[" T("2016-10-06 00:00:00") "]", "a step beyond all, backwards"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-06', INTERVAL 0 DAY)",
         ERROR("Sequence step cannot be 0"), "no step"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', NULL, INTERVAL 1 DAY)", "NULL", "NULL"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-06')",
         INVALID("No matching signature for function GENERATE_TIMESTAMP_ARRAY for argument types: "
                 "STRING, STRING"),
         "its step must be said"},
        {"GENERATE_TIMESTAMP_ARRAY('2016-10-05', '2016-10-06', INTERVAL 1 MONTH)",
         INVALID("GENERATE_TIMESTAMP_ARRAY does not support the MONTH date part when the argument "
                 "is TIMESTAMP type"),
         "no months"},
    };
    CHECK_EXPRESSIONS(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timestamps_are_made),
        cmocka_unit_test(timestamps_are_read_and_written),
        cmocka_unit_test(parts_of_timestamps_are_extracted),
        cmocka_unit_test(timestamps_are_added_to),
        cmocka_unit_test(timestamps_are_truncated),
        cmocka_unit_test(clocks_are_changed),
        cmocka_unit_test(arrays_of_timestamps_are_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
