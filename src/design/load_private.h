/* Shared by load.c, which plays the accesses, and load_counts.c, which counts what they do. */
#ifndef TRESTLE_DESIGN_LOAD_PRIVATE_H
#define TRESTLE_DESIGN_LOAD_PRIVATE_H

#include "design/load.h"

/* The counts of a range. */
struct load_counts {
    double read;
    double written;
    double single; /* requests for single rows */
    double rising; /* written behind all that were */
    double votes;  /* Boyer and Moore's */
    bytes favourite;
    bytes greatest;   /* that was written */
    bytes mark;       /* the greatest some time before */
    uint64_t seen;    /* writes */
    size_t first_row; /* of those that were made */
    size_t rows;
};

struct playing {
    const struct made_table *made;
    struct load *load;
    struct load_counts *counts; /* of each range */
    bytes *new_keys;            /* of what is written meanwhile */
    size_t new_count;
};

struct load_event {
    bytes key;
    double weight; /* requests that it stands for */
    size_t minute;
    bool is_write;
};

/* Ranges of even numbers of keys: those that were made, and those that come. */
status load_make_ranges(struct playing *playing);

/* A request for one row. */
void load_count_row(struct playing *playing, const struct load_event *event);

/* Reads of so many rows from this one on, of those that were made, which stand for `rows`. */
void load_count_range(struct playing *playing, const struct load_event *event, size_t first,
                      size_t count, double rows);

/* Finds the hotspots that the counts show. */
status load_find_hotspots(struct playing *playing);

#endif
