/* Writes an export as DynamoDB lays it down, which dynamo_export.h reads:
 *
 *     <directory>/data/part-00000.json.gz    lines {"Item":{…}}
 *     <directory>/manifest-files.json        a line for each file: items, MD5
 *     <directory>/manifest-summary.json
 *     <directory>/manifest-….checksum        the MD5 of each manifest, base64
 *
 * The manifests come at the end, so a directory without them is of an export that has not ended.
 * It is written in steps: a writer that opens it again with the position that a step gave goes on
 * behind it, also when it has been finished behind that step. One thread. */
#ifndef TRESTLE_FORMATS_DYNAMO_WRITER_H
#define TRESTLE_FORMATS_DYNAMO_WRITER_H

#include "formats/item.h"

struct dynamo_position {
    uint64_t file;       /* that is being written, from 0 */
    uint64_t file_bytes; /* of it */
    uint64_t file_items;
    uint64_t file_text;      /* bytes of its lines */
    uint64_t manifest_bytes; /* of the list of those before */
    uint64_t items;          /* of all */
    uint64_t text;
    uint64_t checksum; /* the sum of the hashes of all lines */
};

struct dynamo_writer;

/* Makes the directory. `position`: where an export goes on, as a step gave it; NULL begins one, and
 * is ALREADY_EXISTS if there is something in the directory. */
status dynamo_writer_create(const char *directory, const struct dynamo_position *position,
                            struct dynamo_writer **out);
void dynamo_writer_destroy(struct dynamo_writer *writer); /* NULL is fine */

/* The item is a map, its name and that of its attributes UTF-8. */
status dynamo_writer_add(struct dynamo_writer *writer, const struct item_value *item);

/* Flushes: all that was added is durable. */
status dynamo_writer_flush(struct dynamo_writer *writer, struct dynamo_position *position);

/* The manifests. `started_us`: the moment that the export is of. */
status dynamo_writer_finish(struct dynamo_writer *writer, const char *table, int64_t started_us,
                            int64_t ended_us);

/* What an item adds to `checksum`. 0 without memory. */
uint64_t dynamo_item_checksum(const struct item_value *item);

/* Holds each file against its MD5, and counts and adds up again what it has. DATA_LOSS. */
status dynamo_writer_check(const char *directory, uint64_t *items, uint64_t *checksum);

#endif
