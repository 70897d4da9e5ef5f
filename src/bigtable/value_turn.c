/* See value_turn.h. */
#include "bigtable/value_turn.h"

#include "base/limits.h"
#include "bigtable/read_chunks.h"

enum { SMALL = CHUNK_VALUE_BYTES, SMALL_READ = 2 * SMALL, RETRY_MS = 200 };

static struct value_turn *of_timer(struct timer *timer)
{
    return LIST_ENTRY(timer, struct value_turn, patience);
}

static status be_patient(struct value_turn *turn, int64_t us, void (*run)(struct timer *timer))
{
    turn->patience.run = run;
    return loop_timer_set(turn->loop, &turn->patience,
                          clock_steady_us(loop_clock(turn->loop)) + us);
}

/* --- what it holds --- */

bool value_turn_covers(const struct value_turn *turn, size_t size)
{
    return size <= SMALL || size <= turn->held / VALUE_TURN_COPIES;
}

size_t value_turn_most(const struct value_turn *turn)
{
    size_t most = turn->held / VALUE_TURN_COPIES;
    return most > SMALL_READ ? most : SMALL_READ;
}

void value_turn_shrink(struct value_turn *turn, size_t size)
{
    size_t wanted = size * VALUE_TURN_COPIES;
    if (turn->held <= wanted)
        return;
    const struct request_share less = {.long_bytes = turn->held - wanted};
    turn->held = wanted;
    request_room_give_back(turn->room, less);
}

/* --- a call that asks --- */

static void run_granted(struct task *task)
{
    struct value_turn *turn = LIST_ENTRY(task, struct value_turn, granted);
    loop_timer_clear(turn->loop, &turn->patience);
    turn->held = turn->waiter.size;
    turn->ended(turn, status_ok());
}

/* On the thread that gave the room back. */
static void post_granted(struct request_waiter *waiter)
{
    struct value_turn *turn = LIST_ENTRY(waiter, struct value_turn, waiter);
    loop_post(turn->loop, &turn->granted);
}

static void run_out_of_patience(struct timer *timer)
{
    struct value_turn *turn = of_timer(timer);
    if (!value_turn_leave(turn))
        return;
    status s = status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The row's next value has waited too long for room in memory");
    status_add_retry_info(&s, RETRY_MS);
    turn->ended(turn, s);
}

status value_turn_ask(struct value_turn *turn, size_t size, bool *has)
{
    *has = false;
    value_turn_shrink(turn, 0);
    if (!request_room_could_hold(turn->room, size * VALUE_TURN_COPIES))
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The row's values would take %zu MB of memory, which is more than there "
                           "is for one call (--memory)",
                           size * VALUE_TURN_COPIES >> 20);
    turn->waiter =
        (struct request_waiter){.size = size * VALUE_TURN_COPIES, .granted = post_granted};
    turn->granted.run = run_granted;
    TRY(be_patient(turn, LIMIT_STALL_SECONDS * 1000000ll, run_out_of_patience));
    *has = request_room_ask(turn->room, &turn->waiter);
    if (!*has)
        return status_ok(); /* run_granted is on this thread, too */
    loop_timer_clear(turn->loop, &turn->patience);
    turn->held = turn->waiter.size;
    return status_ok();
}

bool value_turn_leave(struct value_turn *turn)
{
    if (!request_room_leave(turn->room, &turn->waiter))
        return false;
    loop_timer_clear(turn->loop, &turn->patience);
    return true;
}

/* --- a call whose client does not go on --- */

/* While no other call asks, it keeps what it would have to get once more. */
static void look_for_others(struct timer *timer)
{
    struct value_turn *turn = of_timer(timer);
    if (request_room_is_wanted(turn->room))
        turn->wanted(turn);
    else
        value_turn_client_stops(turn);
}

void value_turn_client_stops(struct value_turn *turn)
{
    if (turn->held == 0)
        return;
    status s = be_patient(turn, LIMIT_VALUE_IDLE_MS * 1000ll, look_for_others);
    if (status_is_ok(s))
        return;
    status_ignore(s);
    turn->wanted(turn); /* without a timer it would hold its room for ever */
}

void value_turn_client_goes_on(struct value_turn *turn)
{
    loop_timer_clear(turn->loop, &turn->patience);
}
