/* What a start would make of a directory, without starting. */
#ifndef TRESTLE_STORE_CHECK_H
#define TRESTLE_STORE_CHECK_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"

#include <stdint.h>

struct store;
struct store_options;

/* Whether store_open would open the store that is there, as far as its write-ahead logs and its
 * list of tables tell: with its errors. Reads all of the logs, and changes nothing. The directory
 * must not be open elsewhere meanwhile. */
status store_check_log_end(const struct store_options *options);

/* Of a store that is open for reading alone, whether store_begin_compactions would refuse it for a
 * value that is larger: with its error. In the log it looks for them, too. */
status store_check_large_values(struct store *store, uint64_t large_value_bytes);

#ifdef __cplusplus
}
#endif

#endif
