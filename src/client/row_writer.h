/* Rows written to a Bigtable endpoint, for commands that bring many: MutateRows in batches, several
 * of them under way at a time, tried again where that may help.
 *
 * Each row has a *tag*, a number that never falls: where in its source it came from, and perhaps
 * the record's text. A row that is refused is told by both. Since cells bring their timestamps,
 * writing a row again changes nothing; a cell of an aggregate is removed and merged again, for it
 * has no other way to be set.
 *
 * A change that replaces its row begins with the row's deletion. One that yields to what is later
 * is a CheckAndMutateRow of its own, many of them under way. Since what is under way ends in any
 * order, a change waits for one before it of the same row, where one of the two replaces it.
 *
 * Calls run the event loop while they wait. One thread. */
#ifndef TRESTLE_CLIENT_ROW_WRITER_H
#define TRESTLE_CLIENT_ROW_WRITER_H

#include "client/endpoint.h"
#include "formats/change.h"

struct row_writer;

enum { ROW_WRITER_TEXT_MOST = 4 << 20 };

struct row_writer_options {
    struct loop *loop;
    const struct endpoint *endpoint; /* outlives the writer */
    const char *table;               /* its full name */
    const char *app_profile;         /* "": none */
    const char *const *aggregates;   /* names of families whose cells are states; ends with NULL */
    unsigned under_way;              /* batches at a time; at least 1 */
    uint64_t rows_per_second;        /* 0: as fast as it goes */
    void *context;
    /* The row will not be written, whatever is tried. The text is empty where none was given, and
     * where it had more than ROW_WRITER_TEXT_MOST bytes. */
    void (*refused)(void *context, uint64_t tag, bytes text, status why);
};

status row_writer_create(const struct row_writer_options *options, struct row_writer **out);
void row_writer_destroy(struct row_writer *writer); /* gives up what is under way; NULL is fine */

/* Copies the change and the text of its record, which may be empty. Waits while as much is under
 * way as may be. Fails if the endpoint refuses all rows (NOT_FOUND, PERMISSION_DENIED, …), or does
 * not answer for a minute: nothing more comes of it then. */
status row_writer_add(struct row_writer *writer, const struct move_change *change, uint64_t tag,
                      bytes text);

/* Sends what there is and waits until it is finished. Fails as row_writer_add. */
status row_writer_flush(struct row_writer *writer);

#endif
