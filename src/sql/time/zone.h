/* Time zones: fixed offsets, and those of the system's tz database. */
#ifndef TRESTLE_SQL_TIME_ZONE_H
#define TRESTLE_SQL_TIME_ZONE_H

#include "base/bytes.h"
#include "base/status.h"

struct sql_zone;  /* one time zone */
struct sql_zones; /* those that were looked up in a session; freed with it */

struct sql_zones *sql_zones_create(void); /* NULL without memory */
void sql_zones_destroy(struct sql_zones *zones);

/* "UTC", "Z", "America/Los_Angeles", "+05:30", "-8". OUT_OF_RANGE "Invalid time zone: x". Names of
 * the tz database are known if the system has it (Debian: the package tzdata). */
status sql_zone_find(struct sql_zones *zones, bytes name, const struct sql_zone **out);

/* How far the zone's clocks are ahead of UTC at that moment, in seconds. */
int32_t sql_zone_offset(const struct sql_zone *zone, int64_t timestamp_us);

/* The moment at which the zone's clocks show this: a moment as if in UTC. Where they show it twice,
 * the first; where never, that at which they would without the change that skips it. */
int64_t sql_zone_moment(const struct sql_zone *zone, int64_t civil_us);

#endif
