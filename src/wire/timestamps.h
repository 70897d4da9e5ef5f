/* google.protobuf.Timestamp to and from microseconds since 1970; Duration from microseconds. */
#ifndef TRESTLE_WIRE_TIMESTAMPS_H
#define TRESTLE_WIRE_TIMESTAMPS_H

#include "base/arena.h"
#include "base/status.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"

/* Whether it lies between 1970 and 9999, where it can be counted with. INVALID_ARGUMENT. */
status timestamp_check(const char *field, const Pb__Timestamp *timestamp);

int64_t timestamp_us(const Pb__Timestamp *timestamp); /* of one that is checked; 0 for NULL */
status timestamp_message(int64_t us, struct arena *arena, Pb__Timestamp **out);
status duration_message(int64_t us, struct arena *arena, Pb__Duration **out);

#endif
