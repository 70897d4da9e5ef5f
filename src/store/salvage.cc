/* A store that opens although its logs have lost something that had been synced: with every commit
 * that is whole in a log that is there, also behind what is broken.
 *
 * RocksDB would stop at the first broken piece, drop the logs behind that, delete them, and not
 * open at all if a table has more than the logs before the damage. So it gets to see of each broken
 * log what is whole (log_salvage.cc), and meets no damage.
 *
 * The logs stay as they are until store_accept_loss. What cannot be taken from them then stays,
 * under a second name. */
#include "store/log_ends.h"
#include "store/rocksdb_versions.h"

using rocksdb::IOOptions;
using rocksdb::IOStatus;

/* Keeps the log as n.log.damaged, which the store never removes. */
static IOStatus keep(const store *store, uint64_t number)
{
    std::string path = store->directory + "/" + log_name(number);
    std::string kept = path + ".damaged";
    if (store->files->FileExists(kept, IOOptions(), nullptr).ok())
        return IOStatus::OK();
    return store->files->LinkFile(path, kept, IOOptions(), nullptr);
}

status begin_salvage(store *store, const log_findings &findings)
{
    IOStatus s;
    store->is_salvaging = !store->read_only;
    for (const log_scan &log : findings.broken) {
        store->logs->salvage(log);
        if (store->is_salvaging && s.ok())
            s = keep(store, log.number);
    }
    if (store->is_salvaging && s.ok() && !findings.broken.empty())
        s = sync_directory(store->files.get(), store->directory);
    return status_from(s);
}

/* So that no start depends on the logs again. */
rocksdb::Status flush_all(store *store)
{
    std::vector<rocksdb::ColumnFamilyHandle *> handles = {store->default_handle};
    rocksdb::FlushOptions options;
    options.allow_write_stall = store->large.is_bounded(); /* as keyspace_flush does */
    {
        std::shared_lock<std::shared_mutex> lock(store->mutex);
        for (const auto &k : store->keyspaces)
            handles.push_back(k->handle);
    }
    return store->db->Flush(options, handles);
}

void delete_left_over(store *store)
{
    store->db->DisableFileDeletions().PermitUncheckedError();
    enable_file_deletions(store->db).PermitUncheckedError();
}

status store_accept_loss(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    if (!store->is_salvaging)
        return status_ok();
    return guarded([&] {
        rocksdb::Status s = flush_all(store);
        if (s.ok())
            s = store->logs->start_recording();
        store->is_salvaging = !s.ok();
        if (s.ok())
            delete_left_over(store);
        return status_from(s);
    });
}
