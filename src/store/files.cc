/* See files.h. */
#include "store/files.h"
#include "store/internal.h"

#include "rocksdb/file_checksum.h"

#include <fcntl.h>
#include <unistd.h>

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

enum : size_t { PIECE = 256 << 10 };

/* `struct files` is RocksDB's class under a name that C can say. */
static FileSystem *system_of(files *files)
{
    return reinterpret_cast<FileSystem *>(files);
}

struct files *files_of_system(void)
{
    return reinterpret_cast<files *>(FileSystem::Default().get());
}

struct files *files_of_store(store *store)
{
    CHECK_MAGIC(store, STORE_MAGIC);
    return reinterpret_cast<files *>(store->files.get());
}

/* As status_from, but a file that is missing is no fault of the store's. To RocksDB a directory is
 * missing, too, that may not be read or is none. */
static status file_status(const IOStatus &s, const std::string &path)
{
    if (!s.IsPathNotFound() && !s.IsNotFound())
        return status_from(s);
    if (faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0 && errno != ENOENT)
        return status_from_errno(errno, "cannot read %s", path.c_str());
    return status_make(STATUS_NOT_FOUND, "%s is missing", path.c_str());
}

/* --- directories --- */

static std::string parent_of(const std::string &path)
{
    size_t slash = path.find_last_of('/', path.find_last_not_of('/'));
    if (slash == std::string::npos)
        return ".";
    return path.substr(0, slash + 1);
}

status files_sync_directory(files *files, const char *path)
{
    return guarded([&] { return file_status(sync_directory(system_of(files), path), path); });
}

status files_sync_parent(files *files, const char *path)
{
    return files_sync_directory(files, parent_of(path).c_str());
}

status files_make_directory(files *files, const char *path)
{
    return guarded([&] {
        IOStatus s = system_of(files)->CreateDirIfMissing(path, IOOptions(), nullptr);
        if (s.ok())
            s = sync_directory(system_of(files), parent_of(path));
        return file_status(s, path);
    });
}

status files_list(files *files, const char *path, status (*visit)(void *context, const char *name),
                  void *context)
{
    return guarded([&] {
        std::vector<std::string> names;
        TRY(file_status(system_of(files)->GetChildren(path, IOOptions(), &names, nullptr), path));
        for (const std::string &name : names) {
            if (name != "." && name != "..")
                TRY(visit(context, name.c_str()));
        }
        return status_ok();
    });
}

/* --- removing --- */

static status removed(const IOStatus &s, const std::string &path)
{
    return s.IsPathNotFound() || s.IsNotFound() ? status_ok() : file_status(s, path);
}

status files_remove(files *files, const char *path)
{
    return guarded(
        [&] { return removed(system_of(files)->DeleteFile(path, IOOptions(), nullptr), path); });
}

status files_remove_directory(files *files, const char *path)
{
    return guarded(
        [&] { return removed(system_of(files)->DeleteDir(path, IOOptions(), nullptr), path); });
}

status remove_flat_directory(FileSystem *system, const std::string &path)
{
    std::vector<std::string> names;
    IOStatus s = system->GetChildren(path, IOOptions(), &names, nullptr);
    if (s.IsPathNotFound() || s.IsNotFound())
        return status_ok();
    for (const std::string &name : names)
        if (s.ok() && name != "." && name != "..")
            s = system->DeleteFile(path + "/" + name, IOOptions(), nullptr);
    if (s.ok())
        s = system->DeleteDir(path, IOOptions(), nullptr);
    return removed(s, path);
}

status files_remove_flat_directory(files *files, const char *path)
{
    return guarded([&] { return remove_flat_directory(system_of(files), path); });
}

status files_rename(files *files, const char *from, const char *to)
{
    return guarded([&] {
        return file_status(system_of(files)->RenameFile(from, to, IOOptions(), nullptr), from);
    });
}

status files_link(files *files, const char *path, const char *name)
{
    return guarded([&] {
        return file_status(system_of(files)->LinkFile(path, name, IOOptions(), nullptr), path);
    });
}

status files_look(files *files, const char *path, file_look *out)
{
    *out = {0, false};
    return guarded([&] {
        FileSystem *system = system_of(files);
        TRY(file_status(system->GetFileSize(path, IOOptions(), &out->size, nullptr), path));
        return file_status(system->IsDirectory(path, IOOptions(), &out->is_directory, nullptr),
                           path);
    });
}

/* --- checksums --- */

class checksum {
  public:
    checksum()
        : generator(rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator(
              rocksdb::FileChecksumGenContext()))
    {
    }

    void add(const Slice &data)
    {
        generator->Update(data.data(), data.size());
        size += data.size();
    }

    file_sum finish()
    {
        generator->Finalize();
        uint32_t crc32c = 0; /* four bytes, big-endian */
        for (char c : generator->GetChecksum())
            crc32c = crc32c << 8 | static_cast<uint8_t>(c);
        return {size, crc32c};
    }

  private:
    const std::unique_ptr<rocksdb::FileChecksumGenerator> generator;
    uint64_t size = 0;
};

struct running_sum {
    checksum sum;
};

status running_sum_create(running_sum **out)
{
    return guarded([&] {
        *out = new running_sum;
        return status_ok();
    });
}

/* RocksDB's generator allocates nothing after it was made: four bytes fit into a string. */
void running_sum_add(running_sum *sum, bytes piece)
{
    sum->sum.add(to_slice(piece));
}

void running_sum_finish(running_sum *sum, struct file_sum *out)
{
    *out = sum->sum.finish();
    delete sum;
}

/* --- reading and copying --- */

/* Reads to the end in pieces and gives each to `use`, which returns an IOStatus. */
template <typename function>
static status read_pieces(FileSystem *system, const char *path, function use)
{
    std::unique_ptr<FSSequentialFile> file;
    TRY(file_status(system->NewSequentialFile(path, FileOptions(), &file, nullptr), path));
    std::unique_ptr<char[]> scratch(new char[PIECE]);
    Slice piece;
    do {
        TRY(file_status(file->Read(PIECE, IOOptions(), &piece, scratch.get(), nullptr), path));
        TRY(use(piece));
    } while (piece.size() > 0);
    file->InvalidateCache(0, 0).PermitUncheckedError(); /* others need the memory more */
    return status_ok();
}

status files_read(files *files, const char *path, size_t most, struct buffer *out)
{
    return guarded([&] {
        size_t before = out->size;
        TRY(read_pieces(system_of(files), path, [&](const Slice &piece) {
            if (out->size - before + piece.size() > most)
                return status_make(STATUS_DATA_LOSS, "%s is too large", path);
            buffer_append_bytes(out, from_slice(piece));
            return status_ok();
        }));
        return out->failed ? status_out_of_memory() : status_ok();
    });
}

status files_read_tail(files *files, const char *path, size_t most, struct buffer *out,
                       uint64_t *size)
{
    return guarded([&] {
        FileSystem *system = system_of(files);
        std::unique_ptr<rocksdb::FSRandomAccessFile> file;
        TRY(file_status(system->GetFileSize(path, IOOptions(), size, nullptr), path));
        TRY(file_status(system->NewRandomAccessFile(path, FileOptions(), &file, nullptr), path));
        size_t wanted = *size < most ? static_cast<size_t>(*size) : most;
        if (wanted == 0) /* RocksDB takes a read of nothing for one that failed */
            return status_ok();
        std::unique_ptr<char[]> scratch(new char[wanted + 1]);
        Slice tail;
        TRY(file_status(
            file->Read(*size - wanted, wanted, IOOptions(), &tail, scratch.get(), nullptr), path));
        if (tail.size() != wanted)
            return status_make(STATUS_DATA_LOSS, "%s is shorter than it was", path);
        buffer_append_bytes(out, from_slice(tail));
        return out->failed ? status_out_of_memory() : status_ok();
    });
}

struct file_reader {
    std::string path;
    std::unique_ptr<FSSequentialFile> file;
};

status files_open(files *files, const char *path, file_reader **out)
{
    *out = nullptr;
    return guarded([&] {
        auto reader = std::make_unique<file_reader>();
        reader->path = path;
        TRY(file_status(
            system_of(files)->NewSequentialFile(path, FileOptions(), &reader->file, nullptr),
            path));
        *out = reader.release();
        return status_ok();
    });
}

status file_reader_next(file_reader *reader, uint8_t *to, size_t size, size_t *got)
{
    *got = 0;
    return guarded([&] {
        Slice piece;
        char *scratch = reinterpret_cast<char *>(to);
        TRY(file_status(reader->file->Read(size, IOOptions(), &piece, scratch, nullptr),
                        reader->path));
        if (piece.data() != scratch)
            memcpy(to, piece.data(), piece.size());
        *got = piece.size();
        return status_ok();
    });
}

void file_reader_close(file_reader *reader)
{
    delete reader;
}

static status pace(const store_pacer *pacer, uint64_t bytes)
{
    return pacer->go_on(pacer->context, bytes) ? status_ok()
                                               : status_make(STATUS_CANCELLED, "cancelled");
}

status files_sum(files *files, const char *path, const store_pacer *pacer, file_sum *out)
{
    return guarded([&] {
        checksum sum;
        TRY(read_pieces(system_of(files), path, [&](const Slice &piece) {
            sum.add(piece);
            return pace(pacer, piece.size());
        }));
        *out = sum.finish();
        return status_ok();
    });
}

static status sync_and_close(FSWritableFile *file, const char *path)
{
    IOStatus s = file->Sync(IOOptions(), nullptr);
    file->InvalidateCache(0, 0).PermitUncheckedError();
    IOStatus closed = file->Close(IOOptions(), nullptr);
    return file_status(s.ok() ? closed : s, path);
}

status files_copy(files *files, const char *from, const char *to, const store_pacer *pacer,
                  file_sum *out)
{
    return guarded([&] {
        checksum sum;
        std::unique_ptr<FSWritableFile> copy;
        TRY(file_status(system_of(files)->NewWritableFile(to, FileOptions(), &copy, nullptr), to));
        TRY(read_pieces(system_of(files), from, [&](const Slice &piece) {
            sum.add(piece);
            TRY(file_status(copy->Append(piece, IOOptions(), nullptr), to));
            return pace(pacer, piece.size());
        }));
        *out = sum.finish();
        return sync_and_close(copy.get(), to);
    });
}

struct file_writer {
    std::string path;
    std::unique_ptr<FSWritableFile> file;
};

status files_create(files *files, const char *path, file_writer **out)
{
    *out = nullptr;
    return guarded([&] {
        auto writer = std::make_unique<file_writer>();
        FileOptions options;
        options.bytes_per_sync = 1 << 20; /* to the disk while it is written, not in one burst */
        writer->path = path;
        TRY(file_status(system_of(files)->NewWritableFile(path, options, &writer->file, nullptr),
                        path));
        *out = writer.release();
        return status_ok();
    });
}

status file_writer_append(file_writer *writer, bytes piece)
{
    return guarded([&] {
        return file_status(writer->file->Append(to_slice(piece), IOOptions(), nullptr),
                           writer->path);
    });
}

status file_writer_finish(file_writer *writer)
{
    return guarded([&] { return sync_and_close(writer->file.get(), writer->path.c_str()); });
}

void file_writer_close(file_writer *writer)
{
    delete writer;
}

status files_replace(files *files, const char *path, bytes content)
{
    return guarded([&] {
        FileSystem *system = system_of(files);
        std::string fresh = std::string(path) + ".new";
        std::unique_ptr<FSWritableFile> file;
        TRY(file_status(system->NewWritableFile(fresh, FileOptions(), &file, nullptr), path));
        TRY(file_status(file->Append(to_slice(content), IOOptions(), nullptr), path));
        TRY(sync_and_close(file.get(), path));
        TRY(file_status(system->RenameFile(fresh, path, IOOptions(), nullptr), path));
        return file_status(sync_directory(system, parent_of(path)), path);
    });
}

/* --- locks --- */

status files_lock_directory(files *files, const char *directory, files_lock **out)
{
    *out = nullptr;
    return guarded([&] {
        rocksdb::FileLock *lock = nullptr;
        std::string name = std::string(directory) + "/LOCK";
        IOStatus s = system_of(files)->LockFile(name, IOOptions(), &lock, nullptr);
        if (!s.ok() && directory_is_locked(system_of(files), directory))
            return status_make(STATUS_FAILED_PRECONDITION, "%s is in use by another process",
                               directory);
        *out = reinterpret_cast<files_lock *>(lock);
        return file_status(s, name);
    });
}

void files_unlock_directory(files *files, files_lock *lock)
{
    if (lock != nullptr)
        system_of(files)
            ->UnlockFile(reinterpret_cast<rocksdb::FileLock *>(lock), IOOptions(), nullptr)
            .PermitUncheckedError();
}
