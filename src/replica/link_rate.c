/* See link_rate.h. */
#include "replica/link_rate.h"

#include "base/check.h"

enum { LEAST_PIECE = 4 << 10, PIECES_A_SECOND = 10, SECOND_US = 1000 * 1000 };

void link_rate_init(struct link_rate *rate, uint64_t bytes_per_second, struct clock *clock)
{
    *rate = (struct link_rate){.bytes_per_second = bytes_per_second, .clock = clock};
    pthread_mutex_init(&rate->lock, NULL);
}

void link_rate_destroy(struct link_rate *rate)
{
    pthread_mutex_destroy(&rate->lock);
}

size_t link_rate_piece(const struct link_rate *rate, size_t most)
{
    uint64_t piece = rate->bytes_per_second / PIECES_A_SECOND;
    if (rate->bytes_per_second == 0 || piece >= most)
        return most;
    return piece < LEAST_PIECE ? LEAST_PIECE : (size_t)piece;
}

int64_t link_rate_wait_us(struct link_rate *rate, unsigned number)
{
    DCHECK(number < VERSION_CLUSTERS);
    if (rate->bytes_per_second == 0)
        return 0;
    int64_t now_us = clock_steady_us(rate->clock);
    pthread_mutex_lock(&rate->lock);
    int64_t wait_us = rate->free_us[number] - now_us;
    pthread_mutex_unlock(&rate->lock);
    return wait_us > 0 ? wait_us : 0;
}

void link_rate_charge(struct link_rate *rate, unsigned number, size_t bytes)
{
    DCHECK(number < VERSION_CLUSTERS);
    if (rate->bytes_per_second == 0)
        return;
    int64_t now_us = clock_steady_us(rate->clock);
    int64_t takes_us = (int64_t)((double)bytes * SECOND_US / (double)rate->bytes_per_second);
    pthread_mutex_lock(&rate->lock);
    int64_t from_us = rate->free_us[number] > now_us ? rate->free_us[number] : now_us;
    rate->free_us[number] = from_us + takes_us;
    pthread_mutex_unlock(&rate->lock);
}
