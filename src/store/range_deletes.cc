/* Range deletions, and why cursors must know whether there are any.
 *
 * RocksDB 7.8 walks several levels at once. Where one of them comes to the end of a file, or to a
 * key that a range deletion of its own level covers, it is moved on in a place
 * (table/merging_iterator.cc, SkipNextDeleted and SkipPrevDeleted) that forgets to ask why a level
 * has nothing more. A block that is not in the cache, when only the cache may be asked, or one that
 * cannot be read, then looks like the level's end: keys are missing, and the status is OK.
 * tests/issues/test_cached_scans_over_files.c tells how that was found.
 *
 * None of it runs in a cursor that is told to ignore range deletions, which is right where there
 * are none, and most keyspaces have none. So
 *  1. a cursor ignores them if it is known that there are none, before and after it is made (one
 *     that is written in between is announced here before it can be seen);
 *  2. else a cursor that may only ask the cache has nothing to say: it reports a miss at once, and
 *     the caller comes back with one that may ask the disk.
 *
 * A keyspace that is new has none. One that was there at start is looked at by the first cursor
 * that may wait: what the log gave back is flushed, and the properties of all tables tell. After a
 * compaction, which is what takes range deletions away, they are asked again. */
#include "store/internal.h"

using rocksdb::DB;

void range_deletes::add()
{
    count++;
    known = SOME;
}

/* What was written since has set SOME again. */
void range_deletes::end_compaction(uint64_t begun)
{
    if (count == begun && known == SOME)
        known = UNKNOWN;
}

static bool tables_have_some(keyspace *keyspace)
{
    rocksdb::TablePropertiesCollection tables;
    if (!keyspace->db->GetPropertiesOfAllTables(keyspace->handle, &tables).ok())
        return true;
    for (const auto &table : tables)
        if (table.second->num_range_deletions > 0)
            return true;
    return false;
}

static bool flush(keyspace *keyspace)
{
    return keyspace->db->Flush(rocksdb::FlushOptions(), keyspace->handle).ok();
}

/* One looks, the others need not wait: they do without. If it fails the next one looks again. */
void range_deletes::examine(struct keyspace *keyspace)
{
    std::unique_lock<std::mutex> lock(looking, std::try_to_lock);
    knowledge before = known;
    if (!lock.owns_lock() || before == NONE || before == SOME)
        return;
    uint64_t begun = count;
    if (before == RECOVERED && !flush(keyspace))
        return;
    knowledge found = tables_have_some(keyspace) ? SOME : NONE;
    if (count == begun)
        known.compare_exchange_strong(before, found);
}
