/* Resources under an instance or a table that are made, shown, listed, changed and deleted alike:
 * views, schema bundles. A kind of them is a row of names and checks, the methods of all are the
 * same. They find the fields of requests by name: protobuf-c's descriptors say where they are. */
#ifndef TRESTLE_BIGTABLE_CHILDREN_H
#define TRESTLE_BIGTABLE_CHILDREN_H

#include "bigtable/resource_call.h"

/* Whether the resource may be made as it is (`before` NULL), or become so. */
typedef status child_check(const struct admin_request *request, const ProtobufCMessage *before,
                           const ProtobufCMessage *after);

struct child_kind {
    enum resource_kind kind;
    const char *name; /* "logical_view": the field of requests that has it; with "_id", the field of
                       * its id; with "s", that of a list of them */
    const ProtobufCMessageDescriptor *create_metadata; /* of operations */
    const ProtobufCMessageDescriptor *update_metadata;
    const ProtobufCMessageDescriptor *list_response;
    const char *const *allowed; /* what an update may change: see field_mask_apply_set */
    child_check *check;
    bool shares_ids; /* of an instance's: no table and no other view may have its id */
};

status child_create(const struct child_kind *kind, const struct admin_request *request,
                    const ProtobufCMessage **response);
status child_get(const struct child_kind *kind, const struct admin_request *request,
                 const ProtobufCMessage **response);
status child_list(const struct child_kind *kind, const struct admin_request *request,
                  const ProtobufCMessage **response);
status child_update(const struct child_kind *kind, const struct admin_request *request,
                    const ProtobufCMessage **response);
status child_delete(const struct child_kind *kind, const struct admin_request *request,
                    const ProtobufCMessage **response);

/* The method `<verb>_<name>` of a kind. */
#define CHILD_METHOD(verb, name, kind)                                                             \
    status verb##_##name(const struct admin_request *request, const ProtobufCMessage **response)   \
    {                                                                                              \
        return child_##verb(&(kind), request, response);                                           \
    }

/* Fills the name that a new resource gets, from checked parts: INVALID_ARGUMENT if they are not. */
status name_new_child(const struct admin_request *request, enum resource_kind kind,
                      const char *parent, const char *id, const char **out);

#endif
