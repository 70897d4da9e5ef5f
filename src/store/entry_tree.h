/* A B+ tree over what a write buffer holds: one writer, any number of readers, no locks.
 *
 * RocksDB's own write buffer is a skip list; to insert into one of 200,000 entries is some twenty
 * steps, each to an entry elsewhere in memory. Here it is five nodes of a few cache lines, and
 * almost every comparison is one of numbers in the node. docs/internals/store.md has figures.
 *
 * An entry is RocksDB's: the length of the internal key (varint), the internal key (user key, then
 * eight bytes: the tag, little-endian), and what else follows. The tree keeps pointers. Entries
 * sort by user key, then by tag, the greatest first, and no two are equal.
 *
 * Invariants
 *  1. A node's slots are written once, and an entry never changes. Which slots count, and in which
 *     order, is one word (`order`): storing it publishes what was added. A reader that loads it
 *     once has one state of the node.
 *  2. A full node is not taken apart: its content is copied into new ones, which take its place,
 *     and it stays as it was, for readers that are in it, as long as the tree.
 *  3. So a reader that goes from a node that was in the tree at some moment, to a child or along
 *     the leaves, arrives at one that was in the tree then or later: nothing that had been inserted
 *     before it came is missing. What is inserted after it may be.
 *  4. All keys that can ever come into a node begin with the same `skip` bytes, as its bounds do.
 *     Of each key it keeps the eight bytes that follow, its head.
 *  5. Nodes are never freed one by one: their memory goes with the allocator's. */
#ifndef TRESTLE_STORE_ENTRY_TREE_H
#define TRESTLE_STORE_ENTRY_TREE_H

#include <atomic>
#include <cstddef>
#include <cstdint>

/* A key of RocksDB's, in its parts. */
struct internal_key {
    const char *data; /* the user key */
    size_t size;
    uint64_t tag;

    static internal_key of_entry(const char *entry);
    static internal_key of_bytes(const char *data, size_t size); /* size >= 8 */
};

/* Negative, zero or positive as `a` sorts before, with or after `b`. */
int compare(const internal_key &a, const internal_key &b);

class entry_tree {
  public:
    /* Memory for nodes, of any alignment; may throw std::bad_alloc, and then the tree must not be
     * written to any more. What was inserted before stays readable. */
    class allocator {
      public:
        virtual char *allocate(size_t size) = 0;

      protected:
        ~allocator() = default;
    };

    explicit entry_tree(allocator *memory);
    entry_tree(const entry_tree &) = delete;
    entry_tree &operator=(const entry_tree &) = delete;

    /* Where an entry belongs that is about to be inserted. Stays right while others are. */
    class place;

    /* By one thread at a time. The entry must outlive the tree. */
    void insert(const char *entry);

    /* For who knows what comes next, as the thread that inserts. `look_up` finds where an entry
     * belongs that is to have that key, and calls for the memory; some inserts later, when it is
     * there, `fetch` calls for that of entries which it must be compared with. The key's tag may be
     * another than the entry's if none with that user key lies between the two. */
    place look_up(const internal_key &key) const;
    void fetch(const internal_key &key, const place &place) const;
    void insert(const char *entry, const place &place);

    /* About how many entries come before the key. By any thread. */
    uint64_t rank(const internal_key &key) const;

    class cursor;

  private:
    struct node;
    struct leaf;
    struct inner;
    struct path;
    class slot_order;
    struct child {
        const char
            *low; /* an entry: no key of the child sorts before it; NULL: there is no bound */
        node *to;
    };

    leaf *new_leaf(const char *low, const char *high, uint32_t skip, const char *const *entries,
                   const uint64_t *heads, unsigned count);
    void add(leaf *to, const char *entry);
    void count();
    inner *new_inner(const child *children, unsigned count, const char *high);
    void *allocate(size_t size);
    void split(leaf *full, unsigned at, const char *entry, const path &path);
    void replace(const path &path, unsigned level, const child *with, unsigned count);
    void replace_full(const path &path, unsigned level, const child *with, unsigned count);

    const leaf *find_leaf(const internal_key &key) const; /* where the key is, or the one before */
    leaf *find_leaf(const internal_key &key, path *path) const;
    const leaf *first_leaf() const;
    const leaf *last_leaf() const;

    static unsigned keys_before(const node *n, const slot_order &order, const internal_key &key);

    allocator *const memory;
    std::atomic<node *> root;
    std::atomic<uint64_t> entry_count{0};
};

class entry_tree::place {
  public:
    place() = default;

  private:
    friend class entry_tree;
    explicit place(leaf *to_) : to(to_) {}

    leaf *to = nullptr;
};

/* A place in the tree. Sees what was inserted before it was last moved by a seek; of later entries
 * it may see some. By one thread at a time. */
class entry_tree::cursor {
  public:
    explicit cursor(const entry_tree *tree_) : tree(tree_) {}

    bool valid() const { return at != nullptr; }
    const char *entry() const; /* while valid */
    void next();
    void prev();
    void seek(const internal_key &key);           /* the first at or after the key */
    void seek_backwards(const internal_key &key); /* the last at or before the key */
    void seek_first();
    void seek_last();

  private:
    void enter(const leaf *leaf);
    void look_ahead() const;
    void step_before(const internal_key &key);

    const entry_tree *tree;
    const leaf *at = nullptr;
    uint64_t order = 0; /* the leaf's, as it was on entering */
    unsigned index = 0;
};

#endif
