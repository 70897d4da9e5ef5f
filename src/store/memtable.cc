/* RocksDB's write buffers, with an entry_tree in place of its skip list.
 *
 * One thread at a time inserts: concurrent inserts are off (options.cc). RocksDB gives each reader
 * a sequence number before it comes, and all entries up to that have been inserted by then; that is
 * what a cursor promises to see. */
#include "store/entry_tree.h"
#include "store/internal.h"

namespace {

using rocksdb::MemTableRep;
using rocksdb::Slice;

internal_key key_of(const Slice &key)
{
    return internal_key::of_bytes(key.data(), key.size());
}

class iterator : public MemTableRep::Iterator {
  public:
    explicit iterator(const entry_tree *tree) : at(tree) {}

    bool Valid() const override { return at.valid(); }
    const char *key() const override { return at.entry(); }
    void Next() override { at.next(); }
    void Prev() override { at.prev(); }
    void Seek(const Slice &key, const char *) override { at.seek(key_of(key)); }
    void SeekForPrev(const Slice &key, const char *) override { at.seek_backwards(key_of(key)); }
    void SeekToFirst() override { at.seek_first(); }
    void SeekToLast() override { at.seek_last(); }

  private:
    entry_tree::cursor at;
};

/* RocksDB wants some iterators in memory of an arena whose declaration it keeps to itself; it then
 * calls their destructor and nothing else. So these are made in blocks of this pool, and their
 * destructor gives the block back. Each thread has a pool; a block may change it. */
class block_pool {
  public:
    ~block_pool()
    {
        while (free != nullptr)
            ::operator delete(pop());
    }

    void *take() { return free != nullptr ? pop() : ::operator new(BLOCK_SIZE); }

    /* The block stays memory until later: its object's destructor has not quite ended. */
    void give_back(void *block)
    {
        if (count == MOST)
            ::operator delete(pop());
        auto *link = reinterpret_cast<void **>(static_cast<char *>(block) + LINK_AT);
        *link = free;
        free = block;
        count++;
    }

    static block_pool &of_this_thread()
    {
        static thread_local block_pool pool;
        return pool;
    }

  private:
    enum : size_t { LINK_AT = sizeof(iterator), BLOCK_SIZE = LINK_AT + sizeof(void *), MOST = 64 };

    void *pop()
    {
        void *block = free;
        free = *reinterpret_cast<void **>(static_cast<char *>(block) + LINK_AT);
        count--;
        return block;
    }

    void *free = nullptr;
    size_t count = 0;
};

class pooled_iterator final : public iterator {
  public:
    explicit pooled_iterator(const entry_tree *tree) : iterator(tree) {}
    ~pooled_iterator() override { block_pool::of_this_thread().give_back(this); }
    static void *operator new(size_t) { return block_pool::of_this_thread().take(); }
    static void operator delete(void *) {} /* after the destructor */
};

/* An iterator that a get uses and RocksDB 7.8 never gives back: one for each thread. */
class lent_iterator final : public iterator {
  public:
    explicit lent_iterator(const entry_tree *tree) : iterator(tree) {}
    static void *operator new(size_t)
    {
        alignas(iterator) static thread_local char block[sizeof(iterator)];
        return block;
    }
    static void operator delete(void *) {}
};

/* Inserts the keys of a batch, each after the places of those that follow have been looked up. */
class look_ahead {
  public:
    void begin(const char *data_, const std::vector<batch_key> &keys_)
    {
        data = data_;
        keys = keys_.data();
        count = keys_.size();
        next = looked = 0;
    }

    void end() { count = next = 0; }

    void insert(entry_tree *tree, const char *entry)
    {
        if (!is_next(internal_key::of_entry(entry))) {
            end(); /* it is not what was thought */
            tree->insert(entry);
            return;
        }
        for (; looked < count && looked < next + STEPS; looked++)
            found[looked % STEPS] = look_up(tree, keys[looked]);
        if (next + STEPS / 2 < looked)
            fetch(tree, next + STEPS / 2);
        const step &here = found[next++ % STEPS];
        tree->insert(entry, here.tree == tree ? here.place : entry_tree::place());
    }

  private:
    enum : size_t { STEPS = 8 }; /* 4 and 16 do no better */
    struct step {
        const entry_tree *tree; /* NULL: it was not looked up */
        entry_tree::place place;
    };

    bool is_next(const internal_key &key) const
    {
        return next < count && keys[next].size == key.size &&
               memcmp(data + keys[next].at, key.data, key.size) == 0;
    }

    /* Newer than all that there is, as RocksDB numbers what it inserts. */
    internal_key newest(const batch_key &key) const
    {
        return {data + key.at, key.size, UINT64_MAX};
    }

    /* Keys of one family go into one tree. */
    step look_up(const entry_tree *tree, const batch_key &key) const
    {
        if (key.family != keys[next].family)
            return {nullptr, entry_tree::place()};
        return {tree, tree->look_up(newest(key))};
    }

    void fetch(const entry_tree *tree, size_t i) const
    {
        if (found[i % STEPS].tree == tree)
            tree->fetch(newest(keys[i]), found[i % STEPS].place);
    }

    const char *data = nullptr;
    const batch_key *keys = nullptr;
    size_t count = 0;
    size_t next = 0;   /* to be inserted */
    size_t looked = 0; /* how many have been looked up */
    step found[STEPS];
};

thread_local look_ahead ahead;

class memtable final : public MemTableRep, private entry_tree::allocator {
  public:
    explicit memtable(rocksdb::Allocator *allocator) : MemTableRep(allocator), tree(this) {}

    void Insert(rocksdb::KeyHandle handle) override
    {
        ahead.insert(&tree, static_cast<const char *>(handle));
    }

    bool Contains(const char *entry) const override
    {
        entry_tree::cursor at(&tree);
        internal_key key = internal_key::of_entry(entry);
        at.seek(key);
        return at.valid() && compare(internal_key::of_entry(at.entry()), key) == 0;
    }

    uint64_t ApproximateNumEntries(const Slice &from, const Slice &to) override
    {
        uint64_t before = tree.rank(key_of(from)), until = tree.rank(key_of(to));
        return until > before ? until - before : 0;
    }

    size_t ApproximateMemoryUsage() override { return 0; } /* all of it is the allocator's */

    Iterator *GetIterator(rocksdb::Arena *) override { return new pooled_iterator(&tree); }

    /* Keys have no prefixes here, so only gets ask for this. */
    Iterator *GetDynamicPrefixIterator(rocksdb::Arena *) override
    {
        return new lent_iterator(&tree);
    }

  private:
    char *allocate(size_t size) override
    {
        char *memory;
        Allocate(size, &memory);
        return memory;
    }

    entry_tree tree;
};

class memtable_factory final : public rocksdb::MemTableRepFactory {
  public:
    const char *Name() const override { return "trestle.entry_tree"; }

    MemTableRep *CreateMemTableRep(const MemTableRep::KeyComparator &,
                                   rocksdb::Allocator *allocator, const rocksdb::SliceTransform *,
                                   rocksdb::Logger *) override
    {
        return new memtable(allocator);
    }
};

} // namespace

look_ahead_scope::look_ahead_scope(const char *data, const std::vector<batch_key> &keys)
{
    ahead.begin(data, keys);
}

look_ahead_scope::~look_ahead_scope()
{
    ahead.end();
}

std::shared_ptr<rocksdb::MemTableRepFactory> make_memtable_factory()
{
    return std::make_shared<memtable_factory>();
}
