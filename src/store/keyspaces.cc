/* Keyspaces: what their column families are called and how they are set up, making and dropping
 * them.
 *
 * A keyspace's column family has its id in decimal for a name; one of kind KEYSPACE_LOG has an L
 * before it, since RocksDB wants to know the options of each before it opens it. */
#include "store/keyspaces.h"

#include "rocksdb/convenience.h"

#include <cerrno>
#include <cstdlib>

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;

/* --- names and options --- */

std::unique_ptr<keyspace> new_keyspace(store *store, const keyspace_identity &identity)
{
    auto k = std::make_unique<keyspace>();
    std::promise<void> gone;
    k->id = identity.id;
    k->kind = identity.kind;
    k->store = store;
    k->folder_gone = gone.get_future();
    k->folder = std::make_shared<folder>(store->fold, store->fold_before, std::move(gone));
    k->mark = store->logs->add_mark(identity);
    return k;
}

std::string keyspace_name(const keyspace_identity &identity)
{
    return (identity.kind == KEYSPACE_LOG ? "L" : "") + std::to_string(identity.id);
}

bool parse_keyspace_name(const std::string &name, keyspace_identity *out)
{
    bool is_log = !name.empty() && name[0] == 'L';
    errno = 0;
    out->kind = is_log ? KEYSPACE_LOG : KEYSPACE_ROWS;
    out->id = strtoull(name.c_str() + is_log, nullptr, 10);
    return errno == 0 && keyspace_name(*out) == name;
}

uint64_t id_in_name(const std::string &name)
{
    keyspace_identity found;
    return parse_keyspace_name(name, &found) ? found.id : 0;
}

ColumnFamilyDescriptor describe_keyspace(const keyspace &k)
{
    rocksdb::ColumnFamilyOptions options = make_keyspace_options(k.store, k.kind, k.folder);
    if (k.kind == KEYSPACE_ROWS && k.id == k.store->fine_keyspace)
        options.table_factory = k.store->fine_tables;
    return ColumnFamilyDescriptor(keyspace_name({k.id, k.kind}), options);
}

void add_keyspace(store *store, std::unique_ptr<keyspace> k, ColumnFamilyHandle *handle)
{
    k->handle = handle;
    store->logs->number_mark(k->mark.get(), handle->GetID());
    k->db = store->db;
    k->level0 = std::make_shared<level0>(store->db, handle);
    store->levels0.add(handle->GetName(), k->level0);
    store->by_id[k->id] = k.get();
    store->keyspaces.push_back(std::move(k));
}

/* --- which there are --- */

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

enum keyspace_kind keyspace_kind(const keyspace *keyspace)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return keyspace->kind;
}

void keyspace_set_name(keyspace *keyspace, const char *name)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    try {
        keyspace->store->logs->name_mark(keyspace->mark.get(), name);
    } catch (const std::bad_alloc &) {
        return;
    }
}

void keyspace_set_rules(keyspace *keyspace, const void *rules)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    keyspace->folder->rules.store(rules, std::memory_order_release);
}

/* --- making and dropping --- */

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

static status create_keyspaces(store *store, const keyspace_identity &first, size_t count)
{
    std::vector<std::unique_ptr<keyspace>> made;
    std::vector<ColumnFamilyDescriptor> families;
    for (size_t i = 0; i < count; i++) {
        made.push_back(new_keyspace(store, {first.id + i, first.kind}));
        families.push_back(describe_keyspace(*made.back()));
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
    {
        std::unique_lock<std::shared_mutex> lock(store->mutex);
        for (size_t i = 0; i < count; i++)
            add_keyspace(store, std::move(made[i]), handles[i]);
    }
    store->logs->keyspaces_made();
    return status_ok();
}

status store_keyspaces_create(store *store, uint64_t first_id, size_t count)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    TRY(check_writable(store));
    return guarded([&] { return create_keyspaces(store, {first_id, KEYSPACE_ROWS}, count); });
}

status store_log_keyspace_create(store *store, uint64_t id)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    TRY(check_writable(store));
    return guarded([&] { return create_keyspaces(store, {id, KEYSPACE_LOG}, 1); });
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
        std::lock_guard<std::mutex> looking(store->damage.looking);
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
