/* How many findings of the schema advisor wait for somebody, of each instance and each database:
 * the metric advice_waiting. What waits is a WARNING or worse that is not muted.
 *
 * Whoever asks for advice brings the count of what he asked about up to date. Besides, a thread
 * asks by itself: about each table a minute after it came into sight, then after twice as long each
 * time, up to an hour. It takes a thousandth of a processor at most (ADVICE_REST): of very many
 * tables it comes to each less often.
 *
 * Any thread may call what takes a watch. A NULL watch counts nothing. */
#ifndef TRESTLE_INTROSPECT_ADVICE_WATCH_H
#define TRESTLE_INTROSPECT_ADVICE_WATCH_H

#include "introspect/insight.h"
#include "trestle/insight/v1/insight.pb-c.h"

enum { ADVICE_REST = 1000 }; /* for each microsecond that a look took, so many without one */

struct advice_watch;

/* Starts the thread. The insight, whose `watch` it becomes, outlives it. */
status advice_watch_start(struct insight *insight, struct advice_watch **out);
void advice_watch_stop(struct advice_watch *watch); /* waits for the thread; NULL is fine */

/* Whether it is about to end: a look of its thread had better, too. */
bool advice_watch_is_stopping(struct advice_watch *watch);

/* What was just found of a table, or of a database, by its full name. */
void advice_watch_note(struct advice_watch *watch, const char *name,
                       const Insight__TableAdvice *found);

/* What is muted of it has changed: it is looked at soon. */
void advice_watch_ask(struct advice_watch *watch, const char *name);

#endif
