/* Marks tell which indexes of a database have answered queries, and when last: a bounded set that
 * is marked by each query, and kept over restarts.
 *
 * An index is known by a hash alone. A query that marks one which has its mark of this minute
 * writes nothing; so queries share the set for reading, except one write a minute and index. A set
 * that is full says so: then nothing can be said of an index that has no mark. Any thread. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_MARKS_H
#define TRESTLE_DATASTORE_INDEX_INDEX_MARKS_H

#include "base/bytes.h"
#include "base/status.h"
#include "datastore/model/key.h"

enum { DS_INDEX_MARKS = 1024, DS_INDEX_MARKS_BYTES = 16 << 10 /* of a record, at most */ };

struct ds_index_marks;

/* NULL without memory. */
struct ds_index_marks *ds_index_marks_create(void);
void ds_index_marks_destroy(struct ds_index_marks *marks); /* NULL is fine */

/* Never 0. `property` empty: the kind's own index. A built-in index is read in both directions, and
 * has a mark for each. */
uint64_t ds_index_mark_built_in(bytes kind, bytes property, enum ds_flip flip);
uint64_t ds_index_mark_composite(uint64_t id);

/* `minute`: since 1970, of the wall clock; more than 0. */
void ds_index_marks_set(struct ds_index_marks *marks, uint64_t index, uint32_t minute);

/* The minute of the last use; 0: none is known. */
uint32_t ds_index_marks_get(const struct ds_index_marks *marks, uint64_t index);

bool ds_index_marks_is_full(const struct ds_index_marks *marks);

/* Since when uses have been marked; `minute` 0: not yet. */
uint32_t ds_index_marks_since(const struct ds_index_marks *marks);
void ds_index_marks_begin(struct ds_index_marks *marks, uint32_t minute); /* unless it has begun */

/* Whether anything was marked, or begun, since this was asked last. */
bool ds_index_marks_take_change(struct ds_index_marks *marks);

/* The record of what there is, which is appended; and what is in one, added to what there is. A
 * record that cannot be read is as none. */
void ds_index_marks_encode(const struct ds_index_marks *marks, struct buffer *out);
void ds_index_marks_decode(struct ds_index_marks *marks, bytes record);

#endif
