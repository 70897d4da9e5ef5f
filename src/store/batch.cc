/* Batches and store_write. */
#include "store/log_ends.h"
#include "store/uncounted.h"

extern "C" {
#include "base/varint.h"
}

#include <algorithm>

using rocksdb::Slice;
using rocksdb::Status;

/* A batch keeps its memory for the next use, but not that of one huge value. */
enum : size_t { BATCH_KEEP_BYTES = 4 << 20, BATCH_STEP_BYTES = 16 << 20, BATCH_SPARE_BYTES = 512 };

enum : size_t { KEYS_NOTED = 64 << 10 }; /* for looking ahead: 1 MB */

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
    batch->keys.clear();
    batch->failed = false;
}

size_t store_batch_size(const store_batch *batch)
{
    CHECK_MAGIC(batch, BATCH_MAGIC);
    return batch->batch.GetDataSize();
}

/* RocksDB's batch aborts when it cannot grow, so it is given room before. Twice as much as it has,
 * but what is large has no twice: a cell of 60 MB would take 180 for the small record behind it. */
static void make_room(rocksdb::WriteBatch *batch, size_t extra)
{
    const std::string &data = batch->Data();
    if (data.capacity() - data.size() >= extra)
        return;
    std::string larger;
    size_t more = std::min<size_t>(data.capacity(), BATCH_STEP_BYTES);
    larger.reserve(std::max(data.capacity() + more, data.size() + extra + BATCH_SPARE_BYTES));
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

/* Notes that the keyspace is written to, so that a loss can be named (log_ends.h). */
static void note_write(const keyspace *keyspace)
{
    std::atomic<bool> *is_set = &keyspace->mark->is_set;
    if (!is_set->load(std::memory_order_relaxed))
        is_set->store(true, std::memory_order_relaxed);
}

/* Appends a change of one key, behind which the batch has so many bytes more. */
template <typename function>
static void append_change(store_batch *batch, keyspace *keyspace, size_t size, size_t behind,
                          function change)
{
    note_write(keyspace);
    append(batch, size, behind, [&](rocksdb::WriteBatch *b) {
        Status s = change(b);
        if (s.ok() && batch->keys.size() < KEYS_NOTED)
            batch->keys.push_back({b->GetDataSize() - behind - size, static_cast<uint32_t>(size),
                                   keyspace->handle->GetID()});
        return s;
    });
}

/* Bytes that a value takes in a batch. */
static size_t size_of(bytes value)
{
    return varint_size(value.size) + value.size;
}

void store_batch_put(store_batch *batch, keyspace *keyspace, bytes key, bytes value)
{
    append_change(batch, keyspace, key.size, size_of(value), [&](rocksdb::WriteBatch *b) {
        return b->Put(keyspace->handle, to_slice(key), to_slice(value));
    });
}

void store_batch_merge(store_batch *batch, keyspace *keyspace, bytes key, bytes operand)
{
    append_change(batch, keyspace, key.size, size_of(operand), [&](rocksdb::WriteBatch *b) {
        return b->Merge(keyspace->handle, to_slice(key), to_slice(operand));
    });
}

void store_batch_delete(store_batch *batch, keyspace *keyspace, bytes key)
{
    append_change(batch, keyspace, key.size, 0, [&](rocksdb::WriteBatch *b) {
        return b->Delete(keyspace->handle, to_slice(key));
    });
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

bool store_batch_failed(const store_batch *batch)
{
    CHECK_MAGIC(batch, BATCH_MAGIC);
    return batch->failed;
}

void store_batch_fail(store_batch *batch)
{
    CHECK_MAGIC(batch, BATCH_MAGIC);
    batch->failed = true;
}

/* --- looking into a batch --- */

/* Tells of each change in our words. What `visit` says against it is kept in `result`. */
class visitor : public rocksdb::WriteBatch::Handler {
  public:
    visitor(store *store, status (*visit)(void *, const store_change *), void *context)
        : at(store), visit(visit), context(context)
    {
    }

    Status PutCF(uint32_t id, const Slice &key, const Slice &value) override
    {
        return tell(STORE_PUT, id, key, value);
    }
    Status MergeCF(uint32_t id, const Slice &key, const Slice &value) override
    {
        return tell(STORE_MERGE, id, key, value);
    }
    Status DeleteCF(uint32_t id, const Slice &key) override
    {
        return tell(STORE_DELETE, id, key, Slice());
    }
    Status DeleteRangeCF(uint32_t id, const Slice &from, const Slice &to) override
    {
        return tell(STORE_DELETE_RANGE, id, from, to);
    }
    void LogData(const Slice &) override {}

    status result = status_ok();

  private:
    Status tell(store_change_kind kind, uint32_t id, const Slice &key, const Slice &value)
    {
        const store_change change = {kind, find(id), from_slice(key), from_slice(value)};
        CHECK(change.keyspace != nullptr); /* store.h forbids batches of dropped ones */
        result = visit(context, &change);
        return status_is_ok(result) ? Status::OK() : Status::Aborted();
    }

    /* Mostly the one of the change before. */
    keyspace *find(uint32_t id)
    {
        if (last != nullptr && last->handle->GetID() == id)
            return last;
        std::shared_lock<std::shared_mutex> lock(at->mutex);
        for (const auto &each : at->keyspaces)
            if (each->handle->GetID() == id)
                return last = each.get();
        return nullptr;
    }

    store *const at;
    status (*const visit)(void *, const store_change *);
    void *const context;
    keyspace *last = nullptr;
};

status store_batch_visit(store *store, const store_batch *batch,
                         status (*visit)(void *context, const store_change *change), void *context)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    CHECK_MAGIC(batch, BATCH_MAGIC);
    if (batch->failed)
        return status_out_of_memory();
    return guarded([&] {
        visitor each(store, visit, context);
        Status s = batch->batch.Iterate(&each);
        return s.ok() || !status_is_ok(each.result) ? each.result : status_from(s);
    });
}

static status add_change(void *context, const store_change *change)
{
    store_batch *batch = static_cast<store_batch *>(context);
    switch (change->kind) {
    case STORE_PUT:
        store_batch_put(batch, change->keyspace, change->key, change->value);
        break;
    case STORE_MERGE:
        store_batch_merge(batch, change->keyspace, change->key, change->value);
        break;
    case STORE_DELETE:
        store_batch_delete(batch, change->keyspace, change->key);
        break;
    case STORE_DELETE_RANGE:
        store_batch_delete_range(batch, change->keyspace, change->key, change->value);
        break;
    }
    return batch->failed ? status_out_of_memory() : status_ok();
}

void store_batch_append(store *store, store_batch *batch, const store_batch *other)
{
    status s = store_batch_visit(store, other, add_change, batch);
    if (!status_is_ok(s))
        batch->failed = true;
    status_free(s);
}

/* --- writing --- */

status check_writable(store *store)
{
    if (store->read_only)
        return status_make(STATUS_FAILED_PRECONDITION, "the store was opened for reading only");
    if (store->trouble.is_sealed() || store->trouble.is_fenced() ||
        store->trouble.is_background_full() || store->trouble.does_lack_memory())
        return store->trouble.health();
    return status_ok();
}

/* Anything but a lack of space, or of memory for a flush, leaves the log's end in doubt; but a
 * write that waits for flushes that fail and are tried again ends before the log (Incomplete), once
 * the write buffers are full. */
static status write_failed(store *store, const rocksdb::Status &s)
{
    if (s.IsIncomplete())
        return status_make(STATUS_UNAVAILABLE, "store: a flush fails, and is made anew: %s",
                           words_of(s).c_str());
    if (s.IsNoSpace())
        store->trouble.background_is_full(true);
    else if (s.IsMemoryLimit())
        store->trouble.lacks_memory(true);
    else
        store->trouble.fence(words_of(s));
    return store->trouble.is_fenced() ? store->trouble.health() : status_from(s);
}

static status write(store *store, const rocksdb::WriteOptions &options, store_batch *batch)
{
    try {
        const look_ahead_scope ahead(batch->batch.Data().data(), batch->keys);
        rocksdb::Status s = store->db->Write(options, &batch->batch);
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
    TRY(store->full.await(batch->batch.GetDataSize()));

    uint64_t size = log_record_size(batch->batch.GetDataSize());
    rocksdb::IOStatus room = store->room->take(size);
    if (!room.ok()) {
        store->trouble.log_is_full(true);
        return status_from(room); /* not health(): another writer may have found room meanwhile */
    }
    store_look_for_room(store); /* a small batch that fits into what is left says nothing */

    forgo_counting();
    rocksdb::WriteOptions options;
    options.sync = durability == STORE_SYNCED;
    status s = write(store, options, batch);
    store->room->give_back(size);
    return s;
}
