/* A sink: the rows of a table of a Bigtable endpoint, written by client/row_writer.h. */
#ifndef TRESTLE_TRANSFER_ENDPOINT_SINK_H
#define TRESTLE_TRANSFER_ENDPOINT_SINK_H

#include "client/client_session.h"
#include "google/bigtable/admin/v2/table.pb-c.h"
#include "transfer/sink.h"

struct endpoint_sink;

struct endpoint_sink_options {
    struct client_session *session;
    const char *table;            /* its full name */
    const BtAdmin__Table *schema; /* says which families are aggregates */
    uint64_t rows_per_second;     /* 0: as fast as it goes */
    struct transfer_refusal refusal;
};

/* What the options point to must outlive the sink. */
status endpoint_sink_create(const struct endpoint_sink_options *options,
                            struct endpoint_sink **out);
void endpoint_sink_destroy(struct endpoint_sink *sink); /* NULL is fine */

struct transfer_sink endpoint_sink_interface(struct endpoint_sink *sink);

#endif
