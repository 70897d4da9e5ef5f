/* Writes that wait for flushes, where memory is bounded (store_options.on_large_work).
 *
 * What all write buffers together may have is a hint to RocksDB, when to flush. While it flushes it
 * lets writes go on: into a new buffer of each keyspace, and into one more, each of them as large
 * as one batch. (It can be told to hold writes back, by `allow_stall`; that may never end.) So here
 * a batch waits, before the log has seen it, until it fits beside what is there.
 *
 * Invariants
 *  1. A batch goes on once it, what is being filled and what waits for its flush are no more than
 *     twice `write_buffer_bytes`; or when there is nothing to wait for, however large it is. What
 *     readers hold on to of what was flushed is nothing to wait for.
 *  2. What is being filled is flushed first, the largest before others, if only that makes room:
 *     RocksDB would look at it within the next write.
 *  3. A waiting writer holds no lock, and goes on or is refused within `patience`; at once when the
 *     store takes no writes any more, or is about to be closed. So nothing that a flush waits for
 *     needs to know of it. */
#ifndef TRESTLE_STORE_FULL_BUFFERS_H
#define TRESTLE_STORE_FULL_BUFFERS_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

extern "C" {
#include "store/store.h"
}

class full_buffers {
  public:
    full_buffers(struct store *store, const store_options *options);

    /* Before a batch of that size is written. UNAVAILABLE: flushes do not get on, or the store is
     * being closed; or what check_writable says. Costs nothing where memory is not bounded. */
    status await(uint64_t bytes);

    void flushed(); /* something was, or failed */
    void close();   /* no batch waits from now on */

    bool is_waited_for() const { return waiting > 0; }
    uint64_t waited_us() const { return waited; } /* so far, by waits that have ended */

  private:
    /* What is there, bytes. */
    struct fill {
        uint64_t filling;         /* is being filled */
        uint64_t full;            /* waits for its flush */
        struct keyspace *largest; /* of what is being filled; NULL: none */
        uint64_t largest_size;
    };

    bool fits(uint64_t there, uint64_t more) const;
    struct fill look() const;
    bool has_room(uint64_t bytes) const;
    bool wait_for_change();
    status wait(uint64_t bytes);

    struct store *const store;
    const uint64_t most; /* bytes; 0: not bounded */
    const std::chrono::microseconds patience;
    void (*const listener)(void *, enum store_large_work);
    void *const context;
    std::atomic<unsigned> waiting{0};
    std::atomic<uint64_t> waited{0};
    std::mutex mutex; /* of the next */
    bool is_closing = false;
    std::condition_variable changed;
};

#endif
