/* Which method a REST request stands for: the HTTP rules of the interface (proto/http_rules.h),
 * made ready once and never changed, so that any thread may use them.
 *
 * A rule's path is a template:
 *
 *     /v2/{name=projects/x/instances/x}:getIamPolicy
 *
 * of segments, where an asterisk (x above) stands for any one of them, two for one or more at the
 * end of a variable, and what is in braces is a field of the request; a field alone, {index_id}, is
 * one segment. Where several fit, the one
 * with the most literal segments counts. */
#ifndef TRESTLE_WIRE_HTTP_ROUTER_H
#define TRESTLE_WIRE_HTTP_ROUTER_H

#include "base/status.h"
#include "proto/http_rules.h"

#include <protobuf-c/protobuf-c.h>

struct http_router;

struct http_route {
    const struct http_rule *rule;
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
};

/* Rules whose service is not among `services` are left out. The rules must outlive the router. */
status http_router_create(const struct http_rule *rules, size_t rule_count,
                          const ProtobufCServiceDescriptor *const *services, size_t service_count,
                          struct http_router **out);
void http_router_destroy(struct http_router *router); /* NULL is fine */

/* NOT_FOUND, in Google's words, if no rule fits. `path` is as it came: percent-encoded, without the
 * query. The route lives as long as the router. */
status http_router_find(const struct http_router *router, const char *verb, bytes path,
                        const struct http_route **out);

/* Appends what the path says of the request message to a part of it that may be in `wire` already,
 * which it overrides. The path is one that the route was found for. INVALID_ARGUMENT if its
 * encoding is broken. */
status http_route_bind(const struct http_route *route, bytes path, struct buffer *wire);

/* Appends the text that %XX stand for; in a query, '+' is a blank. False if one has no two digits.
 */
bool http_percent_decode(bytes text, bool is_query, struct buffer *out);

#endif
