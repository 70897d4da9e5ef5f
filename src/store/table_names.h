/* Which files a keyspace's tables are, for code that brings them to the store's directory. */
#ifndef TRESTLE_STORE_TABLE_NAMES_H
#define TRESTLE_STORE_TABLE_NAMES_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls `visit` with the name, in the directory, of each table that the keyspace has, also of one
 * that is missing, until it fails. */
status keyspace_list_files(struct keyspace *keyspace,
                           status (*visit)(void *context, const char *name), void *context);

#ifdef __cplusplus
}
#endif

#endif
