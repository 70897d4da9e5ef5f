/* Snapshots, gets and cursors. */
#include "store/internal.h"
#include "store/waste.h"

#include <algorithm>

using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;

enum : size_t { LONG_READAHEAD = 2 << 20 };

/* --- snapshots --- */

store_snapshot *store_snapshot_create(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    try {
        auto snapshot = std::make_unique<store_snapshot>();
        snapshot->db = store->db;
        snapshot->openings = store->openings;
        snapshot->snapshot = store->db->GetSnapshot();
        return snapshot->snapshot != nullptr ? snapshot.release() : nullptr;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void store_snapshot_release(store_snapshot *snapshot)
{
    if (snapshot == nullptr)
        return;
    snapshot->db->ReleaseSnapshot(snapshot->snapshot);
    delete snapshot;
}

/* A read that must not wait for the disk does not ask RocksDB to keep to the block cache: a
 * read_watch forbids the wait, and lets through what the kernel has in memory. */
static ReadOptions read_options(const store_snapshot *snapshot)
{
    ReadOptions o;
    if (snapshot != nullptr)
        o.snapshot = snapshot->snapshot;
    return o;
}

/* When it began: what is opened later was closed then, and is in what it reads. */
static uint64_t openings_before(const keyspace *keyspace, const store_snapshot *snapshot)
{
    return snapshot != nullptr ? snapshot->openings : keyspace->store->openings.load();
}

/* --- waste --- */

static void note_waste(keyspace *keyspace, uint64_t waste)
{
    if (waste == 0)
        return;
    keyspace->waste.fetch_add(waste, std::memory_order_relaxed);
    keyspace->store->waste.fetch_add(waste, std::memory_order_relaxed);
}

uint64_t keyspace_waste(const keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->waste.load(std::memory_order_relaxed);
}

uint64_t store_waste(const store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return store->waste.load(std::memory_order_relaxed);
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

/* Asked after the read, not before: what was closed meanwhile may have been read as if it were not
 * there. */
static status check_key_open(keyspace *keyspace, bytes key, uint64_t since)
{
    if (!keyspace->closed.concerns(since))
        return status_ok();
    return keyspace->closed.check(to_slice(key), to_slice(key).ToString() + '\0', since);
}

static bool is_damage(const rocksdb::Status &s)
{
    return s.IsCorruption() || s.IsPathNotFound();
}

/* A table that is missing is damage, and closed when this returns; a disk that fails may be. */
static void note_damage(keyspace *keyspace, const rocksdb::Status &s)
{
    if (is_damage(s))
        keyspace->store->damage.note_and_wait(keyspace->id, s.ToString());
    else if (s.IsIOError())
        keyspace->store->damage.note(keyspace->id, s.ToString());
}

/* A get on its way. */
struct lookup {
    struct keyspace *const keyspace;
    const uint64_t since;
    const read_watch watch;

    lookup(struct keyspace *keyspace_, const store_snapshot *snapshot,
           enum store_read_tier read_tier)
        : keyspace(keyspace_), since(openings_before(keyspace, snapshot)), watch(read_tier)
    {
    }
};

/* What RocksDB said, as presence; takes over `pin` if there is a value. */
static status finish_lookup(const lookup &call, bytes key, const rocksdb::Status &s,
                            std::unique_ptr<PinnableSlice> pin, store_value *value,
                            enum store_presence *presence)
{
    *presence = STORE_NOT_CACHED;
    if (call.watch.was_refused())
        return status_ok();
    if (is_lack_of_memory(s))
        return status_out_of_memory();
    if (is_damage(s) && thread_keeps_to_memory()) /* a waiting read is told the keys */
        return status_ok();
    *presence = STORE_ABSENT;
    TRY(check_key_open(call.keyspace, key, call.since));
    if (!s.ok() && !s.IsNotFound()) {
        note_damage(call.keyspace, s);
        TRY(check_key_open(call.keyspace, key, call.since));
    }
    if (s.IsNotFound())
        return status_ok();
    if (!s.ok())
        return status_from(s);
    *presence = STORE_FOUND;
    value->bytes = from_slice(*pin);
    value->pin = pin.release();
    return status_ok();
}

/* Where tables do not tell which entry is the newest (old_data_order.cc), an iterator does. */
static rocksdb::Status get_by_iterator(const lookup &call, const store_snapshot *snapshot,
                                       bytes key, PinnableSlice *out)
{
    std::string after = to_slice(key).ToString() + '\0';
    rocksdb::Slice lower = to_slice(key), upper = after;
    ReadOptions options = read_options(snapshot);
    options.iterate_lower_bound = &lower;
    options.iterate_upper_bound = &upper;
    std::unique_ptr<rocksdb::Iterator> iterator = call.keyspace->level0->make_iterator(options);
    if (iterator != nullptr)
        iterator->Seek(lower);
    if (call.watch.has_met_damage())
        return rocksdb::Status::Corruption("a table is damaged");
    if (iterator == nullptr || call.watch.has_failed())
        return rocksdb::Status::IOError("a table could not be read");
    if (!iterator->Valid())
        return iterator->status().ok() ? rocksdb::Status::NotFound() : iterator->status();
    out->PinSelf(iterator->value());
    return rocksdb::Status::OK();
}

static rocksdb::Status get(const lookup &call, const store_snapshot *snapshot, bytes key,
                           PinnableSlice *out)
{
    if (call.keyspace->store->is_out_of_order)
        return get_by_iterator(call, snapshot, key, out);
    return call.keyspace->db->Get(read_options(snapshot), call.keyspace->handle, to_slice(key),
                                  out);
}

status store_get(keyspace *keyspace, const store_snapshot *snapshot, bytes key,
                 enum store_read_tier read_tier, store_value *value, enum store_presence *presence)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    forget(value);
    return guarded([&] {
        auto pin = std::make_unique<PinnableSlice>();
        fold_watch folds;
        lookup call(keyspace, snapshot, read_tier);
        rocksdb::Status s = get(call, snapshot, key, pin.get());
        value->folded = folds.folded();
        note_waste(keyspace, value->folded.waste);
        return finish_lookup(call, key, s, std::move(pin), value, presence);
    });
}

enum : size_t { MANY = 32 }; /* RocksDB looks up that many at a time */

/* Gets some keys. One refusal makes misses of all of them: where it struck is not told. */
static status get_some(keyspace *keyspace, const store_snapshot *snapshot, const bytes *keys,
                       size_t count, enum store_read_tier read_tier, store_value *values,
                       enum store_presence *presences)
{
    rocksdb::Slice slices[MANY];
    PinnableSlice found[MANY];
    rocksdb::Status statuses[MANY];
    for (size_t i = 0; i < count; i++)
        slices[i] = to_slice(keys[i]);
    fold_watch folds;
    lookup call(keyspace, snapshot, read_tier);
    keyspace->db->MultiGet(read_options(snapshot), keyspace->handle, count, slices, found,
                           statuses);
    for (size_t i = 0; i < count; i++) {
        auto pin = std::make_unique<PinnableSlice>(std::move(found[i]));
        TRY(finish_lookup(call, keys[i], statuses[i], std::move(pin), &values[i], &presences[i]));
    }
    return status_ok();
}

static status get_each(keyspace *keyspace, const store_snapshot *snapshot, const bytes *keys,
                       size_t count, enum store_read_tier read_tier, store_value *values,
                       enum store_presence *presences)
{
    for (size_t i = 0; i < count; i++)
        TRY(store_get(keyspace, snapshot, keys[i], read_tier, &values[i], &presences[i]));
    return status_ok();
}

status store_get_many(keyspace *keyspace, const store_snapshot *snapshot, const bytes *keys,
                      size_t count, enum store_read_tier read_tier, store_value *values,
                      enum store_presence *presences)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    std::for_each(values, values + count, [](store_value &value) { forget(&value); });
    return guarded([&] {
        if (keyspace->store->is_out_of_order)
            return get_each(keyspace, snapshot, keys, count, read_tier, values, presences);
        for (size_t done = 0; done < count; done += MANY)
            TRY(get_some(keyspace, snapshot, keys + done, std::min<size_t>(count - done, MANY),
                         read_tier, values + done, presences + done));
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
    struct keyspace *keyspace;
    uint64_t since; /* openings_before */
    enum store_read_tier read_tier;
    const void *rules;
    std::string lower;
    std::string upper;
    rocksdb::Slice lower_slice; /* RocksDB wants these to stay where they are */
    rocksdb::Slice upper_slice;
    std::unique_ptr<rocksdb::Iterator> iterator; /* NULL: it has ended */
    store_folded folded = {};                    /* by the last move */
    uint64_t waste = 0;                          /* by all, without entries passed over */
    /* The reason that ended the cursor for good. */
    bool missed_cache = false;
    bool read_failed = false;
    bool met_damage = false;
    bool out_of_memory = false;
    bool is_closed = false; /* what is behind `here` is out of service */
    std::string here;       /* where a step of one began */
    status closed = {};
    bool fills_cache = true;
    bool notes_waste = false;

    ~store_cursor()
    {
        take_entries_passed();
        iterator.reset();
        if (notes_waste)
            note_waste(keyspace, waste + take_entries_passed() * ENTRY_WASTE);
        status_free(closed);
    }
    bool has_ended() const
    {
        return missed_cache || read_failed || met_damage || out_of_memory || is_closed;
    }
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

/* Notes what kept the cursor from being made: RocksDB does not say which table it was. */
static void note_at_start(store_cursor *cursor)
{
    keyspace *keyspace = cursor->keyspace;
    if (cursor->read_failed || cursor->read_tier == STORE_READ_CACHED) {
        keyspace->store->damage.note(keyspace->id, std::string());
        return;
    }
    keyspace->store->damage.note_and_wait(keyspace->id, std::string());
    cursor->closed = keyspace->closed.check(cursor->lower, cursor->upper, cursor->since);
    cursor->is_closed = !status_is_ok(cursor->closed);
}

static std::unique_ptr<store_cursor> make_cursor(keyspace *keyspace,
                                                 const store_cursor_options *options)
{
    auto cursor = std::make_unique<store_cursor>();
    cursor->keyspace = keyspace;
    cursor->since = openings_before(keyspace, options->snapshot);
    cursor->lower = to_string(options->lower);
    cursor->upper = to_string(options->upper);
    cursor->lower_slice = cursor->lower;
    cursor->upper_slice = cursor->upper;
    cursor->read_tier = options->read_tier;
    cursor->rules = options->rules;
    cursor->notes_waste = options->notes_waste;

    ReadOptions o = read_options(options->snapshot);
    if (!cursor->lower.empty())
        o.iterate_lower_bound = &cursor->lower_slice;
    if (!cursor->upper.empty())
        o.iterate_upper_bound = &cursor->upper_slice;
    if (options->bypasses_cache) {
        o.fill_cache = cursor->fills_cache = false;
        o.readahead_size = LONG_READAHEAD;
    }
    read_watch watch(options->read_tier);
    cursor->iterator = keyspace->level0->make_iterator(o);
    note_watch(cursor.get(), watch);
    if (cursor->iterator == nullptr && !cursor->has_ended())
        *(watch.has_met_damage() ? &cursor->met_damage : &cursor->read_failed) = true;
    if (cursor->met_damage || cursor->read_failed)
        note_at_start(cursor.get());
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

/* --- moves --- */

/* What a step may pass over, by rising keys; an empty upper end is no bound. */
struct passage {
    rocksdb::Slice from;
    rocksdb::Slice to;
};

/* The passage of a step forward from `start`, the entry that it came to included. */
static struct passage passage_forward(const store_cursor *cursor, const rocksdb::Slice &start,
                                      std::string *end)
{
    if (!cursor->iterator->Valid())
        return {start, cursor->upper};
    *end = cursor->iterator->key().ToString() + '\0';
    return {start, *end};
}

static struct passage passage_back(const store_cursor *cursor, const rocksdb::Slice &start,
                                   std::string *end)
{
    *end = cursor->iterator->Valid() ? cursor->iterator->key().ToString() : cursor->lower;
    return {*end, start};
}

/* Afterwards, as in check_key_open; a table that is out of service may look like one without keys.
 */
static void check_passage(store_cursor *cursor, bool is_forward, const rocksdb::Slice &start)
{
    std::string end;
    struct passage passed =
        is_forward ? passage_forward(cursor, start, &end) : passage_back(cursor, start, &end);
    cursor->closed = cursor->keyspace->closed.check(passed.from, passed.to, cursor->since);
    cursor->is_closed = !status_is_ok(cursor->closed);
}

/* A read that must not wait leaves it to one that may, as if the block had not been in memory. */
static void note_damage(store_cursor *cursor, const rocksdb::Status &s)
{
    damage_watch &damage = cursor->keyspace->store->damage;
    if (cursor->read_failed)
        damage.note(cursor->keyspace->id, s.ToString());
    else if (cursor->read_tier == STORE_READ_CACHED)
        cursor->missed_cache = true;
    else
        damage.note_and_wait(cursor->keyspace->id, s.ToString());
}

/* Whether it ended there; then what it has met is closed. */
static bool has_met_damage(store_cursor *cursor)
{
    if (cursor->is_closed || cursor->missed_cache || cursor->iterator->Valid())
        return false;
    rocksdb::Status s = cursor->iterator->status();
    if (!cursor->met_damage && !cursor->read_failed && !is_damage(s))
        return false;
    note_damage(cursor, s);
    return true;
}

/* A move that was cut short leaves the iterator anywhere: the cursor stays invalid. `start` says
 * where it began. */
template <typename place, typename function>
static void move(store_cursor *cursor, bool is_forward, place start, function step)
{
    read_watch watch(cursor->read_tier);
    rules_scope scope(cursor->rules);
    fold_watch folds;
    try {
        step(cursor->iterator.get());
        note_watch(cursor, watch);
        cursor->folded = folds.folded();
        cursor->waste += cursor->folded.waste;
        cursor->out_of_memory =
            !cursor->iterator->Valid() && is_lack_of_memory(cursor->iterator->status());
        if (cursor->out_of_memory)
            return;
        if (cursor->keyspace->closed.concerns(cursor->since))
            check_passage(cursor, is_forward, start());
        if (has_met_damage(cursor) && cursor->keyspace->closed.concerns(cursor->since))
            check_passage(cursor, is_forward, start());
    } catch (const std::bad_alloc &) {
        cursor->out_of_memory = true;
    }
}

/* Bounds narrow it: an iterator goes to its own bound if it is asked to go beyond. */
static rocksdb::Slice from_lower(const store_cursor *cursor, bytes key)
{
    rocksdb::Slice asked = to_slice(key);
    return asked.compare(cursor->lower) > 0 ? asked : rocksdb::Slice(cursor->lower);
}

static rocksdb::Slice from_upper(const store_cursor *cursor, bytes key)
{
    rocksdb::Slice asked = to_slice(key);
    return cursor->upper.empty() || asked.compare(cursor->upper) < 0 ? asked : cursor->upper;
}

/* A step of one takes away where it began. That is not copied while nothing is closed: should that
 * change during the step, all from the bound on counts as passed. */
template <typename function>
static void step(store_cursor *cursor, bool is_forward, function step_of_one)
{
    bool remembers = cursor->keyspace->closed.concerns(cursor->since);
    if (remembers)
        cursor->here = cursor->iterator->key().ToString();
    const std::string &bound = is_forward ? cursor->lower : cursor->upper;
    move(
        cursor, is_forward, [&]() -> rocksdb::Slice { return remembers ? cursor->here : bound; },
        step_of_one);
}

void store_cursor_first(store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (!cursor->has_ended())
        move(
            cursor, true, [&]() -> rocksdb::Slice { return cursor->lower; },
            [](rocksdb::Iterator *i) { i->SeekToFirst(); });
}

void store_cursor_last(store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (!cursor->has_ended())
        move(
            cursor, false, [&]() -> rocksdb::Slice { return cursor->upper; },
            [](rocksdb::Iterator *i) { i->SeekToLast(); });
}

void store_cursor_seek(store_cursor *cursor, bytes key)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (!cursor->has_ended())
        move(
            cursor, true, [&]() { return from_lower(cursor, key); },
            [&](rocksdb::Iterator *i) { i->Seek(to_slice(key)); });
}

void store_cursor_seek_before(store_cursor *cursor, bytes key)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (cursor->has_ended())
        return;
    auto start = [&]() { return from_upper(cursor, key); };
    move(cursor, false, start, [&](rocksdb::Iterator *i) {
        i->SeekForPrev(to_slice(key));
        if (i->Valid() && i->key() == to_slice(key))
            i->Prev();
    });
}

void store_cursor_next(store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (!cursor->has_ended())
        step(cursor, true, [](rocksdb::Iterator *i) { i->Next(); });
}

void store_cursor_previous(store_cursor *cursor)
{
    CHECK_MAGIC(cursor, CURSOR_MAGIC);
    if (!cursor->has_ended())
        step(cursor, false, [](rocksdb::Iterator *i) { i->Prev(); });
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
    if (cursor->is_closed)
        return status_copy(cursor->closed);
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
