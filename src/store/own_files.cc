/* Whether the files that the next start needs are still there by their names, while the store is
 * open: logs, SYNCED, CURRENT, the manifest and its copy, IDENTITY, FORMAT, LOCK; and tables that
 * RocksDB has open (open_tables.cc), if they are removed. Who removes one, or puts another one in
 * its place, disturbs nobody: what was open stays open. But what is written to it then is gone when
 * the process is.
 *
 * As long as the process lives it has all that was in them, and makes them again:
 *
 *     logs        all that is in write buffers goes into tables, and a new log is begun; then no
 *                 start wants the former ones. Until then nothing should be acknowledged
 *     SYNCED      is written from what is known
 *     CURRENT     likewise
 *     manifest    its copy gets its name, or what is still open is copied: manifest.cc
 *     IDENTITY    is written as it was at the opening
 *     FORMAT      likewise
 *     tables      are copied from what is open
 *     LOCK        is made and locked, unless another process was quicker: then nothing is made, for
 *                 the directory is not ours any more
 *
 * By name and inode, a few system calls. What is changed at the moment counts as there. */
#include "store/log_ends.h"
#include "store/open_tables.h"

#include <cerrno>
#include <cstdio>
#include <sys/stat.h>

using rocksdb::IOOptions;
using rocksdb::IOStatus;

uint64_t inode_of(const std::string &path)
{
    struct stat found;
    return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

bool is_gone(const std::string &path, uint64_t inode)
{
    struct stat found;
    if (stat(path.c_str(), &found) != 0)
        return errno == ENOENT;
    return inode != 0 && found.st_ino != inode;
}

IOStatus write_durably(const store *store, const std::string &name, const std::string &text)
{
    rocksdb::FileSystem *files = store->files.get();
    std::string path = store->directory + "/" + name;
    rocksdb::Status s = rocksdb::WriteStringToFile(files, text, path + ".new", true);
    return s.ok() ? files->RenameFile(path + ".new", path, IOOptions(), nullptr)
                  : rocksdb::status_to_io_status(std::move(s));
}

namespace {

struct own_files {
    std::string logs; /* names, with commas between; empty: all are there */
    bool record = false;
    bool current = false;
    bool manifest = false;
    bool copy = false;
    bool identity = false;
    bool format = false;
    std::vector<uint64_t> tables;
    enum lock_state lock = LOCK_OURS;

    bool any_but_format() const
    {
        return !logs.empty() || record || current || manifest || copy || identity ||
               !tables.empty() || lock != LOCK_OURS;
    }
    bool any() const { return format || any_but_format(); }
};

} // namespace

static void add(std::string *names, const std::string &name)
{
    names->append(names->empty() ? "" : ", ").append(name);
}

/* Names missing logs. A log that is deleted leaves the list before. */
static std::string missing_logs(store *store)
{
    std::string names;
    for (const auto &log : store->logs->known_logs()) {
        std::string name = log_name(log->number);
        if (is_gone(store->directory + "/" + name, log->inode) && store->logs->knows(log->number))
            add(&names, name);
    }
    return names;
}

static std::string current_content(store *store)
{
    return manifest_name(store->logs->named_manifest()) + "\n";
}

/* Without it, or with other words in it, the next start is refused. */
static bool lacks_current(store *store)
{
    std::unique_lock<std::recursive_mutex> lock(store->logs->naming, std::try_to_lock);
    std::string text, path = store->directory + "/CURRENT";
    if (!lock.owns_lock() || store->logs->named_manifest() == 0)
        return false;
    if (store->doubts_current || is_gone(path, 0))
        return true;
    rocksdb::Status s = rocksdb::ReadFileToString(store->base_files.get(), path, &text);
    return s.ok() && text != current_content(store);
}

static own_files look(store *store)
{
    own_files gone;
    std::shared_ptr<manifest_copy> kept = store->logs->kept_manifest();
    gone.logs = missing_logs(store);
    gone.record = store->logs->record_is_gone();
    gone.current = lacks_current(store);
    gone.identity = is_gone(store->directory + "/IDENTITY", store->identity_inode);
    gone.format = is_gone(store->directory + "/FORMAT", store->format_inode);
    gone.tables = look_for_tables(store);
    gone.lock = store->lock_name.look();
    if (kept != nullptr)
        kept->look(&gone.manifest, &gone.copy);
    /* Another one has come meanwhile, and this one went. */
    if (kept != store->logs->kept_manifest())
        gone.manifest = gone.copy = false;
    return gone;
}

/* Tables may be many. */
static void add_tables(std::string *names, const store *store, const std::vector<uint64_t> &tables)
{
    enum : size_t { NAMED = 5 };
    for (size_t i = 0; i < tables.size() && i < NAMED; i++)
        add(names, table_path(store, tables[i]).substr(store->directory.size() + 1));
    if (tables.size() > NAMED)
        add(names, "and " + std::to_string(tables.size() - NAMED) + " more table files");
}

static std::string names_of(store *store, const own_files &gone)
{
    std::string names = gone.logs, manifest = manifest_name(store->logs->named_manifest());
    if (gone.record)
        add(&names, "SYNCED");
    if (gone.current)
        add(&names, "CURRENT");
    if (gone.manifest)
        add(&names, manifest);
    if (gone.copy)
        add(&names, manifest + ".copy");
    if (gone.identity)
        add(&names, "IDENTITY");
    if (gone.format)
        add(&names, "FORMAT");
    if (gone.lock != LOCK_OURS)
        add(&names, "LOCK");
    add_tables(&names, store, gone.tables);
    return names;
}

/* False for stores of which nothing is to be kept, or nothing can be. */
static bool keeps_files(const store *store)
{
    return !store->read_only && !store->is_salvaging && store->origin == nullptr &&
           !store->trouble.is_fenced() && !store->trouble.is_sealed();
}

void store_look_for_files(store *store, struct store_missing_files *out)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    *out = {};
    if (!keeps_files(store))
        return;
    try {
        own_files gone = look(store);
        out->any = gone.any();
        out->logs = !gone.logs.empty();
        out->only_format = gone.format && !gone.any_but_format();
        out->is_taken = gone.lock == LOCK_TAKEN;
        if (out->any)
            snprintf(out->names, sizeof out->names, "%s", names_of(store, gone).c_str());
    } catch (const std::bad_alloc &) { /* nothing is known */
    }
}

/* --- making them again --- */

/* Of a file that counts as gone until it is durable: a new one may get the inode of the one that
 * was removed. */
static const uint64_t NO_INODE = UINT64_MAX;

static IOStatus restore_current(store *store)
{
    std::lock_guard<std::recursive_mutex> lock(store->logs->naming);
    store->doubts_current = true;
    IOStatus s = write_durably(store, "CURRENT", current_content(store));
    store->doubts_current = !s.ok();
    return s;
}

static status restore_identity(store *store)
{
    char identity[STORE_IDENTITY_SIZE];
    TRY(store_identity(store, identity));
    store->identity_inode = NO_INODE;
    TRY(status_from(write_durably(store, "IDENTITY", identity)));
    TRY(status_from(sync_directory(store->files.get(), store->directory)));
    store->identity_inode = inode_of(store->directory + "/IDENTITY");
    return status_ok();
}

static status restore_format(store *store)
{
    store->format_inode = NO_INODE;
    TRY(directory_mark(store->files.get(), store->directory));
    store->format_inode = inode_of(store->directory + "/FORMAT");
    return status_ok();
}

/* RocksDB begins a log only together with a write buffer, and no write buffer that is empty. So the
 * family "default" gets something for it to have, of which a flush leaves nothing. */
static status write_nothing(store *store)
{
    enum : size_t { ROOM = 128 };
    store_batch nothing;
    nothing.batch = rocksdb::WriteBatch(ROOM); /* it must not have to grow: internal.h */
    rocksdb::Status s = nothing.batch.Put(store->default_handle, "log", "");
    if (s.ok())
        s = nothing.batch.SingleDelete(store->default_handle, "log");
    return s.ok() ? store_write(store, &nothing, STORE_ASYNC) : status_from(s);
}

/* RocksDB asks for the end of each log once, and is refused as long as that cannot be recorded, as
 * without SYNCED. A log that is not in the directory it never asks for again. No start wants these.
 */
static IOStatus forget_removed(store *store, const std::vector<std::shared_ptr<tracked_log>> &logs)
{
    IOStatus s;
    for (const auto &log : logs) {
        std::string name = log_name(log->number);
        if (s.ok() && store->logs->knows(log->number) &&
            is_gone(store->directory + "/" + name, log->inode))
            s = store->logs->log_goes(name);
    }
    return s;
}

static status leave_logs(store *store)
{
    std::lock_guard<std::mutex> lock(store->damage.looking); /* no keyspace goes meanwhile */
    std::vector<std::shared_ptr<tracked_log>> left = store->logs->known_logs();
    TRY(write_nothing(store));
    TRY(status_from(flush_all(store)));
    delete_left_over(store);
    return status_from(forget_removed(store, left));
}

/* The lock first: without it, nothing. The manifest before the logs, in which the tables are to be
 * named that these go into; and before a log goes there is something to record that in. */
static status restore(store *store)
{
    own_files gone = look(store);
    std::shared_ptr<manifest_copy> kept = store->logs->kept_manifest();
    if (gone.lock != LOCK_OURS)
        TRY(store->lock_name.take());
    if ((gone.manifest || gone.copy) && kept != nullptr)
        TRY(status_from(kept->restore()));
    if (gone.current)
        TRY(status_from(restore_current(store)));
    if (gone.identity)
        TRY(restore_identity(store));
    if (gone.format)
        TRY(restore_format(store));
    if (gone.record)
        TRY(status_from(store->logs->record_afresh()));
    for (uint64_t table : gone.tables)
        TRY(status_from(bring_back_live_table(store, table)));
    return gone.logs.empty() ? status_ok() : leave_logs(store);
}

status store_restore_files(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    if (!keeps_files(store))
        return status_ok();
    TRY(check_writable(store));
    return guarded([&] { return restore(store); });
}
