/* What a call did and waited for, one thing after the other: what makes the spans within that of
 * the request (introspect/span.h).
 *
 * A call is in one step at any time. The first CALL_STEPS_TOLD that took any time are told one by
 * one; of those after them, and of all together, how long each kind took. No clock is read here. */
#ifndef TRESTLE_WIRE_CALL_STEPS_H
#define TRESTLE_WIRE_CALL_STEPS_H

#include <stddef.h>
#include <stdint.h>

enum call_step {
    CALL_WORKS, /* none of the others: it is not told by itself */
    CALL_RECEIVES,
    CALL_IS_DELAYED, /* by a fault that is injected */
    CALL_AWAITS_THREAD,
    CALL_AWAITS_LOOP,
    CALL_READS,
    CALL_QUERIES,
    CALL_AWAITS_LOCK,
    CALL_AWAITS_COMMIT, /* those before it in the queue */
    CALL_COMMITS,
    CALL_AWAITS_CLIENT,
    CALL_AWAITS_CHANGES, /* that it is to tell of */
    CALL_AWAITS_ROOM,    /* in memory, for values that it is to send or look at */
    CALL_STEPS,
};

struct grpc_call;

/* What the call does or waits for from now on, or has since a time (clock_steady_us): for its
 * trace, if the server's option `wants_steps` is set, and, if it is now, for a look at what runs
 * (grpc_connection_visit). On the thread that has the call in hand. */
void grpc_call_step(struct grpc_call *call, enum call_step step);
/* For a look at what runs alone. Any thread. */
void grpc_call_is_at(struct grpc_call *call, enum call_step step);
void grpc_call_step_at(struct grpc_call *call, enum call_step step, int64_t at_us);

enum { CALL_STEPS_TOLD = 12 };

struct told_step {
    enum call_step step;
    int64_t from_us; /* since the call began */
    int64_t to_us;
};

struct call_steps {
    enum call_step now;
    int64_t since_us; /* since the call began, as all */
    size_t count;
    struct told_step told[CALL_STEPS_TOLD];
    uint32_t untold; /* steps that the list had no room for */
    int64_t total_us[CALL_STEPS];
};

/* The step's name: "wait_for_thread". Not of CALL_WORKS. */
const char *call_step_name(enum call_step step);

/* The call is in this step since then: times that lie before the last step's are as if they were
 * the last one's, so that a step which may not have been comes to nothing. */
void call_steps_begin(struct call_steps *steps, enum call_step step, int64_t at_us);

#endif
