/* The files of a store at one instant: see store.h.
 *
 * RocksDB lists which files make up the database, and how much of those that still grow. Tables are
 * never written again and are linked; so are logs that are sealed. The manifest and the log at its
 * end grow on, so their first bytes are copied, up to what the list says. All range deletes are in
 * these files as they were: nothing is exported or imported (store.md says what that loses).
 *
 * A log may be cut in the middle of a record that is being written. That record's writer has not
 * come back yet, and replay ends before it. SYNCED (log_ends.h) is not copied but written: the
 * copy's logs are ended, and end where they do. They are held against what is known to have been
 * synced: what the disk has lost meanwhile of a log, which only the memory still has, makes the
 * checkpoint fail.
 *
 * Of a store that is fenced there is none, nor of one that is fenced meanwhile: what its log ends
 * with is in doubt.
 *
 * Files are kept from deletion by a counter of RocksDB's, which its own recovery from errors sets
 * to zero: then a table may be gone before it is linked, and the checkpoint fails. */
#include "store/identity.h"
#include "store/log_ends.h"
#include "store/open_tables.h"
#include "store/rocksdb_versions.h"

#include <algorithm>

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::LiveFilesStorageInfoOptions;
using rocksdb::LiveFileStorageInfo;

enum : uint32_t { CHECKPOINT_MAGIC = 0x43686563 };
enum : size_t { PIECE = 256 << 10 };

struct store_checkpoint {
    explicit store_checkpoint(struct store *store_) : store(store_) {}
    ~store_checkpoint()
    {
        if (keeps_files)
            enable_file_deletions(store->db).PermitUncheckedError();
    }
    store_checkpoint(const store_checkpoint &) = delete;
    store_checkpoint &operator=(const store_checkpoint &) = delete;

    uint32_t magic = CHECKPOINT_MAGIC;
    struct store *const store;
    bool keeps_files = false;
    std::vector<LiveFileStorageInfo> files;
    synced_record synced; /* of the logs that are in it */
};

/* --- the instant --- */

/* Flushes all before, if the logs have that many bytes. */
static status ask_for_files(store *store, uint64_t flushed_from,
                            std::vector<LiveFileStorageInfo> *files)
{
    LiveFilesStorageInfoOptions options;
    options.wal_size_for_flush = flushed_from;
    leave_logs_scope leaving;
    return status_from(store->db->GetLiveFilesStorageInfo(options, files));
}

status store_checkpoint_prepare(store *store, uint64_t most_log_bytes)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    TRY(check_unfenced(store));
    return guarded([&] {
        std::vector<LiveFileStorageInfo> files;
        return ask_for_files(store, most_log_bytes + 1, &files);
    });
}

/* A log leaves the record before it is deleted: one that is in neither the list nor here afterwards
 * was deleted meanwhile by us. */
static void leave_out_deleted(synced_record *record, const synced_record &afterwards)
{
    auto is_gone = [&](const synced_log &log) {
        return std::none_of(afterwards.logs.begin(), afterwards.logs.end(),
                            [&](const synced_log &each) { return each.number == log.number; });
    };
    record->logs.erase(std::remove_if(record->logs.begin(), record->logs.end(), is_gone),
                       record->logs.end());
}

/* What is listed of the manifest is all that the checkpoint has, and is right as it is: of what is
 * being added to it the tracker may know before RocksDB counts it. */
static status record_manifest(store_checkpoint *checkpoint)
{
    for (const LiveFileStorageInfo &file : checkpoint->files) {
        if (file.file_type != rocksdb::kDescriptorFile)
            continue;
        if (!parse_manifest_name(file.relative_filename, &checkpoint->synced.manifest))
            return status_make(STATUS_INTERNAL, "store: a manifest is named %s",
                               file.relative_filename.c_str());
        checkpoint->synced.manifest_length = file.size;
    }
    return status_ok();
}

static status list_files(store_checkpoint *checkpoint)
{
    store *store = checkpoint->store;
    TRY(status_from(store->db->DisableFileDeletions()));
    checkpoint->keeps_files = true;
    checkpoint->synced = store->logs->present(); /* so the logs are listed as long at least */
    TRY(ask_for_files(store, UINT64_MAX, &checkpoint->files)); /* nothing is flushed now */
    leave_out_deleted(&checkpoint->synced, store->logs->present());
    return record_manifest(checkpoint);
}

status store_checkpoint_begin(store *store, store_checkpoint **out)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    *out = nullptr;
    TRY(check_unfenced(store));
    return guarded([&] {
        auto checkpoint = std::make_unique<store_checkpoint>(store);
        TRY(list_files(checkpoint.get()));
        *out = checkpoint.release();
        return status_ok();
    });
}

void store_checkpoint_end(store_checkpoint *checkpoint)
{
    if (checkpoint == nullptr)
        return;
    CHECK_MAGIC(checkpoint, CHECKPOINT_MAGIC);
    checkpoint->magic = 0;
    delete checkpoint;
}

/* --- the directory --- */

static IOStatus copy_piece(rocksdb::FSSequentialFile *from, rocksdb::FSWritableFile *to,
                           char *scratch, uint64_t *left)
{
    rocksdb::Slice piece;
    size_t size = *left < PIECE ? static_cast<size_t>(*left) : static_cast<size_t>(PIECE);
    IOStatus s = from->Read(size, IOOptions(), &piece, scratch, nullptr);
    if (s.ok() && piece.empty())
        s = IOStatus::Corruption("a file of the store is shorter than it should be");
    if (s.ok())
        s = to->Append(piece, IOOptions(), nullptr);
    *left -= piece.size();
    return s;
}

IOStatus copy_first_bytes(rocksdb::FileSystem *files, const std::string &from,
                          const std::string &to, uint64_t size, bool syncs)
{
    std::unique_ptr<rocksdb::FSSequentialFile> source;
    std::unique_ptr<rocksdb::FSWritableFile> copy;
    std::unique_ptr<char[]> scratch(new char[PIECE]);
    IOStatus s = files->NewSequentialFile(from, FileOptions(), &source, nullptr);
    if (s.ok())
        s = files->NewWritableFile(to, FileOptions(), &copy, nullptr);
    while (s.ok() && size > 0)
        s = copy_piece(source.get(), copy.get(), scratch.get(), &size);
    if (s.ok() && syncs)
        s = copy->Sync(IOOptions(), nullptr);
    return s.ok() ? copy->Close(IOOptions(), nullptr) : s;
}

/* A log is no log of ours to append to: it gets no room in advance. */
static rocksdb::FileSystem *plain_files(const store *store)
{
    return static_cast<rocksdb::FileSystemWrapper *>(store->files.get())->target();
}

static bool has_stand_in(const store *store, uint64_t table)
{
    std::shared_ptr<const stand_in> instead = store->stand_ins->find(table);
    return instead != nullptr && instead->is_table();
}

/* A table that is missing, and whose keys are closed for good, is missing there, too. */
static bool may_be_missing(store *store, const std::string &path)
{
    uint64_t table = table_number(path);
    if (table != 0 && !has_stand_in(store, table))
        store->damage.look_for(table);
    return table != 0 && has_stand_in(store, table);
}

static status write_file(store *store, const LiveFileStorageInfo &file,
                         const std::string &directory)
{
    rocksdb::FileSystem *files = plain_files(store);
    std::string from = file.directory + "/" + file.relative_filename;
    std::string to = directory + "/" + file.relative_filename;
    if (!file.replacement_contents.empty())
        return status_from(rocksdb::WriteStringToFile(files, file.replacement_contents, to));
    if (file.trim_to_size)
        return status_from(copy_first_bytes(files, from, to, file.size, false));
    IOStatus s = files->LinkFile(from, to, IOOptions(), nullptr);
    if (s.IsPathNotFound() && bring_back_table(store, table_number(from)).ok())
        s = files->LinkFile(from, to, IOOptions(), nullptr);
    return s.IsPathNotFound() && may_be_missing(store, from) ? status_ok() : status_from(s);
}

static status write_synced(const store_checkpoint *checkpoint, const std::string &directory)
{
    rocksdb::FileSystem *files = plain_files(checkpoint->store);
    log_findings findings;
    TRY(judge_logs(files, directory, checkpoint->synced, &findings));
    if (findings.verdict == STORE_LOG_LOST)
        return status_make(STATUS_DATA_LOSS, "%s", findings.words.c_str());
    synced_file file;
    file.set_place(files, directory);
    return status_from(file.write(findings.record));
}

static status write_directory(const store_checkpoint *checkpoint, const std::string &directory)
{
    store *store = checkpoint->store;
    rocksdb::FileSystem *files = plain_files(store);
    TRY(status_from(files->CreateDir(directory, IOOptions(), nullptr)));
    for (const LiveFileStorageInfo &file : checkpoint->files)
        if (file.file_type != rocksdb::kOptionsFile)
            TRY(write_file(store, file, directory));
    TRY(write_synced(checkpoint, directory));
    std::string format;
    TRY(status_from(rocksdb::ReadFileToString(files, store->directory + "/FORMAT", &format)));
    return status_from(rocksdb::WriteStringToFile(files, format, directory + "/FORMAT"));
}

status store_checkpoint_write(store_checkpoint *checkpoint, const char *directory)
{
    CHECK_MAGIC(checkpoint, CHECKPOINT_MAGIC);
    return guarded([&] {
        TRY(write_directory(checkpoint, directory));
        return check_unfenced(checkpoint->store);
    });
}

/* --- identity --- */

status store_identity(store *store, char out[STORE_IDENTITY_SIZE])
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return guarded([&] {
        std::string identity;
        TRY(status_from(store->db->GetDbIdentity(identity)));
        if (!is_identity(identity)) /* only read: one is made up, as if there were none */
            identity = rocksdb::Env::Default()->GenerateUniqueId();
        if (identity.size() >= STORE_IDENTITY_SIZE)
            return status_make(STATUS_INTERNAL, "an identity has %zu bytes", identity.size());
        memcpy(out, identity.c_str(), identity.size() + 1);
        return status_ok();
    });
}
