/* A sink: an export of DynamoDB's, of the items that lie losslessly in rows. */
#ifndef TRESTLE_TRANSFER_DYNAMO_SINK_H
#define TRESTLE_TRANSFER_DYNAMO_SINK_H

#include "client/client_session.h"
#include "formats/dynamo_writer.h"
#include "transfer/sink.h"

struct dynamo_sink;

struct dynamo_sink_options {
    const char *directory;
    const char *table;              /* what the export is named after */
    struct client_session *session; /* which waits, where rows come too fast */
    uint64_t rows_per_second;       /* 0: as fast as it goes */
    struct transfer_refusal refusal;
};

/* What the options point to must outlive the sink. Rows that hold no item are refused. */
status dynamo_sink_create(const struct dynamo_sink_options *options, struct dynamo_sink **out);
void dynamo_sink_destroy(struct dynamo_sink *sink); /* NULL is fine */

struct transfer_sink dynamo_sink_interface(struct dynamo_sink *sink);

/* How many items were written, when it is finished. */
uint64_t dynamo_sink_items(const struct dynamo_sink *sink);
uint64_t dynamo_sink_checksum(const struct dynamo_sink *sink);

/* The item of a row: the newest of its cells, which come first. DATA_LOSS if they hold none. */
status dynamo_item_of_row(const struct move_change *row, struct arena *arena,
                          struct item_value *out);

#endif
