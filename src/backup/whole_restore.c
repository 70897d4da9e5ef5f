/* A data directory of a whole backup: see whole_restore.h. */
#include "backup/whole_restore.h"

#include "backup/stores.h"
#include "backup/unfinished.h"
#include "backup/whole_harm.h"
#include "backup/whole_hold.h"
#include "backup/whole_private.h"
#include "backup/whole_scope.h"
#include "base/limits.h"
#include "cluster/catalog_txn.h"
#include "cluster/identity_record.h"
#include "cluster/view/view_table.h"
#include "control/operations.h"
#include "store/copied.h"
#include "stream/eras.h"
#include "tablet/commit.h"

#include <stdio.h>

/* --- what makes it another server ---
 *
 * Views are there by definition alone, and are made anew: the backup may have what they had, but
 * what an archive brought since is not in it. */

static status mark(struct store *store, struct keyspace *catalog)
{
    struct catalog_txn *txn = catalog_txn_create(catalog);
    if (txn == NULL)
        return status_out_of_memory();
    operations_mark_abandoned(txn);
    status s = views_forget(catalog, txn);
    if (status_is_ok(s))
        s = catalog_txn_write_unserved(txn, store);
    catalog_txn_destroy(txn);
    return s;
}

static status raise_versions(const struct whole_restore *restore, struct store *store,
                             struct keyspace *catalog)
{
    const struct commit_options options = {.store = store,
                                           .catalog = catalog,
                                           .clock = restore->work->clock,
                                           .durability = STORE_SYNCED,
                                           .queue_limit_bytes = LIMIT_COMMIT_QUEUE_BYTES,
                                           .stall_limit_us =
                                               (int64_t)LIMIT_COMMIT_STALL_SECONDS * 1000000};
    struct commit_queue *commits;
    TRY(commit_queue_create(&options, &commits));
    status s = commit_raise_sequence(commits, restore->backup->version);
    commit_queue_destroy(commits);
    return s;
}

static status change_catalog(const struct whole_restore *restore, struct store *store)
{
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "the backup has no catalog");
    TRY(mark(store, catalog));
    TRY(identity_record_forget(store, catalog));
    if (restore->take_on == NULL) /* else it has noted where it went to */
        TRY(stream_eras_begin(store, catalog, restore->backup->version));
    return raise_versions(restore, store, catalog);
}

/* Opening it gives it an identity of its own: the backup has none. */
static status adapt(const struct whole_restore *restore, const char *directory)
{
    const struct store_options options =
        backup_store_options(BACKUP_STORE_ALONE, directory, restore->log);
    struct store *store;
    TRY(store_open(&options, &store));
    status s = restore->take_on == NULL ? status_ok()
                                        : restore->take_on(restore->context, store, directory);
    if (status_is_ok(s))
        s = change_catalog(restore, store);
    store_close(store);
    return s;
}

/* --- the directory --- */

static status write_settings(const struct whole_restore *restore, const char *directory)
{
    struct buffer path = {0};
    if (restore->backup->settings[0] == '\0')
        return status_ok();
    buffer_append_format(&path, "%s/%s%c", directory, WHOLE_SETTINGS_FILE, 0);
    status s = path.failed ? status_out_of_memory()
                           : files_replace(restore->files, (const char *)path.data,
                                           bytes_of(restore->backup->settings));
    buffer_free(&path);
    return s;
}

/* Held against expiry as long as it is read. */
static status fetch_into(const struct whole_restore *restore, const char *directory,
                         struct whole_harm *harm)
{
    const struct whole_target target = {.place = restore->place,
                                        .backup = restore->backup,
                                        .files = restore->files,
                                        .directory = directory,
                                        .work = restore->work,
                                        .harm = harm};
    whole_hold_begin(restore->work, restore->place, restore->backup);
    status s = whole_fetch_chosen(&target, NULL);
    whole_hold_end(restore->work);
    return s;
}

static status salvage(const struct whole_restore *restore, const char *directory,
                      const struct whole_harm *harm)
{
    return restore->salvage(restore->salvage_context, directory, harm);
}

static bool is_refused(const struct whole_restore *restore, const struct whole_harm *harm)
{
    return restore->salvage == NULL || (restore->take_on != NULL && !whole_harm_is_of_tables(harm));
}

static status resolve_harm(const struct whole_restore *restore, const char *directory,
                           const struct whole_harm *harm)
{
    if (is_refused(restore, harm))
        return whole_harm_refuse(harm, directory, restore->way_out);
    TRY(whole_harm_remove(harm, restore->files, directory));
    return restore->take_on == NULL ? salvage(restore, directory, harm) : status_ok();
}

static status fetch(const struct whole_restore *restore, const char *directory,
                    struct whole_harm *harm)
{
    TRY(fetch_into(restore, directory, harm));
    if (whole_harm_is_of_tables(harm))
        TRY(store_correct_copy(directory));
    return harm->count > 0 ? resolve_harm(restore, directory, harm) : status_ok();
}

static status fill(const struct whole_restore *restore, struct unfinished *unfinished,
                   struct whole_harm *harm)
{
    TRY(fetch(restore, unfinished->path, harm));
    TRY(adapt(restore, unfinished->path));
    if (harm->count > 0 && restore->take_on != NULL)
        TRY(salvage(restore, unfinished->path, harm));
    TRY(write_settings(restore, unfinished->path));
    return unfinished_end(unfinished);
}

static status fill_harmed(const struct whole_restore *restore, struct unfinished *unfinished)
{
    struct whole_harm harm = {.arena = arena_create(WHOLE_MEMORY)};
    if (harm.arena == NULL)
        return status_out_of_memory();
    status s = fill(restore, unfinished, &harm);
    arena_destroy(harm.arena);
    return s;
}

static status make(const struct whole_restore *restore, struct unfinished *unfinished)
{
    TRY(unfinished_require_free(restore->files, restore->directory));
    TRY(unfinished_begin(unfinished));
    status s = fill_harmed(restore, unfinished);
    if (!status_is_ok(s))
        status_ignore(unfinished_abandon(unfinished));
    return s;
}

status whole_restore(const struct whole_restore *restore)
{
    struct buffer path = {0};
    TRY(whole_check_is_all(restore->backup));
    buffer_append_format(&path, "%s.restoring%c", restore->directory, 0);
    struct unfinished unfinished = {.files = restore->files,
                                    .directory = restore->directory,
                                    .path = (const char *)path.data,
                                    .maker = "trestle backup restore",
                                    .tell = restore->tell};
    status s = path.failed ? status_out_of_memory() : make(restore, &unfinished);
    buffer_free(&path);
    return s;
}
