/* How an item of DynamoDB lies in a row.
 *
 * The row key is made of the item's key attributes. The other attributes become cells, in one of
 * three ways:
 *
 *     columns     a column for each attribute, as a program for Bigtable writes it: strings and
 *                 bytes as they are, numbers and booleans as text, null as an empty value; sets,
 *                 lists and maps as JSON, or, where it is asked for, as families of their own.
 *                 Counters are integers of 64 bits, big-endian, as ReadModifyWriteRow increments
 *                 them
 *     lossless    a column for each attribute, keys too, with its value in DynamoDB's JSON: the
 *                 item can be had back from the row
 *     google      as Google's utility (professional-services, dynamodb-bigtable-migration) writes
 *                 them: the partition key alone is the row key, maps are flattened to
 *                 "outer.inner", other collections are JSON, timestamps are 0
 *
 * or as a file of the user's describes it: item_mapping.h.
 *
 * A key of two attributes is `partition`, the delimiter, `sort`. So that no two items have the same
 * row key, each byte of the delimiter in the partition key, and each '%', is written "%XX"; what
 * stands behind the first delimiter is the sort key, as it is. */
#ifndef TRESTLE_FORMATS_ITEM_LAYOUT_H
#define TRESTLE_FORMATS_ITEM_LAYOUT_H

#include "formats/item_mapping.h"

enum item_form { ITEM_AS_COLUMNS, ITEM_LOSSLESS, ITEM_AS_GOOGLE };

struct item_names {
    const char *const *names;
    size_t count;
};

/* What becomes of items that DynamoDB would delete at a time. */
struct item_ttl {
    const char *attribute; /* which says it; NULL: none does */
    const char *family;    /* where those lie that have it; NULL: where all do */
    int64_t age_us; /* of that family's rule: their cells are dated so that it ends them then */
};

struct item_layout {
    const struct item_mapping *mapping; /* NULL: as the rest says; else of that only
                                           `default_us` and `now_us` are looked at */
    enum item_form form;
    const char *partition_key;
    const char *sort_key;  /* NULL: there is none */
    const char *delimiter; /* "#" */
    bool orders_numbers;   /* numbers in keys as item_number_append_ordered has them */
    unsigned salts;        /* 0: none; else the key begins with one of so many, "07" + delimiter */
    const char *family;
    const char *timestamp; /* the attribute that says when; NULL: `default_us` */
    int64_t default_us;
    struct item_ttl ttl;
    int64_t now_us;             /* when the import began, for `ttl` */
    struct item_names counters; /* attributes */
    struct item_names families; /* sets and maps with a family of their own, called like them */
};

/* INVALID_ARGUMENT, in words that name the attribute, for an item that cannot lie so: it lacks a
 * key, a key is of another type than S, N or B or is empty, the row key or a qualifier is too long,
 * a counter is no integer, a timestamp none. RESOURCE_EXHAUSTED when the arena is full. */
status item_lay_out(const struct item_layout *layout, const struct item_value *item,
                    struct arena *arena, struct move_change *out);

/* The item that lies losslessly in these cells. DATA_LOSS if they hold none. */
status item_pick_up(const struct move_cell *cells, size_t count, struct arena *arena,
                    struct item_value *out);

#endif
