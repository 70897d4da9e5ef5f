/* A log that is broken, as RocksDB gets to see it in a salvage: log_ends.h.
 *
 * RocksDB stops at the first broken piece, drops what is behind that and all later logs. Its mode
 * that goes on fails on records of several pieces. So it meets no broken piece: while it reads, the
 * log is looked through once more, and each whole commit is copied behind the one before. No more
 * than one record, and a block, is in memory. */
#include "store/log_scanner.h"

#include <algorithm>
#include <cstring>

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

class salvaged_log final : public rocksdb::FSSequentialFile {
  public:
    salvaged_log(std::unique_ptr<rocksdb::FSSequentialFile> log_, const log_scan &scan)
        : log(std::move(log_)), found(bounds_of(scan)),
          visit([this](const std::string &record) { out.add(record); }), scanner(&found, visit),
          block(new char[BLOCK])
    {
    }

    IOStatus Read(size_t size, const IOOptions &options, Slice *result, char *scratch,
                  IODebugContext *debug) override
    {
        IOStatus s;
        while (s.ok() && !is_over && out.text.size() < size)
            s = look_on(options, debug);
        size_t got = s.ok() ? std::min(size, out.text.size()) : 0;
        memcpy(scratch, out.text.data(), got);
        take(got);
        *result = Slice(scratch, got);
        return s;
    }

    IOStatus Skip(uint64_t size) override
    {
        IOStatus s;
        while (s.ok() && !is_over && out.text.size() < size)
            s = look_on(IOOptions(), nullptr);
        take(std::min<uint64_t>(size, out.text.size()));
        return s;
    }

  private:
    IOStatus look_on(const IOOptions &options, IODebugContext *debug)
    {
        Slice got;
        IOStatus s = log->Read(BLOCK, options, &got, block.get(), debug);
        if (s.ok())
            scanner.scan(got);
        is_over = !s.ok() || got.size() < BLOCK;
        return s;
    }

    void take(size_t size)
    {
        out.text.erase(0, size);
        out.taken += size;
    }

    const std::unique_ptr<rocksdb::FSSequentialFile> log;
    log_scan found;
    record_writer out;
    const log_visitor visit;
    log_scanner scanner;
    const std::unique_ptr<char[]> block;
    bool is_over = false;
};

} // namespace

std::unique_ptr<rocksdb::FSSequentialFile>
salvage_log(std::unique_ptr<rocksdb::FSSequentialFile> log, const log_scan &scan)
{
    return std::make_unique<salvaged_log>(std::move(log), scan);
}
