/* A page of an answer of DynamoDB's: a list of items (Scan) or of a stream's records (GetRecords),
 * and where the next page begins.
 *
 *     {"Items":[{"Id":{"N":"1"}},…],"Count":1,"LastEvaluatedKey":{"Id":{"N":"1"}}}
 *     {"Records":[{"dynamodb":{…},"eventName":"INSERT"},…],"NextShardIterator":"…"}
 *
 * A page is looked over once as a whole; its elements are given out as text, and what is wrong with
 * one is wrong with it alone. */
#ifndef TRESTLE_FORMATS_DYNAMO_PAGE_H
#define TRESTLE_FORMATS_DYNAMO_PAGE_H

#include "base/status.h"

/* Points into the answer. All zeroes is a page without elements. */
struct dynamo_page {
    bytes rest; /* of the list: elements that are to come */
    bytes next; /* the value that says where the next page begins: JSON; empty: none */
};

/* `list`: "Items", "Records"; `next`: "LastEvaluatedKey", "NextShardIterator", of which null is
 * none. DATA_LOSS if the answer is no JSON object, or `list` is there and no array. */
status dynamo_page_open(bytes answer, const char *list, const char *next, struct dynamo_page *out);

/* The text of the next element. False if there is none. */
bool dynamo_page_next(struct dynamo_page *page, bytes *out);

#endif
