/* The write-ahead log on a disk that is full or fails.
 *
 * RocksDB cannot write on in a log after a failed append: it wants a new log, makes one only
 * together with a new write buffer, and Debian's build aborts (an assertion in WritableFileWriter)
 * if the next write comes before that. So a full disk is found out before a write, not in it:
 *
 *  1. Room for a batch is taken (fallocate) before RocksDB sees the batch. Without room the batch
 *     is refused, nothing was changed, and the next one asks again.
 *  2. A new log can always be made, also on a full disk, for RocksDB must not fail to make one: a
 *     write buffer with range deletes cannot be sealed twice (Debian's build aborts: an assertion
 *     in MemTable::ConstructFragmentedRangeTombstones). It takes over the room that the former log
 *     has for the batches that are under way, and has no more use for.
 *  3. What fails later fails for good: after a failed append or sync it is not known what the log
 *     holds, so the error is turned into one that RocksDB never resumes from, whatever the disk
 *     called it. (A sync that says "no space" would count as a full disk otherwise.)
 *
 * On file systems without fallocate rule 3 alone holds: a full disk fences the store. */
#include "store/log_ends.h"

extern "C" {
#include "base/metrics.h"
}

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

enum : uint64_t { ROOM_STEP = 4 << 20 }; /* bytes taken at a time: one system call each */

static thread_local bool leaves_logs; /* for leave_logs_scope */

leave_logs_scope::leave_logs_scope()
{
    leaves_logs = true;
}

leave_logs_scope::~leave_logs_scope()
{
    leaves_logs = false;
}

static IOStatus fatal(const char *what, const IOStatus &cause)
{
    if (cause.ok())
        return cause;
    return IOStatus::IOError(what, cause.ToString());
}

/* Times one sync, also one that fails: a disk that is about to fail is often slow before. */
class sync_timer {
  public:
    explicit sync_timer(struct metrics *metrics_) : metrics(metrics_) {}
    ~sync_timer()
    {
        const auto took = std::chrono::steady_clock::now() - began;
        const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
        metrics_observe(metrics, METRIC_HISTOGRAM_store_sync_seconds, static_cast<uint64_t>(us));
    }
    sync_timer(const sync_timer &) = delete;
    sync_timer &operator=(const sync_timer &) = delete;

  private:
    struct metrics *const metrics;
    const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

class log_file final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    log_file(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<log_room> room_,
             std::shared_ptr<tracked_log> tracked_)
        : FSWritableFileOwnerWrapper(std::move(file)), room(std::move(room_)),
          tracked(std::move(tracked_))
    {
    }
    ~log_file() override { room->forget(this); }

    /* Makes sure that `extra` more bytes can be appended; if it must take room for that, it takes
     * `reserve` more. */
    IOStatus take_room(uint64_t extra, uint64_t reserve)
    {
        if (size + extra <= taken)
            return IOStatus::OK();
        uint64_t more = size + extra - taken + reserve;
        IOStatus s = target()->Allocate(taken, more, IOOptions(), nullptr);
        if (s.ok() || !s.IsNoSpace())
            taken += more; /* other errors: there is no fallocate here */
        return s.IsNoSpace() ? s : IOStatus::OK();
    }

    /* Nothing more will be appended. If it fails, the room comes back when the file is closed. */
    void give_up_room()
    {
        taken = size;
        target()->Truncate(size, IOOptions(), nullptr).PermitUncheckedError();
    }

    IOStatus Append(const Slice &data, const IOOptions &options, IODebugContext *debug) override
    {
        size += data.size();
        return appended(target()->Append(data, options, debug));
    }

    IOStatus Append(const Slice &data, const IOOptions &options,
                    const rocksdb::DataVerificationInfo &info, IODebugContext *debug) override
    {
        size += data.size();
        return appended(target()->Append(data, options, info, debug));
    }

    IOStatus Sync(const IOOptions &options, IODebugContext *debug) override
    {
        const sync_timer timer(room->metrics);
        uint64_t length = written;
        return synced(target()->Sync(options, debug), length);
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        const sync_timer timer(room->metrics);
        uint64_t length = written;
        return synced(target()->Fsync(options, debug), length);
    }

    /* RocksDB asks this before it syncs a log beside writes (DB::SyncWAL), and only then. */
    bool IsSyncThreadSafe() const override
    {
        return !leaves_logs && FSWritableFileOwnerWrapper::IsSyncThreadSafe();
    }

    /* RocksDB's own preallocation would take more than a write buffer at once. */
    void SetPreallocationBlockSize(size_t) override {}
    void PrepareWrite(size_t, size_t, const IOOptions &, IODebugContext *) override {}

  private:
    IOStatus appended(const IOStatus &s)
    {
        if (s.ok())
            written = size.load();
        return fatal("write-ahead log: append failed", s);
    }

    /* `length` was written before the sync began. */
    IOStatus synced(const IOStatus &s, uint64_t length)
    {
        room->syncs++;
        if (s.ok()) {
            tracked->synced = length;
            room->tracker->progressed();
        }
        return fatal("write-ahead log: sync failed", s);
    }

    std::shared_ptr<log_room> room;
    std::shared_ptr<tracked_log> tracked;
    std::atomic<uint64_t> size{0};    /* with what is being appended */
    std::atomic<uint64_t> written{0}; /* without */
    uint64_t taken = 0;               /* under the mutex of `room` */
};

IOStatus log_room::take(uint64_t bytes)
{
    std::lock_guard<std::mutex> lock(mutex);
    under_way += bytes;
    if (current == nullptr)
        return IOStatus::OK();
    IOStatus s = current->take_room(under_way, ROOM_STEP);
    if (!s.ok())
        under_way -= bytes;
    return s;
}

void log_room::give_back(uint64_t bytes)
{
    std::lock_guard<std::mutex> lock(mutex);
    under_way -= bytes;
}

/* If there is no room even so, another user of the disk has taken it meanwhile: then the write that
 * is under way fails, and fences the store. If none is, the next one is refused. */
void log_room::begin(log_file *file)
{
    std::lock_guard<std::mutex> lock(mutex);
    if (!file->take_room(under_way + 1, ROOM_STEP).ok() && current != nullptr) {
        current->give_up_room();
        file->take_room(under_way + 1, 0).PermitUncheckedError();
    }
    current = file;
}

void log_room::forget(const log_file *file)
{
    std::lock_guard<std::mutex> lock(mutex);
    if (current == file)
        current = nullptr;
}

void log_room::new_log(const std::string &name, std::unique_ptr<rocksdb::FSWritableFile> *file)
{
    auto *log = new log_file(std::move(*file), shared_from_this(), tracker->log_made(name));
    file->reset(log);
    begin(log);
}
