/* Tells change streams of the rows of a drop, as a part of the table's job over its drops
 * (drop_pass.c). See telling.h for what a telling is. */
#ifndef TRESTLE_CLUSTER_STREAM_TELL_DROPPED_H
#define TRESTLE_CLUSTER_STREAM_TELL_DROPPED_H

#include "base/status.h"

struct table;
struct table_space;

/* Tells the next rows of the keyspace's drop, 512 at most; all rows told, it lets the drops go.
 * Nothing if no drop has begun. Not with `admin` held; takes it. Blocks. */
status tell_dropped_piece(struct table *table, struct table_space *space);

/* Writes a telling off whose stream is not there any more, if there is one. With admin held. */
status tell_dropped_write_off(struct table *table, struct table_space *space);

/* Whether the stream is being told of a drop of the table's rows. With admin held, after each
 * keyspace's was written off if it was to be. */
bool tell_dropped_is_under_way(const struct table *table);

/* Forgets what spans nobody needs any more. Blocks. */
void tell_dropped_forget(struct table *table);

#endif
