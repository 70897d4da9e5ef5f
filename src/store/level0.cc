/* Iterators over level 0: no table may fail to open while RocksDB puts one together.
 *
 * Each table of level 0 becomes a part of every iterator when that is made; of the levels below,
 * tables are opened one by one as the iterator comes to them. RocksDB up to 9.4
 * (Version::AddIteratorsForLevel) keeps the range tombstones of the table before when a table of
 * level 0 cannot be opened, gives them to the merging iterator a second time, and that frees them
 * twice. So a table with range tombstones, and an older one that is not open while a loop's thread
 * may not read, or that the disk does not give out, damage the memory of the process. (Mended in
 * 9.5. What follows is for the versions before; for later ones make_iterator is NewIterator.)
 *
 * Invariants
 *  1. While an iterator is made over level 0 with range tombstones (HELD), all tables of level 0
 *     are open and stay so: a second iterator, which leaves range tombstones alone and is never
 *     moved, holds on to them. Making that one is safe, and says whether a table cannot be opened.
 *  2. No table comes to level 0 between the look at it and the making of an iterator. A table is
 *     arriving from its end (OnTableFileCreated, before RocksDB lists it) until it is listed or
 *     given up; to begin that takes `gate` exclusively, to look and to make an iterator takes it
 *     shared.
 *  3. As long as tables are arriving, no iterator is made over range tombstones: a thread that must
 *     not wait reads later, others wait for the record in the manifest.
 *
 *        UNKNOWN --look, no range tombstones--> PLAIN --a table with them arrives--> UNKNOWN
 *        UNKNOWN --look, range tombstones-----> HELD --a table arrives, compaction ends--> UNKNOWN
 *
 * What is held belongs to the present version of the keyspace, so it costs no disk and, save for a
 * few hundred bytes a table, no memory; it is let go when a version follows. */
#include "store/internal.h"

#include "rocksdb/table_properties.h"
#include "rocksdb/version.h"

#include <chrono>

namespace {

constexpr bool FREES_TOMBSTONES_TWICE =
    ROCKSDB_MAJOR < 9 || (ROCKSDB_MAJOR == 9 && ROCKSDB_MINOR < 5);

/* By the steady clock: far longer than a manifest takes, unless the disk hangs. */
constexpr std::chrono::seconds ARRIVAL_LONGEST(30);

/* The state of the job that runs on the present thread of RocksDB's. */
thread_local struct {
    int output_level;    /* of a compaction; 0: it is none */
    uint64_t last_table; /* that it has made */
} job;

/* "/a/b/000012.sst" */
uint64_t number_of(const std::string &path)
{
    return strtoull(path.c_str() + path.rfind('/') + 1, nullptr, 10);
}

} // namespace

/* --- one keyspace --- */

level0::level0(rocksdb::DB *db_, rocksdb::ColumnFamilyHandle *handle_) : db(db_), handle(handle_) {}

/* Shared, for a few microseconds, or for a look. A shared_mutex lets readers pass a thread that
 * waits for it exclusively, and many loops make cursors all the time: so they are kept at `door`
 * meanwhile. */
std::shared_lock<std::shared_mutex> level0::enter()
{
    if (closing.load(std::memory_order_acquire)) {
        if (thread_keeps_to_memory()) {
            note_refusal();
            return {};
        }
        std::lock_guard<std::mutex> queue(door);
    }
    return std::shared_lock<std::shared_mutex>(gate);
}

std::unique_lock<std::shared_mutex> level0::close_gate()
{
    std::lock_guard<std::mutex> queue(door);
    closing.store(true, std::memory_order_release);
    std::unique_lock<std::shared_mutex> lock(gate);
    closing.store(false, std::memory_order_release);
    return lock;
}

/* False: there is no waiting, or it took too long. */
bool level0::wait_for_arrivals(std::shared_lock<std::shared_mutex> *lock)
{
    auto is_complete = [this] { return state == PLAIN || arriving == 0; };
    if (is_complete())
        return true;
    if (thread_keeps_to_memory()) {
        note_refusal();
        return false;
    }
    return arrived.wait_for(*lock, ARRIVAL_LONGEST, is_complete);
}

/* Opens all tables of level 0, and keeps them if one has range tombstones. */
bool level0::look()
{
    auto deletes_ranges = std::make_shared<bool>(false);
    rocksdb::ReadOptions options;
    options.ignore_range_deletions = true;
    options.table_filter = [deletes_ranges](const rocksdb::TableProperties &table) {
        *deletes_ranges |= table.num_range_deletions != 0;
        return false; /* it is opened, and nothing more */
    };
    std::unique_ptr<rocksdb::Iterator> tables(db->NewIterator(options, handle));
    if (thread_has_met_trouble())
        return false;
    if (*deletes_ranges)
        held = std::move(tables);
    state = *deletes_ranges ? HELD : PLAIN;
    return true;
}

/* Under `gate`, shared. The look may wait for the disk, so a loop does not wait for it. */
bool level0::is_known()
{
    if (state != UNKNOWN)
        return true;
    std::unique_lock<std::mutex> lock(looking, std::defer_lock);
    if (!thread_keeps_to_memory())
        lock.lock();
    else if (!lock.try_lock())
        note_refusal();
    return lock.owns_lock() && (state != UNKNOWN || look());
}

std::unique_ptr<rocksdb::Iterator> level0::make_iterator(const rocksdb::ReadOptions &options)
{
    if (!FREES_TOMBSTONES_TWICE)
        return std::unique_ptr<rocksdb::Iterator>(db->NewIterator(options, handle));
    std::shared_lock<std::shared_mutex> lock = enter();
    if (!lock.owns_lock() || !wait_for_arrivals(&lock) || !is_known())
        return nullptr;
    merging_scope scope(state == HELD);
    std::unique_ptr<rocksdb::Iterator> made(db->NewIterator(options, handle));
    CHECK(!scope.has_opened()); /* its end would free memory twice */
    return made;
}

/* Under `gate`, exclusively. What is returned is to be let go without it. */
std::unique_ptr<rocksdb::Iterator> level0::forget()
{
    state = UNKNOWN;
    return std::move(held);
}

void level0::begin_arrival(bool deletes_ranges)
{
    std::unique_ptr<rocksdb::Iterator> former;
    std::unique_lock<std::shared_mutex> lock = close_gate();
    arriving++;
    if (deletes_ranges || state == HELD)
        former = forget();
    lock.unlock();
}

void level0::end_arrival()
{
    {
        std::unique_lock<std::shared_mutex> lock = close_gate();
        arriving--;
    }
    arrived.notify_all();
}

void level0::let_go()
{
    std::unique_ptr<rocksdb::Iterator> former;
    std::unique_lock<std::shared_mutex> lock = close_gate();
    if (state == HELD)
        former = forget();
    lock.unlock();
}

/* --- all keyspaces, as the listener knows them: by name, and by the tables that are arriving ---
 */

void level0_list::add(const std::string &name, std::shared_ptr<level0> one)
{
    std::lock_guard<std::mutex> lock(mutex);
    by_name[name] = std::move(one);
}

void level0_list::remove(const std::string &name)
{
    std::lock_guard<std::mutex> lock(mutex);
    by_name.erase(name);
}

std::shared_ptr<level0> level0_list::find(const std::string &name)
{
    std::lock_guard<std::mutex> lock(mutex);
    auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
}

/* Without memory for the note the arrival has no end: the keyspace is not read any more once it has
 * range tombstones, which beats reading it at the risk of the process. */
void level0_list::note_arrival(uint64_t number, const std::shared_ptr<level0> &at)
{
    try {
        std::lock_guard<std::mutex> lock(mutex);
        arriving.emplace_back(number, at);
    } catch (const std::bad_alloc &) {
    }
}

void level0_list::table_made(const std::string &name, const std::string &path, bool deletes_ranges)
{
    std::shared_ptr<level0> at = find(name);
    if (at == nullptr || job.output_level > 0)
        return;
    job.last_table = number_of(path);
    at->begin_arrival(deletes_ranges);
    note_arrival(job.last_table, at);
}

void level0_list::table_finished(uint64_t number)
{
    std::shared_ptr<level0> at;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (auto &one : arriving) {
            if (one.first == number) {
                at = std::move(one.second);
                one = std::move(arriving.back());
                arriving.pop_back();
                break;
            }
        }
    }
    if (at != nullptr)
        at->end_arrival();
}

void level0_list::table_finished(const std::string &path)
{
    table_finished(number_of(path));
}

void level0_list::job_failed()
{
    table_finished(job.last_table);
}

void level0_list::compaction_begun(int output_level)
{
    job.output_level = output_level;
}

void level0_list::compaction_done(const std::string &name)
{
    job.output_level = 0;
    table_finished(job.last_table);
    std::shared_ptr<level0> at = find(name);
    if (at != nullptr)
        at->let_go();
}
