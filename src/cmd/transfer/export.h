/* `trestle export`: rows of a table, as files.
 *
 *     trestle export dynamodb TABLE OUT …
 *     trestle export csv|jsonl|avro TABLE OUT …
 *
 * Each kind of file has a file export_KIND.c with its options. */
#ifndef TRESTLE_CMD_TRANSFER_EXPORT_H
#define TRESTLE_CMD_TRANSFER_EXPORT_H

#include "base/status.h"

/* Returns the exit status: 0 if every row was written and the verification found nothing; 1 if not,
 * or if it failed; 2 for options that make no sense. */
int export_command(const char *const *arguments);

/* The arguments behind the word. */
int export_dynamodb_command(const char *const *arguments);
int export_csv_command(const char *const *arguments);
int export_jsonl_command(const char *const *arguments);
int export_avro_command(const char *const *arguments);

#endif
