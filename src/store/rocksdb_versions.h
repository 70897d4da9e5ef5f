/* What differs between the RocksDBs that this is built with: 7.8 of Debian 12 and 9.10 of Debian
 * 13. All `#if`s for a version of it are here.
 *
 * It is the cache that differs: a block's owner, whom it is given back to, was a function and is a
 * table of functions; and a class that derives from Cache was to write out all of it. And deletions
 * that were held back are asked for in other words. */
#ifndef TRESTLE_STORE_ROCKSDB_VERSIONS_H
#define TRESTLE_STORE_ROCKSDB_VERSIONS_H

#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "rocksdb/version.h"
#if ROCKSDB_MAJOR >= 8
#include "rocksdb/advanced_cache.h"
#endif

/* A compaction need not meet as many records as a table says that it has: a damaged block is read
 * as an empty one when it is repaired. 7.8 does not count. */
inline void skip_record_count(rocksdb::DBOptions *options)
{
#if ROCKSDB_MAJOR >= 9
    options->compaction_verify_record_count = false;
#else
    (void)options;
#endif
}

/* Of both, but in no header of theirs: the checksum of a block. */
namespace rocksdb {
uint32_t ComputeBuiltinChecksum(ChecksumType type, const char *data, size_t size);
}

/* As often as they were held back; with the last, RocksDB looks for what it may delete. */
inline rocksdb::Status enable_file_deletions(rocksdb::DB *db)
{
#if ROCKSDB_MAJOR >= 9
    return db->EnableFileDeletions();
#else
    return db->EnableFileDeletions(false);
#endif
}

#if ROCKSDB_MAJOR >= 8

using block_owner = const rocksdb::Cache::CacheItemHelper *;

inline void give_back_block(block_owner owner, void *block)
{
    if (owner != nullptr && owner->del_cb != nullptr)
        owner->del_cb(block, nullptr);
}

/* An owner that calls this function. */
template <void (*give_back)(void *)> block_owner owner_calling()
{
    static const rocksdb::Cache::CacheItemHelper owner(
        rocksdb::CacheEntryRole::kMisc,
        [](void *block, rocksdb::MemoryAllocator *) { give_back(block); });
    return &owner;
}

inline rocksdb::Status insert_block(rocksdb::Cache *cache, const rocksdb::Slice &key, void *block,
                                    size_t charge, block_owner owner,
                                    rocksdb::Cache::Handle **handle,
                                    rocksdb::Cache::Priority priority)
{
    return cache->Insert(key, block, owner, charge, handle, priority);
}

inline block_owner owner_of(const rocksdb::Cache *cache, rocksdb::Cache::Handle *handle)
{
    return cache->GetCacheItemHelper(handle);
}

#else

using block_owner = rocksdb::Cache::DeleterFn;

inline void give_back_block(block_owner owner, void *block)
{
    owner(rocksdb::Slice(), block);
}

/* An owner that calls this function. */
template <void (*give_back)(void *)> block_owner owner_calling()
{
    return [](const rocksdb::Slice &, void *block) { give_back(block); };
}

inline rocksdb::Status insert_block(rocksdb::Cache *cache, const rocksdb::Slice &key, void *block,
                                    size_t charge, block_owner owner,
                                    rocksdb::Cache::Handle **handle,
                                    rocksdb::Cache::Priority priority)
{
    return cache->Insert(key, block, charge, owner, handle, priority);
}

inline block_owner owner_of(const rocksdb::Cache *cache, rocksdb::Cache::Handle *handle)
{
    return cache->GetDeleter(handle);
}

#endif

/* A cache before another one, `entries`: a derived class answers for blocks of its own. */
class cache_front
#if ROCKSDB_MAJOR >= 8
    : public rocksdb::CacheWrapper {
#else
    : public rocksdb::Cache {
#endif
  public:
    using Slice = rocksdb::Slice;
    using Status = rocksdb::Status;

  protected:
    /* A handle of one's own for a block that is not let in; NULL: let it in. */
    virtual Handle *turn_away(void *block, size_t charge, block_owner owner, Priority priority) = 0;
    virtual block_owner owner_of_handle(Handle *handle) const = 0;
    virtual void count_lookup(bool was_there) = 0;

#if ROCKSDB_MAJOR >= 8
  public:
    explicit cache_front(const std::shared_ptr<Cache> &behind)
        : CacheWrapper(behind), entries(behind.get())
    {
    }

    Status Insert(const Slice &key, ObjectPtr block, block_owner owner, size_t charge,
                  Handle **handle, Priority priority, const Slice &compressed,
                  rocksdb::CompressionType type) override
    {
        Handle *own = handle != nullptr ? turn_away(block, charge, owner, priority) : nullptr;
        if (own == nullptr)
            return entries->Insert(key, block, owner, charge, handle, priority, compressed, type);
        *handle = own;
        return Status::OK();
    }

    Handle *Lookup(const Slice &key, block_owner owner, CreateContext *context, Priority priority,
                   rocksdb::Statistics *statistics) override
    {
        Handle *handle = entries->Lookup(key, owner, context, priority, statistics);
        count_lookup(handle != nullptr);
        return handle;
    }

    block_owner GetCacheItemHelper(Handle *handle) const override
    {
        return owner_of_handle(handle);
    }

    /* Without a second cache behind it, which has none, a lookup has ended when it has begun. */
    void StartAsyncLookup(AsyncLookupHandle &lookup) override
    {
        entries->StartAsyncLookup(lookup);
        count_lookup(lookup.IsPending() || lookup.Result() != nullptr);
    }

  protected:
    Cache *const entries;
#else
  public:
    explicit cache_front(std::shared_ptr<Cache> behind)
        : behind(std::move(behind)), entries(this->behind.get())
    {
    }

    using Cache::Insert;
    Status Insert(const Slice &key, void *block, size_t charge, DeleterFn owner, Handle **handle,
                  Priority priority) override
    {
        Handle *own = handle != nullptr ? turn_away(block, charge, owner, priority) : nullptr;
        if (own == nullptr)
            return entries->Insert(key, block, charge, owner, handle, priority);
        *handle = own;
        return Status::OK();
    }

    using Cache::Lookup;
    Handle *Lookup(const Slice &key, rocksdb::Statistics *statistics) override
    {
        Handle *handle = entries->Lookup(key, statistics);
        count_lookup(handle != nullptr);
        return handle;
    }

    DeleterFn GetDeleter(Handle *handle) const override
    {
        return owner_of_handle(handle);
    }

    void Erase(const Slice &key) override
    {
        entries->Erase(key);
    }
    uint64_t NewId() override
    {
        return entries->NewId();
    }
    void SetCapacity(size_t capacity) override
    {
        entries->SetCapacity(capacity);
    }
    void SetStrictCapacityLimit(bool is_strict) override
    {
        entries->SetStrictCapacityLimit(is_strict);
    }
    bool HasStrictCapacityLimit() const override
    {
        return entries->HasStrictCapacityLimit();
    }
    size_t GetCapacity() const override
    {
        return entries->GetCapacity();
    }
    size_t GetUsage() const override
    {
        return entries->GetUsage();
    }
    size_t GetPinnedUsage() const override
    {
        return entries->GetPinnedUsage();
    }
    void
    ApplyToAllEntries(const std::function<void(const Slice &, void *, size_t, DeleterFn)> &call,
                      const ApplyToAllEntriesOptions &options) override
    {
        entries->ApplyToAllEntries(call, options);
    }
    void EraseUnRefEntries() override
    {
        entries->EraseUnRefEntries();
    }

  private:
    const std::shared_ptr<Cache> behind;

  protected:
    Cache *const entries;
#endif
};

#endif
