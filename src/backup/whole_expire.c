/* Removing whole backups that are not to be kept: see whole.h.
 *
 * First the manifests go, then what only they referred to: a kill in between leaves contents that
 * nobody refers to, and the next expiry finds them. */
#include "backup/whole_private.h"

struct expiring {
    struct place *place;
    const struct whole_expiry *expiry;
    struct whole_work *work;
    struct arena *arena; /* of names */
    struct arena *manifest_arena;
    struct content_set wanted;
    const char **removable; /* backups that may go, from the oldest */
    size_t removable_count;
    size_t files_removed;
};

/* --- what stays --- */

static bool may_go(const struct expiring *e, const struct whole_backup *backup)
{
    const struct whole_expiry *expiry = e->expiry;
    return (expiry->server == NULL || strcmp(expiry->server, backup->server) == 0) &&
           (!expiry->scheduled_only || backup->is_scheduled);
}

static status read_manifest(struct expiring *e, const char *name, struct whole_backup *out)
{
    arena_reset(e->manifest_arena);
    TRY(whole_pace(e->work, 0));
    status s = whole_read(e->place, name, e->manifest_arena, out);
    if (s.code != STATUS_DATA_LOSS && s.code != STATUS_FAILED_PRECONDITION)
        return s;
    status told = status_make(s.code, "backup %s cannot be read, so nothing can be removed: %s",
                              name, status_message(s));
    status_free(s);
    return told;
}

/* Of those that may: not the newest, and of the old ones not the last, with which the reach begins.
 */
static size_t count_that_go(const struct expiring *e, size_t old)
{
    uint64_t keep = e->expiry->keep;
    size_t most = e->removable_count > keep ? e->removable_count - (size_t)keep : 0;
    if (e->expiry->reach_us != 0 && old > 0)
        old--;
    return most < old ? most : old;
}

static status find_removable(struct expiring *e, const char *const *names, size_t count)
{
    struct whole_backup backup;
    size_t old = 0; /* so many of them are older than the reach */
    e->removable = arena_alloc(e->arena, (count + 1) * sizeof *e->removable);
    if (e->removable == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        TRY(read_manifest(e, names[i], &backup));
        if (!may_go(e, &backup))
            continue;
        e->removable[e->removable_count++] = names[i];
        if (e->expiry->reach_us == 0 || backup.instant_us < e->expiry->reach_us)
            old = e->removable_count;
    }
    e->removable_count = count_that_go(e, old);
    return status_ok();
}

static bool is_removable(const struct expiring *e, const char *name)
{
    for (size_t i = 0; i < e->removable_count; i++)
        if (strcmp(e->removable[i], name) == 0)
            return true;
    return false;
}

static status note_wanted(struct expiring *e, const char *name)
{
    struct whole_backup backup;
    char content[CONTENT_NAME_SIZE];
    TRY(read_manifest(e, name, &backup));
    for (size_t i = 0; i < backup.file_count; i++) {
        content_name(backup.files[i].sha256, content);
        TRY(content_set_add(&e->wanted, content));
    }
    return status_ok();
}

/* --- what goes --- */

/* What is no content's name is not ours. */
static status remove_unwanted(void *context, const struct place_entry *entry)
{
    struct expiring *e = context;
    char object[OBJECT_NAME_SIZE];
    if (!is_content_name(entry->name) || content_set_has(&e->wanted, entry->name))
        return status_ok();
    TRY(whole_pace(e->work, 0));
    content_object(entry->name, object);
    TRY(place_remove(e->place, object));
    e->files_removed++;
    return status_ok();
}

static status remove_manifests(struct expiring *e)
{
    char object[OBJECT_NAME_SIZE];
    for (size_t i = 0; i < e->removable_count; i++) {
        TRY(manifest_object(e->removable[i], object));
        TRY(place_remove(e->place, object));
    }
    return place_settle(e->place, WHOLE_BACKUPS);
}

static status expire(struct expiring *e)
{
    const char *const *names;
    size_t count;
    e->arena = arena_create(WHOLE_MEMORY);
    e->manifest_arena = arena_create(WHOLE_MEMORY);
    if (e->arena == NULL || e->manifest_arena == NULL)
        return status_out_of_memory();
    TRY(whole_names(e->place, e->arena, &names, &count));
    TRY(find_removable(e, names, count));
    for (size_t i = 0; i < count; i++)
        if (!is_removable(e, names[i]))
            TRY(note_wanted(e, names[i]));
    TRY(remove_manifests(e));
    return place_list(e->place, WHOLE_FILES, remove_unwanted, e);
}

status whole_expire(struct place *place, const struct whole_expiry *expiry, struct whole_work *work,
                    size_t *backups_removed, size_t *files_removed)
{
    struct expiring e = {.place = place, .expiry = expiry, .work = work};
    whole_begin(work, 0);
    status s = expiry->keep == 0 ? status_make(STATUS_INVALID_ARGUMENT, "at least one is kept")
                                 : expire(&e);
    *backups_removed = status_is_ok(s) ? e.removable_count : 0;
    *files_removed = e.files_removed;
    content_set_free(&e.wanted);
    arena_destroy(e.manifest_arena);
    arena_destroy(e.arena);
    return s;
}
