/* Flushes and compactions of large values, where memory is bounded (store_options.on_large_work).
 *
 * RocksDB holds a large value several times while it writes a table: in the block that it was read
 * from, one for each table of level 0 and each level beside; as an operand that is to be folded,
 * and folded (a value that is put is neither, so tablet/commit_batch.c puts large ones); in the
 * block that is built, twice while that is finished; compressed. With operands of 60 MB a
 * compaction of five tables takes 600 MB so, and one of a table of level 0 and the level below 420,
 * or 300 with values that were put; a flush beside it 180.
 *
 *  1. Such work comes one job after the other. A job waits for the one before it before it reads or
 *     copies anything, as long as others end, and for PATIENCE: a flush that never came would stop
 *     all writes.
 *  2. The owner of the memory bound (on_large_work) hears of each job, before it waits and after
 *     it, on the job's thread, and may hold it up. Each job that begins is told as ended, at the
 *     latest when the store is closed: RocksDB does not tell of all.
 *  3. A keyspace that gets large values is compacted from one table of level 0 on, not four, and
 *     not flushed before level 0 is empty: each table that is merged holds one more value.
 *  4. What a start finds at level 0 is compacted table by table, before anything else
 *     (large_start.cc).
 *
 * Which jobs are large is known of keyspaces that large values were written to since the start, and
 * of compactions by what their tables say of themselves. */
#include "store/keyspaces.h"

#include "rocksdb/table_properties.h"

namespace {

/* Without any job's end; they may be many, on a disk that is slow. */
constexpr auto PATIENCE = std::chrono::seconds(60);
constexpr auto LOOK = std::chrono::milliseconds(50);

/* What a block has beside the value that fills it: more than options.cc has for it. */
constexpr uint64_t SMALL_BLOCK = 64 << 10;

uint64_t size_of(const rocksdb::TableProperties &table)
{
    return table.raw_key_size + table.raw_value_size;
}

} // namespace

/* Of a table that does not say it: a block ends with the first entry that fills it; what blocks
 * have beyond that lies in few. */
bool has_large_values(const rocksdb::TableProperties &table)
{
    uint64_t largest;
    if (largest_told(table.user_collected_properties, &largest))
        return largest >= STORE_LARGE_VALUE;
    return size_of(table) >= table.num_data_blocks * SMALL_BLOCK + STORE_LARGE_VALUE / 2;
}

large_work::large_work(struct store *store_, const store_options *options)
    : store(store_), log(options->log), listener(options->on_large_work),
      context(options->large_work_context), most(options->large_value_bytes)
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

/* Whether a compaction of what is at level 0 is still to come, which would have one table more. */
bool large_work::is_crowded(const std::string &name)
{
    std::string count;
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    auto found = store->by_id.find(id_in_name(name));
    if (found == store->by_id.end() || found->second->is_left || store->no_compactions)
        return false;
    return store->db->GetProperty(found->second->handle,
                                  rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0", &count) &&
           count != "0";
}

void large_work::await_turn(const std::string &flushed)
{
    listener(context, STORE_LARGE_WAITS); /* so that no more comes while it waits */
    auto until = std::chrono::steady_clock::now() + PATIENCE;
    for (uint64_t seen = 0;;) {
        bool is_crowding = !flushed.empty() && is_crowded(flushed);
        std::unique_lock<std::mutex> lock(mutex);
        auto now = std::chrono::steady_clock::now();
        if (is_closing || now >= until || (running.empty() && !is_crowding)) {
            running.insert(std::this_thread::get_id());
            return;
        }
        over.wait_for(lock, LOOK);
        if (ended != seen)
            until = now + PATIENCE;
        seen = ended;
    }
}

/* `flushed`: the keyspace that a flush is of, or empty. */
void large_work::begin(const std::string &flushed)
{
    await_turn(flushed);
    listener(context, flushed.empty() ? STORE_LARGE_BEGINS : STORE_LARGE_FLUSH_BEGINS);
}

void large_work::end()
{
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (running.erase(std::this_thread::get_id()) == 0)
            return;
        ended++;
    }
    over.notify_all();
    listener(context, STORE_LARGE_ENDS);
}

/* The end of one that was given up may not have been told. */
void large_work::flush_begins(const std::string &keyspace)
{
    if (!is_bounded())
        return;
    end();
    if (expects(keyspace))
        begin(keyspace);
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
        begin("");
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
        listener(context, STORE_LARGE_ENDS);
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
