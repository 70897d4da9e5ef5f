/* Sizes, flushes, compactions, statistics. */
#include "store/internal.h"
#include "store/rocksdb_versions.h"

#include "rocksdb/version.h"
#include "rocksdb/write_buffer_manager.h"

#include <algorithm>
#include <cstdio>

using rocksdb::DB;
using rocksdb::Slice;

/* Greater than every key that sorts below eight bytes of 0xff: good enough for an estimate. */
static const Slice LAST("\xff\xff\xff\xff\xff\xff\xff\xff", 8);

/* Bytes in write buffers. RocksDB's estimate for a range can be several times too high or too low;
 * so it only says what share of the whole, which is known, the range has against what lies on
 * either side. The sizes of neighbours add up. */
static uint64_t buffered(keyspace *keyspace, const Slice &from, const Slice &to)
{
    const rocksdb::Range parts[] = {{Slice(), from}, {from, to}, {to, LAST}};
    uint64_t sum = 0, range = 0, whole = 0;
    for (size_t i = 0; i < 3; i++) {
        uint64_t count = 0, size = 0;
        if (parts[i].start.compare(parts[i].limit) < 0)
            keyspace->db->GetApproximateMemTableStats(keyspace->handle, parts[i], &count, &size);
        sum += size;
        range = i == 1 ? size : range;
    }
    keyspace->db->GetIntProperty(keyspace->handle, DB::Properties::kCurSizeAllMemTables, &whole);
    return sum == 0 ? 0 : (uint64_t)((double)whole * (double)range / (double)sum);
}

static uint64_t in_tables(keyspace *keyspace, const Slice &from, const Slice &to)
{
    rocksdb::SizeApproximationOptions options;
    options.include_memtables = false;
    options.include_files = true;
    rocksdb::Range range(from, to);
    uint64_t size = 0;
    keyspace->db->GetApproximateSizes(options, keyspace->handle, &range, 1, &size)
        .PermitUncheckedError(); /* a wrong option is its only failure */
    return size;
}

uint64_t keyspace_size(keyspace *keyspace, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    Slice begin = from.size != 0 ? to_slice(from) : Slice(); /* never NULL */
    Slice end = to.size != 0 ? to_slice(to) : LAST;
    try {
        return in_tables(keyspace, begin, end) + buffered(keyspace, begin, end);
    } catch (const std::bad_alloc &) {
        return 0; /* no estimate */
    }
}

struct keyspace_bytes keyspace_bytes(keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    struct keyspace_bytes bytes = {};
    keyspace->db->GetIntProperty(keyspace->handle, DB::Properties::kLiveSstFilesSize,
                                 &bytes.tables);
    keyspace->db->GetIntProperty(keyspace->handle, DB::Properties::kCurSizeAllMemTables,
                                 &bytes.buffers);
    uint64_t count = 0;
    keyspace->db->GetApproximateMemTableStats(keyspace->handle, {Slice(), LAST}, &count,
                                              &bytes.buffered);
    bytes.buffered = std::min(bytes.buffered, bytes.buffers);
    return bytes;
}

/* What RocksDB itself starts it stops after a fatal error; what it is asked for it tries, and it
 * aborts if it must seal a write buffer that it could not seal before. */
status check_unfenced(const store *store)
{
    return store->trouble.is_fenced() ? store->trouble.health() : status_ok();
}

status keyspace_flush(keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    TRY(check_unfenced(keyspace->store));
    return guarded([&] {
        rocksdb::FlushOptions options;
        /* Where few write buffers may wait, it would wait for one before it until it is flushed. */
        options.allow_write_stall = keyspace->store->large.is_bounded();
        return status_from(keyspace->db->Flush(options, keyspace->handle));
    });
}

/* The status for a lack of memory, which RocksDB calls damage. */
static status lack_of_memory()
{
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "there is no memory to put rows together that are to be compacted");
}

/* A range as RocksDB wants it: NULL where there is no bound. */
struct range_bounds {
    range_bounds(bytes from_, bytes to_) : from(to_slice(from_)), to(to_slice(to_)) {}
    const Slice *begin() const { return from.empty() ? nullptr : &from; }
    const Slice *end() const { return to.empty() ? nullptr : &to; }
    Slice from, to;
};

/* Another thread may say meanwhile that the store is about to end: whoever comes second sees what
 * the first has said. */
void interrupt_compactions(keyspace *keyspace)
{
    keyspace->is_interrupted = keyspace->is_left || keyspace->store->is_interrupted;
    if (keyspace->store->is_interrupted)
        keyspace->is_interrupted = true;
}

void store_interrupt_compactions(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    store->is_interrupted = true;
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    for (const auto &keyspace : store->keyspaces)
        interrupt_compactions(keyspace.get());
}

/* What a compaction that was interrupted has come to: of a keyspace that is left alone, nothing. */
static status interruption(const keyspace *keyspace)
{
    return keyspace->store->is_interrupted
               ? status_make(STATUS_CANCELLED, "no more compactions are begun")
               : status_ok();
}

status keyspace_compact(keyspace *keyspace, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    TRY(check_unfenced(keyspace->store));
    TRY(interruption(keyspace));
    if (keyspace->is_left || keyspace->kind == KEYSPACE_LOG || !keyspace->store->old_data.empty())
        return status_ok();
    return guarded([&] {
        rocksdb::CompactRangeOptions options;
        options.exclusive_manual_compaction = false;
        /* Also what lies at the bottom already: collected data leaves the disk there. */
        options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
        options.canceled = &keyspace->is_interrupted;
        range_bounds range(from, to);
        const std::atomic<uint64_t> &hungry = keyspace->store->counters.hungry;
        uint64_t before = hungry;
        rocksdb::Status s =
            keyspace->db->CompactRange(options, keyspace->handle, range.begin(), range.end());
        if (s.IsCorruption() && hungry != before)
            return lack_of_memory();
        bool is_interrupted = s.IsIncomplete() && keyspace->is_interrupted;
        return is_interrupted ? interruption(keyspace) : status_from(s);
    });
}

/* Numbers rise, and a table gets its own when all that it is made of is at rest: a write buffer
 * that takes no more, or other tables. */
uint64_t keyspace_newest_table(const keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    uint64_t newest = 0;
    for (const rocksdb::SstFileMetaData &table : tables_of(keyspace))
        newest = std::max(newest, table.file_number);
    return newest;
}

status keyspace_deletes_ranges(keyspace *keyspace, bytes from, bytes to, bool *deletes)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    *deletes = false;
    return guarded([&] {
        rocksdb::TablePropertiesCollection tables;
        const rocksdb::Range range(to_slice(from), to.size == 0 ? LAST : to_slice(to));
        TRY(status_from(
            keyspace->db->GetPropertiesOfTablesInRange(keyspace->handle, &range, 1, &tables)));
        for (const auto &table : tables)
            *deletes = *deletes || table.second->num_range_deletions != 0;
        return status_ok();
    });
}

/* --- statistics --- */

static bool is_log(const std::string &name)
{
    static const std::string ending = ".log";
    return name.size() > ending.size() &&
           name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

/* Not by GetSortedWalFiles: RocksDB 7.8 waits there until no file is about to be removed, and is
 * not always told, so that it may wait for ever where keyspaces are dropped (a log of change
 * streams). */
static uint64_t log_bytes(store *store)
{
    rocksdb::Env *env = store->db->GetEnv();
    std::vector<std::string> names;
    uint64_t sum = 0;
    env->GetChildren(store->db->GetName(), &names).PermitUncheckedError();
    for (const std::string &name : names) {
        uint64_t size = 0;
        if (is_log(name) && env->GetFileSize(store->db->GetName() + "/" + name, &size).ok())
            sum += size;
    }
    return sum;
}

static uint64_t sum_of(store *store, const std::string &property)
{
    uint64_t sum = 0;
    store->db->GetAggregatedIntProperty(property, &sum);
    return sum;
}

static uint64_t number_in(const std::map<std::string, std::string> &table, const char *name)
{
    auto found = table.find(name);
    return found == table.end() ? 0 : strtoull(found->second.c_str(), nullptr, 10);
}

static void count_level_files(store *store, struct store_statistics *out)
{
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    std::string text;
    for (const auto &keyspace : store->keyspaces)
        for (int level = 0; level < STORE_LEVELS; level++)
            if (store->db->GetProperty(
                    keyspace->handle,
                    DB::Properties::kNumFilesAtLevelPrefix + std::to_string(level), &text))
                out->level_files[level] += strtoull(text.c_str(), nullptr, 10);
}

/* RocksDB counts them by keyspace: to ask all takes time, so they are asked only after a stall. */
static void count_stall_causes(store *store, struct store_statistics *out)
{
    if (out->slowdowns + out->stops == 0)
        return;
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    for (const auto &keyspace : store->keyspaces) {
        std::map<std::string, std::string> table;
        store->db->GetMapProperty(keyspace->handle, DB::Properties::kCFStats, &table);
        out->stalls_by_buffers += number_in(table, "io_stalls.memtable_compaction") +
                                  number_in(table, "io_stalls.memtable_slowdown");
        out->stalls_by_level0 += number_in(table, "io_stalls.level0_slowdown") +
                                 number_in(table, "io_stalls.level0_numfiles");
        out->stalls_by_pending +=
            number_in(table, "io_stalls.stop_for_pending_compaction_bytes") +
            number_in(table, "io_stalls.slowdown_for_pending_compaction_bytes");
    }
}

static void fill_background_work(store *store, struct store_statistics *out)
{
    const store_counters &counters = store->counters;
    store->db->GetIntProperty(DB::Properties::kNumRunningFlushes, &out->flushes_running);
    store->db->GetIntProperty(DB::Properties::kNumRunningCompactions, &out->compactions_running);
    out->flushes = counters.flushes;
    out->flushed_bytes = counters.flushed_bytes;
    out->compactions = counters.compactions;
    out->compaction_us = counters.compaction_us;
    out->compaction_read_bytes = counters.compaction_read_bytes;
    out->compaction_written_bytes = counters.compaction_written_bytes;
    out->slowdowns = counters.slowdowns;
    out->stops = counters.stops;
    count_level_files(store, out);
    count_stall_causes(store, out);
}

static void fill_statistics(store *store, struct store_statistics *out)
{
    uint64_t number = 0;
    std::map<std::string, std::string> table;
    store->db->GetMapProperty(DB::Properties::kDBStats, &table);

    out->cache_used_bytes = store->cache->GetUsage();
    out->write_buffer_used_bytes = store->write_buffers->memory_usage();
    out->table_bytes = sum_of(store, DB::Properties::kLiveSstFilesSize);
    out->log_bytes = log_bytes(store);
    out->compaction_pending_bytes = sum_of(store, DB::Properties::kEstimatePendingCompactionBytes);
    out->bytes_written = store->counters.bytes_written + number_in(table, "db.wal_bytes_written");
    out->syncs = store->room->syncs;
    out->stalls_us = number_in(table, "db.user_write_stall_micros") + store->full.waited_us();
    store->db->GetIntProperty(DB::Properties::kIsWriteStopped, &number);
    out->is_stalled = number != 0 || store->full.is_waited_for();
    const struct cache_lookups lookups = count_cache_lookups(store->cache.get());
    out->cache_capacity_bytes = store->cache->GetCapacity();
    out->cache_hits = lookups.hits;
    out->cache_misses = lookups.misses;
    fill_background_work(store, out);
}

void store_statistics(store *store, struct store_statistics *out)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    *out = {};
    try {
        fill_statistics(store, out);
    } catch (const std::bad_alloc &) { /* the rest stays 0 */
    }
}

void store_limit_cache(store *store, uint64_t bytes)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    try {
        store->cache->SetCapacity(bytes);
    } catch (const std::bad_alloc &) { /* it keeps what it has */
    }
}

static uint64_t left_of(uint64_t most, uint64_t used)
{
    return most > used ? most - used : 0;
}

/* One set of write buffers is filled while another is flushed. */
uint64_t store_growth(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    const rocksdb::WriteBufferManager &buffers = *store->write_buffers;
    return left_of(store->cache->GetCapacity(), store->cache->GetUsage()) +
           left_of(2 * buffers.buffer_size(), buffers.memory_usage());
}

void store_rocksdb_version(char out[STORE_VERSION_SIZE])
{
    const std::string version = rocksdb::GetRocksVersionAsString(true);
    snprintf(out, STORE_VERSION_SIZE, "%s", version.c_str());
}
