/* The block cache as RocksDB gets to see it: an LRU cache that turns some blocks away.
 *
 * What an event loop reads comes out of the kernel's page cache (file_system.cc), so a copy of it
 * in the block cache saves a system call and a checksum when it is asked for again, and no more.
 * With far more data than cache it is hardly ever asked for again, and to put a block in and
 * another out costs more than to read it: two mutexes, memory of another thread's to be given back,
 * a handful of cold cache lines. So of such blocks a full cache takes one in ADMIT_ONE_OF, at
 * random. What is asked for often is in soon; what is asked for once seldom drives it out. All
 * others come in: what had to be waited for, indexes and filters, everything as long as there is
 * room.
 *
 * A block that is turned away gets a handle that is no entry of the cache: RocksDB takes it for one
 * and gives it back when it has read the block. So it says as of any other that it was put into
 * the cache, which read_watch relies on. */
#include "store/internal.h"
#include "store/rocksdb_versions.h"

#include <sched.h>

using rocksdb::Cache;

namespace {

enum : uint32_t {
    ADMIT_ONE_OF = 8,
    COUNT_SHARDS = 8, /* a power of two; processors beyond share */
    LOOK_ONE_OF = 64, /* offers between two looks at how full the cache is: that takes 64 mutexes */
};

/* The handle of no entry. Its users tell it from the handles of the cache, which are aligned, by
 * the last bit of its address. */
struct visitor {
    void *block;
    block_owner owner;
    size_t charge;
    std::atomic<uint32_t> references{1};
};

bool is_visitor(const Cache::Handle *handle)
{
    return (reinterpret_cast<uintptr_t>(handle) & 1) != 0;
}

visitor *to_visitor(Cache::Handle *handle)
{
    return reinterpret_cast<visitor *>(reinterpret_cast<uintptr_t>(handle) - 1);
}

Cache::Handle *to_handle(visitor *guest)
{
    return reinterpret_cast<Cache::Handle *>(reinterpret_cast<uintptr_t>(guest) + 1);
}

void release(visitor *guest)
{
    if (guest->references.fetch_sub(1, std::memory_order_acq_rel) > 1)
        return;
    give_back_block(guest->owner, guest->block);
    delete guest;
}

/* Good enough to throw dice. */
uint32_t random_number()
{
    static thread_local uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>(state >> 32);
}

std::shared_ptr<Cache> make_entries(size_t capacity)
{
    rocksdb::LRUCacheOptions options;
    options.capacity = capacity;
    options.high_pri_pool_ratio = 0.3; /* for indexes and filters */
    return rocksdb::NewLRUCache(options);
}

class block_cache final : public cache_front {
  public:
    explicit block_cache(size_t capacity) : cache_front(make_entries(capacity)) {}

    const char *Name() const override { return "trestle.block_cache"; }

    struct cache_lookups count() const
    {
        struct cache_lookups sum = {};
        for (const shard &counted : lookups) {
            sum.hits += counted.hits.load(std::memory_order_relaxed);
            sum.misses += counted.misses.load(std::memory_order_relaxed);
        }
        return sum;
    }

    bool Ref(Handle *handle) override
    {
        if (!is_visitor(handle))
            return entries->Ref(handle);
        to_visitor(handle)->references.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    using Cache::Release;
    bool Release(Handle *handle, bool erase_if_last) override
    {
        if (!is_visitor(handle))
            return entries->Release(handle, erase_if_last);
        release(to_visitor(handle));
        return false;
    }

    void *Value(Handle *handle) override
    {
        return is_visitor(handle) ? to_visitor(handle)->block : entries->Value(handle);
    }

    using cache_front::GetUsage;
    size_t GetUsage(Handle *handle) const override
    {
        return is_visitor(handle) ? to_visitor(handle)->charge : entries->GetUsage(handle);
    }

    size_t GetCharge(Handle *handle) const override
    {
        return is_visitor(handle) ? to_visitor(handle)->charge : entries->GetCharge(handle);
    }

  private:
    Handle *turn_away(void *block, size_t charge, block_owner owner, Priority priority) override
    {
        if (priority == Priority::HIGH || is_admitted())
            return nullptr;
        auto *guest = new (std::nothrow) visitor{block, owner, charge};
        return guest != nullptr ? to_handle(guest) : nullptr;
    }

    block_owner owner_of_handle(Handle *handle) const override
    {
        return is_visitor(handle) ? to_visitor(handle)->owner : owner_of(entries, handle);
    }

    void count_lookup(bool was_there) override
    {
        shard &counted = lookups[static_cast<unsigned>(sched_getcpu()) % COUNT_SHARDS];
        auto &counter = was_there ? counted.hits : counted.misses;
        counter.fetch_add(1, std::memory_order_relaxed);
    }

    bool is_admitted()
    {
        if (!thread_keeps_to_memory())
            return true;
        uint32_t dice = random_number();
        if (dice % LOOK_ONE_OF == 0)
            is_full.store(GetUsage() > GetCapacity() / 16 * 15, std::memory_order_relaxed);
        return !is_full.load(std::memory_order_relaxed) || dice / LOOK_ONE_OF % ADMIT_ONE_OF == 0;
    }

    struct alignas(64) shard {
        std::atomic<uint64_t> hits{0};
        std::atomic<uint64_t> misses{0};
    };

    std::atomic<bool> is_full{false};
    shard lookups[COUNT_SHARDS];
};

} // namespace

std::shared_ptr<Cache> make_block_cache(size_t capacity)
{
    return std::make_shared<block_cache>(capacity);
}

struct cache_lookups count_cache_lookups(const Cache *cache)
{
    return static_cast<const block_cache *>(cache)->count();
}
