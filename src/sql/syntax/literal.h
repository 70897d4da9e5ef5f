/* String, bytes and identifier literals: '…', """…""", r'…', b'…', `…`, and their escapes. */
#ifndef TRESTLE_SQL_SYNTAX_LITERAL_H
#define TRESTLE_SQL_SYNTAX_LITERAL_H

#include "base/arena.h"
#include "base/status.h"

enum literal_kind { LITERAL_STRING, LITERAL_BYTES, LITERAL_IDENTIFIER };

struct literal {
    enum literal_kind kind;
    bytes value;  /* what it stands for, in the arena */
    uint32_t end; /* the offset after it */
};

/* Whether a literal begins there. */
bool literal_starts(bytes text, uint32_t at);

/* INVALID_ARGUMENT, with the place, if it has no end, or an escape that is none. */
status literal_read(bytes text, uint32_t at, struct arena *arena, struct literal *out);

/* --- and back --- */

/* As a literal in double quotes, as messages and FORMAT('%T') have it; bytes with their b. */
void literal_append_string(struct buffer *out, bytes value);
void literal_append_bytes(struct buffer *out, bytes value);

#endif
