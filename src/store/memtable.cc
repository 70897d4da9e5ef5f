/* RocksDB's write buffers, with an entry_tree in place of its skip list.
 *
 * One thread at a time inserts: concurrent inserts are off (options.cc). RocksDB gives each reader
 * a sequence number before it comes, and all entries up to that have been inserted by then; that is
 * what a cursor promises to see. */
#include "store/entry_tree.h"
#include "store/internal.h"

#include "rocksdb/memtablerep.h"

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

class memtable final : public MemTableRep, private entry_tree::allocator {
  public:
    explicit memtable(rocksdb::Allocator *allocator) : MemTableRep(allocator), tree(this) {}

    void Insert(rocksdb::KeyHandle handle) override
    {
        tree.insert(static_cast<const char *>(handle));
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

std::shared_ptr<rocksdb::MemTableRepFactory> make_memtable_factory()
{
    return std::make_shared<memtable_factory>();
}
