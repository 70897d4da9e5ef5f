/* A source: the rows of a table of a Bigtable endpoint.
 *
 * The table is cut at the keys of SampleRowKeys, and several of the ranges are read at a time. What
 * a position knows of each range is its last row that was given out. Rows are those of the moment
 * at which they are read: a table that is written to meanwhile is not one moment's. */
#ifndef TRESTLE_TRANSFER_ENDPOINT_SOURCE_H
#define TRESTLE_TRANSFER_ENDPOINT_SOURCE_H

#include "client/client_session.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "transfer/source.h"

struct endpoint_source;

struct endpoint_source_options {
    struct client_session *session;
    const char *table;           /* its full name */
    const Bt__RowFilter *filter; /* NULL: none */
    bytes start;                 /* the first key */
    bytes end;                   /* the key behind the last; empty: there is none */
    unsigned at_a_time;          /* ranges; at least 1 */
    bool in_order;               /* of row keys; else as they come */
};

/* What the options point to must outlive the source. Asks for the sample of keys. */
status endpoint_source_create(const struct endpoint_source_options *options,
                              struct endpoint_source **out);
void endpoint_source_destroy(struct endpoint_source *source); /* NULL is fine */

struct transfer_source endpoint_source_interface(struct endpoint_source *source);

/* The keys at which the table was cut, in their order: where a copy of it may be split. */
size_t endpoint_source_range_count(const struct endpoint_source *source);
bytes endpoint_source_range_start(const struct endpoint_source *source, size_t index);

#endif
