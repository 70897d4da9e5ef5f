/* A transfer: all records of a source go into a sink.
 *
 *     source ─► record ─► sink                  every two seconds:
 *                 │ cannot become a row             sink.flush
 *                 ▼                                 rejects, fsync
 *              rejects                              checkpoint: where both are
 *
 * A job that is killed goes on at the checkpoint: what had been written after it is written again,
 * which changes nothing, because cells bring their timestamps and files are cut back to what the
 * checkpoint knows. A checkpoint belongs to an *identity*, words that name source, target and all
 * options that shape the rows. One thread. */
#ifndef TRESTLE_TRANSFER_JOB_H
#define TRESTLE_TRANSFER_JOB_H

#include "base/options.h"
#include "transfer/progress.h"
#include "transfer/sink.h"
#include "transfer/source.h"
#include "transfer/verification.h"

#include <stdio.h>

enum transfer_verify { VERIFY_SAMPLE, VERIFY_FULL, VERIFY_NONE };

/* What the user says of a transfer, whatever it is of. */
struct transfer_options {
    const char *checkpoint; /* files; NULL: named after the table */
    const char *rejects;
    uint64_t rate; /* records a second; 0: as fast as it goes */
    int verify;    /* enum transfer_verify */
    bool dry_run;
    bool quiet;
};

#define TRANSFER_OPTION(type_, field_, kind_, name_, preset_, most_, unit_, sentence_)             \
    {                                                                                              \
        .member = #name_, .kind = OPTION_##kind_, .offset = offsetof(type_, field_.name_),         \
        .preset = preset_, .most = most_, .unit = unit_, .sentence = sentence_                     \
    }

/* Rows of the table of a command whose options are a `type` with a transfer_options `field`. */
#define TRANSFER_OPTION_ROWS(type, field)                                                          \
    TRANSFER_OPTION(type, field, INTEGER, rate, "0", 100000000, "N",                               \
                    "Rows a second at most; 0: as fast as it goes."),                              \
        TRANSFER_OPTION(type, field, BOOLEAN, dry_run, "false", 0, "",                             \
                        "Reads and checks everything, and writes nothing."),                       \
        TRANSFER_OPTION(type, field, ENUM, verify, "sample", 0, "sample|full|none",                \
                        "Which rows are read again at the end."),                                  \
        TRANSFER_OPTION(type, field, STRING, checkpoint, NULL, 0, "FILE",                          \
                        "Where it notes how far it has come; by default TABLE.checkpoint."),       \
        TRANSFER_OPTION(                                                                           \
            type, field, STRING, rejects, NULL, 0, "FILE",                                         \
            "Gets the records that could not become rows; by default TABLE.rejects.jsonl."),       \
        TRANSFER_OPTION(type, field, BOOLEAN, quiet, "false", 0, "", "Shows no progress.")

struct transfer_result {
    struct transfer_counts counts;
    uint64_t compared; /* rows */
    uint64_t different;
    uint64_t strays;  /* rows that the target alone has */
    bool is_verified; /* the three are known */
};

struct transfer_job;

/* Goes on where the checkpoint says, if there is one: the source is moved there. What the options,
 * the identity and the source point to, and `table_id`, after which files are named, must outlive
 * the job. FAILED_PRECONDITION: the checkpoint is of another identity. */
status transfer_job_create(const struct transfer_options *options, const char *table_id,
                           const char *identity, const struct transfer_source *source,
                           struct transfer_job **out);
void transfer_job_destroy(struct transfer_job *job); /* NULL is fine */

/* Removes the checkpoint that a job with these options would go on from, if there is one. */
status transfer_job_forget(const struct transfer_options *options, const char *table_id);

/* For the sink of this job, which is made when the job is. */
struct transfer_refusal transfer_job_refusal(struct transfer_job *job);

/* Before it runs: nothing is in the target, which was made for this job. So a full verification
 * looks for what it has beside what the source says. The checkpoint keeps that. */
void transfer_job_note_made(struct transfer_job *job);

/* Runs to the end. The checkpoint stays: a job that is killed behind it only ends once more. `sink`
 * NULL: a dry run. `verification` NULL: none. Both must outlive the job. */
status transfer_job_run(struct transfer_job *job, const struct transfer_sink *sink,
                        struct verification *verification, struct transfer_result *out);

/* Behind the run, and what else there is to verify: removes the checkpoint, unless the source goes
 * on. */
status transfer_job_end(struct transfer_job *job);

/* What has become of the records, a line for people; and one of those that had ended. */
void transfer_job_print(const struct transfer_job *job, FILE *out);

#endif
