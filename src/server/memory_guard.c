/* See memory_guard.h. */
#include "server/memory_guard.h"

#include "os/thread.h"

enum { TOLD_EVERY_US = 10 * 1000 * 1000, WORTH_IT = 64 };

/* Ever less often while that gains less than a 64th of the memory. */
static void press(struct memory_guard *guard, uint64_t bytes)
{
    int64_t now = clock_steady_us(guard->clock);
    if (now < guard->press_us)
        return;
    int64_t began = thread_cpu_us();
    allocator_give_back();
    bool is_worth_it = allocator_resident() + guard->limit_bytes / WORTH_IT < bytes;
    guard->press_pause_us =
        allocator_pause_us(guard->press_pause_us, is_worth_it, thread_cpu_us() - began);
    guard->press_us = now + guard->press_pause_us;
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

void memory_guard_judge(struct memory_guard *guard, uint64_t bytes, uint64_t wanted)
{
    uint64_t limit = guard->limit_bytes;
    if (bytes > guard->peak_bytes)
        guard->peak_bytes = bytes;
    if (limit == 0)
        return;
    bool was_short = atomic_load(&guard->is_short);
    bool is_short = bytes >= limit - (was_short ? limit / 8 : limit / 16) ||
                    (wanted > 0 && bytes + wanted > limit);
    if (is_short && !was_short)
        tell(guard, bytes);
    atomic_store(&guard->is_short, is_short);
    metrics_set(guard->metrics, METRIC_memory_short, is_short);
    if (bytes >= limit - limit / 8)
        press(guard, bytes);
}

void memory_guard_look(struct memory_guard *guard, uint64_t wanted)
{
    memory_guard_judge(guard, allocator_resident(), wanted);
    metrics_set(guard->metrics, METRIC_memory_peak_bytes, (int64_t)guard->peak_bytes);
    metrics_set(guard->metrics, METRIC_memory_limit_bytes, (int64_t)guard->limit_bytes);
}

void memory_guard_tend(struct memory_guard *guard)
{
    allocator_tend(&guard->care, guard->clock);
    metrics_set(guard->metrics, METRIC_memory_given_back_bytes_total,
                (int64_t)guard->care.given_back_bytes);
}
