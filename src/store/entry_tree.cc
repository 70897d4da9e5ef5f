/* See entry_tree.h. */
#include "store/entry_tree.h"

extern "C" {
#include "base/check.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <endian.h>
#include <new>

enum : unsigned {
    SLOTS = 14, /* of a node; see slot_order */
    TAG_BYTES = 8,
    HEAD_BYTES = 8,
    HEAD_BITS = 64,
    CACHE_LINE = 64,
    MAX_LEVELS = 24, /* far more than memory allows */
    /* Steps of a cursor in which memory has arrived, and what it calls for: a key and the row of a
     * few small cells. For what is longer the processor goes on by itself. */
    LOOK_AHEAD = 3,
    ENTRY_BYTES = 3 * CACHE_LINE,
    /* An inner node with no slot left is copied into one with at most so many children, which has
     * room for two more splits below it, or else into two. */
    ROOMY = SLOTS - 4,
};

/* --- keys --- */

internal_key internal_key::of_bytes(const char *data, size_t size)
{
    uint64_t tag;
    memcpy(&tag, data + size - TAG_BYTES, sizeof tag);
    return {data, size - TAG_BYTES, le64toh(tag)};
}

internal_key internal_key::of_entry(const char *entry)
{
    size_t size = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = static_cast<uint8_t>(*entry++);
        size |= static_cast<size_t>(byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0);
    return of_bytes(entry, size);
}

int compare(const internal_key &a, const internal_key &b)
{
    int order = memcmp(a.data, b.data, std::min(a.size, b.size));
    if (order != 0)
        return order;
    if (a.size != b.size)
        return a.size < b.size ? -1 : 1;
    return a.tag == b.tag ? 0 : a.tag > b.tag ? -1 : 1;
}

/* Numbers that compare as the eight bytes after the first `skip` do. */
static uint64_t head_of(const internal_key &key, size_t skip)
{
    uint64_t head = 0;
    if (key.size >= skip + HEAD_BYTES)
        memcpy(&head, key.data + skip, HEAD_BYTES);
    else if (key.size > skip)
        memcpy(&head, key.data + skip, key.size - skip);
    return be64toh(head);
}

/* How many bytes all keys from `low` to `high` begin with alike. */
static uint32_t common_bytes(const char *low, const char *high)
{
    if (low == nullptr || high == nullptr)
        return 0;
    internal_key a = internal_key::of_entry(low), b = internal_key::of_entry(high);
    const char *end = a.data + std::min(a.size, b.size);
    return static_cast<uint32_t>(std::mismatch(a.data, end, b.data).first - a.data);
}

/* --- nodes --- */

/* Slot numbers in the order of their keys, four bits each, the first lowest; their count is in the
 * four highest bits. */
class entry_tree::slot_order {
  public:
    explicit slot_order(uint64_t bits_) : bits(bits_) {}

    unsigned count() const { return static_cast<unsigned>(bits >> COUNT_SHIFT); }
    unsigned slot(unsigned i) const { return bits >> 4 * i & 15; }

    void insert(unsigned i, uint64_t slot)
    {
        uint64_t before = bits & ((ONE << 4 * i) - 1);
        uint64_t after = bits & ((ONE << COUNT_SHIFT) - 1) & ~before;
        uint64_t grown = (static_cast<uint64_t>(count()) + 1) << COUNT_SHIFT;
        bits = grown | after >> 4 * i << 4 * (i + 1) | slot << 4 * i | before;
    }

    void replace(unsigned i, uint64_t slot)
    {
        bits = (bits & ~(UINT64_C(15) << 4 * i)) | slot << 4 * i;
    }

    uint64_t bits;

  private:
    static constexpr uint64_t ONE = 1;
    static constexpr unsigned COUNT_SHIFT = 60;
};

struct entry_tree::node {
    std::atomic<uint64_t> order{0};
    uint32_t skip;
    uint16_t level;    /* 0: a leaf */
    uint16_t used = 0; /* slots written so far; for the writer alone */
    uint64_t heads[SLOTS];
    const char *entries[SLOTS]; /* of an inner node: the lower bounds of its children */

    node(uint16_t level_, uint32_t skip_) : skip(skip_), level(level_) {}
    slot_order load() const { return slot_order(order.load(std::memory_order_acquire)); }
    void publish(const slot_order &o) { order.store(o.bits, std::memory_order_release); }

    /* Takes a slot for the entry. It is not seen before it is published. */
    unsigned fill(const char *entry)
    {
        return fill(entry, entry == nullptr ? 0 : head_of(internal_key::of_entry(entry), skip));
    }

    unsigned fill(const char *entry, uint64_t head)
    {
        heads[used] = head;
        entries[used] = entry;
        return used++;
    }
};

struct entry_tree::leaf : node {
    std::atomic<leaf *> next{nullptr};
    leaf *before = nullptr; /* for the writer alone */

    explicit leaf(uint32_t skip_) : node(0, skip_) {}
};

struct entry_tree::inner : node {
    node *children[SLOTS];

    inner(uint16_t level_, uint32_t skip_) : node(level_, skip_) {}

    unsigned fill(const child &c)
    {
        children[used] = c.to;
        return node::fill(c.low);
    }
};

/* How the writer came to a leaf: the inner nodes by level, which child it took, and the bounds of
 * what it came to. */
struct entry_tree::path {
    struct step {
        inner *at;
        unsigned index;
        const char *high; /* the bound of `at` */
    };
    unsigned height;
    step steps[MAX_LEVELS];
    const char *low;
    const char *high;
};

void *entry_tree::allocate(size_t size)
{
    auto start = reinterpret_cast<uintptr_t>(memory->allocate(size + CACHE_LINE - 1));
    return reinterpret_cast<void *>((start + CACHE_LINE - 1) & ~uintptr_t{CACHE_LINE - 1});
}

/* Heads after `skip` bytes that tell keys apart by their first half are kept: to make new ones is
 * to wait for the memory of each entry. */
static bool do_tell_apart(const uint64_t *heads, unsigned count)
{
    return count > 0 && (heads[0] ^ heads[count - 1]) >> HEAD_BITS / 2 != 0;
}

entry_tree::leaf *entry_tree::new_leaf(const char *low, const char *high, uint32_t skip,
                                       const char *const *entries, const uint64_t *heads,
                                       unsigned count)
{
    bool is_same = do_tell_apart(heads, count);
    leaf *made = new (allocate(sizeof(leaf))) leaf(is_same ? skip : common_bytes(low, high));
    slot_order order(0);
    for (unsigned i = 0; i < count; i++)
        order.insert(i, is_same ? made->fill(entries[i], heads[i]) : made->fill(entries[i]));
    made->publish(order);
    return made;
}

entry_tree::inner *entry_tree::new_inner(const child *children, unsigned count, const char *high)
{
    auto level = static_cast<uint16_t>(children[0].to->level + 1);
    inner *made = new (allocate(sizeof(inner))) inner(level, common_bytes(children[0].low, high));
    slot_order order(0);
    for (unsigned i = 0; i < count; i++)
        order.insert(i, made->fill(children[i]));
    made->publish(order);
    return made;
}

/* --- search --- */

/* How many of the node's keys sort before the given one, which lies between the node's bounds. */
unsigned entry_tree::keys_before(const node *n, const slot_order &order, const internal_key &key)
{
    const uint64_t head = head_of(key, n->skip);
    const unsigned count = order.count();
    unsigned before = 0;
    for (unsigned i = 0; i < count; i++)
        before += n->heads[order.slot(i)] < head;
    for (; before < count && n->heads[order.slot(before)] == head; before++) {
        const char *entry = n->entries[order.slot(before)];
        if (entry != nullptr && compare(internal_key::of_entry(entry), key) >= 0)
            break;
    }
    return before;
}

static void prefetch(const void *node, size_t size)
{
    for (size_t i = 0; i < size; i += CACHE_LINE)
        __builtin_prefetch(static_cast<const char *>(node) + i);
}

/* Goes to the last child whose lower bound sorts before the key. A key that equals a bound is the
 * first of the leaf after the one found. Does not look at the leaf: its memory is on the way. */
const entry_tree::leaf *entry_tree::find_leaf(const internal_key &key) const
{
    const node *at = root.load(std::memory_order_acquire);
    for (unsigned level = at->level; level > 0; level--) {
        slot_order order = at->load();
        unsigned before = keys_before(at, order, key);
        at = static_cast<const inner *>(at)->children[order.slot(before > 0 ? before - 1 : 0)];
        prefetch(at, level > 1 ? sizeof(inner) : sizeof(leaf));
    }
    return static_cast<const leaf *>(at);
}

entry_tree::leaf *entry_tree::find_leaf(const internal_key &key, path *path) const
{
    node *at = root.load(std::memory_order_relaxed);
    path->low = path->high = nullptr;
    path->height = at->level;
    while (at->level > 0) {
        inner *parent = static_cast<inner *>(at);
        slot_order order = parent->load();
        unsigned before = keys_before(parent, order, key);
        unsigned index = before > 0 ? before - 1 : 0;
        path->steps[at->level] = {parent, index, path->high};
        path->low = parent->entries[order.slot(index)];
        if (index + 1 < order.count())
            path->high = parent->entries[order.slot(index + 1)];
        at = parent->children[order.slot(index)];
        prefetch(at, sizeof(node));
    }
    return static_cast<leaf *>(at);
}

const entry_tree::leaf *entry_tree::first_leaf() const
{
    const node *at = root.load(std::memory_order_acquire);
    while (at->level > 0)
        at = static_cast<const inner *>(at)->children[at->load().slot(0)];
    return static_cast<const leaf *>(at);
}

const entry_tree::leaf *entry_tree::last_leaf() const
{
    const node *at = root.load(std::memory_order_acquire);
    while (at->level > 0) {
        slot_order order = at->load();
        at = static_cast<const inner *>(at)->children[order.slot(order.count() - 1)];
    }
    return static_cast<const leaf *>(at);
}

/* As if all nodes of a level were equally full. */
uint64_t entry_tree::rank(const internal_key &key) const
{
    double before = 0, width = static_cast<double>(entry_count.load(std::memory_order_relaxed));
    const node *at = root.load(std::memory_order_acquire);
    for (;;) {
        slot_order order = at->load();
        unsigned index = keys_before(at, order, key);
        if (order.count() == 0)
            return 0;
        if (at->level > 0 && index > 0)
            index--;
        width /= order.count();
        before += width * index;
        if (at->level == 0)
            return static_cast<uint64_t>(std::llround(before));
        at = static_cast<const inner *>(at)->children[order.slot(index)];
    }
}

/* --- insertion --- */

entry_tree::entry_tree(allocator *memory_) : memory(memory_)
{
    root.store(new_leaf(nullptr, nullptr, 0, nullptr, nullptr, 0), std::memory_order_release);
}

/* The leaf has a slot left. */
void entry_tree::add(leaf *to, const char *entry)
{
    slot_order order = to->load();
    unsigned at = keys_before(to, order, internal_key::of_entry(entry));
    order.insert(at, to->fill(entry));
    to->publish(order);
}

void entry_tree::count()
{
    entry_count.store(entry_count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void entry_tree::insert(const char *entry)
{
    internal_key key = internal_key::of_entry(entry);
    path path;
    leaf *to = find_leaf(key, &path);
    if (to->used < SLOTS)
        add(to, entry);
    else
        split(to, keys_before(to, to->load(), key), entry, path);
    count();
}

entry_tree::place entry_tree::look_up(const internal_key &key) const
{
    return place(const_cast<leaf *>(find_leaf(key)));
}

void entry_tree::fetch(const internal_key &key, const place &place) const
{
    const uint64_t head = head_of(key, place.to->skip);
    for (unsigned i = 0; i < place.to->used; i++)
        if (place.to->heads[i] == head)
            __builtin_prefetch(place.to->entries[i]);
}

/* A leaf that has a slot left is in the tree, with the bounds that it was made with (entry_tree.h,
 * 2). */
void entry_tree::insert(const char *entry, const place &place)
{
    if (place.to == nullptr || place.to->used == SLOTS) {
        insert(entry);
        return;
    }
    DCHECK(find_leaf(internal_key::of_entry(entry)) == place.to);
    add(place.to, entry);
    count();
}

/* Two leaves take the place of the full one; the second has only the new entry if that is the
 * greatest of all, so that an ascending load fills its leaves. */
void entry_tree::split(leaf *full, unsigned at, const char *entry, const path &path)
{
    const char *all[SLOTS + 1];
    uint64_t heads[SLOTS + 1];
    const uint32_t skip = full->skip;
    slot_order order = full->load();
    for (unsigned i = 0; i < SLOTS; i++) {
        all[i < at ? i : i + 1] = full->entries[order.slot(i)];
        heads[i < at ? i : i + 1] = full->heads[order.slot(i)];
    }
    all[at] = entry;
    heads[at] = head_of(internal_key::of_entry(entry), skip);

    leaf *after = full->next.load(std::memory_order_relaxed);
    unsigned half = after == nullptr && at == SLOTS ? SLOTS : (SLOTS + 1) / 2;
    leaf *left = new_leaf(path.low, all[half], skip, all, heads, half);
    leaf *right = new_leaf(all[half], path.high, skip, all + half, heads + half, SLOTS + 1 - half);
    right->next.store(after, std::memory_order_relaxed);
    right->before = left;
    left->next.store(right, std::memory_order_relaxed);
    left->before = full->before;

    if (after != nullptr)
        after->before = right;
    if (full->before != nullptr)
        full->before->next.store(left, std::memory_order_release);
    const child with[] = {{path.low, left}, {all[half], right}};
    replace(path, 1, with, 2);
}

/* One or two nodes take the place of the child to which the path goes from its node at `level`. */
void entry_tree::replace(const path &path, unsigned level, const child *with, unsigned count)
{
    if (level > path.height) {
        node *top = count == 1 ? with[0].to : new_inner(with, count, nullptr);
        root.store(top, std::memory_order_release);
        return;
    }
    inner *parent = path.steps[level].at;
    unsigned index = path.steps[level].index;
    if (parent->used + count > SLOTS) {
        replace_full(path, level, with, count);
        return;
    }
    slot_order order = parent->load();
    order.replace(index, parent->fill(with[0]));
    if (count == 2)
        order.insert(index + 1, parent->fill(with[1]));
    parent->publish(order);
}

/* The same when the parent has no slots left: copies take the parent's place. */
void entry_tree::replace_full(const path &path, unsigned level, const child *with, unsigned count)
{
    const path::step &step = path.steps[level];
    slot_order order = step.at->load();
    child all[SLOTS + 1];
    unsigned total = 0;
    for (unsigned i = 0; i < order.count(); i++) {
        if (i != step.index)
            all[total++] = {step.at->entries[order.slot(i)], step.at->children[order.slot(i)]};
        else
            total = static_cast<unsigned>(std::copy(with, with + count, all + total) - all);
    }
    if (total <= ROOMY) {
        const child copy = {all[0].low, new_inner(all, total, step.high)};
        replace(path, level + 1, &copy, 1);
        return;
    }
    const child *middle = all + total / 2;
    const child halves[] = {
        {all[0].low, new_inner(all, total / 2, middle->low)},
        {middle->low, new_inner(middle, total - total / 2, step.high)},
    };
    replace(path, level + 1, halves, 2);
}

/* --- cursors --- */

const char *entry_tree::cursor::entry() const
{
    return at->entries[slot_order(order).slot(index)];
}

/* A leaf that has one before it has entries. */
void entry_tree::cursor::enter(const leaf *leaf)
{
    at = leaf;
    index = 0;
    order = leaf == nullptr ? 0 : leaf->load().bits;
    if (slot_order(order).count() == 0) {
        at = nullptr;
        return;
    }
    const node *after = at->next.load(std::memory_order_relaxed);
    if (after != nullptr)
        prefetch(after, sizeof(entry_tree::leaf));
}

/* Entries are where they were written, so a walk would wait for memory at each: the one that comes
 * in LOOK_AHEAD steps is called for now. */
void entry_tree::cursor::look_ahead() const
{
    slot_order here(order);
    unsigned coming = index + LOOK_AHEAD;
    if (coming < here.count()) {
        prefetch(at->entries[here.slot(coming)], ENTRY_BYTES);
        return;
    }
    const leaf *after = at->next.load(std::memory_order_acquire);
    if (after == nullptr)
        return;
    coming -= here.count();
    slot_order there = after->load();
    if (coming < there.count())
        prefetch(after->entries[there.slot(coming)], ENTRY_BYTES);
}

void entry_tree::cursor::next()
{
    if (++index == slot_order(order).count())
        enter(at->next.load(std::memory_order_acquire));
    if (at != nullptr)
        look_ahead();
}

void entry_tree::cursor::seek(const internal_key &key)
{
    enter(tree->find_leaf(key));
    if (at == nullptr)
        return;
    index = keys_before(at, slot_order(order), key);
    if (index == slot_order(order).count())
        enter(at->next.load(std::memory_order_acquire));
}

/* The leaf found has an entry before the key unless it is the first: its lower bound was an entry
 * of it when it was made. */
void entry_tree::cursor::step_before(const internal_key &key)
{
    enter(tree->find_leaf(key));
    if (at == nullptr)
        return;
    index = keys_before(at, slot_order(order), key);
    if (index == 0)
        at = nullptr;
    else
        index--;
}

void entry_tree::cursor::prev()
{
    if (index == 0) {
        step_before(internal_key::of_entry(entry()));
        return;
    }
    index--;
    if (index >= LOOK_AHEAD)
        prefetch(at->entries[slot_order(order).slot(index - LOOK_AHEAD)], ENTRY_BYTES);
}

void entry_tree::cursor::seek_backwards(const internal_key &key)
{
    seek(key);
    if (!valid() || compare(internal_key::of_entry(entry()), key) > 0)
        step_before(key);
}

void entry_tree::cursor::seek_first()
{
    enter(tree->first_leaf());
}

void entry_tree::cursor::seek_last()
{
    enter(tree->last_leaf());
    if (at != nullptr)
        index = slot_order(order).count() - 1;
}
