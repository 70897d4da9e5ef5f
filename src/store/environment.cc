/* What RocksDB takes for its machine: our files, a clock that ticks rarely, threads that may wait.
 *
 * The clock: RocksDB asks for nanoseconds before and after each fold once it has Statistics, and
 * ours (read_watch) do not want them: a tenth of what scanning a write buffer cost. What else asks
 * for them is the pace of writes that are held back, in milliseconds. So the clock ticks as often
 * as the kernel's timer, and reading it is reading a word. RocksDB sleeps by it, too, for a second
 * after each flush or compaction that failed, which tests on disks that fail cut short.
 *
 * The threads: RocksDB begins compactions within DB::Open, and picks their tables when a thread
 * runs them. A cluster that has yet to close ranges that it remembers keeps them from running until
 * then (store_begin_compactions). */
#include "store/internal.h"

#include "rocksdb/system_clock.h"

#include <algorithm>
#include <ctime>

namespace {

class coarse_clock final : public rocksdb::SystemClockWrapper {
  public:
    explicit coarse_clock(uint64_t longest_sleep_us)
        : SystemClockWrapper(rocksdb::SystemClock::Default()), longest_us(longest_sleep_us)
    {
    }

    const char *Name() const override { return "trestle.clock"; }

    uint64_t NowNanos() override
    {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
    }

    void SleepForMicroseconds(int us) override
    {
        uint64_t wanted = us > 0 ? static_cast<uint64_t>(us) : 0;
        SystemClockWrapper::SleepForMicroseconds(static_cast<int>(std::min(wanted, longest_us)));
    }

  private:
    const uint64_t longest_us;
};

} // namespace

environment::environment(const std::shared_ptr<rocksdb::FileSystem> &files, bool holds,
                         uint64_t longest_sleep_us)
    : EnvWrapper(rocksdb::NewCompositeEnv(files)), is_holding(holds)
{
    system_clock_ = std::make_shared<coarse_clock>(longest_sleep_us);
}

void environment::begin_compactions()
{
    std::lock_guard<std::mutex> lock(mutex);
    is_holding = false;
    for (const job &each : held)
        EnvWrapper::Schedule(each.run, each.argument, LOW, each.tag, each.discard);
    held.clear();
}

/* Compactions, and nothing else, have the low priority. */
void environment::Schedule(void (*run)(void *), void *argument, Priority priority, void *tag,
                           void (*discard)(void *))
{
    std::lock_guard<std::mutex> lock(mutex);
    if (is_holding && priority == LOW)
        held.push_back({run, argument, tag, discard});
    else
        EnvWrapper::Schedule(run, argument, priority, tag, discard);
}

int environment::UnSchedule(void *tag, Priority priority)
{
    std::vector<job> discarded;
    if (priority == LOW) {
        std::lock_guard<std::mutex> lock(mutex);
        auto first = std::partition(held.begin(), held.end(),
                                    [tag](const job &each) { return each.tag != tag; });
        discarded.assign(first, held.end());
        held.erase(first, held.end());
    }
    for (const job &each : discarded)
        if (each.discard != nullptr)
            each.discard(each.argument);
    return static_cast<int>(discarded.size()) + EnvWrapper::UnSchedule(tag, priority);
}
