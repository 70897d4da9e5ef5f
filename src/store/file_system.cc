/* The file system as RocksDB gets to see it. Seven things differ from the one below:
 *
 *  1. Logs are wrapped (log_file.cc), and their log_tracker hears of their syncs, of their names',
 *     and of their end (log_ends.h).
 *  2. A directory is opened once. RocksDB opens its one directory again for every keyspace that it
 *     makes and keeps it open: a descriptor a table.
 *  3. Options files are refused. RocksDB writes all settings of all keyspaces to one whenever a
 *     keyspace comes or goes, and holds up all writers meanwhile (0.15 s with 1,000 keyspaces). It
 *     goes on without, and they are not read here: the settings are options.cc.
 *  4. The lock of the store's directory can be taken twice through it: by the store and RocksDB.
 *  5. A manifest has a copy, and the log_tracker hears of it, too (manifest.cc).
 *  6. A thread can forbid itself to wait for the disk, and learn whether it would have had to, or
 *     whether a read failed (`read_watch`), or a block was damaged: that is no file system's
 *     business, but tables tell it to a counter alone.
 *  7. Damaged tables have stand-ins (stand_in.cc). */
#include "store/log_ends.h"
#include "store/open_tables.h"
#include "store/uncounted.h"
#include "store/waste.h"

#include "rocksdb/statistics.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

const char NO_OPTIONS_FILE[] = "options files are not kept";

namespace {

/* A thread that must not wait copies no more out of the page cache: 1 MiB takes 0.1 ms. */
enum : size_t { PEEK_MOST = 1 << 20 };

/* The state of the present thread's watch. */
thread_local struct {
    bool is_hasty; /* must not wait for the disk */
    bool was_refused;
    bool has_failed;
    bool is_opening; /* a table: what is read of it then has its own rules */
    bool open_failed;
    uint64_t blocks_checked; /* read, and their checksums looked at */
    uint64_t blocks_kept;    /* and then put into the cache, or tried to */
    bool is_merging;         /* merging_scope */
    bool merging_opened;     /* a table was not open */
} watch;

thread_local bool keeps_files; /* for keep_files_scope */

/* store_bound_reads, of the present thread. */
thread_local struct store_read_bound read_bound = {SIZE_MAX, 0};

IOStatus refuse()
{
    watch.was_refused = true;
    return IOStatus::IOError("waiting for the disk is forbidden here");
}

/* A table that is being opened has its own rules. */
bool is_beyond_bound(size_t size)
{
    return !watch.is_opening && !store_bound_covers(size);
}

/* A descriptor of its own, since the one that RocksDB reads with is not to be had. */
class page_cache {
  public:
    explicit page_cache(const std::string &path)
        : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC))
    {
    }
    ~page_cache()
    {
        if (descriptor >= 0)
            close(descriptor);
    }
    page_cache(const page_cache &) = delete;
    page_cache &operator=(const page_cache &) = delete;

    /* Copies what the kernel has in memory; false if it has not all of it. */
    bool read(uint64_t offset, size_t size, char *out) const
    {
        const iovec into = {out, size};
        if (descriptor < 0 || size > PEEK_MOST)
            return false;
        ssize_t got = preadv2(descriptor, &into, 1, static_cast<off_t>(offset), RWF_NOWAIT);
        return got == static_cast<ssize_t>(size);
    }

  private:
    const int descriptor;
};

/* A table that is not read is no reason to fence, also one that was just made: RocksDB opens those
 * before it names them, and a flush that fails by that is tried again if the error says so. No byte
 * of the log or the manifest is in doubt. */
IOStatus as_read(IOStatus s)
{
    if (s.IsIOError())
        s.SetRetryable(true);
    return s;
}

/* A table. `pages` may be NULL: then a thread that must not wait gets nothing from it. */
class watched_file final : public rocksdb::FSRandomAccessFileWrapper {
  public:
    watched_file(const std::shared_ptr<rocksdb::FSRandomAccessFile> &file_,
                 std::unique_ptr<page_cache> pages_, uint64_t number_,
                 std::shared_ptr<const stand_ins> all_, std::shared_ptr<open_tables> opened_)
        : FSRandomAccessFileWrapper(file_.get()), file(file_), pages(std::move(pages_)),
          number(number_), all(std::move(all_)), opened(std::move(opened_))
    {
        if (opened != nullptr)
            opened->came(number, file);
    }
    ~watched_file() override
    {
        file.reset();
        if (opened != nullptr)
            opened->went(number);
    }

    IOStatus Read(uint64_t offset, size_t size, const IOOptions &options, rocksdb::Slice *result,
                  char *scratch, IODebugContext *debug) const override
    {
        if (watch.is_hasty)
            return peek(offset, size, result, scratch);
        if (is_beyond_bound(size))
            return refuse();
        IOStatus s = FSRandomAccessFileWrapper::Read(offset, size, options, result, scratch, debug);
        if (!s.ok())
            s = read_around(offset, size, options, result, scratch, debug, s);
        cover(offset, result, scratch, s);
        return note(s);
    }

    IOStatus MultiRead(rocksdb::FSReadRequest *requests, size_t count, const IOOptions &options,
                       IODebugContext *debug) override
    {
        if (!watch.is_hasty)
            return note(read_many(requests, count, options, debug));
        for (size_t i = 0; i < count; i++)
            requests[i].status =
                peek(requests[i].offset, requests[i].len, &requests[i].result, requests[i].scratch);
        return IOStatus::OK();
    }

    /* Only advice: without it, blocks are read one by one. */
    IOStatus Prefetch(uint64_t offset, size_t size, const IOOptions &options,
                      IODebugContext *debug) override
    {
        if (watch.is_hasty)
            return IOStatus::OK();
        return FSRandomAccessFileWrapper::Prefetch(offset, size, options, debug);
    }

  private:
    IOStatus peek(uint64_t offset, size_t size, rocksdb::Slice *result, char *scratch) const
    {
        if (pages == nullptr || !pages->read(offset, size, scratch))
            return refuse();
        *result = rocksdb::Slice(scratch, size);
        cover(offset, result, scratch, IOStatus::OK());
        return IOStatus::OK();
    }

    IOStatus read_many(rocksdb::FSReadRequest *requests, size_t count, const IOOptions &options,
                       IODebugContext *debug)
    {
        IOStatus s = FSRandomAccessFileWrapper::MultiRead(requests, count, options, debug);
        for (size_t i = 0; s.ok() && i < count; i++) {
            rocksdb::FSReadRequest &one = requests[i];
            if (!one.status.ok())
                one.status = read_around(one.offset, one.len, options, &one.result, one.scratch,
                                         debug, one.status);
            cover(one.offset, &one.result, one.scratch, one.status);
        }
        return s;
    }

    /* Into `out`, and how much there was. */
    IOStatus read_piece(uint64_t from, uint64_t to, const IOOptions &options, char *out,
                        uint64_t *count, IODebugContext *debug) const
    {
        rocksdb::Slice got;
        *count = 0;
        if (from == to)
            return IOStatus::OK();
        IOStatus s = FSRandomAccessFileWrapper::Read(from, to - from, options, &got, out, debug);
        if (s.ok() && got.data() != out)
            memmove(out, got.data(), got.size());
        *count = s.ok() ? got.size() : 0;
        return s;
    }

    /* Reads what lies between the blocks that have stand-ins: the disk may not read those. `failed`
     * if there are none. */
    IOStatus read_around(uint64_t offset, size_t size, const IOOptions &options,
                         rocksdb::Slice *result, char *scratch, IODebugContext *debug,
                         const IOStatus &failed) const
    {
        std::shared_ptr<const stand_in> here = all->find(number);
        if (here == nullptr || here->blocks.empty())
            return failed;
        uint64_t at = offset, end = offset + size, count = 0;
        auto within = [&](uint64_t place) { return std::min(std::max(place, at), end); };
        for (const auto &block : here->blocks) {
            uint64_t to = within(block.first);
            IOStatus s = read_piece(at, to, options, scratch + (at - offset), &count, debug);
            if (!s.ok() || count < to - at)
                return s.ok() ? failed : s;
            at = within(block.first + block.second.size());
        }
        IOStatus s = read_piece(at, end, options, scratch + (at - offset), &count, debug);
        *result = rocksdb::Slice(scratch, at - offset + count);
        return s;
    }

    /* Damaged blocks look empty while the table is repaired; of one that has a stand-in as a whole
     * those that RocksDB meets, which had opened it before. */
    void cover(uint64_t offset, rocksdb::Slice *result, char *scratch, const IOStatus &s) const
    {
        std::shared_ptr<const stand_in> here = all->find(number);
        if (here == nullptr || !s.ok() || here->blocks.empty())
            return;
        if (result->data() != scratch)
            memcpy(scratch, result->data(), result->size());
        here->cover(offset, result->size(), scratch);
        *result = rocksdb::Slice(scratch, result->size());
    }

    static IOStatus note(IOStatus s)
    {
        watch.has_failed |= !s.ok();
        return as_read(std::move(s));
    }

    std::shared_ptr<rocksdb::FSRandomAccessFile> file;
    const std::unique_ptr<page_cache> pages;
    const uint64_t number;
    const std::shared_ptr<const stand_ins> all;
    const std::shared_ptr<open_tables> opened; /* NULL: it is none of the store's */
};

/* A table in place of one that cannot be opened: in memory. */
class stand_in_file final : public rocksdb::FSRandomAccessFile {
  public:
    explicit stand_in_file(std::shared_ptr<const stand_in> table_) : table(std::move(table_)) {}

    IOStatus Read(uint64_t offset, size_t size, const IOOptions &, rocksdb::Slice *result,
                  char *scratch, IODebugContext *) const override
    {
        table->read_table(offset, size, scratch);
        *result = rocksdb::Slice(scratch, size);
        return IOStatus::OK();
    }

    IOStatus Prefetch(uint64_t, size_t, const IOOptions &, IODebugContext *) override
    {
        return IOStatus::OK();
    }

  private:
    const std::shared_ptr<const stand_in> table;
};

thread_local uint64_t entries_passed; /* for take_entries_passed */

/* Hardly for counting: RocksDB counts on the thread that does the work, so this hears what becomes
 * of each block. One that is read and not put into the cache had the wrong checksum. */
class block_watch final : public rocksdb::Statistics {
  public:
    const char *Name() const override { return "trestle.block_watch"; }

    void recordTick(uint32_t ticker, uint64_t count) override
    {
        switch (ticker) {
        case rocksdb::NO_FILE_OPENS:
            watch.is_opening = true;
            break;
        case rocksdb::NO_FILE_ERRORS:
            watch.open_failed = true;
            break;
        case rocksdb::BLOCK_CHECKSUM_COMPUTE_COUNT:
            watch.blocks_checked += watch.is_opening ? 0 : count;
            break;
        case rocksdb::BLOCK_CACHE_ADD:
        case rocksdb::BLOCK_CACHE_ADD_FAILURES:
            watch.blocks_kept += watch.is_opening ? 0 : count;
            break;
        case rocksdb::NUMBER_ITER_SKIP: /* goes below 0 where an iterator went back */
            entries_passed += static_cast<int64_t>(count) > 0 ? count : 0;
            break;
        default:
            break;
        }
    }

    /* The only time that is taken: when a table has been opened. */
    bool HistEnabledForType(uint32_t type) const override
    {
        return type == rocksdb::TABLE_OPEN_IO_MICROS;
    }
    void recordInHistogram(uint32_t type, uint64_t) override
    {
        if (type == rocksdb::TABLE_OPEN_IO_MICROS)
            watch.is_opening = false;
    }

    uint64_t getTickerCount(uint32_t) const override { return 0; }
    void histogramData(uint32_t, rocksdb::HistogramData *const) const override {}
    void setTickerCount(uint32_t, uint64_t) override {}
    uint64_t getAndResetTickerCount(uint32_t) override { return 0; }
};

class shared_directory final : public rocksdb::FSDirectory {
  public:
    /* `tracker` is NULL if there are no logs in it. */
    shared_directory(std::shared_ptr<FSDirectory> directory_, log_tracker *tracker_)
        : directory(std::move(directory_)), tracker(tracker_)
    {
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        return tell([&] { return directory->Fsync(options, debug); });
    }

    IOStatus FsyncWithDirOptions(const IOOptions &options, IODebugContext *debug,
                                 const rocksdb::DirFsyncOptions &reason) override
    {
        return tell([&] { return directory->FsyncWithDirOptions(options, debug, reason); });
    }

    /* The last one out closes it. */
    IOStatus Close(const IOOptions &, IODebugContext *) override { return IOStatus::OK(); }

    size_t GetUniqueId(char *id, size_t size) const override
    {
        return directory->GetUniqueId(id, size);
    }

  private:
    template <typename function> IOStatus tell(function sync)
    {
        uint64_t begun = tracker != nullptr ? tracker->names_begin() : 0;
        IOStatus s = sync();
        if (s.ok() && tracker != nullptr)
            tracker->names_synced(begun);
        return s;
    }

    const std::shared_ptr<FSDirectory> directory;
    log_tracker *const tracker; /* as long as the file system */
};

class file_system final : public rocksdb::FileSystemWrapper {
  public:
    file_system(std::shared_ptr<rocksdb::FileSystem> base, std::shared_ptr<log_room> room_,
                std::shared_ptr<const class stand_ins> stand_ins_,
                std::shared_ptr<class open_tables> open_tables_)
        : FileSystemWrapper(std::move(base)), room(std::move(room_)),
          stand_ins(std::move(stand_ins_)), open_tables(std::move(open_tables_)),
          is_plain(target() == rocksdb::FileSystem::Default().get())
    {
    }

    const char *Name() const override { return "trestle.file_system"; }

    IOStatus NewWritableFile(const std::string &path, const rocksdb::FileOptions &options,
                             std::unique_ptr<rocksdb::FSWritableFile> *out,
                             IODebugContext *debug) override
    {
        std::string name = path.substr(path.rfind('/') + 1);
        if (name.compare(0, 8, "OPTIONS-") == 0)
            return IOStatus::NotSupported(NO_OPTIONS_FILE);
        if (room->tracker->is_abandoned() && is_in_store(path))
            return IOStatus::IOError(path, "the directory may be another one");
        IOStatus s = target()->NewWritableFile(path, options, out, debug);
        if (!s.ok() || !is_in_store(path))
            return s;
        if (is_log_name(name))
            room->new_log(name, out);
        else
            begin_manifest(target(), path, room->tracker.get(), out);
        return s;
    }

    /* CURRENT, which names a manifest: durable on return. */
    IOStatus RenameFile(const std::string &from, const std::string &to, const IOOptions &options,
                        IODebugContext *debug) override
    {
        bool is_current = is_in_store(to) && to.substr(to.rfind('/') + 1) == "CURRENT";
        uint64_t number = 0;
        std::string text;
        if (is_current)
            rocksdb::ReadFileToString(target(), from, &text).PermitUncheckedError();
        std::unique_lock<std::recursive_mutex> naming(room->tracker->naming, std::defer_lock);
        if (is_current)
            naming.lock();
        IOStatus s = target()->RenameFile(from, to, options, debug);
        if (!s.ok() || !is_current)
            return s;
        s = sync_directory(this, to.substr(0, to.rfind('/')));
        text.erase(text.find_last_not_of('\n') + 1);
        if (s.ok() && parse_manifest_name(text, &number))
            room->tracker->manifest_named(number);
        return s;
    }

    /* Opens a file; a log that is salvaged gives what is whole. */
    IOStatus NewSequentialFile(const std::string &path, const rocksdb::FileOptions &options,
                               std::unique_ptr<rocksdb::FSSequentialFile> *out,
                               IODebugContext *debug) override
    {
        IOStatus s = target()->NewSequentialFile(path, options, out, debug);
        if (!s.ok() || !is_in_store(path))
            return s;
        const log_scan *scan = room->tracker->find_salvaged(path.substr(path.rfind('/') + 1));
        if (scan != nullptr)
            *out = salvage_log(std::move(*out), *scan);
        return s;
    }

    IOStatus NewRandomAccessFile(const std::string &path, const rocksdb::FileOptions &options,
                                 std::unique_ptr<rocksdb::FSRandomAccessFile> *out,
                                 IODebugContext *debug) override
    {
        watch.merging_opened |= watch.is_merging;
        std::shared_ptr<const stand_in> instead = stand_ins->find(table_number(path));
        if (instead != nullptr && instead->is_table()) {
            *out = std::make_unique<stand_in_file>(std::move(instead));
            return IOStatus::OK();
        }
        if (watch.is_hasty)
            return refuse();
        IOStatus s = target()->NewRandomAccessFile(path, options, out, debug);
        watch.has_failed |= !s.ok();
        if (s.ok())
            *out = std::make_unique<watched_file>(
                std::shared_ptr<rocksdb::FSRandomAccessFile>(std::move(*out)),
                is_plain ? std::make_unique<page_cache>(path) : nullptr, table_number(path),
                stand_ins, is_in_store(path) ? open_tables : nullptr);
        return as_read(std::move(s));
    }

    IOStatus GetFileSize(const std::string &path, const IOOptions &options, uint64_t *out,
                         IODebugContext *debug) override
    {
        std::shared_ptr<const stand_in> instead = stand_ins->find(table_number(path));
        if (instead == nullptr || !instead->is_table())
            return target()->GetFileSize(path, options, out, debug);
        *out = instead->size;
        return IOStatus::OK();
    }

    /* A checkpoint has a copy of a live log by the log's own name: where that lies tells them
     * apart. log_ends_test.c: a_checkpoint_that_goes_forgets_no_log. */
    IOStatus DeleteFile(const std::string &path, const IOOptions &options,
                        IODebugContext *debug) override
    {
        if (keeps_files)
            return IOStatus::OK();
        if (!is_in_store(path))
            return target()->DeleteFile(path, options, debug);
        std::string name = path.substr(path.rfind('/') + 1);
        uint64_t number;
        IOStatus s = room->tracker->log_goes(name);
        if (parse_manifest_name(name, &number))
            target()->DeleteFile(path + ".copy", options, debug).PermitUncheckedError();
        return s.ok() ? target()->DeleteFile(path, options, debug) : s;
    }

    /* The store has had its directory locked before RocksDB locks it. */
    IOStatus LockFile(const std::string &path, const IOOptions &options, rocksdb::FileLock **out,
                      IODebugContext *debug) override
    {
        bool is_ours = is_our_lock(path);
        std::lock_guard<std::mutex> lock(mutex);
        if (is_ours && our_lock != nullptr) {
            lock_holders++;
            *out = our_lock;
            return IOStatus::OK();
        }
        IOStatus s = target()->LockFile(path, options, out, debug);
        if (s.ok() && is_ours) {
            our_lock = *out;
            lock_holders = 1;
        }
        return s;
    }

    IOStatus UnlockFile(rocksdb::FileLock *held, const IOOptions &options,
                        IODebugContext *debug) override
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (held == our_lock && --lock_holders > 0)
            return IOStatus::OK();
        if (held == our_lock)
            our_lock = nullptr;
        return target()->UnlockFile(held, options, debug);
    }

    IOStatus NewDirectory(const std::string &path, const IOOptions &options,
                          std::unique_ptr<rocksdb::FSDirectory> *out,
                          IODebugContext *debug) override
    {
        std::lock_guard<std::mutex> lock(mutex);
        std::shared_ptr<rocksdb::FSDirectory> directory = directories[path].lock();
        if (directory == nullptr) {
            std::unique_ptr<rocksdb::FSDirectory> opened;
            IOStatus s = target()->NewDirectory(path, options, &opened, debug);
            if (!s.ok())
                return s;
            directory = std::move(opened);
            directories[path] = directory;
        }
        log_tracker *tracker = room->tracker->is_of(path) ? room->tracker.get() : nullptr;
        *out = std::make_unique<shared_directory>(std::move(directory), tracker);
        return IOStatus::OK();
    }

  private:
    bool is_in_store(const std::string &path) const
    {
        size_t slash = path.rfind('/');
        return slash != std::string::npos && room->tracker->is_of(path.substr(0, slash));
    }

    bool is_our_lock(const std::string &path) const
    {
        return is_in_store(path) && path.substr(path.rfind('/')) == "/LOCK";
    }

    const std::shared_ptr<log_room> room;
    const std::shared_ptr<const class stand_ins> stand_ins;
    const std::shared_ptr<class open_tables> open_tables;
    const bool is_plain; /* what it opens is what the kernel has under that name */
    std::mutex mutex;    /* of the rest */
    std::unordered_map<std::string, std::weak_ptr<rocksdb::FSDirectory>> directories;
    rocksdb::FileLock *our_lock = nullptr; /* of the store's directory */
    unsigned lock_holders = 0;
};

} // namespace

uint64_t table_number(const std::string &path)
{
    size_t dot = path.rfind('.');
    bool is_table = dot != std::string::npos && path.compare(dot, std::string::npos, ".sst") == 0;
    return is_table ? strtoull(path.c_str() + path.rfind('/') + 1, nullptr, 10) : 0;
}

std::shared_ptr<rocksdb::FileSystem>
make_file_system(std::shared_ptr<rocksdb::FileSystem> base, std::shared_ptr<log_room> room,
                 std::shared_ptr<const class stand_ins> stand_ins,
                 std::shared_ptr<class open_tables> open_tables)
{
    return std::make_shared<file_system>(std::move(base), std::move(room), std::move(stand_ins),
                                         std::move(open_tables));
}

std::shared_ptr<rocksdb::Statistics> make_block_watch()
{
    return std::make_shared<block_watch>();
}

keep_files_scope::keep_files_scope()
{
    keeps_files = true;
}

keep_files_scope::~keep_files_scope()
{
    keeps_files = false;
}

uint64_t take_entries_passed()
{
    return std::exchange(entries_passed, 0);
}

read_watch::read_watch(enum store_read_tier read_tier)
{
    forgo_counting();
    watch = {};
    watch.is_hasty = read_tier == STORE_READ_CACHED;
}

read_watch::~read_watch()
{
    watch = {};
}

struct store_read_bound store_bound_reads(struct store_read_bound bound)
{
    return std::exchange(read_bound, bound);
}

bool store_bound_covers(size_t size)
{
    if (size > read_bound.most)
        read_bound.refused = std::max(read_bound.refused, size);
    return size <= read_bound.most;
}

bool thread_keeps_to_memory()
{
    return watch.is_hasty;
}

void note_refusal()
{
    watch.was_refused = true;
}

bool thread_could_not_read()
{
    return watch.has_failed;
}

void forget_reads()
{
    watch = {};
}

bool thread_has_met_trouble()
{
    return watch.was_refused || watch.has_failed || watch.open_failed;
}

merging_scope::merging_scope(bool is_over_tombstones)
{
    watch.is_merging = is_over_tombstones;
}

merging_scope::~merging_scope()
{
    watch.is_merging = false;
    watch.merging_opened = false;
}

bool merging_scope::has_opened() const
{
    return watch.merging_opened;
}

bool thread_is_merging()
{
    return watch.is_merging;
}

bool read_watch::was_refused() const
{
    return watch.was_refused;
}

bool read_watch::has_failed() const
{
    return watch.has_failed;
}

bool read_watch::has_met_damage() const
{
    return watch.open_failed || watch.blocks_checked > watch.blocks_kept;
}
