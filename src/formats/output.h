/* A file that is written in steps, of which each can be gone back to: plain or gzip.
 *
 * It is written beside its place, as PATH.part, and put there when it is whole. A step ends with
 * output_sync, which gives a length; a writer that opens it again with that length goes on there,
 * also when it was put into its place behind that step. In gzip each step is a member. "-" is
 * standard output, of which nothing is whole or gone on with. */
#ifndef TRESTLE_FORMATS_OUTPUT_H
#define TRESTLE_FORMATS_OUTPUT_H

#include "base/status.h"

struct output;

/* `length`: of a file that was begun; 0 begins a new one. NOT_FOUND if there is none to go on with,
 * DATA_LOSS if it is shorter. */
status output_open(const char *path, bool is_gzip, uint64_t length, struct output **out);
void output_close(struct output *output); /* what was not synced may be lost; NULL is fine */

status output_write(struct output *output, bytes text);

/* Durable when it returns. */
status output_sync(struct output *output, uint64_t *length);

/* Puts the file into its place, whatever was there. It has been synced. */
status output_finish(struct output *output);

#endif
