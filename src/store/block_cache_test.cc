/* Which blocks come into a full block cache, and that no block in use is lost or freed twice. */
#include "store/internal.h"
#include "store/rocksdb_versions.h"

extern "C" {
#include "base/testing/testing.h"
}

using rocksdb::Cache;

namespace {

enum : size_t { CAPACITY = 4 << 20, CHARGE = 4 << 10, ENTRIES = CAPACITY / CHARGE };

size_t freed;

void free_block(void *value)
{
    freed++;
    delete static_cast<uint64_t *>(value);
}

std::string key_of(uint64_t number)
{
    std::string key = std::to_string(number);
    return std::string(16 - key.size(), '0') + key; /* the cache wants keys of 16 bytes */
}

Cache::Handle *insert(Cache *cache, uint64_t number, Cache::Priority priority)
{
    Cache::Handle *handle = nullptr;
    block_owner owner = owner_calling<free_block>();
    rocksdb::Status s =
        insert_block(cache, key_of(number), new uint64_t(number), CHARGE, owner, &handle, priority);
    assert_true(s.ok());
    assert_int_equal(*static_cast<uint64_t *>(cache->Value(handle)), number);
    assert_int_equal(cache->GetCharge(handle) >= CHARGE, true);
    assert_ptr_equal(owner_of(cache, handle), owner);
    return handle;
}

/* How many of so many new blocks are there right after they were read. */
size_t count_admitted(Cache *cache, uint64_t first, size_t count, enum store_read_tier read_tier,
                      Cache::Priority priority)
{
    read_watch watch(read_tier);
    size_t admitted = 0;
    for (uint64_t i = first; i < first + count; i++) {
        cache->Release(insert(cache, i, priority), false);
        Cache::Handle *found = cache->Lookup(key_of(i));
        if (found == nullptr)
            continue;
        admitted++;
        cache->Release(found, false);
    }
    return admitted;
}

void test_there_is_room(void **)
{
    std::shared_ptr<Cache> cache = make_block_cache(CAPACITY);
    assert_int_equal(
        count_admitted(cache.get(), 0, ENTRIES / 2, STORE_READ_CACHED, Cache::Priority::LOW),
        ENTRIES / 2);
}

void test_full(void **)
{
    std::shared_ptr<Cache> cache = make_block_cache(CAPACITY);
    Cache *c = cache.get();
    size_t fill = count_admitted(c, 0, 4 * ENTRIES, STORE_READ_ANY, Cache::Priority::LOW);
    assert_int_equal(fill, 4 * ENTRIES); /* what was waited for comes in */

    /* Within a few blocks, one of 8 of what was in memory anyway. */
    size_t hasty = count_admitted(c, 100000, 10000, STORE_READ_CACHED, Cache::Priority::LOW);
    assert_in_range(hasty, 10000 / 16, 10000 / 4);
    assert_int_equal(count_admitted(c, 200000, 100, STORE_READ_CACHED, Cache::Priority::HIGH), 100);
    assert_int_equal(count_admitted(c, 300000, 100, STORE_READ_ANY, Cache::Priority::LOW), 100);
}

/* Room that is made is noticed. */
void test_room_again(void **)
{
    std::shared_ptr<Cache> cache = make_block_cache(CAPACITY);
    Cache *c = cache.get();
    count_admitted(c, 0, 4 * ENTRIES, STORE_READ_CACHED, Cache::Priority::LOW);
    c->EraseUnRefEntries();
    count_admitted(c, 100000, ENTRIES / 2, STORE_READ_CACHED, Cache::Priority::LOW);
    assert_int_equal(count_admitted(c, 200000, 100, STORE_READ_CACHED, Cache::Priority::LOW), 100);
}

/* What it has beyond goes at once, not when something comes. */
void test_it_is_made_smaller(void **)
{
    std::shared_ptr<Cache> cache = make_block_cache(CAPACITY);
    Cache *c = cache.get();
    count_admitted(c, 0, 4 * ENTRIES, STORE_READ_ANY, Cache::Priority::LOW);
    assert_in_range(c->GetUsage(), CAPACITY / 2, CAPACITY);
    freed = 0;
    c->SetCapacity(CAPACITY / 8);
    assert_int_equal(c->GetCapacity(), CAPACITY / 8);
    assert_true(c->GetUsage() <= CAPACITY / 8);
    assert_true(freed >= ENTRIES / 4);
    c->SetCapacity(CAPACITY);
    assert_int_equal(
        count_admitted(c, 100000, ENTRIES / 2, STORE_READ_CACHED, Cache::Priority::LOW),
        ENTRIES / 2);
}

/* A block lives as long as somebody holds it, in the cache or not. */
void test_held_blocks(void **)
{
    std::shared_ptr<Cache> cache = make_block_cache(CAPACITY);
    Cache *c = cache.get();
    count_admitted(c, 0, 4 * ENTRIES, STORE_READ_ANY, Cache::Priority::LOW);
    {
        read_watch watch(STORE_READ_CACHED);
        std::vector<Cache::Handle *> held;
        for (uint64_t i = 0; i < 1000; i++) {
            Cache::Handle *handle = insert(c, 100000 + i, Cache::Priority::LOW);
            assert_true(c->Ref(handle));
            c->Release(handle, false);
            held.push_back(handle);
        }
        for (uint64_t i = 0; i < 1000; i++) {
            assert_int_equal(*static_cast<uint64_t *>(c->Value(held[i])), 100000 + i);
            c->Release(held[i], false);
        }
    }
    freed = 0;
    cache.reset(); /* the sanitizer knows of what was freed twice, or not at all */
    assert_in_range(freed, 1, ENTRIES);
}

void test_lookups_are_counted(void **)
{
    std::shared_ptr<Cache> cache = make_block_cache(CAPACITY);
    Cache *c = cache.get();
    assert_int_equal(c->Lookup("nothing") == nullptr, true);
    c->Release(insert(c, 1, Cache::Priority::LOW), false);
    count_admitted(c, 1, 1, STORE_READ_ANY, Cache::Priority::LOW);
    struct cache_lookups lookups = count_cache_lookups(c);
    assert_int_equal(lookups.misses, 1);
    assert_true(lookups.hits >= 1);
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_is_room),       cmocka_unit_test(test_full),
        cmocka_unit_test(test_room_again),          cmocka_unit_test(test_held_blocks),
        cmocka_unit_test(test_lookups_are_counted), cmocka_unit_test(test_it_is_made_smaller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
