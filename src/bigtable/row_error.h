/* Errors about one row, in production's words. */
#ifndef TRESTLE_BIGTABLE_ROW_ERROR_H
#define TRESTLE_BIGTABLE_ROW_ERROR_H

#include "base/status.h"

/* OK if it may be a row's key; else INVALID_ARGUMENT. */
status row_key_check(bytes row_key);

/* "Error while <doing> the row '<key>' (<table name>) : <why>" */
status row_error(enum status_code code, const char *doing, bytes row_key, const char *table_name,
                 const char *why);

/* For a row that is larger than a read may be: FAILED_PRECONDITION with the google.rpc.ErrorInfo by
 * which clients that want to skip such rows know the key. */
status row_too_large(bytes row_key, const char *table_name);

#endif
