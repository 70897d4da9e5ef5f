/* Rules: the permissions that a method demands of its caller, from the rows of rpcs.def. */
#ifndef TRESTLE_ACCESS_RULES_H
#define TRESTLE_ACCESS_RULES_H

#include "access/permissions.h"
#include "access/resource.h"
#include "base/arena.h"
#include "base/status.h"
#include "wire/grpc.h"
#include "wire/proto.h"

/* A row. */
struct requirement {
    const char *service; /* "google.bigtable.v2.Bigtable" */
    const char *method;
    const ProtobufCMessageDescriptor *request;
    const char *field; /* "backup.name" */
    enum access_kind kind;
    enum access_permission permission;
    const char *when; /* the row counts if this field is set; NULL: always */
};

/* All rows, those of a method side by side. */
size_t requirement_count(void);
const struct requirement *requirement_at(size_t index);

/* A method that makes something, named by what it lies in and an id. */
struct rule_creation {
    const char *service;
    const char *method;
    const ProtobufCMessageDescriptor *request;
    const char *parent; /* fields */
    const char *id;
    const char *collection; /* "tables" */
};

enum { RULE_ROWS_MOST = 8, RULE_DEPTH_MOST = 2 };

/* The rows of one method, and where their fields are on the wire. */
struct rule {
    const struct requirement *rows;
    size_t count;                                     /* 0: everybody may */
    uint32_t fields[RULE_ROWS_MOST][RULE_DEPTH_MOST]; /* numbers; the second 0 if there is none */
    uint32_t when[RULE_ROWS_MOST];                    /* the number of the row's; 0: none */
    bool is_administration;                           /* what audit logs are about */
    bool is_poll; /* asks each second how far something is: not worth a line */
    const struct rule_creation *creates; /* NULL: nothing that has a name of its own */
    uint32_t creates_in;                 /* the numbers of its fields */
    uint32_t creates_id;
    bool names_more; /* the handler asks further, about what a query names: access_demand */
};

/* INTERNAL for a method without a rule; health checks and reflection are open to every caller, and
 * what peers ask each other to whom its service lets ask. */
status rule_find(const char *service, const char *method, struct rule *out);

/* The rules of all methods of some services, in the order of grpc_call_record.method_index. */
struct rule_table {
    struct rule *rules;
    size_t count;
};

/* As rule_find; on failure there is nothing to be freed. */
status rule_table_create(const struct grpc_service *const *services, size_t service_count,
                         struct rule_table *out);
void rule_table_free(struct rule_table *table); /* all zeroes afterwards */

/* An identity's permissions on a resource. */
struct granted {
    enum access_kind kind;
    struct permission_set set;
};

/* Whether what the request names may be done to it. Calls `ask` for each name, which returns false
 * if that is the name of nothing. PERMISSION_DENIED, or INVALID_ARGUMENT where it cannot be told
 * what the request is about. `*resource` is the name that decided, within `request`. */
typedef bool rule_ask(void *context, bytes name, struct granted *out);
status rule_check(const struct rule *rule, bytes request, rule_ask *ask, void *context,
                  bytes *resource);

/* PERMISSION_DENIED, in production's words. */
status rule_deny(enum access_permission permission, bytes resource);

/* A call's subject, to be shown: what it makes, not only where, and what it makes that from (a
 * backup's table). `decided` is what rule_check gave, or rule_name. Names are cut to RULE_NAME_MOST
 * bytes; all of it in the arena. RESOURCE_EXHAUSTED without memory. */
enum { RULE_NAME_MOST = 1024 };
struct rule_subject {
    bytes name;
    bytes source; /* empty: nothing */
};
status rule_subject(const struct rule *rule, bytes request, bytes decided, struct arena *arena,
                    struct rule_subject *out);

/* The first name in a request that is not looked into further, as it came; empty if there is none.
 */
bytes rule_name(const struct rule *rule, bytes request);

/* The same by the method's name: for once in a while, since it looks for the rule. Empty also if
 * there is none. */
bytes rule_name_of(const char *service, const char *method, bytes request);

#endif
