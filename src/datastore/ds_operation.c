/* See ds_operation.h. */
#include "datastore/ds_operation.h"

#include "datastore/entity_result.h"
#include "wire/proto.h"

#include <stdio.h>

status ds_operation_common(const struct edit *edit, DsAdmin__OperationType type,
                           struct arena *arena, DsAdmin__CommonMetadata **out)
{
    PROTO_NEW(arena, *out, DS_ADMIN__COMMON_METADATA__INIT);
    (*out)->operation_type = type;
    (*out)->state = DS_ADMIN__COMMON_METADATA__STATE__PROCESSING;
    return ds_time_message((int64_t)edit_version(edit), arena, &(*out)->start_time);
}

status ds_operation_ended(DsAdmin__CommonMetadata *common, DsAdmin__CommonMetadata__State state,
                          int64_t now_us, struct arena *arena)
{
    common->state = state;
    return ds_time_message(now_us, arena, &common->end_time);
}

DsAdmin__CommonMetadata__State ds_operation_state_of(status outcome)
{
    switch (outcome.code) {
    case STATUS_OK:
        return DS_ADMIN__COMMON_METADATA__STATE__SUCCESSFUL;
    case STATUS_CANCELLED:
        return DS_ADMIN__COMMON_METADATA__STATE__CANCELLED;
    default:
        return DS_ADMIN__COMMON_METADATA__STATE__FAILED;
    }
}

status ds_operation_begin(struct edit *edit, const char *project, const struct operation_spec *spec,
                          struct arena *arena, ProtobufCMessage **out)
{
    struct operation_spec whole = *spec;
    size_t size = strlen(project) + sizeof "projects/";
    char *parent = arena_alloc(arena, size);
    const ProtobufCMessage *made;
    if (parent == NULL)
        return status_out_of_memory();
    snprintf(parent, size, "projects/%s", project);
    whole.parent = parent;
    TRY(operation_begin(edit, &whole, arena, &made));
    union {
        const ProtobufCMessage *given;
        ProtobufCMessage *wanted;
    } pointer = {.given = made};
    *out = pointer.wanted; /* methods answer with what is not const */
    return status_ok();
}
