/* What tests of this folder share: an arena as their state, and rows as text. */
#ifndef TRESTLE_FORMATS_TESTING_TESTING_H
#define TRESTLE_FORMATS_TESTING_TESTING_H

#include "base/arena.h"
#include "base/testing/testing.h"
#include "formats/change.h"

#include <ctype.h>

static inline int setup(void **state)
{
    enum { ARENA_LIMIT = 4 << 20 };
    *state = arena_create(ARENA_LIMIT);
    return *state == NULL;
}

static inline int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static inline void append_shown(struct buffer *out, bytes b)
{
    for (size_t i = 0; i < b.size; i++)
        buffer_append_format(out, isprint(b.data[i]) ? "%c" : "\\%02x", b.data[i]);
}

/* "key | family:qualifier@timestamp=value | …" and a NUL; the timestamp 5000 is not told. */
static inline void describe(const struct move_change *change, struct buffer *out)
{
    append_shown(out, change->row_key);
    for (size_t i = 0; i < change->count; i++) {
        const struct move_cell *cell = &change->cells[i];
        buffer_append_format(out, " | %s:", cell->family);
        append_shown(out, cell->qualifier);
        if (cell->timestamp_us != 5000)
            buffer_append_format(out, "@%lld", (long long)cell->timestamp_us);
        buffer_append_byte(out, '=');
        append_shown(out, cell->value);
    }
    buffer_append_byte(out, '\0');
}

#endif
