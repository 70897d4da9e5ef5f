/* A line of a DynamoDB export: an item as it is, or what became of it in a while; or a record of a
 * table's stream, which says the latter, too.
 *
 *     full           {"Item":{…}}
 *     incremental    {"Metadata":{"WriteTimestampMicros":{"N":"…"}},"Keys":{…},
 *                     "OldImage":{…},"NewImage":{…}}; without a new image the item is gone
 *
 * Both as DynamoDB's JSON and as Ion text (DynamoDB Developer Guide, "DynamoDB table export output
 * format"). What else a line has is passed over.
 *
 *     stream         {"eventName":"MODIFY","dynamodb":{"Keys":{…},"NewImage":{…},
 *                     "SequenceNumber":"…","ApproximateCreationDateTime":1480000000}} */
#ifndef TRESTLE_FORMATS_DYNAMO_RECORD_H
#define TRESTLE_FORMATS_DYNAMO_RECORD_H

#include "formats/item.h"

enum dynamo_format { DYNAMO_JSON, DYNAMO_ION };

struct dynamo_record {
    bool is_incremental;
    bool is_gone;
    struct item_value item; /* the new image; of one that is gone its keys */
    int64_t written_us;     /* incremental */
};

/* INVALID_ARGUMENT says what is wrong with the line, and where. The record points into the line and
 * the arena. */
status dynamo_record_read(enum dynamo_format format, bytes line, struct arena *arena,
                          struct dynamo_record *out);

/* A record of a stream; `sequence` is a part of the text. Its time is that of whole seconds, or of
 * less, as the service gives it. Fails as dynamo_record_read. */
status dynamo_record_read_stream(bytes text, struct arena *arena, struct dynamo_record *out,
                                 bytes *sequence);

#endif
