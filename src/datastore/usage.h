/* How clients use databases, counted always, for the advisor: docs/internals/heat.md.
 *
 * The thread that has answered a client's call notes it here. Notes wait in a ring of the processor
 * that it was done on, which no other uses; once a second, and when they are looked at, the rings
 * are emptied into the sums of the databases (usage_sums.h). So a call shares nothing with others,
 * and waits for none:
 *
 *     ds_usage_choose    whether the call is counted, and for how many
 *     ds_usage_add       what it was
 *
 * The busier a processor is, the fewer calls are counted: all of the first USAGE_COUNTED_ALL since
 * the rings were emptied, then one in two, down to one in 256. A ring that is full takes no more.
 *
 * Which indexes answer queries is marked without drawing lots, as one use in a week counts
 * (index_marks.h). */
#ifndef TRESTLE_DATASTORE_USAGE_H
#define TRESTLE_DATASTORE_USAGE_H

#include "base/clock.h"
#include "datastore/index/index_marks.h"
#include "datastore/usage_sums.h"

struct ds_usage;
struct ds_usage_database; /* what is known of one */

/* `clock` outlives it. */
status ds_usage_create(struct clock *clock, struct ds_usage **out);
void ds_usage_destroy(struct ds_usage *usage); /* NULL is fine; no thread counts any more */

/* Of a database that is opened, until it is closed. NULL without memory, and of `usage` NULL: then
 * nothing is counted of it. No events of it may be left when it is destroyed: ds_usage_destroy
 * comes first. */
struct ds_usage_database *ds_usage_database_create(const struct ds_usage *usage);
struct ds_index_marks *ds_usage_marks(struct ds_usage_database *database);
void ds_usage_database_destroy(struct ds_usage_database *database); /* NULL is fine */

/* How many calls this one stands for; 0: it is not counted. Any thread, as for the next. */
uint32_t ds_usage_choose(struct ds_usage *usage);

/* `event->database` is a struct ds_usage_database. */
void ds_usage_add(struct ds_usage *usage, const struct ds_usage_event *event);

/* Since 1970, by the wall clock, as it was when the rings were emptied last. */
uint32_t ds_usage_minute(const struct ds_usage *usage);

/* Empties the rings. Any thread; blocks for as long as another does. */
void ds_usage_collect(struct ds_usage *usage);

/* Collects, and says what is known; all zeroes if nothing is. `since_us`: only of periods that
 * began then or later, by the wall clock since 1970; 0: of all. */
status ds_usage_look(struct ds_usage *usage, struct ds_usage_database *database, int64_t since_us,
                     struct arena *arena, struct ds_usage_view *out);

#endif
