/* See whole_moment.h. */
#include "backup/whole_moment.h"

#include "backup/whole_order.h"
#include "backup/whole_private.h"
#include "backup/whole_scope.h"
#include "base/check.h"
#include "base/dates.h"

#include <stdlib.h>

/* A backup from which an archive goes on that is there. */
struct base {
    const char *name;
    const char *server;
    uint64_t version;
    uint64_t stream;
};

/* A manifest that cannot be read. */
struct unread {
    const char *name;
    status why;
};

struct search {
    const struct whole_moment *moment;
    struct arena *arena;
    struct arena *manifest_arena;
    struct buffer streams; /* that are archived, as uint64_t */
    struct base *bases;    /* from the oldest; at first by names */
    size_t count;
    bool names_lie;        /* they are not from the oldest to the newest */
    struct unread *unread; /* rising names */
    size_t unread_count;
};

/* --- which there are --- */

static status note_stream(void *context, uint64_t stream)
{
    struct search *search = context;
    buffer_append(&search->streams, &stream, sizeof stream);
    return search->streams.failed ? status_out_of_memory() : status_ok();
}

static bool is_archived(const struct search *search, uint64_t stream)
{
    const uint64_t *streams = (const uint64_t *)(void *)search->streams.data;
    for (size_t i = 0; i < search->streams.size / sizeof *streams; i++)
        if (streams[i] == stream)
            return true;
    return false;
}

static status add_base(struct search *search, const char *name, const struct whole_backup *backup)
{
    const char *server = arena_string(search->arena, bytes_of(backup->server));
    if (server == NULL)
        return status_out_of_memory();
    search->bases[search->count++] = (struct base){.name = name,
                                                   .server = server,
                                                   .version = backup->version,
                                                   .stream = backup->archive_stream};
    return status_ok();
}

/* It is no base, but may have been the one that is wanted. */
static status look_at(struct search *search, const char *name)
{
    struct whole_backup backup;
    arena_reset(search->manifest_arena);
    status s = whole_read(search->moment->place, name, search->manifest_arena, &backup);
    if (s.code == STATUS_DATA_LOSS || s.code == STATUS_FAILED_PRECONDITION) {
        search->unread[search->unread_count++] = (struct unread){name, s};
        return status_ok();
    }
    TRY(s);
    bool is_base = !whole_is_part(&backup) && is_archived(search, backup.archive_stream);
    return is_base ? add_base(search, name, &backup) : status_ok();
}

static int compare_bases(const void *a, const void *b)
{
    const struct base *first = a, *second = b;
    return whole_compare(&(struct whole_age){first->version, first->name},
                         &(struct whole_age){second->version, second->name});
}

/* Names are the wall clock's: see whole_order.h. */
static void sort_bases(struct search *search)
{
    for (size_t i = 1; i < search->count; i++)
        search->names_lie =
            search->names_lie || compare_bases(&search->bases[i - 1], &search->bases[i]) > 0;
    if (search->count > 0)
        qsort(search->bases, search->count, sizeof *search->bases, compare_bases);
}

static status find_bases(struct search *search)
{
    const char *const *names;
    size_t count;
    status s = archive_list_streams(search->moment->archive, note_stream, search);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_make(STATUS_NOT_FOUND, "nothing is archived in %s",
                           place_title(search->moment->archive));
    }
    TRY(s);
    TRY(whole_names(search->moment->place, search->arena, &names, &count));
    search->bases = arena_alloc(search->arena, (count + 1) * sizeof *search->bases);
    search->unread = arena_alloc(search->arena, (count + 1) * sizeof *search->unread);
    if (search->bases == NULL || search->unread == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(look_at(search, names[i]));
    sort_bases(search);
    return status_ok();
}

/* --- which it is --- */

static bool is_before(const struct search *search, const struct base *base)
{
    uint64_t until = search->moment->until;
    return until == ARCHIVE_END || base->version <= until;
}

static status choose_named(struct search *search, const struct base **out)
{
    const char *name = search->moment->name;
    struct whole_backup unread;
    for (size_t i = 0; i < search->unread_count; i++)
        if (strcmp(search->unread[i].name, name) == 0)
            return whole_read_named(search->moment->place, name, search->manifest_arena, &unread);
    for (size_t i = 0; i < search->count; i++)
        if (strcmp(search->bases[i].name, name) == 0) {
            *out = &search->bases[i];
            return status_ok();
        }
    return status_make(STATUS_NOT_FOUND,
                       "there is no whole backup \"%s\" of a server that is archived in %s", name,
                       place_title(search->moment->archive));
}

static status refuse_none(const struct search *search)
{
    const char *archive = place_title(search->moment->archive);
    date_text dates[2]; /* what was asked for, and the oldest */
    bool is_damaged = search->unread_count > 0;
    const char *damaged = is_damaged ? "; not to be read is the manifest of " : "";
    const char *which = is_damaged ? search->unread[0].name : "";
    if (search->count == 0 || search->bases == NULL)
        return status_make(STATUS_NOT_FOUND,
                           "there is no whole backup of a server that is archived in %s%s%s",
                           archive, damaged, which);
    const int64_t us[] = {sequence_time_us(search->moment->until),
                          sequence_time_us(search->bases[0].version)};
    dates_tell(us, 2, dates);
    return status_make(
        STATUS_FAILED_PRECONDITION,
        "no whole backup is as old as %s: the oldest from which %s goes on is %s, of "
        "%s (version %llu)%s%s",
        dates[0], archive, search->bases[0].name, dates[1],
        (unsigned long long)search->bases[0].version, damaged, which);
}

/* NULL if none is old enough. */
static status choose_newest(const struct search *search, const struct base **out)
{
    const struct base *best = NULL;
    for (size_t i = 0; i < search->count; i++) {
        const struct base *base = &search->bases[i];
        if (!is_before(search, base))
            continue;
        if (best != NULL && strcmp(best->server, base->server) != 0)
            return status_make(STATUS_FAILED_PRECONDITION,
                               "there are backups of several servers, %s of %s and %s of %s: name "
                               "the one that is to be taken",
                               best->name, best->server, base->name, base->server);
        if (best == NULL || base->version > best->version)
            best = base;
    }
    *out = best;
    return status_ok();
}

/* By its name, which is its time, to the second. */
static bool is_named_before(const struct search *search, const char *name)
{
    char second[WHOLE_NAME_SIZE];
    uint64_t until = search->moment->until;
    return until == ARCHIVE_END ||
           (whole_name_of(sequence_time_us(until), second) && strcmp(name, second) <= 0);
}

/* A newer one that cannot be read may begin another archive, which would go on to a later moment.
 */
static status require_no_newer(struct search *search, const struct base *chosen)
{
    for (size_t i = search->unread_count; i-- > 0;) {
        struct unread *unread = &search->unread[i];
        bool is_older = strcmp(unread->name, chosen->name) < 0 && !search->names_lie;
        if (is_older || !is_named_before(search, unread->name))
            continue;
        status why = unread->why;
        unread->why = status_ok();
        return whole_refuse_older(unread->name, why, chosen->name);
    }
    return status_ok();
}

static status choose(struct search *search, const struct base **out)
{
    if (search->moment->name != NULL)
        return choose_named(search, out);
    TRY(choose_newest(search, out));
    return *out == NULL ? refuse_none(search) : require_no_newer(search, *out);
}

/* The first of the same archive that comes after the moment; 0: there is none. */
static uint64_t next_after(const struct search *search, const struct base *chosen)
{
    uint64_t next = 0;
    for (size_t i = 0; i < search->count; i++) {
        const struct base *base = &search->bases[i];
        if (base->stream == chosen->stream && !is_before(search, base) &&
            (next == 0 || base->version < next))
            next = base->version;
    }
    return next;
}

static status find(struct search *search, const char **name, struct whole_backup *out,
                   struct archive_reach *read_tier)
{
    const struct whole_moment *moment = search->moment;
    const struct base *base = NULL;
    search->manifest_arena = arena_create(WHOLE_MEMORY);
    if (search->manifest_arena == NULL)
        return status_out_of_memory();
    TRY(find_bases(search));
    TRY(choose(search, &base));
    CHECK(base != NULL);
    *read_tier = (struct archive_reach){.stream = base->stream,
                                        .from = base->version,
                                        .until = moment->until,
                                        .next = next_after(search, base)};
    TRY(archive_check(moment->archive, read_tier));
    *name = base->name;
    return whole_read(moment->place, base->name, search->arena, out);
}

status whole_find_base(const struct whole_moment *moment, struct arena *arena, const char **name,
                       struct whole_backup *out, struct archive_reach *read_tier)
{
    struct search search = {.moment = moment, .arena = arena};
    status s = find(&search, name, out, read_tier);
    for (size_t i = 0; i < search.unread_count; i++)
        status_free(search.unread[i].why);
    arena_destroy(search.manifest_arena);
    buffer_free(&search.streams);
    return s;
}
