/* What damage.c, damage_adopt.c, damage_dropped.c and damage_repair.c share. */
#ifndef TRESTLE_CLUSTER_DAMAGE_PRIVATE_H
#define TRESTLE_CLUSTER_DAMAGE_PRIVATE_H

#include "cluster/cluster_private.h"

enum { DAMAGES_MAGIC = 0x64616d67 };

struct damage {
    struct damage *next;
    struct damage_record record; /* its texts are those below */
    char *from;
    char *to;
    char *what;
    bool is_stored;
};

struct damages {
    uint32_t magic;
    struct shard *shard;
    struct cluster *cluster; /* the shard's */
    pthread_mutex_t lock;
    struct damage *first; /* the oldest */
    size_t count;
    bool is_loaded;
    pthread_mutex_t repairing; /* a range is brought back: one at a time. Before `lock` */
};

/* A copy of the record, in no list. NULL without memory. */
struct damage *damage_create(const struct damage_record *record);
void damage_free(struct damage *damage);

/* Whether they are of the same block, or file. */
bool damage_is_same(const struct damage_record *a, const struct damage_record *b);
/* The offset of the damaged block; 0 if it is the whole file. */
uint64_t damage_offset(const struct damage_record *record);
/* Whose rows the keyspace has, for people. */
void damage_append_table(const struct shard *shard, uint64_t keyspace, struct buffer *out);

/* A copy of the keyspace's oldest (0: of all), after so many that are skipped; NULL if there is
 * none.
 */
status damages_copy_next(struct damages *damages, uint64_t keyspace, size_t skip,
                         struct damage **out);
/* damage_tell, in words that name the table. */
status damages_tell_one(const struct damages *damages, const struct damage_record *record,
                        status (*tell)(void *context, const struct lost_rows *lost), void *context);
/* The same, and says so if all that the file had was dropped since. */
status damages_tell_knowing(const struct damages *damages, const struct damage_record *record,
                            const struct dropped_damage *dropped);
/* Its rows are, and what follows from them has yet to be made. */
bool damage_is_given_up(const struct damage_record *record);
/* With `repairing` held: deletes its record and opens its range, and no other of the same keys. */
status damages_open_one(struct damages *damages, struct keyspace *keyspace,
                        const struct damage_record *record);

/* Puts the record into the shard's own, or deletes it. */
status damage_write_record(const struct damages *damages, const struct damage_record *record,
                           bool is_there);

/* With the lock held, as the next ones. NULL: there is no memory. */
struct damage *damages_add(struct damages *damages, const struct damage_record *record,
                           bool *is_new);
/* Takes it out of the list, with its record, and frees it. */
void damage_forget(struct damages *damages, struct damage **at);
/* Refused requests are told in these words from now on. */
status damage_close_as(const struct damage *damage, struct keyspace *keyspace, const char *words);
/* The same, in words that name the table; logs them. */
void damage_close(const struct damages *damages, const struct damage *damage,
                  struct keyspace *keyspace);
/* Shows them by health, and metrics. */
void damages_show(const struct damages *damages);

#endif
