/* Tables that are not there yet, as a user describes them: keys, columns, and what will be asked
 * for. (Kinds of Datastore are in kind.h.) docs/reference/advise-schema.md has the description in
 * YAML.
 *
 * What always holds of one that was read
 *  1. There is a table or a kind at least, no two tables have the same name, and each has a family
 *     and a part of its key at least.
 *  2. Of a part, `of` is another part of the same key that is not made of a third.
 *  3. All of it is the arena's, and so it may be looked at as long as that lives. */
#ifndef TRESTLE_DESIGN_DESIGN_H
#define TRESTLE_DESIGN_DESIGN_H

#include "advisor/advice.h"

enum {
    DESIGN_BYTES_MOST = 1 << 20, /* of a description */
    DESIGN_TABLES_MOST = 200,
    DESIGN_PARTS_MOST = 16,
    DESIGN_COLUMNS_MOST = 1000,
    DESIGN_ACCESSES_MOST = 100,

    /* accesses of all tables and kinds, so that looking at them takes seconds */
    DESIGN_ALL_ACCESSES_MOST = 1000,
    DESIGN_ALL_FAMILIES_MOST = 20 * 1000,
    DESIGN_ALL_CELLS_MOST = 20 * 1000,     /* in a row of each table, of which 2,000 count */
    DESIGN_ALL_KEY_BYTES_MOST = 40 * 1000, /* in a key of each table */
    DESIGN_ALL_PROPERTIES_MOST = 10 * 1000,
    DESIGN_EVENTS_MOST = 2 * 1000 * 1000, /* requests that are played, by all accesses of tables */
};

enum design_part_kind {
    PART_CONSTANT,
    PART_WORD,
    PART_NUMBER,
    PART_TIME,
    PART_UUID,
    PART_HASH,
    PART_DOMAIN,
    PART_EMAIL,
    PART_PHONE,
    PART_BYTES,
    PART_KINDS,
};

enum design_time_form {
    TIME_DATE,     /* 2026-01-31 */
    TIME_COMPACT,  /* 20260131 */
    TIME_DATETIME, /* 2026-01-31T23:59:59Z */
    TIME_SECONDS,  /* since 1970, as the next */
    TIME_MILLISECONDS,
    TIME_MICROSECONDS,
    TIME_NANOSECONDS,
    TIME_HEX, /* seconds, in hexadecimal */
};

enum { PART_OF_NONE = -1 };

/* What stands between two delimiters of a key, or is the name of a column. */
struct design_part {
    size_t line;
    const char *name; /* NULL: none */
    enum design_part_kind kind;
    const char *text;         /* of a constant */
    const char *const *words; /* that are all there are; NULL: they are made up */
    uint64_t count;           /* different values; 0: each row has its own */
    uint64_t from, to;        /* of a number */
    uint64_t digits;          /* of a hash; that a number is padded to, 0: it is not */
    uint64_t size;            /* of bytes */
    uint64_t version;         /* of a UUID: 4 or 7 */
    enum design_time_form form;
    bool is_rising;   /* a number: each new row has the next */
    bool is_reversed; /* of a time: the newest first; of a domain: com.example.www */
    int of;           /* the part that this one is made of; PART_OF_NONE: of none */
};

struct design_key {
    size_t line;
    const char *delimiter;
    struct design_part *parts;
    size_t count;
};

struct design_column {
    size_t line;
    uint32_t family;
    struct design_part name;
    uint64_t count;     /* of such columns in a row */
    uint64_t size_from; /* bytes of a value */
    uint64_t size_to;
    uint64_t writes; /* of each cell in a row's life */
    uint64_t values; /* different ones; 0: all differ */
    double share;    /* of the rows have it */
};

enum design_access_kind {
    ACCESS_WRITE_NEW,      /* rows that are not there yet */
    ACCESS_WRITE_EXISTING, /* rows that are */
    ACCESS_READ_ROW,       /* by their whole key */
    ACCESS_READ_RANGE,     /* what has the values of some parts of the key */
    ACCESS_READ_TABLE,
};

enum design_hot_where { HOT_SCATTERED, HOT_NEWEST, HOT_NEIGHBOURS };

struct design_hot {
    double share; /* of the requests; 0: all rows are alike */
    double part;  /* of the rows */
    uint64_t rows;
    int where; /* enum design_hot_where */
};

struct design_access {
    size_t line;
    enum design_access_kind kind;
    double rate;           /* a second */
    const char *rate_text; /* as it is described */
    struct design_hot hot;
    uint32_t by;     /* a bit for each part of the key whose value is known */
    bool by_columns; /* values of columns are known, too */
    size_t leading;  /* parts at the key's beginning that are among them */
    bool is_ordered; /* what is known is the beginning of the key, and nothing else */
    uint64_t rows;   /* that one request wants at most; 0: all that it finds */
    int64_t ramp_us; /* in which the load rises to its rate; -1: it has long been there */
};

struct design_table {
    size_t line;
    const char *name;
    struct advice_family *families;
    size_t family_count;
    size_t families_line;
    struct design_key key;
    uint64_t rows;
    int64_t history_us; /* in which these were written */
    struct design_column *columns;
    size_t column_count;
    size_t columns_line;
    struct design_access *accesses;
    size_t access_count;
    size_t accesses_line; /* 0: none are described */
};

struct design_kind;

struct design {
    struct design_table *tables;
    size_t count;
    struct design_kind *kinds; /* of Datastore: design/kind.h */
    size_t kind_count;
};

/* INVALID_ARGUMENT in words that begin with line and column. */
status design_read(bytes text, struct arena *arena, struct design *out);

/* How many requests of each access of a table may be played. */
size_t design_events(const struct design *design);

#endif
