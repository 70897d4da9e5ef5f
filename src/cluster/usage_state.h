/* What requests do to a table beside reading and writing ranges of it: which of them read much and
 * answer little, which columns are asked for together, which come one after the other. Numbers and
 * a few examples of a bounded size, that can be added up and written down.
 *
 * Pure: no locks, no clock, no I/O. */
#ifndef TRESTLE_CLUSTER_USAGE_STATE_H
#define TRESTLE_CLUSTER_USAGE_STATE_H

#include "base/bytes.h"

enum {
    USAGE_TEXT_BYTES = 63,     /* of keys and names: the rest is cut off */
    USAGE_COLUMNS_BYTES = 160, /* of a set of columns; a larger one is none */
    USAGE_SCANS = 12,          /* of profiles and kinds that are told apart */
    USAGE_COLUMN_SETS = 12,
    USAGE_FAVOURITES = 16,
};

struct usage_text {
    uint8_t size;
    uint8_t data[USAGE_TEXT_BYTES];
};

void usage_text_set(struct usage_text *text, bytes from);
bytes usage_text_get(const struct usage_text *text);

/* By what a scan of rows chooses among those it reads. */
enum usage_scan_kind {
    USAGE_ALL_ROWS,
    USAGE_BY_KEY,   /* a pattern of keys */
    USAGE_BY_VALUE, /* of values */
    USAGE_SCAN_KINDS,
};

struct usage_scan {
    enum usage_scan_kind kind;
    bytes profile;
    bool is_whole; /* of all keys, and without a limit */
    bytes start;   /* of the first range */
    bytes end;     /* of the last one */
    bytes family;  /* whose values are judged; empty: not known */
    bytes qualifier;
    uint64_t seen;
    uint64_t answered;
};

/* Scans of an app profile and a kind. */
struct usage_scans {
    uint8_t kind;
    uint64_t scans;
    uint64_t whole; /* of these */
    uint64_t seen;  /* rows */
    uint64_t answered;
    uint64_t whole_seen;
    struct usage_text profile;
    struct usage_text start; /* of one of them */
    struct usage_text end;
    struct usage_text family;
    struct usage_text qualifier;
};

/* Columns that reads asked for together, as usage_columns_add writes them; none: whole rows. */
struct usage_column_set {
    uint64_t count;
    uint8_t size;
    uint8_t data[USAGE_COLUMNS_BYTES];
};

enum usage_number {
    USAGE_READS,           /* ReadRows, whose columns are known */
    USAGE_SINGLE_READS,    /* ReadRows of a key */
    USAGE_RISING_READS,    /* of these, at once after one of the caller's whose key is lower */
    USAGE_SEVERAL_READS,   /* ReadRows of some keys */
    USAGE_SCATTERED_READS, /* of these, whose keys end alike and begin in different ways */
    USAGE_SINGLE_WRITES,   /* MutateRow */
    USAGE_RISING_WRITES,   /* of these, at once after one of the caller's whose key is lower */
    USAGE_REWRITES,        /* of these, of a cell of the row that the caller has read just before */
    USAGE_INCREMENTS,      /* ReadModifyWriteRow */
    USAGE_NUMBERS,
};

enum usage_example {
    USAGE_SCATTERED_KEY,
    USAGE_OTHER_SCATTERED_KEY,
    USAGE_RISING_READ_KEY,
    USAGE_RISING_WRITE_KEY,
    USAGE_REWRITTEN_KEY,
    USAGE_INCREMENTED_KEY,
    USAGE_INCREMENTED_FAMILY,
    USAGE_INCREMENTED_QUALIFIER,
    USAGE_EXAMPLES,
};

struct usage_favourite {
    uint64_t hash; /* of a key */
    uint64_t votes;
};

struct usage_state {
    int64_t from_us; /* of the wall clock: since when; 0: it is empty */
    uint64_t numbers[USAGE_NUMBERS];
    struct usage_text examples[USAGE_EXAMPLES];
    struct usage_scans scans[USAGE_SCANS];
    uint8_t scan_count;
    struct usage_column_set columns[USAGE_COLUMN_SETS]; /* those asked for most, if any are */
    uint8_t column_count;
    struct usage_favourite favourites[USAGE_FAVOURITES]; /* of rows that are rewritten */
};

/* --- adding --- */

void usage_add_scan(struct usage_state *state, const struct usage_scan *scan);
/* Misra and Gries: a set that has more than one in USAGE_COLUMN_SETS + 1 of all is there, and its
 * count is at most that much too low. */
void usage_add_columns(struct usage_state *state, bytes columns, uint64_t weight);
void usage_add_favourite(struct usage_state *state, uint64_t hash, uint64_t weight);
/* `from` is the earlier one: examples of `to` stay. */
void usage_state_add(struct usage_state *to, const struct usage_state *from);

/* Writes a column behind others; without a qualifier the family as a whole. */
void usage_columns_add(struct buffer *out, bytes family, bool has_qualifier, bytes qualifier);
/* Takes the first off; false: there is none. */
bool usage_columns_next(bytes *columns, bytes *family, bool *has_qualifier, bytes *qualifier);

/* --- bytes: docs/internals/heat.md --- */

void usage_state_encode(const struct usage_state *state, struct buffer *out);
/* False: it is none, and `out` is empty. */
bool usage_state_decode(bytes from, struct usage_state *out);

#endif
