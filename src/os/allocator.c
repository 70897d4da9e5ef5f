/* See allocator.h. */
#include "os/allocator.h"

#include "os/thread.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

enum {
    /* Larger pieces are mapped on their own. Left alone the allocator raises this to 32 MB with the
     * first such piece that is freed, and what may lie unused at the end of each arena to 64. */
    MAPPED_FROM = 1 << 20,
    UNUSED_AT_END = 1 << 20,

    IDLE_BYTES = 8 << 20, /* that do no harm, and beside them a sixteenth of what is used */
    IDLE_SHARE = 16,

    PAUSE_US = 5 * 1000 * 1000,
    LONGEST_PAUSE_US = 30 * 1000 * 1000, /* unless looks take long */
    PAUSES_A_LOOK = 100,                 /* a pause is so many times as long as what it follows */
};

void allocator_set_up(void)
{
    /* Both calls fail only for impossible values; a sanitizer's allocator ignores them. */
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
    (void)mallopt(M_TRIM_THRESHOLD, UNUSED_AT_END);
}

/* Without what is a file's or shared: the program itself. */
uint64_t allocator_resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long total, resident, shared;
    if (file == NULL)
        return 0;
    int fields = fscanf(file, "%llu %llu %llu", &total, &resident, &shared);
    fclose(file);
    return fields == 3 ? (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

struct allocator_use allocator_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return (struct allocator_use){.resident_bytes = allocator_resident(),
                                  .used_bytes = info.uordblks + info.hblkhd};
}

void allocator_give_back(void)
{
    (void)malloc_trim(0); /* whether anything was free does not matter */
}

bool allocator_has_idle(const struct allocator_use *use)
{
    return use->resident_bytes > use->used_bytes + use->used_bytes / IDLE_SHARE + IDLE_BYTES;
}

/* Whether half of what was free went. */
static bool give_back(struct allocator_upkeep *upkeep, const struct allocator_use *before)
{
    allocator_give_back();
    uint64_t after = allocator_resident();
    uint64_t gained = after < before->resident_bytes ? before->resident_bytes - after : 0;
    upkeep->given_back_bytes += gained;
    return gained >= (before->resident_bytes - before->used_bytes) / 2;
}

int64_t allocator_pause_us(int64_t pause_us, bool is_worth_it, int64_t took_us)
{
    int64_t wanted = is_worth_it || pause_us < PAUSE_US ? PAUSE_US : 2 * pause_us;
    if (wanted > LONGEST_PAUSE_US)
        wanted = LONGEST_PAUSE_US;
    return wanted > PAUSES_A_LOOK * took_us ? wanted : PAUSES_A_LOOK * took_us;
}

void allocator_tend(struct allocator_upkeep *upkeep, struct clock *clock)
{
    int64_t now = clock_steady_us(clock);
    if (now < upkeep->next_us)
        return;
    int64_t began = thread_cpu_us();
    const struct allocator_use use = allocator_use();
    bool is_worth_it = !allocator_has_idle(&use) || give_back(upkeep, &use);
    upkeep->pause_us = allocator_pause_us(upkeep->pause_us, is_worth_it, thread_cpu_us() - began);
    upkeep->next_us = now + upkeep->pause_us;
}
