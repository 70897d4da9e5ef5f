/* Policies that an operator writes into a file, beside those that clients set: for projects, which
 * have no other, and for "*", which is everything.
 *
 *     {"*":          {"bindings": [{"role": "roles/owner", "members": ["user:ops@example.com"]}]},
 *      "projects/p": {"bindings": [{"role": "roles/bigtable.reader",
 *                                   "members": ["allAuthenticatedUsers"]}]}} */
#ifndef TRESTLE_ACCESS_POLICY_FILE_H
#define TRESTLE_ACCESS_POLICY_FILE_H

#include "access/audit_changes.h"
#include "access/policies.h"

/* INVALID_ARGUMENT if it is no such file. `out` is empty before, and to be freed after success. */
status policy_file_parse(bytes json, struct policies *out);

/* Every grant of such a file, or of no bytes, in the arena. RESOURCE_EXHAUSTED. */
status policy_file_grants(bytes json, struct arena *arena, struct audit_grant **out, size_t *count);

#endif
