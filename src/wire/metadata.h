/* HTTP/2 header fields to send: those that never change, without copies, and those of one call. */
#ifndef TRESTLE_WIRE_METADATA_H
#define TRESTLE_WIRE_METADATA_H

#include "base/bytes.h"

#include <nghttp2/nghttp2.h>

/* Fields that a call has been given, packed into one buffer. All zeroes has none. */
struct metadata {
    struct buffer text;
    size_t count;
};

/* Adds a copy; the value as base64 if the name ends in -bin. Left out without memory, beyond
 * METADATA_MOST fields, and if HTTP/2 does not allow the bytes. */
void metadata_add(struct metadata *metadata, const char *name, bytes value);
/* The same; the value is text already, whatever the name. */
void metadata_add_text(struct metadata *metadata, bytes name, bytes value);
void metadata_clear(struct metadata *metadata); /* keeps the memory */
void metadata_free(struct metadata *metadata);

bool metadata_is_binary(bytes name); /* whether it ends in -bin */

/* A list to hand to nghttp2. Its memory is a kilobyte and more, which is not cleared for the few
 * fields that an answer has. */
enum { METADATA_MOST = 32, FIELDS_MOST = METADATA_MOST + 8 };
struct fields {
    size_t count;
    nghttp2_nv list[FIELDS_MOST];
};

static inline void fields_start(struct fields *fields)
{
    fields->count = 0;
}

/* Neither is copied by nghttp2: both must outlive the session. */
void fields_add_constant(struct fields *fields, bytes name, bytes value);
/* The same; of literals the compiler knows the sizes. */
static inline void fields_add_fixed(struct fields *fields, const char *name, const char *value)
{
    fields_add_constant(fields, bytes_of(name), bytes_of(value));
}

/* The name is a literal, the value is copied by nghttp2 on submit. */
void fields_add(struct fields *fields, const char *name, bytes value);
/* Copied by nghttp2 on submit. What one call has is not worth a place in the tables of HPACK, where
 * it would push out what all have. */
void fields_add_metadata(struct fields *fields, const struct metadata *metadata);
/* The same for metadata that outlives the session, and is worth it. */
void fields_add_shared(struct fields *fields, const struct metadata *metadata);

#endif
