/* See full_buffers.h. */
#include "store/internal.h"

#include "rocksdb/write_buffer_manager.h"

using std::chrono::steady_clock;

namespace {

constexpr auto PATIENCE = std::chrono::seconds(20); /* store_options.write_patience_us */
constexpr auto LOOK = std::chrono::milliseconds(20);

/* Of what write buffers may have, the part that is worth a table of its own. */
constexpr uint64_t WORTH_A_FLUSH = 8;

constexpr unsigned RETRY_MS = 1000;

uint64_t size_of(const struct keyspace *keyspace, const std::string &which)
{
    uint64_t size = 0;
    keyspace->db->GetIntProperty(keyspace->handle, which, &size);
    return size;
}

bool begin_flush(const struct keyspace *keyspace)
{
    rocksdb::FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true; /* which it would wait for */
    return keyspace->db->Flush(options, keyspace->handle).ok();
}

status refuse()
{
    status s =
        status_make(STATUS_UNAVAILABLE, "The store is busy: write buffers wait to be flushed");
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

uint64_t microseconds_since(steady_clock::time_point began)
{
    auto gone = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - began);
    return static_cast<uint64_t>(gone.count());
}

} // namespace

full_buffers::full_buffers(struct store *store_, const store_options *options)
    : store(store_), most(options->on_large_work != nullptr ? 2 * options->write_buffer_bytes : 0),
      patience(options->write_patience_us > 0
                   ? std::chrono::microseconds(options->write_patience_us)
                   : std::chrono::microseconds(PATIENCE)),
      listener(options->on_large_work), context(options->large_work_context)
{
}

bool full_buffers::fits(uint64_t there, uint64_t more) const
{
    return there <= most && more <= most - there;
}

/* With the store's lock, which keeps keyspaces there. Takes RocksDB's for each of them, so only a
 * batch that has to wait looks. */
full_buffers::fill full_buffers::look() const
{
    fill all = {};
    for (const auto &each : store->keyspaces) {
        uint64_t whole = size_of(each.get(), rocksdb::DB::Properties::kCurSizeAllMemTables);
        uint64_t filling = size_of(each.get(), rocksdb::DB::Properties::kCurSizeActiveMemTable);
        all.filling += filling;
        all.full += whole > filling ? whole - filling : 0;
        if (filling > all.largest_size) {
            all.largest = each.get();
            all.largest_size = filling;
        }
    }
    return all;
}

/* If not, something is being flushed. What readers hold on to does not count. */
bool full_buffers::has_room(uint64_t bytes) const
{
    uint64_t unflushed = 0;
    store->db->GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &unflushed);
    if (fits(unflushed, bytes))
        return true;
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    const fill there = look();
    if (there.full > 0)
        return fits(there.filling + there.full, bytes);
    return there.largest == nullptr || there.largest_size < most / WORTH_A_FLUSH ||
           !begin_flush(there.largest);
}

bool full_buffers::wait_for_change()
{
    std::unique_lock<std::mutex> lock(mutex);
    if (!is_closing)
        changed.wait_for(lock, LOOK);
    return !is_closing;
}

status full_buffers::wait(uint64_t bytes)
{
    const auto until = steady_clock::now() + patience;
    for (;;) {
        TRY(check_writable(store));
        if (has_room(bytes))
            return status_ok();
        if (!wait_for_change())
            return status_make(STATUS_UNAVAILABLE, "the store is about to be closed");
        if (steady_clock::now() >= until)
            return refuse();
    }
}

status full_buffers::await(uint64_t bytes)
{
    if (most == 0 || fits(store->write_buffers->memory_usage(), bytes))
        return status_ok();
    const auto began = steady_clock::now();
    waiting++;
    listener(context, STORE_WRITES_WAIT);
    status s = guarded([&] { return wait(bytes); });
    listener(context, STORE_WRITES_GO_ON);
    waiting--;
    waited += microseconds_since(began);
    return s;
}

void full_buffers::flushed()
{
    if (waiting == 0)
        return;
    std::lock_guard<std::mutex> lock(mutex);
    changed.notify_all();
}

void full_buffers::close()
{
    std::lock_guard<std::mutex> lock(mutex);
    is_closing = true;
    changed.notify_all();
}

void store_stop_waiting(struct store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    store->full.close();
}
