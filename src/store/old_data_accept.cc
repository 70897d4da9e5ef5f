/* Old data takes the place of what it was made of: see old_data.h.
 *
 *     old-data            is renamed to old-data.accepted: from now on only this can go on
 *     DIR                 its store's files are moved to replaced
 *     old-data.accepted   is renamed to old-data.moving
 *     DIR                 gets the files of old-data.moving, FORMAT as the last; that goes
 *
 * What was done before a crash, or a failure, is not done again. */
#include "store/old_data.h"
#include "store/old_data_words.h"

#include <algorithm>
#include <unistd.h>

using rocksdb::IOOptions;
using rocksdb::IOStatus;

static const char ACCEPTED[] = "old-data.accepted";
static const char MOVING[] = "old-data.moving";
static const char REPLACED[] = STORE_REPLACED_DIRECTORY;

static bool is_there(rocksdb::FileSystem *files, const std::string &path)
{
    return files->FileExists(path, IOOptions(), nullptr).ok();
}

status check_not_moving(rocksdb::FileSystem *files, const std::string &directory)
{
    if (!is_there(files, directory + "/" + ACCEPTED) && !is_there(files, directory + "/" + MOVING))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "data directory %s: a repair was cut short: run trestle repair "
                       "--accept-old-data --in-place again, which goes on with it",
                       directory.c_str());
}

/* Whether the file is the store's own: other modules have files in the directory, too. */
static bool is_of_store(const std::string &name)
{
    static const char *const names[] = {"CURRENT", "FORMAT", "IDENTITY", "SYNCED"};
    static const char *const ends[] = {".sst", ".sst.damaged", ".log", ".log.damaged"};
    auto ends_with = [&](const std::string &end) {
        return name.size() > end.size() &&
               name.compare(name.size() - end.size(), end.size(), end) == 0;
    };
    return name.compare(0, 9, "MANIFEST-") == 0 ||
           std::any_of(std::begin(names), std::end(names),
                       [&](const char *each) { return name == each; }) ||
           std::any_of(std::begin(ends), std::end(ends), ends_with);
}

/* LOCK stays where it is; FORMAT comes last, since a directory with it has all of a store. */
static IOStatus move_files(rocksdb::FileSystem *files, const std::string &from,
                           const std::string &to)
{
    std::vector<std::string> names;
    IOStatus s = files->GetChildren(from, IOOptions(), &names, nullptr);
    auto last = std::find(names.begin(), names.end(), "FORMAT");
    if (last != names.end())
        std::iter_swap(last, names.end() - 1);
    for (const std::string &name : names)
        if (s.ok() && is_of_store(name))
            s = files->RenameFile(from + "/" + name, to + "/" + name, IOOptions(), nullptr);
    if (s.ok())
        s = sync_directory(files, to);
    return s.ok() ? sync_directory(files, from) : s;
}

static IOStatus rename_directory(rocksdb::FileSystem *files, const std::string &directory,
                                 const char *from, const char *to)
{
    IOStatus s =
        files->RenameFile(directory + "/" + from, directory + "/" + to, IOOptions(), nullptr);
    return s.ok() ? sync_directory(files, directory) : s;
}

static IOStatus move_away(rocksdb::FileSystem *files, const std::string &directory)
{
    IOStatus s = files->CreateDirIfMissing(directory + "/" + REPLACED, IOOptions(), nullptr);
    if (s.ok())
        s = move_files(files, directory, directory + "/" + REPLACED);
    return s.ok() ? rename_directory(files, directory, ACCEPTED, MOVING) : s;
}

static IOStatus move_in(rocksdb::FileSystem *files, const std::string &directory)
{
    std::string from = directory + "/" + MOVING;
    IOStatus s = move_files(files, from, directory);
    if (s.ok())
        files->DeleteFile(from + "/LOCK", IOOptions(), nullptr).PermitUncheckedError();
    if (s.ok())
        s = files->DeleteDir(from, IOOptions(), nullptr);
    return s.ok() ? sync_directory(files, directory) : s;
}

static status take_place(rocksdb::FileSystem *files, const std::string &directory)
{
    IOStatus s;
    bool is_accepted = is_there(files, directory + "/" + ACCEPTED);
    bool is_moving = is_there(files, directory + "/" + MOVING);
    if (!is_accepted && !is_moving) {
        if (is_there(files, directory + "/" + REPLACED))
            return status_make(STATUS_FAILED_PRECONDITION,
                               "%s/%s has what a former repair has replaced: move it away first",
                               directory.c_str(), REPLACED);
        s = rename_directory(files, directory, OLD_DATA_DIRECTORY, ACCEPTED);
    }
    if (s.ok() && !is_moving)
        s = move_away(files, directory);
    return status_from(s.ok() ? move_in(files, directory) : s);
}

static status take_place_locked(rocksdb::FileSystem *files, const std::string &directory)
{
    rocksdb::FileLock *lock = nullptr;
    IOStatus s = files->LockFile(directory + "/LOCK", IOOptions(), &lock, nullptr);
    if (!s.ok())
        return status_make(STATUS_FAILED_PRECONDITION,
                           "data directory %s is in use by another process", directory.c_str());
    status taken = take_place(files, directory);
    files->UnlockFile(lock, IOOptions(), nullptr).PermitUncheckedError();
    return taken;
}

status store_accept_old_data_on(rocksdb::FileSystem *files, const char *directory)
{
    return guarded([&] { return take_place_locked(files, directory); });
}

status store_accept_old_data(const char *directory)
{
    return store_accept_old_data_on(rocksdb::FileSystem::Default().get(), directory);
}
