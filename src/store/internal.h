/* What the files of this folder share; no other folder includes it.
 *
 * Rules of this folder
 *  1. RocksDB throws std::bad_alloc and is not safe against exceptions that pass through it. So
 *     nothing that it calls back throws, and every function of store.h that calls it catches
 *     (`guarded`). After an exception out of DB::Write its queue of writers is in an unknown state:
 *     the store is fenced and never writes again.
 *  2. Debian's library has no type information: what derives from its classes is compiled with
 *     -fno-rtti.
 *  3. Debian's library keeps its assertions. Those that a caller can meet, and what meets them:
 *       - a batch that cannot grow: batch.cc gives it room first;
 *       - closing with a handle, an iterator or a snapshot alive aborts: store.h asks for their
 *         release, and store_close releases the handles itself;
 *       - Resume() asserts that a failed manifest was given up and that files were kept: true
 *         unless file deletions are enabled, which no code here does;
 *       - a write that names a dropped keyspace: forbidden by store.h;
 *       - SyncWAL after a log could not be written or synced: leave_logs_scope, and store_close
 *         asks whether the store is fenced;
 *       - sealing a write buffer with deleted ranges a second time, after a log that failed: what
 *         asks RocksDB for a flush asks first whether the store is fenced. */
#ifndef TRESTLE_STORE_INTERNAL_H
#define TRESTLE_STORE_INTERNAL_H

/* The layers below are C and their headers do not know of C++. */
extern "C" {
#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "store/store.h"
}

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

#include "store/full_buffers.h"
#include "store/lock_file.h"

enum store_magic : uint32_t {
    STORE_MAGIC = 0x53746f72,
    KEYSPACE_MAGIC = 0x4b657973,
    BATCH_MAGIC = 0x42617463,
    CURSOR_MAGIC = 0x43757273,
};

/* --- trouble.cc: why writes are refused, and telling it --- */

/* A fence never ends, nor does a seal. Lack of space does, and has two sources: no room in the log,
 * and background work (a flush, a new log) that RocksDB has stopped writes for. */
class trouble {
  public:
    explicit trouble(const store_options *options);

    void fence(const std::string &what);
    void seal(const std::string &what); /* nothing has failed, and nothing is to be written */
    void log_is_full(bool is_full);
    void background_is_full(bool is_full);
    void lacks_memory(bool lacks); /* to write a table of what is in write buffers */

    bool is_fenced() const { return fenced.load(std::memory_order_acquire); }
    bool is_sealed() const { return sealed.load(std::memory_order_acquire); }
    bool is_log_full() const { return log_full.load(std::memory_order_acquire); }
    bool is_background_full() const { return background_full.load(std::memory_order_acquire); }
    bool does_lack_memory() const { return no_memory.load(std::memory_order_acquire); }
    status health() const; /* OK, or why writes are refused */

  private:
    void tell(status_code code, const char *what);
    void change(std::atomic<bool> *flag, bool is_so, const char *what, const char *over);

    const struct log *const log;
    void (*const listener)(void *, status_code, const char *);
    void *const listener_context;
    std::atomic<bool> fenced{false};
    std::atomic<bool> sealed{false};
    std::atomic<bool> log_full{false};
    std::atomic<bool> background_full{false};
    std::atomic<bool> no_memory{false};
    mutable std::mutex mutex; /* of `why` */
    std::string why;          /* it is fenced, or sealed */
};

/* The one place that turns RocksDB's statuses into ours. */
status status_from(const rocksdb::Status &s);

/* --- words.cc: what RocksDB says, in the server's words --- */

/* What a text of RocksDB's says of a file; empty: nothing that is known. */
std::string words_of(const std::string &text);
std::string words_of(const rocksdb::Status &s); /* or its own words */

/* A line of its log. */
struct store_line {
    const char *theirs; /* what stands in it */
    const char *ours;   /* the message; NULL: no news */
};
store_line line_in_words(const std::string &text);
std::string cause_in_words(const std::string &text); /* empty: not known */

/* Runs `work`, which returns a status, and turns an exception into one. */
template <typename function> status guarded(function work)
{
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return status_out_of_memory();
    } catch (const std::exception &e) {
        return status_make(STATUS_INTERNAL, "store: %s", e.what());
    }
}

/* --- fold.cc --- */

/* A keyspace's fold and the rules it uses at present. RocksDB shares it with everything that may
 * still fold for the keyspace, also after its drop; `gone` is fulfilled when the last of them has
 * let go. */
struct folder {
    folder(const store_fold *fold_, const void *before_, std::promise<void> gone_)
        : fold(fold_), before(before_), gone(std::move(gone_))
    {
    }
    ~folder() { gone.set_value(); }

    const store_fold *const fold;
    const void *const before; /* store_fold's, or nullptr */
    std::atomic<const void *> rules{nullptr};
    std::promise<void> gone;
};

/* Counts the operands that the present thread folds while it lives. Watches do not nest. */
class fold_watch {
  public:
    fold_watch();
    struct store_folded folded() const;
};

/* Whether it was memory that a fold of the present thread lacked, which RocksDB calls damage: since
 * a watch of it, or forget_folds, began. */
bool is_lack_of_memory(const rocksdb::Status &s);
void forget_folds();

/* The folds of the present thread use these rules for as long as it lives, unless they are NULL.
 * Scopes do not nest. */
class rules_scope {
  public:
    explicit rules_scope(const void *rules);
    ~rules_scope();
};

std::shared_ptr<rocksdb::MergeOperator> make_merge_operator(std::shared_ptr<folder> folder);
std::shared_ptr<rocksdb::CompactionFilterFactory>
make_compaction_filter(std::shared_ptr<folder> folder);

/* --- log_file.cc --- */

class log_file;
class log_tracker; /* log_ends.h */
struct write_mark;

/* The size of a batch in the log: a header before each piece of at most 32 KiB. */
static inline uint64_t log_record_size(uint64_t batch_size)
{
    return batch_size + 16 * (batch_size / (32 << 10) + 2);
}

/* Room on the disk for what is about to be appended to the write-ahead log. */
class log_room : public std::enable_shared_from_this<log_room> {
  public:
    log_room(std::shared_ptr<log_tracker> tracker_, struct metrics *metrics_)
        : tracker(std::move(tracker_)), metrics(metrics_)
    {
    }

    /* Before a batch of that size is written; NoSpace: there is none. */
    rocksdb::IOStatus take(uint64_t bytes);
    void give_back(uint64_t bytes); /* after it, whatever came of it */

    /* Wraps the file of a new log, to which everything is appended from now on. */
    void new_log(const std::string &name, std::unique_ptr<rocksdb::FSWritableFile> *file);

    const std::shared_ptr<log_tracker> tracker;
    struct metrics *const metrics; /* of syncs; may be NULL */
    std::atomic<uint64_t> syncs{0};

  private:
    friend log_file;
    void begin(log_file *file);
    void forget(const log_file *file);

    std::mutex mutex;
    log_file *current = nullptr;
    uint64_t under_way = 0; /* bytes taken and not yet given back */
};

/* Calls of RocksDB by the present thread sync no log, for as long as it lives: to list the files
 * 7.8 does (9.10 does not), and Debian's build aborts if another thread's write or flush has just
 * failed to write to a log or to sync one, which may be before that is told. They do not nest. */
class leave_logs_scope {
  public:
    leave_logs_scope();
    ~leave_logs_scope();
};

/* --- log_scan.cc --- */

/* What store_write puts at the end of each batch: one letter, in the log only. */
enum : char { LOG_MARK_SYNCED = 'S', LOG_MARK_ASYNC = 'A' };

static inline bool is_log_name(const std::string &name)
{
    return name.size() > 4 && name.compare(name.size() - 4, 4, ".log") == 0;
}

/* --- stand_in.cc --- */

struct bad_block;

/* Of one file: a table, or blocks of it. Does not change once others see it. */
struct stand_in {
    uint64_t size = 0;        /* of the file, if it stands for all of it */
    std::string table;        /* empty: only blocks */
    bool is_for_good = false; /* what it stands for is given up: compactions may read through it */
    std::vector<std::pair<uint64_t, std::string>> blocks; /* by their offsets, with trailers */

    bool is_table() const { return !table.empty(); }
    bool has_block(uint64_t offset) const;
    void read_table(uint64_t offset, size_t count, char *out) const;
    /* Puts empty blocks over those of them that were read. */
    void cover(uint64_t offset, size_t count, char *out) const;

  private:
    static void overlay(uint64_t offset, size_t count, char *out, uint64_t at,
                        const std::string &piece);
};

/* By the numbers of files. Any thread; free of cost while there are none. */
class stand_ins {
  public:
    status put_table(uint64_t file, uint64_t size, const std::string &smallest, bool is_for_good);
    void put_blocks(uint64_t file, const std::vector<bad_block> &blocks); /* for good */
    void remove(uint64_t file);
    std::shared_ptr<const stand_in> find(uint64_t file) const; /* NULL: none */

  private:
    void put(uint64_t file, std::shared_ptr<const stand_in> made);

    mutable std::shared_mutex mutex; /* of `by_file` */
    std::unordered_map<uint64_t, std::shared_ptr<const stand_in>> by_file;
    std::atomic<size_t> count{0};
};

/* "/a/b/000012.sst": 12; 0: no table. */
uint64_t table_number(const std::string &path);

/* --- file_system.cc --- */

/* `base` as RocksDB gets to see it. */
std::shared_ptr<rocksdb::FileSystem>
make_file_system(std::shared_ptr<rocksdb::FileSystem> base, std::shared_ptr<log_room> room,
                 std::shared_ptr<const class stand_ins> stand_ins,
                 std::shared_ptr<class open_tables> open_tables);

/* Watches what the present thread reads from files for as long as it lives: cursors cannot rely on
 * RocksDB to tell (read.cc). Watches do not nest. */
class read_watch {
  public:
    explicit read_watch(enum store_read_tier read_tier);
    ~read_watch();

    bool was_refused() const; /* under STORE_READ_CACHED: it would have had to wait */
    bool has_failed() const;  /* the disk failed */
    /* A table or a block of one could not be made out; only of reads that fill the cache. */
    bool has_met_damage() const;
};

/* Whether the present thread must not wait for the disk: what it reads comes from memory. */
bool thread_keeps_to_memory();
/* Its watch takes note that it would have had to wait, for something other than a file. */
void note_refusal();
/* Whether its watch has seen anything so far that ends a read. */
bool thread_has_met_trouble();
/* On RocksDB's own threads, which have no watch: whether a table could not be opened or read since
 * the last call of forget_reads. */
bool thread_could_not_read();
void forget_reads();

/* While RocksDB puts together an iterator over level 0 with range tombstones (level0.cc); others
 * than `is_over_tombstones` do nothing. Within a read_watch. Scopes do not nest. */
class merging_scope {
  public:
    explicit merging_scope(bool is_over_tombstones);
    ~merging_scope();
    bool has_opened() const; /* a table, or tried to */
};
/* Whether the present thread is in such a scope: for fault_fs. */
bool thread_is_merging();

/* What the present thread deletes stays, for as long as it lives. An ingestion whose record could
 * not be synced deletes its tables, although the manifest may name them: the store would not open.
 * A table that no manifest names goes at the next start. Scopes do not nest. */
class keep_files_scope {
  public:
    keep_files_scope();
    ~keep_files_scope();
};

/* For DBOptions.statistics: what read_watch learns of blocks. */
std::shared_ptr<rocksdb::Statistics> make_block_watch();

/* What the refusal to remove a log says while a salvage is not finished, and RocksDB then says in
 * its log: the next start removes it. */
extern const char NO_REMOVAL[];

/* What the refusal to write an options file says, and RocksDB then says in its log. */
extern const char NO_OPTIONS_FILE[];

/* --- level0.cc: its head says what for --- */

/* Level 0 of one keyspace. */
class level0 {
  public:
    level0(rocksdb::DB *db, rocksdb::ColumnFamilyHandle *handle);

    /* NULL: a table of level 0 is not to be had; the thread's watch knows whether it was refused,
     * could not be read, or is damaged. If it knows of nothing, the disk hangs. */
    std::unique_ptr<rocksdb::Iterator> make_iterator(const rocksdb::ReadOptions &options);

    /* From the end of a table until it is listed in level 0, or given up. */
    void begin_arrival(bool deletes_ranges);
    void end_arrival();
    /* Before the keyspace goes, or when it has other tables: what is held is not the latest. */
    void let_go();

  private:
    enum knowledge { UNKNOWN, PLAIN, HELD };

    std::shared_lock<std::shared_mutex> enter();
    std::unique_lock<std::shared_mutex> close_gate();
    bool wait_for_arrivals(std::shared_lock<std::shared_mutex> *lock);
    bool is_known();
    bool look();
    std::unique_ptr<rocksdb::Iterator> forget();

    rocksdb::DB *const db;
    rocksdb::ColumnFamilyHandle *const handle;
    std::shared_mutex gate;
    std::mutex door; /* of a thread that waits for `gate` exclusively; taken before it */
    std::atomic<bool> closing{false};
    std::condition_variable_any arrived; /* with `gate` */
    unsigned arriving = 0;               /* changes under `gate` */
    std::mutex looking;                  /* at level 0, under `gate` shared */
    std::atomic<knowledge> state{UNKNOWN};
    std::unique_ptr<rocksdb::Iterator> held; /* all tables, if HELD */
};

/* Level 0 of all keyspaces; told by the listener. */
class level0_list {
  public:
    void add(const std::string &name, std::shared_ptr<level0> one);
    void remove(const std::string &name);

    /* On the thread of the flush or compaction that makes it. */
    void table_made(const std::string &name, const std::string &path, bool deletes_ranges);
    void table_finished(const std::string &path); /* listed, or deleted; any table */
    void job_failed();
    void compaction_begun(int output_level);
    void compaction_done(const std::string &name);

  private:
    std::shared_ptr<level0> find(const std::string &name);
    void note_arrival(uint64_t number, const std::shared_ptr<level0> &at);
    void table_finished(uint64_t number);

    std::mutex mutex; /* of both */
    std::unordered_map<std::string, std::shared_ptr<level0>> by_name;
    std::vector<std::pair<uint64_t, std::shared_ptr<level0>>> arriving;
};

/* --- block_cache.cc --- */

std::shared_ptr<rocksdb::Cache> make_block_cache(size_t capacity);

/* Blocks that were looked for in such a cache, and how many were there. */
struct cache_lookups {
    uint64_t hits;
    uint64_t misses;
};
struct cache_lookups count_cache_lookups(const rocksdb::Cache *cache);

/* --- environment.cc --- */

/* The files, a cheaper clock than the system's, and threads. */
class environment final : public rocksdb::EnvWrapper {
  public:
    /* `holds`: no compaction runs before begin_compactions. RocksDB sleeps at most so long. */
    environment(const std::shared_ptr<rocksdb::FileSystem> &files, bool holds,
                uint64_t longest_sleep_us);

    void begin_compactions();

    void Schedule(void (*run)(void *), void *argument, Priority priority, void *tag,
                  void (*discard)(void *)) override;
    int UnSchedule(void *tag, Priority priority) override;

  private:
    struct job {
        void (*run)(void *);
        void *argument;
        void *tag;
        void (*discard)(void *);
    };

    std::mutex mutex;
    bool is_holding;
    std::vector<job> held; /* in the order they came */
};

/* --- listener.cc --- */

struct store_counters {
    std::atomic<uint64_t> bytes_written{0}; /* by flushes and compactions */
    std::atomic<uint64_t> flushes{0};
    std::atomic<uint64_t> flushed_bytes{0};
    std::atomic<uint64_t> compactions{0};
    std::atomic<uint64_t> compaction_us{0};
    std::atomic<uint64_t> compaction_read_bytes{0};
    std::atomic<uint64_t> compaction_written_bytes{0};
    std::atomic<uint64_t> slowdowns{0};
    std::atomic<uint64_t> stops{0};
    std::atomic<uint64_t> hungry{0}; /* compactions that lacked memory to put a row together */
};

/* --- large_work.cc: its head says what for --- */

class large_work {
  public:
    large_work(struct store *store, const store_options *options);

    bool is_bounded() const { return listener != nullptr; }
    void expect(const std::string &keyspace);

    /* Before there are compactions: level 0 of each keyspace, table by table. large_start.cc. */
    status compact_at_start();

    /* On the thread that does the job; may wait. */
    void flush_begins(const std::string &keyspace);
    void compaction_begins(const rocksdb::CompactionJobInfo &job);
    void end(); /* of the thread's job, if it is a large one */

    void close();  /* no job waits from now on */
    void closed(); /* no job is left: RocksDB tells the end of none that it gave up */

  private:
    bool expects(const std::string &keyspace);
    void begin(const std::string &flushed);
    void await_turn(const std::string &flushed);
    bool is_crowded(const std::string &keyspace);

    struct store *const store;
    const struct log *const log;
    void (*const listener)(void *, enum store_large_work);
    void *const context;
    const uint64_t most;               /* bytes of a value */
    std::mutex mutex;                  /* of the next four */
    std::set<std::thread::id> running; /* whose jobs do; RocksDB's threads outlive a store */
    uint64_t ended = 0;                /* jobs, so far */
    bool is_closing = false;
    std::set<std::string> expected; /* keyspaces */
    std::condition_variable over;
};

/* Whether a table has values of STORE_LARGE_VALUE and more: as it says, or as its blocks do. */
bool has_large_values(const rocksdb::TableProperties &table);

std::shared_ptr<rocksdb::EventListener> make_listener(struct store *store);
std::shared_ptr<rocksdb::Logger> make_logger(const struct log *log);

/* --- table_blocks.cc --- */

/* Keys from `from`, or the file's first if that is empty, up to but not including `to`. */
struct bad_block {
    uint64_t offset = 0;
    uint64_t size = 0; /* without its trailer */
    std::string from;
    std::string to;
    std::string last;        /* a key as tables have it, which may be the block's last */
    bool is_deleted = false; /* all of it, since: damage.cc, where it is looked for */
};

struct table_findings {
    std::string whole; /* why nothing in the file can be trusted; empty: the blocks tell */
    std::vector<bad_block> blocks;
    bool is_unreadable = false; /* the disk failed, which may be well again: no bytes are wrong */
    bool is_sound() const { return whole.empty() && blocks.empty(); }
};

/* --- sections.cc --- */

/* For tables that are written: blocks end where sections do, or when they are full, by RocksDB's
 * rule; and the table says which its sections are. */
std::shared_ptr<rocksdb::FlushBlockPolicyFactory> make_section_blocks();
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_section_collector();

/* The first and the last key of those in a table that begin with the same byte. */
struct table_section {
    std::string first;
    std::string last;
};

/* As a table's properties say; none of a table from before they did. */
std::vector<table_section> sections_of(const std::map<std::string, std::string> &properties);

/* The size of the largest value. False, and 0, of a table from before they said it. */
bool largest_told(const std::map<std::string, std::string> &properties, uint64_t *size);

/* The block has no keys but the sections'. */
void clip_to_sections(const std::vector<table_section> &sections, bad_block *block);

/* --- weights.cc --- */

/* For tables that are written: they say whose values take most. NULL: none are weighed. */
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory>
    make_weight_collector(size_t (*owner)(bytes key));

/* --- table_blocks.cc, further --- */

/* Called after each block with its size; false ends the look with CANCELLED. */
using table_pacer = std::function<bool(uint64_t)>;

/* Reads a table of that size from end to end; without a pacer, only whether it can be opened;
 * directly, past the kernel's cache, if that is possible. A failure means that nothing is known of
 * it; what is wrong with it is found, and no failure. */
status look_at_table(rocksdb::FileSystem *files, const std::string &path, uint64_t size,
                     const table_pacer &pacer, bool is_direct, table_findings *out);

/* Keys from `from` up to but not including `to` are deleted, as they were before that sequence
 * number. */
struct deleted_range {
    std::string from;
    std::string to;
    uint64_t sequence;
    bool operator==(const deleted_range &other) const
    {
        return from == other.from && to == other.to && sequence == other.sequence;
    }
};

/* What a table says of itself, for an opening without a manifest. Keys are as tables have them,
 * with their sequence numbers. */
struct table_summary {
    bool has_family = false; /* it was written for a keyspace of the store's, not taken in */
    uint32_t family = 0;     /* RocksDB's number for that */
    std::string family_name;
    bool has_keys = false; /* and not only deleted ranges */
    std::string smallest;
    std::string largest;
    uint64_t least_sequence = UINT64_MAX; /* of keys */
    uint64_t greatest_sequence = 0;
    std::vector<deleted_range> deleted;
};

/* Reads a table from end to end. Of damaged blocks the summary knows the keys between which they
 * are, no sequence numbers; of a table that is damaged as a whole it says nothing. */
status summarize_table(rocksdb::FileSystem *files, const std::string &path, uint64_t size,
                       table_summary *summary, table_findings *findings);

#include "store/damage_watch.h"
#include "store/memtable.h"

/* --- options.cc --- */

rocksdb::DBOptions make_db_options(const store_options *options, store *store);
enum table_form { TABLE_OF_ROWS, TABLE_OF_FEW, TABLE_OF_LOG };
std::shared_ptr<rocksdb::TableFactory> make_table_factory(std::shared_ptr<rocksdb::Cache> cache,
                                                          enum table_form form);
rocksdb::ColumnFamilyOptions make_keyspace_options(const store *store, enum keyspace_kind kind,
                                                   std::shared_ptr<folder> folder);

/* --- directory.cc: the FORMAT file --- */

enum : unsigned long {
    FORMAT_VERSION = 9,     /* the present one */
    FORMAT_WITH_SYNCED = 2, /* the first that has the file SYNCED */
};

struct directory_state {
    unsigned long format = 0;     /* of the store there; 0: there is none yet */
    bool has_lost_format = false; /* and it is to be made again */
};

/* Makes the directory and says what is there. Nothing is changed if there is a store. A FORMAT that
 * is missing or damaged is passed over by a salvage alone. */
status directory_examine(rocksdb::FileSystem *files, const store_options *options,
                         directory_state *out);
/* Marks the directory as a complete store of the present format, durably. */
status directory_mark(rocksdb::FileSystem *files, const std::string &directory);
rocksdb::IOStatus sync_directory(rocksdb::FileSystem *files, const std::string &directory);

/* With the files that are in it; there are no directories. OK if it is not there. files.cc. */
status remove_flat_directory(rocksdb::FileSystem *files, const std::string &path);

/* So many bytes of a file, from its beginning, as a new one; Corruption if there are fewer.
 * checkpoint.cc. */
rocksdb::IOStatus copy_first_bytes(rocksdb::FileSystem *files, const std::string &from,
                                   const std::string &to, uint64_t size, bool syncs);

bool directory_is_locked(rocksdb::FileSystem *files, const std::string &directory);

/* --- the objects --- */

struct keyspace {
    uint32_t magic = KEYSPACE_MAGIC;
    uint64_t id;
    enum keyspace_kind kind;
    struct store *store;
    rocksdb::DB *db;
    rocksdb::ColumnFamilyHandle *handle;
    std::shared_ptr<struct folder> folder; /* RocksDB holds on to it, too */
    std::shared_ptr<class level0> level0;
    class closed_ranges closed;
    std::mutex compacting;                   /* of changes of the next */
    std::atomic<bool> is_left{false};        /* it is not compacted at present: damage.cc */
    std::atomic<bool> is_interrupted{false}; /* what keyspace_compact does: ends soon. upkeep.cc */
    std::atomic<bool> expects_large{false};  /* large_work.cc */
    std::future<void> folder_gone; /* ready when nobody can fold for the keyspace any more */
    std::shared_ptr<write_mark> mark;
    std::atomic<uint64_t> waste{0};
};

struct store {
    store(const store_options *options, std::shared_ptr<rocksdb::FileSystem> base,
          uint64_t sleep_us);

    uint32_t magic = STORE_MAGIC;
    std::string directory;
    const store_fold *fold;
    const void *fold_before; /* what folds go by before there are rules */
    bool read_only;
    bool no_compactions;
    class trouble trouble;
    store_counters counters;
    level0_list levels0;
    class large_work large;
    full_buffers full;
    damage_watch damage;
    std::atomic<uint64_t> openings{0}, waste{0}; /* of damaged ranges; of all keyspaces */
    std::atomic<bool> is_interrupted{false};     /* those that keyspace_compact asks for */
    std::shared_ptr<rocksdb::Cache> cache;
    std::shared_ptr<rocksdb::WriteBufferManager> write_buffers;
    std::shared_ptr<log_tracker> logs;
    enum store_log_verdict log_verdict = STORE_LOG_WHOLE;
    std::string log_words; /* what is not whole */
    bool is_salvaging = false;
    bool has_lost_manifest = false; /* found at the opening, which failed for it */
    std::string old_data;           /* old_data.h: what there is to say of it; empty: it is none */
    bool is_out_of_order = false;   /* tables do not tell which entry is the newest */
    struct store *origin = nullptr; /* of old data: has the lock of the directory */
    std::shared_ptr<log_room> room;
    std::shared_ptr<class stand_ins> stand_ins;
    std::shared_ptr<class open_tables> open_tables;
    std::shared_ptr<rocksdb::FileSystem> base_files; /* as the disk has them */
    std::shared_ptr<rocksdb::FileSystem> files;      /* as RocksDB sees them */
    const uint64_t longest_sleep_us;                 /* of RocksDB's threads */
    std::unique_ptr<environment> env;
    std::shared_ptr<rocksdb::TableFactory> tables;
    std::shared_ptr<rocksdb::TableFactory> log_tables;
    std::shared_ptr<rocksdb::TableFactory> fine_tables; /* of that keyspace: */
    const uint64_t fine_keyspace;
    std::shared_ptr<rocksdb::MemTableRepFactory> memtables;
    rocksdb::FileLock *lock = nullptr; /* of the directory */
    lock_file lock_name;               /* its file, which somebody may remove */
    rocksdb::DB *db = nullptr;
    rocksdb::ColumnFamilyHandle *default_handle = nullptr; /* RocksDB insists on having one */

    mutable std::shared_mutex mutex; /* of the two below */
    std::vector<std::unique_ptr<keyspace>> keyspaces;
    std::unordered_map<uint64_t, keyspace *> by_id;

    std::mutex resuming; /* by one at a time, after a flush that lacked memory */

    std::mutex making; /* of keyspaces, one caller at a time; taken before `mutex` */
    std::vector<rocksdb::ColumnFamilyHandle *> leftovers; /* of failed creations; under `making` */

    /* Of the files IDENTITY and FORMAT; 0: any: own_files.cc. */
    std::atomic<uint64_t> identity_inode{0};
    std::atomic<uint64_t> format_inode{0};
    std::atomic<bool> doubts_current{false}; /* CURRENT was written, and may not be durable */
};

struct store_snapshot {
    rocksdb::DB *db;
    const rocksdb::Snapshot *snapshot;
    uint64_t openings; /* of the store's damaged ranges, before */
};

struct store_batch {
    uint32_t magic = BATCH_MAGIC;
    bool failed = false; /* something could not be appended */
    rocksdb::WriteBatch batch;
    std::vector<batch_key> keys; /* the first of what it puts, merges and deletes */
};

static inline rocksdb::Slice to_slice(bytes b)
{
    return rocksdb::Slice(reinterpret_cast<const char *>(b.data), b.size);
}

static inline bytes from_slice(const rocksdb::Slice &s)
{
    return bytes_make(s.data(), s.size());
}

/* OK, or why it is fenced. */
status check_unfenced(const store *store);
/* After a change of what they are interrupted for. */
void interrupt_compactions(keyspace *keyspace);

/* OK, or why nothing can be changed at present. */
status check_writable(store *store);

/* The part of store_open after the file system is there and the object is made. */
status open_directory(store *store, const store_options *options);

/* store_open on a file system of the caller's, for tests, where RocksDB sleeps at most so long. */
status store_open_on(const store_options *options, std::shared_ptr<rocksdb::FileSystem> files,
                     uint64_t longest_sleep_us, store **out);

#endif
