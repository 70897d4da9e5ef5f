/* Bringing keys back into service: damaged tables are compacted away.
 *
 *     look once more       what is damaged in the tables that the compaction may meet
 *                          (damage.cc puts stand-ins in place of it, so that the rest is read)
 *     flush, compact       all tables over the range, to the lowest level: files that were damaged
 *                          are in no version of the keyspace any more, and RocksDB deletes them
 *     open                 the range, once the owner has forgotten it
 *
 * A crash in between leaves the range remembered, and so closed; what was damaged either still is,
 * or is gone: it is done again. */
#include "store/internal.h"

#include <algorithm>

using rocksdb::Slice;

static bool overlaps(const rocksdb::SstFileMetaData &file, const Slice &from, const Slice &to)
{
    return (to.empty() || to.compare(file.smallestkey) > 0) && from.compare(file.largestkey) <= 0;
}

/* Gives up what the disk does not read, if all of it is to be healed: a part of that may have been
 * damage, and the rest is only not read just now. */
static void cover_all(keyspace *keyspace, const Slice &from, const Slice &to)
{
    std::vector<uint64_t> known = keyspace->closed.files();
    for (const auto &file : tables_of(keyspace)) {
        bool is_known = std::find(known.begin(), known.end(), file.file_number) != known.end();
        if (overlaps(file, from, to) && keyspace->closed.lie_in(file.file_number, from, to))
            keyspace->store->damage.look_now(keyspace->id, file);
        else if (is_known || overlaps(file, from, to))
            keyspace->store->damage.look_for(file.file_number);
    }
}

static void look_at_all(keyspace *keyspace)
{
    for (const auto &file : tables_of(keyspace))
        keyspace->store->damage.look_for(file.file_number);
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
static status refresh_stand_ins(keyspace *keyspace, const std::vector<uint64_t> &damaged,
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
                               "store: the damaged table file %06llu.sst is still in use: restart "
                               "the server, then repair",
                               (unsigned long long)number);
    }
    return status_ok();
}

/* A table must not be compacted away when its range is not remembered, so that the next start would
 * not close it, nor when another range of it may be sound after all, or the disk may read it
 * again. */
static status check_given_up(const keyspace *keyspace, const Slice &from, const Slice &to)
{
    if (!keyspace->closed.remembers(0))
        return status_make(STATUS_UNAVAILABLE,
                           "store: what is damaged could not be written to the catalog: try again");
    for (const auto &file : tables_of(keyspace))
        if (!is_given_up(keyspace, file.file_number) &&
            !keyspace->closed.lie_in(file.file_number, from, to))
            return status_make(STATUS_UNAVAILABLE,
                               "store: of the table file %06llu.sst something may be sound that is "
                               "not read: try again, or repair its table",
                               (unsigned long long)file.file_number);
    return status_ok();
}

/* RocksDB goes on with what it remembers of a table that was cut off under way. */
static status after_compacting(const rocksdb::Status &s)
{
    status why = status_from(s);
    if (!s.IsCorruption())
        return why;
    status told = status_make(STATUS_UNAVAILABLE,
                              "%s, and cannot be compacted away: restart the server, then repair",
                              status_message(why));
    status_free(why);
    return told;
}

static status heal(keyspace *keyspace, const Slice &from, const Slice &to)
{
    std::vector<uint64_t> damaged = keyspace->closed.files();
    TRY(check_given_up(keyspace, from, to));
    rocksdb::Status s = compact_away(keyspace, from, to);
    if (s.IsCorruption()) { /* another one, that it came to from these */
        look_at_all(keyspace);
        TRY(check_given_up(keyspace, from, to));
        s = compact_away(keyspace, from, to);
    }
    /* A file that is alone is moved to the lowest level as it is, and there it is rewritten. */
    if (s.ok())
        s = compact_away(keyspace, from, to);
    TRY(after_compacting(s));
    return refresh_stand_ins(keyspace, damaged, from, to);
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

void keyspace_note_healed(keyspace *keyspace, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    keyspace->closed.note_healed(to_slice(from), to_slice(to));
}

/* In service again, for reads that begin from here on. Without memory compactions rest until damage
 * is looked at the next time. */
void keyspace_open_range(keyspace *keyspace, uint64_t file, bytes from, bytes to)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    store *store = keyspace->store;
    keyspace->closed.open(file, to_slice(from), to_slice(to), store->openings.fetch_add(1) + 1);
    status_ignore(guarded([&] {
        store->damage.opened(keyspace);
        return status_ok();
    }));
}

/* --- what was no damage of the disk's --- */

/* Whether the range is sound. Damaged blocks of a whole table's range have ranges of their own. */
static bool is_sound_in(const table_findings &findings, const struct store_damage *range)
{
    Slice from = to_slice(range->from), to = to_slice(range->to);
    auto is_apart = [&](const bad_block &block) {
        return to.compare(block.from) <= 0 || from.compare(block.to) >= 0;
    };
    return findings.whole.empty() &&
           (range->is_whole ||
            std::all_of(findings.blocks.begin(), findings.blocks.end(), is_apart));
}

static bool find_sound(const keyspace *keyspace, const struct store_damage *range)
{
    for (const auto &file : tables_of(keyspace)) {
        if (file.file_number != range->file)
            continue;
        table_findings findings;
        status s = look_at_table(
            keyspace->store->base_files.get(), file.db_path + file.name, file.size,
            [](uint64_t) { return true; }, false, &findings);
        bool is_known = status_is_ok(s);
        status_ignore(s);
        return is_known && is_sound_in(findings, range);
    }
    return false;
}

/* Whether the file is read through a stand-in, which it is until the next start. */
static bool has_stand_in(const keyspace *keyspace, const struct store_damage *range)
{
    std::shared_ptr<const stand_in> instead = keyspace->store->stand_ins->find(range->file);
    return instead != nullptr &&
           (instead->is_table() || (!range->is_whole && instead->has_block(range->offset)));
}

status keyspace_find_sound(keyspace *keyspace, const struct store_damage *range, bool *is_sound)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    *is_sound = false;
    return guarded([&] {
        keyspace->store->damage.look_for(range->file);
        *is_sound = find_sound(keyspace, range);
        if (*is_sound && has_stand_in(keyspace, range))
            return status_make(STATUS_FAILED_PRECONDITION,
                               "the table file %06llu.sst is sound again, but is not read before "
                               "the next start: restart the server, then repair",
                               (unsigned long long)range->file);
        return status_ok();
    });
}
