/* Heat that is kept: rows of a table of its own, which no API shows. Private to cluster/.
 *
 *     <table id> 'm' <from>    a window (heat_window), in the family m
 *     <table id> 't' <from>    ten minutes, in the family t
 *     <table id> 'h' <from>    an hour, in the family h
 *     <0>        'H' <id>      a hot tablet, in the family H
 *     <0>        'U' <id>      a record of usage (usage_store.h), in the family U
 *
 * Ids and times (microseconds since 1970) have eight bytes, big-endian; the id of a record of usage
 * is seven bytes of its table's and one for its kind. Each row has one cell, whose timestamp is the
 * end of the time that it is about, and of a hot tablet the beginning, since the end moves on while
 * it stays hot; the rule of its family collects it. A record of usage has the time 0, and stays
 * until it is removed. The table comes to be with the first row, and gets the families that it has
 * not got yet, since a former program made it, with the next. Functions block. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_STORE_H
#define TRESTLE_CLUSTER_HEAT_HEAT_STORE_H

#include "cluster/own_table.h"
#include "heat/heat_record.h"

#define HEAT_TABLE CLUSTER_OWN_TABLES "heat"

struct hot_tablet;

enum heat_level { HEAT_WINDOWS, HEAT_TEN_MINUTES, HEAT_HOURS, HEAT_LEVELS };

int64_t heat_level_span_us(enum heat_level level); /* 0 for windows, whose span is a setting */
int64_t heat_level_kept_us(enum heat_level level);

/* --- writing --- */

status heat_batch_put(struct own_batch *batch, uint64_t table_id, enum heat_level level,
                      const struct heat_record *record);
status heat_batch_put_hot(struct own_batch *batch, const struct hot_tablet *hot);
/* An empty value removes the record. */
status heat_batch_put_usage(struct own_batch *batch, uint64_t table_id, uint8_t kind, bytes value);

/* As own_batch_write. */
status heat_batch_write(struct own_batch *batch, struct cluster *cluster);

/* --- reading: nothing, if there is no such table --- */

/* The records that begin at or after `from_us` and before `until_us`, by time; in the arena. What
 * does not parse is left out. */
status heat_store_read(struct cluster *cluster, uint64_t table_id, enum heat_level level,
                       int64_t from_us, int64_t until_us, struct arena *arena,
                       struct heat_record **records, size_t *count);

/* When the last record begins; 0 if there is none. */
status heat_store_newest(struct cluster *cluster, uint64_t table_id, enum heat_level level,
                         int64_t *from_us);

/* The same of the first that is kept. */
status heat_store_oldest(struct cluster *cluster, uint64_t table_id, enum heat_level level,
                         int64_t *from_us);

/* Calls `visit` for each hot tablet that is kept, by rising id; what it gets is valid during the
 * call. */
status heat_store_hot(struct cluster *cluster,
                      void (*visit)(void *context, const struct hot_tablet *hot), void *context);

/* Calls `visit` for each record of usage of the tables with these ids, from the first to the last,
 * by table and kind, until it returns false; the value is valid during the call. */
status heat_store_usage(struct cluster *cluster, uint64_t first_table, uint64_t last_table,
                        bool (*visit)(void *context, uint64_t table_id, uint8_t kind, bytes value),
                        void *context);

#endif
