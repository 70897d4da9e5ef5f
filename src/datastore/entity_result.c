/* See entity_result.h. */
#include "datastore/entity_result.h"

#include "datastore/model/mask.h"
#include "wire/proto.h"

status ds_time_message(int64_t us, struct arena *arena, Pb__Timestamp **out)
{
    PROTO_NEW(arena, *out, PB__TIMESTAMP__INIT);
    (*out)->seconds = us / 1000000;
    (*out)->nanos = (int32_t)(us % 1000000 * 1000);
    return status_ok();
}

status ds_entity_result(const struct ds_version *version, const Ds__PropertyMask *mask,
                        struct arena *arena, Ds__EntityResult **out)
{
    Ds__Entity *entity = (Ds__Entity *)(uintptr_t)version->entity;
    if (mask != NULL)
        TRY(ds_mask_read(version->entity, mask, arena, &entity));
    PROTO_NEW(arena, *out, DS__ENTITY_RESULT__INIT);
    (*out)->entity = entity;
    (*out)->version = version->version_us;
    TRY(ds_time_message(version->version_us, arena, &(*out)->update_time));
    return ds_time_message(version->create_us, arena, &(*out)->create_time);
}
