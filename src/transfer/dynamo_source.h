/* A source: the items of a DynamoDB export, laid out as rows. */
#ifndef TRESTLE_TRANSFER_DYNAMO_SOURCE_H
#define TRESTLE_TRANSFER_DYNAMO_SOURCE_H

#include "formats/item_layout.h"
#include "transfer/source.h"

struct dynamo_source;

/* Finds the files and checks each MD5 that a manifest names, so that what can be known before a row
 * is written is. `layout` is copied, what it points to must outlive the source; cells without a
 * time of their own get that of the export, else now. Fails as dynamo_export_open; DATA_LOSS for an
 * MD5. */
status dynamo_source_create(const char *path, const struct item_layout *layout,
                            struct dynamo_source **out);
void dynamo_source_destroy(struct dynamo_source *source); /* NULL is fine */

struct transfer_source dynamo_source_interface(struct dynamo_source *source);

#endif
