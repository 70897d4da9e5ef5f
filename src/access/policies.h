/* IAM policies, compiled: for each resource that has one, what each principal may do.
 *
 * A policy is a list of bindings of a role to members. Members are
 *
 *     user:alice@example.com, serviceAccount:app@example.com, cert:CN=alice,O=Example
 *     allAuthenticatedUsers   every caller with a known identity
 *     allUsers                everybody
 *
 * There are no groups and domains to look members up in, and no conditions.
 *
 * Not synchronised: access.c has the lock. */
#ifndef TRESTLE_ACCESS_POLICIES_H
#define TRESTLE_ACCESS_POLICIES_H

#include "access/permissions.h"
#include "base/status.h"

struct access_binding {
    const char *role;
    const char *const *members;
    size_t member_count;
};

/* The bindings of all resources; all zeroes is none. */
struct policies {
    struct policy **list; /* by resource */
    size_t count;
    size_t capacity;
};

/* INVALID_ARGUMENT for a role or a member of a kind that there is not. */
status policy_check(const struct access_binding *bindings, size_t count);

/* Replaces the resource's policy. `resource` is a name, or "*" for all there is. Bindings that
 * policy_check would refuse grant nothing. On failure nothing has changed. */
status policies_set(struct policies *policies, bytes resource,
                    const struct access_binding *bindings, size_t count);

/* Removes the resource's policy, if it has one. */
void policies_remove(struct policies *policies, bytes resource);

/* The permissions of the principal (empty: a caller without credentials) on the resource, by its
 * policy, those of what it lies in, and that of "*". */
struct permission_set policies_grant(const struct policies *policies, bytes principal,
                                     bytes resource);

/* Whether the policy of anything that lies in the resource lets the principal do that there. */
bool policies_grant_inside(const struct policies *policies, bytes principal, bytes resource,
                           enum access_permission permission);

/* Whether the policy of "*" lets any principal do everything. */
bool policies_have_owner(const struct policies *policies);

void policies_free(struct policies *policies); /* all zeroes afterwards */

#endif
