/* store_open of a test program that is linked with --wrap=store_open: on files that fail, once
 * there are some. Included by one file of a test program. */
#ifndef TRESTLE_STORE_TESTING_WRAPPED_OPEN_TESTING_H
#define TRESTLE_STORE_TESTING_WRAPPED_OPEN_TESTING_H

#include "store/testing/fault_fs.h"

status __wrap_store_open(const struct store_options *options, struct store **out);
status __real_store_open(const struct store_options *options, struct store **out);

static struct fault_fs *faults; /* NULL: the system's files */

status __wrap_store_open(const struct store_options *options, struct store **out)
{
    return faults == NULL ? __real_store_open(options, out) : fault_fs_open(faults, options, out);
}

/* After whatever was opened on them is closed. */
static inline void end_faults(void)
{
    fault_fs_destroy(faults);
    faults = NULL;
}

/* RocksDB 7.8 loses the memory of a write buffer whose flush it could not note down. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:rocksdb::DBImpl::SwitchMemtable\n";
}

#endif
