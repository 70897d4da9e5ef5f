/* The store's directory: what RocksDB keeps there, and FORMAT.
 *
 * FORMAT holds one line, "trestle N\n", N the version of all that is stored (format.md). It is
 * written last when a store is made, so a directory with FORMAT is a complete store, and one
 * without it is new, or its making was cut short before anything could be stored. When a store of
 * a former format is brought to the present one it is written last, too: until then a former
 * program may go on with the directory, and whatever was prepared is prepared again. */
#include "store/files.h"
#include "store/identity.h"
#include "store/log_ends.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <unistd.h>

using rocksdb::IOOptions;

static const char FORMAT_PREFIX[] = "trestle ";

static std::string path_of(const std::string &directory, const char *name)
{
    return directory + "/" + name;
}

static status parse_format(const std::string &directory, const std::string &text,
                           unsigned long *format)
{
    size_t prefix = sizeof FORMAT_PREFIX - 1;
    char *end = nullptr;
    errno = 0;
    unsigned long version = 0;
    if (text.compare(0, prefix, FORMAT_PREFIX) == 0)
        version = strtoul(text.c_str() + prefix, &end, 10);
    *format = version;
    if (end == nullptr || errno != 0 || *end != '\n' || version == 0)
        return status_make(STATUS_DATA_LOSS, "data directory %s: the file FORMAT is damaged",
                           directory.c_str());
    if (version > FORMAT_VERSION)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "data directory %s has format %lu; this program knows formats up to %lu",
                           directory.c_str(), version, (unsigned long)FORMAT_VERSION);
    return status_ok();
}

/* Whether there is a file with that end. */
static status has_file(rocksdb::FileSystem *files, const std::string &directory,
                       const std::string &suffix, bool *has)
{
    std::vector<std::string> names;
    rocksdb::IOStatus s = files->GetChildren(directory, IOOptions(), &names, nullptr);
    *has = std::any_of(names.begin(), names.end(), [&](const std::string &name) {
        return name.size() > suffix.size() &&
               name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
    });
    return status_from(s);
}

static status has_tables(rocksdb::FileSystem *files, const std::string &directory, bool *has)
{
    return has_file(files, directory, ".sst", has);
}

/* Whether SYNCED, which there is from format 2 on, knows of writes. */
static bool has_record(rocksdb::FileSystem *files, const std::string &directory, bool has_tables)
{
    synced_file file;
    synced_record record;
    file.set_place(files, directory);
    status s = file.read(&record);
    bool is_whole = status_is_ok(s);
    status_free(s);
    return is_whole && (has_tables || !record.logs.empty());
}

/* Then there was a FORMAT. No other program makes copies of manifests; without SYNCED it is not
 * known what has been lost, which the start goes on to say. */
static status is_ours(rocksdb::FileSystem *files, const std::string &directory, bool *is_so)
{
    bool is_there = false, has_copy = false;
    TRY(has_tables(files, directory, &is_there));
    TRY(has_file(files, directory, ".copy", &has_copy));
    *is_so = has_record(files, directory, is_there) || (is_there && has_copy);
    return status_ok();
}

/* FORMAT is not to be had. */
static status go_without(rocksdb::FileSystem *files, const store_options *options,
                         const char *trouble, directory_state *out)
{
    bool is_so = false;
    TRY(is_ours(files, options->directory, &is_so));
    if (!is_so)
        return status_ok();
    out->has_lost_format = true;
    out->format = FORMAT_VERSION;
    if (options->salvage && !options->read_only)
        return status_ok();
    return status_make(STATUS_DATA_LOSS,
                       "data directory %s: the file FORMAT is %s. With --salvage the server makes "
                       "it anew, and nothing is lost by that; what else is damaged it gives up, "
                       "and nobody has looked for it yet",
                       options->directory, trouble);
}

/* Tables without a FORMAT were not left by a store's making: keep away from them. */
static status refuse_foreign_files(rocksdb::FileSystem *files, const std::string &directory)
{
    bool is_there;
    TRY(has_tables(files, directory, &is_there));
    return is_there ? status_make(STATUS_FAILED_PRECONDITION,
                                  "data directory %s has data of another program, or its file "
                                  "FORMAT is missing",
                                  directory.c_str())
                    : status_ok();
}

rocksdb::IOStatus sync_directory(rocksdb::FileSystem *files, const std::string &directory)
{
    std::unique_ptr<rocksdb::FSDirectory> handle;
    rocksdb::IOStatus s = files->NewDirectory(directory, IOOptions(), &handle, nullptr);
    return s.ok() ? handle->Fsync(IOOptions(), nullptr) : s;
}

/* The name of a new directory must be as durable as what is written to it. */
static rocksdb::IOStatus make_directory(rocksdb::FileSystem *files, const std::string &directory)
{
    rocksdb::IOStatus s = files->CreateDirIfMissing(directory, IOOptions(), nullptr);
    size_t slash = directory.find_last_of('/', directory.find_last_not_of('/'));
    std::string parent = slash == std::string::npos ? "." : directory.substr(0, slash + 1);
    return s.ok() ? sync_directory(files, parent) : s;
}

static status examine_damaged(rocksdb::FileSystem *files, const store_options *options,
                              status trouble, directory_state *out)
{
    status s = go_without(files, options, "damaged", out);
    if (!status_is_ok(s) || out->has_lost_format) {
        status_free(trouble);
        return s;
    }
    return trouble;
}

static status examine_missing(rocksdb::FileSystem *files, const store_options *options,
                              directory_state *out)
{
    std::string directory = options->directory;
    if (options->read_only && access(options->directory, F_OK) != 0)
        return status_make(STATUS_NOT_FOUND, "%s is not a data directory", options->directory);
    if (!options->read_only)
        TRY(status_from(make_directory(files, directory)));
    TRY(go_without(files, options, "missing", out));
    if (out->has_lost_format)
        return status_ok();
    if (options->read_only)
        return status_make(STATUS_NOT_FOUND, "%s is not a data directory", options->directory);
    return refuse_foreign_files(files, directory);
}

status directory_examine(rocksdb::FileSystem *files, const store_options *options,
                         directory_state *out)
{
    std::string directory = options->directory;
    std::string text;
    rocksdb::Status s = rocksdb::ReadFileToString(files, path_of(directory, "FORMAT"), &text);
    if (s.IsPathNotFound())
        return examine_missing(files, options, out);
    if (!s.ok())
        return status_from(s);
    status parsed = parse_format(directory, text, &out->format);
    return parsed.code == STATUS_DATA_LOSS ? examine_damaged(files, options, parsed, out) : parsed;
}

status store_check_directory(const char *directory, bool salvage, bool *is_new)
{
    rocksdb::FileSystem *files = rocksdb::FileSystem::Default().get();
    directory_state state;
    store_options options = {};
    options.directory = directory;
    options.read_only = true;
    status s = directory_examine(files, &options, &state);
    *is_new = s.code == STATUS_NOT_FOUND;
    if (!*is_new && !(salvage && state.has_lost_format))
        return s;
    status_free(s);
    if (!*is_new)
        return status_ok();
    return access(directory, F_OK) == 0 ? refuse_foreign_files(files, directory) : status_ok();
}

/* --- identity --- */

bool is_identity(const std::string &text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    bool is_one = text.size() == sizeof form - 1;
    for (size_t i = 0; i < text.size() && is_one; i++)
        is_one = form[i] == 'x' ? isxdigit(static_cast<unsigned char>(text[i])) != 0
                                : text[i] == form[i];
    return is_one;
}

enum identity_state { IDENTITY_SOUND, IDENTITY_MISSING, IDENTITY_DAMAGED };

/* Looks at the identity; of one that cannot be read nothing is said. */
static identity_state look_at_identity(rocksdb::FileSystem *files, const std::string &directory)
{
    std::string text;
    rocksdb::Status s = rocksdb::ReadFileToString(files, path_of(directory, "IDENTITY"), &text);
    if (!s.ok())
        return s.IsNotFound() || s.IsPathNotFound() ? IDENTITY_MISSING : IDENTITY_SOUND;
    if (!text.empty() && text.back() == '\n')
        text.pop_back();
    return is_identity(text) ? IDENTITY_SOUND : IDENTITY_DAMAGED;
}

/* FORMAT is written after it. */
bool files_lack_identity(const char *directory)
{
    return access(path_of(directory, "FORMAT").c_str(), F_OK) == 0 &&
           look_at_identity(rocksdb::FileSystem::Default().get(), directory) != IDENTITY_SOUND;
}

rocksdb::Status forget_damaged_identity(rocksdb::FileSystem *files, const std::string &directory)
{
    if (look_at_identity(files, directory) != IDENTITY_DAMAGED)
        return rocksdb::Status::OK();
    return files->RenameFile(path_of(directory, "IDENTITY"), path_of(directory, "IDENTITY.damaged"),
                             IOOptions(), nullptr);
}

status directory_mark(rocksdb::FileSystem *files, const std::string &directory)
{
    std::string text = FORMAT_PREFIX + std::to_string(FORMAT_VERSION) + "\n";
    std::string temporary = path_of(directory, "FORMAT.new");
    rocksdb::Status s = rocksdb::WriteStringToFile(files, text, temporary, true);
    if (s.ok())
        s = files->RenameFile(temporary, path_of(directory, "FORMAT"), IOOptions(), nullptr);
    if (s.ok())
        s = sync_directory(files, directory);
    return status_from(s);
}

bool directory_is_locked(rocksdb::FileSystem *files, const std::string &directory)
{
    std::string name = path_of(directory, "LOCK");
    rocksdb::FileLock *lock = nullptr;
    rocksdb::IOStatus s = files->LockFile(name, IOOptions(), &lock, nullptr);
    if (s.ok()) {
        files->UnlockFile(lock, IOOptions(), nullptr).PermitUncheckedError();
        return false;
    }
    return access(name.c_str(), W_OK) == 0; /* else no process of our user can lock it */
}
