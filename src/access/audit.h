/* The audit log: who did what, who was refused, which files were read again.
 * docs/operating/observing.md has the form of its lines.
 *
 * Each line is a JSON object in a file that is rotated, or, without a file, a line of the log.
 * Calls without a known caller, and refused calls for data, cost a client nothing to make: so many
 * of them a second have a line, and the others are counted.
 *
 * Any thread, save where it is said. A line that cannot be written is counted and told in the log:
 * no call fails for it. */
#ifndef TRESTLE_ACCESS_AUDIT_H
#define TRESTLE_ACCESS_AUDIT_H

#include "access/audit_changes.h"
#include "access/audit_trail.h"
#include "base/log.h"
#include "base/metrics.h"
#include "wire/grpc_server.h"

struct audit;

/* All of it outlives the audit log. */
struct audit_options {
    const char *path;      /* NULL: lines go to `log`, whatever its level */
    int64_t file_bytes;    /* of one file; 0: it is not rotated */
    int64_t older_files;   /* beside it */
    int64_t refusals_most; /* lines a second that any client can cause */
    int64_t data_us;       /* between the sums of calls for data; 0: there are none */
    const struct log *log;
    struct clock *clock;
    struct metrics *metrics;
};

status audit_open(const struct audit_options *options, struct audit **out);
void audit_close(struct audit *audit); /* NULL is fine */

/* Opens the file again, for when it has been renamed; on failure the old one stays. */
status audit_reopen(struct audit *audit);

/* The latest administrative calls. */
struct audit_trail *audit_trail(const struct audit *audit);

/* The caller and the call's purpose, valid as long as the call lives. The note of calls that are
 * audited, and of those whose handler asks further (access_caller). */
struct access_caller {
    bytes principal;        /* empty: unknown */
    bool is_owner;          /* of everything, by the first administrator's token */
    bool is_administration; /* as against calls for data */
    bool is_poll;           /* has no line unless it fails */
    bytes resource;         /* what the call was about; empty: unknown */
    bytes source;           /* what it made that from; empty: from nothing */
    const char *address;
    struct audit_changes *changes; /* the handler's, in the call's arena: NULL until it says so */
};

/* Whether calls for data are to be noted, too (struct access_caller). Any thread. */
bool audit_wants_data(const struct audit *audit);

/* A call has ended. On the loop's thread. */
void audit_call(struct audit *audit, const struct access_caller *caller,
                const struct grpc_call_record *record);

/* A run that a call has begun, and did not wait for. */
struct audit_run {
    bytes principal; /* the caller; empty: unknown */
    const char *service;
    const char *method;
    bytes resource;
    bytes source; /* empty: from nothing */
    enum status_code code;
    const char *reason; /* empty: none */
    int64_t duration_us;
};

/* Writes a line about the run's end, which the line of the call cannot tell. Any thread. */
void audit_ended(struct audit *audit, const struct audit_run *run);

/* A request by HTTP that is no call has been refused: "console", "metrics". */
void audit_refused_page(struct audit *audit, const char *page, bytes principal, const char *address,
                        status why);

/* Files have been read again, or could not be. */
void audit_reload(struct audit *audit, const char *what, status result,
                  const struct audit_changes *changes);

/* To be called once a second, by one thread: tells of what has been left out, if nothing else does,
 * and what was done with data when it is time. */
void audit_tick(struct audit *audit);

#endif
