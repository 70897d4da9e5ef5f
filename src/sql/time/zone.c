/* Time zones: see zone.h. */
#include "sql/time/zone.h"

#include "sql/time/calendar.h"
#include "sql/time/tzfile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { NAME_SIZE = 64, MOST_HOURS = 14 };

struct sql_zone {
    struct sql_zone *next;
    char name[NAME_SIZE]; /* as it was asked for */
    int32_t offset;       /* seconds */
    struct tzfile *file;  /* NULL: always the same */
};

struct sql_zones {
    struct sql_zone *first;
};

struct sql_zones *sql_zones_create(void)
{
    return calloc(1, sizeof(struct sql_zones));
}

void sql_zones_destroy(struct sql_zones *zones)
{
    if (zones == NULL)
        return;
    for (struct sql_zone *zone = zones->first, *next; zone != NULL; zone = next) {
        next = zone->next;
        tzfile_destroy(zone->file);
        free(zone);
    }
    free(zones);
}

/* --- looking up --- */

static status no_zone(bytes name)
{
    return status_make(STATUS_OUT_OF_RANGE, "Invalid time zone: %.*s", (int)name.size,
                       (const char *)name.data);
}

/* +H, +HH, +HH:MM */
static bool read_offset(const char *name, int32_t *out)
{
    int hours = 0, minutes = 0, end = 0;
    if (name[0] != '+' && name[0] != '-')
        return false;
    bool fits =
        isdigit((unsigned char)name[1]) &&
        ((sscanf(name + 1, "%2d%n", &hours, &end) == 1 && name[1 + end] == '\0') ||
         (sscanf(name + 1, "%2d:%2d%n", &hours, &minutes, &end) == 2 && name[1 + end] == '\0'));
    *out = (hours * 3600 + minutes * 60) * (name[0] == '-' ? -1 : 1);
    return fits && minutes < 60 && minutes >= 0 && hours * 60 + minutes <= MOST_HOURS * 60;
}

/* Names of files of the database: no way out of its directory. */
static bool is_zone_name(const char *name)
{
    return name[0] != '/' && strstr(name, "..") == NULL &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") ==
               strlen(name);
}

static status fill_zone(struct sql_zone *zone)
{
    bool is_utc = strcasecmp(zone->name, "UTC") == 0 || strcasecmp(zone->name, "Z") == 0;
    if (is_utc || read_offset(zone->name, &zone->offset))
        return status_ok();
    if (!is_zone_name(zone->name))
        return no_zone(bytes_of(zone->name));
    status result = tzfile_read(zone->name, &zone->file);
    if (status_is_ok(result) || result.code == STATUS_RESOURCE_EXHAUSTED)
        return result;
    status_free(result); /* there is none, or it is a folder, or a list of something else */
    return no_zone(bytes_of(zone->name));
}

status sql_zone_find(struct sql_zones *zones, bytes name, const struct sql_zone **out)
{
    for (struct sql_zone *zone = zones->first; zone != NULL; zone = zone->next)
        if (bytes_equal(bytes_of(zone->name), name)) {
            *out = zone;
            return status_ok();
        }
    if (name.size == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Invalid empty time zone");
    if (name.size >= NAME_SIZE || memchr(name.data, '\0', name.size) != NULL)
        return no_zone(name);
    struct sql_zone *zone = calloc(1, sizeof *zone);
    if (zone == NULL)
        return status_out_of_memory();
    memcpy(zone->name, name.data, name.size);
    status result = fill_zone(zone);
    if (!status_is_ok(result)) {
        free(zone);
        return result;
    }
    zone->next = zones->first;
    zones->first = zone;
    *out = zone;
    return status_ok();
}

/* --- using it --- */

int32_t sql_zone_offset(const struct sql_zone *zone, int64_t timestamp_us)
{
    return zone->file == NULL
               ? zone->offset
               : tzfile_offset(zone->file, floor_div(timestamp_us, MICROS_PER_SECOND));
}

/* The offsets a day before and a day after are the only ones that can be in force. */
int64_t sql_zone_moment(const struct sql_zone *zone, int64_t civil_us)
{
    int64_t before = sql_zone_offset(zone, civil_us - MICROS_PER_DAY) * MICROS_PER_SECOND;
    int64_t after = sql_zone_offset(zone, civil_us + MICROS_PER_DAY) * MICROS_PER_SECOND;
    int64_t first = civil_us - before;
    if (before == after || sql_zone_offset(zone, first) * MICROS_PER_SECOND == before)
        return first;
    int64_t second = civil_us - after;
    bool shows = sql_zone_offset(zone, second) * MICROS_PER_SECOND == after;
    return shows ? second : first;
}
