/* The manifest, RocksDB's list of what belongs to the database: whether it is all there, and a
 * second one in case it is not.
 *
 * Without the manifest it is not known which tables count: some on the disk are what compactions
 * have replaced. One that ends early is worse: RocksDB takes that for its end, and deletes the
 * tables that came later. So SYNCED (log_ends.h) says how far it was synced, and each manifest has
 * a copy, MANIFEST-n.copy, to which the same is appended. No write waits for the copy: it is synced
 * when SYNCED is written, before that, and before logs are deleted whose rows went into new tables.
 *
 * A manifest has the form of a log (log_scan.cc). RocksDB begins one with each start, and CURRENT
 * names the one that counts. */
#include "store/copied.h"
#include "store/log_ends.h"
#include "store/old_data_words.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

static const char PREFIX[] = "MANIFEST-";

std::string manifest_name(uint64_t number)
{
    char name[40];
    snprintf(name, sizeof name, "%s%06" PRIu64, PREFIX, number);
    return name;
}

bool parse_manifest_name(const std::string &name, uint64_t *number)
{
    if (name.compare(0, sizeof PREFIX - 1, PREFIX) != 0)
        return false;
    *number = strtoull(name.c_str() + sizeof PREFIX - 1, nullptr, 10);
    return manifest_name(*number) == name;
}

/* --- the copy --- */

manifest_copy::manifest_copy(rocksdb::FileSystem *files_, const std::string &manifest,
                             uint64_t number_)
    : number(number_), files(files_), manifest_path(manifest), path(manifest + ".copy"),
      reader(open(manifest.c_str(), O_RDONLY | O_CLOEXEC)), manifest_inode(inode_of(manifest))
{
    std::unique_ptr<rocksdb::FSWritableFile> made;
    if (files->NewWritableFile(path, FileOptions(), &made, nullptr).ok())
        file = std::move(made);
    is_wanted = file != nullptr;
    copy_inode = inode_of(path);
}

manifest_copy::~manifest_copy()
{
    if (reader >= 0)
        close(reader);
}

/* With the mutex. What is there is not all of it. */
void manifest_copy::give_up()
{
    file.reset();
    is_wanted = false;
    if (!is_manifest)
        files->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
}

void manifest_copy::append(const Slice &data)
{
    std::lock_guard<std::mutex> lock(mutex);
    size += data.size();
    if (file != nullptr && !file->Append(data, IOOptions(), nullptr).ok())
        give_up();
    has_news = true;
}

IOStatus manifest_copy::manifest_synced(uint64_t length)
{
    if (is_manifest) {
        sync();
        std::lock_guard<std::mutex> lock(mutex);
        if (file == nullptr)
            return IOStatus::IOError("the manifest, which was made anew, cannot be written");
    }
    synced.store(length, std::memory_order_release);
    return IOStatus::OK();
}

void manifest_copy::sync()
{
    std::shared_ptr<rocksdb::FSWritableFile> held;
    {
        std::lock_guard<std::mutex> lock(mutex);
        held = file;
    }
    if (held == nullptr || !has_news.exchange(false))
        return;
    IOStatus s = held->Sync(IOOptions(), nullptr);
    if (s.ok() && !is_named.exchange(true))
        s = sync_directory(files, path.substr(0, path.rfind('/')));
    std::lock_guard<std::mutex> lock(mutex);
    if (!s.ok() && file != nullptr)
        give_up();
}

void manifest_copy::look(bool *manifest_is_gone, bool *copy_is_gone)
{
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    *manifest_is_gone = lock.owns_lock() && (is_doubtful || is_gone(manifest_path, manifest_inode));
    *copy_is_gone = lock.owns_lock() && is_wanted && is_gone(path, copy_inode);
}

static IOStatus copy_from(int reader, uint64_t size, rocksdb::FSWritableFile *to)
{
    enum : size_t { PIECE = 64 << 10 };
    auto piece = std::make_unique<char[]>(PIECE);
    IOStatus s;
    for (uint64_t at = 0; s.ok() && at < size;) {
        size_t most = static_cast<size_t>(std::min<uint64_t>(PIECE, size - at));
        ssize_t got = pread(reader, piece.get(), most, static_cast<off_t>(at));
        if (got <= 0)
            return IOStatus::IOError("the manifest that was removed cannot be read");
        s = to->Append(Slice(piece.get(), static_cast<size_t>(got)), IOOptions(), nullptr);
        at += static_cast<uint64_t>(got);
    }
    return s;
}

/* Makes the copy again, out of the manifest as its writer has it. With the mutex. */
IOStatus manifest_copy::make_anew()
{
    std::unique_ptr<rocksdb::FSWritableFile> made;
    IOStatus s = files->NewWritableFile(path, FileOptions(), &made, nullptr);
    if (s.ok())
        s = copy_from(reader, size, made.get());
    if (s.ok())
        s = made->Sync(IOOptions(), nullptr);
    if (!s.ok())
        return s;
    file = std::move(made);
    is_wanted = true;
    copy_inode = inode_of(path);
    return s;
}

/* A foreign file in the manifest's place stays, as n.damaged. With the mutex. */
IOStatus manifest_copy::take_name()
{
    IOStatus s = file->Sync(IOOptions(), nullptr);
    if (s.ok() && files->FileExists(manifest_path, IOOptions(), nullptr).ok())
        s = files->RenameFile(manifest_path, manifest_path + ".damaged", IOOptions(), nullptr);
    if (s.ok())
        s = files->LinkFile(path, manifest_path, IOOptions(), nullptr);
    is_manifest = is_manifest || s.ok();
    manifest_inode = s.ok() ? copy_inode : manifest_inode;
    return s;
}

IOStatus manifest_copy::restore()
{
    std::lock_guard<std::mutex> lock(mutex);
    bool lacks_manifest = is_gone(manifest_path, manifest_inode);
    bool lacks_copy = file == nullptr || is_gone(path, copy_inode);
    IOStatus s = lacks_copy ? make_anew() : IOStatus::OK();
    if (s.ok() && (lacks_manifest || (lacks_copy && is_manifest)))
        s = take_name();
    if (s.ok())
        s = sync_directory(files, path.substr(0, path.rfind('/')));
    is_doubtful = !s.ok();
    return s;
}

namespace {

class manifest_file final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    manifest_file(std::unique_ptr<rocksdb::FSWritableFile> file,
                  std::shared_ptr<manifest_copy> copy_, log_tracker *tracker_)
        : FSWritableFileOwnerWrapper(std::move(file)), copy(std::move(copy_)), tracker(tracker_)
    {
    }

    IOStatus Append(const Slice &data, const IOOptions &options, IODebugContext *debug) override
    {
        return appended(data, target()->Append(data, options, debug));
    }

    IOStatus Append(const Slice &data, const IOOptions &options,
                    const rocksdb::DataVerificationInfo &info, IODebugContext *debug) override
    {
        return appended(data, target()->Append(data, options, info, debug));
    }

    IOStatus Sync(const IOOptions &options, IODebugContext *debug) override
    {
        return synced(target()->Sync(options, debug));
    }

    IOStatus Fsync(const IOOptions &options, IODebugContext *debug) override
    {
        return synced(target()->Fsync(options, debug));
    }

  private:
    IOStatus appended(const Slice &data, const IOStatus &s)
    {
        size += data.size();
        if (s.ok())
            copy->append(data);
        return s;
    }

    IOStatus synced(const IOStatus &s)
    {
        if (!s.ok())
            return s;
        IOStatus known = copy->manifest_synced(size);
        if (known.ok())
            tracker->manifest_grew();
        return known;
    }

    const std::shared_ptr<manifest_copy> copy;
    log_tracker *const tracker; /* as long as the file system */
    uint64_t size = 0;
};

} // namespace

void begin_manifest(rocksdb::FileSystem *files, const std::string &path, log_tracker *tracker,
                    std::unique_ptr<rocksdb::FSWritableFile> *file)
{
    uint64_t number;
    if (!parse_manifest_name(path.substr(path.rfind('/') + 1), &number))
        return;
    auto copy = std::make_shared<manifest_copy>(files, path, number);
    tracker->manifest_made(copy);
    *file = std::make_unique<manifest_file>(std::move(*file), copy, tracker);
}

/* --- a start --- */

typedef unsigned long long number; /* as printf wants it */

struct manifest_findings {
    uint64_t current = 0; /* which one CURRENT names; 0: it is missing, or damaged */
    uint64_t whole = 0;   /* so many bytes of the recorded one are; 0: it is missing */
    uint64_t copied = 0;  /* and of its copy */
    bool is_lost = false; /* neither says which tables count */
    synced_record known;  /* the manifest and its length are what is known of them */
};

static status read_current(const store *store, uint64_t *out)
{
    std::string text;
    uint64_t named = 0;
    rocksdb::Status s =
        rocksdb::ReadFileToString(store->files.get(), store->directory + "/CURRENT", &text);
    if (!s.ok() && !s.IsPathNotFound())
        return status_from(s);
    bool is_whole = !text.empty() && text.back() == '\n' &&
                    parse_manifest_name(text.substr(0, text.size() - 1), &named);
    *out = is_whole ? named : 0;
    return status_ok();
}

static status find_whole(const store *store, const std::string &name, uint64_t *out)
{
    log_scan found;
    found.is_manifest = true;
    IOStatus s = scan_log(store->files.get(), store->directory + "/" + name, &found);
    *out = found.end;
    return s.IsPathNotFound() ? status_ok() : status_from(s);
}

static status look(const store *store, const synced_record &recorded, manifest_findings *out)
{
    std::string name = manifest_name(recorded.manifest);
    TRY(read_current(store, &out->current));
    if (out->current > recorded.manifest)
        return status_ok();
    TRY(find_whole(store, name, &out->whole));
    return find_whole(store, name + ".copy", &out->copied);
}

/* Words on a manifest that SYNCED knows nothing of. */
static std::string describe_unrecorded(const manifest_findings &found)
{
    char text[256] = "";
    if (found.whole < found.copied)
        snprintf(text, sizeof text, "%s is damaged, or ends, at byte %llu, and its copy has %llu",
                 manifest_name(found.current).c_str(), (number)found.whole, (number)found.copied);
    return text;
}

/* Words on what is wrong; empty: nothing. */
static std::string describe(const manifest_findings &found, const synced_record &recorded)
{
    std::string name = manifest_name(recorded.manifest);
    char text[256] = "";
    if (found.current > recorded.manifest)
        return ""; /* a start has begun it, and was killed before that was recorded */
    if (found.whole < recorded.manifest_length)
        snprintf(text, sizeof text,
                 found.whole == 0
                     ? "%s is missing, or damaged from its beginning"
                     : "%s is damaged, or ends, at byte %llu, but was synced up to byte %llu",
                 name.c_str(), (number)found.whole, (number)recorded.manifest_length);
    else if (found.current == 0)
        snprintf(text, sizeof text, "the file CURRENT is missing, or damaged");
    else if (found.current < recorded.manifest)
        snprintf(text, sizeof text, "the file CURRENT names %s, a former one",
                 manifest_name(found.current).c_str());
    return text;
}

/* Restores the manifest. A file that is there under its name stays, as n.damaged. */
static IOStatus restore_manifest(const store *store, const std::string &name, uint64_t copied)
{
    rocksdb::FileSystem *files = store->files.get();
    std::string path = store->directory + "/" + name;
    std::string text;
    rocksdb::Status s = rocksdb::ReadFileToString(files, path + ".copy", &text);
    text.resize(std::min<uint64_t>(text.size(), copied));
    if (s.ok() && files->FileExists(path, IOOptions(), nullptr).ok())
        s = files->RenameFile(path, path + ".damaged", IOOptions(), nullptr);
    return s.ok() ? write_durably(store, name, text) : rocksdb::status_to_io_status(std::move(s));
}

static IOStatus restore(const store *store, const synced_record &recorded,
                        const manifest_findings &found)
{
    std::string name = manifest_name(recorded.manifest);
    IOStatus s;
    if (found.whole < recorded.manifest_length)
        s = restore_manifest(store, name, found.copied);
    if (s.ok())
        s = write_durably(store, "CURRENT", name + "\n");
    return s.ok() ? sync_directory(store->files.get(), store->directory) : s;
}

static status refuse(manifest_findings *found, const store *store, const std::string &words)
{
    found->is_lost = true;
    return status_make(STATUS_DATA_LOSS,
                       "data directory %s: %s: nobody knows which tables count. With --salvage the "
                       "server serves what all of them have, for reading alone; that may show "
                       "deleted data. " STORE_OLD_DATA_ADVICE,
                       store->directory.c_str(), words.c_str());
}

/* Looks at a manifest that SYNCED knows nothing of: how far it was synced, its copy says, which
 * never has more than was written to it. */
static status look_unrecorded(const store *store, manifest_findings *out)
{
    TRY(read_current(store, &out->current));
    if (out->current == 0)
        return refuse(out, store, "the file CURRENT is missing, or damaged, as is SYNCED");
    std::string name = manifest_name(out->current);
    TRY(find_whole(store, name, &out->whole));
    TRY(find_whole(store, name + ".copy", &out->copied));
    out->known.manifest = out->current;
    out->known.manifest_length = std::max(out->whole, out->copied);
    return out->known.manifest_length == 0
               ? refuse(out, store, name + " is missing, or damaged from its beginning")
               : status_ok();
}

/* OK if nothing is wrong, which is when `words` are empty, or it may be restored, and can be. */
static status judge(const store *store, const synced_record &recorded, bool may_restore,
                    manifest_findings *found, std::string *words)
{
    found->known = recorded;
    TRY(recorded.manifest == 0 ? look_unrecorded(store, found) : look(store, recorded, found));
    *words = recorded.manifest == 0 ? describe_unrecorded(*found) : describe(*found, recorded);
    if (words->empty())
        return status_ok();
    if (std::max(found->whole, found->copied) < found->known.manifest_length)
        return refuse(found, store, *words + ", and so is its copy");
    if (!may_restore)
        return status_make(STATUS_DATA_LOSS,
                           "data directory %s: %s. With --salvage the server brings it back, and "
                           "nothing is lost by that; what else is damaged it gives up, and nobody "
                           "has looked for it yet",
                           store->directory.c_str(), words->c_str());
    return status_ok();
}

status judge_manifest(const store *store, const synced_record &recorded, bool salvage)
{
    manifest_findings found;
    std::string words;
    status s = judge(store, recorded, salvage, &found, &words);
    if (!found.is_lost || !salvage)
        return s;
    status_free(s); /* old_data.h */
    return status_ok();
}

status check_manifest(store *store, const synced_record &recorded, bool may_restore,
                      std::string *words)
{
    manifest_findings found;
    status s = judge(store, recorded, may_restore, &found, words);
    store->has_lost_manifest = found.is_lost;
    TRY(s);
    return words->empty() ? status_ok() : status_from(restore(store, found.known, found));
}

/* --- a copy --- */

static status correct_copy(rocksdb::FileSystem *files, const std::string &directory)
{
    synced_file file;
    synced_record record;
    log_scan found;
    found.is_manifest = true;
    file.set_place(files, directory);
    status s = file.read(&record);
    bool is_known = status_is_ok(s) && record.manifest != 0;
    status_free(s);
    if (!is_known)
        return status_ok();
    std::string path = directory + "/" + manifest_name(record.manifest);
    if (!scan_log(files, path, &found).ok() || found.end == 0 || found.end < found.size ||
        found.end >= record.manifest_length)
        return status_ok();
    record.manifest_length = found.end;
    return status_from(file.write(record));
}

status store_correct_copy(const char *directory)
{
    return guarded([&] { return correct_copy(rocksdb::FileSystem::Default().get(), directory); });
}
