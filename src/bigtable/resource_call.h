/* Helpers that the administrative methods on resources share: see control/control.h for what a
 * resource is. Messages are in the call's arena; their etags are made of the resource's version. */
#ifndef TRESTLE_BIGTABLE_RESOURCE_CALL_H
#define TRESTLE_BIGTABLE_RESOURCE_CALL_H

#include "bigtable/admin_call.h"
#include "control/operations.h"
#include "google/protobuf/field_mask.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"

/* The place of the field of that name in the message; NULL: it has none. */
void *resource_field(const ProtobufCMessage *message, const char *name);

/* --- reading --- */

/* The message of the resource, with its etag if the kind has one. */
status resource_message(const struct resource *resource, struct arena *arena,
                        ProtobufCMessage **out);

/* A Get: the name's form is checked. `*out` is a message of the kind's type. */
status get_resource(const struct admin_request *request, enum resource_kind kind, const char *name,
                    ProtobufCMessage **out);

struct resource_page {
    ProtobufCMessage **messages;
    size_t count;
    const char *next_token; /* "" on the last page */
};

/* How many a page may have. Page sizes of 0, and over what a page may have, mean as many as it may
 * have. INVALID_ARGUMENT for negative ones. */
status page_limit(int32_t page_size, size_t *limit);

/* A List: one page of what is under the parent, which exists or is a wildcard. */
status list_resources(const struct admin_request *request, enum resource_kind kind,
                      const char *parent, int32_t page_size, const char *page_token,
                      struct resource_page *out);

/* --- changing: in an edit --- */

/* Whether the name has the form of the kind's names. */
status check_resource_name(enum resource_kind kind, const char *name);

/* Stages a new resource, named by its message's first field, and sets the message's etag. */
status create_resource(struct edit *edit, struct arena *arena, enum resource_kind kind,
                       ProtobufCMessage *message);

/* The resource as it stands, for a change. NOT_FOUND; ABORTED if `etag` is not empty, nor the
 * resource's. */
status find_for_change(struct edit *edit, struct arena *arena, enum resource_kind kind,
                       const char *name, const char *etag, ProtobufCMessage **out);

/* Stages the changed message in place of what stands, and sets its etag. */
status put_resource(struct edit *edit, struct arena *arena, enum resource_kind kind,
                    ProtobufCMessage *message);

/* A Delete by name and etag ("": any), of a message whose field `deletion_protection`, if it has
 * one, refuses it. */
status delete_resource(const struct admin_request *request, enum resource_kind kind,
                       const char *name, const char *etag, const ProtobufCMessage **response);

/* FAILED_PRECONDITION if one of the kind under the parent has deletion_protection set. */
status check_none_protected(struct control *control, struct arena *arena, enum resource_kind kind,
                            const char *parent);

/* Stages the finished operation of a quick change to the instance or something in it (`name` is
 * whose). Fills in what the metadata has of: the present moment as each time, the request as its
 * original. `*out` is the operation. */
status finish_operation(struct edit *edit, const struct admin_request *request, const char *name,
                        ProtobufCMessage *metadata, const ProtobufCMessage *response,
                        const ProtobufCMessage **out);

/* The same of a change that no request of its own asked for; the metadata is complete. */
status stage_finished_operation(struct edit *edit, struct arena *arena, const char *name,
                                const ProtobufCMessage *metadata, const ProtobufCMessage *response,
                                const ProtobufCMessage **out);

/* Stages an operation that runs; `spec` needs no parent. */
status begin_operation(struct edit *edit, struct arena *arena, const char *name,
                       const struct operation_spec *spec, const ProtobufCMessage **out);

/* The edit's time. */
status edit_time(const struct edit *edit, struct arena *arena, Pb__Timestamp **out);

#endif
