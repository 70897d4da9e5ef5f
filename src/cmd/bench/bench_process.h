/* The resources that a process of this machine takes, the benchmark's server. */
#ifndef TRESTLE_CMD_BENCH_BENCH_PROCESS_H
#define TRESTLE_CMD_BENCH_BENCH_PROCESS_H

#include <stdint.h>

/* Each is -1 if it cannot be known. */
struct bench_usage {
    int64_t cpu_us;         /* user and system, since the start */
    int64_t written_bytes;  /* to disk, since the start: what the page cache had to write back */
    int64_t resident_bytes; /* now */
    int64_t peak_bytes;     /* resident at most, so far */
};

/* `pid` 0: nothing is known. */
struct bench_usage bench_usage_of(uint64_t pid);

#endif
