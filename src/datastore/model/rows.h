/* Row keys of a Datastore's table: docs/internals/datastore-layout.md has their bytes.
 *
 * A row key is a letter, the namespace, and what follows, and parts order as what they stand for.
 * Every prefix here is the beginning of the row keys that its name says, and of no others: with
 * key_after_prefix (row/row_key.h) it is their range. A path behind a prefix makes the row key of
 * an entity, or the prefix of that entity's and its descendants' rows.
 *
 * Functions append; failures show in out->failed. Nothing here limits the size of a row key, nor
 * do tablets or the store: validate.h and index_rows.h do. */
#ifndef TRESTLE_DATASTORE_MODEL_ROWS_H
#define TRESTLE_DATASTORE_MODEL_ROWS_H

#include "datastore/model/value.h"

enum ds_row_kind {
    DS_ENTITY_ROW = 'E',
    DS_KIND_ROW = 'K',
    DS_ASCENDING_ROW = 'A',
    DS_COMPOSITE_ROW = 'C',
    DS_NUMBERS_ROW = 'I',
    DS_INDEX_ROW = 'X',
};

/* --- prefixes --- */

void ds_entity_prefix(struct buffer *out, bytes name_space);
void ds_kind_prefix(struct buffer *out, bytes name_space, bytes kind);

/* The built-in index of a property. With the bytes of ds_value_append, ascending, behind it it is
 * the prefix of one value. */
void ds_property_prefix(struct buffer *out, bytes name_space, bytes kind, bytes property);

/* For many rows of one kind: what stands behind their letter, and the same prefix made with it. */
void ds_kind_texts(struct buffer *out, bytes name_space, bytes kind);
void ds_property_prefix_after(struct buffer *out, bytes kind_texts, bytes property);

/* `ancestor`: the path whose descendants' rows, and its own, these are; empty if and only if the
 * index is one without ancestors. Values follow, each in its direction. */
void ds_composite_prefix(struct buffer *out, bytes name_space, uint64_t index, bytes ancestor);

/* The end of a composite index's row: the entity's path, or, in an index by descending keys, the
 * path as an ancestor, inverted. */
void ds_row_path_append(struct buffer *out, bytes path, enum ds_flip key_flip);

/* --- whole rows --- */

/* `key` is complete. */
void ds_entity_row(struct buffer *out, const Ds__Key *key);
void ds_kind_row(struct buffer *out, const Ds__Key *key);

/* `value` is encoded, ascending; `path` that of the entity. */
void ds_property_row(struct buffer *out, bytes name_space, bytes kind, bytes property, bytes value,
                     bytes path);

void ds_numbers_row(struct buffer *out, bytes name_space, bytes kind);
void ds_index_row(struct buffer *out, uint64_t index);

/* Whether the range has the row of one entity, and no other: `to` is `from` and a zero byte. */
bool ds_is_one_entity(bytes from, bytes to);

/* --- taking row keys apart --- */

/* The shape of a composite index, needed to read its rows. */
struct ds_index_shape {
    const enum ds_flip *flips; /* one for each value, in their order */
    size_t values;             /* properties besides the key */
    enum ds_flip key_flip;     /* the entity's key comes last, in this direction */
    bool has_ancestors;
};

/* A row key's parts: views into it. */
struct ds_row {
    enum ds_row_kind kind;
    bytes name_space; /* texts as in the row key, with their ends; empty where there are none */
    bytes kind_name;
    bytes property;
    uint64_t index;        /* of C and X */
    bytes ancestor;        /* its path; empty without */
    bytes values;          /* one behind the other, as they are in the row key */
    bytes path;            /* the entity's; empty for I and X */
    enum ds_flip key_flip; /* of the path; if it is descending, its mark is inverted, too */
};

/* The index of a composite index's row, or of what it begins with. False for others. */
bool ds_composite_row_index(bytes row_key, uint64_t *out);

/* `shape` is for C rows, and may be NULL if there can be none. False if the bytes are no row key.
 */
bool ds_row_parse(bytes row_key, const struct ds_index_shape *shape, struct ds_row *out);

/* The beginning that a row key shares with all rows of the same index, or with all entities whose
 * roots are of the same kind: a view into the key, which may have been cut off, and is the section
 * itself then, or may be no row key at all. */
bytes ds_row_section(bytes row_key);

/* The path of the entity, ascending: the view, or a copy in the arena if it was inverted. */
status ds_row_path(const struct ds_row *row, struct arena *arena, bytes *out);

/* The entity's key, in the arena, with its partition; project and database, which are not in the
 * row key, are strings that must outlive it. INTERNAL if the row has none. */
status ds_row_entity(const struct ds_row *row, const char *project, const char *database,
                     struct arena *arena, Ds__Key **out);

#endif
