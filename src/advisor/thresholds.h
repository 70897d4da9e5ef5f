/* From where on a rule speaks. The sentences of rules.def name them, too. */
#ifndef TRESTLE_ADVISOR_THRESHOLDS_H
#define TRESTLE_ADVISOR_THRESHOLDS_H

#include <stdint.h>

enum {
    KEYS_LEAST = 20,         /* that must have been sampled before something is said about keys */
    KEYS_PREFIX_LEAST = 100, /* the same behind a word that all of them begin with */
    KEYS_HASHED_LEAST = 50,
    KEYS_HASHED_MOST = 1000, /* that are looked at */
    KEYS_PERCENT = 95,       /* of them that must have the form */
    DOMAINS_PERCENT = 80,
    KEY_LONG_BYTES = 1024,
    KEY_AVERAGE_BYTES = 256,

    ORDER_PAIRS = 100, /* of rows that must have been written at different moments */
    FRONTS = 8,        /* places at which all new rows are written; so many spread the load */

    DATES_IN_ORDER = 70, /* percent of pairs that were written in the dates' order, or the other */
    TIMES_AHEAD_PERCENT = 10, /* of times, that lie in the future: of what is due */
    DATES_TIMES = 4, /* as long a time as the writing took, that dates of something else span */

    NUMBERS_SPAN = 1000,      /* fewer are buckets */
    NUMBERS_SPAN_ALONE = 200, /* unless each row has one of its own */
    NUMBERS_ALONE = 50,       /* rows */
    NUMBERS_PAIRS = 20,       /* of neighbours that differ */
    NUMBERS_STEP = 100,       /* the largest that is a step */
    NUMBERS_PERCENT = 90,     /* of neighbours that are one step apart */
    NUMBERS_NEAR = 100,       /* numbers with gaps */
    NUMBERS_IN_ORDER = 95,    /* percent of pairs that were written in the numbers' order */
    BUCKETS_IN_ORDER = 70,    /* percent of pairs, of numbers that several rows share */
    RISING_LEAST = 100,       /* keys of any form */
    RISING_PERCENT = 99,      /* of pairs that were written in the order of the keys */

    ROW_BYTES = 100 << 20,
    CELL_BYTES = 10 << 20,
    FAMILIES = 100,
    FAMILY_NAME_BYTES = 16,
    QUALIFIER_BYTES = 32,
    QUALIFIER_PERCENT = 50,

    ROW_COLUMNS = 1000, /* in half of the rows */
    TINY_COLUMNS = 200, /* in half of the rows, of few bytes each */
    TINY_ROWS_PERCENT = 50,
    TINY_BYTES = 16,
    DEFAULT_COLUMNS = 3, /* with the same default */
    DEFAULT_ROWS_PERCENT = 90,
    DEFAULT_PERCENT = 75,
    LIST_COLUMNS = 4,
    LIST_PERCENT = 90,
    RETAINED_VERSIONS = 10,
    RETAINED_TIMES = 10, /* older */

    REWRITES = 100,
    ROW_WRITES = 1000, /* that were counted within an hour */
    COLUMNS_LEAST = 20,
    VERSIONS_WITHOUT_RULE = 10,
    VERSIONS_MANY = 100,
    OLD_LEAST = 20,
    OLD_PERCENT = 10,

    TOMBSTONE_BYTES = 8 << 20,
    TOMBSTONE_TIMES = 20,
    TOMBSTONE_ROWS = 5000, /* that hold nothing any more, in one place */

    HOT_PERCENT = 10,
    HOT_TIMES = 2,
    HOT_SHARE_PERCENT = 50,
    LOAD_REST_US = 2000000,   /* without a write, after which a load is over */
    RISING_PART_PERCENT = 50, /* of the data: rising keys all over it are of no one front */
    HOT_REQUESTS = 5000,      /* that were counted, for what they show to count */
    HOT_LASTING = 1000,       /* the same where several windows showed it, one by one */
    HOT_ROW_PERCENT = 50,     /* of the requests for single rows */
    HOT_ROW_REQUESTS = 2000,  /* that were counted, if its tablet had in some minute: */
    HOT_ROW_MINUTE = 1000,
    RAMP_PERCENT = 40,
    RAMP_TIMES = 2,
    RAMP_FIRST_RATE = 500, /* requests a second that a tablet, or a kind, may begin with */
    RAMP_RISE_PERCENT = 150,

    SCANS_LEAST = 20,       /* of an app profile, that throw most away */
    SCANNED_LEAST = 10000,  /* rows, by all of these */
    SCANNED_TIMES = 20,     /* as many as were answered */
    WHOLE_SCANS_LEAST = 60, /* within two days: more than once in an hour */
    WHOLE_SCAN_ROWS = 1000, /* that each of them reads, on average */
    ASKED_LEAST = 200,      /* reads, for what they ask for to count */
    ASKED_PERCENT = 50,     /* of them, for columns that lie apart */
    ASKED_ALL_PERCENT = 95, /* of them, for all families */
    FAMILIES_OF_ONE = 3,    /* families of one column */
    SCATTERED_PERCENT = 80, /* of reads of some keys, that are of one thing */
    CALLS_LEAST = 1000,     /* one after the other */
    CALLS_PERCENT = 90,     /* of them whose keys rise */
    INCREMENTS_LEAST = 500, /* by reading and writing */

    BINARY_PERCENT = 80,    /* of keys that are no text */
    WIDTHS_PERCENT = 5,     /* of numbers that have another width than most */
    DELIMITER_PERCENT = 10, /* of keys that make a delimiter, or a number of parts, a usual one */
    KINDS_PERCENT = 90,     /* of keys whose number of parts follows from their kind */
    WORD_PERCENT = 10,      /* of keys that have a word in their middle */
    COMPOSED_PERCENT = 80,  /* of keys that have one of these words */
    GRANULAR_PERCENT = 80,  /* of keys whose first part no other has */
    COMMON_TIMES = 4,       /* keys, at least, that share a value of a later part, on average */
    VERY_COMMON_TIMES = 10, /* and of some part */
    SALTS_LEAST = 16,
    SALTED_ROWS = 3,     /* of an owner, on average */
    SALTED_PERCENT = 70, /* of rows that begin with another number than others of their owner */
    ATTRIBUTES_LEAST = 3,
    ATTRIBUTES_MOST = 32,

    PERSONAL_LEAST = 20,          /* keys, or names of columns */
    PERSONAL_VALID_PERCENT = 80,  /* of what has the form that must pass its checksum */
    PERSONAL_SOCIAL_PERCENT = 98, /* of those without one that are given to people */
    PERSONAL_FAMILIES = 3,
    PERSONAL_FAMILIES_PERCENT = 25,
    PERSONAL_NAMES_MOST = 20000, /* of columns that are looked at */

    TABLES_MANY = 100,
    SIBLINGS = 6, /* the table itself among them */

    RISING_PAIRS = 100,
    COUNTER_LEAST = 100, /* indexed integers, each there once */
    COUNTER_TIMES = 10,  /* as many as there are, at most, between the least and the greatest */
    GROUP_COMMITS = 60,  /* in a minute */
    DEAD_ROWS = 500,
    DEAD_PERCENT = 90,
    INDEX_ROWS_MANY = 500, /* of an entity */
    COMPOSITES_MANY = 20,  /* composite indexes of a kind */
    ENTITY_BYTES = 512 << 10,

    OFFSET_QUERIES = 20, /* that skipped results */
    OFFSET_SKIPPED = 10000,
    OFFSET_TIMES = 10,    /* as many as they gave */
    SCANS = 20,           /* of a whole kind */
    SCANNED = 100,        /* entities each, on average */
    LOOP_CALLS = 300,     /* single calls, one after the other */
    LOOP_PERCENT = 50,    /* of all single calls of the kind */
    LEFT = 20,            /* transactions */
    LEFT_PERCENT = 5,     /* of those that were begun */
    ABORTED = 20,         /* commits */
    ABORTED_PERCENT = 5,  /* of all of the kind */
    HOT_LOOKUPS = 2000,   /* of one entity */
    UNUSED_EARLY = 50,    /* indexes of a kind that are told before a week is over */
    UNUSED_QUERIES = 100, /* of the kind that there must have been by then */
    UNUSED_PERCENT = 75,  /* of the kind's indexes that must be unused then */
    UNUSED_NAMED = 5,
};

#define SECOND_US       ((int64_t)1000 * 1000)
#define MINUTE_US       (60 * SECOND_US)
#define HOUR_US         (3600 * SECOND_US)
#define DAY_US          (24 * HOUR_US)
#define YEAR_US         (365 * DAY_US)
#define RAMP_US         (300 * SECOND_US)
#define RISING_US       (12 * HOUR_US)   /* a load in the order of keys does not take so long */
#define DATES_US        (7 * DAY_US)     /* nor does a load of what is old take so long */
#define HOT_US          (30 * SECOND_US) /* that a range was hot, if only once */
#define RETAINED_AGE_US (30 * DAY_US)
#define UNUSED_US       (7 * DAY_US)
#define LEFT_US         (10 * SECOND_US) /* that a transaction was left alone */
#define SIBLING_BYTES   ((uint64_t)1 << 30)
#define FIRST_TIME_US   (1104537600 * SECOND_US) /* 2005: what is earlier is no time of a write */
#define TIME_AHEAD_US   (2 * YEAR_US)

#endif
