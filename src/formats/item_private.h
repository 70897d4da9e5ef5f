/* What the readers and writers of items share. */
#ifndef TRESTLE_FORMATS_ITEM_PRIVATE_H
#define TRESTLE_FORMATS_ITEM_PRIVATE_H

#include "formats/item.h"

/* Makes room for one element behind those that there are; `*capacity` begins with 0. False when the
 * arena is full. */
bool item_make_room(struct item_value *out, size_t *capacity, struct arena *arena);

/* Sorts a map's elements by name. False if one is there twice. */
bool item_sort_members(struct item_value *map);

/* Copies what the buffer has into the arena, and frees the buffer. */
status item_keep(struct arena *arena, struct buffer *buffer, bytes *out);

#endif
