/* The clock as RocksDB gets to see it.
 *
 * It asks for nanoseconds before and after each fold once it has Statistics, and ours (read_watch)
 * do not want them: a tenth of what scanning a write buffer cost. What else asks for them is the
 * pace of writes that are held back, in milliseconds. So the clock ticks as often as the kernel's
 * timer, and reading it is reading a word. */
#include "store/internal.h"

#include "rocksdb/system_clock.h"

#include <ctime>

namespace {

class coarse_clock final : public rocksdb::SystemClockWrapper {
  public:
    coarse_clock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}

    const char *Name() const override { return "trestle.clock"; }

    uint64_t NowNanos() override
    {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
    }
};

class environment final : public rocksdb::EnvWrapper {
  public:
    explicit environment(const std::shared_ptr<rocksdb::FileSystem> &files)
        : EnvWrapper(rocksdb::NewCompositeEnv(files))
    {
        system_clock_ = std::make_shared<coarse_clock>();
    }
};

} // namespace

std::unique_ptr<rocksdb::Env> make_environment(const std::shared_ptr<rocksdb::FileSystem> &files)
{
    return std::make_unique<environment>(files);
}
