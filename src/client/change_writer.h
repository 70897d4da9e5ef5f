/* Mutations of rows written to a Bigtable endpoint as they come from elsewhere: those of one row in
 * their order, many rows at a time, by MutateRows.
 *
 * What waits for a row's turn is written as one, so a row that changes all the time costs a call
 * at a time. A call goes out when none is under way, or when as much is ready as one takes. Rows
 * whose failure may pass are written again after a while, and what is behind them waits. What is
 * said here twice is written twice: the mutations have to bring their timestamps. (A server that is
 * cut off while it makes a call, and makes it much later, behind what came after, cannot be told
 * from one that never got it.)
 *
 * (client/row_writer.h is for rows that know nothing of each other: it sets cells, and tells of the
 * rows that were refused. Here one that is refused ends everything.)
 *
 * Calls run the event loop while they wait. One thread. */
#ifndef TRESTLE_CLIENT_CHANGE_WRITER_H
#define TRESTLE_CLIENT_CHANGE_WRITER_H

#include "client/endpoint.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct change_writer;

struct change_writer_options {
    struct loop *loop;
    const struct endpoint *endpoint; /* outlives the writer */
    const char *table;               /* its full name; outlives the writer */
    const char *app_profile;         /* "": none; outlives the writer */
    unsigned under_way;              /* calls at a time; at least 1 */
};

status change_writer_create(const struct change_writer_options *options,
                            struct change_writer **out);
void change_writer_destroy(struct change_writer *writer); /* gives up what waits; NULL is fine */

/* Copies the mutations; waits while too much waits. Fails when a row was refused, naming it, when
 * the endpoint refuses all, or does not answer for a minute: nothing more is written then. */
status change_writer_add(struct change_writer *writer, bytes row_key,
                         Bt__Mutation *const *mutations, size_t count);

/* Waits until all that was added is written. Fails as change_writer_add. */
status change_writer_flush(struct change_writer *writer);

#endif
