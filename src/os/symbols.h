/* Names of functions by their addresses in this process: from the symbol table of the program,
 * which a stripped one lacks, and from what shared libraries export. An unknown name is given as
 * the place in its file, "trestle+0x1a2b3c", from which `addr2line` finds it with the file's debug
 * symbols.
 *
 * One thread at a time. */
#ifndef TRESTLE_OS_SYMBOLS_H
#define TRESTLE_OS_SYMBOLS_H

#include "base/status.h"

struct symbols;

/* Without the program's table all goes by what is exported: that is no failure. */
status symbols_open(struct symbols **out);
void symbols_close(struct symbols *symbols); /* NULL is fine */

/* Where the function begins that the address is in; the address itself if that is not known. */
void *symbols_function(const struct symbols *symbols, void *address);

/* Appends the name, in which there is neither white space nor ';'. */
void symbols_name(const struct symbols *symbols, const void *address, struct buffer *out);

#endif
