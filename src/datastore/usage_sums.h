/* Sums of what clients do to a database, for the advisor: by kinds, and the keys that stand out.
 *
 * Sums are of the last 50 to 60 minutes: six periods of ten, the first of which goes when it began
 * an hour ago. Memory is bounded: DS_USAGE_KINDS kinds, and as many keys as are named below.
 * Numbers are estimates: an event stands for as many calls as its weight says.
 *
 * Not thread-safe; no clock is read here. */
#ifndef TRESTLE_DATASTORE_USAGE_SUMS_H
#define TRESTLE_DATASTORE_USAGE_SUMS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

enum {
    DS_USAGE_KINDS = 64,      /* of a database; of others nothing is known */
    DS_USAGE_NAME_BYTES = 64, /* of a kind's name that are kept */
    DS_USAGE_KEY_BYTES = 112, /* of a row key */
    DS_USAGE_PLACES = 4,      /* keys of a call that are looked at */
    DS_USAGE_TOP = 16,        /* keys that are told apart */
    DS_USAGE_CALLERS = 16,
    DS_USAGE_PERIODS = 6,
    DS_USAGE_RUN = 64, /* single calls of one caller, one after the other, that are a loop */
};

#define DS_USAGE_PERIOD_US   (INT64_C(600) * 1000000)
#define DS_USAGE_RUN_GAP_US  (INT64_C(100) * 1000) /* at most, between two calls of a loop */
#define DS_USAGE_RUN_MEAN_US (INT64_C(20) * 1000)  /* and on average */

/* Two are the same if their hashes are: texts may be cut. */
struct ds_usage_name {
    uint64_t hash;
    uint8_t size; /* of what is kept */
    char text[DS_USAGE_NAME_BYTES];
};

struct ds_usage_key {
    uint64_t hash;
    uint8_t size; /* 0: the text is not known */
    uint8_t text[DS_USAGE_KEY_BYTES];
};

void ds_usage_set_name(struct ds_usage_name *out, bytes text);
void ds_usage_set_key(struct ds_usage_key *out, bytes row_key);

enum ds_usage_call {
    DS_USAGE_LOOKUP,
    DS_USAGE_COMMIT,
    DS_USAGE_QUERY,
    DS_USAGE_BEGIN,   /* of a transaction that may write */
    DS_USAGE_EXPIRED, /* the same, which its client has not ended */
    DS_USAGE_ABORTED, /* a commit that lost against others */
};

/* A call that has ended. All zeroes except what it has. */
struct ds_usage_event {
    void *database; /* the caller's: not looked at here */
    enum ds_usage_call call;
    uint32_t weight;  /* calls that it stands for; at least 1 */
    int64_t begun_us; /* clock_steady_us */
    int64_t ended_us;
    uint64_t caller;           /* 0: not known */
    struct ds_usage_name kind; /* of its first key, or of the query; no text: none */
    bool is_single;            /* a lookup or a write of one entity, outside of a transaction */
    bool begins_scan;          /* a query for all entities of a kind, whole, from the first on */
    bool ends_scan;            /* … up to the last */
    bool is_scan;              /* … or a part in between */
    uint32_t items;            /* keys, mutations, results */
    uint32_t skipped;          /* results, by an offset */
    uint64_t keys[DS_USAGE_PLACES]; /* hashes: of a lookup entities, of a commit entity groups */
    uint8_t key_count;
    struct ds_usage_key key; /* one of those */
};

enum ds_usage_number {
    DS_LOOKUPS,
    DS_SINGLE_LOOKUPS, /* that were judged: counted one by one */
    DS_LOOKUPS_IN_LOOPS,
    DS_COMMITS,
    DS_SINGLE_WRITES, /* the same */
    DS_WRITES_IN_LOOPS,
    DS_QUERIES,
    DS_OFFSETS, /* queries that skipped results, how many, and how many they gave */
    DS_SKIPPED,
    DS_OFFSET_RESULTS,
    DS_SCANS_BEGUN,
    DS_SCANS_ENDED,
    DS_SCANNED, /* entities that these gave */
    DS_EXPIRED,
    DS_ABORTED,
    DS_USAGE_NUMBERS,
};

struct ds_usage_kind {
    struct ds_usage_name name;
    uint64_t numbers[DS_USAGE_NUMBERS];
};

/* A key with the calls that had it: at least count - error, at most count. */
struct ds_usage_top {
    struct ds_usage_key key;
    uint64_t count;
    uint64_t error;
};

/* A database's counts, as a view in its reader's arena. */
struct ds_usage_view {
    int64_t span_us; /* that was counted */
    struct ds_usage_kind *kinds;
    size_t kind_count;
    uint64_t lookups;
    uint64_t begun;              /* transactions that may write */
    struct ds_usage_top entity;  /* that most lookups asked for; count 0: none stands out */
    struct ds_usage_top group;   /* with the most commits within a minute */
    struct ds_usage_top aborted; /* whose commits were aborted most */
};

struct ds_usage_sums;

struct ds_usage_sums *ds_usage_sums_create(int64_t now_us); /* NULL without memory */
void ds_usage_sums_destroy(struct ds_usage_sums *sums);     /* NULL is fine */

/* In the order of their beginnings, as far as that is known. Without memory it is not counted. */
void ds_usage_sums_add(struct ds_usage_sums *sums, const struct ds_usage_event *event);

/* `now_us`: clock_steady_us, as in the events. `since_us`: only periods that began then or later,
 * by the same clock; INT64_MIN: all. */
status ds_usage_sums_view(struct ds_usage_sums *sums, int64_t now_us, int64_t since_us,
                          struct arena *arena, struct ds_usage_view *out);

#endif
