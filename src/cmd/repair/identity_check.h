/* Whether a data directory says that it is the server that it was. */
#ifndef TRESTLE_CMD_REPAIR_IDENTITY_CHECK_H
#define TRESTLE_CMD_REPAIR_IDENTITY_CHECK_H

#include "base/bytes.h"
#include "base/status.h"

struct store;

/* Appends what is wrong with the file IDENTITY, by itself and by what the catalog says, "is missing
 * …"; nothing if it is right. The store is open for reading alone. Records of the catalog that
 * cannot be read say nothing. */
status identity_check(struct store *store, const char *directory, struct buffer *out);

#endif
