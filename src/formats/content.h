/* What a file says, piece after piece: its bytes as they are, or what gzip has packed in them, in
 * one member or several, one behind the other.
 *
 * A file ends in one of three ways: at its end; in the middle of a gzip member, which is DATA_LOSS
 * (what is before has been given out); by a failure of the system. Memory is one small buffer. One
 * thread at a time. */
#ifndef TRESTLE_FORMATS_CONTENT_H
#define TRESTLE_FORMATS_CONTENT_H

#include "base/status.h"

struct content;

/* "-" is standard input. NOT_FOUND, PERMISSION_DENIED, … */
status content_open(const char *path, struct content **out);
/* Opens bytes in memory, which outlive the content. */
status content_open_bytes(bytes text, struct content **out);
void content_close(struct content *content); /* NULL is fine */

/* The next bytes: at least one and at most `room`; 0 is the end. */
status content_read(struct content *content, uint8_t *to, size_t room, size_t *made);

/* Whether there is something to unpack, and a read of it waits for the disk alone. */
bool content_is_packed_file(const struct content *content);

/* How much of the file has been read, and how large it is (0: not known): bytes as they lie there.
 */
uint64_t content_bytes_read(const struct content *content);
uint64_t content_bytes_total(const struct content *content);

#endif
