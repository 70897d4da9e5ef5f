/* Times at the front of a key, in the forms that people give them. */
#ifndef TRESTLE_ADVISOR_KEY_TIME_H
#define TRESTLE_ADVISOR_KEY_TIME_H

#include "base/bytes.h"

enum key_time {
    KEY_TIME_NONE,
    KEY_TIME_DATE,       /* 2024-01-15, 20240115, 2024/01, with or without a time of day */
    KEY_TIME_LOCAL_DATE, /* 15/01/2024, 01-15-2024, 15.1.2024, 15-Jan-2024 */
    KEY_TIME_LOOSE_DATE, /* 2024-1-15, 2024/1/5: of any width */
    KEY_TIME_WEEK,       /* 2024-W03, 2024W03 */
    KEY_TIME_YEAR_DAY,   /* 2024-015 */
    KEY_TIME_SHORT_DATE, /* 240115, for which many a number could be taken */
    KEY_TIME_SECONDS,    /* since 1970, in digits */
    KEY_TIME_MILLIS,
    KEY_TIME_MICROS,
    KEY_TIME_NANOS,
    KEY_TIME_REVERSED,  /* 2^63 - 1, or all nines, less one of these, in digits */
    KEY_TIME_HEX,       /* one of these in eight hexadecimal digits or more */
    KEY_TIME_SNOWFLAKE, /* milliseconds since November 2010 above 22 other bits, in digits */
    KEY_TIME_BINARY,    /* one of these as eight bytes, the highest first */
    KEY_TIME_UUID,      /* version 7 */
    KEY_TIME_ULID,
    KEY_TIME_OBJECT_ID, /* 24 hexadecimal digits */
    KEY_TIME_FORMS
};

/* The form of the time that the key begins with, and its size: of a date without the time of day
 * behind it. Times are those from 2005 to a little after now; dates those from 1970 to 2100. */
enum key_time key_time_at(bytes key, int64_t now_us, size_t *size);

/* The rank of a key that begins with such a time of such a size: a number that rises with the time,
 * where the form is that of a count. */
uint64_t key_time_rank(bytes key, enum key_time form, size_t size);

/* How local dates are read, which only all of them together can tell: 5/12/2024 is of December, or,
 * with the month first, of May. */
enum key_time_reading { KEY_TIME_DAY_FIRST, KEY_TIME_MONTH_FIRST };

/* Whether such a date has its month first, since there is no month with its second number. */
bool key_time_is_month_first(bytes key, enum key_time form, size_t size);

/* Of a key that begins with such a date of such a size: days since the year 0. 0: it is no date. */
int64_t key_time_day(bytes key, enum key_time form, size_t size, enum key_time_reading reading);

/* Whether the key begins with a date, or a number that rises with the time since 1970, and that
 * lies more than a day ahead. */
bool key_time_is_ahead(bytes key, enum key_time form, size_t size, enum key_time_reading reading,
                       int64_t now_us);

/* Whether keys with such times are in their order, or, reversed, in the other. */
bool key_time_is_in_order(enum key_time form);

/* Whether the form is that of a number which might be something else: it is a time only if rows
 * were not written in another order. Of the doubtful ones they must have been written in this. */
bool key_time_is_count(enum key_time form);
bool key_time_is_doubtful(enum key_time form);

/* Whether the key begins with digits that might be a snowflake's, whatever else they might be; and
 * when it was made, since 1970. */
bool key_time_is_snowflake(bytes key, int64_t now_us, int64_t *at_us);

/* "a date" */
const char *key_time_name(enum key_time form);

#endif
