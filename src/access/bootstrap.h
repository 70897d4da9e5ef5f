/* The first administrator: a server that has no owner of everything yet needs one to begin with. */
#ifndef TRESTLE_ACCESS_BOOTSTRAP_H
#define TRESTLE_ACCESS_BOOTSTRAP_H

#include "access/tokens.h"
#include "base/log.h"

#define BOOTSTRAP_PRINCIPAL "serviceAccount:admin@trestle"

/* The hash of the token in <directory>/admin-token, which is made, with mode 0600, and told of in
 * the log if it is not there. FAILED_PRECONDITION if others may read it. */
status bootstrap_admin(const char *directory, const struct log *log, uint8_t hash[TOKEN_HASH_SIZE]);

#endif
