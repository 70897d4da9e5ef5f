/* Tables that somebody removes below the store. RocksDB reads on through what it has open, and so
 * does everybody; but nothing new can open the table: a compaction, a checkpoint, a scrub, the next
 * start. To these its keys would be lost. So it is copied, as long as it is open.
 *
 * Who looks at a table because it is missing (damage.cc, checkpoint.cc) has it copied first; and
 * own_files.cc, which looks for the store's other files, does so with these, before anybody asks.
 *
 * Invariants
 *  1. A table is copied in the dark, under another name, and synced before it gets its own.
 *  2. One that is not the store's any more is left removed: RocksDB has deleted it, and somebody
 *     still reads. Should that happen meanwhile, the copy goes again.
 *  3. What is copied is what the open file has, right or wrong: who reads it sees to that. */
#include "store/open_tables.h"
#include "store/log_ends.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <sys/stat.h>

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

enum : size_t { PIECE = 256 << 10 };

/* --- which are open --- */

void open_tables::came(uint64_t number, const std::shared_ptr<file> &opened)
{
    try {
        std::lock_guard<std::mutex> lock(mutex);
        by_number.emplace(number, opened);
    } catch (const std::bad_alloc &) {
    }
}

void open_tables::went(uint64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    auto all = by_number.equal_range(number);
    for (auto each = all.first; each != all.second;)
        each = each->second.expired() ? by_number.erase(each) : std::next(each);
}

std::shared_ptr<open_tables::file> open_tables::find(uint64_t number) const
{
    std::lock_guard<std::mutex> lock(mutex);
    auto all = by_number.equal_range(number);
    for (auto each = all.first; each != all.second; ++each) {
        std::shared_ptr<file> found = each->second.lock();
        if (found != nullptr)
            return found;
    }
    return nullptr;
}

std::vector<uint64_t> open_tables::numbers() const
{
    std::vector<uint64_t> out;
    std::lock_guard<std::mutex> lock(mutex);
    out.reserve(by_number.size());
    for (const auto &each : by_number)
        out.push_back(each.first);
    return out;
}

/* --- which are missing --- */

std::string table_path(const store *store, uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "/%06llu.sst", (unsigned long long)number);
    return store->directory + name;
}

static std::vector<const keyspace *> all_keyspaces(store *store)
{
    std::vector<const keyspace *> all;
    std::shared_lock<std::shared_mutex> lock(store->mutex);
    for (const auto &keyspace : store->keyspaces)
        all.push_back(keyspace.get());
    return all;
}

/* With `looking` of damage_watch held, so that no keyspace goes. */
static std::set<uint64_t> live_tables(store *store)
{
    std::set<uint64_t> live;
    for (const keyspace *keyspace : all_keyspaces(store))
        for (const auto &table : tables_of(keyspace))
            live.insert(table.file_number);
    return live;
}

/* Of files that come and go in one tick of the kernel's clock the second look knows. */
static bool may_have_changed(store *store)
{
    enum { LOOKS = 2 };
    struct stat now;
    auto &looked = store->open_tables->looked;
    if (stat(store->directory.c_str(), &now) != 0)
        return false;
    long long changed = now.st_mtim.tv_sec * 1000000000LL + now.st_mtim.tv_nsec;
    looked.unchanged = changed == looked.changed_ns ? looked.unchanged + 1 : 0;
    looked.changed_ns = changed;
    return looked.unchanged < LOOKS || !looked.gone.empty();
}

/* Whoever has `looking` may wait for a commit, and so for the caller. */
static void leave_live(store *store, std::vector<uint64_t> *gone)
{
    std::unique_lock<std::mutex> lock(store->damage.looking, std::try_to_lock);
    if (!lock.owns_lock()) {
        store->open_tables->looked.unchanged = 0; /* the next look does it */
        gone->clear();
        return;
    }
    std::set<uint64_t> live = live_tables(store);
    auto is_dead = [&](uint64_t number) { return live.count(number) == 0; };
    gone->erase(std::remove_if(gone->begin(), gone->end(), is_dead), gone->end());
}

std::vector<uint64_t> look_for_tables(store *store)
{
    auto &looked = store->open_tables->looked;
    std::lock_guard<std::mutex> lock(looked.mutex);
    if (!may_have_changed(store))
        return {};
    std::set<uint64_t> gone;
    for (uint64_t number : store->open_tables->numbers())
        if (is_gone(table_path(store, number), 0))
            gone.insert(number);
    looked.gone.assign(gone.begin(), gone.end());
    if (!looked.gone.empty())
        leave_live(store, &looked.gone);
    return looked.gone;
}

/* --- their names --- */

static IOStatus copy_open(rocksdb::FileSystem *files, open_tables::file *from,
                          const std::string &to)
{
    std::unique_ptr<rocksdb::FSWritableFile> copy;
    std::unique_ptr<char[]> scratch(new char[PIECE]);
    IOStatus s = files->NewWritableFile(to, FileOptions(), &copy, nullptr);
    for (uint64_t at = 0; s.ok();) {
        rocksdb::Slice piece;
        s = from->Read(at, PIECE, IOOptions(), &piece, scratch.get(), nullptr);
        if (!s.ok() || piece.empty())
            break;
        s = copy->Append(piece, IOOptions(), nullptr);
        at += piece.size();
    }
    if (s.ok())
        s = copy->Sync(IOOptions(), nullptr);
    return s.ok() ? copy->Close(IOOptions(), nullptr) : s;
}

static IOStatus give_name(store *store, open_tables::file *from, const std::string &path)
{
    rocksdb::FileSystem *files = store->base_files.get();
    std::string copy = path + ".new";
    IOStatus s = copy_open(files, from, copy);
    if (s.ok())
        s = files->RenameFile(copy, path, IOOptions(), nullptr);
    if (s.ok())
        s = sync_directory(files, store->directory);
    if (!s.ok()) { /* nothing that may not be durable */
        files->DeleteFile(copy, IOOptions(), nullptr).PermitUncheckedError();
        files->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
    }
    return s;
}

IOStatus bring_back_table(store *store, uint64_t number)
{
    std::string path = table_path(store, number);
    if (store->read_only || !is_gone(path, 0))
        return IOStatus::OK();
    std::lock_guard<std::mutex> lock(store->open_tables->restoring);
    std::shared_ptr<open_tables::file> opened = store->open_tables->find(number);
    if (opened == nullptr || !is_gone(path, 0))
        return IOStatus::OK();
    return give_name(store, opened.get(), path);
}

static bool is_live(store *store, uint64_t number)
{
    std::lock_guard<std::mutex> lock(store->damage.looking);
    return live_tables(store).count(number) > 0;
}

IOStatus bring_back_live_table(store *store, uint64_t number)
{
    if (!is_live(store, number))
        return IOStatus::OK();
    IOStatus s = bring_back_table(store, number);
    if (s.ok() && !is_live(store, number))
        store->base_files->DeleteFile(table_path(store, number), IOOptions(), nullptr)
            .PermitUncheckedError();
    return s;
}
