/* What a request that has ended asked for and did, in words. */
#ifndef TRESTLE_INTROSPECT_SLOW_PLAN_H
#define TRESTLE_INTROSPECT_SLOW_PLAN_H

#include "base/arena.h"
#include "wire/grpc_server.h"

/* `words`: lines, each ended by '\n'. `resource` is what the request names, as it came; it and
 * `app_profile` are in the request or the arena, and empty if there is none. Failures leave words
 * out: they are not needed. */
struct slow_plan {
    struct buffer words;
    bytes resource;
    const char *app_profile;
};

/* `out->words` is all zeroes before, and the caller's to free. */
void slow_plan_make(const struct grpc_call_record *record, struct arena *arena,
                    struct slow_plan *out);

#endif
