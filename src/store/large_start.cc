/* Large values that a start with bounded memory finds: see large_work.cc.
 *
 * A server without a bound, or with a larger one, leaves as many tables at level 0 as it likes, a
 * kill one for each write buffer. RocksDB would merge all of them at once, and a read holds a value
 * of each. So here the oldest is taken alone, into the level below, and then the next: what a table
 * of level 0 may be merged with without those that are newer. That is done before compactions begin
 * and before the first request, on the caller's thread; what fails is left to RocksDB.
 *
 * Where a value is larger than those that there is memory for, the start ends. All tables of level
 * 0 are asked, and below it those that are larger than tables get to be otherwise. */
#include "store/check.h"
#include "store/internal.h"

#include "rocksdb/metadata.h"
#include "rocksdb/table_properties.h"

#include <algorithm>

using rocksdb::LevelMetaData;
using rocksdb::SstFileMetaData;

namespace {

/* Of a table: what it has before it ends (options.cc), and more than that if not by a value. */
constexpr uint64_t TABLE_SIZE = 64 << 20, BY_ITS_VALUE = 68 << 20;

class starting_keyspace {
  public:
    explicit starting_keyspace(keyspace *keyspace_) : at(keyspace_) { look(); }

    bool has_large_values() const { return is_level0_large; }
    size_t left() const { return level0().size(); }
    uint64_t largest() const { return largest_seen; } /* bytes of a value, as tables say; or 0 */

    /* False if nothing is left to do, or if it could not be done. There are large values. */
    bool compact_oldest()
    {
        bool is_done = compact(oldest().name, level_below());
        look();
        return is_done && is_level0_large;
    }

  private:
    /* RocksDB tells its listener of the tables that this makes, and before version 9 not of the
     * compaction: so it is told here that there is one, or they would be waited for at level 0. */
    bool compact(const std::string &table, int to)
    {
        rocksdb::CompactionOptions options;
        options.compression = rocksdb::CompressionType::kDisableCompressionOption;
        options.output_file_size_limit = TABLE_SIZE; /* or all is one, rewritten for each table */
        level0_list &levels0 = at->store->levels0;
        levels0.compaction_begun(to);
        rocksdb::Status s = at->db->CompactFiles(options, at->handle, {table}, to);
        levels0.compaction_done(at->handle->GetName());
        return s.ok();
    }

    const std::vector<SstFileMetaData> &level0() const { return tables.levels.front().files; }

    const SstFileMetaData &oldest() const
    {
        return *std::min_element(level0().begin(), level0().end(),
                                 [](const SstFileMetaData &a, const SstFileMetaData &b) {
                                     return a.largest_seqno < b.largest_seqno;
                                 });
    }

    int level_below() const
    {
        auto has_tables = [](const LevelMetaData &level) { return !level.files.empty(); };
        auto found = std::find_if(tables.levels.begin() + 1, tables.levels.end(), has_tables);
        return found == tables.levels.end() ? tables.levels.back().level : found->level;
    }

    void look()
    {
        largest_seen = 0;
        is_level0_large = false;
        tables = {};
        at->db->GetColumnFamilyMetaData(at->handle, &tables);
        for (const LevelMetaData &level : tables.levels)
            for (const SstFileMetaData &table : level.files)
                if (level.level == 0 || table.size >= BY_ITS_VALUE)
                    note(table, level.level);
    }

    /* RocksDB tells of all tables that have the key: one of each level, and those of level 0. */
    void note(const SstFileMetaData &table, int level)
    {
        rocksdb::TablePropertiesCollection found;
        rocksdb::Range range(table.smallestkey, table.smallestkey);
        at->db->GetPropertiesOfTablesInRange(at->handle, &range, 1, &found).PermitUncheckedError();
        auto itself = found.find(table.db_path + table.name);
        if (itself == found.end())
            return;
        if (level == 0 && ::has_large_values(*itself->second))
            is_level0_large = true;
        uint64_t largest_of_table;
        (void)largest_told(itself->second->user_collected_properties, &largest_of_table);
        largest_seen = std::max(largest_seen, largest_of_table);
    }

    keyspace *const at;
    rocksdb::ColumnFamilyMetaData tables;
    uint64_t largest_seen = 0;
    bool is_level0_large = false;
};

/* Tells of the compactions: they may take minutes, before the server says that it serves. */
void tell(const struct log *log, size_t left)
{
    const log_field fields[] = {{"left", log_field::LOG_FIELD_INT, {nullptr, 0}, (int64_t)left},
                                {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    log_write(log, LOG_INFO, "a table of large values is compacted before the start", fields);
}

bool note_largest(void *context, const struct store_weight *weight)
{
    auto *largest = static_cast<uint64_t *>(context);
    *largest = std::max(*largest, weight->largest_value);
    return true;
}

status refuse(uint64_t size, uint64_t most)
{
    return status_make(
        STATUS_FAILED_PRECONDITION,
        "a table has a cell of %llu MB, and with so little memory cells may have %llu",
        static_cast<unsigned long long>(size >> 20), static_cast<unsigned long long>(most >> 20));
}

} // namespace

status large_work::compact_at_start()
{
    if (!is_bounded() || store->read_only || store->no_compactions || !store->old_data.empty())
        return status_ok();
    return guarded([&] {
        for (const auto &each : store->keyspaces) {
            starting_keyspace start(each.get());
            if (most != 0 && start.largest() > most)
                return refuse(start.largest(), most);
            if (!start.has_large_values() || each->is_left)
                continue;
            keyspace_expect_large(each.get());
            for (bool is_more = true; is_more;) {
                tell(log, start.left());
                begin(""); /* RocksDB does not tell of what it was asked for so */
                is_more = start.compact_oldest();
                end();
            }
        }
        return status_ok();
    });
}

/* Looks into write buffers, too: they have what the log has, and a start would write tables of
 * it. */
status store_check_large_values(struct store *store, uint64_t most)
{
    static const uint8_t behind_all = 0xff; /* keys begin with a letter */
    const bytes end = bytes_make(&behind_all, 1);
    return guarded([&] {
        for (const auto &each : store->keyspaces) {
            uint64_t largest = starting_keyspace(each.get()).largest();
            TRY(keyspace_weigh(each.get(), bytes_of(""), end, note_largest, &largest));
            if (largest > most)
                return refuse(largest, most);
        }
        return status_ok();
    });
}
