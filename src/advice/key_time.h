/* Times at the front of a key, in the forms that people give them. */
#ifndef TRESTLE_ADVICE_KEY_TIME_H
#define TRESTLE_ADVICE_KEY_TIME_H

#include "base/bytes.h"

enum key_time {
    KEY_TIME_NONE,
    KEY_TIME_DATE,    /* 2024-01-15, 20240115, 2024/01, with or without a time of day */
    KEY_TIME_SECONDS, /* since 1970, in digits */
    KEY_TIME_MILLIS,
    KEY_TIME_MICROS,
    KEY_TIME_NANOS,
    KEY_TIME_REVERSED, /* 2^63 - 1 less one of these, in digits */
    KEY_TIME_BINARY,   /* one of these as eight bytes, the highest first */
    KEY_TIME_UUID,     /* version 7 */
    KEY_TIME_ULID,
    KEY_TIME_OBJECT_ID, /* 24 hexadecimal digits */
};

/* The form of the time that the key begins with, and its size: of a date without the time of day
 * behind it. Times are those from 2005 to a little after now; dates those from 1970 to 2100. */
enum key_time key_time_at(bytes key, int64_t now_us, size_t *size);

/* "a date" */
const char *key_time_name(enum key_time form);

#endif
