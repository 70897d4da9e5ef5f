/* A source: the items of a DynamoDB table by its endpoint, laid out as rows, and then what changes
 * in it.
 *
 * First the table is scanned, then, if it is followed, its stream is read from where it was when
 * the scan began. An item that is scanned is all of its row, as a change is; so the scan may be
 * gone on with, or made again, at any time, and what the stream says once more changes nothing.
 *
 * It has an event loop of its own, which its waits run; its records are written on the same one.
 * One thread. */
#ifndef TRESTLE_TRANSFER_LIVE_SOURCE_H
#define TRESTLE_TRANSFER_LIVE_SOURCE_H

#include "aws/dynamo_scan.h"
#include "formats/item_layout.h"
#include "transfer/source.h"

struct live_source;

enum live_follow {
    LIVE_FOLLOW_NONE,
    LIVE_FOLLOW_UNTIL_CAUGHT_UP, /* or SIGINT or SIGTERM */
    LIVE_FOLLOW_FOREVER,         /* until SIGINT or SIGTERM */
};

struct live_source_options {
    const char *place;    /* "dynamodb://TABLE", for people */
    const char *table;    /* its name */
    const char *endpoint; /* NULL: AWS's own of the region */
    const char *region;   /* NULL: as aws_credentials_find has it */
    unsigned segments;
    bool is_consistent;
    enum live_follow follow;
};

/* Finds credentials, and asks what the table is. All strings must outlive the source. */
status live_source_create(const struct live_source_options *options, struct live_source **out);
void live_source_destroy(struct live_source *source); /* NULL is fine */

const struct dynamo_table *live_source_table(const struct live_source *source);
struct loop *live_source_loop(const struct live_source *source);

/* Before the interface is asked for. `layout` is copied, what it points to must outlive the source.
 * INVALID_ARGUMENT if rows laid out so cannot follow changes; FAILED_PRECONDITION if the table has
 * no stream to follow. */
status live_source_begin(struct live_source *source, const struct item_layout *layout);

struct transfer_source live_source_interface(struct live_source *source);

#endif
