/* All items of a table, by a parallel Scan: each segment has one request under way, or one page
 * that is being given out; so what is held are as many pages as there are segments, however slow
 * the taker is. While it waits for a page the loop runs. One thread. */
#ifndef TRESTLE_AWS_DYNAMO_SCAN_H
#define TRESTLE_AWS_DYNAMO_SCAN_H

#include "aws/dynamo_table.h"

struct dynamo_scan;

enum { DYNAMO_SEGMENTS_MOST = 256 };

struct dynamo_scan_options {
    struct dynamo_client *client;
    const struct dynamo_table *table;
    unsigned segments; /* 1 to DYNAMO_SEGMENTS_MOST */
    bool is_consistent;
};

/* What the options point to must outlive the scan. */
status dynamo_scan_create(const struct dynamo_scan_options *options, struct dynamo_scan **out);
void dynamo_scan_destroy(struct dynamo_scan *scan); /* NULL is fine */

/* The next item, as DynamoDB's JSON, until the next call. Items come in the order in which pages
 * arrive. Fails as the calls do. */
status dynamo_scan_next(struct dynamo_scan *scan, bytes *out, bool *is_end);

/* The scan's position: behind the item that came last. A new reference; NULL: no memory. */
json_t *dynamo_scan_save(const struct dynamo_scan *scan);
/* Before the first item. DATA_LOSS if that is no position of a scan of as many segments. */
status dynamo_scan_restore(struct dynamo_scan *scan, const json_t *position);

uint64_t dynamo_scan_bytes(const struct dynamo_scan *scan); /* of pages that have come */

#endif
