/* Fault injection (--inject): says of each call whether it is to be delayed, or to fail.
 *
 * Each call that a rule is about is a draw. What the n-th draw of a rule comes to follows from the
 * seed, the rule's place and n alone, whatever threads and other rules do: with the same seed and
 * the calls in the same order, the same ones suffer. The delays of all rules that hit add up; of
 * their errors the first counts.
 *
 * Reflection, health checks and the service Insight are left alone, so that a look at the server
 * shows what is there. Any thread. */
#ifndef TRESTLE_FAULTS_FAULTS_H
#define TRESTLE_FAULTS_FAULTS_H

#include "base/metrics.h"
#include "faults/fault_rules.h"
#include "wire/grpc_server.h"

struct faults;

/* The rules may point into a text that outlives them, as the services do. Without a seed of theirs
 * one is chosen. INVALID_ARGUMENT if a rule is about no method; the methods are those of all
 * services, in their order, as in grpc_server_create. */
status faults_create(const struct fault_rules *rules, const struct grpc_service *const *services,
                     size_t service_count, struct metrics *metrics, struct faults **out);
void faults_destroy(struct faults *faults); /* NULL is fine */

/* As faults_create would, of the methods of all our services, before there are any. */
status faults_check(const struct fault_rules *rules);

/* Appends the rules, with their seed. */
void faults_write(const struct faults *faults, struct buffer *out);

/* The draw for one call: all zeroes if it is left alone. */
struct grpc_fault faults_draw(struct faults *faults, size_t method_index, bytes request);

#endif
