/* A server's condition: one state, and the reasons for it. All that show it (readyz, metrics,
 * `trestle status`, the console, the log) have it from here, so that no two can say different
 * things.
 *
 * A reason is entered and left by the code that knows of it; reasons.def is the table. The worst
 * one that is there gives the level. Each has a line in the log when it is entered, and one when it
 * is left. One that comes and goes, as space on a disk may, has them every ten seconds at most;
 * what is told last is how it is.
 *
 * A condition may have *parts*, each of a part of the server that has troubles of its own: a store.
 * A reason that any of them has is the whole's, until none has it, in the words of the first that
 * has it. Readers read the whole; a reason is its own or its parts', never both.
 *
 * Any thread. With a NULL `struct condition` nothing is noted. */
#ifndef TRESTLE_BASE_CONDITION_H
#define TRESTLE_BASE_CONDITION_H

#include "base/log.h"
#include "base/metrics.h"

enum health_level {
    HEALTH_OK,
    HEALTH_DEGRADED,  /* all is served; the operator has to do something before that ends */
    HEALTH_NO_WRITES, /* writes are refused, reads are served */
};

enum reason {
#define REASON(level, name, sentence) REASON_##name,
#include "base/reasons.def"
    REASON_COUNT
};

struct condition;

/* The log and the clock outlive it; `metrics`, which may be NULL, too. */
status condition_create(const struct log *log, struct clock *clock, struct metrics *metrics,
                        struct condition **out);
void condition_destroy(struct condition *condition); /* NULL is fine; after its parts */

/* A part of it, which has nothing yet. It is destroyed as the whole is, when no thread enters or
 * leaves a reason of the part any more; the reasons that it has then are no longer the whole's,
 * without a word in the log. */
status condition_create_part(struct condition *whole, struct condition **out);

/* Enters a reason, with these figures; entered again, its text is replaced. */
__attribute__((format(printf, 3, 4))) void
condition_enter(struct condition *condition, enum reason reason, const char *format, ...);

/* Leaves a reason, if it was entered. */
void condition_leave(struct condition *condition, enum reason reason);

/* --- looking --- */

enum { CONDITION_TEXT_SIZE = 512 };

struct condition_reason {
    enum reason reason;
    const char *name;
    const char *sentence; /* what it is, without names of anything: for everybody */
    enum health_level level;
    int64_t since_us;               /* when it was entered, by the wall clock */
    char text[CONDITION_TEXT_SIZE]; /* UTF-8 */
};

struct condition_view {
    enum health_level level;
    size_t count;
    struct condition_reason reasons[REASON_COUNT]; /* the worst first */
};

/* The condition as it stands. */
void condition_look(struct condition *condition, struct condition_view *out);

/* "ok", "degraded", "no_writes": for programs. */
const char *health_level_name(enum health_level level);

#endif
