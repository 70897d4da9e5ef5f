/* Expiry of whole backups that are not to be kept: see whole.h.
 *
 * First the manifests go, then what only they referred to: a kill in between leaves contents that
 * no manifest refers to, and the next expiry finds them. */
#include "archive/restore.h"
#include "backup/whole_hold.h"
#include "backup/whole_order.h"
#include "backup/whole_private.h"
#include "backup/whole_scope.h"

#include <stdlib.h>

/* A backup that may go. */
struct candidate {
    struct whole_age age;
    const char *server;
    const char *scope; /* empty: all */
    int64_t instant_us;
    int64_t made_us;
    bool goes;
};

struct expiring {
    struct place *place;
    const struct whole_expiry *expiry;
    struct whole_work *work;
    struct arena *arena;      /* of names */
    const char *const *names; /* of all manifests, rising */
    size_t count;
    struct arena *manifest_arena;
    struct content_set wanted;
    struct candidate *candidates; /* from the oldest, once all are there */
    struct buffer servers;        /* that there are backups of, each once, a space before each */
    bool has_server;              /* there are some of the expiry's */
    size_t candidate_count;
    struct whole_held *held; /* those that are being restored */
    size_t held_count;
    size_t backups_removed;
    size_t files_removed;
};

/* --- what stays --- */

static bool may_go(const struct expiring *e, const struct whole_backup *backup)
{
    const struct whole_expiry *expiry = e->expiry;
    return (expiry->server == NULL || strcmp(expiry->server, backup->server) == 0) &&
           (expiry->scope == NULL || strcmp(expiry->scope, backup->scope) == 0) &&
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

/* When it was made, by the later of two clocks of which either may have been wrong. */
static int64_t made_us(const struct whole_backup *backup)
{
    int64_t by_version_us = sequence_time_us(backup->version);
    return backup->instant_us > by_version_us ? backup->instant_us : by_version_us;
}

static status add_candidate(struct expiring *e, const char *name, const struct whole_backup *backup)
{
    const char *server = arena_string(e->arena, bytes_of(backup->server));
    const char *scope = arena_string(e->arena, bytes_of(backup->scope));
    if (server == NULL || scope == NULL)
        return status_out_of_memory();
    const char *made = e->expiry->made;
    bool is_newest = made != NULL && strcmp(made, name) == 0;
    e->candidates[e->candidate_count++] = (struct candidate){
        .age = {.version = is_newest ? UINT64_MAX : backup->version, .name = name},
        .server = server,
        .scope = scope,
        .instant_us = backup->instant_us,
        .made_us = made_us(backup)};
    return status_ok();
}

/* Each server's are counted by themselves, and those of each part of it. One goes that is not among
 * the newest, and without which each moment of the reach can be had: a later one is from before all
 * of it. */
static bool is_to_go(const struct expiring *e, size_t i)
{
    const struct whole_expiry *expiry = e->expiry;
    const struct candidate *it = &e->candidates[i];
    bool is_idle = expiry->reach_us == 0;
    uint64_t newer = 0;
    for (size_t j = i + 1; j < e->candidate_count; j++) {
        const struct candidate *other = &e->candidates[j];
        if (strcmp(other->server, it->server) != 0 || strcmp(other->scope, it->scope) != 0)
            continue;
        newer++;
        is_idle = is_idle || other->made_us < expiry->reach_us;
    }
    return is_idle && newer >= expiry->keep;
}

static bool is_held(const struct expiring *e, const struct candidate *candidate)
{
    for (size_t i = 0; i < e->held_count; i++)
        if (e->held[i].instant_us == candidate->instant_us &&
            strcmp(e->held[i].server, candidate->server) == 0)
            return true;
    return false;
}

static status note_server(struct expiring *e, const char *server)
{
    bytes name = bytes_of(server), known = buffer_bytes(&e->servers);
    const char *wanted = e->expiry->server;
    e->has_server = e->has_server || (wanted != NULL && strcmp(wanted, server) == 0);
    if (known.size == 0 || memmem(known.data, known.size, name.data, name.size) == NULL)
        buffer_append_format(&e->servers, " %s", server);
    return e->servers.failed ? status_out_of_memory() : status_ok();
}

/* A name that is not quite right would keep everything, without a word. */
static status check_server(const struct expiring *e)
{
    const char *server = e->expiry->server;
    if (server == NULL || e->has_server || e->servers.size == 0)
        return status_ok();
    return status_make(
        STATUS_NOT_FOUND, "no backup in %s is of the server %s; there are some of%.*s",
        place_title(e->place), server, (int)e->servers.size, (const char *)e->servers.data);
}

static int compare_candidates(const void *a, const void *b)
{
    return whole_compare(&((const struct candidate *)a)->age, &((const struct candidate *)b)->age);
}

static status find_candidates(struct expiring *e)
{
    struct whole_backup backup;
    e->candidates = arena_alloc(e->arena, (e->count + 1) * sizeof *e->candidates);
    if (e->candidates == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < e->count; i++) {
        TRY(read_manifest(e, e->names[i], &backup));
        TRY(note_server(e, backup.server));
        if (may_go(e, &backup))
            TRY(add_candidate(e, e->names[i], &backup));
    }
    if (e->candidate_count > 0)
        qsort(e->candidates, e->candidate_count, sizeof *e->candidates, compare_candidates);
    TRY(whole_held_list(e->place, clock_wall_us(e->work->clock), !e->expiry->is_trial, e->arena,
                        &e->held, &e->held_count));
    for (size_t i = 0; i < e->candidate_count; i++)
        e->candidates[i].goes = is_to_go(e, i) && !is_held(e, &e->candidates[i]);
    return check_server(e);
}

static bool goes(const struct expiring *e, const char *name)
{
    for (size_t i = 0; i < e->candidate_count; i++)
        if (strcmp(e->candidates[i].age.name, name) == 0)
            return e->candidates[i].goes;
    return false;
}

static status note_wanted(struct expiring *e, const char *name)
{
    struct whole_backup backup;
    char content[CONTENT_NAME_SIZE];
    TRY(read_manifest(e, name, &backup));
    for (size_t i = 0; i < backup.file_count; i++) {
        TRY(content_name(e->place, backup.files[i].sha256, content));
        TRY(content_set_add(&e->wanted, content));
    }
    return status_ok();
}

/* --- what goes --- */

/* An object that has no content's name is not ours. */
static status remove_unwanted(void *context, const struct place_entry *entry)
{
    struct expiring *e = context;
    char object[OBJECT_NAME_SIZE];
    if (!is_content_name(entry->name) || content_set_has(&e->wanted, entry->name))
        return status_ok();
    TRY(whole_pace(e->work, 0));
    content_object(entry->name, object);
    if (!e->expiry->is_trial)
        TRY(place_remove(e->place, object));
    e->files_removed++;
    return status_ok();
}

static status remove_manifest(struct expiring *e, const struct candidate *candidate)
{
    const struct whole_expiry *expiry = e->expiry;
    char object[OBJECT_NAME_SIZE];
    TRY(manifest_object(candidate->age.name, object));
    if (!expiry->is_trial)
        TRY(place_remove(e->place, object));
    e->backups_removed++;
    if (expiry->tell != NULL)
        expiry->tell(expiry->context, candidate->age.name, candidate->server);
    return status_ok();
}

static status remove_manifests(struct expiring *e)
{
    for (size_t i = 0; i < e->candidate_count; i++)
        if (e->candidates[i].goes)
            TRY(remove_manifest(e, &e->candidates[i]));
    return e->expiry->is_trial ? status_ok() : place_sync_folder(e->place, WHOLE_BACKUPS);
}

/* --- what a place shows --- */

static bool is_listed(const struct expiring *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->names[i], name) == 0)
            return true;
    return false;
}

static status refuse_content(void *context, const struct place_entry *entry)
{
    const struct expiring *e = context;
    if (!is_content_name(entry->name))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "%s has files and no backup at all: whether these are of one that was never "
                       "ended or of some that have gone nobody can say, so none is removed",
                       place_title(e->place));
}

static status list_manifests(struct expiring *e)
{
    const char *made = e->expiry->made;
    TRY(whole_names(e->place, e->arena, &e->names, &e->count));
    if (made != NULL && !is_listed(e, made))
        return status_make(
            STATUS_UNAVAILABLE,
            "%s does not show the backup %s that was just made, so nothing is removed",
            place_title(e->place), made);
    return e->count > 0 ? status_ok() : place_list(e->place, WHOLE_FILES, refuse_content, e);
}

/* The place shows those that stay and no other one. */
static status list_again(struct expiring *e)
{
    const char *const *names;
    size_t count, at = 0;
    bool is_same = true;
    if (e->expiry->is_trial)
        return status_ok();
    TRY(whole_names(e->place, e->arena, &names, &count));
    for (size_t i = 0; i < e->count && is_same; i++)
        if (!goes(e, e->names[i])) {
            is_same = at < count && strcmp(names[at], e->names[i]) == 0;
            at++;
        }
    return is_same && at == count
               ? status_ok()
               : status_make(STATUS_UNAVAILABLE,
                             "%s does not show the backups that it showed a moment ago, so no "
                             "files are removed",
                             place_title(e->place));
}

static status expire(struct expiring *e)
{
    e->arena = arena_create(WHOLE_MEMORY);
    e->manifest_arena = arena_create(WHOLE_MEMORY);
    if (e->arena == NULL || e->manifest_arena == NULL)
        return status_out_of_memory();
    TRY(list_manifests(e));
    TRY(find_candidates(e));
    for (size_t i = 0; i < e->count; i++)
        if (!goes(e, e->names[i]))
            TRY(note_wanted(e, e->names[i]));
    TRY(remove_manifests(e));
    TRY(list_again(e));
    return place_list(e->place, WHOLE_FILES, remove_unwanted, e);
}

status whole_expire(struct place *place, const struct whole_expiry *expiry, struct whole_work *work,
                    size_t *backups_removed, size_t *files_removed)
{
    struct expiring e = {.place = place, .expiry = expiry, .work = work};
    whole_begin(work, 0);
    status s = expiry->keep == 0 ? status_make(STATUS_INVALID_ARGUMENT, "at least one is kept")
                                 : expire(&e);
    *backups_removed = e.backups_removed;
    *files_removed = e.files_removed;
    content_set_free(&e.wanted);
    buffer_free(&e.servers);
    arena_destroy(e.manifest_arena);
    arena_destroy(e.arena);
    return s;
}
