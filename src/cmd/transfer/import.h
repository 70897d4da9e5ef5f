/* `trestle import`: rows from what other databases leave behind, and of files.
 *
 *     trestle import dynamodb SOURCE --table T --partition-key NAME [--sort-key NAME] …
 *     trestle import csv|jsonl|avro SOURCE… --table T …
 *
 * Each kind of source has a file import_KIND.c with its options; what they share is here, and in
 * transfer/job.h. */
#ifndef TRESTLE_CMD_TRANSFER_IMPORT_H
#define TRESTLE_CMD_TRANSFER_IMPORT_H

#include "transfer/job.h"
#include "transfer/table.h"

/* Returns the exit status: 0 if every record became a row and none was found to differ; 1 if not,
 * or if it failed; 2 for options that make no sense. */
int import_command(const char *const *arguments);

/* The arguments behind the word. */
int import_dynamodb_command(const char *const *arguments);
int import_csv_command(const char *const *arguments);
int import_jsonl_command(const char *const *arguments);
int import_avro_command(const char *const *arguments);

/* The target of rows. */
struct import_target {
    const struct target_options *server;
    const char *table_id;
    const char *identity;               /* as transfer/job.h has it */
    const struct move_family *families; /* that the table needs */
    size_t family_count;                /* 0: as the table has them, which must be there */

    /* In place of the families, where there is more to say. */
    const BtAdmin__Table *schema; /* NULL: there is not */
    const bytes *splits;          /* row keys at which the table is cut if it is made */
    size_t split_count;

    /* Several records of a row add to it, each at its time: of their cells the families' rules may
     * take the older ones. */
    bool records_add;

    struct loop *loop; /* that the source runs; NULL: none */
};

/* All records of the source become rows; the result is printed. `*is_perfect`: none was rejected,
 * none differs. */
status import_run(const struct transfer_options *options, const struct import_target *target,
                  const struct transfer_source *source, bool *is_perfect);

#endif
