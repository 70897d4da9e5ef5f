/* A file of lines that does not grow without end: beyond a size it is renamed to FILE.1, what was
 * that to FILE.2 and so on, and a new one is begun; the oldest goes.
 *
 * Any thread, all of it. */
#ifndef TRESTLE_OS_ROTATED_FILE_H
#define TRESTLE_OS_ROTATED_FILE_H

#include "base/log.h"
#include "base/status.h"

struct rotated_file;

/* Path and log must outlive the file. */
struct rotated_file_options {
    const char *path;
    int64_t bytes_most;    /* of one file, except for a larger line; 0: it is never renamed */
    int64_t older_most;    /* files beside the one that is written; 1 or more */
    const struct log *log; /* where it is told that renaming fails */
};

/* Made with mode 0600 if it is not there; else lines are added to it. */
status rotated_file_open(const struct rotated_file_options *options, struct rotated_file **out);
void rotated_file_close(struct rotated_file *file); /* NULL is fine */

/* Opens the path again, after another program has renamed the file. On failure the file that was
 * open stays. */
status rotated_file_reopen(struct rotated_file *file);

/* Adds a line, which has its end. False if it could not be written: nothing of it is there then,
 * as far as that can be undone. */
bool rotated_file_write(struct rotated_file *file, bytes line);

#endif
