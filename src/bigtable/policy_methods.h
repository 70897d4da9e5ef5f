/* The methods on access policies, which both admin services have: policies.c. See admin_call.h for
 * their form. */
#ifndef TRESTLE_BIGTABLE_POLICY_METHODS_H
#define TRESTLE_BIGTABLE_POLICY_METHODS_H

#include "bigtable/admin_call.h"
#include "google/iam/v1/iam_policy.pb-c.h"

admin_method get_iam_policy;
admin_method set_iam_policy;
admin_method test_iam_permissions;

/* The policy's bindings, those with a condition left out; they point into the message. */
status policy_bindings(const Iam__Policy *policy, struct arena *arena,
                       struct access_binding **bindings, size_t *count);

#endif
