/* The file of the records that could not become rows: a line of JSON for each,
 * {"file","line","reason"} and, of text, "record"; of what is to be text and is no UTF-8,
 * "record_base64". */
#ifndef TRESTLE_TRANSFER_REJECTS_H
#define TRESTLE_TRANSFER_REJECTS_H

#include "base/status.h"
#include "transfer/source.h"

#include <stdio.h>

struct rejects {
    const char *path;
    FILE *file;     /* NULL: there are none yet */
    uint64_t bytes; /* that are durable; of an earlier run, at the beginning */
};

/* The path must outlive them. `bytes`: what an earlier run has left that counts; what it wrote
 * behind that goes. */
status rejects_open(struct rejects *rejects, const char *path, uint64_t bytes);
void rejects_close(struct rejects *rejects); /* all zeroes is fine */

/* Makes the file with the first. */
status rejects_add(struct rejects *rejects, const struct transfer_place *place, const char *reason,
                   bytes record);

/* Durable when it returns. */
status rejects_flush(struct rejects *rejects);

#endif
