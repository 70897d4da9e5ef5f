/* Files of the tz database, as RFC 8536 has them (TZif): when a zone's clocks were changed. */
#ifndef TRESTLE_SQL_TIME_TZFILE_H
#define TRESTLE_SQL_TIME_TZFILE_H

#include "base/bytes.h"
#include "base/status.h"

struct tzfile;

/* Reads the file of the zone's name, below the system's zoneinfo directory. NOT_FOUND; DATA_LOSS
 * for a file that is no TZif. */
status tzfile_read(const char *zone, struct tzfile **out);
void tzfile_destroy(struct tzfile *file); /* NULL is fine */

/* Parses the bytes of a file. */
status tzfile_parse(bytes content, struct tzfile **out);

/* How far clocks are ahead of UTC at a moment, in seconds. After the last change that is listed,
 * the file's rule holds ("PST8PDT,M3.2.0,M11.1.0"). */
int32_t tzfile_offset(const struct tzfile *file, int64_t seconds);

#endif
