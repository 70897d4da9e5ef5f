/* `trestle import`: rows from what other databases leave behind.
 *
 *     trestle import dynamodb SOURCE --table T --partition-key NAME [--sort-key NAME] …
 *
 * An import reads its source once, in order, and writes rows to any Bigtable endpoint. Every second
 * or two it waits until all is written, and notes in its checkpoint how far it has come; who is
 * killed goes on there. Records that cannot become rows go into the file of rejects with their
 * reasons. It ends with a verification, which the exit status follows. */
#ifndef TRESTLE_CMD_IMPORT_H
#define TRESTLE_CMD_IMPORT_H

#include "cmd/client_session.h"
#include "move/item_layout.h"

/* Returns the exit status: 0 if every record became a row and none was found to differ; 1 if not,
 * or if it failed; 2 for options that make no sense. */
int import_command(const char *const *arguments);

/* --- options --- */

enum import_compat { COMPAT_NONE, COMPAT_GOOGLE };
enum import_verify { VERIFY_SAMPLE, VERIFY_FULL, VERIFY_NONE };

struct import_options {
    struct target_options target;
    const char *source;
    const char *table;
    const char *partition_key;
    const char *sort_key;
    const char *delimiter;
    const char *family;
    const char *timestamp;
    const char *counters; /* names, joined by commas */
    const char *families;
    const char *checkpoint; /* files */
    const char *rejects;
    int compat; /* enum import_compat */
    int verify; /* enum import_verify */
    uint64_t salts;
    uint64_t rate;
    bool lossless;
    bool ordered_numbers;
    bool dry_run;
    bool quiet;
};

/* The arguments behind "dynamodb". INVALID_ARGUMENT. */
status import_options_read(const char *const *arguments, struct import_options *out);
void import_options_write_help(struct buffer *out);

/* The layout that the options ask for, but for its default timestamp; its lists are the arena's. */
status import_layout(const struct import_options *options, struct arena *arena,
                     struct item_layout *out);

/* --- how far it has come --- */

struct import_counts {
    uint64_t items;    /* that were read */
    uint64_t rejected; /* of them */
    uint64_t bytes;    /* of the source, as it lies there */
};

/* Where reading goes on: at the line behind `line` of the file with this number. */
struct import_state {
    uint64_t file;
    uint64_t line;
    struct import_counts counts;
    uint64_t rejects_bytes; /* of the file of rejects */
    int64_t default_us;     /* of cells */
};

/* `identity`: what the import is of; a checkpoint of another is FAILED_PRECONDITION. `*found`:
 * there is one. */
status import_state_read(const char *path, const char *identity, struct import_state *out,
                         bool *found);
/* Durable when it returns. */
status import_state_write(const char *path, const char *identity, const struct import_state *state);

/* --- progress, on stderr --- */

struct import_progress {
    struct clock *clock;
    bool is_quiet;
    bool is_terminal;
    int64_t start_us;
    int64_t shown_us;
    struct import_counts at_start; /* what an earlier run has done */
    uint64_t bytes_total;          /* 0: not known */
};

void import_progress_begin(struct import_progress *progress, struct clock *clock, bool is_quiet);
/* Shows them, if it is time to. */
void import_progress_show(struct import_progress *progress, const struct import_counts *counts);
/* Ends the line. */
void import_progress_end(struct import_progress *progress, const struct import_counts *counts);

/* --- the table --- */

/* Makes the table if it is not there, with families that keep `versions` of a cell (0: all).
 * FAILED_PRECONDITION if it is there and lacks one. */
status import_prepare_table(struct client_session *session, const char *table_id,
                            const char *const *families, size_t count, int versions,
                            struct arena *arena);

/* --- verifying --- */

struct import_verification;

/* `is_sample`: of a sample of the rows that come, else of all. The table's full name and the
 * session outlive it. */
status import_verification_create(struct client_session *session, const char *table, bool is_sample,
                                  struct import_verification **out);
void import_verification_destroy(struct import_verification *verification); /* NULL is fine */

/* A row as it should be. `place` (file and line) is told if it differs. */
status import_verification_add(struct import_verification *verification,
                               const struct move_change *row, const char *file, uint64_t line);

/* Reads what has not been compared yet. Counts of all so far. */
status import_verification_finish(struct import_verification *verification, uint64_t *compared,
                                  uint64_t *different);

/* --- DynamoDB --- */

status import_dynamodb(const struct import_options *options, bool *is_perfect);

#endif
