/* See sizing.h.
 *
 * A part's share of M, the memory; those that have one take no more than without --memory:
 *
 *     base            32 MB
 *     allocator       M/16   what it keeps unasked, os/allocator.h
 *     write buffers   M/16   twice: the next is filled while one is flushed
 *     connections     M/16   40 KB each, idle, with TLS
 *     messages        M/8    three times: as it came, packed, and in the commit queue; and half of
 *                            it for short ones, parts of those that wait, bodies of HTTP/1.1. Under
 *                            1 GB M/12
 *     large work             five times the largest cell that a message may have, less what
 *                            messages and values give up for it; from 4 GB on it waits for none
 *     queries         M/32   each of --query-threads
 *     transactions    M/16
 *     cache           the rest: a ninth of 512 MB, three fifths of 8 GB; of it M/32, a third
 *                     at most, for values that are sent
 *
 * Without M nothing is derived: the presets are those of settings.def. */
#include "base/sizing.h"

#include "base/limits.h"

#define MB (1ull << 20)

enum {
    LEAST_MEMORY = 512 << 20,
    LEAST_CACHE = 8 << 20,
    BASE = 32 << 20,
    A_CONNECTION = 40 << 10,
    WRITE_BUFFERS = 2, /* in memory at a time */
    MESSAGES = 3,      /* times that a message is */
    CELLS = 5,         /* times that a cell is while tables of it are merged: store/large_work.cc */
    FLUSH_CELLS = 3,   /* while it is flushed, without the write buffer */
    GB = 1 << 30,
};

/* --- what there is --- */

static uint64_t messages_of(const struct settings *settings)
{
    return MESSAGES * settings->max_message + settings->max_message / 2;
}

static uint64_t largest_cell(const struct settings *settings)
{
    uint64_t largest = settings->max_message;
    return largest < LIMIT_CELL_BYTES ? largest : LIMIT_CELL_BYTES;
}

uint64_t sizing_large_work(const struct settings *settings)
{
    return CELLS * largest_cell(settings);
}

uint64_t sizing_large_flush(const struct settings *settings)
{
    return FLUSH_CELLS * largest_cell(settings);
}

static uint64_t large_work_of(const struct settings *settings)
{
    uint64_t takes = sizing_large_work(settings);
    uint64_t given_up = messages_of(settings) + settings->memory / 32;
    return sizing_lacks_large_work(settings) && takes > given_up ? takes - given_up : 0;
}

struct sizing sizing_of(const struct settings *settings)
{
    return (struct sizing){
        .base = BASE,
        .allocator = settings->memory / 16,
        .cache = settings->cache,
        .write_buffers = WRITE_BUFFERS * settings->write_buffer,
        .connections = A_CONNECTION * settings->max_connections,
        .messages = messages_of(settings),
        .large_work = large_work_of(settings),
        .queries = settings->query_threads * settings->query_memory,
        .transactions = settings->datastore_transaction_memory,
    };
}

uint64_t sizing_sum(const struct sizing *sizing)
{
    return sizing->base + sizing->allocator + sizing->cache + sizing->write_buffers +
           sizing->connections + sizing->messages + sizing->large_work + sizing->queries +
           sizing->transactions;
}

uint64_t sizing_commit_queue(const struct settings *settings)
{
    uint64_t share = (MESSAGES - 1) * settings->max_message;
    bool is_bound = settings->memory > 0 && share < LIMIT_COMMIT_QUEUE_BYTES;
    return is_bound ? share : LIMIT_COMMIT_QUEUE_BYTES;
}

uint64_t sizing_requests(const struct settings *settings)
{
    return settings->memory > 0 ? settings->max_message : SIZE_MAX;
}

/* With little room more would be refused than clients send at a time: 64 of the benchmarks. */
uint64_t sizing_unasked(const struct settings *settings)
{
    bool is_little = settings->memory > 0 && settings->memory < GB;
    return LIMIT_STREAM_WINDOW_BYTES / (is_little ? 4 : 1);
}

/* A third of the cache at most, so that a cache that was given stays one. */
uint64_t sizing_values(const struct settings *settings)
{
    if (settings->memory == 0)
        return SIZE_MAX;
    uint64_t share = settings->memory / 32;
    return share < settings->cache / 3 ? share : settings->cache / 3;
}

uint64_t sizing_blocks(const struct settings *settings)
{
    return settings->memory == 0 ? settings->cache : settings->cache - sizing_values(settings);
}

/* A fifth: a server with that much memory has it free, or in a cache that gives way. */
bool sizing_lacks_large_work(const struct settings *settings)
{
    return settings->memory > 0 &&
           settings->memory / 5 < (uint64_t)SIZING_LARGE_COPIES * LIMIT_CELL_BYTES;
}

uint64_t sizing_spare(const struct settings *settings)
{
    return settings->memory / 16;
}

/* Of a gigabyte 640 MB: a row of 256 MB, twice; or a cell of 100 MB, six times. */
uint64_t sizing_values_alone(const struct settings *settings)
{
    return settings->memory > 0 ? settings->memory / 8 * 5 : SIZE_MAX;
}

uint64_t sizing_largest_cell(const struct settings *settings)
{
    bool is_bound = sizing_lacks_large_work(settings) && settings->max_message < LIMIT_CELL_BYTES;
    return is_bound ? settings->max_message : 0;
}

uint64_t sizing_largest_commit(const struct settings *settings)
{
    return settings->memory > 0 ? sizing_commit_queue(settings) / 8 * 9 : 0;
}

bool sizing_reserve_is_short(const struct settings *settings)
{
    return settings->disk_reserve > 0 && settings->disk_reserve < settings->write_buffer;
}

uint64_t sizing_http1_bodies(const struct settings *settings)
{
    return settings->memory > 0 ? settings->max_message / 2 : SIZE_MAX;
}

/* --- what follows from the memory --- */

/* Lowers a setting that was not given; never more than its preset. */
static void lower(struct settings *settings, size_t row, uint64_t *member, uint64_t share)
{
    if (settings->origins[row].source != OPTION_PRESET)
        return;
    settings->origins[row].source = OPTION_DERIVED;
    if (share < *member)
        *member = share;
}

#define LOWER(settings, member, share) lower(settings, SETTING_##member, &(settings)->member, share)

static void lower_all(struct settings *settings)
{
    uint64_t memory = settings->memory;
    LOWER(settings, write_buffer, memory / 16);
    LOWER(settings, max_connections, memory / 16 / A_CONNECTION);
    LOWER(settings, max_message, memory / (memory < GB ? 12 : 8));
    LOWER(settings, query_memory, memory / 32);
    LOWER(settings, datastore_transaction_memory, memory / 16);
}

static status refuse_parts(const struct settings *settings, const struct sizing *parts)
{
    return settings_refuse(
        settings, "memory",
        "%llu MB are not enough: write buffers take %llu, connections %llu, messages %llu, large "
        "cells %llu, queries %llu, transactions %llu, the rest %llu, the cache %llu",
        (unsigned long long)(settings->memory / MB),
        (unsigned long long)(parts->write_buffers / MB),
        (unsigned long long)(parts->connections / MB), (unsigned long long)(parts->messages / MB),
        (unsigned long long)(parts->large_work / MB), (unsigned long long)(parts->queries / MB),
        (unsigned long long)(parts->transactions / MB),
        (unsigned long long)((parts->base + parts->allocator) / MB),
        (unsigned long long)(parts->cache / MB));
}

/* Sums stay far from 2^64: each setting except those of queries has 16 TB at most. */
static status divide(struct settings *settings)
{
    if (settings->memory < LEAST_MEMORY)
        return settings_refuse(settings, "memory", "is less than %u MB",
                               (unsigned)(LEAST_MEMORY / MB));
    bool is_given = settings->origins[SETTING_cache].source != OPTION_PRESET;
    lower_all(settings);
    struct sizing parts = sizing_of(settings);
    uint64_t others = sizing_sum(&parts) - parts.cache;
    if (!is_given) {
        settings->cache = LEAST_CACHE;
        if (settings->memory > others + LEAST_CACHE)
            settings->cache = settings->memory - others;
        settings->origins[SETTING_cache].source = OPTION_DERIVED;
    }
    parts.cache = settings->cache;
    if (others > settings->memory || parts.cache > settings->memory - others)
        return refuse_parts(settings, &parts);
    return status_ok();
}

/* The reserve must hold what waits in the write buffers when writes are refused. One that was given
 * stays, and the server tells of it. */
static void raise_reserve(struct settings *settings)
{
    if (!sizing_reserve_is_short(settings) ||
        settings->origins[SETTING_disk_reserve].source != OPTION_PRESET)
        return;
    settings->disk_reserve = settings->write_buffer;
    settings->origins[SETTING_disk_reserve].source = OPTION_DERIVED;
}

status sizing_derive(struct settings *settings)
{
    if (settings->memory > 0)
        TRY(divide(settings));
    raise_reserve(settings);
    return status_ok();
}
