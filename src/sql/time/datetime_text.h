/* Dates and times as CAST writes and reads them. */
#ifndef TRESTLE_SQL_TIME_DATETIME_TEXT_H
#define TRESTLE_SQL_TIME_DATETIME_TEXT_H

#include "sql/time/zone.h"
#include "sql/value.h"

/* 2014-09-27 */
void date_append(struct buffer *out, int64_t days);

/* 2014-09-27 12:30:00.450-08: as many digits of the second as there are, none, three or six. */
void timestamp_append(struct buffer *out, int64_t timestamp_us, int32_t offset_seconds);

/* Y-M-D. OUT_OF_RANGE "Invalid date: '…'". */
status date_parse(bytes text, int64_t *out);

/* Y-M-D[( |T|t)H:M:S[.F]][zone]; `zone` is for texts that have none. OUT_OF_RANGE
 * "Invalid timestamp: '…'". *has_zone may be NULL. */
status timestamp_parse(struct sql_zones *zones, bytes text, const struct sql_zone *zone,
                       bool *has_zone, int64_t *out);

#endif
