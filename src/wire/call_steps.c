/* See call_steps.h. */
#include "wire/call_steps.h"

const char *call_step_name(enum call_step step)
{
    static const char *const names[CALL_STEPS] = {
        [CALL_RECEIVES] = "receive",
        [CALL_IS_DELAYED] = "delay",
        [CALL_AWAITS_THREAD] = "wait_for_thread",
        [CALL_AWAITS_LOOP] = "wait_for_loop",
        [CALL_READS] = "read",
        [CALL_QUERIES] = "query",
        [CALL_AWAITS_LOCK] = "wait_for_lock",
        [CALL_AWAITS_COMMIT] = "wait_for_commit",
        [CALL_COMMITS] = "commit",
        [CALL_AWAITS_CLIENT] = "wait_for_client",
        [CALL_AWAITS_CHANGES] = "wait_for_changes",
        [CALL_AWAITS_ROOM] = "wait_for_room",
    };
    return names[step];
}

static void tell(struct call_steps *steps, int64_t to_us)
{
    steps->total_us[steps->now] += to_us - steps->since_us;
    if (steps->count == CALL_STEPS_TOLD) {
        steps->untold++;
        return;
    }
    steps->told[steps->count++] =
        (struct told_step){.step = steps->now, .from_us = steps->since_us, .to_us = to_us};
}

void call_steps_begin(struct call_steps *steps, enum call_step step, int64_t at_us)
{
    if (at_us < steps->since_us)
        at_us = steps->since_us;
    if (step == steps->now)
        return;
    if (steps->now != CALL_WORKS && at_us > steps->since_us)
        tell(steps, at_us);
    steps->now = step;
    steps->since_us = at_us;
}
