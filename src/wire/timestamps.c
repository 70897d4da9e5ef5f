/* See timestamps.h. */
#include "wire/timestamps.h"

#include "wire/proto.h"

status timestamp_check(const char *field, const Pb__Timestamp *timestamp)
{
    const int64_t last_second = INT64_C(253402300799);
    if (timestamp->seconds > 0 && timestamp->seconds <= last_second && timestamp->nanos >= 0 &&
        timestamp->nanos < 1000000000)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "%s is no time between 1970 and 9999", field);
}

int64_t timestamp_us(const Pb__Timestamp *timestamp)
{
    return timestamp == NULL ? 0 : timestamp->seconds * 1000000 + timestamp->nanos / 1000;
}

status timestamp_message(int64_t us, struct arena *arena, Pb__Timestamp **out)
{
    PROTO_NEW(arena, *out, PB__TIMESTAMP__INIT);
    (*out)->seconds = us / 1000000;
    (*out)->nanos = (int32_t)(us % 1000000) * 1000;
    return status_ok();
}

status duration_message(int64_t us, struct arena *arena, Pb__Duration **out)
{
    PROTO_NEW(arena, *out, PB__DURATION__INIT);
    (*out)->seconds = us / 1000000;
    (*out)->nanos = (int32_t)(us % 1000000) * 1000;
    return status_ok();
}
