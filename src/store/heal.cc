/* Bringing keys back into service: damaged tables are compacted away.
 *
 *     look once more       what is damaged in the tables that the compaction may meet
 *                          (damage.cc puts stand-ins in place of it, so that the rest is read)
 *     flush, compact       all tables over the range, to the lowest level: files that were damaged
 *                          are in no version of the keyspace any more, and RocksDB deletes them
 *     open                 the range, and, if it was the last one, RocksDB compacts as before
 *
 * A crash in between leaves the range closed for who remembers it, and what was damaged either
 * still is, or is gone: it is done again. */
#include "store/internal.h"

#include <algorithm>

using rocksdb::Slice;

static bool overlaps(const rocksdb::SstFileMetaData &file, const Slice &from, const Slice &to)
{
    return (to.empty() || to.compare(file.smallestkey) > 0) && from.compare(file.largestkey) <= 0;
}

static void cover_all(keyspace *keyspace, const Slice &from, const Slice &to)
{
    std::vector<uint64_t> known = keyspace->closed.files();
    for (const auto &file : tables_of(keyspace))
        if (overlaps(file, from, to) ||
            std::find(known.begin(), known.end(), file.file_number) != known.end())
            keyspace->store->damage.look_now(keyspace->id, file);
}

static rocksdb::Status compact_away(keyspace *keyspace, const Slice &from, const Slice &to)
{
    rocksdb::Status s = keyspace->db->Flush(rocksdb::FlushOptions(), keyspace->handle);
    if (!s.ok())
        return s;
    rocksdb::CompactRangeOptions options;
    options.exclusive_manual_compaction = false;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    return keyspace->db->CompactRange(options, keyspace->handle, &from, to.empty() ? nullptr : &to);
}

/* Stand-ins of files that are no more; and the first file of those that still are over the range.
 */
static status settle_stand_ins(keyspace *keyspace, const std::vector<uint64_t> &damaged,
                               const Slice &from, const Slice &to)
{
    std::vector<rocksdb::SstFileMetaData> tables = tables_of(keyspace);
    for (uint64_t number : damaged) {
        auto is_it = [&](const rocksdb::SstFileMetaData &file) {
            return file.file_number == number;
        };
        auto found = std::find_if(tables.begin(), tables.end(), is_it);
        if (found == tables.end())
            keyspace->store->stand_ins->remove(number);
        else if (overlaps(*found, from, to))
            return status_make(STATUS_UNAVAILABLE,
                               "store: the damaged table file %06llu.sst is still in use",
                               (unsigned long long)number);
    }
    return status_ok();
}

/* The range is in service again; after the last one RocksDB compacts as before. */
static status open_range(keyspace *keyspace, uint64_t file, const Slice &from, const Slice &to)
{
    keyspace->closed.remove(file, from, to);
    if (keyspace->closed.any())
        return status_ok();
    return status_from(
        keyspace->db->SetOptions(keyspace->handle, {{"disable_auto_compactions", "false"}}));
}

static status heal(keyspace *keyspace, const Slice &from, const Slice &to)
{
    std::vector<uint64_t> damaged = keyspace->closed.files();
    rocksdb::Status s = compact_away(keyspace, from, to);
    if (s.IsCorruption()) { /* another one, that it came to from these */
        cover_all(keyspace, Slice(), Slice());
        s = compact_away(keyspace, from, to);
    }
    /* A file that is alone is moved to the lowest level as it is, and there it is rewritten. */
    if (s.ok())
        s = compact_away(keyspace, from, to);
    TRY(status_from(s));
    TRY(settle_stand_ins(keyspace, damaged, from, to));
    return open_range(keyspace, 0, from, to);
}

status keyspace_heal(keyspace *keyspace, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    TRY(check_writable(keyspace->store));
    return guarded([&] {
        cover_all(keyspace, to_slice(from), to_slice(to));
        return heal(keyspace, to_slice(from), to_slice(to));
    });
}

/* --- what was no damage of the disk's --- */

/* What has a stand-in is read through that until the next start. */
static bool is_sound(keyspace *keyspace, uint64_t number, const Slice &from, const Slice &to)
{
    if (keyspace->store->stand_ins->find(number) != nullptr)
        return false;
    for (const auto &file : tables_of(keyspace)) {
        if (file.file_number != number)
            continue;
        table_findings findings;
        status s = look_at_table(
            keyspace->store->base_files.get(), file.db_path + file.name, file.size,
            [](uint64_t) { return true; }, false, &findings);
        bool is_whole = status_is_ok(s) && findings.whole.empty();
        status_ignore(s);
        for (const bad_block &block : findings.blocks)
            is_whole = is_whole && (to.compare(block.from) <= 0 || from.compare(block.to) >= 0);
        return is_whole;
    }
    return false;
}

status keyspace_open_if_sound(keyspace *keyspace, uint64_t file, bytes from, bytes to,
                              bool *is_open)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    *is_open = false;
    return guarded([&] {
        *is_open = is_sound(keyspace, file, to_slice(from), to_slice(to));
        return *is_open ? open_range(keyspace, file, to_slice(from), to_slice(to)) : status_ok();
    });
}
