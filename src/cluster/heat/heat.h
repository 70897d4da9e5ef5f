/* How rows are asked for, by ranges of their keys, and which tablets that makes hot:
 * docs/internals/heat.md.
 *
 * Each read and write of rows is counted here (heat_counts.h). Once a second maintenance looks
 * whether a table's ranges still fit its data (heat_choice.h), and once a window it keeps what was
 * counted (heat_store.h), and lets older records decay.
 *
 * Four times a window, and each quarter of a minute if windows are longer, the processor time that
 * the process took since the last look is shared out among the tablets, by the rows that they
 * served since then. A tablet was hot if its share is HEAT_LEAST_PERCENT of what the machine's
 * processors could have given, or more. It is an estimate: rows are taken to cost alike, and what
 * the process does beside serving them counts for them. As long as a tablet stays hot, up to the
 * end of the window, it is one hot tablet whose end moves on; where most of its rows were asked for
 * in a small part of it, that part is what is told. Hot tablets are known for a day, and HEAT_MOST
 * of them at most. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_H
#define TRESTLE_CLUSTER_HEAT_HEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "heat/heat_counts.h"

enum { HEAT_LEAST_PERCENT = 10, HEAT_MOST = 10000 };

struct cluster;
struct table;
struct heat;

/* --- counting: by all that reads or writes rows, on any thread --- */

/* Whether what is done to a table of this name is counted. */
bool heat_counts_table(const struct cluster *cluster, const char *name);

/* A request for a row on its way. All zeroes: it is not counted. */
struct heat_mark {
    uint32_t weight; /* how many it is counted for */
    int64_t began_us;
};

struct heat_mark heat_begin(struct table *table);
/* The request has ended; it may have been a read and a write. */
void heat_end_read(struct table *table, struct heat_mark mark, bytes row_key, uint64_t bytes);
void heat_end_write(struct table *table, struct heat_mark mark, bytes row_key, uint64_t bytes);

/* Rows that a scan has passed, a few at a time, the last of which has this key. */
struct heat_passed {
    uint64_t rows;
    uint64_t bytes;
    uint64_t largest_row;
};

void heat_note_passed(struct table *table, bytes row_key, const struct heat_passed *passed);

/* --- what comes of it --- */

/* When the window that has not ended began, microseconds since 1970. Any thread. */
int64_t heat_window_begin_us(const struct cluster *cluster);

/* For how long no row of the table has been written, to a second or two, microseconds; 0: for none,
 * or that is not known. Any thread. */
int64_t heat_unwritten_us(const struct table *table);

/* Finds what was kept before. */
status heat_create(struct cluster *cluster, struct heat **out);
void heat_destroy(struct heat *heat); /* NULL is fine */

/* A look at all tables if one is due, and what there is to do at the end of a window, if one is
 * over. For maintenance. */
void heat_run(struct cluster *cluster);

/* Keeps what there is of a window that is not over, if any has been kept before or something is
 * known of usage: for a stop, when maintenance has. So a server that was started for a moment, and
 * asked for nothing, leaves no table of heat in the directory. */
void heat_stop(struct cluster *cluster);

struct hot_tablet {
    /* Rises with time, and is not of the tablet: that may have been hot more than once. */
    uint64_t id;
    const char *table;
    bytes start; /* of the tablet, or of the part of it that was */
    bytes end;
    int64_t from_us;    /* since 1970 */
    int64_t until_us;   /* may move on, and what is told change with it, while the window lasts */
    double cpu_percent; /* of all processors of the machine */
};

/* Calls `visit` for each, by rising id, until it returns false. What it gets is valid during the
 * call, which is under a lock: it should only copy. Any thread. */
void cluster_hot_tablets(struct cluster *cluster,
                         bool (*visit)(void *context, const struct hot_tablet *hot), void *context);

size_t heat_hot_count(struct cluster *cluster); /* how many there are */
/* Of how many ranges of keys these are: one may have been hot several times. */
size_t heat_hot_range_count(struct cluster *cluster);

#endif
