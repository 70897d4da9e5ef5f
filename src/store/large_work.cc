/* Flushes and compactions of large values, where memory is bounded (store_options.on_large_work).
 *
 * RocksDB holds a large value several times while it writes a table: in the block that it was read
 * from, one for each table of level 0 and each level beside; as an operand that is to be folded; in
 * the block that is built, twice while that is finished; compressed. With cells of 60 MB a
 * compaction of five tables takes 540 MB so, and a flush beside it 180.
 *
 *  1. Such work comes one job after the other. A job waits for the one before it before it reads or
 *     copies anything, at most PATIENCE: a flush that never came would stop all writes.
 *  2. Who bounds memory hears of each, before it waits and after it, on the job's thread, and may
 *     hold it up. Each that begins ends for them, at the latest when the store is closed: RocksDB
 *     does not tell of all.
 *  3. A keyspace that gets large values is compacted from one table of level 0 on, not four: each
 *     table that is merged holds one more value.
 *
 * Which jobs are large is known of keyspaces that large values were written to since the start, and
 * of compactions by what their tables say of themselves. */
#include "store/internal.h"

#include "rocksdb/table_properties.h"

namespace {

constexpr auto PATIENCE = std::chrono::seconds(60);

/* What a block has beside the value that fills it: more than options.cc has for it. */
constexpr uint64_t SMALL_BLOCK = 64 << 10;

/* A block ends with the first entry that fills it; what blocks have beyond that lies in few. */
bool has_large_values(const rocksdb::TableProperties &table)
{
    uint64_t size = table.raw_key_size + table.raw_value_size;
    return size >= table.num_data_blocks * SMALL_BLOCK + STORE_LARGE_VALUE / 2;
}

} // namespace

large_work::large_work(const store_options *options)
    : listener(options->on_large_work), context(options->large_work_context)
{
}

bool large_work::expects(const std::string &keyspace)
{
    std::lock_guard<std::mutex> lock(mutex);
    return expected.count(keyspace) != 0;
}

void large_work::expect(const std::string &keyspace)
{
    std::lock_guard<std::mutex> lock(mutex);
    expected.insert(keyspace);
}

void large_work::begin()
{
    listener(context, true); /* so that no more comes while it waits */
    {
        std::unique_lock<std::mutex> lock(mutex);
        over.wait_for(lock, PATIENCE, [this] { return running.empty() || is_closing; });
        running.insert(std::this_thread::get_id());
    }
}

void large_work::end()
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (running.erase(std::this_thread::get_id()) == 0)
            return;
    }
    over.notify_all();
    listener(context, false);
}

/* The end of one that was given up may not have been told. */
void large_work::flush_begins(const std::string &keyspace)
{
    if (!is_bounded())
        return;
    end();
    if (expects(keyspace))
        begin();
}

void large_work::compaction_begins(const rocksdb::CompactionJobInfo &job)
{
    if (!is_bounded())
        return;
    end();
    bool is_large = expects(job.cf_name);
    for (const auto &table : job.table_properties)
        is_large = is_large || has_large_values(*table.second);
    if (is_large)
        begin();
}

void large_work::close()
{
    std::lock_guard<std::mutex> lock(mutex);
    is_closing = true;
    over.notify_all();
}

void large_work::closed()
{
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t left = running.size(); left > 0; left--)
        listener(context, false);
    running.clear();
}

void keyspace_expect_large(keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    large_work &work = keyspace->store->large;
    if (!work.is_bounded() || keyspace->store->trouble.is_fenced() ||
        keyspace->expects_large.exchange(true))
        return;
    status_ignore(guarded([&] {
        work.expect(keyspace->handle->GetName());
        return status_from(keyspace->db->SetOptions(keyspace->handle,
                                                    {{"level0_file_num_compaction_trigger", "1"}}));
    }));
}
