/* See histogram.h.
 *
 * A value's bucket: with e the place of its highest bit, above 63 it is the next 5 bits, preceded
 * by e - 5: buckets 0 to 63 hold one value each, 64 to 95 hold 64 … 127 two by two, and so on. */
#include "base/histogram.h"

enum { SUB_BUCKETS = 1 << HISTOGRAM_SUB_BITS };

static unsigned bucket_of(uint64_t value)
{
    if (value < 2 * SUB_BUCKETS)
        return (unsigned)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return shift * SUB_BUCKETS + (unsigned)(value >> shift);
}

/* The middle of the bucket's values. */
static uint64_t value_of(unsigned bucket)
{
    if (bucket < 2 * SUB_BUCKETS)
        return bucket;
    unsigned shift = bucket / SUB_BUCKETS - 1;
    uint64_t first = (uint64_t)(bucket - shift * SUB_BUCKETS) << shift;
    return first + ((1ull << shift) - 1) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    if (value > INT64_MAX)
        value = INT64_MAX;
    histogram->buckets[bucket_of(value)]++;
    histogram->count++;
    histogram->sum += value;
    if (value > histogram->largest)
        histogram->largest = value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->sum += from->sum;
    if (from->largest > into->largest)
        into->largest = from->largest;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    double wanted = percent / 100 * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            /* The last values share a bucket with the largest, which is known exactly. */
            uint64_t value = value_of(i);
            return seen == histogram->count || value > histogram->largest ? histogram->largest
                                                                          : value;
        }
    }
    return histogram->largest;
}
