/* What this process takes of the machine. */
#ifndef TRESTLE_OS_PROCESS_H
#define TRESTLE_OS_PROCESS_H

#include <stdint.h>

struct process_usage {
    int64_t cpu_us;          /* of all threads, user and system, since the start */
    uint64_t resident_bytes; /* memory that it occupies; 0 if /proc does not tell */
    uint64_t open_files;     /* descriptors; 0 likewise */
};

struct process_usage process_usage(void);

/* Memory that the machine has. */
uint64_t process_machine_memory(void);

#endif
