/* A table's heat from second to second: which ranges it is counted by, what a window came to, and
 * how that decays. How many ranges it may have is for heat_allot.h to say. Private to cluster/, and
 * to maintenance's thread, but for what says otherwise. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_TABLE_H
#define TRESTLE_CLUSTER_HEAT_HEAT_TABLE_H

#include "cluster/heat/heat_store.h"

#include <pthread.h>

struct cluster;
struct table;

enum {
    HEAT_PARTS = 16, /* that a window may have, each with ranges of its own */
};

struct table_heat {
    bool is_counted;                    /* else nothing of it ever is */
    struct heat_counts *_Atomic counts; /* NULL: no request has come yet */
    /* Held while the ranges of `counts`, what was chosen, `parts` or `cpu_percent` change, and
     * while another thread looks at them. Maintenance, which alone changes them, looks without
     * it. */
    pthread_mutex_t lock;
    double cpu_percent;    /* see heat_record: of this window, up to the last look */
    int64_t chosen_us;     /* when the ranges were, by the steady clock; 0: they are to be */
    int64_t choosing_us;   /* how long that took */
    size_t chosen_most;    /* as how many there might be */
    uint64_t chosen_size;  /* the table's, then */
    uint64_t written_then; /* what its tablets had been written */
    /* The rest is maintenance's. */
    uint64_t rows;              /* that its tablets served between the last two looks */
    uint64_t served;            /* rows that these had served when that was noted last */
    uint64_t traffic[2];        /* rows in the present span of time, and the one before */
    int64_t traffic_span;       /* which the present one is */
    int64_t counted_us;         /* when something was counted last */
    uint64_t rows_written;      /* that its tablets had been written, a second ago */
    _Atomic int64_t written_us; /* when there were more the last time, by the steady clock; 0: they
                                   never were. Any thread may look at it */
    struct arena *arena;        /* for `parts`; NULL: there are none */
    struct heat_record parts[HEAT_PARTS]; /* of this window, so far; from_us: when that began */
    size_t part_count;
    size_t parts_looked_at; /* of those */
    /* The last record of each level, and the beginning of the first span of the next one that it,
     * or one before it, is still to go into; 0: none. */
    int64_t last_us[HEAT_LEVELS];
    int64_t due_us[HEAT_LEVELS];
};

void heat_table_init(struct table_heat *heat);
void heat_table_free(struct table_heat *heat);

/* Ranges that it is counted by; 0: it is not, at present. */
size_t heat_table_ranges(const struct table *table);

/* Notes what it has served since this was called last. Returns how many rows that was in the last
 * quarter or half of a minute; 0 if the table is not counted. */
uint64_t heat_table_traffic(struct table *table);

/* For how long no row has been written, to a second or two, microseconds; 0: for none, or that is
 * not known. Any thread. */
int64_t heat_table_unwritten_us(const struct table *table);

/* How many more ranges it could use, of so many that it may have. */
size_t heat_table_lacks(const struct table *table, size_t most);

/* Goes back to one range: what was counted by the others stays in the window. */
void heat_table_give_up(struct table *table);

/* Chooses its ranges, or others, if that is due: at most `most`, which it is given if it has less
 * than half as many and could use them, or more than twice as many and `must_fit`. `is_end`: of a
 * window. */
void heat_table_choose(struct table *table, size_t most, bool must_fit, bool is_end);

/* Notes how much of all processors it took between two looks, whose times are microseconds since
 * the window began. */
void heat_table_note_cpu(struct table *table, double percent, int64_t from_us, int64_t until_us);

/* What was counted since this was called last, or since the window began; count 0 if there was
 * nothing. The record is in the arena. */
status heat_table_take_recent(struct table *table, struct arena *arena, struct heat_record *out);

/* What was counted in the window that ends, in one record whose times are to be set; count 0 if
 * there was nothing. It is valid until heat_table_choose, which begins the next window. */
status heat_table_take(struct table *table, struct heat_record *out);

/* What was counted in the window that has not ended: any thread that may wait for a walk over a
 * table's ranges. Count 0 if there is nothing. The record is in the arena; its end is now, and what
 * it took of the processors is the mean up to the last look. */
status heat_table_look(struct table *table, struct arena *arena, struct heat_record *out);

/* Where the data is, in ranges of about the same size: `most` of them as a rule, or those that it
 * is counted by, if they fit what it has now and may be a quarter as many; else up to `most_walked`
 * rows are looked at (heat_choice.h). Any thread that may wait for that; what comes is the
 * caller's. */
status heat_table_data(struct table *table, size_t most, size_t most_walked,
                       struct heat_ranges **out);

/* Notes that such a record was kept. */
void heat_table_kept(struct table *table, int64_t from_us);

/* Adds to the batch what the records of the level before come to, if a span of this one is over. */
status heat_table_decay(struct table *table, enum heat_level level, int64_t now_us,
                        struct own_batch *batch);

/* At the start: what was kept, and is still to decay. */
status heat_table_catch_up(struct table *table, int64_t now_us);

#endif
