/* See memory_guard.h. */
#include "server/memory_guard.h"

#include "os/thread.h"

#define SECOND_US INT64_C(1000000)

enum {
    TOLD_EVERY_US = 10 * SECOND_US,
    WORTH_IT = 64,
    LEAST_REFUSED = 64 << 20, /* before the end, calls are refused */
    CACHE_KEEPS = 8,          /* the part that the cache never gives up */

    SHORTEST_PAUSE_US = SECOND_US / 2,
    LONGEST_PAUSE_US = 5 * SECOND_US,
    PAUSES = 10, /* a pause is so many times as long as what it follows, */
    PAUSES_IN_VAIN = 100,
};

/* --- what is given up --- */

/* Ever longer while it gains less than a 64th of the memory. */
static int64_t pause_after(const struct memory_guard *guard, bool is_worth_it, int64_t took_us)
{
    if (is_worth_it)
        return PAUSES * took_us;
    int64_t pause = 2 * guard->press_pause_us;
    if (pause < SHORTEST_PAUSE_US)
        pause = SHORTEST_PAUSE_US;
    if (pause > LONGEST_PAUSE_US)
        pause = LONGEST_PAUSE_US;
    return pause > PAUSES_IN_VAIN * took_us ? pause : PAUSES_IN_VAIN * took_us;
}

static void press(struct memory_guard *guard, uint64_t bytes)
{
    int64_t now = clock_steady_us(guard->clock);
    if (now < guard->press_us)
        return;
    int64_t began = thread_cpu_us();
    allocator_give_back();
    bool is_worth_it = allocator_resident() + guard->limit_bytes / WORTH_IT < bytes;
    guard->press_pause_us = pause_after(guard, is_worth_it, thread_cpu_us() - began);
    guard->press_us = now + guard->press_pause_us;
}

static void limit_cache(struct memory_guard *guard, uint64_t given_up)
{
    if (guard->limit_cache == NULL || given_up == guard->given_up)
        return;
    guard->given_up = given_up;
    guard->limit_cache(guard->context, guard->cache_bytes - given_up);
}

static void shrink_cache(struct memory_guard *guard)
{
    uint64_t most = guard->cache_bytes - guard->cache_bytes / CACHE_KEEPS;
    uint64_t given_up = guard->given_up + (guard->cache_bytes - guard->given_up) / 2;
    limit_cache(guard, given_up < most ? given_up : most);
}

static void tell(struct memory_guard *guard, uint64_t bytes)
{
    int64_t now = clock_steady_us(guard->clock);
    if (guard->told_us != 0 && now - guard->told_us < TOLD_EVERY_US)
        return;
    guard->told_us = now;
    log_warn(guard->log, "memory is nearly used up: calls for data are refused for now",
             LOG_INT("used", bytes), LOG_INT("memory", guard->limit_bytes));
}

/* --- what is looked at --- */

static uint64_t refused_from(const struct memory_guard *guard)
{
    uint64_t left = guard->limit_bytes / 16;
    return guard->limit_bytes - (left > LEAST_REFUSED ? left : LEAST_REFUSED);
}

/* Calls that are refused are so until then. */
static uint64_t near_from(const struct memory_guard *guard)
{
    return refused_from(guard) - guard->limit_bytes / 16;
}

static bool lacks_wanted(const struct memory_guard *guard, uint64_t bytes, uint64_t wanted)
{
    return wanted > 0 && bytes + wanted > guard->limit_bytes - guard->limit_bytes / 16;
}

static void refuse_calls(struct memory_guard *guard, uint64_t bytes, uint64_t wanted)
{
    bool was_short = atomic_load(&guard->is_short);
    bool is_short = bytes >= (was_short ? near_from(guard) : refused_from(guard)) ||
                    lacks_wanted(guard, bytes, wanted);
    if (is_short && !was_short)
        tell(guard, bytes);
    atomic_store(&guard->is_short, is_short);
    metrics_set(guard->metrics, METRIC_memory_short, is_short);
}

static void squeeze(struct memory_guard *guard, uint64_t bytes, const struct memory_wishes *wishes)
{
    if (bytes >= near_from(guard) || wishes->is_wanted ||
        lacks_wanted(guard, bytes + wishes->growth, wishes->wanted)) {
        shrink_cache(guard);
        press(guard, bytes);
    } else if (!wishes->is_busy && bytes + guard->given_up < near_from(guard)) {
        limit_cache(guard, 0);
    }
}

void memory_guard_judge(struct memory_guard *guard, uint64_t bytes,
                        const struct memory_wishes *wishes)
{
    if (bytes > guard->peak_bytes)
        guard->peak_bytes = bytes;
    if (guard->limit_bytes == 0)
        return;
    refuse_calls(guard, bytes, wishes->wanted);
    squeeze(guard, bytes, wishes);
}

void memory_guard_look(struct memory_guard *guard, const struct memory_wishes *wishes)
{
    memory_guard_judge(guard, allocator_resident(), wishes);
    metrics_set(guard->metrics, METRIC_memory_peak_bytes, (int64_t)guard->peak_bytes);
    metrics_set(guard->metrics, METRIC_memory_limit_bytes, (int64_t)guard->limit_bytes);
}

void memory_guard_tend(struct memory_guard *guard)
{
    allocator_tend(&guard->upkeep, guard->clock);
    metrics_set(guard->metrics, METRIC_memory_given_back_bytes_total,
                (int64_t)guard->upkeep.given_back_bytes);
}
