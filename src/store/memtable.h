/* RocksDB's write buffers (memtable.cc), and how a batch on its way into them looks ahead.
 *
 * Keys that come in no order belong to leaves all over memory, and to wait for each of them is most
 * of what an insert takes. RocksDB inserts one after the other and does not tell what is next, but
 * the batch knows: while one is inserted, the places of the next few are looked up, and their
 * memory called for. What is looked up is a hint: whatever RocksDB does with a batch, each entry
 * comes to where it belongs. */
#ifndef TRESTLE_STORE_MEMTABLE_H
#define TRESTLE_STORE_MEMTABLE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rocksdb/memtablerep.h"

/* A key of a batch, in the order in which they are inserted. */
struct batch_key {
    size_t at; /* in the batch's data */
    uint32_t size;
    uint32_t family;
};

/* While it lives, what its thread inserts are these keys, as a rule. They and the data outlive it.
 * One at a time on a thread. */
class look_ahead_scope {
  public:
    look_ahead_scope(const char *data, const std::vector<batch_key> &keys);
    ~look_ahead_scope();
    look_ahead_scope(const look_ahead_scope &) = delete;
    look_ahead_scope &operator=(const look_ahead_scope &) = delete;
};

std::shared_ptr<rocksdb::MemTableRepFactory> make_memtable_factory();

#endif
