/* See shard_directories.h. */
#include "cluster/shard_directories.h"

#include "base/check.h"
#include "store/files.h"

#include <stdio.h>
#include <unistd.h>

void shard_directory_append(struct buffer *out, const char *directory, unsigned number)
{
    if (number == 0)
        buffer_append_format(out, "%s%c", directory, 0);
    else
        buffer_append_format(out, "%s/shard-%u%c", directory, number, 0);
}

/* False also of a path that cannot be looked at: the store, which is opened next, tells of that. */
static bool is_there(const char *directory, const char *name)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s/%s%c", directory, name, 0);
    bool is_so = !path.failed && access((const char *)path.data, F_OK) == 0;
    buffer_free(&path);
    return is_so;
}

unsigned shard_directories_count(const char *directory)
{
    unsigned count = 0;
    char name[32];
    do {
        snprintf(name, sizeof name, "shard-%u", ++count);
    } while (is_there(directory, name));
    return count;
}

/* FORMAT is the last thing that the making of a store makes. */
static bool has_store(const char *directory)
{
    return is_there(directory, "FORMAT");
}

status shard_directories_check(const char *directory, unsigned count)
{
    unsigned found = shard_directories_count(directory);
    CHECK(count > 0);
    if (found == count || (found < count && !has_store(directory)))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "data directory %s has %u shards, not %u: it is served with "
                       "--debug-shards=%u alone",
                       directory, found, count, found);
}

static status make_directory(const char *directory, unsigned number)
{
    DCHECK(shard_directories_count(directory) >= number);
    struct buffer path = {0};
    shard_directory_append(&path, directory, number);
    status s = path.failed ? status_out_of_memory()
                           : files_make_directory(files_of_system(), (const char *)path.data);
    buffer_free(&path);
    return s;
}

/* Prepares the directories. A single shard's is left to its store, which makes it. */
status shard_directories_prepare(const char *directory, unsigned count)
{
    TRY(shard_directories_check(directory, count));
    if (has_store(directory) || count == 1)
        return status_ok();
    for (unsigned i = 0; i < count; i++)
        TRY(make_directory(directory, i));
    return status_ok();
}
