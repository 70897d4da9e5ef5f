/* Tables outside of the store: written by backups, taken in by restores.
 *
 * Why a backup reads the keyspace through a cursor and writes new tables, and does not link the
 * tables that there are (RocksDB's ExportColumnFamily): its CreateColumnFamilyWithImport takes the
 * range of a file's keys from the keys alone. What the file deleted beyond them is forgotten, and
 * rows that were dropped are there again (7.8; store.md has the story). Tables made here have plain
 * values and nothing deleted, and are taken in by IngestExternalFile, which is made for such. */
#include "store/internal.h"

#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"

using rocksdb::Options;

enum : uint32_t { TABLE_WRITER_MAGIC = 0x5461626c };
enum : size_t { VERIFY_READAHEAD = 2 << 20 };

/* The options of a table file that belongs to no keyspace. */
static Options table_options(store *store)
{
    rocksdb::DBOptions db_options;
    db_options.env = store->env.get();
    return Options(db_options, make_keyspace_options(store, KEYSPACE_ROWS, nullptr));
}

/* --- writing --- */

struct table_writer {
    explicit table_writer(store *store)
        : options(table_options(store)), file(environment(), options)
    {
    }

    static rocksdb::EnvOptions environment()
    {
        rocksdb::EnvOptions o;
        o.bytes_per_sync = 1 << 20; /* to the disk while it is written, not in one burst */
        return o;
    }

    uint32_t magic = TABLE_WRITER_MAGIC;
    Options options;
    rocksdb::SstFileWriter file;
};

status table_writer_create(store *store, const char *path, table_writer **out)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    *out = nullptr;
    return guarded([&] {
        auto writer = std::make_unique<table_writer>(store);
        TRY(status_from(writer->file.Open(path)));
        *out = writer.release();
        return status_ok();
    });
}

status table_writer_add(table_writer *writer, bytes key, bytes value)
{
    CHECK_MAGIC(writer, TABLE_WRITER_MAGIC);
    return guarded([&] { return status_from(writer->file.Put(to_slice(key), to_slice(value))); });
}

uint64_t table_writer_size(const table_writer *writer)
{
    return const_cast<table_writer *>(writer)->file.FileSize();
}

status table_writer_finish(table_writer *writer)
{
    CHECK_MAGIC(writer, TABLE_WRITER_MAGIC);
    return guarded([&] { return status_from(writer->file.Finish()); });
}

void table_writer_destroy(table_writer *writer)
{
    if (writer == nullptr)
        return;
    CHECK_MAGIC(writer, TABLE_WRITER_MAGIC);
    writer->magic = 0;
    delete writer;
}

/* --- reading --- */

static status visit_all(rocksdb::Iterator *entries,
                        status (*visit)(void *context, bytes key, bytes value), void *context)
{
    for (entries->SeekToFirst(); entries->Valid(); entries->Next())
        TRY(visit(context, from_slice(entries->key()), from_slice(entries->value())));
    return status_from(entries->status());
}

status table_read(store *store, const char *path,
                  status (*visit)(void *context, bytes key, bytes value), void *context)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return guarded([&] {
        rocksdb::SstFileReader reader(table_options(store));
        rocksdb::ReadOptions options;
        options.readahead_size = VERIFY_READAHEAD;
        options.fill_cache = false; /* a file that is soon gone */
        TRY(status_from(reader.Open(path)));
        std::unique_ptr<rocksdb::Iterator> entries(reader.NewIterator(options));
        return visit_all(entries.get(), visit, context);
    });
}

/* --- taking in --- */

static status ingest(keyspace *keyspace, const char *const *paths, size_t count)
{
    rocksdb::IngestExternalFileOptions options;
    options.move_files = true;
    std::vector<std::string> files(paths, paths + count);
    keep_files_scope keeping;
    return status_from(keyspace->db->IngestExternalFile(keyspace->handle, files, options));
}

status store_keyspace_import(store *store, uint64_t id, const char *const *paths, size_t count,
                             keyspace **out)
{
    *out = nullptr;
    TRY(store_keyspaces_create(store, id, 1));
    keyspace *made = store_keyspace_find(store, id);
    status s = count == 0 ? status_ok() : guarded([&] { return ingest(made, paths, count); });
    if (status_is_ok(s))
        *out = made;
    else /* what cannot be dropped now is dropped at the next start */
        status_ignore(store_keyspace_drop(store, made));
    return s;
}

/* --- verifying --- */

static status verify_table(keyspace *keyspace, const std::string &path, uint64_t size)
{
    rocksdb::SstFileReader reader(table_options(keyspace->store));
    rocksdb::ReadOptions options;
    options.readahead_size = VERIFY_READAHEAD;
    rocksdb::Status s = reader.Open(path);
    if (s.ok())
        s = reader.VerifyChecksum(options);
    /* Compacted away meanwhile: then all of it has been read and found good. */
    if (s.IsPathNotFound())
        return status_ok();
    if (s.IsCorruption())
        keyspace->store->damage.note(keyspace->id, path);
    if (s.IsCorruption())
        return status_make(STATUS_DATA_LOSS, "the table %s of %llu bytes is damaged: %s",
                           path.c_str(), (unsigned long long)size, words_of(s).c_str());
    return status_from(s);
}

static status verify(keyspace *keyspace, const store_pacer *pacer)
{
    rocksdb::ColumnFamilyMetaData tables;
    keyspace->db->GetColumnFamilyMetaData(keyspace->handle, &tables);
    for (const auto &level : tables.levels) {
        for (const auto &table : level.files) {
            TRY(verify_table(keyspace, table.db_path + table.name, table.size));
            if (!pacer->go_on(pacer->context, 0))
                return status_make(STATUS_CANCELLED, "cancelled");
        }
    }
    return status_ok();
}

status keyspace_verify(keyspace *keyspace, const store_pacer *pacer)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    return guarded([&] { return verify(keyspace, pacer); });
}
