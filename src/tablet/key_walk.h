/* Values of rising keys of a keyspace, got by a cursor where they lie close together.
 *
 * To look a key up costs some thousand instructions, whether the last one was its neighbour or not;
 * a step of a cursor a fraction of that, but it may take many to come to the next key. So a chunk
 * of keys is walked as long as there are few others between them. One that takes more steps than
 * that is looked up, and so are those behind it, for a while that grows each time.
 *
 * A value may be as old as the first call. */
#ifndef TRESTLE_TABLET_KEY_WALK_H
#define TRESTLE_TABLET_KEY_WALK_H

#include "store/store.h"

enum { KEY_WALK_MOST = 32 }; /* keys of a chunk */

struct key_walk {
    struct keyspace *keyspace;
    bytes last; /* no key that is asked for is greater; stays where it is; empty: no bound */
    bool never; /* walks: keys do not rise, or have many versions */
    /* private; all zeroes at first */
    struct store_cursor *cursor; /* NULL: there is none */
    bool is_placed;
    size_t chunks_to_get; /* before it is tried again */
    size_t last_wait;     /* how many those were */
};

/* Calls `visit` with the value of each key that is there, and the key's place among these, in their
 * order, until it fails. Keys rise, from call to call, and none comes twice; at most KEY_WALK_MOST
 * of them. `*are_all`: false, if the thread's bound has refused one (store_bound_reads); nothing is
 * known of those that were not visited, then. May block for the disk. */
status key_walk_get(struct key_walk *walk, const bytes *keys, size_t count,
                    status (*visit)(void *context, size_t i, bytes value), void *context,
                    bool *are_all);

/* Holds nothing of the store any more; may go on. */
void key_walk_rest(struct key_walk *walk);

#endif
