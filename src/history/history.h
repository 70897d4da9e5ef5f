/* The server remembers its own metrics: every ten seconds a look at all of them, and what it says
 * of the time since the look before goes into a table of the server's own, as points
 * (history_store.h).
 *
 * Invariants
 *  1. Times of points are by the versions' clock, which never goes back: when the wall clock was
 *     set back, no span is told twice, and none is missing. What a point covers is by the steady
 *     one: while the versions' clock goes half as fast, a span of ten seconds takes twenty.
 *  2. A point is in the store's log when the look that made it ends, so that a kill takes what
 *     came since. It is not synced: a power cut may take the newest.
 *  3. Nothing is remembered while the server takes no writes, or while less space is free than the
 *     disk's reserve and HISTORY_ROOM together: so no write of ours makes a disk full, or delays
 *     one that is made room for. That it is so is said once, in the log, and to who reads.
 *  4. Nobody waits for it, and what fails is not tried again: the next look covers that time, too,
 *     if it comes within a minute, else there is a gap. */
#ifndef TRESTLE_HISTORY_HISTORY_H
#define TRESTLE_HISTORY_HISTORY_H

#include "history/fold.h"
#include "history/history_store.h"

enum { HISTORY_ROOM = 128 << 20 };

struct history;

/* All of it outlives the history. */
struct history_options {
    struct cluster *cluster;
    struct metrics *metrics;
    struct clock *clock;
    const struct log *log;
    void (*measure)(void *context); /* sets the gauges before they are looked at */
    void *measured;
    uint64_t disk_reserve_bytes;
    int64_t retention_us; /* 0: nothing is remembered, and what was is removed */
    bool by_hand;         /* a test says when: history_step */
};

/* Starts the thread. */
status history_open(const struct history_options *options, struct history **out);
void history_close(struct history *history); /* NULL is fine */

/* Takes a look if its time has come. Not beside the thread. */
void history_step(struct history *history);

enum { HISTORY_TROUBLE_SIZE = 256 };

/* Why nothing is remembered at present; empty: it is. Any thread. */
void history_trouble(struct history *history, char out[HISTORY_TROUBLE_SIZE]);
/* Why nothing is of a table that has no point: that, or that there is no place for it. */
void history_table_trouble(struct history *history, char out[HISTORY_TROUBLE_SIZE]);
int64_t history_retention_us(const struct history *history);

/* --- reading; any thread that may block --- */

struct history_question {
    const char *table; /* its name; NULL: the server */
    int64_t from_us;   /* by the versions' clock, as the next */
    int64_t until_us;
    size_t most; /* points that are wanted, about; above 0 */
};

struct history_answer {
    struct history_points points;
    int64_t step_us; /* how long each is */
    bool is_known;   /* there are points of it, if not of that time; else none is in the answer */
};

/* What is remembered of that time, as finely as it is kept and wanted; in the arena. */
status history_read(struct cluster *cluster, const struct history_question *question,
                    struct arena *arena, struct history_answer *out);

/* What a line of the server was when it was last remembered; NAN: that is not known. */
status history_recall(struct cluster *cluster, enum history_line line, double *value);

#endif
