/* entry_tree against a sorted set, with every kind of key that shares bytes with others, and with
 * readers beside the writer. */
#include "store/entry_tree.h"

extern "C" {
#include "base/testing/testing.h"
}

#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

/* A heap that can be told to fail. */
class heap final : public entry_tree::allocator {
  public:
    char *allocate(size_t size) override
    {
        if (left == 0)
            throw std::bad_alloc();
        left--;
        blocks.emplace_back(new char[size]);
        return blocks.back().get();
    }

    size_t left = SIZE_MAX; /* allocations until it fails */

  private:
    std::vector<std::unique_ptr<char[]>> blocks;
};

struct generator {
    uint64_t state;
    uint64_t next()
    {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return state >> 33;
    }
    uint64_t below(uint64_t bound) { return next() % bound; }
};

std::string internal(const std::string &user, uint64_t tag)
{
    std::string key = user;
    for (unsigned i = 0; i < 8; i++)
        key.push_back(static_cast<char>(tag >> 8 * i));
    return key;
}

std::string entry_of(const std::string &key)
{
    std::string entry;
    size_t size = key.size();
    for (; size >= 0x80; size >>= 7)
        entry.push_back(static_cast<char>(size | 0x80));
    entry.push_back(static_cast<char>(size));
    return entry + key + "what follows";
}

internal_key parse(const std::string &key)
{
    return internal_key::of_bytes(key.data(), key.size());
}

struct in_order {
    bool operator()(const std::string &a, const std::string &b) const
    {
        return compare(parse(a), parse(b)) < 0;
    }
};
using sorted_keys = std::set<std::string, in_order>;

/* A tree, the set that it should be like, and the entries, which do not move. */
struct pair {
    heap memory;
    entry_tree tree{&memory};
    sorted_keys keys;
    std::vector<std::unique_ptr<std::string>> entries;

    void insert(const std::string &key)
    {
        if (!keys.insert(key).second)
            return;
        entries.push_back(std::make_unique<std::string>(entry_of(key)));
        tree.insert(entries.back()->data());
    }
};

void assert_at(const entry_tree::cursor &at, const sorted_keys &keys, sorted_keys::const_iterator i)
{
    assert_int_equal(at.valid(), i != keys.end());
    if (i == keys.end())
        return;
    internal_key found = internal_key::of_entry(at.entry());
    assert_int_equal(compare(found, parse(*i)), 0);
}

void check_walks(const pair &p)
{
    entry_tree::cursor at(&p.tree);
    at.seek_first();
    for (auto i = p.keys.begin(); i != p.keys.end(); ++i, at.next())
        assert_at(at, p.keys, i);
    assert_false(at.valid());
    at.seek_last();
    for (auto i = p.keys.rbegin(); i != p.keys.rend(); ++i, at.prev())
        assert_at(at, p.keys, std::prev(i.base()));
    assert_false(at.valid());
}

void check_seeks(const pair &p, const std::string &key)
{
    entry_tree::cursor at(&p.tree);
    auto after = p.keys.lower_bound(key);
    at.seek(parse(key));
    assert_at(at, p.keys, after);
    at.seek_backwards(parse(key));
    auto upper = p.keys.upper_bound(key);
    assert_at(at, p.keys, upper == p.keys.begin() ? p.keys.end() : std::prev(upper));
}

/* Keys of few letters, so that they collide, begin alike, and are prefixes of each other. */
std::string random_user_key(generator *random)
{
    static const char letters[] = {'\0', 'a', 'b', '\xff'};
    std::string key(random->below(4) == 0 ? "a long beginning that many share" : "");
    for (uint64_t size = random->below(14); size > 0; size--)
        key.push_back(letters[random->below(sizeof letters)]);
    return key;
}

void test_random_keys(void **)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        generator random{seed};
        pair p;
        for (unsigned i = 0; i < 3000; i++) {
            p.insert(internal(random_user_key(&random), random.below(5)));
            if (i % 100 == 0)
                check_walks(p);
            check_seeks(p, internal(random_user_key(&random), random.below(5)));
        }
        check_walks(p);
    }
}

void test_numbered_keys(void **)
{
    enum { COUNT = 20000 };
    for (unsigned way = 0; way < 3; way++) {
        generator random{way};
        pair p;
        char name[64];
        for (unsigned i = 0; i < COUNT; i++) {
            unsigned number = way == 0 ? i : way == 1 ? COUNT - i : (unsigned)random.below(1000000);
            snprintf(name, sizeof name, "user%012u", number);
            p.insert(internal(name, i));
        }
        check_walks(p);
        for (auto i = p.keys.begin(); i != p.keys.end(); ++i)
            check_seeks(p, *i);
    }
}

/* As a batch does it: `steps` keys ahead, looked up with a tag above all that their key has. */
void insert_ahead(pair *p, const std::vector<std::string> &users, size_t steps)
{
    std::vector<entry_tree::place> places(users.size());
    auto newest = [&](size_t i) {
        return internal_key{users[i].data(), users[i].size(), UINT64_MAX};
    };
    size_t looked = 0;
    for (size_t i = 0; i < users.size(); i++) {
        for (; looked < users.size() && looked < i + steps; looked++)
            places[looked] = p->tree.look_up(newest(looked));
        if (i + steps / 2 < looked)
            p->tree.fetch(newest(i + steps / 2), places[i + steps / 2]);
        const std::string key = internal(users[i], i);
        assert_true(p->keys.insert(key).second);
        p->entries.push_back(std::make_unique<std::string>(entry_of(key)));
        p->tree.insert(p->entries.back()->data(), places[i]);
    }
}

/* Leaves are split between the look and the insert, and a key comes several times within a batch.
 */
void test_places_looked_up_ahead(void **)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        generator random{seed};
        pair p;
        std::vector<std::string> users;
        for (unsigned i = 0; i < 3000; i++)
            users.push_back(seed % 2 == 0 ? random_user_key(&random)
                                          : "user" + std::to_string(random.below(1000)));
        insert_ahead(&p, users, 1 + random.below(64));
        check_walks(p);
        for (auto i = p.keys.begin(); i != p.keys.end(); ++i)
            check_seeks(p, *i);
    }
}

/* Keys that differ late in what a leaf has of them, and keys that do not at all. */
void test_heads_that_are_kept_and_made_anew(void **)
{
    generator random{5};
    pair p;
    char name[64];
    for (unsigned i = 0; i < 20000; i++) {
        unsigned place = (unsigned)random.below(4);
        snprintf(name, sizeof name, "%s%0*u", place == 0 ? "a" : "the same for many",
                 4 + 4 * (int)place, (unsigned)random.below(3000));
        p.insert(internal(name, random.below(3)));
    }
    check_walks(p);
    for (auto i = p.keys.begin(); i != p.keys.end(); ++i)
        check_seeks(p, *i);
}

/* A hot row: its entries come newest last and sort newest first. */
void test_one_key_with_many_tags(void **)
{
    pair p;
    for (uint64_t tag = 0; tag < 5000; tag++)
        p.insert(internal("hot", tag));
    p.insert(internal("hos", 1));
    p.insert(internal("hou", 1));
    check_walks(p);
    for (uint64_t tag = 0; tag < 5002; tag += 7)
        check_seeks(p, internal("hot", tag));
}

void test_long_keys(void **)
{
    pair p;
    for (size_t size = 0; size < 5000; size += 61)
        p.insert(internal(std::string(size, 'x'), size));
    check_walks(p);
}

void test_empty(void **)
{
    pair p;
    check_walks(p);
    check_seeks(p, internal("a", 1));
    assert_int_equal(p.tree.rank(parse(internal("a", 1))), 0);
}

void test_ranks_are_near(void **)
{
    enum { COUNT = 50000 };
    generator random{7};
    pair p;
    char name[64];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "user%08u", (unsigned)random.below(100000000));
        p.insert(internal(name, 1));
    }
    uint64_t position = 0, last = 0;
    for (auto i = p.keys.begin(); i != p.keys.end(); ++i, position++) {
        uint64_t rank = p.tree.rank(parse(*i));
        assert_true(rank >= last);
        assert_true(rank <= position + COUNT / 10 && position <= rank + COUNT / 10);
        last = rank;
    }
}

/* Readers look for everything that was there before they came. */
void read_beside(const entry_tree *tree, const std::vector<std::string> *keys,
                 const std::atomic<size_t> *inserted, uint64_t seed, std::atomic<bool> *is_wrong)
{
    generator random{seed};
    entry_tree::cursor at(tree);
    size_t known;
    do {
        known = inserted->load(std::memory_order_acquire);
        if (known == 0)
            continue;
        internal_key key = parse((*keys)[random.below(known)]);
        at.seek(key);
        if (!at.valid() || compare(internal_key::of_entry(at.entry()), key) != 0)
            is_wrong->store(true);
        for (unsigned i = 0; i < 20 && at.valid(); i++) {
            internal_key before = internal_key::of_entry(at.entry());
            random.below(2) == 0 ? at.next() : at.prev();
            if (at.valid() && compare(before, internal_key::of_entry(at.entry())) == 0)
                is_wrong->store(true);
        }
    } while (known < keys->size() && !is_wrong->load());

    size_t seen = 0;
    for (at.seek_first(); at.valid(); at.next())
        seen++;
    if (seen != keys->size())
        is_wrong->store(true);
}

void test_readers_beside_the_writer(void **)
{
    enum { COUNT = 30000, READERS = 3 };
    heap memory;
    entry_tree tree(&memory);
    generator random{11};
    std::vector<std::string> keys, entries;
    for (unsigned i = 0; i < COUNT; i++) {
        keys.push_back(internal("user" + std::to_string(random.below(COUNT)), i));
        entries.push_back(entry_of(keys.back()));
    }
    std::atomic<size_t> inserted{0};
    std::atomic<bool> is_wrong{false};
    std::vector<std::thread> readers;
    for (unsigned i = 0; i < READERS; i++)
        readers.emplace_back(read_beside, &tree, &keys, &inserted, i, &is_wrong);
    for (size_t i = 0; i < COUNT; i++) {
        tree.insert(entries[i].data());
        inserted.store(i + 1, std::memory_order_release);
    }
    for (auto &reader : readers)
        reader.join();
    assert_false(is_wrong.load());
}

/* An insert that finds no memory leaves what was there, whichever allocation it was. */
void test_no_memory(void **)
{
    for (size_t allowed = 1; allowed < 200; allowed++) {
        pair p;
        generator random{allowed};
        p.memory.left = allowed;
        std::string last;
        try {
            for (;;) {
                last = internal(random_user_key(&random), random.below(3));
                p.insert(last);
            }
        } catch (const std::bad_alloc &) {
            p.keys.erase(last);
        }
        for (const std::string &key : p.keys)
            check_seeks(p, key);
    }
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_numbered_keys),
        cmocka_unit_test(test_places_looked_up_ahead),
        cmocka_unit_test(test_heads_that_are_kept_and_made_anew),
        cmocka_unit_test(test_one_key_with_many_tags),
        cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_ranks_are_near),
        cmocka_unit_test(test_readers_beside_the_writer),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
