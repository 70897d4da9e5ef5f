/* See fault_fs.h. Linked into tests only. */
#include "store/testing/fault_fs.h"
#include "store/old_data.h"

#include <atomic>
#include <map>
#include <thread>

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

enum { OPERATIONS = FAULT_REMOVE + 1 };

struct rule {
    bool is_set = false;
    std::string part;
    fault_kind kind = FAULT_IO;
    unsigned pass = 0;
    std::thread::id thread; /* the only one that it is for, if it is one */

    bool is_for(const std::string &name) const
    {
        return is_set && name.find(part) != std::string::npos &&
               (thread == std::thread::id() || thread == std::this_thread::get_id());
    }
};

/* What is known of a file since it was made. */
struct file_state {
    std::atomic<uint64_t> size{0};
    std::atomic<uint64_t> synced{0};
    bool name_is_synced = false;
    /* Of a second name: what has the sizes. */
    std::shared_ptr<const file_state> same;
    /* Of one that is overwritten in place: what it had at the last sync. */
    bool has_image = false;
    std::string image;
    /* Of one that was renamed: what its name meant before, if that was durable, until this is. */
    bool has_former = false;
    std::string former;

    uint64_t size_synced() const { return same != nullptr ? same->synced : synced; }

    void set_name_synced(bool is_synced)
    {
        name_is_synced |= is_synced;
        has_former &= !is_synced;
    }

    /* A file that was removed meanwhile has none. */
    void take_image(const std::string &path)
    {
        has_image = true;
        rocksdb::ReadFileToString(rocksdb::FileSystem::Default().get(), path, &image)
            .PermitUncheckedError();
    }
};

std::string name_of(const std::string &path)
{
    return path.substr(path.rfind('/') + 1);
}

IOStatus failure(fault_kind kind)
{
    switch (kind) {
    case FAULT_NO_SPACE: {
        IOStatus s = IOStatus::NoSpace("injected");
        s.SetRetryable(true); /* as RocksDB's own file system does */
        return s;
    }
    case FAULT_IO:
        return IOStatus::IOError("injected");
    case FAULT_UNSUPPORTED:
        return IOStatus::NotSupported("injected");
    }
    return IOStatus::OK();
}

/* What the disk does not read. */
struct bad_bytes {
    std::string part; /* empty: nothing */
    uint64_t from = 0;
    uint64_t count = 0;

    bool meet(const std::string &name, uint64_t offset, uint64_t size) const
    {
        return !part.empty() && name.find(part) != std::string::npos && offset < from + count &&
               from < offset + size;
    }
};

class world {
  public:
    IOStatus check_bytes(const std::string &path, uint64_t offset, uint64_t size)
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!bad.meet(name_of(path), offset, size))
            return IOStatus::OK();
        failures++;
        return failure(FAULT_IO);
    }

    IOStatus check(fault_operation operation, const std::string &path)
    {
        std::lock_guard<std::mutex> lock(mutex);
        rule &r = rules[operation];
        if (!r.is_for(name_of(path)))
            return IOStatus::OK();
        if (r.pass > 0) {
            r.pass--;
            return IOStatus::OK();
        }
        failures++;
        failures_while_merging += thread_is_merging() ? 1 : 0;
        return failure(r.kind);
    }

    /* With the mutex: what a power cut would leave under that name, of a file that is no longer
     * written to. False: no file. */
    bool read_durable(const std::string &path, std::string *out) const
    {
        auto found = files.find(path);
        if (found != files.end() && found->second->has_former) {
            *out = found->second->former;
            return true;
        }
        if (found != files.end() && !found->second->name_is_synced)
            return false;
        return rocksdb::ReadFileToString(rocksdb::FileSystem::Default().get(), path, out).ok();
    }

    std::mutex mutex; /* held, too, while names come, change and go: a power cut sees all or none */
    rule rules[OPERATIONS];
    bad_bytes bad;
    unsigned failures = 0;
    unsigned failures_while_merging = 0;
    std::map<std::string, std::shared_ptr<file_state>> files; /* by path */
};

class faulty_file final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    faulty_file(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path_,
                std::shared_ptr<world> world_, std::shared_ptr<file_state> state_)
        : FSWritableFileOwnerWrapper(std::move(file)), path(std::move(path_)),
          world(std::move(world_)), state(std::move(state_))
    {
    }

    IOStatus Append(const Slice &data, const IOOptions &options, IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_APPEND, path);
        Slice part = s.ok() ? data : Slice(data.data(), data.size() / 2);
        IOStatus written = target()->Append(part, options, debug);
        state->size += part.size();
        return s.ok() ? written : s;
    }

    IOStatus Append(const Slice &data, const IOOptions &options,
                    const rocksdb::DataVerificationInfo &, IODebugContext *debug) override
    {
        return Append(data, options, debug);
    }

    IOStatus Allocate(uint64_t offset, uint64_t size, const IOOptions &options,
                      IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_ALLOCATE, path);
        return s.ok() ? target()->Allocate(offset, size, options, debug) : s;
    }

    IOStatus Sync(const IOOptions &options, IODebugContext *debug) override
    {
        return synced(world->check(FAULT_SYNC, path), options, debug);
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        return synced(world->check(FAULT_SYNC, path), options, debug);
    }

  private:
    IOStatus synced(const IOStatus &fault, const IOOptions &options, IODebugContext *debug)
    {
        uint64_t size = state->size;
        IOStatus s = fault.ok() ? target()->Sync(options, debug) : fault;
        if (s.ok())
            state->synced = size;
        return s;
    }

    const std::string path;
    const std::shared_ptr<class world> world;
    const std::shared_ptr<file_state> state;
};

/* Overwritten in place. */
class faulty_rw_file final : public rocksdb::FSRandomRWFileOwnerWrapper {
  public:
    faulty_rw_file(std::unique_ptr<rocksdb::FSRandomRWFile> file, std::string path_,
                   std::shared_ptr<world> world_, std::shared_ptr<file_state> state_)
        : FSRandomRWFileOwnerWrapper(std::move(file)), path(std::move(path_)),
          world(std::move(world_)), state(std::move(state_))
    {
    }

    IOStatus Write(uint64_t offset, const Slice &data, const IOOptions &options,
                   IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_APPEND, path);
        Slice part = s.ok() ? data : Slice(data.data(), data.size() / 2);
        IOStatus written = target()->Write(offset, part, options, debug);
        return s.ok() ? written : s;
    }

    IOStatus Sync(const IOOptions &options, IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_SYNC, path);
        std::lock_guard<std::mutex> lock(world->mutex);
        if (s.ok())
            s = target()->Sync(options, debug);
        if (s.ok()) {
            state->take_image(path);
            state->synced = state->size.load();
        }
        return s;
    }

  private:
    const std::string path;
    const std::shared_ptr<class world> world;
    const std::shared_ptr<file_state> state;
};

class faulty_reader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
  public:
    faulty_reader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path_,
                  std::shared_ptr<world> world_)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), path(std::move(path_)),
          world(std::move(world_))
    {
    }

    IOStatus Read(uint64_t offset, size_t size, const IOOptions &options, Slice *result,
                  char *scratch, IODebugContext *debug) const override
    {
        IOStatus s = world->check(FAULT_READ, path);
        if (s.ok())
            s = world->check_bytes(path, offset, size);
        return s.ok() ? FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result, scratch,
                                                             debug)
                      : s;
    }

  private:
    const std::string path;
    const std::shared_ptr<class world> world;
};

class faulty_directory final : public rocksdb::FSDirectoryWrapper {
  public:
    faulty_directory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string path_,
                     std::shared_ptr<world> world_)
        : FSDirectoryWrapper(std::move(directory)), path(std::move(path_)), world(std::move(world_))
    {
        path.erase(path.find_last_not_of('/') + 1);
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_SYNC_DIRECTORY, "");
        if (s.ok())
            s = FSDirectoryWrapper::Fsync(options, debug);
        std::lock_guard<std::mutex> lock(world->mutex);
        for (auto &entry : world->files) {
            if (entry.first.substr(0, entry.first.rfind('/')) == path)
                entry.second->set_name_synced(s.ok());
        }
        return s;
    }

    IOStatus FsyncWithDirOptions(const IOOptions &options, IODebugContext *debug,
                                 const rocksdb::DirFsyncOptions &) override
    {
        return Fsync(options, debug);
    }

  private:
    std::string path;
    const std::shared_ptr<class world> world;
};

class faulty_file_system final : public rocksdb::FileSystemWrapper {
  public:
    explicit faulty_file_system(std::shared_ptr<world> world_)
        : FileSystemWrapper(rocksdb::FileSystem::Default()), world(std::move(world_))
    {
    }

    const char *Name() const override { return "trestle.fault_fs"; }

    IOStatus NewWritableFile(const std::string &path, const rocksdb::FileOptions &options,
                             std::unique_ptr<rocksdb::FSWritableFile> *out,
                             IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_CREATE, path);
        std::lock_guard<std::mutex> lock(world->mutex);
        if (s.ok())
            s = target()->NewWritableFile(path, options, out, debug);
        if (!s.ok())
            return s;
        auto state = std::make_shared<file_state>();
        world->files[path] = state;
        *out = std::make_unique<faulty_file>(std::move(*out), path, world, state);
        return s;
    }

    /* A second name for the file, which the directory does not have for good yet. */
    IOStatus LinkFile(const std::string &from, const std::string &to, const IOOptions &options,
                      IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_CREATE, to);
        std::lock_guard<std::mutex> lock(world->mutex);
        if (s.ok())
            s = target()->LinkFile(from, to, options, debug);
        auto found = world->files.find(from);
        if (s.ok() && found != world->files.end()) {
            auto state = std::make_shared<file_state>();
            state->same = found->second->same != nullptr ? found->second->same : found->second;
            world->files[to] = state;
        }
        return s;
    }

    IOStatus NewRandomAccessFile(const std::string &path, const rocksdb::FileOptions &options,
                                 std::unique_ptr<rocksdb::FSRandomAccessFile> *out,
                                 IODebugContext *debug) override
    {
        IOStatus s = target()->NewRandomAccessFile(path, options, out, debug);
        if (s.ok())
            *out = std::make_unique<faulty_reader>(std::move(*out), path, world);
        return s;
    }

    IOStatus NewRandomRWFile(const std::string &path, const rocksdb::FileOptions &options,
                             std::unique_ptr<rocksdb::FSRandomRWFile> *out,
                             IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_CREATE, path);
        std::lock_guard<std::mutex> lock(world->mutex);
        if (s.ok())
            s = target()->NewRandomRWFile(path, options, out, debug);
        if (!s.ok())
            return s;
        std::shared_ptr<file_state> &state = world->files[path];
        if (state == nullptr) { /* it was there before */
            state = std::make_shared<file_state>();
            state->name_is_synced = true;
            state->take_image(path);
        }
        *out = std::make_unique<faulty_rw_file>(std::move(*out), path, world, state);
        return s;
    }

    IOStatus NewDirectory(const std::string &path, const IOOptions &options,
                          std::unique_ptr<rocksdb::FSDirectory> *out,
                          IODebugContext *debug) override
    {
        IOStatus s = target()->NewDirectory(path, options, out, debug);
        if (s.ok())
            *out = std::make_unique<faulty_directory>(std::move(*out), path, world);
        return s;
    }

    IOStatus NewSequentialFile(const std::string &path, const rocksdb::FileOptions &options,
                               std::unique_ptr<rocksdb::FSSequentialFile> *out,
                               IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_READ, path);
        return s.ok() ? target()->NewSequentialFile(path, options, out, debug) : s;
    }

    IOStatus RenameFile(const std::string &from, const std::string &to, const IOOptions &options,
                        IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_RENAME, to);
        std::lock_guard<std::mutex> lock(world->mutex);
        std::string former;
        bool has_former = world->read_durable(to, &former);
        if (s.ok())
            s = target()->RenameFile(from, to, options, debug);
        auto found = world->files.find(from);
        if (s.ok() && found != world->files.end()) {
            std::shared_ptr<file_state> state = found->second;
            state->has_former = has_former;
            state->former = former;
            world->files.erase(found);
            world->files[to] = state;
        }
        return s;
    }

    IOStatus DeleteFile(const std::string &path, const IOOptions &options,
                        IODebugContext *debug) override
    {
        IOStatus s = world->check(FAULT_REMOVE, path);
        std::lock_guard<std::mutex> lock(world->mutex);
        if (s.ok())
            s = target()->DeleteFile(path, options, debug);
        if (s.ok())
            world->files.erase(path);
        return s;
    }

  private:
    const std::shared_ptr<class world> world;
};

} // namespace

struct fault_fs {
    std::shared_ptr<class world> world = std::make_shared<class world>();
    std::shared_ptr<rocksdb::FileSystem> files = std::make_shared<faulty_file_system>(world);
};

fault_fs *fault_fs_create(void)
{
    return new fault_fs;
}

void fault_fs_destroy(fault_fs *fs)
{
    delete fs;
}

status fault_fs_open(fault_fs *fs, const store_options *options, store **out)
{
    enum : uint64_t { LONGEST_SLEEP_US = 1000 };
    return store_open_on(options, fs->files, LONGEST_SLEEP_US, out);
}

status fault_fs_accept(fault_fs *fs, const char *directory)
{
    return store_accept_old_data_on(fs->files.get(), directory);
}

static void set_rule(fault_fs *fs, enum fault_operation operation, const char *part,
                     enum fault_kind kind, unsigned pass, std::thread::id thread)
{
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    rule r;
    r.is_set = true;
    r.part = part;
    r.kind = kind;
    r.pass = pass;
    r.thread = thread;
    fs->world->rules[operation] = r;
}

void fault_fs_fail(fault_fs *fs, enum fault_operation operation, const char *part,
                   enum fault_kind kind, unsigned pass)
{
    set_rule(fs, operation, part, kind, pass, std::thread::id());
}

void fault_fs_fail_here(fault_fs *fs, enum fault_operation operation, const char *part,
                        enum fault_kind kind, unsigned pass)
{
    set_rule(fs, operation, part, kind, pass, std::this_thread::get_id());
}

void fault_fs_heal(fault_fs *fs)
{
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    for (rule &r : fs->world->rules)
        r.is_set = false;
    fs->world->bad = bad_bytes();
}

void fault_fs_break_bytes(fault_fs *fs, const char *part, uint64_t from, uint64_t count)
{
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    fs->world->bad = {part, from, count};
}

unsigned fault_fs_failures(const fault_fs *fs)
{
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    return fs->world->failures;
}

unsigned fault_fs_failures_while_merging(const fault_fs *fs)
{
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    return fs->world->failures_while_merging;
}

/* With the world's mutex held. Directories are there as soon as they are made. */
static void copy_survivors(fault_fs *fs, const std::string &directory, const std::string &copy,
                           size_t torn)
{
    rocksdb::FileSystem *plain = rocksdb::FileSystem::Default().get();
    plain->CreateDirIfMissing(copy, IOOptions(), nullptr).PermitUncheckedError();
    std::vector<std::string> names;
    CHECK(plain->GetChildren(directory, IOOptions(), &names, nullptr).ok());
    for (const std::string &name : names) {
        std::string path = directory + "/" + name;
        auto found = fs->world->files.find(path);
        bool is_known = found != fs->world->files.end();
        bool has_former = is_known && found->second->has_former;
        if (name[0] == '.' || (is_known && !found->second->name_is_synced && !has_former))
            continue;
        bool is_directory = false;
        CHECK(plain->IsDirectory(path, IOOptions(), &is_directory, nullptr).ok());
        if (is_directory) {
            copy_survivors(fs, path, copy + "/" + name, torn);
            continue;
        }
        std::string data;
        CHECK(rocksdb::ReadFileToString(plain, path, &data).ok());
        bool has_image = is_known && found->second->has_image;
        size_t left = is_known && !has_image ? found->second->size_synced() + torn : data.size();
        if (has_former)
            data = found->second->former;
        else if (has_image)
            data = found->second->image;
        else if (left < data.size())
            data.resize(left);
        CHECK(rocksdb::WriteStringToFile(plain, data, copy + "/" + name).ok());
    }
}

void fault_fs_cut_power(fault_fs *fs, const char *directory, const char *copy, size_t torn)
{
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    copy_survivors(fs, directory, copy, torn);
}

size_t fault_fs_unsynced(fault_fs *fs, const char *suffix)
{
    std::string end = suffix;
    size_t unsynced = 0;
    std::lock_guard<std::mutex> lock(fs->world->mutex);
    for (const auto &entry : fs->world->files) { /* names rise with age */
        const std::string &path = entry.first;
        if (path.size() > end.size() &&
            path.compare(path.size() - end.size(), end.size(), end) == 0)
            unsynced = entry.second->size - entry.second->synced;
    }
    return unsynced;
}
