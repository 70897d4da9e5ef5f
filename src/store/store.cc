/* Opening and closing the store; its keyspaces. */
#include "store/internal.h"

#include "rocksdb/convenience.h"
#include "rocksdb/write_buffer_manager.h"

#include <cerrno>
#include <cstdlib>
#include <set>

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;

store::store(const store_options *options, std::shared_ptr<rocksdb::FileSystem> base)
    : directory(options->directory), fold(options->fold), read_only(options->read_only),
      trouble(options), room(std::make_shared<log_room>()),
      files(make_file_system(std::move(base), room)), env(make_environment(files))
{
    cache = make_block_cache(options->cache_bytes);
    write_buffers = std::make_shared<rocksdb::WriteBufferManager>(options->write_buffer_bytes);
    tables = make_table_factory(cache);
    memtables = make_memtable_factory();
}

/* --- keyspaces: a column family named by the keyspace's id in decimal --- */

static std::unique_ptr<keyspace> new_keyspace(store *store, uint64_t id)
{
    auto k = std::make_unique<keyspace>();
    std::promise<void> gone;
    k->id = id;
    k->store = store;
    k->folder_gone = gone.get_future();
    k->folder = std::make_shared<folder>(store->fold, std::move(gone));
    return k;
}

static bool parse_id(const std::string &name, uint64_t *id)
{
    char *end = nullptr;
    errno = 0;
    *id = strtoull(name.c_str(), &end, 10);
    return errno == 0 && std::to_string(*id) == name;
}

static ColumnFamilyDescriptor describe(const keyspace &k)
{
    return ColumnFamilyDescriptor(std::to_string(k.id), make_keyspace_options(k.store, k.folder));
}

/* Under the mutex, which keeps readers of the index away. */
static void add_keyspace(store *store, std::unique_ptr<keyspace> k, ColumnFamilyHandle *handle)
{
    k->handle = handle;
    k->db = store->db;
    k->level0 = std::make_shared<level0>(store->db, handle);
    store->levels0.add(handle->GetName(), k->level0);
    store->by_id[k->id] = k.get();
    store->keyspaces.push_back(std::move(k));
}

/* --- open --- */

static status in_use(const std::string &directory)
{
    return status_make(STATUS_FAILED_PRECONDITION, "data directory %s is in use by another process",
                       directory.c_str());
}

/* A failed open, in words: RocksDB does not say "locked" in a way that a program can read. */
static status open_failed(store *store, const rocksdb::Status &s)
{
    if (store->lock == nullptr && directory_is_locked(store->files.get(), store->directory))
        return in_use(store->directory);
    return status_from(s);
}

/* The keyspaces that the directory has, not opened yet; the first family is RocksDB's own. */
static status list_keyspaces(store *store, const rocksdb::DBOptions &options,
                             std::vector<std::unique_ptr<keyspace>> *keyspaces)
{
    std::vector<std::string> names;
    rocksdb::Status s = DB::ListColumnFamilies(options, store->directory, &names);
    if (!s.ok())
        return open_failed(store, s);
    for (const std::string &name : names) {
        uint64_t id;
        if (name == rocksdb::kDefaultColumnFamilyName)
            continue;
        if (!parse_id(name, &id))
            return status_make(STATUS_DATA_LOSS, "data directory %s has an unknown keyspace \"%s\"",
                               store->directory.c_str(), name.c_str());
        keyspaces->push_back(new_keyspace(store, id));
    }
    return status_ok();
}

/* Removes tables that nothing refers to: what a kill in the middle of a compaction left. RocksDB
 * does it by itself, but only once it is open, and for that it may need the space that they take.
 * Who only reads needs none, and knows which tables there are. */
static rocksdb::Status remove_leftovers(store *store, const rocksdb::DBOptions &options,
                                        const std::vector<ColumnFamilyDescriptor> &families)
{
    DB *opened = nullptr;
    std::vector<ColumnFamilyHandle *> handles;
    rocksdb::Status s = DB::OpenForReadOnly(options, store->directory, families, &handles, &opened);
    if (!s.ok())
        return s;
    std::vector<rocksdb::LiveFileMetaData> tables;
    opened->GetLiveFilesMetaData(&tables);
    for (ColumnFamilyHandle *handle : handles)
        delete handle;
    delete opened;

    std::set<std::string> wanted;
    for (const rocksdb::LiveFileMetaData &table : tables)
        wanted.insert(table.name.substr(table.name.rfind('/') + 1));
    std::vector<std::string> names;
    s = options.env->GetChildren(store->directory, &names);
    for (const std::string &name : names)
        if (s.ok() && name.size() > 4 && name.substr(name.size() - 4) == ".sst" &&
            wanted.count(name) == 0)
            s = options.env->DeleteFile(store->directory + "/" + name);
    return s;
}

static rocksdb::Status open_for_writing(store *store, const rocksdb::DBOptions &options,
                                        const std::vector<ColumnFamilyDescriptor> &families,
                                        std::vector<ColumnFamilyHandle *> *handles)
{
    rocksdb::Status s = DB::Open(options, store->directory, families, handles, &store->db);
    if (!s.IsNoSpace())
        return s;
    rocksdb::Status removed = remove_leftovers(store, options, families);
    return removed.ok() ? DB::Open(options, store->directory, families, handles, &store->db) : s;
}

static status open_database(store *store, const rocksdb::DBOptions &options,
                            std::vector<std::unique_ptr<keyspace>> keyspaces)
{
    std::vector<ColumnFamilyDescriptor> families;
    families.emplace_back(rocksdb::kDefaultColumnFamilyName, make_keyspace_options(store, nullptr));
    for (const auto &k : keyspaces)
        families.push_back(describe(*k));

    std::vector<ColumnFamilyHandle *> handles;
    rocksdb::Status s = store->read_only ? DB::OpenForReadOnly(options, store->directory, families,
                                                               &handles, &store->db)
                                         : open_for_writing(store, options, families, &handles);
    if (!s.ok())
        return open_failed(store, s);

    store->default_handle = handles[0];
    for (size_t i = 0; i < keyspaces.size(); i++)
        add_keyspace(store, std::move(keyspaces[i]), handles[i + 1]);
    return status_ok();
}

/* Who only reads takes the lock, too, lest a server changes the files meanwhile. */
static status lock_for_reading(store *store)
{
    std::string name = store->directory + "/LOCK";
    rocksdb::IOStatus s = store->files->LockFile(name, rocksdb::IOOptions(), &store->lock, nullptr);
    if (!s.ok() && directory_is_locked(store->files.get(), store->directory))
        return in_use(store->directory);
    return status_ok();
}

static status open_directory(store *store, const store_options *options)
{
    bool is_new = false;
    TRY(directory_examine(store->files.get(), options, &is_new));
    if (options->read_only)
        TRY(lock_for_reading(store));

    rocksdb::DBOptions db_options = make_db_options(options, store);
    db_options.create_if_missing = is_new;
    std::vector<std::unique_ptr<keyspace>> keyspaces;
    if (!is_new) {
        TRY(check_logs(store->files.get(), store->directory));
        TRY(list_keyspaces(store, db_options, &keyspaces));
    }
    TRY(open_database(store, db_options, std::move(keyspaces)));
    if (is_new)
        TRY(directory_mark(store->files.get(), store->directory));
    return status_ok();
}

status store_open_on(const store_options *options, std::shared_ptr<rocksdb::FileSystem> files,
                     store **out)
{
    *out = nullptr;
    return guarded([&] {
        auto store = std::make_unique<struct store>(options, std::move(files));
        status s = open_directory(store.get(), options);
        if (status_is_ok(s))
            *out = store.release();
        else
            store_close(store.release());
        return s;
    });
}

status store_open(const store_options *options, store **out)
{
    return store_open_on(options, rocksdb::FileSystem::Default(), out);
}

/* --- close --- */

static void close_database(store *store)
{
    /* What was written without a sync is durable after an orderly end. */
    if (!store->read_only && !store->trouble.is_fenced())
        store->db->SyncWAL().PermitUncheckedError();
    rocksdb::CancelAllBackgroundWork(store->db, true);
    for (const auto &k : store->keyspaces) {
        k->level0->let_go();
        store->db->DestroyColumnFamilyHandle(k->handle);
    }
    for (ColumnFamilyHandle *handle : store->leftovers)
        store->db->DestroyColumnFamilyHandle(handle);
    store->db->DestroyColumnFamilyHandle(store->default_handle);
    store->db->Close().PermitUncheckedError();
    delete store->db;
}

void store_close(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    if (store->db != nullptr)
        close_database(store);
    if (store->lock != nullptr)
        store->files->UnlockFile(store->lock, rocksdb::IOOptions(), nullptr);
    store->magic = 0;
    delete store;
}

status store_health(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return store->trouble.health();
}

void store_look_for_room(store *store)
{
    constexpr uint64_t worth_writing = 1 << 20;
    CHECK_MAGIC(store, STORE_MAGIC);
    if (!store->trouble.is_log_full())
        return;
    rocksdb::IOStatus room = store->room->take(worth_writing);
    if (room.ok())
        store->room->give_back(worth_writing);
    store->trouble.log_is_full(!room.ok());
}

/* --- keyspaces --- */

keyspace *store_keyspace_at(store *store, size_t index)
{
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    return index < store->keyspaces.size() ? store->keyspaces[index].get() : nullptr;
}

keyspace *store_keyspace_find(store *store, uint64_t id)
{
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    auto found = store->by_id.find(id);
    return found == store->by_id.end() ? nullptr : found->second;
}

uint64_t keyspace_id(const keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->id;
}

void keyspace_set_rules(keyspace *keyspace, const void *rules)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    keyspace->folder->rules.store(rules, std::memory_order_release);
}

/* Takes back what failed creations have made. What cannot be taken back now, on a full disk, is
 * tried again before the next creation; after a crash it is a keyspace that no table knows. */
static rocksdb::Status drop_leftovers(store *store)
{
    while (!store->leftovers.empty()) {
        ColumnFamilyHandle *handle = store->leftovers.back();
        rocksdb::Status s = store->db->DropColumnFamily(handle);
        if (!s.ok())
            return s;
        store->db->DestroyColumnFamilyHandle(handle);
        store->leftovers.pop_back();
    }
    return rocksdb::Status::OK();
}

static status create_keyspaces(store *store, uint64_t first_id, size_t count)
{
    std::vector<std::unique_ptr<keyspace>> made;
    std::vector<ColumnFamilyDescriptor> families;
    for (size_t i = 0; i < count; i++) {
        made.push_back(new_keyspace(store, first_id + i));
        families.push_back(describe(*made.back()));
    }

    std::lock_guard<std::mutex> making(store->making);
    rocksdb::Status s = drop_leftovers(store);
    std::vector<ColumnFamilyHandle *> handles;
    if (s.ok())
        s = store->db->CreateColumnFamilies(families, &handles);
    if (!s.ok()) {
        store->leftovers.insert(store->leftovers.end(), handles.begin(), handles.end());
        drop_leftovers(store).PermitUncheckedError();
        return status_from(s);
    }
    std::unique_lock<std::shared_mutex> lock(store->mutex);
    for (size_t i = 0; i < count; i++)
        add_keyspace(store, std::move(made[i]), handles[i]);
    return status_ok();
}

status store_keyspaces_create(store *store, uint64_t first_id, size_t count)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    TRY(check_writable(store));
    return guarded([&] { return create_keyspaces(store, first_id, count); });
}

static std::unique_ptr<keyspace> remove_keyspace(store *store, keyspace *keyspace)
{
    std::unique_lock<std::shared_mutex> lock(store->mutex);
    store->by_id.erase(keyspace->id);
    for (auto &k : store->keyspaces) {
        if (k.get() == keyspace) {
            std::unique_ptr<struct keyspace> removed = std::move(k);
            k = std::move(store->keyspaces.back());
            store->keyspaces.pop_back();
            return removed;
        }
    }
    CHECK(!"a keyspace of this store");
}

status store_keyspace_drop(store *store, keyspace *keyspace)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    TRY(check_writable(store));
    return guarded([&] {
        rocksdb::Status s = store->db->DropColumnFamily(keyspace->handle);
        if (!s.ok())
            return status_from(s);
        std::unique_ptr<struct keyspace> removed = remove_keyspace(store, keyspace);
        store->levels0.remove(removed->handle->GetName());
        removed->level0->let_go();
        store->db->DestroyColumnFamilyHandle(removed->handle);
        /* Compactions see the drop at their next key; a flush that runs goes to its end. Only then
         * may the owner free the rules. */
        removed->folder.reset();
        removed->folder_gone.wait();
        removed->magic = 0;
        return status_ok();
    });
}
