/* A scan and a client for tests of ReadRows, that do what the test says: `world`. */
#ifndef TRESTLE_BIGTABLE_TESTING_READ_ROWS_TESTING_H
#define TRESTLE_BIGTABLE_TESTING_READ_ROWS_TESTING_H

#include "bigtable/data_methods.h"
#include "bigtable/testing/data_testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum { MOST_STEPS = 16, MOST_KEYS = 64, KIB = 1024, ROWS_SEEN = 100, CELLS_SEEN = 10 };

/* --- what the scan finds --- */

struct step {
    enum row_outcome outcome;
    bool is_on_disk; /* first ROW_NOT_CACHED, if only memory may be looked at */
    const char *key;
    size_t cells; /* of value_size bytes each */
    size_t value_size;
    bool is_deferred; /* the values */
    bool values_are_on_disk;
    size_t fails_at_load; /* 0: never */
    size_t block_size;    /* read at once for the row; 0: next to nothing */
};

struct scan {
    struct step steps[MOST_STEPS];
    size_t next;
    struct cell cells[MOST_STEPS];
    struct cell_list list;
    uint8_t *value;
    bool has_row; /* handed out, and still good */
    size_t loads; /* of values that were deferred */
    size_t misses;
    bool is_value_held;
    int pauses;
    bool is_destroyed;
};

/* --- what the client gets --- */

extern struct world {
    struct scan scan;
    size_t range_count;
    bool is_restricted;
    char keys[MOST_KEYS][8];
    size_t rows;
    size_t cells;
    size_t value_bytes;
    char last_scanned[8];
    const Bt__RequestStats *stats; /* of the last message */
    int cut_rows;                  /* messages that end within a row */
    struct store_read_bound bound;
    size_t refusals;
} world;

int world_setup(void **state);
int world_teardown(void **state);

/* Sets what the scan finds, and then its end. */
void world_set_steps(const struct step *steps, size_t count);
#define STEPS(...)                                                                                 \
    world_set_steps((const struct step[]){__VA_ARGS__},                                            \
                    sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

struct step found(const char *key);          /* a row of one small cell */
struct step large_deferred(const char *key); /* of ten, whose values are left in the store */

void begin(Bt__ReadRowsRequest *request);
void read_all(void); /* all that the request wants, or until it waits */

void assert_finished(enum status_code code);

#endif
