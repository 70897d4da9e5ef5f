/* See doctor_clock.h. */
#include "cmd/repair/doctor_clock.h"

#include "tablet/commit.h"

#include <inttypes.h>

static const int64_t nothing_us = INT64_C(60) * 1000000;

status doctor_clock_init(struct keyspace *catalog, int64_t wall_us, struct doctor_clock *out)
{
    *out = (struct doctor_clock){.wall_us = wall_us + nothing_us};
    struct commit_ceilings ceilings;
    TRY(commit_read_ceilings(catalog, &ceilings));
    out->ceiling = ceilings.version;
    return status_ok();
}

void doctor_clock_note(const struct doctor_clock *clock, const struct entry *entry,
                       struct doctor_ahead *ahead)
{
    ahead->entries_above += entry->version >= clock->ceiling;
    if (version_time_us(entry->version) <= clock->wall_us)
        return;
    ahead->entries++;
    if (entry->version > ahead->newest)
        ahead->newest = entry->version;
}

void doctor_clock_note_moment(const struct doctor_clock *clock, int64_t at_us,
                              struct doctor_ahead *ahead)
{
    ahead->moments_above += at_us > version_time_us(clock->ceiling);
    if (at_us <= clock->wall_us)
        return;
    ahead->moments++;
    if (at_us > ahead->newest_us)
        ahead->newest_us = at_us;
}

/* The greatest unit of which there are two. */
static void print_lead(const struct doctor_clock *clock, int64_t at_us, FILE *to)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
    int64_t seconds = (at_us - clock->wall_us + nothing_us) / 1000000;
    size_t unit = 0;
    while (unit < 3 && seconds < 2 * units[unit].seconds)
        unit++;
    fprintf(to, "%" PRId64 " %s", seconds / units[unit].seconds, units[unit].name);
}

static void print_kind(const struct doctor_clock *clock, const char *table, uint64_t count,
                       const char *what, int64_t newest_us, FILE *to)
{
    if (count == 0)
        return;
    fprintf(to, "ahead of the clock: table %s: %" PRIu64 " %s, by up to ", table, count, what);
    print_lead(clock, newest_us, to);
    fputc('\n', to);
}

void doctor_clock_print(const struct doctor_clock *clock, const struct doctor_ahead *ahead,
                        const char *table, FILE *to)
{
    print_kind(clock, table, ahead->entries, "versions", version_time_us(ahead->newest), to);
    print_kind(clock, table, ahead->moments, "moments of Datastore", ahead->newest_us, to);
}

void doctor_clock_print_ceiling(const struct doctor_clock *clock, FILE *to)
{
    if (version_time_us(clock->ceiling) <= clock->wall_us)
        return;
    fputs("ahead of the clock: what a server writes next, by ", to);
    print_lead(clock, version_time_us(clock->ceiling), to);
    fputs(" (docs/internals/clocks.md)\n", to);
}
