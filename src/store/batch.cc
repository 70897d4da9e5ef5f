/* Batches and store_write. */
#include "store/log_ends.h"

#include <algorithm>

/* A batch keeps its memory for the next use, but not that of one huge value. */
enum : size_t { BATCH_KEEP_BYTES = 4 << 20 };

store_batch *store_batch_create(void)
{
    return new (std::nothrow) store_batch;
}

void store_batch_destroy(store_batch *batch)
{
    if (batch == nullptr)
        return;
    CHECK_MAGIC(batch, BATCH_MAGIC);
    batch->magic = 0;
    delete batch;
}

void store_batch_clear(store_batch *batch)
{
    CHECK_MAGIC(batch, BATCH_MAGIC);
    if (batch->batch.Data().capacity() > BATCH_KEEP_BYTES)
        batch->batch = rocksdb::WriteBatch();
    else
        batch->batch.Clear();
    batch->failed = false;
}

size_t store_batch_size(const store_batch *batch)
{
    CHECK_MAGIC(batch, BATCH_MAGIC);
    return batch->batch.GetDataSize();
}

/* RocksDB's batch aborts when it cannot grow, so it is given room before. */
static void make_room(rocksdb::WriteBatch *batch, size_t extra)
{
    const std::string &data = batch->Data();
    if (data.capacity() - data.size() >= extra)
        return;
    std::string larger;
    larger.reserve(std::max(2 * data.capacity(), data.size() + extra));
    larger.append(data);
    *batch = rocksdb::WriteBatch(std::move(larger));
}

/* Appends two pieces of such sizes, and remembers when there was no memory for them. */
template <typename function>
static void append(store_batch *batch, size_t size, size_t more, function change)
{
    enum : size_t { ENTRY_OVERHEAD = 32 }; /* more than a tag and three varints */
    CHECK_MAGIC(batch, BATCH_MAGIC);
    try {
        make_room(&batch->batch, size + more + ENTRY_OVERHEAD);
        if (!change(&batch->batch).ok())
            batch->failed = true;
    } catch (const std::exception &) {
        batch->failed = true;
    }
}

/* So that a loss can be named (log_ends.h). */
static void note_write(const keyspace *keyspace)
{
    std::atomic<bool> *is_set = &keyspace->mark->is_set;
    if (!is_set->load(std::memory_order_relaxed))
        is_set->store(true, std::memory_order_relaxed);
}

void store_batch_put(store_batch *batch, keyspace *keyspace, bytes key, bytes value)
{
    note_write(keyspace);
    append(batch, key.size, value.size, [&](rocksdb::WriteBatch *b) {
        return b->Put(keyspace->handle, to_slice(key), to_slice(value));
    });
}

void store_batch_merge(store_batch *batch, keyspace *keyspace, bytes key, bytes operand)
{
    note_write(keyspace);
    append(batch, key.size, operand.size, [&](rocksdb::WriteBatch *b) {
        return b->Merge(keyspace->handle, to_slice(key), to_slice(operand));
    });
}

void store_batch_delete(store_batch *batch, keyspace *keyspace, bytes key)
{
    note_write(keyspace);
    append(batch, key.size, 0,
           [&](rocksdb::WriteBatch *b) { return b->Delete(keyspace->handle, to_slice(key)); });
}

void store_batch_delete_range(store_batch *batch, keyspace *keyspace, bytes from, bytes to)
{
    if (bytes_compare(from, to) >= 0)
        return;
    note_write(keyspace);
    append(batch, from.size, to.size, [&](rocksdb::WriteBatch *b) {
        return b->DeleteRange(keyspace->handle, to_slice(from), to_slice(to));
    });
}

status check_writable(store *store)
{
    if (store->read_only)
        return status_make(STATUS_FAILED_PRECONDITION, "the store was opened for reading only");
    if (store->trouble.is_fenced() || store->trouble.is_background_full())
        return store->trouble.health();
    return status_ok();
}

/* Anything but a lack of space leaves the log's end in doubt. */
static status write_failed(store *store, const rocksdb::Status &s)
{
    if (s.IsNoSpace())
        store->trouble.background_is_full(true);
    else
        store->trouble.fence(s.ToString());
    return store->trouble.is_fenced() ? store->trouble.health() : status_from(s);
}

static status write(store *store, const rocksdb::WriteOptions &options, rocksdb::WriteBatch *batch)
{
    try {
        rocksdb::Status s = store->db->Write(options, batch);
        return s.ok() ? status_ok() : write_failed(store, s);
    } catch (const std::exception &e) {
        /* Its queue of writers has been left behind: see internal.h. */
        return write_failed(store, rocksdb::Status::Aborted(e.what()));
    }
}

static void mark(store_batch *batch, enum store_durability durability)
{
    char letter = durability == STORE_SYNCED ? LOG_MARK_SYNCED : LOG_MARK_ASYNC;
    append(batch, 1, 0, [&](rocksdb::WriteBatch *b) { return b->PutLogData({&letter, 1}); });
}

status store_write(store *store, store_batch *batch, enum store_durability durability)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    CHECK_MAGIC(batch, BATCH_MAGIC);
    TRY(check_writable(store));
    mark(batch, durability);
    if (batch->failed)
        return status_out_of_memory();

    uint64_t size = log_record_size(batch->batch.GetDataSize());
    rocksdb::IOStatus room = store->room->take(size);
    store->trouble.log_is_full(!room.ok());
    if (!room.ok())
        return status_from(room); /* not health(): another writer may have found room meanwhile */

    rocksdb::WriteOptions options;
    options.sync = durability == STORE_SYNCED;
    status s = write(store, options, &batch->batch);
    store->room->give_back(size);
    return s;
}
