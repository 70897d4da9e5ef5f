/* The index rows of an entity, and what of them a change makes come and go.
 *
 * Of the built-in indexes an entity has its row in that of its kind, and one for each different
 * value of each property, which is read in both directions. Arrays give their elements, entities
 * within it their properties, under "outer.inner". A value that is excluded from indexes gives
 * nothing, nor does what is in it, an empty array, or a vector (an array of meaning 31).
 *
 * One entity in DS_SCATTER_SHARE, chosen by a hash of its path, is indexed as if it had a property
 * DS_SCATTER_PROPERTY: other bits of the hash, as a blob. Ordered by it, a query gives a sample of
 * a kind's keys that depends on nothing but the keys; clients that read a kind in parallel take
 * their split points from it. The entity itself does not have the property.
 *
 * In a composite index of its kind it has a row for each combination of its properties' values, and
 * each of those for each of its ancestors, itself among them, if the index is one with ancestors;
 * none if it lacks one of the properties.
 *
 * Everything is made in an arena, and slices are of it, or of the entity. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_ROWS_H
#define TRESTLE_DATASTORE_INDEX_INDEX_ROWS_H

#include "datastore/model/rows.h"

/* A client that splits a query in N asks for 32 (N - 1) keys of the sample, and does with fewer.
 * The more there are, the better even small kinds are split; with this share the rows add less than
 * one in a hundred to a kind whose entities have one indexed property, and it is production's. */
#define DS_SCATTER_PROPERTY "__scatter__"
enum { DS_SCATTER_SHARE = 128 };

/* A composite index. */
struct ds_index {
    uint64_t id;
    const char *kind;
    const char *const *properties; /* shape.values of them, without the key, no two the same */
    struct ds_index_shape shape;
};

struct ds_index_row {
    bytes key;   /* of the row */
    bytes types; /* of its values (ds_value_type), a byte for each: what its cell holds */
};

/* Sorted by key; no key twice. */
struct ds_index_rows {
    struct ds_index_row *rows;
    size_t count;
};

/* INVALID_ARGUMENT beyond LIMIT_DS_INDEX_ENTRIES or LIMIT_DS_COMPOSITE_BYTES, or for a path of a
 * property that is longer than a name may be. `entity` has a complete key and is normalised
 * (validate.h). */
status ds_index_rows(const Ds__Entity *entity, const struct ds_index *indexes, size_t count,
                     struct arena *arena, struct ds_index_rows *out);

/* A row that was there and is no more, is there and was not, or is another: both, its cell is to be
 * written again and the old one to be kept as what was. */
struct ds_index_change {
    bytes key;
    bool was;
    bytes past; /* the types of what it was; empty if it was not */
    bool is;
    bytes now; /* of what it is; empty if it is no more */
};

struct ds_index_changes {
    struct ds_index_change *changes; /* sorted by key; no key twice */
    size_t count;
};

/* From `old` to `new_one`, of which either may be NULL: there was none, or is none. Their keys are
 * the same. Of `old` no limit is checked: it is there. (But an index that alone would take it
 * beyond LIMIT_DS_INDEX_ENTRIES has never got its rows.) */
status ds_index_difference(const Ds__Entity *old, const Ds__Entity *new_one,
                           const struct ds_index *indexes, size_t count, struct arena *arena,
                           struct ds_index_changes *out);

#endif
