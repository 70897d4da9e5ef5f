/* The write-ahead log on a disk that is full or fails.
 *
 * RocksDB cannot write on in a log after a failed append: it wants a new log, makes one only
 * together with a new write buffer, and Debian's build aborts (an assertion in WritableFileWriter)
 * if the next write comes before that. So a full disk is found out before a write, not in it:
 *
 *  1. Room for a batch is taken (fallocate) before RocksDB sees the batch. Without room the batch
 * is refused, nothing was changed, and the next one asks again.
 *  2. A new log is made with room for the batches that are under way, or not made at all.
 *  3. What fails later fails for good: after a failed append or sync nobody knows what the log
 *     holds, so the error is turned into one that RocksDB never resumes from, whatever the disk
 *     called it. (A sync that says "no space" would count as a full disk otherwise.)
 *
 * On file systems without fallocate rule 3 alone holds: a full disk fences the store. */
#include "store/internal.h"

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

enum : uint64_t { ROOM_STEP = 4 << 20 }; /* bytes taken at a time: one system call each */

static IOStatus fatal(const char *what, const IOStatus &cause)
{
    if (cause.ok())
        return cause;
    return IOStatus::IOError(what, cause.ToString());
}

class log_file final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    log_file(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<log_room> room_)
        : FSWritableFileOwnerWrapper(std::move(file)), room(std::move(room_))
    {
    }
    ~log_file() override { room->forget(this); }

    /* Makes sure that `extra` more bytes can be appended. */
    IOStatus take_room(uint64_t extra)
    {
        if (size + extra <= taken)
            return IOStatus::OK();
        uint64_t more = size + extra - taken + ROOM_STEP;
        IOStatus s = target()->Allocate(taken, more, IOOptions(), nullptr);
        if (s.ok() || !s.IsNoSpace())
            taken += more; /* other errors: there is no fallocate here */
        return s.IsNoSpace() ? s : IOStatus::OK();
    }

    IOStatus Append(const Slice &data, const IOOptions &options, IODebugContext *debug) override
    {
        size += data.size();
        return fatal("write-ahead log: append failed", target()->Append(data, options, debug));
    }

    IOStatus Append(const Slice &data, const IOOptions &options,
                    const rocksdb::DataVerificationInfo &info, IODebugContext *debug) override
    {
        size += data.size();
        return fatal("write-ahead log: append failed",
                     target()->Append(data, options, info, debug));
    }

    IOStatus Sync(const IOOptions &options, IODebugContext *debug) override
    {
        room->syncs++;
        return fatal("write-ahead log: sync failed", target()->Sync(options, debug));
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        room->syncs++;
        return fatal("write-ahead log: sync failed", target()->Fsync(options, debug));
    }

    /* RocksDB's own preallocation would take more than a write buffer at once. */
    void SetPreallocationBlockSize(size_t) override {}
    void PrepareWrite(size_t, size_t, const IOOptions &, IODebugContext *) override {}

  private:
    std::shared_ptr<log_room> room;
    std::atomic<uint64_t> size{0};
    uint64_t taken = 0; /* under the mutex of `room` */
};

IOStatus log_room::take(uint64_t bytes)
{
    std::lock_guard<std::mutex> lock(mutex);
    under_way += bytes;
    if (current == nullptr)
        return IOStatus::OK();
    IOStatus s = current->take_room(under_way);
    if (!s.ok())
        under_way -= bytes;
    return s;
}

void log_room::give_back(uint64_t bytes)
{
    std::lock_guard<std::mutex> lock(mutex);
    under_way -= bytes;
}

IOStatus log_room::begin(log_file *file)
{
    std::lock_guard<std::mutex> lock(mutex);
    IOStatus s = file->take_room(under_way + 1);
    if (s.ok())
        current = file;
    return s;
}

void log_room::forget(const log_file *file)
{
    std::lock_guard<std::mutex> lock(mutex);
    if (current == file)
        current = nullptr;
}

IOStatus log_room::new_log(std::unique_ptr<rocksdb::FSWritableFile> *file)
{
    auto *log = new log_file(std::move(*file), shared_from_this());
    file->reset(log);
    return begin(log);
}
