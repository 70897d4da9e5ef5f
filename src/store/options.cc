/* Every setting of RocksDB, and why. docs/internals/store.md has what was measured. */
#include "store/internal.h"
#include "store/rocksdb_versions.h"

#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/write_buffer_manager.h"

#include <algorithm>

using rocksdb::CompressionType;

enum : uint64_t {
    KiB = 1 << 10,
    MiB = 1 << 20,

    BLOCK_SIZE = 16 * KiB,
    FINE_BLOCK_SIZE = KiB,
    TABLE_SIZE = 64 * MiB,
    LEVEL_BASE = 256 * MiB,
    WRITE_BUFFER_MAX = 64 * MiB, /* of one keyspace */
    WRITE_BUFFER_BLOCK = 16 * KiB,
    LOG_MIN = 128 * MiB,
};

/* At least two compactions at a time: while one brings level 0 to the next level nothing else may
 * write that one, so what is below has to make room meanwhile, or level 0 grows until writes are
 * held back. Left alone RocksDB would give one of two threads to flushes. Where flushes and
 * compactions of large values wait for their turn (large_work.cc), and flushes for compactions,
 * those of other keyspaces have a thread to go on with. */
static void set_jobs(rocksdb::DBOptions *o, const store_options *options, store *store)
{
    o->max_background_jobs = std::max(options->background_threads, 2);
    o->max_background_compactions = o->max_background_jobs;
    o->max_background_flushes = store->large.is_bounded() ? 2 : 1;
}

rocksdb::DBOptions make_db_options(const store_options *options, store *store)
{
    rocksdb::DBOptions o;
    o.env = store->env.get();
    o.info_log = make_logger(options->log);
    o.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
    o.listeners.push_back(make_listener(store));

    /* Whether to make a store is decided by the FORMAT file (directory.cc). */
    o.create_if_missing = false;

    /* Any doubt about what is on the disk stops writes. */
    o.paranoid_checks = true;

    /* A power cut leaves a torn end, and with unsynced writes pages may be missing before the end:
     * replay stops there and what was recovered is a prefix of what was written. The stricter mode
     * (kTolerateCorruptedTailRecords) takes a record with holes for damage and would refuse to
     * start. What was synced and is not there is found by log_check.cc. */
    o.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
    /* A log that is missing, or shorter than it was when it was finished, is noticed. */
    o.track_and_verify_wals_in_manifest = true;
    /* A salvage takes what is whole. (RocksDB aborts if a store that is only read does not
     * want what the manifest tracks. Its mode that skips what is damaged fails on records of
     * several pieces: "Write batch content corrupted".) */
    if (store->log_verdict == STORE_LOG_LOST)
        o.track_and_verify_wals_in_manifest = options->read_only;
    /* Which directory it is stands in a file of its own, which a checkpoint does not copy: from the
     * manifest (9.10's default) a restored server would have the name of the one it was made of. */
    o.write_dbid_to_manifest = false;
    o.recycle_log_file_num = 0; /* a reused log's old records could pass for new ones */

    /* A thousand keyspaces with something in the log would write a thousand tables at each start.
     * They come back as write buffers instead. */
    o.avoid_flush_during_recovery = true;
    /* The log is replayed in full at a start: this bounds it. When it is reached, the keyspaces
     * with the oldest data are flushed. */
    o.max_total_wal_size = std::max<uint64_t>(2 * options->write_buffer_bytes, LOG_MIN);
    o.write_buffer_manager = store->write_buffers;

    /* One thread commits for all others (tablet/commit.h): concurrent inserts would only cost. */
    o.allow_concurrent_memtable_write = false;
    o.enable_write_thread_adaptive_yield = false;

    set_jobs(&o, options, store);
    o.max_open_files = options->open_files / 2; /* a table takes two: file_system.cc */
    o.table_cache_numshardbits = 4; /* 64 shards would be too small to hold what they should */
    o.max_file_opening_threads = 2;
    /* The file cannot be written, which is meant (file_system.cc), and from 8.0 on would be an
     * error. */
    o.fail_if_options_file_error = false;
    /* The check would refuse a table that has not the identity that the manifest gives it: one that
     * was put in another's place. But stand-ins (stand_in.cc) cannot have it, it holds for all
     * tables or none, and a level 0 with one table that is refused is not readable at all. Without
     * it there are the size, which a start compares, and the number that a table was written with,
     * which each look at it compares with its name (table_blocks.cc): doctor, scrub, and what
     * follows a read that failed. Tables that were taken in from elsewhere never had an
     * identity. */
    o.verify_sst_unique_id_in_manifest = false;
    skip_record_count(&o);
    /* These would read from every table at each start. */
    o.skip_stats_update_on_db_open = true;

    /* A thread that drops an iterator or a version deletes no files: event loops drop some. */
    o.avoid_unnecessary_blocking_io = true;
    o.bytes_per_sync = MiB; /* tables go to the disk while they are written, not in one burst */

    o.statistics = make_block_watch();

    /* No statistics in the background, into the log or into a keyspace of its own. */
    o.stats_dump_period_sec = 0;
    o.stats_persist_period_sec = 0;
    return o;
}

std::shared_ptr<rocksdb::TableFactory> make_table_factory(std::shared_ptr<rocksdb::Cache> cache,
                                                          enum table_form form)
{
    rocksdb::BlockBasedTableOptions o;
    o.block_cache = std::move(cache);
    o.block_size = form == TABLE_OF_FEW ? FINE_BLOCK_SIZE : BLOCK_SIZE;
    o.format_version = 5;
    o.checksum = rocksdb::ChecksumType::kXXH3;
    if (form != TABLE_OF_LOG) { /* which is read in order, and its keys have no sections */
        o.flush_block_policy_factory = make_section_blocks();
        o.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    }

    /* Indexes and filters are charged to the cache, or memory would grow with the data. Those of
     * level 0, which every read passes, stay. */
    o.cache_index_and_filter_blocks = true;
    o.cache_index_and_filter_blocks_with_high_priority = true;
    o.pin_l0_filter_and_index_blocks_in_cache = true;
    return std::shared_ptr<rocksdb::TableFactory>(rocksdb::NewBlockBasedTableFactory(o));
}

/* What tells a keyspace of rows from others. */
static void set_for_rows(rocksdb::ColumnFamilyOptions *o, const store *store,
                         const std::shared_ptr<folder> &folder)
{
    o->table_factory = store->tables;
    if (store->fold != nullptr && store->fold->owner != nullptr)
        o->table_properties_collector_factories.push_back(
            make_weight_collector(store->fold->owner));
    if (folder != nullptr) {
        o->merge_operator = make_merge_operator(folder);
        o->compaction_filter_factory = make_compaction_filter(folder);
    }
    o->disable_auto_compactions = store->no_compactions;
}

/* What is written stays as it is until the keyspace goes. Its tables all stay at level 0, as many
 * as come: without compactions RocksDB holds no writes back for their number, nor for what would
 * have to be compacted, which is set here all the same. */
static void set_for_log(rocksdb::ColumnFamilyOptions *o, const store *store)
{
    enum { NEVER = 1 << 30 };
    o->table_factory = store->log_tables;
    o->disable_auto_compactions = true;
    o->level0_file_num_compaction_trigger = NEVER;
    o->level0_slowdown_writes_trigger = NEVER;
    o->level0_stop_writes_trigger = NEVER;
    o->soft_pending_compaction_bytes_limit = 0; /* none */
    o->hard_pending_compaction_bytes_limit = 0;
}

rocksdb::ColumnFamilyOptions make_keyspace_options(const store *store, enum keyspace_kind kind,
                                                   std::shared_ptr<folder> folder)
{
    rocksdb::ColumnFamilyOptions o;
    if (kind == KEYSPACE_LOG)
        set_for_log(&o, store);
    else
        set_for_rows(&o, store, folder);
    o.memtable_factory = store->memtables;
    o.table_properties_collector_factories.push_back(make_section_collector());

    /* A write buffer takes memory in blocks of this size: the default, an eighth of the buffer,
     * would be 1 MiB for each keyspace that was touched. */
    o.arena_block_size = WRITE_BUFFER_BLOCK;
    o.write_buffer_size =
        std::min<uint64_t>(store->write_buffers->buffer_size() / 2, WRITE_BUFFER_MAX);
    /* Each is full, or as large as one batch, and four of a keyspace that wait for a slow disk
     * would be several times what all keyspaces' together may have. Where memory is bounded one is
     * filled, and two wait; then writes wait, too. */
    o.max_write_buffer_number = store->large.is_bounded() ? 2 : 4;

    o.compression = CompressionType::kLZ4Compression;
    o.compaction_style = rocksdb::CompactionStyle::kCompactionStyleLevel;
    o.level_compaction_dynamic_level_bytes = true;
    o.target_file_size_base = TABLE_SIZE;
    o.max_bytes_for_level_base = LEVEL_BASE;
    return o;
}
