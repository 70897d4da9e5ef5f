/* How far a tail is: lines on stderr, and a file of Prometheus metrics. */
#ifndef TRESTLE_CMD_TAIL_TAIL_STATUS_H
#define TRESTLE_CMD_TAIL_TAIL_STATUS_H

#include "cmd/tail/tail_options.h"

struct tail_status {
    const char *table;
    const char *metrics_file; /* NULL: none */
    int64_t line_us;          /* between lines; 0: none is told */
    int64_t metrics_us;       /* between metrics */
    int64_t line_due_us;      /* clock_steady_us */
    int64_t metrics_due_us;
    uint64_t changes; /* given so far; the caller's to count */
    uint64_t bytes;   /* of their lines */
};

void tail_status_begin(struct tail_status *self, const struct tail_options *options,
                       int64_t now_us);

/* Tells what is due at `now_us`, of clock_steady_us. */
status tail_status_tell(struct tail_status *self, int64_t watermark_us, size_t partitions,
                        int64_t now_us);

/* Tells all for the last time. */
status tail_status_end(struct tail_status *self, int64_t watermark_us, size_t partitions);

#endif
