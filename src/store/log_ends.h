/* How far each write-ahead log was synced, kept where the log cannot lie about it: in the file
 * SYNCED beside the logs.
 *
 * A log alone does not tell a write that a power cut tore from synced writes that were damaged or
 * taken away later: both end in something broken, or just end. SYNCED tells them apart.
 *
 * Invariants
 *  1. A length is recorded only when a sync of the log that far has returned, and a log only when
 *     its name is durable as well. So SYNCED may be older than the logs, never newer: what it
 *     names was on the disk.
 *  2. No commit waits for SYNCED. A thread of its own writes it, at most every 100 ms while there
 *     are syncs (log_tracker), and once more at an orderly end. The making of a keyspace waits:
 *     without the manifest nothing else says whose rows the logs have.
 *  3. A log leaves SYNCED, durably, before it is deleted. So a recorded log that is not there was
 *     not deleted by us.
 *  4. Of the logs of a former run, which are not appended to any more, SYNCED has the end that a
 *     start has found: what is behind that has been told once, and is no news.
 *  5. SYNCED is overwritten in place, one of two slots after the other: it needs no space on a full
 *     disk, and a torn write leaves the other slot.
 *  6. A salvage (salvage.cc) changes neither SYNCED nor the logs before all that it took from them
 *     is in tables and the layers above have settled what they miss: one that is killed before that
 *     begins again, and finds what the first has found.
 *
 * log_scan.cc finds the ends, synced_file.cc reads and writes SYNCED, log_tracker.cc keeps it,
 * log_check.cc holds the one against the other when a store opens, salvage.cc opens it all the
 * same. The manifest, which says what tables there are, is kept account of in the same way:
 * manifest.cc. own_files.cc looks whether all of these are still there while the store is open. */
#ifndef TRESTLE_STORE_LOG_ENDS_H
#define TRESTLE_STORE_LOG_ENDS_H

#include "store/internal.h"

#include <map>
#include <thread>

/* --- log_scan.cc: what a log has --- */

/* Bytes of which nothing can be read, from the end of one whole commit to the beginning of the
 * next, or to the end. */
struct log_gap {
    uint64_t from;
    uint64_t to;
    uint64_t changes; /* that were there, by the number of the next commit; 0: not known */
};

struct log_scan {
    uint64_t number = 0;
    uint64_t size = 0;           /* bytes of the file */
    uint64_t end = 0;            /* of the last commit before anything broken */
    uint64_t damage = 0;         /* where the first broken piece is, if there is one */
    uint64_t commits_behind = 0; /* whole commits behind it, within the two bounds below */
    std::vector<log_gap> gaps;   /* the same */
    bool is_damaged = false;     /* there is a broken piece */
    /* A power cut cannot have broken it: behind it there are a whole synced commit and the
     * beginning of another. */
    bool is_proven = false;
    bool ends_unsynced = false; /* the last commit before `end` did not ask for a sync */

    bool is_manifest = false; /* set by the caller: its records are no commits of ours */
    /* Sequence numbers of the commits before `end`: the first, and the one after the last. 0: there
     * are none. */
    uint64_t first = 0;
    uint64_t next = 0;
    uint64_t first_whole = 0; /* the first of any commit that is whole */
    uint64_t largest = 0;     /* bytes of the largest commit that is */

    /* Of what is behind a broken piece that alone counts which ends at this byte at the latest, and
     * whose sequence numbers are all less than this: the rest was dropped by a former start, and
     * the numbers were given again. */
    uint64_t most = UINT64_MAX;
    uint64_t below = UINT64_MAX;

    /* The commit at `end`, which is whole, has a sequence number that this log had before. What
     * comes from there on counts as damaged. 0: none has. */
    uint64_t twin = 0;
};

struct synced_record;

/* Scans the directory's logs, by rising number, with `most`, `below` and `twin`. */
rocksdb::IOStatus scan_logs(rocksdb::FileSystem *files, const std::string &directory,
                            const synced_record &recorded, std::vector<log_scan> *out);

/* Gets the records, which are batches, also those behind something broken. */
using log_visitor = std::function<void(const std::string &record)>;

/* `out` has number and bounds. */
rocksdb::IOStatus scan_log(rocksdb::FileSystem *files, const std::string &path, log_scan *out,
                           const log_visitor &visit = nullptr);

/* What of a log is known, without what was found in it: for a second look at it. */
log_scan bounds_of(const log_scan &scan);

/* --- log_salvage.cc --- */

/* The log as RocksDB gets to see it of which that was found: all its whole commits within the
 * bounds, one after the other, as if they alone had been written. */
std::unique_ptr<rocksdb::FSSequentialFile>
salvage_log(std::unique_ptr<rocksdb::FSSequentialFile> log, const log_scan &scan);

std::string log_name(uint64_t number);                          /* 000011.log */
bool parse_log_name(const std::string &name, uint64_t *number); /* false: not a log's */

/* --- synced_file.cc: the file --- */

struct synced_log {
    uint64_t number;
    uint64_t length; /* at least so many bytes were synced */
    bool is_ended;   /* nothing is appended any more, and what is behind `length` is no news */
};

/* A keyspace whose writes may be in logs from the oldest up to and including that one. */
struct logged_table {
    uint64_t keyspace_id;
    uint64_t last_log;
    std::string name;
};

struct keyspace_identity {
    uint64_t id;
    enum keyspace_kind kind;
};

/* Which keyspace RocksDB means by the number that it has in the logs. */
struct logged_family {
    uint32_t family;
    keyspace_identity keyspace;
};

struct synced_record {
    int64_t written_us = 0;       /* when the logs had last grown: wall clock, for people alone */
    uint64_t manifest = 0;        /* number of the one that CURRENT names; 0: not known */
    uint64_t manifest_length = 0; /* at least so many bytes of it, and of its copy, were synced */
    std::vector<synced_log> logs;
    std::vector<logged_table> tables;
    uint64_t unnamed_tables = 0;         /* beside `tables`, which is bounded */
    std::vector<logged_family> families; /* bounded, too; for an opening without a manifest */
};

class synced_file {
  public:
    /* Whether nothing, or another file, has its name. Of one that was read or written. */
    bool is_gone() const;

    /* Nothing of the file is touched before read or write. */
    void set_place(rocksdb::FileSystem *files, const std::string &directory);

    /* NOT_FOUND, or DATA_LOSS if neither slot is whole. */
    status read(synced_record *out);
    /* Durable on return. Makes the file if `read` found none or a damaged one, or was not called.
     * After a failure what was recorded last is still there. */
    rocksdb::IOStatus write(const synced_record &record);
    /* The same, of which nothing is left that was recorded before. */
    rocksdb::IOStatus write_afresh(const synced_record &record);

  private:
    rocksdb::IOStatus write_slot(const synced_record &record, bool is_afresh);
    rocksdb::IOStatus make(const std::string &slot);
    rocksdb::IOStatus overwrite(const std::string &slot);

    rocksdb::FileSystem *files = nullptr;
    std::string directory;
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    uint64_t inode = 0;     /* of what has the name, since it was read or made */
    uint64_t slot_size = 0; /* 0: there is no usable file */
    unsigned next_slot = 0; /* not the one that was recorded last */
    uint64_t sequence = 0;  /* the greatest that was given */
};

/* --- manifest.cc: the manifest, and a copy of it --- */

std::string manifest_name(uint64_t number); /* MANIFEST-000005 */

/* What was written to a manifest, as long as it is written, in MANIFEST-n.copy. One that fails is
 * removed, and does without.
 *
 * A manifest that was removed below the store is still written, since it is open, but no start
 * would find it. Then the copy, which is made again if it is gone as well, gets the manifest's
 * name, too: it is the manifest from then on, and a sync of that waits for it. */
class manifest_copy {
  public:
    manifest_copy(rocksdb::FileSystem *files, const std::string &path, uint64_t number);
    ~manifest_copy();
    manifest_copy(const manifest_copy &) = delete;
    manifest_copy &operator=(const manifest_copy &) = delete;

    void append(const rocksdb::Slice &data); /* the thread that writes the manifest */
    /* Of the manifest, by the thread that writes it; fails if the copy is it, and fails. */
    rocksdb::IOStatus manifest_synced(uint64_t length);
    /* Any thread: what has been appended is durable on return, or there is no copy. */
    void sync();

    /* Which of the two is not there by its name. Does not wait: what is being written counts as
     * there. */
    void look(bool *manifest_is_gone, bool *copy_is_gone);
    /* Both are there afterwards, durably. */
    rocksdb::IOStatus restore();

    const uint64_t number;
    std::atomic<uint64_t> synced{0}; /* bytes of the manifest for which a sync has returned */

  private:
    void give_up();
    rocksdb::IOStatus make_anew();
    rocksdb::IOStatus take_name();

    rocksdb::FileSystem *const files;
    const std::string manifest_path;
    const std::string path;
    const int reader; /* of the manifest, whatever has its name; -1: none */
    std::mutex mutex; /* of the next seven */
    std::shared_ptr<rocksdb::FSWritableFile> file; /* NULL: there is none */
    uint64_t size = 0;                             /* of the manifest, as far as it came here */
    uint64_t manifest_inode;
    uint64_t copy_inode = 0;
    bool is_wanted = false;   /* there was one: if not, none is missing */
    bool is_doubtful = false; /* a restore has failed on its way */
    std::atomic<bool> is_manifest{false};
    std::atomic<bool> has_news{false}; /* that are not synced */
    std::atomic<bool> is_named{false};
};

/* Wraps the file of a new manifest: its copy is made, and the tracker hears of both. */
void begin_manifest(rocksdb::FileSystem *files, const std::string &path, log_tracker *tracker,
                    std::unique_ptr<rocksdb::FSWritableFile> *file);
bool parse_manifest_name(const std::string &name, uint64_t *number); /* false: not a manifest's */

/* Of a directory that has a store: whether what CURRENT names is there, up to where it was synced.
 * DATA_LOSS if not, with words on what can be done; or, if the store may be changed and salvaged,
 * it is brought back from its copy, and `words` say so. */
status check_manifest(struct store *store, const synced_record &recorded, bool may_restore,
                      std::string *words);

/* Whether check_manifest would return OK; nothing is changed. */
status judge_manifest(const struct store *store, const synced_record &recorded, bool salvage);

/* --- log_tracker.cc: keeping it --- */

/* A log that is there. */
struct tracked_log {
    tracked_log(uint64_t number_, uint64_t synced_, bool is_ended_, uint64_t inode_)
        : number(number_), inode(inode_), is_ended(is_ended_), synced(synced_), is_named(is_ended_)
    {
    }

    const uint64_t number;
    const uint64_t inode;         /* own_files.cc; 0: not known */
    const bool is_ended;          /* as in synced_log */
    std::atomic<uint64_t> synced; /* bytes for which a sync has returned */
    std::atomic<bool> is_named;   /* its name is durable */
};

/* A keyspace, for the record's sake. */
struct write_mark {
    explicit write_mark(const keyspace_identity &identity) : keyspace(identity) {}

    const keyspace_identity keyspace;
    std::atomic<bool> is_set{false}; /* it was written to */
    uint64_t last_log = 0;           /* under the tracker's mutex, as are the next */
    std::string name;
    uint32_t family = 0; /* RocksDB's number; 0: not known yet */
};

class log_tracker {
  public:
    explicit log_tracker(const struct log *log);
    ~log_tracker();

    /* Before the store's files are touched: what a start has found. */
    void begin(rocksdb::FileSystem *files, const std::string &directory);
    bool is_of(const std::string &path) const { return path == directory; }
    status read(synced_record *out) { return file.read(out); }
    /* The record as it would be written now. */
    synced_record present() { return gather(); }
    void know(const synced_record &record);
    /* RocksDB gets to see of that log what is whole. Before it opens them. */
    void salvage(const log_scan &scan) { salvaged.emplace(scan.number, scan); }
    const log_scan *find_salvaged(const std::string &name) const; /* NULL: it sees the log itself */
    /* Starts recording: what is known already at once, and changes from now on. */
    rocksdb::IOStatus start_recording();
    void start_thread();
    /* Nothing is recorded any more: the directory may be another one. */
    void abandon();
    bool is_abandoned() const { return abandoned.load(std::memory_order_acquire); }
    rocksdb::IOStatus record_afresh(); /* see store_forget_record */
    /* Records what there is, if it was recording. No log is written to any more. */
    void stop();

    bool has_failed() const { return failed.load(std::memory_order_relaxed); } /* last time */

    /* From the file system: a log was made; it goes (kept, if that cannot be recorded, or nothing
     * is recorded yet); the directory is synced, before and after. */
    std::shared_ptr<tracked_log> log_made(const std::string &name);
    rocksdb::IOStatus log_goes(const std::string &name);
    uint64_t names_begin();
    void names_synced(uint64_t begun);
    /* After a sync of a log, on the thread that commits. */
    void progressed()
    {
        if (!has_news.load(std::memory_order_relaxed))
            wake();
    }

    /* From the file system, too: a manifest with its copy; CURRENT names that one, durably; it has
     * grown, durably. */
    void manifest_made(std::shared_ptr<manifest_copy> made);
    void manifest_named(uint64_t number);
    /* Held while CURRENT gets another content, until that is known here. */
    std::recursive_mutex naming;
    void manifest_grew() { progressed(); }

    std::shared_ptr<write_mark> add_mark(const keyspace_identity &keyspace);
    void name_mark(write_mark *mark, const char *name);
    void number_mark(write_mark *mark, uint32_t family);
    /* Keyspaces were made, and have numbers: recorded on return, before they can be written to.
     * What fails is told, and tried again with the next sync. */
    void keyspaces_made() { record_news(); }

    /* For own_files.cc. Which logs there should be; whether that one still should; which manifest
     * CURRENT should name, and what is kept of it (NULL: nothing, or another one is on its way);
     * whether SYNCED is gone, as far as that is known without waiting. */
    std::vector<std::shared_ptr<tracked_log>> known_logs();
    bool knows(uint64_t number);
    uint64_t named_manifest();
    std::shared_ptr<manifest_copy> kept_manifest();
    bool record_is_gone();

  private:
    void wake();
    void run();
    void record_news();
    bool records();
    rocksdb::IOStatus record();
    rocksdb::IOStatus try_to_record();
    void sync_copy();
    synced_record gather();
    void gather_time(synced_record *record);
    void gather_tables(synced_record *record);
    void gather_families(synced_record *record, bool written);
    bool forget(uint64_t number, std::shared_ptr<tracked_log> *forgotten);

    const struct log *const log;
    std::string directory; /* where the logs are; set before they are */

    std::mutex writing; /* of the file, one at a time; taken before `mutex` */
    synced_file file;
    bool is_recording = false; /* under `writing` */
    std::atomic<bool> abandoned{false};
    std::atomic<bool> failed{false}; /* to record, the last time */
    std::map<uint64_t, log_scan> salvaged;

    std::mutex mutex; /* of those below; of what comes and goes */
    std::condition_variable changed;
    bool is_stopping = false;
    std::vector<std::shared_ptr<tracked_log>> logs; /* by rising number */
    std::vector<std::weak_ptr<write_mark>> marks;
    std::vector<logged_table> former_tables; /* of former runs */
    std::shared_ptr<manifest_copy> newest_manifest;
    uint64_t manifest = 0; /* as in synced_record, as is the next */
    uint64_t manifest_length = 0;
    synced_log newest = {}; /* the last log, when one was last seen to have grown: at */
    int64_t written_us = 0;

    std::atomic<bool> has_news{false};
    std::thread thread;
};

/* --- log_check.cc: what a start finds --- */

struct log_findings {
    enum store_log_verdict verdict = STORE_LOG_WHOLE;
    std::string words;            /* if it is not whole */
    bool has_loss = false;        /* something is missing, or may be */
    synced_record record;         /* of the logs that are there, up to their ends */
    std::vector<log_scan> broken; /* logs that are there */
    uint64_t largest = 0;         /* bytes of the largest commit that is whole */
};

/* Holds the logs against what was recorded of them, if the directory's format has such a record. */
status check_logs(rocksdb::FileSystem *files, const std::string &directory, log_tracker *tracker,
                  bool has_record, log_findings *out);

/* The same against this record, wherever it comes from. */
status judge_logs(rocksdb::FileSystem *files, const std::string &directory,
                  const synced_record &recorded, log_findings *out);

/* --- own_files.cc: whether they are still there --- */

/* The number by which the file system knows what has that name; 0 if nothing has it, or it cannot
 * be looked at. */
uint64_t inode_of(const std::string &path);

/* Whether nothing has the name, or another file than that one (0: any). What cannot be looked at
 * counts as there. */
bool is_gone(const std::string &path, uint64_t inode);

/* Writes a small file of the store's directory in place of what has its name; what is durable is
 * its content, not yet the name. */
rocksdb::IOStatus write_durably(const struct store *store, const std::string &name,
                                const std::string &text);

/* --- salvage.cc: opening without what was lost --- */

/* All that is in write buffers goes into tables, of keyspaces that are not dropped meanwhile. */
rocksdb::Status flush_all(struct store *store);

/* RocksDB looks for what it could not delete before. */
void delete_left_over(struct store *store);

/* Before RocksDB opens the logs: of broken ones it sees what is whole. */
status begin_salvage(struct store *store, const log_findings &findings);

#endif
