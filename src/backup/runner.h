/* Whole backups of a server that serves: one at a time, on a thread of their own; on request, and
 * by schedules, of all and of parts, which go to the first of the places. With schedules the
 * condition knows whether their backups are made (whole_backup_overdue). On the same thread, in
 * their turn, tables come back out of them.
 *
 *     whole_runner_begin ──► checkpoint in the data directory ──► into the place ──► removed again
 *     whole_runner_restore ──► what the tables have into the data directory ──► tables
 *
 * The checkpoint holds what compactions replace meanwhile. What a killed server leaves of either is
 * removed at the next start. Any thread may ask. */
#ifndef TRESTLE_BACKUP_RUNNER_H
#define TRESTLE_BACKUP_RUNNER_H

#include "access/audit.h"
#include "backup/whole_schedules.h"
#include "base/metrics.h"
#include "control/control.h"

struct backups;
struct whole_runner;

struct whole_runner_options {
    struct cluster *cluster;
    struct control *control; /* where tables come back to, as the next one; NULL: nowhere */
    struct backups *backups;
    const char *data_directory;
    const char *places;   /* with commas between, where backups may be made; NULL: nowhere */
    const char *key_file; /* seals what is in the places (place/sealed.h); NULL: nothing does */
    uint64_t bytes_per_second;
    int64_t check_period_us; /* see whole_source */
    struct whole_schedule_wish schedules;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
    /* Appends what a manifest is to say of the server's settings; may be NULL. */
    void (*describe)(const void *context, struct buffer *out);
    const void *context;
};

/* What the options point to outlives the runner. */
status whole_runner_create(const struct whole_runner_options *options, struct whole_runner **out);
void whole_runner_destroy(struct whole_runner *runner); /* ends what runs; NULL is fine */

enum {
    WHOLE_RUNS = 16,
    WHOLE_PLACE_SIZE = 1024,
    WHOLE_SOURCE_SIZE = 512, /* of a table's name */
};

struct whole_run {
    uint64_t id; /* from 1 */
    bool is_scheduled;
    char place[WHOLE_PLACE_SIZE];
    int64_t start_us;
    int64_t end_us;             /* 0: it runs */
    char name[WHOLE_NAME_SIZE]; /* empty: there is no backup, or not yet */
    int64_t instant_us;         /* private */
    enum status_code code;
    char error[WHOLE_ERROR_SIZE];
    uint64_t bytes_total;
    uint64_t bytes_done;
    uint64_t files_copied;
    uint64_t bytes_copied;
    uint64_t files_mended;
    /* Of tables out of a backup: whole_tables.h. `from` is empty if it makes a backup. */
    char from[WHOLE_SOURCE_SIZE];
    char to[WHOLE_SOURCE_SIZE];
    bool with_policies;
    bool salvage;
    uint64_t tables;
    uint64_t closed_ranges; /* of theirs, that are out of service */
    /* Of a backup of a part: whole_scope.h. Empty: of all. */
    char scope[WHOLE_SOURCE_SIZE];
};

/* A request: for tables of the backup `name`, or of the newest if that is empty; if `from` is
 * empty, too, for a backup. */
struct whole_wish {
    const char *place;
    const char *name;
    const char *from;
    const char *to; /* empty: as it is called */
    bool with_policies;
    bool salvage;
    const char *scope;   /* of a backup; empty: all */
    struct audit *audit; /* told how it ends; NULL: none. It outlives the runner */
    bytes principal;     /* the caller; empty: unknown */
};

/* A backup. PERMISSION_DENIED unless the place is in, or below, one of the places;
 * FAILED_PRECONDITION while another runs; INVALID_ARGUMENT. */
status whole_runner_begin(struct whole_runner *runner, const struct whole_wish *wish,
                          struct whole_run *out);

/* Fails as whole_runner_begin does. */
status whole_runner_restore(struct whole_runner *runner, const struct whole_wish *wish,
                            struct whole_run *out);

/* The latest first; returns how many. */
size_t whole_runner_list(struct whole_runner *runner, struct whole_run out[WHOLE_RUNS]);
bool whole_runner_is_busy(struct whole_runner *runner); /* with one of them */

/* A schedule as it was when the runner last looked, a minute ago at most. */
struct whole_schedule_view {
    struct whole_scheduled of;
    int64_t next_us; /* when it is due, or tried again, by the wall clock */
    bool is_overdue;
};

/* In their order; returns how many. What they point to lives as long as the runner. */
size_t whole_runner_schedules(struct whole_runner *runner,
                              struct whole_schedule_view out[WHOLE_SCHEDULES_MOST]);

/* The one of the places that schedules go to; empty without a schedule. */
const char *whole_runner_scheduled_place(const struct whole_runner *runner);

/* NOT_FOUND; fine if it has ended. */
status whole_runner_cancel(struct whole_runner *runner, uint64_t id);

/* Whether a place is in, or below, one of the list with commas between; by their words alone, and
 * never with a ".." in it. */
bool whole_place_is_allowed(const char *places, const char *place);

#endif
