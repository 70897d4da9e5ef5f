/* See disk_reserve.h. */
#include "cluster/disk_reserve.h"

#include "base/check.h"
#include "os/file.h"

enum { ASK_EVERY_US = 100 * 1000 };

static uint64_t wanted_bytes(const struct disk_reserve *reserve)
{
    DCHECK(reserve->directory != NULL);
    uint64_t quarter = reserve->reserve_bytes / 4;
    bool is_too_much = reserve->reserve_bytes > UINT64_MAX - quarter;
    return is_too_much ? UINT64_MAX : reserve->reserve_bytes + quarter;
}

static void tell(const struct disk_reserve *reserve, uint64_t free_bytes)
{
    enum { MB_BITS = 20 };
    if (atomic_load(&reserve->is_short))
        condition_enter(reserve->condition, REASON_disk_reserve,
                        "writes are refused: %llu MB are free on the disk of %s, and %llu MB are "
                        "kept in reserve (--disk-reserve)",
                        (unsigned long long)(free_bytes >> MB_BITS), reserve->directory,
                        (unsigned long long)(reserve->reserve_bytes >> MB_BITS));
    else
        condition_leave(reserve->condition, REASON_disk_reserve);
}

/* A disk that does not answer is not refused: the store's own errors will say more. */
static void ask_disk(struct disk_reserve *reserve)
{
    uint64_t wanted = wanted_bytes(reserve);
    uint64_t free_bytes;
    status s = disk_free_bytes(reserve->directory, &free_bytes);
    if (!status_is_ok(s)) {
        status_ignore(s);
        return;
    }
    atomic_store(&reserve->missing_bytes, free_bytes < wanted ? wanted - free_bytes : 0);
    atomic_store(&reserve->is_short, free_bytes < reserve->reserve_bytes);
    metrics_set(reserve->metrics, METRIC_disk_free_bytes, (int64_t)free_bytes);
    tell(reserve, free_bytes);
}

static status refusal(const struct disk_reserve *reserve)
{
    enum { RETRY_MS = 1000 };
    status s = status_make(STATUS_RESOURCE_EXHAUSTED,
                           "No space left: less than %llu MB are free on the disk of %s",
                           (unsigned long long)(reserve->reserve_bytes >> 20), reserve->directory);
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

/* One thread asks at a time, as good as always: what it finds is noted in order. */
void disk_reserve_look(struct disk_reserve *reserve)
{
    long long now = clock_steady_us(reserve->clock);
    long long asked = atomic_load(&reserve->asked_us);
    if ((asked == 0 || now - asked >= ASK_EVERY_US) &&
        atomic_compare_exchange_strong(&reserve->asked_us, &asked, now))
        ask_disk(reserve);
}

status disk_reserve_admit(void *context)
{
    struct disk_reserve *reserve = context;
    disk_reserve_look(reserve);
    return atomic_load(&reserve->is_short) ? refusal(reserve) : status_ok();
}

uint64_t disk_reserve_missing(struct disk_reserve *reserve)
{
    disk_reserve_look(reserve);
    return atomic_load(&reserve->missing_bytes);
}
