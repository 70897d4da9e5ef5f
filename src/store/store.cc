/* Opening and closing the store. */
#include "store/check.h"
#include "store/identity.h"
#include "store/keyspaces.h"
#include "store/old_data.h"
#include "store/open_tables.h"

#include "rocksdb/convenience.h"
#include "rocksdb/write_buffer_manager.h"

#include <cstring>
#include <set>

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;

store::store(const store_options *options, std::shared_ptr<rocksdb::FileSystem> base,
             uint64_t sleep_us)
    : directory(options->directory), fold(options->fold),
      fold_before(fold != nullptr ? fold->before : nullptr), read_only(options->read_only),
      no_compactions(options->no_compactions), trouble(options), large(this, options),
      full(this, options), damage(this, options), logs(std::make_shared<log_tracker>(options->log)),
      room(std::make_shared<log_room>(logs, options->metrics)),
      stand_ins(std::make_shared<class stand_ins>()),
      open_tables(std::make_shared<class open_tables>()), base_files(std::move(base)),
      files(make_file_system(base_files, room, stand_ins, open_tables)), longest_sleep_us(sleep_us),
      env(std::make_unique<environment>(files, options->holds_compactions, sleep_us)),
      fine_keyspace(options->fine_keyspace)
{
    cache = make_block_cache(options->cache_bytes);
    write_buffers = std::make_shared<rocksdb::WriteBufferManager>(options->write_buffer_bytes);
    tables = make_table_factory(cache, TABLE_OF_ROWS);
    log_tables = make_table_factory(cache, TABLE_OF_LOG);
    fine_tables = make_table_factory(cache, TABLE_OF_FEW);
    memtables = make_memtable_factory();
}

/* --- open --- */

/* The keyspaces that the directory has, not opened yet; the first family is RocksDB's own. */
static status list_keyspaces(store *store, const rocksdb::DBOptions &options,
                             std::vector<std::unique_ptr<keyspace>> *keyspaces)
{
    std::vector<std::string> names;
    rocksdb::Status s = DB::ListColumnFamilies(options, store->directory, &names);
    if (!s.ok())
        return status_from(s);
    for (const std::string &name : names) {
        keyspace_identity identity;
        if (name == rocksdb::kDefaultColumnFamilyName)
            continue;
        if (!parse_keyspace_name(name, &identity))
            return status_make(STATUS_DATA_LOSS, "data directory %s has an unknown keyspace \"%s\"",
                               store->directory.c_str(), name.c_str());
        keyspaces->push_back(new_keyspace(store, identity));
    }
    return status_ok();
}

/* The tables of the directory, without a look at them. */
static rocksdb::Status list_tables(store *store, const rocksdb::DBOptions &options,
                                   const std::vector<ColumnFamilyDescriptor> &families,
                                   std::vector<rocksdb::LiveFileMetaData> *out)
{
    DB *opened = nullptr;
    std::vector<ColumnFamilyHandle *> handles;
    rocksdb::DBOptions lenient = options;
    lenient.paranoid_checks = false;
    lenient.track_and_verify_wals_in_manifest = true; /* or it aborts, in a salvage: options.cc */
    rocksdb::Status s = DB::OpenForReadOnly(lenient, store->directory, families, &handles, &opened);
    if (!s.ok())
        return s;
    opened->GetLiveFilesMetaData(out);
    for (ColumnFamilyHandle *handle : handles)
        delete handle;
    delete opened;
    return s;
}

/* Removes tables that nothing refers to: what a kill in the middle of a compaction left. RocksDB
 * does it by itself, but only once it is open, and for that it may need the space that they take.
 * A store that is only read needs none, and knows which tables there are. */
static rocksdb::Status remove_leftovers(store *store, const rocksdb::DBOptions &options,
                                        const std::vector<ColumnFamilyDescriptor> &families)
{
    std::vector<rocksdb::LiveFileMetaData> tables;
    rocksdb::Status s = list_tables(store, options, families, &tables);
    if (!s.ok())
        return s;
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
    rocksdb::Status s = forget_damaged_identity(store->files.get(), store->directory);
    if (!s.ok())
        return s;
    s = DB::Open(options, store->directory, families, handles, &store->db);
    if (!s.IsNoSpace())
        return s;
    rocksdb::Status removed = remove_leftovers(store, options, families);
    return removed.ok() ? DB::Open(options, store->directory, families, handles, &store->db) : s;
}

static rocksdb::Status try_open(store *store, const rocksdb::DBOptions &options,
                                const std::vector<ColumnFamilyDescriptor> &families,
                                std::vector<ColumnFamilyHandle *> *handles)
{
    return store->read_only
               ? DB::OpenForReadOnly(options, store->directory, families, handles, &store->db)
               : open_for_writing(store, options, families, handles);
}

/* A table that is missing, or cannot be made out: its keyspace is not compacted, from the start. */
static void stop_compactions(std::vector<ColumnFamilyDescriptor> *families, const std::string &name)
{
    for (ColumnFamilyDescriptor &family : *families)
        if (family.name == name)
            family.options.disable_auto_compactions = true;
}

/* Looks at all tables, since one keeps the database from opening, and puts stand-ins in place of
 * those that are damaged as a whole. */
static status stand_in_for_damaged(store *store, const rocksdb::DBOptions &options,
                                   std::vector<ColumnFamilyDescriptor> *families,
                                   std::vector<rocksdb::LiveFileMetaData> *damaged)
{
    std::vector<rocksdb::LiveFileMetaData> tables;
    rocksdb::Status s = list_tables(store, options, *families, &tables);
    if (!s.ok())
        return status_from(s);
    for (const rocksdb::LiveFileMetaData &table : tables) {
        table_findings findings;
        TRY(look_at_table(store->base_files.get(), table.db_path + table.name, table.size, nullptr,
                          false, &findings));
        if (findings.whole.empty())
            continue;
        TRY(store->stand_ins->put_table(table.file_number, table.size, table.smallestkey, false));
        stop_compactions(families, table.column_family_name);
        damaged->push_back(table);
    }
    return status_ok();
}

static bool may_be_a_table(const rocksdb::Status &s)
{
    return s.IsCorruption() || s.IsPathNotFound() || s.IsNotFound() || s.IsIOError();
}

static status open_with_stand_ins(store *store, const rocksdb::DBOptions &options,
                                  std::vector<ColumnFamilyDescriptor> *families,
                                  std::vector<ColumnFamilyHandle *> *handles,
                                  std::vector<rocksdb::LiveFileMetaData> *damaged)
{
    rocksdb::Status s = try_open(store, options, *families, handles);
    if (s.ok() || !may_be_a_table(s))
        return s.ok() ? status_ok() : status_from(s);
    TRY(stand_in_for_damaged(store, options, families, damaged));
    if (!damaged->empty())
        s = try_open(store, options, *families, handles);
    return s.ok() ? status_ok() : status_from(s);
}

static status open_database(store *store, const rocksdb::DBOptions &options,
                            std::vector<std::unique_ptr<keyspace>> keyspaces)
{
    std::vector<ColumnFamilyDescriptor> families;
    families.emplace_back(rocksdb::kDefaultColumnFamilyName,
                          make_keyspace_options(store, KEYSPACE_ROWS, nullptr));
    for (const auto &k : keyspaces)
        families.push_back(describe_keyspace(*k));

    std::vector<ColumnFamilyHandle *> handles;
    std::vector<rocksdb::LiveFileMetaData> damaged;
    TRY(open_with_stand_ins(store, options, &families, &handles, &damaged));
    store->default_handle = handles[0];
    for (size_t i = 0; i < keyspaces.size(); i++)
        add_keyspace(store, std::move(keyspaces[i]), handles[i + 1]);
    store->damage.see_at_open(damaged);
    return status_ok();
}

/* --- logs --- */

static void tell_of_logs(const store *store, const store_options *options, bool has_loss)
{
    const log_field fields[] = {
        {"text", log_field::LOG_FIELD_TEXT, bytes_of(store->log_words.c_str()), 0},
        {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    if (store->log_verdict == STORE_LOG_TORN)
        log_write(options->log, LOG_WARN, "the log's end may be a torn write", fields);
    else if (store->log_verdict == STORE_LOG_LOST)
        log_write(options->log, LOG_ERROR,
                  has_loss ? "what the log had is lost" : "what the log has twice counts once",
                  fields);
}

/* Syncs a log, so that what a start serves is on the disk: a kill may have left bytes that were
 * written and not synced. */
static rocksdb::IOStatus sync_log(rocksdb::FileSystem *files, const std::string &path)
{
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    rocksdb::IOStatus s = files->NewRandomRWFile(path, rocksdb::FileOptions(), &file, nullptr);
    return s.ok() ? file->Sync(rocksdb::IOOptions(), nullptr) : s;
}

/* Before RocksDB reads them: their ends are recorded, whatever it makes of them. */
static status record_logs(store *store, const synced_record &record)
{
    rocksdb::IOStatus s;
    for (const synced_log &log : record.logs)
        if (s.ok())
            s = sync_log(store->files.get(), store->directory + "/" + log_name(log.number));
    if (s.ok() && !record.logs.empty())
        s = sync_directory(store->files.get(), store->directory);
    store->logs->know(record);
    if (s.ok() && !store->is_salvaging)
        s = store->logs->start_recording();
    return status_from(s);
}

static status examine_manifest(store *store, const store_options *options,
                               const synced_record &recorded)
{
    std::string words;
    TRY(check_manifest(store, recorded, options->salvage && !options->read_only, &words));
    const log_field fields[] = {{"text", log_field::LOG_FIELD_TEXT, bytes_of(words.c_str()), 0},
                                {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    if (!words.empty())
        log_write(options->log, LOG_WARN, "the list of tables was brought back: nothing is lost",
                  fields);
    return status_ok();
}

static status refuse_loss(const log_findings &findings)
{
    return status_make(STATUS_DATA_LOSS, "%s. With --salvage the server starts %s",
                       findings.words.c_str(),
                       findings.has_loss ? "without that" : "and takes each commit once");
}

/* A start with --salvage for what the store was refused for does without both: who is told of the
 * one is told of the other. */
static status also_lost(status refused, bool salvage, const log_findings &findings)
{
    if (status_is_ok(refused) || salvage || findings.verdict != STORE_LOG_LOST ||
        !findings.has_loss)
        return refused;
    status both = status_make(refused.code, "%s. It also starts without this: %s",
                              status_message(refused), findings.words.c_str());
    status_free(refused);
    return both;
}

/* What directory_examine said of a FORMAT that is lost. */
static status refuse_lost_format(store *store, status examined)
{
    log_findings findings;
    status s = check_logs(store->files.get(), store->directory, store->logs.get(), true, &findings);
    bool is_known = status_is_ok(s);
    status_free(s);
    return is_known ? also_lost(examined, false, findings) : examined;
}

/* While a commit is replayed it is there three times: as the log's record, as a batch, and in write
 * buffers. */
static status refuse_large_commit(const store_options *options, const log_findings &findings)
{
    if (options->large_commit_bytes == 0 || findings.largest <= options->large_commit_bytes)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the write-ahead log has a commit of %llu MB, and with so little memory one "
                       "may have %llu",
                       static_cast<unsigned long long>(findings.largest >> 20),
                       static_cast<unsigned long long>(options->large_commit_bytes >> 20));
}

static status examine_logs(store *store, const store_options *options, unsigned long format)
{
    log_findings findings;
    TRY(check_logs(store->files.get(), store->directory, store->logs.get(),
                   format >= FORMAT_WITH_SYNCED, &findings));
    TRY(refuse_large_commit(options, findings));
    if (format != 0)
        TRY(also_lost(examine_manifest(store, options, findings.record), options->salvage,
                      findings));
    store->log_verdict = findings.verdict;
    store->log_words = findings.words;
    if (findings.verdict == STORE_LOG_LOST && !options->salvage)
        return refuse_loss(findings);
    if (!options->read_only)
        tell_of_logs(store, options, findings.has_loss);
    if (findings.verdict == STORE_LOG_LOST)
        TRY(begin_salvage(store, findings));
    return options->read_only ? status_ok() : record_logs(store, findings.record);
}

static status judge_ends(store *store, const store_options *options)
{
    directory_state state;
    log_findings findings;
    status examined = directory_examine(store->files.get(), options, &state);
    if (state.has_lost_format && !options->salvage)
        return refuse_lost_format(store, examined);
    if (!state.has_lost_format)
        TRY(examined);
    status_free(examined);
    TRY(check_logs(store->files.get(), store->directory, store->logs.get(),
                   state.format >= FORMAT_WITH_SYNCED, &findings));
    TRY(also_lost(judge_manifest(store, findings.record, options->salvage), options->salvage,
                  findings));
    bool is_lost = findings.verdict == STORE_LOG_LOST && !options->salvage;
    return is_lost ? refuse_loss(findings) : status_ok();
}

status store_check_log_end(const struct store_options *options)
{
    return guarded([&] {
        auto store =
            std::make_unique<struct store>(options, rocksdb::FileSystem::Default(), UINT64_MAX);
        store->logs->begin(store->files.get(), store->directory);
        status s = judge_ends(store.get(), options);
        store_close(store.release());
        return s;
    });
}

/* --- the directory --- */

/* From before the first file is looked at until after the last is written. RocksDB takes it once
 * more (file_system.cc). A store that is only read takes it, too, lest a server changes the files
 * meanwhile; but where it cannot be taken no server can take it either. */
static status lock_directory(store *store)
{
    std::string name = store->directory + "/LOCK";
    rocksdb::IOStatus s = store->files->LockFile(name, rocksdb::IOOptions(), &store->lock, nullptr);
    if (s.ok()) {
        store->lock_name.begin(store->directory);
        return status_ok();
    }
    if (directory_is_locked(store->files.get(), store->directory))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "data directory %s is in use by another process",
                           store->directory.c_str());
    return store->read_only ? status_ok() : status_from(s);
}

/* The last step of making a store, and of bringing one to the present format. */
static status mark_directory(store *store, const store_options *options, unsigned long former)
{
    TRY(directory_mark(store->files.get(), store->directory));
    const log_field fields[] = {
        {"former", log_field::LOG_FIELD_INT, {nullptr, 0}, static_cast<int64_t>(former)},
        {"present", log_field::LOG_FIELD_INT, {nullptr, 0}, FORMAT_VERSION},
        {nullptr, log_field::LOG_FIELD_END, {nullptr, 0}, 0}};
    if (former == FORMAT_VERSION)
        log_write(options->log, LOG_WARN, "the file FORMAT was made anew", fields);
    else if (former != 0)
        log_write(options->log, LOG_INFO,
                  "data directory has a new format; former programs refuse it", fields);
    return status_ok();
}

status open_directory(store *store, const store_options *options)
{
    directory_state state;
    TRY(check_not_moving(store->files.get(), store->directory));
    status examined = directory_examine(store->files.get(), options, &state);
    if (!state.has_lost_format)
        TRY(examined);
    unsigned long format = state.format;
    if (format != 0 && store->fold != nullptr && format < store->fold->before_format)
        store->fold_before = nullptr;
    status locked = lock_directory(store);
    if (!status_is_ok(locked)) {
        status_free(examined);
        return locked;
    }
    if (!status_is_ok(examined))
        return refuse_lost_format(store, examined);
    TRY(examine_logs(store, options, format));

    rocksdb::DBOptions db_options = make_db_options(options, store);
    db_options.create_if_missing = format == 0;
    std::vector<std::unique_ptr<keyspace>> keyspaces;
    if (format != 0)
        TRY(list_keyspaces(store, db_options, &keyspaces));
    TRY(open_database(store, db_options, std::move(keyspaces)));
    if (options->read_only)
        return status_ok();
    if (format != FORMAT_VERSION || state.has_lost_format)
        TRY(mark_directory(store, options, format));
    store->identity_inode = inode_of(store->directory + "/IDENTITY");
    store->format_inode = inode_of(store->directory + "/FORMAT");
    store->logs->start_thread();
    store->damage.start();
    return status_ok();
}

/* Words for a store that does not open although it may leave out what the log has lost. */
static status name_loss(const store *store, status s)
{
    if (status_is_ok(s) || store->log_verdict != STORE_LOG_LOST ||
        strstr(status_message(s), store->log_words.c_str()) != nullptr)
        return s;
    status both =
        status_make(STATUS_DATA_LOSS, "%s; %s", store->log_words.c_str(), status_message(s));
    status_free(s);
    return both;
}

status store_open_on(const store_options *options, std::shared_ptr<rocksdb::FileSystem> files,
                     uint64_t longest_sleep_us, store **out)
{
    *out = nullptr;
    return guarded([&] {
        auto store = std::make_unique<struct store>(options, std::move(files), longest_sleep_us);
        store->logs->begin(store->files.get(), store->directory);
        status s = name_loss(store.get(), open_directory(store.get(), options));
        bool is_salvage = options->salvage && !options->read_only;
        if (!status_is_ok(s) && store->has_lost_manifest && is_salvage) {
            store->old_data = words_of(s);
            s = open_old_data(options, store.get(), out);
        } else if (status_is_ok(s)) {
            *out = store.get();
        }
        struct store *opened = store.release();
        if (*out == nullptr)
            store_close(opened);
        return s;
    });
}

status store_open(const store_options *options, store **out)
{
    return store_open_on(options, rocksdb::FileSystem::Default(), UINT64_MAX, out);
}

status store_begin_compactions(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    TRY(store->large.compact_at_start());
    store->env->begin_compactions();
    return status_ok();
}

/* --- close --- */

static void close_database(store *store)
{
    store->damage.stop();
    store->large.close();
    store->full.close();
    /* What was written without a sync is durable after an orderly end. */
    if (!store->read_only && !store->trouble.is_fenced() && !store->trouble.is_sealed())
        store->db->SyncWAL().PermitUncheckedError();
    /* Compactions that are still held (a start that failed) are waited for: they end at once. */
    rocksdb::CancelAllBackgroundWork(store->db, false);
    store->env->begin_compactions();
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
    store->large.closed();
}

void store_close(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    if (store->db != nullptr)
        close_database(store);
    store->logs->stop();
    if (store->lock != nullptr)
        store->files->UnlockFile(store->lock, rocksdb::IOOptions(), nullptr).PermitUncheckedError();
    if (store->origin != nullptr)
        store_close(store->origin);
    store->magic = 0;
    delete store;
}

struct store_log_end store_log_end(const store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return {store->log_verdict, store->log_words.c_str()};
}

status store_health(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return store->trouble.health();
}

bool store_records_log_end(const store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return !store->logs->has_failed() || store->trouble.is_fenced();
}

status store_forget_record(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return guarded([&] { return status_from(store->logs->record_afresh()); });
}

void store_fence(store *store, const char *why)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    store->trouble.fence(why);
    store->logs->abandon();
    /* At the end, too: closing the database deletes all files there that are not its own. */
    store->db->DisableFileDeletions().PermitUncheckedError();
    rocksdb::CancelAllBackgroundWork(store->db, false);
}

/* RocksDB flushes all that is to be flushed, and if that goes well there is no error any more. */
static void look_for_memory(store *store)
{
    std::unique_lock<std::mutex> lock(store->resuming, std::try_to_lock);
    if (!lock.owns_lock() || !store->trouble.does_lack_memory() || store->trouble.is_fenced())
        return;
    if (store->db->Resume().ok())
        store->trouble.lacks_memory(false);
}

void store_look_for_room(store *store)
{
    constexpr uint64_t worth_writing = 1 << 20;
    CHECK_MAGIC(store, STORE_MAGIC);
    if (store->trouble.does_lack_memory())
        look_for_memory(store);
    if (!store->trouble.is_log_full())
        return;
    rocksdb::IOStatus room = store->room->take(worth_writing);
    if (room.ok())
        store->room->give_back(worth_writing);
    store->trouble.log_is_full(!room.ok());
}

bool store_lacks_memory(const store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return store->trouble.does_lack_memory() && !store->trouble.is_log_full() &&
           !store->trouble.is_background_full();
}
