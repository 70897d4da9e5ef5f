/* Access control: who the caller is, and whether it may do what it asks for.
 *
 * Every request passes access_admit, on the thread of its connection's loop, before its handler:
 *
 *     who     the bearer token of the header `authorization`, static (tokens.h) or signed (jwt.h);
 *             without one the certificate that the connection's client has shown
 *     what    the rule of the method (rules.h) says which permission on which resource
 *     may     the policies of that resource and of all that it lies in (policies.h)
 *
 * What was found out is remembered with the connection, so that a request like the one before costs
 * a few comparisons and no lock. A counter says when it is out of date: it goes up with every
 * change of tokens, keys and policies. */
#ifndef TRESTLE_ACCESS_ACCESS_H
#define TRESTLE_ACCESS_ACCESS_H

#include "access/audit.h"
#include "access/policies.h"
#include "base/arena.h"
#include "base/condition.h"
#include "base/log.h"
#include "wire/grpc_server.h"
#include "wire/http.h"

struct access;
struct access_peer;
struct rule_table;

/* Strings and log must outlive it. */
struct access_options {
    const char *data_directory; /* where the first administrator's token is put */
    const char *token_file;     /* each may be NULL */
    const char *jwks_file;
    const char *audience; /* both set if jwks_file is */
    const char *issuer;
    const char *policy_file;
    const struct log *log;
    struct audit *audit;
    struct condition *condition; /* that the reason access_unread is entered in; NULL: none */
    struct clock *clock;
};

/* Reads the files. INVALID_ARGUMENT, FAILED_PRECONDITION or what reading failed with. If no policy
 * of "*" has an owner, makes a token of one, or finds the one that was made before:
 * <data-directory>/admin-token. */
status access_open(const struct access_options *options, const struct grpc_service *const *services,
                   size_t service_count, struct access **out);
void access_close(struct access *access); /* NULL is fine */

/* Whether the files that the options name can be read and make sense; nothing is made. */
status access_try_files(const struct access_options *options);

/* Reads the files again, each by itself: what was in one that cannot be read goes on to count, and
 * the condition says so until all are read. The audit log has a line about it; what has changed is
 * appended to `words`, too, also on failure. Any thread. */
status access_reload(struct access *access, struct buffer *words);

/* --- policies that clients have set; any thread --- */

/* Roles and members that are not known grant nothing: see policy_check. On failure the policy is
 * what it was. */
status access_set_policy(struct access *access, bytes resource,
                         const struct access_binding *bindings, size_t count);

/* The resource has none any more. */
void access_drop_policy(struct access *access, bytes resource);

/* --- requests of plain HTTP --- */

/* Whether the client may do this: `credential` is its header `authorization` (empty: none), its
 * certificate is in `client`. UNAUTHENTICATED, PERMISSION_DENIED; the audit log then has a line
 * about `page`. Any thread. */
status access_check(struct access *access, const char *page, const struct http_client *client,
                    bytes credential, enum access_permission permission, bytes resource);

/* Appends that client's principal; nothing for one without credentials. UNAUTHENTICATED. Any
 * thread. */
status access_identify(struct access *access, const struct http_client *client, bytes credential,
                       struct buffer *principal);

/* Has the audit log tell, if it is a refusal, that `page` was not for the client. Any thread. */
void access_note_refusal(struct access *access, const char *page, const struct http_client *client,
                         status why);

/* --- calls; all on the loop's thread --- */

/* Takes `subject`, of the client's certificate, or NULL. NULL without memory. */
struct access_peer *access_peer_create(char *subject, const char *address);
void access_peer_destroy(struct access_peer *peer); /* NULL is fine */

/* A peer that speaks for others, REST: each call's headers (wire/rest.h) say for whom. */
struct access_peer *access_gateway_create(void);

/* The header of a call that a fellow server has forwarded, whose value is that one's number: the
 * client was asked for its rights there. Of anybody else it means nothing here. */
#define ACCESS_FORWARDED_BY "trestle-forwarded-by"

/* Whether the client is a fellow server, with which this one copies changes: no client that speaks
 * for others is. At first none is. */
void access_peer_set_fellow(struct access_peer *peer, bool is_fellow);
bool access_peer_is_fellow(const struct access_peer *peer); /* NULL is fine: false */

/* The subject and the address of a client's connection: NULL without a certificate. */
const char *access_peer_subject(const struct access_peer *peer);
const char *access_peer_address(const struct access_peer *peer);

/* UNAUTHENTICATED, PERMISSION_DENIED, or INVALID_ARGUMENT if the request names nothing. */
status access_admit(struct access *access, struct access_peer *peer, struct grpc_call *call,
                    size_t method_index, bytes request);

/* With access control off, for the audit log: admits everybody, and notes the calls that it wants.
 * RESOURCE_EXHAUSTED, since a call would go unseen. */
status access_admit_anybody(const struct audit *audit, const struct rule_table *rules,
                            struct access_peer *peer, struct grpc_call *call, size_t method_index,
                            bytes request);

/* The caller, valid as long as the call lives. NULL for calls for data with access control off, and
 * for those whose handler asks no further, unless the audit log wants them. */
struct access_caller *access_caller(const struct grpc_call *call);

/* Appends the caller's principal, `peer` being the connection's (NULL: it has gone): nothing if
 * that cannot be known any more. It reads the credential again, so it is for the few calls that are
 * shown (running, slow). Loop's thread. */
void access_append_principal(struct access *access, struct grpc_call *call,
                             const struct access_peer *peer, struct buffer *principal);

/* From where it came; empty: that cannot be told. As long as both live. Loop's thread. */
bytes access_call_address(struct grpc_call *call, const struct access_peer *peer);

/* The caller's permissions on the resource. Any thread. */
struct permission_set access_granted(struct access *access, const struct access_caller *caller,
                                     bytes resource);

/* Whether the caller may do that, too, with what the rules of calls do not see: what a query names
 * (rule.names_more). UNAUTHENTICATED, PERMISSION_DENIED. Any thread. */
status access_demand(struct access *access, const struct access_caller *caller,
                     enum access_permission permission, bytes resource);

/* The reference of permissions, as docs/reference/permissions.md has it. */
void access_write_markdown(struct buffer *out);

#endif
