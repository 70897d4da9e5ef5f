/* Views, gets and cursors. */
#include "store/internal.h"

#include <algorithm>

using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;

enum : size_t { LONG_READAHEAD = 2 << 20 };

/* --- views --- */

store_view *store_view_create(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    try {
        auto view = std::make_unique<store_view>();
        view->db = store->db;
        view->snapshot = store->db->GetSnapshot();
        return view->snapshot != nullptr ? view.release() : nullptr;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void store_view_release(store_view *view)
{
    if (view == nullptr)
        return;
    view->db->ReleaseSnapshot(view->snapshot);
    delete view;
}

/* Who must not wait for the disk does not ask RocksDB to keep to the block cache: a read_watch
 * forbids it, and lets through what the kernel has in memory. */
static ReadOptions read_options(const store_view *view)
{
    ReadOptions o;
    if (view != nullptr)
        o.snapshot = view->snapshot;
    return o;
}

/* --- gets --- */

static void forget(store_value *value)
{
    *value = {};
}

void store_value_release(store_value *value)
{
    delete static_cast<PinnableSlice *>(value->pin);
    forget(value);
}

/* What RocksDB said, as presence; takes over `pin` if there is a value. */
static status settle(const rocksdb::Status &s, const read_watch &watch,
                     std::unique_ptr<PinnableSlice> pin, store_value *value,
                     enum store_presence *presence)
{
    *presence = STORE_NOT_CACHED;
    if (watch.was_refused())
        return status_ok();
    *presence = STORE_ABSENT;
    if (s.IsNotFound())
        return status_ok();
    if (!s.ok())
        return status_from(s);
    *presence = STORE_FOUND;
    value->bytes = from_slice(*pin);
    value->pin = pin.release();
    return status_ok();
}

status store_get(keyspace *keyspace, const store_view *view, bytes key, enum store_reach reach,
                 store_value *value, enum store_presence *presence)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    forget(value);
    return guarded([&] {
        auto pin = std::make_unique<PinnableSlice>();
        fold_watch folds;
        read_watch watch(reach);
        rocksdb::Status s =
            keyspace->db->Get(read_options(view), keyspace->handle, to_slice(key), pin.get());
        value->folded = folds.folded();
        return settle(s, watch, std::move(pin), value, presence);
    });
}

enum : size_t { MANY = 32 }; /* RocksDB looks up that many at a time */

/* One refusal makes misses of all of them: where it struck is not told. */
static status get_some(keyspace *keyspace, const ReadOptions &options, const bytes *keys,
                       size_t count, enum store_reach reach, store_value *values,
                       enum store_presence *presences)
{
    rocksdb::Slice slices[MANY];
    PinnableSlice found[MANY];
    rocksdb::Status statuses[MANY];
    for (size_t i = 0; i < count; i++)
        slices[i] = to_slice(keys[i]);
    read_watch watch(reach);
    keyspace->db->MultiGet(options, keyspace->handle, count, slices, found, statuses);
    for (size_t i = 0; i < count; i++) {
        auto pin = std::make_unique<PinnableSlice>(std::move(found[i]));
        TRY(settle(statuses[i], watch, std::move(pin), &values[i], &presences[i]));
    }
    return status_ok();
}

status store_get_many(keyspace *keyspace, const store_view *view, const bytes *keys, size_t count,
                      enum store_reach reach, store_value *values, enum store_presence *presences)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    std::for_each(values, values + count, [](store_value &value) { forget(&value); });
    return guarded([&] {
        ReadOptions options = read_options(view);
        for (size_t done = 0; done < count; done += MANY)
            TRY(get_some(keyspace, options, keys + done, std::min<size_t>(count - done, MANY),
                         reach, values + done, presences + done));
        return status_ok();
    });
}

/* --- cursors ---
 *
 * An iterator of RocksDB 7.8 may lose what one of the tables below it has to say: that a block is
 * not in memory, or that reading it failed. (SkipNextDeleted in table/merging_iterator.cc, which
 * steps over ends of files and over range-deleted keys, drops a table without a look at its status,
 * and SeekImpl forgets the status of newer tables.) It goes on without that table, and entries are
 * missing. So cursors do not rely on RocksDB's word that something was not in memory; they forbid
 * the thread to read, and see whether it wanted to. Nor on its word that all is well: they see
 * whether every block that was read proved good (read_watch).
 * tests/issues/test_cached_scans_over_files.c. */

struct store_cursor {
    uint32_t magic = CURSOR_MAGIC;
    enum store_reach reach;
    const void *rules;
    std::string lower;
    std::string upper;
    rocksdb::Slice lower_slice; /* RocksDB wants these to stay where they are */
    rocksdb::Slice upper_slice;
    std::unique_ptr<rocksdb::Iterator> iterator; /* NULL: it has ended */
    store_folded folded = {};                    /* by the last move */
    /* What ended the cursor for good. */
    bool missed_cache = false;
    bool read_failed = false;
    bool met_damage = false;
    bool out_of_memory = false;
    bool fills_cache = true;

    bool has_ended() const { return missed_cache || read_failed || met_damage || out_of_memory; }
};

static void note_watch(store_cursor *cursor, const read_watch &watch)
{
    cursor->missed_cache = cursor->missed_cache || watch.was_refused();
    cursor->read_failed = cursor->read_failed || watch.has_failed();
    /* Whether a block was kept says nothing if none is. */
    cursor->met_damage = cursor->met_damage || (cursor->fills_cache && !watch.was_refused() &&
                                                !watch.has_failed() && watch.has_met_damage());
}

static std::string to_string(bytes b)
{
    return std::string(reinterpret_cast<const char *>(b.data), b.size);
}

static std::unique_ptr<store_cursor> make_cursor(keyspace *keyspace,
                                                 const store_cursor_options *options)
{
    auto cursor = std::make_unique<store_cursor>();
    cursor->lower = to_string(options->lower);
    cursor->upper = to_string(options->upper);
    cursor->lower_slice = cursor->lower;
    cursor->upper_slice = cursor->upper;
    cursor->reach = options->reach;
    cursor->rules = options->rules;

    ReadOptions o = read_options(options->view);
    if (!cursor->lower.empty())
        o.iterate_lower_bound = &cursor->lower_slice;
    if (!cursor->upper.empty())
        o.iterate_upper_bound = &cursor->upper_slice;
    if (options->is_long) {
        o.fill_cache = cursor->fills_cache = false;
        o.readahead_size = LONG_READAHEAD;
    }
    read_watch watch(options->reach);
    cursor->iterator = keyspace->level0->make_iterator(o);
    note_watch(cursor.get(), watch);
    if (cursor->iterator == nullptr && !cursor->has_ended())
        *(watch.has_met_damage() ? &cursor->met_damage : &cursor->read_failed) = true;
    return cursor;
}

status store_cursor_create(keyspace *keyspace, const store_cursor_options *options,
                           store_cursor **out)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    *out = nullptr;
    return guarded([&] {
        *out = make_cursor(keyspace, options).release();
        return status_ok();
    });
}

void store_cursor_destroy(store_cursor *cursor)
{
    if (cursor == nullptr)
        return;
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    cursor->magic = 0;
    delete cursor;
}

/* A move that was cut short leaves the iterator anywhere: the cursor stays invalid. */
template <typename function> static void move(store_cursor *cursor, function step)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (cursor->has_ended())
        return;
    read_watch watch(cursor->reach);
    rules_scope scope(cursor->rules);
    fold_watch folds;
    try {
        step(cursor->iterator.get());
        note_watch(cursor, watch);
        cursor->folded = folds.folded();
    } catch (const std::bad_alloc &) {
        cursor->out_of_memory = true;
    }
}

void store_cursor_first(store_cursor *cursor)
{
    move(cursor, [](rocksdb::Iterator *i) { i->SeekToFirst(); });
}

void store_cursor_last(store_cursor *cursor)
{
    move(cursor, [](rocksdb::Iterator *i) { i->SeekToLast(); });
}

void store_cursor_seek(store_cursor *cursor, bytes key)
{
    move(cursor, [&](rocksdb::Iterator *i) { i->Seek(to_slice(key)); });
}

void store_cursor_seek_before(store_cursor *cursor, bytes key)
{
    move(cursor, [&](rocksdb::Iterator *i) {
        i->SeekForPrev(to_slice(key));
        if (i->Valid() && i->key() == to_slice(key))
            i->Prev();
    });
}

void store_cursor_next(store_cursor *cursor)
{
    move(cursor, [](rocksdb::Iterator *i) { i->Next(); });
}

void store_cursor_previous(store_cursor *cursor)
{
    move(cursor, [](rocksdb::Iterator *i) { i->Prev(); });
}

bool store_cursor_valid(const store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    return !cursor->has_ended() && cursor->iterator->Valid();
}

bool store_cursor_missed_cache(const store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    return cursor->missed_cache;
}

status store_cursor_status(const store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (cursor->out_of_memory)
        return status_out_of_memory();
    if (cursor->missed_cache)
        return status_ok();
    rocksdb::Status s =
        cursor->iterator != nullptr ? cursor->iterator->status() : rocksdb::Status();
    if (s.ok() && cursor->read_failed)
        return status_make(STATUS_UNAVAILABLE, "store: a table could not be read");
    if (s.ok() && cursor->met_damage)
        return status_make(STATUS_DATA_LOSS, "store: a table is damaged");
    return status_from(s);
}

bytes store_cursor_key(const store_cursor *cursor)
{
    return from_slice(cursor->iterator->key());
}

bytes store_cursor_value(const store_cursor *cursor)
{
    return from_slice(cursor->iterator->value());
}

store_folded store_cursor_folded(const store_cursor *cursor)
{
    return cursor->folded;
}
