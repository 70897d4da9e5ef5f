/* Files that a running server reads again: on SIGHUP, and when they have changed. */
#ifndef TRESTLE_SERVER_RELOAD_H
#define TRESTLE_SERVER_RELOAD_H

#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"
#include "os/file.h"

/* In the order of the metrics that count them. */
enum reload_kind { RELOAD_ACCESS, RELOAD_AUDIT_LOG, RELOAD_TLS, RELOAD_TLS_CLIENT_CA };

/* Some files that are read together, and their reader. On failure the reader keeps what it had of
 * those that it cannot read. */
struct reloadable {
    const char *what; /* for the log: "TLS" */
    enum reload_kind kind;
    struct metrics *metrics;
    /* Appends what has changed, in words, also if some could not be read. */
    status (*reload)(void *context, struct buffer *changes);
    void *context;
    const char *paths[4]; /* NULL: none */
    struct file_stamp stamps[4];
};

/* Takes note of the files as they are: before they are first read. */
void reloadable_init(struct reloadable *reloadable);

/* Reads them if they have changed since, or `always`, and logs what came of it. */
void reloadable_check(struct reloadable *reloadable, bool always, const struct log *log);

#endif
