/* See identity_check.h. */
#include "cmd/repair/identity_check.h"

#include "base/arena.h"
#include "cluster/catalog.h"
#include "cluster/identity_record.h"
#include "store/files.h"
#include "store/store.h"

enum { MEMORY = 1 << 20 };

static struct identity_record recorded(struct store *store, struct arena *arena)
{
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    struct identity_record record = {.last = NULL};
    if (catalog != NULL)
        status_ignore(identity_record_read(catalog, arena, &record));
    return record;
}

static bool is_another(struct store *store, const struct identity_record *record)
{
    char identity[STORE_IDENTITY_SIZE];
    status s = store_identity(store, identity);
    bool is_other = status_is_ok(s) && identity_record_is_other(record, identity);
    status_ignore(s);
    return is_other;
}

static void describe(const struct identity_record *record, bool is_missing, struct buffer *out)
{
    const char *words = is_missing ? "is missing, or is none: a start makes another server of it, "
                                     "and its whole backups are those of another"
                                   : "names another server than the one that had this last: whole "
                                     "backups of before are that one's, unless it is put back";
    buffer_append_format(out, "%s%s%s", words, record->last != NULL ? ": it was " : "",
                         record->last != NULL ? record->last : "");
}

status identity_check(struct store *store, const char *directory, struct buffer *out)
{
    struct arena *arena = arena_create(MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    const struct identity_record record = recorded(store, arena);
    bool is_missing = files_lack_identity(directory);
    if (is_missing || is_another(store, &record))
        describe(&record, is_missing, out);
    arena_destroy(arena);
    return out->failed ? status_out_of_memory() : status_ok();
}
