/* The load that a description tells of, played over the rows that are made of it for an hour, in
 * the order of time; what ranges of keys were asked for meanwhile; and what that shows, by the
 * rules that a server looks at its own counts with (cluster/heat/heat_hotspots.h).
 *
 * Of each kind of access LOAD_EVENTS_MOST requests are played at most, each for as many as it takes
 * to come to the rate. Ranges have as many rows each, of those that are there and those that come
 * within the hour. */
#ifndef TRESTLE_DESIGN_LOAD_H
#define TRESTLE_DESIGN_LOAD_H

#include "design/made_table.h"

enum {
    LOAD_MINUTES = 60,
    LOAD_RANGES_MOST = 128,
    LOAD_EVENTS_MOST = 60 * 1000,
    LOAD_USAGE_HOURS = 48
};

/* Rows, by the minute. */
struct load_range {
    bytes start;
    double written[LOAD_MINUTES];
    double read[LOAD_MINUTES];
};

/* The cost of a kind of access. */
struct load_cost {
    double requests; /* within the hour */
    double rows;     /* that are written, or read and looked at, by one request */
};

struct load {
    struct load_range *ranges; /* the first has an empty start, and the last no end */
    size_t count;
    struct load_cost *costs; /* one for each access of the table */
    struct advice_hotspot *hotspots;
    size_t hotspot_count;
    struct advice_tablet tablet; /* the whole table: what rises, by the minute */
    struct advice_rewritten rewritten;
    struct advice_usage usage; /* of the LOAD_USAGE_HOURS that a server knows of */
};

/* How much of its rate a load has come to in that minute of the hour, 0 to 1; `ramp_us` as of a
 * design_access. */
double load_share_at(int64_t ramp_us, double minute);

/* Everything in `*out` is the table's arena's. */
status load_play(const struct made_table *made, struct load *out);

#endif
