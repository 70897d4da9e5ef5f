/* `trestle copy`: a table of one Bigtable endpoint into another.
 *
 *     trestle copy TABLE --from-endpoint ADDR:PORT --endpoint ADDR:PORT [--to-table NAME] … */
#ifndef TRESTLE_CMD_TRANSFER_COPY_H
#define TRESTLE_CMD_TRANSFER_COPY_H

/* Returns the exit status: 0 if every row is there and none was found to differ; 1 if not, or if it
 * failed; 2 for options that make no sense. */
int copy_command(const char *const *arguments);

#endif
