/* RocksDB counts for each thread what it does (rocksdb/perf_context.h), and that is not used here:
 * a scan spent a twentieth of its instructions on it. */
#ifndef TRESTLE_STORE_UNCOUNTED_H
#define TRESTLE_STORE_UNCOUNTED_H

#include "rocksdb/perf_level.h"

/* For each thread that reads or writes, before it does; costs nothing after the first time. */
static inline void forgo_counting()
{
    static thread_local bool is_said;
    if (is_said)
        return;
    is_said = true;
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
}

#endif
