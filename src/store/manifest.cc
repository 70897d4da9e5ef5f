/* The manifest, RocksDB's list of what belongs to the database: whether it is all there, and a
 * second one in case it is not.
 *
 * Without the manifest nobody knows which tables count: some on the disk are what compactions have
 * replaced. One that ends early is worse: RocksDB takes that for its end, and deletes the tables
 * that came later. So SYNCED (log_ends.h) says how far it was synced, and each manifest has a copy,
 * MANIFEST-n.copy, to which the same is appended. Nobody waits for the copy: it is synced when
 * SYNCED is written, before that, and before logs are deleted whose rows went into new tables.
 *
 * A manifest has the form of a log (log_scan.cc). RocksDB begins one with each start, and CURRENT
 * names the one that counts. */
#include "store/log_ends.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

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
    : number(number_), files(files_), path(manifest + ".copy")
{
    std::unique_ptr<rocksdb::FSWritableFile> made;
    if (files->NewWritableFile(path, FileOptions(), &made, nullptr).ok())
        file = std::move(made);
}

/* With the mutex. What is there is not all of it. */
void manifest_copy::give_up()
{
    file.reset();
    files->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
}

void manifest_copy::append(const Slice &data)
{
    std::lock_guard<std::mutex> lock(mutex);
    if (file != nullptr && !file->Append(data, IOOptions(), nullptr).ok())
        give_up();
    has_news = true;
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
        if (s.ok()) {
            copy->manifest_synced(size);
            tracker->manifest_grew();
        }
        return s;
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

/* Of one that SYNCED knows nothing of. */
static std::string describe_unrecorded(const manifest_findings &found)
{
    char text[256] = "";
    if (found.whole < found.copied)
        snprintf(text, sizeof text, "%s is damaged, or ends, at byte %llu, and its copy has %llu",
                 manifest_name(found.current).c_str(), (number)found.whole, (number)found.copied);
    return text;
}

/* What is wrong; empty: nothing. */
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

static IOStatus write_durably(const store *store, const std::string &name, const std::string &text)
{
    rocksdb::FileSystem *files = store->files.get();
    std::string path = store->directory + "/" + name;
    rocksdb::Status s = rocksdb::WriteStringToFile(files, text, path + ".new", true);
    return s.ok() ? files->RenameFile(path + ".new", path, IOOptions(), nullptr)
                  : rocksdb::status_to_io_status(std::move(s));
}

/* What there is under its name stays, as n.damaged. */
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
                       "deleted data. trestle repair --accept-old-data takes it for true",
                       store->directory.c_str(), words.c_str());
}

/* What SYNCED would know of it is not known: how far it was synced, its copy says, which never has
 * more than was written to it. */
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
                           "nothing is lost",
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
