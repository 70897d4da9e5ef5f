/* Creating and updating a resource that is answered by a finished operation: what is the same for
 * views and schema bundles. */
#ifndef TRESTLE_BIGTABLE_QUICK_CHANGE_H
#define TRESTLE_BIGTABLE_QUICK_CHANGE_H

#include "bigtable/resource_call.h"

struct resource_creation {
    enum resource_kind kind;
    const char *parent;         /* checked: an instance or a table */
    ProtobufCMessage *message;  /* checked; has its name */
    ProtobufCMessage *metadata; /* without times */
};

/* In an instance that nobody created, see default_instance.h. */
status create_quickly(const struct admin_request *request, const struct resource_creation *creation,
                      const ProtobufCMessage **response);

/* Fills the name that a new resource gets, from checked parts: INVALID_ARGUMENT if they are not. */
status name_new_resource(const struct admin_request *request, enum resource_kind kind,
                         const char *parent, const char *id, const char **out);

struct resource_update {
    enum resource_kind kind;
    const char *name;
    const char *etag;
    const ProtobufCMessage *wanted;
    const Pb__FieldMask *mask; /* may be NULL: see field_mask_apply_set */
    const char *const *allowed;
    /* Whether the resource may become what the mask has made of it. */
    status (*check)(const struct admin_request *request, const ProtobufCMessage *before,
                    const ProtobufCMessage *after);
    ProtobufCMessage *metadata;
};

status update_quickly(const struct admin_request *request, const struct resource_update *update,
                      const ProtobufCMessage **response);

#endif
