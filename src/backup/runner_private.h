/* The runner of whole backups, for its files: what it has, and what they ask of one another. */
#ifndef TRESTLE_BACKUP_RUNNER_PRIVATE_H
#define TRESTLE_BACKUP_RUNNER_PRIVATE_H

#include "backup/runner.h"

#include <pthread.h>

enum {
    SECOND_US = 1000 * 1000,
    MOST_CAUSES = 3 * (STATUS_UNAUTHENTICATED + 1),
    RUNNER_WAIT_MOST_US = 60 * 1000 * 1000, /* a clock may be set meanwhile */
};

struct whole_runner {
    struct whole_runner_options options;
    struct buffer checkpoint; /* its directory, with a NUL */
    struct buffer scratch;    /* where tables are read that come back, with a NUL */
    pthread_t thread;
    bool has_thread;
    struct whole_work work;           /* of the one that runs */
    struct whole_schedules schedules; /* the thread's, as is the next */
    size_t scheduled;                 /* whose run is the last one, if that is scheduled */
    char scheduled_place[WHOLE_PLACE_SIZE];
    struct metric_series failures[MOST_CAUSES]; /* the thread's */
    size_t failure_count;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct whole_schedule_view views[WHOLE_SCHEDULES_MOST];
    struct whole_run runs[WHOLE_RUNS]; /* by id, modulo their number */
    uint64_t count;                    /* that were begun: the id of the last one */
    struct audit *audit;               /* is told how the last one ends; NULL: none */
    struct buffer principal;           /* the caller */
    bool is_busy;                      /* the last one has not ended */
    bool is_cancelled;                 /* it is to end */
    bool is_stopping;
};

/* --- runner.c --- */

status runner_open_place(const struct whole_runner *runner, const char *name, struct place **out);

/* With the lock held. Begins a run, and wakes the thread. */
void runner_add_run(struct whole_runner *runner, const char *place, bool is_scheduled,
                    const struct whole_wish *wish, struct whole_run *out);

/* --- runner_schedules.c; on the runner's thread --- */

/* Begins one that is due. How many microseconds until there is something to look at again. */
int64_t runner_attend_schedules(struct whole_runner *runner);

/* Publishes what is known of schedules, for other threads and in metrics. */
void runner_tell_views(struct whole_runner *runner, int64_t wall_us, int64_t steady_us);

#endif
