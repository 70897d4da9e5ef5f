/* See kept_files.h. */
#include "archive/kept_files.h"

#include "tablet/event.h"

#include <stdlib.h>

const char *kept_file_path(const struct kept_files *kept, uint64_t keyspace, uint64_t index,
                           struct buffer *out)
{
    buffer_clear(out);
    buffer_append_format(out, "%s/%llu-%llu%c", kept->directory, (unsigned long long)keyspace,
                         (unsigned long long)index, 0);
    return out->failed ? NULL : (const char *)out->data;
}

status kept_files_add(const struct kept_files *kept, uint64_t keyspace, const char *const *paths,
                      size_t count)
{
    struct buffer path = {0};
    status s = status_ok();
    for (size_t i = 0; i < count && status_is_ok(s); i++) {
        const char *link = kept_file_path(kept, keyspace, i, &path);
        s = link == NULL ? status_out_of_memory() : files_link(kept->files, paths[i], link);
    }
    buffer_free(&path);
    TRY(s);
    return files_sync_directory(kept->files, kept->directory);
}

/* --- files that no entry needs --- */

struct clearing {
    const struct kept_files *kept;
    struct buffer there; /* ids of keyspaces, a file each */
    struct buffer names; /* of those files, strings in the same order */
    struct buffer named; /* ids of keyspaces whose files wait */
    struct buffer path;
};

static status note_file(void *context, const char *name)
{
    struct clearing *clearing = context;
    char *end;
    uint64_t keyspace = strtoull(name, &end, 10);
    if (end == name || *end != '-')
        return status_ok();
    buffer_append(&clearing->there, &keyspace, sizeof keyspace);
    buffer_append(&clearing->names, name, strlen(name) + 1);
    return clearing->there.failed || clearing->names.failed ? status_out_of_memory() : status_ok();
}

static status note_named(void *context, const struct event_change *change)
{
    struct clearing *clearing = context;
    buffer_append(&clearing->named, &change->keyspace, sizeof change->keyspace);
    return clearing->named.failed ? status_out_of_memory() : status_ok();
}

static status note_named_in(void *context, bytes entry, bool *enough)
{
    (void)enough;
    return event_visit_taken_in(entry, note_named, context);
}

static bool is_named(const struct clearing *clearing, uint64_t keyspace)
{
    const uint64_t *ids = (const uint64_t *)(void *)clearing->named.data;
    for (size_t i = 0; i < clearing->named.size / sizeof *ids; i++)
        if (ids[i] == keyspace)
            return true;
    return false;
}

static status remove_file(struct clearing *clearing, const char *name)
{
    buffer_clear(&clearing->path);
    buffer_append_format(&clearing->path, "%s/%s%c", clearing->kept->directory, name, 0);
    if (clearing->path.failed)
        return status_out_of_memory();
    return files_remove(clearing->kept->files, (const char *)clearing->path.data);
}

static status remove_unnamed(struct clearing *clearing)
{
    const uint64_t *ids = (const uint64_t *)(void *)clearing->there.data;
    const char *name = (const char *)clearing->names.data;
    for (size_t i = 0; i < clearing->there.size / sizeof *ids; i++, name += strlen(name) + 1)
        if (!is_named(clearing, ids[i]))
            TRY(remove_file(clearing, name));
    return status_ok();
}

/* In this order: the thread that linked a file which is there now either adds still, or its entry
 * is in the log by then. */
static status clear(struct clearing *clearing, struct change_log *log, bool *done)
{
    const struct kept_files *kept = clearing->kept;
    TRY(files_list(kept->files, kept->directory, note_file, clearing));
    *done = clearing->there.size == 0 || atomic_load(kept->adding) == 0;
    if (!*done || clearing->there.size == 0)
        return status_ok();
    TRY(change_log_read_waiting(log, note_named_in, clearing));
    return remove_unnamed(clearing);
}

status kept_files_clear(const struct kept_files *kept, struct change_log *log, bool *done)
{
    struct clearing clearing = {.kept = kept};
    *done = true;
    if (kept->files == NULL)
        return status_ok();
    status s = clear(&clearing, log, done);
    buffer_free(&clearing.there);
    buffer_free(&clearing.names);
    buffer_free(&clearing.named);
    buffer_free(&clearing.path);
    return s;
}
