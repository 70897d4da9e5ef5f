/* Kinds of Datastore that are not there yet, as a user describes them: keys, properties, indexes,
 * and what will be asked for. docs/reference/advise-schema.md has the description in YAML.
 *
 * What always holds of one that was read: no two properties have the same name, the properties of
 * an index and of a query are among them, and all of it is the arena's. */
#ifndef TRESTLE_DESIGN_KIND_H
#define TRESTLE_DESIGN_KIND_H

#include "design/design.h"

enum {
    DESIGN_PROPERTIES_MOST = 500,
    DESIGN_INDEXES_MOST = 200, /* composite ones */
};

struct design_property {
    size_t line;
    const char *name;
    struct design_part value;
    bool is_indexed;
    uint64_t count; /* of values: a list if there are several */
    uint64_t size;  /* bytes of a value; 0: as many as it is made of */
};

/* A composite one. */
struct design_index {
    size_t line;
    const char *words;      /* "(customer, at)" */
    const bool *properties; /* one for each of the kind: whether it is among them */
};

struct design_call {
    size_t line;
    enum design_access_kind kind; /* a row is an entity, a range a query, a table the whole kind */
    double rate;                  /* a second */
    const char *rate_text;        /* as it is described */
    struct design_hot hot;
    const bool *properties; /* of a query: those that it is by, or in the order of */
    uint64_t offset;        /* results that it skips, on average */
    uint64_t results;       /* that it wants at most; 0: all */
    int64_t ramp_us;        /* as of a design_access */
};

struct design_kind {
    size_t line;
    const char *name;
    const char *parent; /* the kind of the root entities below which these are; NULL: of none */
    uint64_t parents;   /* how many of those there are */
    size_t key_line;
    bool has_key; /* else the server gives ids */
    struct design_part key;
    uint64_t entities;
    int64_t history_us; /* in which these were written */
    struct design_property *properties;
    size_t property_count;
    size_t properties_line;
    struct design_index *indexes;
    size_t index_count;
    size_t indexes_line; /* 0: none are described */
    struct design_call *calls;
    size_t call_count;
    size_t calls_line; /* 0: none are described */
};

#endif
